//! What is written alike in a grammar: expressions, and rules that hold the same, before any
//! automaton is made. Converters write one rule for each place where a thing may stand, the same
//! rules again and again.

use crate::budget::{Budget, Ticks};
use crate::error::Result;
use crate::grammar::{ByteAutomaton, Expr, Grammar, Guard};
use crate::graph;
use crate::hash::{digest, hash_of};
use crate::ids::{ExprId, RuleId};
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

const UNKNOWN: u32 = u32::MAX;

/// Which expressions and rules say the same in the same words.
pub(crate) struct Shapes {
    of: Vec<u32>,
    first: Vec<RuleId>,
}

impl Shapes {
    /// Of the rules that are needed, which are looked at after those that they call: where the
    /// callees say the same, so do callers that are written alike. Rules that call each other are
    /// themselves, to each other. Without `merge` each rule is itself alone.
    ///
    /// # Errors
    /// Those of [`Budget::spend`].
    pub(crate) fn new(
        grammar: &Grammar,
        needed: &[bool],
        merge: bool,
        work: &Budget,
    ) -> Result<Self> {
        let rules = grammar.rules().len();
        let ticks = Ticks::new(work);
        let mut held = Held { starts: Vec::with_capacity(rules + 1), exprs: Vec::new() };
        for (rule, &needed) in needed.iter().enumerate() {
            held.starts.push(held.exprs.len());
            ticks.step()?;
            if needed {
                held.add(grammar, RuleId::new(rule), &ticks)?;
            }
        }
        held.starts.push(held.exprs.len());
        let held = &held;
        let callees = |rule: usize| {
            let callee = |&id: &ExprId| match grammar.expr(id) {
                Expr::Rule(callee) => Some(callee.index()),
                _ => None,
            };
            let mut callees: Vec<usize> = held.of(rule).iter().filter_map(callee).collect();
            callees.sort_unstable();
            callees.dedup();
            ticks.steps(1 + held.of(rule).len())?;
            Ok(callees)
        };
        // Guards go by the rule that is called: such a rule is equal to none.
        work.tick()?;
        let guarded = grammar.called_with_guards();
        work.tick()?;
        let mut of = vec![UNKNOWN; grammar.exprs().len()];
        // The first rule that was met with the same body, and at last the one of the least number.
        let mut same: Vec<u32> = (0..rules as u32).collect();
        // Tables that grow are written anew as a whole, which nobody can end.
        let mut keys =
            ShapeKeys { table: HashTable::with_capacity(held.exprs.len()), ..ShapeKeys::default() };
        let mut met: FxHashMap<u32, u32> =
            FxHashMap::with_capacity_and_hasher(rules, Default::default());
        work.tick()?;
        for component in
            graph::components_within(rules, |steps| ticks.steps(steps), callees)?.iter()
        {
            ticks.step()?;
            for &id in component.iter().flat_map(|&rule| held.of(rule)) {
                keys.begin(grammar.expr(id), id, |child| of[child.index()], &same);
                work.spend(2 + keys.key.len() / 4)?;
                of[id.index()] = keys.number();
            }
            let may_merge = |rule: usize| merge && needed[rule] && !guarded.contains(&rule);
            for &rule in component.iter().filter(|&&rule| may_merge(rule)) {
                let body = grammar.rule(RuleId::new(rule)).body;
                same[rule] = *met.entry(of[body.index()]).or_insert(rule as u32);
            }
        }
        let mut first = vec![UNKNOWN; rules];
        let first = same.iter().zip(0..).map(|(&met, rule)| {
            ticks.step()?;
            let first = &mut first[met as usize];
            *first = rule.min(*first);
            Ok(RuleId::new(*first as usize))
        });
        let first = first.collect::<Result<_>>()?;
        Ok(Self { of, first })
    }

    /// A number that expressions share that say the same.
    pub(crate) fn of(&self, expr: ExprId) -> u32 {
        self.of[expr.index()]
    }

    /// The first rule that says the same.
    pub(crate) fn first(&self, rule: RuleId) -> RuleId {
        self.first[rule.index()]
    }
}

/// The expressions that rules are made of, children before parents, rule by rule.
struct Held {
    starts: Vec<usize>,
    exprs: Vec<ExprId>,
}

impl Held {
    fn of(&self, rule: usize) -> &[ExprId] {
        &self.exprs[self.starts[rule]..self.starts[rule + 1]]
    }

    /// Adds those of a rule.
    fn add(&mut self, grammar: &Grammar, rule: RuleId, ticks: &Ticks) -> Result<()> {
        let out = &mut self.exprs;
        let from = out.len();
        out.push(grammar.rule(rule).body);
        let mut next = from;
        while let Some(&id) = out.get(next) {
            next += 1;
            let before = out.len();
            match grammar.expr(id) {
                Expr::Sequence(children) | Expr::Choice(children) => out.extend(children),
                Expr::Repeat { body, .. } => out.push(*body),
                // Edges with one part stand together.
                Expr::Automaton(automaton) => {
                    let parts = automaton.parts.chunk_by(|a, b| a.1 == b.1);
                    out.extend(parts.map(|edges| edges[0].1));
                }
                _ => {}
            }
            ticks.steps(1 + out.len() - before)?;
        }
        out[from..].sort_unstable();
        let mut kept = from;
        for index in from..out.len() {
            if index == from || out[index] != out[kept - 1] {
                out[kept] = out[index];
                kept += 1;
            }
        }
        out.truncate(kept);
        Ok(())
    }
}

