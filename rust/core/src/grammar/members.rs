//! Members in any order, for classes of tokens: what tells members apart where guards are left out.

use super::{ByteAutomaton, Expr, Grammar, Guard};
use crate::ids::{ExprId, RuleId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A set of bytes.
type ByteSet = [u64; 4];

const ALL: ByteSet = [u64::MAX; 4];

fn of_bytes(bytes: &[u8]) -> ByteSet {
    bytes.iter().fold([0; 4], |mut set, &byte| {
        set[usize::from(byte) / 64] |= 1 << (byte % 64);
        set
    })
}

fn union(one: &ByteSet, other: &ByteSet) -> ByteSet {
    std::array::from_fn(|word| one[word] | other[word])
}

fn intersection(one: &ByteSet, other: &ByteSet) -> ByteSet {
    std::array::from_fn(|word| one[word] & other[word])
}

impl Grammar {
    /// An automaton with guards on members without its guards: each call that adds a member leads to a state of its
    /// own; and these states, each with the member.
    pub(crate) fn with_member_states(
        &self,
        automaton: &ByteAutomaton,
    ) -> (ByteAutomaton, Vec<(u32, u32)>) {
        let added: FxHashMap<RuleId, u32> = automaton
            .guards
            .iter()
            .filter_map(|(rule, guard)| match guard {
                Guard::Adds(member) => Some((*rule, *member)),
                Guard::Needs(_) | Guard::Unique(_) => None,
            })
            .collect();
        let mut finals = automaton.finals.to_vec();
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut copies = Vec::new();
        let mut parts = automaton.parts.to_vec();
        for part in &mut parts {
            let Expr::Rule(rule) = self.expr(part.1) else { continue };
            let Some(&member) = added.get(rule) else { continue };
            part.2 = *numbers.entry((part.2, member)).or_insert_with(|| {
                finals.push(finals[part.2 as usize]);
                copies.push((part.2, member));
                finals.len() as u32 - 1
            });
        }
        let first = automaton.finals.len() as u32;
        let mut leaving: FxHashMap<u32, Vec<(ExprId, u32)>> = FxHashMap::default();
        for &(from, part, to) in &parts {
            leaving.entry(from).or_default().push((part, to));
        }
        for (number, (state, _)) in (first..).zip(&copies) {
            let leaving = leaving.get(state).into_iter().flatten();
            parts.extend(leaving.map(|&(part, to)| (number, part, to)));
        }
        parts.sort_unstable_by_key(|&(from, part, to)| (part, from, to));
        let (finals, parts) = (finals.into(), parts.into());
        let out = ByteAutomaton { finals, parts, guards: Box::default(), ..automaton.clone() };
        (out, (first..).zip(copies).map(|(number, (_, member))| (number, member)).collect())
    }

    /// If members come in any order, the bytes of tokens that change the members that were read in a way of which
    /// their stacks may say nothing: sets of which such a token has one as a whole. Of JSON these are the quotation
    /// mark and the colon, which every member has, and the braces, which end one object and begin another.
    pub(crate) fn bytes_of_members(&self) -> Vec<Vec<u8>> {
        let is_member = |guard: &Guard| !matches!(guard, Guard::Unique(_));
        let of_objects = self.exprs.iter().filter_map(|expr| match expr {
            Expr::Automaton(automaton) => Some(automaton),
            _ => None,
        });
        let of_objects =
            of_objects.filter(|all| all.guards.iter().any(|guard| is_member(&guard.1)));
        let (mut members, mut first, mut last) = (Vec::new(), Vec::new(), Vec::new());
        let mut edges = ALL;
        for automaton in of_objects {
            let adds = automaton.guards.iter().filter(|guard| matches!(guard.1, Guard::Adds(_)));
            members.extend(adds.map(|(rule, _)| self.rule(*rule).body));
            for &(from, part, to) in automaton.parts.iter() {
                let body = match self.expr(part) {
                    Expr::Rule(rule) => self.rule(*rule).body,
                    _ => part,
                };
                first.extend((from == automaton.start).then_some(body));
                last.extend(automaton.finals[to as usize].then_some(body));
            }
            // What begins or ends with bytes of its own has no rules for that.
            for &(from, .., to) in automaton.bytes_in_full().iter() {
                if from == automaton.start || automaton.finals[to as usize] {
                    edges = [0; 4];
                }
            }
        }
        if members.is_empty() {
            return Vec::new();
        }
        let between = union(&self.bytes_of_all(&first), &self.bytes_of_all(&last));
        [self.bytes_of_all(&members), intersection(&between, &edges)].map(bytes_of).into()
    }

    /// Bytes that every text of some expressions has. Rules that they name are not looked into.
    fn bytes_of_all(&self, exprs: &[ExprId]) -> ByteSet {
        let mut reached: FxHashSet<ExprId> = FxHashSet::default();
        let mut work = exprs.to_vec();
        while let Some(id) = work.pop() {
            if !reached.insert(id) {
                continue;
            }
            match self.expr(id) {
                Expr::Sequence(parts) | Expr::Choice(parts) => work.extend(parts.iter()),
                Expr::Repeat { body, .. } => work.push(*body),
                Expr::Automaton(automaton) => {
                    work.extend(automaton.parts.iter().map(|part| part.1))
                }
                _ => {}
            }
        }
        // Children come first.
        let mut order: Vec<ExprId> = reached.into_iter().collect();
        order.sort_unstable_by_key(|id| id.index());
        let mut known: FxHashMap<ExprId, ByteSet> = FxHashMap::default();
        for id in order {
            let of = |part: &ExprId| known.get(part).copied().unwrap_or_default();
            let bytes = match self.expr(id) {
                Expr::Literal(bytes) => of_bytes(bytes),
                Expr::Sequence(parts) => {
                    parts.iter().fold([0; 4], |all, part| union(&all, &of(part)))
                }
                Expr::Choice(parts) => {
                    parts.iter().fold(ALL, |all, part| intersection(&all, &of(part)))
                }
                Expr::Repeat { body, min, .. } if *min > 0 => of(body),
                Expr::Automaton(automaton) => bytes_of_automaton(automaton, of),
                _ => [0; 4],
            };
            known.insert(id, bytes);
        }
        exprs.iter().fold(ALL, |all, body| intersection(&all, &known[body]))
    }
}

/// The bytes of a set.
fn bytes_of(set: ByteSet) -> Vec<u8> {
    (0..=255).filter(|&byte| set[usize::from(byte) / 64] >> (byte % 64) & 1 == 1).collect()
}

/// The bytes that every text of an automaton has, given those of its parts: the greatest solution, from all bytes
/// downwards.
fn bytes_of_automaton(automaton: &ByteAutomaton, of: impl Fn(&ExprId) -> ByteSet) -> ByteSet {
    let mut edges: Vec<Vec<(ByteSet, u32)>> = vec![Vec::new(); automaton.finals.len()];
    for &(from, first, last, to) in automaton.bytes_in_full().iter() {
        let bytes = if first == last { of_bytes(&[first]) } else { [0; 4] };
        edges[from as usize].push((bytes, to));
    }
    for (from, part, to) in &automaton.parts {
        edges[*from as usize].push((of(part), *to));
    }
    let mut known = vec![ALL; edges.len()];
    known[automaton.start as usize] = [0; 4];
    let mut work = vec![automaton.start];
    while let Some(state) = work.pop() {
        let before = known[state as usize];
        for (bytes, to) in &edges[state as usize] {
            let after = intersection(&known[*to as usize], &union(&before, bytes));
            if after != known[*to as usize] {
                known[*to as usize] = after;
                work.push(*to);
            }
        }
    }
    let finals = known.iter().zip(&automaton.finals).filter(|(_, is_final)| **is_final);
    finals.fold(ALL, |all, (bytes, _)| intersection(&all, bytes))
}
