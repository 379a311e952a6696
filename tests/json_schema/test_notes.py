"""Notes on schemas: their levels, what they say, and that it is true.

One file of more than 600 lines: a list of notes, and each test speaks of one.
"""

from __future__ import annotations

import json
import pickle
from typing import Any, Literal

import jsonschema  # type: ignore[import-untyped]
import pytest
from json_schema.notes import OVERLAP, accepts, notes, warnings
from json_schema.truth import Validators
from tokfold import (
    Grammar,
    GrammarCompiler,
    StrictSchemaError,
    UnsatisfiableSchemaError,
    Vocabulary,
    recognize,
)

Schema = Any

DRAFT3 = "http://json-schema.org/draft-03/schema#"
DRAFT4 = "http://json-schema.org/draft-04/schema#"
DRAFT7 = "http://json-schema.org/draft-07/schema#"
BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=[256])


# -- what is noted, and how

UNKNOWN = "no dialect has this keyword, so it is not enforced; "
ONE: tuple[tuple[str, Schema, str, str, str], ...] = (
    ("typo", {"propertes": {}, "type": "object"}, "warning", "#/propertes", "properties"),
    ("letters swapped", {"minLenght": 1, "type": "string"}, "warning", "#/minLenght", "minLength"),
    ("case", {"maxitems": 1, "type": "array"}, "warning", "#/maxitems", "maxItems"),
    ("marks", {"any_of": [], "type": "array"}, "warning", "#/any_of", "anyOf"),
    ("a blank", {"required ": ["a"], "type": "object"}, "warning", "#/required ", "required"),
    ("no dollar", {"ref": "#/x", "type": "object"}, "warning", "#/ref", "$ref"),
)


@pytest.mark.parametrize(("schema", "level", "pointer", "meant"), [c[1:] for c in ONE])
def test_misspelt_keywords(schema: Schema, level: str, pointer: str, meant: str) -> None:
    pointer = pointer.replace(" ", "%20")
    assert notes(schema) == [(level, pointer, f'{UNKNOWN}did you mean "{meant}"?')]


def test_misspelt_annotations_are_information() -> None:
    message = 'no dialect has this keyword; did you mean "description"?'
    assert notes({"type": "null", "descrption": "x"}) == [("info", "#/descrption", message)]


@pytest.mark.parametrize(
    "more",
    [
        {"units": "mm"},
        {"cost": 3},
        {"count": 3},
        {"container": True},
        {"formats": ["a"]},  # a format is a string
        {"types": {"a": 1}},
        {"_format": "date"},  # left out on purpose
        {"//pattern": "^a"},
        {"x-propertes": {}},
        {"properties": {}, "propertys": {}},  # the keyword is there
        {"propriétés": {}},
        {"p" * 100_000: 1},
    ],
)
def test_own_keywords_are_no_misspellings(more: Schema) -> None:
    assert not warnings({"type": "object", **more})


def test_annotations_are_information() -> None:
    schema = {
        "$comment": "",
        "title": "",
        "description": "",
        "default": 1,
        "examples": [],
        "deprecated": True,
        "readOnly": True,
        "example": 1,
        "xml": {},
        "externalDocs": {},
        "x-own": 1,
        "format": "int32",
        "type": "integer",
    }
    found = notes(schema)
    assert {level for level, _, _ in found} == {"info"}
    assert [pointer[2:] for _, pointer, _ in found] == [*schema][:-1]


def test_notes_stand_in_the_order_of_the_document() -> None:
    schema = {
        "title": "",
        "properties": {"a": {"format": "uuid9", "pattern": r"\Aa"}, "b": {"title": "", "x": 1}},
        "x-last": 1,
    }
    found = [pointer for _, pointer, _ in notes(schema)]
    a, b = "#/properties/a", "#/properties/b"
    assert found == [
        "#/title",
        f"{a}/format",
        f"{a}/pattern",
        f"{b}/title",
        f"{b}/x",
        "#/x-last",
    ]


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("uuid9", 'did you mean "uuid"?'),
        ("datetime", 'did you mean "date-time"?'),
        ("url", 'did you mean "uri"?'),
        ("color", 'write a pattern for it, or pass formats={"color": pattern}'),
    ],
)
def test_formats_that_are_not_known(name: str, mend: str) -> None:
    schema = {"items": {"type": "string", "format": name}}
    message = f'the format "{name}" is not known, so it is not enforced; {mend}'
    assert notes(schema) == [("warning", "#/items/format", message)]


def test_formats_as_annotations() -> None:
    message = "formats are annotations, as the options say"
    schema = {"type": "string", "format": "date"}
    assert notes(schema, formats="annotation") == [("info", "#/format", message)]


