"""What masked sampling tells of the survival of the whole: estimates with their uncertainty.

A sequence drawn with masks has the weight ``w``, the product of the allowed masses on its way.
``E[w] = h`` at the start, where the expectation takes ``w = 0`` for sequences that died or that
were cut: a cut sequence has not ended in the language yet. So with a bound on the length the
estimate is of ending within it, a lower bound of ``h``; counting cut sequences with the weight
they have so far gives an upper bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = ["Estimate", "KlEstimate", "effective_sample_size", "estimate_kl", "estimate_log_h"]

Floats = npt.NDArray[np.float64]
MIN_ESS = 10.0
"""Below, weights of a few sequences decide, and intervals are not to be relied on."""


@dataclass(frozen=True)
class Estimate:
    """An estimate of ``log h`` at the start, natural logarithms.

    Attributes:
        log_h: the estimate; ``-inf`` where no sequence ended.
        low: lower end of the interval.
        high: upper end of the interval.
        log_h_upper: the same estimate with cut sequences counted as if they ended: ``h`` lies
            between the two, but for the uncertainty of sampling.
        ess: effective sample size of the weights.
        samples: sequences drawn.
        level: of the interval.
    """

    log_h: float
    low: float
    high: float
    log_h_upper: float
    ess: float
    samples: int
    level: float

    @property
    def is_reliable(self) -> bool:
        """Whether the interval means something: 10 effective samples or more."""
        return self.ess >= MIN_ESS


@dataclass(frozen=True)
class KlEstimate:
    """An estimate of the KL of the masked process from the true one, over whole texts, in nats.

    Attributes:
        kl: ``log h - E[log w]``; infinite where masked sampling can die.
        low: lower end of the interval.
        high: upper end of the interval.
        is_lower_bound: whether sequences were cut, so that the true value is larger.
    """

    kl: float
    low: float
    high: float
    is_lower_bound: bool


def log_mean_exp(values: Floats) -> float:
    """``log(mean(exp(values)))`` without overflow; ``-inf`` for none above it."""
    if not len(values):
        return -math.inf
    top = float(values.max())
    if math.isinf(top):
        return top
    return top + math.log(float(np.exp(values - top).mean()))


def effective_sample_size(log_weights: Floats) -> float:
    """``(sum w)^2 / sum w^2``; 0 where all weights are 0."""
    if not len(log_weights) or math.isinf(top := float(log_weights.max())):
        return 0.0
    weights = np.exp(log_weights - top)
    return float(weights.sum() ** 2 / (weights**2).sum())


def estimate_log_h(
    log_weights: npt.ArrayLike, ended: npt.ArrayLike, *, level: float = 0.95
) -> Estimate:
    """Estimate ``log h`` from independent sequences drawn with masks.

    The interval is that of a normal distribution for ``log`` of the mean weight, by its relative
    standard error over the weights and two more, 0 and twice the largest: what was not drawn yet
    may be lighter or heavier, even where all weights seen are equal. Rare texts of large weight
    that were not drawn cannot show: then the interval is too narrow, and no sampler can tell.

    Args:
        log_weights: natural logarithms, one for each sequence; ``-inf`` for those that died.
        ended: whether each ended by a stop token.
        level: of the interval.

    Raises:
        ValueError: there are no sequences, a weight is above 1 or no number, or the level is not
            between 0 and 1.
    """
    logs, done = _checked(log_weights, ended)
    finished = np.where(done, logs, -np.inf)
    center = log_mean_exp(finished)
    ess, count = effective_sample_size(finished), len(logs)
    width = math.inf
    if ess > 0 and count > 1:
        weights = np.exp(finished - finished.max())
        spread = float(np.append(weights, [0.0, 2.0]).var(ddof=1)) / float(weights.mean()) ** 2
        width = _z(level) * math.sqrt(math.log1p(spread / count))
    low, high = center - width, min(center + width, 0.0)
    if math.isinf(center):
        low, high = -math.inf, 0.0
    return Estimate(center, low, high, log_mean_exp(logs), ess, count, level)


def estimate_kl(
    log_weights: npt.ArrayLike, ended: npt.ArrayLike, *, level: float = 0.95
) -> KlEstimate:
    """Estimate ``KL(masked || true)`` over whole texts by ``log h - E[log w]``.

    Args:
        log_weights: as for :func:`estimate_log_h`, of sequences drawn with masks and never drawn
            again by weight.
        ended: as there. Where sequences were cut the result is a lower bound: their weight can
            only fall, and what they add to ``h`` is left out.
        level: of the interval.

    Raises:
        ValueError: as :func:`estimate_log_h`.
    """
    logs, done = _checked(log_weights, ended)
    log_h = log_mean_exp(np.where(done, logs, -np.inf))
    is_cut = bool((~done & np.isfinite(logs)).any())
    if math.isinf(log_h):
        return KlEstimate(math.nan, math.nan, math.nan, is_cut)
    if np.isinf(logs).any():
        return KlEstimate(math.inf, math.inf, math.inf, is_cut)
    mean = float(logs.mean())
    # How far each sequence moves the estimate: by its weight, and by the logarithm of it.
    moves = np.where(done, np.exp(logs - log_h), 0.0) - 1 - (logs - mean)
    count = len(logs)
    width = math.inf if count < 2 else _z(level) * float(moves.std(ddof=1)) / math.sqrt(count)
    kl = max(log_h - mean, 0.0)
    return KlEstimate(kl, max(kl - width, 0.0), kl + width, is_cut)


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"the level of an interval is between 0 and 1, not {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


def _checked(
    log_weights: npt.ArrayLike, ended: npt.ArrayLike
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    logs = np.asarray(log_weights, dtype=np.float64)
    done = np.asarray(ended, dtype=np.bool_)
    if logs.ndim != 1 or not len(logs) or done.shape != logs.shape:
        raise ValueError(
            f"log weights of shape {logs.shape} and ends of shape {done.shape}: one of each for "
            "each sequence is needed, and at least one"
        )
    if np.isnan(logs).any() or (logs > 1e-6).any():
        raise ValueError("weights are products of probabilities: their logarithms are 0 or less")
    return np.minimum(logs, 0.0), done
