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
//! Pairs are made when they are first asked for. What a pair leads to by letters alone is walked at once ([`Walk`]) and
//! has no rows of its own: pairs are made where a token ends, at calls, and where they return to. Changes are worked off
//! by their cost, cheapest first. Only exits that can matter are kept (docs/design/ending-in-time.md, "What may be
//! dropped", has the proofs):
//!
//! - with `n` tokens the frame can be left between two tokens, and whatever the token under way reads beneath can be
//!   read by [`Dawg::tokens`] more: an exit that costs as much is dropped;
//! - so is an exit at a node that another, no dearer, covers;
//! - and one whose rest nobody beneath the rule can begin to read.
//!
//! Exits of one cost are one exit, at the node that goes on with the strings of all of them (`unions`). In a rule that is
//! a large automaton by itself, such as a format, tokens are looked at only where they can make a row better (`nearer`).
//!
//! A state that counts up to a bound far away does what the state without that bound does: it takes over
//! the exits of that state that read no more bytes than passes are left, or finish no more tokens than the
//! rule has left, and is looked at itself only where some read more.

use super::automata::{AutomatonState, ExitLevel, LetterAutomaton};
use super::dawg::{Dawg, NodeId};
use super::exits::{Exit, PairExits, is_kept, needed};
use super::pairs::{Caller, Follower, Links, NO_LINK, Pair, PairId, Unbounded};
use super::strings::UNREACHABLE;
use super::tails::TailCalls;
use super::walk::Walk;
use crate::budget::{Halt, Meter};
use crate::network::{ClassSet, Network, meet};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What waits to be passed on: exits between two tokens, to all; others to followers, and then to callers.
const BETWEEN: usize = 0;
const TO_FOLLOWERS: usize = 1;
const TO_CALLERS: usize = 2;

/// Every so many steps of work the bytes held are looked at.
const LOOKS_AT_BYTES: u32 = if cfg!(test) { 1 } else { 32 };

/// A frame that takes more tokens than this to leave is taken for one that cannot be left.
const MOST_TOKENS: u32 = 1 << 24;

/// The rows of a network, as far as they were asked for.
pub(super) struct Rows {
    pub(super) network: Arc<Network>,
    pub(super) dawg: Dawg,
    /// For each rule the classes that can be read next where it is complete.
    pub(super) follow: Vec<ClassSet>,
    pub(super) pairs: Vec<Pair>,
    followers: Links<Follower>,
    callers: Links<Caller>,
    /// By pair the pairs of states that count, which take over the exits within their bounds; and by these that pair.
    counting: FxHashMap<PairId, Vec<PairId>>,
    unbounded: FxHashMap<PairId, Unbounded>,
    /// For each pair the fewest tokens after which it can be left between two tokens, as far as known.
    pub(super) clean: Vec<u32>,
    numbers: FxHashMap<(u32, NodeId), PairId>,
    /// Pairs that are still to be explored.
    pub(super) fresh: Vec<PairId>,
    /// Exits that are still to be passed on, by their cost: those between two tokens, which bound what
    /// others may cost, before those within one; and these to followers first, so that callers see few changes.
    queue: Vec<[Vec<(PairId, NodeId)>; 3]>,
    /// No cost below has any.
    lowest: usize,
    /// Pairs that missed an exit of those without a bound.
    bounded: Vec<PairId>,
    counts_bytes: bool,
    /// Whether there was room for all sets of members.
    has_room: bool,
    /// Exits passed on so far.
    relaxations: u64,
    /// Steps of work since the bytes held were looked at.
    looks: u32,
    pub(super) walk: Walk,
    /// Nodes that are looked at, and the bytes before them: memory that is used again.
    reached: Vec<(u32, NodeId)>,
    nodes: Vec<NodeId>,
    pub(super) tails: Arc<TailCalls>,
    /// Rules that are one automaton.
    pub(super) automata: Vec<LetterAutomaton>,
    /// By rule the number of its automaton, if it has one.
    pub(super) automaton_of_rule: FxHashMap<u32, Option<usize>>,
    /// Pairs of automata that may need more tokens than were looked at, with their places.
    pub(super) unfinished: Vec<(PairId, AutomatonState, ExitLevel)>,
    pub(super) bytes: usize,
    /// Bytes that all may take.
    pub(super) most_bytes: usize,
}

