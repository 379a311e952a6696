//! The fewest tokens with which a text can end. Design: docs/design/ending-in-time.md.
//!
//! - `strings`: token strings, and how many tokens their rests need; `dawg`: they as a minimal acyclic
//!   automaton over byte classes; `unions`: operations on its nodes.
//! - `follow`: what can be read behind each rule, and where frames are left; `pairs`: states with nodes, and who depends
//!   on them; `rows`: the fewest tokens with which each frame of a stack can be left, by saturation; `exits`: the ways
//!   to leave one, and which can matter.
//! - `walk`: what a state leads to by letters alone, within one token; `tails`: states that only go over to another
//!   rule; `automata`: rules without calls, and `nearer`: their rows, by tokens that lead toward the end first.
//! - `letters`: the same in letters, which bounds it without any table; `members`: that of members in any order.
//!
//! [`Ending`] is what all texts of a grammar and a vocabulary share; a [`Memo`] has what is known of the
//! sets of stacks of one family of texts.

mod automata;
mod dawg;
mod exits;
mod follow;
mod letters;
mod members;
mod nearer;
mod pairs;
mod rows;
mod strings;
mod tails;
#[cfg(test)]
mod tests;
mod unions;
mod walk;

pub(crate) use dawg::{Dawg, NodeId};
pub(crate) use exits::{KnownExits, Way};
pub(crate) use strings::UNREACHABLE;

use crate::budget::{Halt, Interrupt, Meter};
use crate::network::{BOTTOM, ClassSet, Network, contains, members};
use crate::stacks::{SetId, StackSets};
use crate::vocabulary::Trie;
use exits::Exit;
use follow::{cuts, follow};
use letters::Letters;
use parking_lot::{Mutex, MutexGuard};
use rows::Rows;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;
use strings::Cuts;

/// Sets that a memo has, at most: past them it is made anew.
const MOST_REMEMBERED: usize = 1 << 18;
/// Between two looks at the interrupt while another thread has the rows.
const PATIENCE: Duration = Duration::from_millis(1);

/// What it takes to end a text over a network with the tokens of a vocabulary.
pub(crate) struct Ending {
    rows: Mutex<Rows>,
    most_tokens: u32,
}

/// Over which entries rows of exits are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Over {
    /// Representatives of the classes of masks.
    Classes,
    /// Those of classes made for ends alone; all tokens where there can be none.
    #[default]
    Thinned,
    /// All tokens.
    All,
    /// Each byte as a token of its own, of which no rule counts any.
    Bytes,
}

/// What is known of the sets of stacks of one family.
#[derive(Default)]
pub(crate) struct Memo {
    over: Over,
    fewest: FxHashMap<(SetId, NodeId), u32>,
    /// The fewest bytes that any stack of a set needs, and the most letters.
    letters: FxHashMap<SetId, (u32, u32)>,
    /// For sets the first token of a shortest completion, and the first byte of one, with the set behind it.
    nearest: [FxHashMap<SetId, (u32, SetId)>; 2],
}

impl Memo {
    /// With nothing known yet.
    pub(crate) fn new(over: Over) -> Self {
        Self { over, ..Self::default() }
    }

    /// Over which entries it is.
    pub(crate) fn over(&self) -> Over {
        self.over
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let nearest: usize = self.nearest.iter().map(FxHashMap::capacity).sum();
        self.fewest.capacity() * 13 + self.letters.capacity() * 13 + nearest * 13
    }

    /// The first unit of a shortest completion of a set that was found before, and the set behind it.
    pub(crate) fn nearest(&self, in_bytes: bool, set: SetId) -> Option<(u32, SetId)> {
        self.nearest[usize::from(in_bytes)].get(&set).copied()
    }

    /// Remembers one.
    pub(crate) fn keep_nearest(&mut self, in_bytes: bool, set: SetId, nearest: (u32, SetId)) {
        let known = &mut self.nearest[usize::from(in_bytes)];
        if known.len() > MOST_REMEMBERED {
            *known = FxHashMap::default();
        }
        known.insert(set, nearest);
    }

    fn keep_small(&mut self) {
        if self.fewest.len() > MOST_REMEMBERED {
            self.fewest = FxHashMap::default();
        }
        if self.letters.len() > MOST_REMEMBERED {
            self.letters = FxHashMap::default();
        }
    }
}

/// Sets of stacks over the network of a text, whose states that are sets have numbers there only. The items of an array
/// may repeat here; members in any order come in the order of the schema ([`Network::calls_to_end`]).
#[derive(Clone, Copy)]
pub(crate) struct Stacks<'s> {
    pub(crate) network: &'s Network,
    pub(crate) sets: &'s StackSets,
}

