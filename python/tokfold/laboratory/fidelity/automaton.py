"""A Markov model over tokens as a weighted automaton over bytes, every tokenization counted.

At a token's first byte the automaton chooses the token, with the model's probability, and then
reads the rest of it without a choice. So its states are those of the model, where tokens begin,
and pairs of the model's next state and the bytes still to read. The weight of all ways through a
text is the probability of all token sequences that spell it, canonical or not.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tokfold.errors import LimitExceededError
from tokfold.laboratory.fidelity.linear import Matrix
from tokfold.laboratory.fidelity.markov import MarkovModel
from tokfold.laboratory.fidelity.productions import Terminal

__all__ = ["NOWHERE", "ByteAutomaton"]

NOWHERE = -1
_Edges = tuple[npt.NDArray[np.int64], int, npt.NDArray[np.float64]]


class ByteAutomaton:
    """The automaton of a model.

    Attributes:
        size: states; the first are those of the model.
        stops: float64, shape ``(size,)``: the probability that the text ends here.
        landing: int64, shape ``(S, V)``: the state after a token's first byte, chosen in each
            state of the model; :data:`NOWHERE` for tokens that are no text, or that the model
            never chooses there.
        first_bytes: int64, shape ``(V,)``: a token's first byte; -1 for tokens that are no text.
    """

    def __init__(self, model: MarkovModel, max_states: int) -> None:
        vocabulary = model.vocabulary
        states = len(model.probabilities)
        ends = set(vocabulary.stop_token_ids)
        special = set(vocabulary.special_token_ids)
        self.first_bytes = np.full(len(vocabulary), -1, dtype=np.int64)
        self.landing = np.full((states, len(vocabulary)), NOWHERE, dtype=np.int64)
        inside: dict[tuple[int, bytes], int] = {}
        edges: dict[int, list[_Edges]] = {}

        def reading(after: int, rest: bytes) -> int:
            """The state in which ``rest`` is still to be read."""
            below = after
            for at in range(len(rest) - 1, -1, -1):
                key = (after, rest[at:])
                if key not in inside:
                    number = inside[key] = states + len(inside)
                    if number >= max_states:
                        raise LimitExceededError(
                            f"model and tokens together have more than {max_states:,} states; "
                            "use fewer or shorter tokens, or raise max_states",
                            "max_states",
                            max_states,
                        )
                    one = (np.array([number]), below, np.ones(1))
                    edges.setdefault(rest[at], []).append(one)
                below = inside[key]
            return below

        if states > max_states:
            raise LimitExceededError(
                f"the model has {states:,} states, more than {max_states:,}: use a smaller one, "
                "or raise max_states",
                "max_states",
                max_states,
            )
        for token, data in enumerate(vocabulary.token_bytes):
            if not data or token in ends or token in special:
                continue
            self.first_bytes[token] = data[0]
            column = model.probabilities[:, token]
            chosen = np.flatnonzero(column)
            after = model.successors[chosen, token]
            for state in np.unique(after):
                sources = chosen[after == state]
                target = reading(int(state), data[1:])
                self.landing[sources, token] = target
                edges.setdefault(data[0], []).append((sources, target, column[sources]))
        self.size = states + len(inside)
        self.stops = np.zeros(self.size)
        for token in ends:
            self.stops[:states] += model.probabilities[:, token]
        self._edges = edges
        self._matrices: dict[Terminal, Matrix] = {}
        self._beginnings: dict[Terminal, npt.NDArray[np.bool_]] = {}
        self.alive = self._alive()
        self.stops.setflags(write=False)

    def _alive(self) -> npt.NDArray[np.bool_]:
        """The states from which the model can end at all.

        The others have no part in any completion, and a model that never leaves them would give
        repetitions an infinite weight.
        """
        alive = self.stops > 0
        while True:
            before = int(alive.sum())
            for several in self._edges.values():
                for sources, target, _ in several:
                    if alive[target]:
                        alive[sources] = True
            if int(alive.sum()) == before:
                return alive

    def matrix(self, terminal: Terminal) -> Matrix:
        """Weights of reading one of these bytes, shape ``(size, size)``; read only."""
        known = self._matrices.get(terminal)
        if known is None:
            known = self._summed(terminal)
            known.setflags(write=False)
            self._matrices[terminal] = known
        return known

    def begins(self, terminal: Terminal) -> npt.NDArray[np.bool_]:
        """Which tokens begin with one of these bytes, shape ``(V,)``; read only."""
        known = self._beginnings.get(terminal)
        if known is None:
            known = np.isin(self.first_bytes, list(terminal))
            known.setflags(write=False)
            self._beginnings[terminal] = known
        return known

    def _summed(self, values: Iterable[int]) -> Matrix:
        total = np.zeros((self.size, self.size))
        for byte in values:
            for sources, target, weights in self._edges.get(byte, ()):
                if self.alive[target]:
                    total[sources, target] += weights
        return total
