"""On which stacks a row of terminals can be read, as states of one minimal automaton.

The automaton reads a stack downwards, one state of the parser after the other, until it is decided.
It grows as rows are asked for and has never two states that accept the same stacks. How it is made
stands in the core, ``mask_store::parser``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tokfold.mask_store.stack_graph import StackGraph

__all__ = ["ACCEPT", "EMPTY", "NOTHING", "REJECT", "Letter", "StackClasses"]

REJECT = 0
"""The state that accepts no stack."""

ACCEPT = 1
"""The state that accepts every stack."""

EMPTY = 0
"""The reading of no letter at all."""

NOTHING = -1
"""In place of a terminal: the letter leaves the stack as it is."""


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


class StackClasses:
    """Languages of stacks for rows of letters.

    A *reading* is a row of letters, known by a number; rows that the automaton cannot tell apart
    after their first letter have the same. :meth:`state` is the state of the automaton that reads
    what is below a given top. Equal states accept the same stacks: :data:`ACCEPT` all,
    :data:`REJECT` none.
    """

    def __init__(self, graph: StackGraph) -> None:
        self.graph = graph
        self._core = graph._core

    def __len__(self) -> int:
        """How many states the automaton has so far, the two that are decided included."""
        return self._core.size()

    def moves(self, state: int) -> Mapping[int, int]:
        """The next state for each state of the parser that can be read."""
        return dict(self._core.moves(state))

    def run(self, state: int, stack: Sequence[int]) -> int:
        """The state after reading a part of a stack, its upper end first."""
        for read in stack:
            if state <= ACCEPT:
                break
            state = self.moves(state)[read]
        return state

    def reading(self, letters: Sequence[Letter]) -> int:
        """The number of a row of letters.

        Raises:
            TableLoopError: the table reduces for ever.
            LimitExceededError: ``stack_states``.
        """
        return self._core.reading(
            [(x.terminal, None if x.states is None else sorted(x.states)) for x in letters]
        )

    def state(self, reading: int, top: int) -> int:
        """What decides, below a state on top of a stack, whether a reading can be read."""
        return self._core.states(reading, [top])[0]

    def states(self, reading: int, tops: Sequence[int]) -> tuple[int, ...]:
        """As :meth:`state` for several tops."""
        return tuple(self._core.states(reading, list(tops)))

    def after(self, terminal: int, reading: int) -> tuple[int, ...]:
        """The states for all tops that can stand there after a terminal: what the predicates ask.

        All :data:`ACCEPT`: always legal; all :data:`REJECT`: never; equal tuples: jointly legal.
        """
        return self.states(reading, self.graph.after[terminal])

    def chosen(self, regions: Sequence[tuple[int, int]], tops: Sequence[int]) -> tuple[int, ...]:
        """As :meth:`states` between several readings, by the parentheses that are open.

        Args:
            regions: numbers of open parentheses, ascending, with the reading that holds from there
                on; the number of the first does not count.
            tops: tops of stacks.
        """
        return tuple(self._core.chosen(list(regions), list(tops)))

    def choose(self, inside: int, outside: int, top: int, needed: int) -> int:
        """A state that accepts as ``inside`` if enough parentheses are open, else as ``outside``.

        Where each production closes what it opens, the parentheses that are open in a text are
        those on its stack: so whether a post-lexer drops a newline is a question to the stack.

        Args:
            inside: state of the automaton, for what is below the top.
            outside: the same.
            top: the top of the stack; counts itself.
            needed: how many parentheses must be open, 1 or more.
        """
        return self._core.choose(inside, outside, top, needed)
