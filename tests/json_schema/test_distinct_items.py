"""`uniqueItems` over values that no list bounds: masks against exhaustive search, bit by bit.

The oracle is the definition. It lists all spellings of small items, and calls a beginning of an
array alive where some items of the list complete it: each is an item, no two are equal as JSON
values, and there are as many as the bounds ask for.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from decimal import Decimal
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pytest
import tokfold
from strategies.engine import compiled_with
from strategies.profiles import LONG
from tokfold.laboratory.equivalence import compare

Schema: TypeAlias = dict[str, Any]
Value: TypeAlias = tuple[str, Any]

STRINGS = ["".join(text) for length in range(6) for text in itertools.product("ab", repeat=length)]
PIECES = {"a": ["a", "\\u0061"], "b": ["b", "\\u0062"]}
SPELLED_STRINGS = [
    (f'"{"".join(spelled)}"', text)
    for text in STRINGS
    for spelled in itertools.product(*(PIECES[character] for character in text))
    if len(text) < 5 or text[3:] == "".join(spelled[3:])
]


def digits(alphabet: str, most: int) -> list[str]:
    lengths = range(1, most + 1)
    return ["".join(text) for n in lengths for text in itertools.product(alphabet, repeat=n)]


SIGNS, WHOLE = ["", "-"], ["0", *(text for text in digits("012", 4) if text[0] != "0")]
FRACTIONS = ["", *(f".{text}" for text in digits("015", 2))]
# With those that no token spells: each beginning has an end that no array here has read.
POWERS = [*digits("012", 2), "6", "06", "16", "26"]
EXPONENTS = ["", *(f"e{sign}{text}" for sign in ("", "-", "+") for text in POWERS)]
NUMBERS = ["".join(parts) for parts in itertools.product(SIGNS, WHOLE, FRACTIONS, EXPONENTS)]
LITERALS = ["null", "true", "false"]

LISTED = re.compile(r'".{0,5}$|[a-z]*$|-?[012]{0,3}(\.[015]{0,2})?(e[-+]?[012]{0,2})?$')

# Each token as bytes of the text.
TOKENS = ["[", "]", ",", '"', "a", "b", "\\", "u", "0", "6", "1", "2", "5", "-", ".", "e", "+"]
TOKENS += ["n", "null", "true", "false", "t", "f", "ull", "rue", "alse", "ab", "ba", "aa", "bab"]
TOKENS += [
    '","',
    '",',
    "],",
    ',"',
    '"]',
    '["',
    '["a"',
    '"a"',
    '"ab",',
    'a"',
    'b","',
    '","a',
    '","a"',
]
TOKENS += [
    '"",""',
    '["",',
    "[1",
    "[1,",
    "[1,1",
    "1,1",
    "1,2",
    ",1",
    ",1,",
    "0,",
    "1]",
    ".0",
    ".0,",
    "e0",
]
TOKENS += [
    "10",
    "12",
    "1,",
    "[null,",
    ",null",
    "null,null",
    "\\u00",
    "\\u0061",
    "61",
    "62",
    '"a","b"',
]
VOCABULARY = tokfold.Vocabulary(
    [*(token.encode() for token in TOKENS), b"</s>"], stop_token_ids=[len(TOKENS)]
)
OPTIONS: dict[str, Any] = {
    "separators": (",", ":"),
    "additional_properties": True,
    "escapes": "any",
}


def value_of(text: str) -> Value:
    """A scalar as a value: numbers are equal by what they are, and no truth value is a number."""
    value = json.loads(text, parse_int=Decimal, parse_float=Decimal)
    return (type(value).__name__, value)


def compiled_of(schema: Schema, **options: Any) -> tokfold.CompiledGrammar:
    grammar = tokfold.Grammar.from_json_schema(schema, **{**OPTIONS, **options})
    return tokfold.compile(grammar, VOCABULARY)


@cache
def spellings(items: str) -> dict[str, Value]:
    """The items of the list that an array of such items may have."""
    compiled = compiled_of({"type": "array", "items": json.loads(items)})
    texts = [spelled for spelled, _ in SPELLED_STRINGS] + NUMBERS + LITERALS
    out = {}
    for text in texts:
        matcher = tokfold.Matcher(compiled)
        if matcher.accept_bytes(f"[{text}]".encode()):
            out[text] = value_of(text)
    return out


class Oracle:
    """What is known of the arrays of a schema."""

    def __init__(self, items: Schema, least: int, most: int) -> None:
        self.items = spellings(json.dumps(items))
        self.values = set(self.items.values())
        self.least, self.most = least, most
        self.begins: dict[str, set[Value]] = {}
        for text, value in self.items.items():
            for length in range(len(text) + 1):
                self.begins.setdefault(text[:length], set()).add(value)
        self.is_alive = cache(self.is_alive_at_once)

    def is_alive_at_once(self, text: str) -> bool:
        """Whether some array begins so."""
        if text in ("", "["):
            return len(self.values) >= self.least
        if text[0] != "[":
            return False
        if text[-1] == "]":
            return self.is_whole(text)
        *read, last = text[1:].split(",")
        if any(item not in self.items for item in read):
            return False
        seen = {self.items[item] for item in read}
        if len(seen) < len(read) or len(read) + 1 > self.most:
            return False
        fresh = self.begins.get(last, set()) - seen
        return bool(fresh) and len(self.values - seen) >= self.least - len(read)

    def is_whole(self, text: str) -> bool:
        """Whether it is an array."""
        if not re.fullmatch(r"\[[^\[\]]*\]", text):
            return False
        if text == "[]":
            return self.least == 0
        read = text[1:-1].split(",")
        if any(item not in self.items for item in read):
            return False
        values = {self.items[item] for item in read}
        return len(values) == len(read) and self.least <= len(read) <= self.most


def random_items(rng: random.Random) -> Schema:
    strings: list[Schema] = [
        {"type": "string", "pattern": "^[ab]*$"},
        {"type": "string", "pattern": "^[ab]*$", "maxLength": rng.randint(0, 3)},
        {"type": "string", "pattern": "^(a|b[ab]*)$", "maxLength": 3},
        {"type": "string", "pattern": "^(a*b)$"},
        {"type": "string", "pattern": "^(ab|ba|a|aab)$"},
        {"type": "string", "pattern": "^[ab]{2}$"},
        {"enum": ["a", "ab", "b", 1]},
    ]
    numbers: list[Schema] = [
        {"type": "integer", "minimum": 0, "maximum": rng.choice([1, 2, 12])},
        {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5},
        {"type": "number"},
        {"type": "integer"},
        {"type": "integer", "maximum": 1, "minimum": -1},
    ]
    others: list[Schema] = [{"type": "null"}, {"type": "boolean"}]
    kind = rng.random()
    if kind < 0.05:
        return {"anyOf": [others[1], rng.choice(others)]}
    if kind < 0.4:
        return rng.choice(strings)
    if kind < 0.7:
        return rng.choice(numbers)
    parts = [rng.choice(strings), rng.choice(numbers), *rng.sample(others, rng.randint(0, 2))]
    return {"anyOf": rng.sample(parts, rng.randint(2, len(parts)))}


def allowed(matcher: tokfold.Matcher) -> list[bool]:
    bits = np.zeros((len(VOCABULARY) + 31) // 32, dtype=np.int32)
    matcher.fill_bitmask(bits)
    words = bits.view(np.uint32)
    return [bool(words[i // 32] >> (i % 32) & 1) for i in range(len(TOKENS))]


def is_near(text: str) -> bool:
    """Whether the lists hold enough ways to go on: they end at some length."""
    if text.count(",") > 3:
        return False
    if not all(LISTED.match(item.replace("\\u006", "")) for item in re.split(r"[\[\],]", text)):
        return False
    last = text.rsplit(",", 1)[-1].removeprefix("[")
    plain = last.replace("\\u006", "")
    return len(plain) <= (4 if last.startswith('"') else 3)


def walk(compiled: tokfold.CompiledGrammar, oracle: Oracle, rng: random.Random) -> int:
    matcher, text, compared = tokfold.Matcher(compiled), "", 0
    while len(text) < 60 and is_near(text):
        truth = [oracle.is_alive(text + token) for token in TOKENS]
        found = allowed(matcher)
        # Beyond the lists the oracle knows nothing.
        known = [is_near(text + token) for token in TOKENS]
        wrong = [
            (token, says)
            for token, says, is_true, is_known in zip(TOKENS, found, truth, known, strict=True)
            if is_known and says != is_true
        ]
        assert not wrong, (text, wrong)
        compared += 1
        for number in rng.sample(range(len(TOKENS)), 12):
            assert matcher.fork().accept_token(number) == found[number], (text, TOKENS[number])
        if compared % 3 == 0:
            saved = tokfold.Matcher.from_state(compiled, matcher.state)
            assert saved.state == matcher.state
            assert allowed(saved) == found, text
            if rng.random() < 0.5:
                matcher = saved
        ways = [number for number, says in enumerate(found) if says and known[number]]
        if not ways:
            break
        number = rng.choice(ways)
        # There and back again.
        assert matcher.accept_token(number)
        if rng.random() < 0.3:
            matcher.rollback(1)
            assert allowed(matcher) == found, text
            assert matcher.accept_token(number)
        text += TOKENS[number]
    assert matcher.is_accepting == (text.endswith("]") and oracle.is_whole(text)), text
    return compared


@pytest.mark.parametrize("seed", range(600 if LONG else 8))
def test_masks_are_those_of_exhaustive_search(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    while compared < 60:
        items = random_items(rng)
        least, most = rng.choice([0, 0, 1, 2, 3]), 50
        schema: Schema = {"type": "array", "items": items, "uniqueItems": True}
        if least:
            schema["minItems"] = least
        if rng.random() < 0.3:
            most = least + rng.randint(1, 4)
            schema["maxItems"] = most
        oracle = Oracle(items, least, most)
        if len(oracle.values) < least:
            with pytest.raises(tokfold.UnsatisfiableSchemaError):
                compiled_of(schema)
            continue
        compiled = compiled_of(schema)
        for _ in range(4):
            compared += walk(compiled, oracle, rng)


NUMBERS_NEAR_ZERO: tuple[Schema, ...] = (
    {"type": "integer"},
    {"type": "number"},
    {"type": ["number", "null"]},
    {"type": ["integer", "string"]},
    {"type": "number", "minimum": -1},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "number", "multipleOf": 0.5},
    {},
)
PIECES = [*"0159-,]", "0.0", "0e", "0e1", "-0", ".0", "e0", "10", ", ", '"a"', "null", "["]


@pytest.mark.parametrize("seed", range(300 if LONG else 12))
def test_masks_where_a_number_may_be_zero_alone(seed: int) -> None:
    """A token that ends in `0` or `0e1`, numbers without another value, is read by the stacks."""
    rng = random.Random(seed)
    tokens = {bytes([byte]) for byte in b' "+,-.0159Eae[\\]nrtul'}
    tokens |= {"".join(rng.choices(PIECES, k=rng.randint(2, 4))).encode() for _ in range(40)}
    vocabulary = tokfold.Vocabulary([*sorted(tokens), b"</s>"], stop_token_ids=[len(tokens)])
    schema = unique(rng.choice(NUMBERS_NEAR_ZERO), minItems=rng.choice((0, 0, 2)))
    grammar = tokfold.Grammar.from_json_schema(schema)
    compiled = compiled_with(grammar, vocabulary, check_tokens=False)
    for _ in range(8):
        matcher = tokfold.Matcher(compiled)
        allowed: list[int] = []
        for _ in range(12):
            bitmask = tokfold.allocate_bitmask(1, len(vocabulary))
            matcher.fill_bitmask(bitmask)
            bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[: len(tokens)]
            taken = [matcher.fork().accept_token(token) for token in range(len(tokens))]
            assert bits.astype(bool).tolist() == taken, matcher.text
            allowed = [token for token, is_taken in enumerate(taken) if is_taken]
            if not allowed:
                break
            listed = sorted(tokens)
            weights = [6 if set(listed[token]) & {*b"0,["} else 1 for token in allowed]
            assert matcher.accept_token(rng.choices(allowed, weights)[0])


@pytest.mark.parametrize(
    ("items", "text", "token", "rest"),
    [
        ({"type": "integer"}, "[1,0", ",0", ",7]"),
        ({"type": "integer"}, "[1,", "0,0", "0]"),
        ({"type": "number"}, "[0.0,", "0e1", "0.1]"),
        ({"type": "number"}, "[0,0", ".0e1", ".01]"),
        ({"type": "number", "multipleOf": 0.5}, "[-0.5,", "-0", "-7]"),
    ],
)
def test_a_token_that_leaves_zero_alone(items: Schema, text: str, token: str, rest: str) -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), token.encode(), b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[257])
    grammar = tokfold.Grammar.from_json_schema(unique(items, minItems=2))
    matcher = tokfold.Matcher(tokfold.compile(grammar, vocabulary))
    assert matcher.accept_string(text)
    bitmask = tokfold.allocate_bitmask(1, len(tokens))
    matcher.fill_bitmask(bitmask)
    assert not bitmask[0, 8] & 1
    assert not matcher.accept_token(256)
    assert matcher.accept_string(rest)


STRING: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
MANY: Schema = {"type": ["string", "number", "boolean", "null"]}


def accepts(schema: Schema, text: str, **options: Any) -> bool:
    return tokfold.recognize(tokfold.Grammar.from_json_schema(schema, **options), text).accepted


def unique(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, "uniqueItems": True, **more}


@pytest.mark.parametrize(
    ("items", "text", "is_there"),
    [
        (STRING, "[]", True),
        (STRING, '["a", "b", "ab", "A", ""]', True),
        (STRING, '["a", "b", "a"]', False),
        (STRING, '["\\ud83d\\ude00", "x", "\U0001f600"]', False),
        (STRING, '["\\u00e9", "\u00e9"]', False),
        (STRING, '["\\u00e9", "e\u0301"]', True),
        (STRING, '["\\n", "n", "\\\\n"]', True),
        (STRING, '["\\n", "\\u000A"]', False),
        (STRING, '["\\/", "/"]', False),
        (NUMBER, "[1, 1.5, 2, -1]", True),
        (NUMBER, "[10, 1e1]", False),
        (NUMBER, "[0.5, 5e-1]", False),
        (NUMBER, "[0, 0.00]", False),
        (NUMBER, "[1e400, 10e399]", False),
        (NUMBER, "[1e400, 1e401]", True),
        (NUMBER, "[123456789012345678901234567890, 123456789012345678901234567891]", True),
        (MANY, '["1", 1, true, null, false, "true", "null", ""]', True),
        (MANY, "[null, 1, null]", False),
        (MANY, "[true, 1, 0, false]", True),
        (MANY, "[false, false]", False),
    ],
)
def test_values_are_compared(items: Schema, text: str, is_there: bool) -> None:
    assert accepts(unique(items), text, escapes="any") == is_there
    is_unique = len({value_of(json.dumps(v)) for v in json.loads(text)}) == len(json.loads(text))
    assert is_there == is_unique or "e4" in text or "9012" in text


@pytest.mark.parametrize("options", [{}, {"indent": 2}, {"whitespace": "spaced"}])
def test_every_layout(options: dict[str, Any]) -> None:
    schema = {"properties": {"tags": unique(STRING, minItems=2)}, "required": ["tags"]}
    grammar = tokfold.Grammar.from_json_schema(schema, **options)
    for tags, is_there in ((["x", "y"], True), (["x", "y", "x"], False), (["x"], False)):
        text = json.dumps({"tags": tags}, indent=options.get("indent"))
        assert tokfold.recognize(grammar, text).accepted == is_there, text


@pytest.mark.parametrize("options", [{}, {"separators": (", ", ": ")}, {"indent": 2}])
def test_items_that_are_not_counted_may_stand_behind_spaces(options: dict[str, Any]) -> None:
    """There are more values than a conversion counts, so whether one is left is looked up."""
    schema = unique({"type": "string", "pattern": "^[\u4e00-\u9fff]$"})
    grammar = tokfold.Grammar.from_json_schema(schema, **options)
    items = [chr(0x4E00 + place) for place in range(300)]
    text = json.dumps(items, ensure_ascii=False, indent=options.get("indent"))
    assert tokfold.recognize(grammar, text).accepted
    text = json.dumps([*items, items[7]], ensure_ascii=False, indent=options.get("indent"))
    assert not tokfold.recognize(grammar, text).accepted


def test_arrays_do_not_know_of_each_other() -> None:
    inner = {"type": "object", "properties": {"a": unique(STRING), "b": unique(STRING)}}
    schema: Schema = {"type": "array", "items": inner}
    assert accepts(schema, '[{"a": ["x"], "b": ["x"]}, {"a": ["x", "y"]}]')
    assert not accepts(schema, '[{"a": ["x"], "b": ["y", "x", "y"]}]')


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        # A tuple: places with conditions of their own.
        (
            {
                "type": "array",
                "prefixItems": [STRING, NUMBER],
                "items": STRING,
                "uniqueItems": True,
            },
            ['["a", 1, "b"]', "[]"],
            ['["a", 1, "a"]', '["a", 1, 1]'],
        ),
        # An item that must come.
        (
            unique(STRING, contains={"pattern": "^x"}),
            ['["a", "xa", "xb"]', '["x"]'],
            ['["a"]', '["xa", "xa"]', "[]"],
        ),
        ({"allOf": [unique(STRING), {"maxItems": 2}]}, ['["a", "b"]'], ['["a", "a"]']),
        ({"anyOf": [unique(STRING), STRING]}, ['["a"]', '"a"'], ['["a", "a"]']),
        (unique({"format": "uuid", "type": "string"}), ["[]"], ['["x"]']),
        (unique({"type": "integer", "minimum": 1, "maximum": 3}), ["[3, 1, 2]"], ["[1, 1]"]),
        (unique({"enum": [f"v{i}" for i in range(30)]}), ['["v3", "v29"]'], ['["v3", "v3"]']),
    ],
)
def test_other_conditions_hold(schema: Schema, accepted: list[str], rejected: list[str]) -> None:
    for text in accepted:
        assert accepts(schema, text), text
    for text in rejected:
        assert not accepts(schema, text), text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"not": unique(STRING)}, "repeated item"),
        (
            {
                "type": "array",
                "prefixItems": [{"const": "a"}],
                "items": STRING,
                "uniqueItems": True,
            },
            "finitely many",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(schema: Schema, words: str) -> None:
    with pytest.raises(tokfold.UnsupportedSchemaError, match=words) as caught:
        tokfold.Grammar.from_json_schema(schema)
    assert caught.value.keyword == "uniqueItems"


def test_alternatives_are_enforced_where_lossy_is_allowed() -> None:
    schema = {
        "anyOf": [
            unique({"items": NUMBER, "type": "array"}),
            {"type": "array", "items": unique(NUMBER, minItems=2)},
        ]
    }
    grammar = tokfold.Grammar.from_json_schema(schema, lossy={"uniqueItems"})
    assert grammar.not_enforced == []
    for text, is_there in (("[[1], [1]]", False), ("[[1, 2], [1, 2]]", True), ('["a"]', False)):
        assert tokfold.recognize(grammar, text).accepted == is_there


def test_too_few_values_are_unsatisfiable() -> None:
    for items, least in (
        ({"type": "integer", "minimum": 1, "maximum": 3}, 4),
        ({"type": "string", "pattern": "^[ab]$"}, 3),
        ({"type": ["boolean", "null"]}, 4),
        ({"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.25}, 6),
    ):
        with pytest.raises(tokfold.UnsatisfiableSchemaError):
            tokfold.Grammar.from_json_schema(unique(items, minItems=least))
        tokfold.Grammar.from_json_schema(unique(items, minItems=least - 1))


@pytest.mark.parametrize(
    "items",
    [
        {"type": ["string", "null"], "minLength": 1, "maxLength": 40},
        {"type": ["string", "boolean", "integer"], "maxLength": 30},
        {"type": "array", "items": {"type": ["string", "null"], "maxLength": 40}},
    ],
)
def test_more_values_than_a_number_can_say(items: Schema) -> None:
    """Strings of 40 letters are more than 2^64, and something beside them makes them no fewer."""
    grammar = tokfold.Grammar.from_json_schema(unique(items, minItems=2, maxItems=1000))
    some = ['["a"]', '["b"]'] if items["type"] == "array" else ['"a"', '"b"']
    assert tokfold.recognize(grammar, f"[{some[0]}, {some[1]}]").accepted
    assert not tokfold.recognize(grammar, f"[{some[0]}, {some[0]}]").accepted
    assert not tokfold.recognize(grammar, f"[{some[0]}]").accepted


def test_the_repeated_item_is_named() -> None:
    for items, text, place in ((STRING, '["a", "b", "a"]', 0), (NUMBER, "[2, 1, 1.0]", 1)):
        grammar = tokfold.Grammar.from_json_schema({"properties": {"tags": unique(items)}})
        whole = f'{{"tags": {text}}}'
        found = grammar.place_in_schema(whole, tokfold.recognize(grammar, whole).read)
        assert found is not None
        assert found.pointer == "/tags/2"
        said = [(list(reason.pointers), reason.message) for reason in found.reasons]
        message = f"expected an item that is not equal to item {place}"
        assert said == [(["#/properties/tags"], message)]


def test_states_do_not_tell_the_order() -> None:
    compiled = compiled_of(unique(STRING))
    one, other, longer = (tokfold.Matcher(compiled) for _ in range(3))
    assert one.accept_bytes(b'["a","b","a')
    assert other.accept_bytes(b'["b","\\u0061","\\u0061')
    assert longer.accept_bytes(b'["b","a","c","a')
    assert one.state == other.state
    assert one.state != longer.state
    assert one.state != tokfold.Matcher(compiled).state


def test_forks_go_their_own_ways() -> None:
    matcher = tokfold.Matcher(compiled_of(unique(STRING)))
    assert matcher.accept_bytes(b'["a","b",')
    fork = matcher.fork()
    assert fork.accept_bytes(b'"ab",')
    assert matcher.fork().accept_bytes(b'"ab"')
    assert not fork.fork().accept_bytes(b'"ab"')
    for text in (b'"a"', b'"b"'):
        assert not matcher.fork().accept_bytes(text)
        assert not fork.fork().accept_bytes(text)
    fork.rollback(1)
    assert fork.accept_bytes(b'"ab"')
    matcher.reset()
    assert matcher.accept_bytes(b'["a"')


def test_drafts() -> None:
    compiled = compiled_of(unique(STRING))
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b'["a",')
    tokens = [TOKENS.index(token) for token in ('"', "ab", '",', '"', "a")]
    rows = np.zeros((len(tokens) + 1, (len(VOCABULARY) + 31) // 32), dtype=np.int32)
    assert list(matcher.fill_bitmask_draft(tokens, rows)) == [True] * 5
    for count in range(len(tokens) + 1):
        fork = matcher.fork()
        for token in tokens[:count]:
            assert fork.accept_token(token)
        bits = np.zeros_like(rows[0])
        fork.fill_bitmask(bits)
        assert (bits == rows[count]).all(), count


def test_expected_bytes_and_forced_ones() -> None:
    matcher = tokfold.Matcher(compiled_of(unique({"type": "string", "pattern": "^(ab|ac|b)$"})))
    assert matcher.accept_bytes(b'["ab","a')
    assert matcher.expected_bytes == b"\\c"
    assert matcher.accept_bytes(b'c","')
    assert matcher.expected_bytes == b"\\b"
    assert matcher.accept_bytes(b'b"')
    assert matcher.expected_bytes == b"]"
    assert matcher.forced_bytes() == b"]"


def test_long_strings_and_long_arrays() -> None:
    matcher = tokfold.Matcher(compiled_of(unique(STRING)))
    long = b'"' + b"ab" * 50_000 + b'"'
    assert matcher.accept_bytes(b"[" + long + b",")
    assert matcher.accept_bytes(long[:-1])
    assert TOKENS[TOKENS.index('"')] == '"'
    assert not allowed(matcher)[TOKENS.index('"')]
    assert allowed(matcher)[TOKENS.index("a")]
    matcher = tokfold.Matcher(compiled_of(unique({"type": "integer"})))
    assert matcher.accept_bytes(b"[" + b",".join(b"%d" % n for n in range(20_000)))
    assert not matcher.fork().accept_bytes(b",77]")
    assert matcher.accept_bytes(b",20000]")


def test_old_steps_take_little_and_can_be_gone_back_to() -> None:
    source = random.Random(1)
    items = ["".join(source.choices("ab01", k=20)) for _ in range(1_000)]
    ids = VOCABULARY.encode_greedy(json.dumps(items, separators=(",", ":")).encode())
    compiled = compiled_of(unique(STRING))
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_tokens(ids) == len(ids) > 9_000
    assert matcher.counters()["bytes_held"] <= 210_000
    text = matcher.text
    for back in (1, 300, len(ids) // 2, len(ids) - 70, len(ids)):
        fork = matcher.fork()
        fork.rollback(back)
        anew = tokfold.Matcher(compiled)
        assert anew.accept_tokens(ids[: len(ids) - back]) == fork.num_steps
        assert fork.text == anew.text
        assert fork.state == anew.state
        assert allowed(fork) == allowed(anew)
        assert (matcher.text, matcher.num_steps) == (text, len(ids))
    matcher.rollback(len(ids) - 1_234)  # without forks, in its own tables
    assert matcher.text == b"".join(VOCABULARY.token_bytes[token] for token in ids[:1_234])
    assert matcher.accept_tokens(ids[1_234:]) == len(ids) - 1_234
    assert matcher.text == text
    assert not matcher.accept_bytes(b",")
    assert matcher.counters()["bytes_held"] <= 300_000
    matcher.reset()
    assert matcher.counters()["bytes_held"] <= 100_000


def test_what_knows_only_grammars_says_so() -> None:
    grammar = tokfold.Grammar.from_json_schema(unique(STRING))
    plain = tokfold.Grammar.from_json_schema({"type": "array", "items": STRING})
    for use in (
        lambda: str(grammar),
        lambda: compare(grammar, plain),
        lambda: compare(plain, grammar),
        lambda: tokfold.compile_classes(grammar, VOCABULARY),
        lambda: compiled_with(grammar, VOCABULARY, engine="chart"),
    ):
        with pytest.raises(tokfold.UnsupportedGrammarError, match="uniqueItems"):
            use()


@pytest.mark.parametrize("damage", range(40))
def test_damaged_states_are_refused_or_sound(damage: int) -> None:
    compiled = compiled_of(unique(MANY))
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b'["a",1,null,"ab')
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
    for number, says in enumerate(allowed(restored)):
        assert restored.fork().accept_token(number) == says


def test_beside_other_texts() -> None:
    array = tokfold.Grammar.from_json_schema(unique(STRING), **OPTIONS)
    other = tokfold.Grammar.from_regex(r'\["a","a","(a|b)"\]')
    compiled = tokfold.compile(array | other, VOCABULARY)
    matcher = tokfold.Matcher(compiled)
    for text in ('["a","a","b"]', '["a","a","a"]', '["a","b"]'):
        assert matcher.fork().accept_bytes(text.encode()), text
    for text in ('["b","b"', '["a","a","a","c"', '["a","a"]', '["a","b","a"'):
        assert not matcher.fork().accept_bytes(text.encode()), text
    rng = random.Random(3)
    for _ in range(40):
        matcher.reset()
        for _ in range(12):
            found = allowed(matcher)
            for number, says in enumerate(found):
                assert matcher.fork().accept_token(number) == says, (matcher.text, TOKENS[number])
            ways = [n for n, says in enumerate(found) if says and len(TOKENS[n]) < 4]
            if not ways:
                break
            assert matcher.accept_token(rng.choice(ways))


def test_one_text_may_be_two_arrays() -> None:
    array = tokfold.Grammar.from_json_schema(unique(MANY), **OPTIONS)
    compiled = tokfold.compile(array | (tokfold.Grammar.choices(['["']) + array), VOCABULARY)
    for text in ('["[1', '["[1,1"', '["[1,2]', '["["', '["["a","a', '["["a","b"]', '["a"]'):
        assert tokfold.Matcher(compiled).accept_bytes(text.encode()), text
    for text in ('["[1,1]","[1,1]"', '["[1,1","[1,1"', '["["a","a"', '["a","a"'):
        assert not tokfold.Matcher(compiled).accept_bytes(text.encode()), text


def test_more_arrays_than_are_read_at_once() -> None:
    array = tokfold.Grammar.from_json_schema({"items": {}, "uniqueItems": True}, **OPTIONS)
    compiled = tokfold.compile(tokfold.Grammar.from_regex("[^x]*") + array, VOCABULARY)
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b"[" * 64)
    with pytest.raises(tokfold.MatcherStateError, match="more than 64 arrays with uniqueItems"):
        matcher.accept_bytes(b"[")
    assert matcher.text == b"[" * 64
    assert matcher.accept_bytes(b"]" * 63)


def test_arrays_in_sequence() -> None:
    array = tokfold.Grammar.from_json_schema(unique(STRING), **OPTIONS)
    twice = tokfold.compile(array.repeat(2), VOCABULARY)
    assert tokfold.Matcher(twice).accept_bytes(b'["a","b"]["a"]["b","a"]')
    assert not tokfold.Matcher(twice).accept_bytes(b'["a","b"]["a","a"')
