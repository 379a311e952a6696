//! What it costs to leave a frame, by weighted saturation backwards (weighted pre*; Reps, Schwoon, Jha
//! and Melski, 2005, over the tropical semiring).
//!
//! A *pair* is a frame on top and a node of the tokens' automaton that says how far the token under way
//! was read. Its *row* lists *exits*: for a node the fewest tokens that are finished until the frame is
//! popped with that node reached. Rows are the least solution of
//!
//! - `p` final: `(w, 0)` is in the row of `(p, w)`;
//! - a token ends at `w`: the row of `(p, root)`, one token more; and an exit where a token ends is also
//!   one at the root, one token more;
//! - `p` reads `c` to `t`, and `c` leads from `w` to `x`: the row of `(t, x)`;
//! - `p` calls `s` and returns to `r`: for each exit `(v, k)` of `(s, w)` the row of `(r, v)`, `k` tokens
//!   more.
//!
//! Pairs are made when they are first asked for. What a pair leads to by letters alone is walked at once
//! ([`Walk`]) and has no rows of its own: pairs are made where a token ends, at calls, and where they
//! return to. Changes are worked off by their cost, cheapest first.
//! Only exits that can matter are kept (docs/design/ending-in-time.md, "What may be
//! dropped", has the proofs):
//!
//! - with `n` tokens the frame can be left between two tokens, and whatever the token under way reads
//!   beneath can be read by [`Dawg::tokens`] more: an exit that costs as much is dropped;
//! - so is an exit at a node that another, no dearer, covers;
//! - and one whose rest nobody beneath the rule can begin to read.
//!
//! In a rule that is a large automaton by itself, such as a format, tokens that end within it are looked at only where
//! they can make a row better (`automata`).
//!
//! A state that counts up to a bound far away does what the state without that bound does: it takes over
//! the exits of that state that read no more bytes than passes are left, or finish no more tokens than the
//! rule has left, and is looked at itself only where some read more.

use super::dawg::{Dawg, NodeId};
use super::exits::{Exit, RuleExits, is_kept, needed};
use super::follow::follow;
use super::strings::UNREACHABLE;
use super::tails::Tails;
use super::walk::{Goal, Walk};
use crate::budget::{Halt, Meter};
use crate::network::{ClassSet, Network, meet};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub(super) type PairId = u32;

/// A frame that takes more tokens than this to leave is taken for one that cannot be left.
const MOST_TOKENS: u32 = 1 << 24;

/// Who takes over the exits of a pair, with the tokens finished and the bytes read before.
#[derive(Clone, Copy)]
struct Follower {
    pair: PairId,
    tokens: u32,
    bytes: u32,
}

/// A pair that calls another.
#[derive(Clone, Copy)]
struct Caller {
    pair: PairId,
    /// Where the call returns to.
    to: u32,
    /// The tokens finished before, and the bytes read.
    tokens: u32,
    bytes: u32,
}

pub(super) struct Pair {
    pub(super) state: u32,
    node: NodeId,
    pub(super) row: Vec<Exit>,
    followers: Vec<Follower>,
    callers: Vec<Caller>,
    /// Pairs of states that count, which take over the exits within their bounds.
    counting: Vec<PairId>,
    /// For a state that counts, the pair without a bound of which it takes the exits over, of at most so
    /// many bytes and tokens.
    unbounded: Option<(PairId, u32, u32)>,
    is_explored: bool,
    /// Whether only exits that can matter are in the row.
    is_tidy: bool,
}