def test_metaschemas() -> None:
    schema = {"$schema": "http://example.com/schema#", "type": "null"}
    assert "read as 2020-12" in warnings(schema)["#/$schema"]
    schema["$schema"] = "http://json-schema.org/schema#"
    message = "it names no dialect; the schema is read as 2020-12"
    assert notes(schema) == [("info", "#/$schema", message)]
    for dialect, level in (("2020-12", "info"), ("2019-09", "warning")):
        inner = {"$schema": f"https://json-schema.org/draft/{dialect}/schema", "type": "null"}
        [(found, pointer, _)] = notes({"items": inner})
        assert (found, pointer) == (level, "#/items/$schema")


def test_keywords_beside_other_types() -> None:
    schema = {
        "type": ["integer", "null"],
        "minLength": 1,
        "format": "date",
        "properties": {},
        "additionalProperties": False,
        "uniqueItems": True,
        "maximum": 3,
    }
    said = "it is about {}, and says nothing beside the type null, integer"
    assert notes(schema) == [
        ("warning", "#/minLength", said.format("strings")),
        ("warning", "#/format", said.format("strings")),
        ("info", "#/properties", said.format("objects")),
        ("warning", "#/additionalProperties", said.format("objects")),
        ("warning", "#/uniqueItems", said.format("arrays")),
    ]
    assert not notes({"type": ["integer", "string"], "minLength": 1, "maximum": 2})
    assert not notes({"minLength": 1, "maximum": 2})


def test_keywords_that_need_another() -> None:
    schema = {
        "type": "array",
        "then": {"maxItems": 1},
        "minContains": 2,
        "allOf": [{"if": {"maxItems": 1}}],
    }
    assert notes(schema) == [
        ("warning", "#/then", "it says nothing without if"),
        ("warning", "#/minContains", "it says nothing without contains"),
        ("info", "#/allOf/0/if", "it asks for nothing without then or else"),
    ]
    bound = {"$schema": DRAFT4, "type": "integer", "exclusiveMaximum": True}
    assert warnings(bound) == {"#/exclusiveMaximum": "true says nothing without maximum"}


def test_members_outside_of_properties() -> None:
    schema = {"type": "object", "age": {"type": "integer"}}
    assert warnings(schema) == {
        "#/age": f"{UNKNOWN}its value is a schema: members of objects stand in properties"
    }
    referred = {**schema, "properties": {"x": {"$ref": "#/age"}}}
    assert not warnings(referred)
    assert not warnings({"type": "string", "ui": {"type": "string"}})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"name": "x", "age": 3}, '"name", "age" are no keywords'),
        ({"title": "Dr", "name": "x"}, '"name" is no keyword'),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, '"a", "b", "c" are no keywords'),
        ({"about": "f", "parameters": {"type": "object"}}, 'pass what stands under "parameters"'),
        ({"openapi": "3.0.3", "paths": {}}, "openapi.json#/components/schemas/"),
    ],
)
def test_a_document_is_no_schema(schema: Schema, message: str) -> None:
    found = warnings(schema)
    assert list(found) == ["#"]
    assert found["#"].startswith("this looks like a document, not like a schema: ")
    assert message in found["#"]
    assert "any JSON value is accepted" in found["#"]
    assert accepts(schema, "[null]")


def test_a_schema_without_a_condition() -> None:
    told = "no keyword that constrains anything, so any JSON value is accepted"
    for schema in ({}, {"title": "x"}, {"type:": "object", "x-a": 1}, {"if": {}}, "{}"):
        assert "any JSON value is accepted" in warnings(schema)["#"]
    assert told in warnings({"title": "x", "format": "colour"})["#"]
    assert '{"$ref": "#/$defs/a~1b"}' in warnings({"$defs": {"a/b": {"type": "null"}}})["#"]
    assert notes(True) == []
    assert notes({"allOf": [{}]}) == []


def test_words_of_others() -> None:
    schema = {
        "type": "object",
        "x-guidance": {"whitespace_flexible": False},
        "divisibleBy": 2,
        "properties": {"a": {"type": "string", "max": 3, "regex": "^a"}, "b": {"type": "null"}},
        "propertyOrdering": ["b", "a"],
    }
    found = warnings(schema)
    assert "options of llguidance, and none of them is read" in found["#/x-guidance"]
    assert "write multipleOf" in found["#/divisibleBy"]
    assert "write maximum, maxLength" in found["#/properties/a/max"]
    assert "write pattern" in found["#/properties/a/regex"]
    assert 'pass key_order="any"' in found["#/propertyOrdering"]
    assert not warnings({"properties": schema["properties"], "propertyOrdering": ["a", "b"]}).get(
        "#/propertyOrdering"
    )


def test_keywords_of_other_dialects() -> None:
    schema = {"$schema": DRAFT4, "type": "integer", "const": 1, "$comment": "", "examples": []}
    lacking = "the dialect of the schema, draft-04, has no such keyword; it is of"
    assert notes(schema) == [
        (
            "warning",
            "#/const",
            f"{lacking} draft-06 and later, and is not enforced; name a dialect that has it in "
            "$schema",
        ),
        ("info", "#/$comment", f"{lacking} draft-07 and later"),
        ("info", "#/examples", f"{lacking} draft-06 and later"),
    ]


