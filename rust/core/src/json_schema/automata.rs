//! Automata over the members of objects and over the items of arrays.

use super::atoms::{Alternative, ArrayId, LanguageId, OrderId, SchemaId, ValueId};
use crate::grammar::UniqueItems;
use crate::regular::Dfa;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Names that a formula does not mention and that are alike to it.
#[derive(Clone, Debug)]
pub(super) struct NameClass {
    /// The names, where they are of so many characters.
    pub(super) names: Dfa,
    /// How many at least, and at most, where that is not a matter of the automaton.
    pub(super) lengths: (u32, Option<u32>),
    /// The number of the regular expressions that they are, where they are such.
    pub(super) expression: Option<u32>,
    /// The patterns that match them.
    pub(super) matches: FxHashMap<LanguageId, bool>,
    /// The schemas of `propertyNames` that hold of them.
    pub(super) satisfies: FxHashMap<SchemaId, bool>,
}

/// A member that may come in a state.
#[derive(Clone, Debug)]
pub(super) struct MemberEdge {
    /// The known name, by its place in the order; or a class of other names.
    pub(super) name: MemberName,
    pub(super) value: ValueId,
    pub(super) to: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum MemberName {
    Known(u32),
    Other(u32),
}

/// What is left of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectState {
    /// A number that is greater in the states to go on as where nothing is read.
    pub(super) place: u64,
    /// Members that may come next.
    pub(super) members: Vec<MemberEdge>,
    /// The states to go on as where the known name that is due is absent, and for each alternative where
    /// these go apart.
    pub(super) absent: Vec<u32>,
    /// Whether the object may end here.
    pub(super) is_final: bool,
}

/// The members of objects that satisfy a formula.
#[derive(Clone, Debug)]
pub(super) struct ObjectAutomaton {
    /// The alternatives that it has.
    pub(super) alternatives: Rc<[Alternative]>,
    /// The known names of all of them.
    pub(super) order: OrderId,
    pub(super) states: Rc<Vec<ObjectState>>,
    pub(super) classes: Vec<Rc<NameClass>>,
    /// Where the states do not say which names were read: for each the names that are required, by their
    /// places in the order. Then no name comes twice, and an object ends once these were read.
    pub(super) required: Option<Rc<Vec<Rc<[u32]>>>>,
}

/// What is left of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayState {
    /// Items that may come next, and the states behind them.
    pub(super) items: Vec<(ValueId, u32)>,
    /// Whether the array may end here.
    pub(super) is_final: bool,
    /// Where one item follows the other from here on, and leads back here: between so many and so many of
    /// them, counted and not written out.
    pub(super) counted: Option<(u32, Option<u32>)>,
}

/// The items of arrays that satisfy a formula.
#[derive(Clone, Debug)]
pub(super) enum ArrayAutomaton {
    /// The first items have conditions of their own, all others one; there are between so many and so
    /// many items.
    Plain { prefix: Vec<ValueId>, rest: Option<ValueId>, least: u32, most: Option<u32> },
    /// Each of some values at most once, in any order, between so many and so many of them: what a
    /// schema says whose `uniqueItems` is said by the set of the items that were read.
    Distinct { schema: SchemaId, items: Vec<ValueId>, least: u32, most: Option<u32> },
    /// As another says, with no two items that are equal.
    Unique { schema: SchemaId, inner: ArrayId, items: UniqueItems },
    /// Whatever follows from each state.
    States(Vec<ArrayState>),
    /// What one of some says, none of which is a choice of others.
    Either(Rc<[ArrayId]>),
}
