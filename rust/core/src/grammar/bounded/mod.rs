//! Rules of at most so many characters, and rules that end as soon as they can: `max_chars` and `lazy`.
//!
//! Design: docs/design/counting.md, "Rules of at most so many characters".
//!
//! The texts of a rule with `max_chars` are those of its body that have at most so many characters. A
//! character is a byte that is no continuation byte of UTF-8, with the continuation bytes behind it;
//! continuation bytes at the beginning of the text count as one. The texts of a lazy rule are those of its
//! body that do not begin with a shorter one. Where the body is regular, so is the rule. With `max_chars` it
//! becomes an automaton that counts its passes, a pass for each character: its cost does not grow with the
//! bound.
//!
//! With `max_tokens` the tokens are counted that begin within the text of a rule. Behind so many of them the
//! text goes on to its nearest end. The rule becomes an automaton over bytes that counts tokens; with a bound
//! of 0 it has the shortest texts alone.
//!
//! - [`language`]: the texts of a rule as an automaton over bytes
//! - [`characters`]: such an automaton as passes of one character, or byte, each

mod characters;
mod language;
#[cfg(test)]
mod tests;

use self::characters::{Pass, PassGraph};
use self::language::{ByteLanguage, RuleLanguage};
use super::{ByteAutomaton, CharSet, Expr, Grammar, GrammarBuilder, Rule, RuleOptions, WITHIN};
use crate::budget::Budget;
use crate::error::{Error, Position, Result};
use crate::ids::{ExprId, RuleId};
use rustc_hash::FxHashMap;

/// Whether a byte goes on with the character of the byte before.
fn continues(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

impl Grammar {
    /// Whether some rule has the option `max_chars`, `max_tokens` or `lazy`.
    pub fn has_bounded_rules(&self) -> bool {
        self.rules.iter().any(|rule| rule.options.is_bounded())
    }

    /// Replaces the body of each rule with `max_chars`, `max_tokens` or `lazy` by an automaton of the texts that
    /// the option leaves. All rules keep their names and numbers; the rules that the automata call are appended.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the body of such a rule is not regular, takes tokens whole or has a macro
    /// that no automaton has replaced, or where all its texts are longer; [`Error::Limit`]
    /// `max_automaton_states`; those of the budget.
    pub fn with_bounded_rules(&self, max_states: usize, work: &Budget) -> Result<Grammar> {
        if !self.has_bounded_rules() {
            return Ok(self.clone());
        }
        let mut out = Bounded::new(self);
        // What the root does not reach is not looked at, as it is not refused either.
        let mut is_met = vec![false; self.rules.len()];
        let mut todo = vec![self.root.index()];
        while let Some(number) = todo.pop() {
            if std::mem::replace(&mut is_met[number], true) {
                continue;
            }
            work.spend(1)?;
            let rule = RuleId::new(number);
            todo.extend(self.callees(self.rule(rule), false));
            if self.rule(rule).options.is_bounded() {
                let language = out.language(rule, max_states, work)?;
                out.replace(rule, &language, work)?;
            }
        }
        Ok(out.builder.finish(out.rules, self.root))
    }
}

/// A grammar whose rules are being replaced.
struct Bounded<'a> {
    grammar: &'a Grammar,
    builder: GrammarBuilder,
    rules: Vec<Rule>,
    /// The texts of the bodies of rules with a bound.
    languages: FxHashMap<RuleId, ByteLanguage>,
}

impl<'a> Bounded<'a> {
    fn new(grammar: &'a Grammar) -> Self {
        let mut builder = GrammarBuilder::new();
        for (expr, &position) in grammar.exprs.iter().zip(&grammar.positions) {
            builder.add(expr.clone(), position);
        }
        let rules = grammar.rules.to_vec();
        Self { grammar, builder, rules, languages: FxHashMap::default() }
    }

    /// The texts of a rule, whatever their length; those of the rules that it has to know come first.
    fn language(&mut self, rule: RuleId, max_states: usize, work: &Budget) -> Result<ByteLanguage> {
        let mut open = vec![rule];
        while let Some(&last) = open.last() {
            if !self.languages.contains_key(&last) {
                match ByteLanguage::of(self.grammar, last, &self.languages, max_states, work)? {
                    RuleLanguage::Language(found) => {
                        self.languages.insert(last, found);
                    }
                    RuleLanguage::Needs(inner) if open.contains(&inner) => {
                        return Err(language::refused(self.grammar, inner, "it calls itself"));
                    }
                    RuleLanguage::Needs(inner) => {
                        open.push(inner);
                        continue;
                    }
                }
            }
            open.pop();
        }
        Ok(self.languages[&rule].clone())
    }

