//! Texts that end in time, against a search of all sequences of tokens: random grammars, random small
//! vocabularies of which letters may be missing, every budget from none to twelve, walked with forks,
//! rollbacks, drafts and saved states.

use proptest::collection::vec;
use proptest::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::Arc;

use tokfold_core::budget::Interrupt;
use tokfold_core::classes::{self, ClassOptions};
use tokfold_core::compile::{CompileOptions, compile};
use tokfold_core::engine::{
    Accept, Engine, EngineLimits, EngineOptions, Matcher, SharedVocabulary, StopRule,
};
use tokfold_core::error::Error;
use tokfold_core::limits::Limits;
use tokfold_core::mask::words;
use tokfold_core::syntax::parse;
use tokfold_core::vocabulary::Vocabulary;

/// The largest budget.
const MOST: u32 = 12;
/// Tokens that a search looks ahead: more than any budget of a walk.
const DEPTH: u32 = 2 * MOST;
/// States that a search may see.
const MOST_STATES: usize = 4_000;

fn none() -> Interrupt {
    Interrupt::default()
}

/// Right sides of rules.
fn body() -> impl Strategy<Value = String> {
    let leaves =
        vec!["\"a\"", "\"b\"", "\"ab\"", "[a-c]", "[^b]", "\"cab\"", "\"\"", "root", "other"];
    let leaf = prop::sample::select(leaves).prop_map(str::to_owned);
    leaf.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" "))),
            vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" | "))),
            (inner, 0..20u32, proptest::option::of(0..20u32)).prop_map(|(body, min, more)| {
                match more {
                    Some(more) => format!("({body}){{{min},{}}}", (min + more).max(1)),
                    None => format!("({body}){{{min},}}"),
                }
            }),
        ]
    })
}

/// Tokens: number 0 ends a text, number 1 does so too, the rest are words.
fn vocabulary() -> impl Strategy<Value = SharedVocabulary> {
    let word = vec(prop::sample::select(&b"abcd"[..]), 1..6);
    (vec(word, 1..10), any::<u8>()).prop_map(|(mut tokens, missing)| {
        let letters = b"abcd".iter().enumerate();
        tokens.extend(letters.filter(|(at, _)| missing >> at & 1 == 0).map(|(_, &b)| vec![b]));
        let special = [b"</s>".to_vec(), b"<eot>".to_vec()];
        let (mut blob, mut offsets) = (Vec::new(), vec![0]);
        for token in special.iter().chain(&tokens) {
            blob.extend_from_slice(token);
            offsets.push(blob.len() as u32);
        }
        Vocabulary::new(blob, offsets, &[0, 1], &[]).expect("a sound vocabulary").into()
    })
}

/// The fewest tokens to the end of texts, by search.
#[derive(Default)]
struct Oracle {
    known: FxHashMap<Vec<u32>, u32>,
}

/// What the search cannot decide.
struct Undecided;

impl Oracle {
    /// The fewest tokens that complete the text of a matcher without a budget; more than [`DEPTH`] where
    /// more are needed.
    fn fewest(&mut self, matcher: &Matcher) -> Result<u32, Undecided> {
        let state = |matcher: &Matcher| matcher.state(&none()).map_err(|_| Undecided);
        let first = state(matcher)?;
        if let Some(&known) = self.known.get(&first) {
            return Ok(known);
        }
        let size = matcher.engine().vocabulary().len() as u32;
        let mut seen = FxHashMap::default();
        let mut level = vec![matcher.fork()];
        seen.insert(first.clone(), ());
        let mut fewest = DEPTH + 1;
        for count in 0..=DEPTH {
            if level.iter().any(|m| m.is_accepting(&none()).expect("no lock")) {
                fewest = count;
                break;
            }
            let mut next = Vec::new();
            for matcher in &level {
                for token in 2..size {
                    let mut fork = matcher.fork();
                    match fork.accept_token(token, &none()) {
                        Ok(Accept::Taken) => {}
                        Ok(_) => continue,
                        Err(_) => return Err(Undecided),
                    }
                    if seen.insert(state(&fork)?, ()).is_none() {
                        next.push(fork);
                    }
                }
            }
            if seen.len() > MOST_STATES {
                return Err(Undecided);
            }
            level = next;
        }
        self.known.insert(first, fewest);
        Ok(fewest)
    }

