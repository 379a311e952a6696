"""What masks do to logits, entry by entry, on the bits of the numbers.

Compared are bits: so NaNs are equal to themselves, and an allowed entry must be the same to the
last bit. Needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

INTEGERS = {
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


def bits_of(tensor: torch.Tensor) -> np.ndarray:
    """The bits of floats as whole numbers, in memory of their own."""
    return tensor.detach().cpu().contiguous().view(INTEGERS[tensor.dtype]).numpy().copy()


def minus_infinity(dtype: torch.dtype) -> int:
    """The bits of -inf."""
    return int(bits_of(torch.tensor([-torch.inf], dtype=dtype))[0])


def bits_of_words(words: np.ndarray, size: int) -> np.ndarray:
    """The first bits of a row of int32 words, as bools; those that are not there are 0."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[:size].astype(bool)
    return np.pad(bits, (0, size - len(bits)))


def unfolded(words: np.ndarray, class_of: np.ndarray) -> np.ndarray:
    """Which tokens a class mask allows, as bools."""
    bits = bits_of_words(words, int(class_of.max(initial=0)) + 1)
    return (class_of >= 0) & bits[np.maximum(class_of, 0)]


def masked_(
    logits: torch.Tensor, allowed: Sequence[np.ndarray], rows: Sequence[int] | None = None
) -> torch.Tensor:
    """Logits after masks, each over all tokens and for a row; past the tokens is padding."""
    wide = logits.detach()
    wide = (wide[None] if wide.ndim == 1 else wide).view(INTEGERS[logits.dtype]).numpy()
    for row, tokens in zip(range(len(wide)) if rows is None else rows, allowed, strict=True):
        if row >= 0:
            keep = np.pad(tokens, (0, wide.shape[1] - len(tokens)))
            wide[row, ~keep] = minus_infinity(logits.dtype)
    return logits
