"""Models as samplers ask them: many sequences side by side, one token each at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tokfold.laboratory.fidelity.errors import ModelError
from tokfold.laboratory.fidelity.markov import MarkovModel

__all__ = ["CallableStepper", "LogProbabilities", "MarkovStepper", "Stepper", "stepper_of"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
LogProbabilities = Callable[[Sequence[int]], npt.ArrayLike]
"""From the tokens so far to logits, or log-probabilities, of shape ``(V,)``."""


class Stepper(Protocol):
    """A model that goes on from several prefixes at once."""

    def begin(self, count: int) -> Floats:
        """Logits for ``count`` sequences without a token; shape ``(count, V)``."""

    def step(self, parents: Integers, tokens: Integers) -> Floats:
        """Logits after one more token each.

        Args:
            parents: which of the sequences of the last call each one goes on from; a sequence may
                come several times, or not at all.
            tokens: the token of each.
        """


class CallableStepper:
    """Any function from the tokens so far to logits."""

    def __init__(self, model: LogProbabilities) -> None:
        self._model = model
        self._prefixes: list[tuple[int, ...]] = []

    def begin(self, count: int) -> Floats:  # noqa: D102
        self._prefixes = [()] * count
        first = self._asked(())
        return np.tile(first, (count, 1))

    def step(self, parents: Integers, tokens: Integers) -> Floats:  # noqa: D102
        self._prefixes = [
            (*self._prefixes[parent], int(token))
            for parent, token in zip(parents, tokens, strict=True)
        ]
        return np.stack([self._asked(prefix) for prefix in self._prefixes])

    def _asked(self, prefix: tuple[int, ...]) -> Floats:
        values = np.asarray(self._model(prefix), dtype=np.float64)
        if values.ndim != 1:
            raise ModelError(f"the model gave logits of shape {values.shape}, one row is needed")
        return values


class MarkovStepper:
    """A Markov model: only its states are kept."""

    def __init__(self, model: MarkovModel) -> None:
        with np.errstate(divide="ignore"):
            self._logs = np.log(model.probabilities)
        self._model = model
        self._states: Integers = np.zeros(0, dtype=np.int64)

    def begin(self, count: int) -> Floats:  # noqa: D102
        self._states = np.full(count, self._model.start, dtype=np.int64)
        return self._logs[self._states]

    def step(self, parents: Integers, tokens: Integers) -> Floats:  # noqa: D102
        self._states = self._model.successors[self._states[parents], tokens]
        return self._logs[self._states]


def stepper_of(model: Stepper | LogProbabilities | MarkovModel) -> Stepper:
    """The stepper of whatever stands for a model."""
    if isinstance(model, MarkovModel):
        return MarkovStepper(model)
    if hasattr(model, "begin") and hasattr(model, "step"):
        return model
    return CallableStepper(model)
