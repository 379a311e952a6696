"""Lengths beside patterns: masks against derivatives of the pattern, bit by bit."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pytest
import tokfold
from strategies.engine import compiled_with

ALPHABET = "abc"
NOTHING, EMPTY = ("nothing",), ("empty",)

# A regular expression is a tuple: its kind and its parts.
Expression: TypeAlias = tuple[Any, ...]


def both(left: Expression, right: Expression) -> Expression:
    if NOTHING in (left, right):
        return NOTHING
    if left == EMPTY:
        return right
    return left if right == EMPTY else ("both", left, right)


def either(*parts: Expression) -> Expression:
    flat: set[Expression] = set()
    for part in parts:
        flat.update(part[1] if part[0] == "either" else [part])
    flat.discard(NOTHING)
    if not flat:
        return NOTHING
    return flat.pop() if len(flat) == 1 else ("either", frozenset(flat))


@cache
def has_empty(expression: Expression) -> bool:
    match expression:
        case ("empty",) | ("star", _):
            return True
        case ("both", left, right):
            return has_empty(left) and has_empty(right)
        case ("either", parts):
            return any(has_empty(part) for part in parts)
    return False


@cache
def after(expression: Expression, character: str) -> Expression:
    match expression:
        case ("set", characters):
            return EMPTY if character in characters else NOTHING
        case ("star", body):
            return both(after(body, character), expression)
        case ("both", left, right):
            read = both(after(left, character), right)
            return either(read, after(right, character)) if has_empty(left) else read
        case ("either", parts):
            return either(*(after(part, character) for part in parts))
    return NOTHING


@cache
def rests(expression: Expression, length: int) -> frozenset[Expression]:
    """What is left of the expression after any text of a length."""
    if length == 0:
        return frozenset([expression] if expression != NOTHING else [])
    before = rests(expression, length - 1)
    return frozenset(after(rest, c) for rest in before for c in ALPHABET) - {NOTHING}


@cache
def can_end(expression: Expression, least: int, most: int) -> bool:
    """Whether it has a text of so many characters."""
    lengths = range(max(least, 0), most + 1)
    return any(has_empty(rest) for length in lengths for rest in rests(expression, length))


def random_expression(rng: random.Random, depth: int) -> tuple[Expression, str]:
    """An expression and the pattern that says the same."""
    kind = rng.choice(["set", "both", "either", "star", "star"]) if depth else "set"
    if kind == "set":
        characters = "".join(sorted(rng.sample(ALPHABET, rng.randint(1, 3))))
        return ("set", characters), f"[{characters}]"
    one, pattern = random_expression(rng, depth - 1)
    if kind == "star":
        return ("star", one), f"(?:{pattern})*"
    other, second = random_expression(rng, depth - 1)
    if kind == "both":
        return both(one, other), pattern + second
    return either(one, other), f"(?:{pattern}|{second})"


# Each token as characters of the text; a quotation mark opens or ends the string.
TOKENS = ['"', "a", "b", "c", "aa", "ab", "ba", "cab", "abc", 'a"', 'ab"', '"a', '"ab', "aaaa"]
TOKENS += ["a" * 9, "ab" * 6, "abc" * 5, "c" * 3 + '"', '""', '"abca"']
SPELLED = [*TOKENS, "\\u0061", "\\u0062b"]
VOCABULARY = tokfold.Vocabulary(
    [*(token.encode() for token in SPELLED), b"</s>"], stop_token_ids=[len(SPELLED)]
)
READ = [*TOKENS, "a", "bb"]


class Text:
    """What the oracle knows of a text on its way."""

    def __init__(self, expression: Expression, least: int, most: int) -> None:
        self.bounds = (least, most)
        self.rest = expression
        self.count = 0
        self.place = "before"

    def copy(self) -> Text:
        out = Text(self.rest, *self.bounds)
        out.count, out.place = self.count, self.place
        return out

    def read(self, token: str) -> bool:
        least, most = self.bounds
        for character in token:
            if character == '"':
                is_end = has_empty(self.rest) and least <= self.count <= most
                if self.place == "before":
                    self.place = "inside"
                elif self.place == "inside" and is_end:
                    self.place = "behind"
                else:
                    return False
            elif self.place == "inside":
                self.rest = after(self.rest, character)
                self.count += 1
            else:
                return False
        return self.place == "behind" or can_end(self.rest, least - self.count, most - self.count)


def allowed(matcher: tokfold.Matcher) -> list[bool]:
    bits = np.zeros((len(VOCABULARY) + 31) // 32, dtype=np.int32)
    matcher.fill_bitmask(bits)
    words = bits.view(np.uint32)
    return [bool(words[i // 32] >> (i % 32) & 1) for i in range(len(SPELLED) + 1)]


def expected(text: Text) -> list[bool]:
    out = []
    for spelled, token in zip(SPELLED, READ, strict=True):
        # A quotation mark opens no second string; escapes stand inside.
        is_inside = text.place == "inside" or not spelled.startswith("\\")
        out.append(is_inside and text.copy().read(token))
    return [*out, text.place == "behind"]


def walk(compiled: tokfold.CompiledGrammar, text: Text, rng: random.Random) -> int:
    matcher = tokfold.Matcher(compiled)
    # To where the bounds are near: character by character, in ways that can end.
    assert matcher.accept_token(0)
    assert text.read('"')
    least, most = text.bounds
    goal = rng.choice([least - 12, least - 3, most - 12, most - 4, most - 1, rng.randint(0, most)])
    while text.count < goal:
        ways = [c for c in ALPHABET if text.copy().read(c)]
        if not ways:
            break
        character = rng.choice(ways)
        text.read(character)
        assert matcher.accept_bytes(character.encode()), (text.count, character)
    compared = 0
    for _ in range(12):
        truth = expected(text)
        assert allowed(matcher) == truth, (text.rest, text.count, text.bounds)
        compared += 1
        for token in range(len(SPELLED)):
            fork = matcher.fork()
            assert fork.accept_token(token) == truth[token]
        saved = tokfold.Matcher.from_state(compiled, matcher.state)
        assert allowed(saved) == truth
        ways = [token for token in range(len(SPELLED)) if truth[token]]
        if not ways:
            break
        token = rng.choice(ways)
        # There and back again.
        assert matcher.accept_token(token)
        matcher.rollback(1)
        assert allowed(matcher) == truth
        assert matcher.accept_token(token)
        assert text.read(READ[token])
    assert matcher.is_accepting == (text.place == "behind")
    return compared


ENGINES = [("stack", "never"), ("chart", "never"), ("auto", "auto"), ("stack", "now")]


@pytest.mark.parametrize(("engine", "classes"), ENGINES)
@pytest.mark.parametrize("seed", range(40))
def test_masks_are_those_of_derivatives(seed: int, engine: str, classes: str) -> None:
    rng = random.Random(seed)
    compared = 0
    while not compared:
        expression, pattern = random_expression(rng, 4)
        least = rng.choice([0, 0, 1, 2, 5, 40, rng.randint(0, 300)])
        most = least + rng.choice([0, 0, 1, 2, 5, 60, 300])
        if most < 60 or not can_end(expression, least, most):
            continue
        schema: dict[str, object] = {"type": "string", "pattern": f"^{pattern}$"}
        schema |= {"minLength": least, "maxLength": most}
        compiled = compiled_with(
            tokfold.Grammar.from_json_schema(schema, escapes="any"),
            VOCABULARY,
            engine=engine,
            classes=classes,
        )
        for _ in range(3):
            compared += walk(compiled, Text(expression, least, most), rng)


def has(schema: dict[str, object], text: str) -> bool:
    grammar = tokfold.Grammar.from_json_schema(schema)
    compiled = tokfold.compile(
        grammar, VOCABULARY, options=tokfold.CompileOptions(check_tokens=False)
    )
    matcher = tokfold.Matcher(compiled)
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting


@pytest.mark.parametrize(("length", "is_there"), [(1, False), (2, True), (300, True), (301, False)])
def test_names_are_counted(length: int, is_there: bool) -> None:
    names = {"pattern": "^a+b*$", "minLength": 2, "maxLength": 300}
    schema: dict[str, object] = {"type": "object", "propertyNames": names}
    assert has(schema, f'{{"{"a" * length}": 1}}') == is_there
    assert not has(schema, '{"ba": 1}')


def test_several_patterns_share_a_count() -> None:
    patterns = [{"pattern": "a"}, {"pattern": "b"}, {"not": {"pattern": "cc"}}]
    schema = {"type": "string", "allOf": patterns, "minLength": 4, "maxLength": 5_000}
    assert has(schema, f'"{"ab" * 2_500}"')
    for text in ["ab" * 2_500 + "a", "aaaaa", "abcc", "ab"]:
        assert not has(schema, f'"{text}"')


def test_bounds_never_add_up_to_a_refusal() -> None:
    strings = [{"type": "string", "pattern": "^(ab?)*$", "maxLength": 2**30 + i} for i in range(20)]
    integers = {"type": "integer"}
    arrays = [{"type": "array", "items": integers, "maxItems": 2**30 + i} for i in range(20)]
    properties = {f"p{i}": schema for i, schema in enumerate(strings + arrays)}
    schema = {"type": "object", "properties": properties, "maxProperties": 2**31 - 1}
    assert has(schema, '{"p0": "abab", "p23": [1, 2]}')
    assert not has(schema, '{"p0": "abbab"}')


@pytest.mark.parametrize("pattern", ["", "^(ab)*$"])
def test_a_length_that_no_text_has_is_never_reached(pattern: str) -> None:
    schema = {"type": "string", "pattern": pattern, "minLength": 2**40}
    compiled = tokfold.compile(tokfold.Grammar.from_json_schema(schema), VOCABULARY)
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b'"abab')
    assert not matcher.accept_bytes(b'"')


def refused_at(matcher: tokfold.Matcher, times: int = 2**20) -> int:
    """The limit at which a matcher refuses letters, a thousand at a time."""

    def read() -> None:
        for _ in range(times):
            assert matcher.accept_bytes(b"a" * 1000)

    with pytest.raises(tokfold.LimitExceededError) as caught:
        read()
    assert caught.value.limit == "max_text_bytes"
    return caught.value.value


def test_more_counts_than_numbers_are_no_refusal_but_of_long_texts():
    """Where bounds need more states than there are, a longer text is refused, restored or not."""
    members = {
        f"p{number}": {"type": "string", "format": "uri", "maxLength": (1 << 30) + number}
        for number in range(300)
    }
    grammar = tokfold.Grammar.from_json_schema({"type": "object", "properties": members})
    vocabulary = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])
    compiled = tokfold.compile(grammar, vocabulary, classes="never")
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b'{"p7": "http://a/')
    most = refused_at(matcher)
    read = len(matcher.text)
    assert most - 1000 < read <= most < 1 << 20
    # What was refused changed nothing, and a state that is restored knows how far it is.
    assert matcher.accept_bytes(b"a")
    restored = tokfold.Matcher.from_state(compiled, matcher.state)
    assert refused_at(restored, times=1) == most
    assert restored.accept_bytes(b'"}')
    assert restored.is_accepting
