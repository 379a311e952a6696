//! Findings that are not mended yet; each test becomes one of the core with its mending.
//!
//! `cargo test --manifest-path rust/fuzz/Cargo.toml --test known -- --ignored`

use std::sync::Arc;
use tokfold_core::engine::{Engine, Matcher, Pool, StopRule};
use tokfold_core::network::{Network, NetworkOptions};
use tokfold_core::syntax::parse;
use tokfold_core::vocabulary::Vocabulary;

/// A forged state that names an end, which no stack holds: all passes of a counted repetition are
/// done. `restore` takes it, and a mask through a pool panics in `network/identity.rs`, since
/// nothing has described the body of the repetition.
#[test]
#[ignore = "restore is to refuse states that do not stay on stacks"]
fn a_state_with_an_end_is_refused() {
    let text = r#"root ::= [^"\\]{0,20} "\"" root?"#;
    let grammar = parse(text, "root", &Default::default()).expect("grammar text");
    let options = NetworkOptions { counters: true, ..Default::default() };
    let network = Arc::new(Network::new(&grammar, &options).expect("a network"));
    let (blob, offsets) = (b"ab\"ab".to_vec(), vec![0, 1, 2, 3, 5]);
    let vocabulary = Arc::new(Vocabulary::new(blob, offsets, &[], &[]).expect("a vocabulary"));
    let pool = Some(Arc::new(Pool::new(20_000, 0)));
    let make = Engine::new(network.clone(), vocabulary, Arc::default(), pool, Default::default());
    let engine = Arc::new(make);
    // A repetition that counts has states past the listed ones: one for each number of passes.
    let end = network.len() as u32 + 20;
    assert!(network.is_state(end) && !network.stays(end), "another state is needed");
    let mut matcher = Matcher::new(engine, StopRule::default()).expect("stop tokens");
    let restored = matcher.restore(&[0, 1, u32::MAX, 0, 1, end, 0]);
    let filled = matcher.fill(&mut [0]); // panics
    assert!(restored.is_err() && filled.is_ok());
}