/// The rows of a network, as far as they were asked for.
pub(super) struct Rows {
    pub(super) network: Arc<Network>,
    pub(super) dawg: Arc<Dawg>,
    /// For each rule the classes that can be read next where it is complete.
    pub(super) follow: Vec<ClassSet>,
    pub(super) pairs: Vec<Pair>,
    /// For each pair the fewest tokens after which it can be left between two tokens, as far as known.
    pub(super) clean: Vec<u32>,
    numbers: FxHashMap<(u32, NodeId), PairId>,
    /// Pairs that are still to be explored.
    pub(super) fresh: Vec<PairId>,
    /// Exits that are still to be passed on, by their cost: those between two tokens, which bound what
    /// others may cost, before those within one.
    queue: Vec<[Vec<(PairId, NodeId)>; 2]>,
    /// No cost below has any.
    lowest: usize,
    /// Pairs that missed an exit of those without a bound.
    bounded: Vec<PairId>,
    counts_bytes: bool,
    /// Whether there was room for all sets of members.
    has_room: bool,
    /// Exits passed on so far.
    relaxations: u64,
    pub(super) walk: Walk,
    tails: Arc<Tails>,
    /// By rule the exits of those that are one large automaton; `None` for other rules.
    pub(super) automata: FxHashMap<u32, Option<Arc<RuleExits>>>,
    pub(super) bytes: usize,
    /// Bytes that all may take.
    pub(super) most_bytes: usize,
}

impl Rows {
    pub(super) fn new(
        network: Arc<Network>,
        dawg: Arc<Dawg>,
        meter: &mut Meter,
    ) -> Result<Self, Halt> {
        let follow = follow(&network, meter)?;
        let tails = Arc::new(Tails::of_network(&network, meter)?);
        Ok(Self {
            counts_bytes: network.has_counters(),
            network,
            dawg,
            follow,
            pairs: Vec::new(),
            clean: Vec::new(),
            numbers: FxHashMap::default(),
            fresh: Vec::new(),
            queue: Vec::new(),
            lowest: 0,
            bounded: Vec::new(),
            has_room: true,
            relaxations: 0,
            walk: Walk::new(tails.clone()),
            tails,
            automata: FxHashMap::default(),
            bytes: 0,
            most_bytes: usize::MAX,
        })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
            + self.walk.bytes()
            + self.network.set_bytes()
            + self.tails.bytes()
            + self.follow.len() * size_of::<ClassSet>()
    }

    /// The exits of a frame with a token read as far as a node.
    ///
    /// # Errors
    /// Those of the meter; [`Halt::Bytes`]. What was made until then stays.
    pub(super) fn exits(
        &mut self,
        state: u32,
        node: NodeId,
        meter: &mut Meter,
    ) -> Result<&[Exit], Halt> {
        let pair = self.pair(state, node);
        let is_settled = self.fresh.is_empty() && self.queue.is_empty() && self.bounded.is_empty();
        if !is_settled {
            self.work_off(meter)?;
        }
        let Self { dawg, pairs, clean, .. } = self;
        let Pair { row, is_tidy, .. } = &mut pairs[pair as usize];
        if !*is_tidy {
            // Cheaper exits, found later, may have made some needless, or strings of some.
            let exits = row.iter().filter_map(|exit| needed(dawg, *exit, clean[pair as usize]));
            let mut exits: Vec<Exit> = exits.collect();
            exits.sort_unstable_by_key(|exit| (exit.node, exit.tokens, exit.bytes));
            exits.dedup_by_key(|exit| exit.node);
            *row = exits;
            *is_tidy = true;
        }
        Ok(row)
    }

    fn pair(&mut self, state: u32, node: NodeId) -> PairId {
        let counted = self.network.counted_as(&self.network, state);
        self.has_room &= counted.is_some();
        let state = self.tails.of(counted.unwrap_or(state));
        if let Some(&known) = self.numbers.get(&(state, node)) {
            return known;
        }
        let id = self.pairs.len() as PairId;
        self.pairs.push(Pair {
            state,
            node,
            row: Vec::new(),
            followers: Vec::new(),
            callers: Vec::new(),
            counting: Vec::new(),
            unbounded: None,
            is_explored: false,
            is_tidy: false,
        });
        self.clean.push(UNREACHABLE);
        self.numbers.insert((state, node), id);
        self.fresh.push(id);
        self.bytes += size_of::<Pair>() + 20;
        id
    }

