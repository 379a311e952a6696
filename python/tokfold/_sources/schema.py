"""JSON Schemas as users hold them: what they may be, and the options of their texts."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Any

from tokfold import _core
from tokfold._checks import is_one_of, whole_number, wrong_type
from tokfold._extras import require
from tokfold._quoting import quoted
from tokfold._schema_records import RuleOrigin, SchemaNote, SchemaPlace, SchemaReason
from tokfold._sources.annotations import schema_text
from tokfold._sources.characters import lone_surrogate
from tokfold._sources.record import Converted, Lookahead, Source
from tokfold._sources.schema_errors import check_is_whole, explained
from tokfold._sources.types import (
    is_adapter,
    is_value_of_model,
    made_by_pydantic,
    old_model,
    said_of_value,
)
from tokfold.errors import ArgumentTypeError, InvalidSchemaError
from tokfold.limits import DEFAULT_LIMITS, Limits, check_limits

DIALECTS = ("draft-04", "openapi-3.0", "draft-06", "draft-07", "2019-09", "2020-12")
"""What ``dialect`` may be."""

MAX_WHITESPACE = 32
"""Characters of white space at one place, by default."""

MOST_DIGITS = 1_000
MOST_DEPTH = 256
MOST_INDENT = 64


@dataclass(frozen=True)
class SchemaSource(Source):
    """A schema and how it is to be converted; equal ones have equal grammars."""

    text: str
    resources: list[tuple[str, str]]
    fields: dict[str, Any]
    _key: tuple[object, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields = tuple(sorted((name, str(value)) for name, value in self.fields.items()))
        object.__setattr__(self, "_key", (self.text, tuple(self.resources), fields))

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def lookahead(self) -> Lookahead:
        return "implied"

    @property
    def is_text(self) -> bool:
        return "markers" not in self.fields

    @property
    def key(self) -> SchemaSource:
        return self

    @property
    def said(self) -> tuple[object, ...]:
        return "schema", self.fingerprint

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all of it, in hexadecimal."""
        return hashlib.sha256(repr(("json schema", self._key)).encode()).hexdigest()

    def convert(self, limits: Limits | None, interrupt: _core.Interrupt | None) -> Converted:
        for text in (self.text, *(each for pair in self.resources for each in pair)):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                found = lone_surrogate(text, error)
                raise InvalidSchemaError(
                    f"#: {found}", "#", "", "a lone surrogate is no character"
                ) from error
        try:
            result = _core.convert_json_schema(
                self.text, self.resources, self.fields, limits, interrupt
            )
        except InvalidSchemaError as error:
            uri = error.pointer.partition("#")[0]
            text = dict(self.resources).get(uri, "") if uri else self.text
            raise explained(error, text) from error
        return converted(result)

    def notes(self, limits: Limits | None, ends: _core.Interrupt | None) -> list[SchemaNote]:
        """What there is to say of its keywords; the schema is converted again."""
        found = _core.schema_notes(self.text, self.resources, self.fields, limits, ends)
        return [SchemaNote(*note) for note in found]

    def origins(self, limits: Limits | None, ends: _core.Interrupt | None) -> list[RuleOrigin]:
        """Where each rule of the grammar comes from, likewise."""
        found = _core.schema_rule_origins(self.text, self.resources, self.fields, limits, ends)
        return [RuleOrigin(tuple(pointers), said) for pointers, said in found]

    def place(
        self,
        document: bytes,
        read: int,
        is_whole: bool,
        limits: Limits | None,
        ends: _core.Interrupt | None,
    ) -> SchemaPlace | None:
        """What the schema says of the place up to which its grammar reads a document, likewise."""
        found = _core.explain_document(
            self.text, self.resources, self.fields, document, read, is_whole, limits, ends
        )
        if found is None:
            return None
        reasons = tuple(SchemaReason(tuple(pointers), said) for pointers, said in found[1])
        return SchemaPlace(found[0], reasons)

    @classmethod
    def of(
        cls,
        schema: object,
        *,
        dialect: str | None,
        key_order: str,
        whitespace: str,
        max_whitespace: int | None,
        indent: int | None,
        separators: tuple[str, str] | None,
        max_digits: int | None,
        max_depth: int | None,
        integers: str,
        escapes: str,
        formats: str | Mapping[str, str | None],
        additional_properties: bool,
        resources: Mapping[str, object] | None,
        lossy: Collection[str],
        limits: Limits | None,
    ) -> SchemaSource:
        """Check the options."""
        check_limits(limits)
        if dialect is not None:
            _check("dialect", dialect, *DIALECTS)
        _check("key_order", key_order, "schema", "any")
        _check("whitespace", whitespace, "any", "compact", "spaced")
        _check("integers", integers, "1", "1.0")
        _check("escapes", escapes, "standard", "any", "plain")
        own = _own_formats(formats)
        if (
            isinstance(lossy, str | bytes)
            or not isinstance(lossy, Collection)
            or any(keyword != "uniqueItems" for keyword in lossy)
        ):
            raise ValueError(
                "lossy must be a set of keywords, of which 'uniqueItems' is the only one: "
                f"lossy={{'uniqueItems'}}, not {quoted(lossy)}"
            )
        if not isinstance(additional_properties, bool):
            raise TypeError("additional_properties must be True or False")
        fields: dict[str, Any] = {
            "any_order": key_order == "any",
            "integers_with_fraction": integers == "1.0",
            "escapes": escapes,
            "assert_formats": formats != "annotation",
            "open_objects": additional_properties,
            "lossy_unique_items": "uniqueItems" in lossy,
            **_whitespace(whitespace, max_whitespace, indent, separators),
        }
        if max_digits is not None:
            fields["max_digits"] = _number("max_digits", max_digits, 1, MOST_DIGITS)
        if max_depth is not None:
            fields["max_depth"] = _number("max_depth", max_depth, 0, MOST_DEPTH)
        if dialect is not None:
            fields["dialect"] = dialect
        if own:
            fields["formats"] = own
        if resources is not None and not isinstance(resources, Mapping):
            raise wrong_type("resources", "a mapping of URIs to schemas", resources)
        for uri in resources or {}:
            if not isinstance(uri, str):
                raise wrong_type("a URI of resources", "a str", uri)
        check_is_whole(schema)
        given = sorted((uri, text_of(value, limits)) for uri, value in (resources or {}).items())
        return cls(text_of(schema, limits), given, fields)


