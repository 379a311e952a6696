"""Small Markov models over tokens: models whose every probability is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tokfold.laboratory.fidelity.errors import ModelError
from tokfold.vocabulary import Vocabulary

__all__ = ["MarkovModel"]

Floats = npt.NDArray[np.float64]
_SUM_TOLERANCE = 1e-9


class MarkovModel:
    """A model that is in one of a few states; the token chosen decides the next.

    Called with the tokens so far, it gives the logarithms of the next token's probabilities, as
    every model here does.

    Attributes:
        vocabulary: the vocabulary; it has a stop token.
        probabilities: float64, shape ``(S, V)``: of each token in each state; rows sum to 1.
        successors: int64, shape ``(S, V)``: the state after each token.
        start: the state before the first token.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        probabilities: npt.ArrayLike,
        successors: npt.ArrayLike,
        start: int = 0,
    ) -> None:
        """Take a model.

        Raises:
            ModelError: shapes do not fit the vocabulary, a probability is negative or no number,
                a row does not sum to 1 within 1e-9, a successor is no state, or the vocabulary
                has no stop token.
        """
        table = np.array(probabilities, dtype=np.float64)
        after = np.array(successors, dtype=np.int64)
        if table.ndim != 2 or table.shape[1] != len(vocabulary) or not len(table):
            raise ModelError(
                f"probabilities have shape {table.shape}; a row for each state and "
                f"{len(vocabulary)} columns, one for each token, are needed"
            )
        if after.shape != table.shape:
            raise ModelError(
                f"successors have shape {after.shape}, probabilities have {table.shape}"
            )
        if not vocabulary.stop_token_ids:
            raise ModelError("the vocabulary has no stop token, so no text of the model ever ends")
        if not np.isfinite(table).all() or (table < 0).any():
            state, token = np.argwhere(~np.isfinite(table) | (table < 0))[0]
            raise ModelError(
                f"state {state} gives token {token} the probability {table[state, token]}; "
                "probabilities are 0 or more"
            )
        sums = table.sum(axis=1)
        if (np.abs(sums - 1) > _SUM_TOLERANCE).any():
            state = int(np.abs(sums - 1).argmax())
            raise ModelError(
                f"the probabilities of state {state} sum to {sums[state]:.12g}, not to 1; "
                "divide each row by its sum"
            )
        if (after < 0).any() or (after >= len(table)).any():
            raise ModelError(f"a successor is outside the {len(table)} states")
        if not 0 <= start < len(table):
            raise ModelError(f"the start, {start}, is outside the {len(table)} states")
        table.setflags(write=False)
        after.setflags(write=False)
        self.vocabulary, self.start = vocabulary, start
        self.probabilities: Floats = table
        self.successors = after
        with np.errstate(divide="ignore"):
            self._logs: Floats = np.log(table)

    @classmethod
    def bigram(cls, vocabulary: Vocabulary, table: npt.ArrayLike) -> MarkovModel:
        """A model whose state is the last token.

        Args:
            vocabulary: of ``V`` tokens.
            table: shape ``(V + 1, V)``: the next token's probabilities after each token and, last,
                at the start. Rows of stop tokens are never used.

        Raises:
            ModelError: as the constructor.
        """
        rows = np.array(table, dtype=np.float64)
        size = len(vocabulary)
        if rows.shape != (size + 1, size):
            raise ModelError(f"the table has shape {rows.shape}, {(size + 1, size)} is needed")
        # Nothing follows a stop token; what stands there need not be a distribution.
        rows[list(vocabulary.stop_token_ids)] = 1 / size
        return cls(vocabulary, rows, np.tile(np.arange(size), (size + 1, 1)), size)

    @classmethod
    def from_sequences(
        cls,
        vocabulary: Vocabulary,
        sequences: Iterable[Sequence[int]],
        smoothing: float = 0.01,
    ) -> MarkovModel:
        """The model whose state is the last token, counted from texts.

        Args:
            vocabulary: with a stop token; the first one ends each text.
            sequences: tokens of each text, without the stop token.
            smoothing: added to the count of every pair of tokens that have a meaning; 0 for none.

        Raises:
            ModelError: there is no text, a token is outside the vocabulary, or without smoothing
                nothing is known of a state. (Also as the constructor.)
        """
        size = len(vocabulary)
        if not vocabulary.stop_token_ids:
            raise ModelError("the vocabulary has no stop token, so no text of the model ever ends")
        if not (np.isfinite(smoothing) and smoothing >= 0):
            raise ModelError(f"smoothing must be 0 or more, not {smoothing}")
        counts = np.zeros((size + 1, size))
        stop = vocabulary.stop_token_ids[0]
        some = False
        for sequence in sequences:
            some, before = True, size
            for token in [*sequence, stop]:
                if not 0 <= token < size:
                    raise ModelError(f"token {token} is outside the vocabulary of {size} tokens")
                counts[before, token] += 1
                before = token
        if not some:
            raise ModelError("there is no text to count tokens in")
        special = set(vocabulary.special_token_ids)
        stops = set(vocabulary.stop_token_ids)
        usable = [
            token
            for token, data in enumerate(vocabulary.token_bytes)
            if token == stop or (data and token not in special and token not in stops)
        ]
        counts[:, usable] += smoothing
        sums = counts.sum(axis=1, keepdims=True)
        # A state that no text enters may as well end: without smoothing it is never entered.
        empty = sums[:, 0] == 0
        counts[empty, stop] = 1
        sums[empty] = 1
        return cls.bigram(vocabulary, counts / sums)

    def state_after(self, tokens: Iterable[int]) -> int:
        """The state after some tokens.

        Raises:
            ModelError: a token is outside the vocabulary.
        """
        state = self.start
        for token in tokens:
            if not 0 <= token < len(self.vocabulary):
                raise ModelError(f"token {token} is outside the vocabulary")
            state = int(self.successors[state, token])
        return state

    def log_probabilities(self, state: int) -> Floats:
        """Shape ``(V,)``: natural logarithms, ``-inf`` for what cannot be."""
        row: Floats = self._logs[state]
        return row

    def __call__(self, tokens: Sequence[int]) -> Floats:
        """The next token's log-probabilities after some tokens; shape ``(V,)``."""
        return self.log_probabilities(self.state_after(tokens))

    def __repr__(self) -> str:
        return f"<MarkovModel of {len(self.probabilities)} states, {len(self.vocabulary)} tokens>"
