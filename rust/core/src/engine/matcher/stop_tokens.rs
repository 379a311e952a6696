//! Which stop tokens may end a text: where it is complete all of them, but under a grammar that names some of them. A
//! stop token of a matcher that is another token in the vocabulary may come too where it completes the text.

use crate::budget::{Halt, Interrupt};
use crate::engine::Matcher;
use crate::engine::history::{Family, Stand};
use crate::error::{Error, Result};
use crate::grammar::{ANY_STOP, FIRST_MARK};
use crate::network::{Network, contains};
use crate::vocabulary::Vocabulary;
use std::borrow::Cow;

/// The stop tokens that a grammar names, sorted; `None` where it names none.
pub(in crate::engine) fn named_stops(
    network: &Network,
    vocabulary: &Vocabulary,
) -> Option<Box<[u32]>> {
    let marks: Vec<u32> = vocabulary.stop_ids().iter().map(|id| FIRST_MARK | id).collect();
    let stops = vocabulary.stop_ids().iter().zip(network.names_ids(&marks));
    let named: Box<[u32]> = stops.filter(|(_, is_named)| *is_named).map(|(id, _)| *id).collect();
    if named.is_empty() { None } else { Some(named) }
}

impl Matcher {
    /// Refuses stop tokens of its own that leave out one with which the grammar ends texts: nothing would
    /// end those, but where texts end by themselves.
    ///
    /// # Errors
    /// [`Error::Vocabulary`].
    pub(super) fn refuse_unended(&self) -> Result<()> {
        let Some(named) = &self.engine.named_stops else { return Ok(()) };
        if self.stops.when_complete {
            return Ok(());
        }
        match named.iter().find(|&&id| !self.is_stop(id)) {
            None => Ok(()),
            Some(id) => Err(Error::Vocabulary(format!(
                "the grammar ends texts with the stop token {id}, which is none of the matcher's: \
                 add it to stop_token_ids"
            ))),
        }
    }

    /// The stop tokens that may come next.
    ///
    /// # Errors
    /// [`Error::Deadline`], [`Error::Cancelled`], and [`Error::Limit`] where the grammar names stop tokens.
    pub(in crate::engine) fn stops_at(
        &self,
        family: &Family,
        stand: Stand,
        interrupt: &Interrupt,
    ) -> Result<Cow<'_, [u32]>> {
        let mut stops = self.complete_stops_at(family, stand, interrupt)?;
        if self.engine.named_stops.is_some() || !family.accepts(stand) {
            for &id in self.stops.stop_ids.iter().flatten() {
                let completes = !stops.contains(&id)
                    && self
                        .completes(family, stand, id, interrupt)
                        .map_err(|halt| self.halted(halt, interrupt))?;
                if completes {
                    stops.to_mut().push(id);
                }
            }
        }
        Ok(stops)
    }

    /// The stop tokens that may come next behind a text that is complete.
    ///
    /// # Errors
    /// Those of [`Self::stops_at`].
    pub(super) fn complete_stops_at(
        &self,
        family: &Family,
        stand: Stand,
        interrupt: &Interrupt,
    ) -> Result<Cow<'_, [u32]>> {
        if !family.accepts(stand) {
            return Ok(Cow::Borrowed(&[]));
        }
        match &self.engine.named_stops {
            None => Ok(Cow::Borrowed(self.stop_ids())),
            Some(named) => self
                .named_stops_at(family, stand, named, interrupt)
                .map_err(|halt| self.halted(halt, interrupt)),
        }
    }

    /// [`Self::stops_at`] on a chart too: columns that are made to find out are forgotten again.
    ///
    /// # Errors
    /// Those of [`Self::stops_at`], and of an accept.
    pub(super) fn stops_at_any(
        &self,
        family: &mut Family,
        stand: Stand,
        interrupt: &Interrupt,
    ) -> Result<Cow<'_, [u32]>> {
        let mut stops = self.stops_at(family, stand, interrupt)?;
        if !matches!(stand, Stand::Chart(_)) || family.accepts(stand) {
            return Ok(stops);
        }
        let vocabulary = &self.engine.vocabulary;
        for &id in self.stops.stop_ids.iter().flatten().filter(|&&id| vocabulary.is_textual(id)) {
            let last = family.last_column();
            self.allow(family, interrupt);
            let after = self.advance_token(family, stand, id, interrupt);
            family.release();
            let completes = after.map(|after| after.is_some_and(|after| family.accepts(after)));
            family.forget_columns(last);
            if completes.map_err(|halt| self.halted(halt, interrupt))? {
                stops.to_mut().push(id);
            }
        }
        Ok(stops)
    }

    /// Whether a text on stacks is complete behind a token. Beside unique items nobody looks.
    fn completes(
        &self,
        family: &Family,
        stand: Stand,
        id: u32,
        interrupt: &Interrupt,
    ) -> std::result::Result<bool, Halt> {
        let vocabulary = &self.engine.vocabulary;
        let escape = self.engine.network.alphabet().escape();
        let whole = escape.filter(|_| vocabulary.is_whole(id)).map(|escape| (escape, id));
        let text = if vocabulary.is_textual(id) { vocabulary.bytes(id) } else { &[] };
        if whole.is_none() && text.is_empty() || self.engine.network.has_unique_items() {
            return Ok(false);
        }
        let next = family.next_classes(stand);
        let begins = |class: u8| contains(&next, class);
        let may_follow = whole.is_some_and(|(escape, _)| begins(escape))
            || text.first().is_some_and(|&first| begins(self.engine.class(first)));
        if !may_follow {
            return Ok(false);
        }
        match family.stacks_apart(stand, interrupt)? {
            Some(apart) => apart.ends_with_token(text, whole, family.counts_tokens),
            None => Ok(false), // on a chart
        }
    }

    /// The stop tokens that may come next, under a grammar that names stop tokens. The matcher reads the
    /// marks in a copy of the stacks, since other threads may read the tables of the family meanwhile.
    fn named_stops_at(
        &self,
        family: &Family,
        stand: Stand,
        named: &[u32],
        interrupt: &Interrupt,
    ) -> std::result::Result<Cow<'_, [u32]>, Halt> {
        // Charts do not take tokens whole.
        let Some(apart) = family.stacks_apart(stand, interrupt)? else {
            return Ok(Cow::Borrowed(self.stop_ids()));
        };
        let mut marks = apart.into_marks();
        if marks.can_follow(ANY_STOP)? {
            return Ok(Cow::Borrowed(self.stop_ids()));
        }
        let mut stops = Vec::new();
        for &id in named {
            if marks.can_follow(FIRST_MARK | id)? {
                stops.push(id);
            }
        }
        Ok(Cow::Owned(stops))
    }
}

