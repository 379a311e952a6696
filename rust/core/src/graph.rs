//! Strongly connected components of a directed graph.

use std::convert::Infallible;

/// The components of a directed graph over `0..n`, each a list of nodes; a component stands
/// before those that lead to it (callees first). Iterative (Tarjan), so depth costs no stack.
pub(crate) fn components(n: usize, successors: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let Ok(out) = components_within(n, |node| Ok::<_, Infallible>(successors(node)));
    out
}

/// [`components`] for successors that may refuse, for example because the work is cancelled.
pub(crate) fn components_within<E>(
    n: usize,
    mut successors: impl FnMut(usize) -> Result<Vec<usize>, E>,
) -> Result<Vec<Vec<usize>>, E> {
    const UNSEEN: u32 = u32::MAX;
    let mut index = vec![UNSEEN; n];
    let mut low = vec![0u32; n];
    let mut on_stack = vec![false; n];
    let mut stack = Vec::new();
    let mut out = Vec::new();
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
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    component.push(member);
                    if member == node {
                        break;
                    }
                }
                component.sort_unstable();
                out.push(component);
            }
        }
    }
    Ok(out)
}
