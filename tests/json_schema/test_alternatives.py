"""Unions of objects: each alternative keeps the order of its own names, and closes by itself.

The oracle knows two things. What is accepted is valid, by a validator. And a valid value that an
alternative takes is accepted as that alternative alone would have it written: its own names in
their order, then the others.
"""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import jsonschema
import pytest
import tokfold
from strategies.profiles import CASES, LONG, LONG_FACTOR

BYTES = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])
ROUNDS = 150 * LONG_FACTOR if LONG else 150


class Language:
    """What a schema accepts, by a matcher."""

    def __init__(self, schema: Any, **options: Any) -> None:
        options = {"additional_properties": True, **options}
        self.grammar = tokfold.Grammar.from_json_schema(schema, **options)
        self.compiled = tokfold.compile(
            self.grammar, BYTES, classes="never", options=tokfold.CompileOptions(check_tokens=False)
        )

    def __contains__(self, text: str) -> bool:
        matcher = tokfold.Matcher(self.compiled)
        return bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting)


CAT = {
    "type": "object",
    "properties": {"kind": {"const": "cat"}, "meows": {"type": "integer"}, "name": {}},
    "required": ["kind", "name"],
}
DOG = {
    "type": "object",
    "properties": {"kind": {"const": "dog"}, "barks": {"type": "number"}, "name": {}},
    "required": ["kind", "name"],
}
DEFINED = {"Cat": CAT, "Dog": DOG}
REFERENCES = [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
SPELLINGS: dict[str, Any] = {
    "anyOf": {"anyOf": [CAT, DOG]},
    "oneOf": {"oneOf": [CAT, DOG]},
    "references": {"$defs": DEFINED, "anyOf": REFERENCES},
    "in allOf": {"$defs": DEFINED, "allOf": [{"oneOf": REFERENCES}]},
    "nullable": {"anyOf": [{"anyOf": [CAT, {"type": "null"}]}, DOG, {"type": "string"}]},
    "a union in a union": {"anyOf": [{"oneOf": [CAT]}, {"anyOf": [DOG, {"type": "null"}]}]},
    "discriminated": {
        "$defs": DEFINED,
        "discriminator": {"propertyName": "kind"},
        "oneOf": REFERENCES,
    },
    "if": {"if": {"properties": {"kind": {"const": "cat"}}}, "then": CAT, "else": DOG},
}
IN_OWN_ORDER = [
    '{"kind": "cat", "meows": 2, "name": "x"}',
    '{"kind": "dog", "barks": 2.5, "name": "x"}',
    '{"kind": "dog", "name": "x"}',
]
INVALID = [
    '{"kind": "cow", "name": "x"}',
    '{"kind": "dog", "barks": "x", "name": "x"}',
    '{"kind": "cat", "meows": 2.5, "name": "x"}',
    '{"kind": "cat"}',
]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("key_order", ["schema", "any"])
def test_spellings_of_a_union(spelling: str, closed: bool, key_order: Any) -> None:
    options = {"key_order": key_order, "additional_properties": not closed}
    schemas = [SPELLINGS[spelling], {"type": "object", "properties": {"pet": SPELLINGS[spelling]}}]
    if "$defs" in schemas[0]:
        schemas[1] = {"$defs": DEFINED, **schemas[1]}
    for schema, around in zip(schemas, ["{}", '{{"pet": {}}}'], strict=True):
        language = Language(schema, **options)
        for text in IN_OWN_ORDER:
            assert around.format(text) in language, text
        for text in INVALID:
            assert around.format(text) not in language, text
        other = '{"kind": "dog", "name": "x", "zoo": 1}'
        assert (around.format(other) in language) is not closed
        assert (around.format('{"kind": "dog", "name": "x", "meows": 1}') in language) is not closed


def test_what_stands_beside_a_union() -> None:
    """A base keeps its order, and the branches theirs."""
    base = {"type": "object", "properties": {"id": {"type": "integer"}, "kind": {}}}
    for schema in (
        {**base, "oneOf": [CAT, DOG]},
        {"allOf": [base, {"anyOf": [CAT, DOG]}]},
        {"$defs": {"base": base}, "allOf": [{"$ref": "#/$defs/base"}], "anyOf": [CAT, DOG]},
    ):
        for closed in (False, True):
            language = Language(schema, additional_properties=not closed)
            assert '{"id": 1, "kind": "dog", "barks": 1, "name": "x"}' in language
            assert '{"id": 1, "kind": "cat", "meows": 1, "name": "x"}' in language
            assert '{"id": "x", "kind": "cat", "meows": 1, "name": "x"}' not in language
            assert ('{"kind": "cat", "name": "x", "more": 1}' in language) is not closed


def test_a_branch_that_names_what_stands_beside_it_in_another_order() -> None:
    schema = {
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {}},
        "anyOf": [{"properties": {"b": {"minimum": 2}, "a": {"maximum": 2}}, "required": ["a"]}],
    }
    language = Language(schema)
    for text in ('{"a": 1, "b": 2, "c": 3}', '{"b": 2, "a": 1, "c": 3}'):
        assert text in language
    assert '{"b": 1, "a": 1, "c": 3}' not in language


