//! Automata that are being written, edge by edge.

use crate::grammar::{ByteAutomaton, Expr, Guard};
use crate::ids::{ExprId, RuleId};

/// Edges of an automaton that is being written.
#[derive(Default)]
pub(super) struct DraftAutomaton {
    pub(super) finals: Vec<bool>,
    pub(super) bytes: Vec<(u32, u8, u8, u32)>,
    pub(super) parts: Vec<(u32, ExprId, u32)>,
    /// Guards on calls, by rule.
    pub(super) guards: Vec<(RuleId, Guard)>,
    /// Bounds on the number of parts, where they are counted.
    pub(super) counts: Option<(u32, Option<u32>)>,
}

impl DraftAutomaton {
    pub(super) fn state(&mut self) -> u32 {
        self.finals.push(false);
        self.finals.len() as u32 - 1
    }

    /// Reads a text; without a target, to a state of its own.
    pub(super) fn text(&mut self, from: u32, text: &[u8], to: Option<u32>) -> u32 {
        let mut at = from;
        for (place, &byte) in text.iter().enumerate() {
            let next = match to {
                Some(to) if place + 1 == text.len() => to,
                _ => self.state(),
            };
            self.bytes.push((at, byte, byte, next));
            at = next;
        }
        at
    }

    pub(super) fn part(&mut self, from: u32, part: ExprId, to: u32) {
        self.parts.push((from, part, to));
    }

    pub(super) fn finish(mut self) -> Expr {
        self.parts.sort_unstable_by_key(|&(from, part, to)| (part, from, to));
        self.parts.dedup();
        Expr::Automaton(ByteAutomaton {
            start: 0,
            finals: self.finals.into(),
            bytes: self.bytes.into(),
            parts: self.parts.into(),
            falls_back: Box::default(),
            guards: self.guards.into(),
            fallback: 0,
            counts: self.counts,
            counts_tokens: false,
            has_copies: false,
        })
    }
}
