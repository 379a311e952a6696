//! Threads for batches, made once for each number of them and kept.

use crate::boundary::misuse;
use pyo3::prelude::*;
use rayon::ThreadPool;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The pools of a process. A child process has none of its parent's threads.
struct Pools {
    process: u32,
    by_size: HashMap<usize, Arc<ThreadPool>>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// Threads at most, whatever is asked for.
const MAX_THREADS: usize = 256;

/// Does some work among so many threads.
pub(crate) fn with<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = pool(threads.min(MAX_THREADS))?;
    Ok(pool.install(work))
}

fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let mut guard = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if guard.as_ref().is_some_and(|pools| pools.process != process) {
        // Dropping a pool waits for its threads, of which there are none here.
        std::mem::forget(guard.take());
    }
    let pools = guard.get_or_insert_with(|| Pools { process, by_size: HashMap::new() });
    if let Some(pool) = pools.by_size.get(&threads) {
        return Ok(pool.clone());
    }
    let made = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("tokfold-batch-{index}"))
        .build()
        .map_err(|error| misuse(format!("no {threads} threads can be made: {error}")))?;
    let made = Arc::new(made);
    pools.by_size.insert(threads, made.clone());
    Ok(made)
}
