//! Left-recursive rules as they were written, beside those without left recursion: which of the two
//! charts read.

use crate::automata::Automaton;
use rustc_hash::FxHashMap;

/// The rules of a network in the order in which their states are numbered.
pub(super) struct Order {
    /// The rules that are left: first those that charts read, then those that only others call.
    pub(super) rules: Vec<usize>,
    /// How many charts read.
    pub(super) read: usize,
}

impl Order {
    /// `written` has for rules that were left-recursive the rules as they were written.
    pub(super) fn new(
        rules: &[Automaton],
        start: usize,
        written: &FxHashMap<usize, usize>,
    ) -> Self {
        let present = (0..rules.len()).filter(|&rule| !rules[rule].is_empty());
        if written.is_empty() {
            let rules: Vec<usize> = present.collect();
            return Self { read: rules.len(), rules };
        }
        let mut is_read = vec![false; rules.len()];
        let start = *written.get(&start).unwrap_or(&start);
        is_read[start] = true;
        let mut work = vec![start];
        while let Some(rule) = work.pop() {
            for (_, callee, _) in rules[rule].calls() {
                let form = *written.get(&callee).unwrap_or(&callee);
                if !std::mem::replace(&mut is_read[form], true) {
                    work.push(form);
                }
            }
        }
        let (mut read, unread): (Vec<usize>, Vec<usize>) = present.partition(|&rule| is_read[rule]);
        let count = read.len();
        read.extend(unread);
        Self { rules: read, read: count }
    }
}
