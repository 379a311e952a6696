"""The recognizer: exact counts of the paper's grammars, and of any grammar against span tables."""

from __future__ import annotations

from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.forest import Chart
from oracles.model import to_ebnf
from strategies.grammars import grammars
from strategies.profiles import CASES, examples
from tokfold.laboratory.forest import CostLimitError, CostLimits, Earley, Productions, live_items
from tokfold.laboratory.form import Form

G1 = 'root ::= "a" root "b" | ""'
G3 = 'root ::= "a" root | "b" root | ""'
G4 = 'root ::= S | ""\nS ::= S S | "a" | "b"'
NASTY = [
    G1,
    G3,
    G4,
    'root ::= root | "a"',
    'root ::= root root | "a" | ""',
    'root ::= E root "b" | "a"\nE ::= "" | "a"',  # hidden left recursion
    'root ::= "a" root E | "b"\nE ::= "" | "a"',  # hidden right recursion
    'root ::= X | "b"\nX ::= root | Y "a"\nY ::= root | "b" | ""',
    'root ::= ("a"*)* "b"?',
    'root ::= A A "a"\nA ::= B | ""\nB ::= A | "b" A',
    'root ::= "a" X | Y "b"\nX ::= "a" X | "b"\nY ::= root',  # the start inside a chain
    'root ::= "a" root "a" | "b" root "b" | ""',
    'root ::= "a" never | "b"\nnever ::= "a" never',
    'root ::= "a" root',
    'root ::= "a" U | "b"\nU ::= V\nV ::= U | root',  # a cycle that a chain runs into
]


def points(text: str) -> list[int]:
    return list(map(ord, text))


def recognizer(grammar: str | Productions, **options) -> Earley:
    productions = Productions.of(Form.of(grammar)) if isinstance(grammar, str) else grammar
    return Earley(productions, **options)


def chart(productions: Productions, text: list[int]) -> Chart:
    useful = productions.useful()
    flat = [(p.lhs, p.rhs) for p in useful.productions]
    return Chart(flat, list(useful.terminals), useful.start, text)


def check(productions: Productions, text: list[int]) -> None:
    """Counters of each position, with and without chains, against the tables."""
    truth = chart(productions, text)
    earley, leo = Earley(productions), Earley(productions, leo=True)
    for position in range(len(text) + 1):
        if position:
            took = earley.step(text[position - 1])
            assert leo.step(text[position - 1]) == took
            assert took == bool(truth.items(position))
            if not took:
                return
        found = earley.counters[position].document()
        want = truth.counters(position)
        assert live_items(earley) == want.pop("live_items")
        assert {name: found[name] for name in want} == want
        assert found["surplus"] == want["new_packed_nodes"] - want["new_nodes"]
        assert found["leo_items"] == 0
        accepted = (truth.start, 0, position) in truth.spans
        assert earley.accepting == leo.accepting == accepted
        assert earley.viable == leo.viable == bool(truth.items(position))
        # Chains leave items out and add none, and what is unfinished is the same.
        assert leo.sets[position].kernel <= earley.sets[position].kernel
        assert {s: set(items) for s, items in leo.sets[position].waiting.items()} == {
            s: set(items) for s, items in earley.sets[position].waiting.items()
        }
        # What is ambiguous under a chain is seen at its top.
        assert (leo.counters[position].surplus > 0) == (found["surplus"] > 0)
        assert live_items(leo) <= live_items(earley)
        CASES["Earley sets against span tables"] += 1


def test_concatenation_holds_2t_plus_4_items_with_quadratic_completer_work():
    """No added start production; G4 has one of its own, so the start symbol completes too."""
    for leo in (False, True):
        earley = recognizer(G4, leo=leo)
        assert earley.read(points("ab" * 32))
        for t in range(1, 65):
            counters = earley.counters[t]
            assert counters.new_items == 2 * t + 4
            assert counters.completer_work == t * (t + 1) // 2 + 1
            assert counters.new_splits == t * (t - 1) // 2
            assert sum(c.new_splits for c in earley.counters[: t + 1]) == comb(t + 1, 3)


def test_right_recursion_is_linear_without_leo_and_constant_with():
    plain, leo = recognizer(G3), recognizer(G3, leo=True)
    assert plain.read(points("ab" * 50))
    assert leo.read(points("ab" * 50))
    for t in range(1, 101):
        assert plain.counters[t].new_items == t + 4
        assert plain.counters[t].new_splits == t
        assert leo.counters[t].new_items == min(t + 4, 6)
        assert leo.counters[t].new_splits == min(t, 2)
        assert leo.counters[t].completer_work == min(t, 2)
    assert live_items(plain) == 102
    assert live_items(leo) == 4


def test_left_recursion_is_constant():
    earley = recognizer('root ::= root "a" | root "b" | ""')
    assert earley.read(points("ab" * 50))
    assert {c.new_items for c in earley.counters[1:]} == {3}
    assert {c.new_splits for c in earley.counters[1:]} == {1}


@pytest.mark.parametrize("grammar", NASTY)
def test_nasty_grammars_against_span_tables(grammar):
    productions = Productions.of(Form.of(grammar))
    for size in range(5):
        for text in product(points("ab"), repeat=size):
            check(productions, list(text))


@examples(120)
@given(grammars(max_rules=3, unicode=0.1), st.data())
def test_any_grammar_against_span_tables(grammar, data):
    productions = Productions.of(Form.of(to_ebnf(grammar)))
    if len(productions.productions) > 40:
        return
    text: list[int] = []
    earley = Earley(productions)
    for _ in range(data.draw(st.integers(0, 6))):
        slots = earley.slots
        here = earley.sets[-1]
        waiting = [s for part in (here.waiting, here.block.waiting) for s in part if s < 0]
        if not waiting:
            break
        low, high = slots.grammar.terminals[~data.draw(st.sampled_from(sorted(waiting)))][0]
        point = data.draw(st.integers(low, high))
        assert earley.step(point)
        text.append(point)
    check(productions, text)


def test_truncate_goes_back():
    earley = recognizer(G4, leo=True)
    assert earley.read(points("ab" * 10))
    want = list(earley.counters)
    items, work = earley.items, earley.work
    assert earley.read(points("abba"))
    earley.truncate(20)
    assert (earley.counters, earley.items, earley.work) == (want, items, work)
    assert not earley.step(ord("c"))
    assert earley.position == 20
    with pytest.raises(ValueError, match="0 to 20"):
        earley.truncate(21)


def test_the_language_of_an_endless_rule_is_empty():
    earley = recognizer('root ::= "a" root')
    assert not earley.viable
    assert not earley.accepting
    assert not earley.step(ord("a"))


@pytest.mark.parametrize(
    ("limits", "name"),
    [(CostLimits(max_items=500), "max_items"), (CostLimits(max_work=500), "max_work")],
)
def test_limits_stop_a_text_where_it_is(limits, name):
    earley = recognizer(G4, limits=limits)
    with pytest.raises(CostLimitError, match=name) as caught:
        earley.read(points("a" * 100))
    assert caught.value.limit == name
    assert earley.accepting
    assert earley.items <= 500
    assert (earley.items if name == "max_items" else earley.work) > 400
    with pytest.raises(CostLimitError, match=f"after {earley.position} code points"):
        earley.step(ord("a"))


def test_one_step_cannot_pass_the_limits_far():
    earley = recognizer('root ::= "a" root | "a"')
    assert earley.read(points("a" * 300))
    earley.limits = CostLimits(max_items=earley.items + 100)
    with pytest.raises(CostLimitError):
        earley.step(ord("a"))
