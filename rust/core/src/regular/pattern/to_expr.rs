//! Expressions of a grammar, in which counts stay counts.
//!
//! What stands at an edge of the pattern must say what may stand beyond it. A part is therefore
//! written for what its two sides are: inside of the pattern, where `^` and `$` need an automaton;
//! at an end of the text; or open, where anything may stand beyond unless an anchor says otherwise.

use super::super::{Bounds, CharSet};
use super::Pattern;
use super::syntax::{Assertion, CharSetId, PatternNode, PatternNodeId, PatternTree};
use crate::error::{Position, Result};
use crate::grammar::{Expr, GrammarBuilder};
use crate::ids::ExprId;
use rustc_hash::FxHashMap;

/// What is on one side of a part.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Neighbor {
    /// Another part.
    Inside,
    /// The end of the text.
    Closed,
    /// Anything, unless the part says otherwise.
    Open,
}

/// A part, and what is on its two sides.
type PartWithNeighbors = (PatternNodeId, Neighbor, Neighbor);

struct ExprWriter<'a, 'b> {
    tree: &'a PatternTree,
    builder: &'a mut GrammarBuilder,
    character: &'a mut dyn FnMut(&mut GrammarBuilder, &CharSet) -> ExprId,
    bounds: &'a Bounds<'b>,
    written: FxHashMap<PartWithNeighbors, ExprId>,
    sets: FxHashMap<CharSetId, ExprId>,
    anything: Option<ExprId>,
    empty: Option<ExprId>,
}

/// What is to be written before a part can be, or the part itself.
enum WritingStep {
    Written(ExprId),
    Needs(Vec<PartWithNeighbors>),
    /// An automaton has to say it.
    Inexpressible,
}

impl Pattern {
    /// The same as an expression, counts kept as counts; `character` adds one character of a set.
    /// `None` where only an automaton says it: lookaround, anchors inside, `\b` in what repeats, sets
    /// without a character. Expressions may have been added even then.
    ///
    /// # Errors
    /// What ends the work.
    pub fn to_expr(
        &self,
        builder: &mut GrammarBuilder,
        character: &mut dyn FnMut(&mut GrammarBuilder, &CharSet) -> ExprId,
        search: bool,
        bounds: &Bounds<'_>,
    ) -> Result<Option<ExprId>> {
        if self.tree.sets.iter().any(CharSet::is_empty) {
            return Ok(None);
        }
        let (written, sets) = (FxHashMap::default(), FxHashMap::default());
        let without_boundaries = self.tree_without_boundaries(search);
        let tree = without_boundaries.as_ref().unwrap_or(&self.tree);
        let (anything, empty) = (None, None);
        let mut writer =
            ExprWriter { tree, builder, character, bounds, written, sets, anything, empty };
        let side = if search { Neighbor::Open } else { Neighbor::Closed };
        writer.write((tree.root(), side, side))
    }
}

impl ExprWriter<'_, '_> {
    fn write(&mut self, whole: PartWithNeighbors) -> Result<Option<ExprId>> {
        let mut stack = vec![whole];
        while let Some(&placed) = stack.last() {
            if self.written.contains_key(&placed) {
                stack.pop();
                continue;
            }
            match self.step(placed)? {
                WritingStep::Written(expr) => {
                    self.written.insert(placed, expr);
                    stack.pop();
                }
                WritingStep::Needs(parts) => stack.extend(parts),
                WritingStep::Inexpressible => return Ok(None),
            }
        }
        Ok(self.written.get(&whole).copied())
    }

    fn add(&mut self, expr: Expr) -> ExprId {
        self.builder.add(expr, Position::default())
    }

    fn empty(&mut self) -> ExprId {
        if let Some(known) = self.empty {
            return known;
        }
        let expr = self.add(Expr::Empty);
        self.empty = Some(expr);
        expr
    }

    fn anything(&mut self) -> ExprId {
        if let Some(known) = self.anything {
            return known;
        }
        let body = (self.character)(self.builder, &CharSet::scalar_values());
        let expr = self.add(Expr::Repeat { body, min: 0, max: None });
        self.anything = Some(expr);
        expr
    }

    fn sequence(&mut self, mut parts: Vec<ExprId>) -> ExprId {
        if let Some(empty) = self.empty {
            parts.retain(|&part| part != empty);
        }
        match parts[..] {
            [] => self.empty(),
            [part] => part,
            _ => self.add(Expr::Sequence(parts.into())),
        }
    }

    /// A part that asserts nothing, with what may stand beside it.
    fn beside(&mut self, left: Neighbor, part: ExprId, right: Neighbor) -> ExprId {
        let mut parts = Vec::with_capacity(3);
        if left == Neighbor::Open {
            parts.push(self.anything());
        }
        parts.push(part);
        if right == Neighbor::Open {
            parts.push(self.anything());
        }
        self.sequence(parts)
    }

