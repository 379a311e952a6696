"""The levels of a token tree by Triton: who may come, who reads on, and masks of it.

``kernels.advance`` reads the letters of the nodes that :func:`spread` lists; ``counts`` has how
many there are of each level, and their slots follow those of the levels before.
"""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# ruff: noqa: ANN001, ANN201, N803

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["pack", "plant", "settle", "spread", "unfold"]


@triton.jit(do_not_specialize=["num_rows"])
def plant(
    predicted,
    following,
    lengths,
    slots,
    counts,
    num_rows,
    columns,
    width,
    num_symbols,
    follow_words,
    num_nodes,
    tail,
    BLOCK: tl.constexpr,
):
    """Put the root of the token tree where each row stands: node 0, in the slot of the row."""
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    length = tl.load(lengths + row)
    first_tail = num_rows.to(tl.int64) * num_symbols * width
    from_row = row.to(tl.int64) * num_symbols * width
    own = first_tail + row.to(tl.int64) * num_symbols * tail
    for at in range(0, num_symbols * tail, BLOCK):
        index = at + lanes
        word = (length >> 5) + index % tail
        is_there = (index < num_symbols * tail) & (word < width)
        place = predicted + from_row + (index // tail) * width + word
        value = tl.load(place, mask=is_there, other=0)
        tl.store(predicted + own + index, value, mask=index < num_symbols * tail)
    here = (row.to(tl.int64) * (columns + 1) + length) * follow_words
    there = (num_rows.to(tl.int64) * (columns + 1) + row) * follow_words
    for at in range(0, follow_words, BLOCK):
        is_there = at + lanes < follow_words
        value = tl.load(following + here + at + lanes, mask=is_there, other=0)
        tl.store(following + there + at + lanes, value, mask=is_there)
    tl.store(slots + row.to(tl.int64) * num_nodes, row)
    if row == 0:
        tl.store(counts, num_rows)


@triton.jit(do_not_specialize=["level", "level_start", "level_nodes", "num_rows"])
def spread(
    parents,
    letters,
    inner,
    num_nodes,
    level,
    level_start,
    level_nodes,
    slots,
    viable,
    counts,
    capacity,
    overflow,
    node_rows,
    node_letters,
    node_parents,
    following,
    follow_words,
    num_rows,
    columns,
    LEVELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Which nodes of a level may come, and slots for those of them that have children."""
    row = tl.program_id(0)
    lanes = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_there = lanes < level_nodes
    node = level_start + lanes
    of_row = row.to(tl.int64) * num_nodes
    parent = tl.load(parents + node, mask=is_there, other=0)
    slot = tl.load(slots + of_row + parent, mask=is_there, other=-1)
    is_alive = is_there & (slot >= 0)
    letter = tl.load(letters + node, mask=is_there, other=0).to(tl.int32)
    first_node = num_rows.to(tl.int64) * (columns + 1)
    place = following + (first_node + slot) * follow_words + (letter >> 5)
    word = tl.load(place, mask=is_alive, other=0)
    may = is_alive & (((word >> (letter & 31)) & 1) != 0)
    tl.store(viable + of_row + node, may.to(tl.int8), mask=is_there)
    goes_on = may & (tl.load(inner + node, mask=is_there, other=0) != 0)
    wanted = goes_on.to(tl.int32)
    level_lanes = tl.arange(0, LEVELS)
    before = tl.sum(tl.load(counts + level_lanes, mask=level_lanes < level, other=0), axis=0)
    mine = tl.atomic_add(counts + level, tl.sum(wanted, axis=0))
    own = before + mine + tl.cumsum(wanted, axis=0) - 1
    fits = goes_on & (own < capacity)
    tl.store(slots + of_row + node, tl.where(fits, own, -1), mask=is_there)
    tl.store(node_rows + own, row, mask=fits)
    tl.store(node_letters + own, letter, mask=fits)
    tl.store(node_parents + own, slot, mask=fits)
    missing = tl.sum(wanted, axis=0) - tl.sum(fits.to(tl.int32), axis=0)
    if missing > 0:
        tl.atomic_add(overflow, missing)


@triton.jit(do_not_specialize=["mask_stride"])
def pack(
    viable,
    complete,
    lengths,
    ends,
    num_nodes,
    columns,
    num_classes,
    masks,
    mask_stride,
    num_words,
    WAYS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Class masks: the bit of a class is whether its node may come; of a stop token, the end."""
    row = tl.program_id(0)
    words = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.arange(0, 32)
    number = words[:, None] * 32 + bits[None, :]
    is_there = number < num_classes
    length = tl.load(lengths + row)
    is_complete = tl.load(complete + row.to(tl.int64) * (columns + 1) + length).to(tl.int32)
    may = tl.zeros((BLOCK, 32), dtype=tl.int32)
    for way in range(0, WAYS):
        end = tl.load(ends + way * num_classes + number, mask=is_there, other=-2)
        node = viable + row.to(tl.int64) * num_nodes + end
        may |= tl.load(node, mask=end >= 0, other=0).to(tl.int32)
        may = tl.where(end == -1, is_complete, may)
    # Disjoint bits: their sum is their union.
    value = tl.sum(may << bits[None, :], axis=1)
    tl.store(masks + row.to(tl.int64) * mask_stride + words, value, mask=words < num_words)


@triton.jit(do_not_specialize=["mask_stride", "row_stride"])
def unfold(
    masks,
    mask_stride,
    class_of,
    num_tokens,
    rows,
    row_stride,
    num_words,
    BLOCK: tl.constexpr,
):
    """Token masks of class masks: the bit of a token is that of its class."""
    row = tl.program_id(0).to(tl.int64)
    words = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.arange(0, 32)
    token = words[:, None] * 32 + bits[None, :]
    number = tl.load(class_of + token, mask=token < num_tokens, other=-1).to(tl.int32)
    word = tl.load(masks + row * mask_stride + (number >> 5), mask=number >= 0, other=0)
    value = tl.sum(((word >> (number & 31)) & 1) << bits[None, :], axis=1)
    tl.store(rows + row * row_stride + words, value, mask=words < num_words)


@triton.jit(do_not_specialize=["num_words"])
def settle(
    lengths,
    complete,
    following,
    missing,
    follow_words,
    keep,
    stop_bits,
    told,
    head,
    num_words,
    MAY_END: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Tell where one text stands, and in a row of tokens let those end it that are to."""
    lanes = tl.arange(0, BLOCK)
    length = tl.load(lengths)
    is_complete = tl.load(complete + length).to(tl.int32)
    if tl.program_id(0) == 0:
        tl.store(told, length)
        tl.store(told + 1, is_complete)
        tl.store(told + 2, tl.load(missing))
        here = following + length.to(tl.int64) * follow_words
        for at in range(0, follow_words, BLOCK):
            is_there = at + lanes < follow_words
            tl.store(
                told + 3 + at + lanes, tl.load(here + at + lanes, mask=is_there), mask=is_there
            )
    words = tl.program_id(0) * BLOCK + lanes
    is_there = words < num_words
    row = told + head + words
    value = tl.load(row, mask=is_there, other=0) & tl.load(keep + words, mask=is_there, other=0)
    if MAY_END:
        value |= tl.load(stop_bits + words, mask=is_there, other=0) & -is_complete
    tl.store(row, value, mask=is_there)
