//! Bounds on what one compilation may use: the fields of [`Limits`].
//!
//! A bound that is reached is [`Error::Limit`](crate::error::Error::Limit) with the name of its field
//! (`LimitExceededError` in Python). The pass that reaches it raises it; `budget.rs` checks work and bytes. While token
//! classes are made, a token that reaches `max_stack_depth` or one of the last three fields becomes a class of its own,
//! without an error.

/// Bounds on grammar size and on the work of a compilation.
///
/// The defaults take every real grammar we know with a wide margin; raise a field to take more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of grammar text.
    pub max_grammar_bytes: usize,
    /// Rules of a grammar, before any is derived.
    pub max_rules: usize,
    /// Levels of nested groups in one rule.
    pub max_nesting: usize,
    /// Formulas of a JSON Schema: conditions that hold or fail together.
    pub max_schema_formulas: usize,
    /// States of the objects and arrays of a JSON Schema.
    pub max_schema_states: usize,
    /// States of an automaton over characters: of a pattern, a format, a set of texts.
    pub max_automaton_states: usize,
    /// States of the network at any stage of its construction.
    pub max_network_states: usize,
    /// Edges of the network at any stage of its construction.
    pub max_network_edges: usize,
    /// States and edges made or visited while the network is made. What only makes it smaller is
    /// left undone before this is reached.
    pub max_network_work: u64,
    /// Bytes of the sets of members that one text meets, in objects whose members stand in any order.
    pub max_set_bytes: usize,
    /// Levels of a stack of the network, and of the trees in which sets of stacks are kept. Texts
    /// that are nested deeper are not recognized; tokens that are, are classes of their own.
    pub max_stack_depth: u32,
    /// Work units (see `classes`) that one token may cost before it becomes a class of its own;
    /// as much again for every 10,000 states of the network.
    pub max_token_work: u64,
    /// Work units, besides 200 for each state of the network, after which every token that still
    /// needs work becomes a class of its own.
    pub max_total_work: u64,
    /// Bytes held by the displacement automaton.
    pub max_automaton_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_grammar_bytes: 16 << 20,
            max_rules: 1 << 20,
            max_nesting: 1_000,
            max_schema_formulas: 200_000,
            max_schema_states: 100_000,
            max_automaton_states: 200_000,
            max_network_states: 2 << 20,
            max_network_edges: 8 << 20,
            max_network_work: 80_000_000,
            max_set_bytes: 256 << 20,
            max_stack_depth: 1_000,
            max_token_work: 200_000,
            max_total_work: 10_000_000,
            max_automaton_bytes: 1 << 30,
        }
    }
}

impl Limits {
    /// Work units that one token may take under a network of so many states.
    pub(crate) fn token_work(&self, states: usize) -> u64 {
        self.max_token_work.saturating_mul(1 + states as u64 / 10_000)
    }

    /// Work units that folding under a network of so many states may take in all.
    pub(crate) fn total_work(&self, states: usize) -> u64 {
        self.max_total_work.saturating_add(200 * states as u64)
    }
}

/// The bytes of a text, at most, tokens included. Bounds that no such text reaches are none.
pub const MOST_TEXT_BYTES: u32 = (1 << 31) - 2;
