"""Unions of arrays with bounds on their items: once one branch is left, items are counted.

Arrays of all lengths about the bounds, of one kind of item and with another among them, beside two
validators; in JSON as it is printed by default, compact and indented, and in elements.
"""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest
import tokfold
from json_schema.languages import RefusedError, language
from json_schema.styles import write
from json_schema.test_styles import accepts
from json_schema.test_styles import language as language_of_style
from json_schema.truth import Validators
from strategies.profiles import CASES, LONG

ITEMS: list[Any] = ["a", 1, True, None, [2], [], {"k": 3}]
KINDS: list[Any] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": ["boolean", "null"]},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "object", "properties": {"k": {"type": "integer"}}, "additionalProperties": False},
    {"enum": ["a", True]},
    {},
]
MOST = 15


def branch(random: Random) -> dict[str, Any]:
    """An array with bounds, about the least that is counted."""
    out: dict[str, Any] = {"type": "array", "items": random.choice(KINDS)}
    if random.random() < 0.6:
        out["minItems"] = random.randrange(MOST - 3)
    if random.random() < 0.8:
        out["maxItems"] = random.randrange(max(7, out.get("minItems", 0) - 1), MOST)
    if random.random() < 0.2:
        out["prefixItems"] = [random.choice(KINDS) for _ in range(random.randint(1, 2))]
    if random.random() < 0.15:
        out["contains"] = {"const": random.choice(ITEMS)}
    if random.random() < 0.1:
        out["not"] = {"maxItems": random.randrange(4)}
    return out


def union(random: Random) -> dict[str, Any]:
    """Some branches, beside each other or beside something else."""
    branches: list[Any] = [branch(random) for _ in range(random.randint(2, 3))]
    if random.random() < 0.3:
        branches.append({"type": "string"})
    schema: dict[str, Any] = {random.choice(["anyOf", "oneOf"]): branches}
    if random.random() < 0.2:
        schema["maxItems"] = random.randrange(8, MOST)
    return schema


def arrays() -> list[list[Any]]:
    """Arrays of each length: of one item, and with another item first, last or between."""
    out = []
    for length in range(MOST + 2):
        for item in ITEMS:
            out.append([item] * length)
            for other in ITEMS:
                places = {0, length // 2, length - 1} if length and other != item else set()
                out.extend([item] * at + [other] + [item] * (length - at - 1) for at in places)
    return out


ARRAYS = arrays()


@pytest.mark.parametrize("seed", range(1_500 if LONG else 40))
def test_lengths_about_the_bounds(seed: int) -> None:
    random = Random(f"counted items {seed}")
    schema = union(random)
    options, written = random.choice(
        [
            ({}, {}),
            ({"whitespace": "compact"}, {"separators": (",", ":")}),
            ({"indent": 1}, {"indent": 1}),
        ]
    )
    try:
        found = language(schema, **options)
    except RefusedError:
        CASES["counted items: refused"] += 1
        return
    validators = Validators(schema)
    for array in random.sample(ARRAYS, 300):
        verdict = validators.verdict(array)
        if verdict is not None:
            CASES["counted items: compared"] += 1
            assert found.accepts(json.dumps(array, **written)) == verdict, (schema, options, array)


@pytest.mark.parametrize("seed", range(600 if LONG else 20))
def test_in_elements(seed: int) -> None:
    """Items that have one reading each: texts, and arrays of texts."""
    random = Random(f"counted elements {seed}")
    kinds = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    random.shuffle(kinds)
    branches = [branch(random) | {"items": items, "minItems": 1} for items in kinds]
    inner = {"anyOf": branches}
    schema = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    try:
        compiled = language_of_style(schema, "minimax_m3_xml")
    except tokfold.errors.SchemaError:
        CASES["counted items: refused"] += 1
        return
    validators = Validators(schema)
    for length in range(1, MOST + 2):
        for item, other in itertools.product(["a", ["a"]], repeat=2):
            value = {"a": [item] * (length - 1) + [other]}
            text = write(value, "minimax_m3_xml", random)
            verdict = validators.verdict(value)
            if verdict is not None:
                CASES["counted items: compared in elements"] += 1
                assert accepts(compiled, text) == verdict, (schema, text)


def test_the_size_of_a_bound_costs_nothing() -> None:
    """The tokens of OpenAI's embeddings: texts, tokens, or lists of them, 2,048 each."""

    def states(most: int) -> int:
        def array(items: dict[str, Any]) -> dict[str, Any]:
            return {"type": "array", "minItems": 1, "maxItems": most, "items": items}

        integer = {"type": "integer"}
        tokens = {"type": "array", "minItems": 1, "items": integer}
        kinds = [{"type": "string"}, array({"type": "string"}), array(integer), array(tokens)]
        compiled = language({"oneOf": kinds}).compiled
        assert compiled is not None
        return compiled._core.network_states

    assert states(2_048) == states(1_000_000) == states(20) < 300


def test_many_states_that_would_count_are_written_out() -> None:
    """Each number of items before the one that is asked for leaves another number behind it."""
    schema = {
        "type": "array",
        "items": {"type": "integer"},
        "contains": {"const": 3},
        "maxItems": 40,
    }
    found, validators = language(schema), Validators(schema)
    for length in range(43):
        for at in {None, 0, length // 2, length - 1} if length else {None}:
            array = [3 if place == at else 1 for place in range(length)]
            assert found.accepts(json.dumps(array)) == validators.verdict(array), array


def test_items_that_have_no_value() -> None:
    """Behind the first item of one branch nothing can follow: each value would hold another."""
    endless = {"type": "object", "properties": {"x": {"$ref": "#/$defs/e"}}, "required": ["x"]}
    array = {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"$ref": "#/$defs/e"}}
    texts = {"type": "array", "items": {"type": "string"}, "maxItems": 20}
    for least, is_taken in ((1, True), (2, False)):
        branch = {**array, "minItems": least, "maxItems": 20}
        found = language({"$defs": {"e": endless}, "anyOf": [branch, texts]})
        assert found.accepts("[1]") is is_taken
        assert not found.accepts("[1, {}]")
        assert found.accepts('["a", "b"]')
