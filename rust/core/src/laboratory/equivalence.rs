//! Do two grammars have the same language?
//!
//! Undecidable in general, so there are three answers: a text that tells them apart, a proof, or a
//! length up to which none tells them apart. Such a text is shortened before it is given (`shorten`).
//!
//! Both grammars become one network, in which equal parts are one. A pair of stack sets, one of
//! each grammar, is *equal* if the same texts complete both. It follows from the pairs that each
//! byte leads to, both accepting or neither (a bisimulation); or, where the stacks match, from
//! the pairs of their tops and of what stands beneath. When every pair follows from pairs that
//! were met, all are equal: bisimulation up to congruence is sound for union and concatenation
//! (Rot, Bonsangue, Rutten: "Coalgebraic bisimulation-up-to"). A part that turns out to differ is
//! put into its place, a shortest text before and after it, and tried on the whole; where the whole
//! does not differ by that, it is looked at byte by byte instead.

use super::goals::{Derivation, GoalId, Goals, ROOT};
use super::whose;
use crate::budget::{Budget, Halt, Interrupt};
use crate::error::{Position, Result};
use crate::grammar::{Expr, Grammar, GrammarBuilder, Rule, RuleOptions};
use crate::ids::RuleId;
use crate::limits::Limits;
use crate::network::{Network, NetworkOptions};
use crate::stacks::{REST, SetId, Stepper};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Differences handed on, letters read to try them, and pairs looked over for hiding places: so many
/// for each pair that may be met.
const EFFORT: u64 = 40;

/// Pairs looked at between two calls of the caller's function.
const POLL_EVERY: usize = 1 << 9;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All pairs that are met close: the languages are the same.
    Proved,
    /// No text of fewer bytes tells them apart; the bounds did not allow more.
    Bounded {
        /// That number of bytes.
        depth: u32,
    },
    /// A text of one of the two languages.
    Different {
        /// The text.
        text: Vec<u8>,
        /// Whether the first grammar takes it; otherwise the second does.
        is_left: bool,
        /// Whether no shorter text tells them apart.
        is_shortest: bool,
    },
}

/// What was found, and at what cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The answer.
    pub verdict: Verdict,
    /// Pairs of stack sets met.
    pub pairs: usize,
}

/// Compares the languages of two grammars, looking at no more than `max_pairs` pairs.
///
/// # Errors
/// Those of [`Network::make`], of the first grammar that has one, or else of both together; the
/// message says which. [`Error::Cancelled`] and [`Error::Deadline`] from the interrupt, whose observer
/// hears of the pairs met.
pub fn compare(
    left: &Grammar,
    right: &Grammar,
    max_pairs: usize,
    limits: &Limits,
    interrupt: &Interrupt,
) -> Result<Comparison> {
    // Shortest texts are known of repetitions that are counted, not of automata.
    let options = NetworkOptions {
        counters: true,
        counted_automata: false,
        limits: limits.clone(),
        ..NetworkOptions::default()
    };
    let network = {
        let work = Budget::new(limits, interrupt);
        let made = Network::make(&joined(left, right), &options, &work);
        made.map_err(|error| whose::told(error, [left, right], &options, interrupt))?
    };
    let mut stepper = Stepper::new(&network);
    stepper.sets.max_depth = limits.max_stack_depth;
    stepper.sets.max_bytes = limits.max_automaton_bytes;
    stepper.sets.meter.allow(limits.total_work(network.len()), interrupt);
    let starts = [LEFT, RIGHT].map(|byte| start(&network, &mut stepper, byte));
    let [Ok(left), Ok(right)] = starts else {
        interrupt.look()?;
        return Ok(Comparison { verdict: Verdict::Bounded { depth: 0 }, pairs: 0 });
    };
    if left == right {
        return Ok(Comparison { verdict: Verdict::Proved, pairs: 1 });
    }
    let goals = Goals::new(&network, stepper, left, right);
    EquivalenceSearch { goals, max_pairs, looked: 0, over: false, interrupt }.run(left)
}

const LEFT: u8 = b'<';
const RIGHT: u8 = b'>';

/// The stacks before a text of one of the two grammars.
fn start(
    network: &Network,
    stepper: &mut Stepper<&Network>,
    byte: u8,
) -> std::result::Result<SetId, Halt> {
    let start = stepper.sets.add(&[(network.start(), REST)])?;
    stepper.step(start, network.alphabet().class(byte))
}

