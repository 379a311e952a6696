"""What a mask takes away, recorded by any loop that samples with masks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tokfold.laboratory.fidelity.bounds import StepFidelity, step_fidelity
from tokfold.laboratory.fidelity.errors import DeadEndError, ModelError
from tokfold.laboratory.fidelity.estimate import (
    Estimate,
    KlEstimate,
    estimate_kl,
    estimate_log_h,
)

__all__ = ["Recorder", "Sequences", "as_mask", "masked_log_probabilities"]

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]


def as_mask(mask: npt.ArrayLike, size: int) -> Booleans:
    """A mask as booleans, shape ``(size,)``.

    Args:
        mask: booleans, at most ``size`` of them; or an int32 row of a bitmask. What it does not
            reach is not allowed.
        size: how many tokens the model has.

    Raises:
        ModelError: the mask allows tokens that the model does not have.
    """
    row = np.asarray(mask)
    if row.dtype == np.int32:
        bits = np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")
        row = bits.astype(np.bool_)
    if row.dtype != np.bool_ or row.ndim != 1:
        raise ModelError(
            f"a mask is a row of booleans or of int32 words, not {row.dtype} of shape {row.shape}"
        )
    if row[size:].any():
        raise ModelError(
            f"the mask allows token {size + int(row[size:].argmax())}, and the model has {size} "
            "tokens: pass the size of its output to the vocabulary"
        )
    out = np.zeros(size, dtype=np.bool_)
    out[: min(size, len(row))] = row[:size]
    return out


def masked_log_probabilities(logits: npt.ArrayLike, mask: Booleans) -> tuple[Floats, float, Floats]:
    """A model's step under a mask.

    Args:
        logits: or log-probabilities; shape ``(V,)``.
        mask: shape ``(V,)``.

    Returns:
        the model's log-probabilities, the logarithm of the allowed mass, and the masked
        log-probabilities (all ``-inf`` where the mass is zero).

    Raises:
        ModelError: a logit is NaN or ``+inf``, or all are ``-inf``.
    """
    values = np.asarray(logits, dtype=np.float64)
    top = float(values.max(initial=-math.inf))
    if not math.isfinite(top) or np.isnan(values).any():
        raise ModelError("logits are numbers or -inf, and at least one is a number")
    log_p = values - (top + math.log(float(np.exp(values - top).sum())))
    masked = np.where(mask, log_p, -np.inf)
    peak = float(masked.max(initial=-math.inf))
    if math.isinf(peak):
        return log_p, -math.inf, masked
    log_mass = min(peak + math.log(float(np.exp(masked - peak).sum())), 0.0)
    return log_p, log_mass, masked - log_mass


class Recorder:
    """Follows a loop of your own: hand it logits, mask and choice at each step.

    One sequence after the other, in any number::

        recorder = Recorder()
        while not matcher.is_terminated:
            matcher.fill_bitmask(bitmask)
            token = choose(logits, bitmask)     # yours: sampled from the masked distribution
            recorder.step(logits, bitmask[0], token)
            matcher.accept_token(token)
        recorder.end()
        print(recorder.sequences.log_h)

    The estimates hold if the loop draws from the masked distribution of just these logits: hand in
    what is drawn from, after temperature and the like, which then is the model that is meant.
    """

    def __init__(self) -> None:
        self._masses: list[list[float]] = []
        self._tokens: list[list[int]] = []
        self._ended: list[bool] = []
        self._open: tuple[list[float], list[int]] | None = None
        self._steps: list[StepFidelity] = []

    def step(
        self,
        logits: npt.ArrayLike,
        mask: npt.ArrayLike,
        token: int,
        survivals: npt.ArrayLike | None = None,
    ) -> float:
        """Record a step; returns the logarithm of the allowed mass.

        Args:
            logits: or log-probabilities, before the mask; shape ``(V,)``.
            mask: booleans, or a row of a bitmask.
            token: the token chosen.
            survivals: how likely each token's text is completed, where you know: exact values or
                estimates, shape ``(V,)``. Then :attr:`steps` has this step.

        Raises:
            DeadEndError: the model gives every allowed token the probability zero.
            ModelError: the mask does not allow the token, or logits are no numbers.
        """
        size = np.asarray(logits).shape[-1]
        allowed = as_mask(mask, size)
        log_p, log_mass, _ = masked_log_probabilities(logits, allowed)
        if math.isinf(log_mass):
            raise DeadEndError("the model gives every allowed token the probability zero")
        if not 0 <= token < size or not allowed[token]:
            raise ModelError(f"token {token} was chosen, and the mask does not allow it")
        if survivals is not None:
            h = np.asarray(survivals, dtype=np.float64)
            self._steps.append(step_fidelity(np.exp(log_p), h, allowed))
        if self._open is None:
            self._open = ([], [])
        self._open[0].append(log_mass)
        self._open[1].append(token)
        return log_mass

    def end(self, *, is_cut: bool = False, is_dead: bool = False) -> float:
        """End the sequence; returns its log weight.

        Args:
            is_cut: it was stopped before a stop token.
            is_dead: no allowed token had a probability above zero: the weight is zero.
        """
        masses, tokens = self._open or ([], [])
        self._open = None
        self._masses.append([*masses, -math.inf] if is_dead else masses)
        self._tokens.append(tokens)
        self._ended.append(not is_cut and not is_dead)
        return sum(self._masses[-1])

    @property
    def steps(self) -> Sequence[StepFidelity]:
        """The steps that were recorded with survivals."""
        return tuple(self._steps)

    @property
    def sequences(self) -> Sequences:
        """The sequences that have ended so far."""
        return Sequences(self._tokens, self._masses, np.array(self._ended, dtype=np.bool_))


class Sequences:
    """Independent sequences drawn with masks.

    Attributes:
        tokens: of each sequence, the stop token included.
        log_masses: natural logarithm of the allowed mass at each step of each sequence.
        log_weights: their sums: float64, shape ``(n,)``.
        ended: whether each ended by a stop token; bool, shape ``(n,)``.
    """

    def __init__(
        self,
        tokens: Sequence[Sequence[int]],
        log_masses: Sequence[Sequence[float]],
        ended: Booleans,
    ) -> None:
        self.tokens = [list(sequence) for sequence in tokens]
        self.log_masses = [np.array(masses, dtype=np.float64) for masses in log_masses]
        self.log_weights = np.array([masses.sum() for masses in self.log_masses])
        self.ended = ended

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def dead(self) -> Booleans:
        """Which sequences came to where every allowed token has probability zero."""
        return np.asarray(np.isinf(self.log_weights))

    @property
    def cut(self) -> Booleans:
        """Which sequences were stopped before they ended."""
        return np.asarray(~self.ended & ~self.dead)

    @property
    def log_h(self) -> Estimate:
        """The estimate of ``log h`` at the start."""
        return estimate_log_h(self.log_weights, self.ended)

    @property
    def kl(self) -> KlEstimate:
        """The estimate of ``KL(masked || true)`` over whole texts."""
        return estimate_kl(self.log_weights, self.ended)
