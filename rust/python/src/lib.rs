//! The extension module `tokfold._core`: thin. Meaning and documentation stand in the Python
//! package, which is the only caller.
//!
//! - `boundary`: errors, the GIL, cancelling and Ctrl-C, for all calls; `threads`: for batches
//! - sources: `grammar`, `json_schema`, `lark`, `regular`, `tags`; `pieces`: what stands in place of a rule; `arena`: rules
//!   as plain values; `json_text`: values of Python as JSON
//! - `vocabulary`, `classes`, `pool`; `mask`: rows of classes unfolded, and written onto logits; `recognizer`
//! - `engine`: engines and matchers, with `engine/rows.rs` for the rows of numpy that they write
//! - `mask_store`: for `tokfold.mask_store`; `equivalence`: for `tokfold.laboratory`

mod arena;
mod boundary;
mod classes;
mod engine;
mod equivalence;
mod grammar;
mod json_schema;
mod json_text;
mod lark;
mod mask;
mod mask_store;
mod pieces;
mod pool;
mod recognizer;
mod regular;
mod tags;
mod threads;
mod vocabulary;

use pyo3::prelude::*;

/// Compiling makes many small objects: with glibc's allocator it takes some 15 % longer, and masks some 8 %. For 285
/// schemas in one thread glibc keeps 80 MB, version 2 of mimalloc 100 to 140, and version 3, which is as fast, up to
/// 210; in eight threads they keep about the same. How many addresses it reserves at a time, .cargo/config.toml says.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::arena::{build_arena, read_arena};
    #[pymodule_export]
    use super::boundary::Interrupt;
    #[pymodule_export]
    use super::classes::compile_classes;
    #[pymodule_export]
    use super::engine::{
        Engine, Matcher, accept_batch, fill_batch, fill_batch_each, rollback_batch,
    };
    #[pymodule_export]
    use super::equivalence::compare;
    #[pymodule_export]
    use super::grammar::{Grammar, Parts, digest, repair_printed, token_names};
    #[pymodule_export]
    use super::json_schema::{
        convert_json_schema, convert_json_schemas, explain_document, keyword_role, schema_notes,
        schema_rule_origins, style_marks,
    };
    #[pymodule_export]
    use super::json_text::json_text;
    #[pymodule_export]
    use super::lark::{lark_notes, read_lark};
    #[pymodule_export]
    use super::mask::{Unfolder, apply_bitmask};
    #[pymodule_export]
    use super::mask_store::{LexerStore, StackParser, StoreEngine, StoreText};
    #[pymodule_export]
    use super::pieces::check_composed;
    #[pymodule_export]
    use super::pool::Pool;
    #[pymodule_export]
    use super::recognizer::{open_rules, recognize};
    #[pymodule_export]
    use super::regular::regular_grammar;
    #[pymodule_export]
    use super::tags::Tags;
    #[pymodule_export]
    use super::vocabulary::Vocabulary;
}
