//! The engine against the recognizer, which writes repetitions out and has no memo: random small
//! grammars, counted and written out, with classes and without, walked with forks and rollbacks.

use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

use tokfold_core::budget::Interrupt;
use tokfold_core::classes::{self, ClassOptions};
use tokfold_core::compile::{CompileOptions, compile};
use tokfold_core::engine::{
    Accept, Engine, EngineLimits, EngineOptions, MAX_FORCED_BYTES, Matcher, Pool, Representation,
    SharedVocabulary, StopRule,
};
use tokfold_core::error::Error;
use tokfold_core::limits::Limits;
use tokfold_core::mask::words;
use tokfold_core::network::{Network, NetworkOptions};
use tokfold_core::recognizer::Recognizer;
use tokfold_core::syntax::parse;
use tokfold_core::vocabulary::Vocabulary;

/// No interrupt.
fn none() -> Interrupt {
    Interrupt::default()
}

/// Right-hand sides as text, with repetitions below and above what is written out.
fn body() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("\"a\"".to_owned()),
        Just("\"b\"".to_owned()),
        Just("\"ab\"".to_owned()),
        Just("[a-c]".to_owned()),
        Just("[a-z]".to_owned()),
        Just("[^b]".to_owned()),
        Just("[^b-z]".to_owned()),
        Just("[a-é]".to_owned()),
        Just("\"\"".to_owned()),
        Just("root".to_owned()),
        Just("other".to_owned()),
    ];
    let bounds = (0..20u32, proptest::option::of(0..20u32));
    leaf.prop_recursive(3, 10, 3, move |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" "))),
            vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" | "))),
            (inner, bounds.clone()).prop_map(|(body, (min, more))| match more {
                Some(more) => format!("({body}){{{min},{}}}", (min + more).max(1)),
                None => format!("({body}){{{min},}}"),
            }),
        ]
    })
}

fn vocabulary() -> SharedVocabulary {
    let mut tokens: Vec<Vec<u8>> = vec![b"".to_vec(), b"</s>".to_vec(), b"aa".to_vec()];
    for n in 1..4usize {
        for i in 0..4usize.pow(n as u32) {
            tokens.push((0..n).map(|k| b'a' + (i / 4usize.pow(k as u32) % 4) as u8).collect());
        }
    }
    tokens.push(b"aaaaaaaaaaaaaaaaaaaaaaaa".to_vec());
    tokens.extend(["ax9", "a9b", "xyz", "xa", "9", "a9"].map(|token| token.as_bytes().to_vec()));
    for text in ["é", "aéa", "ééx", "€", "a€b", "😀", "x😀y"] {
        tokens.push(text.as_bytes().to_vec());
        tokens.push(text.as_bytes()[..text.len() - 1].to_vec());
    }
    tokens.extend([b"\xed\xa0\x80".to_vec(), b"a\xff".to_vec(), b"\x80a".to_vec()]);
    tokens.extend([b"\xc3".to_vec(), b"\xa9".to_vec(), b"a\xc3\xa9b".to_vec()]);
    let mut offsets = vec![0];
    let mut blob = Vec::new();
    for token in tokens {
        blob.extend(token);
        offsets.push(blob.len() as u32);
    }
    Vocabulary::new(blob, offsets, &[1], &[]).expect("sound").into()
}

/// Small bounds keep a case short: what is very ambiguous is left out.
fn limits() -> Limits {
    Limits { max_network_states: 5_000, ..Limits::default() }
}

/// The engine of a grammar.
fn compiled(text: &str, representation: Representation, limits: EngineLimits) -> Arc<Engine> {
    let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
    let engine = EngineOptions { representation, limits, pool: None };
    let options = CompileOptions { engine, ..CompileOptions::default() };
    compile(&grammar, &vocabulary(), &options, &none()).expect("an engine")
}

fn engine(network: Network, vocabulary: &SharedVocabulary) -> Arc<Engine> {
    sharing(network, vocabulary, None)
}

fn sharing(
    network: Network,
    vocabulary: &SharedVocabulary,
    pool: Option<Arc<Pool>>,
) -> Arc<Engine> {
    let limits =
        EngineLimits { max_mask_work: 200_000, max_accept_work: 50_000, ..Default::default() };
    let options = EngineOptions { pool, limits, ..EngineOptions::default() };
    Arc::new(Engine::new(Arc::new(network), vocabulary, &options).expect("stacks"))
}

