//! Decodes a text under a grammar: `cargo run --example decode`.
//!
//! The steps are those of every server: compile once for a grammar and a vocabulary, then for each
//! token make the mask, choose an allowed token, accept it.

use tokfold_core::budget::Interrupt;
use tokfold_core::compile::{CompileOptions, compile};
use tokfold_core::engine::{Accept, Matcher, SharedVocabulary, StopRule};
use tokfold_core::error::Result;
use tokfold_core::limits::Limits;
use tokfold_core::mask::words;
use tokfold_core::syntax;
use tokfold_core::vocabulary::Vocabulary;

const GRAMMAR: &str = r#"root ::= "[" (word ("," word)*)? "]"
word ::= "up" | "down""#;
const TOKENS: [&str; 7] = ["[", "]", ",", "up", "do", "wn,", "</s>"];
const STOP: u32 = 6;

fn main() -> Result<()> {
    // A model would look at its logits; here the allowed token with the highest number is taken.
    let mut left = 12;
    let text = decode(|allowed| {
        left -= 1;
        if left > 0 { allowed[allowed.len() - 1] } else { allowed[0] }
    })?;
    println!("{text}");
    Ok(())
}

/// The text of the tokens that `choose` takes of those that the grammar allows.
pub(crate) fn decode(mut choose: impl FnMut(&[u32]) -> u32) -> Result<String> {
    let interrupt = Interrupt::default();
    let ends = TOKENS.iter().scan(0, |end, token| {
        *end += token.len() as u32;
        Some(*end)
    });
    let offsets = [0].into_iter().chain(ends).collect();
    let vocabulary = Vocabulary::new(TOKENS.concat().into_bytes(), offsets, &[STOP], &[])?;
    let vocabulary = SharedVocabulary::from(vocabulary);

    let grammar = syntax::parse(GRAMMAR, "root", &Limits::default())?;
    let engine = compile(&grammar, &vocabulary, &CompileOptions::default(), &interrupt)?;
    let mut matcher = Matcher::new(engine, StopRule::default())?;

    let mut mask = vec![0; words(vocabulary.len())];
    let mut text = String::new();
    loop {
        matcher.fill(&mut mask, &interrupt)?;
        let is_allowed = |id: &u32| mask[*id as usize / 32] >> (id % 32) & 1 == 1;
        let allowed: Vec<u32> = (0..vocabulary.len() as u32).filter(is_allowed).collect();
        let token = choose(&allowed);
        assert_eq!(matcher.accept_token(token, &interrupt)?, Accept::Taken);
        if token == STOP {
            return Ok(text);
        }
        text += TOKENS[token as usize];
    }
}
