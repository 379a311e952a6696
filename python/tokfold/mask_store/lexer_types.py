"""What transitions and rows are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["NO_TERMINAL", "JoinedRows", "LexerLimits"]

NO_TERMINAL: int = 2**32 - 1
"""In rows: nothing is in progress."""


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