/// What all grammars of a run share: small, so that answers come and go.
fn pool() -> Arc<Pool> {
    static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
    POOL.get_or_init(|| Arc::new(Pool::new(200_000, 0))).clone()
}

/// Whether a text begins some string, and whether it is one; `None` where it is too ambiguous.
fn recognized(network: &Network, text: &[u8]) -> Option<(bool, bool)> {
    let limits = Limits { max_automaton_bytes: 4 << 20, ..Limits::default() };
    let mut recognizer = Recognizer::new(network, &limits, &none()).ok()?;
    for &byte in text {
        match recognizer.advance(byte) {
            Ok(true) => {}
            Ok(false) => return Some((false, false)),
            Err(_) => return None,
        }
    }
    Some((true, recognizer.is_accepting()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_bit_is_set_exactly_when_the_text_can_be_completed(
        root in body(),
        other in body(),
        choices in vec((any::<prop::sample::Index>(), 0..6u8), 1..12),
        share_wide in prop_oneof![Just(None), (1..3u32).prop_map(Some)],
    ) {
        let text = format!("root ::= {root} | \"d\"\nother ::= {other} | \"c\"");
        let grammar = parse(&text, "root", &limits()).expect("grammar text");
        let options = NetworkOptions { limits: limits(), ..NetworkOptions::default() };
        let Ok(plain) = Network::new(&grammar, &options) else { return Ok(()) };
        let options = NetworkOptions { counters: true, share_wide, ..options };
        let counted = Network::new(&grammar, &options)
            .expect("counting takes no more than writing out");
        let vocabulary = vocabulary();
        let unfolded = engine(counted.clone(), &vocabulary);
        let folded = engine(counted.clone(), &vocabulary);
        let pooled = sharing(counted, &vocabulary, Some(pool()));
        let class_options = ClassOptions { limits: limits(), ..ClassOptions::default() };
        let (classes, _) = classes::compile(&grammar, &vocabulary, &class_options, &none())
            .expect("classes of a small grammar");
        folded.take_classes(&classes).expect("of this vocabulary");
        let mut matcher = Matcher::new(unfolded, StopRule::default()).expect("stop tokens");
        let mut second = Matcher::new(folded, StopRule::default()).expect("stop tokens");
        let mut third = Matcher::new(pooled, StopRule::default()).expect("stop tokens");
        let size = vocabulary.len();
        for (choice, action) in choices {
            let mut row = vec![0; words(size)];
            let mut again = row.clone();
            match (matcher.fill(&mut row, &none()), second.fill(&mut again, &none())) {
                (Ok(some), Ok(same)) => prop_assert_eq!(some, same),
                (Err(Error::State(_)), Err(Error::State(_))) if matcher.is_terminated(&none()).expect("no lock") => break,
                (Err(Error::Limit { .. }), _) | (_, Err(Error::Limit { .. })) => return Ok(()),
                other => prop_assert!(false, "{:?}", other),
            }
            prop_assert_eq!(&row, &again, "with and without classes, {}", text);
            let zeros = (0..size).any(|t| row[t >> 5] >> (t & 31) & 1 == 0);
            for matcher in [&matcher, &second] {
                let mut now = vec![7; words(size)];
                if let Some(forbids) = matcher.fill_now(&mut now).expect("a mask was made") {
                    prop_assert_eq!(&row, &now, "what is there, {}", text);
                    prop_assert_eq!(forbids, zeros);
                }
            }
            // Refused or not, a mask that is made says the same whatever others left in the pool.
            if third.fill(&mut again, &none()).is_ok() {
                prop_assert_eq!(&row, &again, "with and without a pool, {}", text);
            }
            let read = matcher.text(&none()).expect("no lock");
            let allowed: Vec<u32> =
                (0..size as u32).filter(|&t| row[t as usize >> 5] >> (t & 31) & 1 == 1).collect();
            for token in 0..size as u32 {
                let longer = [&read[..], vocabulary.bytes(token)].concat();
                let Some((viable, complete)) = recognized(&plain, &longer) else { return Ok(()) };
                let truth = match token {
                    0 => false,
                    1 => recognized(&plain, &read).is_some_and(|r| r.1),
                    _ => viable,
                };
                prop_assert_eq!(allowed.contains(&token), truth, "{:?} after {:?} of {}", vocabulary.bytes(token), read, text);
                if token > 1 && viable {
                    let mut fork = matcher.fork();
                    match fork.accept_token(token, &none()) {
                        Ok(accept) => prop_assert_eq!(accept, Accept::Taken),
                        Err(_) => return Ok(()),
                    }
                    prop_assert_eq!(fork.is_accepting(&none()).expect("no lock"), complete);
                }
            }
            prop_assert!(!allowed.is_empty(), "dead end after {:?} of {}", read, text);
            if action == 0 && matcher.steps(&none()).expect("no lock") > 0 {
                let back = 1 + choice.index(matcher.steps(&none()).expect("no lock"));
                matcher.rollback(back, &none()).expect("so many steps");
                second.rollback(back, &none()).expect("so many steps");
                third.rollback(back, &none()).expect("so many steps");
                continue;
            }
            let token = allowed[choice.index(allowed.len())];
            for matcher in [&mut matcher, &mut second, &mut third] {
                match matcher.accept_token(token, &none()) {
                    Ok(accept) => prop_assert_eq!(accept, Accept::Taken),
                    Err(_) => return Ok(()),
                }
            }
            prop_assert_eq!(matcher.state(&none()), second.state(&none()));
            let mut restored = matcher.fork();
            restored.restore(&matcher.state(&none()).expect("a state"), &none()).expect("a state");
            prop_assert_eq!(restored.state(&none()), matcher.state(&none()));
        }
    }
}

#[test]
fn a_counted_repetition_costs_the_same_for_every_bound() {
    let states = |text: &str| {
        let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
        let options = NetworkOptions { counters: true, ..NetworkOptions::default() };
        Network::new(&grammar, &options).expect("counted").len()
    };
    let small = states("root ::= \"[\" (\"a\" | \"b\" root){3,100} \"]\"");
    assert_eq!(states("root ::= \"[\" (\"a\" | \"b\" root){50000,1000000000} \"]\""), small);
}

#[test]
fn masks_are_exact_at_both_bounds() {
    let text = "root ::= [a-b]{1000,2000} \"c\"";
    let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
    let options = NetworkOptions { counters: true, ..NetworkOptions::default() };
    let vocabulary = vocabulary();
    let engine = engine(Network::new(&grammar, &options).expect("counted"), &vocabulary);
    let mut matcher = Matcher::new(engine, StopRule::default()).expect("stop tokens");
    let mut row = vec![0; words(vocabulary.len())];
    let find = |text: &[u8]| (0..vocabulary.len() as u32).find(|&t| vocabulary.bytes(t) == text);
    for read in 0..2_000usize {
        matcher.fill(&mut row, &none()).expect("a mask");
        for length in [1, 2, 3, 24] {
            for end in ["", "c"] {
                let mut text = vec![b'a'; length - end.len()];
                text.extend(end.bytes());
                let Some(token) = find(&text) else { continue };
                let passes = read + length - end.len();
                let truth = passes <= 2_000 && (end.is_empty() || passes >= 1_000);
                let bit = row[token as usize >> 5] >> (token & 31) & 1 == 1;
                assert_eq!(bit, truth, "{length} with {end:?} after {read}");
            }
        }
        assert_eq!(matcher.accept_bytes(b"a", &none()).expect("no limit"), Accept::Taken);
    }
    assert_eq!(matcher.accept_bytes(b"a", &none()).expect("no limit"), Accept::Refused);
    assert_eq!(matcher.accept_bytes(b"c", &none()).expect("no limit"), Accept::Taken);
    assert!(matcher.is_accepting(&none()).expect("no lock"));
}

#[test]
fn a_mask_is_made_now_only_of_what_is_there_and_little() {
    let vocabulary = vocabulary();
    let fresh = |text: &str| {
        let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
        let network = Network::new(&grammar, &NetworkOptions::default()).expect("a network");
        let made = Matcher::new(engine(network, &vocabulary), StopRule::default());
        made.expect("stop tokens")
    };
    let (mut row, mut now) = (vec![0; words(vocabulary.len())], vec![7; words(vocabulary.len())]);
    let mut matcher = fresh(r#"root ::= "a" root "b" | "c""#);
    assert_eq!(matcher.fill_now(&mut now), Ok(None), "there is no trie yet");
    assert_eq!(matcher.fill(&mut row, &none()), Ok(true));
    assert_eq!(matcher.engine().counters().masks, 1);
    assert_eq!(matcher.fill_now(&mut now), Ok(Some(true)));
    assert_eq!(now, row);
    assert_eq!(matcher.engine().counters().masks, 2, "it counts like any other");
    matcher.engine().forget();
    assert_eq!(matcher.fill_now(&mut now), Ok(None), "it is forgotten");
    assert_eq!(matcher.engine().counters().masks, 2);
    matcher.fill(&mut row, &none()).expect("a mask");
    matcher.cancel_switch().store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(matcher.fill_now(&mut now), Err(Error::Cancelled));
    matcher.cancel_switch().store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(matcher.accept_bytes(b"c", &none()).expect("no limit"), Accept::Taken);
    let stop = 1;
    assert_eq!(matcher.accept_token(stop, &none()).expect("no limit"), Accept::Taken);
    assert!(matches!(matcher.fill_now(&mut now), Err(Error::State(_))));
    // Many frames at once: whoever calls does not hold up others so long.
    let rules: Vec<String> = (0..40)
        .map(|i| format!("r{i} ::= \"x\" r{i} \"{}\" | \"y\"", ["a", "b"][i % 2].repeat(i)))
        .collect();
    let names: Vec<String> = (0..40).map(|i| format!("r{i}")).collect();
    let mut many = fresh(&format!("root ::= {}\n{}", names.join(" | "), rules.join("\n")));
    assert_eq!(many.accept_bytes(b"xx", &none()).expect("no limit"), Accept::Taken);
    let before = many.engine().counters().visits;
    many.fill(&mut row, &none()).expect("a mask");
    assert!(many.engine().counters().visits - before > 16, "few frames: another test is needed");
    assert_eq!(many.fill_now(&mut now), Ok(None));
    assert_eq!(many.fill(&mut now, &none()), Ok(true));
    assert_eq!(now, row);
}

#[test]
fn a_state_with_an_end_is_refused() {
    // The end of a counted repetition, when all passes are done: a state that no stack holds, so that
    // a mask over it would ask for a body that nothing describes.
    let text = r#"root ::= [^"\\]{0,20} "\"" root?"#;
    let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
    let options = NetworkOptions { counters: true, ..Default::default() };
    let network = Network::new(&grammar, &options).expect("network");
    // States past the listed ones stand for a number of passes each, but for the first two.
    let end = network.len() as u32 + 2 + 20;
    assert!(network.is_state(end) && !network.stays(end), "another state is needed");
    let engine = sharing(network, &vocabulary(), Some(pool()));
    let mut matcher = Matcher::new(engine, StopRule::default()).expect("stop tokens");
    let before = matcher.state(&none()).expect("a state");
    let restored = matcher.restore(&[0, 1, u32::MAX, 0, 1, end, 0], &none());
    assert_eq!(restored, Err(Error::State("this is no state of this grammar".into())));
    assert_eq!(matcher.state(&none()), Ok(before));
}

#[test]
fn a_chart_that_does_not_fit_names_the_limit_of_bytes() {
    let grammar = parse("root ::= [a-c]*", "root", &Limits::default()).expect("grammar text");
    let network = Network::new(&grammar, &NetworkOptions::default()).expect("network");
    let limits = EngineLimits { max_matcher_bytes: 640, ..EngineLimits::default() };
    let options = EngineOptions { representation: Representation::Chart, limits, pool: None };
    // Not prepared: there is no room for the tables either.
    let engine = Engine::new(Arc::new(network), &vocabulary(), &options).expect("no tokens");
    let error = Matcher::new(Arc::new(engine), StopRule::default()).err().expect("no room");
    assert!(
        matches!(error, Error::Limit { limit: "max_matcher_bytes", value: 640, .. }),
        "{error}"
    );
}

#[test]
fn any_step_can_be_taken_back_and_forks_go_their_own_way() {
    let grammar = parse("root ::= [a-c]*", "root", &Limits::default()).expect("grammar text");
    let vocabulary = vocabulary();
    let network = Network::new(&grammar, &NetworkOptions::default()).expect("network");
    let engine = engine(network, &vocabulary);
    let mut matcher = Matcher::new(engine, StopRule::default()).expect("stop tokens");
    let letter = |i: usize| [b'a' + (i * i % 3) as u8];
    let text: Vec<u8> = (0..1_000).flat_map(letter).collect();
    for i in 0..1_000 {
        matcher.accept_bytes(&letter(i), &none()).expect("no limit");
    }
    for back in [0, 1, 2, 3, 17, 255, 256, 600, 999, 1_000] {
        let mut fork = matcher.fork();
        fork.rollback(back, &none()).expect("so many steps");
        assert_eq!(fork.text(&none()).expect("no lock"), text[..1_000 - back]);
        fork.accept_bytes(b"cab", &none()).expect("no limit");
        assert_eq!(fork.text(&none()).expect("no lock"), [&text[..1_000 - back], b"cab"].concat());
    }
    assert!(matches!(matcher.rollback(1_001, &none()), Err(Error::State(_))));
    assert_eq!(matcher.text(&none()).expect("no lock"), text);
    matcher.rollback(990, &none()).expect("so many steps");
    matcher.accept_bytes(b"bb", &none()).expect("no limit");
    assert_eq!(matcher.text(&none()).expect("no lock"), [&text[..10], b"bb"].concat());
}

#[test]
fn forced_bytes_end_whatever_the_limit() {
    let of = |text: &str, limits: EngineLimits| {
        let engine = compiled(text, Representation::Automatic, limits);
        Matcher::new(engine, StopRule::default()).expect("a start")
    };
    let matcher = of("root ::= \"a\"{100000000}", EngineLimits::default());
    let forced = matcher.forced_bytes(100_000_000, &none()).expect("no bound is passed");
    assert_eq!(forced.len(), MAX_FORCED_BYTES);
    assert!(forced.iter().all(|&byte| byte == b'a'));
    // The work of all together is bounded, and not that of each part.
    let limits = EngineLimits { max_accept_work: 9_000, ..EngineLimits::default() };
    let matcher = of("root ::= \"a\"{100000000}", limits);
    assert_eq!(matcher.forced_bytes(100, &none()).map(|bytes| bytes.len()), Ok(100));
    let error = matcher.forced_bytes(100_000_000, &none()).expect_err("too much in all");
    assert!(matches!(error, Error::Limit { limit: "max_accept_work", .. }), "{error}");
}

#[test]
fn a_long_text_that_was_ended_on_a_chart_is_dropped_by_and_by() {
    let text = "root ::= (\"a\" | root root | \"b\")*";
    let engine = compiled(text, Representation::Chart, EngineLimits::default());
    let mut matcher = Matcher::new(engine, StopRule::default()).expect("a start");
    assert_eq!(matcher.accept_bytes(b"aba", &none()), Ok(Accept::Taken));
    let before = (matcher.state(&none()), matcher.text(&none()));
    let text = [b"ab".repeat(20_000), b"!".to_vec()].concat();
    for _ in 0..3 {
        // Refused at the last byte, which leaves as much behind as an interrupt there does.
        assert_eq!(matcher.accept_bytes(&text, &none()), Ok(Accept::Refused));
        assert_eq!((matcher.state(&none()), matcher.text(&none())), before);
    }
    let held = matcher.bytes(&none()).expect("nobody else has it");
    let mut fork = matcher.fork();
    assert_eq!(fork.accept_bytes(b"ba", &none()), Ok(Accept::Taken));
    assert_eq!(fork.text(&none()), Ok(b"ababa".to_vec()));
    assert_eq!(fork.accept_bytes(&text, &none()), Ok(Accept::Refused));
    assert!(matcher.accept_token_now(2).is_none(), "there is something to be dropped");
    assert_eq!(matcher.accept_token(2, &none()), Ok(Accept::Taken));
    assert_eq!(matcher.text(&none()), Ok(b"abaaa".to_vec()));
    assert!(matcher.bytes(&none()).expect("nobody else has it") <= held + (1 << 20));
    assert!(matcher.accept_token_now(2).is_some(), "all was dropped");
    assert_eq!(fork.accept_token(2, &none()), Ok(Accept::Taken));
    assert_eq!(fork.text(&none()), Ok(b"ababaaa".to_vec()));
}
