//! Which stop tokens may end a text: all of them, but where the grammar names some of them.

use crate::budget::{Halt, Interrupt};
use crate::engine::Matcher;
use crate::engine::history::{Family, Stand};
use crate::error::{Error, Result};
use crate::grammar::{ANY_STOP, FIRST_MARK};
use crate::network::Network;
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

    /// Tokens `a`, `b` and `ab`, and the stop tokens 3 and 4.
    fn matcher(text: &str) -> Matcher {
        let vocabulary =
            Vocabulary::new(b"abab<y></>".into(), vec![0, 1, 2, 4, 7, 10], &[3, 4], &[]);
        let vocabulary = vocabulary.expect("sound").into();
        let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
        let (options, none) = (CompileOptions::default(), Interrupt::default());
        let engine = compile(&grammar, &vocabulary, &options, &none).expect("an engine");
        Matcher::new(engine, StopRule::default()).expect("its own stop tokens")
    }

    /// The tokens that may come after some.
    fn allowed(text: &str, tokens: &[u32]) -> Vec<u32> {
        let (mut matcher, none) = (matcher(text), Interrupt::default());
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
            assert_eq!(allowed(text, tokens), expected, "{text} after {tokens:?}");
        }
    }
}
