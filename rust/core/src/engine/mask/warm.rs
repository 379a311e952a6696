//! Answers that are made before a mask asks for them.

use crate::budget::Interrupt;
use crate::engine::mask::answers::{Allowance, Walker};
use crate::engine::mask::pending::AT_ROOT;
use crate::engine::mask::query::{ALONE, OWN, Question};
use crate::engine::stop::Stop;

impl Walker {
    /// The frames that can stand on top, those first whose answers are likely to cost most: by the
    /// trie nodes below the bytes that they can read first.
    pub(crate) fn costs(&self) -> Vec<u32> {
        let mut out: Vec<(u32, u32)> =
            (0..self.network.len() as u32).map(|state| (self.nodes_begun(state), state)).collect();
        out.sort_unstable_by_key(|&(cost, state)| (std::cmp::Reverse(cost), state));
        out.into_iter().map(|(_, state)| state).collect()
    }

    /// The number of trie nodes of the entries that begin with a byte that a frame can read first.
    pub(in crate::engine) fn nodes_begun(&self, frame: u32) -> u32 {
        self.begun.by(&self.network, &self.trie, frame)
    }

    /// Makes the answers of a frame with nothing read; false where they were there. One that takes
    /// too much is left to the mask that needs it.
    pub(crate) fn warm(
        &self,
        frame: u32,
        allowance: Allowance,
        interrupt: &Interrupt,
    ) -> Result<bool, Stop> {
        let network = &self.network;
        if network.needs_chart(frame) {
            return Ok(false);
        }
        let mut questions = Vec::new();
        let delegated = network.delegated(frame);
        if delegated.is_empty() || network.has_own(frame) {
            let under = if delegated.is_empty() { ALONE } else { OWN };
            questions.push(Question { frame, under });
        }
        for call in delegated {
            let together = network.is_counting(call.start)
                && !network.counts_narrowly(call.start)
                && network.stays(call.to);
            let under = if together { call.to } else { ALONE };
            questions.push(Question { frame: call.start, under });
        }
        let mut walk = self.begin(allowance, interrupt);
        let made = questions.into_iter().try_for_each(|question| {
            match self.answer(question, AT_ROOT, &mut walk) {
                Ok(_) | Err(Stop::Work) => Ok(()),
                Err(stop) => Err(stop),
            }
        });
        let is_new = walk.counters.misses > 0;
        self.end(walk);
        made.map(|()| is_new)
    }
}
