"""Slow truths about lexers: `re` itself, and Lark's own lexer."""

from __future__ import annotations

from tokfold.mask_store.byte_automata import ByteAutomaton


def holds(automaton: ByteAutomaton, end: int, rest: bytes) -> bool:
    """Whether a match ends here, with this text behind it."""
    if end < 2:
        return end == 1
    condition = automaton.conditions[end - 2]
    state, found = condition.look_state, False
    for byte in rest:
        if automaton.look_found[state]:
            found = True
            break
        state = int(automaton.look_moves[state][byte])
        if state < 0:
            break
    else:
        found = automaton.look_found[state]
    return found != condition.negated


def match_length(automaton: ByteAutomaton, data: bytes) -> int | None:
    """The bytes that a terminal matches at the beginning of a text; ``None`` for no match."""
    state, last = 0, None
    for place in range(len(data) + 1):
        if holds(automaton, automaton.ends[state], data[place:]):
            last = place
        if place == len(data):
            break
        state = int(automaton.moves[state][data[place]])
        if state < 0:
            break
    return last