def test_then_and_else_in_their_orders() -> None:
    schema = {
        "properties": {"t": {"type": "integer"}},
        "required": ["t"],
        "if": {"properties": {"t": {"minimum": 5}}},
        "then": {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        "else": {"properties": {"b": {"type": "null"}, "a": {"type": "null"}, "c": {}}},
    }
    for closed in (False, True):
        language = Language(schema, additional_properties=not closed)
        assert '{"t": 7, "a": "x", "b": "y"}' in language
        assert '{"t": 3, "b": null, "a": null, "c": 1}' in language
        assert '{"t": 7, "b": null, "a": null}' not in language
        assert '{"t": 3, "a": "x", "b": "y"}' not in language
        assert ('{"t": 7, "a": "x", "b": "y", "c": 1}' in language) is not closed


def test_tagged_unions_of_any_number_cost_what_their_members_cost() -> None:
    """States grow with the members, however the union is spelled; nothing is multiplied out."""

    def member(number: int) -> dict[str, Any]:
        tag = {"kind": {"const": f"k{number}"}, f"f{number}": {"type": "integer"}, "name": {}}
        return {"type": "object", "properties": tag, "required": ["kind"]}

    spellings = [
        lambda members: {"anyOf": members},
        lambda members: {"oneOf": members},
        lambda members: {"allOf": [{"anyOf": members}]},
        lambda members: {"anyOf": [{"anyOf": members[::2]}, {"oneOf": members[1::2]}]},
        lambda members: {"properties": {"id": {}}, "oneOf": members},
        lambda members: {"oneOf": members, "unevaluatedProperties": False},
    ]
    for spelling in spellings:
        rules = []
        for count in (20, 40, 80):
            schema = spelling([member(number) for number in range(count)])
            language = Language(schema, additional_properties=False)
            assert f'{{"kind": "k{count - 1}", "f{count - 1}": 1, "name": 2}}' in language
            assert f'{{"kind": "k{count - 1}", "f0": 1}}' not in language
            rules.append(len(str(language.grammar)))
        assert rules[2] - rules[1] < 3 * (rules[1] - rules[0])


def test_conditions_that_a_tag_decides_are_any_number() -> None:
    for count in (5, 14, 40):
        tags = [f"t{number}" for number in range(count)]
        chain = [
            {
                "if": {"properties": {"t": {"const": tag}}},
                "then": {"properties": {f"x{tag}": {"type": "integer"}}, "required": [f"x{tag}"]},
            }
            for tag in tags
        ]
        schema = {
            "type": "object",
            "properties": {"t": {"enum": tags}},
            "required": ["t"],
            "allOf": chain,
            "unevaluatedProperties": False,
        }
        language = Language(schema)
        last = tags[-1]
        assert f'{{"t": "{last}", "x{last}": 1}}' in language
        assert f'{{"t": "{last}"}}' not in language
        assert f'{{"t": "{last}", "x{last}": 1, "xt0": 1}}' not in language


REPEATED: dict[str, Any] = {
    "a bounded string": ({"type": "string", "maxLength": 4}, ['"x"', '""'], ['"abcde"', "1"]),
    "a pattern": ({"type": "string", "pattern": "^[a-c]+$"}, ['"ab"'], ['"x"', "[]"]),
    "a number within bounds": ({"type": "number", "minimum": 3, "maximum": 9}, ["4.5"], ["10"]),
    "an array": (
        {"type": "array", "items": {"type": "string", "maxLength": 1}, "maxItems": 2},
        ["[]", '["x", "y"]'],
        ['["xx"]', '["x", "y", "z"]', "null"],
    ),
    "an object": (
        {"type": "object", "properties": {"n": {"type": "integer"}, "m": {}}, "required": ["n"]},
        ['{"n": 1}', '{"n": 1, "m": 2}'],
        ["{}", '{"n": "x"}'],
    ),
}


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("kind", REPEATED)
def test_a_member_that_alternatives_repeat_is_one_condition(kind: str, closed: bool) -> None:
    """Tags that may be missing tell nothing apart: each condition would be decided by itself."""
    member, valid, invalid = REPEATED[kind]
    alternatives = [
        {
            "type": "object",
            "properties": {
                "id": {**member, "description": f"The id of method {number}."},
                "type": {"enum": [f"t{number}"], "default": f"t{number}"},
                f"own{number}": {"type": "integer"},
            },
        }
        for number in range(30)
    ]
    language = Language({"oneOf": alternatives}, additional_properties=not closed)
    for value in valid:
        for number in (0, 7, 29):
            assert f'{{"id": {value}, "type": "t{number}"}}' in language
            assert f'{{"id": {value}, "type": "t{number}", "own{number}": 1}}' in language
            # Who says no type is one of all: closing decides nothing.
            assert f'{{"id": {value}, "own{number}": 1}}' not in language
            assert f'{{"id": {value}, "own{number}": "x"}}' not in language
        assert f'{{"id": {value}}}' not in language
        assert f'{{"id": {value}, "type": "t30"}}' not in language
    for value in invalid:
        assert f'{{"id": {value}, "type": "t7"}}' not in language
        assert f'{{"id": {value}, "own7": 1}}' not in language


def test_conditions_that_differ_in_little_are_not_one() -> None:
    """The name of a member is no annotation, nor is what a value holds."""
    item = {"type": "array", "items": {"type": "string", "maxLength": 1}}
    pairs: list[tuple[Any, Any, str]] = [
        ({"type": "string", "maxLength": 4}, {"type": "string", "maxLength": 5}, '"abcde"'),
        (item, {**item, "items": {"type": "string", "maxLength": 2}}, '["xx"]'),
        ({"properties": {"title": {"type": "null"}}}, {"properties": {}}, '{"title": 1}'),
        ({"enum": [{"title": 1}]}, {"enum": [{"title": 2}]}, '{"title": 2}'),
        ({"required": ["title"]}, {"required": []}, "{}"),
        ({"prefixItems": [{"type": "null"}]}, {"items": {"type": "null"}}, "[null, 1]"),
    ]
    for one, other, text in pairs:
        members = [{"properties": {"id": said}, "required": ["id"]} for said in (one, other)]
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "oneOf": members}
        validator, language = jsonschema.Draft202012Validator(schema), Language(schema)
        # One condition in the place of both would hold and not hold at once.
        value = f'{{"id": {text}}}'
        assert validator.is_valid(json.loads(value))
        assert value in language


