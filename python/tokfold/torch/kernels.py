"""Masks onto logits in one pass, by Triton.

Logits are written as whole numbers with the bits of -inf: so one kernel serves all dtypes. A thread
looks at 16 bytes of logits: where all of them are masked it writes without reading, where none is
it does neither. Where a row may have several masks, and so several programs at once, only what is
masked is written.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from tokfold.torch.fold import Fold

__all__ = ["apply_classes", "apply_numbered", "apply_tokens"]

BLOCK = 2_048
WARPS = 8
_BITS = {
    torch.float32: (torch.int32, -0x0080_0000),
    torch.float16: (torch.int16, -0x0400),
    torch.bfloat16: (torch.int16, -0x0080),
}


# What changes from call to call must not make Triton compile anew while a server serves.
@triton.jit(  # type: ignore[untyped-decorator]
    do_not_specialize=["num_rows", "mask_stride"],
    do_not_specialize_on_alignment=["masks", "numbers", "rows"],
)
def _apply(  # type: ignore[no-untyped-def]  # noqa: ANN202
    logits,  # noqa: ANN001
    row_stride,  # noqa: ANN001
    num_rows,  # noqa: ANN001
    width,  # noqa: ANN001
    masks,  # noqa: ANN001
    mask_stride,  # noqa: ANN001
    numbers,  # noqa: ANN001
    rows,  # noqa: ANN001
    class_of,  # noqa: ANN001
    num_tokens,  # noqa: ANN001
    MASKED: tl.constexpr,  # noqa: N803
    HAS_NUMBERS: tl.constexpr,  # noqa: N803
    HAS_ROWS: tl.constexpr,  # noqa: N803
    HAS_CLASSES: tl.constexpr,  # noqa: N803
    DISTINCT: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
    GROUP: tl.constexpr,  # noqa: N803
):
    groups = tl.arange(0, BLOCK // GROUP)[:, None]
    columns = tl.program_id(1) * BLOCK + groups * GROUP + tl.arange(0, GROUP)[None, :]
    is_token = columns < num_tokens
    # The load of the classes does not wait for that of the row.
    if HAS_CLASSES:
        bit = tl.load(class_of + columns, mask=is_token, other=-1).to(tl.int32)
    else:
        bit = tl.where(is_token, columns, -1)
    index = tl.program_id(0)
    row = index.to(tl.int64)
    if HAS_ROWS:
        row = tl.load(rows + index).to(tl.int64)
    mask = index.to(tl.int64)
    if HAS_NUMBERS:
        mask = tl.load(numbers + index).to(tl.int64)
    if (row >= 0) & (row < num_rows):
        words = masks + mask * mask_stride + (bit >> 5)
        word = tl.load(words, mask=bit >= 0, other=0)
        allowed = (word >> (bit & 31)) & 1
        is_there = columns < width
        place = logits + row * row_stride + columns
        value = tl.full((BLOCK // GROUP, GROUP), MASKED, logits.dtype.element_ty)
        if DISTINCT:
            # A group is a vector of one thread: it is read where it is mixed, and written whole.
            count = tl.sum(allowed, axis=1, keep_dims=True)
            is_mixed = (count > 0) & (count < GROUP) & is_there
            before = tl.load(place, mask=is_mixed, other=MASKED)
            after = tl.where(allowed == 0, value, before)
            tl.store(place, after, mask=(count < GROUP) & is_there)
        else:
            # What is allowed is not written: another mask of this row may forbid it meanwhile.
            tl.store(place, value, mask=is_there & (allowed == 0))


def _launch(
    logits: torch.Tensor,
    masks: torch.Tensor,
    numbers: torch.Tensor | None,
    rows: torch.Tensor | None,
    class_of: torch.Tensor | None,
    num_tokens: int,
    distinct: bool,
) -> None:
    count = (masks if numbers is None else numbers).shape[0]
    if count == 0 or logits.shape[1] == 0:
        return
    kind, masked = _BITS[logits.dtype]
    kernel: Any = _apply
    kernel[(count, triton.cdiv(logits.shape[1], BLOCK))](
        logits.view(kind),
        logits.stride(0),
        logits.shape[0],
        logits.shape[1],
        masks,
        masks.stride(0),
        masks if numbers is None else numbers,
        masks if rows is None else rows,
        masks if class_of is None else class_of,
        num_tokens,
        MASKED=masked,
        HAS_NUMBERS=numbers is not None,
        HAS_ROWS=rows is not None,
        HAS_CLASSES=class_of is not None,
        DISTINCT=distinct or rows is None,
        BLOCK=BLOCK,
        GROUP=16 // logits.element_size(),
        num_warps=WARPS,
    )


def apply_classes(
    logits: torch.Tensor,
    masks: torch.Tensor,
    fold: Fold,
    rows: torch.Tensor | None,
    distinct: bool = False,
) -> None:
    """Class masks onto logits of two dimensions; everything checked, on one device.

    ``distinct`` says that no row has two masks.
    """
    _launch(logits, masks, None, rows, fold.class_of, fold.num_tokens, distinct)


def apply_numbered(
    logits: torch.Tensor,
    table: torch.Tensor,
    numbers: torch.Tensor,
    fold: Fold,
    rows: torch.Tensor | None,
    distinct: bool = False,
) -> None:
    """The same with masks of a table, by their numbers."""
    _launch(logits, table, numbers, rows, fold.class_of, fold.num_tokens, distinct)


def apply_tokens(
    logits: torch.Tensor,
    masks: torch.Tensor,
    vocab_size: int,
    rows: torch.Tensor | None,
    distinct: bool = False,
) -> None:
    """Token masks onto logits of two dimensions."""
    _launch(logits, masks, None, rows, None, vocab_size, distinct)
