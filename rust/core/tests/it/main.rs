//! The core from outside, in one program: six would compile its generic parts, and proptest's, six times.
//!
//! - `syntax`: grammar text, read and printed.
//! - `network`: strings and prefixes of a network, by sets of strings.
//! - `classes`: token classes by their definition.
//! - `compile`: the way from a grammar to an engine, and the example of it.
//! - `engine`: masks and tokens beside the recognizer.
//! - `ending`: texts that end in time, beside a search of all sequences of tokens.

mod classes;
mod compile;
mod ending;
mod engine;
mod network;
mod syntax;
