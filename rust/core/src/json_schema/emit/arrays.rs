//! Arrays: brackets, items and the commas between them.

use super::automaton::DraftAutomaton;
use super::gaps::{Gaps, Spacing};
use super::{Emitter, RuleKey};
use crate::error::{Error, Result};
use crate::grammar::{Expr, Guard, UniqueItems};
use crate::ids::{ExprId, RuleId};
use crate::json_schema::atoms::{ArrayId, SchemaId, ValueId};
use crate::json_schema::automata::ArrayAutomaton;

/// What stands around items of which each comes once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ArrayDelimiter {
    /// The opening bracket, with what comes before a first item.
    Open,
    /// The brackets of an array without items.
    Nothing,
    /// A comma, with what is around it.
    Comma,
    /// The closing bracket, with what comes before it.
    Close,
    /// The closing bracket alone.
    End,
}

impl ArrayDelimiter {
    /// What it is, in some words.
    pub(super) fn said(self) -> &'static str {
        match self {
            Self::Open => "the beginning of an array",
            Self::Nothing => "an array without items",
            Self::Comma => "a comma between items",
            Self::Close | Self::End => "the end of an array",
        }
    }
}

impl Emitter<'_, '_> {
    pub(super) fn array(&mut self, id: ArrayId, level: u32) -> Result<ExprId> {
        match self.converter.arrays[usize::from(id)].clone() {
            ArrayAutomaton::Plain { prefix, rest, least, most } => {
                self.plain_array(&prefix, rest, (least, most), level)
            }
            ArrayAutomaton::Distinct { items, least, most, .. } => {
                self.distinct_items(id, &items, (least, most), level)
            }
            ArrayAutomaton::Unique { schema, inner, items } => {
                let (values, _) = self.converter.items_of_array(inner, schema)?;
                let has_strings = |id| self.values.all[id].string.is_some();
                // Numbers and words alone are written as in JSON.
                if self.quotes().is_raw && (items.nested || values.iter().any(has_strings)) {
                    return Err(self.no_unique_items(schema));
                }
                self.unique_items(id, items, level)
            }
            ArrayAutomaton::States(_) => self.array_states(id, level),
            ArrayAutomaton::Either(arrays) => {
                Ok(self.one_of_arrays(&arrays, |array| RuleKey::Array(array, level)))
            }
        }
    }

    /// One of some arrays: those that some text has.
    pub(super) fn one_of_arrays(
        &mut self,
        arrays: &[ArrayId],
        key: impl Fn(ArrayId) -> RuleKey,
    ) -> ExprId {
        let mut calls = Vec::with_capacity(arrays.len());
        for &array in arrays {
            if self.converter.array_is_productive(array, &self.values) {
                calls.push(self.call(key(array)));
            }
        }
        self.choice(calls)
    }

    pub(super) fn no_unique_items(&self, schema: SchemaId) -> Error {
        let message = "this style of writing arguments is no JSON, so that equal items cannot be found; \
                       leave the keyword out and check the result";
        self.converter.unsupported(self.converter.place(schema), "uniqueItems", message.into())
    }

    /// An array no two of whose items are equal: a frame beneath its items says so.
    fn unique_items(&mut self, id: ArrayId, items: UniqueItems, level: u32) -> Result<ExprId> {
        let unclosed = self.rule(RuleKey::Unclosed(id, level));
        let mut out = DraftAutomaton::default();
        let (start, behind, end) = (out.state(), out.state(), out.state());
        out.finals[end as usize] = true;
        let called = self.add(Expr::Rule(unclosed));
        out.part(start, called, behind);
        let close = self.call(RuleKey::Around(ArrayDelimiter::End, level));
        out.part(behind, close, end);
        out.guards = vec![(unclosed, Guard::Unique(items))];
        self.finish_automaton(out)
    }

    /// Writes the closing bracket, where it is written here.
    fn bracket(&mut self, out: &mut DraftAutomaton, from: u32, end: u32) {
        match self.leaves_open {
            true => out.part(from, self.empty, end),
            false => {
                out.text(from, b"]", Some(end));
            }
        }
    }