    /// Puts a rule's texts, of at most so many characters, in the place of its body.
    fn replace(&mut self, rule: RuleId, language: &ByteLanguage, work: &Budget) -> Result<()> {
        let Rule { ref name, position, ref options, .. } = *self.grammar.rule(rule);
        let replaced = &mut self.rules[rule.index()].options;
        (replaced.max_chars, replaced.max_tokens, replaced.lazy) = (None, None, false);
        let (pass, most) = match (options.max_chars, options.max_tokens) {
            (None, None) => {
                self.rules[rule.index()].body = self.uncounted(language, position, work)?;
                return Ok(());
            }
            (None, Some(0)) => {
                let shortest = language.shortest(work)?;
                self.rules[rule.index()].body = self.uncounted(&shortest, position, work)?;
                return Ok(());
            }
            (Some(most), None) => (Pass::Character, most),
            (None, Some(most)) => (Pass::Byte, most),
            (Some(_), Some(_)) => {
                let why = "it has both max_tokens and max_chars, of which one is counted";
                return Err(language::refused(self.grammar, rule, why));
            }
        };
        if pass == Pass::Byte && !language.automaton.is_deterministic() {
            let why = "no automaton of moderate size tells its nearest end";
            return Err(language::refused(self.grammar, rule, why));
        }
        let passes = PassGraph::of(&language.automaton, pass, work)?;
        let counted = match passes.shortest {
            Some(shortest) if pass == Pass::Byte || shortest <= most => {
                Some(self.counted(name, position, &passes, (pass, most)))
            }
            Some(shortest) if !language.has_empty => {
                let message = format!(
                    "rule {name:?}: its shortest text has {shortest} characters, and max_chars allows \
                     {most}; raise the bound, or leave the rule out"
                );
                return Err(Error::Unsupported {
                    construct: "max_chars".into(),
                    message,
                    position,
                });
            }
            _ => None,
        };
        let body = match (counted, language.has_empty) {
            (Some(counted), false) => counted,
            (Some(counted), true) => {
                let counted = self.rule(name, "within", counted, position);
                let empty = self.builder.add(Expr::Empty, position);
                let counted = self.builder.add(Expr::Rule(counted), position);
                self.builder.add(Expr::Choice([empty, counted].into()), position)
            }
            (None, true) => self.builder.add(Expr::Empty, position),
            // The body has no text: nor has a set of no characters.
            (None, false) => self.builder.add(Expr::Class(CharSet::default()), position),
        };
        self.rules[rule.index()].body = body;
        Ok(())
    }

    /// The automaton of all texts.
    fn uncounted(
        &mut self,
        language: &ByteLanguage,
        position: Position,
        work: &Budget,
    ) -> Result<ExprId> {
        let ByteLanguage { automaton, has_empty } = language;
        work.spend(automaton.num_edges())?;
        let mut bytes = Vec::new();
        let mut finals = Vec::with_capacity(automaton.len());
        for state in 0..automaton.len() as u32 {
            finals.push(automaton.is_final(state));
            let edges = automaton.edges_in_full(state);
            bytes.extend(edges.map(|(byte, to)| (state, byte as u8, byte as u8, to)));
        }
        let (finals, bytes) = (finals.into(), bytes.into());
        let automaton = ByteAutomaton { finals, bytes, ..ByteAutomaton::default() };
        let body = self.builder.add(Expr::Automaton(automaton), position);
        if !has_empty {
            return Ok(body);
        }
        let empty = self.builder.add(Expr::Empty, position);
        Ok(self.builder.add(Expr::Choice([empty, body].into()), position))
    }

    /// The automaton that counts; each kind of pass is a rule. What one kind of pass makes up is a
    /// repetition, whose masks take one walk for all counts.
    fn counted(
        &mut self,
        name: &str,
        position: Position,
        passes: &PassGraph,
        (pass, most): (Pass, u32),
    ) -> ExprId {
        let what = if pass == Pass::Character { "character" } else { "byte" };
        let parts = passes.kinds.iter().map(|kind| {
            let automaton = ByteAutomaton {
                finals: (0..kind.states).map(|state| state == kind.end).collect(),
                bytes: kind.bytes.clone().into(),
                ..ByteAutomaton::default()
            };
            let body = self.builder.add(Expr::Automaton(automaton), position);
            let called = self.rule(name, what, body, position);
            self.builder.add(Expr::Rule(called), position)
        });
        let parts: Vec<ExprId> = parts.collect();
        if pass == Pass::Character && passes.is_repetition() {
            let repetition = Expr::Repeat { body: parts[0], min: 1, max: Some(most) };
            return self.builder.add(repetition, position);
        }
        let edges = passes.edges.iter().map(|&(from, kind, to)| (from, parts[kind as usize], to));
        let mut edges: Vec<(u32, ExprId, u32)> = edges.collect();
        edges.sort_unstable_by_key(|&(from, part, to)| (part, from, to));
        let automaton = ByteAutomaton {
            finals: passes.finals.clone().into(),
            parts: edges.into(),
            counts: Some((u32::from(pass == Pass::Character), Some(most))),
            counts_tokens: pass == Pass::Byte,
            has_copies: false,
            ..ByteAutomaton::default()
        };
        self.builder.add(Expr::Automaton(automaton), position)
    }

    /// Adds a rule that is a part of another.
    fn rule(&mut self, of: &str, what: &str, body: ExprId, position: Position) -> RuleId {
        let name = format!("{of}{WITHIN}{what} {}", self.rules.len());
        let id = RuleId::new(self.rules.len());
        self.rules.push(Rule {
            name,
            options: RuleOptions::default(),
            body,
            lookahead: None,
            position,
            is_common: false,
        });
        id
    }
}
