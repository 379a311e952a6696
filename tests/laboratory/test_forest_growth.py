"""Growth classes with their witnesses."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from oracles.earley import Oracle
from oracles.model import to_ebnf
from strategies.grammars import grammars
from strategies.profiles import CASES, examples
from tokfold.laboratory.forest import Earley, Productions
from tokfold.laboratory.forest.growth import GROWING, Work, fit, growth, series
from tokfold.laboratory.forest.pumps import pumps
from tokfold.laboratory.forest.slots import Slots
from tokfold.laboratory.form import Form

PACKED, ITEMS, WORK, LIVE = "new_packed_nodes", "new_items", "completer_work", "live_items"

C, L, Q = "constant", "linear", "quadratic"
CLASSES = [
    # grammar, then packed nodes and completer work, without Leo and with
    ('root ::= "a" root | "b" root | ""', (L, C), (L, C)),  # G3
    ('root ::= S | ""\nS ::= S S | "a" | "b"', (Q, Q), (Q, Q)),  # G4
    ('root ::= root "a" | "b"', (C, C), (C, C)),
    ('root ::= "a" root "b" | ""', (C, C), (C, C)),
    ('root ::= "a"* "b"', (C, C), (C, C)),
    ('root ::= "a" root "a" | "b" root "b" | ""', (L, L), (L, L)),
    ('root ::= root "+" root | [a-z]+', (Q, Q), (Q, Q)),
    ("root ::= root root root | [a-z]", (Q, Q), (Q, Q)),
    ('root ::= "i" root | "i" root "e" root | "x"', (Q, Q), (Q, Q)),
    # Each closing letter closes one of many, and only while they are closed.
    ('root ::= "a" root "b" | "a" root "bb" | "x"', (L, L), (L, L)),
    # Two runs of white space meet, in rules that call the same rule.
    ('root ::= ws "a" ws | root ws "b"\nws ::= [ ]*', (L, L), (L, L)),
    ('root ::= E root "a" | "b"\nE ::= ""', (C, C), (C, C)),  # hidden left recursion
    # Leo's chains end where something may follow, even if nothing does.
    ('root ::= "a" root " "? | "b"', (L, L), (L, L)),
    ('root ::= "a" root | "b"', (L, C), (L, C)),  # all at once, by the last letter
    ('root ::= e\ne ::= t "+" e | t\nt ::= "(" e ")" | "x"', (L, C), (L, C)),
]


@pytest.mark.parametrize(("grammar", "packed", "work"), CLASSES)
def test_growth_classes(grammar, packed, work):
    report = growth(Form.of(grammar))
    assert not report.finite
    assert report.untried == 0
    for counter, names in ((PACKED, packed), (WORK, work)):
        assert (report.classes[counter, False].name, report.classes[counter, True].name) == names
    assert report.ambiguity_cost is report.classes[PACKED, True]


def test_theorem_2_with_witnesses():
    """G4 grows by t(t-1)/2 splits and t + 1 other packed nodes at step t; G3 by a constant."""
    right = growth(Form.of('root ::= "a" root | "b" root | ""')).ambiguity_cost
    assert (right.degree, right.fit.leading) == (0, 3)
    concatenated = growth(Form.of('root ::= S | ""\nS ::= S S | "a" | "b"')).ambiguity_cost
    assert (concatenated.degree, concatenated.fit.leading) == (2, Fraction(1, 2))
    assert set(concatenated.text(9)) == {"a"}
    lengths = [len(concatenated.text(k)) for k in range(1, 25)]
    assert list(concatenated.values) == [t * (t - 1) // 2 + 2 for t in lengths]


def test_live_items_apart_from_the_work():
    """What must be kept grows with the nesting, though each step costs the same."""
    report = growth(Form.of('root ::= "(" root ")" | ""'))
    assert report.classes[LIVE, True].name == "linear"
    assert report.classes[WORK, True].name == "constant"
    assert report.classes[LIVE, True].text(2) == "(("


def test_ambiguity_apart_from_the_forest():
    """Palindromes are guessed at each position, but read in one way."""
    report = growth(Form.of('root ::= "a" root "a" | "b" root "b" | ""'))
    assert report.classes[PACKED, True].name == "linear"
    assert report.classes["surplus", True].name == "constant"
    assert set(report.classes["surplus", True].values) == {0}
    assert report.classes[WORK, True].fit.period == 2


def test_the_values_are_those_of_the_witness():
    form = Form.of('root ::= "a" root "b" | "a" root "bb" | "x"')
    report = growth(form)
    slots = Slots(Productions.of(form))
    for (counter, leo), found in report.classes.items():
        for times in (1, 5, 24):
            earley = Earley(slots, leo=leo)
            text = found.text(times)
            assert earley.read(map(ord, text))
            if counter != "live_items":
                begin = len(found.witness.head)
                if found.side == "closing":
                    begin += len(found.witness.opening) * times
                else:
                    begin += len(found.witness.opening) * (times - 1)
                values = [getattr(c, counter) for c in earley.counters[begin + 1 :]]
                assert max(values) == found.values[times - 1], (counter, leo)


@pytest.mark.parametrize(
    "grammar", ['root ::= "a"{0,9} "b"?', 'root ::= root | "a"', 'root ::= "a" root']
)
def test_a_finite_language_is_constant_without_witness(grammar):
    report = growth(Form.of(grammar))
    assert (report.finite, report.tried, report.untried) == (True, 0, 0)
    assert {g.name for g in report.classes.values()} == {"constant"}
    assert {g.text(7) for g in report.classes.values()} == {""}


def test_what_is_too_long_to_be_pumped_is_unsettled():
    report = growth(Form.of('root ::= "a"{300} root "b"{300} | "c"'))
    assert not report.finite
    assert report.untried == 1
    assert report.ambiguity_cost.name == "unsettled"
    assert report.ambiguity_cost.degree is None


def test_no_more_work_than_asked_for():
    form = Form.of('root ::= root "+" root | root "*" root | [a-z]+')
    every = growth(form)
    assert every.untried == 0
    none = growth(form, max_work=1)
    assert (none.tried, none.untried) == (0, every.tried)
    assert {found.name for found in none.classes.values()} == {"unsettled"}
    some = growth(form, max_work=20_000)
    assert some.tried + some.untried == every.tried
    assert 0 < some.tried < every.tried
    with pytest.raises(ValueError, match="max_work"):
        growth(form, max_work=0)


def test_large_grammars_are_stopped_by_count():
    rules = "".join(f'r{i} ::= r{i + 1} | r{i + 1} "+" r{i}\n' for i in range(1_000))
    report = growth(Form.of(f'root ::= r0\n{rules}r1000 ::= "x"'), max_work=200_000)
    assert report.untried > 0
    assert not report.finite


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ([7] * 24, (0, 1, 7)),
        ([3 * k + 1 for k in range(24)], (1, 1, 3)),
        ([k * (k - 1) // 2 for k in range(24)], (2, 1, Fraction(1, 2))),
        ([k**3 for k in range(24)], (3, 1, 1)),
        ([k // 2 for k in range(24)], (1, 2, Fraction(1, 2))),
        ([k * k // 3 for k in range(24)], (2, 3, Fraction(1, 3))),
        ([9, 1, 4, 2, 2, 8] + [k for k in range(18)], (1, 1, 1)),  # before it settles
    ],
)
def test_fit_finds_the_polynomial(values, want):
    found = fit(values)
    assert (found.degree, found.period, found.leading) == want


@pytest.mark.parametrize(
    "values",
    [[2**k for k in range(24)], [k.bit_count() for k in range(24)], [k**4 for k in range(24)]],
)
def test_fit_refuses_what_is_no_polynomial(values):
    assert fit(values) is None


@examples(60)
@given(grammars(max_rules=4, unicode=0.2))
def test_pumped_texts_are_in_the_language(grammar):
    oracle = Oracle(grammar)
    families, _ = pumps(Productions.of(Form.of(to_ebnf(grammar))))
    longest = sorted(families, key=lambda pump: pump.size)[-6:]
    for pump in families[:4] + longest:
        for times in (0, 1, 2):
            text = pump.text(times).encode("utf-8", "surrogatepass")
            assert oracle.accepts(text), pump
            CASES["pumped texts against an oracle"] += 1


@examples(12)
@given(grammars(max_rules=3, unicode=0))
def test_no_counter_is_worse_than_quadratic(grammar):
    """And no Earley set is worse than linear; chains make nothing worse."""
    report = growth(Form.of(to_ebnf(grammar)), max_work=60_000)
    for counter in GROWING:
        plain, leo = report.classes[counter, False], report.classes[counter, True]
        for found in (plain, leo):
            assert found.degree is None or found.degree <= 1 + (counter != ITEMS)
    assert report.finite == (not report.tried and not report.untried)


def test_heads_and_tails_stand_in_order():
    form = Form.of('root ::= "<" x "]"\nx ::= "(" y ")"\ny ::= "[" z ">"\nz ::= "a" z "b" | "c"')
    texts = {pump.text(1) for pump in pumps(Productions.of(form))[0]}
    assert "<([acb>)]" in texts


def test_a_series_of_both_sides():
    slots = Slots(Productions.of(Form.of('root ::= "a" root "b" | "c"')))
    pump = next(p for p in pumps(slots.grammar)[0] if p.closing == "b")
    assert pump.text(2) == "aacbb"
    work = Work(1_000)
    found = series(slots, pump, 3, leo=False, work=work)
    assert found["live_items", "opening"] == [3, 4, 5]
    assert found["new_items", "closing"] == [2, 2, 2]
    assert series(slots, pump, 3, leo=False, work=Work(1_000 - work.left)) == found
    assert series(slots, pump, 3, leo=False, work=Work(999 - work.left)) is None
