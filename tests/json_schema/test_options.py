"""Each option: white space, spellings, key order, formats, closed objects, notes, what is lossy.

One file of more than 600 lines: a list of options, and each test speaks of one.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
import tokfold
from json_schema.hostile_cases import discriminated
from json_schema.languages import language
from tokfold import (
    Grammar,
    InvalidSchemaError,
    LimitExceededError,
    Limits,
    TokfoldError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)

Schema = dict[str, Any]

POINT: Schema = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "integer"}}},
    "required": ["a", "b"],
}
VALUE = {"a": 1, "b": [2, 3]}
PLACES = ("{", "}", "[", "]", ":", ",")


def spread(value: Any, blank: str, places: tuple[str, ...] = PLACES) -> str:
    """The value with a blank around each mark of these; its strings hold no marks."""
    text = json.dumps(value, separators=(",", ":"))
    for mark in places:
        after = "" if mark in "}]" else blank
        before = "" if mark in "{[" else blank
        text = text.replace(mark, f"{before}{mark}{after}")
    return text


def check(schema: Any, accepted: list[str], rejected: list[str], **options: Any) -> None:
    """Compare a language with texts."""
    found = language(schema, **options)
    wrong = [f"rejects {text!r}" for text in accepted if not found.accepts(text)]
    wrong += [f"accepts {text!r}" for text in rejected if found.accepts(text)]
    assert wrong == []


# -- white space


@pytest.mark.parametrize("blank", [" ", "\n", "\t", "\r", " \n\t\r", ""])
def test_white_space_of_any_kind(blank: str) -> None:
    found = language(POINT)
    for mark in PLACES:
        text = spread(VALUE, blank, (mark,))
        assert json.loads(text) == VALUE
        assert found.accepts(text), text
    if len(blank) < 4:
        assert found.accepts(spread(VALUE, blank))


@pytest.mark.parametrize("most", [0, 1, 3, 32])
def test_white_space_up_to_a_number(most: int) -> None:
    """At each place: behind what opens, before what closes, around a colon and a comma."""
    parts = ["{", '"a"', ":", "1", ",", '"b":[', "2", ",", "3", "]", "}"]
    found = language(POINT, max_whitespace=most)
    for place in range(1, len(parts)):
        for count, expected in ((most, True), (most + 1, False)):
            text = "".join(parts[:place]) + " " * count + "".join(parts[place:])
            assert json.loads(text) == VALUE
            assert found.accepts(text) is expected, text


def test_white_space_without_a_bound() -> None:
    found = language(POINT, max_whitespace=None)
    assert found.accepts(spread(VALUE, " " * 5_000, ("{",)))
    assert found.accepts(spread(VALUE, "\r\n\t ", PLACES))


def test_at_most_32_by_default() -> None:
    check(POINT, [spread(VALUE, "\n" * 32, ("{",))], [spread(VALUE, "\n" * 33, ("{",))])


@pytest.mark.parametrize("value", [{}, [], [{}], [[]], {"x": {}}])
def test_white_space_where_nothing_is(value: Any) -> None:
    """Between brackets alone the bound is that of one place."""
    inside = json.dumps(value).replace("{}", "{%s}").replace("[]", "[%s]")
    found = language({}, max_whitespace=2)
    assert found.accepts(inside % "  ")
    assert not found.accepts(inside % "   ")


def test_compact() -> None:
    compact = json.dumps(VALUE, separators=(",", ":"))
    check(
        POINT,
        [compact],
        [json.dumps(VALUE), spread(VALUE, " ", ("{",)), spread(VALUE, " ", ("]",)), compact + " "],
        whitespace="compact",
    )
    check({}, ['{"a":[1,{}]}', "[]", "[[],{}]"], ['{"a": 1}', "[ ]", "{ }"], whitespace="compact")


def test_spaced() -> None:
    text = json.dumps(VALUE)
    check(
        POINT,
        [text],
        [
            json.dumps(VALUE, separators=(",", ":")),
            text.replace(": ", ":  "),
            text.replace(", ", ",\n"),
            text.replace("{", "{ "),
            text.replace("]", " ]"),
        ],
        whitespace="spaced",
    )


@pytest.mark.parametrize(
    "separators", [(", ", ": "), (",", ":"), (",\n", ":\t"), (";", "="), (" ,", ":")]
)
def test_separators(separators: tuple[str, str]) -> None:
    if any(separator[0] not in ",:" for separator in separators):
        with pytest.raises(ValueError, match="separators must be"):
            language(POINT, separators=separators)
        return
    text = json.dumps(VALUE, separators=separators)
    others = {json.dumps(VALUE, separators=s) for s in ((", ", ": "), (",", ":"), (",\n", ":\t"))}
    check(POINT, [text], sorted(others - {text}), separators=separators)


@pytest.mark.parametrize("indent", [0, 1, 2, 4])
def test_indent(indent: int) -> None:
    value = {"a": 1, "b": [2, 3], "c": {"d": [[], {}, {"e": None}], "f": {}}}
    text = json.dumps(value, indent=indent)
    check(
        POINT,
        [text, json.dumps(VALUE, indent=indent), json.dumps({**VALUE, "b": []}, indent=indent)],
        [json.dumps(value), json.dumps(value, indent=indent + 1), text.replace("\n", "", 1)],
        indent=indent,
    )


def test_indent_with_separators() -> None:
    text = json.dumps(VALUE, indent=2, separators=(",", ":"))
    check(POINT, [text], [json.dumps(VALUE, indent=2)], indent=2, separators=(",", ":"))


@pytest.mark.parametrize("options", [{}, {"whitespace": "compact"}, {"indent": 2}, {"indent": 0}])
def test_nothing_stands_around_the_root(options: dict[str, Any]) -> None:
    for schema, text in ((POINT, None), ({"type": "integer"}, "1"), ({"const": []}, "[]")):
        found = language(schema, **options)
        text = text or json.dumps(
            VALUE,
            indent=options.get("indent"),
            separators=(",", ":") if "whitespace" in options else None,
        )
        assert found.accepts(text)
        assert not any(found.accepts(t) for t in (" " + text, text + " ", text + "\n", "\n" + text))


# -- what runs away


NUMBERS = [
    sign + whole + fraction + exponent
    for sign in ("", "-")
    for whole in ("0", "7", "12", "345", "6789")
    for fraction in ("", ".5", ".05", ".125", ".0625")
    for exponent in ("", "e1", "E-12", "e+123", "e1234")
    if (sign, whole) != ("-", "0")
]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number"},
        {"type": "integer"},
        {"type": "number", "minimum": 3},
        {"type": "number", "multipleOf": 0.5, "maximum": 700},
        {"anyOf": [{"type": "integer"}, {"type": "number", "exclusiveMaximum": -1}]},
        True,
    ],
)
def test_digits(schema: Any, most: int) -> None:
    """What has fewer digits in a row is as without a bound, and what has more is refused."""
    free, bounded = language(schema), language(schema, max_digits=most)
    wrong = []
    for text in NUMBERS:
        has_few = all(len(run) <= most for run in re.findall("[0-9]+", text))
        if bounded.accepts(text) != (has_few and free.accepts(text)):
            wrong.append(text)
    assert wrong == []


def test_digits_of_numbers_within_values() -> None:
    schema = {"items": {"type": "number"}, "properties": {"n": {"enum": [12345, "x"]}}}
    check(
        schema,
        ["[12, 1.25]", '{"n": 12345}', '{"n": "x", "m": [12]}', '"123"', "[]"],
        ["[123]", "[1.125]", '{"m": 123}', '{"m": {"k": [1, 123]}}', "[1e100]"],
        max_digits=2,
    )
    distinct = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 3}
    check(distinct, ["[1, 2, 3]", "[1, 9, -9, 4]"], ["[1, 2, 1]", "[1, 2, 10]"], max_digits=1)
    with pytest.raises(UnsatisfiableSchemaError):
        Grammar.from_json_schema({"type": "integer", "minimum": 100}, max_digits=2)


def depth(value: Any) -> int:
    """In how many arrays and objects the deepest value stands."""
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return 0
    return max((1 + depth(part) for part in parts), default=0)


TREE: Schema = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {
                "leaf": {},
                "trees": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            },
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/tree",
}
VALUES: list[Any] = [0, "x", [], {}, [1], {"leaf": 1}, [[]], [[1]], [[[1]]], {"leaf": [[]]}]
VALUES += [{"trees": []}, {"trees": [{}]}, {"trees": [{"leaf": 1}]}, {"trees": [{"trees": [{}]}]}]
VALUES += [{"leaf": {"leaf": {"leaf": [1]}}}, [{"a": [{"b": 1}]}], {"b": {"a": [[{}]]}}]


@pytest.mark.parametrize("most", range(6))
@pytest.mark.parametrize("options", [{}, {"key_order": "any"}, {"indent": 1}])
@pytest.mark.parametrize("schema", [True, {"type": ["object", "array"]}, TREE])
def test_depth(schema: Any, options: dict[str, Any], most: int) -> None:
    """What is less deep is as without a bound, and what is deeper is refused."""
    free, bounded = language(schema, **options), language(schema, **options, max_depth=most)
    for value in VALUES:
        text = json.dumps(value, indent=options.get("indent"))
        assert bounded.accepts(text) == (depth(value) <= most and free.accepts(text)), text


def test_a_depth_that_nothing_has() -> None:
    schema = {"properties": {"a": {"type": "array", "minItems": 1}}, "required": ["a"]}
    check({**schema, "type": "object"}, ['{"a": [1]}'], ['{"a": [[1]]}', "{}"], max_depth=2)
    with pytest.raises(UnsatisfiableSchemaError, match="max_depth=1"):
        Grammar.from_json_schema({**schema, "type": "object"}, max_depth=1)


def fault(schema: Any, **options: Any) -> str:
    with pytest.raises(TokfoldError) as caught:
        Grammar.from_json_schema(schema, **options)
    return str(caught.value)


def test_an_option_that_leaves_no_value_is_named() -> None:
    year = {"type": "integer", "minimum": 1900}
    named = {"type": "object", "properties": {"year": year}, "required": ["year"]}
    assert "within max_digits=3, and the schema needs one; raise the option" in fault(
        named, max_digits=3
    )
    contradiction = {"type": "integer", "minimum": 5, "maximum": 4}
    assert "max_digits" not in fault(contradiction, max_digits=3)
    optional = {"type": "object", "properties": {"year": year}}
    notes = Grammar.from_json_schema(optional, max_digits=3).notes
    assert ["if max_digits=3 is why" in note.message for note in notes] == [True]
    for schema, opened in (({"const": [[1]]}, False), ({"const": {"a": {"b": 1}}}, False)):
        assert ("additional_properties" in fault(schema, max_depth=1)) == opened
    needed = {"properties": {}, "required": ["a"], "propertyNames": {"maxLength": 0}}
    assert '"a" is required, and none of that name is allowed; allow it' in fault(
        {"type": "object", **needed}
    )
    assert fault(False).endswith("no value satisfies the schema `false`; allow some")
    assert "`false`" not in fault({"allOf": [{"type": "null"}, {"type": "string"}]})


def test_a_limit_on_alternatives_names_what_is_there() -> None:
    tagged = [{"properties": {"k": {"const": i}}, "required": ["k"]} for i in range(4_200)]
    for schema in (
        {"anyOf": [{"type": "object", **one} for one in tagged]},
        {"enum": [{"id": i} for i in range(4_200)]},
    ):
        message = fault(schema)
        assert "max_schema_alternatives = 4096" in message
        assert "unevaluated" not in message
        assert "each array and object of an `enum` among them" in message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lossy": "uniqueItems"}, r"lossy=\{'uniqueItems'\}"),
        ({"separators": ","}, "separators must be two texts"),
        ({"separators": (",", ":", "x")}, "separators must be two texts"),
        ({"separators": 5}, "separators must be two texts"),
        ({"resources": [1]}, "resources must be a mapping of URIs"),
        ({"limits": 5}, r"limits must be tokfold\.Limits or None"),
        ({"interrupt": 5}, r"interrupt must be a tokfold\.Interrupt or None"),
    ],
)
def test_options_that_are_none_of_their_values(options: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        Grammar.from_json_schema({}, **options)


@pytest.mark.parametrize(
    ("text", "options"),
    [('{"k": [1234]}', {"max_digits": 3}), ('{"k": [[[]]]}', {"max_depth": 2})],
)
def test_the_bound_is_named(text: str, options: dict[str, Any]) -> None:
    (name,) = options
    grammar = Grammar.from_json_schema({"properties": {"k": {"type": "array"}}}, **options)
    place = grammar.place_in_schema(text, tokfold.recognize(grammar, text).read)
    assert place is not None
    assert [name in reason.message for reason in place.reasons] == [True]


@pytest.mark.parametrize(
    "options",
    [{"max_digits": 0}, {"max_digits": "3"}, {"max_depth": -1}, {"max_depth": True}],
)
def test_bounds_that_are_none(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} must be a number from"):
        Grammar.from_json_schema({}, **options)


# -- spellings


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize("is_open", [False, True])
def test_integers_that_tell_alternatives_apart(keyword: str, is_open: bool) -> None:
    """Where all schemas that hold ask for integers they are written so, and else freely."""

    def tagged(schema: object, **more: object) -> dict[str, object]:
        return {"type": "object", "properties": {"k": schema, **more}, "required": ["k"]}

    one, two = ({"type": "integer", "enum": [value]} for value in (1, 2))
    union = {keyword: [tagged(one, a={}), tagged(two, b={}), tagged({"enum": [3, 1.5]})]}
    check(
        union,
        ['{"k":1}', '{"k":2}', '{"k":3}', '{"k":3.0}', '{"k":1.5}'],
        ['{"k":1.0}', '{"k":2.0}', '{"k":4}'],
        additional_properties=is_open,
    )
    # Under one of these schemas any spelling of the number is right.
    both = {"anyOf": [tagged(one, a={}), tagged({"type": "number"}, b={})]}
    check(both, ['{"k":1}', '{"k":1.0}', '{"k":1.5}'], [], additional_properties=is_open)


def test_escapes_in_annotations_take_no_work() -> None:
    """A schema that is a dict has them wherever a description is not ASCII."""
    members = {f"m{i}": {"$ref": "#/$defs/d", "description": "\u2014"} for i in range(50)}
    schema = {"properties": members, "$defs": {"d": {"anyOf": [{"type": "null"}, {"const": 1}]}}}
    escaped, plain = json.dumps(schema), json.dumps(schema, ensure_ascii=False)

    def is_enough(work: int, text: str) -> bool:
        try:
            Grammar.from_json_schema(text, limits=Limits(max_network_work=work))
        except LimitExceededError:
            return False
        return True

    def needed(text: str) -> int:
        least, most = 0, 1 << 20
        while least < most:
            middle = (least + most) // 2
            least, most = (least, middle) if is_enough(middle, text) else (middle + 1, most)
        return least

    assert needed(escaped) < 1.02 * needed(plain)


def test_integers() -> None:
    schema = {"type": "integer", "minimum": -5}
    check(schema, ["1", "-5", "0"], ["1.0", "0.0", "1e0", "1.5", "-6"])
    check(
        schema,
        ["1", "1.0", "-5.00", "0.0", "10.0"],
        ["1.5", "1.", "1e0", "-0.0", "-6.0", "1.01"],
        integers="1.0",
    )
    both = {"properties": {"a": {"type": "integer"}, "b": {"enum": [3]}}}
    check(both, ['{"a": 1, "b": 3.0}'], ['{"a": 1.0}'])
    check(both, ['{"a": 1.0, "b": 3.00}', '{"a": 2}'], ['{"a": 1.1}'], integers="1.0")


STRINGS: Schema = {
    "properties": {
        "free": {"type": "string"},
        "short": {"type": "string", "maxLength": 3},
        "pattern": {"type": "string", "pattern": "^[aé/😀\n\x01]*$"},
        "enum": {"enum": ["a/é", "😀", "\n"]},
        "format": {"type": "string", "format": "date"},
    }
}
RAW = {
    "free": ["a", "/", "é", "😀", r"\"", r"\\", r"\n", r"\t", r"\b", r"\f", r"\r", r"\u0001", ""],
    "short": ["a/é", "😀😀😀", r"\n\n\n", r"\u001f"],
    "pattern": ["a/é😀", r"\n", r"\u0001", ""],
    "enum": ["a/é", "😀", r"\n"],
    "format": ["2024-02-29"],
}
"""Spellings that strings have under every option."""
OTHER = {
    "free": [r"\/", r"\u0061", r"\u00e9", r"\u00E9", r"\ud83d\ude00", r"\uD83D\uDE00", r"\u000a"],
    "short": [r"\/", r"\u0061\u0062\u0063", r"\ud83d\ude00\ud83d\ude00\ud83d\ude00"],
    "pattern": [r"\u0061", r"a\/", r"\ud83d\ude00", r"\u000A"],
    "enum": [r"a\/é", r"\u0061/é", r"a/\u00E9", r"\ud83d\ude00", r"\u000a"],
    "format": [r"2024\u002d02-29", r"\u0032024-02-29"],
}
"""Spellings that depend on the option."""
WRONG = {
    "free": [r"\ud83d", r"\ude00", r"\ude00\ud83d", r"\ud83dx", "\n", "\x00", "\x1f", r"\x", '"'],
    "short": ["abcd", r"\u0061bcd", r"\ud83d", r"\/\/\/\/"],
    "pattern": ["b", r"\u0062", r"\t", r"\ud83d", r"\\"],
    "enum": ["a", r"\u0061", "a/e", r"\ud83d", r"\t"],
    "format": ["2024-02-30", r"2024-02-3\u0030", "2024"],
}
SPELLED = {"standard": ("free", "short"), "any": tuple(RAW), "plain": ()}


@pytest.mark.parametrize("escapes", SPELLED)
def test_escapes(escapes: str) -> None:
    found = language(STRINGS, escapes=escapes)
    wrong = []
    for name in RAW:
        others = name in SPELLED[escapes]
        for inside, expected in (
            *((text, True) for text in RAW[name]),
            *((text, others) for text in OTHER[name]),
            *((text, False) for text in WRONG[name]),
        ):
            text = f'{{"{name}": "{inside}"}}'
            if found.accepts(text) != expected:
                wrong.append(f"{text}: {expected}")
    assert wrong == []


@pytest.mark.parametrize("escapes", SPELLED)
def test_known_names_have_one_spelling(escapes: str) -> None:
    """Else another spelling of a known name would pass for another name."""
    schema = {"properties": {"a": {"type": "integer"}, "é": {"type": "null"}}}
    check(
        schema,
        ['{"a": 1, "é": null}', '{"b": "x"}'],
        [r'{"\u0061": "x"}', r'{"\u0061": 1}', r'{"\u00e9": 1}', r'{"\u00E9": "x"}'],
        escapes=escapes,
    )


def test_capital_and_small_digits_of_escapes() -> None:
    check({"const": "\x1f"}, [r'"\u001f"', r'"\u001F"'], [r'"\u001e"', r'"\U001f"', r'"\u1f"'])


# -- key order


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_order(count: int) -> None:
    keys = [f"k{i}" for i in range(count)]
    schema = {"properties": {k: {"const": i} for i, k in enumerate(keys)}, "required": keys[:2]}
    ordered, free = language(schema), language(schema, key_order="any")
    for size in range(count + 1):
        for chosen in itertools.permutations(keys, size):
            text = json.dumps({k: keys.index(k) for k in chosen})
            is_valid = set(keys[:2]) <= set(chosen)
            assert free.accepts(text) is is_valid, text
            assert ordered.accepts(text) is (is_valid and list(chosen) == sorted(chosen)), text


def test_other_keys_anywhere() -> None:
    schema = {"properties": {"a": {}, "b": {}}, "required": ["a"]}
    texts = [json.dumps(dict.fromkeys(keys)) for keys in itertools.permutations(("a", "b", "x"))]
    found = language(schema)
    assert [t for t in texts if found.accepts(t)] == ['{"a": null, "b": null, "x": null}']
    check(schema, texts, ['{"x": 1, "b": 2}'], key_order="any")


# -- formats, resources, closed objects


def test_formats() -> None:
    schema = {"type": "string", "format": "date"}
    check(schema, ['"2024-02-29"'], ['"x"'])
    check(schema, ['"2024-02-29"', '"x"', r'"\u0061"'], ["1"], formats="annotation")


def test_resources() -> None:
    resources = {
        "http://x.test/a": {"$id": "http://x.test/a", "type": "integer", "$anchor": "here"},
        "http://x.test/dir/b.json": {"items": {"$ref": "../a#here"}, "type": "array"},
        "urn:c": False,
    }
    check({"$ref": "http://x.test/a"}, ["1"], ['"x"'], resources=resources)
    check({"$ref": "http://x.test/dir/b.json"}, ["[1]"], ['["x"]', "1"], resources=resources)
    check({"anyOf": [{"$ref": "urn:c"}, {"const": 1}]}, ["1"], ["2"], resources=resources)
    with pytest.raises((InvalidSchemaError, UnsupportedSchemaError)) as caught:
        Grammar.from_json_schema({"$ref": "http://x.test/other"}, resources=resources)
    assert "http://x.test/other" in str(caught.value)


def test_closed_objects() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"properties": {"b": {}}, "type": "object"},
            "o": {"type": "object", "properties": {"c": {}}, "additionalProperties": True},
            "s": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    }
    texts = ['{"a": {"b": 1}}', '{"o": {"x": 1}}', '{"s": {"x": 1}}', "{}"]
    open_only = ['{"x": 1}', '{"a": {"x": 1}}']
    check(schema, [*texts, *open_only], ['{"s": {"x": "y"}}'])
    check(schema, texts, [*open_only, '{"s": {"x": "y"}}'], additional_properties=False)


def test_listed_objects_are_closed_as_they_are() -> None:
    closed = {"type": "object", "properties": {"w": {"const": {"y": 1}}}, "required": ["w"]}
    for listed in ({"const": {"x": 1}}, {"enum": [{"x": 1}, 3]}, {"allOf": [{"const": {"x": 1}}]}):
        for branches in ([listed, closed], [closed, listed]):
            check(
                {"anyOf": branches},
                ['{"x": 1}', '{"w": {"y": 1}}'],
                ['{"x": 1, "z": 1}', '{"w": {"y": 1}, "x": 1}', '{"w": {"y": 1, "x": 1}}', "{}"],
                additional_properties=False,
            )


def test_a_name_that_is_asked_for_is_named() -> None:
    for asked, accepted, refused in (
        ({"required": ["b"]}, ['{"b": 1}', '{"a": 1, "b": 1}'], ['{"b": 1, "c": 1}']),
        ({"dependentRequired": {"a": ["b"]}}, ['{"a": 1, "b": 1}', "{}"], ['{"a": 1}']),
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            ['{"a": 1}', '{"b": 1}', '{"a": 1, "b": 1}'],
            ["{}", '{"b": 1, "c": 1}'],
        ),
        (
            {"dependentSchemas": {"b": {"required": ["c"]}}, "dependentRequired": {"d": []}},
            ['{"b": 1, "c": 1}', '{"c": 1}', '{"d": 1}'],
            ['{"b": 1}', '{"e": 1}'],
        ),
        (
            {"if": {"not": {"required": ["b"]}}, "then": {"required": ["a"]}},
            ['{"b": 1}', '{"a": 1}'],
            ["{}", '{"b": 1, "c": 1}'],
        ),
        (
            {
                "if": {
                    "anyOf": [
                        {"properties": {"b": {"const": 1}}, "required": ["b"]},
                        {"required": ["c"]},
                    ]
                },
                "then": {"required": ["a"]},
            },
            ['{"b": 2}', '{"a": 1, "b": 1}', '{"a": 1, "c": 1}'],
            ['{"b": 1}', '{"c": 1}', '{"a": 1, "d": 1}'],
        ),
        (
            {"if": {"properties": {"b": {"const": 1}}, "required": ["b"]}, "else": {}},
            ['{"b": 1}', '{"a": 1, "b": 2}'],
            ['{"c": 1}', '{"b": 2, "c": 1}'],
        ),
        (
            {"if": {"properties": {"b": {"const": 1}}}, "then": {"required": ["c"]}},
            ['{"b": 1, "c": 1}', '{"b": 2}', '{"c": 1}', '{"b": 2, "c": 1}'],
            ['{"b": 1}', '{"b": 2, "d": 1}'],
        ),
    ):
        schema = {"type": "object", "properties": {"a": {}}, **asked}
        check(schema, accepted, refused, additional_properties=False, key_order="any")
        check(schema, accepted, [], additional_properties=True, key_order="any")


@pytest.mark.parametrize("keyword", ["$ref", "allOf", "anyOf", "oneOf"])
def test_what_an_object_says_of_other_members_counts(keyword: str) -> None:
    base = {"type": "object", "properties": {"a": {"type": "string"}}}
    applied: Any = "#/$defs/base" if keyword == "$ref" else [base]
    schema = {keyword: applied, "unevaluatedProperties": {"type": "integer"}}
    check(
        {**schema, "$defs": {"base": base}},
        ['{"a": "x"}', '{"a": "x", "z": 1}'],
        ['{"a": 1}', '{"a": "x", "z": "y"}'],
        additional_properties=False,
    )


def test_branches_that_hold_together_say_what_is_evaluated() -> None:
    branches = [{"properties": {name: {"type": "string"}}} for name in "ab"]
    check(
        {"type": "object", "unevaluatedProperties": False, "anyOf": branches},
        ['{"a": "x", "b": "y"}', '{"a": "x"}', "{}"],
        ['{"a": "x", "c": 1}'],
        additional_properties=False,
    )


def test_a_union_of_what_is_required_costs_little() -> None:
    """Of which schemas ask for a name that is described anyway makes no difference."""
    names = [f"f{number}" for number in range(60)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "anyOf": [{"required": [name]} for name in names],
    }
    limits = tokfold.Limits(max_schema_formulas=5_000)
    check(schema, ['{"f7": 1}', '{"f7": 1, "f9": 1}'], ["{}", '{"g": 1}'], limits=limits)
    closed = {"additional_properties": False, "limits": limits}
    check(schema, ['{"f7": 1}', '{"f7": 1, "f9": 1}'], ["{}", '{"g": 1}'], **closed)


def test_a_nested_object_keeps_the_order_of_its_own_schema() -> None:
    """Whatever else applies to it: what a schema says itself comes before what it applies."""
    inner = {"type": "object", "properties": {"q": {}, "p": {}}}
    for more in (
        {"if": {"properties": {"k": {}}}, "then": {"properties": {"a": {"required": ["p"]}}}},
        {"allOf": [{"properties": {"a": {"properties": {"p": {"const": 1}}}}}]},
        {"anyOf": [{"properties": {"a": {"required": ["p"]}}}]},
        {"patternProperties": {"^a": {"required": ["p"]}}},
    ):
        for schema in ({"properties": {"a": inner}, **more}, {**more, "properties": {"a": inner}}):
            check(schema, ['{"a": {"q": 1, "p": 1}}'], ['{"a": {"p": 1, "q": 1}}'])
    items = {"items": inner, "contains": {"properties": {"p": {"const": 1}}, "required": ["p"]}}
    check({"type": "array", **items}, ['[{"q": 1, "p": 1}]'], ['[{"p": 1, "q": 1}]'])


def test_what_opens_an_object_is_named_where_nothing_else_does() -> None:
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a"], "minProperties": 2}
    with pytest.raises(UnsatisfiableSchemaError, match="additional_properties=True opens them"):
        Grammar.from_json_schema(schema)
    for more in ({"additionalProperties": False}, {"maxProperties": 1}):
        with pytest.raises(UnsatisfiableSchemaError) as caught:
            Grammar.from_json_schema({**schema, **more})
        assert "opens" not in str(caught.value)


# -- what is not enforced, and what is refused


def pointers(grammar: Grammar) -> list[str]:
    return [note.pointer for note in grammar.notes]


def test_notes() -> None:
    grammar = Grammar.from_json_schema(
        {
            "title": "A thing",
            "properties": {
                "a": {"type": "string", "format": "colour"},
                "b/c": {"description": "x", "type": "string", "contentEncoding": "base64"},
                "d": {"type": "integer", "format": "int32"},
                "e": {"type": "string", "format": "date"},
            },
            "x-own": 1,
        }
    )
    found = pointers(grammar)
    for pointer in ("#/properties/a", "#/properties/b~1c", "#/properties/d"):
        assert any(note.startswith(pointer) for note in found), (pointer, found)
    text = " ".join(map(str, grammar.notes))
    for word in ("colour", "int32", "contentEncoding", "x-own"):
        assert word in text
    assert not any(note.startswith("#/properties/e") for note in found)
    assert not Grammar.from_json_schema({"type": "integer"}).notes


def test_notes_of_another_dialect() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"const": 1, "if": {"type": "null"}}},
    }
    text = " ".join(str(note) for note in Grammar.from_json_schema(schema).notes)
    assert "const" in text
    assert "if" in text


def test_lossy() -> None:
    flag = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}
    array = {"type": "array", "items": {**flag, "additionalProperties": False}}
    few = {**array, "uniqueItems": True, "minItems": 3}
    schema = {"properties": {"a": few}}
    with pytest.raises(UnsupportedSchemaError) as caught:
        Grammar.from_json_schema(schema)
    assert caught.value.keyword == "uniqueItems"
    assert caught.value.pointer in ("#/properties/a", "#/properties/a/uniqueItems")
    grammar = Grammar.from_json_schema(schema, lossy={"uniqueItems"})
    assert [place.startswith("#/properties/a") for place in grammar.not_enforced] == [True]
    three = '{"a": [{"on": true}, {"on": true}, {"on": false}]}'
    check(schema, [three], ['{"a": [1, 2, 3]}', '{"a": []}'], lossy={"uniqueItems"})


def test_lossy_leaves_what_can_be_said() -> None:
    schema = {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}
    check(schema, ["[true, false]"], ["[true, true]"], lossy={"uniqueItems"})


def test_nothing_else_is_lossy() -> None:
    with pytest.raises((ValueError, TypeError)):
        Grammar.from_json_schema({}, lossy={"pattern"})


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        ({"items": {"not": {"items": {}, "uniqueItems": True}}}, "/items", "uniqueItems"),
        ({"allOf": [{}, {"multipleOf": 1234567891}]}, "/allOf/1", "multipleOf"),
        ({"properties": {"a/b": {"pattern": r"(a)\1"}}}, "/properties/a~1b", "pattern"),
        ({"$defs": {"x": {"pattern": r"(.)\1"}}, "$ref": "#/$defs/x"}, "/$defs/x", "pattern"),
        ({"type": "string", "not": {"format": "regex"}}, "", "format"),
        ({"patternProperties": {r"(a)\1": {}}}, "", "patternProperties"),
    ],
)
def test_refused_by_name(schema: Schema, pointer: str, keyword: str) -> None:
    with pytest.raises(UnsupportedSchemaError) as caught:
        Grammar.from_json_schema(schema)
    error = caught.value
    assert error.keyword == keyword
    assert error.pointer.startswith(f"#{pointer}")
    assert len(error.reason) > 10
    for part in (error.keyword, error.pointer, error.reason):
        assert part in str(error)


TAG = {"type": "object", "properties": {"k": {"const": 1, "type": "string"}}, "required": ["k"]}


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        (False, "#", ""),
        ({"not": {}}, "#", "not"),
        ({"type": "integer", "minimum": 2, "maximum": 1}, "#", "minimum"),
        ({"type": "integer", "minimum": 1.2, "maximum": 1.8}, "#", "minimum"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "#", "minLength"),
        ({"type": "object", "required": ["a"], "properties": {"a": False}}, "#/properties/a", ""),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "#", "required"),
        ({"type": "array", "minItems": 2, "maxItems": 1}, "#", "minItems"),
        ({"type": "array", "minItems": 1, "items": False}, "#", "minItems"),
        ({"type": "string", "pattern": "^a", "allOf": [{"pattern": "^b"}]}, "#/allOf/0", "pattern"),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, "#", "allOf"),
        ({"type": "object", "minProperties": 2, "maxProperties": 1}, "#", "minProperties"),
        (
            {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3},
            "#",
            "minItems",
        ),
        ({"type": "string", "format": "date", "maxLength": 9}, "#", "format"),
        ({"type": "integer", "enum": ["a"]}, "#", "enum"),
        (TAG, "#/properties/k", "const"),
        (
            {"oneOf": [{"properties": {"k": False}, "required": ["k"], "type": "object"}]},
            "#/oneOf/0/properties/k",
            "",
        ),
        (
            {"$defs": {"t": TAG}, "type": "array", "items": {"$ref": "#/$defs/t"}, "minItems": 1},
            "#/$defs/t/properties/k",
            "const",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
            "#",
            "required",
        ),
        (
            {
                "type": "array",
                "prefixItems": [{}, {"allOf": [{"type": "null", "enum": [1]}]}],
                "minItems": 2,
            },
            "#/prefixItems/1/allOf/0",
            "enum",
        ),
    ],
)
def test_unsatisfiable(schema: Any, pointer: str, keyword: str) -> None:
    """The deepest place that leaves no value is named, with a keyword there."""
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        Grammar.from_json_schema(schema)
    assert (caught.value.pointer, caught.value.keyword) == (pointer, keyword)


@pytest.mark.parametrize(
    "options",
    [
        {"key_order": "sorted"},
        {"whitespace": "none"},
        {"max_whitespace": -1},
        {"indent": -1},
        {"integers": 1},
        {"escapes": "all"},
        {"formats": True},
        {"separators": (",",)},
        {"indent": 10**30},
        {"resources": {"x": object()}},
        {"lossy": "uniqueItems"},
        {"strict_mode": True},
    ],
)
def test_options_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, TokfoldError, OverflowError)):
        Grammar.from_json_schema({"type": "integer"}, **options)


def test_bounds_that_no_text_reaches_are_taken() -> None:
    grammar = Grammar.from_json_schema({"const": [1]}, max_whitespace=10**30)
    assert tokfold.recognize(grammar, f"[{' ' * 99}1]").accepted


# -- what a user holds


def test_text_dict_and_bool_are_one() -> None:
    for value in (POINT, True, {"type": "integer"}):
        first, second = (
            Grammar.from_json_schema(value),
            Grammar.from_json_schema(json.dumps(value)),
        )
        assert first == second
        assert first.fingerprint == second.fingerprint


def test_a_grammar_prints_and_reads_back() -> None:
    """What is printed is a grammar of the same texts."""
    for schema in (
        POINT,
        STRINGS,
        {"type": "number", "minimum": 0.5},
        {"enum": [1, "a", {"b": 2}]},
    ):
        grammar = Grammar.from_json_schema(schema)
        again = Grammar.from_ebnf(str(grammar))
        for text in (json.dumps(VALUE), '{"free": "x"}', "1", "0.25", '{"b": 2}', '"a"', "{}"):
            first, second = (tokfold.recognize(g, text).accepted for g in (grammar, again))
            assert first == second, text


SUBSETS: Schema = {"type": "string", "pattern": "(a|b)*a(a|b){30}$", "minLength": 3}


@pytest.mark.parametrize(
    ("schema", "limits", "limit"),
    [
        (SUBSETS, {}, "max_automaton_states"),
        ({"enum": ["x" * 1_000]}, {"max_grammar_bytes": 500}, "max_grammar_bytes"),
        (discriminated(300), {"max_compile_milliseconds": 1}, "max_compile_milliseconds"),
    ],
)
def test_limits_are_typed(schema: Schema, limits: dict[str, int], limit: str) -> None:
    with pytest.raises(tokfold.LimitExceededError) as caught:
        Grammar.from_json_schema(schema, limits=tokfold.Limits(**limits))
    assert caught.value.limit == limit


DRAFT_3 = "http://json-schema.org/draft-03/schema#"


@pytest.mark.parametrize(
    "keyword", [{"disallow": "string"}, {"divisibleBy": 2}, {"extends": {"minimum": 2}}]
)
@pytest.mark.parametrize(
    ("around", "pointer"),
    [
        (lambda one: one, "#"),
        (lambda one: {"properties": {"a": one}}, "#/properties/a"),
        (lambda one: {"items": one}, "#/items"),
        (lambda one: {"$ref": "#/x/y", "x": {"y": one}}, "#/x/y"),
        (
            lambda one: {"additionalProperties": {"type": "integer", **one}},
            "#/additionalProperties",
        ),
    ],
)
def test_keywords_that_draft_3_alone_has_are_refused(keyword, around, pointer):
    """Without a note of the schema being asked for."""
    schema = {"$schema": DRAFT_3, **around(keyword)}
    with pytest.raises(UnsupportedSchemaError, match="in draft 3 only") as caught:
        tokfold.Grammar.from_json_schema(schema)
    assert caught.value.pointer == pointer
    assert caught.value.keyword == next(iter(keyword))
    later = {**schema, "$schema": "http://json-schema.org/draft-04/schema#"}
    assert tokfold.Grammar.from_json_schema(later)


def test_what_a_reference_of_draft_3_hides_is_not_looked_at():
    schema = {"$schema": DRAFT_3, "$ref": "#/x", "x": {"type": "integer"}, "divisibleBy": 2}
    assert tokfold.recognize(tokfold.Grammar.from_json_schema(schema), "3").accepted
