//! Automata of patterns with lookaround, and of those that [`kinds`](super::kinds) leaves: residual formulas.
//!
//! What is left to say of a text, once a part of it is read, is a formula ([`super::clauses`]) over
//! atoms that speak of the rest: "the pattern leads from this position to its end", "this automaton
//! accepts the rest from this state", "the rest is empty". Reading a character turns each atom into
//! a formula of its own, so formulas are the states of a deterministic automaton.
//!
//! - *Lookahead* `(?=x)` is the conjunct "x begins the rest", `(?!x)` its negation. Where `x` holds
//!   no lookbehind it becomes an automaton of its own first, innermost first, so that the state
//!   holds one atom for it.
//! - *Lookbehind* `(?<=x)` runs `x` forward from every position: besides the formula, the state
//!   holds for each position within `x` the formula that says whether some way from the start of
//!   `x` leads there. That formula speaks of the rest only where `x` looks ahead.
//! - `^`, `\b` and what else looks at the character before is decided when the character is read:
//!   a [`Moment`] says what it was.
//!
//! What the ways from a position lead to depends on the position and the moment only, and is kept.
//!
//! `explore` reads characters, state by state.

mod explore;

use super::super::alphabet::ScalarAlphabet;
use super::super::{Bounds, Dfa};
use super::clauses::{Disjunction, Literal};
use super::directions::{Directions, directions};
use super::program::{END, Program, START, WayCondition};
use super::syntax::{Assertion, CharSetId, PatternNode, PatternTree};
use crate::error::Result;
use crate::grammar::CharSet;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Units of work for a way between two positions: the formulas of both are joined.
const UNITS_PER_WAY: usize = 8;
/// Units of work for what the ways from a position lead to, besides the ways: it is looked up, sorted and kept.
const UNITS_PER_CLOSURE: usize = 24;

/// What an atom says of the rest of the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ResidualAtom {
    /// It is empty.
    End,
    /// It is one newline.
    LastNewline,
    /// It begins with one of the set.
    Next(CharSetId),
    /// An edge of the position reads its first character, and so on to the end of the pattern or
    /// of the lookahead.
    Position(u32),
    /// An automaton accepts it from a state.
    Rest(u32, u32),
}

/// How the body of a lookaround is dealt with.
#[derive(Clone, Debug)]
enum LookaroundWay {
    /// By automata of the rest: one for each kind of character before, or one for all.
    Automata(Vec<u32>),
    /// By the formula of its first position.
    Formula,
    /// By what runs along.
    Behind,
}

/// What stands before the rest of the text, as far as it matters, by number: the kind of the last
/// character, and for some of the lookarounds without automata, in order, whether they hold here.
/// A moment is another with one more lookaround. One of them is the present; only what is said at
/// the present is found out, the rest is known.
type Moment = u32;

/// A state: what is left to say, and what runs along for each lookbehind, position by position.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct ResidualState {
    rest: Rc<Disjunction>,
    behind: Vec<Running>,
}

/// What runs along for a lookbehind: some way leads from its start to the position if the formula
/// holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Running {
    look: u32,
    position: u32,
    formula: Rc<Disjunction>,
}

struct ResidualEngine<'a, 'b> {
    program: Program,
    bounds: &'a Bounds<'b>,
    /// Whether the pattern may end before the text does.
    is_open: bool,
    edges_of: Vec<Vec<(u32, u32)>>,
    ways_of: Vec<Vec<(WayCondition, u32)>>,
    symbols: Vec<CharSet>,
    /// For each set and symbol whether the symbol is in the set.
    holds: Vec<Vec<bool>>,
    newline: Option<u32>,
    /// Sets of which it matters whether the last character is in them.
    observed: Vec<CharSetId>,
    /// The kind of each symbol, and for each kind which observed sets hold it. Kind 0 is the start.
    kind_of: Vec<u32>,
    kinds: Vec<Vec<bool>>,
    /// For each position whether the pattern, or a lookahead, ends there.
    is_end: Vec<bool>,
    looks: Vec<LookaroundWay>,
    /// The lookarounds without automata, and for each lookaround its place among them.
    followed: Vec<usize>,
    place_of: Vec<usize>,
    /// Automata of the rest, each with the state from which it accepts everything.
    automata: Vec<(Dfa, Option<u32>)>,
    automaton_of: FxHashMap<Dfa, u32>,
    atoms: Vec<ResidualAtom>,
    atom_of: FxHashMap<ResidualAtom, u32>,
    moments: u32,
    first_moments: FxHashMap<u32, Moment>,
    next_moments: FxHashMap<(Moment, Rc<Disjunction>), Moment>,
    /// The kind of the present moment, and whether the lookarounds without automata hold.
    kind: u32,
    present: Vec<Rc<Disjunction>>,
    closures: FxHashMap<(u32, u32), Rc<Disjunction>>,
    /// What atoms become, and their negations, by atom, symbol and moment.
    derivatives: FxHashMap<(u32, u32, Moment), Rc<Disjunction>>,
    negated_derivatives: FxHashMap<(u32, u32, Moment), Rc<Disjunction>>,
}

