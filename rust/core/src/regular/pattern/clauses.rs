//! Formulas: disjunctions of conjunctions of literals.
//!
//! A clause is a set of literals, all of which hold; a formula is a set of clauses, one of which
//! holds. No clause holds a literal and its negation, and none contains another, so there are
//! finitely many formulas over finitely many atoms, and an automaton whose states are formulas is
//! finite. Formulas that say the same may differ; minimization sees to it later.
//!
//! Negation may make exponentially many clauses. All work is counted.

use super::super::Bounds;
use crate::error::Result;

/// Units of work for a clause that takes memory of its own.
const UNITS_PER_CLAUSE: usize = 4;

/// An atom or its negation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Literal(u32);

impl Literal {
    pub(super) fn of(atom: u32) -> Self {
        Self(atom << 1)
    }

    pub(super) fn negated(self) -> Self {
        Self(self.0 ^ 1)
    }

    pub(super) fn atom(self) -> u32 {
        self.0 >> 1
    }

    pub(super) fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Literals in order.
type Clause = Vec<Literal>;

/// A disjunction of clauses. Clauses of one literal, which are most, lie in one list.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Disjunction {
    /// The literals that are clauses by themselves, in order.
    single: Vec<Literal>,
    /// All other clauses, in order. What always holds is the empty clause alone.
    long: Vec<Clause>,
}

impl Disjunction {
    pub(super) fn constant(value: bool) -> Self {
        let long = if value { vec![Vec::new()] } else { Vec::new() };
        Self { single: Vec::new(), long }
    }

    pub(super) fn literal(literal: Literal) -> Self {
        Self { single: vec![literal], long: Vec::new() }
    }

    pub(super) fn is_false(&self) -> bool {
        self.single.is_empty() && self.long.is_empty()
    }

    pub(super) fn is_true(&self) -> bool {
        self.long.first().is_some_and(Vec::is_empty)
    }

    /// The literals that are clauses by themselves.
    pub(super) fn single(&self) -> &[Literal] {
        &self.single
    }

    /// All other clauses.
    pub(super) fn long(&self) -> &[Clause] {
        &self.long
    }

    fn clauses(&self) -> impl Iterator<Item = &[Literal]> {
        let single = self.single.iter().map(std::slice::from_ref);
        single.chain(self.long.iter().map(Vec::as_slice))
    }

    /// Literals and clauses, together.
    fn len(&self) -> usize {
        self.single.len() + self.long.iter().map(|clause| 1 + clause.len()).sum::<usize>()
    }

    /// Whether it holds where `holds` says which atoms do.
    pub(super) fn value(&self, holds: impl Fn(u32) -> bool) -> bool {
        let is_met = |literal: &Literal| holds(literal.atom()) != literal.is_negated();
        self.clauses().any(|clause| clause.iter().all(is_met))
    }

    /// One of these holds.
    pub(super) fn any<'a>(
        formulas: impl IntoIterator<Item = &'a Disjunction>,
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        let (mut single, mut long) = (Vec::new(), Vec::new());
        for formula in formulas {
            bounds.budget.spend(1 + formula.len())?;
            single.extend_from_slice(&formula.single);
            long.extend_from_slice(&formula.long);
        }
        Self::from_clauses(single, long, bounds)
    }

    /// Both hold.
    pub(super) fn and(&self, other: &Disjunction, bounds: &Bounds<'_>) -> Result<Self> {
        match () {
            () if self.is_true() || other.is_false() => {
                bounds.budget.spend(other.len())?;
                return Ok(other.clone());
            }
            () if other.is_true() || self.is_false() => {
                bounds.budget.spend(self.len())?;
                return Ok(self.clone());
            }
            () => {}
        }
        let (mut single, mut long) = (Vec::new(), Vec::new());
        for left in self.clauses() {
            for right in other.clauses() {
                bounds.budget.spend(UNITS_PER_CLAUSE + left.len() + right.len())?;
                match merged(left, right) {
                    Some(clause) if clause.len() == 1 => single.extend(clause),
                    Some(clause) => long.push(clause),
                    None => {}
                }
            }
        }
        Self::from_clauses(single, long, bounds)
    }

    /// It does not hold.
    pub(super) fn not(&self, bounds: &Bounds<'_>) -> Result<Self> {
        bounds.budget.spend(1 + self.single.len())?;
        let mut out = match self.single[..] {
            [] => Self::constant(true),
            [literal] => Self::literal(literal.negated()),
            _ => {
                let negated = self.single.iter().map(|literal| literal.negated());
                Self { single: Vec::new(), long: vec![negated.collect()] }
            }
        };
        for clause in &self.long {
            let negated = clause.iter().map(|literal| literal.negated()).collect();
            out = out.and(&Self { single: negated, long: Vec::new() }, bounds)?;
        }
        Ok(out)
    }

    /// Drops clauses that contain others.
    fn from_clauses(
        mut single: Vec<Literal>,
        mut long: Vec<Clause>,
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        bounds.budget.spend(1 + UNITS_PER_CLAUSE * long.len())?;
        // Both are lists in order, one behind the other, and such a list sorts in little time.
        single.sort();
        single.dedup();
        // A literal and its negation are neighbours.
        if single.windows(2).any(|pair| pair[0].atom() == pair[1].atom()) {
            return Ok(Self::constant(true));
        }
        long.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        long.dedup();
        if long.first().is_some_and(Vec::is_empty) {
            return Ok(Self::constant(true));
        }
        let mut kept: Vec<Clause> = Vec::with_capacity(long.len());
        for clause in long {
            bounds.budget.spend(2 * clause.len() + kept.len())?;
            let is_implied = clause.iter().any(|literal| single.binary_search(literal).is_ok())
                || kept.iter().any(|known| is_within(known, &clause));
            if !is_implied {
                kept.push(clause);
            }
        }
        Ok(Self { single, long: kept })
    }
}

/// The literals of both clauses; `None` where they contradict each other.
fn merged(left: &[Literal], right: &[Literal]) -> Option<Clause> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    out.extend_from_slice(left);
    out.extend_from_slice(right);
    out.sort_unstable();
    out.dedup();
    // A literal and its negation are neighbours.
    let contradicts = out.windows(2).any(|pair| pair[0].atom() == pair[1].atom());
    (!contradicts).then_some(out)
}

/// Whether all of `part` are in `whole`.
fn is_within(part: &[Literal], whole: &[Literal]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|literal| rest.by_ref().any(|other| other == literal))
}
