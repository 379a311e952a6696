//! One grammar out of several: rules of one stand for whole others.
//!
//! Parts often say the same: each schema brings its own rules for strings and numbers. Rules that
//! say the same by the same expressions are taken over once, so that a grammar of five hundred
//! tools has one rule for strings.

use super::{
    ByteAutomaton, CharSet, Expr, Grammar, GrammarBuilder, Macro, MacroArgument, Rule, RuleOptions,
};
use crate::error::Position;
use crate::graph;
use crate::ids::{ExprId, RuleId};
use rustc_hash::FxHashMap;

impl Grammar {
    /// The grammar in which some of its rules are the roots of others, whose rules come after its
    /// own, with the rule's name and `__` before theirs. Of rules that say the same, the first
    /// stands for all.
    pub fn composed(&self, parts: &[(RuleId, &Grammar)]) -> Grammar {
        let mut out = Composition::default();
        let own: Vec<RuleId> = (0..self.rules().len()).map(RuleId::new).collect();
        out.add_rules(self, &own, &own, "");
        for &(rule, part) in parts {
            let prefix = format!("{}__", self.rule(rule).name);
            let root = out.add_part(part, &prefix);
            let position = self.rule(rule).position;
            out.rules[rule.index()].body = out.builder.add(Expr::Rule(root), position);
        }
        out.builder.finish(out.rules, self.root())
    }

    /// Some of its rules as a grammar of their own, without lookahead. `stubs` are the rules that
    /// they call besides, of which it says whether they have the empty string and others.
    pub(crate) fn extracted(
        &self,
        root: RuleId,
        members: &[RuleId],
        stubs: &[(RuleId, Stub)],
    ) -> Grammar {
        let mut out = Composition::default();
        let mut ids = vec![RuleId::new(0); self.rules().len()];
        let all = members.iter().chain(stubs.iter().map(|stub| &stub.0));
        for (place, rule) in all.enumerate() {
            ids[rule.index()] = RuleId::new(place);
        }
        out.drops_lookahead = true;
        out.add_rules(self, members, &ids, "");
        for &(rule, stub) in stubs {
            let Rule { name, position, .. } = self.rule(rule);
            let body = out.add_stub(stub, *position);
            let options = RuleOptions::default();
            out.rules.push(Rule {
                name: name.clone(),
                options,
                body,
                lookahead: None,
                position: *position,
                is_common: false,
            });
        }
        out.builder.finish(out.rules, ids[root.index()])
    }

    /// The same with stubs in place of what some rules say.
    pub(crate) fn with_stubs(&self, stubs: &[(RuleId, Stub)]) -> Grammar {
        let mut out = Composition::default();
        let ids: Vec<RuleId> = (0..self.rules().len()).map(RuleId::new).collect();
        out.add_rules(self, &ids, &ids, "");
        for &(rule, stub) in stubs {
            out.rules[rule.index()].body = out.add_stub(stub, self.rule(rule).position);
        }
        out.builder.finish(out.rules, self.root())
    }

