//! Bounds of an engine and its matchers: the fields of [`EngineLimits`], and when bounds take the place of answers.
//!
//! `stop.rs`, `mask/rows.rs` and `matcher/mod.rs` make the error of a field that is reached,
//! [`Error::Limit`](crate::error::Error::Limit) with its name; `budget.rs` makes that of a deadline. Past
//! `max_memo_bytes` answers are forgotten, past `max_row_bytes` rows, mostly without an error.

/// Bounds on the work, memory and time of an engine and its matchers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// Work units of one mask: stack set entries made, queries, and an eighth of the trie nodes
    /// entered.
    pub max_mask_work: u64,
    /// Work units of one accepted token or text of a kilobyte: stack set entries made.
    pub max_accept_work: u64,
    /// Bytes of what masks remember and work with; past them answers are forgotten and made anew when
    /// needed. A mask that needs more is made without remembering; an error only where the stacks along one
    /// token take more.
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

/// When bounds take the place of answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    /// Nodes that are asked about one by one where frames have been popped.
    pub(super) undecided: usize,
    /// The most such nodes where the answer itself takes too much work.
    pub(super) undecided_of_frame: usize,
    /// So few of those are not worth the work of the answer.
    pub(super) few_undecided: usize,
    /// Work units of an answer that is not bounded instead.
    pub(super) answer_work: u64,
    /// What the answers of a mask may cost when they are read again (see `AnswerMemo::cost`), and the work to
    /// make them, before bounds take the place of more.
    pub(super) cost: u64,
    pub(super) asked_work: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            undecided: 256,
            undecided_of_frame: 1 << 15,
            few_undecided: 4_096,
            answer_work: 48_000,
            cost: 4_000,
            asked_work: 150_000,
        }
    }
}
