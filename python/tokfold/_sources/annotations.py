"""Annotations of schemas that are no JSON: such as the default of ``f: float = math.inf``.

An annotation says nothing about validity, so it can be left out; ``enum`` and ``const`` cannot.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from tokfold._text_checks import MAX_JSON_NODES, json_text

ANNOTATIONS = frozenset({"default", "examples", "example"})
"""Keywords whose values may be any JSON, and say nothing about validity."""

SCHEMAS = frozenset(
    {
        *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"),
        *("items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
        *("allOf", "anyOf", "oneOf", "prefixItems"),
    }
)
"""Keywords whose value is a schema, or a list of schemas."""

SCHEMAS_BY_NAME = frozenset(
    {
        *("$defs", "definitions", "dependencies", "dependentSchemas"),
        *("patternProperties", "properties"),
    }
)
"""Keywords whose value has schemas under names that are no keywords."""

Kind = Literal["schema", "schemas", "names", "data"]


class _TooManyError(Exception):
    """There are more values than a schema may have; it may hold itself."""


class _Step(NamedTuple):
    found: Any
    copy: Any
    kind: Kind


def schema_text(schema: object, what: str, **bounds: Any) -> str:
    """As :func:`tokfold._text_checks.json_text`, without annotations that are no JSON."""
    try:
        text = json_text(schema, what, **bounds)
    except TypeError:
        mended = without_odd_annotations(schema)
        if mended is schema:
            raise
        return json_text(mended, what, **bounds)
    if "NaN" not in text and "Infinity" not in text:
        return text
    mended = without_odd_annotations(schema)
    return text if mended is schema else json_text(mended, what, **bounds)


def without_odd_annotations(schema: object) -> object:
    """The schema without annotations that are no JSON; itself where it has none, or is too large.

    Values that no keyword above leads to stay as they are.
    """
    if not isinstance(schema, dict):
        return schema
    whole: dict[object, object] = {}
    work = [_Step(schema, whole, "schema")]
    count = 0
    is_changed = False
    try:
        while work:
            found, copy, kind = work.pop()
            count += 1 + len(found)
            if count > MAX_JSON_NODES:
                return schema
            for key, value in found.items() if isinstance(found, dict) else enumerate(found):
                if kind == "schema" and key in ANNOTATIONS and not _is_json(value):
                    is_changed = True
                    continue
                below = _kind_below(kind, key, value)
                made = value
                if below != "data":
                    made = {} if isinstance(value, dict) else []
                    work.append(_Step(value, made, below))
                if isinstance(copy, dict):
                    copy[key] = made
                else:
                    copy.append(made)
    except _TooManyError:
        return schema
    return whole if is_changed else schema


def _kind_below(kind: Kind, key: object, value: object) -> Kind:
    """What a member of a schema, of schemas by name or of a list of schemas is."""
    if isinstance(value, dict):
        if kind != "schema" or key in SCHEMAS:
            return "schema"
        return "names" if key in SCHEMAS_BY_NAME else "data"
    is_list = isinstance(value, list | tuple)
    return "schemas" if is_list and kind == "schema" and key in SCHEMAS else "data"


def _is_json(value: object) -> bool:
    """Whether a value can be written as JSON; raises where it holds too many values, or itself."""
    found = [value]
    for each in found:  # grows
        if isinstance(each, dict):
            if not all(key is None or isinstance(key, str | int | float) for key in each):
                return False
            found += each.values()
        elif isinstance(each, list | tuple):
            found += each
        elif isinstance(each, float):
            if not math.isfinite(each):
                return False
        elif not (each is None or isinstance(each, str | int)):
            return False
        if len(found) > MAX_JSON_NODES:
            raise _TooManyError
    return True
