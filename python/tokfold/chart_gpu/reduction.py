"""From productions to rules of two symbols.

Each pass keeps the language of every symbol, but for the empty string:

1. *binarize*: ``V -> A B C`` becomes ``V -> A V'`` and ``V' -> B C``. The left child of a rule is
   always a symbol as written, so few are left children, and only those are stored; equal ends of
   right-hand sides are one symbol.
2. *fold the empty string*: where a child may be empty, a rule without it stands beside.
3. *close over units*: where ``V`` may be nothing but ``W``, ``V`` has what ``W`` has. No rule of
   one symbol is left.
4. *reduce*: symbols without a string go, equal ones become one, and those go that the start does
   not reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tokfold.chart_gpu.productions import Productions
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.limits import Limits

__all__ = ["Draft"]

_Pair: TypeAlias = tuple[int, int]


class Draft:
    """A grammar on its way to the binary form."""

    def __init__(self, read: Productions, limits: Limits) -> None:
        self.alphabet = read.alphabet
        self.limits = limits
        self.start = read.start
        self.letters = list(read.letters)
        self.pairs: list[set[_Pair]] = [set() for _ in read.bodies]
        self.units: list[set[int]] = [set() for _ in read.bodies]
        self.empty = [False] * len(read.bodies)
        self._known: dict[_Pair, int] = {}
        for symbol, bodies in enumerate(read.bodies):
            for body in bodies:
                self._add(symbol, body)
        self._bound()

    def _add(self, symbol: int, body: tuple[int, ...]) -> None:
        if not body:
            self.empty[symbol] = True
        elif len(body) == 1:
            self.units[symbol].add(body[0])
        else:
            end = body[-1]
            for part in reversed(body[1:-1]):
                end = self._pair(part, end)
            self.pairs[symbol].add((body[0], end))

    def _pair(self, left: int, right: int) -> int:
        """The symbol that is nothing but these two."""
        found = self._known.get((left, right))
        if found is None:
            found = self._known[left, right] = len(self.pairs)
            self.pairs.append({(left, right)})
            self.units.append(set())
            self.empty.append(False)
            self.letters.append(0)
        return found

    def _bound(self) -> None:
        count, most = sum(map(len, self.pairs)), self.limits.max_binary_rules
        if count > most:
            raise LimitExceededError(
                f"limit max_binary_rules = {most} reached: the binary form of the grammar has "
                f"{count} rules or more; simplify the grammar, or raise the limit",
                "max_binary_rules",
                most,
            )

    # -------------------------------------------------------------- the empty string

    def fold_empty(self) -> None:
        """No symbol has the empty string from here on; who wants it left out leaves it out."""
        empty = self._closed(self.empty)
        self.accepts_empty = empty[self.start]
        for symbol, pairs in enumerate(self.pairs):
            for left, right in pairs:
                if empty[right]:
                    self.units[symbol].add(left)
                if empty[left]:
                    self.units[symbol].add(right)

    def _closed(self, known: list[bool]) -> list[bool]:
        """The symbols that are known, and those that some right-hand side makes of such alone."""
        users: list[list[int]] = [[] for _ in self.pairs]
        for symbol in range(len(self.pairs)):
            for part in self.units[symbol].union(*self.pairs[symbol]):
                users[part].append(symbol)
        found = list(known)
        work = [symbol for symbol, is_known in enumerate(known) if is_known]
        while work:
            for user in users[work.pop()]:
                if not found[user] and (
                    any(found[part] for part in self.units[user])
                    or any(found[left] and found[right] for left, right in self.pairs[user])
                ):
                    found[user] = True
                    work.append(user)
        return found

    # ------------------------------------------------------------------- symbols go

    def drop_barren(self) -> None:
        """Symbols without a string go, and the rules that need one."""
        good = self._closed([letters != 0 for letters in self.letters])
        for symbol, pairs in enumerate(self.pairs):
            self.pairs[symbol] = {pair for pair in pairs if good[pair[0]] and good[pair[1]]}
            self.units[symbol] = {part for part in self.units[symbol] if good[part]}
        if not good[self.start] and not self.accepts_empty:
            raise UnsupportedGrammarError(
                "the grammar has no string at all: no text completes its root",
                "root",
                1,
                1,
            )
        self.has_strings = good[self.start]

    def close_units(self) -> None:
        """Each symbol has the rules and letters of all that it may be alone."""
        pairs: list[set[_Pair]] = []
        letters: list[int] = []
        count = 0
        reached = self._reached(lambda symbol: self.units[symbol].union(*self.pairs[symbol]))
        for symbol in range(len(self.pairs)):
            every: set[_Pair] = set()
            any_letter = 0
            alone = {symbol} if reached[symbol] else set()
            work = list(alone)
            while work:
                part = work.pop()
                every |= self.pairs[part]
                any_letter |= self.letters[part]
                new = self.units[part] - alone
                alone |= new
                work.extend(new)
            pairs.append(every)
            letters.append(any_letter)
            count += len(every)
            if count > self.limits.max_binary_rules:
                self.pairs = pairs
                self._bound()
        self.pairs, self.letters = pairs, letters

    def _reached(self, parts_of: Callable[[int], Iterable[int]]) -> list[bool]:
        reached = [False] * len(self.pairs)
        reached[self.start] = True
        work = [self.start]
        while work:
            for part in parts_of(work.pop()):
                if not reached[part]:
                    reached[part] = True
                    work.append(part)
        return reached

    def merge_equal(self) -> None:
        """Symbols with the same rules and letters become one, until none are left."""
        alive = [symbol for symbol, pairs in enumerate(self.pairs) if pairs or self.letters[symbol]]
        while True:
            seen: dict[tuple[frozenset[_Pair], int], int] = {}
            now = {
                symbol: seen.setdefault(
                    (frozenset(self.pairs[symbol]), self.letters[symbol]), symbol
                )
                for symbol in alive
            }
            if len(seen) == len(alive):
                return
            alive = list(seen.values())
            for symbol in alive:
                self.pairs[symbol] = {(now[a], now[b]) for a, b in self.pairs[symbol]}
            self.start = now.get(self.start, self.start)
