//! Threads for batches, made once for each number of them and kept.

use crate::boundary::misuse;
use pyo3::prelude::*;
use rayon::ThreadPool;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The pools of a process. A child process has none of its parent's threads.
struct Pools {
    process: u32,
    by_size: HashMap<usize, Arc<ThreadPool>>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// How long the caller waits awake for the last parts.
const SPIN: Duration = Duration::from_micros(50);
/// Threads at most, whatever is asked for.
const MAX_THREADS: usize = 256;

/// What `act` makes of some items, so many at once, in so many threads, the caller's among them: it
/// need not wait until another wakes up.
pub(crate) fn map<T: Send, R: Send>(
    threads: usize,
    items: &mut [T],
    at_once: usize,
    act: impl Fn(&mut [T]) -> Vec<R> + Sync,
) -> PyResult<Vec<R>> {
    let parts = items.len().div_ceil(at_once);
    let helpers = threads.min(MAX_THREADS).min(parts).saturating_sub(1);
    if helpers == 0 {
        return Ok(act(items));
    }
    let pool = pool(helpers)?;
    let left = Mutex::new(items.chunks_mut(at_once).enumerate());
    let done = Mutex::new(Vec::with_capacity(parts));
    let busy = AtomicUsize::new(parts);
    let work = || {
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, part)) = next else { return };
            let made = act(part);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, made));
            busy.fetch_sub(1, Ordering::Release);
        }
    };
    pool.in_place_scope(|scope| {
        (0..helpers).for_each(|_| scope.spawn(|_| work()));
        work();
        // The others are about to end: to fall asleep now and be woken takes longer.
        let began = Instant::now();
        while busy.load(Ordering::Acquire) > 0 && began.elapsed() < SPIN {
            std::hint::spin_loop();
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|part| part.0);
    Ok(done.into_iter().flat_map(|part| part.1).collect())
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
