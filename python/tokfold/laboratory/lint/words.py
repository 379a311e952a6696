"""Shortest texts of nonterminals, and the shortest texts that lead to them and on from them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from tokfold._lazy import lazy
from tokfold.laboratory.form import Chars
from tokfold.laboratory.lint.lowering import Lowered

__all__ = ["MAX_WORD", "Words", "meeting", "shown_char"]

MAX_WORD = 2_000
"""Characters of a text that is shown; where all are longer, there is none to show."""

_LIKED = [(0x61, 0x7A), (0x30, 0x39), (0x41, 0x5A), (0x21, 0x7E), (0x20, 0x20)]


def shown_char(chars: Chars) -> int:
    """A code point of a class, a letter or digit if there is one."""
    for first, last in _LIKED:
        for low, high in chars.ranges:
            if max(first, low) <= min(last, high):
                return max(first, low)
    return chars.ranges[0][0]


def meeting(one: Chars, other: Chars) -> Chars:
    """The characters that two classes share."""
    if one is other:
        return one
    return Chars(
        (max(a, c), min(b, d))
        for a, b in one.ranges
        for c, d in other.ranges
        if max(a, c) <= min(b, d)
    )


class Words:
    """Shortest words of a lowered grammar, by Knuth's generalization of Dijkstra's algorithm."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self._texts: dict[int, str] = {}

    @lazy
    def _best(self) -> dict[int, tuple[int, int]]:
        """Of each nonterminal the length of its shortest word and the production of it."""
        waiting: dict[int, list[tuple[int, int]]] = {}
        missing: dict[tuple[int, int], int] = {}
        lengths: dict[tuple[int, int], int] = {}
        heap: list[tuple[int, int, int]] = []
        for number, productions in enumerate(self.lowered.productions):
            for index, production in enumerate(productions):
                nonterminals = [~symbol for symbol in production.symbols if symbol < 0]
                lengths[number, index] = len(production.symbols) - len(nonterminals)
                missing[number, index] = len(nonterminals)
                for below in nonterminals:
                    waiting.setdefault(below, []).append((number, index))
                if not nonterminals:
                    heapq.heappush(heap, (lengths[number, index], number, index))
        found: dict[int, tuple[int, int]] = {}
        while heap:
            length, number, index = heapq.heappop(heap)
            if number in found:
                continue
            found[number] = length, index
            for key in waiting.get(number, ()):
                lengths[key] += length
                missing[key] -= 1
                if not missing[key] and key[0] not in found:
                    heapq.heappush(heap, (lengths[key], *key))
        return found

    def length(self, symbols: tuple[int, ...]) -> int | None:
        """Characters of the shortest word of some symbols; ``None`` where there is none."""
        total = 0
        for symbol in symbols:
            if symbol >= 0:
                total += 1
            elif ~symbol in self._best:
                total += self._best[~symbol][0]
            else:
                return None
        return total

    def text(self, symbols: tuple[int, ...]) -> str | None:
        """The shortest word of some symbols; ``None`` where there is none, or it is too long."""
        length = self.length(symbols)
        if length is None or length > MAX_WORD:
            return None
        out: list[str] = []
        work = list(reversed(symbols))
        while work:
            symbol = work.pop()
            if symbol >= 0:
                out.append(chr(shown_char(self.lowered.sets[symbol])))
            else:
                production = self.lowered.productions[~symbol][self._best[~symbol][1]]
                work.extend(reversed(production.symbols))
        return "".join(out)

    @lazy
    def _filled(self) -> dict[int, tuple[int, int, int]]:
        """Of what may be empty, the length of its shortest word that is not.

        With the production, and the symbol in it that is not empty; -1: the production never is.
        """
        above: dict[int, list[tuple[int, int, int]]] = {}
        heap: list[tuple[int, int, int, int]] = []
        for number in self.lowered.nullable:
            for index, production in enumerate(self.lowered.productions[number]):
                symbols = production.symbols
                if all(symbol < 0 and ~symbol in self.lowered.nullable for symbol in symbols):
                    for position, symbol in enumerate(symbols):
                        above.setdefault(~symbol, []).append((number, index, position))
                else:
                    length = self.length(symbols)
                    if length is not None:
                        heapq.heappush(heap, (length, number, index, -1))
        found: dict[int, tuple[int, int, int]] = {}
        while heap:
            length, number, index, position = heapq.heappop(heap)
            if number not in found:
                found[number] = length, index, position
                for key in above.get(number, ()):
                    heapq.heappush(heap, (length, *key))
        return found

    def can_fill(self, symbols: Iterable[int]) -> bool:
        """Whether none of some symbols can only be empty."""
        return all(
            symbol >= 0 or ~symbol not in self.lowered.nullable or ~symbol in self._filled
            for symbol in symbols
        )

    def filled(self, symbols: tuple[int, ...]) -> str | None:
        """As :meth:`text`, with no symbol empty; ``None`` too where one can only be."""
        out: list[str] = []
        size = 0
        work = list(reversed(symbols))
        while work:
            symbol = work.pop()
            if symbol < 0 and ~symbol in self.lowered.nullable:
                if ~symbol not in self._filled:
                    return None
                _, index, position = self._filled[~symbol]
                production = self.lowered.productions[~symbol][index]
                if position >= 0:
                    work.append(production.symbols[position])
                    continue
                piece = self.text(production.symbols)
            else:
                piece = self.text((symbol,))
            if piece is None:
                return None
            out.append(piece)
            size += len(piece)
            if size > MAX_WORD:
                return None
        return "".join(out)

    @lazy
    def _ways(self) -> dict[int, tuple[int, int, int] | None]:
        """How the root leads to each nonterminal by the shortest text around it.

        The nonterminal above, its production and the position in it; ``None`` for the root.
        """
        heap: list[tuple[int, int, tuple[int, int, int] | None]] = [(0, self.lowered.start, None)]
        self._costs: dict[int, int] = {}
        found: dict[int, tuple[int, int, int] | None] = {}
        tie: dict[int, int] = {}
        while heap:
            cost, number, way = heapq.heappop(heap)
            if number in found:
                continue
            found[number] = way
            self._costs[number] = cost
            for index, production in enumerate(self.lowered.productions[number]):
                whole = self.length(production.symbols)
                if whole is None:
                    continue
                for position, symbol in enumerate(production.symbols):
                    if symbol < 0 and ~symbol not in found:
                        around = cost + whole - self._best[~symbol][0]
                        if tie.get(~symbol, around + 1) > around:
                            tie[~symbol] = around
                            heapq.heappush(heap, (around, ~symbol, (number, index, position)))
        return found

    def around_length(self, number: int) -> int:
        """Characters of the texts of :meth:`around`; more than any text where there are none."""
        return self._costs.get(number, MAX_WORD) if number in self._ways else MAX_WORD + 1

    def around(self, number: int) -> tuple[str, str] | None:
        """The shortest texts before and after a nonterminal in a text of the root."""
        before: list[str] = []
        after: list[str] = []
        if number not in self._ways:
            return None
        way = self._ways[number]
        total = 0
        while way is not None:
            above, index, position = way
            symbols = self.lowered.productions[above][index].symbols
            left, right = self.text(symbols[:position]), self.text(symbols[position + 1 :])
            if left is None or right is None:
                return None
            total += len(left) + len(right)
            if total > MAX_WORD:
                return None
            before.append(left)
            after.append(right)
            way = self._ways[above]
        return "".join(reversed(before)), "".join(after)
