"""Forms as plain productions, and κ of definition 10."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.earley import Oracle
from oracles.model import to_ebnf
from strategies.grammars import grammars
from strategies.profiles import CASES, examples
from tokfold import Grammar
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.laboratory.forest import (
    CostLimitError,
    CostLimits,
    Meter,
    Productions,
    TextRefusedError,
    kappa,
    sizes,
)
from tokfold.laboratory.form import Alt, Form, FormRule, Literal, Ref, Repeat, Seq

G1 = 'root ::= "a" root "b" | ""'
G2 = 'root ::= "a" A "b" | ""\nA ::= "a" A "b" | ""'


def plain(text: str) -> list[str]:
    return str(Productions.of(Form.of(text))).splitlines()


def test_kappa_of_the_papers_pair():
    """Lemma 3."""
    assert kappa(Form.of(G1)) == 8
    assert kappa(Form.of(G2)) == 15


def test_kappa_counts_the_states_of_definition_5():
    """Lemma 2, on the states written out."""
    productions = Productions.of(Form.of('root ::= ("a" | root [b-d]){2,} root? | "xyz"'))
    states = {"start"}
    for name in range(len(productions.names)):
        states |= {("in", name), ("out", name)}
    for number, production in enumerate(productions.productions):
        states |= {(number, dot) for dot in range(len(production.rhs) + 1)}
    assert kappa(productions) == len(states)


def test_sizes_say_what_a_form_is_made_of():
    found = sizes(Form.of('root ::= "a"* [a] unused\nunused ::= "a"\nnever ::= ""'))
    assert found.document() == {
        "kappa": 1 + 2 * 4 + 6 + 5,
        "nonterminals": 4,
        "rules": 3,
        "helpers": 1,
        "productions": 5,
        "symbols": 6,
        "terminals": 1,
    }


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('root ::= "ab" | "é"', ["root -> 'a' 'b'", "root -> 'é'"]),
        ('root ::= "" | "a" ""', ["root -> ε", "root -> 'a'"]),
        ("root ::= [a-c] [a]", ["root -> [a-c] 'a'"]),
        ('root ::= "x"*', ["root -> root~1", "root~1 -> ε", "root~1 -> root~1 'x'"]),
        ('root ::= "x"+', ["root -> root~1", "root~1 -> 'x'", "root~1 -> root~1 'x'"]),
        ('root ::= "x"?', ["root -> root~1", "root~1 -> ε", "root~1 -> 'x'"]),
        ('root ::= "x"{2}', ["root -> root~1", "root~1 -> 'x' 'x'"]),
        ('root ::= "x"{2,}', ["root -> root~1", "root~1 -> 'x' 'x'", "root~1 -> root~1 'x'"]),
        (
            'root ::= "x"{1,3}',
            [
                "root -> root~1",
                "root~1 -> root~2",
                "root~1 -> root~3",
                "root~1 -> root~4",
                "root~2 -> 'x'",
                "root~3 -> root~2 'x'",
                "root~4 -> root~3 'x'",
            ],
        ),
        (
            'root ::= "a" ("b" | "c") | ("b" | "c")',
            ["root -> 'a' root~1", "root -> root~1", "root~1 -> 'b'", "root~1 -> 'c'"],
        ),
        (
            'root ::= "x"* y\ny ::= "x"* "y"',
            ["root -> root~1 y", "y -> root~1 'y'", "root~1 -> ε", "root~1 -> root~1 'x'"],
        ),
        ('root ::= "a" | [a] | "a"', ["root -> 'a'"]),
    ],
)
def test_the_convention(text, lines):
    assert plain(text) == lines


@examples(150)
@given(grammars(max_rules=3), st.data())
def test_productions_have_the_language_of_the_form(grammar, data):
    """Byte by byte, against a recognizer of a grammar over bytes that was lowered elsewhere."""
    oracle = Oracle(grammar)
    meter = Meter(Form.of(to_ebnf(grammar)), live=False)
    text = b""
    assert meter.accepting == oracle.accepts(b"")
    for _ in range(6):
        state = oracle.pruned.initial.feed(text)
        allowed = state.next_bytes() if oracle.productive else []
        assert {byte for byte in range(256) if _takes(meter, byte)} == set(allowed)
        if not allowed:
            break
        byte = data.draw(st.sampled_from(allowed))
        meter.step(byte)
        text += bytes((byte,))
        assert meter.accepting == oracle.accepts(text)
        CASES["beginnings of texts against their bytes lowered"] += 1


def _takes(meter: Meter, byte: int) -> bool:
    pending, position, size = meter._pending, meter.earley.position, len(meter._text)
    try:
        meter.step(byte)
    except TextRefusedError:
        return False
    meter._pending = pending
    meter.earley.truncate(position)
    del meter._text[size:]
    return True


@pytest.mark.parametrize(
    ("text", "construct", "place"),
    [
        (
            'root ::= "a"\n  | TagDispatch(("<f>", call))\ncall ::= "x"',
            "TagDispatch",
            (2, 5),
        ),
        ('root ::= x "b"\nx ::= "a" (="b")', "a lookahead (= ...)", (2, 1)),
        ('root ::= x\nx[lazy] ::= "a"', "options in brackets", (2, 1)),
    ],
)
def test_what_is_no_production_is_refused_by_name(text, construct, place):
    with pytest.raises(UnsupportedGrammarError, match="no production") as caught:
        kappa(Form.of(text))
    assert caught.value.construct == construct
    assert (caught.value.line, caught.value.column) == place


def test_a_lookahead_that_is_implied_changes_nothing():
    form = Form.of(Grammar.from_ebnf('root ::= x "b"\nx ::= "a" (="b")', lookahead="implied"))
    assert kappa(form) == 1 + 2 * 2 + 3 + 2


def test_counts_written_out_are_limited():
    form = Form.of('root ::= (("ab"{900}){900}){0,900}')
    assert sizes(form).symbols == 1 + 2 * 900 + 900 + 901 + 2 * 900
    with pytest.raises(CostLimitError, match="max_symbols") as caught:
        kappa(form, CostLimits(max_symbols=2_000))
    assert isinstance(caught.value, LimitExceededError)
    assert (caught.value.limit, caught.value.value) == ("max_symbols", 2_000)
    with pytest.raises(CostLimitError):
        kappa(Form.of('root ::= "ab"{0,4000000}'))


def test_shared_sequences_do_not_explode():
    body = Literal(b"a")
    for _ in range(60):
        body = Seq((body, body))
    form = Form.of('root ::= "a"').with_rules([FormRule("root", body)])
    with pytest.raises(CostLimitError, match="max_symbols"):
        kappa(form)


def test_deep_nesting_needs_no_stack():
    body = Literal(b"a")
    for number in range(10_000):
        body = Alt((body, Ref("root"))) if number % 2 else Repeat(body, 0, 1)
    form = Form.of('root ::= "a"').with_rules([FormRule("root", body)])
    assert sizes(form).helpers == 9_999


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (True, TypeError), (1.5, TypeError)])
def test_limits_are_positive_integers(value, error):
    with pytest.raises(error, match="max_items"):
        CostLimits(max_items=value)
