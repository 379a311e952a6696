//! Against exhaustive search: sets of stacks level by level, all tokens read from each.

use super::*;
use crate::limits::Limits;
use crate::network::NetworkOptions;
use crate::stacks::{NONE, REST, Stepper};
use crate::syntax;
use proptest::prelude::*;
use rustc_hash::FxHashSet;

/// Right sides of rules: words, calls, repetitions with bounds.
fn body() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "\"a\"", "\"b\"", "\"(\"", "\".\"", "\"ab\"", "[ab]", "[^.]", "x", "y", "z", "root",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 10, 3, |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} {b}")),
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} | {b})")),
            2 => (inner.clone(), prop::sample::select(vec!["?", "*", "+"]))
                .prop_map(|(a, mark)| format!("({a}){mark}")),
            2 => (inner, 0u32..7, 0u32..30, any::<bool>()).prop_map(|(a, from, more, is_open)| {
                match is_open {
                    true => format!("({a}){{{from},}}"),
                    false => format!("({a}){{{from},{}}}", from + more.max(1)),
                }
            }),
        ]
    })
}

/// Tokens over the letters of the grammars; single letters may be missing.
fn vocabulary() -> impl Strategy<Value = Vec<String>> {
    let word = prop::collection::vec(prop::sample::select(vec!["a", "b", "(", "."]), 1..6);
    let words = prop::collection::vec(word.prop_map(|letters| letters.concat()), 1..14);
    (words, any::<u8>()).prop_map(|(mut words, missing)| {
        for (at, letter) in ["a", "b", "(", "."].into_iter().enumerate() {
            if missing >> at & 1 == 0 || missing >= 80 {
                words.push(letter.into());
            }
        }
        words.sort();
        words.dedup();
        words
    })
}

fn trie(words: &[String]) -> Trie {
    Trie::new(words.iter().map(String::as_bytes).zip(0..))
}

/// The fewest tokens by search, as far as so many sets say.
fn search(
    stepper: &mut Stepper<Arc<Network>>,
    tokens: &[Vec<u8>],
    set: SetId,
    most_sets: usize,
) -> Option<u32> {
    let mut seen: FxHashSet<SetId> = FxHashSet::default();
    let mut level = vec![set];
    for count in 0..40 {
        if level.iter().any(|&set| stepper.sets.has_rest(set)) {
            return Some(count);
        }
        let mut next = Vec::new();
        for &set in &level {
            for token in tokens {
                let step = |set, &class| stepper.step(set, class).expect("no budget");
                let after = token.iter().fold(set, step);
                if after != NONE && seen.insert(after) {
                    next.push(after);
                }
            }
        }
        if seen.len() > most_sets {
            return None;
        }
        if next.is_empty() {
            return Some(UNREACHABLE);
        }
        level = next;
    }
    None
}

fn start(stepper: &mut Stepper<Arc<Network>>, network: &Network) -> SetId {
    let start = stepper.sets.add(&[(network.start(), REST)]).expect("no budget");
    match network.accepts_empty() {
        true => stepper.sets.union(start, REST).expect("no budget"),
        false => start,
    }
}

