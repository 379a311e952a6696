//! Cardinality: how many texts and numbers an automaton has, and whether each beginning of one is one of infinitely many.

use crate::error::Result;
use crate::grammar::UniqueItems;
use crate::json_schema::converter::Converter;
use crate::regular::Dfa;

/// Strings of more characters are not counted.
const LONGEST_COUNTED: u32 = 64;

/// Of an edge with more characters only so many are counted.
const MOST_COUNTED: u32 = 256;

impl Converter<'_> {
    /// How many texts of such lengths an automaton has, at least, and whether it has no more.
    pub(in crate::json_schema) fn words_within(
        &mut self,
        automaton: &Dfa,
        least: u32,
        most: Option<u32>,
    ) -> Result<(u64, bool)> {
        let all = Graph::of(automaton, |_| true);
        if (least, most) == (0, None) && all.live().zip(all.endless()).any(|(a, b)| a && b) {
            return Ok((u64::from(u32::MAX), false));
        }
        // Those that are long are not counted, which is less than there are.
        let last = most.unwrap_or(LONGEST_COUNTED).min(LONGEST_COUNTED.max(least.min(1 << 12)));
        let mut ways = vec![0u64; all.edges.len()];
        if let Some(start) = ways.first_mut() {
            *start = 1;
        }
        let (mut sum, mut is_whole) = (0u64, most == Some(last));
        for length in 0..=last {
            self.spend(all.edges.len())?;
            if length >= least {
                let ends = ways.iter().zip(&all.finals).filter(|(_, is_final)| **is_final);
                sum = ends.fold(sum, |sum, (&ways, _)| sum.saturating_add(ways));
            }
            let mut next = vec![0u64; ways.len()];
            for (edges, &ways) in all.edges.iter().zip(&ways).filter(|(_, ways)| **ways > 0) {
                for &(to, size) in edges {
                    let more = ways.saturating_mul(size);
                    next[to as usize] = next[to as usize].saturating_add(more);
                }
            }
            is_whole |= next.iter().all(|&ways| ways == 0);
            if sum >= u64::from(u32::MAX) || next.iter().all(|&ways| ways == 0) {
                break;
            }
            ways = next;
        }
        let sum = sum.min(u64::from(u32::MAX));
        Ok((sum, is_whole && !all.is_cut && sum < u64::from(u32::MAX)))
    }
}

/// The states of an automaton with the characters of some edges.
struct Graph {
    /// For each state where its edges lead, and how many characters they have.
    edges: Vec<Vec<(u32, u64)>>,
    finals: Vec<bool>,
    /// Whether some edge has more characters than are counted.
    is_cut: bool,
}

impl Graph {
    fn of(automaton: &Dfa, keeps: impl Fn(u32) -> bool) -> Self {
        let states = 0..automaton.num_states() as u32;
        let mut is_cut = false;
        let edges = states.clone().map(|state| {
            let ranges = automaton.ranges(state).into_iter();
            let kept = ranges.map(|(first, last, to)| {
                is_cut |= last - first >= MOST_COUNTED;
                let counted = first..=last.min(first + MOST_COUNTED - 1);
                (to, counted.filter(|&c| keeps(c)).count() as u64)
            });
            kept.filter(|edge| edge.1 > 0).collect()
        });
        let edges = edges.collect();
        Self { edges, finals: states.map(|q| automaton.is_final(q)).collect(), is_cut }
    }

    /// The states from which one of some can be reached.
    fn reaching(&self, mut found: Vec<bool>) -> Vec<bool> {
        let mut back: Vec<Vec<u32>> = vec![Vec::new(); self.edges.len()];
        for (from, edges) in (0..).zip(&self.edges) {
            edges.iter().for_each(|edge| back[edge.0 as usize].push(from));
        }
        let mut work: Vec<u32> = (0..).zip(&found).filter(|q| *q.1).map(|q| q.0).collect();
        while let Some(state) = work.pop() {
            for &from in &back[state as usize] {
                if !std::mem::replace(&mut found[from as usize], true) {
                    work.push(from);
                }
            }
        }
        found
    }

    /// For each state whether an end can be reached.
    fn live(&self) -> impl Iterator<Item = bool> {
        self.reaching(self.finals.clone()).into_iter()
    }

