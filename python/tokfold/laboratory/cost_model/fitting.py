"""Affine models of positive times over counters, fitted in logarithms; and how good they are.

A time is modelled as ``b + <a, c>`` with ``a, b >= 0`` (paper, definition 28): work adds up, so the
model is affine in the counters. The fit, though, looks at logarithms: a step of a microsecond that
is wrong by half weighs as much as one of a millisecond that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokfold.errors import TokfoldError

__all__ = ["Affine", "CostModelError", "fit_affine", "median_factor", "spearman"]

Floats = npt.NDArray[np.float64]

MAX_ROUNDS = 200
_LEAST = 1e-12


class CostModelError(TokfoldError):
    """Data that no cost model can be fitted to or evaluated on."""


@dataclass(frozen=True)
class Affine:
    """``intercept + <coefficients, counters>``, none negative.

    Attributes:
        names: of the counters.
        coefficients: microseconds for one of each.
        intercept: microseconds of a step in which nothing is counted.
    """

    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    intercept: float

    def __call__(self, counters: dict[str, npt.NDArray[np.int64]]) -> Floats:
        """The model's value for each step, shape ``(T,)``.

        Raises:
            CostModelError: a counter is missing.
        """
        table = columns(counters, self.names)
        found: Floats = self.intercept + table @ np.array(self.coefficients, dtype=np.float64)
        return found


def columns(counters: dict[str, npt.NDArray[np.int64]], names: Sequence[str]) -> Floats:
    """Counters as a table, shape ``(T, len(names))``."""
    missing = [name for name in names if name not in counters]
    if missing:
        raise CostModelError(
            f"the profile lacks the counters {', '.join(missing)}: it is of another engine or "
            "version; fit a model to it"
        )
    if not names:
        length = len(next(iter(counters.values()))) if counters else 0
        return np.zeros((length, 0))
    return np.stack([np.asarray(counters[name], dtype=np.float64) for name in names], axis=1)


def fit_affine(
    names: Sequence[str],
    table: Floats,
    times: Floats,
    weights: Floats | None = None,
    *,
    ridge: float = 1e-3,
) -> Affine:
    """Fit by least absolute deviation of logarithms, coefficients at least 0.

    Damped Gauss-Newton over the logarithms of the coefficients, reweighted so that each step
    counts by the size of its error and not by the square: some times are always disturbed.

    Args:
        names: of the counters.
        table: counters, shape ``(N, len(names))``, none negative.
        times: microseconds, shape ``(N,)``, all above 0.
        weights: how much each step counts, shape ``(N,)``; None: all the same.
        ridge: how strongly coefficients are held to where the fit begins, which keeps those in
            place that the data say nothing about.

    Raises:
        CostModelError: there is no step, a time is not above 0, a count is negative.
    """
    _check(table, times)
    share = np.full(len(times), 1.0) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    logs = np.log(times)
    # Counters in units of their own mean: coefficients are then microseconds of an average step.
    scale = table.mean(axis=0)
    used = scale > 0
    design = np.concatenate([np.ones((len(times), 1)), table[:, used] / scale[used]], axis=1)
    start = np.full(design.shape[1], np.log(np.median(times) / design.shape[1]))
    theta, damping = start.copy(), 1e-2
    value, residuals = _loss(theta, design, logs, share, ridge, start)
    for _ in range(MAX_ROUNDS):
        parts = design * np.exp(theta)
        jacobian = parts / np.maximum(parts.sum(axis=1, keepdims=True), _LEAST)
        each = share / np.maximum(np.abs(residuals), 1e-2)
        normal = jacobian.T @ (jacobian * each[:, None]) + ridge * np.eye(len(theta))
        slope = jacobian.T @ (residuals * each) + ridge * (theta - start)
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), slope)
        tried = theta - np.clip(step, -2.0, 2.0)
        new, new_residuals = _loss(tried, design, logs, share, ridge, start)
        if new < value:
            done = value - new < 1e-9 * value
            theta, value, residuals = tried, new, new_residuals
            damping = max(damping / 3, 1e-6)
            if done:
                break
        else:
            damping *= 4
            if damping > 1e8:
                break
    fitted = np.zeros(len(used))
    fitted[used] = np.exp(theta[1:]) / scale[used]
    return Affine(tuple(names), tuple(fitted.tolist()), float(np.exp(theta[0])))


def _loss(
    theta: Floats, design: Floats, logs: Floats, share: Floats, ridge: float, start: Floats
) -> tuple[float, Floats]:
    residuals = np.log(np.maximum(design @ np.exp(theta), _LEAST)) - logs
    size = np.abs(residuals)
    # Huber's function with a narrow middle: smooth where the error vanishes.
    huber = np.where(size < 1e-2, residuals**2 / 2e-2, size - 5e-3)
    penalty = ridge / 2 * float(((theta - start) ** 2).sum())
    return float(huber @ share) + penalty, residuals


def _check(table: Floats, times: Floats) -> None:
    if not len(times) or len(table) != len(times):
        raise CostModelError(f"there are {len(table)} rows of counters for {len(times)} times")
    if not (np.isfinite(times).all() and (times > 0).all()):
        raise CostModelError("a time is not above 0: leave out steps that were not measured")
    if (table < 0).any():
        raise CostModelError("a count is negative")


def median_factor(predicted: Floats, measured: Floats) -> float:
    """By which factor a prediction is wrong, in the median: ``exp(median |log p - log m|)``.

    Raises:
        CostModelError: there is nothing to compare, or something is not above 0.
    """
    if not len(measured) or len(predicted) != len(measured):
        raise CostModelError(f"there are {len(predicted)} predictions of {len(measured)} times")
    if (predicted <= 0).any() or (measured <= 0).any():
        raise CostModelError("a time is not above 0")
    return float(np.exp(np.median(np.abs(np.log(predicted) - np.log(measured)))))


def spearman(first: Floats, second: Floats) -> float:
    """Spearman's rank correlation, ranks of equal values averaged.

    Raises:
        CostModelError: there are fewer than two pairs, or all values of one side are equal.
    """
    if len(first) != len(second) or len(first) < 2:
        raise CostModelError("a rank correlation needs two pairs of values or more")
    a, b = average_ranks(first), average_ranks(second)
    a, b = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((a @ a) * (b @ b)))
    if not spread:
        raise CostModelError("all values of one side are equal: they have no order")
    return float(a @ b) / spread


def average_ranks(values: Floats) -> Floats:
    """The rank of each value, from 0; the mean of their ranks for equal ones."""
    order = np.argsort(values, kind="stable")
    _, inverse, counts = np.unique(
        np.asarray(values)[order], return_inverse=True, return_counts=True
    )
    ends = np.cumsum(counts)
    ranks = np.empty(len(values))
    ranks[order] = ((ends - counts + ends - 1) / 2)[inverse]
    return ranks
