"""Objects of many names in any order: single schemas, and what a reader would say of them."""

from __future__ import annotations

import itertools
import json
from random import Random

import pytest
from json_schema.languages import RefusedError, language
from json_schema.test_any_order import ANY, has_sets, text_of, wide
from json_schema.test_options import check


def test_each_order_of_some_names() -> None:
    found = language(wide(required=["k1", "k6"]), **ANY)
    assert has_sets(found)
    for size in range(5):
        for chosen in itertools.permutations((0, 1, 5, 6), size):
            assert found.accepts(text_of(*chosen)) is ({1, 6} <= set(chosen)), chosen
            for twice in chosen:
                assert not found.accepts(text_of(*chosen, twice))


def test_hundreds_of_names() -> None:
    names = list(range(150))
    required = [f"k{i}" for i in range(0, 150, 2)]
    found = language(wide(150, required=required, additionalProperties=False), **ANY)
    for seed in range(3):
        Random(seed).shuffle(names)
        assert found.accepts(text_of(*names))
        assert found.accepts(text_of(*(i for i in names if i % 2 == 0 or i < 75)))
        assert not found.accepts(text_of(*(i for i in names if i != 148)))
        assert not found.accepts(text_of(*names, 149))
        assert not found.accepts(text_of(names[-1], *names))


def test_the_last_that_is_missing_is_forced() -> None:
    """Between a comma and a brace: where all names were read there is no comma."""
    found = language(wide(6, required=["k0"], additionalProperties=False), **ANY)
    assert found.prefix(text_of(1, 2, 3, 4, 5)) == len(text_of(1, 2, 3, 4, 5)) - 1
    assert found.accepts(text_of(1, 2, 3, 4, 5, 0))
    cut = text_of(1, 2, 3, 4, 5, 0)[:-1] + ","
    assert found.prefix(cut) == len(cut) - 1


def test_a_name_that_cannot_be() -> None:
    """No dead end: a name without a value, a required name without a value, and below."""
    schema = wide(8, required=["k0"])
    schema["properties"]["k3"] = {"type": "integer", "minimum": 2, "maximum": 1}
    schema["properties"]["k4"] = wide(7, required=["k2", "k9"], additionalProperties=False)
    schema["additionalProperties"] = False
    found = language(schema, **ANY)
    check(schema, [text_of(0), text_of(7, 0)], [text_of(0, 3), text_of(3, 0)], **ANY)
    assert found.prefix('{"k3') == 3
    assert found.prefix('{"k4') == 3
    schema["required"] = ["k0", "k3"]
    assert language(schema, **ANY).compiled is None
    schema["required"] = ["k0", "k4"]
    assert language(schema, **ANY).compiled is None


def test_nested_and_recursive_sets() -> None:
    """Each object has a set of its own, also in one of the same schema."""
    schema = wide(7, required=["k0", "k1"], additionalProperties=False)
    schema["properties"]["k5"] = {"$ref": "#"}
    inner = text_of(1, 0)
    check(
        schema,
        [
            f'{{"k1": 1, "k5": {inner}, "k0": 1}}',
            f'{{"k5": {{"k0": 1, "k5": {inner}, "k1": 2}}, "k0": 1, "k1": 1}}',
        ],
        [
            f'{{"k1": 1, "k5": {inner}}}',
            f'{{"k1": 1, "k5": {inner}, "k0": 1, "k5": {inner}}}',
            '{"k1": 1, "k0": 1, "k5": {"k0": 1}}',
            '{"k1": 1, "k0": 1, "k5": {"k0": 1, "k1": 2, "k0": 3}}',
        ],
        **ANY,
    )


def test_a_dependency_both_ways() -> None:
    schema = wide(8, dependentRequired={"k0": ["k1", "k2"], "k1": ["k0"]})
    check(
        schema,
        ["{}", text_of(2), text_of(0, 2, 1), text_of(2, 7, 1, 0), text_of(7, 6, 5)],
        [text_of(0), text_of(1), text_of(1, 0), text_of(0, 2), text_of(0, 1, 1, 2)],
        **ANY,
    )


def test_the_discriminator_comes_last() -> None:
    """Whatever comes first: a value is only good for the branches that are left."""
    kinds = {"p": ["a", "b", "c"], "q": ["c", "d", "e"], "r": ["e", "f", "a"]}
    branches = [
        {
            "properties": {"kind": {"const": kind}, **{n: {"const": kind} for n in names}},
            "required": ["kind", *names],
            "additionalProperties": False,
        }
        for kind, names in kinds.items()
    ]
    schema = {"type": "object", "oneOf": branches}
    texts, others = [], []
    for kind, names in kinds.items():
        for order in itertools.permutations(["kind", *names]):
            texts.append(json.dumps(dict.fromkeys(order, kind)))
            others.append(json.dumps({**dict.fromkeys(order, kind), "kind": "pqr"[kind == "p"]}))
            others.append(json.dumps(dict.fromkeys(order[:-1], kind)))
    check(schema, texts, others, **ANY)


def test_too_many_names_that_matter() -> None:
    """They are refused by the name of the limit, or the language is right."""
    pairs = {f"k{i}": [f"k{(i + 7) % 14}"] for i in range(14)}
    with pytest.raises(RefusedError) as caught:
        language(wide(14, dependentRequired=pairs, maxProperties=9), **ANY)
    assert caught.value.reason == "max_unordered_names"