    /// For each state whether a loop can be reached from which there is an end; `closes` says of an edge
    /// that a loop must have one such.
    fn loops(&self, closes: impl Fn(u32, usize) -> bool) -> Vec<bool> {
        let live: Vec<bool> = self.live().collect();
        let component = components(&self.edges);
        let mut found = vec![false; self.edges.len()];
        for (from, edges) in self.edges.iter().enumerate() {
            for (place, edge) in edges.iter().enumerate() {
                let to = edge.0 as usize;
                if live[from] && component[from] == component[to] && closes(from as u32, place) {
                    found[from] = true;
                }
            }
        }
        self.reaching(found)
    }

    /// Whether from each state from which there is an end few letters lead to one, and either two letters
    /// of `others`, which has the same states, lead to such a state, or few lead to one of these; behind no
    /// letter of the others there may be `none` of these.
    fn ends_soon(&self, others: &Self, none: bool) -> bool {
        let live: Vec<bool> = self.live().collect();
        let forks: Vec<bool> = others
            .edges
            .iter()
            .map(|edges| {
                let sizes = edges.iter().filter(|edge| live[edge.0 as usize]).map(|edge| edge.1);
                sizes.sum::<u64>() > 1
            })
            .collect();
        // Behind a letter of the others all states fork.
        let mut behind: Vec<bool> = vec![false; live.len()];
        let mut work: Vec<u32> = others.edges.iter().flatten().map(|edge| edge.0).collect();
        while let Some(state) = work.pop() {
            if !std::mem::replace(&mut behind[state as usize], true) {
                work.extend(self.edges[state as usize].iter().map(|edge| edge.0));
            }
        }
        let (ends, forking) = (self.distances(&self.finals), self.distances(&forks));
        let reaches = self.reaching(forks.clone());
        let most = UniqueItems::MOST_TO_END;
        (0..live.len()).filter(|&state| live[state]).all(|state| {
            let is_near = ends[state] <= most;
            let is_soon = forking[state] <= most || none && !reaches[state];
            is_near && (forks[state] || !behind[state] && is_soon)
        })
    }

    /// For each state the letters to the nearest of some states, as far as that is near.
    fn distances(&self, to: &[bool]) -> Vec<u32> {
        let mut out: Vec<u32> =
            to.iter().map(|&is_there| if is_there { 0 } else { u32::MAX }).collect();
        let mut level = 0;
        let mut is_new = true;
        while std::mem::take(&mut is_new) && level < UniqueItems::MOST_TO_END {
            for state in 0..out.len() {
                let mut targets = self.edges[state].iter().map(|edge| out[edge.0 as usize]);
                if out[state] == u32::MAX && targets.any(|distance| distance == level) {
                    out[state] = level + 1;
                    is_new = true;
                }
            }
            level += 1;
        }
        out
    }

    /// For each state whether infinitely many texts lead to an end.
    fn endless(&self) -> impl Iterator<Item = bool> {
        self.loops(|_, _| true).into_iter()
    }
}

/// For each state the number of its strongly connected component.
fn components(edges: &[Vec<(u32, u64)>]) -> Vec<usize> {
    let targets = |state: usize| edges[state].iter().map(|edge| edge.0 as usize).collect();
    let mut out = vec![0; edges.len()];
    let components = crate::graph::components(edges.len(), targets);
    for (number, component) in components.into_iter().enumerate() {
        component.into_iter().for_each(|state| out[state] = number);
    }
    out
}

/// Whether each beginning of a text is one of infinitely many.
pub(super) fn has_endless_strings(automaton: &Dfa) -> bool {
    let graph = Graph::of(automaton, |_| true);
    graph.live().zip(graph.endless()).all(|(live, endless)| !live || endless)
}

/// Whether each beginning of a number that holds another digit than zero is one of infinitely many
/// values: a loop reads such a digit.
pub(super) fn has_endless_numbers(automaton: &Dfa) -> bool {
    are_endless(automaton, &Graph::of(automaton, |_| true))
}

