"""The live configurations of a matcher, as they are.

The paper's live configuration set (definition 6) is here the set of all stacks of network states
from which the text can still be completed. There may be exponentially many; the engine holds them
as a graph without cycles, and so does this module. Reading costs time linear in that graph, not in
the text: about a microsecond for each set of stacks in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokfold.matcher import Matcher

__all__ = ["BOTTOM", "Configurations", "Frame"]

BOTTOM = 0xFFFF_FFFF
"""The end of a whole stack, where a state would stand."""


class Frame(NamedTuple):
    """A top of a set of stacks."""

    state: int
    """The state of the grammar's network, or :data:`BOTTOM`: the text may end."""
    beneath: int
    """The place of the set of stacks beneath it; 0 and without meaning for :data:`BOTTOM`."""


@dataclass(frozen=True, slots=True)
class Configurations:
    """Sets of stacks, each after those beneath its tops; the last is that of the matcher.

    Stacks are closed: where a rule may be complete, the stack without it is there as well. So the
    text may end exactly where the bottom is among the tops, and each state that lies on the
    shortest stack reads at least one byte more.
    """

    sets: tuple[tuple[Frame, ...], ...]

    @classmethod
    def of(cls, matcher: Matcher) -> Configurations:
        """Read those of a matcher.

        Raises:
            MatcherStateError: another thread uses the matcher.
        """
        # A list of numbers, after whether a stop token was read: each set is how many tops it has,
        # and for each top the state and the place of the set beneath.
        numbers: list[int] = np.frombuffer(matcher._core.state(), "<u4").tolist()
        sets = []
        at = 1
        while at < len(numbers):
            end = at + 1 + 2 * numbers[at]
            pairs = zip(numbers[at + 1 : end : 2], numbers[at + 2 : end : 2], strict=True)
            sets.append(tuple(Frame(*pair) for pair in pairs))
            at = end
        return cls(tuple(sets))

    @property
    def top(self) -> tuple[Frame, ...]:
        """The tops of all live stacks, the bottom among them where the text may end."""
        return self.sets[-1]

    @property
    def accepting(self) -> bool:
        """Whether the text may end."""
        return any(frame.state == BOTTOM for frame in self.top)

    def states(self) -> set[int]:
        """The states on top of live stacks."""
        return {frame.state for frame in self.top} - {BOTTOM}

    def states_beneath(self) -> set[int]:
        """The states directly beneath those: where the innermost open rules return to."""
        places = {frame.beneath for frame in self.top if frame.state != BOTTOM}
        return {frame.state for place in places for frame in self.sets[place]} - {BOTTOM}

    def heights(self) -> tuple[int, int]:
        """States on the shortest and on the tallest live stack.

        The shortest is 0 exactly where the text may end, and at most the bytes still needed.
        """
        least: list[int] = []
        most: list[int] = []
        for frames in self.sets:
            ends = [0 for frame in frames if frame.state == BOTTOM]
            open_ = [frame.beneath for frame in frames if frame.state != BOTTOM]
            least.append(min(ends + [least[place] + 1 for place in open_]))
            most.append(max(ends + [most[place] + 1 for place in open_]))
        return least[-1], most[-1]
