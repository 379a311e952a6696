"""Strings whose alternatives have lengths of their own, beside two validators.

`HttpUrl | Literal["auto"]` is such a string: one alternative is a format with a length, the other
has none. Each alternative counts for itself, so the bound costs nothing.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
import tokfold
from json_schema.languages import RefusedError, language
from json_schema.test_styles import accepts
from json_schema.test_styles import language as language_of_style
from json_schema.truth import Validators
from strategies.engine import mask_beside_forks
from strategies.profiles import CASES, LONG

PATTERNS = ["^[ab]*$", "^a+b?$", "^(ab|b)*$", "a", "^(?!aa)", "b{3}", "^[^b]{20,}$"]
FORMATS = ["email", "uri", "hostname", "date"]
TEXTS = ["", "a", "auto", "2020-02-29", "a@b.cd", "http://a.b/c", "a.b"]


def condition(random: Random) -> dict[str, Any]:
    """Some keywords of strings."""
    out: dict[str, Any] = {}
    if random.random() < 0.5:
        out["pattern"] = random.choice(PATTERNS)
    elif random.random() < 0.4:
        out["format"] = random.choice(FORMATS)
    if random.random() < 0.2:
        out["enum"] = random.sample(TEXTS, 3)
    if random.random() < 0.6:
        out["maxLength"] = random.choice([3, 10, 25, 40, 60])
    if random.random() < 0.3:
        out["minLength"] = random.choice([1, 2, 9, 20, 30])
    return out


def union(random: Random, depth: int) -> dict[str, Any]:
    """Alternatives, and what stands beside them."""
    if depth == 0:
        return condition(random)
    keyword = random.choice(["anyOf", "anyOf", "oneOf", "allOf"])
    parts = [union(random, depth - 1) for _ in range(random.randint(2, 3))]
    out: dict[str, Any] = {keyword: parts}
    if random.random() < 0.3:
        out |= condition(random)
    if random.random() < 0.15:
        out["not"] = condition(random)
    return out


def text(random: Random) -> str:
    """A text that some of the conditions may take, of a length about their bounds."""
    kind = random.random()
    if kind < 0.2:
        return random.choice(TEXTS)
    length = max(random.choice([0, 1, 3, 10, 20, 25, 30, 40, 60]) + random.randint(-1, 1), 0)
    if kind < 0.8:
        return "".join(random.choices(random.choice(["a", "ab", "b", "abc"]), k=length))
    frame, filler = random.choice([("{}@b.cd", "a"), ("http://a.b/{}", "c"), ("{}.b", "a")])
    return frame.format(filler * max(length - len(frame) + 2, 1))


@pytest.mark.parametrize("seed", range(2_000 if LONG else 60))
def test_random_alternatives(seed: int) -> None:
    random = Random(f"alternatives of lengths {seed}")
    schema = {"type": "string", **union(random, random.randint(1, 2))}
    validators = Validators(schema)
    try:
        found = language(schema)
    except RefusedError:
        CASES["alternatives of lengths: refused"] += 1
        return
    for _ in range(150):
        written = text(random)
        verdict = validators.verdict(written)
        if verdict is not None:
            CASES["alternatives of lengths: compared"] += 1
            assert found.accepts(json.dumps(written)) == verdict, (schema, written)


URL = {"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083}


@pytest.mark.parametrize(
    ("beside", "texts"),
    [
        ({"const": "auto"}, ["auto"]),
        ({"enum": ["a", "b"]}, ["a", "b"]),
        ({"type": "string", "format": "date"}, ["2024-02-29"]),
        ({"type": "string", "format": "uuid"}, ["12345678-1234-1234-1234-123456789012"]),
        ({"type": "string", "maxLength": 10}, ["", "x y"]),
        ({"type": "string", "pattern": "^[a-z]{2}$", "maxLength": 99}, ["ab"]),
    ],
)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_url_beside_something_else(keyword: str, beside: Any, texts: list[str]) -> None:
    schema = {keyword: [URL, beside]}
    found, validators = language(schema), Validators(schema)
    assert found.compiled is not None
    assert found.compiled._core.network_states < 3_000
    longest = "http://a.b/" + "c" * (2083 - 11)
    for one in [*texts, "http://a.b/c", longest, longest + "c", "no", "no no no no no"]:
        assert found.accepts(json.dumps(one)) == validators.verdict(one), one


def test_masks_agree_with_accepts() -> None:
    """Bit by bit along texts that come near the bounds of both alternatives."""
    tokens = [b"</s>", *(bytes([i]) for i in range(256)), b"ab", b"aab", b'ab"', b'"a', b"a" * 9]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[0])
    schema = {
        "anyOf": [
            {"type": "string", "pattern": "^(ab|a)*$", "maxLength": 30},
            {"type": "string", "pattern": "^[a-c]*c$", "minLength": 20, "maxLength": 45},
            {"const": "auto"},
        ]
    }
    compiled = tokfold.compile(tokfold.Grammar.from_json_schema(schema), vocabulary)
    random = Random(5)
    for _ in range(6):
        matcher = tokfold.Matcher(compiled)
        while not matcher.is_terminated:
            bits = mask_beside_forks(matcher, tokens)
            longer = [t for t in range(1, len(tokens)) if bits[t] and b'"' not in tokens[t]]
            some = [t for t in range(len(tokens)) if bits[t]]
            matcher.accept_token(random.choice(longer or some))
            CASES["alternatives of lengths: masks"] += 1


def test_unique_items_and_elements() -> None:
    """Where strings are looked into once more: as items that differ, and in elements."""
    either = {"anyOf": [URL, {"const": "auto"}]}
    found = language({"type": "array", "items": either, "uniqueItems": True})
    assert found.accepts('["auto", "http://a.b/c"]')
    assert not found.accepts('["auto", "auto"]')
    schema = {"type": "object", "properties": {"a": either}, "required": ["a"]}
    compiled = language_of_style(schema, "qwen_xml")
    for written, is_valid in (("auto", True), ("http://a.b/c", True), ("other", False)):
        assert accepts(compiled, f"<parameter=a>{written}</parameter>") == is_valid
