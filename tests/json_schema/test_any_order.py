"""Objects of many names in any order: the language is what two validators say.

An object of few names has a state for each set of names that were read; in one of many, states are
sets of their own. Where both can be had, they have the same texts.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from json_schema.languages import Language, RefusedError, language
from json_schema.test_random import is_plain
from json_schema.truth import Validators
from strategies.profiles import CASES, examples
from strategies.wide_objects import (
    BITS,
    NAMES,
    SmallBuilder,
    WideBuilder,
    small_builders,
    small_instances,
    wide_builders,
)
from tokfold import Matcher, UnsupportedGrammarError

Schema = dict[str, Any]

ANY: dict[str, Any] = {"key_order": "any", "max_whitespace": 2, "additional_properties": True}
COUNTS: Counter[str] = Counter()
"""How many schemas there were, how many were refused, and of how many states are sets."""
MOST_REFUSED = 0.12
VALUES = 12
"""Instances of each schema; each is changed three times in a row."""
SAMPLES = 4


def compiled(schema: Schema, **options: Any) -> Language | None:
    """A language; None where it is refused by name."""
    COUNTS["all"] += 1
    try:
        found = language(schema, **{**ANY, **options})
    except RefusedError as error:
        COUNTS["refused"] += 1
        CASES[f"any order: schemas refused: {error.reason}"] += 1
        return None
    COUNTS["sets"] += has_sets(found)
    return found


def has_sets(found: Language) -> bool:
    """Whether states are sets, of which a text does not speak."""
    if found.grammar is None:
        return False
    try:
        str(found.grammar)
    except UnsupportedGrammarError:
        return True
    return False


def instances(builder: WideBuilder, schema: Schema) -> list[Any]:
    """Values that are valid or nearly so, and what they become by changes."""
    found = []
    for _ in range(VALUES):
        value = builder.instance(schema, schema)
        found.append(value)
        for _ in range(3):
            value = builder.changed(value)
            found.append(value)
    return found


def compare(found: Language, validators: Validators, values: list[Any], **layout: Any) -> None:
    """A language has the texts of the valid values, in the order that they have."""
    wrong = []
    for value in values:
        is_valid = validators.verdict(value)
        if is_valid is None:
            CASES["any order: values on which the validators disagree"] += 1
            continue
        CASES[f"any order: {'valid' if is_valid else 'invalid'} texts"] += 1
        text = json.dumps(value, ensure_ascii=False, **layout)
        if found.accepts(text) != is_valid:
            wrong.append(f"{text}: {'valid' if is_valid else 'invalid'}")
    assert not wrong, f"{len(wrong)} wrong: {'; '.join(wrong[:4])}"


def samples(
    found: Language, builder: WideBuilder, validators: Validators, count: int = SAMPLES
) -> list[Any]:
    """Values of random texts; each text is valid, and no walk ends where nothing may follow."""
    values = []
    for _ in range(count):
        budget = builder.random.choice((20, 60, 200))
        text = found.sample(builder.random, budget, [*NAMES, "kind", "o"])
        if text is None or not is_plain(text):
            CASES["any order: walks without a text to compare"] += found.compiled is not None
            continue
        value = json.loads(text)
        assert validators.verdict(value) is not False, f"{text} is invalid"
        CASES["any order: texts sampled"] += 1
        values.append(value)
    return values


def doubled(random: Random, value: Any, known: set[str]) -> str | None:
    """The text of an object in which a known name comes twice; None where there is none."""
    names = [name for name in value if name in known] if isinstance(value, dict) else []
    if not names:
        return None
    members = [{k: v} for k, v in value.items()]
    name = random.choice(names)
    members.insert(random.randrange(len(members) + 1), {name: value[name]})
    texts = (json.dumps(member, ensure_ascii=False)[1:-1] for member in members)
    return "{" + ", ".join(texts) + "}"


# -- what the validators say


@examples(40)
@given(builder=wide_builders())
def test_verdicts(builder: WideBuilder) -> None:
    """In any order, also below; with a known name twice, never."""
    schema = builder.document()
    note(json.dumps(schema))
    found = compiled(schema)
    if found is None:
        return
    validators = Validators(schema)
    values = instances(builder, schema)
    sampled = samples(found, builder, validators)
    values += [builder.shuffled(value) for value in sampled for _ in range(2)]
    values += [builder.changed(value) for value in sampled for _ in range(2)]
    compare(found, validators, values)
    known = set(schema.get("properties", ()))
    for value in values:
        if validators.verdict(value) and (text := doubled(builder.random, value, known)):
            assert not found.accepts(text), f"{text} has a name twice"
            CASES["any order: names twice"] += 1


LAYOUTS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"whitespace": "compact"}, {"separators": (",", ":")}),
    ({"whitespace": "spaced"}, {}),
    ({"indent": 2}, {"indent": 2}),
    ({"indent": 0, "separators": (",", ":")}, {"indent": 0, "separators": (",", ":")}),
    ({"separators": (",\n", ":\t")}, {"separators": (",\n", ":\t")}),
    ({"max_whitespace": 0}, {"separators": (",", ":")}),
    ({"max_whitespace": None}, {"indent": 7}),
)
"""Options with what `json.dumps` takes for the same."""


@examples(12)
@given(builder=wide_builders())
def test_layouts(builder: WideBuilder) -> None:
    """The same with the options for white space; a text of another layout is none."""
    schema = builder.document()
    note(json.dumps(schema))
    validators = Validators(schema)
    values = instances(builder, schema)
    for options, layout in builder.random.sample(LAYOUTS, 2):
        option = {"key_order": "any", **options}
        found = compiled(schema, **{"max_whitespace": 32, **option})
        if found is None:
            return
        note(str(options))
        values += samples(found, builder, validators, 1)
        compare(found, validators, values, **layout)
        if "max_whitespace" in options:
            continue
        for value in values:
            texts = [json.dumps(value, ensure_ascii=False, **other) for _, other in LAYOUTS]
            own = json.dumps(value, ensure_ascii=False, **layout)
            assert not any(found.accepts(text) for text in texts if text != own)


def test_few_are_refused() -> None:
    """Else the tests above compare nothing; and in many of them states are sets."""
    if COUNTS["all"]:
        assert COUNTS["refused"] <= MOST_REFUSED * COUNTS["all"], COUNTS
        assert COUNTS["sets"] >= 0.4 * COUNTS["all"], COUNTS


# -- what may come next, of all that can


class Futures:
    """The valid objects of a small schema, and which objects are parts of one."""

    def __init__(self, schema: Schema) -> None:
        self.names = list(schema["properties"])
        self.values = BITS if len(self.names) < 8 else BITS[:1]
        validators = Validators(schema)
        found = [(v, validators.quick_verdict(v)) for v in small_instances(self.names, self.values)]
        self.valid = {frozenset(value.items()) for value, is_valid in found if is_valid}
        # The slower validator judges some.
        checked = found if len(found) < 1_000 else found[:: len(found) // 500]
        self.is_known = all(validators.verdict(value) is is_valid for value, is_valid in checked)
        self.parts = set(self.valid)
        for value in sorted((dict(v) for v in self.valid), key=len, reverse=True):
            self._add(value)

    def _add(self, value: dict[str, int]) -> None:
        for name in value:
            part = {k: v for k, v in value.items() if k != name}
            if frozenset(part.items()) not in self.parts:
                self.parts.add(frozenset(part.items()))
                self._add(part)

    def next(self, read: dict[str, int]) -> set[tuple[str, int]]:
        """The members that may follow those that were read."""
        return {
            (name, value)
            for name in self.names
            for value in self.values
            if name not in read and frozenset({**read, name: value}.items()) in self.parts
        }


@examples(40)
@given(builder=small_builders())
def test_each_place(builder: SmallBuilder) -> None:
    """A member is allowed exactly where some order of others completes the object."""
    schema = builder.document()
    note(json.dumps(schema))
    found = compiled(schema, whitespace="compact", max_whitespace=0)
    futures = Futures(schema)
    if found is None or not futures.is_known:
        return
    walks(found, futures, builder.random)


def walks(found: Language, futures: Futures, random: Random) -> None:
    """Some walks, if there are any."""
    assert (found.compiled is None) == (not futures.valid)
    if found.compiled is not None:
        for _ in range(8):
            check_places(Matcher(found.compiled), futures, random)


def check_places(matcher: Matcher, futures: Futures, random: Random) -> None:
    """A walk over members, with all that may follow each."""
    read: dict[str, int] = {}
    while True:
        place = matcher.text.decode()
        is_valid = frozenset(read.items()) in futures.valid
        after = futures.next(read)
        assert matcher.fork().accept_string("}" if read else "{}") == is_valid, place
        mark = "," if read else "{"
        assert matcher.fork().accept_string(f'{mark}"') == bool(after), place
        for name in futures.names:
            values = {value for other, value in after if other == name}
            quoted = mark + json.dumps(name, ensure_ascii=False)
            assert matcher.fork().accept_string(quoted) == bool(values), (place, name)
            taken = {v for v in BITS if matcher.fork().accept_string(f"{quoted}:{v}")}
            assert taken == values, (place, name)
        CASES["any order: places"] += 1
        if not after:
            return
        name, value = random.choice(sorted(after))
        assert matcher.accept_string(f"{mark}{json.dumps(name, ensure_ascii=False)}:{value}")
        read[name] = value


# -- the same language in two ways


def few_names(builder: WideBuilder) -> Schema:
    """A schema of so few names that all sets of them are written out."""
    random = builder.random
    names = random.sample(NAMES, random.randint(3, 5))
    schema: Schema = {"type": "object", "properties": {n: builder.leaf() for n in names}}
    if random.random() < 0.7:
        schema["required"] = builder.some(names, 3)
    if random.random() < 0.7:
        schema["additionalProperties"] = random.choice((False, True, builder.leaf()))
    for _ in range(random.choice((0, 1, 1, 2))):
        builder.add(schema, random.choice(builder.groups())(names))
    return schema


@examples(25)
@given(builder=wide_builders())
def test_sets_that_are_written_out(builder: WideBuilder) -> None:
    """Names that the schema forbids make states of sets of written sets, and change no verdict."""
    plain = few_names(builder)
    forbidden = [f"x{i}" for i in range(builder.random.randint(3, 8))]
    never = dict.fromkeys(forbidden, False)
    both = {**plain, "allOf": [*plain.get("allOf", ()), {"properties": never}]}
    padded = {**plain, "properties": {**plain["properties"], **never}}
    note(json.dumps(padded))
    # With `unevaluatedProperties` beside, a forbidden name counts as evaluated; it is none anyway.
    schemas = (plain, both, padded, with_names_of(both, "allOf"))
    languages = [compiled(schema) for schema in schemas]
    if None in languages:
        return
    written = [found for found in languages if found is not None]
    validators = Validators(padded)
    values = instances(builder, padded)
    for found in written:
        values += samples(found, builder, validators, 2)
    values += [builder.changed(value) for value in values[-6:]]
    for value in list(values):
        if isinstance(value, dict):
            values.append(builder.shuffled({**value, builder.random.choice(forbidden): 1}))
    for value in values:
        text = json.dumps(value, ensure_ascii=False)
        asked = written if expected_alike(value) else written[1:]
        verdicts = [found.accepts(text) for found in asked]
        assert len(set(verdicts)) == 1, f"{text}: {verdicts}"
        expected = validators.verdict(value)
        assert expected is None or verdicts[-1] == expected, f"{text}: valid is {expected}"
        CASES["any order: texts of two ways"] += 1


def expected_alike(value: Any) -> bool:
    """Whether a value has none of the names that are forbidden in one schema and not in another."""
    return not isinstance(value, dict) or not any(name[:1] == "x" for name in value)


def with_names_of(schema: Schema, keyword: str) -> Schema:
    """The same schema, its branches in another order."""
    return {keyword: schema[keyword][::-1], **{k: v for k, v in schema.items() if k != keyword}}


@examples(20)
@given(builder=wide_builders())
def test_names_that_are_free(builder: WideBuilder) -> None:
    """Few names beside names that may be there or not: on texts without these, no difference."""
    plain = few_names(builder)
    wide = {**plain, "properties": {**plain["properties"], **{f"x{i}": {} for i in range(6)}}}
    note(json.dumps(wide))
    few, many = compiled(plain), compiled(wide)
    if few is None or many is None:
        return
    values = instances(builder, plain)
    values += samples(few, builder, Validators(plain), 3)
    for value in values:
        if not expected_alike(value):
            continue
        text = json.dumps(value, ensure_ascii=False)
        assert few.accepts(text) == many.accepts(text), text
        CASES["any order: texts of two ways"] += 1


def wide(count: int = 8, **more: Any) -> Schema:
    """An object of integers, with names that are numbered."""
    names = [f"k{i}" for i in range(count)]
    properties = {name: {"type": "integer"} for name in names}
    return {"type": "object", "properties": properties, **more}


def text_of(*names: int, value: Any = 1) -> str:
    return "{" + ", ".join(f'"k{i}": {json.dumps(value)}' for i in names) + "}"


# -- these tests see what is wrong


def test_a_wrong_language_is_seen() -> None:
    """Each comparison fails on a language that is another."""
    builder = WideBuilder(Random(1))
    schema, narrow = wide(8, required=["k0"]), wide(8, required=["k0", "k1"])
    values = instances(builder, schema)
    compare(language(schema, **ANY), Validators(schema), values)
    with pytest.raises(AssertionError, match="wrong"):
        compare(language(narrow, **ANY), Validators(schema), [{"k3": 1, "k0": 2}])
    with pytest.raises(AssertionError, match="wrong"):
        compare(language(schema, **ANY), Validators(narrow), [{"k3": 1, "k0": 2}])
    ordered, fixed = language(schema, max_whitespace=2), language({"enum": [{"a": 1}]}, **ANY)
    with pytest.raises(AssertionError, match="wrong"):
        compare(ordered, Validators(schema), [{"k3": 1, "k0": 2}])
    with pytest.raises(AssertionError, match="is invalid"):
        samples(fixed, builder, Validators({"required": ["c"]}), 9)
    text = doubled(builder.random, {"k3": 1, "k0": 2}, {"k0"})
    assert text is not None
    assert text.count('"k0"') == 2


@pytest.mark.parametrize(
    "change",
    [
        {"required": ["k0", "k5"]},
        {"maxProperties": 5},
        {"dependentRequired": {"k1": ["k2"]}},
        {"not": {"required": ["k1", "k4"]}},
        {"minProperties": 3},
    ],
)
def test_a_wrong_place_is_seen(change: Schema) -> None:
    """Either way: a place that is too wide, and one that is too narrow."""
    names = [f"k{i}" for i in range(6)]
    one: Schema = {
        "type": "object",
        "properties": {name: {"const": 1} for name in names},
        "required": ["k0"],
        "additionalProperties": False,
    }
    for schema, other in ((one, {**one, **change}), ({**one, **change}, one)):
        found = language(schema, key_order="any", whitespace="compact")
        walks(found, Futures(schema), Random(1))
        with pytest.raises(AssertionError):
            walks(found, Futures(other), Random(1))


def test_a_name_that_comes_twice_is_seen() -> None:
    """A grammar of all JSON objects takes a name twice."""
    text = doubled(Random(2), {"k0": 1, "k1": 2}, {"k1"})
    assert text is not None
    assert language({"type": "object"}, **ANY).accepts(text)
    assert not language(wide(), **ANY).accepts(text)
