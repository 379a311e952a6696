"""Strongly connected sets of nodes."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["strong_components"]


def strong_components(edges: Sequence[Sequence[int]]) -> list[list[int]]:
    """Strongly connected sets of nodes, those reached before those that reach them (Tarjan)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in range(len(edges)):
        if root in index:
            continue
        work = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            else:
                low[node] = min(low[node], low[edges[node][at - 1]])
            entered = False
            for next_at in range(at, len(edges[node])):
                other = edges[node][next_at]
                if other not in index:
                    work += [(node, next_at + 1), (other, 0)]
                    entered = True
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            if entered or low[node] != index[node]:
                continue
            component: list[int] = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            found.append(sorted(component))
    return found
