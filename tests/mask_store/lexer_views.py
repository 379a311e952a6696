"""What the lexer and the matchers of a mask store have in the core, with names, for oracles.

Decoding needs none of it: there the core reads its own numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.store import MaskStore
from tokfold.mask_store.transitions import Transitions

NO_SCANNER = 0
"""The empty set of scanners."""

NOTHING_READ = 2**32 - 1
"""In place of a terminal of a raw row: only the top of the stack is asked for."""

_KINDS: tuple[Literal["none", "open", "at", "after", "missing"], ...] = (
    "none",
    "open",
    "at",
    "after",
    "missing",
)


class Column(NamedTuple):
    """Where a newline terminal ends.

    ``"none"``: no newline terminal; ``"open"``: it is still in progress, ``value`` is 1 once it has
    a line feed; ``"at"``: its last line feed is in the token, ``value`` is the column; ``"after"``:
    it is not, ``value`` is added to the column before the token; ``"missing"``: it began in the
    token and has no line feed. A column counts the blanks since the last line feed of the whole
    text, as long as only the newline terminal stands behind that.
    """

    kind: Literal["none", "open", "at", "after", "missing"]
    value: int


class Letter(NamedTuple):
    """A terminal that begins in a token.

    An ignored one shifts nothing: it is only asked for its scanners. The scanner of the state that
    the parser is in when the terminal begins must be in the set ``scanners``. The empty set marks
    the newline terminal that was in progress before the token: it does not begin here, the letter
    says where it ends.
    """

    terminal: int
    scanners: int
    column: Column


class Way(NamedTuple):
    """One way of a token from a lexer state."""

    scanners: int
    """The set of scanners that the terminal in progress must have begun in."""
    letters: tuple[Letter, ...]
    state: int | None
    """The lexer state after it; ``None`` if no token of the vocabulary leads there."""


def letter_of(quad: Sequence[int]) -> Letter:
    terminal, scanners, kind, value = quad
    return Letter(terminal, scanners, Column(_KINDS[kind], value))


class LexerView:
    """Transitions, letter by letter and row by row."""

    def __init__(self, transitions: Transitions) -> None:
        self._core, self._rows = transitions._core, transitions.rows
        self.grammar, self.vocabulary = transitions.grammar, transitions.vocabulary
        self.states, self.start = transitions.states, transitions.start
        self.letters = [letter_of(quad) for quad in self._rows["letters"].reshape(-1, 4).tolist()]
        flat = self._rows["sequence_letters"].tolist()
        ends = self._rows["sequence_offsets"].tolist()
        self.sequences = [tuple(flat[a:b]) for a, b in itertools.pairwise(ends)]

    @cached_property
    def scanner_sets(self) -> npt.NDArray[np.bool_]:
        """Shape ``(sets, scanners)``."""
        count = len(self.grammar.scanners)
        words = self._core.scanner_sets().reshape(-1, -(-count // 64))
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        return bits[:, :count].astype(bool)

    @cached_property
    def shared_rows(self) -> npt.NDArray[np.int64]:
        """Shape ``(n, 3)``: part, sequence, token set: what begins at the first byte of a token."""
        return self._rows["parts"].reshape(-1, 5).astype(np.int64)[:, [0, 3, 4]]

    @cached_property
    def own_rows(self) -> npt.NDArray[np.int64]:
        """Shape ``(n, 5)``: configuration, terminal, scanners, sequence, token set.

        Those of the tokens whose first byte still belongs to what is in progress.
        """
        return self._rows["own"].reshape(-1, 5).astype(np.int64)

    @cached_property
    def at_once(self) -> npt.NDArray[np.int64]:
        """Shape ``(n, 4)``: configuration, terminal, scanners, part.

        Where the terminal in progress may end before the next token: the rows of the part follow.
        """
        return self._rows["ends"].reshape(-1, 4).astype(np.int64)

    @cached_property
    def token_sets(self) -> list[npt.NDArray[np.uint32]]:
        """The tokens of each set, sorted."""
        return list(np.split(self._rows["tokens"], self._rows["token_offsets"][1:-1]))

    def advance(self, state: int, data: bytes) -> list[Way]:
        """Every way of a text, such as the bytes of a token, from a lexer state."""
        return [
            Way(scanners, tuple(map(letter_of, letters)), after)
            for scanners, letters, after in self._core.advance(state, data)
        ]

    def complete(self, state: int) -> int:
        """The set of scanners in which the terminal in progress is complete where the text ends."""
        return self._core.complete(state)


# ----------------------------------------------------------------------- matchers


@dataclass(frozen=True)
class Place:
    """One way in which the text of a matcher may be meant."""

    stack: tuple[int, ...]
    """States of the parser, the start first; the terminal in progress has been read, unless it is
    ignored or the newline of a post-lexer."""
    state: int
    """Of the lexer."""
    scanner: int
    """In which the terminal in progress began."""
    parens: int
    """Parentheses that are open."""
    columns: tuple[int, ...]
    """Columns of the lines that the text stands in, ascending."""
    column: int | None
    """That of the newline terminal in progress; None if it has no line feed yet, or there is
    none."""


def places(matcher: StoreMatcher) -> list[Place]:
    return [
        Place(tuple(stack), state, scanner, parens, tuple(columns), column)
        for stack, state, scanner, parens, columns, column in matcher._core.places()
    ]


RawLetter = tuple[int, frozenset[int] | None]
"""A terminal, and the tops of the stack on which it can be read: None for any."""


def raw_rows(
    store: MaskStore, place: Place
) -> Iterator[tuple[list[RawLetter], npt.NDArray[np.uint32]]]:
    """The rows of a place before any predicate: what the parser reads, and its tokens, sorted.

    Rows at which the post-lexer fails are left out.
    """
    layout = place.parens, list(place.columns), place.column
    for letters, tokens in store._core.raw_rows(place.state, place.scanner, layout):
        row = [(terminal, None if t is None else frozenset(t)) for terminal, t in letters]
        yield row, store._core.token_set(tokens)


def reads(store: MaskStore, stack: Sequence[int], letters: Sequence[RawLetter]) -> bool:
    """Whether the table reads some letters from a whole stack, one after the other."""
    current, graph = list(stack), store.predicates.graph
    for terminal, tops in letters:
        if tops is not None and current[-1] not in tops:
            return False
        if terminal != NOTHING_READ and not graph.shift(current, terminal):
            return False
    return True
