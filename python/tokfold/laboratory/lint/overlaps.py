"""Ambiguities by length: two ways to write one nonterminal that share a text.

All texts of all nonterminals are made by increasing length, as rows of character sets: ``[a-z]*``
has one row for each length, however many words. Two rows of a nonterminal that came about in
different ways, by another alternative or cut at other places, and that share a text in each place,
are an ambiguity. A grammar without cycles in which no nonterminal has one is unambiguous (vertical
and horizontal ambiguity: Brabrand, Giegerich, Moller, 2010), so within the length this finds all.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokfold.laboratory.lint.lowering import Lowered, Production
from tokfold.laboratory.lint.words import meeting

__all__ = ["Overlap", "Overlaps", "Way"]

Row = tuple[int, ...]
"""Sets of characters, by number."""


@dataclass(frozen=True)
class Way:
    """How a nonterminal was written.

    Attributes:
        production: the number of the production.
        split: how long each of its symbols is.
    """

    production: int
    split: tuple[int, ...]


@dataclass(frozen=True)
class Overlap:
    """Two ways to write one nonterminal, and the rows that share a text."""

    nonterminal: int
    one: Way
    other: Way
    rows: tuple[Row, Row]


class Overlaps:
    """The search. Deterministic: bounded by work, not by time.

    Args:
        lowered: the productions.
        max_length: characters of the longest texts.
        max_rows: rows kept of one nonterminal and length; more are dropped, and told.
        max_work: rows made in all.

    Attributes:
        found: the first, and so shortest, overlap of each nonterminal.
        complete: no overlap of up to so many characters was missed; -1: not even the empty text.
        work: rows made.
    """

    def __init__(
        self, lowered: Lowered, max_length: int = 8, max_rows: int = 200, max_work: int = 200_000
    ) -> None:
        self.lowered = lowered
        self.max_rows, self.max_work = max_rows, max_work
        self.found: dict[int, Overlap] = {}
        self.complete = -1
        self.work = 0
        self._is_cut = False
        count = len(lowered.productions)
        self._rows: list[list[dict[Row, Way]]] = [[] for _ in range(count)]
        self._prefixes: dict[tuple[int, int], list[list[list[tuple[Row, tuple[int, ...]]]]]] = {}
        self._meets: dict[tuple[int, int], bool] = {}
        # Beginnings as long as a nonterminal that is made later at the same length are made again:
        # only what is a production altogether waits for its symbols.
        late = [
            (number, index, production)
            for number, productions in enumerate(lowered.productions)
            for index, production in enumerate(productions)
            if len(production.symbols) > 1 and production.symbols[0] < 0
        ]
        for length in range(max_length + 1):
            for part in lowered.order:
                self._component(part, length)
                if self.work > max_work:
                    return
            for number, index, production in late:
                self._extend(number, index, production, length)
                if self.work > max_work:
                    return
            if not self._is_cut:
                self.complete = length

    def _component(self, part: list[int], length: int) -> None:
        for number in part:
            self._rows[number].append({})
        masks: dict[int, _Masks] = {number: _Masks(self, length) for number in part}
        while True:
            before = [len(self._rows[number][length]) for number in part]
            for number in part:
                for index, production in enumerate(self.lowered.productions[number]):
                    self.work += 1
                    self._extend(number, index, production, length)
                    self._collect(number, index, production, length, masks[number])
                    if self.work > self.max_work:
                        return
            grown = before != [len(self._rows[number][length]) for number in part]
            if not grown or not any(number in self.lowered.cyclic for number in part):
                return

    def _extend(self, number: int, index: int, production: Production, length: int) -> None:
        """The rows of the beginnings of a production, one symbol longer each."""
        tables = self._prefixes.setdefault((number, index), [[] for _ in production.symbols])
        for position, symbol in enumerate(production.symbols):
            table = tables[position]
            if len(table) > length:
                table.pop()
            made: list[tuple[Row, tuple[int, ...]]] = []
            table.append(made)
            for size in range(length + 1):
                if not size and production.is_copy and not position:
                    continue
                own = self._of(symbol, size)
                if not own:
                    continue
                befores: list[tuple[Row, tuple[int, ...]]]
                if position == 0:
                    befores = [((), ())] if size == length else []
                else:
                    befores = tables[position - 1][length - size]
                for row, split in befores:
                    for more in own:
                        if len(made) >= self.max_rows:
                            self._is_cut = True
                            break
                        made.append((row + more, (*split, size)))
            self.work += len(made)

    def _of(self, symbol: int, size: int) -> list[Row]:
        if symbol >= 0:
            return [(symbol,)] if size == 1 else []
        rows = self._rows[~symbol]
        return list(rows[size]) if size < len(rows) else []

    def _collect(
        self, number: int, index: int, production: Production, length: int, masks: _Masks
    ) -> None:
        rows = self._rows[number][length]
        if production.symbols:
            ends = self._prefixes[number, index][-1][length]
        else:
            ends = [((), ())] if length == 0 else []
        for row, split in ends:
            way = Way(index, split)
            cycles = self._cycles(number, production, split, length)
            known = rows.get(row)
            if known is not None:
                if known != way and not cycles:
                    self.found.setdefault(number, Overlap(number, known, way, (row, row)))
                continue
            if len(rows) >= self.max_rows:
                self._is_cut = True
                return
            if number not in self.found and not cycles:
                for other in masks.meeting(row):
                    if rows[other] != way:
                        self.found[number] = Overlap(number, rows[other], way, (other, row))
                        break
            rows[row] = way
            masks.add(row)
            self.work += 1

    def _cycles(
        self, number: int, production: Production, split: tuple[int, ...], length: int
    ) -> bool:
        """Whether this only goes round a cycle: one of the cycle is all of it."""
        cycle = self.lowered.cyclic.get(number)
        if cycle is None:
            return False
        return any(
            size == length and symbol < 0 and self.lowered.cyclic.get(~symbol) == cycle
            for symbol, size in zip(production.symbols, split, strict=True)
        )

    def do_meet(self, one: int, other: int) -> bool:
        """Whether two sets share a character."""
        if one == other:
            return True
        key = (one, other) if one < other else (other, one)
        if key not in self._meets:
            sets = self.lowered.sets
            self._meets[key] = bool(meeting(sets[one], sets[other]).ranges)
        return self._meets[key]


class _Masks:
    """Rows by what stands in each place, as bits, to find those that share a text with another."""

    def __init__(self, search: Overlaps, length: int) -> None:
        self.search = search
        self.rows: list[Row] = []
        self.places: list[dict[int, int]] = [{} for _ in range(length)]

    def add(self, row: Row) -> None:
        bit = 1 << len(self.rows)
        self.rows.append(row)
        for place, chars in zip(self.places, row, strict=True):
            place[chars] = place.get(chars, 0) | bit

    def meeting(self, row: Row) -> list[Row]:
        left = (1 << len(self.rows)) - 1
        for place, chars in zip(self.places, row, strict=True):
            here = 0
            for other, bits in place.items():
                if bits & left and self.search.do_meet(chars, other):
                    here |= bits
            left &= here
            if not left:
                return []
        found = []
        while left:
            low = left & -left
            found.append(self.rows[low.bit_length() - 1])
            left ^= low
        return found
