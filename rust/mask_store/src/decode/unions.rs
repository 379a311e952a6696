//! Rows that a part of the stack has not decided yet, all of a group at once.
//!
//! A union is what remains of the rows after reading a part of the stack: the tokens that are
//! allowed already, and for each state of the minimal automaton the tokens that it decides. Unions
//! are made when a stack first asks for them and kept, so a text that comes by again takes one
//! look-up for each state read.

use super::super::parser::{ACCEPT, REJECT, StackAutomaton, StackState};
use super::token_sets::{Gathered, NO_TOKENS, TokenSet, TokenSets};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The number of a union.
pub(super) type UnionId = u32;

/// States of the automaton with the tokens that they decide, ascending.
type Pending = Arc<[(StackState, TokenSet)]>;

#[derive(Clone, Debug)]
struct TokenUnion {
    allowed: TokenSet,
    pending: Pending,
}

/// Unions as they are met.
#[derive(Clone, Debug)]
pub(super) struct Unions {
    pub(super) tokens: TokenSets,
    unions: Vec<TokenUnion>,
    known: HashMap<(TokenSet, Pending), UnionId, FxBuildHasher>,
    following: HashMap<(UnionId, u32), UnionId, FxBuildHasher>,
    joined: HashMap<Box<[TokenSet]>, TokenSet, FxBuildHasher>,
}

/// A union in the making.
pub(super) struct Gathering {
    pub(super) words: usize,
    allowed: Gathered,
    pending: HashMap<StackState, Gathered, FxBuildHasher>,
}

impl Gathering {
    /// Where the tokens of a state go; none for those that are refused.
    pub(super) fn of(&mut self, state: StackState) -> Option<&mut Gathered> {
        match state {
            ACCEPT => Some(&mut self.allowed),
            REJECT => None,
            state => Some(self.pending.entry(state).or_default()),
        }
    }
}

impl Unions {
    /// Unions over so many tokens.
    pub(super) fn new(size: usize) -> Self {
        Self {
            tokens: TokenSets::new(size),
            unions: Vec::new(),
            known: HashMap::default(),
            following: HashMap::default(),
            joined: HashMap::default(),
        }
    }

    pub(super) fn gather(&self) -> Gathering {
        // What is allowed is asked for by its bits.
        let buffer = self.tokens.buffer();
        let words = buffer.len();
        Gathering { words, allowed: Gathered::with_bits(buffer), pending: HashMap::default() }
    }

    /// The union that was gathered; what is allowed already need not be decided.
    pub(super) fn finish(&mut self, gathering: Gathering) -> UnionId {
        let Gathering { allowed, pending, .. } = gathering;
        let mut left = Vec::with_capacity(pending.len());
        for (state, mut tokens) in pending {
            tokens.remove(&allowed);
            let set = self.tokens.intern(tokens);
            if set != NO_TOKENS {
                left.push((state, set));
            }
        }
        left.sort_unstable();
        let allowed = self.tokens.intern(allowed);
        self.intern(allowed, left.into())
    }

    fn intern(&mut self, allowed: TokenSet, pending: Pending) -> UnionId {
        let next = self.unions.len() as UnionId;
        let id = *self.known.entry((allowed, pending.clone())).or_insert(next);
        if id == next {
            self.unions.push(TokenUnion { allowed, pending });
        }
        id
    }

    /// The union of one set of tokens that a state decides.
    pub(super) fn single(&mut self, decides: StackState, tokens: TokenSet) -> UnionId {
        match decides {
            ACCEPT => self.intern(tokens, Arc::from([])),
            REJECT => self.intern(NO_TOKENS, Arc::from([])),
            state => self.intern(NO_TOKENS, Arc::from([(state, tokens)])),
        }
    }

    /// Walks down a stack, the state below the top first, until nothing is left to decide.
    ///
    /// Returns the tokens that are allowed, and how many states were read.
    pub(super) fn decided(
        &mut self,
        mut union: UnionId,
        below: impl Iterator<Item = u32>,
        automaton: &StackAutomaton,
    ) -> (TokenSet, usize) {
        let mut read = 0;
        let mut below = below;
        loop {
            let current = &self.unions[union as usize];
            if current.pending.is_empty() {
                return (current.allowed, read);
            }
            // What no state of the stack has decided at its bottom is not accepted.
            let Some(state) = below.next() else { return (current.allowed, read) };
            read += 1;
            union = match self.following.get(&(union, state)) {
                Some(&known) => known,
                None => {
                    let made = self.below(union, state, automaton);
                    self.following.insert((union, state), made);
                    made
                }
            };
        }
    }

    /// The union after reading one more state of the stack.
    fn below(&mut self, union: UnionId, state: u32, automaton: &StackAutomaton) -> UnionId {
        let TokenUnion { allowed, pending } = self.unions[union as usize].clone();
        let mut left: Vec<(StackState, TokenSet)> = Vec::with_capacity(pending.len());
        let mut accepted: Vec<TokenSet> = Vec::new();
        for &(from, set) in pending.iter() {
            match automaton.step(from, state) {
                ACCEPT => accepted.push(set),
                REJECT => {}
                to => left.push((to, set)),
            }
        }
        left.sort_unstable();
        left.dedup();
        let is_simple = accepted.is_empty() && left.windows(2).all(|w| w[0].0 != w[1].0);
        if is_simple {
            return self.intern(allowed, left.into());
        }
        let mut gathering = self.gather();
        self.tokens.add_to(allowed, &mut gathering.allowed);
        for set in accepted {
            self.tokens.add_to(set, &mut gathering.allowed);
        }
        for (to, set) in left {
            if let Some(tokens) = gathering.of(to) {
                self.tokens.add_to(set, tokens);
            }
        }
        self.finish(gathering)
    }

    /// The tokens that are in any of some sets.
    pub(super) fn all_of(&mut self, mut sets: Vec<TokenSet>) -> TokenSet {
        sets.sort_unstable();
        sets.dedup();
        match sets[..] {
            [] => return NO_TOKENS,
            [only] | [NO_TOKENS, only] => return only,
            _ => {}
        }
        if let Some(&known) = self.joined.get(&sets[..]) {
            return known;
        }
        let mut all = Gathered::default();
        sets.iter().for_each(|&set| self.tokens.add_to(set, &mut all));
        let made = self.tokens.intern(all);
        self.joined.insert(sets.into(), made);
        made
    }

    /// Bytes held, about.
    pub(super) fn bytes(&self) -> usize {
        self.tokens.bytes()
            + self.unions.len() * 200
            + self.following.len() * 24
            + self.joined.len() * 64
    }

    pub(super) fn len(&self) -> usize {
        self.unions.len()
    }
}
