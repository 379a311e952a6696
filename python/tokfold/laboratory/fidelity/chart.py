"""Earley's chart with continuation vectors: how likely each prefix of a text is to be completed.

``continuation[A]`` in the Earley set at a place is a vector over the states of the model: with
which probability the model, once it has written a string of ``A`` that began there, completes the
text. It is a sum over the items that wait for ``A`` there, of the inside matrices of what comes
after ``A`` in them times the continuation of the rule that waits, at the place where that began.
Rules that wait for each other at one place (left recursion) are equations of one end.

Each set keeps its vectors relative to a scale of its own, so that the probability of closing
thousands of brackets does not vanish below the smallest number.

Sets never change; those after different bytes share what is before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from tokfold._lazy import lazy
from tokfold.laboratory.fidelity.components import strong_components
from tokfold.laboratory.fidelity.errors import NotConvergedError
from tokfold.laboratory.fidelity.linear import Matrix, product, star
from tokfold.laboratory.fidelity.productions import (
    Productions,
    Symbol,
    Terminal,
)

__all__ = ["Chart", "EarleySet"]

Vector = npt.NDArray[np.float64]
_Item = tuple[int, "EarleySet"]
"""A dotted production and the set in which it began."""
MAX_ROUNDS = 100_000
SMALL = 1e-60
TOLERANCE = 1e-15


class Chart:
    """What all sets of one grammar and model share."""

    def __init__(
        self,
        productions: Productions,
        inside: Mapping[int, Matrix],
        terminal: Mapping[Terminal, Matrix],
        stops: Vector,
    ) -> None:
        """Prepare.

        Args:
            productions: trimmed.
            inside: the inside matrix of each nonterminal that derives anything.
            terminal: the matrix of each terminal in use.
            stops: how likely the text ends in each state.
        """
        self.inside, self.terminal, self.stops = inside, terminal, stops
        self.nullable = productions.nullable()
        self.goal = len(productions.rules)
        """A nonterminal of its own, above the start symbol."""
        self.first_dots: list[list[int]] = []
        self.symbol_after: list[Symbol | None] = []
        self.lhs_of: list[int] = []
        for lhs, body in enumerate([*productions.rules, ((productions.start,),)]):
            firsts = []
            for rhs in body:
                firsts.append(len(self.symbol_after))
                self.symbol_after += [*rhs, None]
                self.lhs_of += [lhs] * (len(rhs) + 1)
            self.first_dots.append(firsts)
        self._find_corners()

    def _find_corners(self) -> None:
        """Which rules wait for which at the place where both begin, and in which order."""
        waiting: list[dict[int, list[int]]] = [{} for _ in self.first_dots]
        for lhs, firsts in enumerate(self.first_dots):
            for first in firsts:
                dot = first
                while isinstance(symbol := self.symbol_after[dot], int):
                    waiting[symbol].setdefault(lhs, []).append(dot + 1)
                    if symbol not in self.nullable:
                        break
                    dot += 1
        self.waiting = waiting
        """For each nonterminal, the rules that wait for it where they begin, with the rest."""
        self.rank: list[int] = [0] * len(waiting)
        self._corners: dict[int, Matrix | None] = {}
        # Those who wait come before those waited for: a component after those that it points to.
        for rank, members in enumerate(strong_components([sorted(w) for w in waiting])):
            for member in members:
                self.rank[member] = rank

    def own_corner(self, nonterminal: int) -> Matrix | None:
        """The star of what a left-recursive rule reads in each round; None where it is not."""
        if nonterminal not in self._corners:
            rests = self.waiting[nonterminal].get(nonterminal)
            made = None
            if rests is not None:
                size = len(self.stops)
                made = star(sum((self._matrix(rest) for rest in rests), np.zeros((size, size))))
            self._corners[nonterminal] = made
        return self._corners[nonterminal]

    def _matrix(self, dot: int) -> Matrix:
        """What stands after a dot, as a matrix."""
        total = np.eye(len(self.stops))
        while (symbol := self.symbol_after[dot]) is not None:
            total = product(total, self._one(symbol))
            dot += 1
        return total

    def _one(self, symbol: Symbol) -> Matrix:
        return self.inside[symbol] if isinstance(symbol, int) else self.terminal[symbol]

    def completed(self, dot: int, continuation: Vector) -> Vector:
        """The continuation of what stands after a dot, given that of the rule."""
        symbols = []
        while (symbol := self.symbol_after[dot]) is not None:
            symbols.append(symbol)
            dot += 1
        for symbol in reversed(symbols):
            continuation = self._one(symbol) @ continuation
        return continuation

    def initial(self) -> EarleySet:
        """The set before the first byte."""
        return EarleySet(self, [(self.first_dots[self.goal][0], None)], 0)


class EarleySet:
    """All items after some bytes.

    Attributes:
        position: bytes read.
        accepting: whether the bytes are a text of the language.
        log_scale: natural logarithm of what :attr:`continuations` are relative to.
    """

    def __init__(self, chart: Chart, kernel: list[tuple[int, EarleySet | None]], at: int) -> None:
        self._chart = chart
        self.position = at
        self._items: list[_Item] = []
        self._waiting: dict[int, list[_Item]] = {}
        self._close([(dot, self if origin is None else origin) for dot, origin in kernel])
        goal_dot = chart.first_dots[chart.goal][0] + 1
        self.accepting = any(dot == goal_dot for dot, _ in self._items)
        self._next: dict[int, EarleySet | None] = {}
        self._continuations: dict[int, Vector] | None = None
        self.log_scale = 0.0

    def _close(self, kernel: list[_Item]) -> None:
        chart, after = self._chart, self._chart.symbol_after
        seen: set[tuple[int, int]] = set()
        work: list[_Item] = []

        def add(dot: int, origin: EarleySet) -> None:
            if (dot, origin.position) not in seen:
                seen.add((dot, origin.position))
                work.append((dot, origin))

        for dot, origin in kernel:
            add(dot, origin)
        while work:
            item = work.pop()
            dot, origin = item
            self._items.append(item)
            symbol = after[dot]
            if symbol is None:
                # What began here has read nothing: it was stepped over when it was predicted.
                if origin is not self:
                    for waiting, beginning in origin._waiting.get(chart.lhs_of[dot], ()):
                        add(waiting + 1, beginning)
            elif isinstance(symbol, int):
                if symbol not in self._waiting:
                    self._waiting[symbol] = []
                    for first in chart.first_dots[symbol]:
                        add(first, self)
                self._waiting[symbol].append(item)
                if symbol in chart.nullable:
                    add(dot + 1, origin)

    def read(self, byte: int) -> EarleySet | None:
        """The set after one more byte; None where it cannot follow."""
        if byte not in self._next:
            after = self._chart.symbol_after
            kernel: list[tuple[int, EarleySet | None]] = [
                (dot + 1, origin)
                for dot, origin in self._items
                if isinstance(symbol := after[dot], frozenset) and byte in symbol
            ]
            made = EarleySet(self._chart, kernel, self.position + 1) if kernel else None
            self._next[byte] = made
        return self._next[byte]

    def expected(self) -> frozenset[int]:
        """The bytes that can follow."""
        return frozenset().union(*(terminal for terminal, _, _ in self._terminals()))

    def _terminals(self) -> Iterator[tuple[Terminal, int, EarleySet]]:
        for dot, origin in self._items:
            symbol = self._chart.symbol_after[dot]
            if isinstance(symbol, frozenset):
                yield symbol, dot, origin

    @property
    def continuations(self) -> dict[int, Vector]:
        """The continuation of each nonterminal that is waited for here."""
        if self._continuations is None:
            # Earlier sets first, in a loop: a text may be longer than Python's stack is deep.
            needed, work = {self.position: self}, [self]
            while work:
                for _, origin in work.pop()._items:
                    if origin._continuations is None and origin.position not in needed:
                        needed[origin.position] = origin
                        work.append(origin)
            for position in sorted(needed):
                needed[position]._continuations = needed[position]._continued()
        assert self._continuations is not None
        return self._continuations

    def _continued(self) -> dict[int, Vector]:
        chart = self._chart
        known: dict[int, Vector] = {}
        if self.position == 0:
            known[chart.goal] = chart.stops
        else:
            self.log_scale = max(
                (origin.log_scale for _, origin in self._items if origin is not self), default=0.0
            )
        called = sorted(self._waiting, key=chart.rank.__getitem__)
        at = 0
        while at < len(called):
            members = [n for n in called[at:] if chart.rank[n] == chart.rank[called[at]]]
            at += len(members)
            outer = {n: self._from_others(n, frozenset(members), known) for n in members}
            if len(members) > 1:
                known.update(self._settled(members, outer))
                continue
            closed = chart.own_corner(members[0])
            vector = outer[members[0]]
            known[members[0]] = vector if closed is None else closed @ vector
        top = max((float(vector.max()) for vector in known.values()), default=0.0)
        if 0 < top < SMALL:
            self.log_scale += math.log(top)
            known = {nonterminal: vector / top for nonterminal, vector in known.items()}
        return known

    def _from_others(
        self, nonterminal: int, members: frozenset[int], known: Mapping[int, Vector]
    ) -> Vector:
        """The part of a continuation that comes from rules other than ``members`` here."""
        chart = self._chart
        total = np.zeros(len(chart.stops))
        for dot, origin in self._waiting[nonterminal]:
            lhs = chart.lhs_of[dot]
            if origin is self:
                if lhs not in members:
                    total += chart.completed(dot + 1, known[lhs])
            else:
                vector = chart.completed(dot + 1, origin.continuations[lhs])
                total += vector * math.exp(origin.log_scale - self.log_scale)
        return total

    def _settled(self, members: list[int], outer: dict[int, Vector]) -> dict[int, Vector]:
        """Continuations of rules that wait for each other here, round after round from below."""
        chart = self._chart
        known = dict(outer)
        for _ in range(MAX_ROUNDS):
            change = 0.0
            for nonterminal in members:
                vector = outer[nonterminal].copy()
                for dot, origin in self._waiting[nonterminal]:
                    lhs = chart.lhs_of[dot]
                    if origin is self and lhs in known and lhs != nonterminal:
                        vector += chart.completed(dot + 1, known[lhs])
                closed = chart.own_corner(nonterminal)
                vector = vector if closed is None else closed @ vector
                scale = np.maximum(vector, 1e-300)
                change = max(change, float((np.abs(vector - known[nonterminal]) / scale).max()))
                known[nonterminal] = vector
            if change <= TOLERANCE * len(chart.stops):
                return known
        raise NotConvergedError(
            f"the continuations of left-recursive rules did not settle in {MAX_ROUNDS:,} rounds",
            MAX_ROUNDS,
            1.0,
        )

    @lazy
    def vectors(self) -> tuple[list[tuple[Terminal, Vector]], float]:
        """Each terminal that can be read next, with what completing the text takes after it.

        And the logarithm of what these vectors are relative to.
        """
        chart = self._chart
        terminals = list(self._terminals())
        parts = [origin.continuations[chart.lhs_of[dot]] for _, dot, origin in terminals]
        scale = max((origin.log_scale for _, _, origin in terminals), default=0.0)
        found: dict[Terminal, Vector] = {}
        for (terminal, dot, origin), part in zip(terminals, parts, strict=True):
            vector = chart.completed(dot + 1, part) * math.exp(origin.log_scale - scale)
            found[terminal] = found[terminal] + vector if terminal in found else vector
        return list(found.items()), scale

    def survival(self, byte: int, state: int) -> float:
        """The logarithm of the probability of completion after one more byte, in a state."""
        vectors, scale = self.vectors
        total = sum(float(vector[state]) for terminal, vector in vectors if byte in terminal)
        return math.log(total) + scale if total > 0 else -math.inf
