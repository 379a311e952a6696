//! Arrays no two of whose items are equal (`uniqueItems` of JSON Schema), where no list bounds what the
//! items may be.
//!
//! Design: docs/design/unique-items.md.
//!
//! The language is not context-free, so a network reads such an array as if its items might repeat. The
//! rule of the array keeps a frame on the stack while its items are read ([`crate::grammar::Guard`]).
//! Beside the stacks stands a reader of the text of the array: the values that it has read, and the
//! beginning of the item that it is reading. A byte that makes an item equal to one before takes away the
//! stacks that have such a frame; so does a token after which every end of the item would do that. What
//! is left is exact, and everything that knows stacks alone works as it did.
//!
//! JSON can be read in one way, so the values belong to the text and not to a stack. Where a grammar of other
//! parts begins such arrays at different places of one text, each has stacks and a reader of its own.
//!
//! - [`numbers`]: numbers by value.
//! - [`reader`]: what the bytes of an array of scalars say.
//! - [`encoding`]: values of any kind as bytes.
//! - [`nested`]: what the bytes of an array of any values say.
//! - [`values`]: what was read, over [`keys`] and [`pieces`] of items that are being read.
//! - [`arrays`]: the stacks and the reader together, at a [`place`]; [`kept`]: those of long ago.
//! - [`glance`]: what the bytes of a token say of all its items.
//! - [`search`]: whether an item that begins as others do can still be another.
//! - [`many_items`]: the tokens of a vocabulary that need a second look wherever they stand; [`tokens`]: which
//!   tokens of a row repeat an item; [`nested_tokens`]: the same in an array of any values.

mod arrays;
mod encoding;
mod glance;
mod kept;
mod keys;
mod many_items;
mod nested;
mod nested_tokens;
mod numbers;
mod pieces;
mod place;
mod reader;
mod search;
mod tokens;
mod values;

pub(crate) use arrays::{Arrays, At, Copying, Pause};
pub(crate) use glance::Glance;
pub(crate) use many_items::ManyItems;
pub(crate) use place::ArrayId;

use crate::error::Error;
use arrays::MOST_ARRAYS;

/// That one text would need the values of too many arrays.
pub(crate) fn too_many_arrays() -> Error {
    Error::State(format!(
        "the grammar reads this text as more than {MOST_ARRAYS} arrays with uniqueItems that begin at \
         different places: make its parts begin with texts that tell them apart"
    ))
}
