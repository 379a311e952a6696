"""What errors of schemas say about mistakes that the core does not tell apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tokfold import _core, _json
from tokfold._quoting import quoted
from tokfold.errors import InvalidSchemaError, SchemaError

_IN_LARK = re.compile(
    r"line (\d+), column (\d+)(: .* \(the schema stands at line (\d+), column (\d+)\))", re.DOTALL
)
"""What is wrong with the text of a schema in Lark, at a place counted from where it begins."""

_PARTS = {
    "json_schema": "schema",
    "schema": "",
    "function": "parameters",
    "parameters": "",
    "input_schema": "",
    "inputSchema": "json",
}
"""Where a schema stands in an object of a request, and perhaps below that."""

_SHORT = 1 << 16
"""Letters of a text that is read twice where that may be of use."""

_HAS_PART = re.compile(rf'"(?:{"|".join(_PARTS)})"\s*:\s*\{{')

NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
"""What Python writes for floats that JSON does not have."""


def explained(error: InvalidSchemaError, text: str) -> InvalidSchemaError:
    """The error of a schema of this text, which says more where the cause is known."""
    name = _number_at(error.reason, text)
    if name is not None:
        reason = (
            f"{error.reason.partition(': ')[0]}: {name} is no value of JSON, which has no NaN and "
            "no Infinity; write a number, or leave the keyword out"
        )
        return InvalidSchemaError(
            f"{error.pointer}: {reason}", error.pointer, error.keyword, reason
        )
    if error.pointer == "#" and text.endswith(".json") and "\n" not in text:
        reason = (
            f"{error.reason}; to read a file, pass json.loads(Path({quoted(text)}).read_text())"
        )
        return InvalidSchemaError(f"#: {reason}", "#", error.keyword, reason)
    if (error.pointer, error.keyword) != ("#", "type"):
        return error
    more = _wrapper(text)
    if more is None:
        return error
    reason = f"{error.reason}; {more}"
    return InvalidSchemaError(f"#: type: {reason}", "#", "type", reason)


def in_lark(error: SchemaError) -> SchemaError:
    """The error of a schema in Lark text, whose places are those of the Lark text."""
    found = _IN_LARK.fullmatch(error.reason)
    if found is None:
        return error
    line, column, first_line, first_column = (int(found[i]) for i in (1, 2, 4, 5))
    column += first_column - 1 if line == 1 else 0
    reason = f"line {line + first_line - 1}, column {column}{found[3]}"
    message = str(error).removesuffix(error.reason) + reason
    return type(error)(message, error.pointer, error.keyword, reason)


def check_is_whole(schema: object) -> None:
    """Refuse an object of a request that holds a schema, and that would take any JSON as one.

    A long text is not read for that: the notes of its grammar warn.
    """
    if isinstance(schema, str):
        is_short = len(schema) <= _SHORT
        schema = _read(schema) if is_short and _HAS_PART.search(schema) else None
    reason = part_meant(schema) if isinstance(schema, Mapping) else None
    if reason is not None:
        raise InvalidSchemaError(f"#: {reason}", "#", "", reason)


def part_meant(found: Mapping[Any, Any]) -> str | None:
    """What to pass instead of an object of a request that holds a schema.

    None for all else, and where a keyword of JSON Schema constrains something.
    """
    path = _part(found)
    if path is None or any(role(name) == "constrains" for name in found if isinstance(name, str)):
        return None
    return _said(path, "schema" in found or "json_schema" in found)


def role(name: str) -> str | None:
    """What a keyword of JSON Schema does; None for a name that is none."""
    return _core.keyword_role(name) if name.isascii() else None


def _read(text: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return _json.loads(text)
    except (ValueError, RecursionError):
        return None


def _part(found: Mapping[Any, Any]) -> str | None:
    """Where the schema stands in an object of a request; None where there is none."""
    for name, below in _PARTS.items():
        value = found.get(name)
        if isinstance(value, Mapping) and (name != "parameters" or "name" in found):
            return f'["{name}"]["{below}"]' if below in value else f'["{name}"]'
    return None


def _said(path: str, is_format: bool) -> str:
    what, name = ("response format", "response_format") if is_format else ("tool", "tool")
    return f"this looks like a {what}, and the schema is a part of it: pass {name}{path}"


def _wrapper(text: str) -> str | None:
    """What to pass instead of an object of a request that says its type; None for all else."""
    found = _read(text)
    if not isinstance(found, dict):
        return None
    type_ = found.get("type")
    if type_ in ("function", "json_schema"):
        is_format = type_ == "json_schema"
        return _said(_part(found) or f'["{"schema" if is_format else "parameters"}"]', is_format)
    if type_ == "json_object":
        return (
            "this looks like a response format for any object: pass the schema of any object, "
            '{"type": "object"}'
        )
    return None


def _number_at(reason: str, text: str) -> str | None:
    """Which of :data:`NO_NUMBERS` stands where an error says that no value of JSON does."""
    found = re.match(
        r"line (\d+), column (\d+): (?:expected a JSON value|the number is not)", reason
    )
    if found is None:
        return None
    line, column = int(found[1]), int(found[2])
    lines = text.split("\n")
    rest = lines[line - 1][column - 1 :] if line <= len(lines) else ""
    return next((name for name in NO_NUMBERS if rest.startswith(name)), None)
