//! Budgets and interrupts: how often they look, and what they say.

use super::*;
use std::sync::atomic::AtomicU64;

fn limits(max_network_work: u64) -> Limits {
    Limits { max_network_work, ..Limits::default() }
}

fn budget(max_network_work: u64) -> Budget {
    Budget::new(&limits(max_network_work), &Interrupt::default())
}

/// Counts how often it is asked, and ends the call after so many times.
struct Counting(AtomicU64, u64);

impl Observer for Counting {
    fn go_on(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) + 1 < self.1
    }
}

fn counting(ends_after: u64) -> (Arc<Counting>, Interrupt) {
    let observer = Arc::new(Counting(AtomicU64::new(0), ends_after));
    (observer.clone(), Interrupt::default().with_observer(observer))
}

#[test]
fn the_bound_is_reached_exactly() {
    let budget = budget(10);
    assert_eq!(budget.spend(10), Ok(()));
    let error = budget.spend(1).expect_err("one more");
    assert!(error.to_string().starts_with("limit max_network_work = 10 reached: "), "{error}");
}

#[test]
fn the_observer_is_asked_now_and_then_and_obeyed_from_then_on() {
    let (observer, interrupt) = counting(3);
    let budget = Budget::new(&limits(u64::MAX), &interrupt);
    let mut spent = 0u64;
    while budget.spend(1 << 10).is_ok() {
        spent += 1 << 10;
    }
    assert!((2 * POLL_EVERY..=3 * POLL_EVERY + (4 << 10)).contains(&spent), "{spent}");
    assert_eq!(budget.spend(1), Err(Error::Cancelled));
    assert_eq!(observer.0.load(Ordering::Relaxed), 3);
}

#[test]
fn many_small_attempts_do_not_put_the_check_off() {
    let (observer, interrupt) = counting(u64::MAX);
    let budget = Budget::new(&limits(u64::MAX), &interrupt);
    for _ in 0..100 {
        budget.attempt(u64::MAX, || budget.spend(POLL_EVERY as usize / 10)).expect("no bound");
    }
    let asked = observer.0.load(Ordering::Relaxed);
    assert!((8..=10).contains(&asked), "{asked}");
}

#[test]
fn what_cannot_be_done_is_refused_before_it_is_begun() {
    let budget = budget(10);
    assert_eq!(budget.spend(4), Ok(()));
    assert_eq!(budget.foresee(6), Ok(()));
    assert_eq!(budget.foresee(7), budget.spend(7));
    budget.back_to(4);
    assert_eq!(budget.spend(6), Ok(()));
    assert!(budget.spend(1).is_err());
}

#[test]
fn a_caller_that_counts_again_is_asked_as_often() {
    let (observer, interrupt) = counting(u64::MAX);
    let budget = Budget::new(&limits(u64::MAX), &interrupt);
    for _ in 0..20 {
        budget.spend(POLL_EVERY as usize * 2).expect("no bound");
        budget.back_to(0);
    }
    assert_eq!(observer.0.load(Ordering::Relaxed), 20);
}

#[test]
fn an_attempt_leaves_half_of_the_rest() {
    let budget = budget(1_000);
    assert_eq!(budget.attempt(u64::MAX, || budget.spend(501)), Ok(None));
    assert_eq!(budget.attempt(100, || budget.spend(101)), Ok(None));
    assert_eq!(budget.attempt(100, || budget.spend(100).map(|()| 7)), Ok(Some(7)));
    assert_eq!(budget.spend(298), Ok(()));
    assert!(budget.spend(1).is_err());
    assert_eq!(budget.attempt(u64::MAX, || Err::<(), _>(Error::Cancelled)), Err(Error::Cancelled));
}

#[test]
fn a_meter_ends_at_its_bound_and_looks_at_its_interrupt_before() {
    let mut meter = Meter::default();
    assert_eq!(meter.spend(1_000_000), Ok(()));
    meter.allow(10, &Interrupt::default());
    assert_eq!(meter.spend(10), Ok(()));
    assert_eq!(meter.spend(1), Err(Halt::Work));
    let flag = Arc::new(AtomicBool::new(false));
    meter.allow(u64::MAX, &Interrupt::default().with_flag(&flag));
    assert_eq!(meter.spend(3 * UNITS_BETWEEN_CHECKS), Ok(()));
    flag.store(true, Ordering::Relaxed);
    let spent = meter.spent();
    while meter.spend(1).is_ok() {}
    assert!(meter.spent() - spent <= UNITS_BETWEEN_CHECKS + 1);
    assert_eq!(meter.spend(1), Err(Halt::Cancelled));
    meter.release();
    assert_eq!(meter.spend(u64::from(u32::MAX)), Ok(()));
}

#[test]
fn the_earlier_of_two_deadlines_counts_and_names_itself() {
    let interrupt = Interrupt::default()
        .with_deadline("max_mask_milliseconds", Some(0))
        .with_deadline("max_compile_milliseconds", Some(1_000_000));
    std::thread::sleep(Duration::from_millis(2));
    let expected = Error::Deadline { limit: "max_mask_milliseconds", milliseconds: 0 };
    assert_eq!(interrupt.look(), Err(expected));
    assert_eq!(Interrupt::default().with_deadline("none", None).look(), Ok(()));
    assert_eq!(Interrupt::default().with_deadline("far", Some(u64::MAX)).look(), Ok(()));
}
