"""`uniqueItems` over objects and arrays: masks against exhaustive search, bit by bit.

The oracle is the definition. It lists all texts of an item, and calls a beginning of an array alive
where some texts of the list complete it: no two items are equal as JSON values, and there are as
many as the bounds ask for.
"""

from __future__ import annotations

import json
import random
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias

import jsonschema
import numpy as np
import pytest
import tokfold
from strategies.profiles import LONG

Schema: TypeAlias = dict[str, Any]

OPTIONS: dict[str, Any] = {"separators": (",", ":"), "additional_properties": True}
BYTES = tokfold.Vocabulary([bytes([b]) for b in range(256)] + [b"</s>"], stop_token_ids=[256])


def unique(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, "uniqueItems": True, **more}


def closed(properties: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def key_of(value: Any) -> Any:
    """A value that is equal to that of another value where these are equal."""
    match value:
        case dict():
            return ("object", frozenset((name, key_of(member)) for name, member in value.items()))
        case list():
            return ("array", tuple(key_of(item) for item in value))
        case bool() | None:
            return ("literal", value)
        case _:
            return ("scalar", value)


def texts_of(items: Schema, **options: Any) -> tuple[dict[str, Any], list[str]]:
    """All texts of a value of a schema with the values: what a grammar without the keyword reads,
    where the values are valid; and all texts that it reads."""
    plain = without_unique(items)
    grammar = tokfold.Grammar.from_json_schema(plain, **{**OPTIONS, **options})
    compiled = tokfold.compile(grammar, BYTES)
    validator = jsonschema.Draft202012Validator(items)
    out: dict[str, Any] = {}
    read: list[str] = []
    work = [tokfold.Matcher(compiled)]
    while work:
        matcher = work.pop()
        if matcher.is_accepting:
            value = json.loads(matcher.text)
            read.append(matcher.text.decode())
            if validator.is_valid(value):
                out[matcher.text.decode()] = key_of(value)
        for byte in matcher.expected_bytes:
            fork = matcher.fork()
            assert fork.accept_bytes(bytes([byte]))
            work.append(fork)
        assert len(read) < 5_000
    return out, read


def without_unique(schema: Any) -> Any:
    match schema:
        case dict():
            kept = schema.items()
            return {key: without_unique(value) for key, value in kept if key != "uniqueItems"}
        case list():
            return [without_unique(value) for value in schema]
    return schema


class Oracle:
    """What is known of the arrays of a schema with finitely many texts of an item."""

    def __init__(self, items: dict[str, Any], least: int, most: int) -> None:
        self.items, self.least, self.most = items, least, most
        self.values = set(items.values())
        self.begins: dict[str, set[Any]] = {}
        for text, value in items.items():
            for length in range(len(text) + 1):
                self.begins.setdefault(text[:length], set()).add(value)
        self.is_alive = cache(self.is_alive_at_once)

    def is_alive_at_once(self, text: str) -> bool:
        if text in ("", "["):
            return len(self.values) >= self.least and self.most >= self.least
        if text[0] != "[":
            return False
        rest, seen, count = text[1:], set[Any](), 0
        while True:
            whole = [
                item
                for item in self.items
                if rest.startswith(item) and rest[len(item) : len(item) + 1] in (",", "]")
            ]
            if rest == "]":
                return count == 0 and self.least == 0
            if not whole:
                break
            (item,) = whole
            if self.items[item] in seen:
                return False
            seen.add(self.items[item])
            count, rest = count + 1, rest[len(item) :]
            if count > self.most:
                return False
            if rest[0] == "]":
                return rest == "]" and count >= self.least
            rest = rest[1:]
        if count + 1 > self.most:
            return False
        return bool(self.begins.get(rest, set()) - seen) and (
            len(self.values - seen) >= self.least - count
        )


NAMES = ["a", "ab", "b", "x"]
LEAVES: list[Schema] = [
    {"enum": ["a", "ab", "b"]},
    {"enum": ["a", "aa", "aaa"]},
    {"type": "boolean"},
    {"type": "null"},
    {"const": "a"},
    {"enum": ["", 'q"', "\\"]},
    {"type": "string", "pattern": "^a?b?$"},
]


def random_value(rng: random.Random, depth: int) -> Schema:
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        return rng.choice(LEAVES)
    if kind < 0.6:
        names = rng.sample(NAMES, rng.randint(0, 2))
        properties = {name: random_value(rng, depth - 1) for name in names}
        required = rng.sample(names, rng.randint(0, len(names)))
        return closed(properties, *required)
    if kind < 0.8:
        items = random_value(rng, depth - 1)
        array: Schema = {"type": "array", "items": items, "maxItems": rng.randint(1, 2)}
        if rng.random() < 0.6:
            array["uniqueItems"] = True
        return array
    other = random_value(rng, depth - 1) if rng.random() < 0.5 else rng.choice(LEAVES)
    return {"anyOf": [random_value(rng, depth - 1), other]}


def random_items(rng: random.Random) -> Schema:
    items = random_value(rng, 2)
    while items in LEAVES:
        items = random_value(rng, 2)
    return items


def tokens_of(texts: list[str], rng: random.Random) -> list[str]:
    """All bytes of the texts, and parts of arrays of them."""
    tokens = {"[", "]", ",", *"".join(texts)}
    for _ in range(60):
        array = f"[{','.join(rng.choices(texts, k=3))}]"
        start = rng.randrange(len(array))
        tokens.add(array[start : start + rng.choice([2, 3, 4, 6, 9, 14])])
    return sorted(tokens)


def masked(matcher: tokfold.Matcher, count: int) -> list[bool]:
    bits = tokfold.allocate_bitmask(1, len(matcher.compiled.vocabulary))[0]
    matcher.fill_bitmask(bits)
    return [bool(bits.view(np.uint32)[i // 32] >> (i % 32) & 1) for i in range(count)]


def walk(
    schema: Schema, oracle: Oracle, texts: list[str], rng: random.Random, **options: Any
) -> int:
    tokens = tokens_of(texts, rng)
    # In a large vocabulary few tokens may follow, and they are looked at in another way.
    others = [b"\1%d" % number for number in range(rng.choice([0, 0, 20_000]))]
    vocabulary = tokfold.Vocabulary(
        [*(token.encode() for token in tokens), b"</s>", *others], stop_token_ids=[len(tokens)]
    )
    grammar = tokfold.Grammar.from_json_schema(schema, **{**OPTIONS, **options})
    compiled = tokfold.compile(grammar, vocabulary)
    compared = 0
    for _ in range(4):
        matcher, text = tokfold.Matcher(compiled), ""
        for step in range(40):
            truth = [oracle.is_alive(text + token) for token in tokens]
            found = masked(matcher, len(tokens))
            wrong = [
                (token, says)
                for token, says, is_true in zip(tokens, found, truth, strict=True)
                if says != is_true
            ]
            assert not wrong, (schema, text, wrong)
            compared += 1
            if step % 4 == 1:
                saved = tokfold.Matcher.from_state(compiled, matcher.state)
                assert saved.state == matcher.state
                assert masked(saved, len(tokens)) == found, text
                matcher = saved if rng.random() < 0.5 else matcher.fork()
            ways = [number for number, says in enumerate(found) if says]
            if not ways:
                break
            # An array that goes on is looked at longer.
            longer = [number for number in ways if not tokens[number].endswith("]")]
            number = rng.choice(longer if longer and rng.random() < 0.9 else ways)
            assert matcher.accept_token(number)
            if rng.random() < 0.2:
                matcher.rollback(1)
                assert masked(matcher, len(tokens)) == found, text
                assert matcher.accept_token(number)
            text += tokens[number]
    return compared


@pytest.mark.parametrize("seed", range(600 if LONG else 24))
def test_masks_are_those_of_exhaustive_search(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    while compared < 120:
        items = random_items(rng)
        options: dict[str, Any] = {"key_order": "any"} if rng.random() < 0.25 else {}
        texts, read = texts_of(items, **options)
        if not 1 < len(texts) < 400:
            continue
        least, most = rng.choice([0, 0, 0, 1]), rng.choice([3, 5, 50])
        bounds = {"minItems": least} if least else {}
        schema = unique(items, **bounds, **({"maxItems": most} if most < 50 else {}))
        oracle = Oracle(texts, least, most)
        if len(oracle.values) < 2:
            continue
        # Inner arrays of some alternatives alone may have the keyword.
        with suppress(tokfold.UnsupportedSchemaError):
            tokfold.Grammar.from_json_schema(schema)
            compared += walk(schema, oracle, read, rng, **options)


def accepts(schema: Schema, text: str, **options: Any) -> bool:
    return tokfold.recognize(tokfold.Grammar.from_json_schema(schema, **options), text).accepted


ANY = unique({})
PAIR = closed({"id": {"type": "integer"}, "name": {"type": "string"}}, "id")
POINT = {"type": "array", "prefixItems": [{"type": "number"}] * 2, "items": False, "minItems": 2}


@pytest.mark.parametrize(
    ("schema", "text", "is_there"),
    [
        (ANY, "[[], {}, null, 1, 0, false, true]", True),
        (ANY, "[{}, {}]", False),
        (ANY, "[[], [[]], [[[]]]]", True),
        (ANY, "[[[]], [], [[]]]", False),
        (ANY, '[{"a": 1, "b": [2, "x"]}, {"b": [2, "x"], "a": 1}]', False),
        (ANY, '[{"a": 1, "b": [2, "x"]}, {"b": ["x", 2], "a": 1}]', True),
        (ANY, '[{"a": {"b": 1}}, {"a": {"b": 1.0}}]', False),
        (ANY, '[{"a": 10}, {"a": 1e1}]', False),
        (ANY, '["a", ["a"], {"a": "a"}]', True),
        (ANY, '[{"a": "1"}, {"a": 1}]', True),
        (ANY, '[{"a": null}, {"a": false}, {}]', True),
        (ANY, '[{"\\u0061": 1}, {"a": 1}]', False),
        (ANY, '["", [""], {"": ""}, {"": [""]}]', True),
        (ANY, "[1, [1], 1.0]", False),
        (ANY, "[ true , [ true ] , true ]", False),
        (unique(PAIR), '[{"id": 1}, {"id": 2}, {"id": 1, "name": ""}]', True),
        (unique(PAIR), '[{"id": 1, "name": "x"}, {"id": 1, "name": "x"}]', False),
        (unique(POINT), "[[0, 1], [1, 0], [0, 1.5]]", True),
        (unique(POINT), "[[0, 1], [0, 1.0]]", False),
        (unique(ANY), "[[1], [1, 2], [2, 1], []]", True),
        (unique(ANY), "[[1], [1, 1]]", False),
        (unique(ANY), "[[1, 2], [3], [1, 2]]", False),
    ],
)
def test_values_are_compared(schema: Schema, text: str, is_there: bool) -> None:
    assert accepts(schema, text, escapes="any") == is_there
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)) == is_there


def test_arrays_with_unique_items_stand_in_each_other() -> None:
    group = closed({"name": {"type": "string"}, "tags": unique({"type": "string"})}, "name", "tags")
    schema = closed({"groups": unique(group), "others": unique(group)}, "groups")
    text = '{"groups": [%s], "others": [%s]}'
    one, other = '{"name": "a", "tags": ["x", "y"]}', '{"name": "a", "tags": ["y", "x"]}'
    assert accepts(schema, text % (f"{one}, {other}", one))
    assert not accepts(schema, text % (f"{one}, {other}, {one}", one))
    assert not accepts(schema, text % (one, '{"name": "a", "tags": ["x", "x"]}'))


def test_alternatives_with_and_without_the_keyword() -> None:
    """One alternative asks that the inner items differ, the other does not; both read the text."""
    inner = {"type": "array", "items": {"enum": ["p", "q"]}}
    schema = unique(
        {
            "anyOf": [
                closed({"k": {"const": 1}, "a": inner, "b": {"const": 1}}, "a"),
                closed({"k": {"const": 1}, "a": {**inner, "uniqueItems": True}, "c": {}}, "a"),
            ]
        }
    )
    repeated, plain = '{"a": ["p", "p"]%s}', '{"a": ["p", "q"]%s}'
    for item, is_there in (
        (repeated % "", True),
        (repeated % ', "b": 1', True),
        (repeated % ', "c": 1', False),
        (plain % "", True),
        (plain % ', "b": 1', True),
        (plain % ', "c": [[1]]', True),
    ):
        assert accepts(schema, f"[{item}]") == is_there, item
        assert not accepts(schema, f"[{item}, {item}]"), item
        assert accepts(schema, f'[{{"a": []}}, {item}]') == is_there, item
        assert jsonschema.Draft202012Validator(schema).is_valid([json.loads(item)]) == is_there


def test_an_object_in_any_order_is_one_value() -> None:
    grammar = tokfold.Grammar.from_json_schema(unique(PAIR), key_order="any")
    one, same = '{"id": 1, "name": "x"}', '{"name": "x", "id": 1}'
    assert tokfold.recognize(grammar, f"[{one}]").accepted
    assert tokfold.recognize(grammar, f"[{same}]").accepted
    assert not tokfold.recognize(grammar, f"[{one}, {same}]").accepted
    other = '{"name": "y", "id": 1}'
    assert tokfold.recognize(grammar, f"[{one}, {other}]").accepted


def test_what_leaves_no_other_end_is_not_taken() -> None:
    """The last member decides, and all its values but one were read."""
    schema = unique(closed({"a": {"const": "x"}, "b": {"enum": ["p", "q"]}}, "a", "b"))
    grammar = tokfold.Grammar.from_json_schema(schema, **OPTIONS)
    matcher = tokfold.Matcher(tokfold.compile(grammar, BYTES))
    assert matcher.accept_bytes(b'[{"a":"x","b":"p"},')
    assert matcher.forced_bytes() == b'{"a":"x","b":"q"}]'
    assert matcher.accept_bytes(b'{"a":"x","b":"q"}')
    assert matcher.expected_bytes == b"]"


def test_the_last_item_of_an_inner_array_may_be_forced() -> None:
    """All letters but one were read, and that one would make the outer item equal to one before."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    inner = unique({"type": "string", "pattern": "^[a-z]$"})
    grammar = tokfold.Grammar.from_json_schema(unique(closed({"t": inner}, "t")), **OPTIONS)
    matcher = tokfold.Matcher(tokfold.compile(grammar, BYTES))
    whole = json.dumps({"t": letters}, separators=(",", ":")).encode()
    assert matcher.accept_bytes(b"[" + whole + b"," + whole[: -len(b',"z"]}')])
    assert matcher.expected_bytes == b"]"
    assert not masked(matcher, 256)[ord(",")]
    assert masked(matcher, 256)[ord("]")]


def test_one_token_may_open_an_array_and_repeat_an_item() -> None:
    words = ['["a","a"', ' ["a","a"', '":["a","a"', '],["b","b"', '"],["a","a"', '],["b","c"']
    tokens = [*(bytes([b]) for b in range(256)), *(word.encode() for word in words)]
    vocabulary = tokfold.Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)])
    tags = unique({"type": "string"})
    objects = {"type": "object", "additionalProperties": tags}
    for schema, texts in (
        (unique(objects), ["[", '[{"', '[{"x":', '[{"x":["b"', '[{"x":["b"]},{"y":', '[{"x']),
        ({"type": "array", "items": tags}, ["[", '[["b"', '[["c","b"', '[["c']),
        (unique(tags), ["[", '[["b"', '[["c"],["b"', '[["c']),
        ({"type": "array", "items": objects}, ['[{"x":["b"', '[{"x":', "["]),
    ):
        grammar = tokfold.Grammar.from_json_schema(schema)
        matcher = tokfold.Matcher(tokfold.compile(grammar, vocabulary))
        for text in texts:
            matcher.reset()
            assert matcher.accept_bytes(text.encode())
            for number, says in enumerate(masked(matcher, len(tokens))):
                accepted = matcher.fork().accept_token(number)
                assert accepted == says, (schema, text, tokens[number])


def test_states_do_not_tell_the_order() -> None:
    compiled = tokfold.compile(tokfold.Grammar.from_json_schema(ANY, **OPTIONS), BYTES)
    one, other, longer = (tokfold.Matcher(compiled) for _ in range(3))
    assert one.accept_bytes(b'[{"a":[1]},[],{"a":[')
    assert other.accept_bytes(b'[[],{"a":[1]},{"a":[')
    assert longer.accept_bytes(b'[[],{"a":[2]},{"a":[')
    assert one.state == other.state
    assert one.state != longer.state
    restored = tokfold.Matcher.from_state(compiled, one.state)
    assert not restored.fork().accept_bytes(b"1]}")
    assert restored.accept_bytes(b"2]}")


def test_forks_and_rollbacks() -> None:
    compiled = tokfold.compile(tokfold.Grammar.from_json_schema(ANY, **OPTIONS), BYTES)
    matcher = tokfold.Matcher(compiled)
    for byte in b'[{"a":[1]},{"a":[':
        assert matcher.accept_token(byte)
    fork = matcher.fork()
    assert not fork.fork().accept_bytes(b"1]}")
    assert fork.accept_bytes(b"2]},")
    for _ in range(6):
        matcher.rollback(1)
    assert matcher.accept_bytes(b'{"b":[1]},')
    for text, is_there in ((b'{"a":[1]}', False), (b'{"b":[1]}', False), (b'{"a":[2]}', True)):
        assert matcher.fork().accept_bytes(text) == is_there
    assert not fork.fork().accept_bytes(b'{"a":[2]}')


def test_large_arrays_and_deep_values() -> None:
    compiled = tokfold.compile(tokfold.Grammar.from_json_schema(ANY, **OPTIONS), BYTES)
    matcher = tokfold.Matcher(compiled)
    items = b",".join(b'{"id":%d,"of":["x"]}' % n for n in range(3_000))
    assert matcher.accept_bytes(b"[" + items)
    assert not matcher.fork().accept_bytes(b',{"id":77,"of":["x"]}')
    assert matcher.accept_bytes(b',{"id":77,"of":["y"]}')
    matcher.reset()
    deep = b"[" * 400 + b"]" * 400
    assert matcher.accept_bytes(b"[" + deep + b",")
    assert not matcher.fork().accept_bytes(deep)
    assert matcher.accept_bytes(deep[:400] + b"1")


@pytest.mark.parametrize("damage", range(60))
def test_damaged_states_are_refused_or_sound(damage: int) -> None:
    compiled = tokfold.compile(tokfold.Grammar.from_json_schema(unique(ANY), **OPTIONS), BYTES)
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b'[[{"a":1}],[[1],{"a":[2,"x"')
    whole = matcher.state
    state = bytearray(whole._data)
    rng = random.Random(damage)
    for _ in range(rng.randint(1, 3)):
        state[rng.randrange(len(state))] ^= 1 << rng.randrange(8)
    try:
        restored = tokfold.Matcher.from_state(
            compiled, tokfold.MatcherState(whole._engine, bytes(state))
        )
    except (tokfold.MatcherStateError, ValueError):
        return
    for number, says in enumerate(masked(restored, 256)):
        assert restored.fork().accept_token(number) == says


def test_bytes_that_are_no_text() -> None:
    """A token may have any bytes, also the one that ends a string where items are kept."""
    tokens = [*(bytes([b]) for b in range(256)), b"a\xff", b'a\xff"', b"a\xffb", b'\xff"', b'a"}']
    vocabulary = tokfold.Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)])
    grammar = tokfold.Grammar.from_json_schema(ANY, **OPTIONS)
    matcher = tokfold.Matcher(tokfold.compile(grammar, vocabulary))
    assert matcher.accept_bytes(b'[{"a":"a"},{"a":"')
    for prefix in (b"", b"a"):
        assert matcher.accept_bytes(prefix)
        for number, says in enumerate(masked(matcher, len(tokens))):
            assert matcher.fork().accept_token(number) == says, tokens[number]


def test_minimal_numbers_of_items() -> None:
    flags = closed({"a": {"type": "boolean"}, "b": {"type": "boolean"}}, "a", "b")
    tokfold.Grammar.from_json_schema(unique(flags, minItems=4))
    with pytest.raises(tokfold.UnsupportedSchemaError, match="minItems asks for 5"):
        tokfold.Grammar.from_json_schema(unique(flags, minItems=5))
    tokfold.Grammar.from_json_schema(unique(PAIR, minItems=1_000))
    tokfold.Grammar.from_json_schema(unique({}, minItems=1_000))
    lossy = tokfold.Grammar.from_json_schema(unique(flags, minItems=5), lossy={"uniqueItems"})
    assert lossy.not_enforced == ["#"]


NUMBERS = [str(n).encode() for n in range(130)]
PIECES = [
    b"true",
    b"null",
    b"ull",
    b", ",
    b'},{"',
    b'":',
    b'": ',
    b"1.",
    b".5",
    b"0e",
    b"00",
    b"  ",
]
# Tokens in which a number of an item ends, and the item with it.
ENDS = [b"0}", b"00}", b"0]", b".0}", b"e1}", b"0,", b"1}", b"2}", b"0},", b"5e0]"]
WITH_NUMBERS = tokfold.Vocabulary(
    [*(bytes([byte]) for byte in range(256)), *NUMBERS[10:], *PIECES, *ENDS, b"</s>"],
    stop_token_ids=[256 + len(NUMBERS) - 10 + len(PIECES) + len(ENDS)],
)


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ({}, '[null,true,[false,null],{"a":null,"b":{}},[false,true],{"a":null,"b":nul'),
        ({"type": "object"}, '[{"a":12,"b":120},{"a":1.5},{"a":1},{"a":-12},{"a":12,"b":1.2e2'),
        ({"type": "object"}, '[{"a":0},{"a":100},{"a":10},{"a":0.10},{"a":1e1,"b":3},{"a":10'),
        (
            {"properties": {"n": {"maximum": 30, "type": "integer", "minimum": 9}}},
            '[{"n":12},{"n":1',
        ),
        (
            closed({"n": {"type": "integer", "minimum": 0, "maximum": 2}}, "n"),
            '[{"n":1},{"n":0},{"n":',
        ),
        (unique({"type": "number"}), "[[1,2,30],[1,2],[2,1],[1.0,2e0,3"),
    ],
)
def test_masks_are_what_each_token_says_wherever_the_reader_is_from(
    items: Schema, text: str
) -> None:
    """The reader of an open item is kept, made again from the text, or that of another fork."""
    grammar = tokfold.Grammar.from_json_schema(unique(items), **OPTIONS)
    compiled = tokfold.compile(grammar, WITH_NUMBERS, classes="never")
    matcher, size = tokfold.Matcher(compiled), len(WITH_NUMBERS)
    for place, byte in enumerate(text.encode()):
        assert matcher.accept_bytes(bytes([byte])), text[:place]
        if place % 3 and place < len(text) - 4:
            continue
        bits = masked(matcher, size)
        expected = set(matcher.expected_bytes)
        for ways in (matcher, tokfold.Matcher.from_state(compiled, matcher.state)):
            assert masked(ways, size) == bits
            assert [ways.fork().accept_token(token) for token in range(size)] == bits
        assert expected == {byte for byte in range(256) if bits[byte]}
