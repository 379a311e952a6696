//! Moore's minimization, and what can only end one way.

use super::moves::{ACCEPT, NewMoves, REJECT, StackState};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// For each new state the decision, where only acceptance or only refusal can be reached from it.
///
/// A stack has a bottom: going round for ever is not possible.
pub(super) fn one_sided(moves: &[NewMoves]) -> Vec<Option<StackState>> {
    let mut decided = vec![None; moves.len()];
    let mut sources = vec![Vec::new(); moves.len()];
    for (i, row) in moves.iter().enumerate() {
        for &(_, to) in row {
            if let Ok(to) = usize::try_from(-1 - to) {
                sources[to].push(i);
            }
        }
    }
    for side in [REJECT, ACCEPT] {
        let is_other = |&(_, to): &(u32, i64)| to >= 0 && to != i64::from(side);
        let mut waiting: Vec<usize> =
            (0..moves.len()).filter(|&i| moves[i].iter().any(is_other)).collect();
        let mut other = vec![false; moves.len()];
        waiting.iter().for_each(|&i| other[i] = true);
        while let Some(i) = waiting.pop() {
            for &source in &sources[i] {
                if !std::mem::replace(&mut other[source], true) {
                    waiting.push(source);
                }
            }
        }
        for (decided, _) in decided.iter_mut().zip(&other).filter(|(_, other)| !**other) {
            *decided = Some(side);
        }
    }
    decided
}

/// The block of each state, the same for equal states.
///
/// Targets that are not among the states are known to be different from one another and from all
/// of them.
pub(super) fn partition(every: &[(i64, NewMoves)]) -> Vec<u32> {
    let place: HashMap<i64, usize, FxBuildHasher> =
        every.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let mut rows: Vec<Vec<usize>> = Vec::with_capacity(every.len());
    let mut kinds = HashMap::new();
    let mut blocks: Vec<u32> = Vec::with_capacity(every.len());
    for (_, row) in every {
        rows.push(row.iter().filter_map(|(_, to)| place.get(to).copied()).collect());
        // A target inside is told by what is read alone, for now.
        let kind: Vec<(u32, Option<i64>)> = row
            .iter()
            .map(|&(read, to)| (read, (!place.contains_key(&to)).then_some(to)))
            .collect();
        let next = kinds.len() as u32;
        blocks.push(*kinds.entry(kind).or_insert(next));
    }
    let mut count = kinds.len();
    loop {
        let mut names: HashMap<(u32, Vec<u32>), u32, FxBuildHasher> = HashMap::default();
        let following: Vec<u32> = rows
            .iter()
            .zip(&blocks)
            .map(|(row, &block)| {
                let next = names.len() as u32;
                let targets = row.iter().map(|&to| blocks[to]).collect();
                *names.entry((block, targets)).or_insert(next)
            })
            .collect();
        if names.len() == count {
            return blocks;
        }
        count = names.len();
        blocks = following;
    }
}
