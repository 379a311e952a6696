//! Automata of patterns whose assertions look at one character before and one behind: `^`, `$`, `\b`, `\B`
//! and the anchors of lines.
//!
//! Such an assertion says which kinds of characters may come next, by the kind of the last one. Two
//! characters are of one kind if the same sets of assertions hold them; the edge of the text is a kind of its
//! own. A state of a nondeterministic automaton is a position of the pattern, the kind of the last character
//! where an assertion ahead asks for it, and the kinds of which the next character may be. A way with an
//! assertion reads nothing and leaves fewer kinds; an edge reads characters of the kinds that are left. All
//! states of a subset have the same last kind, so there are no more subsets than kinds for each one that the
//! pattern has without its assertions.

use super::super::alphabet::ScalarAlphabet;
use super::super::{Bounds, Dfa, ScalarNfa};
use super::program::{END, Program, START, WayCondition};
use super::syntax::{Assertion, CharSetId, PatternNode, PatternTree};
use crate::error::Result;
use crate::grammar::CharSet;
use rustc_hash::FxHashMap;

/// Patterns with more kinds of characters are left to formulas.
const MOST_KINDS: usize = 16;

/// A set of kinds, one bit for each.
type KindSet = u32;

/// A position, the kind of the last character (0 where nothing ahead asks for it), and the kinds that the
/// next character may have.
type KindState = (u32, u32, KindSet);

/// The kinds of characters that assertions tell apart.
struct Kinds {
    /// The characters of each kind.
    members: Vec<CharSet>,
    /// The kinds that each set of an assertion holds.
    of_set: FxHashMap<CharSetId, KindSet>,
}

impl Kinds {
    /// `None` where an assertion looks further than one character, or where there are too many kinds.
    fn of(tree: &PatternTree, bounds: &Bounds<'_>) -> Result<Option<Self>> {
        let mut observed: Vec<CharSetId> = Vec::new();
        for (node, is_needed) in tree.nodes.iter().zip(tree.needed(tree.root())) {
            match node {
                _ if !is_needed => {}
                PatternNode::Look { .. } | PatternNode::Assert(Assertion::EndOrLastNewline) => {
                    return Ok(None);
                }
                PatternNode::Assert(
                    Assertion::LineStart(set)
                    | Assertion::LineEnd(set)
                    | Assertion::Boundary { word: set, .. },
                ) if !observed.contains(set) => observed.push(*set),
                _ => {}
            }
        }
        let sets = observed.iter().map(|&set| tree.set(set));
        let (alphabet, classes) = ScalarAlphabet::of_sets(sets, |n| bounds.budget.spend(n))?;
        if alphabet.len() as usize > MOST_KINDS {
            return Ok(None);
        }
        let ranges = alphabet.ranges();
        let members =
            (0..alphabet.len()).map(|class| CharSet::new(ranges.of(class).to_vec())).collect();
        let bits = |kinds: &Vec<u32>| kinds.iter().fold(0, |bits, kind| bits | 1 << kind);
        let of_set = observed.into_iter().zip(classes.iter().map(bits)).collect();
        Ok(Some(Self { members, of_set }))
    }

    /// The kind of the edge of the text.
    fn edge(&self) -> u32 {
        self.members.len() as u32
    }

    fn all(&self) -> KindSet {
        (2 << self.edge()) - 1
    }

    /// The kinds that may stand behind a place where an assertion holds.
    fn allowed(&self, assertion: Assertion, last: u32) -> KindSet {
        let edge = 1 << self.edge();
        let is_within = |kinds: KindSet| kinds >> last & 1 == 1;
        let if_so = |holds: bool| if holds { self.all() } else { 0 };
        let kinds = |set: CharSetId| self.of_set.get(&set).copied().unwrap_or(0);
        match assertion {
            Assertion::Start => if_so(is_within(edge)),
            Assertion::LineStart(set) => if_so(is_within(edge | kinds(set))),
            Assertion::End | Assertion::EndOrLastNewline => edge,
            Assertion::LineEnd(set) => edge | kinds(set),
            Assertion::Boundary { word, is_negated } => {
                match is_within(kinds(word)) != is_negated {
                    true => self.all() & !kinds(word),
                    false => kinds(word),
                }
            }
        }
    }
}

/// The positions of a pattern, searched for or not, with their states.
struct KindEngine<'a> {
    kinds: Kinds,
    ways_of: Vec<Vec<(Option<Assertion>, u32)>>,
    /// For each position the sets that it reads, by number, and where they lead.
    edges_of: Vec<Vec<(usize, u32)>>,
    /// The sets of the pattern, and that of all characters.
    sets: Vec<&'a CharSet>,
    /// Whether ways from the position lead to an assertion that asks for the last character.
    looks_back: Vec<bool>,
    nfa: ScalarNfa,
    number_of: FxHashMap<KindState, u32>,
    waiting: Vec<(u32, KindState)>,
    /// The characters of a set that are of some kinds.
    parts: FxHashMap<(usize, KindSet), CharSet>,
}

/// The automaton of a pattern; `None` where it takes formulas.
///
/// # Errors
/// [`crate::error::Error::Limit`] and what ends the work.
pub(super) fn automaton(
    tree: &PatternTree,
    search: bool,
    bounds: &Bounds<'_>,
) -> Result<Option<Dfa>> {
    let Some(kinds) = Kinds::of(tree, bounds)? else { return Ok(None) };
    let program = Program::new(tree, tree.root(), bounds)?;
    let everything = CharSet::scalar_values();
    let mut engine = KindEngine::new(tree, &program, &everything, kinds, bounds)?;
    let mut start = START;
    if search {
        start = engine.open(&program, bounds)?;
    }
    let edge = engine.kinds.edge();
    let all = engine.kinds.all();
    let start = engine.state(start, edge, all);
    engine.nfa.add_start(start);
    engine.explore(bounds)?;
    // Where it is reached; no assertion stands behind the pattern.
    if search && let Some(&end) = engine.number_of.get(&(END, 0, all)) {
        engine.nfa.set_universal(end);
    }
    Dfa::from_nfa(&engine.nfa, bounds).map(Some)
}

