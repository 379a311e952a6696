"""Objects with lists of conditions: each is forgotten once nothing it speaks of may still come.

The judge is a validator. Of a schema whose names stand in ``properties`` the order is theirs; where
conditions bring names, these stand behind what the conditions ask for as soon as there are many.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import jsonschema_rs
import pytest
import tokfold
from strategies.profiles import CASES, LONG, LONG_FACTOR

BYTES = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])
ROUNDS = 400 * LONG_FACTOR if LONG else 400
VALUES: list[Any] = [1, 2.5, "x", None]

Schema = dict[str, Any]
Form = Callable[[int], Schema]

INTEGER = {"type": "integer"}
THEN: dict[str, Form] = {
    "properties": lambda i: {"properties": {f"b{i}": INTEGER}},
    "required": lambda i: {"required": [f"b{i}"]},
    "both": lambda i: {"properties": {f"b{i}": INTEGER}, "required": [f"b{i}"]},
}


def asked(i: int) -> Schema:
    return {"properties": {f"x{i}": INTEGER}, "required": [f"x{i}"]}


def conditions(number: int, then: Form) -> Schema:
    return {"type": "object", "allOf": [{"if": asked(i), "then": then(i)} for i in range(number)]}


def in_pairs(number: int, then: Form) -> Schema:
    names = [name for i in range(number) for name in (f"x{i}", f"b{i}")]
    return {"properties": {name: {} for name in names}, **conditions(number, then)}


def asked_for(number: int, then: Form) -> Schema:
    names = [f"x{i}" for i in range(number)]
    return {"properties": {name: {} for name in names}, **conditions(number, then)}


def with_else(number: int, then: Form) -> Schema:
    schema = asked_for(number, then)
    for i, condition in enumerate(schema["allOf"]):
        condition["else"] = {"properties": {f"b{i}": {"const": "x"}}}
    return schema


def sorted_keys(number: int, then: Form) -> Schema:
    """As generators write it that sort keywords: ``else`` stands before ``if``."""
    schema: Schema = json.loads(json.dumps(with_else(number, then), sort_keys=True))
    return schema


def dependent(number: int, then: Form) -> Schema:
    return {
        "type": "object",
        "properties": {f"x{i}": {} for i in range(number)},
        "dependentSchemas": {f"x{i}": then(i) for i in range(number)},
    }


def under_a_reference(number: int, then: Form) -> Schema:
    schema = asked_for(number, then)
    return {"$defs": {"all": {"allOf": schema.pop("allOf")}}, **schema, "$ref": "#/$defs/all"}


FORMS: dict[str, Callable[[int, Form], Schema]] = {
    "in pairs": in_pairs,
    "asked for": asked_for,
    "nowhere": conditions,
    "else": with_else,
    "sorted": sorted_keys,
    "dependent": dependent,
    "under a reference": under_a_reference,
}
"""Which of the names stand in ``properties``, and how the conditions are written."""


def compiled(schema: Schema, **options: Any) -> tokfold.CompiledGrammar:
    grammar = tokfold.Grammar.from_json_schema(schema, **options)
    options = {"options": tokfold.CompileOptions(check_tokens=False)}
    return tokfold.compile(grammar, BYTES, classes="never", **options)


def accepts(grammar: tokfold.CompiledGrammar, text: str) -> bool:
    matcher = tokfold.Matcher(grammar)
    return bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting)


def some_value(random: Random, number: int) -> dict[str, Any]:
    """A value in the order of pairs, that keeps most of the conditions."""
    out: dict[str, Any] = {}
    if random.random() < 0.2:
        kept = random.sample(range(number), random.randint(0, number))
        return {f"{letter}{i}": 1 for i in sorted(kept) for letter in "xb"}
    for i in range(number):
        if random.random() < 0.5:
            out[f"x{i}"] = random.choice(VALUES)
        if random.random() < 0.95 and f"x{i}" in out:
            out[f"b{i}"] = 1 if random.random() < (0.95 if out[f"x{i}"] == 1 else 0.5) else "x"
        elif random.random() < 0.05:
            out[f"b{i}"] = random.choice(["x", 1])
    return out


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("form", FORMS)
def test_many_conditions_beside_a_validator(form: str, then: str, closed: bool) -> None:
    number = 8
    schema = FORMS[form](number, THEN[then])
    grammar = compiled(schema, additional_properties=not closed)
    # What an `if` and a bare `required` name is part of a closed object whether they hold or not.
    named = {f"{letter}{i}": True for letter in "xb" for i in range(number)}
    also = {"properties": named} if form == "nowhere" or then == "required" else {}
    if closed and form == "nowhere" and then != "required":
        also = {"properties": {name: True for name in named if name[0] == "x"}}
    closing = {"unevaluatedProperties": False} if closed else {}
    whole = {**closing, **schema, "allOf": [*schema.get("allOf", []), also]}
    judge = jsonschema_rs.Draft202012Validator(whole)
    accepted = 0
    for seed in range(ROUNDS):
        value = some_value(Random(seed), number)
        verdict = accepts(grammar, json.dumps(value))
        assert verdict == judge.is_valid(value), (schema, value)
        accepted += verdict
        CASES["conditions: values beside a validator"] += 1
    assert ROUNDS // 40 < accepted < ROUNDS


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("form", FORMS)
def test_conditions_cost_by_their_number(form: str, then: str, closed: bool) -> None:
    """Forty of them pass every limit, and twice as many have twice the states."""
    states = []
    for number in (20, 40):
        schema = FORMS[form](number, THEN[then])
        grammar = compiled(schema, additional_properties=not closed)
        states.append(grammar.cost().network_states)
    assert states[1] < 2.2 * states[0]


def test_few_conditions_leave_the_order_of_properties() -> None:
    grammar = compiled(asked_for(3, THEN["both"]))
    assert accepts(grammar, '{"x0": 1, "x1": 1, "x2": null, "b0": 1, "b1": 2}')
    assert not accepts(grammar, '{"x0": 1, "b0": 1, "x1": 1, "b1": 2}')


def test_names_of_properties_keep_their_order() -> None:
    """Only what conditions bring moves, however many there are."""
    schema = asked_for(9, THEN["both"])
    schema["properties"] = {"z": {}, **dict(reversed(schema["properties"].items())), "a": {}}
    grammar = compiled(schema)
    assert accepts(grammar, '{"z": 1, "x8": 1, "b8": 3, "x1": "x", "x0": 1, "b0": 2, "a": 1}')
    assert not accepts(grammar, '{"x0": 1, "b0": 2, "z": 1}')
    assert not accepts(grammar, '{"z": 1, "x0": 1, "a": 1, "b0": 2}')
    assert not accepts(grammar, '{"z": 1, "x0": 1, "a": 1}')
