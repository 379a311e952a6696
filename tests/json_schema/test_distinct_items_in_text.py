"""`uniqueItems` behind free text: a text may be several arrays, which begin at different places.

The oracle keeps a matcher of the array alone for each place at which one may begin, and reads the
text as free text beside them. A text is alive where one of these is, and a token may come where one
of them allows it.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import tokfold
from strategies.profiles import LONG

TOKENS = [
    "[",
    "]",
    ",",
    '"',
    "a",
    "b",
    "1",
    "2",
    " ",
    "[[",
    "]]",
    '["',
    '"]',
    '","',
    '"a"',
    '["a"',
    "],[",
]
TOKENS += [
    '"a","a"',
    "[1",
    "[1,",
    "[1,1",
    "1,1",
    ",1",
    "1]",
    "[]",
    "[],",
    "[],[]",
    "{",
    "}",
    ":",
    '{"a":',
]
TOKENS += ['"[', '"[1,', '"[1,1', '["[', '"["', '","[', "[[1,1", "[[1],[1", "]x", "x["]
VOCABULARY = tokfold.Vocabulary(
    [text.encode() for text in TOKENS] + [b""], stop_token_ids=[len(TOKENS)]
)
OPTIONS: dict[str, Any] = {"whitespace": "compact", "escapes": "plain"}

ITEMS: dict[str, Any] = {
    "strings": {"type": "string"},
    "numbers": {"type": "integer", "minimum": 0},
    "scalars": {"type": ["string", "integer", "boolean"]},
    "arrays": {"type": "array", "items": {"type": "integer"}},
    "any": {},
    "sets": {"type": "array", "items": {"type": ["string", "integer"]}, "uniqueItems": True},
    "objects": {"type": "object", "additionalProperties": {"type": "integer"}},
}


def array_of(items: object) -> tokfold.Grammar:
    schema = {"type": "array", "items": items, "uniqueItems": True}
    return tokfold.Grammar.from_json_schema(schema, **OPTIONS)


def compiled(grammar: tokfold.Grammar) -> tokfold.CompiledGrammar:
    return tokfold.compile(grammar, VOCABULARY, classes="never")


def allowed(matcher: tokfold.Matcher) -> list[bool]:
    row = tokfold.allocate_bitmask(1, len(VOCABULARY))
    matcher.fill_bitmask(row)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return bits[: len(VOCABULARY)].astype(bool).tolist()


class Oracle:
    """Free text, and an array that begins at each place of it."""

    def __init__(self, array: tokfold.CompiledGrammar, free: tokfold.CompiledGrammar) -> None:
        self.array = array
        self.free: tokfold.Matcher | None = tokfold.Matcher(free)
        self.arrays = [tokfold.Matcher(array)]

    def read(self, text: bytes) -> bool:
        for byte in text:
            one = bytes([byte])
            self.arrays = [matcher for matcher in self.arrays if matcher.accept_bytes(one)]
            if self.free is not None and not self.free.accept_bytes(one):
                self.free = None
            if self.free is not None and self.free.is_accepting:
                self.arrays.append(tokfold.Matcher(self.array))
        return bool(self.arrays) or self.free is not None

    def fork(self) -> Oracle:
        other = object.__new__(Oracle)
        other.array = self.array
        other.free = self.free and self.free.fork()
        other.arrays = [matcher.fork() for matcher in self.arrays]
        return other

    @property
    def can_end(self) -> bool:
        return any(matcher.is_accepting for matcher in self.arrays)


FREE = {"any": "[^x]*", "no commas": "[^x,]*", "brackets": r'[\[\]"]*', "line": r"([^x]*x)?"}


def walk(items: object, free: str, rng: random.Random, steps: int) -> int:
    """Compares every mask of a random text; returns at how many steps several arrays were alive."""
    array, text = array_of(items), tokfold.Grammar.from_regex(free)
    matcher = tokfold.Matcher(compiled(text + array))
    oracle = Oracle(compiled(array), compiled(text))
    many = 0
    read: list[int] = []
    for _ in range(steps):
        found = allowed(matcher)
        for number, token in enumerate(TOKENS):
            after = oracle.fork()
            assert found[number] == after.read(token.encode()), (matcher.text, token)
            assert found[number] == matcher.fork().accept_token(number), (matcher.text, token)
        assert found[len(TOKENS)] == oracle.can_end == matcher.is_accepting, matcher.text
        many += sum(len(one.text) > 0 for one in oracle.arrays) > 1
        ways = [number for number in range(len(TOKENS)) if found[number]]
        if not ways:
            break
        opening = [number for number in ways if "[" in TOKENS[number]]
        read.append(rng.choice(opening if opening and rng.random() < 0.5 else ways))
        assert matcher.accept_token(read[-1])
        assert oracle.read(TOKENS[read[-1]].encode())
        match rng.randrange(6):
            case 0:
                saved = matcher.state
                matcher = tokfold.Matcher.from_state(matcher.compiled, saved)
                assert matcher.state == saved
                read.clear()
            case 1:
                count = rng.randint(0, len(read))
                matcher.rollback(count)
                assert all(map(matcher.accept_token, read[len(read) - count :]))
    return many


@pytest.mark.parametrize("free", FREE)
@pytest.mark.parametrize("items", ITEMS)
def test_masks_are_those_of_all_arrays(items: str, free: str) -> None:
    many = 0
    for seed in range(40 if LONG else 4):
        many += walk(ITEMS[items], FREE[free], random.Random(f"{items} {free} {seed}"), 14)
    assert many > 0 or free != "any" or items in ("numbers", "objects")
