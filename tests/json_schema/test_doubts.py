"""What a schema says and its author probably does not mean, and errors that name the mistake."""

from __future__ import annotations

import json
from itertools import permutations, product
from random import Random
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from json_schema.notes import OVERLAP, accepts, free_types, notes, warnings
from strategies.profiles import CASES, LONG
from tokfold import Grammar, SchemaError, UnsatisfiableSchemaError, recognize

Schema = Any


@pytest.mark.parametrize(
    ("schema", "pointers"),
    [
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, ["#/properties"]),
        ({"minLength": 3, "title": "x"}, ["#/minLength"]),
        ({"items": {"maximum": 3}}, ["#/items", "#/items/maximum"]),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, ["#"]),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"pattern": "c"}}}, ["#/$defs/a/pattern"]),
        ({"type": "object", "properties": {"a": {"pattern": "a"}}}, ["#/properties/a/pattern"]),
        ({"type": ["string", "object"], "required": ["a"]}, []),
        ({"allOf": [{"type": "object"}, {"required": ["a"]}]}, []),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, []),
        ({"type": "string", "if": {"minLength": 2}, "then": {"pattern": "a"}}, []),
        ({"enum": ["a", {"b": 1}], "maxLength": 3}, []),
        ({"format": "unknown"}, []),
        ({}, []),
        (True, []),
    ],
)
def test_conditions_on_one_type_where_others_are_free(schema: Schema, pointers: list[str]) -> None:
    assert free_types(schema) == pointers
    for value in (5, "ab", [], {}, None) if pointers and schema.get("type") is None else ():
        verdict = jsonschema.Draft202012Validator(schema).is_valid(value)
        assert accepts(schema, json.dumps(value)) == verdict
    # What the warning asks for ends it.
    if pointers == ["#/properties"]:
        assert free_types({**schema, "type": "object"}) == []


def _named(name: str, **more: Schema) -> Schema:
    required = ["t", *(name for name, member in more.items() if member.pop("required", False))]
    return {"type": "object", "properties": {"t": {"type": "string"}, **more}, "required": required}


def test_branches_of_one_of_that_no_value_takes_alone() -> None:
    cat = _named("cat", hunt={"type": "boolean"})
    dog = _named("dog", pack={"type": "integer", "required": True})
    text = '{"t": "dog", "pack": 1}'
    grammar = Grammar.from_json_schema({"oneOf": [cat, dog]})
    assert [note.pointer for note in grammar.notes if OVERLAP in note.message] == ["#/oneOf/1"]
    read = recognize(grammar, text)
    assert not read.accepted
    place = grammar.place_in_schema(text, read.read)
    assert place is not None
    assert any("branches of oneOf overlap" in reason.message for reason in place.reasons)
    assert not any("additional_properties" in reason.message for reason in place.reasons)
    told = [{**branch, "title": str(i)} for i, branch in enumerate((cat, dog))]
    for branch, kind in zip(told, ("cat", "dog"), strict=True):
        branch["properties"] = {**branch["properties"], "t": {"const": kind}}
    grammar = Grammar.from_json_schema({"oneOf": told})
    assert not [note for note in grammar.notes if OVERLAP in note.message]
    assert recognize(grammar, text).accepted
    for same in ([cat, cat], [cat, _named("cat", run={"type": "boolean"})]):
        with pytest.raises(UnsatisfiableSchemaError, match="branches of oneOf overlap, and it"):
            Grammar.from_json_schema({"oneOf": same})
    # Each branch of a union without any value would say the same.
    schema = {"type": "object", "properties": {"pet": {"oneOf": [cat, cat]}}}
    found = warnings(schema)
    assert list(found) == ["#/properties/pet"]
    assert warnings({"oneOf": [{"type": "integer"}, {"type": "number"}]}).keys() == {"#/oneOf/0"}
    assert not warnings({"oneOf": [{"type": "integer"}, {"type": "string"}]})


@pytest.mark.parametrize(
    ("schema", "level"),
    [
        ({"type": "integer", "format": "uint32"}, "info"),
        ({"type": ["integer", "null"], "format": "int8"}, "info"),
        ({"type": "array", "format": "table"}, "info"),
        ({"type": "string", "format": "uint32"}, "warning"),
        ({"type": "string", "format": "cuid", "pattern": "^c"}, "info"),
        ({"type": "integer", "format": "even"}, "warning"),
        ({"type": "integer", "format": "date"}, "warning"),
    ],
)
def test_formats_of_other_types_and_beside_patterns(schema: Schema, level: str) -> None:
    [(found, pointer, message)] = notes(schema)
    assert (found, pointer) == (level, "#/format")
    # A pattern would say nothing of a number.
    assert ("pattern for it" in message) == (schema == {"type": "string", "format": "uint32"})