/// Compares at places of a walk; how many places the search could decide.
fn compare(text: &str, words: &[String], picks: &[usize]) -> Result<u32, TestCaseError> {
    let Ok(grammar) = syntax::parse(text, "root", &Limits::default()) else { return Ok(0) };
    let options = NetworkOptions { counters: true, ..NetworkOptions::default() };
    let Ok(network) = Network::new(&grammar, &options) else { return Ok(0) };
    let network = Arc::new(network);
    let trie = trie(words);
    let mut meter = Meter::default();
    let ending = Ending::new(network.clone(), &trie, &trie, &mut meter).expect("no bound");
    let class = |byte: &u8| network.alphabet().class(*byte);
    let tokens: Vec<Vec<u8>> =
        words.iter().map(|word| word.as_bytes().iter().map(class).collect()).collect();
    let single: crate::network::ClassSet = {
        let mut single = [0; 4];
        let letters = tokens.iter().filter(|token| token.len() == 1);
        letters.for_each(|token| single[token[0] as usize >> 6] |= 1 << (token[0] & 63));
        single
    };
    let countdown = Countdown::new(&network, &trie, &single, &mut meter).expect("no bound");
    let mut stepper = Stepper::new(network.clone());
    let mut set = start(&mut stepper, &network);
    let mut memo = Memo::default();
    let mut decided = 0;
    let mut most_before: Option<u32> = None;
    for &pick in picks {
        let stacks = Stacks { network: &network, sets: &stepper.sets };
        let mut asking = ending.ask(usize::MAX, &Interrupt::default()).expect("nobody else asks");
        let found = asking.fewest(stacks, &mut memo, set, &mut meter).expect("no bound");
        drop(asking);
        let letters = countdown.letters(stacks, &mut memo, set, &mut meter);
        let (least, most) = letters.expect("no bound");
        if let Some(raised) = countdown.most_raised {
            prop_assert!(found <= most, "{text} {words:?}: {found} tokens, {most} letters");
            if let Some(before) = most_before {
                prop_assert!(most <= before + raised, "{text} {words:?}: {before}, {most}");
            }
            most_before = Some(most);
        }
        if let Some(expected) = search(&mut stepper, &tokens, set, 1_500) {
            decided += 1;
            prop_assert_eq!(found, expected, "{} {:?}", text, words);
        }
        let all: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![class(&byte)]).collect();
        if let Some(expected) = search(&mut stepper, &all, set, 300) {
            prop_assert_eq!(least, expected, "letters of {}", text);
        }
        let after = |token: &Vec<u8>, stepper: &mut Stepper<Arc<Network>>| {
            let step = |set, &class| stepper.step(set, class).expect("no budget");
            token.iter().fold(set, step)
        };
        let next: Vec<SetId> =
            tokens.iter().map(|token| after(token, &mut stepper)).filter(|&s| s != NONE).collect();
        let Some(&chosen) = next.get(pick % next.len().max(1)) else { break };
        set = chosen;
    }
    Ok(decided)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn fewest_tokens_are_those_of_an_exhaustive_search(
        bodies in [body(), body(), body(), body()],
        words in vocabulary(),
        picks in prop::collection::vec(0..1_000usize, 6),
    ) {
        let [root, x, y, z] = bodies;
        let text = format!(
            "root ::= {root} \".\" | \"(\" root root \")\"\nx ::= \"b\" | {x}\n\
             y ::= \"a\" y \"b\" | {y} | \"b\" \"a\"\nz ::= \"ab\" | {z}\n"
        );
        compare(&text, &words, &picks)?;
    }
}

/// Of 38 letters between parentheses, and of 40.
const FITS: &str = "(bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb).";
const TOO_LONG: &str = "(bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbaab).";

#[test]
fn grammars_whose_tokens_fit_badly() {
    let grammars = [
        "root ::= \"a\"{20,30} \".\"",
        "root ::= (\"a\" | \"b\"){2,40} \".\"",
        "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \".\"",
        "root ::= root root | \"(\" root \")\" | \"a\"",
        "root ::= root \"a\" | \"b\"",
        "root ::= x x \".\"\nx ::= \"\" | \"a\" | \"ab\"",
        "root ::= \"(\" (\"a\"{5,9} \"b\"){3,} \")\"",
        "root ::= \"(\" [ab]{0,39} \").\" | \"a\"",
        "root ::= \"(\" x{0,64} \")\" | \"a\"* | \"a\"* \"b\" \".\"{30}\nx ::= [^()]",
    ];
    let vocabularies: [&[&str]; 7] = [
        &[FITS, TOO_LONG, "(bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbaab))"],
        &["a", "b", "(", ")", "."],
        &["aa", "aaa", "b.", "bb", "(", "a)", ".", "ba"],
        &["aaaaa", "a", "ab", "b", "((", "))", "(", ")", "a."],
        &["aaaa", "b", ".", "(a", "a)", "()"],
        &["ab", "ba", "a", "b.", "b", ".", "....", "(", ")", ")."],
        &["a", "b", "(", ")", ".", "aaaaaaaaaa.", "b)", "aaaab", "...."],
    ];
    let mut decided = 0;
    for grammar in grammars {
        for words in vocabularies {
            let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            words.sort();
            for first in 0..4 {
                let picks: Vec<usize> = (0..8).map(|at| first * 7 + at * (first + 1)).collect();
                decided += compare(grammar, &words, &picks).expect("the same");
            }
        }
    }
    assert!(decided > 300, "{decided}");
}

