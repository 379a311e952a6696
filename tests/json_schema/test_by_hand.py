r"""Cases of which each is a fault of some engine, with texts that must and must not be accepted.

A text is ``valid`` or ``invalid`` by the value that it spells; ``unspelled`` ones are the texts of
valid values, or of none, in a spelling that the canonical form does not have. Two validators say
that the table itself is right.

One file of more than 600 lines: it is one table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
import tokfold
from json_schema.languages import BYTES, Language, language
from json_schema.truth import Validators
from tokfold import Grammar, InvalidSchemaError

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"


@dataclass(frozen=True)
class Case:
    """A schema and texts."""

    schema: Any
    valid: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()
    unspelled: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()
    """Those of the above of which a validator says otherwise, by a fault of its own."""
    options: dict[str, Any] = field(default_factory=dict)


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


EMOJI, PAIR = '"😀"', r'"\ud83d\ude00"'

CASES: dict[str, Case] = {
    # Core 2019-09, section 9.3.1.3: `items`, `additionalItems`; `contains` since 2020-12.
    "contains evaluates no item in 2019-09": Case(
        {"$schema": DRAFT_2019, "contains": {"type": "string"}, "unevaluatedItems": False},
        invalid=('["a"]', "[]", '["a", 1]'),
        valid=("1",),
        disputed=('["a"]',),
    ),
    # -- names
    "a known name spelled with an escape": Case(
        obj(a={"type": "integer"}),
        ('{"a": 1}', '{"x": "x"}', "{}"),
        (r'{"\u0061": "x"}', r'{"a": 1, "\u0061": "x"}'),
        (r'{"\u0061": 1}', r'{"a": 1, "\u0061": 1}'),
    ),
    "a known name twice": Case(
        {**obj(a={}, b={}), "required": ["a"]},
        ('{"a": 1, "b": 2}',),
        (),
        ('{"a": 1, "a": 1}', '{"a": 1, "b": 2, "a": 1}', '{"a": 1, "b": 2, "x": 0, "b": 2}'),
    ),
    "a known name twice, any order": Case(
        {**obj(a={}, b={}), "required": ["a"]},
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{"x": 0, "b": 2, "y": 0, "a": 1}'),
        ('{"b": 2}',),
        ('{"a": 1, "a": 1}', '{"b": 2, "a": 1, "b": 2}', '{"b": 1, "x": 0, "b": 2, "a": 0}'),
        options={"key_order": "any"},
    ),
    "known keys in another order": Case(
        {**obj(a={}, b={}), "required": ["b"]},
        ('{"a": 1, "b": 2}', '{"b": 2, "x": 1}', '{"a": 1, "b": 2, "y": 0, "x": 0}'),
        ('{"a": 1}',),
        ('{"b": 2, "a": 1}', '{"x": 1, "b": 2}'),
    ),
    "names that need escapes": Case(
        {
            **obj(**{"": {}, 'q"': {}, "b\\": {}, "é": {}, "__proto__": {}, "n\n": {}}),
            "additionalProperties": False,
        },
        ("{}", r'{"": 1, "q\"": 2, "b\\": 3, "é": 4, "__proto__": 5, "n\n": 6}'),
        ('{"x": 1}', r'{"q": 1}', r'{"\\": 1}'),
        (r'{"\u00e9": 1}', r'{"n\u000a": 1}'),
    ),
    "a property with the name of a keyword": Case(
        obj(**{"$ref": {"type": "string"}, "type": {"type": "integer"}}),
        ('{"$ref": "a", "type": 1}',),
        ('{"$ref": 1}', '{"type": "object"}'),
    ),
    "names like one another": Case(
        obj(a={"type": "integer"}, ab={"type": "string"}, abc={"type": "null"}),
        ('{"a": 1, "ab": "", "abc": null}', '{"ab": "x", "b": 0, "aba": 1, "abcd": 1, "": 2}'),
        ('{"ab": 1}', '{"abc": 1}', '{"a": null}'),
    ),
    "required of what is not in properties": Case(
        {**obj(a={}), "required": ["x", "a"]},
        ('{"a": 1, "x": 2}', '{"a": 1, "x": 2, "y": 3}'),
        ('{"a": 1}', '{"x": 1}', "{}"),
    ),
    "required without a type": Case(
        {"required": ["x"]}, ('{"x": 1}', "1", "[]", '"x"'), ("{}", '{"y": 1}')
    ),
    "required with a type alone": Case(
        {"type": "object", "required": ["x"]}, ('{"x": 1}',), ("{}", '{"y": 1}', "1")
    ),
    "a false property": Case(
        {"properties": {"a": False, "b": {}}},
        ("{}", '{"b": 1}', "1"),
        ('{"a": 1}', '{"a": null, "b": 1}'),
    ),
    "a false property that is required": Case(
        {"properties": {"a": False}, "required": ["a"]}, ("1", "[]"), ("{}", '{"a": 1}')
    ),
    "open objects": Case(obj(a={}), ('{"a": 1, "zz": [2]}', '{"zz": 2}'), ("[]",)),
    "additionalProperties with a schema": Case(
        {**obj(a={"type": "string"}), "additionalProperties": {"type": "integer"}},
        ('{"a": "x", "b": 1}', '{"b": 1, "c": 2}'),
        ('{"a": 1}', '{"b": "x"}'),
    ),
    "additionalProperties sees its own properties alone": Case(
        {"allOf": [obj(a={})], "properties": {"b": {}}, "additionalProperties": False},
        ("{}", '{"b": 1}'),
        ('{"a": 1}', '{"b": 1, "a": 1}', "1"),
    ),
    "additionalProperties: false in two branches": Case(
        {
            "allOf": [
                {"properties": {"a": {}}, "additionalProperties": False},
                {"properties": {"b": {}}, "additionalProperties": False},
            ]
        },
        ("{}", "1"),
        ('{"a": 1}', '{"b": 1}', '{"a": 1, "b": 1}'),
    ),
    "properties beside patterns that match": Case(
        {"properties": {"ab": {"minimum": 1}}, "patternProperties": {"^a": {"type": "integer"}}},
        ('{"ab": 1}', '{"ac": 0}', '{"b": "x"}'),
        ('{"ab": 0}', '{"ab": 1.5}', '{"ac": "x"}', '{"a": null}'),
    ),
    "overlapping patterns": Case(
        {"patternProperties": {"a": {"type": "integer"}, "b": {"minimum": 3}}},
        ('{"ab": 3}', '{"a": 1}', '{"b": "x"}', '{"c": null}', '{"ba": 4, "b": 3.5}'),
        ('{"ab": 2}', '{"ab": "x"}', '{"ba": 3.5}', '{"b": 2}'),
    ),
    "patterns of names without other names": Case(
        {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        ('{"x-a": "b"}', '{"x-": "", "x-b": ""}', "{}"),
        ('{"x-a": 1}', '{"x": ""}', '{"ax-": ""}'),
    ),
    "propertyNames": Case(
        {"propertyNames": {"pattern": "^[a-c]{1,2}$"}},
        ('{"a": 1, "bc": 2}', "{}", "1"),
        ('{"abc": 1}', '{"": 1}', '{"d": 1}', '{"a": 1, "D": 2}'),
    ),
    "propertyNames with a length": Case(
        {"propertyNames": {"maxLength": 1}}, ('{"a": 1, "é": 2}',), ('{"ab": 1}',)
    ),
    "counts of properties beside optional ones": Case(
        {**obj(a={}, b={}), "minProperties": 1, "maxProperties": 2},
        ('{"a": 1}', '{"b": 1}', '{"x": 1}', '{"a": 1, "b": 1}', '{"b": 1, "x": 1}'),
        ("{}", '{"a": 1, "b": 1, "x": 1}'),
    ),
    "dependentRequired": Case(
        {"dependentRequired": {"a": ["b", "c"]}},
        ("{}", '{"b": 1}', '{"a": 1, "b": 1, "c": 1}', "1"),
        ('{"a": 1}', '{"a": 1, "b": 1}'),
        options={"key_order": "any"},
    ),
    "dependencies of draft-07": Case(
        {"$schema": DRAFT_7, "dependencies": {"a": ["b"], "c": {"maxProperties": 1}}},
        ("{}", '{"a": 1, "b": 1}', '{"c": 1}', '{"b": 1}'),
        ('{"a": 1}', '{"c": 1, "d": 1}'),
        options={"key_order": "any"},
    ),
    "unevaluatedProperties": Case(
        {
            "anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"required": ["c"]}],
            "properties": {"b": {}, "c": {}},
            "unevaluatedProperties": False,
        },
        ('{"b": 2, "a": 1}', '{"c": 0}', '{"b": 0, "c": 0, "a": 1}'),
        ('{"b": 1}', '{"c": 0, "a": 2}', '{"a": 1, "d": 0}'),
        options={"key_order": "any"},
    ),
    "unevaluatedItems": Case(
        {
            "prefixItems": [{"type": "integer"}],
            "contains": {"const": "x"},
            "unevaluatedItems": False,
        },
        ('[1, "x"]', '[1, "x", "x"]'),
        ('[1, "y"]', '[1, "x", "y"]', "[1]"),
    ),
    # -- in place
    "oneOf of an integer and a minimum": Case(
        {"oneOf": [{"type": "integer"}, {"minimum": 2}]},
        ("1", "2.5", '"x"', "-7"),
        ("3", "2", "1.5"),
    ),
    "oneOf of references": Case(
        {
            "$defs": {"n": {"type": "number"}, "i": {"type": "integer"}},
            "oneOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/i"}],
        },
        ("1.5",),
        ("1", '"x"'),
    ),
    "oneOf of required names": Case(
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
        ('{"a": 1}', '{"b": 1}', '{"b": 1, "x": 1}'),
        ("{}", '{"a": 1, "b": 1}'),
    ),
    "oneOf of arrays that an item tells apart": Case(
        {
            "oneOf": [
                {
                    "type": "array",
                    "items": {"enum": ["a", "b"]},
                    "minItems": 1,
                    "uniqueItems": True,
                },
                {"const": ["all"]},
                {"type": "array", "prefixItems": [{}, {"type": "number"}], "minItems": 2},
            ]
        },
        ('["a", "b"]', '["b"]', '["all"]', '["a", 1, 1]', "[1, 1]"),
        ('["b", "b"]', '["all", "a"]', '["x"]', '["a", "b", "a"]', "[]"),
    ),
    "oneOf of arrays that their number of items tells apart": Case(
        {
            "type": "array",
            "oneOf": [
                {"items": {"enum": ["a", "b", "c"]}, "minItems": 3, "uniqueItems": True},
                {"items": {"type": "string"}, "maxItems": 2},
            ],
        },
        ("[]", '["a", "a"]', '["a", "b", "c"]'),
        ('["a", "b", "a"]', "[1]"),
    ),
    "references to one schema beside each other": Case(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "definitions": {"set": {"type": "array", "items": {}, "uniqueItems": True}},
            "properties": {"many": {"$ref": "#/definitions/set"}, "one": {"type": "string"}},
            "oneOf": [
                {"properties": {"many": {"$ref": "#/definitions/set"}}, "required": ["many"]},
                {"properties": {"one": {"type": "string"}}, "required": ["one"]},
            ],
        },
        ('{"many": [1, 2]}', '{"one": "a"}', '{"many": []}'),
        ('{"many": [1, 1]}', '{"many": [1], "one": "a"}', "{}"),
    ),
    "oneOf of three that overlap": Case(
        {"oneOf": [{"maximum": 5}, {"minimum": 3}, {"multipleOf": 2}], "type": "integer"},
        ("1", "7", "-3", "9"),
        ("2", "3", "4", "5", "6", "8"),
    ),
    "allOf of two": Case(
        {
            "allOf": [
                {**obj(a={"type": "integer"}), "required": ["a"]},
                {**obj(b={"type": "string"}), "required": ["b"]},
            ]
        },
        ('{"a": 1, "b": "x"}', '{"a": 1, "b": "x", "c": 0}'),
        ('{"a": 1}', '{"b": "x"}', "{}", '{"a": "x", "b": "x"}', '"anything"', "7"),
    ),
    "allOf of lengths and patterns": Case(
        {"allOf": [{"pattern": "^a"}, {"pattern": "b$"}, {"minLength": 3}], "type": "string"},
        ('"aab"', '"axxb"'),
        ('"ab"', '"aa"', '"bb"', '"aba"'),
    ),
    "siblings of anyOf": Case(
        {"type": "object", "required": ["k"], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ('{"k": 1, "a": 1}', '{"k": 1, "b": 1}', '{"k": 1, "a": 1, "b": 2}'),
        ('{"k": 1}', '{"a": 1}', '{"b": 1}'),
        options={"key_order": "any"},
    ),
    "siblings of $ref in 2020-12": Case(
        {"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 1},
        ('"a"', '""'),
        ('"ab"', "1"),
    ),
    "siblings of $ref in draft-07": Case(
        {
            "$schema": DRAFT_7,
            "definitions": {"s": {"type": "string"}},
            "properties": {"p": {"$ref": "#/definitions/s", "maxLength": 1}},
        },
        ('{"p": "abc"}', '{"p": ""}'),
        ('{"p": 1}',),
    ),
    "not of a type": Case({"not": {"type": "string"}}, ("1", "null", "[]", "{}"), ('"x"', '""')),
    "not of what is required": Case(
        {"type": "object", "not": {"required": ["a"]}}, ("{}", '{"b": 1}'), ('{"a": 1}', "1")
    ),
    "not of properties": Case(
        {"not": {"properties": {"a": {"type": "string"}}}},
        ('{"a": 1}', '{"a": null, "b": 0}'),
        ("{}", '{"a": "x"}', '{"b": 1}', "1"),
    ),
    "not of two alternatives": Case(
        {"not": {"anyOf": [{"type": "integer"}, {"enum": ["a", "b"]}]}},
        ("1.5", '"c"', '""', "null"),
        ("1", '"a"', '"b"'),
    ),
    "if on an absent property": Case(
        {
            "if": {"properties": {"kind": {"const": "x"}}},
            "then": {"required": ["y"]},
            "else": {"required": ["z"]},
            "type": "object",
        },
        ('{"y": 1}', '{"kind": "x", "y": 1}', '{"kind": "w", "z": 1}'),
        ("{}", '{"kind": "x"}', '{"kind": "w"}', '{"z": 1}', '{"kind": "w", "y": 1}'),
        options={"key_order": "any"},
    ),
    "if without then": Case(
        {"if": {"type": "integer"}, "else": {"maxLength": 1}}, ("5", '"a"', "null"), ('"ab"',)
    ),
    "if is no keyword of draft-04": Case(
        {"$schema": DRAFT_4, "if": {"type": "integer"}, "then": {"minimum": 5}, "const": 3},
        ("1", "3", '"x"'),
    ),
    "recursion through not": Case(
        {
            "$defs": {"t": {"type": "object", "properties": {"n": {"not": {"$ref": "#/$defs/t"}}}}},
            "$ref": "#/$defs/t",
        },
        ("{}", '{"n": 1}', '{"n": {"n": {}}}', '{"m": {}}', '{"n": {"n": {"n": {"n": {}}}}}'),
        ('{"n": {}}', '{"n": {"n": 1}}', "1", '{"n": {"n": {"n": {}}}}'),
    ),
    "recursion through oneOf": Case(
        {
            "$defs": {
                "t": {
                    "oneOf": [
                        {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 2},
                        {"type": "array", "minItems": 2},
                        {"type": "null"},
                    ]
                }
            },
            "$ref": "#/$defs/t",
        },
        ("null", "[]", "[null]", "[[null]]", "[1, 2]", "[null, null, null]", "[null, 1]"),
        ("[null, null]", "[1]", "[[null, null]]", "[[], []]", "1"),
    ),
    "a list": Case(
        {
            "$defs": {
                "l": {**obj(v={"type": "integer"}, n={"$ref": "#/$defs/l"}), "required": ["v"]}
            },
            "$ref": "#/$defs/l",
        },
        ('{"v": 1}', '{"v": 1, "n": {"v": 2, "n": {"v": 3}}}'),
        ('{"v": 1, "n": {}}', '{"n": {"v": 1}}', '{"v": 1, "n": null}'),
    ),
    "a reference to the root": Case(
        {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False, "type": "object"},
        ("{}", '{"a": {"a": {}}}'),
        ('{"b": 1}', '{"a": 1}', '{"a": {"b": {}}}'),
    ),
    "pointers with percent and tilde": Case(
        {
            "$defs": {
                "a/b": {"type": "integer"},
                "c~d": {"type": "string"},
                "e%f": {"type": "null"},
            },
            "prefixItems": [
                {"$ref": "#/$defs/a~1b"},
                {"$ref": "#/$defs/c~0d"},
                {"$ref": "#/$defs/e%25f"},
            ],
        },
        ('[1, "x", null]', "[1]", "[]"),
        ('["x"]', "[1, 1]", '[1, "x", 0]'),
    ),
    "a reference into an unknown keyword": Case(
        {"parts": {"a": {"type": "integer"}}, "items": {"$ref": "#/parts/a"}},
        ("[1, 2]", "{}"),
        ('["x"]',),
    ),
    "id is a keyword of draft-04": Case(
        {
            "$schema": DRAFT_4,
            "definitions": {"a": {"id": "http://x.test/a", "type": "integer"}},
            "items": {"$ref": "http://x.test/a"},
        },
        ("[1]", "[]"),
        ('["x"]',),
    ),
    "an anchor": Case(
        {"$defs": {"a": {"$anchor": "here", "type": "null"}}, "items": {"$ref": "#here"}},
        ("[null]", "[]"),
        ("[1]",),
    ),
    "$recursiveRef": Case(
        {
            "$schema": DRAFT_2019,
            "$recursiveAnchor": True,
            "type": "object",
            "additionalProperties": {"$recursiveRef": "#"},
        },
        ("{}", '{"a": {"b": {}}}'),
        ('{"a": 1}', "1"),
    ),
    # -- types, constants
    "a schema without a type": Case({}, ("1", "null", "[]", "{}", '"x"', "1e400", "true")),
    "keywords of all types beside each other": Case(
        {"maxLength": 1, "maximum": 1, "maxItems": 1, "maxProperties": 1},
        ('"a"', "1", "[1]", '{"a": 1}', "null", "true"),
        ('"ab"', "2", "[1, 2]", '{"a": 1, "b": 2}'),
    ),
    "constants of two properties in another order": Case(
        {"const": {"a": 1, "b": 2}},
        ('{"a": 1, "b": 2}', '{"a":1,"b":2}', '{ "a" : 1.0 , "b" : 2 }'),
        ('{"a": 1}', '{"a": 1, "b": 2, "c": 3}', '{"a": 2, "b": 1}', "1"),
        ('{"b": 2, "a": 1}',),
    ),
    "constants of two properties in any order": Case(
        {"const": {"a": 1, "b": [{"c": 0, "d": 1}]}},
        ('{"a": 1, "b": [{"c": 0, "d": 1}]}', '{"b": [{"d": 1, "c": 0}], "a": 1}'),
        ('{"a": 1, "b": [{"c": 0}]}', '{"a": 1, "b": []}'),
        options={"key_order": "any"},
    ),
    "a number of an enum": Case(
        {"enum": [2.0, 0.5]},
        ("2", "2.0", "2.00", "0.5", "0.50"),
        ("2.5", '"2"', "0", "20", "0.05", "null"),
        ("2e0", "02", "+2", ".5", "5e-1"),
    ),
    "a constant of one": Case({"const": 1}, ("1", "1.0"), ("true", "0", "1.1", '"1"', "10")),
    "false is not zero": Case(
        {"enum": [0, True]},
        ("0", "true", "0.0"),
        ("false", "1", "null", '""'),
        ("-0", "-0.0"),
    ),
    "an enum beside other keywords": Case(
        {"enum": ["a", "bb", 3, None, {"k": 1}], "maxLength": 1, "minimum": 4},
        ('"a"', "null", '{"k": 1}'),
        ('"bb"', "3", "4"),
    ),
    "strings of an enum that need escapes": Case(
        {"enum": ['a"b', "c\\d", "e\nf", "g/h", "é", "\u0001", "\u2028"]},
        (
            r'"a\"b"',
            r'"c\\d"',
            r'"e\nf"',
            '"g/h"',
            '"é"',
            r'"\u0001"',
            '"\u2028"',
        ),
        ('"a"', r'"a\\b"', '"e f"', '"É"'),
        ('"a"b"', r'"g\/h"', r'"\u00e9"', '"e\nf"', '"\x01"'),
    ),
    "an integer": Case(
        {"type": "integer"},
        ("0", "-1", "12345678901234567890123"),
        ("1.5", '"1"', "true", "null"),
        ("01", "-0", "+1", "1.", "1.0", "1e2", "-", ""),
    ),
    "an integer of draft-04": Case({"$schema": DRAFT_4, "type": "integer"}, ("3",), ("3.5", "3.0")),
    "a number": Case(
        {"type": "number"},
        ("0", "1.5", "-1.50", "1e2", "1E+2", "1.5e-3", "-2e10", "0.0"),
        ('"1"', "true"),
        ("-0", "-0.0", "-0e1", "01", "1.", ".5", "NaN", "Infinity", "-Infinity", "1e", "0x1"),
    ),
    "null": Case({"type": "null"}, ("null",), ("0", '""', "false"), ("None", "NULL", "nul")),
    "a boolean": Case({"type": "boolean"}, ("true", "false"), ("0", '"true"'), ("True",)),
    "types in a list": Case(
        {"type": ["string", "null", "integer"]}, ('"x"', "null", "1"), ("1.5", "[]", "true")
    ),
    "integer and number in a list": Case({"type": ["integer", "number"]}, ("1", "1.5"), ('"x"',)),
    # -- numbers
    "a bound with a fraction": Case(
        {"maximum": 0.3, "type": "number"},
        ("0.3", "0.30", "0.29", "0", "-5", "0.29999999999999999999", "0.3000", "3e-1"),
        ("0.31", "0.4", "1", "0.30000000000000000001"),
        ("30e-2", "-0"),
        disputed=("0.29999999999999999999", "0.30000000000000000001"),
    ),
    "a bound of 2^65": Case(
        {"maximum": 2**65, "minimum": 2**64, "type": "integer"},
        (str(2**65), str(2**64), str(2**64 + 1), str(2**65 - 1)),
        (str(2**65 + 1), str(2**64 - 1), "0", str(2**66)),
        disputed=(str(2**65 + 1), str(2**64 - 1)),
    ),
    "bounds of both signs": Case(
        {"minimum": -10, "maximum": 12.5},
        ("-10", "12.5", "0", "-9.99", "12.50", "9", "-10.0", '"x"'),
        ("-10.01", "12.51", "13", "-11", "100"),
    ),
    "exclusive bounds": Case(
        {"exclusiveMinimum": 1, "exclusiveMaximum": 3, "type": "number"},
        ("2", "1.5", "2.99", "1.0001"),
        ("1", "3", "1.0", "3.000", "0.9"),
    ),
    "exclusive bounds of an integer": Case(
        {"exclusiveMinimum": 1.5, "exclusiveMaximum": 4, "type": "integer"},
        ("2", "3"),
        ("1", "4", "2.5"),
    ),
    "exclusiveMinimum of draft-04": Case(
        {"$schema": DRAFT_4, "minimum": 2, "exclusiveMinimum": True, "type": "number"},
        ("2.1", "3"),
        ("2", "2.0", "1"),
    ),
    "a minimum of zero with exponents": Case(
        {"minimum": 0, "type": "number"},
        ("0", "1e-06", "1E5", "0.5", "0e0"),
        ("-1", "-1e-6", "-0.1"),
        ("-0", "-0e5"),
    ),
    "above zero with exponents": Case(
        {"exclusiveMinimum": 0, "type": "number"},
        ("1e-06", "0.001", "5"),
        ("0", "0.0", "0e5", "0.00e7", "-1e-6"),
    ),
    "below zero": Case({"exclusiveMaximum": 0}, ("-1", "-0.5", "-1e-3"), ("0", "1", "1e-3", "0.0")),
    "multipleOf beside one bound": Case(
        {"multipleOf": 3, "minimum": 10, "type": "integer"},
        ("12", "15", "300"),
        ("10", "13", "9", "3", "-12"),
    ),
    "multipleOf of a hundredth": Case(
        {"multipleOf": 0.01, "type": "number"},
        ("0.07", "19.99", "3", "-0.01", "0", "4.350"),
        ("0.075", "0.001", "19.999"),
        disputed=("0.07", "19.99", "4.350"),
    ),
    "multipleOf of two and a half": Case(
        {"multipleOf": 2.5}, ("5", "7.5", "0", "-2.5", "10.0", '"x"'), ("1", "2", "7", "2.55")
    ),
    "multipleOf of a large number": Case(
        {"multipleOf": 7, "type": "integer"},
        ("7", "700000000000000000007", "-14", "0"),
        ("8", "700000000000000000008"),
    ),
    # -- strings
    "maxLength without a type": Case(
        {"maxLength": 2}, ('"ab"', '""', "12345", "[1, 2, 3]", '{"abc": 1}'), ('"abc"',)
    ),
    "a length of one": Case(
        {"type": "string", "maxLength": 1},
        (EMOJI, PAIR, '"é"', r'"\n"', r'"\u000a"', r'"\""', r'"\u00e9"', r'"\/"', '""'),
        ('"ab"', '"😀😀"', r'"\n\n"', r'"\u0061b"', '"e\u0301"'),
        (r'"\ud83d"', r'"\ude00"', '"\n"', '"\t"', r'"\x41"', r'"\u12"', '"\x7f', "'a'"),
    ),
    "a least length counts characters": Case(
        {"type": "string", "minLength": 2},
        ('"ab"', '"😀😀"', r'"\n\n"', '"e\u0301"'),
        ('"a"', EMOJI, PAIR, r'"\n"', r'"\u0061"', '""'),
    ),
    "free strings": Case(
        {"type": "string"},
        (r'"\u00e9"', PAIR, r'"\/"', r'"\"\\\b\f\n\r\t"', '"é😀"', '""', r'"\u0000"', r'"\uABcd"'),
        ("1",),
        (r'"\ud83d"', r'"\ude00\ud83d"', r'"\ud83d\u0061"', '"\x00"', '"\n"', r'"\a"', '"'),
    ),
    "raw surrogates": Case({"type": "string"}, (), (), ('"\ud83d"', '"\ude00"')),
    "a pattern is searched for": Case(
        {"type": "string", "pattern": "cat"},
        ('"cat"', '"concatenate"', '"cat\\n"', '"éécat"'),
        ('"dog"', '"ca t"', '""', "1"),
    ),
    "a pattern without a type": Case({"pattern": "^a+$"}, ('"aa"', "1", "[]"), ('"b"', '"ab"')),
    "a pattern is of the decoded text": Case(
        {"type": "string", "pattern": '^a"b$'},
        (r'"a\"b"',),
        ('"ab"', r'"a\\\"b"', r'"a\\b"'),
        ('"a"b"', r'"a\u0022b"'),
    ),
    "a dot takes no end of a line": Case(
        {"type": "string", "pattern": "^.$"},
        ('"a"', '"é"', EMOJI, r'"\""', r'"\\"', r'"\t"'),
        (r'"\n"', '""', '"ab"', r'"\r"', '"\u2028"'),
        disputed=(r'"\n"', r'"\r"', '"\u2028"'),
    ),
    "an end that is not before a last newline": Case(
        {"type": "string", "pattern": "^a$"},
        ('"a"',),
        (r'"a\n"', r'"\na"'),
        disputed=(r'"a\n"',),
    ),
    "anchors beside an alternative": Case(
        {"type": "string", "pattern": "^a|b$"},
        ('"a"', '"ax"', '"xb"', '"b"'),
        ('"xa"', '"bx"', '""'),
    ),
    "digits are those of ASCII": Case(
        {"type": "string", "pattern": r"^\d\w\s$"},
        (r'"1a "', r'"0_\t"', '"9z\u00a0"', '"9Z\ufeff"'),
        ('"٣a "', '"1é "', '"aa "', r'"1a\u001c"'),
        disputed=('"٣a "', '"1é "', r'"1a\u001c"', '"9Z\ufeff"'),
    ),
    "lookahead": Case(
        {"type": "string", "pattern": "^(?!foo)(?=.*x).{2,4}$"},
        ('"ax"', '"fox"', '"xfoo"'),
        ('"foox"', '"a"', '"aa"', '"abcdx"'),
    ),
    "counts that are optional": Case(
        {"type": "string", "pattern": "^(c{2,3})?$"},
        ('""', '"cc"', '"ccc"'),
        ('"c"', '"cccc"'),
    ),
    "letters of Unicode": Case(
        {"type": "string", "pattern": r"^\p{L}+$"},
        ('"aé"', '"日本"'),
        ('"1"', '"a-"'),
        disputed=('"aé"', '"日本"', '"1"', '"a-"'),
    ),
    "a pattern with a length": Case(
        {"type": "string", "pattern": "^a*b?$", "minLength": 2, "maxLength": 3},
        ('"aa"', '"ab"', '"aab"', '"aaa"'),
        ('"a"', '"b"', '"aaaa"', '"aaab"', '"bb"'),
    ),
    "a format with a length": Case(
        {"type": "string", "format": "ipv4", "maxLength": 7},
        ('"1.2.3.4"',),
        ('"10.2.3.4"', '"1.2.3"', '"a"'),
    ),
    "a pattern with a format": Case(
        {"type": "string", "format": "date", "pattern": "^2024-02"},
        ('"2024-02-29"', '"2024-02-01"'),
        ('"2024-03-01"', '"2024-02-30"', '"2023-02-01"'),
    ),
    "the last day of February": Case(
        {"type": "string", "format": "date"},
        ('"2024-02-29"', '"2000-02-29"', '"2023-02-28"', '"0004-02-29"'),
        ('"2023-02-29"', '"2024-02-30"', '"1900-02-29"', '"2024-04-31"', '"2024-1-01"'),
    ),
    "a format without a type": Case(
        {"format": "date"}, ('"2024-02-29"', "1", "null"), ('"x"', '"2024-02-30"')
    ),
    "an unknown format": Case({"type": "string", "format": "colour-of-it"}, ('"x"',), ("1",)),
    "a format of numbers": Case(
        {"type": "integer", "format": "int32"}, ("1", str(2**40)), ("1.5",)
    ),
    "a uuid": Case(
        {"type": "string", "format": "uuid"},
        ('"2eb8aa08-aa98-11ea-b4aa-73b441d16380"', '"2EB8AA08-AA98-11EA-B4AA-73B441D16380"'),
        ('"2eb8aa08-aa98-11ea-b4aa-73b441d1638"', '"2eb8aa08aa9811eab4aa73b441d16380"', '"x"'),
    ),
    "a date and time": Case(
        {"type": "string", "format": "date-time"},
        ('"2024-02-29T23:59:59Z"', '"1985-04-12T23:20:50.52+01:00"', '"1990-12-31T23:59:60Z"'),
        ('"2023-02-29T00:00:00Z"', '"2024-01-01 00:00:00Z0"', '"2024-01-01T24:00:00Z"', '"2024"'),
        disputed=('"1990-12-31T23:59:60Z"',),
    ),
    "a format that is not asserted": Case(
        {"type": "string", "format": "date"},
        ('"2024-02-30"', '"x"'),
        ("1",),
        disputed=('"2024-02-30"', '"x"'),
        options={"formats": "annotation"},
    ),
    # -- arrays
    "items of draft-07 as a tuple": Case(
        {
            "$schema": DRAFT_7,
            "type": "array",
            "items": [{"type": "integer"}, {"type": "string"}],
            "additionalItems": False,
        },
        ("[]", "[1]", '[1, "x"]'),
        ('["x"]', '[1, "x", 0]', "[1, 2]"),
    ),
    "a tuple with a rest": Case(
        {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}, "minItems": 2},
        ('[1, "x"]', '[1, "x", "y"]', "{}"),
        ("[1]", "[1, 2]", '["x", "x"]', "[]"),
    ),
    "a count that is written as a fraction": Case(
        {"maxItems": 2.0, "minItems": 1.0, "maxLength": 1.0},
        ("[1]", "[1, 2]", '"a"'),
        ("[]", "[1, 2, 3]", '"ab"'),
    ),
    "counts of items": Case(
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 40},
        ("[1, 2]", json.dumps([0] * 40)),
        ("[1]", "[]", json.dumps([0] * 41), '[1, "x"]'),
    ),
    "an array of no items": Case(
        {"type": "array", "maxItems": 0}, ("[]",), ("[1]",), ("[ , ]", "[,]")
    ),
    "false items": Case({"items": False}, ("[]", "1"), ("[1]", "[null]")),
    "contains": Case(
        {"contains": {"type": "string"}},
        ('["x"]', '[1, "x", 2]', "1", '[[], "x"]'),
        ("[]", "[1]", '[["x"]]'),
    ),
    "contains with counts": Case(
        {
            "contains": {"minimum": 5},
            "minContains": 2,
            "maxContains": 3,
            "items": {"type": "integer"},
        },
        ("[5, 6]", "[1, 5, 2, 6, 7]", "[5, 5, 5, 0]"),
        ("[5]", "[5, 5, 5, 5]", "[]", "[0, 1]", '[5, 6, "x"]'),
    ),
    "contains of nothing": Case(
        {"contains": {"const": 1}, "minContains": 0, "maxContains": 1},
        ("[]", "[1]", "[0, 1, 2]", "[0]"),
        ("[1, 1]", "[1, 0, 1.0]"),
    ),
    "no two items alike": Case(
        {"type": "array", "items": {"enum": ["a", "b", 1, True]}, "uniqueItems": True},
        ("[]", '["a"]', '["b", "a"]', '["a", 1, true, "b"]', "[true, 1]"),
        ('["a", "a"]', '["a", "b", "a"]', "[1, 1.0]", '["c"]'),
    ),
    "no two of many items alike": Case(
        {"items": {"enum": [f"v{n}" for n in range(40)]}, "uniqueItems": True, "minItems": 2},
        ('["v1", "v2"]', '["v39", "v3", "v0"]', "1"),
        ("[]", '["v1"]', '["v1", "v2", "v1"]', '["v1", "v40"]'),
    ),
    "words that are counted, and characters": Case(
        {"type": "string", "pattern": "^(?:\\S+\\s+){0,19}\\S+$", "maxLength": 200},
        (
            '"one two three"',
            '"é\\ta ü"',
            json.dumps(" ".join("a" * 20)),
            json.dumps("x" * 200),
            '"' + "ü" * 200 + '"',
        ),
        (
            '""',
            '" a"',
            '"a "',
            json.dumps(" ".join("a" * 21)),
            json.dumps("x" * 201),
            json.dumps("x" * 100 + " " + "y" * 100),
        ),
    ),
    "kinds that patterns of few texts tell apart": Case(
        {
            "oneOf": [
                {"properties": {"type": {"pattern": f"^basic:{kind}:$"}}, "required": ["type"]}
                for kind in (
                    *("int", "text", "file(:html)?", "dir", "url", "json", "date", "bool"),
                    *("list(:int|:text)", "map", "set", "list:[a-z]+x", "time", "zone"),
                )
            ]
        },
        (
            '{"type": "basic:int:"}',
            '{"type": "basic:file:html:"}',
            '{"type": "basic:list:text:"}',
            '{"type": "basic:list:abx:"}',
        ),
        ('{"type": "basic:none:"}', '{"type": "basic:list:"}', "{}", '{"type": "basic:file:x:"}'),
    ),
    "no two items, alike or not": Case(
        {"type": "array", "maxItems": 1, "uniqueItems": True},
        ("[]", '["x"]', "[[1, 1]]"),
        ("[1, 1]",),
    ),
    "no comma before the end": Case(
        {
            "prefixItems": [
                {"not": {"contains": {"const": 0}}},
                {"unevaluatedItems": {"const": 1}},
                {"contains": {"const": 1}, "maxContains": 1},
                {"prefixItems": [True], "items": {"type": "null"}},
                {"uniqueItems": True, "items": {"enum": [0, 1]}},
                {"not": {"items": {"const": 0}}},
            ],
            "items": {"properties": {"a": {}}, "not": {"required": ["b"]}},
        },
        (
            "[[1], [1], [1], [1], [1], [1]]",
            '[[], [], [1], [], [], [1], {"a": 1, "c": 2}, {}]',
            "[]",
        ),
        (),
        (
            "[[1,]]",
            "[[], [1,]]",
            "[[], [], [1,]]",
            "[[], [], [1], [1,]]",
            "[[], [], [1], [1, null,]]",
            "[[], [], [1], [], [1,]]",
            "[[], [], [1], [], [], [1,]]",
            "[[],]",
            "[[,]]",
            "[[], [,]]",
            "[[], [1 1]]",
            "[[], [1,,1]]",
            '[0, 0, 0, 0, 0, [1], {"a": 1,}]',
            '[0, 0, 0, 0, 0, [1], {"c": 1,}]',
            "[0, 0, 0, 0, 0, [1], {,}]",
            '[0, 0, 0, 0, 0, [1], {"a": 1 "c": 1}]',
        ),
    ),
    # -- white space
    "white space": Case(
        {"type": "object", "properties": {"a": {"type": "array"}}},
        ('{"a":[1,2]}', '{ "a" : [ 1 , 2 ] }', '{\r\n\t "a"\t:\r[\n]\n}', '{"a": [1, 2]}', "{ }"),
        (),
        (
            ' {"a": []}',
            '{"a": []} ',
            '{"a": []}\n',
            '{"a":\u00a0[]}',
            '{"a":\x0b[]}',
            '{"a": [1,]}',
        ),
    ),
    "white space in constants": Case(
        {"const": {"a": [1, {"b": 2}]}},
        ('{"a":[1,{"b":2}]}', '{ "a" : [ 1 , { "b" : 2 } ] }', '{\n  "a": [1, {"b": 2}]\n}'),
        ("{}",),
    ),
    "text that ends early": Case(
        {**obj(a={"type": "integer"}), "required": ["a"]},
        ('{"a": 1}',),
        (),
        ("", "{", '{"a"', '{"a":', '{"a": 1', '{"a": 1}}', '{"a": 1,}', '{"a": 1, }', "{,}"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_texts(name: str) -> None:
    case = CASES[name]
    found = language(case.schema, **case.options)
    wrong = [f"rejects {text}" for text in case.valid if not found.accepts(text)]
    wrong += [f"accepts {t}" for t in (*case.invalid, *case.unspelled) if found.accepts(t)]
    assert wrong == []


@pytest.mark.parametrize("name", CASES)
def test_in_any_order(name: str) -> None:
    """What is valid is accepted in any order, and what is invalid in none."""
    case = CASES[name]
    found = language(case.schema, **{**case.options, "key_order": "any"})
    wrong = [f"rejects {text}" for text in case.valid if not found.accepts(text)]
    wrong += [f"accepts {text}" for text in case.invalid if found.accepts(text)]
    assert wrong == []


@pytest.mark.parametrize("name", CASES)
def test_with_any_escapes(name: str) -> None:
    """Nothing is lost, and nothing invalid is gained, where strings may be spelled in any way."""
    case = CASES[name]
    found = language(case.schema, **{**case.options, "escapes": "any"})
    wrong = [f"rejects {text}" for text in case.valid if not found.accepts(text)]
    wrong += [f"accepts {text}" for text in case.invalid if found.accepts(text)]
    assert wrong == []


@pytest.mark.parametrize("name", CASES)
def test_the_table_is_right(name: str) -> None:
    """Both validators agree with it, but for what they dispute by faults of their own."""
    case = CASES[name]
    validators = Validators(case.schema, formats=case.options.get("formats") != "annotation")

    def verdict(text: str) -> bool | None:
        return validators.verdict(json.loads(text))

    for texts, expected in ((case.valid, True), (case.invalid, False)):
        assert [t for t in texts if t not in case.disputed and verdict(t) is not expected] == []
    assert set(case.disputed) <= {*case.valid, *case.invalid}
    assert case.valid or case.unspelled


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        (
            r'{"type": "object", "if": {"properties": {"a": {}}, "required": ["a"]}, '
            r'"une\u0076aluatedProperties": false}',
            '{"a": 1}',
            '{"b": 1}',
        ),
        (
            r'{"$id": "http://a.b/root", "$ref": "list", '
            r'"$defs": {"string": {"$dynamicAnchor": "item", '
            r'"type": "string"}, "list": {"$id": "list", "type": "array", '
            r'"items": {"$dynamic\u0052ef": "#item"}, '
            r'"$defs": {"any": {"$dynamicAnchor": "item"}}}}}',
            '["a"]',
            "[1]",
        ),
    ],
)
def test_keywords_with_escapes(schema: str, valid: str, invalid: str) -> None:
    """A keyword counts however its name is spelled."""
    grammar = Grammar.from_json_schema(schema)
    found = Language(grammar, tokfold.compile(grammar, BYTES))
    assert found.accepts(valid)
    assert not found.accepts(invalid)


@pytest.mark.parametrize("where", ["#/$defs/m", "#/$defs/n"])
def test_dynamic_references_that_stand_for_two_schemas(where: str) -> None:
    """The two are anchors of a resource around the one that refers to them."""
    schema: dict[str, Any] = {
        "$id": "http://a.b/root",
        "type": "object",
        "properties": {"a": {"$ref": "list"}},
        "$defs": {
            "m": {"$dynamicAnchor": "node", "type": "string"},
            "n": {"$dynamicAnchor": "node", "type": "null"},
            "list": {
                "$id": "list",
                "type": "array",
                "items": {"$dynamicRef": "#node"},
                "$defs": {"any": {"$dynamicAnchor": "node"}},
            },
        },
    }
    with pytest.raises(InvalidSchemaError, match="it stands for two schemas") as caught:
        Grammar.from_json_schema(schema)
    assert caught.value.pointer == "#/$defs/list/items"
    assert where in caught.value.reason
    other = "n" if where.endswith("m") else "m"
    del schema["$defs"][other]
    assert Grammar.from_json_schema(schema)
