"""Which stacks a table can have, and what a terminal does to one.

A stack is a row of states of the table, the start at its bottom. Stacks that stand after a terminal
are the paths of the automaton that end in a shift of it; for a conflict-free table of a grammar
whose rules can all be completed, each of these paths stands after some text. Where the table has
decided conflicts, paths that it never takes are left out as far as one terminal ahead tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokfold import _core
from tokfold.mask_store.grammar import END, LarkGrammar

__all__ = ["MAX_STACK_STATES", "StackGraph"]

MAX_STACK_STATES = 2_000_000
"""The bound on states of the minimal automaton over stacks, for one grammar."""


class StackGraph:
    """The stacks of a table, for one start symbol.

    States are those of Lark's table. Terminals are numbered: see :attr:`terminals`.

    Attributes:
        terminals: the number of each terminal's name; END is the last one.
        size: states of the table.
        start: the state at the bottom of each stack.
        below: for each state those that can stand below it, ascending.
        after: for each terminal the states that can be on top once it was shifted, ascending. For
            END the state in which the text is complete.
    """

    def __init__(self, grammar: LarkGrammar, *, max_states: int = MAX_STACK_STATES) -> None:
        """The stacks of a grammar's table from its start symbol.

        ``max_states`` bounds the minimal automaton over these stacks.
        """
        table = grammar.table
        names = [t.name for t in grammar.terminals]
        names += sorted({n for row in table.shifts for n in row} - set(names))
        self.terminals: dict[str, int] = {name: i for i, name in enumerate([*names, END])}
        rules: dict[str, int] = {}
        for production in grammar.productions:
            rules.setdefault(production.origin, len(rules))
        self.size = len(table.shifts)
        self.start = table.start_states[grammar.start]
        self._core = _core.StackParser(
            _numbered(table.shifts, self.terminals),
            _numbered(table.reductions, self.terminals),
            _numbered(table.gotos, rules),
            [
                (
                    rules[p.origin],
                    [
                        (s in rules, rules[s] if s in rules else self.terminals[s])
                        for s in p.expansion
                    ],
                )
                for p in grammar.productions
            ],
            len(self.terminals),
            len(rules),
            self.start,
            table.end_states[grammar.start],
            _opens(grammar),
            max_states,
        )
        self.below: list[list[int]] = self._core.below()
        self.after: list[list[int]] = self._core.after()

    @property
    def end(self) -> int:
        """The number of END."""
        return len(self.terminals) - 1

    def shift(self, stack: list[int], terminal: int) -> bool:
        """Read a terminal on a whole stack, in place; False, and nothing changed, if refused.

        The end of the text leaves the stack as it is.
        """
        after = self._core.shift(stack, terminal)
        if after is None:
            return False
        if terminal != self.end:
            stack[:] = after
        return True


def _numbered(
    rows: Sequence[Mapping[str, int]], numbers: Mapping[str, int]
) -> list[list[tuple[int, int]]]:
    return [[(numbers[name], value) for name, value in row.items()] for row in rows]


def _opens(grammar: LarkGrammar) -> list[int]:
    """For each state of the table how many parentheses the terminal that led to it opens."""
    opens = [0] * len(grammar.table.shifts)
    rules = grammar.indentation
    if rules is not None:
        for row in grammar.table.shifts:
            for name, target in row.items():
                opens[target] = (name in rules.open_parens) - (name in rules.close_parens)
    return opens