/// The strings from a node to ends of tokens.
fn strings_from(dawg: &Dawg, node: NodeId) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut work = vec![(node, Vec::new())];
    while let Some((at, string)) = work.pop() {
        if dawg.is_end(at) {
            out.push(string.clone());
        }
        for &(class, child) in dawg.children(at) {
            let mut longer = string.clone();
            longer.push(class);
            work.push((child, longer));
        }
    }
    out.sort();
    out
}

/// The fewest tokens that spell a string, by trying all.
fn spelled(string: &[u8], tokens: &[Vec<u8>]) -> u32 {
    let mut fewest = vec![UNREACHABLE; string.len() + 1];
    fewest[string.len()] = 0;
    for from in (0..string.len()).rev() {
        let fits = tokens.iter().filter(|token| string[from..].starts_with(token));
        fewest[from] =
            fits.map(|token| fewest[from + token.len()] + 1).min().unwrap_or(UNREACHABLE);
    }
    fewest[0].min(UNREACHABLE)
}

fn set_of(letters: [bool; 5]) -> ClassSet {
    let mut set = [0; 4];
    let all = (0..5u8).filter(|&letter| letters[usize::from(letter)]);
    all.for_each(|letter| crate::network::insert(&mut set, letter));
    set
}

proptest! {
    #[test]
    fn nodes_go_on_with_the_strings_that_are_meant(
        words in vocabulary(),
        unions in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..6), 0..12),
        classes in prop::collection::vec(any::<[bool; 5]>(), 0..6),
        (last, next) in prop_oneof![Just(([true; 5], [true; 5])), any::<([bool; 5], [bool; 5])>()],
    ) {
        let grammar = syntax::parse("root ::= \"a\" \"b\" \"(\" \".\"", "root", &Limits::default()).expect("a grammar");
        let network = Network::new(&grammar, &NetworkOptions::default()).expect("a network");
        let class = |byte: &u8| network.alphabet().class(*byte);
        let tokens: Vec<Vec<u8>> =
            words.iter().map(|word| word.as_bytes().iter().map(class).collect()).collect();
        let trie = trie(&words);
        let cuts = Cuts { last: set_of(last), next: set_of(next) };
        let is_all = last == [true; 5] && next == [true; 5];
        let mut dawg = Dawg::new(&trie, &trie, |trie, node| class_of(&network, trie, node), None, cuts);
        // Nodes to which tokens lead; others go on with strings of these.
        let mut reached = vec![dawg.root()];
        let mut at = 0;
        while at < reached.len() {
            for &(_, child) in dawg.children(reached[at]) {
                if !reached.contains(&child) {
                    reached.push(child);
                }
            }
            at += 1;
        }
        prop_assert_eq!(reached.len(), dawg.reached());
        let mut nodes = reached[1..].to_vec();
        // A bound is that of the strings that begin behind a cut.
        let mut is_cut = vec![false; dawg.len()];
        for token in &tokens {
            let mut node = dawg.root();
            for pair in token.windows(2) {
                node = dawg.child(node, pair[0]).expect("tokens are read");
                is_cut[node as usize] |= contains(&cuts.last, pair[0]);
            }
        }
        let is_asked = |string: &Vec<u8>| {
            string.first().is_some_and(|&first| contains(&cuts.next, first))
        };
        for &node in &nodes {
            let all = strings_from(&dawg, node);
            let asked = all.iter().filter(|string| is_asked(string));
            let most = asked.map(|string| spelled(string, &tokens)).max();
            match is_cut[node as usize] {
                true => prop_assert_eq!(dawg.tokens(node), most.unwrap_or(1)),
                false if all == [Vec::new()] => prop_assert_eq!(dawg.tokens(node), 0),
                // Nobody asks, but that the strings of another node that need more may be the same.
                false => prop_assert!(dawg.tokens(node) >= most.unwrap_or(0)),
            }
        }
        // Unions of them, and of these, and what begins with some classes.
        let mut classes = classes.iter().cycle();
        for picked in unions {
            let of: Vec<NodeId> = picked.iter().map(|index| *index.get(&nodes)).collect();
            let mut all: Vec<Vec<u8>> =
                of.iter().flat_map(|&node| strings_from(&dawg, node)).collect();
            all.sort();
            all.dedup();
            let Some(union) = dawg.union(&mut of.clone()) else {
                prop_assert!(of.is_empty());
                continue;
            };
            prop_assert_eq!(&strings_from(&dawg, union), &all);
            nodes.push(union);
            let Some(picked) = classes.next() else { continue };
            let begins = set_of(*picked);
            all.retain(|string| string.first().is_some_and(|&first| contains(&begins, first)));
            let mut rests: Vec<Vec<u8>> = all.iter().map(|string| string[1..].to_vec()).collect();
            rests.sort();
            rests.dedup();
            match dawg.after(union, &begins) {
                Some(after) => {
                    prop_assert_eq!(&strings_from(&dawg, after), &rests);
                    nodes.push(after);
                }
                None => prop_assert!(all.is_empty()),
            }
            match dawg.beginning_with(union, &begins) {
                Some(part) => {
                    prop_assert_eq!(&strings_from(&dawg, part), &all);
                    nodes.push(part);
                }
                None => prop_assert!(all.is_empty()),
            }
        }
        // What was found is found again.
        let mut both = nodes[..nodes.len().min(2)].to_vec();
        let known = dawg.union(&mut both);
        let before = dawg.bytes();
        prop_assert!(dawg.fits(before));
        prop_assert!(!dawg.fits(0) && dawg.bytes() <= before);
        prop_assert_eq!(dawg.union(&mut both), known);
        for &node in &nodes {
            let all = strings_from(&dawg, node);
            let asked = all.iter().filter(|string| is_asked(string));
            let needs = asked.map(|string| spelled(string, &tokens));
            prop_assert!(needs.max().unwrap_or(0) <= dawg.tokens(node));
            let is_hard = |string: &&Vec<u8>| is_asked(string) && spelled(string, &tokens) > 1;
            let hard: Vec<Vec<u8>> = all.iter().filter(is_hard).cloned().collect();
            let harder = dawg.harder(node, 1).map(|harder| strings_from(&dawg, harder));
            match harder.unwrap_or_default() {
                harder if is_all => prop_assert_eq!(harder, hard),
                harder => {
                    prop_assert!(hard.iter().all(|string| harder.contains(string)));
                    prop_assert!(harder.iter().all(|string| all.contains(string)));
                }
            }
            for &other in &nodes {
                let strings = strings_from(&dawg, other);
                let has_all = strings.iter().all(|string| all.contains(string));
                prop_assert_eq!(dawg.covers(node, other), has_all);
                prop_assert_eq!(node == other, strings == all, "equal strings are one node");
            }
        }
    }
}