/// The automaton of a pattern.
///
/// # Errors
/// [`crate::error::Error::Limit`] and what ends the work.
pub(super) fn automaton(tree: &PatternTree, search: bool, bounds: &Bounds<'_>) -> Result<Dfa> {
    let mut engine = ResidualEngine::new(tree, search, bounds)?;
    let directions = directions(tree);
    for look in 0..engine.program.looks.len() {
        engine.make_automata(directions[engine.program.looks[look].body.index()], look)?;
    }
    let start = if search { engine.program.positions - 1 } else { START };
    let follows = !engine.followed.is_empty();
    engine.explore(start, 0, follows)
}

impl<'a, 'b> ResidualEngine<'a, 'b> {
    fn new(tree: &PatternTree, search: bool, bounds: &'a Bounds<'b>) -> Result<Self> {
        let mut program = Program::new(tree, tree.root(), bounds)?;
        let mut sets = tree.sets.clone();
        let all = sets.len() as u32;
        sets.push(CharSet::scalar_values());
        sets.push(CharSet::single(10));
        let mut edges_of = vec![Vec::new(); program.positions as usize];
        for &(from, set, to) in &program.edges {
            edges_of[from as usize].push((set.index() as u32, to));
        }
        let mut ways_of = vec![Vec::new(); program.positions as usize];
        for &(from, condition, to) in &program.ways {
            ways_of[from as usize].push((condition, to));
        }
        if search {
            edges_of.push(vec![(all, program.positions)]);
            ways_of.push(vec![(WayCondition::Free, START)]);
            program.positions += 1;
        }
        let mut is_end = vec![false; program.positions as usize];
        is_end[END as usize] = true;
        for look in program.looks.iter().filter(|look| look.is_ahead) {
            is_end[look.end as usize] = true;
        }
        let (alphabet, members) = ScalarAlphabet::of_sets(sets.iter(), |n| bounds.budget.spend(n))?;
        let ranges = alphabet.ranges();
        let symbols: Vec<CharSet> =
            (0..alphabet.len()).map(|class| CharSet::new(ranges.of(class).to_vec())).collect();
        bounds.budget.spend(symbols.len() * sets.len())?;
        let mut holds = vec![vec![false; symbols.len()]; sets.len()];
        for (set, members) in holds.iter_mut().zip(&members) {
            members.iter().for_each(|&symbol| set[symbol as usize] = true);
        }
        let newline = holds.last().and_then(|set| set.iter().position(|&holds| holds));
        let mut engine = Self {
            program,
            bounds,
            is_open: search,
            edges_of,
            ways_of,
            symbols,
            holds,
            newline: newline.map(|symbol| symbol as u32),
            observed: observed(tree),
            kind_of: Vec::new(),
            kinds: Vec::new(),
            is_end,
            looks: Vec::new(),
            followed: Vec::new(),
            place_of: Vec::new(),
            automata: Vec::new(),
            automaton_of: FxHashMap::default(),
            atoms: Vec::new(),
            atom_of: FxHashMap::default(),
            moments: 0,
            first_moments: FxHashMap::default(),
            next_moments: FxHashMap::default(),
            kind: 0,
            present: Vec::new(),
            closures: FxHashMap::default(),
            derivatives: FxHashMap::default(),
            negated_derivatives: FxHashMap::default(),
        };
        engine.find_kinds();
        Ok(engine)
    }

