"""Alternatives of an array of which some ask for unique items, as ``set[int] | set[str]`` has them.

The oracles are two validators over small arrays, and walks: a beginning that a mask allows is the
beginning of a valid text.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
import tokfold
from json_schema.any_order import compiled_of, row_of, taken_by, vocabulary_of
from json_schema.languages import BYTES, RefusedError, language
from json_schema.truth import Validators
from strategies.profiles import CASES, LONG
from tokfold import Grammar, Matcher, UnsupportedSchemaError

Schema = dict[str, Any]

ITEMS: list[Schema] = [
    {"type": "integer"},
    {"type": "number"},
    {"type": "string"},
    {"type": "boolean"},
    {"type": ["string", "null"]},
    {"type": "string", "maxLength": 1},
    {"type": "string", "pattern": "^[ab]$"},
    {"type": "integer", "minimum": 0, "maximum": 2},
    {"enum": ["a", "b"]},
    {"const": 1},
    {"enum": [1, "a", None]},
    {"enum": [*range(20)]},
    {"enum": [f"w{n}" for n in range(14)]},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    {"type": "object", "properties": {"k": {"type": "integer"}}, "additionalProperties": False},
]
VALUES: list[Any] = [
    *("a", "b", "ab", "w3", "w4"),
    *(0, 1, 2, 7, 1.5, True, None),
    *([], [1], [1, 1], [1, 2], {}, {"k": 1}),
]
REFUSED = {"uniqueItems", "max_automaton_states", "max_residuals"}


def branch(random: Random) -> Schema:
    """An array that is a set, mostly; or no array."""
    if random.random() < 0.1:
        return random.choice([{"type": "null"}, {"type": "string"}])
    out: Schema = {"type": "array", "items": random.choice(ITEMS)}
    if random.random() < 0.7:
        out["uniqueItems"] = True
    if random.random() < 0.2:
        out["minItems"] = random.randint(1, 3)
    if random.random() < 0.2:
        out["maxItems"] = random.randint(1, 4)
    return out


def drawn(random: Random) -> Schema:
    """Alternatives, in one of the places where they stand."""
    branches = [branch(random) for _ in range(random.choice((2, 2, 3)))]
    union: Schema = {random.choice(("anyOf", "anyOf", "oneOf")): branches}
    match random.randrange(5):
        case 0:
            kinds = ({"minItems": 1}, {"type": "array"}, {"uniqueItems": True})
            return {**union, **random.choice(kinds)}
        case 1:
            return {"$defs": {"one": union}, "$ref": "#/$defs/one"}
    return union


def arrays(random: Random) -> list[Any]:
    """Arrays of few values, and what is none."""
    out: list[Any] = [[], "a", None]
    for _ in range(60):
        few = random.sample(VALUES, random.randint(1, 3))
        out.append([random.choice(few) for _ in range(random.randint(1, 4))])
    return out


@pytest.mark.parametrize("seed", range(2_000 if LONG else 150))
def test_small_arrays(seed: int) -> None:
    random = Random(seed)
    schema = drawn(random)
    try:
        found = language(schema, max_whitespace=1)
    except RefusedError as error:
        if error.reason not in REFUSED:
            raise
        CASES[f"alternatives of sets: refused, {error.reason}"] += 1
        return
    validators = Validators(schema)
    for value in arrays(random):
        text = json.dumps(value)
        expected = validators.verdict(value)
        if expected is not None:
            assert found.accepts(text) == expected, (schema, text)
            CASES[f"alternatives of sets: {'valid' if expected else 'invalid'}"] += 1


@pytest.mark.parametrize("seed", range(1_000 if LONG else 60))
def test_masks_and_walks(seed: int) -> None:
    """Masks allow what is accepted, never nothing; a finished text is valid."""
    random = Random(seed)
    schema = drawn(random)
    try:
        grammar = Grammar.from_json_schema(schema, separators=(",", ":"))
        tokens = [
            json.dumps(random.choices(VALUES, k=3))[:9].replace(" ", "").encode() for _ in range(40)
        ]
        tokens += [b",1", b'","', b'"a",', b"1]", b"[[1", b"[1,", b"],[", b"1,1", b'a"]']
        compiled = compiled_of(grammar, vocabulary_of(tokens))
    except (UnsupportedSchemaError, tokfold.UnsatisfiableSchemaError, tokfold.LimitExceededError):
        return
    validators = Validators(schema)
    for _ in range(6):
        matcher = Matcher(compiled)
        text = b""
        for _ in range(20):
            allowed = row_of(matcher)
            assert allowed == taken_by(matcher), (schema, text)
            assert any(allowed), (schema, text)
            choices = [token for token, may in enumerate(allowed) if may and token]
            # What is short or of a set comes more often than one of 256 bytes.
            wanted = [t for t in choices if t > 256 or bytes([t - 1]) in b'[],"ab10{}tn'] or choices
            if not choices or (allowed[0] and random.random() < 0.3):
                break
            token = random.choice(wanted)
            assert matcher.accept_token(token)
            text += compiled.vocabulary.token_bytes[token]
        if matcher.is_accepting:
            value = json.loads(text)
            assert validators.verdict(value) is not False, (schema, text)
            CASES["alternatives of sets: walks"] += 1


def sets(*items: Any) -> list[Schema]:
    return [{"type": "array", "items": one, "uniqueItems": True} for one in items]


INTEGERS, STRINGS = sets({"type": "integer"}, {"type": "string"})
TEXTS: list[Schema] = [{"type": "array", "items": {"type": "string"}}]


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        (
            {"anyOf": [INTEGERS, STRINGS]},
            ['["a", "b"]', "[]"],
            ["[1, 1]", '["a", "a"]', '[1, "a"]'],
        ),
        ({"anyOf": [INTEGERS, {"type": "null"}]}, ["null", "[1, 2]"], ["[1, 1.0]"]),
        ({"anyOf": [INTEGERS, *TEXTS]}, ['["a", "a"]', "[2, 1]"], ["[1, 1]", '["a", 1]']),
        (
            {"anyOf": [*sets({"enum": ["a", "b"]}), INTEGERS]},
            ['["a", "b"]', "[4, 5, 6]"],
            ['["a", "a"]', '["a", "b", "c"]', "[4, 4]"],
        ),
        ({"oneOf": [INTEGERS, STRINGS]}, ['["a", "b"]', "[1]"], ["[]", "[1, 1]", '["a", "a"]']),
        ({"oneOf": [INTEGERS, *TEXTS]}, ['["a", "a"]', "[1]"], ["[]", "[1, 1]"]),
        (
            {"$defs": {"of": {"anyOf": [INTEGERS, STRINGS]}}, "$ref": "#/$defs/of", "minItems": 1},
            ['["a", "b"]', "[1]"],
            ["[]", "[1, 1]"],
        ),
    ],
)
def test_unions(schema: Schema, accepted: list[str], rejected: list[str]) -> None:
    """The texts as a whole, and as the value of a member."""
    definitions = {"$defs": schema.get("$defs", {})}
    of_member = {"properties": {"a": schema}, "required": ["a"], "type": "object", **definitions}
    for found, around in ((language(schema), "{}"), (language(of_member), '{{"a": {}}}')):
        for text in accepted:
            assert found.accepts(around.format(text)), text
        for text in rejected:
            assert not found.accepts(around.format(text)), text


@pytest.mark.parametrize("text", ["[1, 2", "[[1], [", "["])
def test_saved_states(text: str) -> None:
    """A state is taken up where the reader of one alternative goes on as that of all."""
    lists = {"type": "array", "items": {"type": "integer"}}
    schema = {"anyOf": [INTEGERS, *sets(lists)]}
    grammar = Grammar.from_json_schema(schema)
    compiled = compiled_of(grammar, BYTES)
    matcher = Matcher(compiled)
    assert matcher.accept_string(text)
    again = Matcher.from_state(compiled, matcher.state)
    assert row_of(again) == row_of(matcher)


@pytest.mark.parametrize(
    ("text", "pointer"), [("[1, 1]", "#/anyOf/0"), ('["a", "a"]', "#/anyOf/1")]
)
def test_explained(text: str, pointer: str) -> None:
    grammar = Grammar.from_json_schema({"anyOf": [INTEGERS, STRINGS]})
    place = grammar.place_in_schema(text, tokfold.recognize(grammar, text).read)
    assert place is not None
    assert [reason.pointers for reason in place.reasons] == [(pointer,)]


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        # Five different items of three values: the other alternative is left.
        ({"anyOf": [{"minItems": 5}, {"maxItems": 1}]}, "[3]", "[1, 2"),
        ({"anyOf": [{"minItems": 2}, {"maxItems": 1}]}, "[3, 1]", "[1, 1"),
    ],
)
def test_as_many_items_as_there_are_values(schema: Schema, accepted: str, rejected: str) -> None:
    """No text is begun that has no end."""
    items = {"type": "integer", "minimum": 1, "maximum": 3}
    found = language({"type": "array", "items": items, "uniqueItems": True, **schema})
    assert found.accepts(accepted)
    assert found.prefix(rejected) < len(rejected)


LISTS = {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        (
            {"anyOf": [*sets(LISTS), {"type": "array", "items": INTEGERS}]},
            ["[[1,1],[1]]", "[[1,2],[1,2]]", "[[1,1]]", "[[1],[1]]", "[]"],
            ["[[1,1],[1,1]]", "[[1,2],[1,2],[1,1]]", "[[1,1],[2],[2]]", "[[1],[1],[2,2]]"],
        ),
        (
            {"anyOf": [*sets(INTEGERS), {"type": "array", "items": LISTS}]},
            ["[[1,1],[1,1]]", "[[1,2],[1,2]]", "[[1,2],[2,1]]"],
            ["[[1,1],[true]]"],
        ),
        (
            {
                "anyOf": [
                    *sets({"type": "array", "items": INTEGERS}),
                    {"type": "array", "items": sets(LISTS)[0]},
                    *sets(*sets(LISTS)),
                ]
            },
            ["[[[1,2]],[[2,1]]]", "[[[1],[1]],[[1]]]", "[[[1,1]],[[1,1]]]", "[[[1,1]],[[2,2]]]"],
            ["[[[1,1],[1,1]]]", "[[[1,1]],[[2],[2]]]", "[[[1,1],[2]],[[3],[3]]]"],
        ),
    ],
)
def test_arrays_at_several_depths(schema: Schema, accepted: list[str], rejected: list[str]) -> None:
    """A text is several arrays, each of which begins at its own bracket."""
    test_unions(schema, accepted, rejected)


DEEP: list[Schema] = [
    LISTS,
    INTEGERS,
    STRINGS,
    *sets({"type": ["integer", "array"], "items": {"type": "integer"}}),
    {"type": "array", "items": INTEGERS},
    *sets(LISTS),
    *sets(INTEGERS),
    {"type": "object", "additionalProperties": INTEGERS},
    {"type": ["array", "integer"], "items": {"type": "array"}, "uniqueItems": True},
]
PARTS = [
    [],
    [1],
    [2],
    [1, 1],
    [1, 2],
    ["a"],
    ["a", "a"],
    [[1]],
    [[1, 1]],
    {"k": [1]},
    {"k": [1, 1]},
    1,
]


@pytest.mark.parametrize("seed", range(1_000 if LONG else 60))
def test_random_arrays_at_several_depths(seed: int) -> None:
    random = Random(seed)
    branches = [
        {"type": "array", "items": random.choice(DEEP), "uniqueItems": random.random() < 0.6}
        for _ in range(random.choice((2, 2, 3)))
    ]
    schema: Schema = {"anyOf": branches}
    if random.random() < 0.3:
        schema = {"type": "array", "items": schema, "uniqueItems": random.random() < 0.5}
    try:
        found = language(schema, max_whitespace=0)
        compiled = compiled_of(Grammar.from_json_schema(schema, separators=(",", ":")), BYTES)
    except RefusedError as error:
        if error.reason not in REFUSED:
            raise
        CASES[f"sets at several depths: refused, {error.reason}"] += 1
        return
    validators = Validators(schema)
    for _ in range(60):
        few = random.sample(PARTS, random.randint(1, 3))
        value: Any = [random.choice(few) for _ in range(random.randint(1, 3))]
        if random.random() < 0.5:
            value = [value, random.choice([value, [random.choice(few)]])]
        text = json.dumps(value, separators=(",", ":"))
        expected = validators.verdict(value)
        assert expected is not None
        assert found.accepts(text) == expected, (schema, text)
        CASES[f"sets at several depths: {'valid' if expected else 'invalid'}"] += 1
        matcher = Matcher(compiled)
        for byte in text.encode()[: random.randint(0, len(text))]:
            assert any(row_of(matcher))
            if not matcher.accept_bytes(bytes([byte])):
                break
        assert row_of(matcher) == taken_by(matcher), (schema, matcher.text)
