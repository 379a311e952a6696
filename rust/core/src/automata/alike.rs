//! Byte classes that one automaton does not tell apart: one of them stands for all while the
//! automaton is made smaller. On grammars of programming languages that halves the edges.

use super::{Automaton, FIRST_CALL, Letter};
use crate::budget::Ticks;
use crate::error::Result;
use rustc_hash::FxHashMap;

const CLASSES: usize = FIRST_CALL as usize;
/// With fewer edges than this, looking for classes takes longer than they save.
const WORTHWHILE: usize = 64;
/// The same where fewer edges than one in so many lead where the one before leads.
const WORTH_SPREADING: usize = 4;

/// For each byte class the first one that has the same edges; calls stand for themselves.
pub(super) struct Alike {
    first_of: [u8; CLASSES],
    /// Classes that another stands for, by that one, linked.
    next: [u8; CLASSES],
    any: bool,
}

impl Alike {
    /// Of edges, in the order of the states they leave or in any other.
    ///
    /// # Errors
    /// Those of [`Ticks::step`], as below.
    pub(super) fn of(edges: &[(u32, (Letter, u32))], ticks: &Ticks) -> Result<Self> {
        // Classes that are alike mostly stand beside each other.
        let is_beside = |pair: &&[(u32, (Letter, u32))]| {
            let [(p, (a, q)), (r, (b, s))] = **pair else { return false };
            p == r && q == s && a < FIRST_CALL && b < FIRST_CALL
        };
        let mut beside = 0;
        for pair in edges.windows(2) {
            ticks.step()?;
            beside += usize::from(is_beside(&pair));
        }
        if edges.len() < WORTHWHILE || beside < edges.len() / WORTH_SPREADING {
            let own = std::array::from_fn(|class| class as u8);
            return Ok(Self { first_of: own, next: own, any: false });
        }
        // The edges of each class as one run.
        let mut starts = [0usize; CLASSES + 1];
        let small = || edges.iter().filter(|e| e.1.0 < FIRST_CALL);
        for edge in small() {
            ticks.step()?;
            starts[edge.1.0 as usize + 1] += 1;
        }
        for class in 0..CLASSES {
            starts[class + 1] += starts[class];
        }
        let mut runs = vec![(0, 0); starts[CLASSES]];
        let mut fill = starts;
        for &(p, (letter, q)) in small() {
            ticks.step()?;
            let at = &mut fill[letter as usize];
            runs[*at] = (p, q);
            *at += 1;
        }
        let mut out = Self { first_of: [0; CLASSES], next: [0; CLASSES], any: false };
        let mut firsts: FxHashMap<&[(u32, u32)], u8> = FxHashMap::default();
        for class in (0..=u8::MAX).rev() {
            let run = &runs[starts[class as usize]..starts[class as usize + 1]];
            ticks.steps(run.len())?;
            out.first_of[class as usize] = class;
            out.next[class as usize] = class;
            if let Some(other) = (!run.is_empty()).then(|| firsts.insert(run, class)).flatten() {
                out.next[class as usize] = other;
                out.any = true;
            }
        }
        for class in 0..CLASSES {
            let next = out.next[class] as usize;
            out.first_of[next] = out.first_of[class];
        }
        Ok(out)
    }

    /// Whether a letter stands for itself.
    #[inline]
    pub(super) fn is_first(&self, letter: Letter) -> bool {
        self.first_of.get(letter as usize).is_none_or(|&first| Letter::from(first) == letter)
    }

