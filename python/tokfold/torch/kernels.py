"""Masks onto logits in one pass, by Triton.

Logits are written as whole numbers with the bits of -inf: so one kernel serves all dtypes. A thread
looks at a *group*, 16 bytes of logits: where all of them are masked it writes without reading,
where none is it does neither. Where a row may have several masks, and so several programs at once,
only what is masked is written.

A token mask is read as bytes: the bits of a group lie in one. For a class mask a thread reads the
class of each token, and the bit of that class.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from tokfold.torch.fold import Fold

__all__ = ["apply_classes", "apply_tokens", "unfold"]

BLOCK = 2_048
"""Columns of a program."""
WARPS = 4
WORDS = 32
"""Words of a token mask that a program unfolds."""
_BITS = {
    torch.float32: (torch.int32, -0x0080_0000),
    torch.float16: (torch.int16, -0x0400),
    torch.bfloat16: (torch.int16, -0x0080),
}


@triton.jit  # type: ignore[untyped-decorator]
def _write(  # type: ignore[no-untyped-def]  # noqa: ANN202
    row,  # noqa: ANN001
    columns,  # noqa: ANN001
    width,  # noqa: ANN001
    bits,  # noqa: ANN001
    MASKED: tl.constexpr,  # noqa: N803
    DISTINCT: tl.constexpr,  # noqa: N803
    GROUP: tl.constexpr,  # noqa: N803
):
    """Writes what the bits of each group, the lowest of a number, do not allow."""
    is_there = columns < width
    is_allowed = ((bits >> tl.arange(0, GROUP)[None, :]) & 1) != 0
    value = tl.full(columns.shape, MASKED, row.dtype.element_ty)
    if DISTINCT:
        # A group is a vector of one thread: it is read where it is mixed, and written whole.
        has_masked = bits != (1 << GROUP) - 1
        before = tl.load(row + columns, mask=has_masked & (bits != 0) & is_there, other=MASKED)
        tl.store(row + columns, tl.where(is_allowed, before, value), mask=has_masked & is_there)
    else:
        # What is allowed is not written: another mask of this row may forbid it meanwhile.
        tl.store(row + columns, value, mask=is_there & (is_allowed == 0))


# What changes from call to call must not make Triton compile anew while a server serves.
@triton.jit(  # type: ignore[untyped-decorator]
    do_not_specialize=["num_rows", "mask_stride"],
    do_not_specialize_on_alignment=["masks", "rows"],
)
def _apply_classes(  # type: ignore[no-untyped-def]  # noqa: ANN202
    logits,  # noqa: ANN001
    row_stride,  # noqa: ANN001
    num_rows,  # noqa: ANN001
    width,  # noqa: ANN001
    masks,  # noqa: ANN001
    mask_stride,  # noqa: ANN001
    rows,  # noqa: ANN001
    class_of,  # noqa: ANN001
    num_tokens,  # noqa: ANN001
    MASKED: tl.constexpr,  # noqa: N803
    HAS_ROWS: tl.constexpr,  # noqa: N803
    DISTINCT: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
    GROUP: tl.constexpr,  # noqa: N803
):
    groups = tl.program_id(1) * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)[:, None]
    places = tl.arange(0, GROUP)[None, :]
    columns = groups * GROUP + places
    # The load of the classes does not wait for that of the row.
    bit = tl.load(class_of + columns, mask=columns < num_tokens, other=-1).to(tl.int32)
    index = tl.program_id(0).to(tl.int64)
    row = index
    if HAS_ROWS:
        row = tl.load(rows + index).to(tl.int64)
    if (row >= 0) & (row < num_rows):
        word = tl.load(masks + index * mask_stride + (bit >> 5), mask=bit >= 0, other=0)
        allowed = (word >> (bit & 31)) & 1
        bits = tl.sum(allowed << places, axis=1, keep_dims=True)
        _write(logits + row * row_stride, columns, width, bits, MASKED, DISTINCT, GROUP)


@triton.jit(  # type: ignore[untyped-decorator]
    do_not_specialize=["num_rows", "mask_stride"],
    do_not_specialize_on_alignment=["masks", "numbers", "rows"],
)
def _apply_tokens(  # type: ignore[no-untyped-def]  # noqa: ANN202
    logits,  # noqa: ANN001
    row_stride,  # noqa: ANN001
    num_rows,  # noqa: ANN001
    width,  # noqa: ANN001
    masks,  # noqa: ANN001
    mask_stride,  # noqa: ANN001
    numbers,  # noqa: ANN001
    rows,  # noqa: ANN001
    num_tokens,  # noqa: ANN001
    MASKED: tl.constexpr,  # noqa: N803
    HAS_NUMBERS: tl.constexpr,  # noqa: N803
    HAS_ROWS: tl.constexpr,  # noqa: N803
    DISTINCT: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
    GROUP: tl.constexpr,  # noqa: N803
):
    groups = tl.program_id(1) * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)[:, None]
    columns = groups * GROUP + tl.arange(0, GROUP)[None, :]
    index = tl.program_id(0).to(tl.int64)
    row = index
    if HAS_ROWS:
        row = tl.load(rows + index).to(tl.int64)
    mask = index
    if HAS_NUMBERS:
        mask = tl.load(numbers + index).to(tl.int64)
    if (row >= 0) & (row < num_rows):
        first = groups * GROUP
        bits = tl.load(masks + mask * mask_stride + (first >> 3), mask=first < num_tokens, other=0)
        bits = bits.to(tl.int32) >> (first & 7)
        # The bits behind the last token may be anything.
        known = tl.minimum(tl.maximum(num_tokens - first, 0), GROUP)
        bits &= (1 << known) - 1
        _write(logits + row * row_stride, columns, width, bits, MASKED, DISTINCT, GROUP)


@triton.jit(  # type: ignore[untyped-decorator]
    do_not_specialize=["mask_stride"], do_not_specialize_on_alignment=["masks", "numbers"]
)
def _unfold(  # type: ignore[no-untyped-def]  # noqa: ANN202
    table,  # noqa: ANN001
    num_words,  # noqa: ANN001
    masks,  # noqa: ANN001
    mask_stride,  # noqa: ANN001
    numbers,  # noqa: ANN001
    class_of,  # noqa: ANN001
    num_tokens,  # noqa: ANN001
    WORDS: tl.constexpr,  # noqa: N803
):
    words = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    places = tl.arange(0, 32)[None, :]
    tokens = words[:, None] * 32 + places
    bit = tl.load(class_of + tokens, mask=tokens < num_tokens, other=-1).to(tl.int32)
    index = tl.program_id(0).to(tl.int64)
    number = tl.load(numbers + index).to(tl.int64)
    word = tl.load(masks + index * mask_stride + (bit >> 5), mask=bit >= 0, other=0)
    allowed = (word >> (bit & 31)) & 1
    unfolded = tl.sum(allowed << places, axis=1)
    tl.store(table + number * num_words + words, unfolded, mask=words < num_words)


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
    given = (masks if rows is None else rows, fold.class_of, fold.num_tokens)
    _launch(
        _apply_classes,
        logits,
        masks.shape[0],
        (masks, masks.stride(0), *given),
        HAS_ROWS=rows is not None,
        DISTINCT=distinct or rows is None,
    )


def apply_tokens(
    logits: torch.Tensor,
    masks: torch.Tensor,
    vocab_size: int,
    rows: torch.Tensor | None,
    distinct: bool = False,
    numbers: torch.Tensor | None = None,
) -> None:
    """The same with token masks; with ``numbers`` those of them that the numbers say."""
    each = masks if numbers is None else numbers
    _launch(
        _apply_tokens,
        logits,
        each.shape[0],
        (
            masks.reshape(-1).view(torch.uint8),
            4 * masks.shape[1],
            each,
            masks if rows is None else rows,
            vocab_size,
        ),
        HAS_NUMBERS=numbers is not None,
        HAS_ROWS=rows is not None,
        DISTINCT=distinct or rows is None,
    )


def _launch(
    kernel: Any,  # noqa: ANN401 - of Triton
    logits: torch.Tensor,
    count: int,
    given: tuple[object, ...],
    **constants: bool,
) -> None:
    """Run a kernel for so many masks, with what it is given behind the logits."""
    if count == 0 or logits.shape[1] == 0:
        return
    kind, masked = _BITS[logits.dtype]
    kernel[(count, triton.cdiv(logits.shape[1], BLOCK))](
        logits.view(kind),
        logits.stride(0),
        logits.shape[0],
        logits.shape[1],
        *given,
        MASKED=masked,
        BLOCK=BLOCK,
        GROUP=16 // logits.element_size(),
        num_warps=WARPS,
        **constants,
    )


def unfold(table: torch.Tensor, numbers: torch.Tensor, masks: torch.Tensor, fold: Fold) -> None:
    """Write the token masks of class masks into rows of a table: those of the numbers."""
    if not len(numbers):
        return
    kernel: Any = _unfold
    kernel[(len(numbers), triton.cdiv(table.shape[1], WORDS))](
        table,
        table.shape[1],
        masks,
        masks.stride(0),
        numbers,
        fold.class_of,
        fold.num_tokens,
        WORDS=WORDS,
        num_warps=WARPS,
    )
