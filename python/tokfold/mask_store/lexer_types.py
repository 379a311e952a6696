"""What transitions and rows are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "ALL_SCANNERS",
    "NO_SCANNER",
    "NO_TERMINAL",
    "Column",
    "JoinedRows",
    "Letter",
    "LexerLimits",
    "Way",
    "letter_of",
]

NO_TERMINAL: int = 2**32 - 1
"""In rows: nothing is in progress."""

NO_SCANNER = 0
"""The empty set of scanners."""
ALL_SCANNERS = 1
"""The set of all scanners."""


@dataclass(frozen=True)
class LexerLimits:
    """Bounds on building; each is a typed error when it is reached.

    Attributes:
        max_terminal_states: states of the automaton of one terminal, over characters.
        max_lexer_states: joint states with open questions.
        max_walk_work: nodes of the vocabulary's trie visited and ways written, in all.
    """

    max_terminal_states: int = 20_000
    max_lexer_states: int = 100_000
    max_walk_work: int = 2_000_000_000


class Column(NamedTuple):
    """Where a newline terminal ends.

    Attributes:
        kind: ``"none"``: no newline terminal; ``"open"``: it is still in progress, ``value``
            is 1 once it has a line feed; ``"at"``: its
            last line feed is in the token, ``value`` is the column; ``"after"``: it is not,
            ``value`` is added to the column before the token; ``"missing"``: it began in the
            token and has no line feed.
        value: columns. A column counts the blanks since the last line feed of the whole text, as
            long as only the newline terminal stands behind that.
    """

    kind: Literal["none", "open", "at", "after", "missing"]
    value: int


_KINDS: tuple[Literal["none", "open", "at", "after", "missing"], ...] = (
    "none",
    "open",
    "at",
    "after",
    "missing",
)


class Letter(NamedTuple):
    """A terminal that begins in a token.

    Attributes:
        terminal: index in ``grammar.terminals``. An ignored one shifts nothing: it is only asked
            for its scanners.
        scanners: a set of scanners (index in :attr:`Transitions.scanner_sets`): the scanner of
            the state that the parser is in when the terminal begins must be in it. The empty set
            (0) marks the newline terminal that was in progress before the token: it does not
            begin here, the letter says where it ends.
        column: for the newline terminal.
    """

    terminal: int
    scanners: int
    column: Column


class Way(NamedTuple):
    """One way of a token from a lexer state.

    Attributes:
        scanners: the set of scanners that the terminal in progress must have begun in.
        letters: the letters that begin, the last one possibly still in progress.
        state: the lexer state after it; ``None`` if no token of the vocabulary leads there.
    """

    scanners: int
    letters: tuple[Letter, ...]
    state: int | None


@dataclass(frozen=True)
class JoinedRows:
    """A store over the states of single terminals, as the paper has it: for any parser state.

    What the exact lexer states tell apart beyond the state of the terminal in progress is joined
    here, and scanners are not asked. So this store allows all that the exact one does, and more.

    Attributes:
        states: shape ``(n, 2)``: a state of a terminal's automaton (numbered through) and its
            terminal; :data:`NO_TERMINAL` for the start of the text.
        transitions: shape ``(n,)``: for each state the number of triples of token, state after
            it, and terminals that begin.
        row_counts: shape ``(n,)``: for each state the number of its rows.
        rows: shape ``(m, 3)``: state, sequence, token set.
        sequences: for each sequence its terminals.
        token_sets: for each set its tokens, sorted.
    """

    states: npt.NDArray[np.int64]
    transitions: npt.NDArray[np.int64]
    row_counts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    sequences: list[tuple[int, ...]]
    token_sets: list[npt.NDArray[np.uint32]]


def letter_of(quad: tuple[int, int, int, int]) -> Letter:
    """The letter that the core says in four numbers."""
    terminal, scanners, kind, value = quad
    return Letter(terminal, scanners, Column(_KINDS[kind], value))
