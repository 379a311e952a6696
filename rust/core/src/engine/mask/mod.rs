//! How a mask is made. Files, in the order in which a mask tries them:
//!
//! - [`cached`]: of answers that are there;
//! - [`answers`]: of answers to questions, made where they are missing. [`query`] says what a question is,
//!   [`stack_queries`] and [`chart_queries`] which of them a mask is made of;
//! - [`bounds`] and [`follow`]: where answers would be many, what may follow at most; `count_bounds`: the same where a
//!   text stands at many counts;
//! - [`uncached`]: a walk with the whole stacks, where all of that takes too much; [`chart_walk`] where only
//!   charts can read.
//!
//! A walk of the trie finds an answer: [`trie_walk`] walks, [`found`] has the nodes and tokens that it finds, and
//! [`transition_cache`] the steps of sets that it meets often.
//!
//! [`memo`] keeps the answers, which [`answers`] forgets past `max_memo_bytes`; [`pending`] keeps sets of nodes;
//! [`pool`] has what grammars share, under [`keys`].
//!
//! [`rows`] makes rows of tokens, over classes too; [`row_scan`] tells whether a row forbids anything; `warm` makes
//! answers before a mask needs them; [`walk_counters`] has what all of that cost.
//!
//! Design: docs/design/masks.md.

pub(in crate::engine) mod answers;
pub(in crate::engine) mod bounds;
pub(in crate::engine) mod cached;
pub(in crate::engine) mod chart_queries;
pub(in crate::engine) mod chart_walk;
mod count_bounds;
pub(in crate::engine) mod follow;
#[cfg(test)]
mod follow_tests;
pub(in crate::engine) mod found;
pub(in crate::engine) mod keys;
pub(in crate::engine) mod memo;
pub(in crate::engine) mod pending;
pub(in crate::engine) mod pool;
pub(in crate::engine) mod query;
pub(in crate::engine) mod row_scan;
pub(in crate::engine) mod rows;
pub(in crate::engine) mod stack_queries;
pub(in crate::engine) mod transition_cache;
pub(in crate::engine) mod trie_walk;
pub(in crate::engine) mod uncached;
pub(in crate::engine) mod walk_counters;
mod warm;
