//! Looking ahead: what must come, and what could be read, in the tables of the family.

use crate::budget::{Halt, Interrupt};
use crate::engine::history::{Family, Stand};
use crate::engine::lock;
use crate::engine::matcher::Matcher;
use crate::error::Result;
use crate::network::{contains, members};

/// Bytes that are read ahead between two looks at the limits; more is done for each than for one that is read.
const AHEAD_BETWEEN_CHECKS: usize = 64;
/// Forced bytes of one call, at most: without, a grammar could make one call last for minutes.
pub const MAX_FORCED_BYTES: usize = 1 << 18;

impl Matcher {
    /// The bytes that must come next, whatever is chosen; at most `limit` of them, and
    /// [`MAX_FORCED_BYTES`]. The work of one text is allowed for all of them together.
    ///
    /// # Errors
    /// [`Error::State`] after the end; [`Error::Limit`], [`Error::Deadline`], [`Error::Cancelled`].
    pub fn forced_bytes(&self, limit: usize, interrupt: &Interrupt) -> Result<Vec<u8>> {
        let interrupt = &self.accept_interrupt(interrupt);
        self.reading_ahead(interrupt, |family, mut stand| {
            let escape = self.engine.network.alphabet().escape();
            let limit = limit.min(MAX_FORCED_BYTES);
            let mut out = Vec::new();
            while out.len() < limit && !family.accepts(stand) {
                let classes = family.next_classes(stand);
                // A token that is taken whole may come as well.
                if escape.is_some_and(|escape| contains(&classes, escape)) {
                    break;
                }
                let bytes = (0..=255).filter(|&b| contains(&classes, self.engine.class(b)));
                let mut alive: Vec<u8> = Vec::new();
                for byte in bytes {
                    // Of what the stacks allow, items that are unique leave some out.
                    let may_follow = !matches!(stand, Stand::Array(_))
                        || self.advance(family, stand, &[byte], interrupt)?.0.is_some();
                    alive.extend(may_follow.then_some(byte));
                    if alive.len() > 1 {
                        break;
                    }
                }
                let &[byte] = &*alive else { break };
                if out.len() % AHEAD_BETWEEN_CHECKS == 0 {
                    interrupt.check()?;
                    if family.bytes() > self.engine.limits.max_matcher_bytes {
                        return Err(Halt::Bytes);
                    }
                }
                match self.advance(family, stand, &[byte], interrupt)?.0 {
                    Some(next) => stand = next,
                    None => break,
                }
                out.push(byte);
            }
            Ok(out)
        })
    }

    /// The token that is taken whole and must come next: the text may not end, and nothing else may come.
    ///
    /// # Errors
    /// As for [`Self::forced_bytes`].
    pub fn forced_token(&self, interrupt: &Interrupt) -> Result<Option<u32>> {
        let interrupt = &self.accept_interrupt(interrupt);
        self.reading_ahead(interrupt, |family, mut stand| {
            let Some(escape) = self.engine.network.alphabet().escape() else { return Ok(None) };
            let mut classes = family.next_classes(stand);
            if family.accepts(stand) || members(&classes).any(|class| class != escape) {
                return Ok(None);
            }
            let Some(within) = family.advance(stand, escape)? else { return Ok(None) };
            stand = within;
            let mut id = [0; 4];
            for place in &mut id {
                classes = family.next_classes(stand);
                let mut bytes = (0..=255).filter(|&b| contains(&classes, self.engine.class(b)));
                let (Some(byte), None) = (bytes.next(), bytes.next()) else { return Ok(None) };
                let Some(next) = family.advance(stand, self.engine.class(byte))? else {
                    return Ok(None);
                };
                (*place, stand) = (byte, next);
            }
            let id = u32::from_be_bytes(id);
            Ok(self.engine.vocabulary.is_whole(id).then_some(id))
        })
    }

    /// How many of some bytes could be read next, and what may come there. Nothing changes.
    ///
    /// # Errors
    /// As for [`Self::forced_bytes`].
    pub fn readable(&self, bytes: &[u8], interrupt: &Interrupt) -> Result<(usize, Vec<u8>)> {
        let interrupt = &self.accept_interrupt(interrupt);
        self.reading_ahead(interrupt, |family, mut stand| {
            let mut read = 0;
            for (i, &byte) in bytes.iter().enumerate() {
                if i % AHEAD_BETWEEN_CHECKS == 0 {
                    interrupt.check()?;
                    self.allow(family, interrupt);
                }
                match self.advance(family, stand, &[byte], interrupt)?.0 {
                    Some(next) => stand = next,
                    None => break,
                }
                read += 1;
            }
            let has_read = read > 0 && read == bytes.len();
            if has_read && self.stops.when_complete && family.accepts(stand) {
                return Ok((read, Vec::new()));
            }
            let mut expected = self.expected_after(family, stand);
            if self.engine.network.has_unique_items() {
                if let Stand::Array(id) = stand {
                    family.arrays.keep_readers(id, &mut family.stepper.sets)?;
                }
                family.arrays.try_out(true);
                let kept = self.followed_by(family, stand, &expected, interrupt);
                family.arrays.try_out(false);
                expected = kept?;
            }
            Ok((read, expected))
        })
    }

    /// Those of some bytes that a text goes on with.
    fn followed_by(
        &self,
        family: &mut Family,
        stand: Stand,
        bytes: &[u8],
        interrupt: &Interrupt,
    ) -> std::result::Result<Vec<u8>, Halt> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            interrupt.check()?;
            let after = self.advance(family, stand, &[byte], interrupt)?.0;
            out.extend(after.map(|_| byte));
        }
        Ok(out)
    }

    /// Reads ahead in the tables of the family and leaves the state as it is.
    fn reading_ahead<T>(
        &self,
        interrupt: &Interrupt,
        read: impl FnOnce(&mut Family, Stand) -> std::result::Result<T, Halt>,
    ) -> Result<T> {
        let mut family = lock::write(&self.family, interrupt)?;
        self.refuse_ended(&family)?;
        interrupt.look()?;
        self.settle(&mut family, interrupt)?;
        let stand = family.step(self.at).stand;
        let (last, mark) = (family.last_column(), family.arrays.mark());
        self.allow(&mut family, interrupt);
        let done = read(&mut family, stand);
        family.release();
        family.forget_columns(last);
        family.arrays.reset(mark);
        done.map_err(|halt| self.halted(halt, interrupt))
    }

    pub(super) fn expected_after(&self, family: &Family, stand: Stand) -> Vec<u8> {
        self.engine.bytes_of(&family.next_classes(stand))
    }
}