    fn find_kinds(&mut self) {
        self.kinds.push(vec![false; self.observed.len()]);
        let mut known: FxHashMap<Vec<bool>, u32> = FxHashMap::default();
        for symbol in 0..self.symbols.len() {
            let kind: Vec<bool> =
                self.observed.iter().map(|set| self.holds[set.index()][symbol]).collect();
            let kinds = &mut self.kinds;
            let number = *known.entry(kind).or_insert_with_key(|kind| {
                kinds.push(kind.clone());
                kinds.len() as u32 - 1
            });
            self.kind_of.push(number);
        }
    }

    /// Makes the automata of a lookahead that holds no lookbehind.
    fn make_automata(&mut self, directions: Directions, look: usize) -> Result<()> {
        let body = self.program.looks[look];
        self.place_of.push(self.followed.len());
        if !body.is_ahead || directions.has_lookbehind {
            self.followed.push(look);
            self.looks.push(if body.is_ahead {
                LookaroundWay::Formula
            } else {
                LookaroundWay::Behind
            });
            return Ok(());
        }
        let kinds = if directions.looks_back { self.kinds.len() as u32 } else { 1 };
        let mut automata = Vec::new();
        for kind in 0..kinds {
            let dfa = self.explore(body.start, kind, false)?;
            if let Some(&known) = self.automaton_of.get(&dfa) {
                automata.push(known);
                continue;
            }
            let is_universal = |&q: &u32| {
                let mut edges = dfa.edges(q);
                let loops = edges
                    .next()
                    .is_some_and(|(set, to)| to == q && set == CharSet::scalar_values());
                dfa.is_final(q) && loops
            };
            let universal = (0..dfa.num_states() as u32).find(is_universal);
            let number = self.automata.len() as u32;
            automata.push(number);
            self.automaton_of.insert(dfa.clone(), number);
            self.automata.push((dfa, universal));
        }
        self.looks.push(LookaroundWay::Automata(automata));
        Ok(())
    }

    fn atom(&mut self, atom: ResidualAtom) -> Disjunction {
        let next = self.atoms.len() as u32;
        let number = *self.atom_of.entry(atom).or_insert(next);
        if number == next {
            self.atoms.push(atom);
        }
        Disjunction::literal(Literal::of(number))
    }

    /// What an automaton's state says.
    fn rest(&mut self, automaton: u32, state: Option<u32>) -> Disjunction {
        let (dfa, universal) = &self.automata[automaton as usize];
        match state {
            None => Disjunction::constant(false),
            Some(_) if dfa.is_empty() => Disjunction::constant(false),
            Some(_) if state == *universal => Disjunction::constant(true),
            Some(state) => self.atom(ResidualAtom::Rest(automaton, state)),
        }
    }

    /// Makes the moment behind a character of a kind the present.
    fn begin(&mut self, kind: u32) -> Moment {
        self.kind = kind;
        self.present.clear();
        let next = self.moments;
        let moment = *self.first_moments.entry(kind).or_insert(next);
        self.moments += u32::from(moment == next);
        moment
    }

    /// Adds to the present whether the next lookaround holds.
    fn settle(&mut self, moment: Moment, holds: Rc<Disjunction>) -> Moment {
        self.present.push(holds.clone());
        let next = self.moments;
        let moment = *self.next_moments.entry((moment, holds)).or_insert(next);
        self.moments += u32::from(moment == next);
        moment
    }

