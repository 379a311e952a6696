"""Never, always and jointly legal against all texts up to a length, with witnesses by Lark."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import assume, given
from mask_store.table_oracles import (
    LarkTruth,
    grammar_texts,
    table_of,
    takes_copy,
)
from strategies.profiles import examples
from tokfold.mask_store.errors import LarkGrammarError, TableLoopError
from tokfold.mask_store.grammar import END
from tokfold.mask_store.lark_reader import python_grammar, read_lark
from tokfold.mask_store.predicates import (
    Predicates,
    interchangeable_in_table,
    interchangeable_terminals,
)
from tokfold.mask_store.stack_classes import ACCEPT, REJECT, StackClasses
from tokfold.mask_store.stack_graph import StackGraph


def terminals_of(predicates: Predicates) -> list[str]:
    return [t.name for t in predicates.grammar.terminals]


def rows_of(terminals: Sequence[str]) -> list[tuple[str, ...]]:
    rows = [
        row
        for length in (1, 2, 3)
        for row in itertools.product(terminals, repeat=length)
        if length < 3 or row[0] != row[1]
    ]
    return [*rows, (END,), *((name, END) for name in terminals)]


class WrongError(AssertionError):
    """A predicate says what Lark does not."""


def check(predicates: Predicates, truth: LarkTruth, length: int = 5) -> tuple[int, int]:
    """Compare all predicates with all texts and all witnesses with Lark.

    Returns:
        How many witnesses were confirmed, and how many were not found.
    """
    terminals = terminals_of(predicates)
    rows = rows_of(terminals)
    by_last: dict[str, list[object]] = {}
    for row, parser in itertools.islice(truth.texts(terminals, length), 400):
        if row:
            by_last.setdefault(row[-1], []).append(parser)
    confirmed = missing = 0
    for before in terminals:
        classes: dict[tuple[int, ...], tuple[str, ...]] = {}
        parsers = by_last.get(before, [])
        seen: dict[tuple[str, ...], tuple[bool, ...]] = {}
        for row in rows:
            verdicts = seen[row] = tuple(takes_copy(p, row) for p in parsers)
            legality = predicates.legality(before, row)
            if legality == "never" and any(verdicts):
                raise WrongError(f"{before} {row} is never legal, says the table")
            if legality == "always" and not all(verdicts):
                raise WrongError(f"{before} {row} is always legal, says the table")
            if legality == "depends":
                for legal in (True, False):
                    text = predicates.witness(before, row, legal=legal)
                    if text is None:
                        missing += 1
                        continue
                    if text[-1] != before or not truth.takes(text):
                        raise WrongError(f"{text} is no text that ends with {before}")
                    if truth.takes(text + row) != legal:
                        raise WrongError(f"{text} is no witness for {row}")
                    confirmed += 1
            states = predicates.states(before, row)
            if states in classes:
                if verdicts != seen[classes[states]]:
                    raise WrongError(f"{row} and {classes[states]} differ after {before}")
            else:
                for other in list(classes.values())[-3:]:
                    apart = predicates.apart(before, row, other)
                    if apart is None:
                        missing += 1
                        continue
                    if not truth.takes(apart.text + apart.legal):
                        raise WrongError(f"{apart}: not legal")
                    if truth.takes(apart.text + apart.illegal) or apart.text[-1] != before:
                        raise WrongError(f"{apart}: legal")
                    confirmed += 1
                classes[states] = row
    return confirmed, missing


@examples(60)
@given(grammar_texts())
def test_predicates_against_all_short_texts_and_lark_as_witness(text: str) -> None:
    grammar = table_of(text)
    assume(grammar is not None)
    try:
        predicates = Predicates(grammar)
    except TableLoopError:
        assume(False)
    _, missing = check(predicates, LarkTruth(text))
    if not predicates.conflicts:
        assert missing == 0


NESTED = """
start: p+
p: A p B | C | q
q: D q | D A
A: "a"
B: "b"
C: "c"
D: "d"
"""


def mutated(
    classes: StackClasses, reading: int, top: int, wrong: int
) -> Callable[[int, Sequence[int]], tuple[int, ...]]:
    right = classes.states

    def states(asked: int, tops: Sequence[int]) -> tuple[int, ...]:
        found = right(asked, tops)
        if asked != reading:
            return found
        return tuple(wrong if t == top else s for t, s in zip(tops, found, strict=True))

    return states


def test_a_mutated_class_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = LarkTruth(NESTED)
    grammar = read_lark(NESTED, lexer="basic")
    confirmed, missing = check(Predicates(grammar), truth)
    assert confirmed > 100
    assert missing == 0
    rng, found = random.Random(5), 0
    for _ in range(12):
        predicates = Predicates(grammar)
        name = rng.choice(terminals_of(predicates))
        rows = [r for r in rows_of(terminals_of(predicates)) if END not in r]
        # Decided whatever the stack is: one wrong top changes the verdict.
        row = rng.choice([r for r in rows if predicates.legality(name, r) != "depends"])
        classes = predicates.classes
        reading = classes.reading([predicates.number(name) for name in row])
        top = rng.choice(predicates.graph.after[predicates.number(name)])
        (was,) = classes.states(reading, [top])
        wrong = rng.choice([s for s in (ACCEPT, REJECT) if s != was])
        monkeypatch.setattr(classes, "states", mutated(classes, reading, top, wrong))
        with pytest.raises(WrongError):
            check(predicates, truth)
        found += 1
    assert found == 12


@examples(60)
@given(grammar_texts())
def test_the_automaton_has_no_two_equal_states(text: str) -> None:
    grammar = table_of(text)
    assume(grammar is not None)
    try:
        predicates = Predicates(grammar)
    except TableLoopError:
        assume(False)
    for before in terminals_of(predicates):
        for row in rows_of(terminals_of(predicates)):
            predicates.states(before, row)
    assert_minimal(predicates.classes)


def blocks(every: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    """Moore's minimization: equal states are in the same block."""
    found = {ACCEPT: ACCEPT, REJECT: REJECT, **dict.fromkeys(every, 2)}
    while True:
        names: dict[object, int] = {}
        finer = {ACCEPT: ACCEPT, REJECT: REJECT}
        for state, row in every.items():
            kind = (found[state], tuple(sorted((read, found[to]) for read, to in row.items())))
            finer[state] = names.setdefault(kind, len(names) + 2)
        if len(set(finer.values())) == len(set(found.values())):
            return {state: finer[state] for state in every}
        found = finer


