"""Charts by Triton: a letter read by many texts in one launch.

One program reads one letter for one text (a *row* of :class:`Charts`, or a node of the token tree).
Its chart is words of 32 places. What it has found so far lies in memory of its own (``begins``, for
each symbol the places where a string of it begins that ends with the letter), and threads of the
program meet there: by atomic unions, which come out the same in any order, and barriers between.

Nothing here asks the CPU anything, and all shapes are fixed beforehand, so steps can be captured in
a graph. What :class:`Charts` and :class:`Tables` hold, and how it lies there, they say.
"""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# ruff: noqa: ANN001, ANN201, ANN202, N803

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["advance"]


@triton.jit
def _predicted_at(
    predicted, row_words, tails, width, tail, from_word, symbol, word, is_there, TREE
):
    """A word of the places where a symbol is predicted; of a node, its own words from one on."""
    place = row_words + symbol * width + word
    if TREE:
        own = tails + symbol * tail + (word - from_word)
        place = tl.where(word < from_word, place, own)
    return tl.load(predicted + place, mask=is_there, other=0)


# What changes from call to call must not make Triton compile anew while a server serves.
@triton.jit(do_not_specialize=["level", "num_rows"], do_not_specialize_on_alignment=["letters"])
def advance(
    parents,
    lefts,
    rights,
    num_rules,
    left_symbols,
    num_lefts,
    leaf_starts,
    leaf_symbols,
    corners,
    corner_words,
    symbol_words,
    num_rights,
    num_symbols,
    start,
    num_letters,
    ended,
    predicted,
    following,
    complete,
    lengths,
    status,
    letters,
    columns,
    width,
    num_rows,
    level,
    counts,
    capacity,
    node_rows,
    node_letters,
    node_parents,
    paths,
    depth,
    tail,
    scratch,
    scratch_words,
    list_words,
    TREE: tl.constexpr,
    LEVELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Read a letter for each row (or live node of a level)."""
    lanes = tl.arange(0, BLOCK)
    row_slots = columns + 1
    first_node = num_rows.to(tl.int64) * row_slots
    first_tail = num_rows.to(tl.int64) * num_symbols * width
    follow_words = corner_words - symbol_words
    first = 0
    count = num_rows
    if TREE:
        level_lanes = tl.arange(0, LEVELS)
        before = tl.load(counts + level_lanes, mask=level_lanes < level, other=0)
        first = tl.sum(before, axis=0)
        count = tl.minimum(tl.load(counts + level), capacity - first)
    # Memory of this program: places by symbol, which places any has, lists, and flags.
    begins = scratch + tl.program_id(0).to(tl.int64) * scratch_words
    occupied = begins + num_symbols * width
    listed = occupied + width
    wanted = listed + list_words
    found_row = wanted + num_rights
    item = tl.program_id(0)
    while item < count:
        parent = item
        if TREE:
            node = first + item
            row = tl.load(node_rows + node)
            letter = tl.load(node_letters + node)
            parent = tl.load(node_parents + node)
            base = tl.load(lengths + row)
            n = base + level - 1
            verdict = 0
            new_slot = first_node + node
        else:
            row = item
            letter = tl.load(letters + row)
            base = tl.load(lengths + row)
            n = base
            here = row.to(tl.int64) * row_slots + n
            is_letter = (letter >= 0) & (letter < num_letters)
            may_come = following + here * follow_words + (letter >> 5)
            may_come = tl.load(may_come, mask=is_letter, other=0)
            refused = ((may_come >> (letter & 31)) & 1) == 0
            verdict = tl.where(letter == -2, 3, tl.where(refused, 1, tl.where(n >= columns, 2, 0)))
            tl.store(status + row, verdict)
            new_slot = here + 1
        if verdict == 0:
            row_words = row.to(tl.int64) * num_symbols * width
            tails = first_tail + parent.to(tl.int64) * num_symbols * tail
            from_word = base >> 5
            words = (n >> 5) + 1
            for at in range(0, num_symbols * words, BLOCK):
                index = at + lanes
                place = (index // words) * width + index % words
                tl.store(begins + place, 0, mask=index < num_symbols * words)
            for at in range(0, words, BLOCK):
                tl.store(occupied + at + lanes, 0, mask=at + lanes < words)
            for at in range(0, num_rights, BLOCK):
                tl.store(wanted + at + lanes, 0, mask=at + lanes < num_rights)
            tl.debug_barrier()
            last_leaf = tl.load(leaf_starts + letter + 1)
            for at in range(tl.load(leaf_starts + letter), last_leaf, BLOCK):
                is_there = at + lanes < last_leaf
                symbol = tl.load(leaf_symbols + at + lanes, mask=is_there, other=0).to(tl.int32)
                may = _predicted_at(
                    predicted, row_words, tails, width, tail, from_word, symbol, n >> 5,
                    is_there, TREE,
                )  # fmt: skip
                is_there = is_there & (((may >> (n & 31)) & 1) != 0)
                tl.store(begins + symbol * width + (n >> 5), 1 << (n & 31), mask=is_there)
            tl.store(occupied + (n >> 5), 1 << (n & 31))
            tl.debug_barrier()
            middle = n
            while middle > 0:
                # The last place at or before the middle where anything begins.
                at_word = middle >> 5
                until = tl.load(occupied + at_word) & ((2 << (middle & 31)) - 1)
                bits = tl.arange(0, 32)
                bit = tl.max(tl.where(((until >> bits) & 1) != 0, bits, -1), axis=0)
                middle = tl.where(bit < 0, at_word * 32 - 1, at_word * 32 + bit)
                if (bit >= 0) & (middle > 0):
                    # The rules whose right child begins there.
                    active = 0
                    for at in range(0, num_rules, BLOCK):
                        rule = at + lanes
                        is_there = rule < num_rules
                        right = tl.load(rights + rule, mask=is_there, other=0).to(tl.int32)
                        where = tl.load(begins + right * width + at_word, mask=is_there, other=0)
                        is_there = is_there & (((where >> bit) & 1) != 0)
                        there = is_there.to(tl.int32)
                        order = active + tl.cumsum(there, axis=0) - 1
                        tl.store(listed + order, rule, mask=is_there)
                        active += tl.sum(there, axis=0)
                    tl.debug_barrier()
                    # Their left children that end there, as far as their parents are predicted.
                    column = row.to(tl.int64) * row_slots + middle
                    if TREE:
                        ancestor = paths + parent.to(tl.int64) * depth + (middle - base - 1)
                        ancestor = tl.load(ancestor, mask=middle > base, other=0)
                        column = tl.where(middle > base, first_node + ancestor, column)
                    left_words = ended + column * num_lefts * width
                    middle_words = ((middle - 1) >> 5) + 1
                    for at in range(0, active * middle_words, BLOCK):
                        index = at + lanes
                        is_there = index < active * middle_words
                        word = index % middle_words
                        rule = tl.load(listed + index // middle_words, mask=is_there, other=0)
                        left = tl.load(lefts + rule, mask=is_there, other=0).to(tl.int32)
                        symbol = tl.load(parents + rule, mask=is_there, other=0).to(tl.int32)
                        ends = tl.load(left_words + left * width + word, mask=is_there, other=0)
                        is_there = is_there & (ends != 0)
                        may = _predicted_at(
                            predicted, row_words, tails, width, tail, from_word, symbol, word,
                            is_there, TREE,
                        )  # fmt: skip
                        new = ends & may
                        is_there = is_there & (new != 0)
                        to = begins + symbol * width + word
                        tl.atomic_or(to, new, mask=is_there, sem="relaxed", scope="cta")
                        to = occupied + word
                        tl.atomic_or(to, new, mask=is_there, sem="relaxed", scope="cta")
                    tl.debug_barrier()
                    middle -= 1
            # What ends with the letter is kept for left children alone.
            for at in range(0, num_lefts * words, BLOCK):
                index = at + lanes
                is_there = index < num_lefts * words
                left = index // words
                word = index % words
                symbol = tl.load(left_symbols + left, mask=is_there, other=0).to(tl.int32)
                value = tl.load(begins + symbol * width + word, mask=is_there, other=0)
                to = ended + new_slot * num_lefts * width + left * width + word
                tl.store(to, value, mask=is_there)
            # What may begin after the letter: right children beside a left one that ended.
            for at in range(0, num_rules * words, BLOCK):
                index = at + lanes
                is_there = index < num_rules * words
                rule = index // words
                word = index % words
                left = tl.load(lefts + rule, mask=is_there, other=0).to(tl.int32)
                left = tl.load(left_symbols + left, mask=is_there, other=0).to(tl.int32)
                ends = tl.load(begins + left * width + word, mask=is_there, other=0)
                is_there = is_there & (ends != 0)
                symbol = tl.load(parents + rule, mask=is_there, other=0).to(tl.int32)
                may = _predicted_at(
                    predicted, row_words, tails, width, tail, from_word, symbol, word,
                    is_there, TREE,
                )  # fmt: skip
                right = tl.load(rights + rule, mask=is_there, other=0).to(tl.int32)
                tl.store(wanted + right, 1, mask=is_there & ((ends & may) != 0))
            tl.debug_barrier()
            active = 0
            for at in range(0, num_rights, BLOCK):
                is_there = at + lanes < num_rights
                flag = tl.load(wanted + at + lanes, mask=is_there, other=0)
                order = active + tl.cumsum(flag, axis=0) - 1
                tl.store(listed + order, at + lanes, mask=is_there & (flag != 0))
                active += tl.sum(flag, axis=0)
            tl.debug_barrier()
            # And all that may stand first in those: symbols, then letters.
            for at in range(0, corner_words, BLOCK):
                corner = at + lanes
                is_there = corner < corner_words
                union = tl.zeros((BLOCK,), dtype=tl.int32)
                for which in range(0, active):
                    some = tl.load(listed + which).to(tl.int64) * corner_words
                    union |= tl.load(corners + some + corner, mask=is_there, other=0)
                tl.store(found_row + corner, union, mask=is_there)
                to = following + new_slot * follow_words + (corner - symbol_words)
                tl.store(to, union, mask=is_there & (corner >= symbol_words))
            tl.debug_barrier()
            end = n + 1
            if TREE:
                own = first_tail + node.to(tl.int64) * num_symbols * tail
                for at in range(0, num_symbols * tail, BLOCK):
                    index = at + lanes
                    is_there = index < num_symbols * tail
                    symbol = index // tail
                    word = from_word + index % tail
                    old = tl.load(predicted + tails + index, mask=is_there, other=0)
                    flag = tl.load(found_row + (symbol >> 5), mask=is_there, other=0)
                    flag = ((flag >> (symbol & 31)) & 1) << (end & 31)
                    new = (old & ((1 << (end & 31)) - 1)) | flag
                    new = tl.where(word == (end >> 5), new, tl.where(word > (end >> 5), 0, old))
                    tl.store(predicted + own + index, new, mask=is_there)
                for at in range(0, depth, BLOCK):
                    to_node = paths + node.to(tl.int64) * depth + at + lanes
                    from_node = paths + parent.to(tl.int64) * depth + at + lanes
                    slot = tl.load(from_node, mask=at + lanes < level - 1, other=0)
                    slot = tl.where(at + lanes == level - 1, node, slot)
                    tl.store(to_node, slot, mask=at + lanes < level)
            else:
                for at in range(0, num_symbols, BLOCK):
                    symbol = at + lanes
                    is_there = symbol < num_symbols
                    place = predicted + row_words + symbol * width + (end >> 5)
                    old = tl.load(place, mask=is_there, other=0)
                    flag = tl.load(found_row + (symbol >> 5), mask=is_there, other=0)
                    flag = ((flag >> (symbol & 31)) & 1) << (end & 31)
                    # Places past the end may be left of a longer text.
                    new = (old & ((1 << (end & 31)) - 1)) | flag
                    tl.store(place, new, mask=is_there)
                tl.store(complete + new_slot, tl.load(begins + start * width) & 1)
                tl.store(lengths + row, end)
            tl.debug_barrier()
        item += tl.num_programs(0)
