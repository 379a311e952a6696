"""Incremental recognition over a binary grammar as its definition says: slow, and obvious.

Places of a text stand between its letters: 0 before the first. For each place there are

- ``predicted``: the symbols that some derivation may begin there;
- ``ended``: for each symbol the places where a string of it begins that ends there.

Both never change once they are made. Only predicted symbols are looked for: this filter from above
keeps the chart small, and loses nothing, since what is not predicted can be part of no derivation.
"""

from __future__ import annotations

import numpy as np
from tokfold.chart_gpu.binary import BinaryGrammar, bits_of


class BinaryChart:
    """A text on its way; :meth:`step` makes a new one, so branches share what they have read."""

    def __init__(self, grammar: BinaryGrammar) -> None:
        self.grammar = grammar
        self.ended: list[np.ndarray] = [np.zeros((grammar.num_symbols, 1), dtype=bool)]
        wanted = [] if grammar.start < 0 else [grammar.start]
        self.predicted = [self._closure(wanted)]
        self.accepting = grammar.accepts_empty

    def _closure(self, wanted) -> np.ndarray:
        out = np.zeros(self.grammar.num_symbols, dtype=bool)
        for symbol in wanted:
            out[bits_of(self.grammar.corners[symbol])] = True
        return out

    @property
    def length(self) -> int:
        """Letters read."""
        return len(self.ended) - 1

    def next_letters(self) -> list[int]:
        """The letters that may come next, ascending."""
        here = self.predicted[-1]
        return sorted({int(letter) for letter, symbol in self.grammar.leaves if here[symbol]})

    def step(self, letter: int) -> BinaryChart:
        """The chart after one more letter; without next letters if it may not come."""
        end = len(self.ended)
        predicted = np.array(self.predicted)  # by place and symbol
        begins = np.zeros((self.grammar.num_symbols, end), dtype=bool)
        for leaf, symbol in self.grammar.leaves:
            if leaf == letter and predicted[end - 1][symbol]:
                begins[symbol, end - 1] = True
        for middle in range(end - 1, 0, -1):
            for symbol, left, right in self.grammar.rules:
                if begins[right, middle]:
                    starts = self.ended[middle][left] & predicted[:middle, symbol]
                    begins[symbol, :middle] |= starts
        wanted = {
            int(right)
            for symbol, left, right in self.grammar.rules
            if (begins[left] & predicted[:, symbol]).any()
        }
        after = object.__new__(BinaryChart)
        after.grammar = self.grammar
        after.ended = [*self.ended, begins]
        after.predicted = [*self.predicted, self._closure(sorted(wanted))]
        after.accepting = bool(begins[self.grammar.start, 0])
        return after