    /// The row that a budget leaves, and whether the text can end at all.
    fn row(
        &mut self,
        matcher: &Matcher,
        left: u32,
        stop_tokens: u32,
    ) -> Result<Option<Vec<u32>>, Undecided> {
        if self.fewest(matcher)? + stop_tokens > left {
            return Ok(None);
        }
        let size = matcher.engine().vocabulary().len() as u32;
        let mut row = Vec::new();
        if matcher.is_accepting(&none()).expect("no lock") {
            row.extend([0, 1]);
        }
        for token in 2..size {
            let mut fork = matcher.fork();
            match fork.accept_token(token, &none()) {
                Ok(Accept::Taken) => {}
                Ok(_) => continue,
                Err(_) => return Err(Undecided),
            }
            if self.fewest(&fork)? + stop_tokens < left {
                row.push(token);
            }
        }
        Ok(Some(row))
    }
}

fn members(row: &[i32]) -> Vec<u32> {
    let words = row.iter().zip(0u32..);
    let bits = |(&word, at): (&i32, u32)| {
        (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 32 + bit)
    };
    words.flat_map(bits).collect()
}

fn filled(
    matcher: &Matcher,
    fill: impl FnOnce(&Matcher, &mut [i32]) -> Result<bool, Error>,
) -> Result<Vec<u32>, Error> {
    let mut row = vec![7; words(matcher.engine().vocabulary().len())];
    fill(matcher, &mut row).map(|_| members(&row))
}

/// A grammar read with one vocabulary, with classes and without.
fn engines(text: &str, vocabulary: &SharedVocabulary) -> Option<[Arc<Engine>; 2]> {
    let bounds = Limits { max_network_states: 5_000, ..Limits::default() };
    let grammar = parse(text, "root", &bounds).ok()?;
    let limits =
        EngineLimits { max_mask_work: 400_000, max_accept_work: 50_000, ..Default::default() };
    let mut options = CompileOptions::default();
    options.network.limits = bounds.clone();
    options.engine = EngineOptions { limits, ..EngineOptions::default() };
    let engine = || compile(&grammar, vocabulary, &options, &none()).ok();
    let (plain, folded) = (engine()?, engine()?);
    let options = ClassOptions { limits: bounds, ..ClassOptions::default() };
    let (classes, _) = classes::compile(&grammar, vocabulary, &options, &none()).ok()?;
    folded.take_classes(&classes).ok()?;
    Some([plain, folded])
}

type Choices = Vec<(prop::sample::Index, u8)>;

