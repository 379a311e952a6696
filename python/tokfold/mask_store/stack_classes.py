"""On which stacks a row of terminals can be read, as states of one minimal automaton.

Reading a terminal from a stack of which the top is known goes on without choice until a reduction
takes off more than is known; then it waits for further states of the stack. What waits is finite
for one terminal: how many states to skip, which rule to go on with, what was read last. What the
rest of the row does is one state of the minimal automaton for each state the terminal can leave on
top. So each terminal is worked out once for each distinct rest, and many rows have equal rests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tokfold.mask_store.canonical import ACCEPT, REJECT, CanonicalAutomaton, solve
from tokfold.mask_store.stack_graph import Outcome, StackGraph

__all__ = ["EMPTY", "NOTHING", "Letter", "StackClasses"]

EMPTY = 0
"""The reading of no letter at all."""

NOTHING = -1
"""In place of a terminal: the letter leaves the stack as it is."""

_REFUSED = -1
_Pending = int


@dataclass(frozen=True)
class Letter:
    """A terminal that is to be read.

    Attributes:
        terminal: its number in the :class:`StackGraph`; :data:`NOTHING` where nothing is read and
            only the top is asked for. Such a letter comes last: before another it is part of that
            one's ``states``.
        states: it can be read only with one of these states on top; ``None`` for any. So the
            contextual lexer is said: a scanner finds it only in some states of the parser.
    """

    terminal: int
    states: frozenset[int] | None = None


@dataclass
class _Machine:
    """What waits while one terminal is read; grows as stacks are asked for.

    A result is :data:`_REFUSED`, a pending computation (0 or more), or below that a leaf: the
    terminal was shifted, ``leaves[-2 - result]`` is the known part of the stack, its top first.
    """

    pending: dict[tuple[int, int, int], _Pending] = field(default_factory=dict)
    keys: list[tuple[int, int, int]] = field(default_factory=list)
    moves: list[list[tuple[int, int]] | None] = field(default_factory=list)
    leaves: list[tuple[int, ...]] = field(default_factory=list)
    leaf_numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    laid_bare: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass
class _Reading:
    """A letter and what is read after it, told by the states it has after the letter."""

    letter: Letter
    leaves: dict[int, int]
    found: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)


class StackClasses:
    """Languages of stacks for rows of letters.

    A *reading* is a row of letters, known by a number; rows that the automaton cannot tell apart
    after their first letter have the same. :meth:`state` is the state of :attr:`automaton` that
    reads what is below a given top. Equal states accept the same stacks.
    """

    def __init__(self, graph: StackGraph) -> None:
        self.graph = graph
        self.automaton = CanonicalAutomaton()
        self._machines: dict[int, _Machine] = {}
        self._readings: list[_Reading | None] = [None]
        self._numbers: dict[tuple[Letter, tuple[int, ...]], int] = {}
        self._rows: dict[tuple[Letter, ...], int] = {(): EMPTY}

    def reading(self, letters: Sequence[Letter]) -> int:
        """The number of a row of letters."""
        row = tuple(letters)
        first = 0
        while row[first:] not in self._rows:
            first += 1
        reading = self._rows[row[first:]]
        for i in range(first - 1, -1, -1):
            reading = self.prepend(row[i], reading)
            self._rows[row[i:]] = reading
        return reading

    def prepend(self, letter: Letter, rest: int) -> int:
        """The reading of a letter and then a reading."""
        tops = self.graph.after[letter.terminal] if letter.terminal != NOTHING else ()
        leaves = tuple(self.state(rest, top) for top in tops)
        number = self._numbers.get((letter, leaves))
        if number is None:
            number = self._numbers[letter, leaves] = len(self._readings)
            self._readings.append(_Reading(letter, dict(zip(tops, leaves, strict=True))))
        return number

    def state(self, reading: int, top: int) -> int:
        """What decides, below a state on top of a stack, whether a reading can be read."""
        made = self._readings[reading]
        if made is None:
            return ACCEPT
        state = made.starts.get(top)
        if state is None:
            state = made.starts[top] = self._start(made, top)
        return state

    def after(self, terminal: int, reading: int) -> tuple[int, ...]:
        """The states for all tops that can stand there after a terminal: what the predicates ask.

        All :data:`~tokfold.mask_store.canonical.ACCEPT`: always legal; all
        :data:`~tokfold.mask_store.canonical.REJECT`: never; equal tuples: jointly legal.
        """
        return tuple(self.state(reading, top) for top in self.graph.after[terminal])

    def _start(self, reading: _Reading, top: int) -> int:
        letter = reading.letter
        if letter.states is not None and top not in letter.states:
            return REJECT
        if letter.terminal == NOTHING:
            return ACCEPT
        machine = self._machines.setdefault(letter.terminal, _Machine())
        result = machine.starts.get(top)
        if result is None:
            outcome = self.graph.read((top,), letter.terminal)
            result = machine.starts[top] = self._result(machine, outcome, top)
        if result < 0:
            return self._leaf(machine, reading, result)
        if result not in reading.found:
            solve(
                self.automaton,
                result,
                lambda pending: self._moves(machine, letter.terminal, pending),
                lambda leaf: self._leaf(machine, reading, leaf),
                reading.found,
            )
        return reading.found[result]

    def _result(self, machine: _Machine, outcome: Outcome | None, last: int) -> int:
        if outcome is None:
            return _REFUSED
        if outcome.states:
            known = outcome.states[::-1]
            number = machine.leaf_numbers.setdefault(known, len(machine.leaves))
            if number == len(machine.leaves):
                machine.leaves.append(known)
            return -2 - number
        return self._pending(machine, (last, outcome.skipped, outcome.rule))

    @staticmethod
    def _pending(machine: _Machine, key: tuple[int, int, int]) -> int:
        number = machine.pending.setdefault(key, len(machine.keys))
        if number == len(machine.keys):
            machine.keys.append(key)
            machine.moves.append(None)
        return number

    def _leaf(self, machine: _Machine, reading: _Reading, result: int) -> int:
        if result == _REFUSED:
            return REJECT
        known = machine.leaves[-2 - result]
        state = reading.leaves[known[0]]
        return state if state <= ACCEPT else self.automaton.run(state, known[1:])

    def _moves(self, machine: _Machine, terminal: int, pending: int) -> list[tuple[int, int]]:
        """For each state that can be read next the result."""
        moves = machine.moves[pending]
        if moves is None:
            last, skipped, rule = machine.keys[pending]
            moves = []
            for state in self.graph.below[last]:
                if skipped:
                    result = self._pending(machine, (state, skipped - 1, rule))
                else:
                    known = machine.laid_bare.get((state, rule))
                    if known is None:
                        outcome = self.graph.go_on(state, rule, terminal)
                        known = self._result(machine, outcome, state)
                        machine.laid_bare[state, rule] = known
                    result = known
                moves.append((state, result))
            machine.moves[pending] = moves
        return moves
