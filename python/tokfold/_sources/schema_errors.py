"""What errors of schemas say about mistakes that the core does not tell apart."""

from __future__ import annotations

import re

from tokfold import _json
from tokfold.errors import InvalidSchemaError, SchemaError

__all__ = ["explained", "in_lark"]

_IN_LARK = re.compile(
    r"line (\d+), column (\d+)(: .* \(the schema stands at line (\d+), column (\d+)\))", re.DOTALL
)
"""What is wrong with the text of a schema in Lark, at a place counted from where it begins."""

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
        reason = f"{error.reason}; to read a file, pass json.loads(Path({text!r}).read_text())"
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


def _wrapper(text: str) -> str | None:
    """What to pass instead of an object of a request that holds a schema; None for all else."""
    try:
        found = _json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    name = found.get("type")
    if name == "function":
        is_nested = isinstance(found.get("function"), dict)
        path = '["function"]["parameters"]' if is_nested else '["parameters"]'
        return f"this looks like a tool, and the schema is a part of it: pass tool{path}"
    if name == "json_schema":
        below = found.get("json_schema")
        if not isinstance(below, dict):
            path = '["schema"]'
        elif "schema" in below:
            path = '["json_schema"]["schema"]'
        else:
            path = '["json_schema"]'
        return (
            "this looks like a response format, and the schema is a part of it: pass "
            f"response_format{path}"
        )
    if name == "json_object":
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
