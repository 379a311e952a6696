//! Fuzz targets of the core as plain functions over bytes: libFuzzer calls them, and so does the
//! replay of the corpus.
//!
//! A target panics where the core is wrong, and returns otherwise.
#![forbid(unsafe_code)]

pub mod artefacts;
pub mod doors;
pub mod earley;
pub mod engines;
pub mod grammar_text;
pub mod input;
pub mod json;
pub mod json_schema;
pub mod lark;
pub mod matcher_operations;
pub mod regular_expressions;
pub mod settings;
pub mod structural_tags;
pub mod vocabulary;

/// A target: a case out of bytes.
pub type Target = fn(&[u8]);

/// All targets by name, which is also that of the folder of their corpus.
pub const TARGETS: [(&str, Target); 9] = [
    ("grammar_text", grammar_text::run),
    ("vocabulary", vocabulary::run),
    ("artefacts", artefacts::run),
    ("matcher_operations", matcher_operations::run),
    ("random_grammars", matcher_operations::run_random),
    ("regular_expressions", regular_expressions::run),
    ("json_schema", json_schema::run),
    ("lark", lark::run),
    ("structural_tags", structural_tags::run),
];
