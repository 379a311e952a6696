r"""Patterns with ``\b`` and ``\B`` say what Python's ``re`` says of them, by ASCII word characters.

Random patterns have boundaries in all places; all texts of up to four letters are compared.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
import tokfold
from json_schema.languages import BYTES
from strategies.profiles import CASES, LONG
from tokfold import Grammar, LimitExceededError, Matcher, UnsatisfiableSchemaError

LETTERS = "aB-é"
ATOMS = ("a", "B", "-", "é", r"\w", r"\W", "[a-]", "[aB]", "[^a]", "[-é]", "(?:aB|-)", "(?:a|)")
COUNTS = ("*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "{1,20}")
URL = (
    r"^https?:\/\/(www\.)?[-a-zA-Z0-9@:%._\+~#=]{1,256}\.[a-zA-Z0-9()]{1,6}\b"
    r"([-a-zA-Z0-9()@:%_\+.~#?&//=]*)$"
)


def random_part(rng: random.Random, depth: int) -> str:
    """A part of a pattern, where every third leaf is a boundary."""
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        if rng.random() < 0.35:
            return rng.choice((r"\b", r"\B"))
        return rng.choice(("^", "$")) if rng.random() < 0.05 else rng.choice(ATOMS)
    inner = [random_part(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    if kind < 0.65:
        return "".join(inner)
    if kind < 0.8:
        return f"(?:{'|'.join(inner)})"
    if kind < 0.95:
        return f"(?:{''.join(inner)}){rng.choice(COUNTS)}"
    return f"(?i:{''.join(inner)})"


def random_pattern(rng: random.Random) -> str:
    """A pattern: sets that repeat, a boundary, sets that repeat; or parts in parts."""
    body = random_part(rng, 3)
    if rng.random() < 0.5:
        parts = []
        for _ in range(rng.randint(2, 6)):
            is_boundary = rng.random() < 0.4
            parts.append(
                rng.choice((r"\b", r"\B"))
                if is_boundary
                else rng.choice(ATOMS) + rng.choice(("", "", *COUNTS, "{0,30}", "{1,40}"))
            )
        body = "".join(parts)
    start, end = rng.choice((("", ""), ("^", ""), ("", "$"), ("^", "$"), ("^(?:", ")$")))
    return start + body + end


def in_python(pattern: str) -> re.Pattern[str]:
    r"""The pattern for ``re``, where ``\B`` holds in the empty text and ``$`` at the end alone."""
    return re.compile(pattern.replace(r"\B", r"(?!\b)").replace("$", r"\Z"), re.ASCII)


def short_texts(longest: int = 4) -> Iterator[str]:
    for length in range(longest + 1):
        for letters in itertools.product(LETTERS, repeat=length):
            yield "".join(letters)


def taken(schema: dict[str, Any], values: list[Any]) -> list[bool]:
    """Which values a schema's grammar takes; none where it says that there are none."""
    try:
        grammar = Grammar.from_json_schema(schema)
    except UnsatisfiableSchemaError:
        return [False] * len(values)
    compiled = tokfold.compile(grammar, BYTES)
    out = []
    for value in values:
        matcher = Matcher(compiled)
        spelled = json.dumps(value, ensure_ascii=False).encode()
        out.append(matcher.accept_bytes(spelled) and matcher.is_accepting)
    return out


def check(pattern: str) -> None:
    texts = list(short_texts())
    found = in_python(pattern)
    expected = [found.search(text) is not None for text in texts]
    try:
        verdicts = taken({"type": "string", "pattern": pattern}, texts)
    except LimitExceededError:
        assert "{1,40}" in pattern or "{0,30}" in pattern
        pytest.skip("there is an automaton alone, which has exponentially many states")
    wrong = [
        text for text, is_, should in zip(texts, verdicts, expected, strict=True) if is_ != should
    ]
    assert not wrong, (pattern, wrong[:5])
    CASES["word boundaries: compared"] += len(texts)


@pytest.mark.parametrize("seed", range(4_000 if LONG else 450))
def test_random_patterns_are_those_of_python(seed: int) -> None:
    check(random_pattern(random.Random(f"boundaries {seed}")))


@pytest.mark.parametrize("seed", range(600 if LONG else 60))
def test_names_of_random_patterns_are_those_of_python(seed: int) -> None:
    pattern = random_pattern(random.Random(f"names {seed}"))
    found = in_python(pattern)
    texts = list(short_texts(3))
    schema = {
        "patternProperties": {pattern: {"type": "null"}},
        "additionalProperties": {"const": 1},
    }
    verdicts = taken({"type": "object", **schema}, [{text: None} for text in texts])
    assert verdicts == [found.search(text) is not None for text in texts], pattern


def test_counts_beside_a_boundary_are_counted() -> None:
    """A pattern of URLs, whose automaton has more states than the limit allows."""
    limits = tokfold.Limits(max_automaton_states=1_000)
    grammar = Grammar.from_json_schema({"type": "string", "pattern": URL}, limits=limits)
    compiled = tokfold.compile(grammar, BYTES)
    found = in_python(URL)
    for text in (
        "https://www.example.com/a?b=c#d",
        "http://localhost",
        "https://example.com",
        "https://a.b(",
        "https://a.b(c",
        "https://a.bc)/x",
        "https://a.()/x",
        f"https://{'a' * 256}.de",
        f"https://{'a' * 257}.de",
        f"https://{'a' * 250}.{'b' * 5}.{'c' * 7}/",
        "https://a.b c",
    ):
        matcher = Matcher(compiled)
        data = json.dumps(text).encode()
        is_valid = matcher.accept_bytes(data) and matcher.is_accepting
        assert is_valid == (found.search(text) is not None), text
