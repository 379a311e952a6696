//! Threads for batches, made once for each number of them and kept.
//!
//! To wake a thread takes longer than to fill many rows. So helpers are woken while the caller makes
//! the work ready, one wakes the next, and who has worked stays awake a while: accepting tokens and
//! filling rows follow each other.

use crate::boundary::misuse;
use pyo3::prelude::*;
use rayon::{Scope, ThreadPool};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The helpers of a process. A child process has none of its parent's threads.
struct All {
    process: u32,
    by_size: HashMap<usize, Arc<Helpers>>,
}

static ALL: Mutex<Option<All>> = Mutex::new(None);

/// How long the caller waits awake for the last parts.
const SPIN: Duration = Duration::from_micros(50);
/// How often the caller looks away before the scope ends: who waits there too early falls asleep.
const LEAVE: u32 = 32;
/// How long a helper that was woken waits awake for the first.
const AWAKE: Duration = Duration::from_micros(200);
/// How long a helper that has worked waits awake for the next call.
const LINGER: Duration = Duration::from_micros(100);
/// Threads at most, whatever is asked for.
const MAX_THREADS: usize = 256;

/// Threads, and how often they were called.
struct Helpers {
    threads: ThreadPool,
    count: usize,
    calls: AtomicUsize,
}

impl Helpers {
    /// Wakes a helper, which wakes two others: to wake all would hold up the caller.
    fn wake(self: &Arc<Self>, index: usize, is_ready: &Arc<AtomicBool>) {
        let (helpers, is_ready) = (self.clone(), is_ready.clone());
        self.threads.spawn(move || {
            for next in after(index, helpers.count) {
                helpers.wake(next, &is_ready);
            }
            wait(AWAKE, || is_ready.load(Ordering::Acquire));
        });
    }

    /// Keeps a helper that has worked awake until there is another call.
    fn linger(self: &Arc<Self>, call: usize) {
        let helpers = self.clone();
        self.threads.spawn(move || wait(LINGER, || helpers.calls.load(Ordering::Acquire) != call));
    }
}

/// The helpers that one of so many wakes.
fn after(index: usize, count: usize) -> impl Iterator<Item = usize> {
    (2 * index + 1..2 * index + 3).filter(move |&next| next < count)
}

/// Waits awake, and lets others go first that want the processor.
fn wait(longest: Duration, is_over: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_over() && began.elapsed() < longest {
        std::thread::yield_now();
    }
}

/// Threads that wake up while the caller makes ready what they will do.
pub(crate) struct Crew {
    helpers: Option<Arc<Helpers>>,
    /// The number of the call.
    call: usize,
    /// Whether there is work, or none will come.
    is_ready: Arc<AtomicBool>,
}

impl Crew {
    /// Wakes as many threads, the caller's among them, as so many parts of work can do with.
    pub(crate) fn rouse(threads: usize, parts: usize) -> PyResult<Self> {
        let count = threads.min(MAX_THREADS).min(parts).saturating_sub(1);
        let is_ready = Arc::new(AtomicBool::new(false));
        if count == 0 {
            return Ok(Self { helpers: None, call: 0, is_ready });
        }
        let helpers = helpers(count)?;
        let call = helpers.calls.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        helpers.wake(0, &is_ready);
        Ok(Self { helpers: Some(helpers), call, is_ready })
    }

    /// What `act` makes of some items, part by part, of at least so many; the caller works too, and
    /// need not wait until another wakes up. Alone it takes all as one part.
    pub(crate) fn map<T: Send, R: Send>(
        self,
        items: &mut [T],
        least: usize,
        act: impl Fn(&mut [T]) -> R + Sync,
    ) -> Vec<R> {
        let Some(helpers) = &self.helpers else {
            return vec![act(items)];
        };
        let mut rest = items;
        let mut parts: Vec<Part<'_, T, R>> = Vec::new();
        for size in sizes(rest.len(), helpers.count + 1, least) {
            let (part, behind) = rest.split_at_mut(size);
            parts.push(Mutex::new((Some(part), None)));
            rest = behind;
        }
        let left = Left::new(parts.len());
        let work = |is_caller: bool| {
            let mut has_worked = false;
            while let Some(index) = left.take(is_caller) {
                has_worked = true;
                // Nobody else has its number, so that no thread ever waits here.
                let mut part = parts[index].lock().unwrap_or_else(PoisonError::into_inner);
                part.1 = part.0.take().map(&act);
            }
            has_worked
        };
        let help = || {
            // Who came too late shares a processor with others.
            if work(false) {
                helpers.linger(self.call);
            }
        };
        let at_work = AtomicUsize::new(helpers.count);
        let help = || {
            help();
            at_work.fetch_sub(1, Ordering::Release);
        };
        helpers.threads.in_place_scope(|scope| {
            scope.spawn(|scope| join(scope, 0, helpers.count, &help));
            self.is_ready.store(true, Ordering::Release);
            work(true);
            // The others are about to end: to fall asleep now and be woken takes longer.
            let began = Instant::now();
            while at_work.load(Ordering::Acquire) > 0 && began.elapsed() < SPIN {
                std::hint::spin_loop();
            }
            // The last has to tell the scope as well.
            (0..LEAVE).for_each(|_| std::hint::spin_loop());
        });
        let parts =
            parts.drain(..).map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner));
        parts.filter_map(|part| part.1).collect()
    }
}

