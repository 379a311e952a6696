//! States that fall back, beside two oracles: the same automata with every edge written down, and the
//! doc comment of `grammar/dispatch.rs`, which knows texts only. Tags fall back on the start of their
//! rule, names of members on the state in which a name is another whatever comes.

use super::options::LARGE_AUTOMATON;
use super::*;
use crate::budget::{Budget, Interrupt};
use crate::grammar::Grammar;
use crate::limits::Limits;
use crate::syntax::parse;
use proptest::collection::vec;
use proptest::prelude::*;

/// What a random `TagDispatch` is made of; few letters, so that tags overlap.
#[derive(Clone, Debug)]
struct Dispatch {
    tags: Vec<String>,
    excludes: Vec<String>,
    loops: bool,
}

impl Dispatch {
    fn text(&self, root: &str) -> String {
        let mut arguments: Vec<String> =
            self.tags.iter().map(|tag| format!("(\"{tag}\", r)")).collect();
        if !self.loops {
            arguments.push("loop_after_dispatch=false".into());
        }
        if !self.excludes.is_empty() {
            let texts: Vec<String> = self.excludes.iter().map(|t| format!("\"{t}\"")).collect();
            arguments.push(format!("excludes=({},)", texts.join(", ")));
        }
        let arguments = arguments.join(", ");
        format!("root ::= {root}\nfree ::= TagDispatch({arguments})\nr ::= \"1\" r \"2\" | \"3\"\n")
    }

    fn grammar(&self, root: &str) -> Grammar {
        let limits = Limits::default();
        let grammar = parse(&self.text(root), "root", &limits).expect("it is a grammar");
        grammar.with_dispatches(&limits).expect("within bounds")
    }

    /// What is being written after a byte more, where that is text.
    fn after(&self, written: &str, byte: char) -> Option<String> {
        let longer = format!("{written}{byte}");
        if self.excludes.iter().any(|text| longer.ends_with(text)) {
            return None;
        }
        let begins = |text: &str| {
            self.tags.iter().chain(&self.excludes).any(|whole| whole.starts_with(text))
        };
        let rest = (0..=longer.len()).map(|from| &longer[from..]).find(|rest| begins(rest));
        let rest = rest.unwrap_or_default().to_owned();
        let ends = self.tags.iter().any(|tag| tag == written);
        (!ends || rest == longer).then_some(rest)
    }
}

fn texts(longest: usize, count: usize) -> impl Strategy<Value = Vec<String>> {
    vec(vec(prop::sample::select(vec!['<', 'a', 'b']), 1..=longest), 0..=count)
        .prop_map(|texts| texts.into_iter().map(|text| text.into_iter().collect()).collect())
}

fn dispatch() -> impl Strategy<Value = Dispatch> {
    (texts(6, 6), texts(3, 2), any::<bool>()).prop_map(|(tags, mut excludes, loops)| {
        excludes.retain(|text| !tags.iter().any(|tag: &String| tag.starts_with(text)));
        Dispatch { tags, excludes, loops }
    })
}

/// One rule alone, one called at the end, in the middle and where it may be called again.
const ROOTS: [&str; 4] = ["free", "free \"x\"", "\"x\" (free \"y\")? free", "free (\"<\" free)*"];

fn options(simplify: bool) -> NetworkOptions {
    let large_automaton = 0;
    let (share_wide, counters) = (Some(WIDE), true);
    NetworkOptions { large_automaton, share_wide, counters, simplify, ..Default::default() }
}

fn linked(grammar: &Grammar, options: &NetworkOptions) -> Network {
    let limits = Limits::default();
    let work = Budget::new(&limits, &Interrupt::default());
    let part = NetworkPart::of_frame(grammar, &[], options, &work).expect("within bounds");
    part.link(&limits, &work).expect("within bounds")
}

fn count_fallbacks(network: &Network) -> usize {
    (0..network.len() as u32).filter(|&state| network.fallback(state).is_some()).count()
}

