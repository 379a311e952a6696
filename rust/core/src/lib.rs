//! The core of tokfold: from grammars, JSON Schemas, patterns and Lark text to the masks of texts.
//!
//! Dependencies run one way: DESIGN.md, "The house", has the table, which `tests/project/test_imports.py` holds against
//! the code. `apart`, `budget`, `error`, `graph`, `hash`, `ids` and `limits` stand below everything.
//!
//! - from text: `syntax` (EBNF, GBNF), `lark`, `json_schema`, `regular` (patterns) make a `grammar`
//! - made ready: `automata` (of one rule), `network` (of a grammar), `vocabulary`, `classes`; `compile`: from a grammar
//!   and a vocabulary to an engine
//! - masks: `engine` over `stacks` (sets of stacks) or a `chart` (very ambiguous texts), `ending` (texts that end in
//!   time), `unique` (items that may not repeat), `mask` (bits and logits)
//! - beside these: `recognizer` (texts without a vocabulary), `laboratory` (do two grammars have one language?)
//! - below everything: `budget` (what bounds and ends a call), `limits`, `error`, `ids`, `hash`, `graph` (components of
//!   graphs), `apart` (long lists that another thread frees)
#![forbid(unsafe_code)]

mod apart;
pub mod automata;
pub mod budget;
mod chart;
pub mod classes;
pub mod compile;
mod ending;
pub mod engine;
pub mod error;
pub mod grammar;
mod graph;
mod hash;
pub mod ids;
pub mod json_schema;
pub mod laboratory;
pub mod lark;
pub mod limits;
pub mod mask;
pub mod network;
pub mod recognizer;
pub mod regular;
mod stacks;
pub mod syntax;
mod unique;
pub mod vocabulary;

pub use hash::digest;
