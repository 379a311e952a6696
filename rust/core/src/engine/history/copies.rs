//! Stacks in other tables.

use super::View;
use crate::budget::Halt;
use crate::network::{BOTTOM, Network};
use crate::stacks::{Entry, NONE, SetId, StackSets, Stepper, beneath_first};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The stacks of a stand in tables of their own.
pub(crate) struct StacksApart {
    pub(super) network: Arc<Network>,
    pub(super) sets: StackSets,
    pub(super) set: SetId,
}

impl StacksApart {
    /// What a mask is made of.
    pub(crate) fn view(&self) -> View<'_> {
        View::Stacks(&self.network, &self.sets, self.set)
    }

    /// What says which tokens can be taken whole.
    pub(crate) fn into_marks(self) -> Marks {
        let mut stepper = Stepper::new(self.network.clone());
        stepper.sets = self.sets;
        Marks { network: self.network, stepper, set: self.set }
    }

    /// Whether the text is complete behind a token, read as text or, by a letter and its id, taken whole.
    ///
    /// # Errors
    /// Those of a step.
    pub(crate) fn ends_with_token(
        self,
        text: &[u8],
        whole: Option<(u8, u32)>,
        counts_tokens: bool,
    ) -> Result<bool, Halt> {
        let Self { network, sets, set } = self;
        let mut stepper = Stepper::new(network.clone());
        stepper.sets = sets;
        let class = |&byte: &u8| network.alphabet().class(byte);
        let text: Vec<u8> = text.iter().map(class).collect();
        let whole = whole.map(|(escape, id)| {
            std::iter::once(escape).chain(id.to_be_bytes().iter().map(class)).collect()
        });
        for (is_text, classes) in [(true, text), (false, whole.unwrap_or_default())] {
            let mut after = if classes.is_empty() { NONE } else { set };
            for (place, class) in classes.into_iter().enumerate() {
                after = if after == NONE { NONE } else { stepper.step(after, class)? };
                if counts_tokens && is_text && place == 0 && after != NONE {
                    after = stepper.after_first(after)?;
                }
            }
            if counts_tokens && after != NONE {
                after = stepper.after_token(after)?;
            }
            if after != NONE && stepper.sets.has_rest(after) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Stacks, of which is asked which tokens can be taken whole.
pub(crate) struct Marks {
    network: Arc<Network>,
    stepper: Stepper<Arc<Network>>,
    set: SetId,
}

impl Marks {
    /// Whether a token can be taken whole.
    pub(crate) fn can_follow(&mut self, id: u32) -> Result<bool, Halt> {
        let Self { network, stepper, set } = self;
        let Some(escape) = network.alphabet().escape() else { return Ok(false) };
        let mut set = stepper.step(*set, escape)?;
        for byte in id.to_be_bytes() {
            if set == NONE {
                break;
            }
            set = stepper.step(set, network.alphabet().class(byte))?;
        }
        Ok(set != NONE)
    }
}

/// Copies a set into another table; returns its number there.
pub(in crate::engine) fn copy_set(
    from: &StackSets,
    set: SetId,
    to: &mut StackSets,
) -> Result<SetId, Halt> {
    copy(from, set, to, &mut FxHashMap::default())
}

/// Copies a set into another table; `copies` holds the sets that were copied before, by their numbers.
pub(in crate::engine) fn copy(
    from: &StackSets,
    set: SetId,
    to: &mut StackSets,
    copies: &mut FxHashMap<SetId, SetId>,
) -> Result<SetId, Halt> {
    copy_moved(from, set, to, copies, &mut |top| Ok(top))
}

/// The same; `moved` says which state stands there for a state.
pub(in crate::engine) fn copy_moved(
    from: &StackSets,
    set: SetId,
    to: &mut StackSets,
    copies: &mut FxHashMap<SetId, SetId>,
    moved: &mut impl FnMut(u32) -> Result<u32, Halt>,
) -> Result<SetId, Halt> {
    let is_there = |set| copies.contains_key(&set);
    for set in beneath_first(from, set, is_there, &mut |steps| to.spend(steps))? {
        let mut entries: Vec<Entry> = Vec::new();
        for (top, beneath) in from.entries(set) {
            entries.push(match top {
                BOTTOM => (BOTTOM, NONE),
                top => (moved(top)?, copies[&beneath]),
            });
        }
        let is_sorted = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let copied = match is_sorted {
            true => to.add(&entries)?,
            false => to.collect(&mut entries, &[])?,
        };
        copies.insert(set, copied);
    }
    Ok(copies[&set])
}
