"""The packed parse forest of a text, made on demand out of Earley sets.

Binarised (Scott 2008): a *symbol node* is a nonterminal and what it spans, an *intermediate node*
is the beginning of a production, two symbols or more, and what that spans. Each has *packed nodes*,
the ways in which it is derived: a production and where its last symbol begins. A packed node with a
left and a right part is a *split* (paper, definition 13); those of productions with one symbol, or
none, are packed nodes as well, but no splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tokfold.laboratory.forest.earley import Earley
from tokfold.laboratory.forest.limits import CostLimitError

__all__ = ["Forest", "Node", "Packed"]


class Node(NamedTuple):
    """A node of a forest.

    Attributes:
        slot: of an intermediate node the dotted production, of a symbol node the number of slots
            plus the nonterminal.
        begin: the first code point that it spans.
        end: the code point after the last.
    """

    slot: int
    begin: int
    end: int


Packed = tuple[Node | None, Node | None]
"""Left and right part; None is a terminal, or, on the left, nothing."""


class Forest:
    """All parse trees of a text as one graph.

    Attributes:
        root: None where the text is not in the language.
        packed: by node the ways in which it is derived. Only nodes under the root are here.
        symbol_nodes: how many of the nodes are symbol nodes.
        intermediate_nodes: and how many are not.
        packed_nodes: how many packed nodes there are.
        splits: those with a left and a right part.
    """

    def __init__(self, earley: Earley, *, whole: bool = True) -> None:
        """Make the forest of the text read so far.

        Args:
            earley: the recognizer that has read it.
            whole: False where the text goes on inside a code point: it is not in the language.

        Raises:
            CostLimitError: it has more nodes than the limits of the recognizer allow.
        """
        self._earley = earley
        self._completed: dict[int, dict[int, list[int]]] = {}
        self._finished: dict[int, set[int]] = {}
        self.packed: dict[Node, tuple[Packed, ...]] = {}
        self.symbol_nodes = self.intermediate_nodes = self.packed_nodes = self.splits = 0
        start = earley.slots.grammar.start
        accepted = whole and earley.accepting
        self.root = Node(earley.slots.count + start, 0, earley.position) if accepted else None
        if self.root is not None:
            self._build(self.root)

    def _build(self, root: Node) -> None:
        most = self._earley.limits.max_nodes
        size = self._earley.slots.count
        split = self._earley.slots.split
        work = [root]
        seen = {root}
        while work:
            node = work.pop()
            symbol = node.slot >= size
            ways: list[Packed] = []
            for slot in self._ends(node) if symbol else (node.slot,):
                found = list(self._ways(slot, node.begin, node.end))
                self.splits += len(found) * split[slot]
                ways += found
            self.packed[node] = tuple(ways)
            self.symbol_nodes += symbol
            self.intermediate_nodes += not symbol
            self.packed_nodes += len(ways)
            if len(self.packed) + self.packed_nodes > most:
                raise CostLimitError(
                    f"the forest of these {self._earley.position:,} code points has more than "
                    f"{most:,} nodes; give a shorter text, or raise max_nodes",
                    "max_nodes",
                    most,
                )
            for way in ways:
                for child in way:
                    if child is not None and child not in seen:
                        seen.add(child)
                        work.append(child)

    def _ends(self, node: Node) -> Iterator[int]:
        """The finished productions of a symbol node."""
        slots = self._earley.slots
        base = node.begin * slots.count
        here = self._earley.sets[node.end]
        members = here.block.members
        finished = self._expanded(node.end)[1]
        for slot in slots.first.get(node.slot - slots.count, ()):
            end = slot
            while slots.after[end] is not None:
                end += 1
            if end in members if node.begin == node.end else (base + end) in finished:
                yield end

    def _ways(self, slot: int, begin: int, end: int) -> Iterator[Packed]:
        """The ways in which the symbols before the dot span ``begin`` to ``end``."""
        slots = self._earley.slots
        dot = slots.dot[slot]
        if dot == 0:
            yield None, None
            return
        symbol = slots.after[slot - 1]
        assert symbol is not None
        if symbol < 0:
            yield self._left(slot, begin, end - 1), None
            return
        name = slots.count + symbol
        if dot == 1:
            yield None, Node(name, begin, end)
            return
        sets, before = self._earley.sets, begin * slots.count + slot - 1
        for middle in self._expanded(end)[0].get(symbol, ()):
            if middle > begin and before in sets[middle].kernel:
                yield self._left(slot, begin, middle), Node(name, middle, end)
            elif middle == begin and slot - 1 in sets[begin].block.members:
                yield self._left(slot, begin, begin), Node(name, begin, end)
        if symbol in sets[end].block.empty and (
            before in sets[end].kernel if end > begin else slot - 1 in sets[end].block.members
        ):
            yield self._left(slot, begin, end), Node(name, end, end)

    def _left(self, slot: int, begin: int, end: int) -> Node | None:
        """What stands before the last symbol before the dot."""
        slots = self._earley.slots
        dot = slots.dot[slot]
        if dot > 2:
            return Node(slot - 1, begin, end)
        first = slots.after[slot - 2] if dot == 2 else None
        return None if first is None or first < 0 else Node(slots.count + first, begin, end)

    def _expanded(self, position: int) -> tuple[dict[int, list[int]], set[int]]:
        """Completed nonterminals with their origins, and finished items, Leo's chains walked."""
        made = self._earley.sets[position]
        if not made.leaps:
            return made.completed, made.kernel
        if position not in self._completed:
            size, lhs = self._earley.slots.count, self._earley.slots.lhs
            finished = set(made.kernel)
            completed = {name: set(origins) for name, origins in made.completed.items()}
            for name, origin in made.leaps:
                top = self._earley.top(origin, name)
                link = self._earley.link(origin, name)
                while link is not None and link != top and link not in finished:
                    finished.add(link)
                    origin, name = link // size, lhs[link % size]
                    completed.setdefault(name, set()).add(origin)
                    link = self._earley.link(origin, name)
            self._completed[position] = {n: sorted(origins) for n, origins in completed.items()}
            self._finished[position] = finished
        return self._completed[position], self._finished[position]

    @property
    def ambiguous_nodes(self) -> int:
        """Nodes with more than one packed node."""
        return sum(len(ways) > 1 for ways in self.packed.values())

    def trees(self) -> int | None:
        """How many parse trees the text has, exactly; None where they are infinitely many.

        Zero where the text is not in the language. Infinitely many come from a cycle of
        productions that reads nothing, which makes a node of the forest part of itself.
        """
        if self.root is None:
            return 0
        counts: dict[Node, int] = {}
        open_nodes: set[Node] = set()
        work: list[tuple[Node, bool]] = [(self.root, False)]
        while work:
            node, done = work.pop()
            if done:
                open_nodes.discard(node)
                counts[node] = sum(
                    (1 if left is None else counts[left]) * (1 if right is None else counts[right])
                    for left, right in self.packed[node]
                )
                continue
            if node in counts:
                continue
            open_nodes.add(node)
            work.append((node, True))
            for way in self.packed[node]:
                for child in way:
                    if child is None or child in counts:
                        continue
                    if child in open_nodes:
                        # Each node is derived in some finite way, so a cycle can be gone round
                        # as often as one likes.
                        return None
                    work.append((child, False))
        return counts[self.root]