/// One grammar of both: the texts of each after a byte of its own. A third text keeps the whole
/// from being empty where both are.
fn joined(left: &Grammar, right: &Grammar) -> Grammar {
    let position = Position::NOWHERE;
    let mut builder = GrammarBuilder::new();
    let mut add = |expr| builder.add(expr, position);
    let mut alternatives = vec![add(Expr::Literal([b'='].into()))];
    for (byte, rule) in [(LEFT, 1), (RIGHT, 2)] {
        let parts = [add(Expr::Literal([byte].into())), add(Expr::Rule(RuleId::new(rule)))];
        alternatives.push(add(Expr::Sequence(parts.into())));
    }
    let root = add(Expr::Choice(alternatives.into()));
    let empty = add(Expr::Empty);
    let rule = |name: &str, body| Rule {
        name: name.to_owned(),
        options: RuleOptions::default(),
        body,
        lookahead: None,
        is_common: false,
        position,
    };
    let [first, second] = whose::NAMES;
    let rules = vec![rule("either", root), rule(first, empty), rule(second, empty)];
    let stubs = builder.finish(rules, RuleId::new(0));
    stubs.composed(&[(RuleId::new(1), left), (RuleId::new(2), right)])
}

struct EquivalenceSearch<'n> {
    goals: Goals<'n>,
    max_pairs: usize,
    looked: usize,
    /// Whether the bounds are reached.
    over: bool,
    interrupt: &'n Interrupt,
}