def assert_minimal(automaton: StackClasses) -> None:
    every = {state: automaton.moves(state) for state in range(2, len(automaton))}
    assert len(set(blocks(every).values())) == len(automaton) - 2
    sources: dict[int, list[int]] = {}
    for state, moves in every.items():
        for target in moves.values():
            sources.setdefault(target, []).append(state)
    for side in (ACCEPT, REJECT):
        reached, waiting = {side}, [side]
        while waiting:
            for source in sources.get(waiting.pop(), ()):
                if source not in reached:
                    reached.add(source)
                    waiting.append(source)
        assert len(reached) >= len(automaton) - 1


@examples(80)
@given(grammar_texts())
def test_stacks_left_out_are_had_by_no_text(text: str) -> None:
    grammar = table_of(text)
    assume(grammar is not None)
    graph = StackGraph(grammar)
    level: list[list[int]] = [[graph.start]]
    for _ in range(6):
        following = []
        for stack in level[:200]:
            for name in graph.terminals.keys() - {END}:
                terminal, longer = graph.terminals[name], list(stack)
                try:
                    if not graph.shift(longer, terminal):
                        assert longer == stack
                        continue
                except TableLoopError:
                    assume(False)
                assert longer[-1] in graph.after[terminal]
                assert all(b in graph.below[t] for b, t in itertools.pairwise(longer))
                following.append(longer)
        level = following


def test_the_paper_examples() -> None:
    text = 'start: "a" start "b" | '
    predicates = Predicates(read_lark(text))
    assert predicates.legality("A", ["A"]) == "always"
    assert predicates.legality("A", ["B"]) == "always"
    assert predicates.legality("B", ["A"]) == "never"
    assert predicates.legality("B", ["B"]) == "depends"
    assert predicates.witness("B", ["B"], legal=True) == ("A", "A", "B")
    assert predicates.witness("B", ["B"], legal=False) == ("A", "B")
    assert predicates.witness("A", ["B"], legal=False) is None
    assert predicates.witness("B", ["A"], legal=True) is None
    assert predicates.legality("A", [END]) == "never"
    assert predicates.legality("B", [END]) == "depends"


def test_python_as_in_the_paper() -> None:
    grammar = python_grammar()
    predicates = Predicates(grammar)
    assert predicates.legality("DEF", ["NAME"]) == "always"
    assert predicates.legality("DEF", ["MATCH"]) == "always"
    assert predicates.legality("DEF", ["ASYNC"]) == "never"
    assert predicates.legality("MINUS", ["MINUS"]) == "always"
    assert predicates.are_jointly_legal("NAME", ["MINUS"], ["MINUS"] * 3)
    sets = interchangeable_terminals(grammar.productions, [t.name for t in grammar.terminals])
    assert len(sets) == 7
    assert sum(len(group) for group in sets) == 35
    assert ("FALSE", "NONE", "TRUE") in sets
    assert ("MINUS", "PLUS") in sets
    assert interchangeable_in_table(grammar) == sets


@examples(60)
@given(grammar_texts())
def test_interchangeable_terminals_are_jointly_legal_everywhere(text: str) -> None:
    grammar = table_of(text)
    assume(grammar is not None)
    try:
        predicates = Predicates(grammar)
        names = terminals_of(predicates)
        table = interchangeable_in_table(grammar)
        pairs = [pair for group in table for pair in itertools.combinations(group, 2)]
        for one, two in pairs:
            for before, after in itertools.product(names, repeat=2):
                assert predicates.are_jointly_legal(before, (one, after), (two, after))
        if not predicates.conflicts:
            known = {frozenset(pair) for pair in pairs}
            for group in interchangeable_terminals(grammar.productions, names):
                used = [n for n in group if predicates.graph.after[predicates.number(n)]]
                assert {frozenset(p) for p in itertools.combinations(used, 2)} <= known
    except TableLoopError:
        assume(False)


def test_letters_can_be_bound_to_states() -> None:
    predicates = Predicates(read_lark(NESTED, lexer="basic"))
    number, reading = predicates.number("C"), predicates.classes._core.reading
    assert reading([(number, [])]) != reading([(number, None)])
    assert set(predicates.classes.after(predicates.number("A"), 1)) == {REJECT}


def test_unknown_terminals_and_endless_reductions_are_named() -> None:
    predicates = Predicates(read_lark(NESTED, lexer="basic"))
    with pytest.raises(LarkGrammarError, match="no terminal 'X'"):
        predicates.legality("X", ["A"])
    looping = read_lark('start: "x" q "z"\nq: p\np.2: p | "y"', lexer="basic")
    with pytest.raises(TableLoopError, match="stand for itself"):
        Predicates(looping).legality("Y", ["Z"])