/// Whether each beginning of a number that has a nonzero digit, no point and no exponent is one of infinitely many
/// values.
pub(super) fn has_endless_integers(automaton: &Dfa) -> bool {
    let is_read = |c: u32| c == u32::from('-') || (u32::from('0')..=u32::from('9')).contains(&c);
    are_endless(automaton, &Graph::of(automaton, is_read))
}

/// Whether each beginning that some edges read, from the start, and that holds another digit than zero is one of
/// infinitely many values.
fn are_endless(automaton: &Dfa, begun: &Graph) -> bool {
    let is_digit = |c: u32| (u32::from('1')..=u32::from('9')).contains(&c);
    let graph = Graph::of(automaton, |_| true);
    let digits = Graph::of(automaton, is_digit);
    let reads = |from: u32, place: usize| {
        let to = graph.edges[from as usize][place].0;
        digits.edges[from as usize].iter().any(|edge| edge.0 == to)
    };
    let endless = graph.loops(reads);
    let live: Vec<bool> = graph.live().collect();
    // The states to which such beginnings lead, and those behind such a digit.
    let close = |mut work: Vec<u32>| {
        let mut met = vec![false; live.len()];
        while let Some(state) = work.pop() {
            if !std::mem::replace(&mut met[state as usize], true) {
                work.extend(begun.edges[state as usize].iter().map(|edge| edge.0));
            }
        }
        met
    };
    let from_start = close((0..live.len().min(1) as u32).collect());
    let of_digits = digits.edges.iter().zip(from_start).filter(|(_, is_met)| *is_met);
    let met = close(of_digits.flat_map(|(edges, _)| edges).map(|edge| edge.0).collect());
    (0..live.len()).all(|state| !met[state] || !live[state] || endless[state])
}

/// Whether few letters make any beginning of a text another than many others, and end it.
pub(super) fn strings_end_soon(automaton: &Dfa) -> bool {
    let is_plain = |c: u32| (0x20..0x7f).contains(&c) && c != 0x22 && c != 0x5c;
    Graph::of(automaton, |_| true).ends_soon(&Graph::of(automaton, is_plain), false)
}

/// The characters of the longest text of an automaton; `None` where none is the longest.
pub(super) fn longest_text(automaton: &Dfa) -> Option<u32> {
    let graph = Graph::of(automaton, |_| true);
    if graph.live().zip(graph.endless()).any(|(live, endless)| live && endless) {
        return None;
    }
    let live: Vec<bool> = graph.live().collect();
    let mut longest = vec![0; live.len()];
    // No loop is left but among states that lead to no end.
    let components = crate::graph::components(live.len(), |state| {
        graph.edges[state].iter().map(|edge| edge.0 as usize).collect()
    });
    // What a state leads to comes before it.
    for state in components.into_iter().flatten().filter(|&state| live[state]) {
        let after = graph.edges[state].iter().map(|edge| edge.0 as usize).filter(|&to| live[to]);
        longest[state] = after.map(|to| longest[to] + 1).max().unwrap_or(0);
    }
    longest.first().copied()
}

/// The same of the values of numbers; where no digit but zero may follow, zero is the only value.
pub(super) fn numbers_end_soon(automaton: &Dfa) -> bool {
    let is_digit = |c: u32| (u32::from('1')..=u32::from('9')).contains(&c);
    Graph::of(automaton, |_| true).ends_soon(&Graph::of(automaton, is_digit), true)
}

/// Whether each beginning of a number that ends in a digit is a number.
pub(super) fn has_whole_numbers(automaton: &Dfa) -> bool {
    let is_digit = |c: u32| (u32::from('0')..=u32::from('9')).contains(&c);
    let digits = Graph::of(automaton, is_digit);
    let all = Graph::of(automaton, |_| true);
    let live: Vec<bool> = all.live().collect();
    let mut targets = digits.edges.iter().flatten().map(|edge| edge.0 as usize);
    targets.all(|to| !live[to] || automaton.is_final(to as u32))
}

