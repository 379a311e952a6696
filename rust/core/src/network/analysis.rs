//! What can be told of expressions without automata: nullable, productive, used by the root.
//!
//! Each is one linear pass: an expression is looked at again only when a child has changed, by
//! counting the children that are still missing. `rules` leaves out what is not productive.

use super::lookahead::Places;
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Result};
use crate::grammar::{ByteAutomaton, Expr, Grammar};
use crate::ids::{ExprId, RuleId};
use rustc_hash::FxHashMap;

/// Facts on every expression and rule of a grammar.
#[derive(Debug)]
pub(crate) struct Analysis {
    /// Rules that have the empty string.
    pub(crate) nullable: Vec<bool>,
    /// Rules that have some string.
    pub(crate) productive: Vec<bool>,
    /// Expressions that have the empty string.
    pub(crate) nullable_exprs: Vec<bool>,
    /// Expressions that have some string.
    pub(crate) productive_exprs: Vec<bool>,
}

impl Analysis {
    /// # Errors
    /// Those of [`Ticks::step`].
    pub(crate) fn new(grammar: &Grammar, ticks: &Ticks) -> Result<Self> {
        let graph = Parents::new(grammar, ticks)?;
        let (nullable, nullable_exprs) =
            graph.least_fixpoint(grammar, false, ticks, |expr| match expr {
                Expr::Empty => Some(true),
                Expr::Repeat { min: 0, .. } => Some(true),
                Expr::Literal(_) | Expr::Class(_) | Expr::Tokens(_) | Expr::Macro(_) => Some(false),
                _ => None,
            })?;
        let (productive, productive_exprs) =
            graph.least_fixpoint(grammar, true, ticks, |expr| match expr {
                Expr::Empty | Expr::Literal(_) | Expr::Macro(_) => Some(true),
                Expr::Class(set) => Some(!set.is_empty()),
                Expr::Tokens(ids) => Some(!ids.is_empty()),
                Expr::Repeat { min: 0, .. } => Some(true),
                _ => None,
            })?;
        Ok(Self { nullable, productive, nullable_exprs, productive_exprs })
    }
}

/// Who holds an expression: its parent expression or the rule whose body it is; and for each
/// rule the expressions that name it.
struct Parents {
    parent: Vec<Option<ExprId>>,
    /// Parents past the first: automata may share their parts.
    further: FxHashMap<ExprId, Vec<ExprId>>,
    body_of: Vec<Option<RuleId>>,
    /// Rules past the first of one body: rules may share it.
    further_rules: FxHashMap<ExprId, Vec<RuleId>>,
    /// Rule by rule, up to these ends.
    uses: Vec<ExprId>,
    ends_of_uses: Vec<u32>,
}

impl Parents {
    fn new(grammar: &Grammar, ticks: &Ticks) -> Result<Self> {
        let n = grammar.exprs().len();
        let mut out = Self {
            parent: vec![None; n],
            further: FxHashMap::default(),
            body_of: vec![None; n],
            further_rules: FxHashMap::default(),
            uses: Vec::new(),
            ends_of_uses: vec![0; grammar.rules().len()],
        };
        for (i, expr) in grammar.exprs().iter().enumerate() {
            let id = ExprId::new(i);
            ticks.step()?;
            match expr {
                Expr::Sequence(children) | Expr::Choice(children) => {
                    ticks.steps(children.len())?;
                    children.iter().for_each(|&child| out.add(child, id));
                }
                Expr::Repeat { body, .. } => out.add(*body, id),
                Expr::Automaton(automaton) => {
                    let parts = automaton.parts.chunk_by(|a, b| a.1 == b.1);
                    parts.for_each(|edges| out.add(edges[0].1, id));
                }
                Expr::Rule(rule) => out.ends_of_uses[rule.index()] += 1,
                _ => {}
            }
        }
        // From how many there are to where they begin, and from there to where they end.
        let mut before = 0;
        for end in &mut out.ends_of_uses {
            ticks.step()?;
            before += std::mem::replace(end, before);
        }
        out.uses = vec![ExprId::new(0); before as usize];
        for (i, expr) in grammar.exprs().iter().enumerate() {
            ticks.step()?;
            if let Expr::Rule(rule) = expr {
                let end = &mut out.ends_of_uses[rule.index()];
                out.uses[*end as usize] = ExprId::new(i);
                *end += 1;
            }
        }
        for (i, rule) in grammar.rules().iter().enumerate() {
            ticks.step()?;
            match &mut out.body_of[rule.body.index()] {
                free @ None => *free = Some(RuleId::new(i)),
                Some(_) => out.further_rules.entry(rule.body).or_default().push(RuleId::new(i)),
            }
        }
        Ok(out)
    }

