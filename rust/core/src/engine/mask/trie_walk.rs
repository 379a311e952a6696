//! Walks of the trie: what a question does from some of its nodes.
//!
//! A walk is depth-first and keeps the stacks after each node, above a rest that it does not know. Where a set of
//! stacks stays as it is under all bytes below a node, or one of its stacks does, all entries there are accepted at
//! once.
//!
//! A token may cross the ends of terminals and rules. Within the frame that is asked about, its calls and returns are
//! steps of the stacks. Where a token goes on past the end of that frame, the walk records the node in
//! [`Found::popped`]; the mask then asks the frame beneath from those nodes on (`answers.rs`, `stack_queries.rs`).
//!
//! Files: [`roots`] finds where a walk begins, [`entries`] the stacks behind each entry, [`runs`] what is read as a
//! whole, [`repeat_counts`] what a counted repetition does for all numbers of passes, [`likeness`] questions that have
//! the answer of another.

mod entries;
mod likeness;
mod repeat_counts;
mod roots;
mod runs;

use crate::budget::{Halt, Interrupt};
use crate::engine::history::copy_set;
use crate::engine::mask::follow::{self, Upper};
use crate::engine::mask::found::{Found, NODES_OF_WORK, class_at};
use crate::engine::mask::pending::PendingId;
use crate::engine::mask::query::{ALONE, NOTHING, OWN, Question};
use crate::engine::mask::transition_cache::{COLD, HotSets, UNKNOWN};
use crate::engine::stop::Stop;
use crate::network::{Adjacency, ClassSet, Network};
use crate::stacks::{Entry, LABEL, NONE, REST, SetId, StackSets, Stepper};
use crate::vocabulary::{Groups, Trie};
use repeat_counts::Tally;
use roots::{Roots, Siblings};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Trie nodes between two looks at the clock, less one.
const CHECK_MASK: u64 = 4_095;
/// Roots of a walk between two looks at the interrupt.
const ROOTS_BETWEEN_CHECKS: usize = 64;
/// Of a set that was not looked at for frames that count.
const UNSEEN: (u32, SetId) = (0, NONE);
/// Tables of fewer bytes are not worth dropping.
const LEAST_CLEARED: usize = 1 << 20;

/// One walk over a part of the trie.
#[derive(Clone, Copy)]
struct SubtreeWalk<'a> {
    /// The stacks to begin with.
    start: SetId,
    /// Their only frame, where its delegated calls are left out.
    own: Option<u32>,
    /// Whether the frame counts.
    counts: bool,
    /// Nothing is said of nodes at most so many bytes deep.
    near: u32,
    interrupt: &'a Interrupt,
}

/// What one answer may cost, and whom it asks whether to go on.
#[derive(Clone, Copy)]
pub(in crate::engine) struct WalkBounds<'a> {
    /// What [`Descent::spent`] may not pass.
    pub(in crate::engine) limit: u64,
    pub(in crate::engine) max_bytes: usize,
    /// Bytes of the tables of a descent.
    pub(in crate::engine) max_tables: usize,
    pub(in crate::engine) interrupt: &'a Interrupt,
}

/// Walks over one trie, with what they remember of stacks.
pub(in crate::engine) struct Descent {
    network: Arc<Network>,
    trie: Arc<Trie>,
    /// Stack sets above an unknown rest, and what bytes do to them.
    stepper: Stepper<Arc<Network>>,
    /// What a byte makes of frames without the calls that they delegate.
    own_steps: FxHashMap<(u32, u8), SetId>,
    /// For each set the one with frames that do not count in the places of those that do, and for how many
    /// bytes it does the same.
    uncounted: Vec<(u32, SetId)>,
    hot: HotSets,
    /// What repetitions do after any number of passes, by what they repeat and what is beneath;
    /// `None` where that cannot be told.
    tallies: FxHashMap<(u32, u32), Option<Tally>>,
    /// For sets that were looked at for runs, where most groups of bytes lead, and which do.
    leads: FxHashMap<SetId, (SetId, Groups)>,
    /// Searches for what all sets read that a set leads to (`runs`): those in vain, less those with success.
    in_vain: u32,
    /// Trie nodes that were entered since one of them was forgotten.
    since_vain: u64,
    /// For entries that were looked at for loops, the groups of bytes that lead back to them.
    kept: FxHashMap<Entry, Groups>,
    /// Children of sets of nodes that were asked about, by letter; and their bytes.
    roots: FxHashMap<PendingId, Arc<Roots>>,
    roots_bytes: usize,
    /// For sets that are no lists the classes that their tops read, or more.
    reads: FxHashMap<SetId, ClassSet>,
    /// What may follow at most, once that was asked for.
    upper: Option<Upper>,
    /// Whether the trie is that of a whole vocabulary: what loops then take in whole is worth
    /// finding out.
    is_whole: bool,
    /// Work done outside of the stepper.
    pub(in crate::engine) work: u64,
    /// Trie nodes entered.
    pub(in crate::engine) trie_nodes: u64,
    /// The age of the memo that it serves.
    pub(in crate::engine) age: u64,
    /// Bytes held when they were last counted.
    pub(in crate::engine) noted_bytes: usize,
    /// Room that is used again and again.
    path: Vec<Level>,
}

