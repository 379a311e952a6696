"""Four ways to draw texts of a language from a model.

- ``mask``: by masks, as engines do. Fast, and not the model's distribution given the language.
- ``importance``: by masks, then drawn again by weight: approaches the true conditional
  distribution with the number of sequences.
- ``smc``: sequential Monte Carlo. The same, but sequences that lost their weight are replaced on
  the way, when few carry it all. The estimate of ``h`` is unbiased.
- ``exact``: Doob's h-transform, for small Markov models (:class:`ExactSurvival`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tokfold._quoting import quoted
from tokfold.bitmask import allocate_bitmask
from tokfold.engine import CompiledGrammar
from tokfold.laboratory.fidelity.errors import DeadEndError, ModelError
from tokfold.laboratory.fidelity.estimate import (
    Estimate,
    _z,
    effective_sample_size,
    estimate_log_h,
    log_mean_exp,
)
from tokfold.laboratory.fidelity.exact import ExactSurvival
from tokfold.laboratory.fidelity.markov import MarkovModel
from tokfold.laboratory.fidelity.recorder import Sequences, as_mask, masked_log_probabilities
from tokfold.laboratory.fidelity.steppers import LogProbabilities, Stepper, stepper_of
from tokfold.matcher import Matcher

__all__ = ["Method", "Sample", "draw", "sample"]

Method = Literal["mask", "importance", "smc", "exact"]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """What a sampler drew.

    Attributes:
        method: the sampler.
        tokens: of each sequence, the stop token included where it ended.
        ended: whether each ended by a stop token.
        log_h: the estimate of ``log h`` at the start; exact for ``exact``.
        masked: the sequences as they were drawn by masks, with their weights; ``None`` for ``smc``
            and ``exact``.
        resamplings: how often sequences were drawn again by weight.
    """

    method: Method
    tokens: list[list[int]]
    ended: npt.NDArray[np.bool_]
    log_h: Estimate
    masked: Sequences | None
    resamplings: int


def sample(
    model: Stepper | LogProbabilities | MarkovModel,
    compiled: CompiledGrammar,
    *,
    method: Method = "mask",
    count: int = 64,
    max_tokens: int = 256,
    seed: int = 0,
    survival: ExactSurvival | None = None,
) -> Sample:
    """Draw texts of a grammar's language.

    Args:
        model: a :class:`MarkovModel`, a function from tokens to logits, or a :class:`Stepper`.
        compiled: the grammar and the vocabulary.
        method: how, see the module.
        count: sequences to draw.
        max_tokens: where sequences are cut, stop token included.
        seed: of the random numbers.
        survival: for ``exact``: solved before; made from the compiled grammar where missing.

    Raises:
        ModelError: logits are no numbers, or the model has fewer tokens than the mask allows.
        DeadEndError: ``importance`` or ``smc``: no sequence has a weight above zero; ``exact``:
            the model's texts are in the language with probability zero.
        ValueError: no such method, ``exact`` without a Markov model, or a count below 1.
        LimitExceededError: as :class:`tokfold.Matcher`; and what :class:`ExactSurvival` raises.
    """
    if method not in ("mask", "importance", "smc", "exact"):
        raise ValueError(
            f'method must be "mask", "importance", "smc" or "exact", not {quoted(method)}'
        )
    if count < 1 or max_tokens < 1:
        raise ValueError(f"count and max_tokens must be 1 or more, not {count} and {max_tokens}")
    random = np.random.default_rng(seed)
    if method == "exact":
        return _exact(model, compiled, count, max_tokens, random, survival)
    if method == "smc":
        particles = _Particles(stepper_of(model), compiled, count, random)
        return particles.run(max_tokens)
    drawn = draw(model, compiled, count=count, max_tokens=max_tokens, random=random)
    if method == "mask":
        return Sample("mask", drawn.tokens, drawn.ended, drawn.log_h, drawn, 0)
    weights = np.where(drawn.ended, drawn.log_weights, -np.inf)
    chosen = _drawn_again(weights, random)
    tokens = [drawn.tokens[i] for i in chosen]
    return Sample("importance", tokens, drawn.ended[chosen], drawn.log_h, drawn, 1)


def draw(
    model: Stepper | LogProbabilities | MarkovModel,
    compiled: CompiledGrammar,
    *,
    count: int,
    max_tokens: int,
    random: np.random.Generator,
) -> Sequences:
    """Draw independent sequences with masks, their masses recorded.

    Args and errors: as :func:`sample`.
    """
    particles = _Particles(stepper_of(model), compiled, count, random)
    particles.advance(max_tokens, threshold=0.0)
    return Sequences(particles.tokens, particles.log_masses, particles.ended)


class _Particles:
    """Sequences side by side."""

    def __init__(
        self, stepper: Stepper, compiled: CompiledGrammar, count: int, random: np.random.Generator
    ) -> None:
        self._stepper, self._random, self._count = stepper, random, count
        self._matchers = [Matcher(compiled) for _ in range(count)]
        self._bitmask = allocate_bitmask(1, len(compiled.vocabulary))
        self.tokens: list[list[int]] = [[] for _ in range(count)]
        self.log_masses: list[list[float]] = [[] for _ in range(count)]
        self.log_weights: Floats = np.zeros(count)
        self.ended = np.zeros(count, dtype=np.bool_)
        self._founders: Integers = np.arange(count)
        self._log_h = 0.0
        self._resamplings = 0

    def run(self, max_tokens: int) -> Sample:
        """Sequential Monte Carlo to the end."""
        self.advance(max_tokens, threshold=0.5)
        finished = np.where(self.ended, self.log_weights, -np.inf)
        estimate = self._estimate(finished)
        chosen = _drawn_again(finished, self._random)
        tokens = [self.tokens[i] for i in chosen]
        return Sample("smc", tokens, self.ended[chosen], estimate, None, self._resamplings + 1)

    def _estimate(self, finished: Floats) -> Estimate:
        """With the variance that the lines of descent show (Lee and Whiteley, 2018)."""
        if self._resamplings == 0:
            return estimate_log_h(finished, self.ended)
        log_h = self._log_h + log_mean_exp(finished)
        upper = self._log_h + log_mean_exp(self.log_weights)
        ess = effective_sample_size(finished)
        if math.isinf(log_h):
            return Estimate(log_h, -math.inf, 0.0, min(upper, 0.0), ess, self._count, 0.95)
        weights = np.exp(finished - finished.max())
        weights /= weights.sum()
        by_founder = np.bincount(self._founders, weights, minlength=self._count)
        apart = 1 - float((by_founder**2).sum())
        growth = (self._count / (self._count - 1)) ** (self._resamplings + 1)
        variance = max(1 - growth * apart, 0.0)
        width = _z(0.95) * math.sqrt(math.log1p(variance))
        return Estimate(
            log_h,
            log_h - width,
            min(log_h + width, 0.0),
            min(upper, 0.0),
            1 / float((by_founder**2).sum()),
            self._count,
            0.95,
        )

    def advance(self, max_tokens: int, threshold: float) -> None:
        """Add tokens until all have ended or died, or are at the bound.

        Args:
            max_tokens: the bound.
            threshold: draw again by weight where fewer than this share of the sequences carry it.
        """
        parents: Integers = np.arange(self._count)
        logits = self._stepper.begin(self._count)
        for at in range(max_tokens):
            last = np.zeros(self._count, dtype=np.int64)
            for i in np.flatnonzero(self._open):
                last[i] = self._extend(int(i), logits[i])
            if not self._open.any() or at == max_tokens - 1:
                return
            ess = effective_sample_size(self.log_weights)
            parents = np.arange(self._count)
            if 0 < ess < threshold * self._count:
                parents = _drawn_again(self.log_weights, self._random)
                self._replace(parents)
            logits = self._stepper.step(parents, last[parents])

    @property
    def _open(self) -> npt.NDArray[np.bool_]:
        return np.asarray(~self.ended & np.isfinite(self.log_weights))

    def _extend(self, i: int, logits: Floats) -> int:
        matcher = self._matchers[i]
        matcher.fill_bitmask(self._bitmask)
        mask = as_mask(self._bitmask[0], len(logits))
        _, log_mass, masked = masked_log_probabilities(logits, mask)
        self.log_masses[i].append(log_mass)
        self.log_weights[i] += log_mass
        if math.isinf(log_mass):
            return 0
        token = int((masked + self._random.gumbel(size=len(masked))).argmax())
        if not matcher.accept_token(token):
            raise ModelError(f"the matcher refused token {token}, which its mask allows")
        self.tokens[i].append(token)
        self.ended[i] = matcher.is_terminated
        return token

    def _replace(self, parents: Integers) -> None:
        self._log_h += log_mean_exp(self.log_weights)
        self._resamplings += 1
        self.log_weights = np.zeros(self._count)
        used: set[int] = set()
        matchers = []
        for parent in parents.tolist():
            matchers.append(
                self._matchers[parent].fork() if parent in used else self._matchers[parent]
            )
            used.add(parent)
        self._matchers = matchers
        self.tokens = [list(self.tokens[parent]) for parent in parents]
        self.log_masses = [list(self.log_masses[parent]) for parent in parents]
        self.ended, self._founders = self.ended[parents], self._founders[parents]


def _drawn_again(log_weights: Floats, random: np.random.Generator) -> Integers:
    """As many places as there are weights, each about as often as its weight says (systematic)."""
    top = float(log_weights.max())
    if math.isinf(top):
        raise DeadEndError(
            "no sequence has a weight above zero: all died, or were cut before they ended. Draw "
            "more, or raise max_tokens"
        )
    weights = np.exp(log_weights - top)
    edges = np.cumsum(weights) / weights.sum()
    edges[-1] = 1.0
    count = len(weights)
    places = (random.random() + np.arange(count)) / count
    chosen = np.searchsorted(edges, places, side="right")
    return np.asarray(np.minimum(chosen, np.flatnonzero(weights)[-1]), dtype=np.int64)


def _exact(
    model: Stepper | LogProbabilities | MarkovModel,
    compiled: CompiledGrammar,
    count: int,
    max_tokens: int,
    random: np.random.Generator,
    survival: ExactSurvival | None,
) -> Sample:
    if survival is None:
        if not isinstance(model, MarkovModel):
            raise ValueError(
                'method "exact" needs a MarkovModel, or survival solved for one; other models have '
                '"smc"'
            )
        survival = ExactSurvival(compiled.grammar, model)
    states = [survival.sample(random, max_tokens) for _ in range(count)]
    ended = np.array([state.is_terminated for state in states])
    log_h = survival.log_h
    estimate = Estimate(log_h, log_h, log_h, log_h, float(count), count, 0.95)
    return Sample("exact", [list(s.tokens) for s in states], ended, estimate, None, 0)