def test_products_of_unions_fall_back_to_one_order() -> None:
    """Seven unions of three stand beside each other: no order of one is lost, and it ends."""
    unions = []
    for number in range(7):
        names = [f"a{number}", f"b{number}", f"c{number}"]
        unions.append(
            {
                "anyOf": [
                    {"properties": {name: {"type": "integer"}}, "required": [name]}
                    for name in names
                ]
            }
        )
    language = Language({"type": "object", "allOf": unions})
    assert "{" + ", ".join(f'"b{number}": 1' for number in range(7)) + "}" in language
    assert "{" + ", ".join(f'"b{number}": 1' for number in range(6)) + "}" not in language


# ------------------------------------------------------------------------ random unions

NAMES = ["a", "b", "c", "d"]
VALUES: list[Any] = [0, 3, "x", None]


def some_object(random: Random) -> dict[str, Any]:
    names = random.sample(NAMES, random.randint(1, 3))
    kinds: list[Any] = [{}, {"type": "integer"}, {"const": "x"}, {"const": 3}, {"enum": [0, None]}]
    out: dict[str, Any] = {"properties": {name: random.choice(kinds) for name in names}}
    if random.random() < 0.8:
        out["type"] = "object"
    if random.random() < 0.7:
        out["required"] = random.sample(names, random.randint(1, len(names)))
    if random.random() < 0.2:
        out["additionalProperties"] = random.choice([False, {"type": "integer"}])
    return out


def spelled(random: Random, members: list[Any]) -> dict[str, Any]:
    """A union of some members, in some spelling, with references."""
    definitions: dict[str, Any] = {}

    def written(member: Any) -> Any:
        if random.random() < 0.3:
            name = f"d{len(definitions)}"
            definitions[name] = member
            return {"$ref": f"#/$defs/{name}"}
        return member

    def union(members: list[Any]) -> Any:
        if len(members) > 2 and random.random() < 0.3:
            return {"anyOf": [union(members[:2]), *map(written, members[2:])]}
        out: dict[str, Any] = {"anyOf": [written(member) for member in members]}
        if random.random() < 0.2:
            out = {"allOf": [out]}
        return out

    out = union(members)
    return {"$defs": definitions, **out} if definitions else out


