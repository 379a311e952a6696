//! Byte classes that no state of some rules tells apart become one.

use crate::automata::{Automaton, FIRST_CALL};
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use rustc_hash::FxHashMap;

/// Maps each byte class to a number that it shares with the classes that no state tells apart.
pub(super) fn merge_classes(
    rules: &[Automaton],
    num_classes: usize,
    work: &Budget,
) -> Result<Vec<u8>> {
    let ticks = Ticks::new(work);
    // Classes that no state told apart so far are one group.
    let mut group = vec![0u32; num_classes];
    let mut sizes = vec![num_classes];
    let mut leads: Vec<(u32, u32, u32)> = Vec::new();
    let mut met = GroupTargets::new(num_classes);
    'rules: for automaton in rules {
        ticks.step()?;
        for (_, edges) in automaton.states() {
            if sizes.len() == num_classes {
                break 'rules;
            }
            ticks.steps(1 + edges.len())?;
            let letters = edges.iter().filter(|edge| edge.0 < FIRST_CALL);
            let open = letters.filter(|edge| sizes[group[edge.0 as usize] as usize] > 1);
            leads.clear();
            leads.extend(open.map(|&(letter, to)| (group[letter as usize], letter, to)));
            // Most states tell no classes apart, which is seen without putting anything in order.
            met.keep_told_apart(&mut leads, &sizes);
            leads.sort_unstable();
            leads.dedup();
            let of_group = |a: &(u32, u32, u32), b: &(u32, u32, u32)| a.0 == b.0;
            leads.chunk_by(of_group).for_each(|leads| split(leads, &mut group, &mut sizes));
        }
    }
    // Groups are numbered in the order of their first classes.
    let mut ids: FxHashMap<u32, u8> = FxHashMap::default();
    let out = group.into_iter().map(|group| {
        let next = ids.len() as u8;
        *ids.entry(group).or_insert(next)
    });
    let out = out.collect();
    Ok(out)
}

/// Where the edges of one state lead with the classes of each group.
struct GroupTargets {
    /// The first target, how many classes lead there, and whether some class leads elsewhere.
    groups: Vec<(u32, usize, bool)>,
    /// For each edge of the state whether the state tells its group apart.
    told: Vec<bool>,
}

impl GroupTargets {
    fn new(groups: usize) -> Self {
        Self { groups: vec![(0, 0, false); groups], told: Vec::new() }
    }

    /// Keeps what leads from a state with the classes of groups that the state tells apart. Edges are in
    /// the order of their letters.
    fn keep_told_apart(&mut self, leads: &mut Vec<(u32, u32, u32)>, sizes: &[usize]) {
        let mut last = None;
        for &(group, letter, to) in leads.iter() {
            let (target, classes, goes_apart) = &mut self.groups[group as usize];
            if *classes == 0 {
                *target = to;
            }
            *goes_apart |= *target != to || last == Some(letter);
            *classes += 1;
            last = Some(letter);
        }
        let groups = &mut self.groups;
        let is_told = |group: u32| {
            let (_, classes, goes_apart) = groups[group as usize];
            goes_apart || classes != sizes[group as usize]
        };
        let told = &mut self.told;
        told.clear();
        told.extend(leads.iter().map(|lead| is_told(lead.0)));
        leads.iter().for_each(|lead| groups[lead.0 as usize] = (0, 0, false));
        let mut told = told.iter();
        leads.retain(|_| told.next() == Some(&true));
    }
}

/// Where a state leads with one class.
fn targets(class: &[(u32, u32, u32)]) -> impl Iterator<Item = u32> {
    class.iter().map(|lead| lead.2)
}

/// Splits a group of classes by where a state leads with each: `leads` has group, class and target.
fn split(leads: &[(u32, u32, u32)], group: &mut [u32], sizes: &mut Vec<usize>) {
    let mut classes: Vec<&[(u32, u32, u32)]> = leads.chunk_by(|a, b| a.1 == b.1).collect();
    classes.sort_unstable_by(|a, b| targets(a).cmp(targets(b)).then(a[0].1.cmp(&b[0].1)));
    for alike in classes.chunk_by(|a, b| targets(a).eq(targets(b))) {
        let old = leads[0].0 as usize;
        // Classes with which the state leads nowhere keep the number, and else the last part.
        if alike.len() == sizes[old] {
            continue;
        }
        sizes[old] -= alike.len();
        alike.iter().for_each(|class| group[class[0].1 as usize] = sizes.len() as u32);
        sizes.push(alike.len());
    }
}
