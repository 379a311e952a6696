//! Automata as rules: a rule for each state, whose alternatives read one character or one part and go on
//! with the rule of the next state. Grammar text has no automata, so they are printed like this.

use super::{ByteAutomaton, CharSet, Expr, Grammar, GrammarBuilder, Rule, RuleOptions};
use crate::error::Position;
use crate::ids::{ExprId, RuleId};
use std::collections::{HashMap, HashSet};

/// What a state reads, and where that leads.
enum Edge {
    Characters(CharSet, u32),
    Part(ExprId, u32),
}

impl Grammar {
    /// Whether some expression is an automaton.
    pub fn has_automata(&self) -> bool {
        self.exprs.iter().any(|expr| matches!(expr, Expr::Automaton(_)))
    }

    /// The same grammar with rules in place of automata. `None` where an automaton reads bytes that are
    /// no UTF-8: no grammar text says that.
    pub fn without_automata(&self) -> Option<Grammar> {
        let mut builder = GrammarBuilder::new();
        let mut renamed: Vec<ExprId> = Vec::with_capacity(self.exprs.len());
        let mut rules = self.rules.to_vec();
        let mut names: HashSet<String> = rules.iter().map(|rule| rule.name.clone()).collect();
        for (index, expr) in self.exprs.iter().enumerate() {
            let new = |id: &ExprId| renamed[id.index()];
            let position = self.positions[index];
            let copy = match expr {
                Expr::Sequence(parts) => Expr::Sequence(parts.iter().map(new).collect()),
                Expr::Choice(parts) => Expr::Choice(parts.iter().map(new).collect()),
                &Expr::Repeat { ref body, min, max } => Expr::Repeat { body: new(body), min, max },
                Expr::Automaton(automaton) => {
                    let parts = automaton.parts.iter().map(|&(p, part, q)| (p, new(&part), q));
                    let parts: Vec<(u32, ExprId, u32)> = parts.collect();
                    let start = add_states(
                        automaton,
                        &parts,
                        (&mut builder, position),
                        &mut rules,
                        &mut names,
                    )?;
                    Expr::Rule(start)
                }
                other => other.clone(),
            };
            renamed.push(builder.add(copy, position));
        }
        for (rule, old) in rules.iter_mut().zip(self.rules.iter()) {
            rule.body = renamed[old.body.index()];
            rule.lookahead = old.lookahead.map(|id| renamed[id.index()]);
        }
        Some(builder.finish(rules, self.root))
    }
}

/// Adds the rules of the states of an automaton that its start reaches; the rule of the start.
fn add_states(
    automaton: &ByteAutomaton,
    parts: &[(u32, ExprId, u32)],
    (builder, position): (&mut GrammarBuilder, Position),
    rules: &mut Vec<Rule>,
    names: &mut HashSet<String>,
) -> Option<RuleId> {
    let mut bytes: Vec<Vec<(u8, u8, u32)>> = vec![Vec::new(); automaton.finals.len()];
    for &(from, first, last, to) in automaton.bytes_in_full().iter() {
        bytes[from as usize].push((first, last, to));
    }
    let mut calls: Vec<Vec<(ExprId, u32)>> = vec![Vec::new(); automaton.finals.len()];
    for &(from, part, to) in parts {
        calls[from as usize].push((part, to));
    }
    let mut numbers: HashMap<u32, RuleId> = HashMap::new();
    let mut order: Vec<u32> = Vec::new();
    let mut rule_of = |state: u32, rules: &mut Vec<Rule>, order: &mut Vec<u32>| {
        *numbers.entry(state).or_insert_with(|| {
            let id = RuleId::new(rules.len());
            let mut name = format!("state_{}", rules.len());
            while !names.insert(name.clone()) {
                name.push('_');
            }
            rules.push(Rule {
                name,
                options: RuleOptions::default(),
                body: ExprId::new(0),
                lookahead: None,
                position,
            });
            order.push(state);
            id
        })
    };
    let start = rule_of(automaton.start, rules, &mut order);
    let mut next = 0;
    while let Some(&state) = order.get(next) {
        next += 1;
        let mut edges: Vec<Edge> = Vec::new();
        for (set, to) in characters(&bytes, state)? {
            edges.push(Edge::Characters(set, to));
        }
        edges.extend(calls[state as usize].iter().map(|&(part, to)| Edge::Part(part, to)));
        let mut alternatives: Vec<ExprId> = Vec::with_capacity(edges.len() + 1);
        for edge in edges {
            let (read, to) = match edge {
                Edge::Characters(set, to) => (builder.add(Expr::Class(set), position), to),
                Edge::Part(part, to) => (part, to),
            };
            let is_last = automaton.finals[to as usize]
                && bytes[to as usize].is_empty()
                && calls[to as usize].is_empty();
            if is_last {
                alternatives.push(read);
                continue;
            }
            let rule = rule_of(to, rules, &mut order);
            let rest = builder.add(Expr::Rule(rule), position);
            alternatives.push(builder.add(Expr::Sequence([read, rest].into()), position));
        }
        if automaton.finals[state as usize] {
            alternatives.push(builder.add(Expr::Empty, position));
        }
        let body = match alternatives.as_slice() {
            // No text leads on from here.
            [] => builder.add(Expr::Class(CharSet::default()), position),
            [only] => *only,
            _ => builder.add(Expr::Choice(alternatives.into()), position),
        };
        let rule = rule_of(state, rules, &mut order);
        rules[rule.index()].body = body;
    }
    // Bodies are renamed by their callers as those of other rules are not: they are final already.
    Some(start)
}