/// The exits of a state of the network of a text.
fn exits_of<'r>(
    rows: &'r mut Rows,
    (network, state): (&Network, u32),
    node: NodeId,
    meter: &mut Meter,
) -> Result<&'r [Exit], Halt> {
    let state = rows.network.counted_as(network, state).ok_or(Halt::Sets)?;
    rows.exits(state, node, meter)
}

/// The class of the letter that leads to a node of a trie.
pub(crate) fn class_of(network: &Network, trie: &Trie, node: u32) -> u8 {
    let alphabet = network.alphabet();
    match alphabet.escape() {
        Some(escape) if trie.is_escape(node) => escape,
        _ => alphabet.class(trie.byte(node)),
    }
}

impl Ending {
    /// Over the tokens of a trie, of which each stands for all that do the same; `whole` is the trie of
    /// the whole vocabulary.
    ///
    /// # Errors
    /// Those of the meter.
    pub(crate) fn new(
        network: Arc<Network>,
        trie: &Trie,
        whole: &Trie,
        meter: &mut Meter,
    ) -> Result<Self, Halt> {
        let class = |trie: &Trie, node| class_of(&network, trie, node);
        let follow = follow(&network, meter)?;
        let cuts = cuts(&network, &follow, meter)?;
        let mut dawg = Dawg::new(trie, whole, class, network.alphabet().escape(), cuts);
        dawg.are_counted = network.counts_tokens();
        Self::over(network, dawg, follow, meter)
    }

    /// Over bytes: what is fewest are bytes.
    ///
    /// # Errors
    /// Those of the meter.
    pub(crate) fn over_bytes(network: Arc<Network>, meter: &mut Meter) -> Result<Self, Halt> {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        let trie = Trie::new(bytes.chunks(1).zip(0..));
        let class = |trie: &Trie, node| class_of(&network, trie, node);
        let follow = follow(&network, meter)?;
        let dawg = Dawg::new(&trie, &trie, class, None, Cuts::ALL);
        Self::over(network, dawg, follow, meter)
    }

    fn over(
        network: Arc<Network>,
        dawg: Dawg,
        follow: Vec<ClassSet>,
        meter: &mut Meter,
    ) -> Result<Self, Halt> {
        let most_tokens = dawg.most_tokens();
        // States that are sets have numbers of their own here.
        let rows = Mutex::new(Rows::new(network.fresh(), dawg, follow, meter)?);
        Ok(Self { rows, most_tokens })
    }

    /// An exit that costs so many more tokens than one between two tokens is not kept.
    pub(crate) fn most_tokens(&self) -> u32 {
        self.most_tokens
    }

    /// Bytes held, as far as nobody works on them.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.try_lock().map_or(0, |rows| rows.bytes())
    }

    /// Makes the rows for which a text at its start asks; all rows may hold so many bytes.
    ///
    /// # Errors
    /// Those of the meter and of the interrupt; [`Halt::Bytes`]. What was made until then stays.
    pub(crate) fn prepare(
        &self,
        network: &Network,
        most_bytes: usize,
        interrupt: &Interrupt,
        meter: &mut Meter,
    ) -> Result<(), Halt> {
        let mut asking = self.ask(most_bytes, interrupt)?;
        let start = (network, network.start());
        let root = asking.rows.dawg.root();
        exits_of(&mut asking.rows, start, root, meter)?;
        Ok(())
    }

    /// The rows, to ask about texts; they may hold so many bytes.
    ///
    /// # Errors
    /// Those of the interrupt, while another thread has them.
    pub(crate) fn ask(&self, most_bytes: usize, interrupt: &Interrupt) -> Result<Asking<'_>, Halt> {
        let mut rows = loop {
            if let Some(rows) = self.rows.try_lock_for(PATIENCE) {
                break rows;
            }
            interrupt.check()?;
        };
        rows.most_bytes = most_bytes;
        Ok(Asking { rows })
    }
}

/// The rows, in the hands of one thread.
pub(crate) struct Asking<'e> {
    rows: MutexGuard<'e, Rows>,
}