/// A node on the way of a walk, by what is yet to be looked at below it.
struct Level {
    children: Siblings,
    /// The stacks there, and their table.
    set: SetId,
    hot: u16,
}

impl Descent {
    pub(in crate::engine) fn new(
        network: Arc<Network>,
        trie: Arc<Trie>,
        is_whole: bool,
        age: u64,
    ) -> Self {
        let network = network.fresh();
        let mut stepper = Stepper::new(network.clone());
        stepper.sets.max_depth = u32::MAX;
        Self {
            network,
            trie,
            stepper,
            own_steps: FxHashMap::default(),
            uncounted: Vec::new(),
            hot: HotSets::default(),
            tallies: FxHashMap::default(),
            leads: FxHashMap::default(),
            in_vain: 0,
            since_vain: 0,
            kept: FxHashMap::default(),
            roots: FxHashMap::default(),
            roots_bytes: 0,
            upper: None,
            reads: FxHashMap::default(),
            is_whole,
            work: 0,
            trie_nodes: 0,
            age,
            noted_bytes: 0,
            path: Vec::new(),
        }
    }

    /// The network, with the states of the sets that it met.
    pub(in crate::engine) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Bytes held.
    pub(in crate::engine) fn bytes(&self) -> usize {
        self.stepper.bytes()
            + self.network.set_bytes()
            + self.own_steps.capacity() * 13
            + self.uncounted.capacity() * 8
            + self.hot.bytes()
            + self.tally_bytes()
            + self.leads.capacity() * 25
            + self.kept.capacity() * 17
            + self.reads.capacity() * 37
            + self.roots_bytes
            + self.upper.as_ref().map_or(0, Upper::bytes)
    }

    /// Work done.
    pub(in crate::engine) fn spent(&self) -> u64 {
        self.stepper.sets.meter.spent() + self.work
    }

    /// Begins a walk: lets the stepper work up to what is left.
    fn allow(&mut self, bounds: WalkBounds<'_>) {
        let left = bounds.limit.saturating_sub(self.spent());
        self.stepper.sets.meter.allow(left, bounds.interrupt);
        self.stepper.sets.max_bytes = bounds.max_tables;
        self.hot.make_room();
        self.forget_searches();
    }

    /// Ends a mask: nothing holds on to its interrupt.
    pub(in crate::engine) fn release(&mut self) {
        self.stepper.sets.meter.release();
    }

    /// Drops the tables of stack sets; false where there is next to nothing to drop. What repetitions
    /// do stays: it does not belong to the sets.
    pub(in crate::engine) fn clear(&mut self) -> bool {
        if self.bytes() - self.tally_bytes() < LEAST_CLEARED {
            return false;
        }
        self.work = self.spent();
        self.network = self.network.fresh();
        self.stepper = Stepper::new(self.network.clone());
        self.stepper.sets.max_depth = u32::MAX;
        self.own_steps = FxHashMap::default();
        self.uncounted = Vec::new();
        self.hot = HotSets::default();
        self.leads = FxHashMap::default();
        self.kept = FxHashMap::default();
        self.roots = FxHashMap::default();
        self.roots_bytes = 0;
        self.reads = FxHashMap::default();
        self.upper = None;
        true
    }

