//! Bytes that every text needs, of those that no token of a vocabulary has; whether texts are finitely many.
//!
//! A saturation from the ends of rules backwards over edges whose class has a byte that some token has.
//! Guards and bounds on repetitions are left out, so a text that is found may be none, and a text that is
//! not found is none.

use super::{Call, ClassSet, Network, contains, insert, members};
use crate::budget::{Halt, Meter};

/// What a state waits for.
#[derive(Clone, Copy)]
enum Waiter {
    /// The target of an edge.
    Edge(u32),
    /// One half of a call.
    Half(u32, Call),
}

/// How far a search has come with a state.
#[derive(Clone, Copy)]
enum Visit {
    New,
    Open,
    Done,
}

impl Network {
    /// For a vocabulary whose tokens have the bytes of `written`: sets of other bytes, of each of which
    /// every text has one; `None` where some text has none. The sets are classes of the network; where no
    /// class is in every text, there is one set, of all such bytes that are read.
    ///
    /// # Errors
    /// Those of the meter.
    pub(crate) fn needed(
        &self,
        written: &[bool; 256],
        meter: &mut Meter,
    ) -> Result<Option<Vec<Vec<u8>>>, Halt> {
        let mut readable = [0; 4];
        for byte in (0..=255u8).filter(|&byte| written[byte as usize]) {
            insert(&mut readable, self.alphabet.class(byte));
        }
        // A token that is taken whole has its escape and the bytes of its id.
        if let Some(escape) = self.alphabet.escape() {
            insert(&mut readable, escape);
        }
        let ids = self.within_ids();
        if self.accepts_empty || self.has_text(&readable, &ids, meter)? {
            return Ok(None);
        }
        let mut used = [0; 4];
        for state in (0..self.len() as u32).filter(|&state| !ids[state as usize]) {
            for (class, _) in self.edges(state).filter(|edge| !contains(&readable, edge.0)) {
                insert(&mut used, class);
            }
        }
        let bytes = |classes: &ClassSet| -> Vec<u8> {
            (0..=255).filter(|&byte| contains(classes, self.alphabet.class(byte))).collect()
        };
        let mut needed = Vec::new();
        for class in members(&used) {
            let mut without = [u64::MAX; 4];
            without[class as usize >> 6] &= !(1 << (class & 63));
            if !self.has_text(&without, &ids, meter)? {
                needed.push(bytes(&without.map(|word| !word)));
            }
        }
        if needed.is_empty() {
            needed.push(bytes(&used));
        }
        Ok(Some(needed))
    }

    /// Whether no state comes back to itself on the way of a text, and nothing is repeated without a bound.
    /// Then texts are finitely many, and each comes to its end.
    ///
    /// # Errors
    /// Those of the meter.
    pub(crate) fn is_finite(&self, meter: &mut Meter) -> Result<bool, Halt> {
        let ends = self.ends(&[u64::MAX; 4], &vec![false; self.len()], meter)?;
        let mut is_bounded = true;
        let mut next = |state: u32| -> Option<Vec<u32>> {
            let is_whole = |state: &u32| ends[*state as usize];
            let mut found: Vec<u32> =
                self.edges(state).map(|edge| edge.1).filter(is_whole).collect();
            for call in self.calls(state).iter() {
                let halves = [self.begun(call.start), self.begun(call.to)];
                if halves.iter().all(is_whole) {
                    found.extend(halves);
                    is_bounded &= [call.start, call.to]
                        .iter()
                        .all(|&half| !self.is_counting(half) || self.counting(half).2.is_some());
                }
            }
            is_bounded.then_some(found)
        };
        let start = self.begun(self.start);
        let mut state_of = vec![Visit::New; self.len()];
        let Some(left) = next(start) else { return Ok(false) };
        let mut path = vec![(start, left)];
        state_of[start as usize] = Visit::Open;
        while let Some((state, left)) = path.last_mut() {
            meter.spend(1)?;
            let Some(to) = left.pop() else {
                state_of[*state as usize] = Visit::Done;
                path.pop();
                continue;
            };
            match state_of[to as usize] {
                Visit::Open => return Ok(false),
                Visit::Done => {}
                Visit::New => {
                    state_of[to as usize] = Visit::Open;
                    let Some(left) = next(to) else { return Ok(false) };
                    path.push((to, left));
                }
            }
        }
        Ok(true)
    }

    /// Whether there is a text of these classes.
    fn has_text(&self, readable: &ClassSet, ids: &[bool], meter: &mut Meter) -> Result<bool, Halt> {
        Ok(self.ends(readable, ids, meter)?[self.begun(self.start) as usize])
    }