    /// What a condition says at the present.
    fn condition(&mut self, condition: WayCondition) -> Result<Disjunction> {
        let kind = self.kind;
        let is_behind = |engine: &Self, set: CharSetId| {
            let place = engine.observed.iter().position(|&known| known == set);
            place.is_some_and(|place| engine.kinds[kind as usize][place])
        };
        let (formula, is_negated) = match condition {
            WayCondition::Free => (Disjunction::constant(true), false),
            WayCondition::Assert(assertion) => match assertion {
                Assertion::Start => (Disjunction::constant(kind == 0), false),
                Assertion::End => (self.atom(ResidualAtom::End), false),
                Assertion::EndOrLastNewline => {
                    let either =
                        [self.atom(ResidualAtom::End), self.atom(ResidualAtom::LastNewline)];
                    (Disjunction::any(&either, self.bounds)?, false)
                }
                Assertion::LineStart(set) => {
                    (Disjunction::constant(kind == 0 || is_behind(self, set)), false)
                }
                Assertion::LineEnd(set) => {
                    let either = [self.atom(ResidualAtom::End), self.atom(ResidualAtom::Next(set))];
                    (Disjunction::any(&either, self.bounds)?, false)
                }
                Assertion::Boundary { word, is_negated } => {
                    let is_behind = is_behind(self, word);
                    (self.atom(ResidualAtom::Next(word)), is_behind != is_negated)
                }
            },
            WayCondition::Look { look, is_negated } => {
                let formula = match &self.looks[look as usize] {
                    LookaroundWay::Automata(automata) => {
                        let automaton = automata.get(kind as usize).or(automata.first());
                        let automaton = automaton.copied().unwrap_or(0);
                        self.rest(automaton, Some(0))
                    }
                    LookaroundWay::Formula | LookaroundWay::Behind => {
                        let place = self.place_of[look as usize];
                        (*self.present[place]).clone()
                    }
                };
                (formula, is_negated)
            }
        };
        if is_negated { formula.not(self.bounds) } else { Ok(formula) }
    }

    /// Under which conditions ways lead from the given positions on to which others.
    fn spread(&mut self, from: Vec<(u32, Disjunction)>) -> Result<FxHashMap<u32, Disjunction>> {
        let mut work: Vec<u32> = from.iter().map(|entry| entry.0).collect();
        let mut waiting: FxHashSet<u32> = work.iter().copied().collect();
        let mut reached: FxHashMap<u32, Disjunction> = from.into_iter().collect();
        while let Some(here) = work.pop() {
            waiting.remove(&here);
            let formula = reached.get(&here).cloned().unwrap_or_default();
            for place in 0..self.ways_of[here as usize].len() {
                let (condition, to) = self.ways_of[here as usize][place];
                self.bounds.budget.spend(UNITS_PER_WAY)?;
                let needs = self.condition(condition)?;
                let more = formula.and(&needs, self.bounds)?;
                if more.is_false() || reached.get(&to).is_some_and(Disjunction::is_true) {
                    continue;
                }
                let known = reached.entry(to).or_default();
                let both = Disjunction::any([&*known, &more], self.bounds)?;
                if both != *known {
                    *known = both;
                    if waiting.insert(to) {
                        work.push(to);
                    }
                }
            }
        }
        Ok(reached)
    }

    /// What the rest must be for a position to lead on to the end.
    fn closure(&mut self, position: u32, moment: Moment) -> Result<Rc<Disjunction>> {
        if let Some(known) = self.closures.get(&(position, moment)) {
            return Ok(known.clone());
        }
        self.bounds.budget.spend(UNITS_PER_CLOSURE)?;
        let reached = self.spread(vec![(position, Disjunction::constant(true))])?;
        let mut reached: Vec<(u32, Disjunction)> = reached.into_iter().collect();
        reached.sort_unstable_by_key(|entry| entry.0);
        let mut parts = Vec::with_capacity(reached.len());
        for (position, formula) in reached {
            if !self.edges_of[position as usize].is_empty() {
                let atom = self.atom(ResidualAtom::Position(position));
                parts.push(formula.and(&atom, self.bounds)?);
            }
            if position == END && !self.is_open {
                let end = self.atom(ResidualAtom::End);
                parts.push(formula.and(&end, self.bounds)?);
            } else if self.is_end[position as usize] {
                parts.push(formula);
            }
        }
        let out = Rc::new(Disjunction::any(&parts, self.bounds)?);
        self.closures.insert((position, moment), out.clone());
        Ok(out)
    }
}

/// The sets that assertions look for behind a place.
fn observed(tree: &PatternTree) -> Vec<CharSetId> {
    let mut out: Vec<CharSetId> = Vec::new();
    for node in &tree.nodes {
        if let PatternNode::Assert(
            Assertion::LineStart(set) | Assertion::Boundary { word: set, .. },
        ) = *node
            && !out.contains(&set)
        {
            out.push(set);
        }
    }
    out
}
