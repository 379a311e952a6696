"""The raw store, streamlined step by step, with the number of rows after each step.

The steps are those of *mask store streamlining* (Tran-Thien 2025, figure 6): rows that are never
legal go, rows that are always legal become one with the empty row, rows that are jointly legal
become one. Here the predicates are decided, so each step is as far as it can go for the table.

A newline of an indenting post-lexer stands for several rows of terminals: for nothing inside of
parentheses, which the stack knows; outside for itself, for itself with an indent or with one or
two dedents. Such a row is never legal if none of them is, always legal if all are, and jointly
legal with another if each of them is with its own. A newline in progress is part of the row: what
stands for it is known only where it ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from tokfold.mask_store.grammar import LarkGrammar
from tokfold.mask_store.lexer_types import NO_TERMINAL, JoinedRows
from tokfold.mask_store.predicates import Legality, Predicates, interchangeable_terminals
from tokfold.mask_store.stack_classes import ACCEPT, REJECT

__all__ = ["Reductions", "Step", "StreamlinedRow", "streamline"]

Step = Literal["never", "always", "interchangeable", "jointly"]

_MAX_DEDENTS = 2
_ANYWHERE = -2
_Regions = tuple[tuple[int, int], ...]
_States = tuple[int, ...]


@dataclass(frozen=True)
class StreamlinedRow:
    """A row of the streamlined store.

    Attributes:
        state: of a terminal, as in :class:`~tokfold.mask_store.transitions.JoinedRows`.
        sequence: the terminals that stand for all rows that were joined here; empty for what is
            always legal.
        sources: indices of the rows of the raw store.
    """

    state: int
    sequence: tuple[int, ...]
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Reductions:
    """What streamlining made of a raw store.

    Attributes:
        counts: rows of the raw store (``"raw"``) and after each step that was taken, in order.
        rows: what is left.
        legality: how many rows of the raw store are never, always or sometimes legal.
    """

    counts: Mapping[str, int]
    rows: tuple[StreamlinedRow, ...]
    legality: Mapping[Legality, int]

    def masks(self, raw: JoinedRows, size: int) -> npt.NDArray[np.uint8]:
        """The tokens of each row that is left: uint8, ``(rows, ceil(size / 8))``, as bits."""
        out = np.zeros((len(self.rows), -(-size // 8)), np.uint8)
        for i, row in enumerate(self.rows):
            flags = np.zeros(size, np.uint8)
            for source in row.sources:
                flags[raw.token_sets[raw.rows[source, 2]]] = 1
            out[i] = np.packbits(flags, bitorder="little")
        return out


def streamline(
    raw: JoinedRows,
    predicates: Predicates,
    *,
    steps: Collection[Step] = ("never", "always", "interchangeable", "jointly"),
    indentation: bool = True,
) -> Reductions:
    """Streamline a raw store.

    Args:
        raw: as :meth:`~tokfold.mask_store.transitions.Transitions.joined` gives it.
        predicates: of the same grammar.
        steps: those to take; they are taken in the order of the default.
        indentation: whether newlines are what the post-lexer makes of them. Otherwise they are
            terminals as others and nothing is indented: for comparison with stores that were
            counted so; texts with indented lines could not be decoded with it.

    Raises:
        ValueError: a step is not one of these.
    """
    unknown = set(steps) - set(get_args(Step))
    if unknown:
        raise ValueError(f"no steps are named {', '.join(sorted(unknown))}: see Step")
    judge = _Judge(predicates, raw.sequences, indentation=indentation)
    terminals = dict(raw.states.tolist())
    legality: dict[Legality, int] = {"never": 0, "always": 0, "depends": 0}
    verdicts: list[Legality] = []
    known: dict[tuple[int, int], Legality] = {}
    for state, sequence, _ in raw.rows.tolist():
        asked = (terminals[state], sequence)
        verdict = known.get(asked)
        if verdict is None:
            verdict = known[asked] = judge.legality(*asked)
        legality[verdict] += 1
        verdicts.append(verdict)
    rows = raw.rows.tolist()
    # By the state and by what tells its rows apart.
    left: dict[tuple[int, object], list[int]] = {(row[0], i): [i] for i, row in enumerate(rows)}
    counts = {"raw": len(left)}
    for step in get_args(Step):
        if step not in steps:
            continue
        merged: dict[tuple[int, object], list[int]] = {}
        for (state, _), sources in left.items():
            first = sources[0]
            sequence, verdict = rows[first][1], verdicts[first]
            key: object = first
            if step == "never":
                if verdict == "never":
                    continue
            elif step == "always":
                key = "always" if verdict == "always" else first
            elif verdict == "always" and "always" in steps:
                key = "always"
            elif step == "interchangeable":
                key = judge.renamed(terminals[state], sequence)
            else:
                key = judge.states(terminals[state], sequence)
            merged.setdefault((state, key), []).extend(sources)
        left = merged
        counts[step] = len(left)
    made = tuple(
        StreamlinedRow(
            state,
            () if key == "always" else tuple(raw.sequences[rows[min(sources)][1]]),
            tuple(sorted(sources)),
        )
        for (state, key), sources in left.items()
    )
    return Reductions(counts, made, legality)


class _Judge:
    """Predicates for the sequences of a raw store, each asked once for each terminal before."""

    def __init__(
        self,
        predicates: Predicates,
        sequences: Sequence[tuple[int, ...]],
        *,
        indentation: bool,
    ) -> None:
        self._predicates, self._sequences = predicates, sequences
        grammar, graph = predicates.grammar, predicates.graph
        self._ignored = {i for i, t in enumerate(grammar.terminals) if t.is_ignored}
        # Where an ignored terminal is in progress anything may stand before it.
        anywhere = {top for tops in graph.after[:-1] for top in tops} | {graph.start}
        self._anywhere = tuple(sorted(anywhere))
        self._known: dict[tuple[int, _Regions], _States] = {}
        self._readings: dict[tuple[int, ...], list[_Regions]] = {}
        self._found: dict[tuple[int, int], tuple[_States, ...]] = {}
        self._variants = _Variants(grammar, indentation=indentation)
        self._names = self._renaming(grammar)

    @staticmethod
    def _renaming(grammar: LarkGrammar) -> dict[int, int]:
        terminals = [t.name for t in grammar.terminals]
        sets = interchangeable_terminals(grammar.productions, terminals)
        return {
            grammar.terminal(name): grammar.terminal(group[0]) for group in sets for name in group
        }

    def states(self, before: int, sequence: int) -> tuple[_States, ...]:
        """For each variant what decides, for each top that can stand there."""
        # Ignored terminals have the same tops, and so the same answers.
        place = _ANYWHERE if before in self._ignored else before
        key = (place, sequence)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._variants_at(place, self._sequences[sequence])
        return found

    def _variants_at(self, place: int, sequence: Sequence[int]) -> tuple[_States, ...]:
        return tuple(self._states_at(place, regions) for regions in self._regions(place, sequence))

    def _states_at(self, place: int, regions: _Regions) -> _States:
        # Many sequences come to the same readings: their tops are gone through once.
        key = (place, regions)
        found = self._known.get(key)
        if found is None:
            tops = self._tops(place)
            found = self._known[key] = self._predicates.classes.chosen(regions, tops)
        return found

    def _regions(self, before: int, sequence: Sequence[int]) -> list[_Regions]:
        row = tuple(sequence)
        if before == self._variants.newline:
            row = (before, *row)
        known = self._readings.get(row)
        if known is None:
            classes = self._predicates.classes
            known = self._readings[row] = [
                tuple((n, classes.reading(chosen)) for n, chosen in regions)
                for regions in self._variants.of(row)
            ]
        return known

    def _tops(self, before: int) -> tuple[int, ...]:
        graph = self._predicates.graph
        if before == NO_TERMINAL:
            return (graph.start,)
        is_anywhere = before == _ANYWHERE or before == self._variants.newline
        return self._anywhere if is_anywhere else tuple(graph.after[before])

    def legality(self, before: int, sequence: int) -> Legality:
        states = self.states(before, sequence)
        kinds = {state for variant in set(states) for state in variant}
        if kinds <= {REJECT}:
            return "never"
        if before == self._variants.newline:
            # Legal wherever the newline is.
            return "always" if states == self._variants_at(before, ()) else "depends"
        return "always" if kinds == {ACCEPT} else "depends"

    def renamed(self, before: int, sequence: int) -> object:
        """The sequence with one name for interchangeable terminals.

        Together with what decides: where a table has decided conflicts, terminals that are
        interchangeable in the rules need not be so in the table.
        """
        names = tuple(self._names.get(t, t) for t in self._sequences[sequence])
        return names, self.states(before, sequence)


class _Variants:
    """What a row of terminals can be after an indenting post-lexer."""

    def __init__(self, grammar: LarkGrammar, *, indentation: bool) -> None:
        self.newline = -1
        rules = grammar.indentation if indentation else None
        if rules is not None:
            names = {t.name: i for i, t in enumerate(grammar.terminals)}
            self.newline = newline = names[rules.newline]
            self._is_balanced = rules.is_balanced(grammar.productions)
            self._opens = {names[n] for n in rules.open_parens if n in names}
            self._closes = {names[n] for n in rules.close_parens if n in names}
            self._options: list[tuple[int, ...]] = [(newline,)]
            if rules.indent in names:
                self._options.append((newline, names[rules.indent]))
            if rules.dedent in names:
                dedent = names[rules.dedent]
                for count in range(1, _MAX_DEDENTS + 1):
                    self._options.append((newline, *(dedent,) * count))

    def of(self, sequence: Sequence[int]) -> list[list[tuple[int, tuple[int, ...]]]]:
        """For each choice of what newlines stand for, the rows by parentheses open before.

        The first row of each holds for any number, each further one from the number that stands
        with it on.
        """
        if self.newline not in sequence:
            return [[(0, tuple(sequence))]]
        # For each newline how many parentheses must be open before the row for it to be dropped.
        needed, depth = [], 0
        for terminal in sequence:
            if terminal == self.newline:
                needed.append(1 - depth)
            elif terminal in self._opens:
                depth += 1
            elif terminal in self._closes:
                depth -= 1
        choices = product(*(self._options if n > 0 else [()] for n in needed))
        if not self._is_balanced:
            every = product(*([*self._options, ()] for _ in needed))
            return [[(0, self._row(sequence, choice))] for choice in every]
        bounds = sorted({n for n in needed if n > 0})
        return [
            [
                (
                    bound,
                    self._row(
                        sequence,
                        [() if n <= bound else c for n, c in zip(needed, choice, strict=True)],
                    ),
                )
                for bound in (0, *bounds)
            ]
            for choice in choices
        ]

    def _row(self, sequence: Sequence[int], choice: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        row: list[int] = []
        chosen = iter(choice)
        for terminal in sequence:
            row += next(chosen) if terminal == self.newline else (terminal,)
        return tuple(row)