def converted(found: tuple[_core.Grammar, list[str]]) -> Converted:
    """What becomes of a schema: a grammar and what is not enforced, as the core says it."""
    core, not_enforced = found
    return Converted(core, tuple(not_enforced))


def _own_formats(formats: object) -> list[tuple[str, str]]:
    """The formats that are patterns of the caller, by name."""
    if not isinstance(formats, Mapping):
        _check(
            "formats", formats, "assert", "annotation", more=" or a mapping of names to patterns"
        )
        return []
    for name, pattern in formats.items():
        if not isinstance(name, str):
            raise wrong_type("a name of formats", "a str", name)
        if not isinstance(pattern, str | None):
            raise TypeError(
                f"formats[{quoted(name)}] must be a pattern as text, or None for no condition, not "
                f"{quoted(pattern)}"
            )
    # An empty pattern is found in every string.
    return sorted((name, pattern or "") for name, pattern in formats.items())


def _check(name: str, value: object, *values: str, more: str = "") -> None:
    if not is_one_of(value, values):
        allowed = " or ".join(map(repr, values))
        raise ValueError(f"{name} must be {allowed}{more}, not {quoted(value)}")


def _number(name: str, value: object, least: int, most: int) -> int:
    number = whole_number(value)
    if number is None or not least <= number <= most:
        raise ValueError(
            f"{name} must be a number from {least} to {most}, or None, not {quoted(value)}"
        )
    return number


def _whitespace(
    whitespace: str,
    most: int | None,
    indent: int | None,
    separators: tuple[str, str] | None,
) -> dict[str, Any]:
    if most is not None and ((number := whole_number(most)) is None or number < 0):
        raise ValueError(f"max_whitespace must be a number from 0, or None, not {quoted(most)}")
    if indent is None and separators is None:
        if whitespace == "any":
            # No text has more bytes.
            return {"max_whitespace": most if most is None else min(int(most), 2**31)}
        separators = (",", ":") if whitespace == "compact" else (", ", ": ")
    if separators is None:
        separators = (",", ": ")
    if isinstance(separators, str) or not isinstance(separators, Sequence) or len(separators) != 2:
        raise ValueError(
            "separators must be two texts, behind an item and behind a name, as (',', ':'), not "
            f"{quoted(separators)}"
        )
    item, name = separators
    blank = {" ", "\t", "\n", "\r"}
    for text, mark in ((item, ","), (name, ":")):
        if not isinstance(text, str) or not text.startswith(mark) or set(text[1:]) - blank:
            raise ValueError(
                f"separators must be {quoted(mark)} and white space behind it, not {quoted(text)}"
            )
    if indent is None:
        return {"separators": (item, name)}
    columns = whole_number(indent)
    if columns is None or not 0 <= columns <= MOST_INDENT:
        raise ValueError(f"indent must be a number from 0 to {MOST_INDENT}, not {quoted(indent)}")
    return {"indented": (columns, item, name)}


def text_of(schema: object, limits: Limits | None) -> str:
    """The text of a schema: text, a value of JSON, a pydantic model, or another type."""
    if isinstance(schema, str):
        return schema
    levels = (limits or DEFAULT_LIMITS).max_nesting
    written = partial(schema_text, what="JSON schema", levels=levels, limit="max_nesting")
    if schema is None or isinstance(schema, (bool, int, float, Mapping, list, tuple)):
        value = dict(schema) if isinstance(schema, Mapping) else schema
        return written(value)
    if isinstance(schema, PathLike):
        raise ArgumentTypeError(
            f"a schema must be its text or a mapping, not a path: pass "
            f"json.loads(Path({quoted(str(schema))}).read_text())"
        )
    if isinstance(schema, bytes | bytearray | memoryview):
        raise ArgumentTypeError(
            f"the text of a schema must be a str, not {type(schema).__name__}; decode it as UTF-8"
        )
    if is_value_of_model(schema):
        raise ArgumentTypeError(said_of_value(schema))
    if is_adapter(schema):
        return written(made_by_pydantic(schema.json_schema, f"{quoted(schema)} has no JSON Schema"))
    of_model = getattr(schema, "model_json_schema", None)
    if of_model is not None:
        name = getattr(schema, "__name__", quoted(schema))
        return written(made_by_pydantic(of_model, f"the model {name} has no JSON Schema"))
    name = old_model(schema)
    if name is not None:
        raise ArgumentTypeError(
            f"{name} is a model of pydantic 1 (pydantic.v1), which pydantic 2 cannot describe; "
            f"pass {name}.schema()"
        )
    pydantic = require("pydantic", "pydantic", f"the schema of {quoted(schema)}")
    kinds = "text, a mapping, a bool or a type that pydantic knows"
    what = f"a schema must be {kinds}, not {quoted(schema)}"
    return written(made_by_pydantic(lambda: pydantic.TypeAdapter(schema).json_schema(), what))
