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
use rustc_hash::FxHashSet;

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

/// A disjunction of clauses, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Disjunction(Vec<Clause>);

impl Disjunction {
    pub(super) fn constant(value: bool) -> Self {
        Self(if value { vec![Vec::new()] } else { Vec::new() })
    }

    pub(super) fn literal(literal: Literal) -> Self {
        Self(vec![vec![literal]])
    }

    pub(super) fn is_false(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_true(&self) -> bool {
        self.0.first().is_some_and(Vec::is_empty)
    }

    pub(super) fn clauses(&self) -> impl Iterator<Item = &[Literal]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Whether it holds where `holds` says which atoms do.
    pub(super) fn value(&self, holds: impl Fn(u32) -> bool) -> bool {
        let is_met = |literal: &Literal| holds(literal.atom()) != literal.is_negated();
        self.0.iter().any(|clause| clause.iter().all(is_met))
    }

    /// One of these holds.
    pub(super) fn any<'a>(
        formulas: impl IntoIterator<Item = &'a Disjunction>,
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        let clauses = formulas.into_iter().flat_map(|formula| formula.0.iter().cloned());
        Self::from_clauses(clauses.collect(), bounds)
    }

    /// Both hold.
    pub(super) fn and(&self, other: &Disjunction, bounds: &Bounds<'_>) -> Result<Self> {
        match () {
            () if self.is_true() || other.is_false() => return Ok(other.clone()),
            () if other.is_true() || self.is_false() => return Ok(self.clone()),
            () => {}
        }
        let mut clauses = Vec::new();
        for left in &self.0 {
            for right in &other.0 {
                bounds.budget.spend(2 + left.len() + right.len())?;
                clauses.extend(merged(left, right));
            }
        }
        Self::from_clauses(clauses, bounds)
    }

    /// It does not hold.
    pub(super) fn not(&self, bounds: &Bounds<'_>) -> Result<Self> {
        let mut out = Self::constant(true);
        for clause in &self.0 {
            let negated = clause.iter().map(|literal| vec![literal.negated()]).collect();
            out = out.and(&Self(negated), bounds)?;
        }
        Ok(out)
    }

    /// Drops clauses that contain others.
    fn from_clauses(mut clauses: Vec<Clause>, bounds: &Bounds<'_>) -> Result<Self> {
        bounds.budget.spend(1 + clauses.iter().map(|clause| 1 + clause.len()).sum::<usize>())?;
        clauses.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        clauses.dedup();
        if clauses.first().is_some_and(Vec::is_empty) {
            return Ok(Self::constant(true));
        }
        let mut single: FxHashSet<Literal> = FxHashSet::default();
        let mut first_long = 0;
        let mut kept: Vec<Clause> = Vec::with_capacity(clauses.len());
        for clause in clauses {
            if let [literal] = clause[..] {
                single.insert(literal);
                kept.push(clause);
                first_long = kept.len();
                continue;
            }
            bounds.budget.spend(clause.len() + kept.len() - first_long)?;
            let is_implied = clause.iter().any(|literal| single.contains(literal))
                || kept[first_long..].iter().any(|known| is_within(known, &clause));
            if !is_implied {
                kept.push(clause);
            }
        }
        if single.iter().any(|literal| single.contains(&literal.negated())) {
            return Ok(Self::constant(true));
        }
        Ok(Self(kept))
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
