//! Why a mask is not made.

use crate::budget::Halt;
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
