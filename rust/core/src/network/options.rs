//! How a network is made.

use crate::limits::Limits;

/// The usual value of [`NetworkOptions::large_automaton`].
pub(super) const LARGE_AUTOMATON: usize = 2_000;

/// What becomes of rules that can call themselves before they have read anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftRecursion {
    /// They are written out as loops.
    Loops,
    /// The same, and for charts they are kept as they were written, beside the loops.
    Both,
    /// The same as `Both` where loops fit into the limits; else the same as `Kept`.
    Fitting,
    /// They stay as they were written, without loops: the network is for charts only.
    Kept,
}

/// How a network is made.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Drop what cannot be completed.
    pub prune: bool,
    /// Ignore `(= ...)`: for grammars whose lookahead is implied by the rules.
    pub skip_lookahead: bool,
    /// Keep at most so many copies on either side of a repetition's lower bound: exact for the
    /// displacement of tokens of less than half as many bytes, not for recognition. `None` keeps
    /// all.
    pub repeat_window: Option<u32>,
    /// Growth in states that inlining one rule may cause.
    pub inline_budget: usize,
    /// Keep rules that loop over so many bytes or more (strings, comments, free text) as rules:
    /// what is remembered of them is then shared by all who call them, in all grammars.
    pub share_wide: Option<u32>,
    /// Merge and inline rules. Without, each rule keeps its states, and the network is larger.
    pub simplify: bool,
    /// What becomes of left recursion. Parts that are linked have loops whatever it says.
    pub left_recursion: LeftRecursion,
    /// Count large repetitions instead of writing them out. Then some states are not in the
    /// tables; needs `prune`.
    pub counters: bool,
    /// Count the passes of automata with bounds too, where repetitions are counted. Without, they are
    /// written out.
    pub counted_automata: bool,
    /// Take grammars with arrays whose items are unique. The network reads them as if items might
    /// repeat, so it says what the grammar does only to who keeps the items (`unique`).
    pub unique_items: bool,
    /// Read arrays whose items are unique, and members in any order, as if these might repeat, and keep nothing of that.
    /// Each member leads to a state of its own.
    pub for_ends: bool,
    /// Only bytes are read, and no tokens: a rule that counts tokens counts nothing.
    pub without_tokens: bool,
    /// Automata of so many ranges of bytes or more are written down as they stand, where large
    /// repetitions are counted: making them minimal takes long and finds little.
    pub large_automaton: usize,
    /// Leave equal states on cycles in rules with copies of others, which takes long to find.
    pub is_quick: bool,
    /// Bounds on states and edges.
    pub limits: Limits,
}

impl Default for NetworkOptions {
    fn default() -> Self {
        Self {
            prune: true,
            skip_lookahead: false,
            repeat_window: None,
            inline_budget: 20,
            share_wide: None,
            simplify: true,
            left_recursion: LeftRecursion::Loops,
            counters: false,
            counted_automata: true,
            unique_items: false,
            for_ends: false,
            without_tokens: false,
            large_automaton: LARGE_AUTOMATON,
            is_quick: false,
            limits: Limits::default(),
        }
    }
}
