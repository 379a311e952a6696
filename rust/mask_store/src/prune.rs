//! What need not be followed: terminals that no text can end any more.

use super::joint::{JointId, JointTerminal, Joints};
use super::obligations::{NONE, OpenQuestions};
use super::sets::{ALL, EMPTY};
use super::terminals::{DEAD, MatchEnd};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

impl Joints {
    /// A joint state without the terminals that cannot end before an open question is answered the
    /// wrong way; and, where they have just begun behind another terminal, without those that no
    /// parser looks for there. `None` when none is left.
    pub(super) fn pruned(
        &mut self,
        joint: JointId,
        open: OpenQuestions,
        behind: u32,
    ) -> Option<JointId> {
        if open == NONE {
            return Some(joint);
        }
        if let Some(&known) = self.pruned.get(&(joint, open, behind)) {
            return known;
        }
        let entries = self.states[joint as usize].to_vec();
        let after = self.scanners.after.get(behind as usize).copied().unwrap_or(ALL);
        let mut kept: Vec<JointTerminal> = Vec::with_capacity(entries.len());
        for &entry in &entries {
            if entry.scanners == EMPTY {
                kept.push(entry);
            } else if entry.end != MatchEnd::No || self.can_end(entry.state, open) {
                // What no parser looks for there may still be the name of a match.
                let is_looked_for = self.scanners.sets.and(after, entry.scanners) != EMPTY;
                let scanners = if is_looked_for { entry.scanners } else { EMPTY };
                kept.push(JointTerminal { scanners, ..entry });
            }
        }
        let made = if kept == entries {
            Some(joint)
        } else {
            let kept = self.kept(kept);
            (!kept.is_empty()).then(|| self.intern(kept))
        };
        self.pruned.insert((joint, open, behind), made);
        made
    }

    /// Whether some text leads from a state to an end without answering a question wrongly.
    fn can_end(&mut self, state: u32, open: OpenQuestions) -> bool {
        /// Pairs looked at before the answer is taken to be yes, which is never wrong.
        const MAX_PAIRS: usize = 2_000;
        if let Some(&known) = self.able.get(&(state, open)) {
            return known;
        }
        let mut seen: HashSet<(u32, OpenQuestions), FxBuildHasher> = HashSet::default();
        let mut work = vec![(state, open)];
        let mut found = false;
        while let Some((state, open)) = work.pop() {
            if !seen.insert((state, open)) {
                continue;
            }
            if seen.len() > MAX_PAIRS {
                found = true;
            }
            for byte in 0..=u8::MAX {
                let to = self.terminals.step(state, byte);
                if to == DEAD || found {
                    continue;
                }
                if let Some(open) = self.questions.step(&self.terminals, open, byte) {
                    found = open == NONE || self.terminals.ends[to as usize] != MatchEnd::No;
                    work.push((to, open));
                }
            }
            if found {
                break;
            }
        }
        self.able.insert((state, open), found);
        found
    }
}