def test_a_reference_hides_conditions() -> None:
    schema = {
        "$schema": DRAFT7,
        "definitions": {"a": {"type": "string"}},
        "items": {"$ref": "#/definitions/a", "title": "", "type": "string", "minLength": 2},
    }
    hidden = "in draft-07, $ref hides all keywords beside it"
    assert notes(schema) == [
        ("info", "#/items/title", "the keyword is an annotation"),
        ("info", "#/items/type", hidden),  # the target says the same
        (
            "warning",
            "#/items/minLength",
            f"{hidden}, so it is not enforced; write both into allOf",
        ),
    ]


def test_items_of_older_drafts() -> None:
    tuples = {"items": [{"type": "integer"}], "additionalItems": False}
    assert notes(tuples) == []  # it counts, and is not noted
    assert not accepts(tuples, "[1, 2]")
    said = "it says nothing without an array of schemas in items"
    for more in ({}, {"$schema": DRAFT7}):
        schema = {**more, "type": "array", "items": {}, "additionalItems": False}
        assert notes(schema) == [("info", "#/additionalItems", said)]
    both = {"prefixItems": [{}], "additionalItems": False}
    assert "write items beside prefixItems" in warnings(both)["#/additionalItems"]
    assert accepts(both, "[1, 2]")


def test_a_boolean_under_required() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "required": True},
            "b": {"type": "object", "required": True},
            "c": {"required": False},
        },
    }
    said = (
        "a boolean is of draft 3, and is not enforced; list the name of this member in required of "
        "the object around it"
    )
    for more in ({}, {"$schema": DRAFT4}, {"$schema": DRAFT7}):
        found = warnings({**more, **schema})
        assert found == {f"#/properties/{name}/required": said for name in "ab"}
        assert accepts({**more, **schema}, "{}")
    assert "#/properties/c/required" in [pointer for _, pointer, _ in notes(schema)]


def test_required_of_draft_3() -> None:
    schema = {
        "$schema": DRAFT3,
        "type": "object",
        "properties": {
            "a": {"type": "string", "required": True},
            "b": {
                "type": "object",
                "required": True,
                "properties": {"c": {"required": True, "type": "any"}},
            },
            "d": {"required": False},
        },
    }
    assert not notes(schema)
    judge = jsonschema.Draft3Validator(schema)
    for order in ("schema", "any"):
        grammar = Grammar.from_json_schema(schema, key_order=order)
        for text in (
            '{"a": "", "b": {"c": 1}}',
            '{"a": "", "b": {"c": 1}, "d": 1}',
            '{"a": "", "b": {}}',
            '{"a": ""}',
            '{"b": {"c": 1}}',
            "{}",
        ):
            valid = judge.is_valid(json.loads(text))
            assert recognize(grammar, text).accepted == valid, text


def test_many_required_of_draft_3() -> None:
    names = [f"n{number}" for number in range(40)]
    members = {name: {"type": "null", "required": True} for name in names}
    schema = {"$schema": DRAFT3, "type": "object", "properties": members}
    assert accepts(schema, json.dumps(dict.fromkeys(names)))
    assert not accepts(schema, json.dumps(dict.fromkeys(names[1:])))


# -- OpenAPI


def test_nullable_elsewhere() -> None:
    schema = {
        "properties": {
            "a": {"type": "string", "nullable": True},
            "b": {"$ref": "#/$defs/x", "nullable": True},
            "c": {"type": "string", "enum": ["u"], "nullable": True},
            "d": {"type": ["string", "null"], "nullable": True},
            "e": {"type": "string", "nullable": False},
            "f": {"nullable": True},
            "g": {"anyOf": [{"type": "string"}, {"type": "null"}], "nullable": True},
            "h": {"enum": ["u", None], "nullable": True},
            "i": {"anyOf": [{"type": "string"}, {"enum": [1]}], "nullable": True},
        },
        "$defs": {"x": {"type": "object"}},
    }
    found = warnings(schema)
    assert list(found) == [f"#/properties/{name}/nullable" for name in "abci"]
    assert 'pass dialect="openapi-3.0", or add "null" to type' in found["#/properties/a/nullable"]
    assert 'write "anyOf": [{...}, {"type": "null"}]' in found["#/properties/b/nullable"]
    assert "list null in enum" in found["#/properties/c/nullable"]
    for name in "abcei":
        assert not accepts(schema, json.dumps({name: None}))
    for name in "dfgh":
        assert accepts(schema, json.dumps({name: None}))


