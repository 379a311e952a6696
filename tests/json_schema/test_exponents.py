"""Numbers with exponents, as writers of JSON spell small and large ones, beside two validators."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import jsonschema
import jsonschema_rs
import pytest

pytest.importorskip("tokfold._core")

import tokfold
from strategies.profiles import CASES, LONG

BYTES = tokfold.Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=[256])


def taker(schema: object) -> Callable[[str], bool]:
    """Whether a text is one of the schema's."""
    compiled = tokfold.compile(
        tokfold.Grammar.from_json_schema(schema),
        BYTES,
        classes="never",
        options=tokfold.CompileOptions(pool=None),
    )

    def takes(text: str) -> bool:
        matcher = tokfold.Matcher(compiled)
        return matcher.accept_bytes(text.encode()) and matcher.accept_token(256)

    return takes


def any_value(random: Random) -> float:
    exponent = random.choice([0, 1, 2, 5, 16, 20, 21, 22, 300, -1, -4, -5, -6, -7, -12, -300])
    value = round(random.uniform(1, 10), random.randrange(4)) * 10.0**exponent
    return value * random.choice([1, 1, -1])


def spellings(value: float, random: Random) -> list[str]:
    """As Python, JavaScript and Rust write it, and with digits and exponents of other lengths."""
    python = repr(value)
    mantissa, _, exponent = f"{value:.17g}".partition("e")
    short = f"{value:.{random.randrange(1, 6)}e}"
    digits, _, power = short.partition("e")
    texts = [python, short, f"{digits}E{int(power)}", f"{digits}e{int(power):+d}"]
    if exponent:
        texts += [f"{mantissa}e{int(exponent)}", f"{mantissa}e{int(exponent):+d}"]
    return texts


def bounds_of(random: Random) -> dict[str, object]:
    schema: dict[str, object] = {"type": "number"}
    ends = [any_value(random), any_value(random), random.choice([0, 1, 100])]
    low, high = sorted(random.sample(ends, 2))
    if random.random() < 0.7:
        schema[random.choice(["minimum", "exclusiveMinimum"])] = low
    if random.random() < 0.7 and low < high:
        schema[random.choice(["maximum", "exclusiveMaximum"])] = high
    return schema


def is_writers(text: str) -> bool:
    """One digit other than zero before the point."""
    return text.lstrip("-")[0] != "0" and text.lstrip("-")[1:2] in (".", "e", "E")


def test_bounds_beside_two_validators() -> None:
    random, taken, refused = Random(11), 0, 0
    for _ in range(150 if not LONG else 3_000):
        schema = bounds_of(random)
        validators = jsonschema.Draft202012Validator(schema), jsonschema_rs.validator_for(schema)
        takes = taker(schema)
        limits = [value for value in schema.values() if isinstance(value, float)]
        for _ in range(8):
            value = random.choice([any_value(random), *limits, *(limit * 10 for limit in limits)])
            for text in spellings(value, random):
                if "e" not in text.lower() or not is_writers(text):
                    continue
                verdicts = {validator.is_valid(json.loads(text)) for validator in validators}
                # Floats round what the schema says exactly: near a bound they do not judge.
                if len(verdicts) == 2 or json.loads(text) in limits:
                    continue
                is_taken = takes(text)
                assert is_taken == verdicts.pop(), (schema, text)
                taken, refused = taken + is_taken, refused + (not is_taken)
    assert min(taken, refused) > 300
    CASES["numbers with exponents within bounds"] += taken + refused


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"minimum": 0, "maximum": 1}, "5e-05 1e-7 1E-300 1e0 1.00e+00 9.9e-1", "1.1e0 1e1 -1e-5"),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "1e-4 9e-01", "1e0 0e0 1.0e00"),
        ({"minimum": 0.00005}, "5e-05 5.0e-5 6e-5 1e+16 1e21", "4.9e-05 5e-6"),
        ({"maximum": -1e16}, "-1e+16 -1.5e16 -1e17", "-9.9e15 1e+16"),
        ({"minimum": 1e300}, "1e300 1.0e+0300 2e301 1e1000", "9.9e299 1e-300"),
        # Two digits before the point, or a zero: the exponent is not that of the first digit.
        ({"minimum": 0.5, "maximum": 90}, "5e1", "50e0 0.5e1 00.5e1"),
        # Where values are counted by their spellings, and where an exponent says nothing plain.
        ({"minimum": 0.5, "multipleOf": 0.5}, "5", "5e0"),
        ({"type": "integer", "minimum": 1}, "50", "5e1"),
    ],
)
def test_by_hand(schema: dict[str, object], yes: str, no: str) -> None:
    takes = taker({"type": "number", **schema})
    assert [text for text in yes.split() if not takes(text)] == []
    assert [text for text in no.split() if takes(text)] == []


def test_where_items_are_unique() -> None:
    """No spelling with an exponent: such values are counted by their spellings."""
    numbers = {"type": "number", "minimum": 1, "maximum": 2}
    schema = {"type": "array", "items": numbers, "uniqueItems": True}
    assert taker(schema)("[1.5,2]")
    assert not taker(schema)("[1.5e0]")
    assert taker({**schema, "uniqueItems": False})("[1.5e0,1.5]")
