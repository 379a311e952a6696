"""`uniqueItems` over many listed values: one set that is kept while items are read.

The oracle is the definition: a text is one of the language where its items are among those that are
listed and satisfy the rest of the schema, no two of them are equal, and the bounds hold.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from json_schema.any_order import compiled_of, row_of, taken_by, vocabulary_of
from json_schema.languages import language
from strategies.profiles import CASES, examples
from tokfold import (
    Grammar,
    Matcher,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    recognize,
)

Schema = dict[str, Any]

FEW = 12
"""Up to so many values there is a state for each set."""
LAYOUTS: tuple[dict[str, Any], ...] = ({}, {"indent": 2}, {"separators": (",", ":")})


def listed(random: Random) -> list[Any]:
    """Distinct values of all types, more than states are made for."""
    pool: list[Any] = [f"w{number}" for number in range(40)] + [f"w{n}x" for n in range(9)]
    pool += [*range(30), None, True, False, [], ["k"], {"a": "b"}, "é", 'q"', 1.5]
    return random.sample(pool, random.randint(FEW + 1, 45))


def schema_of(random: Random) -> Schema:
    values = listed(random)
    schema: Schema = {"type": "array", "items": {"enum": values}, "uniqueItems": True}
    if random.random() < 0.3:
        schema["items"] = {"enum": values, "type": ["string", "integer", "null"]}
    least = random.choice((0, 0, 1, 2, 5))
    if least:
        schema["minItems"] = least
    if random.random() < 0.4:
        schema["maxItems"] = least + random.randint(2, 6)
    return schema


def is_valid(schema: Schema, items: list[Any]) -> bool:
    """What the keywords say, one by one."""

    def key(value: Any) -> str:
        is_whole = isinstance(value, float) and value.is_integer()
        return json.dumps(int(value) if is_whole else value, sort_keys=True)

    def fits(item: Any) -> bool:
        is_number = isinstance(item, int | float) and not isinstance(item, bool)
        kinds = {
            "string": isinstance(item, str),
            "integer": is_number and float(item).is_integer(),
            "null": item is None,
        }
        wanted = schema["items"].get("type")
        return wanted is None or any(kinds[kind] for kind in wanted)

    known = {key(value) for value in schema["items"]["enum"]}
    texts = [key(item) for item in items]
    return (
        len(texts) == len(set(texts))
        and all(text in known for text in texts)
        and all(fits(item) for item in items)
        and schema.get("minItems", 0) <= len(items) <= schema.get("maxItems", len(items))
    )


def drawn(random: Random, schema: Schema) -> list[Any]:
    """An array that is valid, or nearly so."""
    values = schema["items"]["enum"]
    count = random.choice((0, 1, 2, 3, 6, len(values)))
    items = random.sample(values, min(count, len(values)))
    if items and random.random() < 0.3:
        items.insert(random.randrange(len(items) + 1), random.choice(items))
    if random.random() < 0.1:
        items.append("none of them")
    return items


@examples(40)
@given(random=st.randoms(use_true_random=False))
def test_texts(random: Random) -> None:
    """The texts are those of the definition, whatever the order of keys and the layout."""
    schema = schema_of(random)
    note(json.dumps(schema))
    layout = random.choice(LAYOUTS)
    found = language(schema, key_order=random.choice(("schema", "any")), **layout)
    for _ in range(30):
        items = drawn(random, schema)
        expected = is_valid(schema, items)
        text = json.dumps(items, ensure_ascii=False, **layout)
        assert found.accepts(text) == expected, text
        CASES[f"unique items: {'valid' if expected else 'invalid'} texts"] += 1


@examples(25)
@given(random=st.randoms(use_true_random=False))
def test_no_walk_ends_where_nothing_may_follow(random: Random) -> None:
    """Random texts are valid; one in which all values are read ends."""
    schema = schema_of(random)
    note(json.dumps(schema))
    found = language(schema, max_whitespace=1)
    for budget in (10, 60, 600):
        text = found.sample(random, budget)
        if text is None:
            continue
        assert is_valid(schema, json.loads(text)), text
        CASES["unique items: texts sampled"] += 1


@examples(15)
@given(random=st.randoms(use_true_random=False))
def test_masks(random: Random) -> None:
    """A mask allows the tokens that are accepted, tokens over several items among them."""
    schema = schema_of(random)
    note(json.dumps(schema))
    values = schema["items"]["enum"]
    tokens = []
    for _ in range(60):
        data = json.dumps(random.choices(values, k=4), ensure_ascii=False).encode()
        start = random.randrange(len(data))
        tokens.append(data[start : start + random.randint(2, 30)])
    grammar = Grammar.from_json_schema(schema, max_whitespace=1)
    matcher = Matcher(compiled_of(grammar, vocabulary_of(tokens)))
    for _ in range(25):
        allowed = row_of(matcher)
        assert allowed == taken_by(matcher)
        CASES["unique items: masks"] += 1
        choices = [token for token, is_allowed in enumerate(allowed) if is_allowed and token]
        if not choices:
            break
        assert matcher.accept_token(random.choice(choices))


def test_all_values_in_turn() -> None:
    """Where all 1,000 values are read there is no comma more."""
    values = [f"v{number}" for number in range(1_000)]
    schema = {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": 1_000}
    found = language(schema, separators=(",", ":"))
    text = json.dumps(values[::-1], separators=(",", ":"))
    assert found.accepts(text)
    assert not found.accepts(text.replace('"v7"', '"v8"'))
    assert found.prefix(text[:-1] + ",") == len(text) - 1


@pytest.mark.parametrize(
    "beside",
    [
        {"contains": {"const": 3}},
        {"prefixItems": [{"const": 3}]},
        {"anyOf": [{"contains": {"const": 3}}, {"minItems": 4}]},
    ],
    ids=["contains", "first items", "alternatives"],
)
def test_other_conditions_are_refused_by_name(beside: Schema) -> None:
    schema = {"type": "array", "items": {"enum": list(range(50))}, "uniqueItems": True, **beside}
    with pytest.raises(UnsupportedSchemaError, match="items were read") as caught:
        Grammar.from_json_schema({"properties": {"a": schema}})
    assert (caught.value.keyword, caught.value.pointer) == ("uniqueItems", "#/properties/a")


def test_more_items_than_there_are() -> None:
    schema = {"type": "array", "items": {"enum": list(range(50))}, "uniqueItems": True}
    with pytest.raises(UnsatisfiableSchemaError):
        Grammar.from_json_schema({**schema, "minItems": 51})


@pytest.mark.parametrize(
    ("text", "pointer"),
    [("[1, 2, 1]", "/2"), ("[77]", "/0"), ("[1, 2, 3, 4]", ""), ('["x"]', "/0")],
)
def test_explained(text: str, pointer: str) -> None:
    """What is wrong is told with its place in the document and the keyword of the schema."""
    grammar = Grammar.from_json_schema(
        {"type": "array", "items": {"enum": list(range(50))}, "uniqueItems": True, "maxItems": 3}
    )
    found = recognize(grammar, text)
    assert not found.accepted
    place = grammar.place_in_schema(text, found.read)
    assert place is not None
    assert place.pointer == pointer
