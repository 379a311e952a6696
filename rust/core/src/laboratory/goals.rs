//! Pairs of stack sets that are to be shown equal, and what each depends on.

use super::words::{Words, next_classes, stacks_of};
use crate::hash::hash_of;
use crate::network::{BOTTOM, Identities, Identity, Network};
use crate::stacks::{NONE, OverBudget, REST, SetId, Stepper};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A pair of stack sets, by its number.
pub(super) type GoalId = u32;

/// Stacks of more frames are matched by their tops.
const MAX_FRAMES: usize = 1_000;

/// The first pair.
pub(super) const ROOT: GoalId = 0;

/// How a pair follows from others.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Way {
    /// Not looked at.
    Open,
    /// Looked at as far as the bounds go.
    Stuck,
    /// From the tops and what stands beneath them, matched.
    Split(Vec<GoalId>),
    /// From what each byte makes of it.
    Step(Vec<GoalId>),
}

/// What a pair is to one that follows from it.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// What a byte of this class makes of it.
    After(u8),
    /// Tops; beneath them stand these.
    Tops(SetId, SetId),
    /// What stands beneath these, each above the rest.
    Beneath(SetId, SetId),
}

/// A text of one set of a pair and not of the other, as classes.
enum Difference {
    Text(Vec<u8>),
    /// A byte of this class, and then what tells that pair apart.
    After(u8, GoalId),
}

struct Goal {
    left: SetId,
    right: SetId,
    way: Way,
    may_split: bool,
    /// The shortest known, and no fewer bytes than it has.
    difference: Option<(Difference, u32)>,
    users: Vec<(GoalId, Use)>,
}

/// What two sets of stacks are made of, one beside the other.
struct Part {
    /// Frames above the rest.
    heads: [SetId; 2],
    /// What stands in the place of that rest.
    beneath: [SetId; 2],
}

/// All pairs met so far.
pub(super) struct Goals<'n> {
    network: &'n Network,
    pub(super) stepper: Stepper<&'n Network>,
    pub(super) words: Words<'n>,
    identities: Identities,
    known: FxHashMap<u32, (Identity, u64)>,
    looks: FxHashMap<(u32, u32), u64>,
    goals: Vec<Goal>,
    numbers: FxHashMap<(SetId, SetId), GoalId>,
    /// Pairs that are no longer what follows from others, since one of those was refuted.
    pub(super) reopened: Vec<GoalId>,
}

impl<'n> Goals<'n> {
    pub(super) fn new(
        network: &'n Network,
        stepper: Stepper<&'n Network>,
        left: SetId,
        right: SetId,
    ) -> Self {
        let mut out = Self {
            network,
            stepper,
            words: Words::new(network),
            identities: Identities::new(network),
            known: FxHashMap::default(),
            looks: FxHashMap::default(),
            goals: Vec::new(),
            numbers: FxHashMap::default(),
            reopened: Vec::new(),
        };
        out.goal(left, right);
        out
    }

    pub(super) fn len(&self) -> usize {
        self.goals.len()
    }

    pub(super) fn way(&self, goal: GoalId) -> &Way {
        &self.goals[goal as usize].way
    }

    /// The length of the shortest text known to tell a pair apart.
    pub(super) fn differs_by(&self, goal: GoalId) -> Option<u32> {
        self.goals[goal as usize].difference.as_ref().map(|found| found.1)
    }

