//! Names that no `properties` mentions and that are finitely many all the same, as where `propertyNames` lists them.
//!
//! The schema gives them no order, so they come behind the known names in any order, each at most once.

use super::FEW_LISTED;
use super::ordered::{Ordered, Thread};
use crate::error::Result;
use crate::json_schema::atoms::{Alternative, NameId, ValueId};
use crate::json_schema::automata::{MemberEdge, MemberName, ObjectState};
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::FormulaId;
use crate::json_schema::options::KeyOrder;
use crate::json_schema::step::Member;
use crate::regular::Dfa;

/// So many other names at most come once; more of them are like infinitely many.
const MOST_LISTED: usize = 256;

impl Converter<'_> {
    /// An alternative that knows its other names too, where these are few; else the same.
    ///
    /// Sets of names are guarded where no name keeps to an order, and written out behind names that do, or where
    /// several alternatives are one object (`is_alone`). So fewer are listed there.
    pub(super) fn with_listed(
        &mut self,
        alternative: Alternative,
        is_alone: bool,
    ) -> Result<Alternative> {
        let Alternative { formula, order, in_order } = alternative;
        let names = self.orders.get(order).clone();
        if self.options.key_order == KeyOrder::Schema && in_order < names.len() as u32 {
            return Ok(alternative); // it knows them
        }
        let most = match is_alone && in_order == 0 && self.options.style.has_guards() {
            true => MOST_LISTED,
            false => FEW_LISTED,
        };
        let listed = match self.listed.get(&(formula, order)) {
            Some(&known) => known,
            None => {
                let listed = self.listed_names(formula, &names)?;
                let listed = self.orders.intern(listed.into());
                self.listed.insert((formula, order), listed);
                listed
            }
        };
        let listed = self.orders.get(listed).clone();
        if listed.is_empty() || listed.len() > most {
            return Ok(alternative);
        }
        let order = self.orders.intern([&names[..], &listed[..]].concat().into());
        Ok(Alternative { formula, order, in_order })
    }

    /// The other names that members of an object may have; none where they are many.
    fn listed_names(&mut self, formula: FormulaId, known: &[NameId]) -> Result<Vec<NameId>> {
        let (patterns, schemas) = self.asked_of_names(formula)?;
        if patterns.is_empty() && schemas.is_empty() || self.has_no_others(formula)? {
            return Ok(Vec::new());
        }
        let mut texts = Vec::new();
        for class in self.name_classes(formula, known)? {
            if self.present(formula, Member::Other(&class), 0)? == FormulaId::FALSE {
                continue;
            }
            let (least, most) = class.lengths;
            let mut names = class.names.clone();
            if let Some(most) = most.filter(|&most| most <= MOST_LISTED as u32) {
                names = names
                    .intersection(&Dfa::lengths(least, Some(most), &self.bounds)?, &self.bounds)?;
            }
            let is_plain = class.expression.is_none();
            let Some(more) = names.strings(MOST_LISTED).filter(|_| is_plain) else {
                return Ok(Vec::new());
            };
            self.spend(1 + more.len())?;
            let is_long_enough = |name: &String| name.chars().count() >= least as usize;
            texts.extend(more.into_iter().filter(is_long_enough));
        }
        let is_writable = |name: &String| self.options.spells_as_known(name);
        if texts.len() > MOST_LISTED || !texts.iter().all(is_writable) {
            return Ok(Vec::new());
        }
        texts.sort_unstable();
        Ok(texts.iter().map(|name| self.name(name)).collect())
    }

    /// The members of listed names that may come in threads of an alternative, and whether the object may end.
    pub(super) fn read_listed(
        &mut self,
        out: &mut Ordered,
        threads: &[Thread],
        number: u32,
        state: &mut ObjectState,
    ) -> Result<()> {
        let names = out.listed[number as usize].clone();
        let mut behind: Vec<((NameId, ValueId), Vec<Thread>)> = Vec::new();
        for thread in threads {
            let Thread::Listed(_, read, formula) = *thread else { continue };
            let mut at_end = formula;
            for (index, &name) in names.iter().enumerate() {
                if read >> index & 1 == 1 {
                    continue;
                }
                at_end = self.absent(at_end, name, 0)?;
                let rest = self.present(formula, Member::Named(name), 0)?;
                for &(value, rest) in self.edges(rest)?.iter() {
                    let next = Thread::Listed(number, read | 1 << index, rest);
                    match behind.iter_mut().find(|known| known.0 == (name, value)) {
                        Some(known) => known.1.push(next),
                        None => behind.push(((name, value), vec![next])),
                    }
                }
            }
            state.is_final |= self.ends(at_end);
        }
        behind.sort_by_key(|member| out.places[&member.0.0]);
        for ((name, value), threads) in behind {
            let name = MemberName::Known(out.places[&name]);
            state.members.push(MemberEdge { name, value, to: out.enter(threads) });
        }
        Ok(())
    }
}
