//! Automata that count the parts of their texts, written out: states for each number of parts.

use super::tokens::NO_TOKEN;
use super::{ByteAutomaton, Expr, Grammar, GrammarBuilder};
use crate::automata::lengths::Lengths;
use crate::budget::{Budget, Interrupt};
use crate::error::Result;
use crate::ids::ExprId;
use crate::limits::Limits;
use rustc_hash::FxHashMap;

/// The states of an automaton with its count that grammar text has, at most.
const MOST_WRITTEN: usize = 200_000;

impl ByteAutomaton {
    /// An automaton of the same texts that counts nothing: its states are pairs of a state and a number of
    /// passes. `None` where these are more than so many, and where tokens are counted.
    ///
    /// # Errors
    /// What ends the work, and those of [`Lengths::new`].
    pub(crate) fn without_count(&self, most: usize, work: &Budget) -> Result<Option<Self>> {
        Ok(self.with_passes(most, work)?.map(|(automaton, _)| automaton))
    }

    /// The automaton of [`Self::without_count`], and the number of passes that are done in each of its
    /// states: an empty list if `self` does not count.
    ///
    /// # Errors
    /// Those of [`Self::without_count`].
    pub(crate) fn with_passes(
        &self,
        most: usize,
        work: &Budget,
    ) -> Result<Option<(Self, Vec<u32>)>> {
        let Some((min, max)) = self.counts else { return Ok(Some((self.clone(), Vec::new()))) };
        if self.counts_tokens {
            return Ok(None);
        }
        let mut edges = vec![Vec::new(); self.finals.len()];
        for &(from, part, to) in &self.parts {
            edges[from as usize].push((part, to));
        }
        let lengths = self.lengths(work)?;
        let mut order = vec![(self.start, 0)];
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        numbers.insert(order[0], 0);
        let (mut finals, mut parts) = (Vec::new(), Vec::new());
        let mut place = 0;
        while let Some(&(state, done)) = order.get(place) {
            work.spend(1 + edges[state as usize].len())?;
            finals.push(self.finals[state as usize] && done >= min.max(1));
            for &(part, to) in &edges[state as usize] {
                let (next, left) = match max {
                    None => (done.saturating_add(1).min(min.max(1)), None),
                    Some(max) if done >= max => continue,
                    Some(max) => (done + 1, Some(max - done - 1)),
                };
                if !lengths.within(to, min.saturating_sub(next), left) {
                    continue;
                }
                let fresh = order.len() as u32;
                let number = *numbers.entry((to, next)).or_insert(fresh);
                if number == fresh {
                    order.push((to, next));
                }
                parts.push((place as u32, part, number));
            }
            if order.len() > most {
                return Ok(None);
            }
            place += 1;
        }
        parts.sort_unstable_by_key(|&(from, part, to)| (part, from, to));
        let (finals, parts) = (finals.into(), parts.into());
        let passes = order.iter().map(|&(_, done)| done).collect();
        Ok(Some((Self { start: 0, finals, parts, counts: None, ..self.clone() }, passes)))
    }

    /// Of how many passes the rest of each state can be.
    fn lengths(&self, work: &Budget) -> Result<Lengths> {
        let mut targets = vec![Vec::new(); self.finals.len()];
        self.parts.iter().for_each(|&(from, _, to)| targets[from as usize].push(to));
        let has_least = self.counts.is_some_and(|(min, _)| min > 1);
        Lengths::new(&targets, &self.finals, has_least, work)
    }

    /// Lowers the upper bound as far as no token of fewer than half of `window` passes can tell the
    /// difference. `None` if the bound is low enough already.
    ///
    /// # Errors
    /// Those of [`Lengths::new`].
    pub(crate) fn within_window(&self, window: u32, work: &Budget) -> Result<Option<Self>> {
        let Some((min, Some(max))) = self.counts.filter(|_| !self.counts_tokens) else {
            return Ok(None);
        };
        let near = min.max(1).saturating_add(window);
        if max <= near {
            return Ok(None);
        }
        // At this distance from the bound every state has a rest that still fits.
        let lengths = self.lengths(work)?;
        let (lead, period) = lengths.settled();
        let most = near.saturating_add(lengths.most().max(lead.saturating_add(period)));
        Ok((most < max).then(|| Self { counts: Some((min, Some(most))), ..self.clone() }))
    }

