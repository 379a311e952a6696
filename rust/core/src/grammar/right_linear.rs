//! Automata as right-linear rules.
//!
//! Grammar text has no syntax for automata, so the printer needs rules in their place. Each state becomes
//! a rule whose alternatives read characters or a part and then call the rule of the next state.

use super::{ByteAutomaton, CharSet, Expr, Grammar, GrammarBuilder, Rule, RuleOptions};
use crate::error::Position;
use crate::ids::{ExprId, RuleId};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What a state reads, and where that leads.
#[derive(Clone)]
enum Edge {
    Characters(CharSet, u32),
    Part(ExprId, u32),
}

impl Edge {
    fn to(&self) -> u32 {
        match self {
            Edge::Characters(_, to) | Edge::Part(_, to) => *to,
        }
    }
}

impl Grammar {
    /// Whether some expression is an automaton.
    pub fn has_automata(&self) -> bool {
        self.exprs.iter().any(|expr| matches!(expr, Expr::Automaton(_)))
    }

    /// The same grammar, in which rules replace the automata. The result is `None` if an automaton reads
    /// bytes that are not UTF-8, which grammar text cannot express, or counts too far to be written out.
    pub fn without_automata(&self) -> Option<Grammar> {
        let mut writer = Writer {
            builder: GrammarBuilder::new(),
            rules: self.rules.to_vec(),
            names: self.rules.iter().map(|rule| rule.name.clone()).collect(),
        };
        // The rule of which an automaton is the whole is the rule of its start.
        let mut owners: HashMap<ExprId, RuleId> = HashMap::new();
        for (number, rule) in self.rules.iter().enumerate() {
            if rule.options == RuleOptions::default() && rule.lookahead.is_none() {
                owners.entry(rule.body).or_insert(RuleId::new(number));
            }
        }
        let mut renamed: Vec<ExprId> = Vec::with_capacity(self.exprs.len());
        let mut owned: HashSet<RuleId> = HashSet::new();
        for (index, expr) in self.exprs.iter().enumerate() {
            let new = |id: &ExprId| renamed[id.index()];
            let position = self.positions[index];
            let copy = match expr {
                Expr::Sequence(parts) => Expr::Sequence(parts.iter().map(new).collect()),
                Expr::Choice(parts) => Expr::Choice(parts.iter().map(new).collect()),
                &Expr::Repeat { ref body, min, max } => Expr::Repeat { body: new(body), min, max },
                Expr::Automaton(automaton) => {
                    let written = match automaton.counts {
                        None => Cow::Borrowed(automaton),
                        Some(_) => Cow::Owned(automaton.written()?),
                    };
                    let parts = written.parts.iter().map(|&(p, part, q)| (p, new(&part), q));
                    let parts: Vec<(u32, ExprId, u32)> = parts.collect();
                    let owner = owners.get(&ExprId::new(index)).copied();
                    owned.extend(owner);
                    Expr::Rule(writer.states(&written, &parts, owner, position)?)
                }
                other => other.clone(),
            };
            renamed.push(writer.builder.add(copy, position));
        }
        let Writer { builder, mut rules, .. } = writer;
        for (number, (rule, old)) in rules.iter_mut().zip(self.rules.iter()).enumerate() {
            if !owned.contains(&RuleId::new(number)) {
                rule.body = renamed[old.body.index()];
            }
            rule.lookahead = old.lookahead.map(|id| renamed[id.index()]);
        }
        Some(builder.finish(rules, self.root))
    }
}

/// A grammar that is being written.
struct Writer {
    builder: GrammarBuilder,
    rules: Vec<Rule>,
    names: HashSet<String>,
}

impl Writer {
    /// A rule whose body comes later.
    fn rule(&mut self, position: Position) -> RuleId {
        let id = RuleId::new(self.rules.len());
        let mut name = format!("state_{}", self.rules.len());
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        let options = RuleOptions::default();
        self.rules.push(Rule {
            name,
            options,
            body: ExprId::new(0),
            lookahead: None,
            position,
            is_common: false,
        });
        id
    }

