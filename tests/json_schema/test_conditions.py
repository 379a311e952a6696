"""Objects with lists of conditions: each is forgotten once nothing it speaks of may still come.

The judge is a validator. Of a schema whose names stand in ``properties`` the order is theirs; where
conditions bring names, these stand behind what the conditions ask for as soon as there are many.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import jsonschema_rs
import pytest
import tokfold
from json_schema.order import Order
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


def test_names_beside_conditions_keep_their_order() -> None:
    """What ``not`` names, no condition brings: it stays before the names of the conditions."""
    number = 9
    every = {"if": {"required": [f"x{i}" for i in range(number)]}, "then": {"required": ["z"]}}
    schema = conditions(number, THEN["both"])
    schema = {"not": {"properties": {"q": INTEGER}, "required": ["q"]}, **schema}
    schema["allOf"].insert(0, every)
    grammar = compiled(schema, additional_properties=True)
    assert accepts(grammar, '{"q": "", "x0": 1, "b0": 2, "x8": 1, "b8": 3}')
    assert not accepts(grammar, '{"q": 1, "x0": 1, "b0": 2}')
    assert not accepts(grammar, '{"x0": 1, "b0": 2, "q": ""}')


@dataclass
class Chain:
    """A random list of conditions: the names that each asks for, and those that it brings."""

    schema: Schema
    conditions: list[tuple[list[str], list[str]]]

    def order(self) -> list[str]:
        """The order of names that chains the conditions, stated slowly."""
        base = Order(self.schema).names()
        brought = {name for _, brings in self.conditions for name in brings}
        brought -= set(self.schema["properties"])
        out: list[str] = []

        def place(name: str) -> None:
            if name in out:
                return
            out.append(name)
            for asks, brings in self.conditions:
                if name in asks and set(asks) <= set(out):
                    for also in brings:
                        if also in brought:
                            place(also)

        for name in [*(name for name in base if name not in brought), *base]:
            place(name)
        return out

    def closed(self) -> Schema:
        """What an ``if`` or ``dependentRequired`` names is described beside it."""

        def described(part: Any) -> Any:
            if not isinstance(part, dict):
                return [described(item) for item in part] if isinstance(part, list) else part
            out = {keyword: described(inner) for keyword, inner in part.items()}
            needed = part.get("dependentRequired", {})
            named = {name: True for names in ([*needed], *needed.values()) for name in names}
            named |= dict.fromkeys(part.get("if", {}).get("properties", {}), True)
            return (
                out
                if not named
                else {**out, "allOf": [*out.get("allOf", []), {"properties": named}]}
            )

        return {"unevaluatedProperties": False, **described(self.schema)}

    def some_value(self, random: Random) -> dict[str, Any]:
        """A value that often has what its conditions bring."""
        names = Order(self.schema).names()
        kept = random.sample(names, random.randint(0, len(names)))
        value = {name: 1 if random.random() < 0.9 else "x" for name in kept}
        for _ in range(random.choice([0, len(names)])):
            for asks, brings in self.conditions:
                if all(value.get(name) == 1 for name in asks):
                    value.update(dict.fromkeys(brings, 1))
        return value


def some_chain(random: Random) -> Chain:
    names = [f"n{i}" for i in range(random.randint(24, 40))]
    random.shuffle(names)
    described = names[: random.randint(8, 16)]
    found: list[tuple[list[str], list[str]]] = []
    schema: Schema = {"type": "object", "properties": {name: {} for name in described}}

    def some_condition(depth: int) -> Schema:
        asks = random.sample(described if depth == 0 else names, random.choice([1, 1, 1, 2]))
        of = names if random.random() < 0.1 else names[len(described) :]
        brings = random.sample(of, random.randint(1, 2))
        there = {"properties": {name: INTEGER for name in asks}, "required": asks}
        then: Schema = {"properties": {name: INTEGER for name in brings}}
        if random.random() < 0.5:
            then["required"] = brings[:1]
        place = len(found)
        found.append((asks, brings))
        if depth == 0 and random.random() < 0.2:
            inner = some_condition(1)
            then.update(inner)
            found[place] = (asks, list(Order(then).names()))
        return {"if": there, "then": then}

    schema["allOf"] = [some_condition(0) for _ in range(random.randint(7, 10))]
    needed = {
        name: random.sample(names, random.randint(1, 2))
        for name in random.sample(described, random.randint(0, 2))
    }
    if needed:
        schema["dependentRequired"] = needed
        found[:0] = [([name], brings) for name, brings in needed.items()]
    return Chain(schema, found)


def test_random_chains_in_one_order_of_two() -> None:
    """Each valid value is accepted in the schema's order or in the chained one, and in no other."""
    chained = refused = 0
    for seed in range(60 * LONG_FACTOR if LONG else 60):
        random = Random(seed)
        chain = some_chain(random)
        closed = random.random() < 0.5
        try:
            grammar = compiled(chain.schema, additional_properties=not closed)
        except tokfold.LimitExceededError:
            # Conditions that ask for what others bring may multiply in either order.
            refused += 1
            continue
        judge = jsonschema_rs.Draft202012Validator(chain.closed() if closed else chain.schema)
        orders = [Order(chain.schema).names(), chain.order()]
        possible = list(orders)
        for _ in range(60):
            value = chain.some_value(random)
            valid = judge.is_valid(value)
            texts = [
                json.dumps({name: value[name] for name in order if name in value})
                for order in orders
            ]
            verdicts = [accepts(grammar, text) for text in texts]
            assert any(verdicts) == valid, (seed, value)
            possible = [
                o for o, v in zip(orders, verdicts, strict=True) if v == valid and o in possible
            ]
            assert possible, (seed, value)
            shuffled = json.dumps(value)
            if shuffled not in texts:
                assert not accepts(grammar, shuffled), (seed, value)
            CASES["conditions: random chains"] += 1
        chained += orders[0] not in possible
    assert chained > 10
    assert refused < 3 * LONG_FACTOR