/// How many values the numbers of an automaton have, which holds each value in all its spellings:
/// those of fractions that end in zeros are left out.
pub(in crate::json_schema) fn numbers_of(automaton: &Dfa) -> u64 {
    let point = u32::from('.');
    let zero = u32::from('0');
    let whole = Graph::of(automaton, |c| c != point && c != zero);
    let zeros = Graph::of(automaton, |c| c == zero);
    let points = Graph::of(automaton, |c| c == point);
    // In the whole part; behind the point and zeros; behind another digit there.
    let states = automaton.num_states();
    let place = |state: u32, part: usize| (state as usize + part * states) as u32;
    let mut edges: Vec<Vec<(u32, u64)>> = vec![Vec::new(); 3 * states];
    for state in 0..states {
        for part in 0..3 {
            let from = place(state as u32, part) as usize;
            let after = |part: usize, is_zero: bool| match part {
                0 => 0,
                _ if is_zero => 1,
                _ => 2,
            };
            let digits = whole.edges[state].iter();
            edges[from].extend(digits.map(|&(to, size)| (place(to, after(part, false)), size)));
            let zeros = zeros.edges[state].iter();
            edges[from].extend(zeros.map(|&(to, size)| (place(to, after(part, true)), size)));
            if part == 0 {
                let points = points.edges[state].iter();
                edges[from].extend(points.map(|&(to, size)| (place(to, 1), size)));
            }
        }
    }
    let is_end = |state: usize| state / states != 1 && automaton.is_final((state % states) as u32);
    let finals = (0..3 * states).map(is_end).collect();
    let graph = Graph { edges, finals, is_cut: false };
    let live: Vec<bool> = graph.live().collect();
    if graph.endless().next() == Some(true) {
        return u64::from(u32::MAX);
    }
    // No loop is left: the longest way has fewer letters than there are states.
    let mut ways = vec![0u64; live.len()];
    if let Some(start) = ways.first_mut() {
        *start = 1;
    }
    let mut sum = 0u64;
    for _ in 0..=live.len() {
        let mut next = vec![0u64; ways.len()];
        for (state, &ways) in ways.iter().enumerate().filter(|(state, _)| live[*state]) {
            if graph.finals[state] {
                sum = sum.saturating_add(ways);
            }
            for &(to, size) in &graph.edges[state] {
                let more = ways.saturating_mul(size);
                next[to as usize] = next[to as usize].saturating_add(more);
            }
        }
        if sum >= u64::from(u32::MAX) || next.iter().all(|&ways| ways == 0) {
            break;
        }
        ways = next;
    }
    sum.min(u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Interrupt};
    use crate::limits::Limits;
    use crate::regular::Bounds;
    use crate::regular::pattern::{PatternDialect, parse};

    fn automaton(text: &str) -> Dfa {
        let budget = Budget::new(&Limits::default(), &Interrupt::default());
        let pattern = parse(text, PatternDialect::Ecma, "").expect("a pattern");
        pattern.to_dfa(true, &Bounds { budget: &budget, max_states: 20_000 }).expect("it is small")
    }

    #[test]
    fn strings_that_soon_differ_and_end() {
        for text in ["^[ab]*$", "^", "^x[a-z]+$", "^([a-z]{3})*$"] {
            assert!(strings_end_soon(&automaton(text)), "{text}");
        }
        // One letter alone, an end, a long way to one, and letters that are no ASCII.
        for text in ["^a*$", "^[ab]{0,9}$", "^([a-z]{5,})*$", "^[é-ü]*$", "^(a[é-ü])*$"] {
            assert!(!strings_end_soon(&automaton(text)), "{text}");
        }
    }

    #[test]
    fn the_longest_text() {
        for (text, longest) in [("^[ab]{0,9}$", 9), ("^(a|bc|def)?g$", 4), ("^$", 0)] {
            assert_eq!(longest_text(&automaton(text)), Some(longest), "{text}");
        }
        for text in ["^a*$", "^(ab)+c$", "x"] {
            assert_eq!(longest_text(&automaton(text)), None, "{text}");
        }
    }

    #[test]
    fn numbers_that_soon_differ_and_end() {
        for text in ["^-?(0|[1-9][0-9]*)$", "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$"] {
            assert!(numbers_end_soon(&automaton(text)), "{text}");
        }
        for text in ["^[0-9]{1,4}$", "^1*$", "^(0|[1-9]0*)$"] {
            assert!(!numbers_end_soon(&automaton(text)), "{text}");
        }
    }
}