    /// Adds rules for the states of an automaton that its start reaches; the rule of the start, which is
    /// `owner` where there is one. A state that one edge leads to and one edge leaves has none.
    fn states(
        &mut self,
        automaton: &ByteAutomaton,
        parts: &[(u32, ExprId, u32)],
        owner: Option<RuleId>,
        position: Position,
    ) -> Option<RuleId> {
        let edges = edges_of(automaton, parts)?;
        let mut entered: HashMap<u32, usize> = HashMap::new();
        for edge in edges.values().flatten() {
            *entered.entry(edge.to()).or_default() += 1;
        }
        let is_passed = |state: u32| {
            state != automaton.start
                && !automaton.finals[state as usize]
                && entered.get(&state) == Some(&1)
                && edges[&state].len() == 1
        };
        let mut numbers: HashMap<u32, RuleId> = HashMap::new();
        let start = owner.unwrap_or_else(|| self.rule(position));
        numbers.insert(automaton.start, start);
        let mut order = vec![automaton.start];
        let mut next = 0;
        while let Some(&state) = order.get(next) {
            next += 1;
            let mut alternatives: Vec<ExprId> = Vec::with_capacity(edges[&state].len() + 1);
            for edge in &edges[&state] {
                let mut read = vec![edge.clone()];
                let mut to = edge.to();
                while is_passed(to) {
                    let edge = &edges[&to][0];
                    read.push(edge.clone());
                    to = edge.to();
                }
                let mut sequence = self.read(&read, position);
                if !(automaton.finals[to as usize] && edges[&to].is_empty()) {
                    let rule = match numbers.get(&to) {
                        Some(&known) => known,
                        None => {
                            let rule = self.rule(position);
                            numbers.insert(to, rule);
                            order.push(to);
                            rule
                        }
                    };
                    sequence.push(self.builder.add(Expr::Rule(rule), position));
                }
                alternatives.push(match sequence.as_slice() {
                    [only] => *only,
                    _ => self.builder.add(Expr::Sequence(sequence.into()), position),
                });
            }
            if automaton.finals[state as usize] {
                alternatives.push(self.builder.add(Expr::Empty, position));
            }
            let body = match alternatives.as_slice() {
                // No text leads on from here.
                [] => self.builder.add(Expr::Class(CharSet::default()), position),
                [only] => *only,
                _ => self.builder.add(Expr::Choice(alternatives.into()), position),
            };
            self.rules[numbers[&state].index()].body = body;
        }
        Some(start)
    }

    /// What edges in a row read: single characters together, and nothing for an empty part.
    fn read(&mut self, edges: &[Edge], position: Position) -> Vec<ExprId> {
        let mut out: Vec<ExprId> = Vec::with_capacity(edges.len() + 1);
        let mut text = String::new();
        for edge in edges {
            let single = match edge {
                Edge::Characters(set, _) => match set.ranges() {
                    &[(first, last)] if first == last => char::from_u32(first),
                    _ => None,
                },
                Edge::Part(..) => None,
            };
            if let Some(character) = single {
                text.push(character);
                continue;
            }
            if !text.is_empty() {
                let literal = std::mem::take(&mut text).into_bytes().into();
                out.push(self.builder.add(Expr::Literal(literal), position));
            }
            match edge {
                Edge::Characters(set, _) => {
                    out.push(self.builder.add(Expr::Class(set.clone()), position));
                }
                Edge::Part(part, _) => {
                    if *self.builder.expr(*part) != Expr::Empty || edges.len() == 1 {
                        out.push(*part);
                    }
                }
            }
        }
        if !text.is_empty() {
            out.push(self.builder.add(Expr::Literal(text.into_bytes().into()), position));
        }
        if out.is_empty() {
            out.push(self.builder.add(Expr::Empty, position));
        }
        out
    }
}

/// The edges of the states that the start of an automaton reaches by whole characters and parts.
fn edges_of(
    automaton: &ByteAutomaton,
    parts: &[(u32, ExprId, u32)],
) -> Option<HashMap<u32, Vec<Edge>>> {
    let mut bytes: Vec<Vec<(u8, u8, u32)>> = vec![Vec::new(); automaton.finals.len()];
    for &(from, first, last, to) in automaton.bytes_in_full().iter() {
        bytes[from as usize].push((first, last, to));
    }
    let mut calls: Vec<Vec<(ExprId, u32)>> = vec![Vec::new(); automaton.finals.len()];
    for &(from, part, to) in parts {
        calls[from as usize].push((part, to));
    }
    let mut out: HashMap<u32, Vec<Edge>> = HashMap::new();
    let mut work = vec![automaton.start];
    while let Some(state) = work.pop() {
        if out.contains_key(&state) {
            continue;
        }
        let mut edges: Vec<Edge> = Vec::new();
        for (set, to) in characters(&bytes, state)? {
            edges.push(Edge::Characters(set, to));
        }
        edges.extend(calls[state as usize].iter().map(|&(part, to)| Edge::Part(part, to)));
        work.extend(edges.iter().map(Edge::to));
        out.insert(state, edges);
    }
    Some(out)
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
            guards: Box::default(),
            counts: None,
            counts_tokens: false,
            has_copies: false,
            fallback: 0,
        };
        let body = builder.add(Expr::Automaton(automaton), Position::default());
        let rule = Rule {
            name: "root".into(),
            options: RuleOptions::default(),
            body,
            lookahead: None,
            is_common: false,
            position: Position::default(),
        };
        let grammar = builder.finish(vec![rule], RuleId::new(0));
        let plain = grammar.without_automata().expect("UTF-8");
        assert!(grammar.has_automata() && !plain.has_automata());
        let text = crate::syntax::print(&plain);
        assert_eq!(text, "root ::= [a-c] root | \"\\u00e9\" | \"--\"\n");
    }
}
