//! Finite sets of values.

use super::machine::check_states;
use crate::error::Result;
use crate::grammar::CharSet;
use crate::json_schema::decimal::Decimal;
use crate::regular::{Bounds, Dfa};
use rustc_hash::FxHashMap;

/// The characters of a spelling; a symbol is a place in this list.
const SYMBOLS: [u8; 12] = *b"0123456789.-";
const POINT: u32 = 10;
const MINUS: u32 = 11;
/// The node that reads zeros at the end of a fraction.
const ZEROS: u32 = 0;
/// The node behind a point that is followed by zeros alone.
const POINTED: u32 = 1;
/// The node where every spelling begins.
const ROOT: u32 = 2;

/// Every plain spelling of these values, with zeros at the end of the fraction.
///
/// # Errors
/// [`crate::error::Error::Limit`]: `max_automaton_states` where a value has more digits than the
/// automaton may have states, or all of them need more; those of the budget.
pub fn values<'a>(
    decimals: impl IntoIterator<Item = &'a Decimal>,
    bounds: &Bounds<'_>,
) -> Result<Dfa> {
    let mut trie = SpellingTrie::default();
    for value in decimals {
        let digits = value.integer_digits().max(1) + value.fraction_digits();
        check_states(usize::try_from(digits).unwrap_or(usize::MAX), bounds)?;
        bounds.budget.spend(digits as usize)?;
        trie.insert(value);
    }
    trie.into_automaton(bounds)
}

/// A node: its children, and whether the spelling that leads to it is one of a value of the set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct SpellingNode {
    children: Vec<(u32, u32)>,
    is_final: bool,
}

/// Shortest spellings, symbol by symbol. Children come after their parents, but for the first two
/// nodes, which many share.
struct SpellingTrie {
    nodes: Vec<SpellingNode>,
    children: FxHashMap<(u32, u32), u32>,
}

impl Default for SpellingTrie {
    fn default() -> Self {
        let zeros = SpellingNode { children: vec![(0, ZEROS)], is_final: true };
        let pointed = SpellingNode { children: vec![(0, ZEROS)], is_final: false };
        Self {
            nodes: vec![zeros, pointed, SpellingNode::default()],
            children: FxHashMap::default(),
        }
    }
}

impl SpellingTrie {
    fn child(&mut self, node: u32, symbol: u32) -> u32 {
        let nodes = &mut self.nodes;
        *self.children.entry((node, symbol)).or_insert_with(|| {
            let child = nodes.len() as u32;
            nodes.push(SpellingNode::default());
            nodes[node as usize].children.push((symbol, child));
            child
        })
    }

    fn insert(&mut self, value: &Decimal) {
        let mut node = ROOT;
        if value.is_negative() {
            node = self.child(node, MINUS);
        }
        let (before, behind) =
            (value.integer_digits().max(1) as i64, value.fraction_digits() as i64);
        for power in (-behind..before).rev() {
            if power == -1 {
                node = self.child(node, POINT);
            }
            node = self.child(node, value.digit_at(power).into());
        }
        self.nodes[node as usize].is_final = true;
    }

    /// Adds the zeros behind final nodes of fractions, and merges nodes that read the same.
    fn into_automaton(mut self, bounds: &Bounds<'_>) -> Result<Dfa> {
        self.end_in_zeros();
        bounds.budget.spend(2 * self.nodes.len())?;
        let mut known: FxHashMap<SpellingNode, u32> = FxHashMap::default();
        let mut kept: Vec<SpellingNode> = Vec::new();
        let mut merged = vec![ZEROS; self.nodes.len()];
        // The shared nodes come first, then children before parents.
        let order = [ZEROS as usize, POINTED as usize].into_iter();
        for place in order.chain((ROOT as usize..self.nodes.len()).rev()) {
            let mut node = std::mem::take(&mut self.nodes[place]);
            for (_, child) in &mut node.children {
                *child = merged[*child as usize];
            }
            node.children.sort_unstable();
            merged[place] = *known.entry(node).or_insert_with_key(|node| {
                kept.push(node.clone());
                kept.len() as u32 - 1
            });
        }
        // The start of a table is its first state; the root is merged last.
        let root = merged[ROOT as usize];
        kept.swap(0, root as usize);
        let moved = |state: u32| match state {
            0 => root,
            _ if state == root => 0,
            _ => state,
        };
        let finals: Vec<bool> = kept.iter().map(|node| node.is_final).collect();
        let row =
            |node: SpellingNode| node.children.into_iter().map(|(s, to)| (s, moved(to))).collect();
        let rows: Vec<Vec<(u32, u32)>> = kept.into_iter().map(row).collect();
        let set = |&c: &u8| CharSet::new([(c.into(), c.into())]);
        Dfa::from_table(&SYMBOLS.iter().map(set).collect::<Vec<_>>(), &rows, &finals, bounds)
    }

    /// Lets a point and zeros follow integers, and zeros follow fractions.
    fn end_in_zeros(&mut self) {
        let mut is_fraction = vec![false; self.nodes.len()];
        let mut is_point_of_integer = vec![false; self.nodes.len()];
        for place in ROOT as usize..self.nodes.len() {
            let goes_on = self.nodes[place].is_final || is_point_of_integer[place];
            let (symbol, shared) = if is_fraction[place] { (0, ZEROS) } else { (POINT, POINTED) };
            let mut next = None;
            for &(on, child) in &self.nodes[place].children {
                is_fraction[child as usize] = is_fraction[place] || on == POINT;
                if on == symbol {
                    next = Some(child as usize);
                }
            }
            match next {
                _ if !goes_on => {}
                None => self.nodes[place].children.push((symbol, shared)),
                Some(child) if symbol == POINT => is_point_of_integer[child] = true,
                Some(child) => self.nodes[child].is_final = true,
            }
        }
    }
}
