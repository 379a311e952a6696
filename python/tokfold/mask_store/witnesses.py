"""Texts, as rows of terminals, that bring a table to a given stack.

A path of the automaton is spelled by symbols; each rule in it becomes a row of terminals that the
table reduces to it. For a conflict-free table the shortest such row will do. Where the table
has decided conflicts it may take another way, so each text is tried on the table, and others after
it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from tokfold.errors import LimitExceededError
from tokfold.mask_store.grammar import LarkGrammar, Production
from tokfold.mask_store.stack_classes import ACCEPT, StackClasses
from tokfold.mask_store.stack_graph import StackGraph

__all__ = ["Witnesses"]

_Row = tuple[str, ...]
_Node = tuple[int, int, int]

_MAX_ROW = 10_000
_ROWS_EACH = 12
_MAX_TRIES = 400
_MAX_STACKS = 40


class Witnesses:
    """Finds texts for stacks of a grammar's table."""

    def __init__(self, grammar: LarkGrammar, graph: StackGraph) -> None:
        self._grammar, self._graph = grammar, graph
        self._symbols: dict[tuple[int, int], str] = {}
        for state in range(graph.size):
            moves = {**grammar.table.shifts[state], **grammar.table.gotos[state]}
            for symbol, target in moves.items():
                self._symbols[state, target] = symbol
        self._rules = {p.origin for p in grammar.productions}
        self._rows = _rows(grammar.productions, self._rules)
        self._down = self._ways_down()

    def _ways_down(self) -> dict[int, int]:
        """For each state the one below it on a shortest stack."""
        graph = self._graph
        above: dict[int, list[int]] = {}
        for state, below in enumerate(graph.below):
            for other in below:
                above.setdefault(other, []).append(state)
        down: dict[int, int] = {graph.start: -1}
        waiting = deque([graph.start])
        while waiting:
            state = waiting.popleft()
            for upper in above.get(state, ()):
                if upper not in down:
                    down[upper] = state
                    waiting.append(upper)
        return down

    def text(self, stack: Sequence[int]) -> _Row | None:
        """Terminals after which the table has exactly this stack; None if none was found.

        Args:
            stack: its states, the start first; the last step must be that of a terminal, or the
                stack is the start alone.
        """
        symbols = [self._symbols[pair] for pair in pairwise(stack)]
        choices = [self._rows.get(s, [(s,)]) if s in self._rules else [(s,)] for s in symbols]
        for row in islice(_combinations(choices), _MAX_TRIES):
            if len(row) <= _MAX_ROW and self.read(row) == list(stack):
                return row
        return None

    def read(self, row: Sequence[str]) -> list[int] | None:
        """The stack after some terminals; None if the table refuses them."""
        stack = [self._graph.start]
        for name in row:
            if not self._graph.shift(stack, self._graph.terminals[name]):
                return None
        return stack

    def told_apart(
        self, automaton: StackClasses, tops: Sequence[_Node]
    ) -> Iterator[tuple[_Row, bool]]:
        """Texts on which two states of the automaton decide differently.

        Args:
            automaton: where they are.
            tops: tops of stacks, and for each the two states that read what is below.

        Yields:
            A text, and whether the first of the two accepts (the second then refuses).
        """
        for stack, first in islice(self._stacks(automaton, tops), _MAX_STACKS):
            row = self.text(stack)
            if row is not None:
                yield row, first

    def _stacks(
        self, automaton: StackClasses, tops: Sequence[_Node]
    ) -> Iterator[tuple[list[int], bool]]:
        """Stacks that two states of the automaton decide differently, shortest reading first."""
        before: dict[_Node, _Node | None] = dict.fromkeys(tops)
        waiting = deque(tops)
        while waiting:
            node = waiting.popleft()
            last, one, two = node
            if one == two:
                continue
            if one <= ACCEPT and two <= ACCEPT:
                yield self._completed(before, node), one == ACCEPT
                continue
            for read in self._graph.below[last]:
                following = (
                    read,
                    one if one <= ACCEPT else automaton.moves(one)[read],
                    two if two <= ACCEPT else automaton.moves(two)[read],
                )
                if following not in before:
                    before[following] = node
                    waiting.append(following)

    def _completed(
        self,
        before: Mapping[_Node, _Node | None],
        node: _Node,
    ) -> list[int]:
        bottom: list[int] = []
        state = self._down[node[0]]
        while state >= 0:
            bottom.append(state)
            state = self._down[state]
        stack = bottom[::-1]
        current: _Node | None = node
        while current is not None:
            stack.append(current[0])
            current = before[current]
        return stack


def _combinations(choices: Sequence[Sequence[_Row]]) -> Iterator[_Row]:
    """First choices everywhere, then one other at a time, then two."""
    first = [options[0] for options in choices]

    def joined(others: Mapping[int, _Row]) -> _Row:
        return tuple(s for i, row in enumerate(first) for s in others.get(i, row))

    yield joined({})
    single = [(i, row) for i, options in enumerate(choices) for row in options[1:]]
    for i, row in single:
        yield joined({i: row})
    for i, row in single:
        for j, other in single:
            if i < j:
                yield joined({i: row, j: other})


def _rows(productions: Sequence[Production], rules: set[str]) -> dict[str, list[_Row]]:
    """For each rule that can be completed some rows of terminals, a shortest one first."""
    best: dict[str, _Row] = {}
    has_changed = True
    while has_changed:
        has_changed = False
        for production in productions:
            if all(s in best or s not in rules for s in production.expansion):
                length = sum(len(best[s]) if s in rules else 1 for s in production.expansion)
                known = best.get(production.origin)
                if known is None or length < len(known):
                    if length > _MAX_ROW:
                        raise LimitExceededError(
                            f"the shortest text of {production.origin} has more than {_MAX_ROW} "
                            "terminals: no witnesses are made for this grammar",
                            "witness_terminals",
                            _MAX_ROW,
                        )
                    best[production.origin] = _joined(production, best)
                    has_changed = True
    rows = {rule: [row] for rule, row in best.items()}
    for _ in range(3):  # others, through chains of rules of some length
        for production in productions:
            found = rows.get(production.origin)
            if found is None or any(s in rules and s not in best for s in production.expansion):
                continue
            options = [_joined(production, best)]
            if len(production.expansion) == 1:
                options += rows.get(production.expansion[0], [])
            for row in options:
                if row not in found and len(found) < _ROWS_EACH and len(row) <= _MAX_ROW:
                    found.append(row)
    return rows


def _joined(production: Production, best: Mapping[str, _Row]) -> _Row:
    return tuple(t for s in production.expansion for t in best.get(s, (s,)))
