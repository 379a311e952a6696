"""Packed forests: sizes, splits and exact numbers of parse trees."""

from __future__ import annotations

from itertools import islice, product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laboratory.test_forest_earley import G3, G4, NASTY, chart, points
from oracles.model import to_ebnf
from strategies.grammars import grammars
from strategies.profiles import CASES, examples
from tokfold.laboratory.forest import (
    CostLimitError,
    CostLimits,
    Earley,
    Forest,
    Productions,
    TextRefusedError,
    parse,
)
from tokfold.laboratory.form import Form


def check(productions: Productions, text: list[int]) -> None:
    plain, leo = Earley(productions), Earley(productions, leo=True)
    truth = chart(productions, text)
    if not plain.read(text) or not leo.read(text):
        assert not truth.accepting
        return
    forest, other = Forest(plain), Forest(leo)
    assert {n: set(ways) for n, ways in forest.packed.items()} == {
        n: set(ways) for n, ways in other.packed.items()
    }
    assert all(len(set(ways)) == len(ways) for ways in forest.packed.values()), "a way twice"
    assert (forest.symbol_nodes, forest.packed_nodes, forest.splits) == (
        other.symbol_nodes,
        other.packed_nodes,
        other.splits,
    )
    trees = forest.trees()
    assert trees == other.trees()
    CASES["forests against parse trees written out"] += 1
    if not truth.accepting:
        assert trees == 0
        return
    if truth.is_infinite():
        assert trees is None
        return
    written = list(islice(truth.trees(), 3_000))
    assert len(set(written)) == len(written)
    if len(written) < 3_000:
        assert trees == len(written)
    else:
        assert trees is not None
        assert trees >= 3_000


@pytest.mark.parametrize("grammar", NASTY)
def test_nasty_grammars_against_trees_written_out(grammar):
    productions = Productions.of(Form.of(grammar))
    for size in range(5):
        for text in product(points("ab"), repeat=size):
            check(productions, list(text))


@examples(80)
@given(grammars(max_rules=3, unicode=0.1, unproductive=0), st.data())
def test_any_grammar_against_trees_written_out(grammar, data):
    productions = Productions.of(Form.of(to_ebnf(grammar)))
    if len(productions.productions) > 40:
        return
    text: list[int] = []
    earley = Earley(productions)
    for _ in range(5):
        here = earley.sets[-1]
        waiting = [s for part in (here.waiting, here.block.waiting) for s in part if s < 0]
        if earley.accepting:
            check(productions, text)
        if not waiting:
            break
        symbol = data.draw(st.sampled_from(sorted(waiting)))
        text.append(earley.slots.grammar.terminals[~symbol][0][0])
        assert earley.step(text[-1])
    check(productions, text)


@pytest.mark.parametrize("leo", [False, True])
def test_catalan_many_trees_and_their_splits(leo):
    """Lemmas 5 and 6, to n = 64."""
    form = Form.of(G4)
    for n in (1, 2, 3, 8, 33, 64):
        forest = parse(form, b"a" * n, leo=leo)
        assert forest.trees() == comb(2 * (n - 1), n - 1) // n
        assert forest.splits == comb(n + 1, 3)
        assert forest.symbol_nodes == comb(n + 1, 2) + 1  # of S, and the root
        assert forest.packed_nodes == forest.splits + n + 1


@pytest.mark.parametrize("leo", [False, True])
def test_right_recursion_has_one_tree(leo):
    forest = parse(Form.of(G3), b"ab" * 200, leo=leo)
    assert forest.trees() == 1
    assert forest.ambiguous_nodes == 0
    assert forest.splits == 400


def test_cycles_have_infinitely_many_trees():
    assert parse(Form.of('root ::= root | "a"'), b"a").trees() is None
    assert parse(Form.of('root ::= ("a"*)*'), b"aa").trees() is None
    # The cycle is in the grammar, but not under this text.
    assert parse(Form.of('root ::= "a" | "b" X\nX ::= X | "c"'), b"a").trees() == 1


def test_a_text_that_could_go_on_has_no_trees():
    forest = parse(Form.of('root ::= "ab" | "é"'), b"a")
    assert forest.root is None
    assert forest.trees() == 0
    whole = Form.of('root ::= "a"+ "é"?')
    assert parse(whole, b"a").trees() == 1
    assert parse(whole, b"a\xc3").trees() == 0


def test_a_text_outside_the_language_is_named():
    with pytest.raises(TextRefusedError, match="line 2, column 2") as caught:
        parse(Form.of('root ::= "a\\n" "é" "b"'), "a\néc".encode())
    assert caught.value.offset == 4


def test_a_forest_is_limited():
    with pytest.raises(CostLimitError, match="max_nodes") as caught:
        parse(Form.of(G4), b"a" * 64, limits=CostLimits(max_nodes=10_000))
    assert caught.value.limit == "max_nodes"


def test_long_texts_need_no_stack():
    form = Form.of('root ::= "(" root ")" | ""')
    assert parse(form, b"(" * 3_000 + b")" * 3_000).trees() == 1
