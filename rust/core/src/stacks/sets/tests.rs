use super::unions::{SORTED_AT_ONCE, sort_within};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

type Stack = Vec<u32>;

/// All stacks of a set, top first: the obvious way, for tests.
pub(in crate::stacks) fn stacks_of(sets: &StackSets, set: SetId) -> BTreeSet<Vec<u32>> {
    let mut out = BTreeSet::new();
    for (top, beneath) in sets.entries(set) {
        match top {
            BOTTOM => drop(out.insert(Vec::new())),
            _ => {
                let stacks = stacks_of(sets, beneath).into_iter();
                out.extend(stacks.map(|stack| [&[top][..], &stack].concat()));
            }
        }
    }
    out
}

/// The set of these stacks, one by one: the obvious way.
fn build(sets: &mut StackSets, stacks: &BTreeSet<Stack>) -> SetId {
    let mut out = NONE;
    for stack in stacks {
        let mut set = REST;
        for &frame in stack.iter().rev() {
            set = sets.add(&[(frame, set)]).expect("no budget");
        }
        out = sets.union(out, set).expect("no budget");
    }
    out
}

fn stack_set() -> impl Strategy<Value = BTreeSet<Stack>> {
    let frame = prop_oneof![0u32..6, 0u32..200, any::<u32>().prop_map(|x| x >> 1)];
    proptest::collection::btree_set(proptest::collection::vec(frame, 0..4), 0..40)
}

#[test]
fn parts_are_sorted_and_merged_as_a_whole_is_sorted() {
    for length in [0, 1, SORTED_AT_ONCE, 3 * SORTED_AT_ONCE + 7, 4 * SORTED_AT_ONCE] {
        let number = |i: usize| (i as u32).wrapping_mul(2_654_435_761) >> 12;
        let mut pairs: Vec<Entry> = (0..length).map(|i| (number(i), number(i + 9) % 5)).collect();
        let mut expected = pairs.clone();
        expected.sort_unstable();
        sort_within(&mut pairs, &mut Meter::default()).expect("no bound");
        assert_eq!(pairs, expected);
    }
}

proptest! {
    #[test]
    fn equal_sets_are_equal_ids(a in stack_set(), b in stack_set()) {
        let mut sets = StackSets::new();
        let (x, y) = (build(&mut sets, &a), build(&mut sets, &b));
        prop_assert_eq!(stacks_of(&sets, x), a.clone());
        let united: BTreeSet<Stack> = a.union(&b).cloned().collect();
        let shared: BTreeSet<Stack> = a.intersection(&b).cloned().collect();
        prop_assert_eq!(sets.union(x, y).expect("no budget"), build(&mut sets, &united));
        prop_assert_eq!(sets.intersection(x, y).expect("no budget"), build(&mut sets, &shared));
        let listed = sets.entries(x);
        prop_assert_eq!(sets.add(&listed).expect("no budget"), x);
        for (top, beneath) in sets.entries(y) {
            let all = stacks_of(&sets, beneath);
            let all: BTreeSet<Stack> =
                all.into_iter().map(|stack| [&[top][..], &stack].concat()).collect();
            let all = if top == BOTTOM { BTreeSet::from([Vec::new()]) } else { all };
            let is_small = all.len() * 4 < COVER_STEPS;
            let is_part = all.is_subset(&a);
            let covers = sets.covers(x, (top, beneath));
            prop_assert!(covers == is_part || !is_small && is_part, "{covers} {is_part}");
        }
        prop_assert_eq!(&sets.some_entries(x, 9)[..], &listed[..listed.len().min(9)]);
        prop_assert_eq!(sets.has_rest(x), a.contains(&Vec::new()));
        let kept: BTreeSet<Stack> = a.iter().filter(|s| !s.is_empty()).cloned().collect();
        let rest = if kept.len() < a.len() { REST } else { NONE };
        let parts = (build(&mut sets, &kept), rest);
        prop_assert_eq!(sets.without_labels(x).expect("no budget"), parts);
    }
}
