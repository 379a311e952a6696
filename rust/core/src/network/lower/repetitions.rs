//! Repetitions: written out as copies of their bodies, cut to a window, or counted by rules of their own.

use super::Lowering;
use crate::automata::{Automaton, FIRST_MARKER, Nfa, call};
use crate::error::Result;
use crate::grammar::Expr;
use crate::ids::{ExprId, RuleId};
use crate::network::counter::{CountedUnit, Counter};
use rustc_hash::FxHashMap;

/// A position in a cut repetition: the body's shape, the bounds, how far it is.
pub(super) type CutPosition = (u32, u32, Option<u32>, u32);

/// Repetitions of more copies than this are counted.
const COUNTED_COPIES: u32 = 16;
/// The same where the body is a wide terminal, and wide rules are shared: each copy written out has masks
/// of its own that look at most of the vocabulary.
const COUNTED_WIDE_COPIES: u32 = 2;

/// How many copies of its body a repetition is written out as.
fn copies(min: u32, max: Option<u32>) -> u32 {
    max.unwrap_or(min)
}

/// Rules that counting brings, past those of the grammar.
#[derive(Default)]
pub(crate) struct Counted {
    rules: Vec<CountedRule>,
    /// The rule of a body, by its shape.
    bodies: FxHashMap<u32, usize>,
    /// The rule that counts, by the body's rule and the bounds.
    counters: FxHashMap<(usize, u32, Option<u32>), usize>,
    /// For each expression whether a repetition within it is counted.
    has_counts: Vec<bool>,
}

#[derive(Clone, Copy)]
enum CountedRule {
    Body(ExprId),
    Counter(usize, Counter),
}

