//! Bounds against walks with the whole stacks.

use crate::budget::Interrupt;
use crate::engine::limits::Thresholds;
use crate::engine::mask::answers::{Allowance, Walker};
use crate::engine::{Accept, Engine, EngineOptions, Matcher, Representation, StopRule};
use crate::limits::Limits;
use crate::network::{Network, NetworkOptions};
use crate::syntax;
use crate::vocabulary::{Trie, Vocabulary};
use proptest::prelude::*;
use std::sync::Arc;

/// The right side of a rule: words, blanks, calls, and what they are made of.
fn body() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "\"a\"", "\"b\"", "\"(\"", "\".\"", "\"ab\"", "[ab]", "[^.]", "x", "y", "z", "w",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} | {b})")),
            (inner, prop::sample::select(vec!["?", "*", "+"]))
                .prop_map(|(a, mark)| format!("({a}){mark}")),
        ]
    })
}

/// All words of at most four letters.
fn words() -> Vec<String> {
    let mut words = vec![String::new()];
    for at in 0.. {
        let Some(word) = words.get(at).cloned() else { break };
        if word.len() < 4 {
            words.extend(["a", "b", "(", "."].map(|letter| word.clone() + letter));
        }
    }
    words.split_off(1)
}

fn vocabulary(words: &[String]) -> Vocabulary {
    let mut offsets = vec![0];
    for word in words {
        offsets.push(offsets[offsets.len() - 1] + word.len() as u32);
    }
    Vocabulary::new(words.concat().into_bytes(), offsets, &[], &[]).expect("a vocabulary")
}

/// Never asked beneath, never answered, and what is done.
fn thresholds() -> Vec<Thresholds> {
    let usual = Thresholds::default();
    let all = Thresholds { undecided: usize::MAX, cost: 0, ..usual };
    let most = usize::MAX;
    let none = Thresholds { answer_work: 0, few_undecided: most, undecided_of_frame: most, ..all };
    let some =
        Thresholds { undecided: 3, cost: 20, answer_work: 2, undecided_of_frame: 40, ..usual };
    vec![usual, all, none, some]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_bounds_leave_and_the_stacks_decide_is_what_is_accepted(
        bodies in [body(), body(), body(), body()],
        picks in prop::collection::vec(0..1_000usize, 8),
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
        let share_wide = Some(80);
        let options =
            NetworkOptions { inline_budget: 0, share_wide, ..NetworkOptions::default() };
        let Ok(network) = Network::new(&grammar, &options) else { return Ok(()) };
        let network = Arc::new(network);
        let words = words();
        let trie = {
            let mut entries: Vec<(&[u8], u32)> =
                words.iter().map(String::as_bytes).zip(0..).collect();
            entries.sort_unstable();
            Arc::new(Trie::new(entries.into_iter()))
        };
        let size = words.len().div_ceil(32);
        let new = |thresholds| {
            let walker = Walker::new(network.clone(), trie.clone(), size);
            walker.whole(None).with_thresholds(thresholds)
        };
        let walkers: Vec<Walker> = thresholds().into_iter().map(new).collect();
        let representation = Representation::Stacks;
        let options = EngineOptions { representation, ..EngineOptions::default() };
        let vocabulary = vocabulary(&words).into();
        let engine = Engine::new(network.clone(), &vocabulary, &options).expect("stacks");
        let interrupt = Interrupt::default();
        let mut matcher =
            Matcher::new(Arc::new(engine), StopRule::default()).expect("a start");
        for pick in picks {
            let mut expected = vec![0i32; size];
            let mut taken = Vec::new();
            for id in 0..words.len() {
                let mut fork = matcher.fork();
                if fork.accept_token(id as u32, &interrupt) == Ok(Accept::Taken) {
                    expected[id / 32] |= 1 << (id % 32);
                    taken.push(id as u32);
                }
            }
            for (number, walker) in walkers.iter().enumerate() {
                // Twice: what was remembered is read the second time.
                for time in 0..2 {
                    let mut family = matcher.family.write();
                    let stand = family.step(matcher.at).stand;
                    let mut bits = vec![-1; size];
                    let allowance = Allowance { work: 5_000_000, bytes: 1 << 26 };
                    walker
                        .mask(family.view(stand), allowance, &interrupt, &mut bits)
                        .expect("within limits");
                    prop_assert_eq!(&bits, &expected, "{} by {}, {}", text, number, time);
                }
            }
            if taken.is_empty() {
                break;
            }
            let id = taken[pick % taken.len()];
            prop_assert_eq!(matcher.accept_token(id, &interrupt), Ok(Accept::Taken));
        }
        let bounded = walkers[2].counters();
        prop_assert!(bounded.direct == 0, "{bounded:?}");
    }
}