    /// The stacks of a question, and its frame where that leaves its delegated calls out.
    fn start(&mut self, question: Question) -> Result<(SetId, Option<u32>), Halt> {
        let beneath = match question.under {
            ALONE | OWN | NOTHING => REST,
            state => self.stepper.sets.add(&[(state, REST)])?,
        };
        let start = self.stepper.sets.add(&[(question.frame, beneath)])?;
        Ok((start, (question.under == OWN).then_some(question.frame)))
    }

    fn first_step(&mut self, start: SetId, own: Option<u32>, class: u8) -> Result<SetId, Halt> {
        match own {
            Some(frame) => self.own_step(frame, class),
            None => self.stepper.step(start, class),
        }
    }

    /// Walks the trie below each of some nodes, a set with a number, with the question's frames alone on
    /// the stack. Nothing is said of nodes at most `near` bytes deep.
    pub(in crate::engine) fn walk_all(
        &mut self,
        question: Question,
        (roots, pending): (&[u32], PendingId),
        near: u32,
        bounds: WalkBounds<'_>,
        found: &mut Found,
    ) -> Result<(), Stop> {
        self.allow(bounds);
        let (start, own) = self.start(question)?;
        let counts = self.network.is_counting(question.frame) && question.under != NOTHING;
        let walk = SubtreeWalk { start, own, counts, near, interrupt: bounds.interrupt };
        // Most roots have few nodes below: a look at the clock for each would take as long.
        let mut looked = self.trie_nodes;
        for (number, places) in
            self.beginnings(question.frame, roots, pending).into_iter().enumerate()
        {
            if self.spent() > bounds.limit {
                return Err(Stop::Work);
            }
            if number.is_multiple_of(ROOTS_BETWEEN_CHECKS) || self.trie_nodes - looked > CHECK_MASK
            {
                looked = self.trie_nodes;
                bounds.interrupt.check()?;
            }
            self.walk(places, walk, found)?;
        }
        Ok(())
    }

    /// Walks some of the trie by what may follow at most, without stacks.
    pub(in crate::engine) fn bound(
        &mut self,
        adjacency: &Arc<Adjacency>,
        asked: follow::Asked<'_>,
        bounds: WalkBounds<'_>,
        found: &mut Found,
    ) -> Result<Option<Vec<u32>>, Stop> {
        let work = bounds.limit.saturating_sub(self.spent());
        let network = &self.network;
        let upper =
            self.upper.get_or_insert_with(|| Upper::new(network.clone(), adjacency.clone()));
        let before = upper.spent();
        let walked = upper.walk(&self.trie, asked, (work, bounds.interrupt), found);
        self.work += upper.spent() - before;
        walked
    }

    /// Those of some nodes, which are sorted, to which the stacks of a text lead. They are over the same
    /// network.
    pub(in crate::engine) fn read_nodes(
        &mut self,
        (sets, set): (&StackSets, SetId),
        nodes: &[u32],
        bounds: WalkBounds<'_>,
        mut read: impl FnMut(u32),
    ) -> Result<(), Stop> {
        self.allow(bounds);
        let start = copy_set(sets, set, &mut self.stepper.sets)?;
        let (trie, network) = (self.trie.clone(), self.network.clone());
        let (alphabet, parents) = (network.alphabet(), trie.parents());
        // The nodes that lead to the last one, with the sets after them.
        let mut path: Vec<(u32, SetId)> = Vec::new();
        let mut between = Vec::new();
        for &target in nodes {
            while path.last().is_some_and(|last| trie.end(last.0) <= target) {
                path.pop();
            }
            let mut node = target;
            while path.last().is_none_or(|last| last.0 != node) && parents[node as usize] != node {
                between.push(node);
                node = parents[node as usize];
            }
            if path.is_empty() {
                path.push((node, start));
            }
            let mut set = path[path.len() - 1].1;
            self.trie_nodes += between.len() as u64;
            self.work += 1;
            while let Some(node) = between.pop() {
                if set != NONE {
                    set = self.stepper.step(set, class_at(alphabet, &trie, node))?;
                }
                path.push((node, set));
            }
            if set != NONE {
                read(target);
            }
        }
        Ok(())
    }