    /// The expressions that name a rule.
    fn uses_of(&self, rule: RuleId) -> &[ExprId] {
        let before = rule.index().checked_sub(1);
        let from = before.map_or(0, |before| self.ends_of_uses[before]);
        &self.uses[from as usize..self.ends_of_uses[rule.index()] as usize]
    }

    fn add(&mut self, child: ExprId, parent: ExprId) {
        match &mut self.parent[child.index()] {
            free @ None => *free = Some(parent),
            Some(_) => self.further.entry(child).or_default().push(parent),
        }
    }

    /// The rules whose body has the property, and the expressions: sequences when all children
    /// have it, choices and repetitions when one has it, automata when there is a way to an end
    /// over parts that have it (and over bytes, if `over_bytes`), the rest as `known` says.
    fn least_fixpoint(
        &self,
        grammar: &Grammar,
        over_bytes: bool,
        ticks: &Ticks,
        known: impl Fn(&Expr) -> Option<bool>,
    ) -> Result<(Vec<bool>, Vec<bool>)> {
        let exprs = grammar.exprs();
        let mut missing: Vec<usize> = Vec::with_capacity(exprs.len());
        let mut work: Vec<ExprId> = Vec::new();
        for (i, expr) in exprs.iter().enumerate() {
            ticks.step()?;
            let count = match (known(expr), expr) {
                (Some(true), _) => 0,
                (Some(false), _) => usize::MAX,
                (None, Expr::Sequence(children)) => children.len(),
                (None, _) => 1,
            };
            missing.push(count);
            if count == 0 {
                work.push(ExprId::new(i));
            }
        }
        let mut rules = vec![false; grammar.rules().len()];
        let mut ways: FxHashMap<ExprId, WaysToEnd<'_>> = FxHashMap::default();
        for (i, expr) in exprs.iter().enumerate() {
            ticks.step()?;
            if let Expr::Automaton(automaton) = expr {
                let mut found = WaysToEnd::new(automaton, over_bytes);
                // What a part gives is added when it is met.
                if found.grow(automaton.ends(), |_| false) {
                    missing[i] = 0;
                    work.push(ExprId::new(i));
                }
                ways.insert(ExprId::new(i), found);
            }
        }
        let mut meet = |id: ExprId, child: ExprId, work: &mut Vec<ExprId>| {
            if missing[id.index()] == 0 {
                return; // It has the property already.
            }
            if let Some(ways) = ways.get_mut(&id) {
                let begun = ways.before(child);
                let done = |part: ExprId| missing[part.index()] == 0;
                if ways.grow(begun, done) {
                    missing[id.index()] = 0;
                    work.push(id);
                }
                return;
            }
            let count = &mut missing[id.index()];
            if *count != usize::MAX {
                *count -= 1;
                if *count == 0 {
                    work.push(id);
                }
            }
        };
        while let Some(id) = work.pop() {
            ticks.step()?;
            let further = self.further.get(&id).into_iter().flatten();
            for &parent in self.parent[id.index()].iter().chain(further) {
                meet(parent, id, &mut work);
            }
            let further = self.further_rules.get(&id).map_or(&[][..], |rules| rules);
            ticks.steps(further.len())?;
            for &rule in self.body_of[id.index()].iter().chain(further) {
                if std::mem::replace(&mut rules[rule.index()], true) {
                    continue;
                }
                for &site in self.uses_of(rule) {
                    ticks.step()?;
                    meet(site, id, &mut work);
                }
            }
        }
        let is_met = |count: usize| ticks.step().map(|()| count == 0);
        Ok((rules, missing.into_iter().map(is_met).collect::<Result<_>>()?))
    }
}

/// From which states of an automaton there is a way to an end; an edge is looked at once from
/// behind, and once more when its part is met. States that fall back are ends, so what they read by
/// that says nothing more.
struct WaysToEnd<'g> {
    automaton: &'g ByteAutomaton,
    /// By the state that an edge leads to: where it comes from, and its part if it has one.
    into: Vec<(u32, Option<ExprId>)>,
    /// Where those of each state end; they begin where those of the state before do.
    ends: Vec<u32>,
    reached: Vec<bool>,
}

