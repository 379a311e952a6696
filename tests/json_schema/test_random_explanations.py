"""Random explanations: a fault that is put into a valid document at a known place is found there,
and of random schemas every explanation speaks of what is there.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any
from urllib.parse import unquote

from hypothesis import given, note
from hypothesis import strategies as st
from json_schema.test_explanations import FORM, explained
from strategies.json_schemas import schemas, small_values
from strategies.profiles import CASES, examples
from tokfold import Grammar, TokfoldError, recognize

# -- a fault at a known place

LEAVES: list[tuple[Any, Any, Any]] = [
    ({"type": "integer", "minimum": 0, "maximum": 9}, 7, 10),
    ({"type": "integer", "minimum": 5}, 8, 2),
    ({"type": "string", "maxLength": 3}, "abc", "abcd"),
    ({"type": "string", "pattern": "^[a-c]+$"}, "abc", "abd"),
    ({"enum": ["x", "y", 4]}, "y", "z"),
    ({"type": "boolean"}, True, None),
    ({"const": 12}, 12, 13),
]


def nested(random: Random, depth: int, at: str, path: str, faults: list[Any]) -> tuple[Any, Any]:
    """A schema and a valid value; ``faults`` gets each leaf's paths and the value that is wrong."""
    kind = random.choice(["object", "array", "leaf"]) if depth else "leaf"
    if kind == "leaf":
        schema, right, wrong = random.choice(LEAVES)
        faults.append((path, at, right, wrong))
        return schema, right
    if kind == "array":
        count = random.randrange(1, 4)
        made = [
            nested(random, depth - 1, f"{at}/prefixItems/{i}", f"{path}/{i}", faults)
            for i in range(count)
        ]
        return {"type": "array", "prefixItems": [s for s, _ in made]}, [v for _, v in made]
    names = random.sample(["a", "b c", "d/e", "f~g", "é"], random.randrange(1, 4))
    properties, value = {}, {}
    for name in names:
        token = name.replace("~", "~0").replace("/", "~1")
        place, where = f"{at}/properties/{token}", f"{path}/{token}"
        properties[name], value[name] = nested(random, depth - 1, place, where, faults)
    schema = {"type": "object", "properties": properties}
    if random.random() < 0.5:
        schema["required"] = random.sample(names, 1)
    return schema, value


def resolved(document: Any, pointer: str) -> Any:
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        document = document[int(token) if isinstance(document, list) else token]
    return document


@examples(150)
@given(seed=st.integers(0, 2**32), any_order=st.booleans())
def test_a_fault_is_found_where_it_is(seed: int, any_order: bool) -> None:
    random = Random(seed)
    faults: list[tuple[str, str, Any, Any]] = []
    schema, value = nested(random, 3, "#", "", faults)
    order = "any" if any_order else "schema"
    grammar = Grammar.from_json_schema(schema, key_order=order)
    text = json.dumps(value, ensure_ascii=random.random() < 0.2)
    assert json.loads(text) == value
    for pointer, at, _, wrong in faults:
        broken = json.loads(text)
        if pointer:
            parent, _, last = pointer.rpartition("/")
            last = last.replace("~1", "/").replace("~0", "~")
            holder = resolved(broken, parent)
            holder[int(last) if isinstance(holder, list) else last] = wrong
        else:
            broken = wrong
        place = explained(grammar, json.dumps(broken, ensure_ascii=False))
        note(f"{schema} {broken} {place}")
        assert place.pointer == pointer
        assert [unquote(p) for reason in place.reasons for p in reason.pointers] == [at]
        assert place.reasons[0].message.endswith(f", not {json.dumps(wrong)}")
        CASES["explanations of a known fault"] += 1


# -- random schemas

VALUES = [json.dumps(value) for value in small_values()]
POINTER = re.compile(r"#(/[^ ]*)?")


