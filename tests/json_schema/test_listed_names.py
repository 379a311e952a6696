"""Names that no `properties` mentions, where they are few: each at most once, in any order.

The oracle asks two validators of the value, and looks for a name that comes twice. Random walks
over the bytes of a grammar find no place where nothing may follow.
"""

from __future__ import annotations

import itertools
import json
import re
from enum import StrEnum
from random import Random
from typing import Any, Literal

import pytest
import tokfold
from json_schema.any_order import at
from json_schema.languages import BYTES, Language, RefusedError, language
from json_schema.test_any_order import has_sets
from json_schema.test_random import is_plain
from json_schema.truth import Validators
from strategies.engine import compiled_with
from strategies.profiles import CASES
from tokfold import Grammar, Matcher, UnsupportedGrammarError

Schema = dict[str, Any]
Members = list[tuple[str, Any]]

NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "k1", "k2", "é", 'q"', "a b"]
VALUES: list[Schema] = [
    {"type": "integer"},
    {"type": "boolean"},
    {"enum": [1, "x"]},
    {"type": ["integer", "null"]},
    {},
    {"minimum": 2},
    {"not": {}},
]
SETS = 7
"""So many names have sets that are written out; more are remembered, where they stand alone."""


def text_of(members: Members) -> str:
    parts = (json.dumps({name: value}, ensure_ascii=False)[1:-1] for name, value in members)
    return "{" + ", ".join(parts) + "}"


def dictionary(random: Random, most: int) -> Schema:
    """An object whose names a keyword lists, at most so many of them."""
    names = random.sample(NAMES, random.randint(1, most))
    schema: Schema = {"type": "object"}
    match random.randrange(4):
        case 0:
            escaped = "|".join(map(re.escape, names))
            first = {f"^{re.escape(names[0])}$": random.choice(VALUES[:-1])}
            schema["patternProperties"] = {f"^({escaped})$": random.choice(VALUES[:-1]), **first}
            schema["additionalProperties"] = False
        case 1:
            schema["propertyNames"] = {"anyOf": [{"const": name} for name in names]}
            schema["additionalProperties"] = random.choice(VALUES[:-1])
        case _:
            schema["propertyNames"] = {"enum": names}
            schema["additionalProperties"] = random.choice(VALUES[:-1])
    if random.random() < 0.4:
        schema["minProperties"] = random.randint(0, min(4, len(names)))
    if random.random() < 0.3:
        schema["maxProperties"] = random.randint(schema.get("minProperties", 1), 5)
    return schema


def mixed(random: Random) -> Schema:
    """An object with names of both kinds, or a union of objects."""
    schema = dictionary(random, SETS)
    names = [name for name in NAMES if json.dumps(name)[1:-1] in json.dumps(schema)]
    match random.randrange(4):
        case 0:
            return {"anyOf": [schema, dictionary(random, SETS)]}
        case 1:
            other = {"b": {"type": "integer"}, "a": {"type": "string"}}
            return {"anyOf": [schema, {"properties": other, "additionalProperties": False}]}
        case 2:
            condition = {"if": {"required": names[:1]}, "then": {"minProperties": 2}}
            return {"allOf": [schema, condition]}
        case _:
            chosen = random.sample(names, min(len(names), 2))
            return {**schema, "properties": {name: random.choice(VALUES) for name in chosen}}


def judge(schema: Schema, found: Language, random: Random, **layout: Any) -> None:
    """Texts with invalid values or a name twice are refused; of others some order is taken."""
    validators = Validators(schema)
    written = json.dumps(schema, ensure_ascii=False)
    names = [name for name in NAMES if json.dumps(name, ensure_ascii=False)[1:-1] in written]
    names.append("zz")
    for budget in (20, 40, 80):
        text = found.sample(random, budget, names)
        if text is not None and text.startswith("{"):
            members: Members = json.loads(text, object_pairs_hook=list)
            assert len({name for name, _ in members}) == len(members), f"{written}: {text}"
            assert validators.verdict(json.loads(text)) is not False, f"{written}: {text}"
            CASES["listed names: texts sampled"] += 1
    for _ in range(30):
        members = [
            (random.choice(names), random.choice([1, 2, True, "x", None]))
            for _ in range(random.randint(0, 6))
        ]
        is_valid = validators.verdict(dict(members))
        if len(dict(members)) < len(members):
            CASES["listed names: texts with a name twice"] += 1
            assert not found.accepts(text_of(members)), f"{written}: {text_of(members)}"
        elif is_valid is not None and len(members) < 5:
            CASES[f"listed names: {'valid' if is_valid else 'invalid'} values"] += 1
            orders = map(list, itertools.permutations(members))
            assert any(found.accepts(text_of(order)) for order in orders) is is_valid, (
                f"{written}: {text_of(members)}"
            )


