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
                        engine.visit_in_time(((&trie, 0), Over::All), &mut family, (set, ()), most, visit, &interrupt);
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

/// Where answers have no room, a walk with the stacks of the text takes their place.
#[test]
fn without_room_for_answers_the_stacks_are_walked() {
    let text = "root ::= x (\".\" x){0,9}\nx ::= \"(\" x \")\" | [ab]{0,30} \"(\" \")\"\n";
    let grammar = syntax::parse(text, "root", &Limits::default()).expect("a grammar");
    let network = Network::new(&grammar, &NetworkOptions::default()).expect("a network");
    let vocabulary = vocabulary(vec![")".into(), "))".into(), "().".into(), "aaab".into()]).into();
    let representation = Representation::Stacks;
    let options = EngineOptions { representation, ..EngineOptions::default() };
    let mut engine =
        Arc::new(Engine::new(Arc::new(network), &vocabulary, &options).expect("stacks"));
    let interrupt = Interrupt::default();
    let size = vocabulary.len().div_ceil(32);
    let mut rows: Vec<Vec<i32>> = Vec::new();
    let mut refused = 0;
    for has_room in [true, false] {
        if !has_room {
            // The table is there, and asks for nothing more.
            Arc::get_mut(&mut engine).expect("no matcher is left").limits.max_memo_bytes = 4_000;
        }
        let mut matcher = Matcher::new(engine.clone(), StopRule::default()).expect("a start");
        let trie = engine.plain().trie.clone();
        for (place, byte) in b"ab().((aab())).bab()".iter().enumerate() {
            let tokens = matcher.shortest(&interrupt).expect("within limits").tokens;
            let most = tokens.expect("an end") + place as u32 % 2;
            let mut family = matcher.family.write();
            let Stand::Stacks(set) = family.step(matcher.at).stand else { panic!("stacks alone") };
            let mut row = vec![0; size];
            matcher.allow(&mut family, &interrupt);
            let all = (&trie, Over::All);
            if has_room {
                let visit = &mut EntryBits(&mut row);
                engine
                    .visit_in_time(
                        ((&trie, 0), Over::All),
                        &mut family,
                        (set, ()),
                        most,
                        visit,
                        &interrupt,
                    )
                    .expect("within limits");
                rows.push(row);
            } else {
                let at = (set, most);
                let answered =
                    engine.answers_in_time(all, &mut family, at, &interrupt, &mut row.clone());
                refused += u32::from(answered.is_err());
                engine
                    .entries_in_time(all, &mut family, set, most, &interrupt, &mut row)
                    .expect("within limits");
                assert_eq!(row, rows[place], "before byte {place}");
            }
            drop(family);
            assert_eq!(matcher.accept_bytes(&[*byte], &interrupt), Ok(Accept::Taken));
        }
    }
    assert!(refused > 10, "{refused} masks without answers");
}
