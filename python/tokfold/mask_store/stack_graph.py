"""Which stacks a table can have, and what a terminal does to a stack of which the top is known.

A stack is a row of states of the table, the start at its bottom. Stacks that stand after a terminal
are the paths of the automaton that end in a shift of it; for a conflict-free table of a grammar
whose rules can all be completed, each of these paths stands after some text. Where the table has
decided conflicts, paths that it never takes are left out as far as one terminal ahead tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tokfold.mask_store.errors import LarkGrammarError
from tokfold.mask_store.grammar import END, LarkGrammar, ParseTable

__all__ = ["REJECTED", "Outcome", "StackGraph", "TableLoopError"]

REJECTED = -1
"""The outcome of a terminal that the table refuses."""

_MAX_STEPS = 100_000


class TableLoopError(LarkGrammarError):
    """The table reduces for ever without reading: a rule can stand for itself."""


@dataclass(frozen=True)
class Outcome:
    """What became of reading a terminal, as far as the known part of the stack tells.

    Attributes:
        states: the terminal was shifted: the known part of the stack, its top last. Empty if
            more of the stack has to be read first.
        skipped: then how many further states a reduction takes off before the one it goes on from,
        rule: and the rule that it goes on with there.
    """

    states: tuple[int, ...] = ()
    skipped: int = 0
    rule: int = -1


@dataclass
class StackGraph:
    """The stacks of a table, for one start symbol.

    States are those of Lark's table. Terminals and rules are numbered: see ``terminals``.

    Attributes:
        terminals: the number of each terminal's name; END is one of them.
        size: states of the table.
        start: the state at the bottom of each stack.
        below: for each state those that can stand below it, ascending.
        after: for each terminal the states that can be on top once it was shifted, ascending. For
            END the state in which the text is complete.
        is_reduced: whether paths were left out because the table never takes them.
    """

    terminals: dict[str, int]
    size: int
    start: int
    below: list[tuple[int, ...]]
    after: list[tuple[int, ...]]
    is_reduced: bool
    _shifts: list[dict[int, int]] = field(repr=False)
    _reductions: list[dict[int, int]] = field(repr=False)
    _gotos: list[dict[int, int]] = field(repr=False)
    _lengths: list[int] = field(repr=False)
    _origins: list[int] = field(repr=False)
    _end_state: int = field(repr=False)
    # For each state and terminal: -1 and the state to shift to, or the length of a production
    # to reduce and its rule.
    _actions: list[dict[int, tuple[int, int]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._actions = [
            {
                **{t: (self._lengths[p], self._origins[p]) for t, p in reductions.items()},
                **{t: (-1, q) for t, q in shifts.items()},
            }
            for shifts, reductions in zip(self._shifts, self._reductions, strict=True)
        ]

    @classmethod
    def of(cls, grammar: LarkGrammar) -> StackGraph:
        """The stacks of a grammar's table from its start symbol.

        Raises:
            TableLoopError: see there.
        """
        table = grammar.table
        names = [t.name for t in grammar.terminals]
        names += sorted({n for row in table.shifts for n in row} - set(names))
        terminals = {name: i for i, name in enumerate([*names, END])}
        rules: dict[str, int] = {}
        for production in grammar.productions:
            rules.setdefault(production.origin, len(rules))
        start = table.start_states[grammar.start]
        graph = cls(
            terminals=terminals,
            size=len(table.shifts),
            start=start,
            below=[],
            after=[],
            is_reduced=False,
            _shifts=[{terminals[n]: q for n, q in row.items()} for row in table.shifts],
            _reductions=[{terminals[n]: p for n, p in row.items()} for row in table.reductions],
            _gotos=[{rules[n]: q for n, q in row.items()} for row in table.gotos],
            _lengths=[len(p.expansion) for p in grammar.productions],
            _origins=[rules[p.origin] for p in grammar.productions],
            _end_state=table.end_states[grammar.start],
        )
        _Paths(graph, grammar, terminals, rules).fill()
        return graph

    def read(self, states: Sequence[int], terminal: int) -> Outcome | None:
        """Read a terminal with some states on top of a stack, the last one on top.

        Returns:
            None where the table refuses it.

        Raises:
            TableLoopError: see there.
        """
        known = list(states)
        actions, gotos = self._actions, self._gotos
        for _ in range(_MAX_STEPS):
            action = actions[known[-1]].get(terminal)
            if action is None:
                return None
            length, rule = action
            if length < 0:
                known.append(rule)
                return Outcome(states=tuple(known))
            if length >= len(known):
                return Outcome(skipped=length - len(known), rule=rule)
            if length:
                del known[-length:]
            known.append(gotos[known[-1]][rule])
            if known[-1] == self._end_state and self._is_end(terminal):
                return Outcome(states=tuple(known))
        raise TableLoopError(
            f"the table reduces more than {_MAX_STEPS} times before one terminal: look for a rule "
            "that can stand for itself alone, and take it out"
        )

    def go_on(self, state: int, rule: int, terminal: int) -> Outcome | None:
        """As :meth:`read`, where a reduction to ``rule`` has just laid bare ``state``."""
        target = self._gotos[state][rule]
        if target == self._end_state and self._is_end(terminal):
            return Outcome(states=(state, target))
        return self.read((state, target), terminal)

    def _is_end(self, terminal: int) -> bool:
        return terminal == len(self.terminals) - 1

    def shift(self, stack: list[int], terminal: int) -> bool:
        """Read a terminal on a whole stack, in place; False, and nothing changed, if refused.

        The end of the text leaves the stack as it is.
        """
        depth, known = len(stack) - 1, [stack[-1]]
        outcome = self.read(known, terminal)
        while outcome is not None and not outcome.states:
            depth -= outcome.skipped + 1
            outcome = self.go_on(stack[depth], outcome.rule, terminal)
        if outcome is None:
            return False
        if not self._is_end(terminal):
            stack[depth:] = outcome.states
        return True

    def is_complete(self, stack: Sequence[int]) -> bool:
        """Whether the text may end on a stack."""
        return self.shift(list(stack), len(self.terminals) - 1)


class _Paths:
    """The pairs of states that stand upon each other in a stack.

    They are the least solution of these rules:

    - a terminal is shifted where it may come next: anything after a shift, after a reduction what
      lay ahead of it;
    - a production is reduced before a terminal where its symbols were passed in this way.

    Sets of terminals are the bits of an int.
    """

    def __init__(
        self,
        graph: StackGraph,
        grammar: LarkGrammar,
        terminals: dict[str, int],
        rules: dict[str, int],
    ) -> None:
        self._graph = graph
        table: ParseTable = grammar.table
        everything = (1 << len(terminals)) - 1
        reduced = [_bits(row) for row in graph._reductions]
        # For each pair (state, rule): what may come next after it.
        self._ahead: dict[tuple[int, int], int] = {}
        # What may come next on a state.
        nexts = [0] * graph.size
        nexts[graph.start] = everything
        for target in {q for row in table.shifts for q in row.values()}:
            nexts[target] = everything
        self._nexts, self._reached = nexts, {graph.start}
        expansions = [
            tuple((rules[s], True) if s in rules else (terminals[s], False) for s in p.expansion)
            for p in grammar.productions
        ]
        by_rule: list[list[int]] = [[] for _ in rules]
        for i, production in enumerate(grammar.productions):
            by_rule[rules[production.origin]].append(i)
        work = []
        for state, row in enumerate(graph._gotos):
            for rule in row:
                for p in by_rule[rule]:
                    end = self._walk(state, expansions[p])
                    if end is not None and p in reduced[end]:
                        work.append((state, rule, expansions[p], reduced[end][p]))
        self._work = work
        self._terminal_count = len(terminals)

    def _walk(self, state: int, expansion: tuple[tuple[int, bool], ...]) -> int | None:
        graph = self._graph
        for symbol, is_rule in expansion:
            step = (graph._gotos if is_rule else graph._shifts)[state].get(symbol)
            if step is None:
                return None
            state = step
        return state

    def fill(self) -> None:
        """Solve, and write what stands below each state and after each terminal."""
        graph, ahead, nexts = self._graph, self._ahead, self._nexts
        has_changed = True
        while has_changed:
            has_changed = False
            for state, rule, expansion, terminals in self._work:
                before = ahead.get((state, rule), 0)
                if terminals & ~before == 0:
                    continue
                found = terminals & self._passed(state, expansion)
                if found & ~before:
                    ahead[state, rule] = before | found
                    nexts[graph._gotos[state][rule]] |= found
                    has_changed = True
        self._write()

    def _passed(self, state: int, expansion: tuple[tuple[int, bool], ...]) -> int:
        """What may come next behind a production begun on a state; 0 if it cannot be passed."""
        graph = self._graph
        next_ = self._nexts[state]
        for symbol, is_rule in expansion:
            if is_rule:
                next_ = self._ahead.get((state, symbol), 0)
                state = graph._gotos[state][symbol]
            else:
                if not next_ >> symbol & 1:
                    return 0
                next_ = (1 << self._terminal_count) - 1
                state = graph._shifts[state][symbol]
            if not next_:
                return 0
        return next_

    def _write(self) -> None:
        """Keep the pairs that can be reached from the start."""
        graph = self._graph
        end = len(graph.terminals) - 1
        below: list[set[int]] = [set() for _ in range(graph.size)]
        after: list[set[int]] = [set() for _ in graph.terminals]
        seen, waiting, left_out = {graph.start}, [graph.start], False
        while waiting:
            state = waiting.pop()
            targets = []
            for terminal, target in graph._shifts[state].items():
                if self._nexts[state] >> terminal & 1:
                    after[terminal].add(target)
                    targets.append(target)
                else:
                    left_out = True
            for rule, target in graph._gotos[state].items():
                if self._ahead.get((state, rule)):
                    targets.append(target)
                else:
                    left_out = True
            for target in targets:
                below[target].add(state)
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        after[end].add(graph._end_state)
        graph.below = [tuple(sorted(states)) for states in below]
        graph.after = [tuple(sorted(states)) for states in after]
        graph.is_reduced = left_out


def _bits(row: dict[int, int]) -> dict[int, int]:
    """For each production of a row of reductions its terminals as bits."""
    found: dict[int, int] = {}
    for terminal, production in row.items():
        found[production] = found.get(production, 0) | 1 << terminal
    return found