impl Asking<'_> {
    /// The fewest tokens with which any stack of a set can be left to the bottom, at the end of a token;
    /// [`UNREACHABLE`] where no tokens do.
    ///
    /// # Errors
    /// Those of the meter; [`Halt::Bytes`].
    pub(crate) fn fewest(
        &mut self,
        stacks: Stacks<'_>,
        memo: &mut Memo,
        set: SetId,
        meter: &mut Meter,
    ) -> Result<u32, Halt> {
        let root = self.rows.dawg.root();
        self.fewest_from(stacks, memo, (set, root), meter)
    }

    /// The fewest tokens that lead to the bottom from where a frame has been popped, with the token under way read
    /// as far as a node. Beneath the frame stand a state, if any, and then the stacks of a set.
    ///
    /// # Errors
    /// Those of [`Self::fewest`].
    pub(crate) fn fewest_beneath(
        &mut self,
        stacks: Stacks<'_>,
        memo: &mut Memo,
        (state, set, node): (Option<u32>, SetId, NodeId),
        meter: &mut Meter,
    ) -> Result<u32, Halt> {
        let Some(state) = state else {
            return self.fewest_from(stacks, memo, (set, node), meter);
        };
        let mut best = UNREACHABLE;
        let exits = exits_of(&mut self.rows, (stacks.network, state), node, meter)?.to_vec();
        for exit in exits {
            let beneath = self.fewest_from(stacks, memo, (set, exit.node), meter)?;
            best = best.min(beneath.saturating_add(exit.tokens));
        }
        Ok(best)
    }

    /// How the stacks of a set that stand above an unknown rest can be left at the end of a token: nodes at
    /// which the rest is reached, with the fewest tokens finished until then. Only what can matter, whatever
    /// the rest is.
    ///
    /// # Errors
    /// Those of [`Self::fewest`].
    pub(crate) fn exits_above(
        &mut self,
        Stacks { network, sets }: Stacks<'_>,
        known: &mut KnownExits,
        set: SetId,
        meter: &mut Meter,
    ) -> Result<Arc<[Way]>, Halt> {
        let asked = (set, self.rows.dawg.root());
        let mut work = vec![asked];
        while let Some(&(set, node)) = work.last() {
            if known.get(set, node).is_some() {
                work.pop();
                continue;
            }
            meter.spend(1)?;
            let waiting = work.len();
            let mut ways: Vec<Exit> = Vec::new();
            let mut go_on = |before: u32, rest: (SetId, NodeId)| match known.get(rest.0, rest.1) {
                Some(rest) => ways.extend(rest.iter().map(|&(node, tokens)| Exit {
                    node,
                    tokens: tokens.saturating_add(before),
                    bytes: 0,
                })),
                None => work.push(rest),
            };
            if let Some((left, right)) = sets.halves(set) {
                go_on(0, (left, node));
                go_on(0, (right, node));
            } else {
                for &(top, beneath) in sets.list(set).iter().filter(|entry| entry.0 != BOTTOM) {
                    for exit in exits_of(&mut self.rows, (network, top), node, meter)? {
                        go_on(exit.tokens, (beneath, exit.node));
                    }
                }
                let is_left = sets.has_rest(set);
                ways.extend(is_left.then_some(Exit { node, tokens: 0, bytes: 0 }));
            }
            meter.spend(ways.len() as u64 / 4)?;
            if work.len() == waiting {
                work.pop();
                exits::cheapest(&mut self.rows.dawg, &mut ways);
                meter.spend(self.rows.dawg.take_work() / 4)?;
                let ways = ways.into_iter().map(|exit| (exit.node, exit.tokens)).collect();
                known.insert(set, node, ways)?;
            }
        }
        Ok(known.get(asked.0, asked.1).cloned().unwrap_or_default())
    }

    fn fewest_from(
        &mut self,
        Stacks { network, sets }: Stacks<'_>,
        memo: &mut Memo,
        asked: (SetId, NodeId),
        meter: &mut Meter,
    ) -> Result<u32, Halt> {
        if let Some(&known) = memo.fewest.get(&asked) {
            return Ok(known);
        }
        memo.keep_small();
        // Stacks may be as deep as a text, so what an answer depends on is worked off on a stack too.
        let mut work = vec![asked];
        while let Some(&(set, node)) = work.last() {
            if memo.fewest.contains_key(&(set, node)) {
                work.pop();
                continue;
            }
            meter.spend(1)?;
            let waiting = work.len();
            let mut best = UNREACHABLE;
            let mut ask = |known: Option<&u32>, tokens: u32, asked: (SetId, NodeId)| match known {
                Some(&known) => best = best.min(known.saturating_add(tokens)),
                None => work.push(asked),
            };
            if let Some((left, right)) = sets.halves(set) {
                for half in [left, right] {
                    ask(memo.fewest.get(&(half, node)), 0, (half, node));
                }
            } else {
                for &(top, beneath) in sets.list(set) {
                    if top == BOTTOM {
                        let dawg = &self.rows.dawg;
                        let at_end = node == dawg.root() || dawg.is_end(node);
                        let tokens = u32::from(node != dawg.root());
                        if at_end {
                            ask(Some(&0), tokens, (set, node));
                        }
                        continue;
                    }
                    for exit in exits_of(&mut self.rows, (network, top), node, meter)? {
                        let beneath = (beneath, exit.node);
                        ask(memo.fewest.get(&beneath), exit.tokens, beneath);
                    }
                }
            }
            if work.len() == waiting {
                work.pop();
                memo.fewest.insert((set, node), best.min(UNREACHABLE));
            }
        }
        Ok(memo.fewest.get(&asked).copied().unwrap_or(UNREACHABLE))
    }
}