impl EquivalenceSearch<'_> {
    fn run(mut self, left: SetId) -> Result<Comparison> {
        let verdict = match self.refute()? {
            Some(verdict) => verdict,
            None => {
                let is_shortest = self.shorten()?;
                let word = self.goals.difference(ROOT).unwrap_or_default();
                let text = self.goals.words.text(&word);
                self.goals.stepper.sets.meter.release(); // the text is known to be read
                let is_left = self.goals.accepts(left, &word).unwrap_or(false);
                Verdict::Different { text, is_left, is_shortest }
            }
        };
        Ok(Comparison { verdict, pairs: self.goals.len() })
    }

    /// Looks at pairs, those after the fewest bytes first, until the first pair is refuted
    /// (`None`), none is left, or the bounds are reached.
    fn refute(&mut self) -> Result<Option<Verdict>> {
        loop {
            let open = self.goals.open();
            let may_look = |&&(goal, _): &&(GoalId, u32)| *self.goals.way(goal) == Derivation::Open;
            if open.is_empty() && !self.over {
                return Ok(Some(Verdict::Proved));
            }
            let mut queue: BinaryHeap<Reverse<(u32, GoalId)>> =
                open.iter().filter(may_look).map(|&(goal, depth)| Reverse((depth, goal))).collect();
            if queue.is_empty() || self.over {
                let depth = open.iter().map(|&(_, depth)| depth).min().unwrap_or(0);
                return Ok(Some(Verdict::Bounded { depth }));
            }
            // Now and then the pairs that nothing depends on any more are dropped.
            let quota = 1_024.max(self.goals.len() / 2);
            for _ in 0..quota {
                let Some(Reverse((depth, goal))) = queue.pop() else { break };
                self.look(goal, depth, &mut queue)?;
                if self.goals.differs_by(ROOT).is_some() {
                    return Ok(None);
                }
                if self.over {
                    break;
                }
            }
        }
    }

    /// Looks at all that can tell the grammars apart by a shorter text; whether that could be done
    /// to the end.
    fn shorten(&mut self) -> Result<bool> {
        loop {
            let length = self.goals.differs_by(ROOT).unwrap_or(0);
            let Some(places) = self.goals.hiding_places(u64::from(length)) else {
                return Ok(true);
            };
            self.over |= self.goals.effort > EFFORT.saturating_mul(self.max_pairs as u64);
            self.report()?;
            let may_look = |&goal: &GoalId| *self.goals.way(goal) == Derivation::Open;
            if self.over || places.is_empty() || !places.iter().all(may_look) {
                return Ok(false);
            }
            // Making the bounds anew takes as long as there are pairs: meanwhile a part of them that
            // may matter as well are looked at.
            let share = 64 + self.goals.len() / 16;
            let others = self.goals.open().into_iter().filter(|&(_, depth)| depth < length);
            let others = others.take(share).map(|(goal, depth)| Reverse((depth + 1, goal)));
            let mut queue: BinaryHeap<_> = places.iter().map(|&goal| Reverse((0, goal))).collect();
            queue.extend(others);
            for _ in 0..share {
                let Some(Reverse((depth, goal))) = queue.pop() else { break };
                self.look(goal, depth, &mut queue)?;
                if self.over {
                    break;
                }
            }
        }
    }

    /// Tells the observer how many pairs were met.
    fn report(&self) -> Result<()> {
        self.interrupt.report(self.goals.len(), self.max_pairs)
    }

    /// Looks at one pair, and puts those that it depends on into the queue.
    fn look(
        &mut self,
        goal: GoalId,
        depth: u32,
        queue: &mut BinaryHeap<Reverse<(u32, GoalId)>>,
    ) -> Result<()> {
        if *self.goals.way(goal) != Derivation::Open {
            return Ok(());
        }
        self.looked += 1;
        if self.looked.is_multiple_of(POLL_EVERY) {
            self.report()?;
        }
        if let Err(halt) = self.goals.look(goal) {
            if let Some(error) = self.interrupt.error(halt) {
                return Err(error);
            }
            self.goals.give_up(goal);
            self.over |= matches!(halt, Halt::Work | Halt::Bytes);
        }
        self.over |= self.goals.len() >= self.max_pairs
            || self.goals.effort > EFFORT.saturating_mul(self.max_pairs as u64);
        let (children, bytes) = self.goals.children(goal);
        queue.extend(
            children
                .iter()
                .filter(|&&child| *self.goals.way(child) == Derivation::Open)
                .map(|&child| Reverse((depth + bytes, child))),
        );
        queue.extend(self.goals.reopened.drain(..).map(|goal| Reverse((depth, goal))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse;

    fn verdict(left: &str, right: &str, max_pairs: usize) -> Verdict {
        let limits = Limits::default();
        let read = |text: &str| parse(text, "root", &limits).expect("grammar text");
        let found = compare(&read(left), &read(right), max_pairs, &limits, &Interrupt::default());
        found.expect("networks").verdict
    }

    #[test]
    fn equal_languages_are_proved_equal() {
        let pairs = [
            ("root ::= \"a\" root \"b\" | \"ab\"", "root ::= \"a\" t\nt ::= \"b\" | root \"b\""),
            ("root ::= root root | \"(\" root? \")\"", "root ::= (\"(\" root? \")\")+"),
            (
                "root ::= root \"+\" t | t\nt ::= t \"*\" f | f\nf ::= \"(\" root \")\" | [0-9]",
                "root ::= f ([+*] f)*\nf ::= [0-9] | \"(\" root \")\"",
            ),
            ("root ::= \"a\" | root \"x\" \"y\"", "root ::= \"a\" (\"xy\")*"),
            ("root ::= root", "root ::= x\nx ::= \"a\" x"),
        ];
        for (left, right) in pairs {
            assert_eq!(verdict(left, right, 10_000), Verdict::Proved, "{left}\n{right}");
        }
    }

    #[test]
    fn a_shortest_difference_is_found() {
        let pairs = [
            ("root ::= [a-z]{0,64}", "root ::= [a-z]{0,63}", 64, true),
            ("root ::= \"a\" root \"a\" | \"\"", "root ::= \"a\" root \"a\" | \"b\"", 0, true),
            (
                "root ::= \"(\" root \")\" | \"x\"",
                "root ::= \"(\" root \")\" | \"x\" \"y\"?",
                2,
                false,
            ),
            (
                "root ::= a* \"c\"\na ::= \"x\" a \"y\" | \"xy\"",
                "root ::= a* \"c\"\na ::= \"x\" a \"y\"? | \"xy\"",
                4,
                false,
            ),
        ];
        for (left, right, length, left_takes) in pairs {
            match verdict(left, right, 10_000) {
                Verdict::Different { text, is_left, is_shortest } => {
                    assert_eq!((text.len(), is_left), (length, left_takes), "{left}\n{right}");
                    assert!(is_shortest, "{left}\n{right}");
                }
                other => panic!("{other:?}: {left}\n{right}"),
            }
        }
    }

    #[test]
    fn what_is_over_the_bounds_is_neither() {
        // Equal, but the frames of one are never those of the other.
        let chain = "root ::= e\ne ::= t (\"+\" t)*\nt ::= f (\"*\" f)*\nf ::= g (\"/\" g)*\n\
                     g ::= h (\"-\" h)*\nh ::= i (\"%\" i)*\ni ::= j (\"^\" j)*\nj ::= [a-z] | \"(\" e \")\"";
        let flat = "root ::= j ([-+*/%^] j)*\nj ::= [a-z] | \"(\" root \")\"";
        match verdict(chain, flat, 60) {
            Verdict::Bounded { depth } => assert!(depth > 0),
            Verdict::Proved => {}
            other => panic!("{other:?}"),
        }
        match verdict("root ::= [a-z]{0,64}", "root ::= [a-z]{0,63}", 20) {
            Verdict::Bounded { depth } => assert!((1..=64).contains(&depth), "{depth}"),
            other => panic!("{other:?}"),
        }
    }
}
