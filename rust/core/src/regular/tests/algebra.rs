//! Operations against the oracle, and canonical forms.

use super::*;
use crate::hash::hash_of;

/// Every state is reached, in breadth-first order, and edges are disjoint sets of scalar values.
fn check_canonical(dfa: &Dfa) {
    let mut seen = BTreeSet::from([0]);
    for q in 0..dfa.len() {
        assert!(seen.contains(&q), "breadth-first");
        let mut sets = CharSet::default();
        for (set, to) in dfa.edges(q) {
            assert!(sets.intersection(&set).is_empty() && !set.is_empty());
            assert!(set.is_subset(&CharSet::scalar_values()));
            sets = sets.union(&set);
            seen.insert(to);
        }
    }
    assert_eq!(seen.len(), dfa.num_states());
}

fn length(text: &str) -> usize {
    text.chars().count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn expressions_are_what_the_oracle_says(expression in expressions(&LETTERS)) {
        let universe = universe(MOST);
        let budget = unbounded();
        let bounds = within(&budget);
        let dfa = expression.dfa(&bounds);
        check_canonical(&dfa);
        let texts = expression.texts(&universe);
        for text in &universe {
            prop_assert_eq!(dfa.accepts(text), texts.contains(text), "{:?}", text);
        }

        let shortest = dfa.shortest();
        prop_assert_eq!(shortest.is_none(), dfa.is_empty());
        if let Some(shortest) = shortest {
            prop_assert!(dfa.accepts(&shortest));
            let key = |text: &str| (length(text), text.to_owned());
            for text in &texts {
                prop_assert!(key(&shortest) <= key(text), "{:?} {:?}", shortest, text);
            }
        }
        let states = dfa.num_states() as u32;
        let long = Dfa::lengths(states, None, &bounds).expect("within bounds");
        prop_assert_eq!(dfa.count().is_some(), dfa.is_disjoint_from(&long, &bounds).expect("too"));
        if let Some(strings) = dfa.strings(5_000) {
            prop_assert_eq!(dfa.count(), Some(strings.len() as u64));
            prop_assert!(strings.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(strings.iter().all(|text| dfa.accepts(text)));
            prop_assert!(texts.iter().all(|text| strings.contains(text)));
            let again = Dfa::texts(strings.iter().map(String::as_str), &bounds);
            let others = Dfa::all_but_texts(strings.iter().map(String::as_str), &bounds);
            prop_assert_eq!(others.expect("within bounds"), dfa.complement());
            prop_assert_eq!(again.expect("within bounds"), dfa);
        }
    }

    #[test]
    fn equal_languages_are_equal_values(
        a in expressions(&LETTERS),
        b in expressions(&LETTERS),
    ) {
        let budget = unbounded();
        let bounds = within(&budget);
        let (x, y) = (a.dfa(&bounds), b.dfa(&bounds));
        let or = |x: &Dfa, y: &Dfa| x.union(y, &bounds).expect("within bounds");
        let and = |x: &Dfa, y: &Dfa| x.intersection(y, &bounds).expect("within bounds");
        let without = |x: &Dfa, y: &Dfa| x.difference(y, &bounds).expect("within bounds");
        prop_assert_eq!(&x.complement().complement(), &x);
        prop_assert_eq!(or(&x, &y).complement(), and(&x.complement(), &y.complement()));
        prop_assert_eq!(without(&x, &y), and(&x, &y.complement()));
        prop_assert_eq!(or(&x, &y), or(&y, &x));
        prop_assert_eq!(hash_of(&or(&x, &y)), hash_of(&or(&y, &x)));
        prop_assert_eq!(or(&and(&x, &y), &without(&x, &y)), x.clone());
        let either = or(&without(&x, &y), &without(&y, &x));
        prop_assert_eq!(x == y, either.is_empty());
        prop_assert_eq!(&Expression::ByNfa(a.clone().into()).dfa(&bounds), &x);
        prop_assert_eq!(
            x.is_disjoint_from(&y, &bounds).expect("within bounds"), and(&x, &y).is_empty()
        );
        prop_assert_eq!(
            x.is_subset_of(&y, &bounds).expect("within bounds"), without(&x, &y).is_empty()
        );
        prop_assert_eq!(x.is_universal(), x.complement().is_empty());
        prop_assert_eq!(x.is_universal(), x == Dfa::anything());
        let star = x.repetition(0, None, &bounds).expect("within bounds");
        prop_assert_eq!(&star.repetition(0, None, &bounds).expect("within bounds"), &star);
        let more = x.concatenation(&star, &bounds).expect("within bounds");
        prop_assert_eq!(or(&Dfa::empty_string(), &more), star);
    }

    #[test]
    fn tables_are_read(
        rows in proptest::collection::vec((any::<bool>(), [0usize..8, 0..8, 0..8]), 1..8),
        negated in proptest::option::of(0usize..3),
    ) {
        let budget = unbounded();
        let bounds = within(&budget);
        // The last two letters belong to the third symbol; one symbol may have all that no other has.
        let mut symbols = [&LETTERS[..1], &LETTERS[2..4], &LETTERS[4..]].map(|s| set_of(s, false));
        if let Some(negated) = negated {
            let others = (0..3).filter(|&other| other != negated).map(|other| &symbols[other]);
            symbols[negated] = others.fold(CharSet::default(), |all, s| all.union(s)).complement();
        }
        let states = rows.len();
        let finals: Vec<bool> = rows.iter().map(|row| row.0).collect();
        let table: Vec<Vec<(u32, u32)>> = rows
            .iter()
            .map(|(_, targets)| {
                let edges = (0..).zip(targets).filter(|(_, to)| **to < states);
                edges.map(|(symbol, &to)| (symbol, to as u32)).collect()
            })
            .collect();
        let dfa = Dfa::from_table(&symbols, &table, &finals, &bounds).expect("within bounds");
        check_canonical(&dfa);
        for text in universe(MOST) {
            let mut state = Some(0);
            for c in text.chars() {
                let symbol = symbols.iter().position(|set| set.contains(c as u32));
                let next = |state: usize| {
                    table[state].iter().find(|edge| Some(edge.0 as usize) == symbol)
                };
                state = state.and_then(next).map(|edge| edge.1 as usize);
            }
            prop_assert_eq!(dfa.accepts(&text), state.is_some_and(|q| finals[q]), "{:?}", text);
        }
    }

    #[test]
    fn uniform_lengths_are_seen(
        expression in expressions(&LETTERS),
        set in proptest::collection::vec(proptest::sample::select(&LETTERS[..]), 1..4),
        is_negated in any::<bool>(),
        min in 0u32..4,
        more in proptest::option::of(0u32..4),
    ) {
        let budget = unbounded();
        let bounds = within(&budget);
        let repeated = |set: &CharSet, min: u32, max: Option<u32>| {
            Dfa::character(set).repetition(min, max, &bounds).expect("within bounds")
        };
        let set = set_of(&set, is_negated).intersection(&CharSet::scalar_values());
        let max = more.map(|more| min + more);
        let expected = if max == Some(0) { CharSet::default() } else { set.clone() };
        let dfa = repeated(&set, min, max);
        prop_assert_eq!(dfa.uniform_lengths(), Some((expected, min, max)));

        let dfa = expression.dfa(&bounds);
        // The only possible answer.
        let sets = dfa.edges(0).map(|edge| edge.0);
        let set = sets.fold(CharSet::default(), |all, set| all.union(&set));
        let max = dfa.count().map(|_| dfa.num_states() as u32 - 1);
        let answer = dfa.shortest().map(|shortest| (set, length(&shortest) as u32, max));
        let answer = answer.filter(|(set, min, max)| repeated(set, *min, *max) == dfa);
        prop_assert_eq!(dfa.uniform_lengths(), answer);
    }
}

#[test]
fn small_languages() {
    let budget = unbounded();
    let bounds = within(&budget);
    assert_eq!(Dfa::nothing().complement(), Dfa::anything());
    assert_eq!(Dfa::anything().complement(), Dfa::nothing());
    assert_eq!(Dfa::character(&CharSet::default()), Dfa::nothing());
    assert_eq!(Dfa::character(&CharSet::new([(0xD800, 0xDFFF)])), Dfa::nothing());
    let any = Dfa::lengths(1, Some(1), &bounds).expect("within bounds");
    assert_eq!(Dfa::character(&CharSet::scalar_values()), any);
    assert_eq!(Dfa::character(&CharSet::new([(0, 0x10_FFFF)])), any);
    assert_eq!(Dfa::texts([], &bounds), Ok(Dfa::nothing()));
    assert_eq!(Dfa::texts([""], &bounds), Ok(Dfa::empty_string()));
    assert_eq!(Dfa::all_but_texts([], &bounds), Ok(Dfa::anything()));
    assert_eq!(Dfa::all_but_texts([""], &bounds), Ok(Dfa::lengths(1, None, &bounds).expect("few")));
    let last = Dfa::texts(["\u{10FFFF}", "a\u{10FFFF}b"], &bounds).expect("within bounds");
    let others = Dfa::all_but_texts(["\u{10FFFF}", "a\u{10FFFF}b"], &bounds);
    assert_eq!(others, Ok(last.complement()));
    assert_eq!(Dfa::lengths(0, None, &bounds), Ok(Dfa::anything()));
    assert_eq!(Dfa::lengths(3, Some(2), &bounds), Ok(Dfa::nothing()));
    assert_eq!(Dfa::from_nfa(&ScalarNfa::new(), &bounds), Ok(Dfa::nothing()));
    assert_eq!(Dfa::anything().uniform_lengths(), Some((CharSet::scalar_values(), 0, None)));
    assert_eq!(Dfa::nothing().uniform_lengths(), None);
    assert_eq!(any.count(), Some(0x11_0000 - 0x800));
    assert_eq!(any.strings(1000), None);
    // The rest first, then what is not the rest: two sets, although there are two classes only.
    let a = set_of(&['a'], false);
    let two = Dfa::character(&a.complement()).concatenation(&Dfa::character(&a), &bounds);
    assert_eq!(two.expect("within bounds").uniform_lengths(), None);
    // What a text names costs, and not what it leaves out.
    let names = Dfa::texts(["left", "right"], &bounds).expect("within bounds");
    assert!(names.complement().num_edges() < 3 * names.num_edges());
}

#[test]
fn many_texts_are_read_in_one_pass() {
    let budget = unbounded();
    let bounds = Bounds { budget: &budget, max_states: 1_000_000 };
    let texts: Vec<String> = (0..100_000u32).map(|i| format!("{:x}é{i}", i * 7919)).collect();
    let dfa = Dfa::texts(texts.iter().map(String::as_str), &bounds).expect("within bounds");
    assert_eq!(dfa.count(), Some(texts.len() as u64));
    assert!(texts.iter().all(|text| dfa.accepts(text)));
    let bytes: usize = texts.iter().map(String::len).sum();
    assert!(budget.done() < 4 * bytes as u64, "{}", budget.done());
}

#[test]
fn minimization_is_not_quadratic() {
    // A chain of which every state is told apart from the end on, one after the other.
    let work = |states: u32| {
        let budget = unbounded();
        let bounds = within(&budget);
        let symbols = [set_of(&['a'], false), set_of(&['b'], false)];
        let last = states - 1;
        let rows: Vec<_> = (0..states).map(|i| vec![(0, (i + 1).min(last)), (1, 0)]).collect();
        let finals: Vec<bool> = (0..states).map(|i| i == last).collect();
        let dfa = Dfa::from_table(&symbols, &rows, &finals, &bounds).expect("within bounds");
        assert_eq!(dfa.num_states(), states as usize);
        budget.done()
    };
    assert!(work(32_000) < 48 * work(1_000), "{} {}", work(32_000), work(1_000));
}