impl Lowering<'_> {
    /// Copies of the body, one for each count that some token can tell apart.
    ///
    /// Beyond `repeat_window` copies on either side of the lower bound, all look alike to a token:
    /// whatever it reads inside the chain, it sees a stretch of copies of one kind, or one of the
    /// two bounds, and every such view occurs in the shortened chain as well
    /// (docs/design/counting.md, "The repetition window").
    ///
    /// But two repetitions with different bounds must not become equal by being cut: what leads
    /// to them would be merged. So each position of a cut chain has a marker, an edge that nothing
    /// ever reads, which is the same only where body, bounds and position are.
    pub(super) fn repeat(
        &self,
        nfa: &mut Nfa,
        body: ExprId,
        (min, max): (u32, Option<u32>),
        (from, to): (u32, u32),
        work: &mut Vec<(ExprId, u32, u32)>,
        rule: RuleId,
    ) -> Result<()> {
        if self.options.counters && copies(min, max) > self.most_copies(body) {
            self.count(nfa, body, (min, max), (from, to));
            return Ok(());
        }
        let window = self.options.repeat_window.unwrap_or(u32::MAX);
        let required = min.min(window);
        let optional = max.map(|max| max.saturating_sub(min).min(window));
        let cut_min = required < min;
        let cut_max = max.is_some_and(|max| optional < Some(max.saturating_sub(min)));
        let mut sink = None;
        // A state of its own for a position, with a marker that tells how far it is.
        let mut own = |nfa: &mut Nfa, at: u32, position: u32| {
            let sink = *sink.get_or_insert_with(|| nfa.state());
            let state = nfa.state();
            nfa.skip(at, state);
            let mut markers = self.markers.borrow_mut();
            let next = FIRST_MARKER + markers.len() as u32;
            let key = (self.shapes.of(body), min, max, position);
            nfa.edge(state, *markers.entry(key).or_insert(next), sink);
            state
        };
        let mut at = from;
        let mut budget = self.options.limits.max_network_states.saturating_sub(nfa.len());
        let mut step = |nfa: &mut Nfa, work: &mut Vec<(ExprId, u32, u32)>, at: u32| {
            budget = budget.saturating_sub(1);
            (budget > 0).then(|| {
                let next = nfa.state();
                work.push((body, at, next));
                next
            })
        };
        for i in 0..required {
            if cut_min || cut_max {
                at = own(nfa, at, i);
            }
            let Some(next) = step(nfa, work, at) else { return Err(self.too_large(rule)) };
            at = next;
        }
        match optional {
            None => {
                let hub = nfa.state();
                nfa.skip(at, hub);
                nfa.skip(hub, to);
                work.push((body, hub, hub));
            }
            Some(count) => {
                for i in 0..count {
                    if cut_max {
                        at = own(nfa, at, required + i);
                    }
                    nfa.skip(at, to);
                    let Some(next) = step(nfa, work, at) else { return Err(self.too_large(rule)) };
                    at = next;
                }
                nfa.skip(at, to);
            }
        }
        Ok(())
    }

    /// Repetitions of a body in more copies than this are counted. A body that counts is not copied: a text may stand in
    /// each pair of a copy and a count at once, and of counts some say all (`stacks/narrow.rs`).
    fn most_copies(&self, body: ExprId) -> u32 {
        if self.has_counts(body) {
            return 1;
        }
        let body = match self.grammar.expr(body) {
            Expr::Rule(rule) => self.grammar.rule(*rule).body,
            _ => body,
        };
        let width = match self.grammar.expr(body) {
            Expr::Class(set) => set.ranges().iter().map(|(first, last)| last - first + 1).sum(),
            Expr::Automaton(automaton) if automaton.parts.is_empty() => {
                let first = automaton.bytes.iter().filter(|edge| edge.0 == automaton.start);
                first.map(|&(_, first, last, _)| u32::from(last - first) + 1).sum()
            }
            _ => 0,
        };
        match self.options.share_wide {
            Some(least) if width >= least => COUNTED_WIDE_COPIES,
            _ => COUNTED_COPIES,
        }
    }

    /// Whether a repetition within an expression is counted; rules that it calls do not matter.
    fn has_counts(&self, expr: ExprId) -> bool {
        let known = &mut self.counted.borrow_mut().has_counts;
        // Parts come before what they are part of.
        for expr in &self.grammar.exprs()[known.len()..] {
            let has_counts = match expr {
                Expr::Sequence(parts) | Expr::Choice(parts) => {
                    parts.iter().any(|part| known[part.index()])
                }
                &Expr::Repeat { body, min, max } => {
                    copies(min, max) > COUNTED_COPIES || known[body.index()]
                }
                _ => false,
            };
            known.push(has_counts);
        }
        known[expr.index()]
    }

    /// A call of a rule that counts: see [`super::counters`].
    fn count(
        &self,
        nfa: &mut Nfa,
        body: ExprId,
        (min, max): (u32, Option<u32>),
        (from, to): (u32, u32),
    ) {
        // Each pass of a counted rule takes at least one byte; the others add nothing.
        let nullable = self.analysis.nullable_exprs[body.index()];
        let min = if nullable { 0 } else { min };
        if min == 0 {
            nfa.skip(from, to);
        }
        if !self.analysis.productive_exprs[body.index()] {
            return;
        }
        let mut counted = self.counted.borrow_mut();
        let shape = self.shapes.of(body);
        let first = self.grammar.rules().len() + 1;
        let Counted { rules, bodies, counters, .. } = &mut *counted;
        let body = match self.grammar.expr(body) {
            Expr::Rule(rule) => self.shapes.first(*rule).index(),
            _ => *bodies.entry(shape).or_insert_with(|| {
                rules.push(CountedRule::Body(body));
                first + rules.len() - 1
            }),
        };
        let rule = *counters.entry((body, min, max)).or_insert_with(|| {
            rules.push(CountedRule::Counter(body, Counter { min, max, unit: CountedUnit::Passes }));
            first + rules.len() - 1
        });
        nfa.edge(from, call(rule), to);
    }

    /// The automata of the rules that counting has brought, with the bounds of those that count.
    ///
    /// # Errors
    /// As for [`Self::rule`].
    pub(crate) fn counted(&self) -> Result<Vec<(Automaton, Option<Counter>)>> {
        let mut out = Vec::new();
        loop {
            // Bodies may count in turn.
            let Some(rule) = self.counted.borrow().rules.get(out.len()).copied() else {
                return Ok(out);
            };
            out.push(match rule {
                CountedRule::Body(body) => (self.body(body, self.grammar.root())?, None),
                CountedRule::Counter(body, counter) => {
                    let again = [(call(body), 1)];
                    let states = [(false, again.as_slice()), (true, &again)];
                    (Automaton::from_states(&states), Some(counter))
                }
            });
        }
    }
}