/// Everything that is asked of states.
fn check_same(network: &Network, full: &Network) {
    assert_eq!(count_fallbacks(full), 0);
    assert_eq!((network.len(), network.start()), (full.len(), full.start()));
    assert_eq!(network.alphabet(), full.alphabet());
    for state in 0..network.len() as u32 {
        let edges: Vec<(u8, u32)> = network.edges(state).collect();
        assert_eq!(edges, full.listed(state), "{state} of\n{network}\n{full}");
        for class in 0..network.alphabet().len() as u8 {
            let of = |network: &Network| network.targets(state, class).collect::<Vec<_>>();
            assert_eq!(of(network), of(full));
        }
        let facts = |network: &Network| {
            let calls = (network.calls(state).to_vec(), network.delegated(state).to_vec());
            let own = (network.has_own(state), network.passes_on(state), network.stays(state));
            (*network.first(state), network.is_final(state), network.rule_of(state), calls, own)
        };
        assert_eq!(facts(network), facts(full));
        if let Some(other) = network.fallback(state) {
            let start = network.rule_starts[network.rule_of(state) as usize];
            assert!(network.is_final(state) || other != start);
            assert!(!network.listed(state).is_empty() && state != start);
            assert_eq!(network.rule_of(state), network.rule_of(other));
            assert!(network.fallback(other).is_none());
            let others = network.listed(other);
            assert!(network.listed(state).iter().all(|edge| !others.contains(edge)));
        }
    }
}

proptest! {
    #[test]
    fn states_that_fall_back_do_what_they_do_in_full(dispatch in dispatch(), which in 0..ROOTS.len()) {
        let grammar = dispatch.grammar(ROOTS[which]);
        let full = grammar.in_full();
        for simplify in [false, true] {
            let made = |grammar| Network::new(grammar, &options(simplify)).expect("within bounds");
            let (network, full) = (made(&grammar), made(&full));
            check_same(&network, &full);
            for state in 0..network.len() as u32 {
                prop_assert_eq!(network.identity(state), full.identity(state));
            }
        }
        let (network, full) = (linked(&grammar, &options(true)), linked(&full, &options(true)));
        check_same(&network, &full);
        // Tables as they stand have one digest, which says how they were written.
        for a in 0..network.len() as u32 {
            for b in 0..a {
                let same = |network: &Network| network.identity(a) == network.identity(b);
                prop_assert_eq!(same(&network), same(&full));
            }
        }
    }

    #[test]
    fn a_state_reads_what_the_texts_say(dispatch in dispatch()) {
        let network = linked(&dispatch.grammar("free"), &options(true));
        let [call] = *network.calls(network.start()) else { panic!("a call of the rule") };
        let mut written: Vec<Option<String>> = vec![None; network.len()];
        written[call.start as usize] = Some(String::new());
        let mut work = vec![call.start];
        while let Some(state) = work.pop() {
            let here = written[state as usize].clone().expect("it was met");
            for byte in ['<', 'a', 'b', 'z', '1'] {
                let class = network.alphabet().class(byte as u8);
                let found: Vec<u32> = network.targets(state, class).collect();
                let Some(next) = dispatch.after(&here, byte) else {
                    prop_assert!(found.is_empty(), "{here:?} {byte}");
                    continue;
                };
                let [to] = *found else { panic!("{here:?} {byte} {found:?}\n{network}") };
                let known = &mut written[to as usize];
                if known.is_none() {
                    *known = Some(next.clone());
                    work.push(to);
                }
                prop_assert_eq!(known.as_ref(), Some(&next));
                let is_tag = dispatch.tags.contains(&next);
                prop_assert_eq!(network.is_final(to), !is_tag);
                prop_assert_eq!(network.calls(to).is_empty(), !is_tag);
            }
        }
    }
}

fn many(excludes: &[&str]) -> Dispatch {
    let tags = (0..500).map(|number| format!("<function={number}_tool_{number}>")).collect();
    let excludes = excludes.iter().map(|text| (*text).into()).collect();
    Dispatch { tags, excludes, loops: true }
}

/// The grammar of an object that knows some names, and takes others.
fn members(names: &[String]) -> Grammar {
    use crate::json_schema::{SchemaOptions, convert};
    let quoted =
        |name: &String| format!("\"{}\": {{}}", name.replace('\\', "\\\\").replace('"', "\\\""));
    let names: Vec<String> = names.iter().map(quoted).collect();
    let schema = format!("{{\"type\": \"object\", \"properties\": {{{}}}}}", names.join(", "));
    let options = SchemaOptions { open_objects: true, ..SchemaOptions::default() };
    let limits = Limits::default();
    let work = Budget::new(&limits, &Interrupt::default());
    convert(&schema, &[], &options, &limits, &work).expect("it is a schema").grammar
}