impl<'g> WaysToEnd<'g> {
    /// Over parts, and over bytes if that is asked for.
    fn new(automaton: &'g ByteAutomaton, over_bytes: bool) -> Self {
        let states = automaton.finals.len();
        let bytes = if over_bytes { &*automaton.bytes } else { &[] };
        let edges = || {
            let parts = automaton.parts.iter().map(|&(from, part, to)| (from, Some(part), to));
            bytes.iter().map(|&(from, _, _, to)| (from, None, to)).chain(parts)
        };
        // From how many there are to where they begin, and from there to where they end.
        let mut ends = vec![0u32; states];
        edges().for_each(|(_, _, to)| ends[to as usize] += 1);
        let mut before = 0;
        for end in &mut ends {
            before += std::mem::replace(end, before);
        }
        let mut into = vec![(0, None); before as usize];
        for (from, part, to) in edges() {
            let end = &mut ends[to as usize];
            into[*end as usize] = (from, part);
            *end += 1;
        }
        Self { automaton, into, ends, reached: vec![false; states] }
    }

    /// The states from which a part leads to one with a way.
    fn before(&self, part: ExprId) -> Vec<u32> {
        let parts = &self.automaton.parts;
        let first = parts.partition_point(|edge| edge.1 < part);
        let edges = parts[first..].iter().take_while(|edge| edge.1 == part);
        edges.filter(|edge| self.reached[edge.2 as usize]).map(|edge| edge.0).collect()
    }

    /// Adds states and what leads to them; whether there is a way from the start.
    fn grow(&mut self, states: Vec<u32>, has: impl Fn(ExprId) -> bool) -> bool {
        let mut work = states;
        while let Some(state) = work.pop() {
            if std::mem::replace(&mut self.reached[state as usize], true) {
                continue;
            }
            let before = (state as usize).checked_sub(1);
            let first = before.map_or(0, |before| self.ends[before]);
            let into = self.into[first as usize..self.ends[state as usize] as usize].iter();
            work.extend(into.filter(|(_, part)| part.is_none_or(&has)).map(|edge| edge.0));
        }
        self.reached[self.automaton.start as usize]
    }
}

/// The rules that the root's derivations can reach, and a check that each is made of what the
/// network can say exactly. What lies behind a rule that is elsewhere is neither reached nor checked.
///
/// # Errors
/// [`Error::Unsupported`] for the first macro, lookahead or option, in the order of the text,
/// that changes which tokens are allowed and that the network cannot express; and those of
/// [`Budget::spend`].
pub(crate) fn reachable(
    grammar: &Grammar,
    skip_lookahead: bool,
    is_elsewhere: impl Fn(RuleId) -> bool,
    work: &Budget,
) -> Result<Vec<bool>> {
    let ticks = Ticks::new(work);
    let mut places = None;
    let mut seen = vec![false; grammar.rules().len()];
    let mut rules = vec![grammar.root()];
    seen[grammar.root().index()] = true;
    let mut refused: Option<Error> = None;
    let mut exprs = Vec::new();
    while let Some(rule) = rules.pop() {
        if is_elsewhere(rule) {
            continue;
        }
        exprs.push(grammar.rule(rule).body);
        let has_lookahead = grammar.rule(rule).lookahead.is_some() && !skip_lookahead;
        if has_lookahead && places.is_none() {
            places = Some(Places::new(grammar, &is_elsewhere, &ticks)?);
        }
        let narrows = match &places {
            Some(places) if has_lookahead => !places.imply(rule, work)?,
            _ => false,
        };
        if let Some(error) = refuse_rule(grammar, rule, narrows) {
            refused = earlier(refused, error);
        }
        while let Some(id) = exprs.pop() {
            ticks.step()?;
            match grammar.expr(id) {
                Expr::Sequence(children) | Expr::Choice(children) => exprs.extend(children),
                Expr::Repeat { body, .. } => exprs.push(*body),
                Expr::Automaton(automaton) => {
                    exprs.extend(automaton.parts.iter().map(|&(_, part, _)| part));
                }
                Expr::Rule(callee) => {
                    if !std::mem::replace(&mut seen[callee.index()], true) {
                        rules.push(*callee);
                    }
                }
                Expr::Macro(call) => {
                    refused = earlier(
                        refused,
                        Error::Unsupported {
                            construct: call.name.clone(),
                            message: "this macro takes tokens whole or has no known meaning; \
                                  compile it with a vocabulary, or write it as rules"
                                .to_owned(),
                            position: grammar.position(id),
                        },
                    );
                }
                Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Tokens(_) => {}
            }
        }
    }
    match refused {
        Some(error) => Err(error),
        None => Ok(seen),
    }
}

