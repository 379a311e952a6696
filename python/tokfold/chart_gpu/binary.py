"""A grammar in the form that charts on a device read: rules of two symbols, and letters.

Each pass keeps the language of every symbol, but for the empty string:

1. *binarize*: ``V -> A B C`` becomes ``V -> A V'`` and ``V' -> B C``. The left child of a rule is
   always a symbol as written, so few are left children, and only those are stored; equal ends of
   right-hand sides are one symbol.
2. *fold the empty string*: where a child may be empty, a rule without it stands beside.
3. *close over units*: where ``V`` may be nothing but ``W``, ``V`` has what ``W`` has. No rule of
   one symbol is left.
4. *reduce*: symbols without a string go, equal ones become one, and those go that the start does
   not reach.

Then the left corners of each symbol, and its first letters. After the incremental Valiant
recognizer, sections 4.3 and 5.3: its FIRST is the closure here, and it needs a grammar that is
reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tokfold.chart_gpu.letters import Alphabet, AlphabetName
from tokfold.chart_gpu.productions import Productions, read_productions
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.grammar import Grammar
from tokfold.limits import Limits

__all__ = ["BinaryGrammar", "bits_of"]

MAX_SYMBOLS = 32_767
"""Symbols are numbers of 16 bits on the device."""

_Pair: TypeAlias = tuple[int, int]
_Array: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class BinaryGrammar:
    """Rules ``V -> A B`` and ``V -> letter`` over numbered symbols. Immutable.

    Symbols that are right children come first. Every symbol has a string, and the start reaches it.

    Attributes:
        alphabet: what the letters are.
        letter_of: int32: the letter of each letter of ``alphabet``; -1 for those in no string.
            Bytes that no rule tells apart are one letter; terminals stay as they are.
        num_letters: letters are numbers from 0 to one less.
        num_symbols: symbols are numbers from 0 to one less.
        num_rights: symbols below are right children.
        start: the start symbol; -1 where the grammar has no string but the empty one.
        accepts_empty: whether the empty string is a string of the grammar.
        rules: int32, shape ``(R, 3)``: ``V, A, B``, ascending by ``B, A, V``.
        leaves: int32, shape ``(K, 2)``: a letter and a symbol that has it, ascending.
        lefts: int32: the symbols that are left children, ascending.
        corners: for each symbol the symbols that may stand first in it, itself among them: a number
            whose bits are symbols.
        firsts: for each symbol the letters that may stand first in it, as bits.
    """

    alphabet: Alphabet
    letter_of: _Array
    num_letters: int
    num_symbols: int
    num_rights: int
    start: int
    accepts_empty: bool
    rules: _Array
    leaves: _Array
    lefts: _Array
    corners: tuple[int, ...]
    firsts: tuple[int, ...]

    @classmethod
    def of(
        cls, grammar: Grammar, alphabet: AlphabetName = "bytes", limits: Limits | None = None
    ) -> BinaryGrammar:
        """The binary form of a grammar.

        Args:
            grammar: the grammar.
            alphabet: what a letter is: see :class:`Alphabet`.
            limits: ``max_binary_rules`` and ``max_binary_symbols``.

        Raises:
            UnsupportedGrammarError: the grammar has no string at all, or what has no productions.
            LimitExceededError: it passes a bound, or more symbols than the device can number.
        """
        limits = limits or Limits()
        read = read_productions(grammar, alphabet, limits)
        draft = _Draft(read, limits)
        draft.fold_empty()
        draft.drop_barren()
        draft.close_units()
        draft.merge_equal()
        return draft.finish()

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.letter_of, self.rules, self.leaves, self.lefts)
        return sum(array.nbytes for array in arrays)

    def encode(self, text: bytes | list[str]) -> list[int]:
        """The letters of a text, -1 for bytes that are in no string of the grammar.

        Raises:
            AlphabetError: a terminal is none of the grammar.
        """
        return [int(self.letter_of[letter]) for letter in self.alphabet.encode(text)]

    def __repr__(self) -> str:
        return (
            f"<BinaryGrammar of {self.num_symbols} symbols, {len(self.rules)} rules, "
            f"{len(self.lefts)} left children, {self.num_letters} letters>"
        )


def bits_of(number: int) -> list[int]:
    """The places of the bits that are set, ascending."""
    places = []
    while number:
        low = number & -number
        places.append(low.bit_length() - 1)
        number ^= low
    return places


class _Draft:
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
        empty = self._empty_symbols()
        self.accepts_empty = empty[self.start]
        for symbol, pairs in enumerate(self.pairs):
            for left, right in pairs:
                if empty[right]:
                    self.units[symbol].add(left)
                if empty[left]:
                    self.units[symbol].add(right)

    def _empty_symbols(self) -> list[bool]:
        users: list[list[int]] = [[] for _ in self.pairs]
        for symbol in range(len(self.pairs)):
            for part in self.units[symbol].union(*self.pairs[symbol]):
                users[part].append(symbol)
        empty = list(self.empty)
        work = [symbol for symbol, is_empty in enumerate(empty) if is_empty]
        while work:
            for user in users[work.pop()]:
                if not empty[user] and (
                    any(empty[part] for part in self.units[user])
                    or any(empty[left] and empty[right] for left, right in self.pairs[user])
                ):
                    empty[user] = True
                    work.append(user)
        return empty

    # ------------------------------------------------------------------- symbols go

    def drop_barren(self) -> None:
        """Symbols without a string go, and the rules that need one."""
        users: list[list[int]] = [[] for _ in self.pairs]
        for symbol in range(len(self.pairs)):
            for part in self.units[symbol].union(*self.pairs[symbol]):
                users[part].append(symbol)
        good = [letters != 0 for letters in self.letters]
        work = [symbol for symbol, is_good in enumerate(good) if is_good]
        while work:
            for user in users[work.pop()]:
                if not good[user] and (
                    any(good[part] for part in self.units[user])
                    or any(good[left] and good[right] for left, right in self.pairs[user])
                ):
                    good[user] = True
                    work.append(user)
        for symbol, pairs in enumerate(self.pairs):
            self.pairs[symbol] = {pair for pair in pairs if good[pair[0]] and good[pair[1]]}
            self.units[symbol] = {part for part in self.units[symbol] if good[part]}
        if not good[self.start] and not self.accepts_empty:
            raise UnsupportedGrammarError(
                "line 1, column 1: the grammar has no string at all: no text completes its root",
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

    # ----------------------------------------------------------------------- numbers

    def finish(self) -> BinaryGrammar:
        """Number what is reached, and find left corners."""
        if not self.has_strings:
            return self._only_empty()
        order = self._order()
        rights = {right for symbol in order for _, right in self.pairs[symbol]}
        ordered = [s for s in order if s in rights] + [s for s in order if s not in rights]
        number = {symbol: index for index, symbol in enumerate(ordered)}
        self._bound_symbols(len(ordered))
        rules = sorted(
            (number[right], number[left], number[symbol])
            for symbol in ordered
            for left, right in self.pairs[symbol]
        )
        table = np.array(rules, dtype=np.int32).reshape(-1, 3)[:, ::-1]
        letter_of, letters = self._letters(ordered)
        leaves = sorted(
            (letter, index)
            for index, symbol in enumerate(ordered)
            for letter in {int(letter_of[i]) for i in bits_of(self.letters[symbol])}
        )
        corners = self._corners(len(ordered), table)
        own = [0] * len(ordered)
        for letter, index in leaves:
            own[index] |= 1 << letter
        firsts = []
        for corner in corners:
            first = 0
            for index in bits_of(corner):
                first |= own[index]
            firsts.append(first)
        return BinaryGrammar(
            alphabet=self.alphabet,
            letter_of=letter_of,
            num_letters=letters,
            num_symbols=len(ordered),
            num_rights=len(rights),
            start=number[self.start],
            accepts_empty=self.accepts_empty,
            rules=np.ascontiguousarray(table),
            leaves=np.array(leaves, dtype=np.int32).reshape(-1, 2),
            lefts=np.unique(table[:, 1]).astype(np.int32),
            corners=tuple(corners),
            firsts=tuple(firsts),
        )

    def _only_empty(self) -> BinaryGrammar:
        none = np.zeros((0, 3), dtype=np.int32)
        return BinaryGrammar(
            alphabet=self.alphabet,
            letter_of=np.full(len(self.alphabet), -1, dtype=np.int32),
            num_letters=0,
            num_symbols=0,
            num_rights=0,
            start=-1,
            accepts_empty=True,
            rules=none,
            leaves=none[:, :2],
            lefts=none[:, 0],
            corners=(),
            firsts=(),
        )

    def _order(self) -> list[int]:
        """What the start reaches, nearest first, in an order that the grammar text fixes."""
        order, seen = [self.start], {self.start}
        for symbol in order:
            for pair in sorted(self.pairs[symbol]):
                for part in pair:
                    if part not in seen:
                        seen.add(part)
                        order.append(part)
        return order

    def _bound_symbols(self, count: int) -> None:
        most = min(self.limits.max_binary_symbols, MAX_SYMBOLS)
        if max(count, len(self.alphabet)) > most:
            raise LimitExceededError(
                f"limit max_binary_symbols = {most} reached: the binary form of the grammar has "
                f"{count} symbols over {len(self.alphabet)} letters, and a device numbers them "
                f'with 16 bits; simplify the grammar, or use engine="chart"',
                "max_binary_symbols",
                most,
            )

    def _letters(self, ordered: list[int]) -> tuple[_Array, int]:
        """The letters of the alphabet, numbered anew: those in no string are none."""
        size = len(self.alphabet)
        letter_of = np.full(size, -1, dtype=np.int32)
        if self.alphabet.name != "bytes":
            # Each keeps its number, used or not: callers know it by its place in the alphabet.
            return np.arange(size, dtype=np.int32), size
        users: list[list[int]] = [[] for _ in range(size)]
        for index, symbol in enumerate(ordered):
            for letter in bits_of(self.letters[symbol]):
                users[letter].append(index)
        seen: dict[tuple[int, ...], int] = {}
        for letter, which in enumerate(users):
            if which:
                letter_of[letter] = seen.setdefault(tuple(which), len(seen))
        return letter_of, len(seen)

    def _corners(self, count: int, rules: npt.NDArray[np.int32]) -> list[int]:
        """For each symbol what may stand first in it, as bits; itself too."""
        lefts: list[set[int]] = [set() for _ in range(count)]
        for symbol, left, _ in rules.tolist():
            lefts[symbol].add(left)
        corners = []
        total = 0
        for symbol in range(count):
            found, work, bits = {symbol}, [symbol], 0
            while work:
                part = work.pop()
                bits |= 1 << part
                new = lefts[part] - found
                found |= new
                work.extend(new)
            corners.append(bits)
            # A row of the table takes a bit for each symbol, set or not.
            total += len(found)
            if total > self.limits.max_binary_rules:
                most = self.limits.max_binary_rules
                raise LimitExceededError(
                    f"limit max_binary_rules = {most} reached: pairs of left corners; raise it",
                    "max_binary_rules",
                    most,
                )
        return corners
