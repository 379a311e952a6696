//! The way from a grammar to an engine, and the example of it.

use std::sync::Arc;
use tokfold_core::budget::Interrupt;
use tokfold_core::compile::{CompileOptions, Source, compile};
use tokfold_core::engine::{Engine, Representation};
use tokfold_core::error::{Error, Result};
use tokfold_core::limits::Limits;
use tokfold_core::syntax::parse;
use tokfold_core::vocabulary::Vocabulary;

#[path = "../../examples/decode.rs"]
#[allow(dead_code)]
mod decode;

#[test]
fn the_example_allows_what_the_grammar_does() {
    let (mut seen, mut script) = (Vec::new(), [0, 4, 5, 3, 1, 6].into_iter());
    let text = decode::decode(|allowed| {
        seen.push(allowed.to_vec());
        script.next().expect("the stop token ends the text")
    });
    assert_eq!(text.as_deref(), Ok("[down,up]"));
    let expected: [&[u32]; 6] = [&[0], &[1, 3, 4], &[5], &[3, 4], &[1, 2], &[6]];
    assert_eq!(seen, expected);
}

/// Compiles a grammar whose left recursion takes more states as loops than there may be.
fn compiled(representation: Representation, is_frame: bool) -> Result<Arc<Engine>> {
    let mut text = String::from("root ::= r0\n");
    for i in 0..6 {
        text += &format!("r{i} ::= \"{i}\"");
        (0..6).for_each(|j| text += &format!(" | r{j} \"{i}{j}\""));
        text += "\n";
    }
    let grammar = parse(&text, "root", &Limits::default())?;
    let mut options = CompileOptions::default();
    options.engine.representation = representation;
    options.network.limits.max_network_states = 200;
    let vocabulary = Vocabulary::new(b"ab".to_vec(), vec![0, 1, 2], &[], &[])?.into();
    let source = match is_frame {
        true => Source::Frame(&grammar, &|_, _| Ok(Vec::new())),
        false => Source::Grammar(&grammar),
    };
    compile(source, &vocabulary, &options, &Interrupt::default())
}

#[test]
fn only_who_needs_loops_is_refused_where_they_do_not_fit() {
    for representation in [Representation::Automatic, Representation::Chart] {
        let engine = compiled(representation, false).expect("charts need no loops");
        assert!(engine.network().is_for_charts());
    }
    let is_refused = |made: Result<Arc<Engine>>| matches!(made, Err(Error::Limit { .. }));
    assert!(is_refused(compiled(Representation::Stacks, false)));
    assert!(is_refused(compiled(Representation::Automatic, true)));
}
