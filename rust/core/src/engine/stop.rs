//! Why a mask is not made, or a text not read on.

use crate::budget::Halt;
use crate::engine::Engine;
use crate::error::Error;

/// Why a mask was not made.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It costs more than it may.
    Work,
    /// What it remembers takes more than it may.
    Memory,
    /// The network has no room for more states that are sets.
    Sets,
    /// The interrupt ended it.
    Halted(Halt),
    /// The interrupt ended it, while it waited for a lock.
    Told(Error),
    /// What was begun is forgotten: begin again.
    Forgotten,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Told(error)
    }
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Work | Halt::Depth => Stop::Work,
            Halt::Bytes => Stop::Memory,
            Halt::Sets => Stop::Sets,
            Halt::Arrays | Halt::Cancelled | Halt::Deadline => Stop::Halted(halt),
        }
    }
}

/// The error of a text that takes more memory than it may.
pub(in crate::engine) fn crowded(engine: &Engine) -> Error {
    Error::Limit {
        limit: "max_matcher_bytes",
        value: engine.limits.max_matcher_bytes as u64,
        message: "the text so far takes more memory; raise the limit".into(),
    }
}

/// The error of a text that meets more sets of members than there is room for.
pub(in crate::engine) fn too_many_sets(network: &crate::network::Network) -> Error {
    Error::Limit {
        limit: "max_set_bytes",
        value: network.most_set_bytes() as u64,
        message:
            "the sets of members that the text meets take more; fix the order of members, or raise \
                  the limit"
                .into(),
    }
}
