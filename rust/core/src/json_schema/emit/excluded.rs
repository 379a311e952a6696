//! Strings and names in which some texts do not occur, as they are written.

use super::Emitter;
use crate::error::{Error, Result, SchemaFault};
use crate::grammar::{ByteAutomaton, Expr, Grammar};
use crate::ids::ExprId;
use crate::json_schema::converter::Converter;
use crate::json_schema::scalars::StringForm;
use crate::regular::{Dfa, Spelling, encode, excluding, occurs_in};

impl Emitter<'_, '_> {
    /// Whether a text that is excluded occurs in another.
    pub(super) fn is_excluded(&self, written: &[u8]) -> bool {
        let excludes: Vec<&[u8]> =
            self.options().excludes.iter().map(|one| one.as_bytes()).collect();
        occurs_in(written, &excludes)
    }

    /// The automaton of a string over its characters, and whether nothing but its length is asked.
    pub(super) fn language(&mut self, text: StringForm) -> Result<(Dfa, bool)> {
        let bounds = self.converter.bounds;
        Ok(match text {
            StringForm::Characters(min, max) => (Dfa::lengths(min, max, &bounds)?, true),
            StringForm::Listed(texts) => {
                (Dfa::texts(texts.iter().map(String::as_str), &bounds)?, false)
            }
            StringForm::Counted(automaton, min, max) => {
                let lengths = Dfa::lengths(min, max, &bounds)?;
                (automaton.intersection(&lengths, &bounds)?, false)
            }
            StringForm::Either(forms) => {
                let mut any = Dfa::nothing();
                for (_, form) in forms.iter() {
                    any = any.union(&self.language(form.clone())?.0, &bounds)?;
                }
                (any, false)
            }
            StringForm::Automaton(automaton) => (automaton, false),
            StringForm::Pattern(language) => (self.converter.automaton(language)?, false),
            StringForm::RegularExpression | StringForm::ExpressionWithin(_) => {
                return Err(self.expression_without());
            }
        })
    }

    pub(super) fn expression_without(&self) -> Error {
        let node = self.converter.expression.unwrap_or(self.converter.schemas.root());
        let message = "regular expressions are no regular language, so nothing can be excluded from \
                       them (the end of an element is, in styles other than JSON); leave the format \
                       out";
        self.converter.unsupported(node, "format", message.into())
    }

    /// The texts of an automaton as they are written, without those in which an excluded text or
    /// one of `more` occurs.
    pub(super) fn encoded_without(
        &mut self,
        automaton: &Dfa,
        spelling: Spelling,
        more: &[&str],
    ) -> Result<ExprId> {
        let bounds = self.converter.bounds;
        let described = encode(automaton, spelling, &bounds)?;
        let excludes = self.options().excludes.iter().map(|one| &**one);
        let texts: Vec<&str> = excludes.chain(more.iter().copied()).collect();
        let described = excluding(&described, &texts, &bounds)?;
        Ok(self.described(described))
    }
}

impl Converter<'_> {
    /// Checks that some value can be written: what is excluded, or ends an element, may leave none.
    pub(super) fn check_has_text(&self, grammar: &Grammar) -> Result<()> {
        let mut exprs = vec![false; grammar.exprs().len()];
        let mut rules = vec![false; grammar.rules().len()];
        loop {
            self.bounds.budget.spend(grammar.size())?;
            for (number, expr) in grammar.exprs().iter().enumerate() {
                let has_text = |id: &ExprId| exprs[id.index()];
                exprs[number] = match expr {
                    Expr::Sequence(parts) => parts.iter().all(has_text),
                    Expr::Choice(parts) => parts.iter().any(has_text),
                    Expr::Repeat { body, min, .. } => *min == 0 || has_text(body),
                    Expr::Class(set) => !set.is_empty(),
                    Expr::Automaton(automaton) => ends(automaton, &exprs),
                    Expr::Rule(rule) => rules[rule.index()],
                    Expr::Empty | Expr::Literal(_) | Expr::Tokens(_) | Expr::Macro(_) => true,
                };
            }
            let mut has_changed = false;
            for (known, rule) in rules.iter_mut().zip(grammar.rules()) {
                has_changed |= exprs[rule.body.index()] && !*known;
                *known |= exprs[rule.body.index()];
            }
            if rules[grammar.root().index()] {
                return Ok(());
            }
            if !has_changed {
                if let (Some(most), true) =
                    (self.options.max_depth, self.options.excludes.is_empty())
                {
                    let message = format!(
                        "no value satisfies the schema within max_depth={most}: what it requires \
                         stands deeper; raise the option"
                    );
                    return Err(Error::Schema {
                        kind: SchemaFault::Unsatisfiable,
                        pointer: "#".into(),
                        keyword: String::new(),
                        message,
                    });
                }
                return Err(Error::Schema {
                    kind: SchemaFault::Unsatisfiable,
                    pointer: "#".into(),
                    keyword: String::new(),
                    message: "no value satisfies the schema and can be written: a name or string \
                              that it needs holds a text that is excluded, or the end of an \
                              element or of a string"
                        .into(),
                });
            }
        }
    }
}

/// Whether an automaton comes to an end by way of parts that have a text.
fn ends(automaton: &ByteAutomaton, has_text: &[bool]) -> bool {
    let mut next: Vec<Vec<u32>> = vec![Vec::new(); automaton.finals.len()];
    for &(from, _, _, to) in &automaton.bytes {
        next[from as usize].push(to);
    }
    for &(from, part, to) in automaton.parts.iter().filter(|edge| has_text[edge.1.index()]) {
        let _ = part;
        next[from as usize].push(to);
    }
    let mut seen = vec![false; next.len()];
    let mut work = vec![automaton.start];
    while let Some(state) = work.pop() {
        if std::mem::replace(&mut seen[state as usize], true) {
            continue;
        }
        if automaton.finals[state as usize] {
            return true;
        }
        work.extend(&next[state as usize]);
    }
    false
}
