//! The disjunctive form of a formula: sets of conditions on the value, each with what is left under them.

use super::{ValueConditions, ValueWays};
use crate::error::{Error, Result};
use crate::json_schema::atoms::{Atom, SchemaId};
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::{Formula, FormulaId};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Operands of a conjunction or disjunction.
type Operands = Vec<FormulaId>;

impl Converter<'_> {
    /// Disjunctive form: sets of conditions on the value, each with what is left under them.
    pub(super) fn ways(&mut self, formula: FormulaId) -> Result<ValueWays> {
        if !self.has_choice(formula) {
            return self.only_way(formula);
        }
        // Parts that do not speak of the value have no entry.
        let mut known: FxHashMap<FormulaId, ValueWays> = FxHashMap::default();
        let parts = self.formulas.parts(formula);
        self.spend(parts.len())?;
        for &part in &parts {
            let ways = match self.formulas.get(part).clone() {
                Formula::Constant(_) => continue,
                Formula::Literal(atom, sign) => match self.atom(atom) {
                    Atom::Value(schema) => {
                        vec![(Rc::from([(*schema, sign)]), FormulaId::TRUE)]
                    }
                    _ => continue,
                },
                Formula::And(inner) | Formula::Or(inner)
                    if !inner.iter().any(|part| known.contains_key(part)) =>
                {
                    continue;
                }
                Formula::Or(inner) => {
                    let (speaking, free) = parted(&inner, &known);
                    let mut joined: Vec<(ValueConditions, FormulaId)> = Vec::new();
                    let mut place: FxHashMap<ValueConditions, usize> = FxHashMap::default();
                    let free = self.formulas.or(free);
                    if free != FormulaId::FALSE {
                        self.join_way((Rc::from([]), free), &mut joined, &mut place)?;
                    }
                    for way in speaking.iter().flat_map(|part| known[part].clone()) {
                        self.join_way(way, &mut joined, &mut place)?;
                    }
                    absorb(joined)
                }
                Formula::And(inner) => {
                    let (speaking, free) = parted(&inner, &known);
                    let free = self.formulas.and(free);
                    let mut all: ValueWays = vec![(Rc::from([]), free)];
                    for part in speaking {
                        let more = known[&part].clone();
                        let mut joined = Vec::new();
                        let mut place = FxHashMap::default();
                        for (a, left_a) in &all {
                            for (b, left_b) in &more {
                                let Some(conditions) = conjunction(a, b) else { continue };
                                let rest = self.formulas.and([*left_a, *left_b]);
                                if rest != FormulaId::FALSE {
                                    self.join_way((conditions, rest), &mut joined, &mut place)?;
                                }
                            }
                        }
                        all = absorb(joined);
                    }
                    all
                }
            };
            known.insert(part, ways);
        }
        Ok(match known.remove(&formula) {
            Some(ways) => ways,
            None if formula == FormulaId::FALSE => Vec::new(),
            None => vec![(Rc::from([]), formula)],
        })
    }

    /// The way of a conjunction of conditions on the value and what does not speak of it.
    fn only_way(&mut self, formula: FormulaId) -> Result<ValueWays> {
        if formula == FormulaId::FALSE {
            return Ok(Vec::new());
        }
        let (conditions, rest) = self.conditions_in(formula)?;
        Ok(vec![(conditions.into(), self.formulas.and(rest))])
    }

    /// The conditions on the value that a conjunction holds, in their order, and its other operands.
    pub(super) fn conditions_in(
        &self,
        formula: FormulaId,
    ) -> Result<(Vec<(SchemaId, bool)>, Operands)> {
        let (mut conditions, mut rest) = (Vec::new(), Vec::new());
        let operands = self.formulas.conjuncts(formula);
        self.spend(1 + operands.len())?;
        for operand in operands {
            if let Formula::Literal(atom, sign) = *self.formulas.get(operand)
                && let Atom::Value(schema) = *self.atom(atom)
            {
                conditions.push((schema, sign));
            } else {
                rest.push(operand);
            }
        }
        conditions.sort_unstable();
        Ok((conditions, rest))
    }

    fn join_way(
        &mut self,
        (conditions, rest): (ValueConditions, FormulaId),
        joined: &mut ValueWays,
        place: &mut FxHashMap<ValueConditions, usize>,
    ) -> Result<()> {
        self.spend(1 + conditions.len())?;
        match place.get(&conditions) {
            Some(&at) => joined[at].1 = self.formulas.or([joined[at].1, rest]),
            None => {
                place.insert(conditions.clone(), joined.len());
                joined.push((conditions, rest));
            }
        }
        let most = self.options.max_alternatives;
        if joined.len() > most {
            return Err(self.too_many_alternatives());
        }
        Ok(())
    }

    pub(super) fn too_many_alternatives(&self) -> Error {
        Error::Limit {
            limit: "max_schema_alternatives",
            value: self.options.max_alternatives as u64,
            message: "the alternatives of the schema, each array and object of an `enum` among them, ask \
                      for more combinations of conditions on one value; list fewer, or give objects that \
                      do not have it a property whose `const` tells them apart"
                .into(),
        }
    }
}

/// The operands that speak of the value, and the others: those are joined at once, so that the formulas
/// on the way do not grow one operand at a time.
fn parted(
    operands: &[FormulaId],
    known: &FxHashMap<FormulaId, ValueWays>,
) -> (Vec<FormulaId>, Vec<FormulaId>) {
    operands.iter().partition(|operand| known.contains_key(operand))
}

/// Both sets of conditions; `None` where they contradict each other.
fn conjunction(a: &ValueConditions, b: &ValueConditions) -> Option<ValueConditions> {
    if b.is_empty() {
        return Some(a.clone());
    }
    if a.is_empty() {
        return Some(b.clone());
    }
    let mut all: Vec<(SchemaId, bool)> = a.iter().chain(b.iter()).copied().collect();
    all.sort_unstable();
    all.dedup();
    let clash = all.windows(2).any(|pair| pair[0].0 == pair[1].0);
    (!clash).then(|| all.into())
}

/// Without ways that ask for more than another with the same rest.
fn absorb(ways: ValueWays) -> ValueWays {
    /// More ways are left as they are: comparing all with all would take longer than it saves.
    const MOST: usize = 64;
    if ways.len() < 2 || ways.len() > MOST {
        return ways;
    }
    let holds = |more: &ValueConditions, fewer: &ValueConditions| {
        fewer.len() < more.len() && fewer.iter().all(|one| more.binary_search(one).is_ok())
    };
    let is_kept = |(conditions, rest): &(ValueConditions, FormulaId)| {
        !ways.iter().any(|(other, left)| left == rest && holds(conditions, other))
    };
    let kept: Vec<bool> = ways.iter().map(is_kept).collect();
    ways.iter().zip(kept).filter(|(_, kept)| *kept).map(|(way, _)| way.clone()).collect()
}