    /// Each item at most once, in any order: an automaton with guards, all of whose edges are calls. Its
    /// states count the items where bounds ask for it; the set of those that were read says the rest.
    fn distinct_items(
        &mut self,
        id: ArrayId,
        items: &[ValueId],
        (least, most): (u32, Option<u32>),
        level: u32,
    ) -> Result<ExprId> {
        let items: Vec<ValueId> =
            items.iter().copied().filter(|item| self.values.productive.contains(item)).collect();
        let count = if self.is_too_deep(level) { 0 } else { items.len() as u32 };
        let most = most.filter(|&most| most < count);
        let mut out = DraftAutomaton::default();
        let (start, end) = (out.state(), out.state());
        out.finals[end as usize] = true;
        if least == 0 {
            let empty = self.call(RuleKey::Around(ArrayDelimiter::Nothing, level));
            out.part(start, empty, end);
        }
        if count == 0 || most == Some(0) {
            return self.finish_automaton(out);
        }
        let mut guards: Vec<(RuleId, Guard)> = Vec::new();
        let mut calls = Vec::new();
        for (place, &item) in (0..).zip(&items) {
            let rule = self.rule(RuleKey::Only(id, item, level));
            guards.push((rule, Guard::Adds(place)));
            calls.push(self.add(Expr::Rule(rule)));
        }
        let around =
            |this: &mut Self, what: ArrayDelimiter| this.call(RuleKey::Around(what, level));
        let (comma, close) =
            (around(self, ArrayDelimiter::Comma), around(self, ArrayDelimiter::Close));
        let open = around(self, ArrayDelimiter::Open);
        let mut before = out.state();
        out.part(start, open, before);
        let last = most.unwrap_or(least.max(1));
        for read in 1..=last {
            self.converter.spend(1 + calls.len())?;
            let behind = out.state();
            calls.iter().for_each(|&call| out.part(before, call, behind));
            if read >= least {
                out.part(behind, close, end);
            }
            if read == last && most.is_some() {
                break;
            }
            before = out.state();
            out.part(behind, comma, before);
            if read == last {
                calls.iter().for_each(|&call| out.part(before, call, behind));
            }
        }
        guards.sort_unstable_by_key(|guard| guard.0);
        out.guards = guards;
        self.finish_automaton(out)
    }

    /// What stands around items of which each comes once.
    pub(super) fn around_items(&mut self, what: ArrayDelimiter, level: u32) -> Result<ExprId> {
        let gaps = self.gaps(level);
        self.braced(|this, out, from| match what {
            ArrayDelimiter::Open => {
                let at = out.text(from, b"[", None);
                this.gap(out, at, &gaps.open)
            }
            ArrayDelimiter::Nothing => {
                let mut at = out.text(from, b"[", None);
                if let Spacing::Free = gaps.open {
                    at = this.gap(out, at, &gaps.open);
                }
                out.text(at, b"]", None)
            }
            ArrayDelimiter::Comma => this.comma(out, from, &gaps),
            ArrayDelimiter::End => out.text(from, b"]", None),
            ArrayDelimiter::Close => {
                let at = this.gap(out, from, &gaps.before_close);
                out.text(at, b"]", None)
            }
        })
    }

