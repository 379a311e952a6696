//! Pairs of stack sets that are to be shown equal, and what each depends on.

use super::words::{Words, next_classes};
use crate::budget::Halt;
use crate::network::{Identity, Network};
use crate::stacks::{NONE, SetId, Stepper};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A pair of stack sets, by its number.
pub(super) type GoalId = u32;

/// Ways to split a pair.
const SPLITS: usize = 2;
/// The first pair.
pub(super) const ROOT: GoalId = 0;

/// How a pair follows from others.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Derivation {
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
    way: Derivation,
    /// How often it was split in ways that did not hold.
    splits: usize,
    /// The shortest known, and no fewer bytes than it has.
    difference: Option<(Difference, u32)>,
    users: Vec<(GoalId, Use)>,
}

/// What two sets of stacks are made of, one beside the other.
pub(super) struct AlignedPart {
    /// Frames above the rest.
    pub(super) heads: [SetId; 2],
    /// What stands in the place of that rest.
    pub(super) beneath: [SetId; 2],
}

/// All pairs met so far.
pub(super) struct Goals<'n> {
    pub(super) network: &'n Network,
    pub(super) stepper: Stepper<&'n Network>,
    pub(super) words: Words<'n>,
    pub(super) known: FxHashMap<u32, (Identity, u64)>,
    pub(super) looks: FxHashMap<(u32, u32), u64>,
    goals: Vec<Goal>,
    numbers: FxHashMap<(SetId, SetId), GoalId>,
    /// Differences handed on, letters read to try them, and pairs looked over for hiding places.
    pub(super) effort: u64,
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
            known: FxHashMap::default(),
            looks: FxHashMap::default(),
            goals: Vec::new(),
            numbers: FxHashMap::default(),
            effort: 0,
            reopened: Vec::new(),
        };
        out.goal(left, right);
        out
    }

    pub(super) fn len(&self) -> usize {
        self.goals.len()
    }

    pub(super) fn way(&self, goal: GoalId) -> &Derivation {
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
            Derivation::Open | Derivation::Stuck => (&[], 0),
            Derivation::Split(children) => (children, 0),
            Derivation::Step(children) => (children, 1),
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
            if matches!(self.way(goal), Derivation::Open | Derivation::Stuck) {
                open.push((goal, at));
            }
            match self.children(goal) {
                (children, 0) => children.iter().for_each(|&c| queue.push_front((c, at))),
                (children, _) => children.iter().for_each(|&c| queue.push_back((c, at + 1))),
            }
        }
        open
    }

    /// Where a text shorter than `length` that tells the first pair apart can still hide; `None`
    /// where nowhere.
    ///
    /// A pair that is split differs by a text of some length only if its tops do by one that leaves
    /// room for what stands beneath, or the other way round. So a bound from below goes along the
    /// same ways as the differences themselves; a pair not looked at may differ by nothing.
    pub(super) fn hiding_places(&mut self, length: u64) -> Option<Vec<GoalId>> {
        self.effort += self.goals.len() as u64;
        let mut below = vec![u64::MAX; self.goals.len()];
        let mut queue = BinaryHeap::new();
        for (number, goal) in self.goals.iter().enumerate() {
            let least = match (&goal.way, &goal.difference) {
                (Derivation::Open | Derivation::Stuck, _) => 0,
                (Derivation::Step(children), Some(found)) if children.is_empty() => {
                    u64::from(found.1)
                }
                _ => continue,
            };
            queue.push(Reverse((least, number as GoalId, number as GoalId)));
        }
        // For each pair the one by which its bound came about.
        let mut by: Vec<GoalId> = (0..self.goals.len() as GoalId).collect();
        while let Some(Reverse((least, goal, child))) = queue.pop() {
            if below[goal as usize] <= least || least >= length {
                continue;
            }
            below[goal as usize] = least;
            by[goal as usize] = child;
            for index in 0..self.goals[goal as usize].users.len() {
                let (user, how) = self.goals[goal as usize].users[index];
                let room = match (how, &self.goals[user as usize].way) {
                    (Use::After(_), Derivation::Step(_)) => 1,
                    (Use::Tops(a, b) | Use::Beneath(a, b), Derivation::Split(_)) => {
                        let sets = &self.stepper.sets;
                        self.words.length(sets, a).min(self.words.length(sets, b))
                    }
                    _ => continue, // it follows from others by now
                };
                queue.push(Reverse((least.saturating_add(room), user, goal)));
            }
        }
        if below[ROOT as usize] >= length {
            return None;
        }
        let mut at = ROOT;
        let mut split = None;
        loop {
            let goal = &self.goals[at as usize];
            if matches!(goal.way, Derivation::Split(_)) {
                split = Some(at);
            }
            if by[at as usize] == at {
                break;
            }
            at = by[at as usize];
        }
        // What stands around a part may be read in other ways: then byte by byte.
        Some(match (self.way(at), split) {
            (Derivation::Open | Derivation::Stuck, _) => vec![at],
            (_, Some(split)) => {
                self.forbid_split(split);
                vec![split]
            }
            (_, None) => Vec::new(),
        })
    }

    /// From now on the pair does not follow from the parts that it was split into.
    pub(super) fn forbid_split(&mut self, goal: GoalId) {
        let goal = &mut self.goals[goal as usize];
        goal.splits += 1;
        goal.way = Derivation::Open;
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
            way: Derivation::Open,
            splits: 0,
            difference: None,
            users: Vec::new(),
        });
        self.numbers.insert(pair, number);
        Some(number)
    }

    /// Looks at a pair: finds what it follows from, or that it differs.
    ///
    /// Where the bounds do not allow it the pair is stuck, and stays so.
    pub(super) fn look(&mut self, goal: GoalId) -> Result<(), Halt> {
        let Goal { left, right, splits, .. } = self.goals[goal as usize];
        let (left, right) = (self.entered(left)?, self.entered(right)?);
        if left == right {
            self.goals[goal as usize].way = Derivation::Step(Vec::new());
            return Ok(());
        }
        let sets = &self.stepper.sets;
        if sets.has_rest(left) != sets.has_rest(right) {
            self.goals[goal as usize].way = Derivation::Step(Vec::new());
            self.differs(goal, (Difference::Text(Vec::new()), 0));
            return Ok(());
        }
        if left == NONE || right == NONE {
            self.goals[goal as usize].way = Derivation::Step(Vec::new());
            let other = if left == NONE { right } else { left };
            let word = self.words.of_set(&self.stepper.sets, other);
            let word = word.ok_or(Halt::Depth)?;
            let length = word.len() as u32;
            self.differs(goal, (Difference::Text(word), length));
            return Ok(());
        }
        for (times, find) in [Self::aligned, Self::matched].into_iter().enumerate() {
            if splits <= times
                && let Some(parts) = find(self, left, right)?
            {
                self.goals[goal as usize].splits = times;
                self.split(goal, &parts);
                return Ok(());
            }
        }
        self.goals[goal as usize].splits = SPLITS;
        self.step(goal, left, right)
    }

    /// Marks a pair as one that cannot be looked at.
    pub(super) fn give_up(&mut self, goal: GoalId) {
        self.goals[goal as usize].way = Derivation::Stuck;
    }

    fn split(&mut self, goal: GoalId, parts: &[AlignedPart]) {
        let mut children = Vec::new();
        for &AlignedPart { heads: [p, q], beneath: [beneath_p, beneath_q] } in parts {
            let child = self.goal(p, q);
            children.extend(child.map(|child| (child, Use::Tops(beneath_p, beneath_q))));
            let child = self.goal(beneath_p, beneath_q);
            children.extend(child.map(|child| (child, Use::Beneath(p, q))));
        }
        self.goals[goal as usize].way = Derivation::Split(children.iter().map(|c| c.0).collect());
        self.depend(goal, children);
    }

    fn step(&mut self, goal: GoalId, left: SetId, right: SetId) -> Result<(), Halt> {
        let mut children = Vec::new();
        for class in next_classes(self.network, &self.stepper.sets, [left, right]) {
            let after = [left, right].map(|set| self.stepper.step(set, class));
            let child = self.goal(after[0]?, after[1]?);
            children.extend(child.map(|child| (child, Use::After(class))));
        }
        let mut numbers: Vec<GoalId> = children.iter().map(|c| c.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        self.goals[goal as usize].way = Derivation::Step(numbers);
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

    /// A pair differs: so do those that follow from it, perhaps. The shortest differences are handed
    /// on first, so that most are handed on once.
    fn differs(&mut self, goal: GoalId, found: (Difference, u32)) {
        let mut waiting = vec![Some(found)];
        let mut queue = BinaryHeap::from([Reverse((0, 0, goal))]);
        while let Some(Reverse((_, place, goal))) = queue.pop() {
            let Some(found) = waiting[place].take() else { continue };
            let known = &mut self.goals[goal as usize];
            if known.difference.as_ref().is_some_and(|known| known.1 <= found.1) {
                continue;
            }
            known.difference = Some(found);
            for (user, how) in known.users.clone() {
                if let Some(lifted) = self.lifted(user, how, goal) {
                    queue.push(Reverse((lifted.1, waiting.len(), user)));
                    waiting.push(Some(lifted));
                }
            }
        }
    }

    /// How a pair differs where one that it follows from does. It may not: the whole can be equal
    /// though its parts differ. Then, and where the bounds keep it from being tried, it no longer
    /// follows from them.
    fn lifted(&mut self, user: GoalId, how: Use, part: GoalId) -> Option<(Difference, u32)> {
        self.effort += 1;
        let length = self.differs_by(part)?;
        // Nothing is won by a longer text. A pair that is split has none while it is not known to
        // differ, and then this has to be tried.
        if self.differs_by(user).is_some_and(|known| known <= length) {
            return None;
        }
        let contexts: [(Vec<u8>, Vec<u8>); 2] = match how {
            Use::After(class) => {
                return Some((Difference::After(class, part), length.saturating_add(1)));
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
            self.effort += text.len() as u64;
            if let (Ok(ours), Ok(theirs)) = (self.accepts(left, &text), self.accepts(right, &text))
                && ours != theirs
            {
                let length = text.len() as u32;
                return Some((Difference::Text(text), length));
            }
        }
        let goal = &self.goals[user as usize];
        if goal.difference.is_none() && matches!(goal.way, Derivation::Split(_)) {
            self.forbid_split(user);
            self.reopened.push(user);
        }
        None
    }

    /// Whether a set of stacks takes a text.
    pub(super) fn accepts(&mut self, mut set: SetId, text: &[u8]) -> Result<bool, Halt> {
        for &class in text {
            if set == NONE {
                return Ok(false);
            }
            set = self.stepper.step(set, class)?;
        }
        Ok(self.stepper.sets.has_rest(set))
    }
}
