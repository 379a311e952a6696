//! Strongly connected components of a directed graph.

use std::convert::Infallible;

/// Components: lists of nodes, one after the other in one list.
#[derive(Debug, Default)]
pub(crate) struct Components {
    nodes: Vec<usize>,
    ends: Vec<usize>,
}

impl Components {
    /// Each component, its nodes ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[usize]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&from, &to)| &self.nodes[from..to])
    }

    /// All nodes, component by component.
    pub(crate) fn nodes(&self) -> &[usize] {
        &self.nodes
    }
}

/// The components of a directed graph over `0..n`, each a list of nodes; a component stands
/// before those that lead to it (callees first). Iterative (Tarjan), so depth costs no stack.
pub(crate) fn components(n: usize, successors: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let look = |_| Ok::<_, Infallible>(());
    let Ok(out) = components_within(n, look, |node| Ok(successors(node)));
    out.iter().map(<[usize]>::to_vec).collect()
}

/// [`components`] under a `look` that may refuse, for example because the work is cancelled; it
/// gets the number of steps since it was called last.
pub(crate) fn components_within<E>(
    n: usize,
    look: impl Fn(usize) -> Result<(), E>,
    mut successors: impl FnMut(usize) -> Result<Vec<usize>, E>,
) -> Result<Components, E> {
    const UNSEEN: u32 = u32::MAX;
    let mut index = vec![UNSEEN; n];
    let mut low = vec![0u32; n];
    let mut on_stack = vec![false; n];
    let mut stack = Vec::new();
    let mut out = Components { nodes: Vec::with_capacity(n), ends: Vec::with_capacity(n) };
    let mut counter = 0;
    let mut frames: Vec<(usize, Vec<usize>, usize)> = Vec::new();
    for root in 0..n {
        if index[root] != UNSEEN {
            continue;
        }
        frames.push((root, successors(root)?, 0));
        index[root] = counter;
        low[root] = counter;
        counter += 1;
        stack.push(root);
        on_stack[root] = true;
        while let Some((node, next, position)) = frames.last_mut() {
            let node = *node;
            look(1)?;
            if let Some(&child) = next.get(*position) {
                *position += 1;
                if index[child] == UNSEEN {
                    index[child] = counter;
                    low[child] = counter;
                    counter += 1;
                    stack.push(child);
                    on_stack[child] = true;
                    frames.push((child, successors(child)?, 0));
                } else if on_stack[child] {
                    low[node] = low[node].min(index[child]);
                }
                continue;
            }
            frames.pop();
            if let Some((parent, ..)) = frames.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
            if low[node] == index[node] {
                let from = out.nodes.len();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    out.nodes.push(member);
                    if member == node {
                        break;
                    }
                }
                sort(&mut out.nodes[from..], n);
                out.ends.push(out.nodes.len());
            }
        }
    }
    Ok(out)
}

/// A list of nodes of which nearly all of the graph are members is sorted in linear time: there is one
/// such list at most, which may hold a million.
fn sort(nodes: &mut [usize], n: usize) {
    if nodes.len() < n / 64 + 64 {
        nodes.sort_unstable();
        return;
    }
    let mut members = vec![0u64; n.div_ceil(64)];
    nodes.iter().for_each(|&node| members[node / 64] |= 1 << (node % 64));
    let mut place = 0;
    for (index, mut word) in members.into_iter().enumerate() {
        while word != 0 {
            nodes[place] = 64 * index + word.trailing_zeros() as usize;
            place += 1;
            word &= word - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_sorted_whether_they_are_small_or_large() {
        for (n, size) in [(10, 3), (300, 300), (5_000, 4_999), (5_000, 70), (5_000, 200)] {
            // A ring of some nodes, walked by a step that has no divisor in common with their count.
            let step = (7..).find(|step| (1..size).all(|k| k * step % size != 0)).expect("a step");
            let next = |node| if node < size { vec![(node + step) % size] } else { vec![0] };
            let found = components(n, next);
            assert_eq!(found[0], (0..size).collect::<Vec<_>>(), "{n} {size}");
            assert_eq!(found.len(), n - size + 1);
            assert!(found[1..].iter().enumerate().all(|(k, alone)| *alone == [size + k]));
        }
    }

    #[test]
    fn the_way_back_from_a_long_chain_is_heard() {
        let asked = std::cell::Cell::new(0);
        let look = |steps| {
            asked.set(asked.get() + steps);
            if asked.get() > 1_500 { Err(()) } else { Ok(()) }
        };
        let next = |node: usize| Ok(if node < 999 { vec![node + 1] } else { Vec::new() });
        // On the way there each node has a step, and one on the way back.
        assert_eq!(components_within(1_000, look, next).err(), Some(()));
        assert_eq!(asked.get(), 1_501);
    }
}