    /// Walks children of one node, by their places, with all that is below them.
    fn walk(
        &mut self,
        places: Range<u32>,
        walk: SubtreeWalk<'_>,
        found: &mut Found,
    ) -> Result<(), Stop> {
        let SubtreeWalk { start, own, counts, near, interrupt } = walk;
        let trie = self.trie.clone();
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let hot = if own.is_some() { COLD } else { self.hot.meet(start, alphabet.len()) };
        path.push(Level { children: self.siblings(places, start, near > 0), set: start, hot });
        let mut entered = 0u64;
        while let Some(level) = path.last_mut() {
            let Some(node) = level.children.next(&trie, alphabet) else {
                path.pop();
                continue;
            };
            let (before, hot) = (level.set, level.hot);
            let depth = path.len() as u32;
            let end = trie.end(node);
            if near > 0 && trie.is_shallow(node, near) {
                continue;
            }
            entered += 1;
            if entered & CHECK_MASK == 0 {
                interrupt.check()?;
            }
            let class = class_at(alphabet, &trie, node);
            let set = match (own, depth) {
                (Some(frame), 1) => self.own_step(frame, class)?,
                _ => self.step(before, hot, class)?,
            };
            let is_said = depth > near;
            if near > 0 && depth == near {
                found.walked.push(node + 1..end);
            }
            if set == NONE {
                continue;
            }
            if is_said {
                found.accept(trie.entries_of(node..node + 1));
            }
            if end == node + 1 {
                continue;
            }
            let left = trie.longest_below(node).saturating_sub(depth);
            let set = self.uncounted(set, left)?;
            let hot = self.hot.meet(set, alphabet.len());
            // Where all that is below is accepted, it is no matter whether the frame was popped; but
            // one that counts is the base of others, which accept less.
            let may_skip = self.is_whole
                && hot != COLD
                && is_said
                && !(counts && self.stepper.sets.has_rest(set));
            if may_skip && self.reads_all(set, hot, trie.groups_below(node), left)? {
                found.accept(trie.entries_of(node + 1..end));
                continue;
            }
            if is_said && self.stepper.sets.has_rest(set) {
                found.popped.push(node);
            }
            if set == REST {
                continue;
            }
            let children = self.siblings(trie.places(node), set, near > depth);
            path.push(Level { children, set, hot });
        }
        self.path = path;
        self.work += entered / NODES_OF_WORK;
        self.trie_nodes += entered;
        self.hot.count_nodes(entered);
        self.since_vain += entered;
        Ok(())
    }

    #[inline]
    fn step(&mut self, set: SetId, hot: u16, class: u8) -> Result<SetId, Halt> {
        if hot == COLD {
            return self.stepper.step(set, class);
        }
        match self.hot.next(hot, class) {
            UNKNOWN => {
                let next = self.stepper.step(set, class)?;
                self.hot.remember(hot, class, next);
                Ok(next)
            }
            next => Ok(next),
        }
    }

    /// A set that does with so many bytes what `set` does, if there is one in which nothing counts:
    /// the inside of a string of bounded length is then a loop as well.
    #[inline]
    fn uncounted(&mut self, set: SetId, bytes: u32) -> Result<SetId, Halt> {
        if !self.network.has_counters() {
            return Ok(set);
        }
        let (enough, uncounted) = match self.uncounted.get(set as usize) {
            Some(&known) if known != UNSEEN => known,
            _ => {
                let mut enough = u32::MAX;
                let mut entries = self.stepper.sets.entries(set);
                for (top, _) in entries.iter_mut().filter(|entry| entry.0 < LABEL) {
                    if let Some((base, bytes)) = self.network.base(*top) {
                        enough = enough.min(bytes);
                        *top = base;
                    }
                }
                let made = match enough {
                    u32::MAX => set,
                    _ => self.stepper.sets.collect(&mut entries, &[])?,
                };
                let place = set as usize;
                if self.uncounted.len() <= place {
                    self.uncounted.resize(place + 1 + place / 2, UNSEEN);
                }
                self.uncounted[place] = (enough, made);
                (enough, made)
            }
        };
        Ok(if bytes <= enough { uncounted } else { set })
    }

    fn own_step(&mut self, frame: u32, class: u8) -> Result<SetId, Halt> {
        if let Some(&known) = self.own_steps.get(&(frame, class)) {
            return Ok(known);
        }
        let made = self.stepper.own_step(frame, class)?;
        self.own_steps.insert((frame, class), made);
        Ok(made)
    }
}
