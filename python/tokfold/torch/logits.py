"""Masks onto logits, by class masks or token masks: the calls, and tensors as kernels take them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from tokfold import _core
from tokfold._checks import whole_number, wrong_type
from tokfold._quoting import quoted
from tokfold.torch.backends import Backend, chosen_backend, kernels_of
from tokfold.torch.checks import (
    Masks,
    Rows,
    are_distinct,
    check_logits,
    check_masks,
    check_tensor,
    listed_rows,
    no_rows,
    rows_on_device,
)
from tokfold.torch.fold import Fold, fold_of

__all__ = ["apply_class_bitmask_", "apply_token_bitmask_"]

MINUS_INFINITY = {torch.float32: 0, torch.float16: -0x0400, torch.bfloat16: -0x0080}
"""The 16 bits of -inf, as a signed number; float32 needs none."""


def apply_class_bitmask_(
    logits: torch.Tensor,
    class_bitmask: Masks,
    fold: Fold,
    rows: Rows = None,
    *,
    backend: Backend = "auto",
) -> torch.Tensor:
    """Write -inf over the logits of tokens whose class is not allowed, in place.

    Nothing is allocated, and nothing waits for the device: it can be captured in a CUDA graph (run
    it once before, so that the kernel is compiled) and stands in graphs of ``torch.compile``: there
    masks and rows are tensors, since a list of rows would make a graph for each. NaN and infinities
    of allowed tokens stay as they are. Columns past the vocabulary are padding of the model: they
    become -inf. The same logits as XGrammar's ``apply_token_bitmask_inplace`` with the unfolded
    rows, within the vocabulary.

    Args:
        logits: float32, float16 or bfloat16, shape ``(batch, width)`` or ``(width,)``, ``width`` at
            least ``fold.num_tokens``; any stride between rows, the entries of a row side by side.
        class_bitmask: int32, shape ``(n, fold.num_words)`` or ``(fold.num_words,)``, contiguous, on
            the device of the logits; on the CPU a numpy array will do.
        fold: the classes, on the device of the logits.
        rows: the row of the logits that each mask is for, shape ``(n,)``; by default mask ``i`` is
            for row ``i``. -1 is for none. A tensor on a GPU is not looked at by the CPU: there,
            masks for rows that do not exist are for none as well.
        backend: which kernel. ``"auto"``: our own on the CPU, Triton on a GPU, plain torch
            elsewhere, and on a GPU without Triton, with one :class:`tokfold.FallbackWarning`.

    Returns:
        ``logits``.

    Raises:
        ValueError: devices, shapes or layouts do not fit; says which and how.
        TypeError: a dtype that is none of these.
        IndexError: a row that does not exist.
        MissingExtraError: ``backend="triton"``, and Triton is not installed.
    """
    if not isinstance(fold, Fold):
        raise wrong_type("fold", "a tokfold.torch.Fold", fold)
    check_logits(logits, fold.num_tokens, fold.device)
    check_masks(class_bitmask, logits.ndim, fold.num_words, fold.device)
    if torch.compiler.is_compiling():
        if backend != "auto":
            raise ValueError('in torch.compile the backend is "auto"')
        as_tensor = None if rows is None else torch.as_tensor(rows, device=fold.device)
        torch.ops.tokfold.apply_class_bitmask_(logits, class_bitmask, as_tensor, fold._number)
        return logits
    chosen = chosen_backend(backend, fold.device)
    if logits.ndim == 1:
        no_rows(rows)
    if chosen == "cpu":
        assert fold._unfolder is not None
        arrays = _arrays(logits, class_bitmask)
        listed = listed_rows(rows, len(arrays[1]), len(arrays[0]))
        fold._unfolder.apply(arrays[1], arrays[0], listed, MINUS_INFINITY[logits.dtype])
        return logits
    wide, masks = _two_dimensional(logits, class_bitmask)
    on_device = rows_on_device(rows, masks.shape[0], wide.shape[0], fold.device)
    kernels_of(chosen).apply_classes(wide, masks, fold, on_device, are_distinct(rows))
    return logits


def apply_token_bitmask_(
    logits: torch.Tensor,
    bitmask: Masks,
    vocab_size: int,
    rows: Rows = None,
    *,
    backend: Backend = "auto",
) -> torch.Tensor:
    """Write -inf over the logits of tokens that a token mask does not allow, in place.

    As :func:`apply_class_bitmask_`, for masks with a bit for each token.

    Args:
        logits: as there; ``width`` at least ``vocab_size``.
        bitmask: int32, shape ``(n, ceil(vocab_size / 32))`` or one row, contiguous, on the device
            of the logits; on the CPU a numpy array will do.
        vocab_size: tokens of the vocabulary. Columns past it become -inf.
        rows: as there.
        backend: as there.

    Returns:
        ``logits``.

    Raises:
        As :func:`apply_class_bitmask_`.
    """
    number = whole_number(vocab_size)
    if number is None:
        raise wrong_type("vocab_size", "an int", vocab_size)
    if number < 1:
        raise ValueError(f"vocab_size must be 1 or more, not {quoted(number)}")
    vocab_size = number
    check_tensor(logits)
    check_logits(logits, vocab_size, logits.device)
    check_masks(bitmask, logits.ndim, -(-vocab_size // 32), logits.device)
    chosen = chosen_backend(backend, logits.device)
    if logits.ndim == 1:
        no_rows(rows)
    if chosen == "cpu":
        arrays = _arrays(logits, bitmask)
        listed = listed_rows(rows, len(arrays[1]), len(arrays[0]))
        masked = MINUS_INFINITY[logits.dtype]
        _core.apply_bitmask(arrays[1], arrays[0], vocab_size, listed, masked)
        return logits
    wide, masks = _two_dimensional(logits, bitmask)
    on_device = rows_on_device(rows, masks.shape[0], wide.shape[0], logits.device)
    kernels_of(chosen).apply_tokens(wide, masks, vocab_size, on_device, are_distinct(rows))
    return logits


# -------------------------------------------------------------------- layouts


def _two_dimensional(logits: torch.Tensor, masks: Masks) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(masks, np.ndarray):
        masks = torch.from_numpy(masks)
    if logits.ndim == 1:
        return logits.detach()[None], masks[None]
    return logits.detach(), masks


def _arrays(
    logits: torch.Tensor, masks: Masks
) -> tuple[npt.NDArray[np.float32] | npt.NDArray[np.int16], npt.NDArray[np.int32]]:
    """The same memory as numpy sees it, which has no bfloat16."""
    if logits.requires_grad:
        # What autograd has saved of them is no longer so.
        torch.autograd.graph.increment_version(logits)
        logits = logits.detach()
    if logits.dtype != torch.float32:
        logits = logits.view(torch.int16)
    array = logits.numpy()
    words = masks.numpy() if isinstance(masks, torch.Tensor) else masks
    return (array[None], words[None]) if array.ndim == 1 else (array, words)


# ---------------------------------------------------------------- graphs


@torch.library.custom_op("tokfold::apply_class_bitmask_", mutates_args={"logits"})
def _in_graphs(
    logits: torch.Tensor, class_bitmask: torch.Tensor, rows: torch.Tensor | None, fold: int
) -> None:
    """What stands for :func:`apply_class_bitmask_` in a graph."""
    apply_class_bitmask_(logits, class_bitmask, fold_of(fold), rows)


@_in_graphs.register_fake
def _(
    logits: torch.Tensor, class_bitmask: torch.Tensor, rows: torch.Tensor | None, fold: int
) -> None:
    return None