    /// The rules that a rule names, each once; in its lookahead too, or not.
    pub(crate) fn callees(&self, rule: &Rule, with_lookahead: bool) -> Vec<usize> {
        let mut out = Vec::new();
        let mut work = vec![rule.body];
        work.extend(rule.lookahead.filter(|_| with_lookahead));
        while let Some(id) = work.pop() {
            match self.expr(id) {
                Expr::Sequence(parts) | Expr::Choice(parts) => work.extend(parts),
                Expr::Repeat { body, .. } => work.push(*body),
                Expr::Automaton(automaton) => work.extend(automaton.parts.iter().map(|p| p.1)),
                Expr::Rule(rule) => out.push(rule.index()),
                Expr::Macro(call) => out.extend(call.rules().map(|rule| rule.index())),
                Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Tokens(_) => {}
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// What is said of a rule that is elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stub {
    /// It has no string.
    Nothing,
    /// It has strings, the empty one not among them.
    Plain,
    /// It has the empty string, and may have others.
    Nullable,
}

/// What is made so far.
#[derive(Default)]
struct Composition {
    builder: GrammarBuilder,
    rules: Vec<Rule>,
    /// The rules of groups that call each other, by what they say.
    known: FxHashMap<Vec<u8>, Vec<RuleId>>,
    drops_lookahead: bool,
}

impl Composition {
    /// Adds the rules of a part that are new, callees first; returns its root.
    fn add_part(&mut self, part: &Grammar, prefix: &str) -> RuleId {
        let count = part.rules().len();
        let mut ids = vec![RuleId::new(0); count];
        let mut is_member = vec![usize::MAX; count];
        let guarded = part.called_with_guards();
        for mut group in graph::components(count, |rule| part.callees(&part.rules()[rule], true)) {
            group.sort_unstable();
            for (place, &rule) in group.iter().enumerate() {
                is_member[rule] = place;
            }
            let name = |rule: usize, out: &mut Vec<u8>| {
                let (kind, number) = match is_member[rule] {
                    usize::MAX => (0, ids[rule].0),
                    place => (1, place as u32),
                };
                out.push(kind);
                out.extend(number.to_le_bytes());
            };
            // Rules with one text may be told apart by the guards with which they are called.
            let is_guarded = group.iter().any(|rule| guarded.contains(rule));
            let key = if is_guarded { None } else { key_of(part, &group, true, name) };
            let known = key.as_ref().and_then(|key| self.known.get(key));
            if let Some(known) = known {
                group.iter().zip(known).for_each(|(&rule, &id)| ids[rule] = id);
            } else {
                for (place, &rule) in group.iter().enumerate() {
                    ids[rule] = RuleId::new(self.rules.len() + place);
                }
                let group_rules: Vec<RuleId> = group.iter().map(|&r| RuleId::new(r)).collect();
                self.add_rules(part, &group_rules, &ids, prefix);
                if let Some(key) = key {
                    self.known.insert(key, group.iter().map(|&rule| ids[rule]).collect());
                }
            }
            group.iter().for_each(|&rule| is_member[rule] = usize::MAX);
        }
        ids[part.root().index()]
    }

    /// Adds rules of a grammar at the end, in which rules have the numbers `ids`.
    fn add_rules(&mut self, from: &Grammar, rules: &[RuleId], ids: &[RuleId], prefix: &str) {
        for &id in rules {
            let rule = from.rule(id);
            let body = self.add_expr(from, rule.body, ids);
            let lookahead = rule.lookahead.filter(|_| !self.drops_lookahead);
            let lookahead = lookahead.map(|id| self.add_expr(from, id, ids));
            let name = format!("{prefix}{}", rule.name);
            let Rule { ref options, position, is_common, .. } = *rule;
            let options = options.clone();
            self.rules.push(Rule { name, options, body, lookahead, position, is_common });
        }
    }

    /// Adds a body that no automaton is made of: a literal without bytes counts as a string that is
    /// not empty.
    fn add_stub(&mut self, stub: Stub, position: Position) -> ExprId {
        let plain = match stub {
            Stub::Nothing => Expr::Class(CharSet::default()),
            Stub::Plain | Stub::Nullable => Expr::Literal([].into()),
        };
        let plain = self.builder.add(plain, position);
        if stub != Stub::Nullable {
            return plain;
        }
        let empty = self.builder.add(Expr::Empty, position);
        self.builder.add(Expr::Choice([plain, empty].into()), position)
    }

    /// Adds an expression with all that it is made of.
    fn add_expr(&mut self, from: &Grammar, root: ExprId, ids: &[RuleId]) -> ExprId {
        let mut added: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        let mut below: Vec<ExprId> = vec![root];
        let mut at = 0;
        while let Some(&id) = below.get(at) {
            at += 1;
            match from.expr(id) {
                Expr::Sequence(parts) | Expr::Choice(parts) => below.extend(parts),
                Expr::Repeat { body, .. } => below.push(*body),
                Expr::Automaton(automaton) => {
                    let parts = automaton.parts.chunk_by(|a, b| a.1 == b.1);
                    below.extend(parts.map(|edges| edges[0].1));
                }
                Expr::Empty
                | Expr::Literal(_)
                | Expr::Class(_)
                | Expr::Tokens(_)
                | Expr::Rule(_)
                | Expr::Macro(_) => {}
            }
        }
        // Children stand before their parents in the arena.
        below.sort_unstable();
        below.dedup();
        let rule = |id: RuleId| ids[id.index()];
        for id in below {
            let new = |id: &ExprId| added[id];
            let copy = match from.expr(id) {
                Expr::Sequence(parts) => Expr::Sequence(parts.iter().map(new).collect()),
                Expr::Choice(parts) => Expr::Choice(parts.iter().map(new).collect()),
                &Expr::Repeat { ref body, min, max } => Expr::Repeat { body: new(body), min, max },
                Expr::Rule(id) => Expr::Rule(rule(*id)),
                Expr::Macro(call) => Expr::Macro(moved(call, rule)),
                Expr::Automaton(automaton) => {
                    let parts = automaton.parts.iter().map(|(p, part, q)| (*p, new(part), *q));
                    let parts = parts.collect();
                    let guards = automaton.guards.iter();
                    let guards = guards.map(|(callee, guard)| (rule(*callee), guard.clone()));
                    let guards = guards.collect();
                    Expr::Automaton(ByteAutomaton { parts, guards, ..automaton.clone() })
                }
                other => other.clone(),
            };
            let copied = self.builder.add(copy, from.position(id));
            added.insert(id, copied);
        }
        added[&root]
    }
}

/// What some rules say, as bytes; `name` writes which rule is named. `None` for what is best left
/// alone.
pub(crate) fn key_of(
    grammar: &Grammar,
    group: &[usize],
    with_lookahead: bool,
    name: impl Fn(usize, &mut Vec<u8>),
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for &rule in group {
        let rule = &grammar.rules()[rule];
        if rule.options != RuleOptions::default() {
            return None;
        }
        let lookahead = rule.lookahead.filter(|_| with_lookahead);
        out.push(u8::from(lookahead.is_some()));
        let mut work = vec![rule.body];
        work.extend(lookahead);
        while let Some(id) = work.pop() {
            let number = |out: &mut Vec<u8>, n: u32| out.extend(n.to_le_bytes());
            match grammar.expr(id) {
                Expr::Empty => out.push(0),
                Expr::Literal(bytes) => {
                    out.push(1);
                    number(&mut out, bytes.len() as u32);
                    out.extend(&**bytes);
                }
                Expr::Class(set) => {
                    out.push(2);
                    number(&mut out, set.ranges().len() as u32);
                    for &(first, last) in set.ranges() {
                        number(&mut out, first);
                        number(&mut out, last);
                    }
                }
                Expr::Rule(rule) => {
                    out.push(3);
                    name(rule.index(), &mut out);
                }
                Expr::Sequence(parts) => {
                    out.push(4);
                    number(&mut out, parts.len() as u32);
                    work.extend(parts.iter().rev());
                }
                Expr::Choice(parts) => {
                    out.push(5);
                    number(&mut out, parts.len() as u32);
                    work.extend(parts.iter().rev());
                }
                Expr::Repeat { body, min, max } => {
                    out.extend([6, u8::from(max.is_some())]);
                    number(&mut out, *min);
                    number(&mut out, max.unwrap_or(0));
                    work.push(*body);
                }
                Expr::Automaton(automaton) if automaton.guards.is_empty() => {
                    out.push(7);
                    write_automaton(automaton, &mut out);
                    work.extend(automaton.parts.iter().map(|part| part.1).rev());
                }
                Expr::Macro(_) | Expr::Automaton(_) | Expr::Tokens(_) => return None,
            }
        }
    }
    Some(out)
}

/// An automaton as bytes, but for what its parts say.
fn write_automaton(automaton: &ByteAutomaton, out: &mut Vec<u8>) {
    let ByteAutomaton { start, finals, bytes, parts, falls_back, fallback, guards: _, .. } =
        automaton;
    let ByteAutomaton { counts, counts_tokens, .. } = automaton;
    out.reserve(32 + finals.len() + falls_back.len() + 10 * bytes.len() + 8 * parts.len());
    let lengths = [finals.len(), bytes.len(), parts.len(), falls_back.len()];
    out.extend(lengths.iter().flat_map(|&length| (length as u64).to_le_bytes()));
    out.extend([*start, *fallback].iter().flat_map(|state| state.to_le_bytes()));
    out.push(u8::from(counts.is_some()));
    if let Some((min, max)) = counts {
        out.push(u8::from(max.is_some()) | u8::from(*counts_tokens) << 1);
        out.extend([*min, max.unwrap_or(0)].iter().flat_map(|bound| bound.to_le_bytes()));
    }
    out.extend(finals.iter().chain(falls_back).map(|&flag| u8::from(flag)));
    for &(from, first, last, to) in bytes {
        out.extend(from.to_le_bytes());
        out.extend([first, last]);
        out.extend(to.to_le_bytes());
    }
    for &(from, _, to) in parts {
        out.extend(from.to_le_bytes());
        out.extend(to.to_le_bytes());
    }
}

fn moved(call: &Macro, rule: impl Fn(RuleId) -> RuleId + Copy) -> Macro {
    // Tuples hold no tuples.
    let part = |part: &MacroArgument| match part {
        MacroArgument::Rule(id) => MacroArgument::Rule(rule(*id)),
        other => other.clone(),
    };
    let argument = |argument: &MacroArgument| match argument {
        MacroArgument::Tuple(parts) => MacroArgument::Tuple(parts.iter().map(part).collect()),
        other => part(other),
    };
    Macro {
        name: call.name.clone(),
        positional: call.positional.iter().map(argument).collect(),
        named: call.named.iter().map(|(name, value)| (name.clone(), argument(value))).collect(),
    }
}
