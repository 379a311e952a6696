"""On which stacks a row of terminals can be read, as states of one minimal automaton.

The automaton reads a stack downwards, one state of the parser after the other, until it is decided.
It grows as rows are asked for and has never two states that accept the same stacks. How it is made
stands in the core, ``mask_store::parser``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokfold.mask_store.stack_graph import StackGraph

__all__ = ["ACCEPT", "REJECT", "StackClasses"]

REJECT = 0
"""The state that accepts no stack."""

ACCEPT = 1
"""The state that accepts every stack."""


class StackClasses:
    """Languages of stacks for rows of terminals.

    A *reading* is a row of terminals, known by a number; rows that the automaton cannot tell apart
    after their first one have the same. :meth:`states` are those of the automaton that read what
    is below given tops. Equal states accept the same stacks: :data:`ACCEPT` all,
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

    def reading(self, row: Sequence[int]) -> int:
        """The number of a row of terminals, by their numbers in the :class:`StackGraph`."""
        return self._core.reading([(terminal, None) for terminal in row])

    def states(self, reading: int, tops: Sequence[int]) -> tuple[int, ...]:
        """What decides, below each of some tops, whether a reading can be read."""
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
