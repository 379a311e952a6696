//! What is left of objects whose members no condition joins: the names that are due, each with its value, and then
//! other names. Equal tails of different alternatives are one, so a union costs what its alternatives do not share.

use super::unjoined::Unjoined;
use crate::json_schema::atoms::{NameId, ValueId};
use crate::json_schema::formula::FormulaId;
use rustc_hash::FxHashMap;

/// What is left of an object; tails are named by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Tail {
    Name(TailName),
    /// No name; whether the object may end.
    End(bool),
    /// Other names, of the classes that are asked of them under a number, as a formula says.
    Others(u32, FormulaId),
}

/// A name that is due.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TailName {
    pub(super) name: NameId,
    /// The value of the member; none where no object has it.
    pub(super) value: Option<ValueId>,
    pub(super) is_required: bool,
    /// The tail behind it.
    pub(super) next: u32,
    /// How many names are left, this one included.
    pub(super) left: u32,
}

/// The tails that were met.
#[derive(Default)]
pub(super) struct Tails {
    all: Vec<Tail>,
    numbers: FxHashMap<Tail, u32>,
}

impl Tails {
    pub(super) fn get(&self, number: u32) -> Tail {
        self.all[number as usize]
    }

    pub(super) fn intern(&mut self, tail: Tail) -> u32 {
        *self.numbers.entry(tail).or_insert_with(|| {
            self.all.push(tail);
            self.all.len() as u32 - 1
        })
    }

    /// What is left of an object before some names, behind which `end` is left.
    pub(super) fn of(&mut self, object: &Unjoined, names: &[NameId], end: Tail) -> u32 {
        let mut next = self.intern(end);
        for (left, (&name, &value)) in (1..).zip(names.iter().zip(&object.values).rev()) {
            let is_required = object.requires(name);
            next = self.intern(Tail::Name(TailName { name, value, is_required, next, left }));
        }
        next
    }
}