    /// The items that have a value, and how many there may be: behind an item that has none there is none.
    fn items_that_count<'p>(
        &self,
        prefix: &'p [ValueId],
        rest: Option<ValueId>,
        most: Option<u32>,
    ) -> (&'p [ValueId], Option<ValueId>, Option<u32>) {
        let is_productive = |value: &ValueId| self.values.productive.contains(value);
        let few = prefix.iter().take_while(|value| is_productive(value)).count();
        let rest = rest.filter(is_productive).filter(|_| few == prefix.len());
        let most = match rest {
            Some(_) => most,
            None => Some(most.unwrap_or(u32::MAX).min(few as u32)),
        };
        (&prefix[..few], rest, most)
    }

    /// A comma and a value behind it.
    fn behind_comma(&mut self, value: ExprId, gaps: &Gaps) -> Result<ExprId> {
        let mut out = DraftAutomaton::default();
        let start = out.state();
        let behind = self.comma(&mut out, start, gaps);
        let last = out.state();
        out.part(behind, value, last);
        out.finals[last as usize] = true;
        self.finish_automaton(out)
    }

    /// First items of their own, then any number of others within bounds.
    pub(super) fn plain_array(
        &mut self,
        prefix: &[ValueId],
        rest: Option<ValueId>,
        (least, most): (u32, Option<u32>),
        level: u32,
    ) -> Result<ExprId> {
        let gaps = self.gaps(level);
        let most = if self.is_too_deep(level) { Some(0) } else { most };
        let (prefix, rest, most) = self.items_that_count(prefix, rest, most);
        let mut out = DraftAutomaton::default();
        let start = out.state();
        let end = out.state();
        out.finals[end as usize] = true;
        let open = out.text(start, b"[", None);
        let below = self.level_below(level);
        // An empty array.
        let is_empty_last = most == Some(0);
        if least == 0 {
            let at = match gaps.open {
                Spacing::Free => self.gap(&mut out, open, &Spacing::Free),
                Spacing::Text(_) => open,
            };
            self.bracket(&mut out, at, end);
        }
        if is_empty_last {
            return self.finish_automaton(out);
        }
        let first = self.gap(&mut out, open, &gaps.open);
        let mut at = first;
        let mut count = 0;
        let listed = (prefix.len() as u32).min(most.unwrap_or(u32::MAX));
        for &value in &prefix[..listed as usize] {
            if count > 0 {
                at = self.comma(&mut out, at, &gaps);
            }
            let to = out.state();
            let value = self.call_value(value, below);
            out.part(at, value, to);
            at = to;
            count += 1;
            if count >= least {
                let close = self.gap(&mut out, at, &gaps.before_close);
                self.bracket(&mut out, close, end);
            }
        }
        let Some(rest) = rest.filter(|_| most.is_none_or(|most| count < most)) else {
            return self.finish_automaton(out);
        };
        if count == 0 {
            let value = self.call_value(rest, below);
            let to = out.state();
            out.part(at, value, to);
            at = to;
            count = 1;
        }
        let bounds = (least.saturating_sub(count), most.map(|most| most - count));
        let others = Some(rest).filter(|_| bounds.1 != Some(0));
        self.other_items(&mut out, (at, end), others, bounds, level)?;
        self.finish_automaton(out)
    }

    pub(super) fn array_states(&mut self, id: ArrayId, level: u32) -> Result<ExprId> {
        let gaps = self.gaps(level);
        let ArrayAutomaton::States(states) = self.converter.arrays[usize::from(id)].clone() else {
            return Ok(self.empty);
        };
        let live = self.values.array_states[&id].clone();
        let too_deep = self.is_too_deep(level);
        let below = self.level_below(level);
        let mut out = DraftAutomaton::default();
        let start = out.state();
        let end = out.state();
        out.finals[end as usize] = true;
        let mut before: Vec<Option<u32>> = vec![None; states.len()];
        let mut behind: Vec<Option<u32>> = vec![None; states.len()];
        let items = |state: usize, productive: &rustc_hash::FxHashSet<ValueId>| {
            let all = states[state].items.iter().copied();
            let kept = all.filter(|(value, to)| {
                !too_deep && live[*to as usize] && productive.contains(value)
            });
            kept.collect::<Vec<(ValueId, u32)>>()
        };
        let open = out.text(start, b"[", None);
        let has_items = !items(0, &self.values.productive).is_empty();
        let is_final = states[0].is_final;
        let mut todo: Vec<(bool, usize)> = Vec::new();
        if has_items {
            let at = self.gap(&mut out, open, &gaps.open);
            // Where a later item is read, behind a comma, the array does not end.
            let first = out.state();
            out.part(at, self.empty, first);
            before[0] = Some(first);
            todo.push((true, 0));
            if is_final && matches!(gaps.open, Spacing::Free) {
                self.bracket(&mut out, at, end);
            }
        }
        if is_final && !(has_items && matches!(gaps.open, Spacing::Free)) {
            let at = match gaps.open {
                Spacing::Free => self.gap(&mut out, open, &Spacing::Free),
                Spacing::Text(_) => open,
            };
            self.bracket(&mut out, at, end);
        }
        while let Some((is_before, state)) = todo.pop() {
            self.converter.spend(1)?;
            if is_before {
                let Some(at) = before[state] else { continue };
                for (value, to) in items(state, &self.values.productive) {
                    let value = self.call_value(value, below);
                    let target = match behind[to as usize] {
                        Some(known) => known,
                        None => {
                            let fresh = out.state();
                            behind[to as usize] = Some(fresh);
                            todo.push((false, to as usize));
                            fresh
                        }
                    };
                    out.part(at, value, target);
                }
                continue;
            }
            let Some(from) = behind[state] else { continue };
            if let Some(bounds) = states[state].counted {
                let value = items(state, &self.values.productive).first().map(|item| item.0);
                self.other_items(&mut out, (from, end), value, bounds, level)?;
                continue;
            }
            if !items(state, &self.values.productive).is_empty() {
                let at = self.comma(&mut out, from, &gaps);
                match before[state] {
                    Some(known) => out.part(at, self.empty, known),
                    None => {
                        before[state] = Some(at);
                        todo.push((true, state));
                    }
                }
            }
            if states[state].is_final {
                let at = self.gap(&mut out, from, &gaps.before_close);
                self.bracket(&mut out, at, end);
            }
        }
        self.finish_automaton(out)
    }

    /// The items behind a first one, all of one kind, as many as bounds allow, and the end of the array.
    fn other_items(
        &mut self,
        out: &mut DraftAutomaton,
        (from, end): (u32, u32),
        value: Option<ValueId>,
        (least, most): (u32, Option<u32>),
        level: u32,
    ) -> Result<()> {
        let gaps = self.gaps(level);
        let at = match value {
            Some(value) => {
                let value = self.call_value(value, self.level_below(level));
                let body = self.behind_comma(value, &gaps)?;
                let repeat = self.add(Expr::Repeat { body, min: least, max: most });
                let to = out.state();
                out.part(from, repeat, to);
                to
            }
            None if least == 0 => from,
            None => return Ok(()),
        };
        let close = self.gap(out, at, &gaps.before_close);
        self.bracket(out, close, end);
        Ok(())
    }
}