impl<'a> KindEngine<'a> {
    fn new(
        tree: &'a PatternTree,
        program: &Program,
        everything: &'a CharSet,
        kinds: Kinds,
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        let positions = program.positions as usize;
        bounds.budget.spend(positions + program.ways.len() + program.edges.len())?;
        let mut ways_of = vec![Vec::new(); positions];
        let mut back = vec![Vec::new(); positions];
        let mut work = Vec::new();
        for &(from, condition, to) in &program.ways {
            let assertion = match condition {
                WayCondition::Assert(assertion) => Some(assertion),
                WayCondition::Free | WayCondition::Look { .. } => None,
            };
            if !matches!(assertion, None | Some(Assertion::End | Assertion::LineEnd(_))) {
                work.push(from);
            }
            ways_of[from as usize].push((assertion, to));
            back[to as usize].push(from);
        }
        let looks_back = leading(&back, work);
        let mut edges_of = vec![Vec::new(); positions];
        for &(from, set, to) in &program.edges {
            edges_of[from as usize].push((set.index(), to));
        }
        Ok(Self {
            kinds,
            ways_of,
            edges_of,
            sets: tree.sets.iter().chain([everything]).collect(),
            looks_back,
            nfa: ScalarNfa::new(),
            number_of: FxHashMap::default(),
            waiting: Vec::new(),
            parts: FxHashMap::default(),
        })
    }

    /// Puts any characters before the pattern and behind it; returns the position before.
    fn open(&mut self, program: &Program, bounds: &Bounds<'_>) -> Result<u32> {
        bounds.budget.spend(program.ways.len())?;
        let mut back = vec![Vec::new(); program.positions as usize];
        for &(from, condition, to) in &program.ways {
            if condition == WayCondition::Free {
                back[to as usize].push(from);
            }
        }
        // Nothing else matters once a match is found.
        for (position, is_found) in leading(&back, vec![END]).into_iter().enumerate() {
            if is_found {
                self.edges_of[position].clear();
            }
        }
        let all = self.sets.len() - 1;
        let before = self.edges_of.len() as u32;
        self.edges_of[END as usize].push((all, END));
        self.edges_of.push(vec![(all, before)]);
        self.ways_of.push(vec![(None, START)]);
        self.looks_back.push(self.looks_back[START as usize]);
        Ok(before)
    }

    fn state(&mut self, position: u32, last: u32, next: KindSet) -> u32 {
        let last = if self.looks_back[position as usize] { last } else { 0 };
        let state = (position, last, next);
        if let Some(&known) = self.number_of.get(&state) {
            return known;
        }
        let number = self.nfa.add_state();
        if position == END && next >> self.kinds.edge() & 1 == 1 {
            self.nfa.set_final(number);
        }
        self.number_of.insert(state, number);
        self.waiting.push((number, state));
        number
    }

    fn explore(&mut self, bounds: &Bounds<'_>) -> Result<()> {
        while let Some((from, (position, last, next))) = self.waiting.pop() {
            let (edges, ways) =
                (self.edges_of[position as usize].len(), self.ways_of[position as usize].len());
            bounds.budget.spend(1 + edges + ways)?;
            for place in 0..ways {
                let (assertion, to) = self.ways_of[position as usize][place];
                let allowed =
                    assertion.map_or(next, |assertion| next & self.kinds.allowed(assertion, last));
                if allowed != 0 {
                    let to = self.state(to, last, allowed);
                    self.nfa.add_epsilon(from, to);
                }
            }
            for place in 0..edges {
                let (set, to) = self.edges_of[position as usize][place];
                if !self.looks_back[to as usize] {
                    self.edge(from, set, next, (to, 0), bounds)?;
                    continue;
                }
                for kind in (0..self.kinds.edge()).filter(|kind| next >> kind & 1 == 1) {
                    self.edge(from, set, 1 << kind, (to, kind), bounds)?;
                }
            }
        }
        Ok(())
    }

    /// Adds an edge that reads the characters of a set that are of some kinds.
    fn edge(
        &mut self,
        from: u32,
        set: usize,
        next: KindSet,
        (to, last): (u32, u32),
        bounds: &Bounds<'_>,
    ) -> Result<()> {
        if !self.parts.contains_key(&(set, next)) {
            let whole = self.sets[set];
            let mut part = CharSet::default();
            for kind in (0..self.kinds.edge()).filter(|kind| next >> kind & 1 == 1) {
                let members = &self.kinds.members[kind as usize];
                bounds.budget.spend(whole.ranges().len() + members.ranges().len())?;
                part = part.union(&whole.intersection(members));
            }
            self.parts.insert((set, next), part);
        }
        let all = self.kinds.all();
        if self.parts[&(set, next)].is_empty() {
            return Ok(());
        }
        let to = self.state(to, last, all);
        self.nfa.add_edge(from, &self.parts[&(set, next)], to);
        Ok(())
    }
}

/// Which positions lead to some others, by the ways that lead back.
fn leading(back: &[Vec<u32>], mut work: Vec<u32>) -> Vec<bool> {
    let mut out = vec![false; back.len()];
    while let Some(position) = work.pop() {
        if !std::mem::replace(&mut out[position as usize], true) {
            work.extend(&back[position as usize]);
        }
    }
    out
}
