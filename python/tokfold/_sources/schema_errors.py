"""What errors of schemas say about mistakes that the core does not tell apart."""

from __future__ import annotations

import re

from tokfold.errors import InvalidSchemaError

__all__ = ["explained"]

NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
"""What Python writes for floats that JSON does not have."""


def explained(error: InvalidSchemaError, text: str) -> InvalidSchemaError:
    """The error of a schema of this text, which says more where the cause is known."""
    name = _number_at(error.reason, text)
    if name is None:
        return error
    place = error.reason.partition(": ")[0]
    reason = (
        f"{place}: {name} is no value of JSON, which has no NaN and no Infinity; write a number, "
        "or leave the keyword out"
    )
    return InvalidSchemaError(f"{error.pointer}: {reason}", error.pointer, error.keyword, reason)


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
