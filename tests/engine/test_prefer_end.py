"""Texts that begin nothing new near the end of their budget. Every bit: ``test_ending.py``."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import tokfold
from engine.test_ending import STOP, VOCABULARY, allowed_of, compiled_of
from strategies.profiles import CASES

RECORD = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "more": {"$ref": "#"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def record() -> tokfold.CompiledGrammar:
    return compiled_of(tokfold.Grammar.from_json_schema(RECORD, whitespace="compact"))


def test_lists_are_closed_and_get_no_more_items() -> None:
    matcher = tokfold.Matcher(compiled_of(), max_tokens=40, prefer_end=30)
    for _ in range(10):
        assert b"[" in allowed_of(matcher)
        assert matcher.accept_token(ord("["))
    assert matcher.tokens_left == matcher.prefer_end == 30
    assert sorted(allowed_of(matcher)) == [b"]", b"true"]
    assert not matcher.accept_token(ord("["))
    assert matcher.accept_token(ord("]"))
    assert allowed_of(matcher) == [b"]"]  # no comma
    why = matcher.explain(ord(",")).reason
    assert why.endswith("further from its end, which none of the last 30 tokens does: 29 are left")
    assert "cannot be" in matcher.explain(ord("x")).reason


def test_what_has_begun_goes_on() -> None:
    """A string may be as long as the budget; members that may be left out are."""
    matcher = tokfold.Matcher(record(), max_tokens=60, prefer_end=40)
    assert matcher.accept_bytes(b'{"name":"')
    for _ in range(25):
        assert matcher.accept_token(ord("a"))
    assert matcher.tokens_left == 35
    assert {b"a", b'"'} < set(allowed_of(matcher))
    assert b"\\" not in allowed_of(matcher)  # an escape takes two more
    for _ in range(35 - 3):
        assert matcher.accept_token(ord("b"))
    for token in (b'"', b"}", b"</s>"):
        assert allowed_of(matcher) == [token]
        assert matcher.accept_token(STOP if token == b"</s>" else token[0])


@pytest.mark.parametrize("seed", range(12))
def test_each_token_beside_the_fewest_after_it(seed: int) -> None:
    """Unique items included, by forks that are asked for their shortest end."""
    random = Random(seed)
    compiled = compiled_of() if seed % 3 == 0 else record()
    most = random.randint(20, 60)
    matcher = tokfold.Matcher(compiled, max_tokens=most, prefer_end=random.randint(1, most))
    while not matcher.is_terminated:
        found = allowed_of(matcher)
        needed, left = matcher.shortest().tokens, matcher.tokens_left
        tokens = []
        for token in range(len(VOCABULARY)):
            after = matcher.from_state(compiled, matcher.state)
            if not after.accept_token(token):
                continue
            more = 0 if after.is_terminated else after.shortest().tokens
            is_near = token == STOP or left > matcher.prefer_end or more <= needed
            if is_near and more + (token != STOP) < left:
                tokens.append(token)
        assert found == [VOCABULARY[token] for token in tokens]
        CASES["bits of masks that prefer the end"] += len(VOCABULARY)
        for token in set(range(0, len(VOCABULARY), 7)) - set(tokens):
            assert not matcher.accept_token(token)
        assert matcher.accept_token(random.choice(tokens))


def test_a_budget_goes_with_it() -> None:
    compiled = compiled_of()
    with pytest.raises(ValueError, match="pass that too"):
        tokfold.Matcher(compiled, prefer_end=3)
    with pytest.raises(ValueError, match="prefer_end must be 0 or more"):
        tokfold.Matcher(compiled, max_tokens=9, prefer_end=-3)
    matcher = tokfold.Matcher(compiled, max_tokens=9)
    assert matcher.prefer_end == 0
    assert matcher.accept_token(ord("["))
    again = tokfold.Matcher.from_state(compiled, matcher.state, max_tokens=9, prefer_end=9)
    assert again.fork().prefer_end == 9
    assert sorted(allowed_of(again)) == [b"]", b"true"]
    with pytest.raises(ValueError, match="pass that too"):
        tokfold.Matcher.from_state(compiled, matcher.state, prefer_end=9)


def test_processors_hand_it_on() -> None:
    from tokfold.llama_cpp import GrammarLogitsProcessor

    random = np.random.default_rng(3)
    with pytest.raises(ValueError, match="pass that too"):
        GrammarLogitsProcessor(compiled_of(), prefer_end=3)
    for max_tokens in range(2, 20):
        constrain = GrammarLogitsProcessor(
            compiled_of(), max_tokens=max_tokens, prefer_end=max_tokens
        )
        tokens = [7]
        while tokens[-1] != STOP:
            scores = random.standard_normal(len(VOCABULARY)).astype(np.single)
            tokens.append(int(constrain(np.array(tokens, dtype=np.intc), scores).argmax()))
        # "[" is as far from the end as the start is; a second one or a comma is further.
        assert VOCABULARY.decode(tokens[1:-1]) in {b"true", b"[]", b"[true]"}
