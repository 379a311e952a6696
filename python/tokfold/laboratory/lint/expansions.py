"""Ambiguities by structure: two trees with the same leaves, where leaves need not be characters.

The search by length (``overlaps``) ends where texts become many; a dangling ``else`` is beyond it.
Here a leaf may be a whole rule, so that the trees are few: all trees of each nonterminal are made
by increasing number of nodes, and two with the same row of leaves are an ambiguity, whatever text
the leaves are then given. It finds what is nested; what hangs on characters it does not see.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokfold.laboratory.lint.cycles import components, is_loop
from tokfold.laboratory.lint.lowering import Lowered, Production

__all__ = ["Conflict", "Expansions", "Tree"]

Leaves = tuple[int, ...]
"""Symbols, as in productions."""


@dataclass(frozen=True)
class Tree:
    """How a nonterminal was written: the production, and the leaves of each symbol of it."""

    production: int
    parts: tuple[Leaves, ...]


@dataclass(frozen=True)
class Conflict:
    """Two trees of one nonterminal with the same leaves."""

    nonterminal: int
    one: Tree
    other: Tree


class Expansions:
    """The search. Deterministic: bounded by work, not by time.

    Args:
        lowered: the productions.
        max_nodes: nodes of the largest trees.
        max_trees: trees kept of one nonterminal and size.
        max_leaves: leaves of the widest trees.
        max_work: trees made in all.

    Attributes:
        found: the first conflict of each nonterminal.
        nodes: trees of up to so many nodes were made.
        work: trees made.
    """

    def __init__(
        self,
        lowered: Lowered,
        max_nodes: int = 8,
        max_trees: int = 400,
        max_leaves: int = 40,
        max_work: int = 200_000,
    ) -> None:
        self.lowered = lowered
        self.max_trees, self.max_leaves, self.max_work = max_trees, max_leaves, max_work
        self.found: dict[int, Conflict] = {}
        self.nodes = 0
        self.work = 0
        self._opened = self._worth_opening()
        self._trees: dict[int, list[dict[Leaves, Tree]]] = {n: [{}] for n in self._opened}
        self._known: dict[int, dict[Leaves, Tree]] = {n: {} for n in self._opened}
        self._prefixes: dict[
            tuple[int, int], list[list[list[tuple[Leaves, tuple[Leaves, ...]]]]]
        ] = {}
        for size in range(1, max_nodes + 1):
            for number in self._opened:
                self._grow(number, size)
                if self.work > max_work:
                    return
            self.nodes = size

    def _worth_opening(self) -> list[int]:
        """What is recursive, and what may be empty and is no loop: others stay leaves."""
        edges = {
            number: [~s for production in productions for s in production.symbols if s < 0]
            for number, productions in enumerate(self.lowered.productions)
        }
        recursive = {
            number
            for part in components(edges)
            if is_loop(part, edges)
            for number in part
            if self.lowered.keys[number][2] == -2 or len(part) > 1
        }
        small = {
            number
            for number in self.lowered.nullable
            if len(self.lowered.productions[number]) <= 3 and self.lowered.keys[number][2] == -2
        }
        return sorted(recursive | small)

    def _grow(self, number: int, size: int) -> None:
        made: dict[Leaves, Tree] = {}
        known = self._known[number]
        for index, production in enumerate(self.lowered.productions[number]):
            self.work += 1
            for leaves, parts in self._written(number, index, production, size - 1):
                if self._cycles(number, production, leaves, parts):
                    continue
                tree = Tree(index, parts)
                before = known.get(leaves)
                if before is not None:
                    if before != tree:
                        self.found.setdefault(number, Conflict(number, before, tree))
                    continue
                if len(made) < self.max_trees:
                    known[leaves] = made[leaves] = tree
        self._trees[number].append(made)

    def _written(
        self, number: int, index: int, production: Production, nodes: int
    ) -> list[tuple[Leaves, tuple[Leaves, ...]]]:
        """Leaves of a production whose nonterminals have so many nodes together."""
        symbols = production.symbols
        if not symbols:
            return [((), ())] if nodes == 0 else []
        tables = self._prefixes.setdefault((number, index), [[] for _ in symbols])
        for position, symbol in enumerate(symbols):
            table = tables[position]
            made: list[tuple[Leaves, tuple[Leaves, ...]]] = []
            table.append(made)
            for size in range(nodes + 1):
                own = self._of(symbol, size)
                befores: list[tuple[Leaves, tuple[Leaves, ...]]]
                if position == 0:
                    befores = [((), ())] if size == nodes else []
                elif own:
                    befores = tables[position - 1][nodes - size]
                else:
                    befores = []
                for leaves, parts in befores:
                    for more in own:
                        if not more and production.is_copy and not position:
                            continue
                        if len(made) >= self.max_trees * 4:
                            break
                        if len(leaves) + len(more) <= self.max_leaves:
                            made.append((leaves + more, (*parts, more)))
            self.work += len(made)
        return tables[-1][nodes]

    def _of(self, symbol: int, size: int) -> list[Leaves]:
        if size == 0:
            return [(symbol,)]
        trees = self._trees.get(~symbol) if symbol < 0 else None
        return list(trees[size]) if trees is not None and size < len(trees) else []

    def _cycles(
        self, number: int, production: Production, leaves: Leaves, parts: tuple[Leaves, ...]
    ) -> bool:
        """Whether this only goes round a cycle: one of the cycle is all of it."""
        cycle = self.lowered.cyclic.get(number)
        if cycle is None:
            return False
        return any(
            part == leaves and symbol < 0 and self.lowered.cyclic.get(~symbol) == cycle
            for symbol, part in zip(production.symbols, parts, strict=True)
        )
