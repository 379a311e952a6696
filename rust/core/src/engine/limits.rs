//! Bounds on what a mask and an accept may use. Each is a typed error when it is reached.

/// Bounds on the work and memory of an engine and its matchers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// Work units of one mask: stack set entries made, sets visited, and an eighth of the trie
    /// nodes entered.
    pub max_mask_work: u64,
    /// Work units of one accepted token or text of a kilobyte: stack set entries made.
    pub max_accept_work: u64,
    /// Bytes of what masks remember; past it, all is forgotten and made anew when needed.
    pub max_memo_bytes: usize,
    /// Bytes of token rows remembered.
    pub max_row_bytes: usize,
    /// Bytes of the tables of a matcher and its forks.
    pub max_matcher_bytes: usize,
    /// Milliseconds of one mask, accept or other call of a matcher.
    pub max_call_milliseconds: u64,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            max_mask_work: 20_000_000,
            max_accept_work: 5_000_000,
            max_memo_bytes: 64 << 20,
            max_row_bytes: 16 << 20,
            max_matcher_bytes: 1 << 30,
            max_call_milliseconds: 60_000,
        }
    }
}
