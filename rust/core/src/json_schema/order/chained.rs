//! An order of names in which what a condition brings stands right behind what it asks for.
//!
//! In the order of [`Converter::order`] a list of conditions (`if` `x1` then `b1`, `if` `x2` then `b2`) has the names of
//! `properties` first, so a state would keep for each condition whether it holds. In this order none is kept.

use crate::error::Result;
use crate::json_schema::atoms::{NameId, OrderId, SchemaId, SchemaKey, Type};
use crate::json_schema::choice::Applied;
use crate::json_schema::converter::Converter;
use crate::json_schema::keywords::Dependency;
use rustc_hash::{FxHashMap, FxHashSet};

/// Names that a condition asks for, and names that stand in what then applies.
struct Condition {
    asks: Vec<NameId>,
    brings: Vec<NameId>,
}

/// What schemas that hold, and those that they apply, say of names.
#[derive(Default)]
struct Mentions {
    conditions: Vec<Condition>,
    /// The names that are described whatever holds.
    described: FxHashSet<NameId>,
}

impl Mentions {
    /// The names that conditions alone bring.
    fn brought(&self) -> FxHashSet<NameId> {
        let brings = self.conditions.iter().flat_map(|condition| &condition.brings);
        brings.copied().filter(|name| !self.described.contains(name)).collect()
    }
}

impl Converter<'_> {
    /// The names of an order, with those that conditions alone bring right behind those that these ask for; `None`
    /// where that is the order itself.
    pub(in crate::json_schema) fn chained(
        &mut self,
        conditions: &[(SchemaId, bool)],
        order: OrderId,
    ) -> Result<Option<OrderId>> {
        let found = self.conditions_of(conditions)?;
        if found.conditions.is_empty() {
            return Ok(None);
        }
        let names = self.orders.get(order).clone();
        let mut left: FxHashSet<NameId> = names.iter().copied().collect();
        // How many of the names that each condition asks for are left, and which conditions ask for a name.
        let mut missing: Vec<usize> = Vec::with_capacity(found.conditions.len());
        let mut asking: FxHashMap<NameId, Vec<usize>> = FxHashMap::default();
        for (number, condition) in found.conditions.iter().enumerate() {
            let asked: FxHashSet<NameId> =
                condition.asks.iter().copied().filter(|name| left.contains(name)).collect();
            self.spend(1 + condition.asks.len() + condition.brings.len())?;
            missing.push(asked.len());
            for name in asked {
                asking.entry(name).or_default().push(number);
            }
        }
        let brought = found.brought();
        let mut out: Vec<NameId> = Vec::with_capacity(names.len());
        let mut write = |name: NameId| {
            let mut work = vec![name];
            while let Some(name) = work.pop() {
                if !left.remove(&name) {
                    continue;
                }
                out.push(name);
                let before = work.len();
                for &number in asking.get(&name).into_iter().flatten() {
                    missing[number] -= 1;
                    if missing[number] == 0 {
                        let brings = &found.conditions[number].brings;
                        work.extend(brings.iter().filter(|name| brought.contains(name)));
                    }
                }
                work[before..].reverse();
            }
        };
        for &name in names.iter().filter(|name| !brought.contains(name)) {
            write(name);
        }
        // What is left is asked for by what it brings, or by nothing that holds.
        names.iter().for_each(|&name| write(name));
        Ok((*out != **names).then(|| self.orders.intern(out.into())))
    }

    /// The conditions in schemas that hold, and in those that they apply, in the order in which they are met.
    fn conditions_of(&mut self, conditions: &[(SchemaId, bool)]) -> Result<Mentions> {
        let mut out = Mentions::default();
        let mut seen: FxHashSet<(SchemaId, bool)> = FxHashSet::default();
        let holding = conditions.iter().rev().filter(|condition| condition.1);
        let mut describing = Vec::new();
        // Schemas, and whether they stand in what a condition brings.
        let mut work: Vec<(SchemaId, bool)> = holding.map(|one| (one.0, false)).collect();
        while let Some((schema, is_brought)) = work.pop() {
            self.spend(1)?;
            let SchemaKey::Schema(node, _) = self.key(schema) else { continue };
            if !seen.insert((schema, is_brought)) {
                continue;
            }
            if !is_brought {
                describing.push((schema, node));
            }
            for (name, dependency, _) in self.schemas.dependencies(node)? {
                if let Dependency::Names(required) = dependency {
                    let brings = required.into_iter().map(|name| self.name(name)).collect();
                    out.conditions.push(Condition { asks: vec![self.name(name)], brings });
                }
            }
            let before = work.len();
            let applied = self.applied(schema, Type::Object)?;
            let asked = applied.iter().find(|child| child.1 == Applied::If);
            let asked = asked.map_or(Ok(Vec::new()), |&(child, _)| self.walked_names(child))?;
            for &(child, how) in applied.iter() {
                let asks = match how {
                    Applied::Always | Applied::Any | Applied::One => {
                        work.push((child, is_brought));
                        continue;
                    }
                    Applied::Not | Applied::If => continue,
                    Applied::Then | Applied::Else => asked.clone(),
                    Applied::Dependent(name) => vec![name],
                };
                let brings = self.walked_names(child)?;
                out.conditions.push(Condition { asks, brings });
                work.push((child, true));
            }
            work[before..].reverse();
        }
        if !out.conditions.is_empty() {
            for (schema, node) in describing {
                out.described.extend(self.property_names(node)?.iter());
                out.described.extend(self.required_names(schema)?.iter());
            }
        }
        Ok(out)
    }
}
