//! Grammars that name stop tokens (`Token(id)` of one): the texts that can end there.
//!
//! Design: docs/design/whole-tokens.md, "Stop tokens that a grammar names".
//!
//! A stop token ends the text, so only what has the empty string can stand behind one that a text has. Of
//! each rule that names one there are two: the rule without it, and one of the texts that end at it, up to
//! there. What has to follow a stop token then has no text, and no mask leads to where it would be: that is
//! what becomes of the end of a message that must be followed by another.
//!
//! The stop token itself is no letter of these texts. A text is complete where it can end, and what may end
//! it there is what can be read behind it: a *mark*, the number of a token that no vocabulary has. A text
//! that may end with any stop token has the mark [`ANY_STOP`] behind it.

use super::Network;
use super::analysis::Analysis;
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Result};
use crate::grammar::{
    ANY_STOP, ByteAutomaton, CharSet, Expr, FIRST_MARK, Grammar, GrammarBuilder, Rule, WholeTokens,
};
use crate::ids::{ExprId, RuleId};
use crate::limits::Limits;
use std::collections::HashSet;

/// The grammar over the ids of a vocabulary of `size` tokens, of which `whole` says those that it may name;
/// `None` where it names none.
///
/// # Errors
/// Those of [`Grammar::with_tokens`]; [`Error::Unsupported`] where a stop token stands in what is kept with
/// sets or counts, or where no text can end; those of a bound.
pub fn over_ids<'a>(
    grammar: &Grammar,
    whole: impl FnOnce() -> WholeTokens<'a>,
    size: usize,
    limits: &Limits,
    work: &Budget,
) -> Result<Option<Grammar>> {
    let Some(over_ids) = grammar.with_tokens(whole, size)? else { return Ok(None) };
    let at_stops = ending_at_stops(&over_ids, limits, work)?;
    Ok(Some(at_stops.unwrap_or(over_ids)))
}

/// The grammar whose texts end at the stop tokens that it names; `None` where it names none.
fn ending_at_stops(grammar: &Grammar, limits: &Limits, work: &Budget) -> Result<Option<Grammar>> {
    let Some(first) = grammar.exprs().iter().position(|expr| mark_of(expr).is_some()) else {
        return Ok(None);
    };
    let position = grammar.position(ExprId::new(first));
    let named = mark_of(&grammar.exprs()[first]).unwrap_or_default();
    let grammar = grammar.with_dispatches(limits)?;
    let ticks = Ticks::new(work);
    let has_stop = HasStop::of(&grammar, work)?;
    let before = has_stop.rules.iter().scan(0, |before, &has_stop| {
        *before += usize::from(has_stop);
        Some(*before - usize::from(has_stop))
    });
    let mut ending = StopTokenRewrite {
        numbers: before.collect(),
        has_stop,
        nullable: Analysis::new(&grammar, &ticks)?.nullable_exprs,
        grammar: &grammar,
        builder: GrammarBuilder::new(),
        plain: Vec::new(),
        to_stop: Vec::new(),
        work,
    };
    if !ending.has_stop.rules[grammar.root().index()] {
        return Ok(None);
    }
    ending.add_exprs()?;
    let out = ending.finish();
    let is_productive = Analysis::new(&out, &ticks)?.productive;
    match is_productive[out.root().index()] {
        true => Ok(Some(out)),
        false => Err(Error::Unsupported {
            construct: "Token".into(),
            message: format!(
                "token {named} is a stop token, and more has to follow it in every text: let it stand \
                 last, or leave it out of the vocabulary's stop tokens"
            ),
            position,
        }),
    }
}

