//! The core of tokfold: from grammar text to token classes.
//!
//! Dependencies run one way:
//! `syntax` -> `grammar`; `network` -> `grammar`, `automata`; `classes` -> `network`, `vocabulary`.
//! `ids`, `limits` and `error` stand below everything.
#![forbid(unsafe_code)]

pub mod error;
pub mod grammar;
pub mod ids;
pub mod limits;
pub mod syntax;
