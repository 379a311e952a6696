//! The core of tokfold: from grammar text to token classes.
//!
//! Dependencies run one way:
//! `syntax` -> `grammar`; `json_schema` -> `regular` -> `grammar`, `automata`; `network` -> `grammar`, `automata`; `classes` -> `network`, `vocabulary`;
//! `engine` -> `classes`, `mask`; `compile` -> `engine`; `laboratory` -> `network`, `stacks`.
//! `ids`, `limits`, `error`, `graph`, `hash` and `budget` stand below everything.
//!
//! - from text: `syntax` (EBNF, GBNF), `lark`, `json_schema`, `regular`; `grammar` is what all of them make
//! - made ready: `automata`, `network`, `vocabulary`, `classes`; `compile` does all of it
//! - masks: `engine` (stacks), `chart` (truly ambiguous grammars), `ending` (texts that end in time), `unique` (items that
//!   may not repeat), `mask` (bits and logits)
//! - beside these: `recognizer` (texts without a vocabulary), `mask_store`, `laboratory`; `stacks`: sets of stacks;
//!   `apart`: long lists that another thread frees
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
pub mod mask_store;
pub mod network;
pub mod recognizer;
pub mod regular;
mod stacks;
pub mod syntax;
mod unique;
pub mod vocabulary;

pub use hash::digest;
