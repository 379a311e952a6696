"""Why a text leaves a schema: where in the document, and which schema stands against it.

By hand; ``test_random_explanations.py`` has random schemas.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import tokfold
from tokfold import Grammar, LimitExceededError, Limits, recognize
from tokfold._schema_records import SchemaPlace

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z]", "maxLength": 40},
        "age": {"$ref": "#/$defs/age", "description": "in years"},
        "tags": {"items": {"enum": ["a", "b", 3, None]}, "minItems": 1, "maxItems": 3},
        "born": {"type": "string", "format": "date"},
        "a/b": {"properties": {"c~": {"type": "boolean"}}},
    },
    "required": ["name", "age"],
    "$defs": {"age": {"type": "integer", "minimum": 0, "maximum": 150}},
    "additionalProperties": False,
}
SHAPE = {
    "type": "object",
    "anyOf": [
        {"properties": {"k": {"const": "c"}, "r": {"type": "number"}}, "required": ["k", "r"]},
        {
            "properties": {"k": {"const": "s"}, "w": {"multipleOf": 5, "exclusiveMinimum": 0}},
            "required": ["k", "w"],
        },
    ],
}
LIST = {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"v": {"type": "null"}, "n": {}}}}}
LIST["$defs"]["n"]["properties"]["n"] = {"$ref": "#/$defs/n"}
NAMES = {"properties": {"a": {}, "b": {}}, "required": ["a"]}
NUMBER = {"properties": {"a": {"type": "number"}, "b": {}}}
OPENS = "; objects that do not say otherwise are closed, and additional_properties=True opens them"
ADULT = '{"name": "A", "age": 1'
AGE = "expected an integer between 0 and 150"
DEAD_END = "valid by itself, but behind it nothing can meet what the schema asks of the whole value"
FORM = "valid, but not in the form that the options choose (white space, escapes, numbers)"
BLANKS = "white space does not stand here in the form that the options choose"
AROUND = "expected the end of the text: white space around the value is no part of it"
LATE = 'names stand in the order of the schema, and key_order="any" takes any order'
MORE_MEMBERS = "the object is not complete: a condition asks for further members"
MORE_ITEMS = "the array is not complete: a condition asks for further items"


def explained(grammar: Grammar, text: str, is_whole: bool = True) -> SchemaPlace:
    found = recognize(grammar, text)
    assert not found.accepted or not is_whole, text
    place = grammar.place_in_schema(text, found.read, is_whole=is_whole)
    assert place is not None
    return place


@pytest.mark.parametrize(
    ("schema", "text", "pointer", "reasons"),
    [
        (PERSON, ADULT.replace("1", "151") + "}", "/age", [f"#/$defs/age: {AGE}, not 151"]),
        (PERSON, ADULT.replace("1", "-1") + "}", "/age", [f"#/$defs/age: {AGE}, not -1"]),
        (PERSON, ADULT.replace("1", "true") + "}", "/age", [f"#/$defs/age: {AGE}, not true"]),
        (PERSON, ADULT.replace("1", "[]") + "}", "/age", [f"#/$defs/age: {AGE}, not an array"]),
        (PERSON, ADULT.replace("1", "1e1") + "}", "/age", [f"#/$defs/age: {FORM}"]),
        (
            PERSON,
            '{"name": "ada"}',
            "/name",
            [
                "#/properties/name: expected a string of at most 40 characters that matches the "
                'pattern "^[A-Z]", not "ada"'
            ],
        ),
        (
            PERSON,
            '{"name": "A"}',
            "",
            ['#/required: expected the member "age", which is required'],
        ),
        (
            PERSON,
            "{ }",
            "",
            ['#/required: expected the members "name" and "age", which are required'],
        ),
        (
            PERSON,
            '{"age": 1}',
            "",
            ['#/required: expected the member "name", which is required, before "age": ' + LATE],
        ),
        (
            PERSON,
            ADULT + ', "x": 2}',
            "",
            ['#: no member "x" is allowed; expected "tags", "born" or "a/b"'],
        ),
        (PERSON, ADULT + ', "age": 2}', "", ['#: the name "age" occurs twice']),
        (
            PERSON,
            ADULT + ', "born": "2001-02-03", "tags": [3]}',
            "",
            [f'#: the name "tags" comes too late: {LATE}; expected "a/b"'],
        ),
        (
            PERSON,
            ADULT + ', "tags": []}',
            "/tags",
            ["#/properties/tags: expected another item: an array of 1 to 3 items"],
        ),
        (
            PERSON,
            ADULT + ', "tags": ["a", "a", 3, "b"]}',
            "/tags",
            ["#/properties/tags: no further item is allowed: an array of 1 to 3 items"],
        ),
        (NUMBER, '{"a": -0.0}', "/a", [f"#/properties/a: {FORM}"]),
        (NUMBER, '{"a": -0, "b": 1}', "/a", [f"#/properties/a: {FORM}"]),
        ({"items": {"type": "number"}}, "[-0]", "/0", [f"#/items: {FORM}"]),
        ({"items": {"type": "number"}}, "[1, -0.00, 1]", "/1", [f"#/items: {FORM}"]),
        ({"type": "number"}, "-0", "", [f"#: {FORM}"]),
        ({"type": "number"}, "-0.0", "", [f"#: {FORM}"]),
        ({"maxItems": 0}, "[1]", "", ["#: no item is allowed"]),
        ({"prefixItems": [False]}, "[", "", ["#: expected the end of the array"]),
        (
            PERSON,
            ADULT + ', "tags": ["a", "c"]}',
            "/tags/1",
            ['#/properties/tags/items: expected "a" or "b", not "c"'],
        ),
        (
            PERSON,
            ADULT + ', "tags": [4]}',
            "/tags/0",
            ['#/properties/tags/items: expected "a", "b", 3 or null, not 4'],
        ),
        (
            PERSON,
            ADULT + ', "born": "2020-13-01"}',
            "/born",
            ['#/properties/born: expected a string that has the format "date", not "2020-13-01"'],
        ),
        (
            PERSON,
            ADULT + ', "a/b": {"c~": null}}',
            "/a~1b/c~0",
            ["#/properties/a~1b/properties/c~0: expected a boolean, not null"],
        ),
        (PERSON, ADULT, "", ["expected a comma or the end of the object"]),
        (PERSON, '{"name": "A"x', "", ["expected a comma"]),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            '{"a": 1x',
            "",
            ["expected the end of the object"],
        ),
        (
            {
                "properties": {"a": {}},
                "patternProperties": {"^b": {}},
                "additionalProperties": False,
            },
            '{"a": 1x',
            "",
            ["expected a comma or the end of the object"],
        ),
        (
            {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
            "[true",
            "",
            ["#: expected a comma"],
        ),
        ({"type": "array", "maxItems": 2}, "[1, 2 x", "", ["#: expected the end of the array"]),
        ({"type": "array"}, "[1, 2 x", "", ["#: expected a comma or the end of the array"]),
        (PERSON, ADULT + "}\n", "", [AROUND]),
        (PERSON, ADULT + "}}", "", ["expected the end of the text: the value is complete"]),
        (PERSON, " {}", "", [BLANKS]),
        (PERSON, ADULT + ",}", "", ["expected a name in double quotes"]),
        (PERSON, '{"name"= 1}', "/name", ["expected a colon behind the name"]),
        (PERSON, "nonsense", "", ["#: expected an object"]),
        (
            SHAPE,
            '{"k": "c", "r": "x"}',
            "/r",
            ['#/anyOf/0/properties/r: expected a number, not "x"'],
        ),
        (
            SHAPE,
            '{"k": "s", "w": 3}',
            "/w",
            [
                "#/anyOf/1/properties/w: expected a number that is greater than 0, a multiple of "
                "5, not 3"
            ],
        ),
        (
            SHAPE,
            '{"k": "z"}',
            "/k",
            ['#/anyOf/0/properties/k, #/anyOf/1/properties/k: expected "c" or "s", not "z"'],
        ),
        (
            SHAPE,
            '{"k": "s", "r": 1}',
            "",
            ['#/anyOf/1/required: expected the member "w", which is required'],
        ),
        (
            LIST,
            '{"n": {"n": {"v": 0}}}',
            "/n/n/v",
            ["#/$defs/n/properties/v: expected null, not 0"],
        ),
        (
            {"items": {"minimum": 3}},
            "[2]",
            "/0",
            ["#/items: expected a number that is at least 3, not 2"],
        ),
        (
            {"minimum": 3, "type": "integer"},
            "2",
            "",
            ["#: expected an integer that is at least 3, not 2"],
        ),
        (
            {"not": {"multipleOf": 3}, "type": "number"},
            "9",
            "",
            ["#: expected a number that is not a multiple of 3, not 9"],
        ),
        ({"minProperties": 2}, '{"b": 1}', "", [f"#: {MORE_MEMBERS}"]),
        ({"contains": {"const": 1}}, "[2]", "", [f"#: {MORE_ITEMS}"]),
        (
            {"patternProperties": {"^x": {"type": "null"}}},
            '{"xa": 1}',
            "/xa",
            ["#/patternProperties/%5Ex: expected null, not 1"],
        ),
        (
            {"propertyNames": {"maxLength": 3}},
            '{"long": 1}',
            "",
            ['#: no member "long" is allowed'],
        ),
        ({"const": {"a": [1, 2]}}, '{"a": [1, 3]}', "/a/1", ["#/const/a/1: expected 2, not 3"]),
    ],
)
def test_by_hand(schema: Any, text: str, pointer: str, reasons: list[str]) -> None:
    grammar = Grammar.from_json_schema(schema, additional_properties=True)
    place = explained(grammar, text)
    assert (place.pointer, [str(reason) for reason in place.reasons]) == (pointer, reasons)


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize(
    ("schema", "text", "pointer", "reason"),
    [
        # No text is such an object, such an array: neither is named as what is expected.
        (
            {"additionalProperties": False, "required": ["a"]},
            '{"a": 1}',
            "",
            "#: expected an array, a string, a number, a boolean or null, not an object",
        ),
        (
            {"prefixItems": [True, {"minItems": 3, "maxItems": 2}]},
            "[1, []]",
            "/1",
            "#/prefixItems/1: expected an object, a string, a number, a boolean or null,"
            " not an array",
        ),
        # What follows is impossible.
        (
            {
                "prefixItems": [{"enum": [1, 2]}],
                "if": {"prefixItems": [{"const": 1}]},
                "then": {"minItems": 3, "maxItems": 2},
            },
            "[1, 2]",
            "/0",
            f"#/prefixItems/0, #/if/prefixItems/0: {DEAD_END}",
        ),
    ],
)
def test_what_no_text_meets(
    schema: dict[str, Any], order: str, text: str, pointer: str, reason: str
) -> None:
    place = explained(Grammar.from_json_schema(schema, key_order=order), text)
    assert (place.pointer, str(place.reasons[0])) == (pointer, reason)


@pytest.mark.parametrize(
    ("options", "text", "pointer", "reason"),
    [
        ({"key_order": "any"}, '{"b": 1, "b": 1}', "", '#: the name "b" occurs twice'),
        (
            {"key_order": "any"},
            '{"b": 1}',
            "",
            '#/required: expected the member "a", which is required',
        ),
        ({"whitespace": "compact"}, '{"a": 1}', "/a", BLANKS),
        ({"whitespace": "spaced"}, '{"a":1}', "/a", f"#/properties/a: {FORM}"),
        (
            {},
            '{"a": 1, "c": 2}',
            "",
            f'#: no member "c" is allowed; expected "b"{OPENS}',
        ),
    ],
)
def test_options(options: dict[str, Any], text: str, pointer: str, reason: str) -> None:
    place = explained(Grammar.from_json_schema(NAMES, **options), text)
    assert place.pointer == pointer
    if options.get("whitespace") == "spaced":  # any value may stand there, of no schema
        assert place.reasons[0].message == FORM
    else:
        assert str(place.reasons[0]) == reason


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"properties": {"a": {}, "b": {}}, "maxProperties": 1}, '{"a": 1, "b": 1}'),
        ({"properties": {"a": {}, "b": False}}, '{"b": 1}'),
        ({"properties": {"a": {}}, "propertyNames": {"pattern": "^[a-z]+$"}}, '{"Z": 1}'),
        (
            {
                "properties": {"f": {"anyOf": [{"$ref": "#/$defs/f"}, {"type": "null"}]}},
                "$defs": {
                    "f": {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
                },
            },
            '{"f": {"a": 1, "b": 2}}',
        ),
    ],
)
def test_no_other_way_out_is_named_than_there_is(schema: dict[str, Any], text: str) -> None:
    """Objects are closed, and the name may not come where they are open either."""
    (reason,) = explained(Grammar.from_json_schema(schema), text).reasons
    assert reason.message.startswith("no member ")
    assert "additional" not in reason.message


MANY = {
    "properties": {f"n{i}": {"type": "integer", "maximum": i} for i in range(8)},
    "required": ["n3"],
    "additionalProperties": False,
}
KINDS = {
    "anyOf": [
        {"properties": {"k": {"const": kind}, "v": {"type": of}}, "required": ["k", "v"]}
        for kind, of in (("a", "integer"), ("b", "string"), ("c", "string"))
    ],
    "properties": {f"n{i}": {"type": "integer"} for i in range(8)},
}


@pytest.mark.parametrize(
    ("schema", "text", "pointer", "reason"),
    [
        (
            MANY,
            '{"n5": 9}',
            "/n5",
            "#/properties/n5: expected an integer that is at most 5, not 9",
        ),
        (MANY, '{"n5": 1, "n3": 1, "n5": 2}', "", '#: the name "n5" occurs twice'),
        (MANY, '{"n5": 1}', "", '#/required: expected the member "n3", which is required'),
        (
            KINDS,
            '{"n1": 1, "v": "x", "n0": 2, "k": "a"}',
            "/k",
            '#/anyOf/1/properties/k, #/anyOf/2/properties/k: expected "b" or "c", not "a"',
        ),
        (
            KINDS,
            '{"k": "b", "n1": 1, "v": 2}',
            "/v",
            "#/anyOf/1/properties/v: expected a string, not 2",
        ),
    ],
)
def test_many_names_in_any_order(schema: Any, text: str, pointer: str, reason: str) -> None:
    """Where the states of the grammar do not say which names were read."""
    grammar = Grammar.from_json_schema({"type": "object", **schema}, key_order="any")
    place = explained(grammar, text)
    assert (place.pointer, str(place.reasons[0])) == (pointer, reason)
    assert list(grammar.rule_origins) == grammar.rule_names


@pytest.mark.parametrize(
    ("text", "pointer", "reasons"),
    [
        ("", "", ["#: expected an object"]),
        ("{", "", ['#: expected the name "name"']),
        ('{"na', "", ['#: expected the name "name"']),
        (ADULT[:-1], "/age", [f"#/$defs/age: {AGE}"]),
        (ADULT, "/age", [f"#/$defs/age: {AGE}"]),
        (ADULT + ', "tags": ["', "/tags/0", ['#/properties/tags/items: expected "a" or "b"']),
    ],
)
def test_a_text_under_way(text: str, pointer: str, reasons: list[str]) -> None:
    """What is expected where a text is cut off."""
    place = explained(Grammar.from_json_schema(PERSON), text, is_whole=False)
    assert (place.pointer, [str(reason) for reason in place.reasons]) == (pointer, reasons)


def test_grammars_of_no_schema_have_no_places() -> None:
    grammar = Grammar.from_ebnf('root ::= "a"')
    assert grammar.place_in_schema("b", 0) is None
    assert dict(grammar.rule_origins) == {}


def test_what_is_no_json_is_no_place() -> None:
    grammar = Grammar.from_json_schema(PERSON)
    assert grammar.place_in_schema(b"{]", 2) is None
    assert grammar.place_in_schema(b"\xff\xfe", 0) is not None
    assert grammar.place_in_schema(b'{"\xff', 100) is not None


# -- rules


def test_origins_of_rules() -> None:
    origins = Grammar.from_json_schema(PERSON).rule_origins.values()
    said = {origin.description: origin.pointers for origin in origins}
    assert said["an integer between 0 and 150"] == ("#/$defs/age",)
    assert said["an array of 1 to 3 items"] == ("#/properties/tags",)
    assert said['an object with "name", "age", "tags", "born" and "a/b"'] == ("#",)
    assert said["white space"] == ()
    assert Grammar.from_json_schema(PERSON) == Grammar.from_json_schema(PERSON)


# -- limits


def test_explanations_are_bounded() -> None:
    """Branches that overlap at each level of a deep document are told apart once for each value."""
    inner = {"$ref": "#/$defs/t"}
    branch = {"type": "object", "properties": {"a": inner, "b": inner}}
    kinds = [{**branch, "required": [name]} for name in "abc"]
    schema = {"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [*kinds, {"type": "null"}]}}}
    grammar = Grammar.from_json_schema(schema)
    text = "null"
    for _ in range(14):
        text = f'{{"a": {text}, "b": {text[:40]}}}' if len(text) <= 40 else f'{{"a": {text}}}'
    text = f'{{"a": {text}, "b": 1}}'
    place = explained(grammar, text)
    assert place.pointer == "/b"
    long = "[" + "7," * 100_000 + '"x"]'
    place = explained(Grammar.from_json_schema({"items": {"type": "integer"}}), long)
    assert place.pointer == "/100000"
    limits = Limits(max_network_work=1)
    small = Grammar.from_json_schema({"type": "null"})
    assert small.place_in_schema("1", 0) is not None
    small._limits = limits
    with pytest.raises(LimitExceededError):
        small.place_in_schema("1", 0)


@pytest.mark.parametrize(
    ("schema", "options", "limit", "pointer"),
    [
        (
            {
                "properties": {
                    "x": {
                        "properties": {f"n{i}": {} for i in range(14)},
                        "dependentRequired": {f"n{i}": [f"n{(i + 7) % 14}"] for i in range(14)},
                        "maxProperties": 9,
                        "additionalProperties": False,
                    }
                }
            },
            {"key_order": "any"},
            "max_unordered_names",
            "#/properties/x",
        ),
        (
            {"items": {"properties": {"n/a": {"maxLength": 9, "pattern": "(a|b)*a(a|b){12}"}}}},
            {"limits": Limits(max_automaton_states=50)},
            "max_automaton_states",
            "#/items/properties/n~1a",
        ),
        (
            {
                "properties": {
                    "l": {"items": {"type": "null"}, "contains": {}, "minContains": 1_000}
                }
            },
            {},
            "max_contained_items",
            "#/properties/l",
        ),
        (
            {
                "$ref": "#/$defs/o",
                "$defs": {"o": {"patternProperties": {f"{c}": {} for c in "abcdefghij"}}},
            },
            {},
            "max_name_classes",
            "#/$defs/o",
        ),
        (
            {"properties": {"o": {"properties": {f"n{i}": {"minimum": i} for i in range(90)}}}},
            {"limits": Limits(max_schema_states=30)},
            "max_schema_states",
            "#/properties/o",
        ),
        (
            {"properties": {"l": {"contains": {"const": 1}, "minContains": 400}}},
            {"limits": Limits(max_schema_formulas=10)},
            "max_schema_formulas",
            "#/properties/l",
        ),
    ],
)
def test_limits_have_places(schema: Any, options: dict[str, Any], limit: str, pointer: str) -> None:
    with pytest.raises(LimitExceededError) as caught:
        Grammar.from_json_schema(schema, **options)
    error = caught.value
    assert (error.limit, error.pointer) == (limit, pointer)
    assert str(error).startswith(f"{pointer}: limit {limit} = ")
    assert pickle.loads(pickle.dumps(error)).pointer == pointer


BYTES = [bytes([byte]) for byte in range(256)]


def test_a_token_that_is_no_text_has_a_reason_too():
    vocabulary = tokfold.Vocabulary(
        [*BYTES, b"<s>", b"</s>"], special_token_ids=[256], stop_token_ids=[257]
    )
    matcher = tokfold.Matcher(tokfold.compile({"type": "boolean"}, vocabulary))
    for text in ("tr", "ue"):
        matcher.accept_string(text)
        place, other = matcher.explain(256).place, matcher.explain(ord("x")).place
        assert place is not None
        assert place == other
        assert place.reasons
    assert str(place.reasons[0]) == "expected the end of the text: the value is complete"


def test_nothing_is_expected_behind_a_text_that_ends_by_itself():
    compiled = tokfold.compile(
        'root ::= "a" "b"? | "ac"',
        tokfold.Vocabulary([b"a", b"ab", b"x", b"</s>"], stop_token_ids=[3]),
        options=tokfold.CompileOptions(terminate_without_stop_token=True, check_tokens=False),
    )
    matcher = tokfold.Matcher(compiled)
    assert [matcher.explain(token).expected for token in range(3)] == [b"", b"", b"a"]
    matcher.accept_token(0)
    assert matcher.expected_bytes == b""


@pytest.mark.parametrize("bound", [{"max_tokens": 3}, {"max_chars": 3}])
def test_what_has_no_grammar_text_is_explained_beside_rules_with_bounds(bound: dict[str, int]):
    names = {name: {"type": "integer"} for name in "abcdefgh"}
    unique = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    vocabulary = tokfold.Vocabulary([*BYTES, b"</s>"], stop_token_ids=[256])
    for schema in (
        {"json_schema": {"type": "object", "properties": names}, "any_order": True},
        {"json_schema": unique},
    ):
        if schema["json_schema"] is unique and "max_tokens" in bound:
            continue  # not counted there
        elements = [
            {"type": "any_text", "excludes": ["</think>"], **bound},
            {"type": "const_string", "value": "</think>"},
            {"type": "json_schema", **schema},
        ]
        tag = {"format": {"type": "sequence", "elements": elements}}
        matcher = tokfold.Matcher(tokfold.compile(Grammar.from_structural_tag(tag), vocabulary))
        matcher.accept_string("</think>")
        assert matcher.explain(ord("x")).reason == "byte 1 of 1, 0x78, cannot be"


def test_a_schema_is_explained_of_which_the_conversion_needs_a_part():
    """No grammar says when an array is *not* of two unique items; here nothing depends on it."""
    unique = {"type": "array", "uniqueItems": True, "minItems": 2}
    schema = {
        "type": "object",
        "properties": {"d": {"type": "integer"}},
        "if": {"type": "object", "properties": {"b": unique}, "additionalProperties": False},
        "then": {"type": "object", "properties": {}},
    }
    vocabulary = tokfold.Vocabulary([*BYTES, b"</s>"], stop_token_ids=[256])
    compiled = tokfold.compile(Grammar.from_json_schema(schema), vocabulary)
    matcher = tokfold.Matcher(compiled)
    matcher.accept_string("{")
    assert matcher.explain(256).reason == "the text is not complete here"
    assert matcher.explain(ord("x")).reason == "byte 1 of 1, 0x78, cannot be"
    matcher.accept_string('"d": 1}')
    assert matcher.explain(256).allowed
