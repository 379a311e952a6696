"""Grammars that name stop tokens, beside the language by its definition.

The oracle reads a stop token as a letter (``y``, ``z``), by a grammar without tokens, and
asks for every short text whether it is one: a text ends with any stop token where it is one without
such a letter, and with the one whose letter it has as its last, and nowhere else.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import tokfold
from strategies.profiles import CASES, some

TOKENS = [b"a", b"b", b"ab", b"ba", b"<y>", b"<z>", b"</s>", b"aab"]
Y, Z, EOS = 4, 5, 6
STOPS = (Y, Z, EOS)
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=STOPS)
LONGEST = 7


def rule_text(rng: random.Random, depth: int) -> str:
    """A right-hand side, in which ``Y`` and ``Z`` stand for the stop tokens."""
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(['"a"', '"b"', '"ab"', '""', "Y", "Z", "Y", "x", "w"])
    parts = [rule_text(rng, depth - 1) for _ in range(rng.choice([2, 2, 3]))]
    if kind < 0.6:
        return "(" + " ".join(parts) + ")"
    if kind < 0.8:
        return "(" + " | ".join(parts) + ")"
    return f"({parts[0]}){rng.choice(['?', '*', '+', '{2}', '{1,2}'])}"


def some_grammar(rng: random.Random) -> str:
    rules = [f"root ::= {rule_text(rng, 3)}", f"x ::= {rule_text(rng, 2)}"]
    rules.append(f'w ::= "a" w "b" | {rule_text(rng, 1).replace("w", "x")}')
    return "\n".join(rules)


def ends_by_definition(text: str) -> dict[bytes, set[int]]:
    """The short texts, with the stop tokens that may end each."""
    letters = tokfold.Grammar.from_ebnf(text.replace("Y", '"y"').replace("Z", '"z"'))
    out: dict[bytes, set[int]] = {}
    try:
        tokfold.recognize(letters, b"")
    except tokfold.UnsupportedGrammarError as error:
        if "the language is empty" not in str(error):
            raise
        return out
    for length in range(LONGEST + 1):
        for text_of in itertools.product(b"ab", repeat=length):
            read = bytes(text_of)
            if tokfold.recognize(letters, read).accepted:
                out.setdefault(read, set()).update(STOPS)
            for letter, stop in ((b"y", Y), (b"z", Z)):
                if tokfold.recognize(letters, read + letter).accepted:
                    out.setdefault(read, set()).add(stop)
    return out


def allowed(matcher: tokfold.Matcher) -> set[int]:
    row = tokfold.allocate_bitmask(1, len(VOCABULARY))
    matcher.fill_bitmask(row)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(VOCABULARY)]
    return set(np.flatnonzero(bits).tolist())


def compiled_of(text: str, **options: object) -> tokfold.CompiledGrammar | None:
    named = text.replace("Y", f"Token({Y})").replace("Z", f"Token({Z})")
    try:
        return tokfold.compile(tokfold.Grammar.from_ebnf(named), VOCABULARY, **options)  # type: ignore[arg-type]
    except tokfold.UnsupportedGrammarError as error:
        if "the language is empty" not in str(error) and "in every text" not in str(error):
            raise
        return None


@pytest.mark.parametrize("part", range(4))
def test_masks_are_those_of_the_definition(part: int) -> None:
    rng = random.Random(9_100 + part)
    compared = 0
    for _ in range(some(90)):
        text = some_grammar(rng)
        if "Y" not in text and "Z" not in text:
            continue
        ends = ends_by_definition(text)
        compiled = compiled_of(text, classes=rng.choice(["never", "now"]))
        if compiled is None:
            assert not ends, text
            continue
        prefixes = {read[:at] for read in ends for at in range(min(len(read), 3) + 1)}
        for prefix in sorted(prefixes):
            matcher = tokfold.Matcher(compiled)
            assert matcher.accept_bytes(prefix), (text, prefix)
            expected = ends.get(prefix, set()).copy()
            for token in (0, 1, 2, 3, 7):
                after = prefix + TOKENS[token]
                if any(read.startswith(after) for read in ends):
                    expected.add(token)
            found = allowed(matcher)
            # Longer texts than were tried may follow.
            unknown = {t for t in found - expected if t not in STOPS}
            assert found - unknown == expected, (text, prefix)
            for token in unknown:
                assert needs_a_long_text(compiled, prefix + TOKENS[token]), (text, prefix, token)
            assert matcher.is_accepting == bool(ends.get(prefix)), (text, prefix)
            check_ends(matcher, ends.get(prefix, set()))
            compared += 1
    assert compared > 10
    CASES["grammars that name stop tokens: masks"] += compared


def needs_a_long_text(compiled: tokfold.CompiledGrammar, read: bytes) -> bool:
    """Whether the shortest text that begins so is longer than what the oracle tried."""
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(read)
    shortest = matcher.shortest()
    assert shortest.bytes is not None
    return len(read) + shortest.bytes > LONGEST


def check_ends(matcher: tokfold.Matcher, ends: set[int]) -> None:
    """Each stop token ends the text where it may, in a draft too, and nothing else does."""
    rows = tokfold.allocate_bitmask(len(STOPS) + 1, len(VOCABULARY))
    taken = matcher.fill_bitmask_draft(STOPS, rows, [-1] * len(STOPS))
    for stop, is_taken in zip(STOPS, taken, strict=True):
        assert bool(is_taken) == (stop in ends)
        fork = matcher.fork()
        assert fork.accept_token(stop) == (stop in ends)
        assert fork.is_terminated == (stop in ends)
        if stop in ends:
            again = tokfold.Matcher.from_state(matcher.compiled, fork.state)
            assert again.is_terminated
            fork.rollback(1)
        assert allowed(fork) == allowed(matcher)


def test_classes_allow_the_same() -> None:
    compiled = compiled_of('root ::= ("a" Y | "b" Z | "ab")*', classes="now")
    assert compiled is not None
    assert compiled.classes is not None
    for prefix in (b"", b"a", b"b", b"ab", b"aba"):
        matcher = tokfold.Matcher(compiled)
        if not matcher.accept_bytes(prefix):
            continue
        row = np.zeros((1, (len(compiled.classes) + 31) // 32), dtype=np.int32)
        matcher.fill_class_bitmask(row)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        classes = compiled.classes.class_of
        by_class = {t for t in range(len(TOKENS)) if classes[t] >= 0 and bits[classes[t]]}
        assert by_class == allowed(matcher), prefix


def test_the_last_token_of_a_budget() -> None:
    compiled = compiled_of('root ::= "a" ("b" "b" | Y)')
    assert compiled is not None
    with pytest.raises(tokfold.TokenBudgetError):
        tokfold.Matcher(compiled, max_tokens=1)
    matcher = tokfold.Matcher(compiled, max_tokens=2)
    assert allowed(matcher) == {0}
    assert matcher.accept_token(0)
    assert allowed(matcher) == {Y}
    assert list(matcher.closing_tokens()) == []
    assert matcher.shortest().tokens == 0


def test_what_ends_nothing_is_refused() -> None:
    with pytest.raises(tokfold.UnsupportedGrammarError, match="has to follow it in every text"):
        tokfold.compile(tokfold.Grammar.from_ebnf(f'root ::= Token({Y}) "a"'), VOCABULARY)
    dispatch = f'root ::= TokenTagDispatch(({Y}, x))\nx ::= "a"'
    with pytest.raises(tokfold.UnsupportedGrammarError, match="is a stop token, which ends"):
        tokfold.compile(tokfold.Grammar.from_ebnf(dispatch), VOCABULARY)


def test_a_matcher_with_other_stop_tokens() -> None:
    compiled = compiled_of('root ::= "a" Y')
    assert compiled is not None
    with pytest.raises(tokfold.VocabularyError, match=f"the stop token {Y}, which is none of"):
        tokfold.Matcher(compiled, stop_token_ids=[EOS])
    with pytest.raises(tokfold.VocabularyError, match=f"the stop token {Y}, which is none of"):
        tokfold.Matcher(compiled, stop_token_ids=[])
    by_itself = tokfold.Matcher(compiled, stop_token_ids=[], terminate_without_stop_token=True)
    assert by_itself.accept_token(0)
    assert by_itself.is_terminated
    matcher = tokfold.Matcher(compiled, stop_token_ids=[EOS, Y])
    assert matcher.accept_token(0)
    assert allowed(matcher) == {Y}
    assert f"one of [{Y}]" in matcher.explain(EOS).reason


def test_tags_in_free_text() -> None:
    compiled = compiled_of('root ::= TagDispatch(("ab", x))\nx ::= "b" Y | "a"')
    assert compiled is not None
    free = {0, 1, 2, 3, 7}
    for read, expected in (
        (b"", free | {*STOPS}),
        (b"ab", {0, 1, 2, 7}),
        (b"abb", {Y}),
        (b"aba", free | {*STOPS}),
        (b"abaab", {0, 1, 2, 7}),
    ):
        matcher = tokfold.Matcher(compiled)
        assert matcher.accept_bytes(read)
        assert allowed(matcher) == expected, read


def test_many_rules() -> None:
    """Of a chain of rules each has a text up to the stop token at its end."""
    count = 5_000
    rules = ["root ::= r0", *(f'r{i} ::= "a" r{i + 1} | "b"' for i in range(count))]
    compiled = compiled_of("\n".join([*rules, f'r{count} ::= "b" Y']))
    assert compiled is not None
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b"a" * count)
    assert allowed(matcher) == {1}
    assert matcher.accept_token(1)
    assert allowed(matcher) == {Y}
    matcher.rollback(2)
    assert matcher.accept_bytes(b"a" * 7 + b"b")
    assert allowed(matcher) == {*STOPS}
