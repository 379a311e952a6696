"""Schemas that come as Python values: types, mappings, and what is none of them."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    HttpUrl,
    NaiveDatetime,
    NegativeFloat,
    PastDate,
    PositiveFloat,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from tokfold import Grammar, GrammarCompiler, Vocabulary, compile, recognize
from tokfold.errors import (
    AmbiguousSourceError,
    ArgumentTypeError,
    InvalidSchemaError,
    StructuralTagError,
)

DAY = datetime.date(2024, 2, 29)
BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=[256])


def accepts(schema: Any, text: str) -> bool:
    return recognize(Grammar.from_json_schema(schema), text).accepted


def error_of(schema: Any) -> str:
    with pytest.raises(InvalidSchemaError) as error:
        Grammar.from_json_schema(schema)
    return str(error.value)


# -- annotations that are no JSON


class Default(BaseModel):
    f: float = math.inf


class Examples(BaseModel):
    f: float = Field(examples=[1.0, math.nan])


class Extra(BaseModel, json_schema_extra={"examples": [{"f": DAY}], "example": {"f": {1, 2}}}):
    f: float


@dataclasses.dataclass
class Data:
    f: float = math.inf


@pytest.mark.parametrize("schema", [Default, Examples, Extra, Data])
def test_an_annotation_of_a_type_that_is_no_json_is_left_out(schema: Any) -> None:
    assert accepts(schema, '{"f": 1.5}')
    assert not accepts(schema, '{"f": "x"}')
    compiler = GrammarCompiler(BYTES)
    assert compiler.compile_json_schema(schema) is not None


@pytest.mark.parametrize(
    "of",
    [
        lambda odd: odd,
        lambda odd: {"items": odd},
        lambda odd: {"items": [{}, odd]},
        lambda odd: {"prefixItems": ({}, odd)},
        lambda odd: {"properties": {"default": odd}},
        lambda odd: {"properties": {"properties": odd}},
        lambda odd: {"patternProperties": {"a": odd}},
        lambda odd: {"dependentSchemas": {"examples": odd}},
        lambda odd: {"dependencies": {"a": ["b"], "c": odd}},
        lambda odd: {"$defs": {"A": {"anyOf": [True, {"not": odd}]}}},
        lambda odd: {"definitions": {"items": {"items": odd}}},
    ],
)
@pytest.mark.parametrize("name", ["default", "examples", "example"])
@pytest.mark.parametrize("value", [[-math.inf], {"a": DAY}, math.nan, {(1, 2): 3}])
def test_annotations_are_left_out_wherever_schemas_stand(of: Any, name: str, value: Any) -> None:
    odd = {"minimum": 3, name: value, "maximum": 4}
    plain = {"minimum": 3, "maximum": 4}
    schema = of(odd)
    before = repr(schema)
    found = Grammar.from_json_schema(schema)
    assert repr(schema) == before
    wanted = Grammar.from_json_schema(json.loads(json.dumps(of(plain))))
    assert str(found) == str(wanted)
    assert found.notes == wanted.notes


def test_annotations_of_resources_and_of_structural_tags() -> None:
    odd = {"properties": {"f": {"type": "null", "default": math.inf}}}
    found = Grammar.from_json_schema({"$ref": "a.json"}, resources={"a.json": odd})
    assert recognize(found, '{"f": null}').accepted
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": odd}}
    assert recognize(Grammar.from_structural_tag(tag), '{"f": null}').accepted


def test_an_annotation_that_is_json_stays() -> None:
    schema = {"type": "number", "default": 1, "examples": [math.inf], "title": "Infinity"}
    notes = Grammar.from_json_schema(schema).notes
    assert [note.pointer for note in notes] == ["#/default", "#/title"]


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"enum": [1, math.nan]}, "#/enum/1"),
        ({"const": {"default": math.inf}}, "#/const/default"),
        (
            {"properties": {"a": {"enum": [{"examples": -math.inf}]}}},
            "#/properties/a/enum/0/examples",
        ),
        ({"minimum": -math.inf}, "#/minimum"),
        ({"default": math.inf, "maximum": math.inf}, "#/maximum"),
    ],
)
def test_values_that_say_something_are_refused(schema: Any, pointer: str) -> None:
    found = error_of(schema)
    assert found.startswith(f"{pointer}: line 1, column ")
    assert "is no value of JSON, which has no NaN and no Infinity; write a number" in found
    with pytest.raises(InvalidSchemaError, match=r"a\.json#.* is no value of JSON"):
        Grammar.from_json_schema({"$ref": "a.json"}, resources={"a.json": schema})


def test_a_property_of_the_name_is_no_annotation() -> None:
    with pytest.raises(TypeError, match=r"#/properties/default/const: .* of type date"):
        Grammar.from_json_schema({"properties": {"default": {"const": DAY}}})
    with pytest.raises(TypeError, match=r"#/properties/default: .* of type date"):
        Grammar.from_json_schema({"properties": {"default": DAY}})


def test_a_schema_that_holds_itself_is_refused_as_before() -> None:
    odd: dict[str, Any] = {"default": DAY, "not": {}}
    odd["not"]["not"] = odd
    with pytest.raises((TypeError, ValueError)):
        Grammar.from_json_schema(odd)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_text_with_numbers_that_json_does_not_have(name: str) -> None:
    assert error_of(f'{{\n "title": "\u00e9", "default": {name}}}') == (
        f"#/default: line 2, column 27: {name} is no value of JSON, which has no NaN and no "
        "Infinity; write a number, or leave the keyword out"
    )
    assert "expected a JSON value" in error_of('{"default": nan}')
    assert "the number is not one of JSON" in error_of('{"default": -inf}')


# -- what is no type, and what holds a schema


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_bytes_are_to_be_decoded(make: Any) -> None:
    schema = make(b"{}")
    wanted = f"the text of a schema must be a str, not {make.__name__}; decode it as UTF-8"
    with pytest.raises(ArgumentTypeError) as error:
        Grammar.from_json_schema(schema)
    assert str(error.value) == wanted
    with pytest.raises(ArgumentTypeError):
        GrammarCompiler(BYTES).compile_json_schema(schema)


def test_a_type_adapter_is_read() -> None:
    adapter = TypeAdapter(list[int])
    assert accepts(adapter, "[1]")
    assert not accepts(adapter, '["a"]')
    assert compile(adapter, BYTES) is not None
    odd = TypeAdapter(Data)
    assert accepts(odd, "{}")


@pytest.mark.parametrize("value", [Default(), Data()])
def test_a_value_of_a_model_is_refused_by_name(value: Any) -> None:
    name = type(value).__name__
    wanted = (
        f"this is a value of {name}, which says nothing about other values; pass the class {name}"
    )
    with pytest.raises(ArgumentTypeError) as error:
        Grammar.from_json_schema(value)
    assert str(error.value) == wanted
    with pytest.raises(AmbiguousSourceError) as other:
        compile(value, BYTES)
    assert str(other.value) == wanted


def test_models_of_pydantic_1() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydantic.v1 warns of Python 3.14
        v1 = pytest.importorskip("pydantic.v1")
    old = type("Old", (v1.BaseModel,), {"__annotations__": {"a": int}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for schema in (old, old(a=1)):
            with pytest.raises(ArgumentTypeError) as error:
                Grammar.from_json_schema(schema)
            assert "Old is a model of pydantic 1 (pydantic.v1)" in str(error.value)
            assert str(error.value).endswith("; pass Old.schema()")
    Grammar.from_json_schema(old.schema())


def test_what_pydantic_does_not_know_takes_one_line() -> None:
    with pytest.raises(ArgumentTypeError, match="or a type that pydantic knows, not set") as error:
        Grammar.from_json_schema(set())  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


class Calls(BaseModel):
    number: int
    call: Callable[[int], int]


class Forward(BaseModel):
    later: Later  # noqa: F821 - never defined


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Calls, "the model Calls has no JSON Schema: Cannot generate .*; give what is meant anot"),
        (TypeAdapter(list[Calls]), "TypeAdapter.* has no JSON Schema: Cannot generate .*; give "),
        (Callable[[int], int], "knows, not .*Callable.*: Cannot generate .*; give what is meant "),
        (Forward, r"the model Forward has no JSON Schema: .*Forward\.model_rebuild\(\)`\.$"),
    ],
)
def test_models_of_which_pydantic_makes_no_schema(kind: Any, said: str) -> None:
    compiler = GrammarCompiler(BYTES, seed=False)
    for call in (Grammar.from_json_schema, compiler.compile_json_schema, compiler.compile):
        with pytest.raises(ArgumentTypeError, match=said) as error:
            call(kind)
        assert "\n" not in str(error.value)


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        (
            {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
            'a tool, and the schema is a part of it: pass tool["function"]["parameters"]',
        ),
        (
            {"type": "function", "name": "f", "parameters": SCHEMA},
            'a tool, and the schema is a part of it: pass tool["parameters"]',
        ),
        (
            {"type": "json_schema", "json_schema": {"name": "f", "schema": SCHEMA}},
            'of it: pass response_format["json_schema"]["schema"]',
        ),
        (
            {"type": "json_schema", "name": "f", "schema": SCHEMA},
            'of it: pass response_format["schema"]',
        ),
        (
            {"type": "json_schema", "json_schema": SCHEMA},
            'of it: pass response_format["json_schema"]',
        ),
        ({"type": "json_object"}, 'pass the schema of any object, {"type": "object"}'),
    ],
)
def test_parts_of_requests_that_hold_a_schema(whole: Any, said: str) -> None:
    for schema in (whole, json.dumps(whole)):
        found = error_of(schema)
        assert found.startswith("#: type: expected one of ")
        assert f'found "{whole["type"]}"' in found
        assert found.endswith(said)
    with pytest.raises(InvalidSchemaError):
        compile(whole, BYTES)


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        (
            {"name": "person", "schema": SCHEMA, "strict": True},
            'a response format, and the schema is a part of it: pass response_format["schema"]',
        ),
        (
            {"json_schema": {"name": "person", "schema": SCHEMA}},
            'pass response_format["json_schema"]["schema"]',
        ),
        (
            {"name": "f", "title": "F", "inputSchema": SCHEMA},
            'a tool, and the schema is a part of it: pass tool["inputSchema"]',
        ),
        ({"name": "f", "inputSchema": {"json": SCHEMA}}, 'pass tool["inputSchema"]["json"]'),
        ({"name": "f", "description": "F", "input_schema": SCHEMA}, 'pass tool["input_schema"]'),
        ({"name": "f", "parameters": {}}, 'pass tool["parameters"]'),
        (
            {"function": {"name": "f", "parameters": SCHEMA}},
            'pass tool["function"]["parameters"]',
        ),
    ],
)
def test_parts_of_requests_without_a_type(whole: Any, said: str) -> None:
    """As schemas they would take any JSON."""
    for schema in (whole, json.dumps(whole), json.dumps(whole, indent=2)):
        found = error_of(schema)
        assert found.startswith("#: this looks like a ")
        assert found.endswith(said)
    with pytest.raises(AmbiguousSourceError) as ambiguous:
        compile(whole, BYTES)
    assert str(ambiguous.value).endswith(said)
    content = {"type": "json_schema", "json_schema": whole}
    with pytest.raises(StructuralTagError) as tag:
        Grammar.from_structural_tag({"format": content})
    assert str(tag.value).startswith("format (json_schema): this looks like a ")
    assert str(tag.value).endswith(said)


@pytest.mark.parametrize(
    "schema",
    [
        {"name": "person", "schema": SCHEMA, "type": "object"},
        {"schema": "person", "parameters": SCHEMA},
        {"name": "person", "schema": "urn:person"},
        {"properties": {"schema": {"type": "object"}}},
        {"x-schema": {}, "description": '"schema": {'},
    ],
)
def test_schemas_with_names_of_such_parts(schema: Any) -> None:
    for source in (schema, json.dumps(schema)):
        Grammar.from_json_schema(source)


def test_other_wrong_types_hold_no_schema() -> None:
    assert "this looks like" not in error_of({"type": "text", "function": {}})
    assert "this looks like" not in error_of({"not": {"type": "json_object"}})
    assert "this looks like" not in error_of({"type": ["json_object"]})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("OBJECT", "object"), ("STRING", "string"), ("Integer", "integer"), ("sting", "string")),
        *(("int", "integer"), ("str", "string"), ("dict", "object"), ("list", "array")),
        *(("float", "number"), ("bool", "boolean"), ("None", "null")),
    ],
)
def test_names_of_types_in_other_languages(name: str, meant: str) -> None:
    said = f'found "{name}"; did you mean "{meant}"?'
    assert error_of({"type": name}).endswith(said)
    assert error_of({"properties": {"a": {"type": ["null", name]}}}).endswith(said)


def test_names_of_no_type() -> None:
    assert error_of({"type": "text"}).endswith('found "text"')


# -- what pydantic checks further, and the ways out of docs/json-schema.md

HUGE = "4e404876475938242194892411"
FIVE_DIGITS = Annotated[decimal.Decimal, Field(max_digits=5)]


@pytest.mark.parametrize(
    ("kind", "extra", "text"),
    [
        (PastDate, {"pattern": "^19"}, '"2999-01-02"'),
        (datetime.timedelta, {"pattern": "^PT[0-9]{1,5}S$"}, '"P1000000000D"'),
        (HttpUrl, {"pattern": "^https://[a-z0-9.-]+/"}, '"x:y"'),
        (dict[int, str], {"propertyNames": {"pattern": "^[0-9]{1,9}$"}}, '{"a": "b"}'),
        (NaiveDatetime, {"format": "naive"}, '"2026-01-02T03:04:05Z"'),
        (fractions.Fraction, {"type": "string"}, HUGE),
        (fractions.Fraction, {"type": "string"}, '"1/0"'),
        (ByteSize, {"type": "integer"}, '"5 spoons"'),
        (decimal.Decimal, {"type": "string", "pattern": "^[0-9]{1,5}$"}, HUGE),
        (decimal.Decimal, {"type": "string", "pattern": "^[0-9]{1,5}$"}, '"a"'),
        (FIVE_DIGITS, {"type": "string", "pattern": "^[0-9]{1,5}$"}, "123456"),
    ],
)
def test_a_schema_that_says_less_than_pydantic_can_say_more(
    kind: Any, extra: dict[str, Any], text: str
) -> None:
    assert accepts(TypeAdapter(kind), text)
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_json(text)
    more = TypeAdapter(Annotated[kind, Field(json_schema_extra=extra)])
    formats = {
        "naive": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$",
        "fraction": "^-?[0-9]{1,9}/[1-9][0-9]{0,8}$",
    }
    assert not recognize(Grammar.from_json_schema(more, formats=formats), text).accepted
    page = (Path(__file__).parents[2] / "docs" / "json-schema.md").read_text(encoding="utf-8")
    assert kind is NaiveDatetime or all(json.dumps(each) in page for each in extra.values())


def test_patterns_of_python_are_not_those_of_the_format() -> None:
    assert accepts(TypeAdapter(re.Pattern), r'"\\p{Lu}"')
    with pytest.raises(ValidationError):
        TypeAdapter(re.Pattern).validate_json(r'"\\p{Lu}"')


class Color(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    RED = "red"


class Pair(enum.Enum):
    FIRST = (1, 2)


class Bits(enum.IntFlag):
    A = 2
    B = 4


@pytest.mark.parametrize("kind", [Literal[Color.RED], Pair])
def test_members_that_pydantic_reads_from_no_text(kind: Any) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    text = adapter.dump_json(Color.RED if kind is not Pair else Pair.FIRST).decode()
    assert accepts(adapter, text)
    with pytest.raises(ValidationError):
        adapter.validate_json(text)
    for other in (Color, Word, Literal[Word.RED]):
        again: TypeAdapter[Any] = TypeAdapter(other)
        assert accepts(again, '"red"')
        assert again.validate_json('"red"').value == "red"


def test_fractions() -> None:
    adapter = TypeAdapter(fractions.Fraction)
    formats = {"fraction": "^-?[0-9]{1,9}/[1-9][0-9]{0,8}$"}
    grammar = Grammar.from_json_schema(adapter, formats=formats)
    assert accepts(adapter, '"x"')
    for text in ('"x"', '"1/0"'):
        assert not recognize(grammar, text).accepted
        with pytest.raises((ValidationError, ZeroDivisionError)):
            adapter.validate_json(text)
    for text in ('"-1/3"', "0.5"):
        assert recognize(grammar, text).accepted
        assert adapter.validate_json(text) == fractions.Fraction(json.loads(text))


def test_values_that_pydantic_writes_and_leaves_out_of_its_schema() -> None:
    class Plain(BaseModel):
        model_config = ConfigDict(ser_json_inf_nan="strings")
        bits: Bits = Bits.A
        x: float = 0

    class More(Plain):
        bits: Annotated[Bits, WithJsonSchema({"enum": [0, 2, 4, 6]})] = Bits.A
        x: Annotated[
            float,
            WithJsonSchema(
                {"anyOf": [{"type": "number"}, {"enum": ["Infinity", "-Infinity", "NaN"]}]}
            ),
        ] = 0

    for values in ({"bits": Bits.A | Bits.B}, {"bits": Bits(0)}, {"x": math.inf}, {"x": -math.inf}):
        text = Plain(**values).model_dump_json()
        assert Plain.model_validate_json(text) == Plain(**values)
        assert not accepts(Plain, text)
        assert accepts(More, text)


def _with_the_tag(schema: dict[str, Any]) -> None:
    schema.setdefault("required", []).append("kind")


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class TaggedDog(Dog):
    model_config = ConfigDict(json_schema_extra=_with_the_tag)


class TaggedCat(Cat):
    model_config = ConfigDict(json_schema_extra=_with_the_tag)


class WrittenDog(Dog):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class WrittenCat(Cat):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


def either(first: type, second: type) -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[first | second, Field(discriminator="kind")])


def test_tags_of_unions_that_have_a_default() -> None:
    without, tagged = either(Dog, Cat), either(TaggedDog, TaggedCat)
    written = either(WrittenDog, WrittenCat).json_schema(mode="serialization")
    for text in ("{}", '{"lives": 3}'):
        assert accepts(without, text)
        with pytest.raises(ValidationError, match="union_tag_not_found"):
            without.validate_json(text)
        assert not accepts(tagged, text)
        assert not accepts(written, text)
    for text in ('{"kind": "dog", "name": "x"}', '{"kind": "cat", "lives": 3}'):
        assert tagged.validate_json(text)
        assert all(accepts(schema, text) for schema in (without, tagged, written))
    assert TaggedDog.model_json_schema()["required"] == ["name", "kind"]
    assert accepts(tagged, '{"kind": "cat"}')
    assert not accepts(written, '{"kind": "cat"}')  # `lives` is required too


@pytest.mark.parametrize(
    ("kind", "exact", "texts"),
    [
        (PositiveFloat, Field(ge=math.nextafter(0, 1)), ["1e-400", "2e-324", "0.0e1"]),
        (NegativeFloat, Field(le=math.nextafter(0, -1)), ["-1e-400", "-2e-324"]),
        (
            Annotated[float, Field(gt=1)],
            Field(ge=math.nextafter(1, 2)),
            ["1.00000000000000000001", "1"],
        ),
    ],
)
def test_numbers_that_are_a_bound_once_they_are_rounded(
    kind: Any, exact: Any, texts: list[str]
) -> None:
    closed = TypeAdapter(Annotated[float, exact])
    for text in texts:
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_json(text)
        assert not accepts(closed, text)
    assert accepts(TypeAdapter(kind), texts[0])
    for text in ("5e-324", "-5e-324", "1.0000000000000003", "-7", "1e300"):
        if accepts(closed, text):
            assert TypeAdapter(kind).validate_json(text) is not None


@pytest.mark.parametrize(
    ("value", "written", "is_duration"),
    [
        ({"days": 1, "seconds": 5, "microseconds": 3}, "P1DT5.000003S", False),
        ({"seconds": -5}, "-PT5S", False),
        ({"days": 400}, "P1Y35D", False),
        ({"hours": 1, "seconds": 4}, "PT1H4S", False),
        ({"days": 365}, "P1Y", True),
        ({"days": 1, "hours": 2}, "P1DT2H", True),
        ({}, "PT0S", True),
    ],
)
def test_durations_that_pydantic_writes(
    value: dict[str, int], written: str, is_duration: bool
) -> None:
    class InSeconds(BaseModel):
        model_config = ConfigDict(ser_json_timedelta="float")
        lasts: datetime.timedelta

    delta = datetime.timedelta(**value)
    text = TypeAdapter(datetime.timedelta).dump_json(delta).decode()
    assert text == f'"{written}"'
    assert accepts(datetime.timedelta, text) is is_duration
    free = Grammar.from_json_schema(datetime.timedelta, formats={"duration": None})
    assert recognize(free, text).accepted
    schema = InSeconds.model_json_schema(mode="serialization")
    assert accepts(schema, InSeconds(lasts=delta).model_dump_json())