fn names() -> impl Strategy<Value = Vec<String>> {
    let letter = prop::sample::select(vec!['a', 'b', 'c', ' ', '~', '"', '\\', '/', 'é', '€', '𝄞']);
    let name = vec(letter, 0..=5).prop_map(|letters| letters.into_iter().collect::<String>());
    prop::collection::btree_set(name, 0..=6).prop_map(|names| names.into_iter().collect())
}

proptest! {
    #[test]
    fn names_that_fall_back_do_what_they_do_in_full(names in names()) {
        let grammar = members(&names);
        let full = grammar.in_full();
        for simplify in [false, true] {
            let usual = NetworkOptions { large_automaton: LARGE_AUTOMATON, ..options(simplify) };
            let made = |grammar| Network::new(grammar, &usual).expect("within bounds");
            let (network, full) = (made(&grammar), made(&full));
            check_same(&network, &full);
            for state in 0..network.len() as u32 {
                prop_assert_eq!(network.identity(state), full.identity(state));
            }
            let in_full = grammar.in_full();
            check_same(&linked(&grammar, &usual), &linked(&in_full, &usual));
        }
    }
}

#[test]
fn names_list_few_edges() {
    let names: Vec<String> = (0..100).map(|number| format!("{number}_name_{number}")).collect();
    let network = Network::new(&members(&names), &options(true)).expect("within bounds");
    let listed: usize = (0..network.len() as u32).map(|q| network.listed(q).len()).sum();
    let all: usize = (0..network.len() as u32).map(|q| network.edges(q).count()).sum();
    assert!(count_fallbacks(&network) > 500, "{}", count_fallbacks(&network));
    assert!(8 * listed < all, "{listed} of {all}");
}

#[test]
fn many_tags_list_few_edges() {
    for excludes in [vec![], vec!["</s>", "_to_"]] {
        let dispatch = many(&excludes);
        let grammar = dispatch.grammar("free");
        let usual = NetworkOptions { large_automaton: LARGE_AUTOMATON, ..options(true) };
        let network = Network::new(&grammar, &usual).expect("within bounds");
        let listed: usize = (0..network.len() as u32).map(|q| network.listed(q).len()).sum();
        let all: usize = (0..network.len() as u32).map(|q| network.edges(q).count()).sum();
        assert!(network.len() > 1_000 && count_fallbacks(&network) * 2 > network.len());
        assert!(listed < 5 * network.len() && all > 10 * network.len(), "{listed} of {all}");
        check_same(&network, &Network::new(&grammar.in_full(), &usual).expect("within bounds"));
    }
}

#[test]
fn small_automata_become_minimal() {
    let dispatch = Dispatch { tags: vec!["<a>".into()], excludes: vec![], loops: true };
    let grammar = dispatch.grammar("free");
    let usual = NetworkOptions { large_automaton: LARGE_AUTOMATON, ..options(false) };
    for (options, count) in [(usual, 0), (options(false), 2)] {
        let network = Network::new(&grammar, &options).expect("within bounds");
        assert_eq!(count_fallbacks(&network), count);
    }
    let shown = Network::new(&grammar, &options(false)).expect("within bounds").to_string();
    assert!(shown.contains(" else as "), "{shown}");
}

#[test]
fn what_falls_back_is_told_apart() {
    // The same lists, once beside the start's and once alone.
    let dispatch = many(&[]);
    let network = linked(&dispatch.grammar("free \"x\""), &options(true));
    assert!(count_fallbacks(&network) > 0);
    let mut other = network.clone();
    other.fallbacks.clear();
    assert_ne!(network.fingerprint(), other.fingerprint());
    let part = |network: &Network| {
        let placed = network.linked.as_deref().expect("it was linked");
        placed.iter().find(|one| count_fallbacks(&one.part.tables) > 0).map(|one| one.part.clone())
    };
    let part = part(&network).expect("the rule is a part");
    let mut changed = part.tables.clone();
    changed.fallbacks.clear();
    let budget = Budget::new(&Limits::default(), &Interrupt::default());
    let changed = NetworkPart::of_tables(changed, part.children.clone(), &options(true), &budget);
    let changed = changed.expect("nobody cancels");
    assert!(part.says_the_same(&part) && !part.says_the_same(&changed));
    let outer = |child: u32| Identity::from([child as u8; 32]);
    assert_ne!(part.digest(&outer), changed.digest(&outer));
}
