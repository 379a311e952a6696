"""How far one masked step can be from the true conditional step, given how survival spreads.

With ``h`` the probability that a token's text is completed, the masked step ``q`` is in proportion
to ``p`` over the allowed tokens, the true one to ``p h``. The spread is the largest ``h`` over the
smallest, of the allowed tokens of positive probability: a token that the model never chooses has
no weight in either, whatever becomes of it.

The paper (section 8.2) bounds KL by ``log spread`` and the total variation by Pinsker's
inequality. Both are loose: the extreme case is two tokens, and gives what stands here. These
bounds are reached, so no better ones in the spread alone exist.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["StepFidelity", "kl_bound", "log_spread", "step_fidelity", "total_variation_bound"]

Floats = npt.NDArray[np.float64]


def kl_bound(log_spread: float) -> float:
    """The largest KL of the masked from the true step, in nats: ``x - 1 - ln x``.

    Args:
        log_spread: ``ln G`` for the spread ``G``, 0 or more; ``x = ln G / (G - 1)``.
    """
    _check_spread(log_spread)
    if math.isinf(log_spread):
        return math.inf
    if log_spread < 1e-2:
        # x = 1 - L/2 + L^2/12 - ..., where the differences below would lose their digits.
        square = log_spread * log_spread
        return square / 8 - square * square / 576
    log_x = math.log(log_spread) - log_spread - math.log1p(-math.exp(-log_spread))
    return math.expm1(log_x) - log_x


def total_variation_bound(log_spread: float) -> float:
    """The largest total variation between the masked and the true step: ``tanh(ln G / 4)``."""
    _check_spread(log_spread)
    return math.tanh(log_spread / 4)


def _check_spread(log_spread: float) -> None:
    if not log_spread >= 0:
        raise ValueError(f"the logarithm of a spread is 0 or more, not {log_spread}")


def log_spread(probabilities: Floats, survivals: Floats, allowed: npt.NDArray[np.bool_]) -> float:
    """``ln`` of the largest over the smallest survival of allowed tokens that can be chosen.

    Infinite where some allowed token of positive probability cannot survive; 0 where none can be
    chosen at all.

    Args:
        probabilities: of each token, shape ``(V,)``.
        survivals: the probability of completion after each token, shape ``(V,)``.
        allowed: the mask, shape ``(V,)``.
    """
    chosen = survivals[allowed & (probabilities > 0)]
    if not len(chosen):
        return 0.0
    least, most = float(chosen.min()), float(chosen.max())
    if least <= 0:
        return math.inf if most > 0 else 0.0
    return max(math.log(most) - math.log(least), 0.0)


@dataclass(frozen=True)
class StepFidelity:
    """One step: the masked distribution against the true conditional one.

    Attributes:
        mass: probability of the allowed tokens together, before masking.
        kl: ``KL(masked || true)`` in nats; infinite where the mask allows what cannot survive.
        total_variation: between the two.
        log_spread: ``ln`` of the survival spread.
        kl_bound: what the spread allows, at most.
        total_variation_bound: what the spread allows, at most.
    """

    mass: float
    kl: float
    total_variation: float
    log_spread: float
    kl_bound: float
    total_variation_bound: float


def step_fidelity(
    probabilities: Floats, survivals: Floats, allowed: npt.NDArray[np.bool_]
) -> StepFidelity:
    """Compare the masked step with the true one.

    Args:
        probabilities: the model's, shape ``(V,)``.
        survivals: probability of completion after each token, shape ``(V,)``; for a stop token 1
            where it is allowed.
        allowed: the mask, shape ``(V,)``.

    Raises:
        ValueError: nothing that is allowed can be chosen and survive: there is no true step.
    """
    chosen = allowed & (probabilities > 0)
    p, h = probabilities[chosen], survivals[chosen]
    mass, joint = float(p.sum()), float((p * h).sum())
    if joint <= 0:
        raise ValueError("no token that is allowed can be chosen and survive")
    masked, true = p / mass, p * h / joint
    spread = log_spread(probabilities, survivals, allowed)
    with np.errstate(divide="ignore"):
        kl = float((masked * (math.log(joint / mass) - np.log(h))).sum())
    return StepFidelity(
        mass,
        max(kl, 0.0),
        float(np.abs(masked - true).sum()) / 2,
        spread,
        kl_bound(spread),
        total_variation_bound(spread),
    )
