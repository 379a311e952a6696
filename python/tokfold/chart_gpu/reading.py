"""How the bytes of a text become letters: one by one, or as terminals."""

from __future__ import annotations

import threading
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tokfold.chart_gpu.binary import BinaryGrammar
from tokfold.chart_gpu.lexer import BETWEEN, TerminalLexer
from tokfold.chart_gpu.tree import TokenTree
from tokfold.classes import TokenClasses
from tokfold.vocabulary import Vocabulary

__all__ = ["ByteReading", "Reading", "ReadingName", "TerminalReading"]

ReadingName: TypeAlias = Literal["bytes", "terminals"]

Words: TypeAlias = npt.NDArray[np.int32]


class Reading(Protocol):
    """Letters of bytes. Where a text stands in a letter is its state: 0 between two."""

    def read(self, state: int, data: bytes) -> tuple[list[int], int] | None:
        """The letters that bytes complete after a state, and the state after them.

        None where no text has them.
        """

    def may_stand(self, state: int, following: Words) -> bool:
        """Whether a letter that may be completed there is one of those that may come."""

    def expected(self, state: int, following: Words) -> bytes:
        """The bytes that may come, by the letters that may; ascending."""

    def tree(self, state: int, vocabulary: Vocabulary, classes: TokenClasses | None) -> TokenTree:
        """The token tree there; made once."""


class ByteReading:
    """A letter is a byte, or several that no rule tells apart."""

    def __init__(self, grammar: BinaryGrammar) -> None:
        self._grammar = grammar
        self._lock = threading.Lock()
        self._trees: dict[tuple[int, int], tuple[Vocabulary, TokenClasses | None, TokenTree]] = {}

    def read(self, state: int, data: bytes) -> tuple[list[int], int] | None:
        """As :meth:`Reading.read`."""
        letters = self._grammar.encode(data)
        return None if min(letters, default=0) < 0 else (letters, state)

    def may_stand(self, state: int, following: Words) -> bool:
        """As :meth:`Reading.may_stand`."""
        del state, following
        return True

    def expected(self, state: int, following: Words) -> bytes:
        """As :meth:`Reading.expected`."""
        del state
        letters = self._grammar.letter_of
        may = (following[letters >> 5] >> (letters & 31) & 1 != 0) & (letters >= 0)
        return bytes(np.flatnonzero(may).tolist())

    def tree(self, state: int, vocabulary: Vocabulary, classes: TokenClasses | None) -> TokenTree:
        """As :meth:`Reading.tree`."""
        del state
        with self._lock:
            key = (id(vocabulary), id(classes))  # both are kept, so the numbers stay theirs
            known = self._trees.get(key)
            if known is None:
                made = TokenTree.of(self._grammar, vocabulary, classes)
                known = self._trees[key] = (vocabulary, classes, made)
            return known[2]


class TerminalReading:
    """A letter is a terminal of the grammar; none begins like another."""

    def __init__(self, grammar: BinaryGrammar) -> None:
        """Raises :class:`UnsupportedGrammarError` where one does: see :class:`TerminalLexer`."""
        self._lexer = TerminalLexer(grammar)
        self._lock = threading.Lock()

    def read(self, state: int, data: bytes) -> tuple[list[int], int] | None:
        """As :meth:`Reading.read`."""
        return self._lexer.read(state, data)

    def may_stand(self, state: int, following: Words) -> bool:
        """As :meth:`Reading.may_stand`."""
        return state == BETWEEN or bool(self._lexer.below(state) & _bits(following))

    def expected(self, state: int, following: Words) -> bytes:
        """As :meth:`Reading.expected`."""
        may = _bits(following)
        steps = self._lexer.steps(state)
        return bytes(sorted(byte for byte, to in steps.items() if self._lexer.below(to) & may))

    def tree(self, state: int, vocabulary: Vocabulary, classes: TokenClasses | None) -> TokenTree:
        """As :meth:`Reading.tree`."""
        with self._lock:
            return self._lexer.tree(state, vocabulary, classes)


def _bits(words: Words) -> int:
    return int.from_bytes(words.tobytes(), "little")
