"""The hard mask as a step of a computation that has gradients.

The paper adds a mask of 0 and -inf to the logits (equation 2). In floating point that lets a masked
token through: ``inf + -inf`` is NaN. Here -inf is *written* over whatever stands there, and it is
the last that is done.
"""

from __future__ import annotations

from typing import Any

import torch

from tokfold.laboratory.neural.conditions import Conditions
from tokfold.laboratory.neural.errors import UnusableLogitsError
from tokfold.torch import apply_token_bitmask_

__all__ = ["check_places", "check_usable", "hard_mask", "log_allowed_mass", "mask_"]


class _Mask(torch.autograd.Function):
    """Writes -inf in place; what was overwritten has no gradient."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch does not type it
        logits: torch.Tensor,
        bitmask: torch.Tensor,
        vocab_size: int,
    ) -> torch.Tensor:
        # One call for all rows: the view has the memory of `logits`, which is contiguous.
        flat = logits.detach().view(-1, logits.shape[-1])
        words = bitmask.reshape(len(flat), bitmask.shape[-1]).contiguous()
        apply_token_bitmask_(flat, words, vocab_size)
        ctx.mark_dirty(logits)
        ctx.conditions = bitmask, vocab_size
        return logits

    @staticmethod
    def backward(
        ctx: Any,  # noqa: ANN401
        gradient: torch.Tensor,
    ) -> tuple[torch.Tensor, None, None]:
        bitmask, vocab_size = ctx.conditions
        allowed = Conditions(bitmask, bitmask, vocab_size).allowed
        padding = gradient.shape[-1] - vocab_size
        allowed = torch.nn.functional.pad(allowed, (0, padding))
        return gradient.masked_fill(~allowed, 0), None, None


def mask_(logits: torch.Tensor, conditions: Conditions) -> torch.Tensor:
    """Write -inf over the logits of tokens that are not allowed, in place; see :func:`hard_mask`.

    Args:
        logits: contiguous, and no leaf that wants a gradient.
        conditions: what is allowed.
    """
    check_places(logits, conditions)
    masked: torch.Tensor = _Mask.apply(logits, conditions.bitmask, conditions.vocab_size)
    return masked


def check_places(logits: torch.Tensor, conditions: Conditions) -> None:
    """Refuse conditions that are not one for each row: spread out, they would be of other texts."""
    places, rows = conditions.bitmask.shape[:-1], logits.shape[:-1]
    if places != rows:
        raise ValueError(
            f"the conditions are of {tuple(places)} places and the logits of {tuple(rows)} rows: "
            "each row needs its own"
        )


def hard_mask(logits: torch.Tensor, conditions: Conditions) -> torch.Tensor:
    """Logits in which tokens that are not allowed are -inf, whatever stood there, NaN included.

    Gradients pass for allowed tokens and are 0 for the others. Source: section 9.1, equation (2).

    Args:
        logits: float32, float16 or bfloat16, shape ``(..., width)``, ``width`` at least the
            vocabulary's size. Columns past it are padding of the model and become -inf.
        conditions: of the same leading shape, on the same device.

    Returns:
        New logits of the same shape.

    Raises:
        ValueError, TypeError: shapes, devices or dtypes do not fit.
    """
    return mask_(logits.clone(memory_format=torch.contiguous_format), conditions)


def check_usable(masked: torch.Tensor) -> None:
    """Refuse masked logits whose softmax is no distribution.

    That is so exactly where the largest logit of a row is not finite: some allowed token has NaN or
    +inf, or all have -inf. Their softmax would be NaN for *every* token, and what a sampler does
    with that is up to the sampler.

    Args:
        masked: shape ``(..., width)``.

    Raises:
        UnusableLogitsError: names the first such row.
    """
    if not masked.numel():
        return
    usable = masked.detach().amax(-1).isfinite().flatten()
    if not bool(usable.all()):
        row = int((~usable).to(torch.uint8).argmax())
        raise UnusableLogitsError(
            f"row {row}: the logits of the allowed tokens hold NaN or +inf, or nothing but -inf; "
            "look for weights that are not finite or too large for "
            f'{masked.dtype}, or pass nonfinite="clamp"',
            row,
        )


def log_allowed_mass(logits: torch.Tensor, conditions: Conditions) -> torch.Tensor:
    """Logarithm of the probability that a model gives to the allowed tokens before any mask.

    The sum over the tokens of a text is the log weight of section 8: its expectation under masked
    sampling is the probability that the model alone stays in the language.

    Args:
        logits: as for :func:`hard_mask`; before the mask.
        conditions: as there.

    Returns:
        float32, of the leading shape; at most 0.
    """
    every = logits.float()[..., : conditions.vocab_size]
    inside = hard_mask(every, conditions).logsumexp(-1)
    return (inside - every.logsumexp(-1)).clamp(max=0)
