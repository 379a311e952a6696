"""The dotted productions of a grammar as numbers, and what is predicted at a position."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from typing import Protocol

from tokfold.laboratory.forest.productions import Productions, Ranges

__all__ = ["Block", "Slots", "contains"]

_MOST_BLOCKS = 20_000
_MOST_POINTS = 4_096


class _Waiting(Protocol):
    waiting: dict[int, list[int]]
    sums: dict[int, tuple[int, int, int]]
    block: Block


def contains(ranges: Ranges, point: int) -> bool:
    """Whether a code point is in a set of them."""
    at = bisect_right(ranges, (point, 0x110000)) - 1
    return at >= 0 and point <= ranges[at][1]


class Block:
    """The items that begin where they stand: predicted, and stepped over what may be empty.

    Attributes:
        items: how many there are.
        work: pairs of an empty nonterminal and an item that waits for it.
        nodes: nodes of the forest that span nothing.
        packed: their packed nodes.
        splits: those with two parts.
        members: the slots.
        waiting: slots by the symbol after the dot.
        empty: nonterminals predicted here that may be empty.
    """

    __slots__ = (
        "_scans",
        "empty",
        "items",
        "members",
        "nodes",
        "packed",
        "splits",
        "waiting",
        "work",
    )

    def __init__(self, slots: Slots, needed: Collection[int]) -> None:
        predicted = set(needed)
        agenda = [first for name in sorted(needed) for first in slots.first.get(name, ())]
        members = set(agenda)
        nullable = slots.grammar.nullable
        self.waiting: dict[int, list[int]] = {}
        self.work = self.nodes = self.packed = self.splits = 0
        for slot in agenda:  # it grows meanwhile
            symbol = slots.after[slot]
            if symbol is None:
                # An empty production is derived in one way, without an item that was advanced.
                self.packed += slots.dot[slot] == 0
                continue
            self.nodes += slots.inner[slot]
            self.waiting.setdefault(symbol, []).append(slot)
            if symbol < 0:
                continue
            if symbol not in predicted:
                predicted.add(symbol)
                for first in slots.first.get(symbol, ()):
                    if first not in members:
                        members.add(first)
                        agenda.append(first)
            if symbol in nullable:
                self.work += 1
                self.packed += slots.packed[slot + 1]
                self.splits += slots.split[slot + 1]
                if slot + 1 not in members:
                    members.add(slot + 1)
                    agenda.append(slot + 1)
        self.members = frozenset(members)
        self.items = len(members)
        self.empty = frozenset(predicted & nullable)
        self.nodes += len(self.empty)
        self._scans: dict[int, tuple[int, ...]] = {}

    def scanned(self, point: int, matching: Collection[int]) -> tuple[int, ...]:
        """The slots behind the terminals that read a code point."""
        known = self._scans.get(point)
        if known is None:
            if len(self._scans) >= _MOST_POINTS:
                self._scans.clear()
            known = tuple(s + 1 for t in matching for s in self.waiting.get(t, ()))
            self._scans[point] = known
        return known


class Slots:
    """A pruned grammar, its dotted productions numbered, and the blocks made so far.

    Attributes:
        grammar: without useless productions.
        count: how many slots there are.
        after: by slot, the symbol after the dot; None at the end.
        lhs: by slot, the nonterminal.
        dot: by slot, how many symbols stand before the dot.
        first: by nonterminal, the slots at the beginnings of its productions.
        packed: by slot, 1 where advancing to it makes a packed node. One symbol of a longer
            production makes none: the forest is binarised, and one part is no node of its own.
        split: by slot, 1 where that packed node has two parts.
        inner: by slot, 1 where its items are intermediate nodes.
    """

    def __init__(self, grammar: Productions) -> None:
        self.grammar = grammar.useful()
        self.after: list[int | None] = []
        self.lhs: list[int] = []
        self.dot: list[int] = []
        self.first: dict[int, list[int]] = {}
        for production in self.grammar.productions:
            self.first.setdefault(production.lhs, []).append(len(self.after))
            self.after += [*production.rhs, None]
            self.lhs += [production.lhs] * (len(production.rhs) + 1)
            self.dot += range(len(production.rhs) + 1)
        self.count = max(len(self.after), 1)
        ends = [symbol is None for symbol in self.after]
        self.split = [int(dot >= 2) for dot in self.dot]
        self.packed = [
            int(dot >= 2 or (dot == 1 and end)) for dot, end in zip(self.dot, ends, strict=True)
        ]
        self.inner = [int(dot >= 2 and not end) for dot, end in zip(self.dot, ends, strict=True)]
        used = {symbol for symbol in self.after if symbol is not None and symbol < 0}
        self.used = sorted(used, reverse=True)
        self._blocks: dict[frozenset[int], Block] = {}
        self._matching: dict[int, frozenset[int]] = {}

    def block(self, needed: frozenset[int]) -> Block:
        """What is predicted where these nonterminals stand after dots."""
        known = self._blocks.get(needed)
        if known is None:
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            known = self._blocks[needed] = Block(self, needed)
        return known

    def matching(self, point: int) -> frozenset[int]:
        """The terminals that read a code point."""
        known = self._matching.get(point)
        if known is None:
            if len(self._matching) >= _MOST_POINTS:
                self._matching.clear()
            terminals = self.grammar.terminals
            known = frozenset(s for s in self.used if contains(terminals[~s], point))
            self._matching[point] = known
        return known

    def sums(self, source: _Waiting, name: int) -> tuple[int, int, int]:
        """How many items of a closed set wait for a nonterminal, and what advancing them adds."""
        slots = [item % self.count + 1 for item in source.waiting.get(name, ())]
        slots += [slot + 1 for slot in source.block.waiting.get(name, ())]
        packed = sum(map(self.packed.__getitem__, slots))
        splits = sum(map(self.split.__getitem__, slots))
        found = source.sums[name] = (len(slots), packed, splits)
        return found
