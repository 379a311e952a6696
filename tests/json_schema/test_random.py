"""Random schemas: their languages are what two validators say, on every small value and beyond.

Of each schema S the languages of S, of its negation and of both at once are compared. Where a
schema is refused by name, nothing is compared; how often that is so is bounded.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from json_schema.languages import Language, RefusedError, language
from json_schema.order import Order, arranged
from json_schema.truth import Validators
from strategies.json_schemas import DIALECTS, mutated, schemas, small_values
from strategies.profiles import CASES, examples

Schema = dict[str, Any]

VALUES = small_values()
TEXTS = [json.dumps(value) for value in VALUES]
SAMPLES = 6
"""Random texts of each language."""
COUNTS: Counter[str] = Counter()
"""How many schemas of each test there were, and how many of them were refused."""
MOST_REFUSED = 0.1

ANY: dict[str, Any] = {"key_order": "any", "max_whitespace": 2, "additional_properties": True}
IN_ORDER: dict[str, Any] = {"max_whitespace": 2}
CLOSED: dict[str, Any] = {"max_whitespace": 2, "additional_properties": False}


def of(schema: Schema, kind: str) -> Schema:
    """S, its negation, or both, in a document of the same dialect and definitions."""
    if kind == "S":
        return schema
    outer = {k: v for k, v in schema.items() if k in ("$schema", "$defs", "definitions")}
    inner = {k: v for k, v in schema.items() if k not in outer}
    if kind == "not S":
        return {**outer, "not": inner}
    return {**outer, "allOf": [inner, {"not": inner}]}


def compiled(schema: Schema, options: dict[str, Any]) -> Language | None:
    """A language; None where it is refused."""
    COUNTS["all"] += 1
    try:
        return language(schema, **options)
    except RefusedError as error:
        COUNTS["refused"] += 1
        CASES[f"random languages refused: {error.reason}"] += 1
        return None


def verdicts(schema: Schema) -> list[bool | None]:
    """What the validators say of all small values."""
    validators = Validators(schema)
    found = [validators.verdict(value) for value in VALUES]
    CASES["random schemas: values on which the validators disagree"] += found.count(None)
    return found


def check_all(name: str, found: Language, expected: list[bool | None], order: Order | None) -> None:
    """Compare a language with verdicts on all small values.

    Args:
        name: for the message.
        found: the language.
        expected: the verdicts.
        order: the order of keys; None where they come in any.
    """
    wrong = []
    for value, text, is_valid in zip(VALUES, TEXTS, expected, strict=True):
        asked = json.dumps(order.sorted(value)) if order else text
        if is_valid is None or found.accepts(asked) == is_valid:
            continue
        if is_valid and order and found.compiled and arranged(found.compiled, value):
            CASES["random schemas: texts in an order that the slow rule does not know"] += 1
            continue
        wrong.append(f"{asked}: {'valid' if is_valid else 'invalid'}")
    CASES["random schemas: texts compared"] += len(VALUES)
    assert not wrong, f"{name}: {len(wrong)} wrong: {'; '.join(wrong[:8])}"


def check_broken(found: Language, expected: list[bool | None]) -> None:
    """A text of a valid value that is broken somewhere is no text of the language."""
    random = Random(expected.count(True))
    valid = [t for t, is_valid in zip(TEXTS, expected, strict=True) if is_valid]
    for text in random.sample(valid, min(len(valid), 40)):
        changed = broken(random, text)
        try:
            json.loads(changed, parse_constant=_no_constant)
        except (ValueError, AssertionError):
            CASES["random schemas: broken texts"] += 1
            assert not found.accepts(changed), f"{changed} is no JSON"


def broken(random: Random, text: str) -> str:
    """The text with a character taken out, put in or doubled."""
    place = random.randrange(len(text))
    change = random.randrange(4)
    if change == 0:
        return text[:place] + text[place + 1 :]
    if change == 1:
        return text[:place] + text[place] + text[place:]
    if change == 2:
        return text[:place] + random.choice(',:[]{}" \n0-.e+\\') + text[place:]
    last = max(text.rfind(mark) for mark in "]}")
    return f"{text[:last]},{text[last:]}" if last > 0 else text + ","


def check_samples(name: str, found: Language, truth: Callable[[Any], bool | None]) -> None:
    """Every text of a language is the text of a valid value."""
    random = Random(name)
    for _ in range(SAMPLES):
        text = found.sample(random)
        if text is None or not is_plain(text):
            continue
        assert truth(json.loads(text)) is not False, f"{name} holds {text}, which is invalid"
        CASES["random schemas: texts sampled"] += 1


def is_plain(text: str) -> bool:
    """Whether a validator sees what is written: each name once, and numbers that floats hold.

    Names that no schema knows may stand twice in an object, and then say nothing of a value.
    """
    found = True

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found &= len(dict(items)) == len(items)
        return dict(items)

    def number(digits: str) -> float:
        nonlocal found
        value = float(digits)
        found = found and len(digits) < 18 and math.isfinite(value)
        found = found and Decimal(repr(value)) == Decimal(digits)
        return value

    json.loads(text, object_pairs_hook=pairs, parse_float=number, parse_constant=_no_constant)
    return found


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


def check_mutants(found: Language, validators: Validators, expected: list[bool | None]) -> None:
    """Valid values with a change somewhere are judged rightly, whatever they are then."""
    random = Random(len(expected))
    valid = [v for v, is_valid in zip(VALUES, expected, strict=True) if is_valid]
    for value in random.sample(valid, min(len(valid), 12)):
        changed = value
        for _ in range(random.randint(1, 3)):
            changed = mutated(random, changed)
        is_valid = validators.verdict(changed)
        text = json.dumps(changed)
        CASES["random schemas: mutants compared"] += 1
        if is_valid is not None:
            assert found.accepts(text) == is_valid, f"{text}: valid is {is_valid}"


def check(schema: Schema) -> None:
    """All that must hold of a schema."""
    note(json.dumps(schema))
    validators = Validators(schema)
    expected = verdicts(schema)
    opposite = [None if is_valid is None else not is_valid for is_valid in expected]
    order = Order(schema)
    if (found := compiled(schema, ANY)) is not None:
        check_all("S, any order", found, expected, None)
        check_samples("S, any order", found, validators.verdict)
        check_mutants(found, validators, expected)
        check_broken(found, expected)
    if (found := compiled(schema, IN_ORDER)) is not None:
        check_all("S", found, expected, order)
        check_samples("S", found, validators.verdict)
    if (found := compiled(schema, CLOSED)) is not None:
        check_samples("S, closed", found, validators.verdict)
    if (found := compiled(of(schema, "not S"), ANY)) is not None:
        check_all("not S", found, opposite, None)
        check_broken(found, opposite)
        check_samples("not S", found, lambda value: not validators.verdict(value))
    if (found := compiled(of(schema, "both"), ANY)) is not None:
        check_all("S and not S", found, [False] * len(VALUES), None)
        assert found.sample(Random(1)) is None


@pytest.mark.parametrize("dialect", DIALECTS)
@examples(40)
@given(data=st.data())
def test_small_schemas(dialect: str, data: st.DataObject) -> None:
    check(data.draw(schemas(dialect)))


@examples(60)
@given(schema=schemas(depth=1))
def test_tiny_schemas(schema: Schema) -> None:
    check(schema)


def test_few_are_refused() -> None:
    """Else the tests above compare nothing."""
    if COUNTS["all"]:
        assert COUNTS["refused"] <= MOST_REFUSED * COUNTS["all"], COUNTS
        unknown = CASES["random schemas: texts in an order that the slow rule does not know"]
        assert unknown <= 0.01 * CASES["random schemas: texts compared"]


def test_the_validators_agree_with_themselves() -> None:
    """The negation of a schema is valid where the schema is not; with a counterexample of each."""
    schema = {"type": "object", "properties": {"a": {"minimum": 1}}, "required": ["a"]}
    expected = verdicts(schema)
    opposite = verdicts(of(schema, "not S"))
    assert all(a is not b for a, b in zip(expected, opposite, strict=True))
    assert not any(verdicts(of(schema, "both")))
    assert 0 < expected.count(True) < len(VALUES)


def test_a_wrong_language_is_seen() -> None:
    """Each comparison fails on a language that is another."""
    narrow, wide = {"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 0}
    found = language(wide)
    with pytest.raises(AssertionError, match="1 wrong: 0: invalid"):
        check_all("S", found, verdicts(narrow), None)
    with pytest.raises(AssertionError, match="2 wrong"):
        check_all("S", language({"enum": [0, 1, 2, 3, {"a": 0}, {"b": 0}]}), verdicts(wide), None)
    with pytest.raises(AssertionError, match="which is invalid"):
        check_samples("S", language({"enum": [0]}), Validators(narrow).verdict)