@examples(60)
@given(schema=schemas("2020-12", 3), any_order=st.booleans())
def test_explanations_of_random_schemas(schema: Any, any_order: bool) -> None:
    """Every refused text has a place that is there, and reasons of schemas that are there."""
    try:
        order = "any" if any_order else "schema"
        grammar = Grammar.from_json_schema(schema, key_order=order)
    except TokfoldError:
        return
    random = Random(len(str(schema)))
    for text in random.sample(VALUES, 40):
        for asked in (text, text[: random.randrange(len(text) + 1)]):
            found = recognize(grammar, asked)
            if found.accepted:
                continue
            place = grammar.place_in_schema(asked, found.read)
            note(f"{schema} {asked} {place}")
            assert place is not None
            assert place.reasons
            if asked == text:
                check_document_pointer(json.loads(text), place.pointer)
            for reason in place.reasons:
                # These texts are in the form that the options choose.
                assert reason.message != FORM or "\\u" in text
                for pointer in reason.pointers:
                    assert POINTER.fullmatch(pointer)
                    resolved(schema, unquote(pointer).removeprefix("#"))
            CASES["explanations of random schemas"] += 1


BEHIND = re.compile("expected (a comma)?(?: or )?(the end of the (?:object|array))?")


@examples(60)
@given(schema=schemas("2020-12", 3), any_order=st.booleans())
def test_what_is_due_behind_a_value_is_what_may_come(schema: Any, any_order: bool) -> None:
    try:
        order = "any" if any_order else "schema"
        grammar = Grammar.from_json_schema(schema, key_order=order, whitespace="compact")
    except TokfoldError:
        return
    random = Random(len(str(schema)))
    for text in random.sample(
        [json.dumps(value, separators=(",", ":")) for value in small_values()], 40
    ):
        asked = text[: random.randrange(len(text) + 1)] + "x"
        found = recognize(grammar, asked)
        if found.read != len(asked) - 1:
            continue
        place = grammar.place_in_schema(asked, found.read)
        note(f"{schema} {asked} {place}")
        assert place is not None
        due = [match for one in place.reasons if (match := BEHIND.fullmatch(one.message))]
        if due:
            assert any(one[1] for one in due) == (b"," in found.expected)
            assert any(one[2] for one in due) == any(one in found.expected for one in b"]}")
            CASES["what is due behind a value"] += 1


@examples(60)
@given(schema=schemas("2020-12", 3), seed=st.integers(0, 2**32))
def test_no_document_is_too_broken(schema: Any, seed: int) -> None:
    """Whatever bytes are given, and whatever place: an explanation, or none."""
    try:
        grammar = Grammar.from_json_schema(schema)
    except TokfoldError:
        return
    random = Random(seed)
    for text in random.sample(VALUES, 20):
        data = bytearray(text.encode())
        for _ in range(random.randrange(4)):
            at = random.randrange(len(data))
            what = random.choice([b"", b'"', b"\\", b"\xff", b"{", b"]", b",", b'\\ud800"', b"1e9"])
            data[at : at + random.randrange(2)] = what
            data = data or bytearray(b"[")
        read = random.randrange(len(data) + 3)
        place = grammar.place_in_schema(bytes(data), read, is_whole=random.random() < 0.5)
        assert place is None or place.pointer is not None
        CASES["explanations of broken documents"] += 1


def check_document_pointer(document: Any, pointer: str) -> None:
    """The pointer leads to a value of the document, or to an item that it lacks."""
    parent, mark, last = pointer.rpartition("/")
    try:
        resolved(document, pointer)
    except IndexError:
        assert mark
        assert int(last) == len(resolved(document, parent))


@examples(60)
@given(schema=schemas("2020-12", 3))
def test_rules_of_random_schemas_have_origins(schema: Any) -> None:
    try:
        grammar = Grammar.from_json_schema(schema)
    except TokfoldError:
        return
    origins = grammar.rule_origins
    assert list(origins) == grammar.rule_names
    for name, origin in origins.items():
        assert origin.description
        own = name.rstrip("0123456789") not in ("space_", "character_", "pattern_")
        for pointer in origin.pointers:
            resolved(schema, unquote(pointer).removeprefix("#"))
        CASES["origins of rules"] += own
    assert origins[grammar.root].pointers == ("#",) or "$ref" in schema
