"""Objects in any order, in the engine: grammars, vocabularies, and what must hold at each place."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import tokfold
from hypothesis import note
from json_schema.languages import RefusedError, language
from strategies.engine import compiled_with
from strategies.profiles import CASES
from strategies.wide_objects import NAMES as LETTERS
from strategies.wide_objects import WideBuilder
from tokfold import (
    CompiledGrammar,
    Grammar,
    Matcher,
    UnsupportedGrammarError,
    Vocabulary,
)

Schema = dict[str, Any]
Mask = npt.NDArray[np.int32]

ANY: dict[str, Any] = {"key_order": "any", "max_whitespace": 2, "additional_properties": True}
NAMES = [f"k{i}" for i in range(8)]
NUMBERS: Schema = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in NAMES},
    "required": NAMES[:3],
    "additionalProperties": False,
}
SPANNING = (
    b'": 1, "k3": ',
    b'", "k3": 1, "k4": 2}',
    b'{"k0": 1, "k1": 1, "k2": 1}',
    b'{"k0": 1, "k1": 1, "k0": 1',
    b', "k1": 2, "k2": 3}',
    b', "k5": 2, "k5": 3',
    b', "k',
    b'k1": 1, "k2',
    b'"k7": 1, "k6": 2',
    b"}",
    b"1, ",
)
"""Tokens over several members, that name one of them again, or that close the object."""
STOP = b"</s>"


def vocabulary_of(tokens: list[bytes]) -> Vocabulary:
    """A stop token, each byte, and these tokens."""
    singles = [bytes([byte]) for byte in range(256)]
    return Vocabulary([STOP, *singles, *dict.fromkeys(tokens)], stop_token_ids=[0])


def compiled_of(grammar: Grammar, vocabulary: Vocabulary, **options: Any) -> CompiledGrammar:
    """With nothing that was made before."""
    return compiled_with(grammar, vocabulary, classes="never", pool=None, **options)


@cache
def numbers() -> Grammar:
    return Grammar.from_json_schema(NUMBERS, **ANY)


@cache
def compiled_numbers() -> CompiledGrammar:
    return compiled_of(numbers(), vocabulary_of(list(SPANNING)))


def at(compiled: CompiledGrammar, text: str, **options: Any) -> Matcher:
    matcher = Matcher(compiled, **options)
    assert matcher.accept_string(text), text
    return matcher


def row_of(matcher: Matcher) -> list[bool]:
    """Which tokens a mask allows."""
    size = len(matcher.compiled.vocabulary)
    mask = tokfold.allocate_bitmask(1, size)
    mask[:] = 0x5A5A5A5A
    if not matcher.fill_bitmask(mask):
        return [True] * size
    return bits(mask[0], size)


def bits(row: Mask, size: int) -> list[bool]:
    """The bits of a row."""
    found = np.unpackbits(row.view(np.uint8), bitorder="little").astype(bool)
    assert not found[size:].any(), "bits past the last token"
    return list(found[:size])


def taken_by(matcher: Matcher) -> list[bool]:
    """Which tokens can be accepted."""
    size = len(matcher.compiled.vocabulary)
    return [matcher.fork().accept_token(token) for token in range(size)]


def tokens_of(builder: WideBuilder, schema: Schema, texts: list[str]) -> list[bytes]:
    """Parts of texts of instances, in any order, over several members."""
    random = builder.random
    values = [builder.instance(schema, schema) for _ in range(6)]
    values += [builder.shuffled(json.loads(text)) for text in texts for _ in range(2)]
    tokens = []
    for value in values:
        data = json.dumps(value, ensure_ascii=False).encode()
        for _ in range(4):
            start = random.randrange(len(data))
            tokens.append(data[start : start + random.randint(2, 50)])
    return tokens


def wide(builder: WideBuilder) -> tuple[Schema, Grammar, CompiledGrammar] | None:
    """A schema whose sets are not all written out, compiled for tokens over several members."""
    schema = builder.document()
    note(json.dumps(schema))
    try:
        found = language(schema, **ANY)
    except RefusedError:
        return None
    if found.grammar is None or not has_sets(found.grammar):
        return None
    texts = [
        t for t in (found.sample(builder.random, 80, LETTERS) for _ in range(4)) if t is not None
    ]
    tokens = tokens_of(builder, schema, texts)
    return schema, found.grammar, compiled_of(found.grammar, vocabulary_of(tokens))


def has_sets(grammar: Grammar) -> bool:
    """Whether states are sets, of which a text does not speak."""
    try:
        str(grammar)
    except UnsupportedGrammarError:
        return True
    return False


def check_place(matcher: Matcher, other: Matcher) -> list[bool]:
    """All that says what may come next agrees; ``other`` stands at the same place elsewhere."""
    row = row_of(matcher)
    assert row == taken_by(matcher), "the mask and what is accepted"
    assert row == row_of(other), "another compiled grammar of the same texts"
    tokens = matcher.compiled.vocabulary
    assert row[0] == matcher.is_accepting
    expected = {byte for byte in range(256) if row[1 + byte]}
    assert set(matcher.expected_bytes) == expected
    forced = matcher.forced_bytes()
    assert matcher.forced_bytes() == forced
    if forced:
        assert expected == {forced[0]}
        assert not matcher.is_accepting
        assert matcher.fork().accept_bytes(forced)
    elif not matcher.is_accepting:
        assert len(expected) > 1, "a byte is forced and not said"
    CASES["any order: bits of masks"] += len(tokens)
    return row


def check_draft(matcher: Matcher, tokens: list[int]) -> None:
    """The rows of a draft are those of the matcher on its way."""
    size = len(matcher.compiled.vocabulary)
    mask = tokfold.allocate_bitmask(len(tokens) + 1, size)
    allowed = matcher.fill_bitmask_draft(tokens, mask)
    walk: Matcher | None = matcher.fork()
    assert bits(mask[0], size) == row_of(matcher)
    for index, token in enumerate(tokens):
        if walk is not None and not (walk.accept_token(token)):
            walk = None
        assert bool(allowed[index]) == (walk is not None)
        is_open = walk is not None and not walk.is_terminated
        expected = row_of(walk) if is_open and walk is not None else [False] * size
        assert bits(mask[index + 1], size) == expected


def check_batch(matchers: list[Matcher]) -> None:
    """Rows of a batch are those of its matchers."""
    size = len(matchers[0].compiled.vocabulary)
    mask = tokfold.allocate_bitmask(len(matchers), size)
    tokfold.fill_bitmask_batch(matchers, mask)
    for index, matcher in enumerate(matchers):
        assert bits(mask[index], size) == row_of(matcher)


def check_ahead(random: Random, one: Matcher, two: Matcher) -> None:
    """Two matchers go the same way."""
    for _ in range(3):
        row = row_of(one)
        assert row_of(two) == row
        choices = [token for token in range(1, len(row)) if row[token]]
        if not choices:
            return
        token = random.choice([t for t in choices if t > 256] or choices)
        assert one.accept_token(token)
        assert two.accept_token(token)
