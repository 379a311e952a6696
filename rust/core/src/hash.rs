//! Hashes of values, the same in every process.

use std::hash::{Hash, Hasher};

/// A digest of bytes: no two that anybody knows have the same.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// The hash of a value: fast, and no defence against chosen values.
pub(crate) fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}
