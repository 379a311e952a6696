//! States that fall back: what one lists no edge of it reads as another does, the same for all.
//!
//! The automaton of many tags is in nearly every state about to begin anew, so most edges of most
//! states are the start's. That of all names but some leads from nearly every state to the one in
//! which the name is another whatever comes. Such edges are written once; the states list what differs.

/// The edges of a state that falls back, sorted by letter: those that it lists, and those of the
/// `start`, or of another state, for letters of which it lists none. Both are sorted by letter.
pub fn with_fallback<'e, L: Copy + Ord>(
    mut listed: &'e [(L, u32)],
    mut start: &'e [(L, u32)],
) -> impl Iterator<Item = (L, u32)> + 'e {
    std::iter::from_fn(move || {
        let from = match (listed.first(), start.first()) {
            (Some(own), Some(other)) if other.0 < own.0 => &mut start,
            (Some(own), _) => {
                while start.first().is_some_and(|other| other.0 == own.0) {
                    start = &start[1..];
                }
                &mut listed
            }
            (None, _) => &mut start,
        };
        let (&edge, rest) = from.split_first()?;
        *from = rest;
        Some(edge)
    })
}

#[cfg(test)]
mod tests {
    use super::with_fallback;
    use crate::automata::{Automaton, call};

    #[test]
    fn what_is_listed_takes_the_place() {
        let start = [(0u8, 7), (2, 8), (2, 9), (3, 7), (9, 1)];
        let all = |listed: &[(u8, u32)]| with_fallback(listed, &start).collect::<Vec<_>>();
        assert_eq!(all(&[]), start);
        assert_eq!(all(&[(2, 4)]), [(0, 7), (2, 4), (3, 7), (9, 1)]);
        assert_eq!(all(&[(0, 4), (0, 5), (1, 6)])[..4], [(0, 4), (0, 5), (1, 6), (2, 8)]);
        assert_eq!(all(&[(9, 2), (10, 3)])[4..], [(9, 2), (10, 3)]);
        assert_eq!(with_fallback(&start, &[]).collect::<Vec<_>>(), start);
    }

    /// State 1 reads 0 and 2 as the start does, and leads to a dead state over 1.
    fn with_a_dead_state() -> Automaton {
        let mut out = Automaton::with_capacity(4, 6);
        [(0, 1), (1, 1), (2, 2), (call(3), 2)].iter().for_each(|&(l, q)| out.push_edge(l, q));
        out.close_state(false);
        out.push_edge(1, 3);
        out.close_state(true);
        out.fall_back();
        out.close_state(true);
        out.close_state(false);
        out
    }

    #[test]
    fn a_state_reads_bytes_as_the_start_and_does_not_call() {
        let automaton = with_a_dead_state();
        let all: Vec<_> = automaton.edges_in_full(1).collect();
        assert_eq!(all, [(0, 1), (1, 3), (2, 2)]);
        let next = |letter| automaton.next(1, letter);
        assert_eq!([0, 1, 2, 3, call(3)].map(next), [Some(1), Some(3), Some(2), None, None]);
        assert_eq!(automaton.next(0, call(3)), Some(2));
    }

    #[test]
    fn what_leads_nowhere_is_not_read_as_the_start_reads_it() {
        let mut automaton = with_a_dead_state();
        automaton.trim();
        assert!(automaton.len() == 3 && !automaton.has_fallbacks());
        assert_eq!(automaton.edges(1), [(0, 1), (2, 2)]);
    }
}
