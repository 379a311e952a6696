"""A schema in the text of a tag means what it means by itself: numbers, names, broken JSON."""

import json

import pytest
import tokfold
from tokfold import Grammar, recognize
from tokfold._tags.reading import read

BIG = "9" * 5_000

SAME = [
    ('{"const": 9007199254740993.0}', ("9007199254740993", "9007199254740992")),
    ('{"const": 1.50}', ("1.5", "1.50", "2")),
    ('{"const": 1e2}', ("100", "1e2")),
    ('{"const": -0}', ("-0", "0")),
    ('{"enum": [0.1000000000000000055511151231257827, "1e400"]}', ("0.1", '"1e400"')),
    ('{"type": "number", "minimum": 1e400}', ("1", "1e400")),
    (f'{{"type": "integer", "maximum": {BIG}}}', ("5", BIG, f"1{BIG}")),
    (f'{{"const": {BIG}}}', (BIG, BIG[1:])),
    ('{"type": "string", "minLength": 3e0, "maxLength": 4.0}', ('"aa"', '"aaa"', '"aaaaa"')),
]

DOUBLED = [
    '{"type": "integer", "type": "string"}',
    '{"properties": {"a": {"minimum": 1e400, "type": "integer", "type": "string"}}}',
    '{"const": {"a": 1, "a": 1}}',
]


def tag(schema: str) -> str:
    return f'{{"format": {{"type": "json_schema", "json_schema": {schema}}}}}'


@pytest.mark.parametrize(("schema", "texts"), SAME, ids=lambda value: str(value)[:40])
def test_numbers_keep_their_digits(schema, texts):
    alone, within = Grammar.from_json_schema(schema), Grammar.from_structural_tag(tag(schema))
    for text in texts:
        assert recognize(within, text).accepted == recognize(alone, text).accepted, text


@pytest.mark.parametrize("schema", DOUBLED)
def test_a_name_that_stands_twice_in_a_schema_is_refused(schema):
    with pytest.raises(tokfold.InvalidSchemaError, match="this name before") as alone:
        Grammar.from_json_schema(schema)
    with pytest.raises(tokfold.InvalidSchemaError, match="this name before") as within:
        Grammar.from_structural_tag(tag(schema))
    assert within.value.pointer == f"#/format/json_schema{alone.value.pointer[1:]}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format": {}, "format": {}}', "the name 'format' stands twice"),
        (
            '{"format": {"type": "regex", "type": "regex", "pattern": "a"}}',
            "format: the name 'type' stands twice",
        ),
        (
            '{"format": {"elements": [{"value": "a"}, {"value": "a", "value": "b"}]}}',
            r"format.elements\[1\]: the name 'value' stands twice",
        ),
    ],
)
def test_a_name_that_stands_twice_in_a_tag_is_refused(text, said):
    with pytest.raises(tokfold.StructuralTagError, match=f"^{said} in one object; leave one out$"):
        Grammar.from_structural_tag(text)


def test_no_number_but_those_of_json():
    with pytest.raises(tokfold.InvalidSchemaError, match="NaN is no value of JSON"):
        Grammar.from_structural_tag(tag('{"minimum": NaN}'))


def test_numbers_of_the_tag_itself():
    def of(number: str) -> object:
        return read(f'{{"format": {{"type": "any_text", "max_chars": {number}}}}}')

    assert of("2e1") == of("20.0") == of("20")
    for number, shown in (("1e400", "1e400"), ("1.50", "1.50"), (BIG, "9" * 39 + "…")):
        with pytest.raises(tokfold.StructuralTagError, match=f"not the number {shown}$"):
            of(number)


def test_a_byte_order_mark_is_no_part_of_a_tag():
    assert read("\ufeff" + tag("{}")) == read(tag("{}"))
    with pytest.raises(tokfold.StructuralTagError, match="line 1, column 2: "):
        Grammar.from_structural_tag("\ufeff{")


def test_text_and_values_are_equal_where_their_numbers_are():
    schema = '{"enum": [1, 2.5, -3e-05, %s], "minimum": 1.0}' % ("9" * 700)
    given = json.loads(tag(schema))
    assert Grammar.from_structural_tag(tag(schema)) == Grammar.from_structural_tag(given)
    assert read(tag(schema)) == read(given)


def test_a_text_that_looks_like_what_stands_for_a_number():
    """Numbers are put into the text of a schema after it is written."""
    schema = '{"enum": [1e400, "null", null, "%s"]}'
    kept = read(tag(schema % "a"))
    for _ in range(3):  # whatever stood for the number last
        again = read(tag(schema % json.dumps(kept.schema)[1:-1]))
        assert json.loads(again.schema)["enum"][1:] == ["null", None, kept.schema]
        kept = again


def test_large_tags_too():
    """Those are read by other code."""
    schema = '{"const": 9007199254740993.0, "description": "%s"}' % ("a" * (1 << 18))
    assert '"const": 9007199254740993.0' in read(tag(schema)).schema