impl Network {
    /// Of some ids and marks whether any state reads them whole.
    pub(crate) fn names_ids(&self, ids: &[u32]) -> Vec<bool> {
        let Some(escape) = self.alphabet().escape() else { return vec![false; ids.len()] };
        let behind = |state: u32, class: u8| {
            self.edges(state).filter(move |edge| edge.0 == class).map(|edge| edge.1)
        };
        let mut begun: Vec<u32> =
            (0..self.len() as u32).flat_map(|state| behind(state, escape)).collect();
        begun.sort_unstable();
        begun.dedup();
        let reads = |id: &u32| {
            let mut level = begun.clone();
            for byte in id.to_be_bytes() {
                let class = self.alphabet().class(byte);
                level = level.into_iter().flat_map(|state| behind(state, class)).collect();
                level.sort_unstable();
                level.dedup();
            }
            !level.is_empty()
        };
        ids.iter().map(reads).collect()
    }
}

/// The first stop token of an expression that is a set of tokens.
fn mark_of(expr: &Expr) -> Option<u32> {
    let Expr::Tokens(ids) = expr else { return None };
    ids.iter().find(|ids| ids.1 >= FIRST_MARK).map(|ids| ids.0 & !FIRST_MARK)
}

/// Which expressions and rules have texts with a stop token.
struct HasStop {
    exprs: Vec<bool>,
    rules: Vec<bool>,
}

impl HasStop {
    fn of(grammar: &Grammar, work: &Budget) -> Result<Self> {
        let count = grammar.rules().len();
        let mut out = Self { exprs: Vec::new(), rules: vec![false; count] };
        // First the rules that hold a stop token themselves, then those that call them.
        out.read_exprs(grammar, work)?;
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut found = Vec::new();
        for (place, rule) in grammar.rules().iter().enumerate() {
            let callees = grammar.callees(rule, false);
            work.spend(1 + callees.len())?;
            callees.into_iter().for_each(|callee| callers[callee].push(place));
            if out.exprs[rule.body.index()] {
                found.push(place);
            }
        }
        while let Some(rule) = found.pop() {
            if !std::mem::replace(&mut out.rules[rule], true) {
                found.append(&mut callers[rule]);
            }
        }
        out.read_exprs(grammar, work)?;
        Ok(out)
    }

    /// Finds the expressions, as far as the rules are known.
    fn read_exprs(&mut self, grammar: &Grammar, work: &Budget) -> Result<()> {
        work.spend(grammar.exprs().len())?;
        self.exprs.clear();
        for expr in grammar.exprs() {
            let has = |id: &ExprId| self.exprs[id.index()];
            let has_stop = match expr {
                Expr::Sequence(parts) | Expr::Choice(parts) => parts.iter().any(has),
                Expr::Repeat { body, .. } => has(body),
                Expr::Automaton(automaton) => automaton.parts.iter().any(|part| has(&part.1)),
                Expr::Rule(rule) => self.rules[rule.index()],
                Expr::Macro(call) => call.rules().any(|rule| self.rules[rule.index()]),
                other => mark_of(other).is_some(),
            };
            self.exprs.push(has_stop);
        }
        Ok(())
    }
}

/// A grammar that is being written anew.
struct StopTokenRewrite<'a> {
    grammar: &'a Grammar,
    has_stop: HasStop,
    nullable: Vec<bool>,
    builder: GrammarBuilder,
    /// For each expression its texts without a stop token.
    plain: Vec<ExprId>,
    /// For each with a stop token the texts that end at one.
    to_stop: Vec<Option<ExprId>>,
    /// For each rule how many before it have a stop token.
    numbers: Vec<usize>,
    work: &'a Budget,
}

