//! Random lists of chunks and lazy rules beside what they are defined by.

use super::*;
use crate::lark::{characters, substrings, words};
use proptest::prelude::*;

/// Runs an automaton over bytes that may have several edges of one byte.
fn run(described: &crate::grammar::Described, text: &str) -> bool {
    let mut states = vec![described.start];
    for byte in text.bytes() {
        let next = described.bytes.iter();
        let next = next.filter(|e| states.contains(&e.0) && (e.1..=e.2).contains(&byte));
        states = next.map(|e| e.3).collect();
    }
    states.iter().any(|state| described.finals.contains(state))
}

#[test]
fn substrings_of_short_texts() {
    let (wholes, tried) = (texts("ab", 8), texts("ab", 5));
    let limits = Limits::default();
    for whole in wholes {
        let budget = Budget::new(&limits, &Interrupt::default());
        let bounds = Bounds { budget: &budget, max_states: 1_000 };
        let chunks: Vec<&[u8]> =
            whole.bytes().zip(0..).map(|(_, at)| &whole.as_bytes()[at..=at]).collect();
        let described = substrings(&chunks, &bounds).expect("it fits");
        for text in &tried {
            assert_eq!(run(&described, text), whole.contains(text.as_str()), "{text} of {whole}");
        }
    }
}

proptest! {
    #[test]
    fn substrings_are_runs_of_chunks(
        chunks in proptest::collection::vec("[ab]{0,2}|é", 0..7),
        tried in proptest::collection::vec("[abé]{0,5}", 20),
    ) {
        let limits = Limits::default();
        let budget = Budget::new(&limits, &Interrupt::default());
        let bounds = Bounds { budget: &budget, max_states: 1_000 };
        let bytes: Vec<&[u8]> = chunks.iter().map(String::as_bytes).collect();
        let described = substrings(&bytes, &bounds).expect("it fits");
        let runs: Vec<String> = (0..=chunks.len())
            .flat_map(|from| (from..=chunks.len()).map(move |to| (from, to)))
            .map(|(from, to)| chunks[from..to].concat())
            .collect();
        for text in runs.iter().chain(&tried) {
            prop_assert_eq!(run(&described, text), runs.contains(text), "{:?}", text);
        }
        let listed: Vec<String> = chunks.iter().map(|chunk| format!("{chunk:?}")).collect();
        let text = format!("start: S & /.*/\nS: %regex {{\"substring_chunks\": [{}]}}", listed.join(","));
        let grammar = lark(&text).expect("it is a grammar");
        let verdicts = accepts(&grammar, &tried);
        let expected: Vec<bool> = tried.iter().map(|text| runs.contains(text)).collect();
        prop_assert_eq!(verdicts, expected);
    }

    #[test]
    fn lazy_rules_match_what_no_other_match_begins(
        words in proptest::collection::vec("[ab]{0,4}", 1..6),
        marker in "[ab]{1,2}",
    ) {
        let all = texts("ab", 6);
        let listed: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        let listed = listed.join(" | ");
        let check = |text: &str, language: &dyn Fn(&str) -> bool| {
            let verdicts = accepts(&lark(text).expect("it is a grammar"), &all);
            for (word, found) in all.iter().zip(verdicts) {
                let is_first = (0..word.len()).all(|end| !language(&word[..end]));
                assert_eq!(found, language(word) && is_first, "{word:?} of {text}");
            }
        };
        check(&format!("start[lazy]: {listed}"), &|word| words.iter().any(|known| known == word));
        let ends = |word: &str| {
            word.strip_suffix(&*marker).is_some_and(|start| words.iter().any(|known| known == start))
        };
        check(&format!("start[suffix={marker:?}]: {listed}"), &ends);
        check(&format!("start[capture, stop={marker:?}]: {listed}"), &ends);
    }

    #[test]
    fn chunks_make_up_the_text(text in "[a-z_0-9 .,é\\t]{0,20}") {
        prop_assert_eq!(words(&text).concat(), text.clone());
        prop_assert_eq!(characters(&text).concat(), text.clone());
        prop_assert!(words(&text).iter().all(|word| !word.is_empty()));
    }
}