    /// Works off all that is to be done.
    fn work_off(&mut self, meter: &mut Meter) -> Result<(), Halt> {
        loop {
            let before = self.relaxations;
            if let Some(&pair) = self.fresh.last() {
                self.begin(pair, meter)?;
            } else if let Some((cost, pair, node)) = self.cheapest() {
                self.pass_on(pair, node, cost);
            } else if let Some(&pair) = self.bounded.last() {
                self.look_again(pair, meter)?;
            } else {
                self.queue.clear();
                self.lowest = 0;
                return Ok(());
            }
            meter.spend(1 + (self.relaxations - before) / 4)?;
            if self.bytes > self.most_bytes {
                return Err(Halt::Bytes);
            }
            if !self.has_room || self.network.refused_sets() > 0 {
                return Err(Halt::Sets);
            }
        }
    }

    fn cheapest(&mut self) -> Option<(u32, PairId, NodeId)> {
        while let Some(level) = self.queue.get_mut(self.lowest) {
            let [clean, pending] = level;
            if let Some((pair, node)) = clean.pop().or_else(|| pending.pop()) {
                return Some((self.lowest as u32, pair, node));
            }
            self.lowest += 1;
        }
        None
    }

    /// The last pair that is new: one of a state that counts takes over what the state without a bound
    /// does.
    fn begin(&mut self, pair: PairId, meter: &mut Meter) -> Result<(), Halt> {
        let Pair { state, node, .. } = self.pairs[pair as usize];
        let Some((free, left)) = self.network.unbounded(state) else {
            return self.begin_plain(pair, meter);
        };
        self.fresh.pop();
        let free = self.pair(free, node);
        let most_tokens = self.network.tokens_left(state).unwrap_or(u32::MAX);
        self.pairs[pair as usize].unbounded = Some((free, left, most_tokens));
        self.pairs[free as usize].counting.push(pair);
        self.bytes += size_of::<PairId>();
        for index in 0..self.pairs[free as usize].row.len() {
            self.take_over_within(pair, self.pairs[free as usize].row[index]);
        }
        Ok(())
    }

    /// Whether a state that counts is to be looked at itself, the last that missed an exit.
    fn look_again(&mut self, pair: PairId, meter: &mut Meter) -> Result<(), Halt> {
        let is_needed = match self.pairs[pair as usize] {
            Pair { unbounded: Some((free, bytes, tokens)), is_explored: false, .. } => {
                let (Pair { row, .. }, clean) =
                    (&self.pairs[free as usize], self.clean[free as usize]);
                let mut kept = row.iter().filter_map(|exit| needed(&self.dawg, *exit, clean));
                kept.any(|exit| exit.bytes > bytes || exit.tokens > tokens)
            }
            _ => false,
        };
        if is_needed {
            self.walk(pair, Goal::All, meter)?;
        }
        self.bounded.pop();
        if is_needed {
            self.explore(pair);
        }
        Ok(())
    }

    /// Walks on from a pair.
    pub(super) fn walk(&mut self, pair: PairId, goal: Goal, meter: &mut Meter) -> Result<(), Halt> {
        let Pair { state, node, .. } = self.pairs[pair as usize];
        let most_bytes = self.most_bytes.saturating_sub(self.bytes);
        self.walk.from((state, node), goal, (&self.network, &self.dawg), most_bytes, meter)
    }

