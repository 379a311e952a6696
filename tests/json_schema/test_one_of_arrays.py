"""`oneOf` of arrays on all small arrays, beside two validators.

Branches that the converter sees to exclude each other are joined without a condition. So a wrong
answer to that question accepts an array that two branches take.
"""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest
from json_schema.languages import RefusedError, language
from json_schema.truth import Validators
from strategies.profiles import CASES, LONG

VALUES: list[Any] = ["a", "b", 1, None]
ARRAYS = [list(items) for count in range(4) for items in itertools.product(VALUES, repeat=count)]


def item(random: Random) -> Any:
    return random.choice(
        [
            {"enum": random.sample(VALUES, random.randint(1, 3))},
            {"const": random.choice(VALUES)},
            {"not": {"const": random.choice(VALUES)}},
            {"type": "string"},
            {"type": ["integer", "null"]},
            {},
        ]
    )


def branch(random: Random) -> Any:
    """Some keywords for arrays, or one array."""
    keywords = {
        "type": "array",
        "items": item(random),
        "prefixItems": [item(random) for _ in range(random.randint(1, 2))],
        "minItems": random.randrange(4),
        "maxItems": random.randrange(4),
        "uniqueItems": True,
        "contains": item(random),
    }
    chances = {"type": 0.8, "uniqueItems": 0.12}  # the last is refused in most overlaps
    kept = {k: v for k, v in keywords.items() if random.random() < chances.get(k, 0.45)}
    return {"const": random.choice(ARRAYS)} if random.random() < 0.1 else kept


@pytest.mark.parametrize("seed", range(2_000 if LONG else 60))
def test_on_all_small_arrays(seed: int) -> None:
    random = Random(seed)
    branches = [branch(random) for _ in range(random.randint(2, 3))]
    schema = {"type": "array", "oneOf": branches}
    if random.random() < 0.3:  # by reference, and once more beside it
        schema = {
            "$defs": {"first": branches[0]},
            "type": "array",
            "oneOf": [{"$ref": "#/$defs/first"}, *branches[1:]],
            "allOf": [{"$ref": "#/$defs/first"}],
        }
    try:
        found = language(schema)
    except RefusedError:
        CASES["oneOf of arrays: refused"] += 1
        return
    validators = Validators(schema)
    for array in ARRAYS:
        verdict = validators.verdict(array)
        if verdict is not None:
            CASES["oneOf of arrays: compared"] += 1
            assert found.accepts(json.dumps(array)) == verdict, (schema, array)