@pytest.mark.parametrize("seed", range(60))
def test_random_dictionaries(seed: int) -> None:
    """Any order of the names is a text."""
    random = Random(seed)
    schema = dictionary(random, len(NAMES))
    options = random.choice([{}, {"key_order": "any"}, {"additional_properties": False}])
    found = language(schema, **options)
    judge(schema, found, random)
    for _ in range(10):
        text = found.sample(random, 60, NAMES)
        if text is not None and is_plain(text):
            members = list(json.loads(text).items())
            random.shuffle(members)
            assert found.accepts(text_of(members)), f"{json.dumps(schema)}: {text_of(members)}"
            CASES["listed names: texts shuffled"] += 1


@pytest.mark.parametrize("seed", range(60))
def test_random_objects_with_other_names(seed: int) -> None:
    random = Random(seed + 1_000)
    schema = mixed(random)
    options = random.choice([{}, {"additional_properties": False}])
    judge(schema, language(schema, **options), random)


@pytest.mark.parametrize("seed", range(30))
def test_random_counts_of_many_names(seed: int) -> None:
    """Members of objects in any order are counted, of more names than sets are written of."""
    random = Random(seed + 2_000)
    names = NAMES[: random.randint(6, 13)]
    schema: Schema = {
        "type": "object",
        "properties": {name: random.choice(VALUES) for name in names},
        "required": random.sample(names, random.choice([0, 0, 1, 2])),
        "additionalProperties": random.choice([False, {"type": "integer"}]),
        "minProperties": random.randint(2, 6),
    }
    if random.random() < 0.5:
        schema["maxProperties"] = random.randint(schema["minProperties"], 9)
    try:
        found = language(schema, key_order="any")
    except RefusedError as error:
        CASES[f"listed names: counts refused by {error.reason}"] += 1
        return
    CASES["listed names: counts of known names"] += 1
    validators = Validators(schema)
    for _ in range(40):
        chosen = random.sample([*names, "zz"], random.randint(0, min(8, len(names))))
        members = [(name, random.choice([1, 2, True, "x", None])) for name in chosen]
        is_valid = validators.verdict(dict(members))
        if is_valid is not None:
            assert found.accepts(text_of(members)) is is_valid, f"{json.dumps(schema)}: {members}"
    for _ in range(6):
        text = found.sample(random, random.choice([20, 60]), names)
        assert text is None or validators.verdict(json.loads(text)) is not False, text