    /// The automaton without its count of tokens, beside a copy of it with the edges that lead nearer to an
    /// end. `switch` leads from each state to its copy.
    fn with_switch(&self, switch: ExprId, work: &Budget) -> Result<Self> {
        work.spend(self.size())?;
        let lengths = self.lengths(work)?;
        let states = self.finals.len() as u32;
        let nearer =
            self.parts.iter().filter(|(p, _, q)| lengths.next(*q, 0) < lengths.next(*p, 0));
        let mut parts: Vec<(u32, ExprId, u32)> =
            nearer.map(|&(p, part, q)| (states + p, part, states + q)).collect();
        parts.extend(&self.parts);
        parts.extend((0..states).map(|state| (state, switch, states + state)));
        parts.sort_unstable_by_key(|&(from, part, to)| (part, from, to));
        let finals = [&*self.finals, &self.finals].concat();
        let (finals, parts) = (finals.into(), parts.into());
        let (counts, counts_tokens, has_copies) = (None, false, true);
        Ok(Self { finals, parts, counts, counts_tokens, has_copies, ..self.clone() })
    }

    /// What grammar text has in its place; `None` where that is too long.
    pub(super) fn written(&self) -> Option<Self> {
        let (limits, interrupt) = (Limits::default(), Interrupt::default());
        self.without_count(MOST_WRITTEN, &Budget::new(&limits, &interrupt)).ok().flatten()
    }
}

impl Grammar {
    /// The grammar whose rules count no tokens, for classes. A rule that counted them can go over, behind any
    /// state, to a copy of that state from which its text goes on to the nearest end. What leads there is an
    /// id that no token has, taken whole. `None` if no rule counts tokens.
    ///
    /// # Errors
    /// Those of the budget.
    pub(crate) fn without_counted_tokens(&self, work: &Budget) -> Result<Option<Grammar>> {
        if !self.counts_tokens() {
            return Ok(None);
        }
        let mut builder = GrammarBuilder::new();
        let position = self.rule(self.root).position;
        let none = builder.add(Expr::Tokens([(NO_TOKEN, NO_TOKEN)].into()), position);
        // All others stand one place further.
        let next = |id: ExprId| ExprId::new(id.index() + 1);
        for (expr, &position) in self.exprs.iter().zip(&self.positions) {
            let mut moved = expr.clone();
            match &mut moved {
                Expr::Sequence(parts) | Expr::Choice(parts) => {
                    parts.iter_mut().for_each(|part| *part = next(*part));
                }
                Expr::Repeat { body, .. } => *body = next(*body),
                Expr::Automaton(automaton) => {
                    automaton.parts.iter_mut().for_each(|part| part.1 = next(part.1));
                    if automaton.counts_tokens {
                        *automaton = automaton.with_switch(none, work)?;
                    }
                }
                Expr::Empty
                | Expr::Literal(_)
                | Expr::Class(_)
                | Expr::Rule(_)
                | Expr::Tokens(_)
                | Expr::Macro(_) => {}
            }
            builder.add(moved, position);
        }
        let mut rules = self.rules.to_vec();
        for rule in &mut rules {
            rule.body = next(rule.body);
            rule.lookahead = rule.lookahead.map(next);
        }
        Ok(Some(builder.finish(rules, self.root)))
    }

    /// Whether some automaton counts more than grammar text can have.
    pub fn counts_far(&self) -> bool {
        let counting = self.exprs.iter().filter_map(|expr| match expr {
            Expr::Automaton(automaton) => automaton.counts.map(|_| automaton),
            _ => None,
        });
        counting.into_iter().any(|automaton| automaton.written().is_none())
    }
}