#[cfg(test)]
mod tests {
    use crate::budget::Interrupt;
    use crate::compile::{CompileOptions, compile};
    use crate::engine::{Accept, Matcher, StopRule};
    use crate::limits::Limits;
    use crate::syntax::parse;
    use crate::vocabulary::Vocabulary;

    /// Tokens `a`, `b` and `ab`, and the stop tokens 3 and 4, or others.
    fn matcher(text: &str, stops: Option<&[u32]>) -> Matcher {
        let vocabulary =
            Vocabulary::new(b"abab<y></>".into(), vec![0, 1, 2, 4, 7, 10], &[3, 4], &[]);
        let vocabulary = vocabulary.expect("sound").into();
        let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
        let (options, none) = (CompileOptions::default(), Interrupt::default());
        let engine = compile(&grammar, &vocabulary, &options, &none).expect("an engine");
        let stops = StopRule { stop_ids: stops.map(<[u32]>::to_vec), ..StopRule::default() };
        Matcher::new(engine, stops).expect("stop tokens of the vocabulary")
    }

    /// The tokens that may come after some.
    fn allowed(text: &str, tokens: &[u32], stops: Option<&[u32]>) -> Vec<u32> {
        let (mut matcher, none) = (matcher(text, stops), Interrupt::default());
        for &token in tokens {
            assert_eq!(matcher.accept_token(token, &none), Ok(Accept::Taken), "{text}");
        }
        let mut row = [0];
        matcher.fill(&mut row, &none).expect("a mask");
        let found: Vec<u32> = (0..5).filter(|id| row[0] >> id & 1 == 1).collect();
        for id in 0..5 {
            let accept = matcher.fork().accept_token(id, &none);
            assert_eq!(accept == Ok(Accept::Taken), found.contains(&id), "{text}: {id}");
        }
        found
    }

    #[test]
    fn a_stop_token_comes_where_the_grammar_names_it() {
        for (text, tokens, expected) in [
            ("root ::= \"a\" Token(3)", &[0][..], &[3][..]),
            ("root ::= \"a\" Token(3)?", &[0], &[3, 4]),
            // Nothing comes behind it, so of what is repeated it ends the last.
            ("root ::= (\"a\" Token(3))* \"b\"*", &[], &[0, 1, 3, 4]),
            ("root ::= (\"a\" Token(3))* \"b\"*", &[0], &[3]),
            ("root ::= (\"a\" Token(3))* \"b\"*", &[1], &[1, 3, 4]),
            ("root ::= \"a\" Token(3) \"b\" | \"ab\" Token(4)", &[], &[0, 2]),
            ("root ::= \"a\" Token(3) \"b\" | \"ab\" Token(4)", &[2], &[4]),
            ("root ::= x x\nx ::= \"a\" | \"b\" Token(3, 4)", &[0], &[0, 1]),
            ("root ::= x x\nx ::= \"a\" | \"b\" Token(3, 4)", &[2], &[3, 4]),
        ] {
            assert_eq!(allowed(text, tokens, None), expected, "{text} after {tokens:?}");
        }
    }

    #[test]
    fn a_stop_token_of_a_matcher_comes_where_it_completes_the_text() {
        for (text, tokens, expected) in [
            ("root ::= \"ab\"", &[][..], &[0, 2][..]),
            ("root ::= \"abab\"", &[], &[0]),
            ("root ::= \"abab\"", &[0, 1], &[0, 2]),
            ("root ::= \"a\"* | \"aab\"", &[0], &[0, 2, 4]),
            ("root ::= \"a\" root \"b\" | \"b\"", &[0], &[0, 1]),
            ("root ::= \"a\" (Token(4) | \"ab\")", &[0], &[0, 2, 4]),
        ] {
            let found = allowed(text, tokens, Some(&[2, 4]));
            assert_eq!(found, expected, "{text} after {tokens:?}");
        }
        let (mut matcher, none) = (matcher("root ::= \"ab\"", Some(&[2])), Interrupt::default());
        assert_eq!(matcher.accept_token(2, &none), Ok(Accept::Taken));
        assert_eq!(matcher.is_terminated(&none), Ok(true));
        assert_eq!(matcher.is_accepting(&none), Ok(true));
        assert_eq!(matcher.rollback(1, &none), Ok(()));
        assert_eq!(matcher.is_accepting(&none), Ok(false));
    }
}