    /// The automaton with the edges of all letters, out of one with those that stand for
    /// themselves.
    pub(super) fn spread(&self, automaton: Automaton, ticks: &Ticks) -> Result<Automaton> {
        if !self.any {
            return Ok(automaton);
        }
        let mut out = Automaton::with_capacity(automaton.len(), 2 * automaton.num_edges());
        let mut target = [0u32; CLASSES];
        for (p, edges) in automaton.states() {
            let calls = edges.partition_point(|e| e.0 < FIRST_CALL);
            let before = out.num_edges();
            let mut met = [0u64; CLASSES / 64];
            for &(letter, q) in &edges[..calls] {
                let mut class = letter as u8;
                loop {
                    target[class as usize] = q;
                    met[class as usize / 64] |= 1 << (class % 64);
                    let next = self.next[class as usize];
                    if next == class {
                        break;
                    }
                    class = next;
                }
            }
            for (word, mut bits) in met.into_iter().enumerate() {
                while bits != 0 {
                    let class = 64 * word + bits.trailing_zeros() as usize;
                    out.push_edge(class as Letter, target[class]);
                    bits &= bits - 1;
                }
            }
            edges[calls..].iter().for_each(|&(letter, q)| out.push_edge(letter, q));
            out.close_state(automaton.is_final(p));
            ticks.steps(1 + out.num_edges() - before)?;
        }
        out.know_of(&automaton);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use crate::automata::{Automaton, FIRST_CALL, Nfa};
    use crate::budget::{Budget, Interrupt};
    use crate::limits::Limits;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const LETTERS: [u32; 5] = [0, 7, 200, FIRST_CALL, FIRST_CALL + 9];

    /// The words of up to three letters, by sets of states: the obvious way.
    fn words(
        epsilon: &[(u32, u32)],
        edges: &[(u32, u32, u32)],
        finals: &[bool],
    ) -> BTreeSet<Vec<u32>> {
        let close = |mut set: BTreeSet<u32>| {
            loop {
                let more: Vec<u32> =
                    epsilon.iter().filter(|e| set.contains(&e.0)).map(|e| e.1).collect();
                let before = set.len();
                set.extend(more);
                if set.len() == before {
                    return set;
                }
            }
        };
        let mut out = BTreeSet::new();
        let mut work = vec![(Vec::new(), close([0].into()))];
        while let Some((word, set)) = work.pop() {
            if !word.is_empty() && set.iter().any(|&q| finals[q as usize]) {
                out.insert(word.clone());
            }
            if word.len() == 3 {
                continue;
            }
            for letter in LETTERS {
                let next = edges.iter().filter(|e| set.contains(&e.0) && e.1 == letter);
                let next: BTreeSet<u32> = next.map(|e| e.2).collect();
                if !next.is_empty() {
                    work.push(([&word[..], &[letter]].concat(), close(next)));
                }
            }
        }
        out
    }

    fn words_of(automaton: &Automaton) -> BTreeSet<Vec<u32>> {
        let edges: Vec<_> = automaton
            .states()
            .flat_map(|(p, edges)| edges.iter().map(move |&(letter, q)| (p, letter, q)))
            .collect();
        let finals: Vec<bool> =
            (0..automaton.len() as u32).map(|q| automaton.is_final(q)).collect();
        words(&[], &edges, &finals)
    }

    proptest! {
        /// Letters are often alike here, and sometimes in all edges but one.
        #[test]
        fn reduced_automata_say_the_same(
            n in 1u32..6,
            raw in proptest::collection::vec((0u32..6, 1usize..32, 0u32..6), 0..10),
            epsilon in proptest::collection::vec((0u32..6, 0u32..6), 0..4),
            finals in proptest::collection::vec(any::<bool>(), 6),
            few in any::<bool>(),
        ) {
            let mut nfa = Nfa::default();
            for _ in 0..n {
                nfa.state();
            }
            let finals = &finals[..n as usize];
            for (q, _) in finals.iter().enumerate().filter(|f| *f.1) {
                nfa.set_final(q as u32);
            }
            let epsilon: Vec<_> = epsilon.iter().map(|&(p, q)| (p % n, q % n)).collect();
            epsilon.iter().for_each(|&(p, q)| nfa.skip(p, q));
            let mut edges = Vec::new();
            for (p, letters, q) in raw {
                let chosen = LETTERS.into_iter().enumerate().filter(|l| letters >> l.0 & 1 == 1);
                for (_, letter) in chosen {
                    nfa.edge(p % n, letter, q % n);
                    edges.push((p % n, letter, q % n));
                }
            }
            let work = Budget::new(&Limits::default(), &Interrupt::default());
            // With a bound of one state the subset construction is given up.
            let out = nfa.reduce(if few { 1 } else { 1_000 }, &work).expect("within bounds");
            prop_assert_eq!(words_of(&out), words(&epsilon, &edges, finals));
            let read = |edges: &[(u32, u32)]| edges.iter().all(|e| LETTERS.contains(&e.0));
            prop_assert!(out.states().all(|(_, edges)| read(edges) && edges.is_sorted_by(|a, b| a < b)));

            // What is known of the automaton is so: the same of one of which nothing is known.
            prop_assume!(out.is_deterministic());
            let states: Vec<_> =
                out.states().map(|(q, edges)| (out.is_final(q), edges.to_vec())).collect();
            let again = |automaton: &Automaton| {
                let mut nfa = Nfa::default();
                nfa.embed(automaton, true);
                nfa.reduce(1_000, &work).expect("within bounds")
            };
            let (mut known, mut unknown) = (out.clone(), Automaton::from_states(&states));
            known.trim();
            unknown.trim();
            prop_assert_eq!(&known, &unknown);
            if known.is_minimal() {
                prop_assert_eq!(&again(&known), &known);
            }
            for calls in [[FIRST_CALL + 9, FIRST_CALL], [FIRST_CALL; 2]] {
                let mut named = known.clone();
                named.relabel(|letter| calls[usize::from(letter > FIRST_CALL)]);
                if named.is_minimal() {
                    let reduced = again(&named);
                    named.renumber();
                    prop_assert_eq!(named, reduced);
                }
            }
        }
    }
}
