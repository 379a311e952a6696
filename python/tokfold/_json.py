"""JSON in steps: Python's own reader and writer are one call each, during which no thread runs.

What :func:`read` reads :func:`dumps` writes with the digits of its numbers, and with names that
stand twice, where :func:`loads` keeps what Python's numbers and dicts do.

The core writes. Python's own reader reads what is small; what is large goes through the same
library's Python code, some ten times slower, which lets other threads run after a few milliseconds
as all Python code does.
"""

from __future__ import annotations

import hashlib
import json
import json.decoder
import json.scanner
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from tokfold import _core

_LARGE_TEXT = 1 << 18
"""Characters that the C code reads in two or three milliseconds."""

_MOST_LEVELS = 10_000
_MOST_VALUES = 10_000_000
"""Bounds of what is written."""

_MOST_DIGITS = 640
"""Digits of an integer that Python reads whatever its limit is."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[\[\]{}]")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


@dataclass(frozen=True, slots=True)
class Number:
    """A number that Python would write otherwise than the text has it."""

    text: str

    def __str__(self) -> str:
        return self.text


class Repeated(dict[str, Any]):
    """An object in which a name stands twice: the last one counts, and all are written."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def items(self) -> Any:  # noqa: ANN401 - a list, where a dict has a view
        """All members."""
        return self._pairs

    @property
    def name(self) -> str:
        """The name that stands there most often."""
        return Counter(name for name, _ in self._pairs).most_common(1)[0][0]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Repeated(pairs)


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= _MOST_DIGITS and text != "-0" else Number(text)


def _fraction(text: str) -> float | Number:
    value = float(text)
    return value if repr(value) == text else Number(text)


class _InSteps(json.JSONDecoder):
    """The decoder with its loops in Python; single strings and numbers are still read in C."""

    def __init__(self, **hooks: Any) -> None:
        super().__init__(**hooks)
        decoder = cast("Any", json.decoder)
        self.parse_object = decoder.JSONObject
        self.parse_array = decoder.JSONArray
        self.scan_once = cast("Any", json.scanner).py_make_scanner(self)


def loads(text: str, **hooks: Any) -> Any:  # noqa: ANN401 - JSON
    """A JSON text as a value, as :func:`json.loads`, without holding up other threads."""
    if len(text) < _LARGE_TEXT or text.startswith("\ufeff"):
        return json.loads(text, **hooks)
    return _InSteps(**hooks).decode(text)


def read(text: str) -> Any:  # noqa: ANN401 - JSON
    """A JSON text as a value, with :class:`Number` and :class:`Repeated` in it; a mark is skipped.

    Raises:
        json.JSONDecodeError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    return loads(
        text.removeprefix("\ufeff"),
        object_pairs_hook=_object,
        parse_int=_integer,
        parse_float=_fraction,
    )


def dumps(value: object, *, default: Callable[[object], object] | None = None) -> str:
    """A value as JSON text, as :func:`json.dumps`, without holding up other threads."""
    numbers: list[str] = []
    stand_in: str | None = None

    def made(part: object) -> object:
        if isinstance(part, Number):
            numbers.append(part.text)
            return stand_in
        if default is None:
            raise TypeError(f"a value of type {type(part).__name__} is no JSON")
        return default(part)

    text = _written(value, made)
    if not numbers:
        return text
    # No string in the text is a digest of the text.
    stand_in = hashlib.sha256(text.encode()).hexdigest()
    numbers.clear()
    first, *rest = _written(value, made).split(f'"{stand_in}"')
    return first + "".join(map("".join, zip(numbers, rest, strict=True)))


def _written(value: object, default: Callable[[object], object]) -> str:
    written = _core.json_text(value, _MOST_LEVELS, _MOST_VALUES, default)
    if isinstance(written, str):
        return written
    why, _, name = written
    if why in ("levels", "values"):
        raise ValueError("the value is nested too deeply, holds itself, or is too large")
    raise TypeError(f"a name of type {name} is no JSON")


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