OPENAPI: Schema = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "nullable": True, "example": "x"},
        "b": {"type": "string", "enum": ["u"], "nullable": True},
        "c": {"type": "string", "enum": ["u", None], "nullable": True},
        "d": {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        "e": {"$ref": "#/components/schemas/x", "nullable": True, "minimum": 3},
        "f": {"nullable": True, "allOf": [{"type": "string"}]},
        "g": {"type": "array", "items": {"type": "integer", "nullable": True}},
        "h": {"type": "string", "nullable": False},
    },
    "components": {"schemas": {"x": {"type": "integer"}}},
}


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ('{"a": null}', True),
        ('{"a": ""}', True),
        ('{"b": null}', False),
        ('{"c": null}', True),
        ('{"d": 1}', False),
        ('{"d": 2}', True),
        ('{"e": 1}', True),
        ('{"e": null}', False),
        ('{"f": null}', False),
        ('{"f": ""}', True),
        ('{"g": [null, 1]}', True),
        ('{"g": null}', False),
        ('{"h": null}', False),
    ],
)
def test_openapi_3_0(text: str, accepted: bool) -> None:
    assert accepts(OPENAPI, text, dialect="openapi-3.0") == accepted


def test_notes_of_openapi_3_0() -> None:
    found = warnings(OPENAPI, dialect="openapi-3.0")
    assert list(found) == [
        f"#/properties/{place}" for place in ("b/nullable", "e/nullable", "e/minimum", "f/nullable")
    ]
    assert "list null in enum" in found["#/properties/b/nullable"]
    assert "in openapi-3.0, $ref hides" in found["#/properties/e/minimum"]
    of_constant = Grammar.from_json_schema({"type": "null", "const": 1}, dialect="openapi-3.0")
    nothing = {"type": "object", "properties": {"a": OPENAPI["properties"]["a"]}}
    assert not warnings(nothing, dialect="openapi-3.0")
    assert "const" in [n.keyword for n in of_constant.notes]


def test_openapi_3_0_in_resources() -> None:
    schema = {"$ref": "api.json#/components/schemas/x"}
    member = {"type": "string", "nullable": True}
    resources = {"api.json": {"openapi": "3.0.3", "components": {"schemas": {"x": member}}}}
    for dialect, accepted in (("openapi-3.0", True), (None, False)):
        options: Any = {"dialect": dialect, "resources": resources}
        assert accepts(schema, "null", **options) == accepted


def test_dialects_by_option() -> None:
    tuples = {"items": [{"type": "integer"}], "additionalItems": False}
    for dialect in ("draft-04", "draft-06", "draft-07", "2019-09"):
        assert not accepts(tuples, "[1, 2]", dialect=dialect)
    assert accepts({"const": 1}, "2", dialect="draft-04")
    assert not accepts({"$schema": DRAFT7, "const": 1}, "2", dialect="draft-04")
    with pytest.raises(ValueError, match=r"dialect must be 'draft-04' or 'openapi-3.0' or"):
        Grammar.from_json_schema({}, dialect="draft-05")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"k": {"const": "y"}}, None),
        ({"k": {"enum": ["y", "z"]}}, None),
        ({"k": {"$ref": "#/$defs/kind"}}, None),
        ({"k": {"type": "string"}}, "#/$defs/y"),
        ({}, "#/$defs/y"),
    ],
)
def test_discriminators(schema: Schema, pointer: str | None) -> None:
    schema = {
        "oneOf": [{"allOf": [{"$ref": "#/$defs/x"}]}, {"$ref": "#/$defs/y"}],
        "discriminator": {"propertyName": "k", "mapping": {"x": "#/$defs/x"}},
        "$defs": {
            "x": {"type": "object", "properties": {"k": {"const": "x"}}, "required": ["k"]},
            "y": {"type": "object", "properties": schema, "required": ["k"]},
            "kind": {"enum": ["y"]},
        },
    }
    found = warnings(schema)
    # The other branch takes all that the first one takes.
    assert list(found) == ([] if pointer is None else ["#/oneOf/0", "#/discriminator"])
    assert accepts(schema, '{"k": "other"}') == (pointer is not None)
    if pointer is not None:
        assert '#/oneOf/1 takes any value of "k"' in found["#/discriminator"]


@pytest.mark.parametrize(
    ("branch", "is_required"),
    [
        ({"$ref": "#/$defs/cat"}, False),
        ({"$ref": "#/$defs/tagged"}, True),
        ({"allOf": [{"$ref": "#/$defs/cat"}, {"required": ["a", "k"]}]}, True),
        ({"oneOf": [{"$ref": "#/$defs/tagged"}, {"$ref": "#/$defs/cat"}]}, False),
        ({"oneOf": [{"$ref": "#/$defs/tagged"}, {"type": "null"}]}, True),
    ],
)
def test_tags_of_discriminators_that_may_be_left_out(branch: Schema, is_required: bool) -> None:
    """Pydantic does not require a tag that has a default, and refuses the text without it."""
    schema = {
        "oneOf": [
            branch,
            {"type": "object", "properties": {"k": {"const": "x"}}, "required": ["k"]},
        ],
        "discriminator": {"propertyName": "k"},
        "$defs": {
            "cat": CAT,
            "tagged": {
                "type": "object",
                "properties": {"k": {"const": "dog"}},
                "required": ["k"],
            },
        },
    }
    notes = Grammar.from_json_schema(schema).notes
    (note,) = [note for note in notes if note.pointer == "#/discriminator"]
    assert note.level == "info"
    assert ("#/oneOf/0 does not require it" in note.message) is not is_required


