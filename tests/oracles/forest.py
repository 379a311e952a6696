"""Earley items, packed nodes and parse trees, straight from their definitions.

Span tables instead of items that are derived from items: for each span which nonterminals derive
it, by iteration to a fixpoint. An Earley item is there when its nonterminal is predicted where it
began and its symbols before the dot derive what was read since. Slow on purpose, and shares nothing
with the library but the productions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

Production = tuple[int, tuple[int, ...]]
"""A nonterminal and its symbols: nonterminals from 0, terminal ``i`` is ``~i``."""


class Chart:
    """All there is to know of a text.

    ``productions`` are those of a pruned grammar, ``terminals`` sets of code points as ranges.
    """

    def __init__(
        self,
        productions: list[Production],
        terminals: list[tuple[tuple[int, int], ...]],
        start: int,
        text: list[int],
    ) -> None:
        self.productions = productions
        self.terminals = terminals
        self.start = start
        self.text = text
        self.spans: set[tuple[int, int, int]] = set()  # nonterminal, begin, end
        self._derive()
        self.predicted: list[set[int]] = []
        self._predict()

    def derives(self, symbol: int, begin: int, end: int) -> bool:
        """Whether a symbol derives a span."""
        if symbol >= 0:
            return (symbol, begin, end) in self.spans
        return end == begin + 1 and any(
            low <= self.text[begin] <= high for low, high in self.terminals[~symbol]
        )

    def sequence(self, symbols: tuple[int, ...], begin: int, end: int) -> bool:
        """Whether symbols, one after the other, derive a span."""
        ends = {begin}
        for symbol in symbols:
            ends = {k for j in ends for k in range(j, end + 1) if self.derives(symbol, j, k)}
        return end in ends

    def _derive(self) -> None:
        size = len(self.text)
        while True:
            more = {
                (lhs, i, j)
                for lhs, rhs in self.productions
                for i in range(size + 1)
                for j in range(i, size + 1)
                if (lhs, i, j) not in self.spans and self.sequence(rhs, i, j)
            }
            if not more:
                return
            self.spans |= more

    def _predict(self) -> None:
        """A nonterminal is predicted behind a beginning of a production that is predicted."""
        self.predicted = [set() for _ in range(len(self.text) + 1)]
        self.predicted[0].add(self.start)
        changed = True
        while changed:
            changed = False
            for i in range(len(self.text) + 1):
                for j in range(i, len(self.text) + 1):
                    for lhs, rhs in self.productions:
                        if lhs not in self.predicted[i]:
                            continue
                        for dot, symbol in enumerate(rhs):
                            if symbol < 0 or symbol in self.predicted[j]:
                                continue
                            if self.sequence(rhs[:dot], i, j):
                                self.predicted[j].add(symbol)
                                changed = True

    @cache  # noqa: B019 - charts of tests are few and short-lived
    def items(self, position: int) -> frozenset[tuple[int, int, int]]:
        """The Earley items of a position: production, dot, origin."""
        return frozenset(
            (number, dot, origin)
            for origin in range(position + 1)
            for number, (lhs, rhs) in enumerate(self.productions)
            if lhs in self.predicted[origin]
            for dot in range(len(rhs) + 1)
            if self.sequence(rhs[:dot], origin, position)
        )

    def splits(self, position: int) -> set[tuple[int, int, int, int]]:
        """The ways in which items were advanced, with where their last symbol began."""
        return {
            (number, dot, origin, middle)
            for number, dot, origin in self.items(position)
            if dot
            for middle in range(origin, position + 1)
            if (number, dot - 1, origin) in self.items(middle)
            and self.derives(self.productions[number][1][dot - 1], middle, position)
        }

    def counters(self, position: int) -> dict[str, int]:
        """What the recognizer without Leo's chains counts at a position."""
        items, advanced = self.items(position), self.splits(position)
        rhs = [p[1] for p in self.productions]
        nodes = {
            ("symbol", self.productions[n][0], i) for n, dot, i in items if dot == len(rhs[n])
        } | {("item", n, dot, i) for n, dot, i in items if 2 <= dot < len(rhs[n])}
        packed = [
            (n, dot) for n, dot, _, _ in advanced if dot >= 2 or (dot == 1 and len(rhs[n]) == 1)
        ]
        empty = sum(not rhs[n] for n, _, _ in items)
        work = sum(rhs[n][dot - 1] >= 0 for n, dot, _, _ in advanced)
        return {
            "new_items": len(items),
            "predicted": sum(i == position for _, _, i in items),
            "completer_work": work,
            "new_nodes": len(nodes),
            "new_packed_nodes": len(packed) + empty,
            "new_splits": sum(dot >= 2 for _, dot in packed),
            "live_items": self.live(position),
        }

    def live(self, position: int) -> int:
        """The unfinished items that can still be advanced after a position."""
        live = {
            (n, dot, i, position)
            for n, dot, i in self.items(position)
            if dot < len(self.productions[n][1])
        }
        while True:
            completing = {(self.productions[n][0], i) for n, _, i, _ in live}
            more = {
                (n, dot, i, k)
                for name, k in completing
                for n, dot, i in self.items(k)
                if dot < len(self.productions[n][1]) and self.productions[n][1][dot] == name
            } - live
            if not more:
                return len(live)
            live |= more

    @property
    def viable(self) -> bool:
        """Whether some string begins with the text."""
        return bool(self.items(len(self.text)))

    @property
    def accepting(self) -> bool:
        """Whether the text is in the language."""
        return (self.start, 0, len(self.text)) in self.spans

    def is_infinite(self) -> bool:
        """Whether some derivation of the text goes through a span within itself, and nothing else.

        That is a cycle of steps from a nonterminal over a span to one over the same span, all else
        empty, on the way from the start.
        """
        size = len(self.text)
        steps: dict[tuple[int, int, int], set[tuple[int, int, int]]] = {}
        for lhs, i, j in self.spans:
            out = steps.setdefault((lhs, i, j), set())
            for name, rhs in self.productions:
                if name != lhs:
                    continue
                for dot, symbol in enumerate(rhs):
                    for k in range(i, j + 1):
                        for m in range(k, j + 1):
                            if (
                                self.derives(symbol, k, m)
                                and self.sequence(rhs[:dot], i, k)
                                and self.sequence(rhs[dot + 1 :], m, j)
                                and symbol >= 0
                            ):
                                out.add((symbol, k, m))
        root = (self.start, 0, size)
        reached, work = {root}, [root]
        while work:
            for target in steps.get(work.pop(), ()):
                if target not in reached:
                    reached.add(target)
                    work.append(target)
        for node in reached:
            seen: set[tuple[int, int, int]] = set()
            work = [node]
            while work:
                for target in steps.get(work.pop(), ()):
                    if target == node:
                        return True
                    if target not in seen:
                        seen.add(target)
                        work.append(target)
        return False

    def trees(self) -> Iterator[object]:
        """Each parse tree as nested tuples; only where they are not infinitely many."""
        return self._trees(self.start, 0, len(self.text))

    def _trees(self, symbol: int, begin: int, end: int) -> Iterator[object]:
        if not self.derives(symbol, begin, end):
            return
        if symbol < 0:
            yield self.text[begin]
            return
        for number, (lhs, rhs) in enumerate(self.productions):
            if lhs == symbol:
                for parts in self._parts(rhs, begin, end):
                    yield (number, *parts)

    def _parts(
        self, symbols: tuple[int, ...], begin: int, end: int
    ) -> Iterator[tuple[object, ...]]:
        if not self.sequence(symbols, begin, end):
            return
        if not symbols:
            yield ()
            return
        for middle in range(begin, end + 1):
            if self.sequence(symbols[1:], middle, end):
                for first in self._trees(symbols[0], begin, middle):
                    for others in self._parts(symbols[1:], middle, end):
                        yield (first, *others)
