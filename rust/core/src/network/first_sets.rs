//! What states can read first, found callees first; and which rules only charts can read, which call
//! themselves before they have read anything.

use super::{Call, ClassSet, HOLE, NONE, Network, NetworkTables, Width, contains, insert};
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use crate::graph::{self, Components};

impl Network {
    /// How many bytes a state can read first, calls included.
    pub(super) fn first_width(&self, width: &Width, state: u32) -> u32 {
        let first = self.first(state);
        let classes = (0..width.of.len()).filter(|&class| contains(first, class as u8));
        classes.map(|class| width.of[class]).sum()
    }

    /// What each state can read first, calls included: callees first. Rules that call each other before
    /// they have read anything, which is where there are no loops, read first what any of them does.
    ///
    /// # Errors
    /// Those of the interrupt.
    pub(super) fn first_sets(&self, work: &Budget) -> Result<Vec<ClassSet>> {
        let ticks = Ticks::new(work);
        let mut first: Vec<ClassSet> = Vec::with_capacity(self.len());
        for q in 0..self.len() {
            let mut set = [0; 4];
            let edges = self.listed(q as u32);
            ticks.steps(1 + edges.len())?;
            edges.iter().for_each(|edge| insert(&mut set, edge.0));
            first.push(set);
        }
        self.add_fallbacks(&mut first);
        for component in self.components_first(&ticks)?.iter() {
            ticks.steps(component.len())?;
            let start = |&rule: &usize| self.rule_starts[rule];
            component.iter().for_each(|rule| self.add_callees(&mut first, start(rule)));
            if component.len() > 1 {
                let mut all = [0; 4];
                for rule in component {
                    let set = first[start(rule) as usize];
                    all.iter_mut().zip(set).for_each(|(a, b)| *a |= b);
                }
                component.iter().for_each(|rule| first[start(rule) as usize] = all);
            }
        }
        for q in 0..self.len() as u32 {
            ticks.steps(1 + self.calls(q).len())?;
            self.add_callees(&mut first, q);
        }
        Ok(first)
    }

    /// Adds to the bytes that states list those that they read by falling back.
    pub(super) fn add_fallbacks(&self, first: &mut [ClassSet]) {
        for (state, &other) in
            self.fallbacks.iter().enumerate().filter(|(_, other)| **other != NONE)
        {
            let others = first[other as usize];
            first[state].iter_mut().zip(others).for_each(|(a, b)| *a |= b);
        }
    }

    /// Adds to what a state can read first what the rules can that it calls.
    pub(super) fn add_callees(&self, first: &mut [ClassSet], q: u32) {
        for call in self.calls(q).iter() {
            self.each_begun(call.start, |start| {
                let set = first[start as usize];
                first[q as usize].iter_mut().zip(set).for_each(|(a, b)| *a |= b);
            });
        }
    }

    /// The rules, each after those that it calls before it has read anything.
    ///
    /// # Errors
    /// Those of [`Ticks::step`], as for the functions below.
    pub(super) fn callees_first(&self, ticks: &Ticks) -> Result<Vec<u32>> {
        Ok(self.components_first(ticks)?.nodes().iter().map(|&rule| rule as u32).collect())
    }

    /// Takes note of the rules that only charts can read: those that are left-recursive as they stand,
    /// and all that may call one of them.
    pub(super) fn find_for_charts(&mut self, ticks: &Ticks) -> Result<()> {
        let mut out = vec![false; self.num_rules()];
        let rule_of = |call: &Call| self.rule_of(call.start) as usize;
        for component in self.components_first(ticks)?.iter() {
            ticks.steps(component.len())?;
            let alone = component.len() == 1;
            let start = self.rule_starts[component[0]];
            let is_cycle = !alone || self.calls(start).iter().any(|c| rule_of(c) == component[0]);
            component.iter().for_each(|&rule| out[rule] = is_cycle);
        }
        if !out.contains(&true) {
            return Ok(());
        }
        let mut callers: Vec<Vec<u32>> = vec![Vec::new(); self.num_rules()];
        for q in 0..self.len() as u32 {
            for call in self.calls(q).iter() {
                ticks.step()?;
                callers[rule_of(call)].push(self.rule_of(q));
                // The body of a rule that counts is called by states that are not in the tables.
                for body in self.bodies(call.start) {
                    callers[self.rule_of(body) as usize].push(self.rule_of(call.start));
                }
            }
        }
        let mut work: Vec<usize> = (0..out.len()).filter(|&rule| out[rule]).collect();
        while let Some(rule) = work.pop() {
            for &caller in &callers[rule] {
                ticks.step()?;
                if !std::mem::replace(&mut out[caller as usize], true) {
                    work.push(caller as usize);
                }
            }
        }
        // Nothing is delegated by them: what they lead to is asked about in one.
        let tables: &mut NetworkTables = self;
        for (count, &rule) in tables.delegated.iter_mut().zip(&tables.rule_of) {
            *count = if out[rule as usize] { 0 } else { *count };
        }
        self.for_charts = out;
        Ok(())
    }

    /// Rules that call each other before they have read anything, each group after those that it calls.
    fn components_first(&self, ticks: &Ticks) -> Result<Components> {
        let callees = |rule: usize| {
            let calls = self.calls(self.rule_starts[rule]);
            ticks.steps(1 + calls.len())?;
            let here = calls.iter().filter(|call| call.start < HOLE);
            Ok(here.map(|call| self.rule_of(call.start) as usize).collect())
        };
        graph::components_within(self.num_rules(), |steps| ticks.steps(steps), callees)
    }
}