@pytest.mark.parametrize(
    ("schema", "pointer", "said"),
    [
        ({"type": "number", "minimum": 5, "maximum": 3}, "#", "#/minimum and #/maximum"),
        ({"type": "integer", "enum": ["1", "2"]}, "#", "#/type and #/enum"),
        ({"type": "string", "const": 1}, "#", "#/type and #/const"),
        ({"type": "string", "format": "date", "maxLength": 5}, "#", "#/format and #/maxLength"),
        ({"type": "string", "format": "time", "pattern": r"^\d\d:\d\d$"}, "#",
         "#/format and #/pattern"),
        ({"allOf": [{"minimum": 5}, {"type": "number", "maximum": 3}]}, "#/allOf/0",
         "#/allOf/0/minimum and #/allOf/1/maximum"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "#", "#/minItems and #/maxItems"),
        ({"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object",
          "allOf": [{"properties": {"a": {"type": "string"}}}]}, "#/allOf/0/properties/a",
         "#/properties/a and #/allOf/0/properties/a"),
        ({"type": "object", "properties": {"name": {}}, "required": ["nmae"],
          "additionalProperties": False}, "#", 'is allowed; did you mean "name"?'),
    ],
)  # fmt: skip
def test_what_contradicts_what(schema: Schema, pointer: str, said: str) -> None:
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        Grammar.from_json_schema(schema)
    assert caught.value.pointer == pointer
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "definitions", "meant"),
    [
        ("definitions/A", "definitions", "#/definitions/A"),
        ("/definitions/A", "$defs", "#/$defs/A"),
        ("A", "$defs", "#/$defs/A"),
        ("#A", "definitions", "#/definitions/A"),
        ("#definitions/A", "definitions", "#/definitions/A"),
        ("#/definitions/A", "$defs", "#/$defs/A"),
        ("#/components/schemas/A", "definitions", "#/definitions/A"),
        ("#/definitions/B/c", "definitions", "#/definitions/B~1c"),
        ("#/definitions/C", "definitions", None),
    ],
)
def test_references_to_definitions_that_are_named_otherwise(
    reference: str, definitions: str, meant: str | None
) -> None:
    schema = {"$ref": reference, definitions: {"A": {"type": "null"}, "B/c": {"type": "null"}}}
    with pytest.raises(SchemaError) as caught:
        Grammar.from_json_schema(schema)
    assert str(caught.value).endswith(f'; did you mean "{meant}"?') == (meant is not None)
    if meant is not None:
        assert accepts({**schema, "$ref": meant}, "null")


VALUES = [0, 1, "x", True, None]
OBJECTS = [
    dict(zip(names, values, strict=True))
    for count in range(3)
    for names in permutations("ab", count)
    for values in product(VALUES, repeat=count)
]


def _branch(random: Random) -> Schema:
    members: tuple[Schema, ...] = ({"type": "integer"}, {"type": "string"}, {"const": 0}, {},
                                   {"enum": [0, "x"]}, {"type": ["string", "null"]})  # fmt: skip
    if random.random() < 0.15:
        return random.choice([{"type": "integer"}, {"type": ["object", "null"]}, {"const": 1}])
    names = random.sample("ab", random.randint(1, 2))
    branch: Schema = {
        "type": "object",
        "properties": {name: random.choice(members) for name in names},
        "required": [name for name in names if random.random() < 0.5],
    }
    if random.random() < 0.2:
        branch["additionalProperties"] = random.random() < 0.5
    return branch


@pytest.mark.parametrize("seed", range(600 if LONG else 60))
def test_a_branch_that_is_noted_is_never_written(seed: int) -> None:
    """Of all small values none that the grammar has is of a branch that the notes call dead."""
    random = Random(seed)
    branches = [_branch(random) for _ in range(random.choice((2, 3)))]
    is_open = random.random() < 0.5
    try:
        grammar = Grammar.from_json_schema({"oneOf": branches}, additional_properties=is_open)
    except UnsatisfiableSchemaError:
        CASES["dead branches: unions without a value"] += 1
        return
    dead = {note.pointer for note in grammar.notes if OVERLAP in note.message}
    judges = [jsonschema.Draft202012Validator(branch) for branch in branches]
    for value in (*OBJECTS, *VALUES):
        if not recognize(grammar, json.dumps(value)).accepted:
            continue
        [taken] = [place for place, judge in enumerate(judges) if judge.is_valid(value)]
        assert f"#/oneOf/{taken}" not in dead, (branches, value)
        CASES["dead branches: values of others"] += 1
    CASES["dead branches: found"] += len(dead)
