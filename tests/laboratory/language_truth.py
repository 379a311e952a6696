"""Two languages compared by trying every text, shortest first: the slow obvious truth."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from laboratory.mutants.judge import as_model
from oracles.earley import Oracle, State
from oracles.model import Cfg
from tokfold.laboratory.form import Form


@dataclass(frozen=True)
class Truth:
    """What trying showed.

    Attributes:
        shortest: the least length of a text of one language only; ``None``: none was found.
        tried_to: every text of no more bytes than this was tried; ``None``: every text there is.
    """

    shortest: int | None
    tried_to: int | None


def representatives(*grammars: Cfg) -> list[int]:
    """One byte for each set of bytes that no terminal tells apart."""
    terminals = {
        symbol
        for cfg in grammars
        for production in cfg.productions
        for symbol in production.rhs
        if isinstance(symbol, frozenset)
    }
    members: defaultdict[frozenset[frozenset[int]], list[int]] = defaultdict(list)
    for byte in range(256):
        inside = frozenset(terminal for terminal in terminals if byte in terminal)
        if inside:
            members[inside].append(byte)
    return [min(bytes_) for bytes_ in members.values()]


def truth(left: Form, right: Form, max_texts: int = 250, max_length: int = 9) -> Truth:
    """Tries texts by their length while they are short and few."""
    oracles = [Oracle(as_model(form)) for form in (left, right)]
    letters = representatives(*(oracle.cfg for oracle in oracles))
    start = tuple(oracle.initial(prune=True) if oracle.productive else None for oracle in oracles)
    level: list[tuple[State | None, ...]] = [start]
    length, tried = 0, 1
    while level:
        if any(_accepts(pair[0]) != _accepts(pair[1]) for pair in level):
            return Truth(length, length)
        if length == max_length or (length > 1 and tried + len(level) * 2 > max_texts):
            return Truth(None, length)
        after = []
        for pair in level:
            for letter in letters:
                states = tuple(_step(state, letter) for state in pair)
                if any(states):
                    after.append(states)
        level, length, tried = after, length + 1, tried + len(after)
    return Truth(None, None)


def _step(state: State | None, letter: int) -> State | None:
    after = None if state is None else state.step(letter)
    return after if after is not None and after.viable else None


def _accepts(state: State | None) -> bool:
    return state is not None and state.accepting