/// Bounds on what it takes to end a text, from the network alone.
pub(crate) struct Countdown {
    /// Upper bounds on the fewest letters.
    letters: Letters,
    /// Upper bounds on the fewest bytes, which are not the fewest letters if the grammar takes some tokens whole.
    bytes_alone: Option<Letters>,
    /// The most letters that one token adds to what is needed; `None` where letters bound no tokens.
    pub(crate) most_raised: Option<u32>,
}

impl Countdown {
    /// For the tokens of a trie; `single` says of which classes a token of one letter exists.
    ///
    /// # Errors
    /// Those of the meter.
    pub(crate) fn new(
        network: &Network,
        trie: &Trie,
        single: &crate::network::ClassSet,
        meter: &mut Meter,
    ) -> Result<Self, Halt> {
        let letters = Letters::new(network, None, meter)?;
        let escape = network.alphabet().escape();
        let bytes_alone = match escape {
            Some(_) => Some(Letters::new(network, escape, meter)?),
            None => None,
        };
        // A token that is taken whole is one token in place of its letters.
        let is_spelled = |class| Some(class) == escape || contains(single, class);
        let is_spelled = members(&letters.used).all(is_spelled);
        let most_raised = match is_spelled {
            true => letters.most_raised(trie, |node| class_of(network, trie, node)),
            false => None,
        };
        Ok(Self { letters, bytes_alone, most_raised })
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.letters.bytes() + self.bytes_alone.as_ref().map_or(0, Letters::bytes)
    }

    /// The fewest bytes and the most letters that the stacks of a set need, each by its shortest way: upper
    /// bounds, which are exact but for automata that count their passes. A token that is taken whole is five
    /// letters, and no bytes write it.
    ///
    /// # Errors
    /// Those of the meter.
    pub(crate) fn letters(
        &self,
        Stacks { network, sets }: Stacks<'_>,
        memo: &mut Memo,
        set: SetId,
        meter: &mut Meter,
    ) -> Result<(u32, u32), Halt> {
        if let Some(&known) = memo.letters.get(&set) {
            return Ok(known);
        }
        memo.keep_small();
        let mut work = vec![set];
        while let Some(&set) = work.last() {
            if memo.letters.contains_key(&set) {
                work.pop();
                continue;
            }
            meter.spend(1)?;
            let waiting = work.len();
            let (mut least, mut most) = (UNREACHABLE, 0);
            let mut ask = |known: Option<&(u32, u32)>, own: (u32, u32), asked: SetId| match known {
                Some(known) => {
                    least = least.min(own.0.saturating_add(known.0));
                    most = most.max(own.1.saturating_add(known.1).min(UNREACHABLE));
                }
                None => work.push(asked),
            };
            if let Some((left, right)) = sets.halves(set) {
                for half in [left, right] {
                    ask(memo.letters.get(&half), (0, 0), half);
                }
            } else {
                for &(top, beneath) in sets.list(set) {
                    match top {
                        BOTTOM => ask(Some(&(0, 0)), (0, 0), set),
                        _ => {
                            let letters = self.letters.of(network, top);
                            let alone = self.bytes_alone.as_ref();
                            let bytes = alone.map_or(letters, |all| all.of(network, top));
                            let own = (bytes, letters);
                            ask(memo.letters.get(&beneath), own, beneath);
                        }
                    }
                }
            }
            if work.len() == waiting {
                work.pop();
                memo.letters.insert(set, (least.min(UNREACHABLE), most));
            }
        }
        Ok(memo.letters.get(&set).copied().unwrap_or((UNREACHABLE, UNREACHABLE)))
    }
}