impl Rows {
    /// Of a network, with what can be read behind each of its rules.
    ///
    /// # Errors
    /// Those of the meter.
    pub(super) fn new(
        network: Arc<Network>,
        dawg: Dawg,
        follow: Vec<ClassSet>,
        meter: &mut Meter,
    ) -> Result<Self, Halt> {
        let tails = Arc::new(TailCalls::of_network(&network, meter)?);
        Ok(Self {
            counts_bytes: network.has_counters(),
            network,
            dawg,
            follow,
            pairs: Vec::new(),
            followers: Links::default(),
            callers: Links::default(),
            counting: FxHashMap::default(),
            unbounded: FxHashMap::default(),
            clean: Vec::new(),
            numbers: FxHashMap::default(),
            fresh: Vec::new(),
            queue: Vec::new(),
            lowest: 0,
            bounded: Vec::new(),
            has_room: true,
            relaxations: 0,
            looks: 0,
            walk: Walk::new(tails.clone()),
            reached: Vec::new(),
            nodes: Vec::new(),
            tails,
            automata: Vec::new(),
            automaton_of_rule: FxHashMap::default(),
            unfinished: Vec::new(),
            bytes: 0,
            most_bytes: usize::MAX,
        })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
            + self.dawg.bytes()
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
        let is_settled = self.fresh.is_empty()
            && self.queue.is_empty()
            && self.bounded.is_empty()
            && self.unfinished.is_empty();
        if !is_settled {
            self.work_off(meter)?;
        }
        Ok(self.pairs[pair as usize].row.tidied(&mut self.dawg))
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
            row: PairExits::default(),
            followers: NO_LINK,
            callers: NO_LINK,
            is_explored: false,
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
            } else if let Some((cost, kind, pair, node)) = self.cheapest() {
                self.pass_on(pair, node, cost, kind);
            } else if let Some(&pair) = self.bounded.last() {
                self.look_again(pair, meter)?;
            } else if !self.unfinished.is_empty() {
                self.go_on_with_last(meter)?;
            } else {
                self.queue.clear();
                self.lowest = 0;
                return Ok(());
            }
            meter.spend(1 + (self.relaxations - before + self.dawg.take_work()) / 4)?;
            self.looks += 1;
            if self.looks >= LOOKS_AT_BYTES {
                self.looks = 0;
                if !self.dawg.fits(self.most_bytes.saturating_sub(self.bytes)) {
                    return Err(Halt::Bytes);
                }
            }
            if !self.has_room || self.network.refused_sets() > 0 {
                return Err(Halt::Sets);
            }
        }
    }

    fn cheapest(&mut self) -> Option<(u32, usize, PairId, NodeId)> {
        while let Some(level) = self.queue.get_mut(self.lowest) {
            let mut kinds = level.iter_mut().enumerate();
            if let Some((kind, (pair, node))) =
                kinds.find_map(|(kind, exits)| Some((kind, exits.pop()?)))
            {
                return Some((self.lowest as u32, kind, pair, node));
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
        let tokens = self.network.tokens_left(state).unwrap_or(u32::MAX);
        self.unbounded.insert(pair, Unbounded { pair: free, bytes: left, tokens });
        self.counting.entry(free).or_default().push(pair);
        self.bytes += 2 * (size_of::<PairId>() + size_of::<Unbounded>() + size_of::<Vec<PairId>>());
        for index in 0..self.pairs[free as usize].row.exits.len() {
            self.take_over_within(pair, self.pairs[free as usize].row.exits[index]);
        }
        Ok(())
    }

    /// Whether a state that counts is to be looked at itself, the last that missed an exit.
    fn look_again(&mut self, pair: PairId, meter: &mut Meter) -> Result<(), Halt> {
        let is_explored = self.pairs[pair as usize].is_explored;
        let is_needed = match self.unbounded.get(&pair).filter(|_| !is_explored) {
            Some(&Unbounded { pair: free, bytes, tokens }) => {
                let Self { dawg, pairs, clean, .. } = self;
                let (row, clean) = (&pairs[free as usize].row, clean[free as usize]);
                let mut kept = row.exits.iter().filter_map(|exit| needed(dawg, *exit, clean));
                kept.any(|exit| exit.bytes > bytes || exit.tokens > tokens)
            }
            None => false,
        };
        if is_needed {
            self.walk(pair, meter)?;
        }
        self.bounded.pop();
        if is_needed {
            self.explore(pair);
        }
        Ok(())
    }

    /// Walks on from a pair.
    pub(super) fn walk(&mut self, pair: PairId, meter: &mut Meter) -> Result<(), Halt> {
        let Pair { state, node, .. } = self.pairs[pair as usize];
        let most_bytes = self.most_bytes.saturating_sub(self.bytes);
        self.walk.from((state, node), None, (&self.network, &mut self.dawg), most_bytes, meter)
    }

    /// Has the row of a pair depend on what was walked from it.
    pub(super) fn explore(&mut self, pair: PairId) {
        let walk = std::mem::take(&mut self.walk);
        self.pairs[pair as usize].is_explored = true;
        let (root, follow) = (self.dawg.root(), *self.follow_of(self.pairs[pair as usize].state));
        let mut reached = std::mem::take(&mut self.reached);
        let mut nodes = std::mem::take(&mut self.nodes);
        self.by_bytes(&mut reached, walk.left.iter().copied());
        for same in reached.chunk_by(|a, b| a.0 == b.0) {
            let bytes = same[0].0;
            nodes.clear();
            nodes.extend(same.iter().map(|left| left.1));
            if nodes.contains(&root) {
                self.add(pair, Exit { node: root, tokens: 0, bytes });
            }
            let dawg = &self.dawg;
            nodes.retain(|&node| {
                node != root && (dawg.is_end(node) || meet(&follow, dawg.next(node)))
            });
            if let Some(node) = self.dawg.union(&mut nodes) {
                self.add(pair, Exit { node, tokens: 0, bytes });
            }
        }
        for &(state, bytes) in &walk.ended {
            let ended = self.pair(state, root);
            if ended != pair {
                self.follow_pair(ended, Follower { pair, tokens: 1, bytes });
            }
        }
        for met in walk.met.chunk_by(|a, b| a.0 == b.0) {
            self.by_bytes(&mut reached, met.iter().map(|met| (met.1, met.2)));
            for same in reached.chunk_by(|a, b| a.0 == b.0) {
                nodes.clear();
                nodes.extend(same.iter().map(|met| met.1));
                let Some(node) = self.dawg.union(&mut nodes) else { continue };
                let leader = self.pair(met[0].0, node);
                self.follow_pair(leader, Follower { pair, tokens: 0, bytes: same[0].0 });
            }
        }
        (self.reached, self.nodes) = (reached, nodes);
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
        self.callers.push(&mut self.pairs[callee as usize].callers, caller);
        self.bytes += size_of::<(Caller, u32)>();
        for index in 0..self.pairs[callee as usize].row.exits.len() {
            let exit = self.pairs[callee as usize].row.exits[index];
            if let Some(exit) = needed(&mut self.dawg, exit, self.clean[callee as usize]) {
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
        let mut node = exit.node;
        if node != self.dawg.root() && !self.network.is_counting(to) {
            // Where a token ends the row of the called rule has an exit between two tokens too.
            if self.network.is_final(to) {
                self.add(pair, Exit { node, tokens, bytes });
            }
            match self.dawg.beginning_with(node, self.network.first_to_end(to)) {
                Some(read) => node = read,
                None => return,
            }
        }
        let after = self.pair(to, node);
        self.follow_pair(after, Follower { pair, tokens, bytes });
    }

    fn follow_pair(&mut self, leader: PairId, follower: Follower) {
        self.followers.push(&mut self.pairs[leader as usize].followers, follower);
        self.bytes += size_of::<(Follower, u32)>();
        self.relaxations += self.pairs[leader as usize].row.exits.len() as u64;
        for index in 0..self.pairs[leader as usize].row.exits.len() {
            let exit = self.pairs[leader as usize].row.exits[index];
            if let Some(exit) = needed(&mut self.dawg, exit, self.clean[leader as usize]) {
                self.take_over(follower, exit);
            }
        }
    }

    fn take_over(&mut self, follower: Follower, exit: Exit) {
        let tokens = exit.tokens.saturating_add(follower.tokens);
        let bytes = exit.bytes.saturating_add(follower.bytes);
        self.add(follower.pair, Exit { tokens, bytes, ..exit });
    }

    /// A pair of a state that counts takes over an exit of the state without a bound.
    fn take_over_within(&mut self, pair: PairId, exit: Exit) {
        self.relaxations += 1;
        match self.unbounded.get(&pair) {
            Some(most) if exit.bytes > most.bytes || exit.tokens > most.tokens => {
                self.bounded.push(pair);
            }
            _ => self.add(pair, exit),
        }
    }

    /// Sorts nodes of a walk by the bytes read before, where these count.
    fn by_bytes(&self, out: &mut Vec<(u32, NodeId)>, reached: impl Iterator<Item = (NodeId, u32)>) {
        out.clear();
        out.extend(reached.map(|(node, bytes)| (if self.counts_bytes { bytes } else { 0 }, node)));
        out.sort_unstable();
    }

    /// The classes that can be read where the rule of a state is complete.
    fn follow_of(&self, state: u32) -> &ClassSet {
        match self.network.is_segment(state) {
            true => &[u64::MAX; 4],
            false => &self.follow[self.network.rule_of(state) as usize],
        }
    }

    /// Adds an exit to a row, if it can matter.
    fn add(&mut self, pair: PairId, mut exit: Exit) {
        if !self.counts_bytes {
            exit.bytes = 0;
        }
        let root = self.dawg.root();
        let clean = self.clean[pair as usize];
        if exit.tokens >= MOST_TOKENS || !is_kept(&self.dawg, &exit, clean) {
            return;
        }
        let held = size_of::<Exit>();
        if exit.node == root {
            if self.pairs[pair as usize].row.put_between(exit) {
                self.bytes += if clean == UNREACHABLE { held } else { 0 };
                self.clean[pair as usize] = exit.tokens;
                self.wait(pair, exit, BETWEEN);
            }
            return;
        }
        // The end of the token is an exit between two tokens, and what nothing beneath reads is none.
        if self.dawg.is_end(exit.node) {
            self.add(pair, Exit { node: root, tokens: exit.tokens + 1, ..exit });
        }
        let Some(exit) = needed(&mut self.dawg, exit, self.clean[pair as usize]) else { return };
        let follow = *self.follow_of(self.pairs[pair as usize].state);
        let Some(node) = self.dawg.beginning_with(exit.node, &follow) else { return };
        let row = &mut self.pairs[pair as usize].row;
        let before = row.exits.len();
        if let Some(exit) = row.put_within(&mut self.dawg, Exit { node, ..exit }) {
            self.bytes = self.bytes + held * row.exits.len() - held * before;
            self.wait(pair, exit, TO_FOLLOWERS);
        }
    }

    /// Has an exit wait until it is passed on.
    fn wait(&mut self, pair: PairId, exit: Exit, kind: usize) {
        let cost = exit.tokens as usize;
        if self.queue.len() <= cost {
            self.queue.resize_with(cost + 1, Default::default);
        }
        self.queue[cost][kind].push((pair, exit.node));
        self.lowest = self.lowest.min(cost);
    }

    /// Passes an exit on to all who depend on it, if it still stands.
    fn pass_on(&mut self, pair: PairId, node: NodeId, cost: u32, kind: usize) {
        let mut row = self.pairs[pair as usize].row.exits.iter().copied();
        let exit = row.find(|exit| exit.node == node && exit.tokens == cost);
        let Some(exit) = exit else { return };
        let Some(exit) = needed(&mut self.dawg, exit, self.clean[pair as usize]) else { return };
        if kind != TO_CALLERS {
            // Nobody begins to follow while an exit is taken over.
            let mut link = self.pairs[pair as usize].followers;
            while let Some((follower, before)) = self.followers.get(link) {
                let tokens = exit.tokens + follower.tokens;
                let clean = self.clean[follower.pair as usize];
                if is_kept(&self.dawg, &Exit { tokens, ..exit }, clean) {
                    self.take_over(follower, exit);
                }
                self.relaxations += 1;
                link = before;
            }
            for index in 0..self.counting.get(&pair).map_or(0, Vec::len) {
                self.take_over_within(self.counting[&pair][index], exit);
            }
        }
        if kind == TO_FOLLOWERS {
            if self.pairs[pair as usize].callers != NO_LINK {
                self.wait(pair, Exit { node, ..exit }, TO_CALLERS);
            }
            return;
        }
        let mut link = self.pairs[pair as usize].callers;
        while let Some((caller, before)) = self.callers.get(link) {
            self.relaxations += 1;
            self.go_on(caller, exit);
            link = before;
        }
    }
}