/// Walks a text under a budget; how many rows the search decided.
fn walk(
    text: &str,
    vocabulary: &SharedVocabulary,
    choices: &Choices,
    (extra, prefer_end): (u32, u32),
    when_complete: bool,
) -> Result<u32, TestCaseError> {
    let Some(engines) = engines(text, vocabulary) else { return Ok(0) };
    let stops = || StopRule { when_complete, ..StopRule::default() };
    let stop_tokens = u32::from(!when_complete);
    let free = Matcher::new(engines[0].clone(), StopRule::default()).expect("stop tokens");
    let mut oracle = Oracle::default();
    let Ok(fewest) = oracle.fewest(&free) else { return Ok(0) };
    let budget = fewest + stop_tokens + extra;
    let mut plain = Matcher::new(engines[0].clone(), stops()).expect("stop tokens");
    let mut folded = Matcher::new(engines[1].clone(), stops()).expect("stop tokens");
    if fewest > MOST {
        for matcher in [&mut plain, &mut folded] {
            match matcher.limit_tokens(MOST + stop_tokens, prefer_end, &none()) {
                Err(Error::Budget { needed, .. }) => {
                    prop_assert!(needed.is_none_or(|n| n > MOST + stop_tokens));
                }
                other => prop_assert!(false, "{:?} of {}", other, text),
            }
        }
        return Ok(1);
    }
    for matcher in [&mut plain, &mut folded] {
        if let Some(less) = (fewest + stop_tokens).checked_sub(1) {
            let refused = matcher.limit_tokens(less, prefer_end, &none());
            let expected = Error::Budget { needed: Some(less + 1), left: less };
            prop_assert_eq!(refused, Err(expected), "{}", text);
        }
        match matcher.limit_tokens(budget, prefer_end, &none()) {
            Err(Error::Limit { .. }) => return Ok(0),
            other => prop_assert_eq!(other, Ok(()), "{}", text),
        }
    }
    let mut free = free;
    let mut decided = 0;
    for (choice, action) in choices {
        let taken = plain.now(|look| look.steps()).expect("nobody has the lock") as u32;
        let left = budget - taken;
        prop_assert_eq!(plain.now(|look| look.tokens_left()).flatten(), Some(left));
        let read = plain.text(&none()).expect("no lock");
        if plain.is_terminated(&none()).expect("no lock") {
            prop_assert!(free.is_accepting(&none()).expect("no lock"), "a text was cut: {}", text);
            break;
        }
        let said = |left| {
            format!(
                "{left} left after {:?} of {text} {vocabulary:?}",
                String::from_utf8_lossy(&read)
            )
        };
        // Among the last tokens as many as the text needs, after one that takes it no further from its end.
        let counted = match (left <= prefer_end, oracle.fewest(&free)) {
            (false, _) => left,
            (true, Ok(fewest)) => left.min(fewest + stop_tokens + 1),
            (true, Err(_)) => return Ok(decided),
        };
        let Ok(expected) = oracle.row(&free, counted, stop_tokens) else { return Ok(decided) };
        let Some(mut expected) = expected else {
            return Err(TestCaseError::fail(format!("a dead end with {}", said(left))));
        };
        if when_complete {
            expected.retain(|&token| token > 1);
        }
        for matcher in [&plain, &folded] {
            let row = filled(matcher, |matcher, row| matcher.fill(row, &none()));
            if matches!(row, Err(Error::Limit { .. })) {
                return Ok(decided);
            }
            prop_assert_eq!(row.as_ref(), Ok(&expected), "{}", said(left));
            if let Some(Ok(_)) = filled_now(matcher) {
                prop_assert_eq!(filled_now(matcher), Some(row), "{}", said(left));
            }
        }
        decided += 1;
        // Budgets that a call gives.
        for left in 0..=MOST {
            let Ok(expected) = oracle.row(&free, left, 1) else { return Ok(decided) };
            let row = filled(&free, |m, row| m.fill_with_tokens_left(left, row, &none()));
            match (row, expected) {
                (Err(Error::Limit { .. }), _) => return Ok(decided),
                (Err(Error::Budget { needed, left: told }), None) => {
                    prop_assert_eq!(told, left);
                    prop_assert!(needed.is_none_or(|needed| needed > left), "{}", said(left));
                }
                (row, expected) => prop_assert_eq!(row.ok(), expected, "{}", said(left)),
            }
            decided += 1;
        }
        // Forks agree with masks, and drafts with forks.
        let mut tokens = Vec::new();
        let mut rows_after = Vec::new();
        for token in 0..vocabulary.len() as u32 {
            let mut fork = if token % 2 == 0 { plain.fork() } else { folded.fork() };
            let accepted = fork.accept_token(token, &none());
            if matches!(accepted, Err(Error::Limit { .. })) {
                return Ok(decided);
            }
            let is_allowed = accepted == Ok(Accept::Taken);
            prop_assert_eq!(is_allowed, expected.contains(&token), "{} and {}", token, said(left));
            if !is_allowed {
                prop_assert_eq!(fork.state(&none()), plain.state(&none()), "left as it was");
            }
            tokens.push(token);
            let goes_on = is_allowed && !fork.is_terminated(&none()).expect("no lock");
            rows_after.push(match goes_on {
                true => filled(&fork, |fork, row| fork.fill(row, &none())).ok(),
                false => Some(Vec::new()),
            });
        }
        let width = words(vocabulary.len());
        let mut rows = vec![0; width * (tokens.len() + 1)];
        let parents = vec![-1; tokens.len()];
        if let Ok(allowed) = plain.fill_draft(&parents, &tokens, false, &mut rows, &none()) {
            for (token, is_allowed) in allowed.into_iter().enumerate() {
                prop_assert_eq!(is_allowed, expected.contains(&(token as u32)));
            }
            prop_assert_eq!(members(&rows[..width]), expected.clone());
            for (row, after) in rows[width..].chunks(width).zip(&rows_after) {
                if let Some(after) = after {
                    prop_assert_eq!(&members(row), after, "drafts, {}", said(left));
                }
            }
        }
        // A saved state, with the budget that is left of it.
        let state = plain.state(&none()).expect("a state");
        let mut restored = Matcher::new(engines[1].clone(), stops()).expect("stop tokens");
        restored.restore(&state, &none()).expect("a state of the same grammar");
        restored.limit_tokens(left, prefer_end, &none()).expect("a budget that fits");
        prop_assert_eq!(filled(&restored, |m, row| m.fill(row, &none())), Ok(expected.clone()));
        // What ends the text fastest.
        let closing = plain.closing_tokens(usize::MAX, &none());
        if let Ok(closing) = closing {
            prop_assert_eq!(closing.len() as u32, oracle.fewest(&free).unwrap_or(DEPTH + 1));
            let mut fork = free.fork();
            for token in closing {
                prop_assert_eq!(fork.accept_token(token, &none()), Ok(Accept::Taken));
            }
            prop_assert!(fork.is_accepting(&none()).expect("no lock"));
        }
        if action % 4 == 0 && taken > 0 {
            let back = 1 + choice.index(taken as usize);
            for matcher in [&mut plain, &mut folded, &mut free] {
                matcher.rollback(back, &none()).expect("so many steps");
            }
            continue;
        }
        prop_assert!(!expected.is_empty(), "a dead end with {}", said(left));
        let token = expected[choice.index(expected.len())];
        for matcher in [&mut plain, &mut folded] {
            match matcher.accept_token(token, &none()) {
                Err(Error::Limit { .. }) => return Ok(decided),
                accepted => prop_assert_eq!(accepted, Ok(Accept::Taken)),
            }
        }
        if token > 1 && free.accept_token(token, &none()).is_err() {
            return Ok(decided);
        }
    }
    Ok(decided)
}

fn filled_now(matcher: &Matcher) -> Option<Result<Vec<u32>, Error>> {
    let mut row = vec![7; words(matcher.engine().vocabulary().len())];
    match matcher.fill_now(&mut row) {
        Ok(None) => None,
        Ok(Some(_)) => Some(Ok(members(&row))),
        Err(error) => Some(Err(error)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_bit_is_set_exactly_when_the_text_can_be_completed_in_time(
        root in body(),
        other in body(),
        vocabulary in vocabulary(),
        choices in vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
        extra in 0..9u32,
        prefer_end in prop_oneof![Just(0), 1..12u32],
        when_complete in any::<bool>(),
    ) {
        let text = format!("root ::= {root} | \"d\"\nother ::= {other} | \"c\"");
        walk(&text, &vocabulary, &choices, (extra, prefer_end), when_complete)?;
    }
}
