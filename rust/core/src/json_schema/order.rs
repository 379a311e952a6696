//! In which order the members of an object stand: names as they first appear in the schema, left to
//! right through keywords and branches; names that only conditions mention come last. `chained` has another order, for
//! objects whose conditions multiply in this one.

mod chained;

use super::atoms::{Atom, NameId, OrderId, SchemaId, SchemaKey, Type};
use super::choice::{Applied, Choice};
use super::converter::Converter;
use super::formula::FormulaId;
use super::keywords::Dependency;
use super::value::JsonNode;
use crate::error::Result;
use rustc_hash::FxHashSet;
use std::rc::Rc;

enum OrderStep {
    Schema(SchemaId),
    Names(Rc<[NameId]>),
}

impl Converter<'_> {
    /// The order of the names that a formula of objects mentions, where it comes of some conditions.
    pub(super) fn order(
        &mut self,
        conditions: &[(SchemaId, bool)],
        formula: FormulaId,
        choice: &Choice,
    ) -> Result<OrderId> {
        let mentioned = self.mentioned(formula)?;
        if mentioned.len() < 2 {
            return Ok(self.orders.intern(mentioned.into()));
        }
        let mut left: FxHashSet<NameId> = mentioned.iter().copied().collect();
        let mut out = self.walked(conditions, choice, Some(&mut left))?;
        // Nothing is left but what the walk does not reach; the order of first use is kept for it.
        out.extend(mentioned.into_iter().filter(|name| left.contains(name)));
        Ok(self.orders.intern(out.into()))
    }

    /// The names that a schema mentions, in their order.
    pub(super) fn walked_names(&mut self, schema: SchemaId) -> Result<Vec<NameId>> {
        self.walked(&[(schema, true)], &Choice::default(), None)
    }

    /// The names that some conditions mention, in their order, where some branches are taken; those of
    /// `left`, which are taken out of it, or all.
    fn walked(
        &mut self,
        conditions: &[(SchemaId, bool)],
        choice: &Choice,
        mut left: Option<&mut FxHashSet<NameId>>,
    ) -> Result<Vec<NameId>> {
        let mut out: Vec<NameId> = Vec::new();
        let mut met: FxHashSet<NameId> = FxHashSet::default();
        let first = |holds: bool| {
            let of = conditions.iter().filter(move |condition| condition.1 == holds);
            of.map(|condition| OrderStep::Schema(condition.0))
        };
        let mut later: Vec<OrderStep> = Vec::new();
        let mut seen = FxHashSet::default();
        let mut work: Vec<OrderStep> = first(true).collect();
        if work.len() > 1 {
            // As if one schema held the others: what it says itself comes before what it applies, and the order
            // of `properties` before that of `required`.
            work.sort_by_cached_key(|step| {
                let place = match step {
                    OrderStep::Schema(schema) => self.place(*schema),
                    OrderStep::Names(_) => self.schemas.root(),
                };
                let depth = self.schemas.arena().pointer(place).matches('/').count();
                (depth, self.object_of(place, "properties").is_none(), place)
            });
        }
        work.reverse();
        later.extend(first(false));
        let mut is_late = false;
        loop {
            let Some(step) = work.pop() else {
                if later.is_empty() || left.as_ref().is_some_and(|left| left.is_empty()) {
                    break;
                }
                // Conditions in the order in which they were met, then those within them.
                is_late = true;
                work = std::mem::take(&mut later);
                work.reverse();
                continue;
            };
            self.spend(1)?;
            match step {
                OrderStep::Names(names) => {
                    self.spend(names.len())?;
                    out.extend(names.iter().copied().filter(|name| match &mut left {
                        Some(left) => left.remove(name),
                        None => met.insert(*name),
                    }))
                }
                OrderStep::Schema(schema) if !seen.insert((schema, is_late)) => {}
                OrderStep::Schema(schema) => {
                    let (steps, conditions) = self.named_by(schema, choice)?;
                    work.extend(steps.into_iter().rev());
                    later.extend(conditions);
                }
            }
            if left.as_ref().is_some_and(|left| left.is_empty()) {
                break;
            }
        }
        Ok(out)
    }

    /// What a schema mentions, left to right, and the conditions in it.
    fn named_by(
        &mut self,
        schema: SchemaId,
        choice: &Choice,
    ) -> Result<(Vec<OrderStep>, Vec<OrderStep>)> {
        let node = match self.key(schema) {
            SchemaKey::Schema(node, _) => node,
            SchemaKey::Truth(_) | SchemaKey::Closed => return Ok(Default::default()),
            SchemaKey::Constant(node) => {
                let JsonNode::Object(object) = self.node(node) else {
                    return Ok(Default::default());
                };
                let names = object.iter().map(|(name, _)| self.name(name)).collect();
                return Ok((vec![OrderStep::Names(names)], Vec::new()));
            }
        };
        let JsonNode::Object(object) = self.node(node) else { return Ok(Default::default()) };
        let schemas = self.schemas;
        let applied = self.applied(schema, Type::Object)?;
        let mut applied = applied.iter().copied().peekable();
        let (mut steps, mut conditions) = (Vec::new(), Vec::new());
        let hides = self.hides_siblings(node);
        // The order of `properties` is meant; that of `required`, which often stands before it, is not.
        steps.push(OrderStep::Names(self.property_names(node)?));
        for (keyword, _) in object.iter() {
            match keyword {
                "enum" | "const" if !hides => {
                    let values = match keyword {
                        "enum" => schemas.values(node, "enum")?.unwrap_or_default().to_vec(),
                        _ => schemas.value(node, "const").into_iter().collect(),
                    };
                    for value in values {
                        if matches!(self.node(value), JsonNode::Object(_)) {
                            steps.push(OrderStep::Schema(self.constant(value)));
                        }
                    }
                }
                "dependentRequired" | "dependencies" if !hides => {
                    let mut names = Vec::new();
                    for (name, dependency, of) in schemas.dependencies(node)? {
                        let Dependency::Names(required) = dependency else { continue };
                        if of == keyword {
                            names.push(self.name(name));
                            names.extend(required.into_iter().map(|name| self.name(name)));
                        }
                    }
                    conditions.push(OrderStep::Names(names.into()));
                }
                _ => {}
            }
            while let Some(&(child, how)) = applied.peek()
                && is_of(keyword, how)
            {
                applied.next();
                if choice.taken(schema, how).is_some_and(|taken| taken != child) {
                    continue;
                }
                match how {
                    Applied::Not | Applied::If => conditions.push(OrderStep::Schema(child)),
                    Applied::Dependent(name) => {
                        conditions.push(OrderStep::Names([name].into()));
                        steps.push(OrderStep::Schema(child));
                    }
                    _ => steps.push(OrderStep::Schema(child)),
                }
            }
        }
        if let Some(names) = schemas.required(node)? {
            let names = names.into_iter().map(|name| self.name(name)).collect();
            steps.push(OrderStep::Names(names));
        }
        Ok((steps, conditions))
    }

    /// The names that a formula of objects mentions, in order of first use.
    pub(super) fn mentioned(&mut self, formula: FormulaId) -> Result<Vec<NameId>> {
        let mut out: Vec<NameId> = Vec::new();
        let mut met: FxHashSet<NameId> = FxHashSet::default();
        let mut seen: FxHashSet<FormulaId> = FxHashSet::default();
        let mut work = vec![formula];
        while let Some(formula) = work.pop() {
            if !seen.insert(formula) {
                continue;
            }
            for (atom, _) in self.formulas.atoms_of(formula) {
                let (mut schemas, mut asking) = (Vec::new(), Vec::new());
                match self.atom(atom) {
                    Atom::Required(name) if met.insert(*name) => out.push(*name),
                    Atom::Properties(schema) => schemas.push(*schema),
                    Atom::RequiredAll(schema) => {
                        let schema = *schema;
                        let SchemaKey::Schema(node, _) = self.key(schema) else { continue };
                        for name in self.schemas.required(node)?.unwrap_or_default() {
                            let name = self.name(name);
                            if met.insert(name) {
                                out.push(name);
                            }
                        }
                    }
                    Atom::UnevaluatedProperties(owner, branches) => {
                        if self.key(*owner) == SchemaKey::Closed {
                            asking.extend(branches.iter().map(|branch| branch.1));
                        }
                        for &(condition, branch) in branches {
                            schemas.push(branch);
                            work.push(condition);
                        }
                    }
                    _ => {}
                }
                for schema in asking {
                    let mut names: Vec<NameId> =
                        self.asked_names(schema)?.iter().copied().collect();
                    names.sort_unstable();
                    out.extend(names.into_iter().filter(|&name| met.insert(name)));
                }
                for schema in schemas {
                    let names = match self.key(schema) {
                        SchemaKey::Constant(node) => match self.node(node) {
                            JsonNode::Object(object) => {
                                object.iter().map(|(name, _)| self.name(name)).collect()
                            }
                            _ => continue,
                        },
                        SchemaKey::Schema(node, _) => self.property_names(node)?,
                        SchemaKey::Truth(_) | SchemaKey::Closed => continue,
                    };
                    self.spend(names.len())?;
                    out.extend(names.iter().filter(|&&name| met.insert(name)));
                }
            }
        }
        Ok(out)
    }
}

/// Whether a keyword applies schemas in a way.
fn is_of(keyword: &str, how: Applied) -> bool {
    match how {
        Applied::Always => matches!(keyword, "$ref" | "$dynamicRef" | "$recursiveRef" | "allOf"),
        Applied::Any => keyword == "anyOf",
        Applied::One => keyword == "oneOf",
        Applied::Not => keyword == "not",
        Applied::If => keyword == "if",
        Applied::Then => keyword == "then",
        Applied::Else => keyword == "else",
        Applied::Dependent(_) => matches!(keyword, "dependentSchemas" | "dependencies"),
    }
}