    /// Has the row of a pair depend on what was walked from it.
    pub(super) fn explore(&mut self, pair: PairId) {
        let walk = std::mem::take(&mut self.walk);
        self.pairs[pair as usize].is_explored = true;
        let root = self.dawg.root();
        for &(node, bytes) in &walk.left {
            self.add(pair, Exit { node, tokens: 0, bytes });
        }
        for &(state, bytes) in &walk.ended {
            let ended = self.pair(state, root);
            if ended != pair {
                self.follow_pair(ended, Follower { pair, tokens: 1, bytes });
            }
        }
        for &(state, node, bytes) in &walk.met {
            let met = self.pair(state, node);
            self.follow_pair(met, Follower { pair, tokens: 0, bytes });
        }
        for &(start, to) in &walk.calls {
            let callee = self.pair(start, self.pairs[pair as usize].node);
            self.add_caller(callee, Caller { pair, to, tokens: 0, bytes: 0 });
        }
        for &(state, to, bytes) in &walk.ended_within {
            let callee = self.pair(state, root);
            self.add_caller(callee, Caller { pair, to, tokens: 1, bytes });
        }
        self.walk = walk;
    }

    fn add_caller(&mut self, callee: PairId, caller: Caller) {
        self.pairs[callee as usize].callers.push(caller);
        self.bytes += size_of::<Caller>();
        for index in 0..self.pairs[callee as usize].row.len() {
            let exit = self.pairs[callee as usize].row[index];
            if let Some(exit) = needed(&self.dawg, exit, self.clean[callee as usize]) {
                self.go_on(caller, exit);
            }
        }
    }

    /// A caller goes on where the rule that it called was left.
    fn go_on(&mut self, Caller { pair, to, tokens, bytes }: Caller, exit: Exit) {
        let tokens = exit.tokens.saturating_add(tokens);
        let bytes = exit.bytes.saturating_add(bytes);
        let clean = self.clean[pair as usize];
        let most = clean.saturating_add(self.dawg.most_tokens());
        if tokens > clean && tokens + 1 >= most {
            return; // nothing that comes of it could be kept
        }
        let Self { network, dawg, .. } = self;
        let reads = || meet(network.first_to_end(to), dawg.next(exit.node));
        if exit.node != dawg.root() && !network.is_counting(to) && !reads() {
            // Where a token ends the row of the called rule has an exit between two tokens too.
            if network.is_final(to) {
                self.add(pair, Exit { node: exit.node, tokens, bytes });
            }
            return;
        }
        let after = self.pair(to, exit.node);
        self.follow_pair(after, Follower { pair, tokens, bytes });
    }

    fn follow_pair(&mut self, leader: PairId, follower: Follower) {
        self.pairs[leader as usize].followers.push(follower);
        self.bytes += size_of::<Follower>();
        self.relaxations += self.pairs[leader as usize].row.len() as u64;
        for index in 0..self.pairs[leader as usize].row.len() {
            let exit = self.pairs[leader as usize].row[index];
            if let Some(exit) = needed(&self.dawg, exit, self.clean[leader as usize]) {
                self.take_over(follower, exit);
            }
        }
    }

    fn take_over(&mut self, Follower { pair, tokens, bytes }: Follower, exit: Exit) {
        let tokens = exit.tokens.saturating_add(tokens);
        let bytes = exit.bytes.saturating_add(bytes);
        self.add(pair, Exit { node: exit.node, tokens, bytes });
    }

    /// A pair of a state that counts takes over an exit of the state without a bound.
    fn take_over_within(&mut self, pair: PairId, exit: Exit) {
        self.relaxations += 1;
        let bounds = self.pairs[pair as usize].unbounded;
        match bounds {
            Some((_, bytes, tokens)) if exit.bytes > bytes || exit.tokens > tokens => {
                self.bounded.push(pair);
            }
            _ => self.add(pair, exit),
        }
    }