#[test]
fn a_long_token_in_a_string_raises_nothing() {
    let text = "root ::= \"(\" x \")\"\nx ::= [^()]*";
    let grammar = syntax::parse(text, "root", &Limits::default()).expect("a grammar");
    let network = Arc::new(Network::new(&grammar, &NetworkOptions::default()).expect("a network"));
    let words = ["a".to_owned(), "a".repeat(100), "b".to_owned(), "(a".to_owned()];
    let countdown = Countdown::new(&network, &trie(&words), &[u64::MAX; 4], &mut Meter::default());
    assert_eq!(countdown.expect("no bound").most_raised, Some(0));
    // A brace needs nine letters more, and a letter takes one of these away.
    let text = "root ::= \"{\" \"abcdefgh\" root? \"}\"";
    let grammar = syntax::parse(text, "root", &Limits::default()).expect("a grammar");
    let network = Arc::new(Network::new(&grammar, &NetworkOptions::default()).expect("a network"));
    let countdown = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let trie = trie(&words);
        let made = Countdown::new(&network, &trie, &[u64::MAX; 4], &mut Meter::default());
        made.expect("no bound").most_raised
    };
    assert_eq!(countdown(&["abc"]), Some(0));
    assert_eq!(countdown(&["h{"]), Some(9 - 1));
}