impl StopTokenRewrite<'_> {
    /// Adds what stands in place of each expression.
    fn add_exprs(&mut self) -> Result<()> {
        for place in 0..self.grammar.exprs().len() {
            self.work.spend(1)?;
            let id = ExprId::new(place);
            let to_stop = match self.has_stop.exprs[place] {
                true => Some(self.up_to_stop(id)?),
                false => None,
            };
            let plain = self.plain(id);
            self.to_stop.push(to_stop);
            self.plain.push(plain);
        }
        Ok(())
    }

    fn add(&mut self, expr: Expr, like: ExprId) -> ExprId {
        self.builder.add(expr, self.grammar.position(like))
    }

    /// One after the other, of any number of parts.
    fn sequence(&mut self, parts: Vec<ExprId>, like: ExprId) -> ExprId {
        match *parts {
            [] => self.add(Expr::Empty, like),
            [one] => one,
            _ => self.add(Expr::Sequence(parts.into()), like),
        }
    }

    /// One of some; nothing where there are none.
    fn choice(&mut self, parts: Vec<ExprId>, like: ExprId) -> ExprId {
        match *parts {
            [] => self.add(Expr::Class(CharSet::default()), like),
            [one] => one,
            _ => self.add(Expr::Choice(parts.into()), like),
        }
    }

    fn plain(&mut self, id: ExprId) -> ExprId {
        let new = |id: &ExprId| self.plain[id.index()];
        let expr = match self.grammar.expr(id) {
            Expr::Sequence(parts) => Expr::Sequence(parts.iter().map(new).collect()),
            Expr::Choice(parts) => Expr::Choice(parts.iter().map(new).collect()),
            &Expr::Repeat { ref body, min, max } => Expr::Repeat { body: new(body), min, max },
            Expr::Automaton(automaton) => {
                let parts = automaton.parts.iter().map(|&(p, part, q)| (p, new(&part), q));
                let parts = parts.collect();
                Expr::Automaton(ByteAutomaton { parts, ..automaton.clone() })
            }
            Expr::Tokens(ids) => {
                Expr::Tokens(ids.iter().copied().filter(|ids| ids.1 < FIRST_MARK).collect())
            }
            other => other.clone(),
        };
        self.add(expr, id)
    }

    /// The texts of an expression that end at a stop token.
    fn up_to_stop(&mut self, id: ExprId) -> Result<ExprId> {
        let grammar = self.grammar;
        match grammar.expr(id) {
            Expr::Tokens(ids) => {
                let marks = ids.iter().copied().filter(|ids| ids.1 >= FIRST_MARK).collect();
                Ok(self.may_end(marks, id))
            }
            Expr::Rule(rule) => {
                let rule = self.rule_to_stop(*rule);
                Ok(self.add(Expr::Rule(rule), id))
            }
            Expr::Choice(parts) => {
                let parts = parts.iter().filter_map(|part| self.to_stop[part.index()]).collect();
                Ok(self.choice(parts, id))
            }
            Expr::Sequence(parts) => {
                let mut ways = Vec::new();
                for (place, part) in parts.iter().enumerate().rev() {
                    if let Some(to_stop) = self.to_stop[part.index()] {
                        self.work.spend(place)?;
                        let before = parts[..place].iter().map(|part| self.plain[part.index()]);
                        let way = before.chain([to_stop]).collect();
                        ways.push(self.sequence(way, id));
                    }
                    if !self.nullable[part.index()] {
                        break;
                    }
                }
                Ok(self.choice(ways, id))
            }
            &Expr::Repeat { body, min, max } => {
                let (plain, to_stop) = (self.plain[body.index()], self.to_stop[body.index()]);
                let Some(to_stop) = to_stop.filter(|_| max != Some(0)) else {
                    return Ok(self.choice(Vec::new(), id));
                };
                // Those behind the last one have the empty string, or there are none.
                let min = if self.nullable[body.index()] { 0 } else { min.saturating_sub(1) };
                let max = max.map(|max| max - 1);
                let before = self.add(Expr::Repeat { body: plain, min, max }, id);
                Ok(self.sequence(vec![before, to_stop], id))
            }
            Expr::Automaton(automaton) => self.automaton_to_stop(automaton, id),
            Expr::Macro(call) => Err(self.refused(id, &call.name)),
            Expr::Empty | Expr::Literal(_) | Expr::Class(_) => Ok(self.choice(Vec::new(), id)),
        }
    }

    /// The empty string, behind which some marks can be read.
    fn may_end(&mut self, marks: Box<[(u32, u32)]>, like: ExprId) -> ExprId {
        let marks = self.add(Expr::Tokens(marks), like);
        let empty = self.add(Expr::Empty, like);
        self.choice(vec![empty, marks], like)
    }

    fn automaton_to_stop(&mut self, automaton: &ByteAutomaton, id: ExprId) -> Result<ExprId> {
        if !automaton.guards.is_empty() || automaton.counts.is_some() {
            return Err(self.refused(id, "what is counted, or stands in any order"));
        }
        // Where it can stop without another byte.
        self.work.spend(automaton.size())?;
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); automaton.finals.len()];
        for &(from, part, to) in &automaton.parts {
            if self.nullable[part.index()] {
                before[to as usize].push(from);
            }
        }
        let mut may_stop = vec![false; automaton.finals.len()];
        let mut work = automaton.ends();
        while let Some(state) = work.pop() {
            if !std::mem::replace(&mut may_stop[state as usize], true) {
                work.append(&mut before[state as usize]);
            }
        }
        let last = automaton.finals.len() as u32;
        let mut parts = Vec::new();
        for &(from, part, to) in &automaton.parts {
            parts.push((from, self.plain[part.index()], to));
            if let Some(part) = self.to_stop[part.index()].filter(|_| may_stop[to as usize]) {
                parts.push((from, part, last));
            }
        }
        parts.sort_unstable_by_key(|&(from, part, to)| (part, from, to));
        parts.dedup();
        let mut finals = vec![false; last as usize + 1];
        finals[last as usize] = true;
        let to_stop = ByteAutomaton {
            start: automaton.start,
            finals: finals.into(),
            bytes: automaton.bytes_in_full().into(),
            parts: parts.into(),
            fallback: automaton.start,
            ..ByteAutomaton::default()
        };
        Ok(self.add(Expr::Automaton(to_stop), id))
    }

    fn refused(&self, id: ExprId, what: &str) -> Error {
        Error::Unsupported {
            construct: "Token".into(),
            message: format!(
                "a stop token stands within {what}, where texts are not cut; leave it out of the \
                 vocabulary's stop tokens, or write the rules without {what}"
            ),
            position: self.grammar.position(id),
        }
    }

    /// The rule of the texts of another that end at a stop token: those come behind all others.
    fn rule_to_stop(&self, rule: RuleId) -> RuleId {
        RuleId::new(self.has_stop.rules.len() + self.numbers[rule.index()])
    }

    /// The grammar: its rules without stop tokens, then those to a stop token, then the root.
    fn finish(mut self) -> Grammar {
        let grammar = self.grammar;
        let mut rules: Vec<Rule> = Vec::new();
        for (rule, &has_stop) in grammar.rules().iter().zip(&self.has_stop.rules) {
            let lookahead = rule.lookahead.map(|id| self.plain[id.index()]);
            let is_common = rule.is_common && !has_stop;
            let body = self.plain[rule.body.index()];
            rules.push(Rule { body, lookahead, is_common, ..rule.clone() });
        }
        let mut names: HashSet<String> = rules.iter().map(|rule| rule.name.clone()).collect();
        let mut named = |rule: &Rule| {
            let mut name = format!("{}_to_stop", rule.name);
            while !names.insert(name.clone()) {
                name.push('_');
            }
            name
        };
        for rule in grammar.rules() {
            let Some(body) = self.to_stop[rule.body.index()] else { continue };
            let name = named(rule);
            rules.push(Rule { name, body, lookahead: None, is_common: false, ..rule.clone() });
        }
        let root = grammar.rule(grammar.root());
        let like = root.body;
        let plain = self.add(Expr::Rule(grammar.root()), like);
        let end = self.may_end([(ANY_STOP, ANY_STOP)].into(), like);
        let plain = self.sequence(vec![plain, end], like);
        let to_stop = Expr::Rule(self.rule_to_stop(grammar.root()));
        let to_stop = self.add(to_stop, like);
        let body = self.choice(vec![plain, to_stop], like);
        let name = named(root);
        rules.push(Rule { name, body, lookahead: None, is_common: false, ..root.clone() });
        let root = RuleId::new(rules.len() - 1);
        self.builder.finish(rules, root)
    }
}
