//! `regex` beside other conditions: the patterns among the texts of an automaton.
//!
//! It is the product of Bar-Hillel, Perles and Shamir: a pattern leads from a state of the automaton to
//! another, and so do its parts. So there is a rule for each pair of states between which a pattern
//! leads, over the parts of [`regex`](super::regex) cut to the texts that lead from state to state.

use super::regex::parts;
use crate::error::Result;
use crate::regular::{Bounds, Dfa, ScalarNfa};
use rustc_hash::FxHashMap;

/// The most states of an automaton: rules are pairs of states, and their edges are pairs again.
pub const MOST_STATES: usize = 18;

/// What leads from a state to another: a part without a group, or a group with the pattern in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegexItem {
    /// The texts of a leaf.
    Leaf(u32),
    /// A leaf that opens, a pattern between two states, a leaf that closes.
    Group(u32, (u32, u32), u32),
}

/// The patterns among the texts of an automaton.
#[derive(Debug)]
pub struct PatternsWithin {
    /// Languages of parts.
    pub leaves: Vec<Dfa>,
    /// For each pair of states what leads from the one to the other in one step.
    pub items: FxHashMap<(u32, u32), Vec<RegexItem>>,
    /// The pairs between which something leads, in order.
    pub pairs: Vec<(u32, u32)>,
    reaches: Vec<Vec<bool>>,
    finals: Vec<u32>,
}

/// Texts of a part that lead from state to state: from, leaf, to.
type LeafSteps = Vec<(u32, u32, u32)>;

impl PatternsWithin {
    /// The product, of an automaton with at most [`MOST_STATES`] states.
    ///
    /// # Errors
    /// Those of the budget and of too many states.
    pub fn new(automaton: &Dfa, bounds: &Bounds<'_>) -> Result<Self> {
        let count = automaton.num_states();
        let states = 0..count as u32;
        let parts = parts()?;
        let between = |from: u32, to: u32| {
            let mut nfa = ScalarNfa::new();
            for _ in states.clone() {
                nfa.add_state();
            }
            nfa.add_start(from);
            nfa.set_final(to);
            for state in states.clone() {
                automaton.edges(state).for_each(|(set, next)| nfa.add_edge(state, &set, next));
            }
            Dfa::from_nfa(&nfa, bounds)
        };
        let mut ways = Vec::new();
        for from in states.clone() {
            for to in states.clone() {
                let way = between(from, to)?;
                if !way.is_empty() {
                    ways.push((from, way, to));
                }
            }
        }
        let mut leaves: Vec<Dfa> = Vec::new();
        let mut steps = |part: &Dfa| -> Result<LeafSteps> {
            let mut cut: Vec<(&Dfa, Option<u32>)> = Vec::new();
            let mut out = Vec::new();
            for (from, way, to) in &ways {
                let number = match cut.iter().find(|known| known.0 == way) {
                    Some(known) => known.1,
                    None => {
                        let leaf = part.intersection(way, bounds)?;
                        bounds.budget.spend(leaf.num_states())?;
                        let number = (!leaf.is_empty()).then(|| {
                            let known = leaves.iter().position(|known| *known == leaf);
                            known.unwrap_or_else(|| {
                                leaves.push(leaf);
                                leaves.len() - 1
                            }) as u32
                        });
                        cut.push((way, number));
                        number
                    }
                };
                out.extend(number.map(|number| (*from, number, *to)));
            }
            Ok(out)
        };
        let flat = steps(&parts.flat)?;
        let mut brackets = Vec::new();
        for (open, close) in [&parts.group, &parts.look] {
            brackets.push((steps(open)?, steps(close)?));
        }
        let mut reaches = vec![vec![false; count]; count];
        (0..count).for_each(|state| reaches[state][state] = true);
        loop {
            let items = items(&flat, &brackets, &reaches, bounds)?;
            let before = reaches.clone();
            for &(from, to) in items.keys() {
                reaches[from as usize][to as usize] = true;
            }
            for via in 0..count {
                bounds.budget.spend(1 + count * count / 16)?;
                for from in 0..count {
                    for to in 0..count {
                        reaches[from][to] |= reaches[from][via] && reaches[via][to];
                    }
                }
            }
            if reaches == before {
                let mut pairs: Vec<(u32, u32)> = items.keys().copied().collect();
                pairs.sort_unstable();
                let finals = states.filter(|&state| automaton.is_final(state)).collect();
                return Ok(Self { leaves, items, pairs, reaches, finals });
            }
        }
    }

    /// Whether there is no such pattern.
    pub fn is_empty(&self) -> bool {
        !self.finals.iter().any(|&state| self.leads(0, state))
    }

    /// Whether a pattern leads from a state to another.
    pub fn leads(&self, from: u32, to: u32) -> bool {
        self.reaches[from as usize][to as usize]
    }

    /// Where a pattern between two states begins, and where it may end; the whole of it without such.
    pub fn ends(&self, between: Option<(u32, u32)>) -> (u32, Vec<u32>) {
        match between {
            Some((from, to)) => (from, vec![to]),
            None => (0, self.finals.clone()),
        }
    }
}

/// What leads from state to state, as far as it is known what patterns do.
fn items(
    flat: &LeafSteps,
    brackets: &[(LeafSteps, LeafSteps)],
    reaches: &[Vec<bool>],
    bounds: &Bounds<'_>,
) -> Result<FxHashMap<(u32, u32), Vec<RegexItem>>> {
    let mut out: FxHashMap<(u32, u32), Vec<RegexItem>> = FxHashMap::default();
    for &(from, leaf, to) in flat {
        out.entry((from, to)).or_default().push(RegexItem::Leaf(leaf));
    }
    for (opens, closes) in brackets {
        for &(from, open, first) in opens {
            bounds.budget.spend(1 + closes.len() / 8)?;
            for &(last, close, to) in closes {
                if reaches[first as usize][last as usize] {
                    let group = RegexItem::Group(open, (first, last), close);
                    out.entry((from, to)).or_default().push(group);
                }
            }
        }
    }
    Ok(out)
}
