//! Bounds on what a mask and an accept may use. Each is a typed error when it is reached.

/// Bounds on the work, memory and time of an engine and its matchers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// Work units of one mask: stack set entries made, queries, and an eighth of the trie nodes
    /// entered.
    pub max_mask_work: u64,
    /// Work units of one accepted token or text of a kilobyte: stack set entries made.
    pub max_accept_work: u64,
    /// Bytes of what masks remember and work with; past them answers are forgotten and made anew when
    /// needed. Never an error: a mask that needs more is made without remembering.
    pub max_memo_bytes: usize,
    /// Bytes of token rows remembered.
    pub max_row_bytes: usize,
    /// Bytes of the tables of a matcher and its forks.
    pub max_matcher_bytes: usize,
    /// Milliseconds of one mask; `None` for no deadline.
    pub max_mask_milliseconds: Option<u64>,
    /// Milliseconds of one accept, or of another call of a matcher; `None` for no deadline.
    pub max_accept_milliseconds: Option<u64>,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            max_mask_work: 5_000_000,
            max_accept_work: 5_000_000,
            max_memo_bytes: 64 << 20,
            max_row_bytes: 16 << 20,
            max_matcher_bytes: 1 << 30,
            max_mask_milliseconds: None,
            max_accept_milliseconds: None,
        }
    }
}