/// Literals of more bytes are told apart by their digests.
const LONG_LITERAL: usize = 1 << 12;

/// Numbers of distinct keys.
#[derive(Default)]
struct ShapeKeys {
    words: Vec<u32>,
    ends: Vec<u32>,
    table: HashTable<u32>,
    key: Vec<u32>,
}

impl ShapeKeys {
    /// Writes the key of an expression, whose children have their shapes.
    fn begin(&mut self, expr: &Expr, id: ExprId, of: impl Fn(ExprId) -> u32, same: &[u32]) {
        let key = &mut self.key;
        key.clear();
        match expr {
            Expr::Empty => key.push(0),
            Expr::Literal(bytes) if bytes.len() > LONG_LITERAL => {
                let digest = digest(bytes);
                let words = digest
                    .chunks(4)
                    .map(|word| word.iter().fold(0, |word, &byte| word << 8 | u32::from(byte)));
                key.push(10);
                key.extend(words);
            }
            Expr::Literal(bytes) => {
                // Four bytes to a word: the length tells how many are in the last.
                key.extend([1, bytes.len() as u32]);
                key.extend(
                    bytes
                        .chunks(4)
                        .map(|part| part.iter().fold(0, |word, &byte| word << 8 | u32::from(byte))),
                );
            }
            Expr::Class(set) => {
                key.push(2);
                key.extend(set.ranges().iter().flat_map(|&(a, b)| [a, b]));
            }
            Expr::Rule(rule) => key.extend([3, same[rule.index()]]),
            Expr::Sequence(parts) => {
                key.push(4);
                key.extend(parts.iter().map(|&part| of(part)));
            }
            Expr::Choice(parts) => {
                key.push(5);
                key.extend(parts.iter().map(|&part| of(part)));
            }
            Expr::Repeat { body, min, max } => {
                key.extend([6, of(*body), *min, u32::from(max.is_some()), max.unwrap_or(0)]);
            }
            // Refused before it is lowered; equal to itself only.
            Expr::Macro(_) => key.extend([7, id.0]),
            Expr::Automaton(automaton) => write_automaton(automaton, of, key),
            Expr::Tokens(ids) => {
                key.push(9);
                key.extend(ids.iter().flat_map(|&(a, b)| [a, b]));
            }
        }
    }

    fn of(&self, number: u32) -> &[u32] {
        let number = number as usize;
        let from = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.words[from..self.ends[number] as usize]
    }

    /// The number of the key that was written.
    fn number(&mut self) -> u32 {
        let hash = hash_of(&self.key);
        if let Some(&known) = self.table.find(hash, |&known| self.of(known) == self.key) {
            return known;
        }
        let number = self.ends.len() as u32;
        self.words.extend_from_slice(&self.key);
        self.ends.push(self.words.len() as u32);
        let Self { words, ends, table, .. } = self;
        table.insert_unique(hash, number, |&known| {
            let known = known as usize;
            let from = if known == 0 { 0 } else { ends[known - 1] as usize };
            hash_of(&words[from..ends[known] as usize])
        });
        number
    }
}

/// Equal for automata that are equal but for the ids of equal parts.
fn write_automaton(automaton: &ByteAutomaton, of: impl Fn(ExprId) -> u32, key: &mut Vec<u32>) {
    key.reserve(4 + automaton.finals.len() + 4 * automaton.size());
    key.extend([8, automaton.start, automaton.finals.len() as u32, automaton.parts.len() as u32]);
    key.extend(automaton.finals.iter().map(|&is_final| u32::from(is_final)));
    key.push(automaton.bytes.len() as u32);
    for &(from, first, last, to) in &automaton.bytes {
        key.extend([from, u32::from(first) << 8 | u32::from(last), to]);
    }
    key.extend([automaton.falls_back.len() as u32, automaton.fallback]);
    let (min, max) = automaton.counts.unwrap_or_default();
    let kind = u32::from(automaton.counts.is_some())
        | u32::from(max.is_some()) << 1
        | u32::from(automaton.counts_tokens) << 2
        | u32::from(automaton.has_copies) << 3;
    key.extend([kind, min, max.unwrap_or(0)]);
    key.extend(automaton.falls_back.iter().map(|&falls_back| u32::from(falls_back)));
    for &(from, part, to) in &automaton.parts {
        key.extend([from, of(part), to]);
    }
    // Behind the edges, whose parts are numbered from 0, for each guard three words and its members.
    for (rule, guard) in &automaton.guards {
        let items;
        let (kind, members) = match guard {
            Guard::Adds(member) => (0, std::slice::from_ref(member)),
            Guard::Needs(members) => (1, &**members),
            Guard::Unique(unique) => {
                items = unique.key();
                (2, &items[..])
            }
        };
        key.extend([kind, rule.index() as u32, members.len() as u32]);
        key.extend(members);
    }
}
