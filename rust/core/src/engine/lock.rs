//! Waiting for locks, never longer than an interrupt allows.
//!
//! Nobody waits for one of these locks while holding Python's interpreter lock: calls that hold it
//! only try, and go on detached where that fails.

use crate::budget::Interrupt;
use crate::error::Result;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Between two looks at the interrupt.
const PATIENCE: Duration = Duration::from_millis(1);

/// The lock, shared with other readers.
///
/// # Errors
/// Those of [`Interrupt::look`], while another thread holds it.
pub(super) fn read<'l, T>(
    lock: &'l RwLock<T>,
    interrupt: &Interrupt,
) -> Result<RwLockReadGuard<'l, T>> {
    loop {
        if let Some(guard) = lock.try_read_for(PATIENCE) {
            return Ok(guard);
        }
        interrupt.look()?;
    }
}

/// The lock, alone.
///
/// # Errors
/// As [`read`].
pub(super) fn write<'l, T>(
    lock: &'l RwLock<T>,
    interrupt: &Interrupt,
) -> Result<RwLockWriteGuard<'l, T>> {
    loop {
        if let Some(guard) = lock.try_write_for(PATIENCE) {
            return Ok(guard);
        }
        interrupt.look()?;
    }
}