class Color(StrEnum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


def test_what_pydantic_writes() -> None:
    """A `dict` over an enumeration, in the order in which a program fills it."""
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model(
        "Model",
        shades=dict[Color, int],
        sizes=(dict[Literal["s", "m"], float] | None, None),
        marks=(dict[Literal["s", "m"], int], pydantic.Field(min_length=2)),
    )
    found = language(model.model_json_schema())
    values = {"shades": {"blue": 1, "red": 2}, "sizes": {"m": 1.5}, "marks": {"s": 1, "m": 2}}
    assert found.accepts(model(**values).model_dump_json())
    assert found.accepts(json.dumps(values))
    assert not found.accepts('{"shades": {"red": 1, "red": 2}, "marks": {"s": 1, "m": 2}}')
    assert not found.accepts('{"shades": {}, "marks": {"s": 1, "s": 2}}')
    assert not found.accepts('{"shades": {}, "marks": {"s": 1}}')
    assert not found.accepts('{"shades": {"rot": 1}, "marks": {"s": 1, "m": 2}}')


@pytest.mark.parametrize("count", [1, SETS, SETS + 1, 256])
def test_all_names_in_reverse(count: int) -> None:
    names = [f"n{i}" for i in range(count)]
    schema = {"propertyNames": {"enum": names}, "additionalProperties": {"type": "integer"}}
    for options in ({}, {"key_order": "any"}):
        found = language({"type": "object", **schema}, **options)
        members: Members = [(name, 1) for name in reversed(names)]
        assert found.accepts(text_of(members))
        assert not found.accepts(text_of([*members, (names[0], 1)]))
        # Behind all names there is no comma.
        assert found.prefix(text_of(members)[:-1] + ",") == len(text_of(members)) - 1
    assert has_sets(language({"type": "object", **schema})) is (count > SETS)


def test_more_names_than_are_listed_may_repeat() -> None:
    names = [f"n{i}" for i in range(257)]
    found = language({"type": "object", "propertyNames": {"enum": names}})
    assert found.accepts('{"n1": 1, "n1": 1}')
    # Beside names that keep to an order, so many are not remembered either.
    few = {"properties": {"z": {}}, "propertyNames": {"enum": ["z", *names[: SETS + 1]]}}
    assert language({"type": "object", **few}).accepts('{"z": 0, "n1": 1, "n1": 1}')


def test_elements_of_calls() -> None:
    """In a style without quotation marks names are listed that stand for themselves."""
    for names, is_listed in ((["a", "b"], True), (["a", "b c"], False)):
        arguments = {"type": "object", "propertyNames": {"enum": names}}
        content = {"type": "json_schema", "json_schema": arguments, "style": "qwen_xml"}
        grammar = Grammar.from_structural_tag({"format": content})
        matcher = Matcher(compiled_with(grammar, BYTES, classes="never", pool=None))
        once = "<parameter=a>1</parameter>"
        assert matcher.accept_string(once)
        assert matcher.accept_string(once) is not is_listed


def test_texts_that_end_in_time() -> None:
    """A completion repeats no name, whether sets are written out or remembered."""
    for count in (SETS, SETS + 5):
        names = [f"n{i}" for i in range(count)]
        schema = {"propertyNames": {"enum": names}, "additionalProperties": {"type": "integer"}}
        counted = {"minProperties": 2} if count == SETS else {}
        grammar = Grammar.from_json_schema({"type": "object", **schema, **counted})
        compiled = compiled_with(grammar, BYTES, classes="never", pool=None)
        text = '{"n1": 1, "n'
        matcher = at(compiled, text, max_tokens=60)
        closed = json.loads(text + matcher.closing_bytes().decode(), object_pairs_hook=list)
        assert len(closed) == len(dict(closed)) == 2
    many = {"type": "object", **schema, "minProperties": 3}
    compiled = compiled_with(Grammar.from_json_schema(many), BYTES, classes="never", pool=None)
    with pytest.raises(UnsupportedGrammarError, match="list them in properties"):
        Matcher(compiled, max_tokens=60)


@pytest.mark.parametrize("seed", range(60))
def test_random_texts_end_in_time(seed: int) -> None:
    """Walks end within any budget from the least upwards, and what they write is valid."""
    random = Random(seed + 3_000)
    names = NAMES[: random.randint(4, 13)]
    of_many: Schema = {
        "type": "object",
        "properties": {name: random.choice(VALUES[:4]) for name in names},
        "required": random.sample(names, random.choice([0, 0, 2])),
        "additionalProperties": random.choice([False, {"type": "integer"}]),
        "maxProperties": random.randint(2, 6),
    }
    of_listed = {**dictionary(random, len(NAMES)), "maxProperties": random.randint(3, 6)}
    schema = random.choice([of_many, of_listed])
    try:
        grammar = Grammar.from_json_schema(schema, key_order="any", max_whitespace=2)
    except (tokfold.LimitExceededError, tokfold.UnsatisfiableSchemaError) as error:
        if getattr(error, "limit", "max_unordered_names") != "max_unordered_names":
            raise
        CASES["listed names: budgets of no grammar"] += 1
        return
    try:
        compiled = compiled_with(grammar, BYTES, classes="never", pool=None)
        least = Matcher(compiled, max_tokens=400).shortest().tokens + 1  # the stop token
    except UnsupportedGrammarError as error:
        if not (schema.get("required") or schema.get("minProperties")):
            raise
        CASES[f"listed names: budgets refused by {type(error).__name__}"] += 1
        return
    CASES["listed names: budgets"] += 1
    validators = Validators(schema)
    bitmask = tokfold.allocate_bitmask(1, len(BYTES))
    with pytest.raises(tokfold.TokenBudgetError):
        Matcher(compiled, max_tokens=least - 1)
    for budget in (least, least + 1, least + 9, least + 40):
        matcher = Matcher(compiled, max_tokens=budget)
        while not matcher.is_terminated:
            matcher.fill_bitmask(bitmask)
            allowed = tokfold.allowed_tokens(bitmask[0], len(BYTES)).tolist()
            assert allowed, f"{json.dumps(schema)}: {matcher.text!r} of {budget}"
            assert matcher.accept_token(random.choice(allowed))
        written = matcher.text
        members: Members = json.loads(written, object_pairs_hook=list)
        assert len(dict(members)) == len(members), written
        assert validators.verdict(json.loads(written)) is not False, written


def test_reasons() -> None:
    for count in (2, SETS + 3):
        names = [f"n{i}" for i in range(count)]
        listed = {"propertyNames": {"enum": names}, "additionalProperties": True}
        grammar = Grammar.from_json_schema({"type": "object", **listed})
        text = '{"n1": 1, "n1": 2}'
        place = grammar.place_in_schema(text, tokfold.recognize(grammar, text).read)
        assert place is not None
        assert 'the name "n1" occurs twice' in str(place)
    mixed = {"properties": {"z": {}}, "required": ["z"], "propertyNames": {"enum": ["z", "a", "b"]}}
    grammar = Grammar.from_json_schema({"type": "object", **mixed, "additionalProperties": True})
    for text, reason in (
        ('{"a": 1}', 'expected the member "z", which is required, before "a"'),
        ('{"z": 1, "b": 1, "z": 2}', 'the name "z" occurs twice'),
        ('{"z": 1, "b": 1, "c": 2}', 'expected "a"'),
    ):
        place = grammar.place_in_schema(text, tokfold.recognize(grammar, text).read)
        assert reason in str(place), str(place)