/// The characters that a state reads, by the state that they lead to.
fn characters(bytes: &[Vec<(u8, u8, u32)>], state: u32) -> Option<Vec<(CharSet, u32)>> {
    let mut ranges: Vec<(u32, Vec<(u32, u32)>)> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut add = |to: u32, first: u32, last: u32| {
        let place = *places.entry(to).or_insert_with(|| {
            ranges.push((to, Vec::new()));
            ranges.len() - 1
        });
        ranges[place].1.push((first, last));
    };
    // Byte ranges read so far of a character, and where they lead.
    let mut work: Vec<(Vec<(u8, u8)>, u32)> = Vec::new();
    for &(first, last, to) in &bytes[state as usize] {
        if first < 0x80 {
            add(to, u32::from(first), u32::from(last.min(0x7F)));
        }
        if last >= 0x80 {
            work.push((vec![(first.max(0x80), last)], to));
        }
    }
    while let Some((read, at)) = work.pop() {
        let (first, last) = read[0];
        let length = match first {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return None,
        };
        // Leads of different lengths go apart.
        let end = [0, 0, 0xDF, 0xEF, 0xF4][length];
        if last > end {
            let mut rest = read.clone();
            rest[0] = (end + 1, last);
            work.push((rest, at));
        }
        let mut read = read;
        read[0] = (first, last.min(end));
        if read.len() == length {
            code_points(&read, &mut |first, last| add(at, first, last));
            continue;
        }
        for &(first, last, to) in &bytes[at as usize] {
            if first < 0x80 || last > 0xBF {
                return None;
            }
            let mut more = read.clone();
            more.push((first, last));
            work.push((more, to));
        }
    }
    Some(ranges.into_iter().map(|(to, ranges)| (CharSet::new(ranges), to)).collect())
}

/// The code points whose encodings are a product of byte ranges.
fn code_points(ranges: &[(u8, u8)], add: &mut impl FnMut(u32, u32)) {
    let mut work: Vec<Vec<(u8, u8)>> = vec![ranges.to_vec()];
    while let Some(ranges) = work.pop() {
        let is_full = |range: &(u8, u8)| *range == (0x80, 0xBF);
        let split = (0..ranges.len()).find(|&place| {
            ranges[place].0 < ranges[place].1 && !ranges[place + 1..].iter().all(is_full)
        });
        match split {
            Some(place) => work.extend((ranges[place].0..=ranges[place].1).map(|byte| {
                let mut one = ranges.clone();
                one[place] = (byte, byte);
                one
            })),
            None => {
                let first: Vec<u8> = ranges.iter().map(|range| range.0).collect();
                let last: Vec<u8> = ranges.iter().map(|range| range.1).collect();
                add(decoded(&first), decoded(&last));
            }
        }
    }
}

/// The code point of an encoding of two bytes or more.
fn decoded(bytes: &[u8]) -> u32 {
    let lead = u32::from(bytes[0]) & [0, 0, 0x1F, 0x0F, 0x07][bytes.len()];
    bytes[1..].iter().fold(lead, |point, &byte| point << 6 | u32::from(byte) & 0x3F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_bytes_are_code_points() {
        let mut got = Vec::new();
        code_points(&[(0xE1, 0xEC), (0x80, 0xBF), (0x80, 0xBF)], &mut |a, b| got.push((a, b)));
        assert_eq!(got, [(0x1000, 0xCFFF)]);
        got.clear();
        code_points(&[(0xC3, 0xC4), (0x80, 0x81)], &mut |a, b| got.push((a, b)));
        got.sort_unstable();
        assert_eq!(got, [(0xC0, 0xC1), (0x100, 0x101)]);
    }

    #[test]
    fn states_become_rules() {
        let mut builder = GrammarBuilder::new();
        let part = builder.add(Expr::Literal(Box::from(&b"--"[..])), Position::default());
        let automaton = ByteAutomaton {
            start: 0,
            finals: [false, true, false].into(),
            bytes: vec![(0, b'a', b'c', 0), (0, 0xC3, 0xC3, 2), (2, 0xA9, 0xA9, 1)].into(),
            parts: vec![(0, part, 1)].into(),
            falls_back: Box::default(),
        };
        let body = builder.add(Expr::Automaton(automaton), Position::default());
        let rule = Rule {
            name: "root".into(),
            options: RuleOptions::default(),
            body,
            lookahead: None,
            position: Position::default(),
        };
        let grammar = builder.finish(vec![rule], RuleId::new(0));
        let plain = grammar.without_automata().expect("UTF-8");
        assert!(grammar.has_automata() && !plain.has_automata());
        let text = crate::syntax::print(&plain);
        assert_eq!(text, "root ::= state_1\nstate_1 ::= [a-c] state_1 | [\\u00e9] | \"--\"\n");
    }
}
