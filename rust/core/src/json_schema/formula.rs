//! Boolean formulas over atoms, each kept once.
//!
//! Design: docs/design/json-schema.md, "Residual formulas".
//!
//! A formula is in negation normal form: conjunctions and disjunctions over atoms and their negations.
//! Equal formulas have equal numbers, so that they can be states, keys of tables and members of sets. An
//! operand stands before what holds it, so every pass is a loop over numbers and nothing recurses.

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::cell::RefCell;
use std::hash::{BuildHasher, Hash};

/// A formula of a [`Formulas`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FormulaId(u32);

impl FormulaId {
    /// What is always true.
    pub(super) const TRUE: FormulaId = FormulaId(0);
    /// What is never true.
    pub(super) const FALSE: FormulaId = FormulaId(1);

    /// The constant of a truth value.
    pub(super) fn of(value: bool) -> Self {
        if value { Self::TRUE } else { Self::FALSE }
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a formula says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Formula {
    /// A constant.
    Constant(bool),
    /// An atom, or its negation where the flag is `false`.
    Literal(u32, bool),
    /// All of these, at least two, in order of their numbers.
    And(Box<[FormulaId]>),
    /// One of these, at least two, in order of their numbers.
    Or(Box<[FormulaId]>),
}

const UNKNOWN: u32 = u32::MAX;

/// Formulas and the atoms in them.
pub(super) struct Formulas<A> {
    atoms: Vec<A>,
    atom_numbers: HashTable<u32>,
    /// The literal of each atom; its negation is the formula behind it.
    literals: Vec<FormulaId>,
    formulas: Vec<Formula>,
    /// The numbers of conjunctions and disjunctions.
    joined: HashTable<u32>,
    negations: Vec<u32>,
    /// For each formula the number of the last walk that met it, and the number of the last walk.
    met: RefCell<(Vec<u32>, u32)>,
}

impl<A: Clone + Eq + Hash> Formulas<A> {
    pub(super) fn new() -> Self {
        let constants = [Formula::Constant(true), Formula::Constant(false)];
        Self {
            atoms: Vec::new(),
            atom_numbers: HashTable::new(),
            literals: Vec::new(),
            joined: HashTable::new(),
            formulas: constants.into(),
            negations: vec![1, 0],
            met: RefCell::default(),
        }
    }

    /// How many formulas there are.
    pub(super) fn len(&self) -> usize {
        self.formulas.len()
    }

    /// What a formula says.
    pub(super) fn get(&self, id: FormulaId) -> &Formula {
        &self.formulas[id.index()]
    }

    /// The atom of a literal.
    pub(super) fn atom(&self, number: u32) -> &A {
        &self.atoms[number as usize]
    }

    /// The literal of an atom.
    pub(super) fn literal(&mut self, atom: A) -> FormulaId {
        let hash = FxBuildHasher.hash_one(&atom);
        let is_it = |&number: &u32| self.atoms[number as usize] == atom;
        if let Some(&number) = self.atom_numbers.find(hash, is_it) {
            return self.of_atom(number);
        }
        let number = self.atoms.len() as u32;
        self.atoms.push(atom);
        let of = |&number: &u32| FxBuildHasher.hash_one(&self.atoms[number as usize]);
        self.atom_numbers.insert_unique(hash, number, of);
        let literal = self.formulas.len() as u32;
        self.formulas.extend([true, false].map(|sign| Formula::Literal(number, sign)));
        self.negations.extend([literal + 1, literal]);
        self.literals.push(FormulaId(literal));
        FormulaId(literal)
    }

    /// The literal of an atom that is known.
    pub(super) fn of_atom(&self, number: u32) -> FormulaId {
        self.literals[number as usize]
    }

    /// The conjunction, or the disjunction, of operands that are in order and say something each.
    fn intern(&mut self, operands: Vec<FormulaId>, all: bool) -> FormulaId {
        let hash = FxBuildHasher.hash_one((all, operands.as_slice()));
        let parts = |number: u32| match &self.formulas[number as usize] {
            Formula::And(parts) => (true, &**parts),
            Formula::Or(parts) => (false, &**parts),
            Formula::Constant(_) | Formula::Literal(..) => (false, Default::default()),
        };
        let is_it = |&number: &u32| parts(number) == (all, operands.as_slice());
        if let Some(&known) = self.joined.find(hash, is_it) {
            return FormulaId(known);
        }
        let number = self.formulas.len() as u32;
        self.joined.insert_unique(hash, number, |&number| FxBuildHasher.hash_one(parts(number)));
        let operands = operands.into_boxed_slice();
        self.formulas.push(if all { Formula::And(operands) } else { Formula::Or(operands) });
        self.negations.push(UNKNOWN);
        FormulaId(number)
    }

    /// All of some formulas.
    pub(super) fn and(&mut self, parts: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        self.join(parts, true)
    }

    /// One of some formulas.
    pub(super) fn or(&mut self, parts: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        self.join(parts, false)
    }

    /// A conjunction, or a disjunction where `all` is `false`: flat, without repeated operands, with
    /// absorption by single operands.
    fn join(&mut self, parts: impl IntoIterator<Item = FormulaId>, all: bool) -> FormulaId {
        let (neutral, zero) = (FormulaId::of(all), FormulaId::of(!all));
        let parts = parts.into_iter();
        let mut operands: Vec<FormulaId> = Vec::with_capacity(parts.size_hint().0);
        for part in parts {
            if part == zero {
                return zero;
            }
            match self.get(part) {
                _ if part == neutral => {}
                Formula::And(inner) if all => operands.extend(inner),
                Formula::Or(inner) if !all => operands.extend(inner),
                _ => operands.push(part),
            }
        }
        match operands.as_slice() {
            [] => return neutral,
            [only] => return *only,
            _ => {}
        }
        operands.sort_unstable();
        operands.dedup();
        let is_held = |id: u32| operands.binary_search(&FormulaId(id)).is_ok();
        // What is joined with its opposite is decided.
        let opposed = operands.iter().any(|id| {
            let opposite = self.negations[id.index()];
            opposite != UNKNOWN && is_held(opposite)
        });
        if opposed {
            return zero;
        }
        // An operand of the other kind that holds one of the operands says nothing more: a and (a or b).
        let inner = |id: FormulaId| match self.get(id) {
            Formula::Or(inner) if all => Some(inner),
            Formula::And(inner) if !all => Some(inner),
            _ => None,
        };
        if operands.iter().any(|&id| inner(id).is_some()) {
            let held: FxHashSet<u32> = operands.iter().map(|id| id.0).collect();
            let absorbed = |id: FormulaId| {
                inner(id).is_some_and(|inner| inner.iter().any(|part| held.contains(&part.0)))
            };
            let kept: Vec<FormulaId> =
                operands.iter().copied().filter(|&id| !absorbed(id)).collect();
            operands = kept;
        }
        if let [only] = operands.as_slice() {
            return *only;
        }
        self.intern(operands, all)
    }

    /// The negation.
    pub(super) fn not(&mut self, id: FormulaId) -> FormulaId {
        let known = self.negations[id.index()];
        if known != UNKNOWN {
            return FormulaId(known);
        }
        // Operands have smaller numbers, so those that are needed are negated in that order.
        let mut needed = Vec::new();
        let mut work = vec![id];
        let mut seen = FxHashSet::default();
        while let Some(id) = work.pop() {
            if self.negations[id.index()] != UNKNOWN || !seen.insert(id) {
                continue;
            }
            needed.push(id);
            if let Formula::And(parts) | Formula::Or(parts) = self.get(id) {
                work.extend(parts);
            }
        }
        needed.sort_unstable();
        for id in needed {
            let (parts, all) = match self.get(id) {
                Formula::And(parts) => (parts.clone(), true),
                Formula::Or(parts) => (parts.clone(), false),
                Formula::Constant(_) | Formula::Literal(..) => continue, // known from the beginning
            };
            let parts: Vec<FormulaId> =
                parts.iter().map(|part| FormulaId(self.negations[part.index()])).collect();
            let negation = self.join(parts, !all);
            self.negations[id.index()] = negation.0;
            if self.negations[negation.index()] == UNKNOWN {
                self.negations[negation.index()] = id.0;
            }
        }
        FormulaId(self.negations[id.index()])
    }

    /// The formulas of which one is made, itself included: operands before what holds them.
    pub(super) fn parts(&self, id: FormulaId) -> Vec<FormulaId> {
        let (Formula::And(operands) | Formula::Or(operands)) = self.get(id) else {
            return vec![id];
        };
        let mut out = Vec::with_capacity(operands.len() + 1);
        if self.are_literals(operands) {
            out.extend(operands);
            out.push(id);
            return out;
        }
        let (met, walk) = &mut *self.met.borrow_mut();
        met.resize(self.formulas.len(), 0);
        *walk += 1;
        let mut is_new = |id: FormulaId| std::mem::replace(&mut met[id.index()], *walk) != *walk;
        out.push(id);
        let mut next = 0;
        while let Some(&id) = out.get(next) {
            next += 1;
            if let Formula::And(operands) | Formula::Or(operands) = self.get(id) {
                out.extend(operands.iter().copied().filter(|&operand| is_new(operand)));
            }
        }
        out.sort_unstable();
        out
    }

    fn are_literals(&self, operands: &[FormulaId]) -> bool {
        operands.iter().all(|&id| matches!(self.get(id), Formula::Literal(..)))
    }

    /// The atoms in a formula, each literal once, in order of the numbers of the atoms.
    pub(super) fn atoms_of(&self, id: FormulaId) -> Vec<(u32, bool)> {
        match self.get(id) {
            Formula::Constant(_) => return Vec::new(),
            &Formula::Literal(atom, sign) => return vec![(atom, sign)],
            Formula::And(_) | Formula::Or(_) => {}
        }
        let parts = self.parts(id);
        let mut out: Vec<(u32, bool)> = Vec::with_capacity(parts.len());
        for part in parts {
            if let Formula::Literal(atom, sign) = self.get(part) {
                out.push((*atom, *sign));
            }
        }
        out.sort_unstable_by_key(|&(atom, sign)| (atom, !sign));
        out
    }

    /// The truth value of a formula under those of its atoms.
    pub(super) fn evaluate(&self, id: FormulaId, holds: &mut impl FnMut(u32, &A) -> bool) -> bool {
        let mut plain = |id: FormulaId| match self.get(id) {
            Formula::Constant(value) => Some(*value),
            &Formula::Literal(atom, sign) => Some(holds(atom, self.atom(atom)) == sign),
            Formula::And(_) | Formula::Or(_) => None,
        };
        // Most formulas are a literal, or some side by side.
        match self.get(id) {
            Formula::And(inner) if self.are_literals(inner) => {
                return inner.iter().all(|&part| plain(part) == Some(true));
            }
            Formula::Or(inner) if self.are_literals(inner) => {
                return inner.iter().any(|&part| plain(part) == Some(true));
            }
            Formula::And(_) | Formula::Or(_) => {}
            Formula::Constant(_) | Formula::Literal(..) => return plain(id) == Some(true),
        }
        let parts = self.parts(id);
        let mut values: Vec<bool> = Vec::with_capacity(parts.len());
        for &part in &parts {
            let of = |part: &FormulaId| parts.binary_search(part).is_ok_and(|at| values[at]);
            let value = match self.get(part) {
                Formula::And(inner) => inner.iter().all(of),
                Formula::Or(inner) => inner.iter().any(of),
                Formula::Constant(_) | Formula::Literal(..) => plain(part) == Some(true),
            };
            values.push(value);
        }
        // The formula itself stands last.
        values.last().is_some_and(|&value| value)
    }

    /// A formula whose literals are replaced, where it is a conjunction or disjunction: `of` says what
    /// became of the operands.
    pub(super) fn rejoined(
        &mut self,
        id: FormulaId,
        of: impl Fn(FormulaId) -> FormulaId,
    ) -> FormulaId {
        let (operands, all) = match self.get(id) {
            Formula::And(operands) => (operands, true),
            Formula::Or(operands) => (operands, false),
            Formula::Constant(_) | Formula::Literal(..) => return id,
        };
        if operands.iter().all(|&operand| of(operand) == operand) {
            return id;
        }
        let operands: Vec<FormulaId> = operands.iter().map(|&operand| of(operand)).collect();
        self.join(operands, all)
    }

    /// The operands of a conjunction; the formula itself where it is none.
    pub(super) fn conjuncts(&self, id: FormulaId) -> Vec<FormulaId> {
        match self.get(id) {
            Formula::Constant(true) => Vec::new(),
            Formula::And(parts) => parts.to_vec(),
            _ => vec![id],
        }
    }

    /// The operands of a disjunction; the formula itself where it is none.
    pub(super) fn disjuncts(&self, id: FormulaId) -> Vec<FormulaId> {
        match self.get(id) {
            Formula::Constant(false) => Vec::new(),
            Formula::Or(parts) => parts.to_vec(),
            _ => vec![id],
        }
    }
}