#[test]
fn places_of_an_automaton_may_be_asked_for_in_any_order() {
    let text = "root ::= x \"c\"\nx ::= \"aaccac\" | \"aabbcacc\" | \"ccaabaabc\" | \"a\" | \"bcabcca\" | \
                \"abcacac\" | \"bc\" | \"cbacaca\"";
    let grammar = syntax::parse(text, "root", &Limits::default()).expect("a grammar");
    let network = Arc::new(Network::new(&grammar, &NetworkOptions::default()).expect("a network"));
    let words =
        ["bccac", "bca", "ab", "ba", "cabccac", "a", "cc", "bcc", "ccac"].map(str::to_owned);
    let tokens: Vec<Vec<u8>> = words
        .iter()
        .map(|word| word.bytes().map(|byte| network.alphabet().class(byte)).collect())
        .collect();
    let mut stepper = Stepper::new(network.clone());
    let begin = start(&mut stepper, &network);
    let begins = ["", "ab", "a", "aa", "aacc", "bca", "cc"];
    let sets = begins.map(|begin_text| {
        let step =
            |set, byte| stepper.step(set, network.alphabet().class(byte)).expect("no budget");
        begin_text.bytes().fold(begin, step)
    });
    let expected = sets.map(|set| search(&mut stepper, &tokens, set, 5_000).expect("few sets"));
    for first in 0..begins.len() {
        for second in 0..begins.len() {
            let mut meter = Meter::default();
            let trie = trie(&words);
            let ending = Ending::new(network.clone(), &trie, &trie, &mut meter).expect("no bound");
            let mut asking =
                ending.ask(usize::MAX, &Interrupt::default()).expect("nobody else asks");
            let stacks = Stacks { network: &network, sets: &stepper.sets };
            for place in [first, second].into_iter().chain(0..begins.len()) {
                let mut memo = Memo::default();
                let found = asking.fewest(stacks, &mut memo, sets[place], &mut meter);
                assert_eq!(found.expect("no bound"), expected[place], "{first} {second} {place}");
            }
        }
    }
}

proptest! {
    /// No frame is left within a token that is taken whole: it raises no bound, and has no part in the largest.
    #[test]
    fn tokens_that_are_taken_whole_raise_no_bound(
        words in prop::collection::vec("[ab.]{1,5}", 1..10),
        whole in prop::collection::vec("\\([ab.]{1,4}", 1..6),
    ) {
        let grammar = syntax::parse("root ::= \"a\" \"b\" \"(\" \".\"", "root", &Limits::default()).expect("a grammar");
        let network = Network::new(&grammar, &NetworkOptions::default()).expect("a network");
        let class = |byte: u8| network.alphabet().class(byte);
        let dawg = |words: Vec<String>| {
            let words: std::collections::BTreeSet<String> = words.into_iter().collect();
            let trie = trie(&words.into_iter().collect::<Vec<_>>());
            let cuts = Cuts::ALL;
            Dawg::new(&trie, &trie, |trie, node| class_of(&network, trie, node), Some(class(b'(')), cuts)
        };
        let (plain, all) = (dawg(words.clone()), dawg([words.clone(), whole].concat()));
        prop_assert_eq!(all.most_tokens(), plain.most_tokens());
        for word in &words {
            let (mut here, mut there) = (plain.root(), all.root());
            for byte in word.bytes() {
                here = plain.child(here, class(byte)).expect("a word is read");
                there = all.child(there, class(byte)).expect("a word is read");
                prop_assert_eq!(all.tokens(there), plain.tokens(here), "{}", word);
            }
        }
    }
}