CAT = {"type": "object", "properties": {"k": {"const": "cat"}}}
DOG = {"type": "object", "properties": {"k": {"enum": ["dog"]}}}
BIRD = {"type": "object", "properties": {"k": {"type": "string"}}}


@pytest.mark.parametrize(
    ("branch", "is_warned"),
    [
        ({"oneOf": [CAT, DOG]}, False),
        ({"anyOf": [CAT, {"$ref": "#/$defs/dog"}]}, False),
        ({"$ref": "#/$defs/union"}, False),
        ({"allOf": [{"description": "x"}, {"$ref": "#/$defs/union"}]}, False),
        ({"anyOf": [{"$ref": "#/$defs/dog"}] * 40}, False),
        ({"type": "null"}, False),
        ({"type": ["null", "string"]}, False),
        ({"oneOf": [CAT, {"type": "null"}]}, False),
        ({"const": None}, False),
        ({"enum": [{"k": "cat"}, 1]}, False),
        ({"oneOf": [CAT, BIRD]}, True),
        ({"anyOf": [CAT, {"type": ["null", "object"]}]}, True),
    ],
)
@pytest.mark.parametrize("union", ["oneOf", "anyOf"])
def test_branches_of_discriminators_that_are_unions_or_no_objects(
    branch: Schema, is_warned: bool, union: str
) -> None:
    schema = {
        union: [branch, {"type": "object", "properties": {"k": {"const": "x"}}}],
        "discriminator": {"propertyName": "k"},
        "$defs": {
            "dog": DOG,
            "union": {"oneOf": [CAT, {"$ref": "#/$defs/dog"}]},
        },
    }
    found = warnings(schema)
    found = {pointer: message for pointer, message in found.items() if OVERLAP not in message}
    assert list(found) == (["#/discriminator"] if is_warned else [])
    if is_warned:
        assert f'#/{union}/0 takes any value of "k"' in found["#/discriminator"]


@pytest.mark.parametrize("version", ["3.1/dialect/base", "3.1/dialect/2024-11-10"])
def test_the_dialect_of_openapi_3_1_is_2020_12(version: str) -> None:
    schema = {
        "$schema": f"https://spec.openapis.org/oas/{version}",
        "type": "object",
        "properties": {"a": {"type": ["string", "null"], "example": "x"}},
        "dependentRequired": {"a": ["b"]},
    }
    assert warnings(schema) == {}
    assert not accepts(schema, '{"a": null}')
    assert accepts(schema, '{"a": null, "b": 1}')
    unknown = {**schema, "$schema": "https://spec.openapis.org/oas/3.1/other"}
    assert list(warnings(unknown)) == ["#/$schema"]


def test_a_discriminator_without_branches() -> None:
    schema = {"type": "object", "discriminator": {"propertyName": "k"}}
    assert "list the schemas in oneOf" in warnings(schema)["#/discriminator"]


# -- strict


def test_strict() -> None:
    schema = {
        "title": "x",
        "type": "object",
        "properties": {"a": {"format": "uuid9"}, "b": {"minLenght": 1, "description": ""}},
    }
    with pytest.raises(StrictSchemaError) as caught:
        Grammar.from_json_schema(schema, strict=True)
    error = caught.value
    assert (error.pointer, error.keyword) == ("#/properties/a/format", "format")
    assert [note.pointer for note in error.warnings] == [
        "#/properties/a/format",
        "#/properties/b/minLenght",
    ]
    head, *lines = str(error).splitlines()
    assert head == "the schema has 2 warnings, and strict=True refuses it:"
    assert lines == [str(note) for note in error.warnings]
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.warnings) == (str(error), error.warnings)
    with pytest.raises(StrictSchemaError, match=r"has 1 warning, and"):
        Grammar.from_json_schema({}, strict=True)
    fine = {"title": "x", "type": "string"}
    assert Grammar.from_json_schema(fine, strict=True) == Grammar.from_json_schema(fine)
    with pytest.raises(TypeError, match="strict must be True or False"):
        Grammar.from_json_schema(fine, strict=1)  # type: ignore[arg-type]


def test_strict_compilers() -> None:
    compiler = GrammarCompiler(BYTES)
    schema = {"type": "string", "format": "uuid9"}
    compiler.compile_json_schema(schema)
    with pytest.raises(StrictSchemaError, match="did you mean"):
        compiler.compile_json_schema(schema, strict=True)