    fn step(&mut self, (id, left, right): PartWithNeighbors) -> Result<WritingStep> {
        self.bounds.budget.spend(1)?;
        Ok(WritingStep::Written(match self.tree.node(id) {
            PatternNode::Empty => {
                // Anything, twice, is anything.
                let is_open = [left, right].contains(&Neighbor::Open);
                if is_open { self.anything() } else { self.empty() }
            }
            &PatternNode::Set(set) => {
                let part = match self.sets.get(&set) {
                    Some(&known) => known,
                    None => {
                        let part = (self.character)(self.builder, self.tree.set(set));
                        self.sets.insert(set, part);
                        part
                    }
                };
                self.beside(left, part, right)
            }
            PatternNode::Sequence(parts) => return self.sequence_step(parts, left, right),
            PatternNode::Choice(parts) => {
                let placed = parts.iter().map(|&part| (part, left, right)).collect();
                let parts = match self.all_of(placed)? {
                    Ok(parts) => parts,
                    Err(needs) => return Ok(needs),
                };
                self.add(Expr::Choice(parts.into()))
            }
            &PatternNode::Repeat { body, min, max } => {
                return self.repeat_step(body, (min, max), left, right);
            }
            PatternNode::Assert(Assertion::Start) if left != Neighbor::Inside => {
                if right == Neighbor::Open { self.anything() } else { self.empty() }
            }
            PatternNode::Assert(Assertion::End) if right != Neighbor::Inside => {
                if left == Neighbor::Open { self.anything() } else { self.empty() }
            }
            PatternNode::Assert(Assertion::EndOrLastNewline) if right == Neighbor::Closed => {
                if left == Neighbor::Open { self.anything() } else { self.empty() }
            }
            PatternNode::Assert(Assertion::EndOrLastNewline) if right == Neighbor::Open => {
                let newline = (self.character)(self.builder, &CharSet::single(10));
                let newline = self.add(Expr::Repeat { body: newline, min: 0, max: Some(1) });
                self.beside(left, newline, Neighbor::Closed)
            }
            PatternNode::Assert(_) | PatternNode::Look { .. } => {
                return Ok(WritingStep::Inexpressible);
            }
        }))
    }

    /// The parts, or what has to be written before.
    fn all_of(
        &mut self,
        placed: Vec<PartWithNeighbors>,
    ) -> Result<std::result::Result<Vec<ExprId>, WritingStep>> {
        self.bounds.budget.spend(placed.len())?;
        let missing: Vec<PartWithNeighbors> =
            placed.iter().copied().filter(|part| !self.written.contains_key(part)).collect();
        if !missing.is_empty() {
            return Ok(Err(WritingStep::Needs(missing)));
        }
        Ok(Ok(placed.iter().map(|part| self.written[part]).collect()))
    }

    fn sequence_step(
        &mut self,
        parts: &[PatternNodeId],
        left: Neighbor,
        right: Neighbor,
    ) -> Result<WritingStep> {
        // Behind anchors of the start the text still starts, before anchors of the end it ends.
        let is = |part: PatternNodeId, anchor: Assertion| {
            *self.tree.node(part) == PatternNode::Assert(anchor)
        };
        let starts = parts.iter().take_while(|&&part| is(part, Assertion::Start)).count();
        let ends = parts.iter().rev().take_while(|&&part| is(part, Assertion::End)).count();
        let last = parts.len() - 1;
        let placed = parts.iter().enumerate().map(|(place, &part)| {
            let left = match place {
                0 => left,
                _ if place <= starts && left != Neighbor::Inside => Neighbor::Closed,
                _ => Neighbor::Inside,
            };
            let right = match last - place {
                0 => right,
                behind if behind <= ends && right != Neighbor::Inside => Neighbor::Closed,
                _ => Neighbor::Inside,
            };
            (part, left, right)
        });
        match self.all_of(placed.collect())? {
            Ok(parts) => Ok(WritingStep::Written(self.sequence(parts))),
            Err(needs) => Ok(needs),
        }
    }

    fn repeat_step(
        &mut self,
        body: PatternNodeId,
        (min, max): (u32, Option<u32>),
        left: Neighbor,
        right: Neighbor,
    ) -> Result<WritingStep> {
        if (min, max) == (0, Some(1)) && [left, right] != [Neighbor::Inside; 2] {
            // It is there, and may have anchors at its edges, or it is not.
            return Ok(match self.all_of(vec![(body, left, right)])? {
                Err(needs) => needs,
                Ok(parts) => {
                    let nothing = self.empty();
                    let nothing = self.beside(left, nothing, right);
                    WritingStep::Written(self.add(Expr::Choice([parts[0], nothing].into())))
                }
            });
        }
        Ok(match self.all_of(vec![(body, Neighbor::Inside, Neighbor::Inside)])? {
            Err(needs) => needs,
            Ok(parts) => {
                let part = self.add(Expr::Repeat { body: parts[0], min, max });
                WritingStep::Written(self.beside(left, part, right))
            }
        })
    }
}
