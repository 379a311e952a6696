"""JSON in steps: Python's own reader and writer are one call each, during which no thread runs.

What is small goes through them. What is large goes through the same library's Python code, some
ten times slower, which lets other threads run after a few milliseconds as all Python code does.
"""

from __future__ import annotations

import json
import json.decoder
import json.scanner
import re
from collections.abc import Callable
from typing import Any, cast

__all__ = ["dumps", "loads", "nesting"]

_LARGE_TEXT = 1 << 18
"""Characters that the C code reads in two or three milliseconds."""

_LARGE_VALUE = 5_000
"""Values that the C code writes in a millisecond or two."""

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


def dumps(
    value: object,
    *,
    ensure_ascii: bool = True,
    default: Callable[[object], object] | None = None,
) -> str:
    """A value as JSON text, as :func:`json.dumps`, without holding up other threads."""
    if _is_small(value):
        return json.dumps(value, ensure_ascii=ensure_ascii, default=default)
    encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, default=default)
    return "".join(encoder.iterencode(value))


def _is_small(value: object) -> bool:
    """Whether there are few values in it; it may hold itself."""
    found = [value]
    for each in found:  # grows
        if isinstance(each, dict):
            if len(each) + len(found) > _LARGE_VALUE:
                return False
            found += each.values()
        elif isinstance(each, list | tuple):
            if len(each) + len(found) > _LARGE_VALUE:
                return False
            found += each
    return True


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
