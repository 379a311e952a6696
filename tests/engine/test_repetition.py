"""Repetitions with bounds far past the longest token: cut short, and still told apart.

Classes are made from chains that are cut to what a token can see. Two repetitions whose bounds
differ must not become equal by that, or what leads to them is merged. The truth is the naive
Earley recognizer, which unrolls every bound.
"""

from __future__ import annotations

from random import Random

import pytest
from oracles.congruence import sample_contexts, violations
from oracles.earley import Oracle
from oracles.model import Choice, Grammar, Literal, Ref, Repeat, Seq, to_ebnf
from strategies.profiles import CASES, LONG

tokfold = pytest.importorskip("tokfold")
pytest.importorskip("tokfold._core")

BOUNDS = [(5, 9), (0, 7), (0, 12), (6, 6), (4, None), (9, 9), (5, None), (12, 12), (0, 9), (1, 17)]
VOCABULARY = [b"a", b"b", b"c", b"x", b"xx", b"y", b"ax", b"bx", b";", b",", b"x,", b"(", b"x)"]


def classes_of(text: str, vocabulary: list[bytes], *, prune: bool = True) -> dict[bytes, int]:
    grammar, tokens = tokfold.Grammar.from_ebnf(text), tokfold.Vocabulary(vocabulary)
    classes = tokfold.compile_classes(grammar, tokens, prune=prune)
    return dict(zip(vocabulary, classes.class_of.tolist(), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        'root ::= "a" "x"{0,10} | "b" "x"{0,20}',
        'root ::= "a" "x"{0,300} | "b" "x"{0,20000}',
        'root ::= "a" "x"{10} | "b" "x"{20}',
        'root ::= "a" "x"{10,} | "b" "x"{20,}',
        'root ::= "a" ("x"{3}){3} | "b" ("x"{10}){10}',
        'root ::= "a" p | "b" q\np ::= "x"{30}\nq ::= "x"{31}',
    ],
)
def test_different_bounds_are_told_apart(text):
    classes = classes_of(text, [b"a", b"b", b"x", b"xx"])
    assert classes[b"a"] != classes[b"b"]


def test_equal_bounds_are_not():
    """Or every string field of a schema would be a network of its own."""
    text = 'root ::= "a" p | "b" q\np ::= [x-z]{0,2000}\nq ::= [x-z]{0,2000}'
    classes = classes_of(text, [b"a", b"b", b"x", b"y"])
    assert classes[b"a"] == classes[b"b"]
    assert classes[b"x"] == classes[b"y"]


def random_grammar(random: Random) -> Grammar:
    """Entries into repetitions of the same or of other bodies, with the same or other bounds."""
    bodies = [Literal(b"x"), Literal(b"xy"), Choice((Literal(b"x"), Literal(b"yx"))), Ref("s")]
    entries = []
    for name in "abc"[: random.randint(2, 3)]:
        part = Repeat(random.choice(bodies), *random.choice(BOUNDS))
        if random.random() < 0.3:
            part = Seq((part, Repeat(random.choice(bodies), *random.choice(BOUNDS))))
        if random.random() < 0.2:
            part = Repeat(Seq((part, Literal(b","))), *random.choice(BOUNDS[:3]))
        if random.random() < 0.4:
            part = Seq((part, Literal(random.choice([b";", b"x", b"y"]))))
        entries.append(Seq((Literal(name.encode()), part)))
    inner = Seq((Literal(b"("), random.choice([Ref("root"), Ref("s")]), Literal(b")")))
    return Grammar({"root": Choice(tuple(entries)), "s": Choice((Literal(b"x"), inner))})


@pytest.mark.parametrize("seed", range(400 if LONG else 25))
def test_no_context_tells_members_of_a_class_apart(seed):
    random = Random(seed)
    grammar, prune = random_grammar(random), random.random() < 0.5
    classes = classes_of(to_ebnf(grammar), VOCABULARY, prune=prune)
    oracle = Oracle(grammar)
    contexts = sample_contexts(oracle, VOCABULARY, random, count=60, prune=prune)
    found = violations(oracle, VOCABULARY, list(classes.values()), contexts, prune=prune)
    assert not found, to_ebnf(grammar)
    CASES["repetition: grammars with Earley"] += 1
