"""Graphs: what is reached, and cycles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

__all__ = ["components", "is_loop", "reached"]

T = TypeVar("T")


def reached(starts: Iterable[T], edges: Mapping[T, Iterable[T]]) -> frozenset[T]:
    """All nodes that edges lead to from the starts, these included.

    Args:
        starts: nodes.
        edges: for each node its successors; a node that is no key has none.
    """
    found: set[T] = set()
    work = list(starts)
    while work:
        node = work.pop()
        if node not in found:
            found.add(node)
            work.extend(edges.get(node, ()))
    return frozenset(found)


def is_loop(part: list[T], edges: Mapping[T, Iterable[T]]) -> bool:
    """Whether a component holds a cycle."""
    return len(part) > 1 or part[0] in edges.get(part[0], ())


def components(edges: Mapping[T, Iterable[T]]) -> list[list[T]]:
    """Strongly connected components, those that others lead to first (Tarjan, 1972).

    Args:
        edges: for each node its successors; a successor that is no key has none itself.
    """
    number: dict[T, int] = {}
    low: dict[T, int] = {}
    stack: list[T] = []
    on_stack: set[T] = set()
    found: list[list[T]] = []
    for start in edges:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        stack.append(start)
        on_stack.add(start)
        work = [(start, iter(edges.get(start, ())))]
        while work:
            node, rest = work[-1]
            after = next(rest, None)
            if after is not None:
                if after not in number:
                    number[after] = low[after] = len(number)
                    stack.append(after)
                    on_stack.add(after)
                    work.append((after, iter(edges.get(after, ()))))
                elif after in on_stack:
                    low[node] = min(low[node], number[after])
                continue
            work.pop()
            if work:
                above = work[-1][0]
                low[above] = min(low[above], low[node])
            if low[node] == number[node]:
                part = []
                while True:
                    part.append(stack.pop())
                    on_stack.discard(part[-1])
                    if part[-1] is node or part[-1] == node:
                        break
                found.append(part[::-1])
    return found
