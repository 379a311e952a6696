"""The three questions about terminals: never legal, always legal, jointly legal.

They are put as in *mask store streamlining* (Tran-Thien 2025): P is a row of terminals, X a
terminal, S, S1, S2 rows of terminals; "legal" means that the table reads it. For the table they are
decided, not approximated: see :mod:`tokfold.mask_store.stack_classes`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from tokfold._quoting import quoted
from tokfold.mask_store.errors import LarkGrammarError
from tokfold.mask_store.grammar import LarkGrammar, Production
from tokfold.mask_store.lalr import Conflict, find_conflicts
from tokfold.mask_store.stack_classes import ACCEPT, REJECT, StackClasses
from tokfold.mask_store.stack_graph import StackGraph
from tokfold.mask_store.witnesses import Witnesses

__all__ = [
    "Apart",
    "Legality",
    "Predicates",
    "interchangeable_in_table",
    "interchangeable_terminals",
]

Legality = Literal["never", "always", "depends"]


@dataclass(frozen=True)
class Apart:
    """A text after which two rows of terminals are not both legal.

    Attributes:
        text: terminals, the one in question last.
        legal: the row that is legal after it.
        illegal: the row that is not.
    """

    text: tuple[str, ...]
    legal: tuple[str, ...]
    illegal: tuple[str, ...]


class Predicates:
    """Which rows of terminals are legal after a terminal, whatever stood before it.

    Terminals are given by name. ``$END`` at the end of a row asks whether the text may end there.
    """

    def __init__(self, grammar: LarkGrammar) -> None:
        """Work out the stacks of a grammar's table.

        Raises:
            TableMismatchError: the table is not that of the grammar's rules.
        """
        self.grammar = grammar
        self.conflicts: tuple[Conflict, ...] = find_conflicts(grammar)
        self.graph = StackGraph(grammar)
        self.classes = StackClasses(self.graph)
        self._witnesses: Witnesses | None = None

    @property
    def witnesses(self) -> Witnesses:
        """What finds texts for stacks; made when first asked for."""
        if self._witnesses is None:
            self._witnesses = Witnesses(self.grammar, self.graph)
        return self._witnesses

    def number(self, terminal: str) -> int:
        """The number of a terminal.

        Raises:
            LarkGrammarError: there is none of this name.
        """
        number = self.graph.terminals.get(terminal)
        if number is None:
            raise LarkGrammarError(
                f"{self.grammar.source} has no terminal {quoted(terminal)}: those with a name are "
                "written in capitals, others are named by Lark (`tokfold store GRAMMAR "
                "--terminals`)"
            )
        return number

    def states(self, before: str, row: Sequence[str]) -> tuple[int, ...]:
        """States of the minimal automaton for X and S; equal for what is jointly legal."""
        reading = self.classes.reading([self.number(name) for name in row])
        return self.classes.after(self.number(before), reading)

    def legality(self, before: str, row: Sequence[str]) -> Legality:
        """Whether S is legal after X: for all P, for no P, or for some.

        Args:
            before: X. A terminal that no text has is followed by nothing: "never".
            row: S.
        """
        states = set(self.states(before, row))
        if states <= {REJECT}:
            return "never"
        return "always" if states == {ACCEPT} else "depends"

    def are_jointly_legal(self, before: str, one: Sequence[str], two: Sequence[str]) -> bool:
        """Whether S1 is legal after PX exactly when S2 is, for all P."""
        return self.states(before, one) == self.states(before, two)

    def witness(self, before: str, row: Sequence[str], *, legal: bool) -> tuple[str, ...] | None:
        """A text PX after which S is legal, or not.

        Returns:
            None if there is none: S is never (always) legal after X. Where the table has decided
            conflicts, None may also mean that none was found.
        """
        apart = self._apart(before, row, (), first=None if legal else False, against_all=legal)
        return None if apart is None else apart.text

    def apart(self, before: str, one: Sequence[str], two: Sequence[str]) -> Apart | None:
        """A text PX after which one of two rows is legal and the other is not.

        Returns:
            None as :meth:`witness`.
        """
        return self._apart(before, one, two, first=None, against_all=False)

    def _apart(
        self,
        before: str,
        one: Sequence[str],
        two: Sequence[str],
        *,
        first: bool | None,
        against_all: bool,
    ) -> Apart | None:
        tops = self.graph.after[self.number(before)]
        ones = self.states(before, one)
        twos = [REJECT] * len(tops) if against_all else self.states(before, two)
        found = self.witnesses.told_apart(self.classes, list(zip(tops, ones, twos, strict=True)))
        for text, is_first in found:
            if first is None or is_first == first:
                rows = (tuple(one), tuple(two))
                return Apart(text, *(rows if is_first else rows[::-1]))
        return None


def interchangeable_terminals(
    productions: Sequence[Production], terminals: Collection[str]
) -> list[tuple[str, ...]]:
    """Sets of terminals each of which may stand for each other in all productions.

    As the paper has them: wherever a production has one of them, there is a production that is the
    same but for another of them in this place. Such terminals are jointly legal everywhere.

    Returns:
        The sets of two terminals or more, each in order of names; the largest first.
    """
    known = set(terminals)
    places: dict[str, set[tuple[str, tuple[str, ...], tuple[str, ...]]]] = defaultdict(set)
    for production in productions:
        expansion = production.expansion
        for i, symbol in enumerate(expansion):
            if symbol in known:
                places[symbol].add((production.origin, expansion[:i], expansion[i + 1 :]))
    groups: dict[frozenset[object], list[str]] = defaultdict(list)
    for terminal, found in places.items():
        groups[frozenset(found)].append(terminal)
    sets = [tuple(sorted(group)) for group in groups.values() if len(group) > 1]
    return sorted(sets, key=lambda group: (-len(group), group))


def interchangeable_in_table(grammar: LarkGrammar) -> list[tuple[str, ...]]:
    """Sets of terminals each of which may stand for each other in all texts, as the table shows.

    States of the table that do the same on all symbols, up to such states, are one (Moore's
    minimization); terminals that each state treats alike, up to them, are interchangeable. Goes
    further than :func:`interchangeable_terminals` where a table brings together what the rules
    keep apart, and less far where a decided conflict keeps apart what they bring together.

    Returns:
        As :func:`interchangeable_terminals`.
    """
    table, productions = grammar.table, grammar.productions
    sizes = [(p.origin, len(p.expansion)) for p in productions]
    rows = [tuple(sorted((name, *sizes[p]) for name, p in row.items())) for row in table.reductions]
    names: dict[object, int] = {}
    blocks = [names.setdefault(row, len(names)) for row in rows]
    while True:
        count, names = len(names), {}
        blocks = [
            names.setdefault(
                (
                    blocks[state],
                    tuple(sorted((s, blocks[q]) for s, q in table.shifts[state].items())),
                    tuple(sorted((s, blocks[q]) for s, q in table.gotos[state].items())),
                ),
                len(names),
            )
            for state in range(len(rows))
        ]
        if len(names) == count:
            break
    found: dict[str, list[object]] = {terminal.name: [] for terminal in grammar.terminals}
    for state in range(len(rows)):
        for name, target in table.shifts[state].items():
            found.setdefault(name, []).append((state, blocks[target]))
        for name, production in table.reductions[state].items():
            found.setdefault(name, []).append((state, *sizes[production]))
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for name, actions in found.items():
        if actions:
            groups[tuple(actions)].append(name)
    sets = [tuple(sorted(group)) for group in groups.values() if len(group) > 1]
    return sorted(sets, key=lambda group: (-len(group), group))