def texts(random: Random) -> list[tuple[str, dict[str, Any]]]:
    """Objects with their members in all orders."""
    out = []
    for _ in range(6):
        names = random.sample(NAMES, random.randint(0, 3))
        value = {name: random.choice(VALUES) for name in names}
        for order in itertools.permutations(value.items()):
            out.append((json.dumps(dict(order)), value))
    return out


def in_order_of(member: dict[str, Any], text: str) -> bool:
    """Whether the names of a member stand first, in its order."""
    own = list(member["properties"])
    written = list(json.loads(text))
    expected = [name for name in own if name in written]
    return written[: len(expected)] == expected


def test_random_unions() -> None:
    accepted = in_own_order = 0
    for seed in range(ROUNDS):
        random = Random(seed)
        members = [some_object(random) for _ in range(random.randint(2, 4))]
        schema = spelled(random, members)
        language = Language(schema)
        judge = jsonschema.Draft202012Validator(schema)
        judges = [jsonschema.Draft202012Validator(member) for member in members]
        for text, value in texts(random):
            if text in language:
                accepted += 1
                assert judge.is_valid(value), (seed, schema, text)
            else:
                by = [
                    member
                    for member, one in zip(members, judges, strict=True)
                    if one.is_valid(value) and in_order_of(member, text)
                ]
                assert not by, (seed, schema, text)
            in_own_order += any(in_order_of(member, text) for member in members)
            CASES["unions: texts beside a validator"] += 1
    assert min(accepted, in_own_order) > 4 * ROUNDS


def test_random_unions_are_closed_member_by_member() -> None:
    """By option, or where each member says so: the same language."""
    for seed in range(ROUNDS):
        random = Random(seed)
        members = [some_object(random) for _ in range(random.randint(2, 3))]
        for member in members:
            member.pop("additionalProperties", None)
        closed = [
            {**member, "additionalProperties": False, "properties": member["properties"]}
            for member in members
        ]
        by_option = Language({"anyOf": members}, additional_properties=False)
        written = Language({"anyOf": closed})
        for text, value in texts(random):
            assert (text in by_option) == (text in written), (seed, members, text, value)
            CASES["unions: texts of closed ones"] += 1


def test_masks_are_what_is_accepted() -> None:
    tokens = [b'{"', b'": ', b", ", b'"}', b"}", b"1", b'"cat"', b'"dog"', b"name", b"kind", b"me"]
    tokens += [b"ows", b"barks", b'{"kind": "', b'{"kind": "dog", "barks"', b'"', b"x", b"2.5"]
    vocabulary = tokfold.Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)])
    for spelling, closed in itertools.product(SPELLINGS, (False, True)):
        grammar = tokfold.Grammar.from_json_schema(
            SPELLINGS[spelling], additional_properties=not closed
        )
        compiled = tokfold.compile(grammar, vocabulary)
        for seed in range(6):
            random, matcher = Random(seed), tokfold.Matcher(compiled)
            for _ in range(12):
                row = tokfold.allocate_bitmask(1, len(vocabulary))
                matcher.fill_bitmask(row)
                allowed = [t for t in range(len(vocabulary)) if row[0, t // 32] >> (t % 32) & 1]
                taken = [t for t in range(len(vocabulary)) if matcher.fork().accept_token(t)]
                assert allowed == taken
                if not allowed:
                    break
                assert matcher.accept_token(random.choice(allowed))
                if matcher.is_terminated:
                    break


def test_one_of_branches_whose_members_share_finite_values() -> None:
    """Exactly one holds, by counting: members tell some of the values apart, and not others."""
    values: list[Any] = ["a", "1", 1, 2.5]
    subsets = [list(some) for n in (1, 2, 3) for some in itertools.combinations(values, n)]
    random = Random(1)
    language: Language | None
    seen = set()
    for _ in range(60):
        branches = [random.choices(subsets, k=2) for _ in range(random.choice([2, 3, 5]))]
        schema = {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"k": {"enum": k}, "m": {"enum": m}},
                    "required": ["k", "m"],
                }
                for k, m in branches
            ]
        }
        try:
            language = Language(schema)
        except tokfold.UnsatisfiableSchemaError:
            language = None
        for k, m in itertools.product(values, values):
            holds = sum(k in some and m in others for some, others in branches)
            text = json.dumps({"k": k, "m": m})
            accepted = language is not None and text in language
            assert accepted == (holds == 1), (text, schema)
            seen.add(min(holds, 2))
    assert seen == {0, 1, 2}