def test_a_note_as_text() -> None:
    [note] = Grammar.from_json_schema({"type": "null", "title": ""}).notes
    assert str(note) == "#/title: the keyword is an annotation"
    assert (note.level, note.keyword) == ("info", "title")


# -- notes are true

NOT_ENFORCED: tuple[tuple[Schema, str, Schema, str], ...] = (
    # a schema, the pointer of its warning, what it is meant to say, a text that this refuses
    ({"type": "string", "minLenght": 2}, "#/minLenght", {"minLength": 2}, '"a"'),
    ({"type": "object", "propertes": {"a": {"type": "null"}}}, "#/propertes",
     {"properties": {"a": {"type": "null"}}}, '{"a": 1}'),
    ({"type": "object", "a": {"type": "null"}}, "#/a",
     {"properties": {"a": {"type": "null"}}}, '{"a": 1}'),
    ({"type": "string", "format": "uuid9"}, "#/format", {"format": "uuid"}, '"x"'),
    ({"type": "string", "max": 1}, "#/max", {"maxLength": 1}, '"ab"'),
    ({"type": "string", "regex": "^a"}, "#/regex", {"pattern": "^a"}, '"b"'),
    ({"properties": {"a": {"type": "null", "required": True}}}, "#/properties/a/required",
     {"required": ["a"]}, "{}"),
    ({"properties": {"a": {"type": "object", "required": True}}}, "#/properties/a/required",
     {"required": ["a"]}, "{}"),
    ({"$schema": DRAFT4, "type": "integer", "const": 1}, "#/const", {"const": 1}, "2"),
    ({"$schema": DRAFT7, "items": {"$ref": "#/definitions/a", "minLength": 2},
      "definitions": {"a": {"type": "string"}}}, "#/items/minLength",
     {"items": {"minLength": 2}}, '["a"]'),
    ({"prefixItems": [{}], "additionalItems": False}, "#/additionalItems", {"maxItems": 1},
     "[1, 2]"),
    ({"$schema": DRAFT7, "type": "array", "minContains": 2, "contains": {}}, "#/minContains",
     {"minItems": 2}, "[1]"),
    ({"type": "integer", "divisibleBy": 2}, "#/divisibleBy", {"multipleOf": 2}, "1"),
    ({"oneOf": [{"properties": {"k": {"type": "string"}}}],
      "discriminator": {"propertyName": "k", "mapping": {"a": "x"}}}, "#/discriminator",
     {"properties": {"k": {"enum": ["a"]}}}, '{"k": "b"}'),
)  # fmt: skip


@pytest.mark.parametrize(("schema", "pointer", "meant", "text"), NOT_ENFORCED)
def test_what_is_not_enforced_is_not(
    schema: Schema, pointer: str, meant: Schema, text: str
) -> None:
    message = warnings(schema)[pointer]
    assert "not enforced" in message
    assert Validators(meant).verdict(json.loads(text)) is False
    assert accepts(schema, text)


IDLE: tuple[tuple[Schema, str], ...] = (
    ({"type": "integer", "minLength": 3}, "#/minLength"),
    ({"type": "array", "additionalProperties": False}, "#/additionalProperties"),
    ({"type": "object", "then": {"required": ["a"]}}, "#/then"),
    ({"type": "array", "items": {"type": "null"}, "additionalItems": False}, "#/additionalItems"),
    ({"type": "array", "maxContains": 0}, "#/maxContains"),
    ({"type": "object", "if": {"required": ["a"]}}, "#/if"),
    ({"type": "string", "required": ["a"]}, "#/required"),
)
POOL: tuple[Any, ...] = (
    None, True, 0, 1, 2, 2.5, -3, "", "a", "ab", "2020-02-30", "2020-02-29", [], [1], [1, 1], ["a"],
    [None], [1, "a", None], {}, {"a": 1}, {"a": "x"}, {"a": None, "b": 2}, {"b": "2"}, {"c": [1]},
)  # fmt: skip


@pytest.mark.parametrize(("schema", "pointer"), IDLE)
def test_what_says_nothing_says_nothing(schema: Schema, pointer: str) -> None:
    assert "nothing" in {note[1]: note[2] for note in notes(schema)}[pointer]
    keyword = pointer.removeprefix("#/")
    without = {name: value for name, value in schema.items() if name != keyword}
    for value in POOL:
        text = json.dumps(value)
        assert accepts(schema, text) == accepts(without, text), text


