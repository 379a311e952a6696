"""From automata over characters to minimal automata over the bytes of UTF-8."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokfold._quoting import quoted
from tokfold._utf8 import utf8_sequences
from tokfold.mask_store.charsets import Intervals
from tokfold.mask_store.errors import LarkGrammarError
from tokfold.mask_store.grammar import Terminal
from tokfold.mask_store.ordered import CharAutomaton, Condition, ordered_automaton
from tokfold.mask_store.patterns import compile_pattern

__all__ = ["ByteAutomaton", "terminal_automaton"]

_Table = npt.NDArray[np.int32]

DEAD = -1

_Steps = list[tuple[int, int]]
"""Ranges of bytes, one after the other."""


@dataclass(frozen=True)
class ByteAutomaton:
    """The automaton of a terminal over bytes; deterministic and minimal, state 0 is the start.

    Attributes:
        moves: shape ``(states, 256)``, int32: the next state; -1 where no match lies ahead. A
            state without an end and without moves does not occur.
        ends: for each state 0: no match ends here; 1: one does; ``2 + i``: one does under
            ``conditions[i]``. Of a text the terminal matches what stands before the last end.
        conditions: whether negated, and the state of the look automaton.
        look_moves: the look automaton, as ``moves``; a match is ahead once ``look_found``.
        look_found: for each state of the look automaton whether the match has been found.
    """

    moves: _Table
    ends: tuple[int, ...]
    conditions: tuple[Condition, ...]
    look_moves: _Table
    look_found: tuple[bool, ...]


def terminal_automaton(
    terminal: Terminal, flags: int = 0, *, max_states: int = 20_000
) -> ByteAutomaton:
    """The automaton of a terminal with a pattern.

    ``flags`` are those of :mod:`re` for all terminals of the grammar; ``max_states`` bounds the
    automaton over characters.
    """
    if terminal.text is not None and not terminal.flags and not flags:
        return _literal(terminal)
    program = compile_pattern(terminal.pattern, terminal.name, flags)
    chars = ordered_automaton(program, terminal.name, terminal.pattern, max_states=max_states)
    return _in_bytes(chars, terminal)


def _literal(terminal: Terminal) -> ByteAutomaton:
    try:
        data = (terminal.text or "").encode()
    except UnicodeEncodeError:
        raise _nothing(terminal) from None
    if not data:
        raise LarkGrammarError(f"terminal {terminal.name} matches the empty string")
    moves = np.full((len(data) + 1, 256), DEAD, np.int32)
    moves[np.arange(len(data)), list(data)] = np.arange(1, len(data) + 1)
    ends = (*(0,) * len(data), 1)
    return ByteAutomaton(moves, ends, (), np.empty((0, 256), np.int32), ())


def _nothing(terminal: Terminal) -> LarkGrammarError:
    return LarkGrammarError(
        f"terminal {terminal.name} matches no text: its pattern is {quoted(terminal.pattern)}"
    )


def _in_bytes(chars: CharAutomaton, terminal: Terminal) -> ByteAutomaton:
    splitter = _Splitter(chars.classes)
    conditions = sorted(
        {end for end in chars.ends if isinstance(end, Condition)},
        key=lambda c: (c.look_state, c.negated),
    )
    index = {condition: 2 + i for i, condition in enumerate(conditions)}
    ends = [index[e] if isinstance(e, Condition) else int(e) for e in chars.ends]
    moves, tags = splitter.automaton(chars.moves, ends)
    moves, tags, _ = _minimal(*_trimmed(moves, tags), keep=1)
    if not any(tags):
        raise _nothing(terminal)
    looked, found = splitter.automaton(chars.look.moves, [int(f) for f in chars.look.accepting])
    number = len(chars.look.accepting)
    looked, found, renamed = _minimal(looked, found, keep=number)
    renewed = tuple(Condition(c.negated, int(renamed[c.look_state])) for c in conditions)
    return ByteAutomaton(moves, tuple(tags), renewed, looked, tuple(bool(f) for f in found))


class _Splitter:
    """Reads a character byte by byte: a tree whose leaves are classes of characters."""

    def __init__(self, classes: list[Intervals]) -> None:
        self.count = len(classes)
        self.nodes: list[list[int]] = []
        """256 entries each: -1, ``~class`` less 1 for a leaf, or a node."""
        self.known: dict[tuple[int, ...], int] = {}
        self.root = self._node(
            [
                (steps, cls)
                for cls, parts in enumerate(classes)
                for low, high in parts
                for steps in utf8_sequences(low, high)
            ]
        )

    def _node(self, strings: list[tuple[_Steps, int]]) -> int:
        """The node for sequences of ranges of bytes, each with the class that it leads to.

        Ranges at one place are equal, or have no byte in common.
        """
        entries = [DEAD] * 256
        below: dict[tuple[int, int], list[tuple[_Steps, int]]] = {}
        for (first, *rest), cls in strings:
            below.setdefault(first, []).append((rest, cls))
        for (low, high), inner in below.items():
            rest, cls = inner[0]
            entries[low : high + 1] = [self._node(inner) if rest else -2 - cls] * (high + 1 - low)
        key = tuple(entries)
        if key not in self.known:
            self.known[key] = len(self.nodes)
            self.nodes.append(entries)
        return self.known[key]

    def automaton(self, moves: list[list[int]], tags: list[int]) -> tuple[_Table, list[int]]:
        """The automaton over bytes; its first states are those over characters."""
        rows: list[list[int]] = [[] for _ in moves]
        made_tags = list(tags)
        inner: dict[tuple[int, tuple[int, ...]], int] = {}
        work: list[tuple[int, int, tuple[int, ...]]] = [
            (state, self.root, tuple(row)) for state, row in enumerate(moves)
        ]
        used = self._used()
        while work:
            state, node, row = work.pop()
            entries = []
            for entry in self.nodes[node]:
                if entry >= 0:
                    # Only what is below matters: nodes that say the same are one state.
                    seen = tuple(row[c] if c in used[entry] else DEAD for c in range(self.count))
                    if all(to == DEAD for to in seen):
                        entries.append(DEAD)
                        continue
                    key = (entry, seen)
                    if key not in inner:
                        inner[key] = len(rows)
                        rows.append([])
                        made_tags.append(0)
                        work.append((inner[key], entry, seen))
                    entries.append(inner[key])
                else:
                    entries.append(DEAD if entry == DEAD else row[-2 - entry])
            rows[state] = entries
        return np.array(rows, np.int32).reshape(len(rows), 256), made_tags

    def _used(self) -> list[frozenset[int]]:
        used: list[frozenset[int]] = []
        for entries in self.nodes:  # Children stand before their parents.
            below: set[int] = set()
            for entry in set(entries):
                if entry >= 0:
                    below |= used[entry]
                elif entry != DEAD:
                    below.add(-2 - entry)
            used.append(frozenset(below))
        return used


def _trimmed(moves: _Table, tags: list[int]) -> tuple[_Table, list[int]]:
    """Moves into states from which no end can be reached lead nowhere."""
    alive = np.array(tags, np.int32) > 0
    while True:
        reaches = alive | np.where(moves >= 0, alive[moves], False).any(axis=1)
        if (reaches == alive).all():
            break
        alive = reaches
    kept = np.where((moves >= 0) & alive[moves], moves, DEAD).astype(np.int32)
    return kept, tags


def _minimal(
    moves: _Table, tags: list[int], *, keep: int
) -> tuple[_Table, list[int], npt.NDArray[np.int64]]:
    """Joins equal states, and drops those not reached from the first ``keep``.

    Returns the automaton, its tags, and the new number of each old state (-1: dropped). State 0
    stays state 0.
    """
    count = len(tags)
    if count == 0:
        return moves, tags, np.empty(0, np.int64)
    reached = np.zeros(count, bool)
    front = np.arange(min(keep, count))
    while len(front):
        reached[front] = True
        after = np.unique(moves[front])
        front = after[(after >= 0) & ~reached[after]]
    columns = np.unique(moves[reached], axis=1)  # Bytes that no state tells apart count once.
    group = np.unique(np.array(tags), return_inverse=True)[1].reshape(count)
    total = -1
    while group[reached].max() + 1 != total:
        total = int(group[reached].max()) + 1
        # A state that is not reached must not keep a group of its own.
        signature = np.full((count, columns.shape[1] + 1), DEAD, np.int64)
        signature[reached, 0] = group[reached]
        signature[reached, 1:] = np.where(columns >= 0, group[columns], DEAD)
        fresh = np.full(count, -1, np.int64)
        fresh[reached] = np.unique(signature[reached], axis=0, return_inverse=True)[1].reshape(-1)
        group = fresh
    # Numbers in the order of first appearance, so that the start is state 0.
    firsts = np.full(total, count)
    members = np.flatnonzero(reached)
    np.minimum.at(firsts, group[members], members)
    rank = np.empty(total, np.int64)
    rank[np.argsort(firsts, kind="stable")] = np.arange(total)
    renamed = np.where(group >= 0, rank[group], -1)
    chosen = np.sort(firsts)
    rows = moves[chosen]
    made = np.where(rows >= 0, renamed[rows], DEAD).astype(np.int32)
    return made, [tags[i] for i in chosen], renamed
