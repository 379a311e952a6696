"""Live items: what a recognizer must keep to read on."""

from __future__ import annotations

from tokfold.laboratory.forest.earley import Earley

__all__ = ["live_items"]


def live_items(earley: Earley) -> int:
    """The items, of all positions so far, that can still be advanced (paper, definition 6).

    These are the unfinished items of the last Earley set, and those that wait, in this set or an
    earlier one, for a nonterminal that a live item may complete. With Leo a chain is one live item
    in place of those on it. Finished items are not live: all that follows from them is there.

    Takes time in proportion to the live items of earlier positions.
    """
    size, lhs = earley.slots.count, earley.slots.lhs
    here = earley.position
    last = earley.sets[here]
    count = sum(map(len, last.waiting.values())) + sum(map(len, last.block.waiting.values()))
    reached = {
        (item // size, lhs[item % size]) for items in last.waiting.values() for item in items
    }
    work = list(reached)
    while work:
        position, name = work.pop()
        known = earley.sets[position].onward.get(name)
        if known is None:
            known = earley.sets[position].onward[name] = _onward(earley, position, name)
        count += known[0]
        for key in known[1]:
            if key not in reached:
                reached.add(key)
                work.append(key)
    return count


def _onward(earley: Earley, position: int, name: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """How many items of a position wait for a nonterminal, and what completing those completes."""
    size, lhs = earley.slots.count, earley.slots.lhs
    source = earley.sets[position]
    if earley.leo:
        top = earley.top(position, name)
        if top is not None:
            return 1, ((top // size, lhs[top % size]),)
    kernel, block = source.waiting.get(name, ()), source.block.waiting.get(name, ())
    keys = {(item // size, lhs[item % size]) for item in kernel}
    keys.update((position, lhs[slot]) for slot in block)
    return len(kernel) + len(block), tuple(keys)
