//! Which stacks a table can have: the pairs of states that stand upon each other.
//!
//! Stacks that stand after a terminal are the paths of the LR automaton that end in a shift of it;
//! for a table without conflicts, of a grammar whose rules can all be completed, each of these
//! paths stands after some text. Where conflicts were decided, paths that the table never takes
//! are left out as far as one terminal ahead tells. The pairs are the least solution of two rules:
//!
//! - a terminal is shifted where it may come next: anything after a shift, after a reduction what
//!   lay ahead of it;
//! - a production is reduced before a terminal where its symbols were passed in this way.

use super::table::ParseTable;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// The stacks of a table.
#[derive(Clone, Debug)]
pub struct StackPaths {
    /// For each state those that can stand below it, ascending.
    pub below: Vec<Vec<u32>>,
    /// For each terminal the states that can be on top once it was read, ascending; for the end
    /// of the text the state in which it is complete.
    pub after: Vec<Vec<u32>>,
    /// Whether paths were left out because the table never takes them.
    pub is_reduced: bool,
}

/// Terminals as bits.
type TerminalBits = Box<[u64]>;

fn has(bits: &[u64], terminal: u32) -> bool {
    bits[terminal as usize / 64] >> (terminal % 64) & 1 == 1
}

fn is_empty(bits: &[u64]) -> bool {
    bits.iter().all(|&word| word == 0)
}

/// A production begun on a state, to be reduced before some terminals.
struct BegunProduction<'a> {
    state: u32,
    rule: u32,
    symbols: &'a [(bool, u32)],
    ahead: TerminalBits,
}

struct Solving<'a> {
    table: &'a ParseTable,
    shifts: HashMap<(u32, u32), u32, FxBuildHasher>,
    /// What may come next on a state.
    nexts: Vec<TerminalBits>,
    /// What may come next after a rule that began on a state.
    ahead: HashMap<(u32, u32), TerminalBits, FxBuildHasher>,
    every: TerminalBits,
    none: TerminalBits,
}

impl StackPaths {
    /// The stacks of a table.
    pub fn new(table: &ParseTable) -> Self {
        let words = (table.parts.terminals as usize).div_ceil(64);
        let every: TerminalBits = vec![u64::MAX; words].into();
        let none: TerminalBits = vec![0; words].into();
        let mut nexts = vec![none.clone(); table.size()];
        nexts[table.start() as usize] = every.clone();
        let mut shifts = HashMap::default();
        for (state, row) in table.parts.shifts.iter().enumerate() {
            for &(terminal, to) in row {
                shifts.insert((state as u32, terminal), to);
                nexts[to as usize] = every.clone();
            }
        }
        let mut solving = Solving { table, shifts, nexts, ahead: HashMap::default(), every, none };
        solving.fill();
        solving.write()
    }
}

impl<'a> Solving<'a> {
    fn fill(&mut self) {
        let work = self.work();
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for one in &work {
                let key = (one.state, one.rule);
                let before = self.ahead.get(&key).unwrap_or(&self.none);
                if one.ahead.iter().zip(before).all(|(&a, &b)| a & !b == 0) {
                    continue;
                }
                let Some(next) = self.passed(one.state, one.symbols) else { continue };
                let found: TerminalBits =
                    one.ahead.iter().zip(next).map(|(&a, &n)| a & n).collect();
                if found.iter().zip(before).all(|(&f, &b)| f & !b == 0) {
                    continue;
                }
                has_changed = true;
                let ahead = self.ahead.entry(key).or_insert_with(|| self.none.clone());
                ahead.iter_mut().zip(&found).for_each(|(a, &f)| *a |= f);
                if let Some(to) = self.table.goto(one.state, one.rule) {
                    let next = &mut self.nexts[to as usize];
                    next.iter_mut().zip(&found).for_each(|(n, &f)| *n |= f);
                }
            }
        }
    }

    /// Productions where they can begin and end, with the terminals before which they do.
    fn work(&self) -> Vec<BegunProduction<'a>> {
        let parts = &self.table.parts;
        let mut by_rule = vec![Vec::new(); parts.rules as usize];
        for (number, production) in parts.productions.iter().enumerate() {
            by_rule[production.rule as usize].push(number as u32);
        }
        let mut reduced: HashMap<(u32, u32), TerminalBits, FxBuildHasher> = HashMap::default();
        for (state, row) in parts.reductions.iter().enumerate() {
            for &(terminal, production) in row {
                let bits =
                    reduced.entry((state as u32, production)).or_insert_with(|| self.none.clone());
                bits[terminal as usize / 64] |= 1 << (terminal % 64);
            }
        }
        let mut work = Vec::new();
        for (state, row) in parts.gotos.iter().enumerate() {
            for &(rule, _) in row {
                for &production in &by_rule[rule as usize] {
                    let symbols = &parts.productions[production as usize].symbols;
                    let end = self.walked(state as u32, symbols);
                    let ahead = end.and_then(|end| reduced.get(&(end, production)));
                    if let Some(ahead) = ahead {
                        let (state, ahead) = (state as u32, ahead.clone());
                        work.push(BegunProduction { state, rule, symbols, ahead });
                    }
                }
            }
        }
        work
    }

    fn step(&self, state: u32, (is_rule, symbol): (bool, u32)) -> Option<u32> {
        match is_rule {
            true => self.table.goto(state, symbol),
            false => self.shifts.get(&(state, symbol)).copied(),
        }
    }

    fn walked(&self, state: u32, symbols: &[(bool, u32)]) -> Option<u32> {
        symbols.iter().try_fold(state, |state, &symbol| self.step(state, symbol))
    }

    /// What may come next behind a production begun on a state, if it can be passed.
    fn passed(&self, mut state: u32, symbols: &[(bool, u32)]) -> Option<&TerminalBits> {
        let mut next = &self.nexts[state as usize];
        for &(is_rule, symbol) in symbols {
            next = match is_rule {
                true => self.ahead.get(&(state, symbol))?,
                false if has(next, symbol) => &self.every,
                false => return None,
            };
            if is_empty(next) {
                return None;
            }
            state = self.step(state, (is_rule, symbol))?;
        }
        Some(next)
    }

    /// The pairs that can be reached from the start.
    fn write(&self) -> StackPaths {
        let table = self.table;
        let mut below = vec![Vec::new(); table.size()];
        let mut after = vec![Vec::new(); table.parts.terminals as usize];
        let mut is_reduced = false;
        let mut seen: HashSet<u32, FxBuildHasher> = HashSet::default();
        seen.insert(table.start());
        let mut waiting = vec![table.start()];
        while let Some(state) = waiting.pop() {
            let mut targets = Vec::new();
            for &(terminal, to) in &table.parts.shifts[state as usize] {
                match has(&self.nexts[state as usize], terminal) {
                    true => {
                        after[terminal as usize].push(to);
                        targets.push(to);
                    }
                    false => is_reduced = true,
                }
            }
            for &(rule, to) in &table.parts.gotos[state as usize] {
                match self.ahead.contains_key(&(state, rule)) {
                    true => targets.push(to),
                    false => is_reduced = true,
                }
            }
            for to in targets {
                below[to as usize].push(state);
                if seen.insert(to) {
                    waiting.push(to);
                }
            }
        }
        after[table.end() as usize].push(table.parts.end_state);
        for states in below.iter_mut().chain(&mut after) {
            states.sort_unstable();
            states.dedup();
        }
        StackPaths { below, after, is_reduced }
    }
}
