"""A grammar in the form that charts on a device read: rules of two symbols, and letters.

How it comes about, :mod:`tokfold.chart_gpu.reduction` says. Here symbols and letters get their
numbers, and of each symbol it is told what may stand first in it. After the incremental Valiant
recognizer, sections 4.3 and 5.3: its FIRST is the closure here, and it needs a grammar that is
reduced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tokfold.chart_gpu.letters import Alphabet, AlphabetName
from tokfold.chart_gpu.productions import read_productions
from tokfold.chart_gpu.reduction import Draft
from tokfold.errors import LimitExceededError
from tokfold.grammar import Grammar
from tokfold.limits import DEFAULT_LIMITS, Limits

__all__ = ["BinaryGrammar", "bits_of", "words_of"]

MAX_SYMBOLS = 32_767
"""Symbols are numbers of 16 bits on the device."""

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
        limits = limits or DEFAULT_LIMITS
        read = read_productions(grammar, alphabet, limits)
        draft = Draft(read, limits)
        draft.fold_empty()
        draft.drop_barren()
        draft.close_units()
        draft.merge_equal()
        return _numbered(draft)

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


def words_of(numbers: tuple[int, ...] | list[int], bits: int) -> npt.NDArray[np.int32]:
    """Numbers as rows of int32 words: shape ``(len(numbers), ceil(bits / 32))``."""
    width = -(-bits // 32)
    data = b"".join(number.to_bytes(4 * width, "little") for number in numbers)
    return np.frombuffer(data, dtype=np.int32).reshape(len(numbers), width)


def _numbered(draft: Draft) -> BinaryGrammar:
    """Number what is reached, and find left corners."""
    if not draft.has_strings:
        return _only_empty(draft)
    order = _order(draft)
    rights = {right for symbol in order for _, right in draft.pairs[symbol]}
    ordered = [s for s in order if s in rights] + [s for s in order if s not in rights]
    number = {symbol: index for index, symbol in enumerate(ordered)}
    _bound_symbols(draft, len(ordered))
    rules = sorted(
        (number[right], number[left], number[symbol])
        for symbol in ordered
        for left, right in draft.pairs[symbol]
    )
    table = np.array(rules, dtype=np.int32).reshape(-1, 3)[:, ::-1]
    letter_of, letters = _letters(draft, ordered)
    leaves = sorted(
        (letter, index)
        for index, symbol in enumerate(ordered)
        for letter in {int(letter_of[i]) for i in bits_of(draft.letters[symbol])}
    )
    corners = _corners(draft, len(ordered), table)
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
        alphabet=draft.alphabet,
        letter_of=letter_of,
        num_letters=letters,
        num_symbols=len(ordered),
        num_rights=len(rights),
        start=number[draft.start],
        accepts_empty=draft.accepts_empty,
        rules=np.ascontiguousarray(table),
        leaves=np.array(leaves, dtype=np.int32).reshape(-1, 2),
        lefts=np.unique(table[:, 1]).astype(np.int32),
        corners=tuple(corners),
        firsts=tuple(firsts),
    )


def _only_empty(draft: Draft) -> BinaryGrammar:
    none = np.zeros((0, 3), dtype=np.int32)
    return BinaryGrammar(
        alphabet=draft.alphabet,
        letter_of=np.full(len(draft.alphabet), -1, dtype=np.int32),
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


def _order(draft: Draft) -> list[int]:
    """What the start reaches, nearest first, in an order that the grammar text fixes."""
    order, seen = [draft.start], {draft.start}
    for symbol in order:
        for pair in sorted(draft.pairs[symbol]):
            for part in pair:
                if part not in seen:
                    seen.add(part)
                    order.append(part)
    return order


def _bound_symbols(draft: Draft, count: int) -> None:
    most = min(draft.limits.max_binary_symbols, MAX_SYMBOLS)
    if max(count, len(draft.alphabet)) > most:
        raise LimitExceededError(
            f"limit max_binary_symbols = {most} reached: the binary form of the grammar has "
            f"{count} symbols over {len(draft.alphabet)} letters, and a device numbers them "
            f'with 16 bits; simplify the grammar, or use engine="chart"',
            "max_binary_symbols",
            most,
        )


def _letters(draft: Draft, ordered: list[int]) -> tuple[_Array, int]:
    """The letters of the alphabet, numbered anew: those in no string are none."""
    size = len(draft.alphabet)
    letter_of = np.full(size, -1, dtype=np.int32)
    if draft.alphabet.name != "bytes":
        # Each keeps its number, used or not: callers know it by its place in the alphabet.
        return np.arange(size, dtype=np.int32), size
    users: list[list[int]] = [[] for _ in range(size)]
    for index, symbol in enumerate(ordered):
        for letter in bits_of(draft.letters[symbol]):
            users[letter].append(index)
    seen: dict[tuple[int, ...], int] = {}
    for letter, which in enumerate(users):
        if which:
            letter_of[letter] = seen.setdefault(tuple(which), len(seen))
    return letter_of, len(seen)


def _corners(draft: Draft, count: int, rules: npt.NDArray[np.int32]) -> list[int]:
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
        if total > draft.limits.max_binary_rules:
            most = draft.limits.max_binary_rules
            raise LimitExceededError(
                f"limit max_binary_rules = {most} reached: pairs of left corners; raise it",
                "max_binary_rules",
                most,
            )
    return corners