    /// Adds an exit to a row, if it can matter.
    fn add(&mut self, pair: PairId, mut exit: Exit) {
        if !self.counts_bytes {
            exit.bytes = 0;
        }
        let root = self.dawg.root();
        if exit.node != root && self.dawg.is_last(exit.node) {
            // Only the end of the token can follow.
            exit = Exit { node: root, tokens: exit.tokens + 1, ..exit };
        }
        if exit.tokens >= MOST_TOKENS || !is_kept(&self.dawg, &exit, self.clean[pair as usize]) {
            return;
        }
        if exit.node != root && self.dawg.is_end(exit.node) {
            self.add(pair, Exit { node: root, tokens: exit.tokens + 1, ..exit });
        }
        let Some(exit) = needed(&self.dawg, exit, self.clean[pair as usize]) else { return };
        let Pair { row, state, .. } = &self.pairs[pair as usize];
        let place = row.binary_search_by_key(&exit.node, |known| known.node);
        if let Ok(at) = place
            && (row[at].tokens, row[at].bytes) <= (exit.tokens, exit.bytes)
        {
            return;
        }
        if exit.node == root {
            self.clean[pair as usize] = exit.tokens;
        } else {
            return self.add_pending(pair, *state, exit);
        }
        self.put(pair, exit);
    }

    /// Adds an exit within a token to a row that has none at its node that costs as little.
    fn add_pending(&mut self, pair: PairId, state: u32, exit: Exit) {
        let Self { dawg, network, follow, pairs, .. } = self;
        let row = &mut pairs[pair as usize].row;
        let follow = &follow[network.rule_of(state) as usize];
        if !network.is_segment(state) && !meet(follow, dawg.next(exit.node)) {
            return;
        }
        let root = dawg.root();
        let covering = dawg.covering(exit.node);
        let covers = |known: &Exit| {
            known.tokens <= exit.tokens && known.node != exit.node && covering.has(known.node)
        };
        if row.iter().any(covers) {
            return;
        }
        let covered = dawg.covered(exit.node);
        row.retain(|known| {
            let is_needless =
                known.tokens >= exit.tokens && known.node != exit.node && covered.has(known.node);
            !is_needless || known.node == root
        });
        self.put(pair, exit);
    }

    /// Puts an exit into a row and has it passed on.
    fn put(&mut self, pair: PairId, exit: Exit) {
        let Pair { row, is_tidy, .. } = &mut self.pairs[pair as usize];
        match row.binary_search_by_key(&exit.node, |known| known.node) {
            Ok(at) => row[at] = exit,
            Err(at) => {
                row.insert(at, exit);
                self.bytes += size_of::<Exit>();
            }
        }
        *is_tidy = false;
        let cost = exit.tokens as usize;
        if self.queue.len() <= cost {
            self.queue.resize_with(cost + 1, Default::default);
        }
        let is_pending = exit.node != self.dawg.root();
        self.queue[cost][usize::from(is_pending)].push((pair, exit.node));
        self.lowest = self.lowest.min(cost);
    }

    /// Passes an exit on to all who depend on it, if it still stands.
    fn pass_on(&mut self, pair: PairId, node: NodeId, cost: u32) {
        let Pair { row, .. } = &self.pairs[pair as usize];
        let Ok(at) = row.binary_search_by_key(&node, |exit| exit.node) else { return };
        let exit = row[at];
        if exit.tokens != cost {
            return;
        }
        let Some(exit) = needed(&self.dawg, exit, self.clean[pair as usize]) else { return };
        // Nobody begins to follow while an exit is taken over.
        let followers = std::mem::take(&mut self.pairs[pair as usize].followers);
        for &follower in &followers {
            let (tokens, clean) =
                (exit.tokens + follower.tokens, self.clean[follower.pair as usize]);
            if is_kept(&self.dawg, &Exit { tokens, ..exit }, clean) {
                self.take_over(follower, exit);
            }
        }
        self.relaxations += followers.len() as u64;
        self.pairs[pair as usize].followers = followers;
        for index in 0..self.pairs[pair as usize].counting.len() {
            self.take_over_within(self.pairs[pair as usize].counting[index], exit);
        }
        for index in 0..self.pairs[pair as usize].callers.len() {
            let caller = self.pairs[pair as usize].callers[index];
            self.relaxations += 1;
            self.go_on(caller, exit);
        }
    }
}