/// The sizes of parts: large ones at both ends, where the caller and its helpers begin, and small ones
/// where they meet. Each part costs a look at what all threads share; a large one at the end would
/// keep the others waiting.
fn sizes(count: usize, threads: usize, least: usize) -> Vec<usize> {
    let half = |mut left: usize, takers: usize| {
        let mut out = Vec::new();
        while left > 0 {
            let size = left.div_ceil(2 * takers).max(least).min(left);
            out.push(size);
            left -= size;
        }
        out
    };
    let own = count / threads;
    let mut out = half(own, 1);
    let others = half(count - own, threads - 1);
    out.extend(others.into_iter().rev());
    out
}

/// A part of the work, until it is taken, and what was made of it.
type Part<'a, T, R> = Mutex<(Option<&'a mut [T]>, Option<R>)>;

/// The parts that nobody has taken: from one number to another. A lock that two wait for would put one
/// of them to sleep, which takes longer than many parts.
///
/// The caller begins at the front and its helpers at the back: in the next call each writes where it
/// did in this one, which its own cache may still hold.
struct Left(AtomicU64);

impl Left {
    fn new(parts: usize) -> Self {
        Self(AtomicU64::new(parts as u64))
    }

    fn take(&self, is_caller: bool) -> Option<usize> {
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
            let (first, end) = (left >> 32, left & u64::from(u32::MAX));
            match is_caller {
                _ if first == end => None,
                true => Some((first + 1) << 32 | end),
                false => Some(first << 32 | (end - 1)),
            }
        });
        let left = taken.ok()?;
        let (first, end) = (left >> 32, left & u64::from(u32::MAX));
        Some(if is_caller { first } else { end - 1 } as usize)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // Where the call was refused there is no work.
        self.is_ready.store(true, Ordering::Release);
    }
}

/// A helper at work, after it has told those that it woke.
fn join<'s>(scope: &Scope<'s>, index: usize, count: usize, help: &'s (impl Fn() + Sync)) {
    for next in after(index, count) {
        scope.spawn(move |scope| join(scope, next, count, help));
    }
    help();
}

/// Threads that work side by side at most.
const MOST_AT_ONCE: usize = 8;
/// Pieces of work for which a thread is worth while.
const PIECES_FOR_A_THREAD: usize = 16;

/// The results of so many pieces of work, in their order. Threads share them where they are many;
/// each takes the next that nobody has.
pub(crate) fn side_by_side<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(MOST_AT_ONCE).min(count / PIECES_FOR_A_THREAD);
    if threads < 2 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let share = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= count {
                return done;
            }
            done.push((place, work(place)));
        }
    };
    let mut out: Vec<Option<T>> = (0..count).map(|_| None).collect();
    let mut keep = |done: Vec<(usize, T)>| {
        done.into_iter().for_each(|(place, made)| out[place] = Some(made));
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads)
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, share).ok())
            .collect();
        keep(share());
        for helper in helpers {
            match helper.join() {
                Ok(done) => keep(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    out.into_iter().flatten().collect()
}

fn helpers(count: usize) -> PyResult<Arc<Helpers>> {
    let mut guard = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if guard.as_ref().is_some_and(|all| all.process != process) {
        // Dropping a pool waits for its threads, of which there are none here.
        std::mem::forget(guard.take());
    }
    let all = guard.get_or_insert_with(|| All { process, by_size: HashMap::new() });
    if let Some(made) = all.by_size.get(&count) {
        return Ok(made.clone());
    }
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .thread_name(|index| format!("tokfold-batch-{index}"))
        .build()
        .map_err(|error| misuse(format!("no {count} threads can be made: {error}")))?;
    let made = Arc::new(Helpers { threads, count, calls: AtomicUsize::new(0) });
    all.by_size.insert(count, made.clone());
    Ok(made)
}
