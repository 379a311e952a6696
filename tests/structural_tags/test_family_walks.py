"""Random walks of every family with its markers as tokens: what is written is what was meant.

Each output is read twice by a reader that knows no grammar: by its tokens, and by its text. Both
find the same calls, all of them whole, of tools that there are, with arguments of their schemas;
and no special token stands in a text. The fast profile has a walk or two for each setting, the long
one 60.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import tokfold
from oracles.family_readers import READERS, SPECIALS, Call, Output
from strategies.profiles import CASES, LONG
from support.tokenizers import folders
from tokfold.structural_tags import families, for_model

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"location": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["location"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get",
            "parameters": {
                "type": "object",
                "properties": {
                    "q": {"type": "string"},
                    "opts": {
                        "type": "object",
                        "properties": {"deep": {"type": "boolean"}, "n": {"type": "integer"}},
                    },
                    "x": {"type": ["number", "null"]},
                },
                "required": ["q", "opts"],
            },
        },
    },
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}},
]
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
FORCED = {"type": "function", "function": {"name": "get"}}
MODES = ("enabled", "disabled", "auto")
CHOICES: tuple[Any, ...] = ("auto", "required", FORCED)
WALKS = 60 if LONG else 1
STEPS = 160
"""Tokens that are chosen at random, before a shortest end."""

WORDS = [b" the", b"get", b"now", b'{"', b'": "', b'"', b"location", b"q", b"\n", b"</", b"}}"]
FIRST_SIGN = 0xF0000
"""In what is read, a character from here on stands for a special token."""


@functools.cache
def vocabulary_of(family: str) -> tokfold.Vocabulary:
    """Bytes, halves of the markers, words, and the markers as special tokens."""
    marks = [mark.encode() for mark in SPECIALS[family]]
    letters = [mark.encode() for mark in (*SPECIALS[family], "<tool_call>", "</tool_call>")]
    halves = [one for mark in letters for one in (mark[: len(mark) // 2], mark[len(mark) // 2 :])]
    texts = list(dict.fromkeys([*(bytes([i]) for i in range(256)), *WORDS, *halves]))
    tokens = [*texts, b"</s>", *marks]
    return tokfold.Vocabulary(tokens, [len(texts)], range(len(texts) + 1, len(tokens)))


@functools.cache
def kinds_of(vocabulary: tokfold.Vocabulary) -> list[tuple[np.ndarray, float]]:
    """Which tokens are of a kind, and how often one of that kind is chosen."""
    size = len(vocabulary)
    special, stops, words, shown = (np.zeros(size, np.bool_) for _ in range(4))
    special[list(vocabulary.special_token_ids)] = True
    stops[list(vocabulary.stop_token_ids)] = True
    for token_id, token in enumerate(vocabulary):
        words[token_id] = len(token) > 1 and not (special[token_id] or stops[token_id])
        shown[token_id] = len(token) == 1 and 0x20 <= token[0] < 0x7F
    return [(special, 3), (words, 4), (shown, 6), (np.ones(size, np.bool_), 1), (stops, 0.3)]


def walked(compiled: tokfold.CompiledGrammar, chance: random.Random) -> list[int]:
    """The tokens of an output, with the stop token where the grammar names it."""
    vocabulary = compiled.vocabulary
    matcher = tokfold.Matcher(compiled)
    row = tokfold.allocate_bitmask(1, len(vocabulary))
    found: list[int] = []
    for _ in range(STEPS):
        allowed = np.ones(len(vocabulary), np.bool_)
        if matcher.fill_bitmask(row):
            bits = np.unpackbits(row.view(np.uint8), count=len(vocabulary), bitorder="little")
            allowed = bits.view(np.bool_)
        some = [(kind & allowed, weight) for kind, weight in kinds_of(vocabulary)]
        some = [(kind, weight) for kind, weight in some if kind.any()]
        (kind,) = chance.choices([one for one, _ in some], [weight for _, weight in some])
        token = chance.choice(np.flatnonzero(kind).tolist())
        if token in vocabulary.stop_token_ids:
            assert matcher.is_accepting
            return found + named_stops(matcher, token)
        assert matcher.accept_token(token)
        found.append(token)
    closing = matcher.closing_tokens()
    assert matcher.accept_tokens(closing) == len(closing)
    return found + closing + named_stops(matcher)


def named_stops(matcher: tokfold.Matcher, token: int | None = None) -> list[int]:
    """The stop token that ends a complete text, where not just any does."""
    stops = matcher.stop_token_ids
    ends = [one for one in stops if matcher.fork().accept_token(one)]
    assert ends
    assert token is None or token in ends
    return [] if len(ends) == len(stops) else [ends[0] if token is None else token]


def read(family: str, mode: str, vocabulary: tokfold.Vocabulary, ids: list[int]) -> Output:
    """The output as its tokens say it; as its text says it, it has the same calls."""
    text = vocabulary.decode(ids).decode(errors="replace")
    stops = [i for i in vocabulary.stop_token_ids if vocabulary[i].decode() in SPECIALS[family]]
    specials = [*vocabulary.special_token_ids, *stops]
    count, first = len(specials), FIRST_SIGN
    while any(first <= ord(character) < first + count for character in text):
        first += count  # a text may hold any character
    special = {i: chr(first + n) for n, i in enumerate(specials)}
    signs = {vocabulary[i].decode(): sign for i, sign in special.items()}

    def m(text: str) -> str:
        for marker in SPECIALS[family]:
            text = text.replace(marker, signs[marker])
        return text

    pieces = [special[i].encode() if i in special else vocabulary[i] for i in ids]
    by_tokens = READERS[family](b"".join(pieces).decode(errors="replace"), mode, m)
    by_text = READERS[family](text, mode, lambda text: text)
    assert by_text == by_tokens
    said = json.dumps([by_tokens.reasoning, by_tokens.text, *by_tokens.calls], ensure_ascii=False)
    assert not any(sign in said for sign in special.values()), "a special token in a text"
    return by_tokens


def valid(call: Call) -> None:
    """The arguments are of their schema, which has no members but those that it names."""
    schema = SCHEMAS[call.name]
    arguments = dict(call.arguments)
    if call.is_raw:
        for key, value in arguments.items():
            kind = schema.get("properties", {}).get(key, {}).get("type", "string")
            arguments[key] = value if kind == "string" else parsed(value)
    closed = {} if "properties" not in schema else {"additionalProperties": False}
    jsonschema.validate(arguments, {**schema, **closed})


def parsed(value: Any) -> Any:
    """JSON, or elements with JSON in them."""
    if isinstance(value, dict):
        return {key: parsed(one) for key, one in value.items()}
    if isinstance(value, list):
        return list(map(parsed, value))
    try:
        return json.loads(value) if value.strip() else {}  # an object of no elements
    except json.JSONDecodeError:
        return value  # a string


def holds(family: str, mode: str, choice: Any, parallel: bool, output: Output) -> None:
    calls = output.calls
    list(map(valid, calls))
    if choice == "required":
        assert calls
    if isinstance(choice, dict):
        assert {call.name for call in calls} == {"get"}
    if not parallel:
        assert len(calls) <= 1
    if mode == "disabled":
        assert not output.reasoning
    CASES["family walks: outputs"] += 1
    CASES["family walks: calls"] += len(calls)


def walk(
    family: str, vocabulary: tokfold.Vocabulary, count: int, wanted: Callable[[int], bool]
) -> int:
    """All settings of a family; the calls that were found."""
    found = 0
    settings = itertools.product(MODES, CHOICES, (True, False))
    for number, (mode, choice, parallel) in enumerate(settings):
        if not wanted(number):
            continue
        tag = for_model(family, TOOLS, tool_choice=choice, reasoning=mode, parallel=parallel)
        compiled = tokfold.compile(tag, vocabulary, classes="never")
        for seed in range(count):
            name = f"{family} {mode} {choice} {parallel} {seed}"
            ids = walked(compiled, random.Random(zlib.crc32(name.encode())))
            try:
                output = read(family, mode, vocabulary, ids)
                holds(family, mode, choice, parallel, output)
            except Exception as error:
                raise AssertionError(f"{name}: {vocabulary.decode(ids)!r}: {error!r}") from error
            found += len(output.calls)
    return found


def test_every_family_has_a_reader() -> None:
    assert sorted(READERS) == sorted(SPECIALS) == families()


@pytest.mark.parametrize("family", families())
def test_walks(family: str) -> None:
    assert walk(family, vocabulary_of(family), WALKS, lambda number: True) >= 4


@pytest.mark.parametrize("end", ["<|call|>", "<|end|>", "<|return|>"])
def test_walks_that_end_with_a_marker(end: str) -> None:
    vocabulary = vocabulary_of("harmony")
    stops = (*vocabulary.stop_token_ids, vocabulary.token_bytes.index(end.encode()))
    vocabulary = vocabulary.replace(stop_token_ids=stops)
    assert walk("harmony", vocabulary, WALKS, lambda number: True) >= 1


REAL = {"o200k": "harmony", "llama3": "llama"}
STOPS = {"harmony": (b"<|return|>", b"<|endoftext|>", b"<|call|>")}


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_walks_over_real_vocabularies(folder: Path) -> None:
    family = REAL.get(folder.name)
    if family is None:
        pytest.skip(f"{folder.name} is of no family here")
    vocabulary = tokfold.Vocabulary.from_file(folder)
    # Those of the generation config of gpt-oss are more than its tokenizer marks.
    ends = [vocabulary.token_bytes.index(end) for end in STOPS.get(family, ())]
    vocabulary = vocabulary.replace(stop_token_ids=ends or vocabulary.stop_token_ids)
    count, step = (WALKS, 1) if LONG else (1, 5)
    assert walk(family, vocabulary, count, lambda number: number % step == 0) >= 1