    /// The states from which these classes come to the end of their rule.
    fn ends(
        &self,
        readable: &ClassSet,
        ids: &[bool],
        meter: &mut Meter,
    ) -> Result<Vec<bool>, Halt> {
        let count = self.len();
        let mut ends = vec![false; count];
        let mut waiting: Vec<Vec<Waiter>> = vec![Vec::new(); count];
        let mut work = Vec::new();
        for state in 0..count as u32 {
            if self.is_final(state) {
                work.push(state);
            }
            let mut edges = 0;
            for (class, to) in self.edges(state) {
                edges += 1;
                if ids[state as usize] || contains(readable, class) {
                    waiting[to as usize].push(Waiter::Edge(state));
                }
            }
            let calls = self.calls(state);
            for call in calls.iter() {
                waiting[self.begun(call.start) as usize].push(Waiter::Half(state, *call));
                waiting[self.begun(call.to) as usize].push(Waiter::Half(state, *call));
            }
            meter.spend(1 + edges / 4 + calls.len() as u64)?;
        }
        while let Some(state) = work.pop() {
            if std::mem::replace(&mut ends[state as usize], true) {
                continue;
            }
            meter.spend(1 + waiting[state as usize].len() as u64)?;
            for waits in std::mem::take(&mut waiting[state as usize]) {
                let has = |state: u32| ends[self.begun(state) as usize];
                match waits {
                    Waiter::Edge(from) => work.push(from),
                    Waiter::Half(from, call) if has(call.start) && has(call.to) => work.push(from),
                    Waiter::Half(..) => {}
                }
            }
        }
        Ok(ends)
    }

    /// The states that read a byte of an id.
    fn within_ids(&self) -> Vec<bool> {
        let mut ids = vec![false; self.len()];
        let Some(escape) = self.alphabet.escape() else { return ids };
        let behind = |state: u32| self.edges(state).filter(move |edge| edge.0 == escape);
        let mut level: Vec<u32> =
            (0..self.len() as u32).flat_map(|state| behind(state).map(|edge| edge.1)).collect();
        for _ in 0..4 {
            level.sort_unstable();
            level.dedup();
            level.iter().for_each(|&state| ids[state as usize] = true);
            level = level.iter().flat_map(|&state| self.edges(state).map(|edge| edge.1)).collect();
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Interrupt};
    use crate::limits::Limits;
    use crate::network::NetworkOptions;
    use crate::syntax;

    fn network(text: &str) -> Network {
        let grammar = syntax::parse(text, "root", &Limits::default()).expect("it is a grammar");
        let (options, interrupt) = (NetworkOptions::default(), Interrupt::default());
        let budget = Budget::new(&Limits::default(), &interrupt);
        Network::make(&grammar, &options, &budget).expect("it is small")
    }

    /// What texts need that tokens with these bytes cannot write.
    fn needed(text: &str, written: &str) -> Option<String> {
        let (network, interrupt) = (network(text), Interrupt::default());
        let mut has = [false; 256];
        written.bytes().for_each(|byte| has[byte as usize] = true);
        let mut meter = Meter::default();
        meter.allow(u64::MAX, &interrupt);
        let found = network.needed(&has, &mut meter).expect("nobody cancels")?;
        let sets: Vec<_> = found.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        Some(sets.join(" "))
    }

    #[test]
    fn bytes_that_every_text_needs() {
        for (text, written, expected) in [
            ("root ::= \"{\" [0-9]+ \"}\"", "{}0", None),
            ("root ::= \"{\" [0-9]+ \"}\"", "{0", Some("}")),
            ("root ::= \"{\" [0-9]+ \"}\"", "{}", Some("0123456789")),
            ("root ::= \"{\" [0-9]+ \"}\" | \"x\"", "{0x", None),
            ("root ::= \"{\" root \"}\" | \"[\" root \"]\" | \"x\"", "{[", Some("x")),
            ("root ::= \"{\" x \"}\" | \"[\" x \"]\"\nx ::= \"\" | \"-\" x", "{[-", Some("]}")),
            ("root ::= \"{\" \"x\" \"}\" \"]\"", "{x", Some("] }")),
            ("root ::= [a-z]{0,400}", "", None),
            ("root ::= \"<\" [a-z]{3,400} \">\"", "<>", Some("abcdefghijklmnopqrstuvwxyz")),
            ("root ::= \"<\" [a-z]{0,400} \">\"", "<>", None),
            (
                "root ::= root \"+\" x | x\nx ::= [0-9] | \"(\" root \")\"",
                "+()",
                Some("0123456789"),
            ),
            ("root ::= root \"+\" x | x\nx ::= [0-9] | \"(\" root \")\"", "7", None),
        ] {
            assert_eq!(needed(text, written).as_deref(), expected, "{text} of {written:?}");
        }
    }
    #[test]
    fn texts_that_are_finitely_many() {
        for (text, expected) in [
            ("root ::= \"ab\"", true),
            ("root ::= \"\" | \"a\"", true),
            ("root ::= \"up\" | \"down\" x{2} y?\nx ::= [a-c]\ny ::= x x", true),
            ("root ::= \"a\"+", false),
            ("root ::= \"a\"*", false),
            ("root ::= \"a\"{0,300}", true),
            ("root ::= \"a\"{300,}", false),
            ("root ::= \"c\" x{300,}\nx ::= \"a\" \"b\"", false),
            ("root ::= x{300}\nx ::= \"a\"* \"b\"", false),
            ("root ::= x{30} | y{300,400}\nx ::= \"a\" y\ny ::= \"b\" | \"bb\"", true),
            ("root ::= \"(\" root \")\" | \"x\"", false),
            ("root ::= root \"+\" x | x\nx ::= [0-9]", false),
            ("root ::= \"c\" | \"a\" x\nx ::= \"b\" x", true),
            ("root ::= \"a\" | x\nx ::= \"\" | \"b\" root", false),
        ] {
            let interrupt = Interrupt::default();
            let mut meter = Meter::default();
            meter.allow(u64::MAX, &interrupt);
            let found = network(text).is_finite(&mut meter).expect("nobody cancels");
            assert_eq!(found, expected, "{text}");
        }
    }
}
