//! Objects whose states do not say which names were read: automata with guards.
//!
//! All edges are calls, so that a guard can go by the rule that is called. Each known name has a rule
//! with its value, which adds the name to those that were read; each set of required names has a rule for
//! the closing brace, which needs them.

use super::automaton::DraftAutomaton;
use super::gaps::Spacing;
use super::{Emitter, RuleKey};
use crate::error::Result;
use crate::grammar::{Expr, Guard};
use crate::ids::{ExprId, RuleId};
use crate::json_schema::atoms::{ObjectId, ValueId};
use crate::json_schema::automata::{MemberEdge, MemberName, ObjectState};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Edges that are looked through as one unit of work.
const EDGES_OF_WORK: usize = 8;

impl Emitter<'_, '_> {
    /// An object in which each name comes at most once, in any order.
    pub(super) fn unordered(&mut self, id: ObjectId, level: u32) -> Result<ExprId> {
        let object = self.converter.objects[usize::from(id)].clone();
        let required = object.required.unwrap_or_default();
        let members = self.members_that_count(id, &object.states, level)?;
        let mut out = DraftAutomaton::default();
        let (start, end) = (out.state(), out.state());
        out.finals[end as usize] = true;
        let mut guards: Vec<(RuleId, Guard)> = Vec::new();
        // For each state the one before a name, and the one behind a value.
        let mut names: Vec<Option<u32>> = vec![None; object.states.len()];
        let mut behind: Vec<Option<u32>> = vec![None; object.states.len()];
        let mut todo: Vec<usize> = Vec::new();
        if object.states[0].is_final && required[0].is_empty() {
            let empty = self.call(RuleKey::Empty(level));
            out.part(start, empty, end);
        }
        if !members[0].is_empty() {
            let open = self.call(RuleKey::Open(level));
            let name = *names[0].get_or_insert_with(|| out.state());
            out.part(start, open, name);
            todo.push(0);
        }
        let mut closing: FxHashMap<Rc<[u32]>, u32> = FxHashMap::default();
        let mut met = vec![false; object.states.len()];
        while let Some(state) = todo.pop() {
            if std::mem::replace(&mut met[state], true) {
                continue;
            }
            let Some(name) = names[state] else { continue };
            // A name of a class is read once, whatever values may follow.
            let mut between: FxHashMap<u32, u32> = FxHashMap::default();
            for edge in &members[state] {
                self.converter.spend(1)?;
                let to = edge.to as usize;
                let is_new = behind[to].is_none();
                let target = *behind[to].get_or_insert_with(|| out.state());
                match edge.name {
                    MemberName::Known(place) => {
                        let rule = self.rule(RuleKey::Member(id, edge.name, edge.value, level));
                        let member = self.add(Expr::Rule(rule));
                        guards.push((rule, Guard::Adds(place)));
                        out.part(name, member, target);
                    }
                    MemberName::Other(class) => {
                        let between = *between.entry(class).or_insert_with(|| {
                            let (other, to) = (self.call(RuleKey::Names(id, class)), out.state());
                            out.part(name, other, to);
                            to
                        });
                        let entry = self.call(RuleKey::Entry(edge.value, level));
                        out.part(between, entry, target);
                    }
                }
                if !is_new {
                    continue;
                }
                if !members[to].is_empty() {
                    let comma = self.call(RuleKey::Comma(level));
                    let next = *names[to].get_or_insert_with(|| out.state());
                    out.part(target, comma, next);
                    todo.push(to);
                }
                if object.states[to].is_final {
                    self.converter.spend(required[to].len() / EDGES_OF_WORK)?;
                    let next = closing.len() as u32;
                    let number = *closing.entry(required[to].clone()).or_insert(next);
                    let rule = self.rule(RuleKey::Close(id, number, level));
                    let close = self.add(Expr::Rule(rule));
                    if number == next {
                        guards.push((rule, Guard::Needs((*required[to]).into())));
                    }
                    out.part(target, close, end);
                }
            }
        }
        out.guards = in_order(guards);
        self.finish_automaton(out)
    }

    /// For each state the members that have a value, and lead to an end.
    fn members_that_count(
        &mut self,
        id: ObjectId,
        states: &[ObjectState],
        level: u32,
    ) -> Result<Vec<Vec<MemberEdge>>> {
        let live = &self.values.object_states[&id];
        let is_live = |edge: &&MemberEdge| live[edge.to as usize];
        let mut members: Vec<Vec<MemberEdge>> = Vec::with_capacity(states.len());
        for state in states {
            self.converter.spend(1 + state.members.len() / EDGES_OF_WORK)?;
            let productive =
                state.members.iter().filter(|edge| self.values.productive.contains(&edge.value));
            members.push(match self.is_too_deep(level) {
                true => Vec::new(),
                false => productive.filter(is_live).cloned().collect(),
            });
        }
        Ok(members)
    }

    /// The opening brace with what comes before a first member.
    pub(super) fn open(&mut self, level: u32) -> Result<ExprId> {
        let gaps = self.gaps(level);
        self.braced(|this, out, from| {
            let at = out.text(from, b"{", None);
            let at = this.gap(out, at, &gaps.open);
            this.before_name(out, at, None)
        })
    }

    /// An object without members.
    pub(super) fn empty_object(&mut self, level: u32) -> Result<ExprId> {
        let gaps = self.gaps(level);
        self.braced(|this, out, from| {
            let mut at = out.text(from, b"{", None);
            if let Spacing::Free = gaps.open {
                at = this.gap(out, at, &gaps.open);
            }
            out.text(at, b"}", None)
        })
    }

    /// The comma between members.
    pub(super) fn comma_of_members(&mut self, level: u32) -> Result<ExprId> {
        let gaps = self.gaps(level);
        self.braced(|this, out, from| {
            let at = this.comma(out, from, &gaps);
            this.before_name(out, at, None)
        })
    }

    /// The closing brace behind a member.
    pub(super) fn close(&mut self, level: u32) -> Result<ExprId> {
        let gaps = self.gaps(level);
        self.braced(|this, out, from| {
            let at = this.gap(out, from, &gaps.before_close);
            out.text(at, b"}", None)
        })
    }

    /// What follows a name.
    pub(super) fn entry(&mut self, value: ValueId, level: u32) -> Result<ExprId> {
        let gaps = self.gaps(level);
        let value = self.call_value(value, self.level_below(level));
        self.braced(|this, out, from| {
            let at = this.gap(out, from, &gaps.before_colon);
            let at = out.text(at, b":", None);
            let at = this.gap(out, at, &gaps.after_colon);
            let to = out.state();
            out.part(at, value, to);
            to
        })
    }

    /// An automaton that one way leads through.
    pub(super) fn braced(
        &mut self,
        write: impl FnOnce(&mut Self, &mut DraftAutomaton, u32) -> u32,
    ) -> Result<ExprId> {
        let mut out = DraftAutomaton::default();
        let start = out.state();
        let end = write(self, &mut out, start);
        out.finals[end as usize] = true;
        self.finish_automaton(out)
    }
}

/// Guards by their rules; none where no name is known, since then there is nothing to guard.
fn in_order(mut guards: Vec<(RuleId, Guard)>) -> Vec<(RuleId, Guard)> {
    if guards.iter().all(|(_, guard)| matches!(guard, Guard::Needs(names) if names.is_empty())) {
        guards.clear();
    }
    guards.sort_unstable_by_key(|guard| guard.0);
    guards.dedup();
    guards
}