ENFORCED: tuple[Schema, ...] = (
    {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "a|2", "title": "x"},
    {"type": "string", "format": "date"},
    {"type": ["integer", "null"], "minimum": 1, "exclusiveMaximum": 2, "x-own": 1},
    {"multipleOf": 2, "enum": [2, 2.5, "a"], "description": "x"},
    {"$schema": DRAFT7, "items": [{"type": "integer"}], "additionalItems": {"type": "string"}},
    {"prefixItems": [{"type": "integer"}], "items": False, "minItems": 1},
    {"contains": {"type": "integer"}, "minContains": 2, "maxContains": 2},
    {"properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"patternProperties": {"^a": {"type": "string"}}, "propertyNames": {"maxLength": 1}},
    {"minProperties": 1, "maxProperties": 1, "unevaluatedProperties": {"type": "string"}},
    {"dependentRequired": {"a": ["b"]}, "dependencies": {"b": ["a"]}},
    {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"type": "array"}},
    {"anyOf": [{"type": "null"}, {"type": "string"}], "not": {"const": "a"}, "default": 1},
    {"oneOf": [{"minimum": 1}, {"type": "integer"}], "$comment": ""},
    {"$schema": DRAFT4, "type": "number", "minimum": 1, "exclusiveMinimum": True},
    {"$schema": DRAFT7, "$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}},
)  # fmt: skip


@pytest.mark.parametrize("schema", ENFORCED)
def test_what_has_no_warning_is_enforced(schema: Schema) -> None:
    assert not warnings(schema)
    grammar = Grammar.from_json_schema(schema)
    judge = Validators(schema)
    verdicts = set()
    for value in POOL:
        verdict = judge.verdict(value)
        if recognize(grammar, json.dumps(value)).accepted:
            assert verdict is not False, value
        verdicts.add(verdict)
    assert verdicts >= {True, False}


def test_what_is_never_written_is_noted() -> None:
    """A member that no value satisfies is left out of the grammar, with a word of it."""
    union = {
        "oneOf": [
            {"type": "object", "properties": {"meow": {"type": "string"}}},
            {"type": "object", "properties": {"bark": {"type": "string"}}},
        ]
    }
    schema = {
        "type": "object",
        "properties": {
            "pet": union,
            "pets": {"type": "array", "items": {"type": "integer", "minimum": 2, "maximum": 1}},
            "none": False,
            "never": {"not": {}},
            "name": {
                "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 2, "maximum": 1}]
            },
        },
    }
    for is_open, pointers in ((False, ["pet", "pets/items"]), (True, ["pets/items"])):
        grammar = Grammar.from_json_schema(schema, additional_properties=is_open)
        found = {note.pointer: note for note in grammar.notes if "never written" in note.message}
        assert list(found) == [f"#/properties/{pointer}" for pointer in pointers]
        assert all(note.level == "warning" for note in found.values())
        hints = ["additional_properties=True" in note.message for note in found.values()]
        assert hints == [pointer == "pet" for pointer in pointers]
    assert not recognize(Grammar.from_json_schema(schema), '{"pet": {"meow": "x"}}').accepted


def test_what_is_written_beside_another_schema_is_not_noted() -> None:
    """By itself a closed object has no member "b"; beside a schema with that name it has one."""
    asks = {"not": {"properties": {"z": {}}, "not": {"required": ["b"]}}}
    alone: Any = {"type": "object", "properties": {"a": {}}, **asks}
    other = {"properties": {"x": {"properties": {"b": {}}}}, "required": ["k"]}
    schema = {"properties": {"k": {}, "x": alone}, "anyOf": [other, {}]}
    grammar = Grammar.from_json_schema(schema)
    assert recognize(grammar, '{"k": 1, "x": {"a": 1, "b": 2}}').accepted
    assert not any("never written" in note.message for note in grammar.notes)
    never = Grammar.from_json_schema({"properties": {"k": {}, "x": alone}})
    assert any("never written" in note.message for note in never.notes)


@pytest.mark.parametrize("description", ["", "\u2014"])  # an escape changes nothing
def test_references_on_the_way_to_another_have_notes(description: str) -> None:
    """What only refers to another schema is passed over; there is something to say of it."""
    schema = {
        "$schema": DRAFT4,
        "description": description,
        "properties": {"a": {"$ref": "#/definitions/first"}},
        "definitions": {
            "first": {"$ref": "#/definitions/second", "type": "string"},
            "second": {"$ref": "#/definitions/third", "title": "Second"},
            "third": {"type": "integer"},
        },
    }
    found = {pointer: level for level, pointer, _ in notes(schema)}
    assert found["#/definitions/first/type"] == "warning"
    assert "#/definitions/second/title" in found
    with pytest.raises(StrictSchemaError, match="#/definitions/first/type"):
        Grammar.from_json_schema(schema, strict=True)


BASE = {"properties": {"a": {"type": "string"}}, "additionalProperties": False}
MORE = {"properties": {"b": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "noted"),
    [
        ({"allOf": [BASE, MORE]}, {"#/allOf/1/properties/b": "additionalProperties at #/allOf/0"}),
        (
            {"allOf": [BASE, {**MORE, "additionalProperties": False}]},
            {
                "#/allOf/0/properties/a": "additionalProperties at #/allOf/1",
                "#/allOf/1/properties/b": "additionalProperties at #/allOf/0",
            },
        ),
        (
            {"items": {"type": "object", "allOf": [BASE, {**MORE, "required": ["b"]}]}},
            {"#/items/allOf/1/properties/b": "additionalProperties at #/items/allOf/0"},
        ),
        (
            {"$ref": "#/$defs/base", "properties": {"b": {}}, "$defs": {"base": BASE}},
            {"#/properties/b": "additionalProperties at #/$defs/base"},
        ),
        (
            {"allOf": [{"properties": {"a": {}}, "unevaluatedProperties": False}, MORE]},
            {"#/allOf/1/properties/b": "unevaluatedProperties at #/allOf/0"},
        ),
        ({"anyOf": [BASE, {}], **MORE}, {}),
        ({"allOf": [BASE, {"properties": {"b": False}}]}, {}),
        ({"allOf": [{**BASE, "patternProperties": {"^b$": {}}}, MORE]}, {}),
        ({"allOf": [{**BASE, "additionalProperties": {"type": "string"}}, MORE]}, {}),
        ({"allOf": [{"properties": {"a": {}}}, MORE]}, {}),
        ({"not": {"allOf": [BASE, MORE]}}, {}),
    ],
)
@pytest.mark.parametrize("key_order", ["schema", "any"])
def test_members_that_another_schema_forbids_are_noted(
    schema: Schema, noted: dict[str, str], key_order: Literal["schema", "any"]
) -> None:
    grammar = Grammar.from_json_schema(schema, key_order=key_order)
    found = {note.pointer: note for note in grammar.notes if "forbids it" in note.message}
    assert found.keys() == noted.keys()
    for pointer, where in noted.items():
        assert found[pointer].level == "warning"
        assert where in found[pointer].message
        # what closes it is said there, and no option opens it
        assert all("additional_properties=True" not in note.message for note in grammar.notes)


def test_a_member_that_all_branches_forbid_is_noted() -> None:
    other = {"properties": {"c": {}}, "additionalProperties": False}
    grammar = Grammar.from_json_schema({"anyOf": [BASE, other], **MORE})
    (note,) = (note for note in grammar.notes if "forbids it" in note.message)
    assert note.pointer == "#/properties/b"
    assert "additionalProperties at #/anyOf/0" in note.message


def test_names_that_are_no_strings_are_noted() -> None:
    """The first is what pydantic writes for ``dict[IntEnum, str]``."""
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    for names, is_noted in (
        ({"type": "integer", "enum": [1, 2]}, True),
        ({"not": {"type": "string"}}, True),
        ({"enum": ["1", 2]}, False),
        ({"pattern": "a"}, False),
        (False, False),
    ):
        grammar = Grammar.from_json_schema({**schema, "propertyNames": names})
        found = [note for note in grammar.notes if "no name satisfies" in note.message]
        assert [(note.level, note.pointer) for note in found] == (
            [("warning", "#/propertyNames")] if is_noted else []
        )
        if is_noted:
            assert not recognize(grammar, '{"1": "a"}').accepted
            assert recognize(grammar, "{}").accepted


def test_a_required_member_that_another_schema_forbids() -> None:
    for more in ({**MORE, "required": ["b"]}, {"properties": {"b": {}}, "required": ["b"]}):
        schema = {"allOf": [{"type": "object", **BASE}, more]}
        with pytest.raises(UnsatisfiableSchemaError, match="#/allOf/1/properties/b lists") as error:
            Grammar.from_json_schema(schema)
        assert error.value.pointer == "#/allOf/0"
        assert error.value.keyword == "additionalProperties"


def test_an_unknown_metaschema_leaves_the_dialect_of_the_caller() -> None:
    schema = {
        "$schema": "https://example.org/mine",
        "properties": {"a": {"type": "string", "nullable": True}},
    }
    own = Grammar.from_json_schema(schema, dialect="openapi-3.0")
    assert recognize(own, '{"a": null}').accepted
    (note,) = (note for note in own.notes if note.keyword == "$schema")
    assert note.level == "info"
    assert note.message.endswith("the schema is read as openapi-3.0")
    default = Grammar.from_json_schema(schema)
    assert not recognize(default, '{"a": null}').accepted
    (note,) = (note for note in default.notes if note.keyword == "$schema")
    assert note.level == "warning"
    assert note.message.endswith("the schema is read as 2020-12")
    schema["$schema"] = "https://spec.openapis.org/oas/3.0/schema/2024-10-18#/definitions/Schema"
    assert recognize(Grammar.from_json_schema(schema), '{"a": null}').accepted


def test_an_order_of_gemini_says_nothing_in_any_order() -> None:
    names = {"a": {"type": "null"}, "b": {"type": "null"}}
    schema = {"type": "object", "properties": names, "propertyOrdering": ["b", "a"]}
    with pytest.raises(StrictSchemaError, match=r"propertyOrdering"):
        Grammar.from_json_schema(schema, strict=True)
    assert Grammar.from_json_schema(schema, strict=True, key_order="any")