/// Of two refusals the one that stands first in the text.
fn earlier(old: Option<Error>, new: Error) -> Option<Error> {
    let position = |error: &Error| match error {
        Error::Unsupported { position, .. } => *position,
        _ => Default::default(),
    };
    match old {
        Some(old) if position(&old) <= position(&new) => Some(old),
        _ => Some(new),
    }
}

fn refuse_rule(grammar: &Grammar, rule: RuleId, narrows: bool) -> Option<Error> {
    let rule = grammar.rule(rule);
    let options = &rule.options;
    let (construct, why) = if narrows {
        ("lookahead", "(= ...) narrows masks without changing which strings are accepted")
    } else if options.lazy {
        ("lazy", "Grammar::with_bounded_rules has not replaced it by an automaton")
    } else if options.max_tokens.is_some() {
        ("max_tokens", "Grammar::with_bounded_rules has not replaced it by an automaton")
    } else if options.max_chars.is_some() {
        ("max_chars", "Grammar::with_bounded_rules has not replaced it by an automaton")
    } else if let Some((name, _)) = options.other.first() {
        (name.as_str(), "this option is not known to leave the language as it is")
    } else {
        return None;
    };
    Some(Error::Unsupported {
        construct: construct.to_owned(),
        message: format!("rule {:?}: {why}; leave it out", rule.name),
        position: rule.position,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Interrupt};
    use crate::grammar::{CallEdge, Callee, Described};
    use crate::limits::Limits;
    use crate::syntax;

    fn call(from: u32, callee: Callee, (min, max): (u32, Option<u32>), to: u32) -> CallEdge {
        CallEdge { from, callee, min, max, to }
    }

    /// Whether the root is nullable, and productive, with this in the macro's place.
    fn facts(text: &str, meaning: Vec<Described>) -> (bool, bool) {
        let grammar = syntax::parse(text, "root", &Limits::default()).expect("it is a grammar");
        let id = grammar.macros()[0];
        let grammar = grammar.with_meanings(&[(id, meaning)].into()).expect("it is sound");
        assert!(grammar.macros().is_empty());
        let budget = Budget::new(&Limits::default(), &Interrupt::default());
        let facts = Analysis::new(&grammar, &Ticks::new(&budget)).expect("nobody cancels");
        (facts.nullable[0], facts.productive[0])
    }

    fn described(states: u32, finals: &[u32], bytes: &[(u32, u8, u8, u32)]) -> Described {
        Described { states, start: 0, finals: finals.into(), bytes: bytes.into(), calls: vec![] }
    }

    #[test]
    fn automata_are_passed_over_and_completed() {
        let alone = "root ::= Regex(\"a\")";
        assert_eq!(facts(alone, vec![described(1, &[0], &[])]), (true, true));
        assert_eq!(facts(alone, vec![described(2, &[1], &[(0, 97, 97, 1)])]), (false, true));
        assert_eq!(facts(alone, vec![described(2, &[], &[(0, 97, 97, 1)])]), (false, false));
        assert_eq!(facts(alone, vec![described(2, &[1], &[(1, 97, 97, 0)])]), (false, false));
    }

    #[test]
    fn what_is_called_counts() {
        let letter = described(2, &[1], &[(0, 97, 97, 1)]);
        let nothing = described(2, &[], &[(0, 97, 97, 1)]);
        let empty = described(1, &[0], &[]);
        for (inner, bounds, expected) in [
            (&letter, (1, Some(1)), (false, true)),
            (&letter, (0, Some(5)), (true, true)),
            (&nothing, (2, None), (false, false)),
            (&nothing, (0, None), (true, true)),
            (&empty, (200, Some(300)), (true, true)),
        ] {
            let mut outer = described(3, &[2], &[]);
            // One automaton is shared by two calls, one after the other.
            outer.calls.push(call(0, Callee::Automaton(0), bounds, 1));
            outer.calls.push(call(1, Callee::Automaton(0), bounds, 2));
            let found = facts("root ::= Regex(\"a\")", vec![inner.clone(), outer]);
            assert_eq!(found, expected, "{bounds:?}");
        }
    }

    #[test]
    fn rules_are_called_by_number() {
        for (rule, expected) in [
            ("\"\"", (true, true)),
            ("\"b\"", (false, true)),
            ("x", (false, false)),
            ("\"b\" root", (false, false)),
            ("\"b\" root | \"c\"", (false, true)),
        ] {
            let text = format!("root ::= TagDispatch((\"a\", x))\nx ::= {rule}");
            let mut outer = described(2, &[1], &[]);
            outer.calls.push(call(0, Callee::Rule(1), (1, Some(1)), 1));
            assert_eq!(facts(&text, vec![outer]), expected, "{rule}");
        }
    }
}
