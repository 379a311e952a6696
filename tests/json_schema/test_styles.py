"""The styles of structural tags, and excluded texts, beside slow readers and validators."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import pytest
import tokfold
from json_schema.styles import ALL_STYLES, STYLES, readings, write
from json_schema.truth import Validators
from strategies.engine import mask_of
from strategies.json_schemas import Builder, small_values
from strategies.profiles import CASES, LONG, LONG_FACTOR
from tokfold._sources.schema import SchemaSource
from tokfold.errors import LimitExceededError, SchemaError, UnsatisfiableSchemaError

VALUES = [value for value in small_values() if isinstance(value, dict)]
MANY = LONG_FACTOR if LONG else 1
BYTES = [bytes([byte]) for byte in range(256)]
VOCABULARY = tokfold.Vocabulary(BYTES)
LETTERS = [*range(32, 127), 10]


def language(schema: Any, style: str = "json", **fields: Any) -> tokfold.CompiledGrammar:
    fields = {"style": style, "max_whitespace": 2, "open_objects": True, **fields}
    request = SchemaSource(json.dumps(schema), [], fields)
    grammar = tokfold.Grammar._of(request)
    return tokfold.compile(
        grammar, VOCABULARY, classes="never", options=tokfold.CompileOptions(check_tokens=False)
    )


def accepts(compiled: tokfold.CompiledGrammar, text: str) -> bool:
    matcher = tokfold.Matcher(compiled)
    return matcher.accept_string(text) and matcher.is_accepting


def sample(compiled: tokfold.CompiledGrammar, random: Random, most: int = 60) -> str | None:
    """A random text of a grammar, or None where it becomes long."""
    matcher = tokfold.Matcher(compiled)
    for _ in range(most):
        if matcher.is_accepting and random.random() < 0.3:
            return matcher.text.decode()
        forced = matcher.forced_bytes()
        if forced:
            assert matcher.accept_bytes(forced)
            continue
        bits, _ = mask_of(matcher, 256)
        allowed = [letter for letter in LETTERS if bits[letter]]
        marks = [letter for letter in allowed if letter in b'</|]"']
        if not allowed:
            break
        assert matcher.accept_token(
            random.choice(marks if random.random() < 0.4 and marks else allowed)
        )
    return matcher.text.decode() if matcher.is_accepting else None


@pytest.mark.parametrize("style", ALL_STYLES)
@pytest.mark.parametrize("seed", range(12 * MANY))
def test_random_schemas(style, seed):
    random = Random(f"{style} {seed}")
    schema = {**Builder(random).document(2), "type": "object"}
    try:
        compiled = language(schema, style, any_order=True)
    except (SchemaError, LimitExceededError):
        CASES["styles: refused"] += 1
        return
    validators = Validators(schema)
    for value in random.sample(VALUES, 40):
        text = write(value, style, random)
        meant = readings(text, style)
        found = [validators.verdict(one) for one in meant]
        if None in found:
            continue
        accepted = accepts(compiled, text)
        CASES[f"styles: {style}, texts beside readers"] += 1
        if style == "minimax_m3_xml" and any(found) and not accepted:
            # names that the schema does not know are not written in this style
            assert not any(has_no_names(one) for one in meant), (schema, text)
            continue
        assert accepted == any(found), (schema, text)
    for _ in range(2):
        text = sample(compiled, random)
        if text is not None and len(text) < 200:
            truth = [validators.verdict(one) for one in readings(text, style)]
            assert truth, text
            assert any(one is not False for one in truth), (schema, text)
            CASES[f"styles: {style}, texts sampled"] += 1


def has_no_names(value: Any) -> bool:
    """Whether no object of a value has members."""
    if isinstance(value, list):
        return all(has_no_names(inner) for inner in value)
    return value == {} or not isinstance(value, dict)


TOOL = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["C", "F"]},
        "days": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
        "now": {"type": ["boolean", "null"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
ARGUMENTS = {
    "city": 'Rio <de> Janeiro & "co"\n',
    "unit": "C",
    "days": 3,
    "tags": ["a", "b"],
    "where": {"lat": -1.5},
    "now": None,
}


ENDS_OF_NAMES = {
    "qwen_xml": ">",
    "minimax_m3_xml": ">",
    "minimax_xml": '"',
    "deepseek_xml": '"',
    "deepseek_v4_1_xml": '"',
    "glm_xml": "<",
}


@pytest.mark.parametrize("style", ALL_STYLES)
class TestOfTools:
    def test_arguments(self, style):
        grammar = language(TOOL, style)
        for random in (None, *map(Random, range(10))):
            assert accepts(grammar, write(ARGUMENTS, style, random))
            assert accepts(grammar, write({"city": ""}, style, random))

    @pytest.mark.parametrize(
        "wrong",
        [
            {},
            {"unit": "C"},
            {"city": "x", "unit": "K"},
            {"city": "x", "days": 0},
            {"city": "x", "days": 1.5},
            {"city": "x", "other": 1},
            {"city": "x", "tags": [1, {}]},
            {"city": "x", "where": {}},
            {"city": "x", "where": {"lat": "north"}},
            {"city": "x", "now": 1},
            {"unit": "C", "city": "x"},
        ],
    )
    def test_what_is_wrong(self, style, wrong):
        text = write(wrong, style)
        if style == "minimax_m3_xml" and "tags" in wrong:  # `1` and nothing are strings there
            return
        assert not accepts(language(TOOL, style), text)

    def test_names_of_all_kinds(self, style):
        for name in ("a b", "é", "a-b.c", "x&y", "x'y", 'x"y', "x<y", "x>y"):
            schema = {"properties": {name: {"type": "integer"}}, "additionalProperties": False}
            if ENDS_OF_NAMES.get(style, "\0") in name:
                with pytest.raises(SchemaError, match="ends a name in this style") as caught:
                    language(schema, style)
                assert caught.value.keyword == "properties"
                continue
            assert accepts(language(schema, style), write({name: 1}, style)), name

    def test_other_names(self, style):
        grammar = language({"additionalProperties": {"type": "integer"}}, style)
        if style == "minimax_m3_xml":
            assert accepts(grammar, "")
            assert not tokfold.Matcher(grammar).accept_string("]")
            return
        for name in ("a", "_x9", "Content-Type", "é"):
            assert accepts(grammar, write({name: 1}, style)), name
            assert not accepts(grammar, write({name: "x"}, style)), name
        for name in ("", "a\nb", "\x7f"):
            assert not accepts(grammar, write({name: 1}, style)), name

    def test_the_end_of_an_element_is_no_part_of_a_string(self, style):
        end = STYLES[style].close if style in STYLES else '<|"|>'
        schema = {"properties": {"a": {"type": "string"}, "b": {"type": "string", "maxLength": 60}}}
        grammar = language(schema, style)
        for name in "ab":
            is_told = style not in STYLES or not STYLES[style].repeats_name
            text = write({name: "<" + end[:-1]} if is_told else {}, style)
            assert accepts(grammar, text)
            assert not accepts(grammar, write({name: f"x{end}y"}, style))
        required = {"a": {"const": f"{end}a>"}}
        with pytest.raises(UnsatisfiableSchemaError, match="the end of an element"):
            language({"type": "object", "properties": required, "required": ["a"]}, style)

    def test_excluded_texts(self, style):
        schema = {
            "properties": {"a": {"type": "string"}, "b": {"enum": ["no", "yes"]}, "no": {}},
            "additionalProperties": {"type": "string", "pattern": "^[a-z]*$"},
        }
        grammar = language(schema, style, excludes=["no", "é"])
        for value in ({"a": "n o"}, {"b": "yes"}, {"a": "nN"}):
            assert accepts(grammar, write(value, style)), value
        for value in ({"a": "nno"}, {"a": "é"}, {"b": "no"}, {"no": 1}, {"xnox": "a"}, {"x": "no"}):
            assert not accepts(grammar, write(value, style)), value


def test_excluded_texts_of_json_are_excluded_as_they_are_written():
    schema = {"type": "array", "items": {"type": "string", "maxLength": 8}}
    grammar = language(schema, excludes=["</x>", "\\n"])
    for text in (r'["<\/x>"]', r'["\u003c/x>"]', r'["\u000a"]', '["</x", ">"]'):
        assert accepts(grammar, text), text
    for text in ('["</x>"]', r'["a\n"]', '["123456789"]', '["<</x>"]'):
        assert not accepts(grammar, text), text
    numbers = language({"type": "array", "items": {}}, excludes=["1", "true"])
    assert accepts(numbers, '[1, true, "t1"]') is False
    assert accepts(numbers, '[1, true, "t2"]')


@pytest.mark.parametrize("any_order", [False, True])
def test_names_that_no_schema_knows_hold_no_excluded_text(any_order):
    schema = {"properties": {"a": {"type": "integer"}, "b": {"properties": {"c": {}}}}}
    grammar = language(schema, any_order=any_order, excludes=["bad", "<|end|>"], open_objects=True)
    for text in ('{"good": 1}', '{"a": 1, "ba": {"d": 1}}', '{"b": {"x": [{"y": "bd"}]}}'):
        assert accepts(grammar, text), text
    for text in ('{"bad": 1}', '{"b": {"xbady": 1}}', '{"x": [{"a<|end|>": 1}]}', '{"x": "bad"}'):
        assert not accepts(grammar, text), text


STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


@pytest.mark.parametrize("seed", range(60 * MANY))
def test_what_is_excluded_is_all_that_is_left_out(seed):
    """A text is taken where it is taken without, and none of its strings holds such a text."""
    random = Random(f"excludes {seed}")
    schema = Builder(random).document(2)
    excludes = random.sample(["a", "b", "ab", "1", " ", "\\", "é", "x"], random.randint(1, 2))
    fields = {"open_objects": random.random() < 0.7, "any_order": random.random() < 0.3}
    try:
        everything = language(schema, **fields)
    except (SchemaError, LimitExceededError):
        return
    try:
        without = language(schema, excludes=excludes, **fields)
    except UnsatisfiableSchemaError:
        without = None
    except (SchemaError, LimitExceededError):
        return
    texts = {sample(everything, random), *map(json.dumps, random.sample(small_values(), 40))}
    for text in texts - {None}:
        if not accepts(everything, text):
            continue
        holds = any(one in string for string in STRING.findall(text) for one in excludes)
        taken = without is not None and accepts(without, text)
        assert taken == (not holds), (schema, excludes, fields, text)
        CASES["excluded texts: with against without"] += 1


def test_what_nothing_can_be_excluded_from():
    with pytest.raises(SchemaError, match="format: regular expressions are no regular language"):
        language({"properties": {"a": {"format": "regex", "type": "string"}}}, "qwen_xml")
    with pytest.raises(UnsatisfiableSchemaError, match="a text that is excluded"):
        language({"const": "abc"}, excludes=["b"])


def test_a_root_that_is_no_object():
    assert accepts(language({"type": "string"}, "qwen_xml"), "any text")
    assert accepts(language({"type": "integer"}, "kimi_k3_xml"), " 12")
    assert accepts(language({"type": "array", "items": {"type": "string"}}, "glm_xml"), '["a"]')
    both = language({"type": ["object", "string"]}, "qwen_xml")
    assert not accepts(both, "text")
    assert accepts(both, "<parameter=a>1</parameter>")


# ------------------------------------------------------------------------------ Gemma


@pytest.mark.parametrize("name", ["", " a", "a ", "a:b", "a,b", "{a", "a}", "a[0]", 'a<|"|>'])
def test_names_that_gemma_cannot_write_without_quotation_marks(name):
    with pytest.raises(SchemaError, match="names without quotation marks") as caught:
        language({"properties": {name: {"type": "integer"}}}, "gemma")
    assert caught.value.keyword == "properties"


def test_white_space_that_parsers_of_gemma_do_not_skip():
    grammar = language({"properties": {"a": {"type": "string"}}}, "gemma")
    assert accepts(grammar, '{\n\ta : <|"|>x<|"|> }')
    assert not accepts(grammar, '{a:\r<|"|>x<|"|>}')


def test_numbers_that_parsers_of_gemma_take_for_strings():
    grammar = language({"type": "number"}, "gemma")
    for text in ("1", "-0.5", "1.0e5", "1.5E-3"):
        assert accepts(grammar, text)
    for text in ("1e5", "-2E0", "0e"):
        assert not accepts(grammar, text)
    assert accepts(language({"const": 1e22}, "gemma"), "1" + 22 * "0")


def test_unique_items_in_gemma():
    numbers = language(
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "gemma"
    )
    assert accepts(numbers, "[1, 2,30]")
    assert not accepts(numbers, "[1, 2,1]")
    few = language({"items": {"enum": ["a", "b"]}, "type": "array", "uniqueItems": True}, "gemma")
    assert accepts(few, '[<|"|>b<|"|>,<|"|>a<|"|>]')
    assert not accepts(few, '[<|"|>b<|"|>,<|"|>b<|"|>]')
    for items in ({"type": "string"}, {"type": ["integer", "string"]}, {"type": "array"}):
        with pytest.raises(SchemaError, match="equal items cannot be found; leave the keyword out"):
            language({"type": "array", "items": items, "uniqueItems": True}, "gemma")


def test_many_names_of_gemma_in_any_order():
    names = [f"n{i}" for i in range(40)]
    schema = {
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    grammar = language(schema, "gemma", any_order=True)
    for seed in range(5):
        random = Random(seed)
        value = dict.fromkeys(random.sample(names, len(names)), "x")
        assert accepts(grammar, write(value, "gemma", random))
        value.pop(random.choice(names))
        assert not accepts(grammar, write(value, "gemma", random))
        assert not accepts(grammar, write(value, "gemma")[:-1] + ',n0:<|"|>x<|"|>}')


@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("style", ["gemma", "minimax_m3_xml", "qwen_xml"])
def test_a_name_that_cannot_be_written_has_the_place_of_its_object(style, any_order):
    name = {"gemma": "a:b"}.get(style, "a>b")
    inner = {"type": "object", "properties": {name: {"type": "integer"}}}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/y"}}, "$defs": {"y": inner}}
    if style == "qwen_xml":  # what stands within is JSON
        assert language(schema, style, any_order=any_order)
        schema, place = inner, "#"
    else:
        place = "#/$defs/y"
    with pytest.raises(SchemaError, match="rename the property") as caught:
        language(schema, style, any_order=any_order)
    assert (caught.value.pointer, caught.value.keyword) == (place, "properties")
