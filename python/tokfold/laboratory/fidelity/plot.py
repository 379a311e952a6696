"""A picture of what masks do: masses along the texts, weights, and the estimate."""

from __future__ import annotations

import math
from os import PathLike

import numpy as np

from tokfold._extras import require
from tokfold.laboratory.fidelity.estimate import Estimate
from tokfold.laboratory.fidelity.recorder import Sequences

__all__ = ["plot"]


def plot(
    sequences: Sequences,
    path: str | PathLike[str],
    *,
    exact_log_h: float | None = None,
    estimate: Estimate | None = None,
) -> None:
    """Write a picture: allowed mass by step, and the log weights.

    Args:
        sequences: drawn with masks.
        path: of the picture; the extension says in which format.
        exact_log_h: drawn as a line where it is known.
        estimate: drawn with its interval; that of the sequences by default.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ValueError: matplotlib does not know the format.
    """
    figures = require("matplotlib.figure", "lab", "a plot")
    estimate = sequences.log_h if estimate is None else estimate
    figure = figures.Figure(figsize=(10, 4), layout="constrained")
    steps, weights = figure.subplots(1, 2)
    for masses in sequences.log_masses:
        steps.plot(np.exp(masses), color="C0", alpha=0.15, linewidth=0.8)
    longest = max((len(masses) for masses in sequences.log_masses), default=0)
    medians = [
        np.median([np.exp(masses[at]) for masses in sequences.log_masses if len(masses) > at])
        for at in range(longest)
    ]
    steps.plot(medians, color="C1", label="median of those under way")
    steps.set(xlabel="step", ylabel="allowed mass", ylim=(-0.02, 1.02), title="What masks keep")
    steps.legend(loc="lower right")
    finite = sequences.log_weights[np.isfinite(sequences.log_weights)]
    weights.hist(finite, bins=min(40, max(5, len(finite) // 4)), color="C0")
    if math.isfinite(estimate.log_h):
        weights.axvline(estimate.log_h, color="C1", label="estimate of log h")
        if math.isfinite(estimate.low):
            weights.axvspan(estimate.low, estimate.high, color="C1", alpha=0.2)
    if exact_log_h is not None and math.isfinite(exact_log_h):
        weights.axvline(exact_log_h, color="black", linestyle="--", label="exact log h")
    weights.set(xlabel="log weight (nats)", ylabel="sequences", title="Weights of whole texts")
    if weights.get_legend_handles_labels()[0]:
        weights.legend(loc="upper left")
    figure.savefig(path)
