"""Streamlining: each step alone and all of them, and that masks stay what they were."""

from __future__ import annotations

import functools
import random

import pytest
from mask_store.store_samples import json_store, python_store
from tokfold.mask_store.lexer_types import NO_TERMINAL, JoinedRows
from tokfold.mask_store.stack_classes import ACCEPT, REJECT
from tokfold.mask_store.streamline import Reductions, Step, streamline
from tokfold.mask_store.transitions import build_transitions


@functools.cache
def raw() -> JoinedRows:
    store = python_store("basic")
    return build_transitions(store.grammar, store.vocabulary).joined()


@functools.cache
def made(*steps: Step) -> Reductions:
    return streamline(raw(), python_store("basic").predicates, steps=steps)


def test_each_step_is_counted_and_makes_the_store_smaller() -> None:
    every = made("never", "always", "interchangeable", "jointly")
    counts = list(every.counts.values())
    assert list(every.counts) == ["raw", "never", "always", "interchangeable", "jointly"]
    assert counts[0] == len(raw().rows) == sum(every.legality.values())
    assert counts == sorted(counts, reverse=True)
    assert counts[1] == counts[0] - every.legality["never"]
    assert counts[-1] == len(every.rows) < counts[0] / 5
    alone = [made(step) for step in ("never", "always", "interchangeable", "jointly")]
    assert alone[0].counts["never"] == counts[1]
    assert all(len(a.counts) == 2 for a in alone)
    # What is interchangeable is jointly legal: the last step does not need the one before.
    assert len(made("never", "always", "jointly").rows) == len(every.rows)


def test_nothing_is_lost_and_nothing_is_twice() -> None:
    every = made("never", "always", "interchangeable", "jointly")
    sources = [source for row in every.rows for source in row.sources]
    assert len(set(sources)) == len(sources) == len(raw().rows) - every.legality["never"]
    for row in every.rows:
        assert all(raw().rows[source, 0] == row.state for source in row.sources)


def test_rows_that_were_joined_are_legal_together_on_real_stacks() -> None:
    predicates = python_store("basic").predicates
    graph, grammar = predicates.graph, predicates.grammar
    every = made("never", "always", "interchangeable", "jointly")
    terminals = dict(raw().states.tolist())
    newline = grammar.terminal("_NEWLINE")
    rng = random.Random(3)
    stacks: dict[int, list[list[int]]] = {}
    for _ in range(300):
        stack = [graph.start]
        for _ in range(rng.randint(1, 12)):
            options = [t for t in range(len(grammar.terminals)) if graph.shift(list(stack), t)]
            last = rng.choice(options)
            graph.shift(stack, last)
            stacks.setdefault(last, []).append(list(stack))
    compared = 0
    for row in every.rows:
        before = terminals[row.state]
        if before == NO_TERMINAL:
            continue
        sequences = [raw().sequences[raw().rows[s, 1]] for s in row.sources]
        plain = [s for s in sequences if newline not in s]
        for stack in rng.sample(stacks.get(before, []), min(3, len(stacks.get(before, [])))):
            verdicts = {reads(graph, stack, sequence) for sequence in plain}
            assert len(verdicts) <= 1
            if not row.sequence:
                assert verdicts <= {True}
            compared += len(plain)
    assert compared > 1_000


def reads(graph: object, stack: list[int], sequence: tuple[int, ...]) -> bool:
    current = list(stack)
    return all(graph.shift(current, terminal) for terminal in sequence)  # type: ignore[attr-defined]


def test_masks_of_joined_rows_are_the_unions_of_their_tokens() -> None:
    every = made("never", "jointly")
    size = len(python_store("basic").vocabulary)
    masks = every.masks(raw(), size)
    for i in range(0, len(every.rows), 37):
        expected = set()
        for source in every.rows[i].sources:
            expected |= set(raw().token_sets[raw().rows[source, 2]].tolist())
        assert sum(bin(byte).count("1") for byte in masks[i].tolist()) == len(expected)


def test_unknown_steps_are_named() -> None:
    with pytest.raises(ValueError, match="sometimes"):
        made("sometimes")  # type: ignore[arg-type]


def test_parentheses_open_are_those_of_the_stack() -> None:
    store = python_store("basic")
    grammar, graph = store.grammar, store.predicates.graph
    classes = store.predicates.classes
    assert grammar.indentation is not None
    opens = {grammar.terminal(name) for name in grammar.indentation.open_parens}
    closes = {grammar.terminal(name) for name in grammar.indentation.close_parens}
    rng = random.Random(8)
    seen = set()
    for _ in range(200):
        stack, depth = [graph.start], 0
        for _ in range(20):
            options = [t for t in range(len(grammar.terminals)) if graph.shift(list(stack), t)]
            if rng.random() < 0.5:
                options = [t for t in options if t in opens | closes] or options
            terminal = rng.choice(options)
            graph.shift(stack, terminal)
            depth += (terminal in opens) - (terminal in closes)
            for needed in (1, 2, 3):
                state = classes._core.choose(ACCEPT, REJECT, stack[-1], needed)
                for read in stack[-2::-1]:
                    state = state if state <= ACCEPT else classes.moves(state)[read]
                assert state == (ACCEPT if depth >= needed else REJECT)
                seen.add((needed, state))
    assert len(seen) == 6


def test_newlines_as_plain_terminals_for_comparison() -> None:
    predicates = python_store("basic").predicates
    plain = streamline(raw(), predicates, indentation=False)
    exact = made("never", "always", "interchangeable", "jointly")
    assert plain.counts["raw"] == exact.counts["raw"]
    assert plain.counts["never"] < exact.counts["never"]


def test_grammars_without_indentation_and_with_ignored_terminals() -> None:
    store = json_store()
    joined = build_transitions(store.grammar, store.vocabulary).joined()
    reductions = streamline(joined, store.predicates)
    ignored = store.grammar.terminal("WS")
    states = {state for state, terminal in joined.states.tolist() if terminal == ignored}
    assert any(row.state in states and row.sequence for row in reductions.rows)
    assert len(reductions.rows) < len(joined.rows)
