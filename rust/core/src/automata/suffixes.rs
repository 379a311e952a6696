//! Equivalent states of a deterministic automaton without cycles, but for states that lead to
//! themselves: most rules of most grammars. States are looked at after all that they lead to, and
//! each is equivalent to one met before exactly when its edges lead to the same classes: one pass,
//! where refinement needs many tables.

use super::{Automaton, Letter};
use crate::hash::hash_of;
use hashbrown::HashTable;

/// Not looked at yet.
const UNSEEN: u32 = u32::MAX;
/// On the way: what leads here closes a cycle.
const OPEN: u32 = u32::MAX - 1;

/// For each state its class, and how many classes there are; `None` where there are cycles of more
/// than one state.
pub(super) fn classes(automaton: &Automaton) -> Option<(Vec<u32>, usize)> {
    let mut out = Suffixes {
        automaton,
        class_of: vec![UNSEEN; automaton.len()],
        members: Vec::new(),
        table: HashTable::with_capacity(automaton.len()),
        key: Vec::new(),
    };
    // Each state with the edge to follow next.
    let mut path: Vec<(u32, usize)> = vec![(0, 0)];
    out.class_of[0] = OPEN;
    while let Some((state, edge)) = path.last_mut() {
        let Some(&(_, target)) = automaton.edges(*state).get(*edge) else {
            out.close(*state);
            path.pop();
            continue;
        };
        *edge += 1;
        if target == *state {
            continue;
        }
        match out.class_of[target as usize] {
            UNSEEN => {
                out.class_of[target as usize] = OPEN;
                path.push((target, 0));
            }
            OPEN => return None,
            _ => {}
        }
    }
    Some((out.class_of, out.members.len()))
}

struct Suffixes<'a> {
    automaton: &'a Automaton,
    class_of: Vec<u32>,
    /// The first state of each class.
    members: Vec<u32>,
    /// Classes with the hash under which they stand.
    table: HashTable<(u64, u32)>,
    key: Vec<(Letter, u32)>,
}

impl Suffixes<'_> {
    /// The edges of a state, by letter and class; those to itself lead to `own`.
    fn edges(&self, state: u32, own: u32) -> impl Iterator<Item = (Letter, u32)> + '_ {
        let class = move |target: u32| match target == state {
            true => own,
            false => self.class_of[target as usize],
        };
        self.automaton.edges(state).iter().map(move |&(letter, target)| (letter, class(target)))
    }

    /// Whether a state is of a class, which it then is for its edges to itself.
    fn is_of(&self, state: u32, class: u32) -> bool {
        let member = self.members[class as usize];
        self.automaton.is_final(state) == self.automaton.is_final(member)
            && self.automaton.edges(state).len() == self.automaton.edges(member).len()
            && self.edges(state, class).eq(self.edges(member, class))
    }

    fn hash(&mut self, state: u32, own: u32) -> u64 {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend(self.edges(state, own));
        let hash = hash_of(&(self.automaton.is_final(state), &key));
        self.key = key;
        hash
    }

    /// Finds the class of a state whose targets have theirs.
    fn close(&mut self, state: u32) {
        let loops = self.automaton.edges(state).iter().any(|edge| edge.1 == state);
        // One that leads to itself may do what a state does that it leads to.
        let beside = loops.then(|| {
            let mut classes = self.edges(state, OPEN).map(|edge| edge.1);
            classes.find(|&class| class != OPEN && self.is_of(state, class))
        });
        // Edges of a state to itself are hashed as such; other states that do the same lead to its
        // class instead.
        let hash = self.hash(state, OPEN);
        let known = beside.flatten().or_else(|| {
            let same = |&(other, class): &(u64, u32)| other == hash && self.is_of(state, class);
            self.table.find(hash, same).map(|found| found.1)
        });
        let class = known.unwrap_or(self.members.len() as u32);
        self.class_of[state as usize] = class;
        if known.is_some() {
            return;
        }
        self.members.push(state);
        self.table.insert_unique(hash, (hash, class), |entry| entry.0);
        if loops {
            let hash = self.hash(state, class);
            self.table.insert_unique(hash, (hash, class), |entry| entry.0);
        }
    }
}
