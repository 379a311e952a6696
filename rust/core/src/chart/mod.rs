//! A chart instead of stacks: for grammars that are truly ambiguous.
//!
//! Design: docs/design/chart.md.
//!
//! Stack sets share what stands beneath a frame when it is the same set of stacks. Under heavy
//! ambiguity each step makes new sets, and uniting them is most of the work. A chart names what
//! stands beneath a frame by the place in the text where its rule began: one bit. What a step does
//! to all places at once is then a few operations on words.
//!
//! After each letter a [`Column`] says for each state of the network, as a bit set, where the rule
//! in that state began (*incremental Valiant*, sections 4.2 and 4.4; the design page has what
//! is different). A rule that is complete goes on, for each place where it began, with those who
//! called it there, the latest places first. Only what can be reached from the start is ever there,
//! since a rule begins only where a state that is there calls it. Left recursion is read as it was
//! written. Columns are never written again: a branch or rollback is the number of a column.
//!
//! - `tables`: what of a network does not depend on the text
//! - `step`: from one column to the next; `fan` and `memo`: where texts go on from one column, listed or remembered,
//!   since it is asked again and again
//! - `column`: what is asked of a column; `tree`: columns of texts that begin alike
//! - `bits`, `rows`: sets of small numbers, and sets of places that are kept once

mod bits;
mod column;
mod fan;
mod memo;
mod rows;
mod step;
mod tables;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use column::Columns;
pub(crate) use step::Scratch;
pub(crate) use tables::Tables;
pub(crate) use tree::Tree;

/// A column of a [`Tree`].
pub(crate) type ColumnId = u32;
