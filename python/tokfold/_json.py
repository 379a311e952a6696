"""JSON in steps: Python's own reader and writer are one call each, during which no thread runs.

The core writes. Python's own reader reads what is small; what is large goes through the same
library's Python code, some ten times slower, which lets other threads run after a few milliseconds
as all Python code does.
"""

from __future__ import annotations

import json
import json.decoder
import json.scanner
import re
from collections.abc import Callable
from typing import Any, cast

from tokfold import _core

__all__ = ["dumps", "loads", "nesting"]

_LARGE_TEXT = 1 << 18
"""Characters that the C code reads in two or three milliseconds."""

_MOST_LEVELS = 10_000
_MOST_VALUES = 10_000_000
"""Bounds of what is written."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[\[\]{}]")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


class _InSteps(json.JSONDecoder):
    """The decoder with its loops in Python; single strings and numbers are still read in C."""

    def __init__(self, *, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None) -> None:
        super().__init__(object_pairs_hook=object_pairs_hook)
        decoder = cast("Any", json.decoder)
        self.parse_object = decoder.JSONObject
        self.parse_array = decoder.JSONArray
        self.scan_once = cast("Any", json.scanner).py_make_scanner(self)


def loads(
    text: str, *, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:  # noqa: ANN401 - JSON
    """A JSON text as a value, as :func:`json.loads`, without holding up other threads."""
    if len(text) < _LARGE_TEXT or text.startswith("\ufeff"):
        return json.loads(text, object_pairs_hook=object_pairs_hook)
    return _InSteps(object_pairs_hook=object_pairs_hook).decode(text)


def dumps(value: object, *, default: Callable[[object], object] | None = None) -> str:
    """A value as JSON text, as :func:`json.dumps`, without holding up other threads.

    Raises:
        TypeError: a part of it is no JSON value.
        ValueError: it holds itself, or is too large.
    """
    written = _core.json_text(value, _MOST_LEVELS, _MOST_VALUES, default)
    if isinstance(written, str):
        return written
    why, _, name = written
    if why in ("levels", "values"):
        raise ValueError("the value is nested too deeply, holds itself, or is too large")
    raise TypeError(f"a {'name' if why == 'name' else 'value'} of type {name} is no JSON")


def nesting(text: str) -> int:
    """Levels of brackets outside strings, whether the text is JSON or not."""
    if len(text) < _LARGE_TEXT:
        brackets = iter(_BRACKET.findall(_STRING.sub("", text)))
    else:
        brackets = (found[0] for found in _STRING_OR_BRACKET.finditer(text))
    deepest = level = 0
    for bracket in brackets:
        if bracket in "[{":
            level += 1
            if level > deepest:
                deepest = level
        elif bracket in "]}":
            level -= 1
    return deepest
