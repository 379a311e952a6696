"""Schemas that are large, deep, circular or no schemas at all, made when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

RESULT = frozenset({"result"})
LIMIT = frozenset({"LimitExceededError"})
UNSUPPORTED = frozenset({"UnsupportedSchemaError"})
UNSATISFIABLE = frozenset({"UnsatisfiableSchemaError"})
NO_SCHEMA = frozenset({"InvalidSchemaError"})
TYPED = LIMIT | UNSUPPORTED | UNSATISFIABLE | NO_SCHEMA
ANY = RESULT | TYPED


@dataclass(frozen=True)
class Case:
    """A schema, what may become of it, and texts for the case that it is taken."""

    make: Callable[[], Any]
    outcomes: frozenset[str] = ANY
    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def nested(levels: int, before: str, after: str, leaf: str = "true") -> str:
    """A document in a document, as text."""
    return before * levels + leaf + after * levels


def keys(count: int) -> list[str]:
    """Names."""
    return [f"key {i}" for i in range(count)]


def members(count: int) -> dict[str, Any]:
    """Properties."""
    return {key: {"type": "integer"} for key in keys(count)}


def words(count: int) -> list[str]:
    """Random ones of 32 letters."""
    random = Random(1)
    return [f"{random.getrandbits(128):032x}" for _ in range(count)]


def doubled(levels: int) -> Any:
    """References of which each stands twice in the one before: 2 to the power of the levels."""
    defs: dict[str, Any] = {f"d{levels}": {"type": "integer"}}
    for i in range(levels):
        inner = {"$ref": f"#/$defs/d{i + 1}"}
        defs[f"d{i}"] = {"properties": {"a": inner, "b": inner}, "required": ["a"]}
    return {"$defs": defs, "$ref": "#/$defs/d0"}


def chain(length: int, make: Callable[[str], Any], last: Any) -> dict[str, Any]:
    """Definitions of which each refers to the next."""
    defs = {f"d{i}": make(f"#/$defs/d{i + 1}") for i in range(length)}
    return {"$defs": {**defs, f"d{length}": last}, "$ref": "#/$defs/d0"}


def ring(*links: Callable[[dict[str, str]], Any]) -> dict[str, Any]:
    """Definitions of which the last refers to the first."""
    count = len(links)
    defs = {f"d{i}": link({"$ref": f"#/$defs/d{(i + 1) % count}"}) for i, link in enumerate(links)}
    return {"$defs": defs, "$ref": "#/$defs/d0"}


def discriminated(count: int) -> dict[str, Any]:
    """A condition for each kind."""
    return {
        "properties": {"kind": {"enum": keys(count)}},
        "required": ["kind"],
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": key}}, "required": ["kind"]},
                "then": {"required": [f"of {key}"], "properties": {f"of {key}": {"minimum": i}}},
            }
            for i, key in enumerate(keys(count))
        ],
    }


CASES: dict[str, Case] = {
    # -- size
    "10 MB of members": Case(
        lambda: json.dumps(
            {
                "properties": {
                    f"{i:040}": {"description": "x" * 30, "minimum": i} for i in range(80_000)
                }
            }
        ),
        accepted=("{}", '{"' + "0" * 39 + '7": 7}'),
        rejected=('{"' + "0" * 39 + '7": 6}',),
    ),
    "a description of 10 MB": Case(
        lambda: {"description": "x" * 10_000_000, "type": "integer"}, RESULT, ("1",), ("1.5",)
    ),
    "a description of 100 MB": Case(lambda: {"description": "x" * 100_000_000, "type": "null"}),
    "10^5 properties": Case(
        lambda: {"type": "object", "properties": members(100_000)},
        accepted=('{"key 7": 1, "key 99999": 1}', "{}", '{"x": "x"}'),
        rejected=('{"key 7": "x"}', '{"key 7": 1, "key 7": 1}', '{"key 8": 1, "key 7": 1}'),
    ),
    "10^5 properties, any order": Case(
        lambda: {"type": "object", "properties": members(100_000)},
        accepted=('{"key 8": 1, "key 7": 1}', "{}"),
        rejected=('{"key 7": "x"}', '{"key 7": 1, "key 7": 1}'),
        options={"key_order": "any"},
    ),
    "10^5 required properties": Case(
        lambda: {"properties": members(100_000), "required": keys(100_000), "type": "object"},
        rejected=("{}", '{"key 0": 1}'),
    ),
    "1,000 required properties, any order": Case(
        lambda: {"properties": members(1_000), "required": keys(1_000), "type": "object"},
        rejected=("{}", '{"key 0": 1}'),
        options={"key_order": "any"},
    ),
    "64 properties, any order": Case(
        lambda: {"properties": members(64), "required": keys(64)[::2], "type": "object"},
        RESULT | LIMIT,
        (json.dumps({key: 1 for key in reversed(keys(64))}),),
        ("{}", json.dumps({key: 1 for key in keys(62)}), '{"key 1": 1, "key 1": 1}'),
        {"key_order": "any"},
    ),
    "10^5 strings": Case(
        lambda: {"enum": [f"value {i}" for i in range(100_000)]},
        RESULT,
        ('"value 0"', '"value 99999"'),
        ('"value 100000"', '"value"', '"value 01"'),
    ),
    "10^5 random strings": Case(
        lambda: {"enum": words(100_000)}, RESULT | LIMIT, (json.dumps(words(1)[0]),), ('"ab"',)
    ),
    "all but 10^5 strings": Case(
        lambda: {"type": "string", "not": {"enum": words(100_000)}},
        accepted=('"ab"',),
        rejected=(json.dumps(words(1)[0]),),
    ),
    "10^5 strings twice": Case(
        lambda: {"allOf": [{"enum": words(100_000)}, {"enum": words(100_002)[2:]}]},
        accepted=(json.dumps(words(3)[2]),),
        rejected=(json.dumps(words(1)[0]),),
    ),
    "10^5 numbers": Case(
        lambda: {"enum": [i * 7 for i in range(100_000)]},
        RESULT,
        ("7", "699993", "0"),
        ("8", "-7", "700000"),
    ),
    "10^4 objects": Case(
        lambda: {"enum": [{"a": i, "b": -i} for i in range(10_000)]},
        accepted=('{"a": 3, "b": -3}',),
        rejected=('{"a": 3, "b": -4}', '{"a": 10000, "b": -10000}'),
    ),
    "a constant of 10^5 items": Case(
        lambda: {"const": list(range(100_000))}, rejected=("[]", "[0, 1]")
    ),
    "a string of 1 MB": Case(lambda: {"const": "x" * 1_000_000}, rejected=('"x"',)),
    "10^5 definitions that nothing uses": Case(
        lambda: {"$defs": members(100_000), "type": "null"}, RESULT, ("null",), ("1",)
    ),
    "2^30 objects by references": Case(
        lambda: doubled(30), RESULT, ("1", "[]"), ("{}", '{"b": 1}')
    ),
    # -- depth
    "items 20,000 deep": Case(lambda: nested(20_000, '{"items":', "}")),
    "properties 20,000 deep": Case(lambda: nested(20_000, '{"properties":{"a":', "}}")),
    "not 100,000 deep": Case(lambda: nested(100_000, '{"not":', "}")),
    "not 900 deep": Case(lambda: nested(900, '{"not":', "}", '{"type":"null"}')),
    "allOf 900 deep": Case(
        lambda: nested(400, '{"allOf":[', "]}", '{"type":"null"}'), RESULT, ("null",), ("1",)
    ),
    "a constant 100,000 deep": Case(lambda: '{"const":' + nested(100_000, "[", "]", "1") + "}"),
    "open brackets": Case(lambda: "[" * 1_000_000, TYPED),
    "a dict 100,000 deep": Case(lambda: _deep(100_000), LIMIT | NO_SCHEMA),
    "400 objects in one another": Case(
        lambda: nested(400, '{"type":"object","properties":{"a":', '},"required":["a"]}'),
        accepted=('{"a": ' * 400 + "1" + "}" * 400,),
        rejected=('{"a": ' * 399 + "1" + "}" * 399,),
    ),
    # -- conjunctions and alternatives
    "allOf of 1,000": Case(
        lambda: {"allOf": [{"properties": {key: {"minimum": 1}}} for key in keys(1_000)]},
        accepted=('{"key 3": 1}', "{}"),
        rejected=('{"key 3": 0}',),
    ),
    "a chain of 1,000 allOf": Case(
        lambda: chain(
            1_000, lambda n: {"allOf": [{"$ref": n}, {"minimum": -1_000}]}, {"type": "integer"}
        ),
        RESULT,
        ("1",),
        ("-1001", "1.5"),
    ),
    "a chain of 10^5 references": Case(
        lambda: chain(100_000, lambda n: {"$ref": n}, {"type": "null"}),
        accepted=("null",),
        rejected=("1",),
    ),
    "anyOf of 1,000 objects": Case(
        lambda: {"anyOf": [{"properties": {k: {}}, "required": [k]} for k in keys(1_000)]},
        accepted=('{"key 3": 0}', "1"),
        rejected=("{}", '{"x": 0}'),
    ),
    "oneOf of 300 that overlap": Case(
        lambda: {"type": "integer", "oneOf": [{"minimum": i} for i in range(300)]},
        accepted=("0",),
        rejected=("1", "299", "-1"),
    ),
    "oneOf of 60 objects that require 3,000 names each": Case(
        lambda: {
            "oneOf": [
                {"type": "object", "required": keys(3_000), "properties": {f"p{i}": {}}}
                for i in range(60)
            ]
        },
    ),
    "oneOf of 40 objects that overlap": Case(
        lambda: {"type": "object", "oneOf": [{"required": [key]} for key in keys(40)]},
        accepted=('{"key 3": 0}',),
        rejected=("{}", '{"key 3": 0, "key 4": 0}'),
    ),
    "allOf of 30 alternatives": Case(
        lambda: {
            "type": "object",
            "allOf": [
                {"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(30)
            ],
        },
        accepted=(json.dumps({f"{x}{i}": 0 for i in range(30) for x in "a"}),),
        rejected=("{}", '{"a1": 0}'),
    ),
    "a condition for each of 200 kinds": Case(
        lambda: discriminated(200),
        accepted=('{"kind": "key 3", "of key 3": 3}',),
        rejected=('{"kind": "key 3"}', '{"kind": "key 3", "of key 3": 2}', '{"kind": "x"}'),
    ),
    "dependentRequired of 300": Case(
        lambda: {
            "dependentRequired": {f"k{i}": [f"k{i + 1}"] for i in range(300)},
            "type": "object",
        },
        accepted=("{}", '{"k300": 1}', '{"k299": 1, "k300": 1}'),
        rejected=('{"k0": 1}', '{"k299": 1}'),
    ),
    "30 patterns of names that overlap": Case(
        lambda: {
            "patternProperties": {
                f"{chr(97 + i % 26)}.*{chr(97 + i * 7 % 26)}{i}": {"minimum": i} for i in range(30)
            }
        },
        accepted=("{}", '{"ah1": 1}', "1"),
        rejected=('{"aa0": -1}',),
    ),
    "unevaluatedProperties with 100 branches": Case(
        lambda: {
            "anyOf": [{"properties": {key: {}}, "required": [key]} for key in keys(100)],
            "unevaluatedProperties": False,
            "type": "object",
        },
        accepted=('{"key 3": 0}',),
        rejected=("{}", '{"x": 0}', '{"key 3": 0, "x": 1}'),
    ),
    "ten kinds that items must contain": Case(
        lambda: {
            "allOf": [{"contains": {"multipleOf": p}, "maxContains": 9} for p in range(2, 12)]
        },
        accepted=("1",),
        rejected=("[]", "[1]"),
    ),
    "unique items of 300 values": Case(
        lambda: {"type": "array", "uniqueItems": True, "items": {"enum": list(range(300))}},
        accepted=("[1, 2]",),
        rejected=("[1, 1]", "[300]"),
    ),
    # -- circles
    "a reference to itself": Case(lambda: {"$ref": "#"}, UNSUPPORTED | UNSATISFIABLE),
    "two references to each other": Case(
        lambda: ring(lambda n: n, lambda n: n), UNSUPPORTED | UNSATISFIABLE
    ),
    "references in a circle of 1,000": Case(
        lambda: ring(*[lambda n: {"allOf": [n]}] * 1_000), UNSUPPORTED | UNSATISFIABLE
    ),
    "a circle through not": Case(lambda: ring(lambda n: {"not": n}), UNSUPPORTED | UNSATISFIABLE),
    "a circle through anyOf": Case(
        lambda: ring(lambda n: {"anyOf": [{"type": "null"}, n]}),
        accepted=("null",),
        rejected=("1",),
    ),
    "a circle through objects": Case(
        lambda: ring(
            lambda n: {"type": "object", "properties": {"a": n}},
            lambda n: {"type": "array", "items": n},
        ),
        RESULT,
        ("{}", '{"a": [{"a": []}]}'),
        ("[]", '{"a": {}}'),
    ),
    "a circle that must go on": Case(
        lambda: ring(lambda n: {"type": "object", "properties": {"a": n}, "required": ["a"]}),
        UNSATISFIABLE,
    ),
    "a circle of dynamic references": Case(
        lambda: {"$dynamicAnchor": "x", "$dynamicRef": "#x"}, UNSUPPORTED | UNSATISFIABLE
    ),
    "a metaschema of itself": Case(
        lambda: {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        accepted=("true", "{}", '{"type": "string"}', '{"properties": {"a": {"minLength": 1}}}'),
        rejected=("1", '{"type": "str"}', '{"properties": {"a": {"minLength": -1}}}'),
    ),
    # -- patterns
    "subsets of 30": Case(lambda: {"type": "string", "pattern": "(a|b)*a(a|b){30}$"}, ANY),
    "1,000 options": Case(
        lambda: {"type": "string", "pattern": "^(a?){1000}a{1000}$"}, rejected=('"aa"',)
    ),
    "26 lookaheads": Case(
        lambda: {"type": "string", "pattern": "".join(f"(?=.*{chr(97 + i)})" for i in range(26))}
    ),
    "words to a length": Case(
        lambda: {"type": "string", "pattern": r"^(?:\S+\s+){0,49}\S+$", "maxLength": 500},
        accepted=('"a b"',),
        rejected=('""', '" a"', json.dumps("a " * 50 + "a")),
    ),
    "counts in counts": Case(lambda: {"type": "string", "pattern": "^(((a{1,99}){1,99}){1,99})$"}),
    "a count of 10^9": Case(
        lambda: {"type": "string", "pattern": "^[a-z]{1,1000000000}$"},
        accepted=('"a"',),
        rejected=('""', '"A"'),
    ),
    "30,000 groups": Case(
        lambda: {"type": "string", "pattern": "(" * 30_000 + "a" + ")" * 30_000},
        rejected=('"b"',),
    ),
    "a pattern of 1 MB": Case(lambda: {"type": "string", "pattern": "^" + "ab" * 500_000}),
    "100,000 alternatives": Case(
        lambda: {"type": "string", "pattern": "^(" + "|".join(words(100_000)) + ")$"},
        accepted=(json.dumps(words(1)[0]),),
        rejected=('"ab"',),
    ),
    "a backreference": Case(lambda: {"type": "string", "pattern": r"(a|b)\1"}, UNSUPPORTED),
    "a pattern that is none": Case(lambda: {"type": "string", "pattern": "a{2,1}"}, TYPED),
    "a pattern that ends early": Case(lambda: {"type": "string", "pattern": "(a"}, TYPED),
    "a pattern of a name that is none": Case(lambda: {"patternProperties": {"[": {}}}, TYPED),
    "20 patterns and their negations": Case(
        lambda: {
            "type": "string",
            "allOf": [
                x
                for i in range(20)
                for x in (
                    {"pattern": f"{chr(97 + i)}.{{{i}}}z"},
                    {"not": {"pattern": f"z.{{{i}}}{chr(97 + i)}"}},
                )
            ],
        },
        rejected=('"a"',),
    ),
    # -- numbers
    "a minimum of 10^4 digits": Case(
        lambda: '{"minimum": 1' + "0" * 10_000 + ', "type": "integer"}',
        accepted=("1" + "0" * 10_000, "2" + "0" * 10_000),
        rejected=("1" + "0" * 9_999, "9" * 10_000),
    ),
    "a constant of 10^4 digits": Case(
        lambda: '{"const": ' + "7" * 10_000 + "}",
        accepted=("7" * 10_000, "7" * 10_000 + ".0"),
        rejected=("7" * 9_999, "7" * 10_001),
    ),
    "a fraction of 10^4 digits": Case(
        lambda: '{"type": "number", "maximum": 0.' + "3" * 10_000 + "}",
        accepted=("0.3", "0." + "3" * 10_000),
        rejected=("0." + "3" * 10_001, "0.4"),
    ),
    "multipleOf 10^4 digits": Case(lambda: '{"multipleOf": ' + "7" * 10_000 + "}"),
    "multipleOf 123,456,789": Case(
        lambda: {"multipleOf": 123_456_789, "type": "integer"}, UNSUPPORTED | LIMIT
    ),
    "multipleOf a very small number": Case(lambda: {"multipleOf": 1e-300}),
    "multipleOf zero": Case(lambda: {"multipleOf": 0}, NO_SCHEMA | UNSUPPORTED),
    "an exponent of 10^9": Case(lambda: '{"minimum": 1e999999999}'),
    "an exponent of 10^4 digits": Case(lambda: '{"minimum": 1e' + "9" * 10_000 + "}"),
    "an exponent of 400": Case(
        lambda: '{"minimum": 1e400, "type": "integer"}',
        accepted=("1" + "0" * 400,),
        rejected=("1" + "0" * 399,),
    ),
    "NaN": Case(lambda: '{"minimum": NaN}', NO_SCHEMA),
    "numbers that are none": Case(lambda: '{"minimum": 01}', NO_SCHEMA),
    "counts of 10^18": Case(
        lambda: {"minLength": 10**18, "minItems": 10**18, "minProperties": 10**18},
        rejected=('"a"', "[1]", "{}"),
    ),
    "bounds of 10^18": Case(
        lambda: {"maxLength": 10**18, "maxItems": 10**18, "maxProperties": 10**18},
        accepted=('"a"', "[1]", '{"a": 1}'),
    ),
    "counts of 10^5": Case(
        lambda: {"type": "array", "minItems": 100_000, "maxItems": 200_000}, rejected=("[1]",)
    ),
    "contains of 10^5": Case(
        lambda: {"contains": {"type": "null"}, "minContains": 100_000, "maxContains": 200_000},
        rejected=("[null]",),
    ),
    # -- documents
    "two keywords of one name": Case(lambda: '{"type": "string", "type": "integer"}', NO_SCHEMA),
    "two properties of one name": Case(
        lambda: r'{"properties": {"a": {"type": "string"}, "\u0061": {"type": "null"}}}', NO_SCHEMA
    ),
    "a lone surrogate as a constant": Case(
        lambda: r'{"const": "\ud800"}', TYPED, rejected=(r'"\ud800"',)
    ),
    "a lone surrogate of many constants": Case(
        lambda: r'{"enum": ["a", "\ud800"]}', accepted=('"a"',), rejected=(r'"\ud800"', '"\ud800"')
    ),
    "a lone surrogate as a name": Case(
        lambda: r'{"properties": {"\udfff": {"type": "null"}}}',
        accepted=("{}",),
        rejected=(r'{"\udfff": null}',),
    ),
    "a lone surrogate in a pattern": Case(
        lambda: r'{"type": "string", "pattern": "\ud800"}', rejected=('"a"', r'"\ud800"')
    ),
    "a raw surrogate": Case(lambda: '{"const": "\ud800"}', TYPED),
    "a NUL": Case(lambda: {"const": "a\0b"}, RESULT, (r'"a\u0000b"',), ('"a\0b"', '"ab"')),
    "text that ends early": Case(lambda: '{"type": ', NO_SCHEMA),
    "text behind the end": Case(lambda: '{"type": "null"} x', NO_SCHEMA),
    "no text": Case(lambda: "", NO_SCHEMA),
    "a list": Case(lambda: "[]", NO_SCHEMA),
    "a number": Case(lambda: "5", NO_SCHEMA),
    "a type that is unknown": Case(lambda: {"type": "str"}, NO_SCHEMA),
    "a reference to nothing": Case(lambda: {"$ref": "#/$defs/x"}, NO_SCHEMA | UNSUPPORTED),
    "a reference elsewhere": Case(
        lambda: {"$ref": "http://example.com/x.json"}, NO_SCHEMA | UNSUPPORTED
    ),
    "a reference to what is no schema": Case(
        lambda: {"$ref": "#/properties", "properties": 5}, NO_SCHEMA | UNSUPPORTED
    ),
    "an unknown dialect": Case(
        lambda: {"$schema": "http://example.com/dialect", "type": "null"}, ANY, ("null",), ("1",)
    ),
    "an enum of nothing": Case(lambda: {"enum": []}, UNSATISFIABLE | NO_SCHEMA),
    "a schema of nothing": Case(lambda: "false", UNSATISFIABLE),
    "an unsatisfiable part": Case(
        lambda: {
            "type": "object",
            "properties": {"a": {"minimum": 3, "maximum": 2, "type": "number"}},
        },
        RESULT,
        ("{}",),
        ('{"a": 3}', '{"a": 2}', '{"b": 1}'),
    ),
}


def _deep(levels: int) -> Any:
    made: Any = {}
    for _ in range(levels):
        made = {"items": made}
    return made


WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**20, "x", "", [], [1], ["a", "a"], [None], {}, {"a": 1},
    {"a": []}, {"a": None}, [[]], [{}], [False], {"a": {"a": 1}},
)  # fmt: skip
KEYWORDS = (
    "$anchor", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef",
    "$ref", "$schema", "$vocabulary", "additionalItems", "additionalProperties", "allOf", "anyOf",
    "const", "contains", "definitions", "dependencies", "dependentRequired", "dependentSchemas",
    "else", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "id", "if", "items",
    "maxContains", "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems",
    "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern",
    "patternProperties", "prefixItems", "properties", "propertyNames", "required", "then", "type",
    "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
)  # fmt: skip