    /// A text that tells a pair apart, as classes.
    pub(super) fn difference(&self, mut goal: GoalId) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            match &self.goals[goal as usize].difference.as_ref()?.0 {
                Difference::Text(rest) => {
                    text.extend_from_slice(rest);
                    return Some(text);
                }
                Difference::After(class, next) => {
                    text.push(*class);
                    goal = *next;
                }
            }
        }
    }

    /// The pairs from which one follows, and the bytes read on the way to them.
    pub(super) fn children(&self, goal: GoalId) -> (&[GoalId], u32) {
        match &self.goals[goal as usize].way {
            Way::Open | Way::Stuck => (&[], 0),
            Way::Split(children) => (children, 0),
            Way::Step(children) => (children, 1),
        }
    }

    /// The pairs not looked at that the first depends on, with the least number of bytes read on
    /// the way to each, ascending; those that are stuck too.
    pub(super) fn open(&self) -> Vec<(GoalId, u32)> {
        let mut depth = vec![u32::MAX; self.goals.len()];
        let mut open = Vec::new();
        let mut queue = VecDeque::from([(ROOT, 0)]);
        while let Some((goal, at)) = queue.pop_front() {
            if depth[goal as usize] <= at {
                continue;
            }
            depth[goal as usize] = at;
            if matches!(self.way(goal), Way::Open | Way::Stuck) {
                open.push((goal, at));
            }
            match self.children(goal) {
                (children, 0) => children.iter().for_each(|&c| queue.push_front((c, at))),
                (children, _) => children.iter().for_each(|&c| queue.push_back((c, at + 1))),
            }
        }
        open
    }

    /// The pairs within reach that are known to differ and were only split.
    pub(super) fn split_differing(&self, within: u32) -> Vec<GoalId> {
        let mut depth = vec![u32::MAX; self.goals.len()];
        let mut out = Vec::new();
        let mut queue = VecDeque::from([(ROOT, 0)]);
        while let Some((goal, at)) = queue.pop_front() {
            if depth[goal as usize] <= at || at >= within {
                continue;
            }
            depth[goal as usize] = at;
            let differs = self.differs_by(goal).is_some();
            match self.children(goal) {
                (_, 0) if differs && matches!(self.way(goal), Way::Split(_)) => out.push(goal),
                (children, 0) => children.iter().for_each(|&c| queue.push_front((c, at))),
                (children, _) => children.iter().for_each(|&c| queue.push_back((c, at + 1))),
            }
        }
        out
    }

    /// From now on the pair follows only from what each byte makes of it.
    pub(super) fn forbid_split(&mut self, goal: GoalId) {
        let goal = &mut self.goals[goal as usize];
        goal.may_split = false;
        goal.way = Way::Open;
    }

    /// The number of a pair, made when first met; `None` for sets that are the same.
    fn goal(&mut self, left: SetId, right: SetId) -> Option<GoalId> {
        if left == right {
            return None;
        }
        let pair = (left.min(right), left.max(right));
        if let Some(&known) = self.numbers.get(&pair) {
            return Some(known);
        }
        let number = self.goals.len() as GoalId;
        self.goals.push(Goal {
            left: pair.0,
            right: pair.1,
            way: Way::Open,
            may_split: true,
            difference: None,
            users: Vec::new(),
        });
        self.numbers.insert(pair, number);
        Some(number)
    }

    /// Looks at a pair: finds what it follows from, or that it differs.
    ///
    /// Where the bounds do not allow it the pair is stuck, and stays so.
    pub(super) fn look(&mut self, goal: GoalId) -> Result<(), OverBudget> {
        let Goal { left, right, may_split, .. } = self.goals[goal as usize];
        let (left, right) = (self.entered(left)?, self.entered(right)?);
        if left == right {
            self.goals[goal as usize].way = Way::Step(Vec::new());
            return Ok(());
        }
        let sets = &self.stepper.sets;
        if sets.has_rest(left) != sets.has_rest(right) {
            self.goals[goal as usize].way = Way::Step(Vec::new());
            self.differs(goal, (Difference::Text(Vec::new()), 0));
            return Ok(());
        }
        if left == NONE || right == NONE {
            self.goals[goal as usize].way = Way::Step(Vec::new());
            let other = if left == NONE { right } else { left };
            let word = self.words.of_set(&self.stepper.sets, other);
            let word = word.ok_or(OverBudget)?;
            let length = word.len() as u32;
            self.differs(goal, (Difference::Text(word), length));
            return Ok(());
        }
        if may_split {
            let parts = match self.aligned(left, right)? {
                Some(part) => Some(vec![part]),
                None => self.matched(left, right)?,
            };
            if let Some(parts) = parts {
                self.split(goal, &parts);
                return Ok(());
            }
        }
        self.step(goal, left, right)
    }

    /// Marks a pair as one that cannot be looked at.
    pub(super) fn give_up(&mut self, goal: GoalId) {
        self.goals[goal as usize].way = Way::Stuck;
    }

    fn split(&mut self, goal: GoalId, parts: &[Part]) {
        let mut children = Vec::new();
        for &Part { heads: [p, q], beneath: [beneath_p, beneath_q] } in parts {
            let child = self.goal(p, q);
            children.extend(child.map(|child| (child, Use::Tops(beneath_p, beneath_q))));
            let child = self.goal(beneath_p, beneath_q);
            children.extend(child.map(|child| (child, Use::Beneath(p, q))));
        }
        self.goals[goal as usize].way = Way::Split(children.iter().map(|c| c.0).collect());
        self.depend(goal, children);
    }

    fn step(&mut self, goal: GoalId, left: SetId, right: SetId) -> Result<(), OverBudget> {
        let mut children = Vec::new();
        for class in next_classes(self.network, &self.stepper.sets, [left, right]) {
            let after = [left, right].map(|set| self.stepper.step(set, class));
            let child = self.goal(after[0]?, after[1]?);
            children.extend(child.map(|child| (child, Use::After(class))));
        }
        let mut numbers: Vec<GoalId> = children.iter().map(|c| c.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        self.goals[goal as usize].way = Way::Step(numbers);
        self.depend(goal, children);
        Ok(())
    }

    fn depend(&mut self, goal: GoalId, on: Vec<(GoalId, Use)>) {
        for &(child, how) in &on {
            self.goals[child as usize].users.push((goal, how));
        }
        for (child, how) in on {
            if self.differs_by(child).is_some()
                && let Some(found) = self.lifted(goal, how, child)
            {
                self.differs(goal, found);
            }
        }
    }

    /// A pair differs: so do those that follow from it, perhaps.
    fn differs(&mut self, goal: GoalId, found: (Difference, u32)) {
        let mut work = vec![(goal, found)];
        while let Some((goal, found)) = work.pop() {
            let known = &mut self.goals[goal as usize];
            if known.difference.as_ref().is_some_and(|known| known.1 <= found.1) {
                continue;
            }
            known.difference = Some(found);
            for (user, how) in known.users.clone() {
                work.extend(self.lifted(user, how, goal).map(|lifted| (user, lifted)));
            }
        }
    }

    /// How a pair differs where one that it follows from does. It may not: the whole can be equal
    /// though its parts differ. Then, and where the bounds keep it from being tried, it no longer
    /// follows from them.
    fn lifted(&mut self, user: GoalId, how: Use, part: GoalId) -> Option<(Difference, u32)> {
        let contexts: [(Vec<u8>, Vec<u8>); 2] = match how {
            Use::After(class) => {
                let length = self.differs_by(part)?.saturating_add(1);
                return Some((Difference::After(class, part), length));
            }
            Use::Tops(left, right) => {
                let sets = &self.stepper.sets;
                let after = [left, right].map(|set| self.words.of_set(sets, set));
                after.map(|after| (Vec::new(), after.unwrap_or_default()))
            }
            Use::Beneath(left, right) => {
                let sets = &self.stepper.sets;
                let before = [left, right].map(|set| self.words.of_set(sets, set));
                before.map(|before| (before.unwrap_or_default(), Vec::new()))
            }
        };
        let word = self.difference(part)?;
        let Goal { left, right, .. } = self.goals[user as usize];
        for (before, after) in contexts {
            let text = [before, word.clone(), after].concat();
            if let (Ok(ours), Ok(theirs)) = (self.accepts(left, &text), self.accepts(right, &text))
                && ours != theirs
            {
                let length = text.len() as u32;
                return Some((Difference::Text(text), length));
            }
        }
        let goal = &self.goals[user as usize];
        if goal.difference.is_none() && matches!(goal.way, Way::Split(_)) {
            self.forbid_split(user);
            self.reopened.push(user);
        }
        None
    }

    /// Whether a set of stacks takes a text.
    pub(super) fn accepts(&mut self, mut set: SetId, text: &[u8]) -> Result<bool, OverBudget> {
        for &class in text {
            if set == NONE {
                return Ok(false);
            }
            set = self.stepper.step(set, class)?;
        }
        Ok(self.stepper.sets.has_rest(set))
    }

    /// The set in which a state that does nothing but call once is what it calls, above where that
    /// returns to: grammars that divide their rules otherwise then have stacks of one height.
    fn entered(&mut self, set: SetId) -> Result<SetId, OverBudget> {
        let network = self.network;
        let passes = |state: u32| {
            let is_one = !network.is_counting(state) && network.edges(state).is_empty();
            match *network.calls(state) {
                [call] if is_one && !network.is_counting(call.start) => Some(call),
                _ => None,
            }
        };
        let mut set = set;
        loop {
            let entries = stacks_of(&self.stepper.sets, set);
            if !entries.iter().any(|entry| passes(entry.0).is_some()) {
                return Ok(set);
            }
            let sets = &mut self.stepper.sets;
            let mut tops = Vec::new();
            for (state, beneath) in entries {
                let Some(call) = passes(state) else {
                    tops.push((state, beneath));
                    continue;
                };
                let mut under = NONE;
                if network.stays(call.to) {
                    under = sets.add(&[(call.to, beneath)])?;
                }
                if network.is_final(call.to) {
                    under = sets.union(under, beneath)?;
                }
                tops.push((call.start, under));
            }
            let rest = if sets.has_rest(set) { &[REST][..] } else { &[] };
            set = sets.collect(&mut tops, rest)?;
        }
    }

    /// Two single stacks of different heights, the top of the one against several frames of the
    /// other.
    fn aligned(&mut self, left: SetId, right: SetId) -> Result<Option<Part>, OverBudget> {
        let frames = [left, right].map(|set| self.frames(set));
        let [Some(ours), Some(theirs)] = frames else { return Ok(None) };
        if ours.len() == theirs.len() || ours.len().min(theirs.len()) < 2 {
            return Ok(None);
        }
        let below = ours.len().min(theirs.len()) - 1;
        let mut heads = [REST; 2];
        let mut beneath = [REST; 2];
        for (side, frames) in [ours, theirs].into_iter().enumerate() {
            let (above, rest) = frames.split_at(frames.len() - below);
            beneath[side] = rest[0].1;
            for &(state, _) in above.iter().rev() {
                heads[side] = self.stepper.sets.add(&[(state, heads[side])])?;
            }
        }
        Ok(Some(Part { heads, beneath }))
    }

    /// The frames of a set of one stack, the top first, each with the set that it is the top of;
    /// `None` for other sets, and for stacks too high to be worth it.
    fn frames(&self, set: SetId) -> Option<Vec<(u32, SetId)>> {
        let mut out = Vec::new();
        let mut at = set;
        while at != REST {
            let &[(state, beneath)] = self.stepper.sets.list(at) else { return None };
            if out.len() == MAX_FRAMES || state == BOTTOM {
                return None;
            }
            out.push((state, at));
            at = beneath;
        }
        Some(out)
    }

    /// The stacks of two sets, matched one to one where they seem to do the same; `None` where the
    /// sets have other numbers of stacks, or nothing would be won.
    fn matched(&mut self, left: SetId, right: SetId) -> Result<Option<Vec<Part>>, OverBudget> {
        let mut ours = stacks_of(&self.stepper.sets, left);
        let mut theirs = stacks_of(&self.stepper.sets, right);
        if ours.len() != theirs.len() {
            return Ok(None);
        }
        for entries in [&mut ours, &mut theirs] {
            entries.sort_by_cached_key(|entry| {
                let (identity, look) = self.identity(entry.0);
                (look, identity, entry.0)
            });
        }
        // Those with the same digest first: they do the same, whatever stands around them.
        let mut same: FxHashMap<Identity, VecDeque<usize>> = FxHashMap::default();
        for (place, entry) in theirs.iter().enumerate() {
            same.entry(self.identity(entry.0).0).or_default().push_back(place);
        }
        let mut is_taken = vec![false; theirs.len()];
        let mut partner = vec![None; ours.len()];
        for (entry, partner) in ours.iter().zip(&mut partner) {
            let places = same.get_mut(&self.identity(entry.0).0);
            if let Some(place) = places.and_then(VecDeque::pop_front) {
                is_taken[place] = true;
                *partner = Some(place);
            }
        }
        let mut free = (0..theirs.len()).filter(|&place| !is_taken[place]);
        let mut parts = Vec::new();
        for ((p, beneath_p), partner) in ours.iter().copied().zip(partner) {
            let Some(place) = partner.or_else(|| free.next()) else { return Ok(None) };
            let (q, beneath_q) = theirs[place];
            if (beneath_p == REST) != (beneath_q == REST) {
                return Ok(None);
            }
            // Equal digests: the same, and no pair to look at.
            let q = if self.identity(p).0 == self.identity(q).0 { p } else { q };
            let sets = &mut self.stepper.sets;
            let heads = [sets.add(&[(p, REST)])?, sets.add(&[(q, REST)])?];
            parts.push(Part { heads, beneath: [beneath_p, beneath_q] });
        }
        let is_atom = |part: &Part| part.beneath == [REST; 2];
        let wins = parts.len() > 1 || !parts.iter().all(is_atom);
        Ok(wins.then_some(parts))
    }

    /// The digest of a state, and what it looks like from outside: equal for states that differ
    /// only in what is more than two edges away.
    fn identity(&mut self, state: u32) -> (Identity, u64) {
        if let Some(&known) = self.known.get(&state) {
            return known;
        }
        let made = (self.identities.of(self.network, state), self.look_of(state, 2));
        self.known.insert(state, made);
        made
    }

    /// A hash of what a state does within so many edges.
    fn look_of(&mut self, state: u32, depth: u32) -> u64 {
        if let Some(&known) = self.looks.get(&(state, depth)) {
            return known;
        }
        let network = self.network;
        let here = (network.is_final(state), *network.first(state), network.is_counting(state));
        let (mut edges, mut calls) = (Vec::new(), Vec::new());
        if depth > 0 && !network.is_counting(state) {
            for &(class, to) in network.edges(state) {
                edges.push((class, self.look_of(to, depth - 1)));
            }
            for call in network.calls(state).iter() {
                calls.push((self.look_of(call.start, depth - 1), self.look_of(call.to, depth - 1)));
            }
            calls.sort_unstable();
        }
        let made = hash_of(&(here, edges, calls));
        self.looks.insert((state, depth), made);
        made
    }
}
