//! Masks put together of answers against a walk with the stacks of the text.

use super::{Shortest, walk::EntryBits};
use crate::budget::Interrupt;
use crate::ending::Over;
use crate::engine::history::Stand;
use crate::engine::{Accept, Engine, EngineOptions, Matcher, Representation, StopRule};
use crate::limits::Limits;
use crate::network::{Network, NetworkOptions};
use crate::syntax;
use crate::vocabulary::Vocabulary;
use proptest::prelude::*;
use std::sync::Arc;

/// The right side of a rule: words, calls, repetitions with bounds, and wide loops.
fn body() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "\"a\"", "\"b\"", "\"(\"", "\".\"", "\"ab\"", "[ab]", "[^.]*", "x", "y", "z", "w",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} | {b})")),
            (inner.clone(), prop::sample::select(vec!["?", "*", "+"]))
                .prop_map(|(a, mark)| format!("({a}){mark}")),
            (inner, 0..3u32, 1..8u32)
                .prop_map(|(a, least, more)| { format!("({a}){{{least},{}}}", least + more) }),
        ]
    })
}

/// A token that ends a text; all words of at most three letters, and some long ones.
fn vocabulary(long: Vec<String>) -> Vocabulary {
    let mut words = vec![String::new()];
    for at in 0.. {
        let Some(word) = words.get(at).cloned() else { break };
        if word.len() < 3 {
            words.extend(["a", "b", "(", "."].map(|letter| word.clone() + letter));
        }
    }
    words.extend(long);
    words[0] = "</s>".into();
    let mut offsets = vec![0];
    for word in &words {
        offsets.push(offsets[offsets.len() - 1] + word.len() as u32);
    }
    Vocabulary::new(words.concat().into_bytes(), offsets, &[0], &[]).expect("a vocabulary")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn answers_say_what_the_stacks_say(
        bodies in [body(), body(), body(), body()],
        long in prop::collection::vec("[ab(.]{4,9}", 0..6),
        shares_wide in any::<bool>(),
        picks in prop::collection::vec((0..1_000usize, 0..6u32), 8),
    ) {
        let [root, x, y, z] = bodies;
        // Each rule ends, and calls go deep.
        let text = format!(
            "root ::= x y \".\" | {root}\nx ::= z \"a\" | {x}\ny ::= \"b\" | {y} \".\"\n\
             z ::= \"(\" x \".\" | \"a\" | ({z}) x \"b\"\n\
             w ::= [^.]* \".\" | \"(\" w w \")\"\n"
        );
        let Ok(grammar) = syntax::parse(&text, "root", &Limits::default()) else {
            return Ok(());
        };
        let share_wide = shares_wide.then_some(80);
        let options =
            NetworkOptions { inline_budget: 0, share_wide, ..NetworkOptions::default() };
        let Ok(network) = Network::new(&grammar, &options) else { return Ok(()) };
        let representation = Representation::Stacks;
        let options = EngineOptions { representation, ..EngineOptions::default() };
        let vocabulary = vocabulary(long).into();
        let engine = Engine::new(Arc::new(network), &vocabulary, &options).expect("stacks");
        let engine = Arc::new(engine);
        let interrupt = Interrupt::default();
        let trie = engine.plain().trie.clone();
        let size = vocabulary.len().div_ceil(32);
        // Two matchers, so that the second one reads what the first one had made.
        for _ in 0..2 {
            let mut matcher =
                Matcher::new(engine.clone(), StopRule::default()).expect("a start");
            for &(pick, spare) in &picks {
                // Nested repetitions may take more than a mask may.
                let Ok(Shortest { tokens: Some(least), .. }) = matcher.shortest(&interrupt) else {
                    break;
                };
                let mut family = matcher.family.write();
                let Stand::Stacks(set) = family.step(matcher.at).stand else {
                    return Err(TestCaseError::fail("stacks alone"));
                };
                for most in least.saturating_sub(2)..least + spare {
                    let (mut walked, mut answered) = (vec![0; size], vec![0; size]);
                    matcher.allow(&mut family, &interrupt);
                    let visit = &mut EntryBits(&mut walked);
                    let all = (&trie, Over::All);
                    let visited =
                        engine.visit_in_time((&trie, Over::All), &mut family, (set, ()), most, visit, &interrupt);
                    let made =
                        engine.answers_in_time(all, &mut family, (set, most), &interrupt, &mut answered);
                    if visited.is_ok() && made.is_ok() {
                        prop_assert_eq!(&answered, &walked, "{}, {} left", text, most);
                    }
                }
                drop(family);
                let size = vocabulary.len();
                let taken = (0..size).map(|at| ((at + pick) % size) as u32).find(|&id| {
                    id > 0 && matcher.fork().accept_token(id, &interrupt) == Ok(Accept::Taken)
                });
                let Some(id) = taken else { break };
                prop_assert_eq!(matcher.accept_token(id, &interrupt), Ok(Accept::Taken));
            }
        }
    }
}
