"""Bitmasks as XGrammar takes them: torch tensors, numpy arrays, anything with DLPack.

XGrammar ignores strides: given ``big[:, :2]`` it fills row 0 where row 1 was asked for. Here a
row is found with its strides, and one whose words are not side by side is filled through a copy.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import xgrammar as xgr
from torch.utils.dlpack import from_dlpack

from tokfold.xgrammar.compiled import CompiledGrammar

__all__ = ["Words", "allocate_class_bitmask", "get_class_bitmask_shape", "mask_array", "mask_row"]

Words = npt.NDArray[np.int32]


def get_class_bitmask_shape(batch_size: int, compiled: CompiledGrammar) -> tuple[int, int]:
    """Shape of a bitmask over the classes of a compiled grammar.

    Raises:
        UnsupportedGrammarError, LimitExceededError: the grammar is not compressed, and why.
    """
    return (batch_size, compiled.folded.num_words)


def allocate_class_bitmask(batch_size: int, compiled: CompiledGrammar) -> torch.Tensor:
    """A bitmask over the classes of a compiled grammar, every class allowed.

    Returns:
        int32 CPU tensor, shape ``(batch_size, ceil(compiled.num_class_bits / 32))``; bit j of
        word i is bit 32 i + j, and ``compiled.class_of_token`` says which bit a token reads.

    Raises:
        UnsupportedGrammarError, LimitExceededError: the grammar is not compressed, and why.
    """
    shape = get_class_bitmask_shape(batch_size, compiled)
    return torch.full(shape, -1, dtype=xgr.bitmask_dtype)


def mask_array(bitmask: Any) -> Words:  # noqa: ANN401 - whatever offers DLPack
    """The caller's bitmask as a numpy array that shares its memory."""
    if isinstance(bitmask, np.ndarray):
        array = bitmask
        if not array.flags.writeable:
            raise BufferError("The provided bitmask is read-only")
    else:
        if not isinstance(bitmask, torch.Tensor):
            if not hasattr(bitmask, "__dlpack__"):
                raise TypeError(f"Cannot use a {type(bitmask).__name__} as a bitmask")
            bitmask = from_dlpack(bitmask)
        if bitmask.device.type != "cpu":
            raise RuntimeError("The provided bitmask's device is not valid: should be CPU")
        array = bitmask.numpy()
    if array.dtype != np.int32:
        raise RuntimeError("The provided bitmask's dtype is not valid: should be int32")
    return array


def mask_row(array: Words, index: int, num_words: int) -> Words:
    """One row of a bitmask of shape ``(num_words,)`` or ``(batch, num_words)``."""
    index = operator.index(index)
    if array.ndim == 1:
        if array.shape[0] != num_words:
            raise RuntimeError(
                f"The provided bitmask's shape is not valid: should be ({num_words}, )"
            )
        if index != 0:
            raise RuntimeError("The index should be 0 when the bitmask is 1D")
        return array
    if array.ndim != 2 or array.shape[1] != num_words:
        raise RuntimeError(
            f"The provided bitmask's shape is not valid: should be (batch_size, {num_words})"
        )
    if not 0 <= index < array.shape[0]:
        raise RuntimeError("The provided index is out of bounds")
    row: Words = array[index]
    return row
