"""Limits of reading, folding and recognition: named when reached, and never a wrong answer."""

from __future__ import annotations

import pytest
from classes.class_samples import BYTES, NESTED, words
from tokfold import Grammar, LimitExceededError, Limits, Vocabulary, compile_classes, recognize

TAGS = " | ".join(f'"<{c}>" root "</{c}>"' for c in "abcdefghijklmnop")


@pytest.mark.parametrize(
    ("text", "limit", "value"),
    [
        ('root ::= "abc"', "max_grammar_bytes", 13),
        ('root ::= a\na ::= "b"', "max_rules", 1),
        ('root ::= (("a") | "b")', "max_nesting", 1),
    ],
)
def test_limits_of_reading(text, limit, value):
    assert Grammar.from_ebnf(text, limits=Limits(**{limit: value + 1})) is not None
    with pytest.raises(LimitExceededError, match=f"limit {limit} = {value} reached") as caught:
        Grammar.from_ebnf(text, limits=Limits(**{limit: value}))
    assert (caught.value.limit, caught.value.value) == (limit, value)


@pytest.mark.parametrize(
    ("text", "limit", "value"),
    [
        ('root ::= "abcdefghijkl"', "max_network_states", 5),
        # once cut short in silence
        ('root ::= "a"{200}', "max_network_states", 100),
        ('root ::= ("ab" | "c"){3,100}', "max_network_states", 50),
        ('root ::= "abcdefghijkl"', "max_network_edges", 5),
        ('root ::= "abcdefghijkl"', "max_network_work", 20),
        (f'root ::= {TAGS} | "z"', "max_network_edges", 90),
    ],
)
def test_limits_of_folding(text, limit, value):
    grammar = Grammar.from_ebnf(text)
    vocabulary = Vocabulary([*BYTES, b"a" * 300])
    assert compile_classes(grammar, vocabulary) is not None
    with pytest.raises(LimitExceededError, match=f"limit {limit} = {value} reached") as caught:
        compile_classes(grammar, vocabulary, Limits(**{limit: value}))
    assert (caught.value.limit, caught.value.value) == (limit, value)


def test_limits_of_recognition():
    grammar = Grammar.from_ebnf('root ::= "(" root ")" | "a"')
    for text, limits in (("(" * 5_000, Limits()), ("(" * 900, Limits(max_automaton_bytes=1_000))):
        with pytest.raises(LimitExceededError, match=r"raise|nested") as caught:
            recognize(grammar, text, limits)
        assert caught.value.limit in Limits().as_fields()
        assert caught.value.value > 0


@pytest.mark.parametrize(
    "limits",
    [
        Limits(max_token_work=1),
        Limits(max_token_work=20),
        Limits(max_total_work=1),
        Limits(max_total_work=2_000),
        Limits(max_token_work=50, max_total_work=500),
    ],
)
def test_work_that_is_not_done_folds_less_but_never_wrong(limits):
    """Whoever is together under a small budget is together without one; the dead are the dead."""
    grammar = Grammar.from_ebnf('root ::= "a" root "b" | root root | "c" | "ab"+ | "a"')
    tokens = words(3_000)
    tokens += tokens[:50]
    full = compile_classes(grammar, Vocabulary(tokens))
    less = compile_classes(grammar, Vocabulary(tokens), limits)
    assert less.stats["over_budget_tokens"] > 0
    assert len(less) > len(full)
    for index in range(len(less)):
        assert len(set(full.class_of[less.members(index)].tolist())) == 1
    assert (full.class_of[less.class_of == -1] == -1).all()
    assert less.class_of[:50].tolist() == less.class_of[-50:].tolist(), "doubles stay together"


def test_limits_that_are_none():
    for value, error in ((0, ValueError), (-1, ValueError), (2**63, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="max_rules must be"):
            Limits(max_rules=value)
    with pytest.raises(TypeError, match="not bool"):
        Limits(max_rules=True)
    with pytest.raises(AttributeError):
        Limits().max_rules = 5


def test_the_largest_limits_are_taken(nested, vocabulary, classes):
    most = Limits(**dict.fromkeys(Limits().as_fields(), 2**63 - 1))
    assert Grammar.from_ebnf(NESTED, limits=most) == nested
    assert compile_classes(nested, vocabulary, most) == classes
    assert recognize(nested, "(a)", most).accepted
