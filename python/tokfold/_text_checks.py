"""Texts and JSON values as callers bring them, checked before code that recurses reads them.

JSON is read and written here without recursion. Bounds of XGrammar's converters alone stand in
:mod:`tokfold._converters`.
"""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

from tokfold import _core, _json
from tokfold.errors import LimitExceededError, UnsupportedGrammarError

MAX_JSON_NESTING = 200
"""Levels of JSON text. Its readers, XGrammar's and Python's, recurse: on a stack of 512 KiB
XGrammar's dies between 1,000 and 3,000 levels. Of 2,000 schemas of MaskBench none has over 22."""

MAX_JSON_NODES = 1_000_000
"""Values and names in a value that is to become JSON: shared parts count as often as they are
written, which doubles with every level."""

TAG_LEVELS = 400
"""Levels of JSON of a structural tag: two for each of 100 formats, and a schema."""


def refuse_size(message: str, limit: str, value: int) -> NoReturn:
    raise LimitExceededError(f"{message}; {value:,} is the most", limit, value)


def refuse(message: str, what: str, line: int = 1, column: int = 1) -> NoReturn:
    raise UnsupportedGrammarError(message, what, line, column)


def place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def check_text(text: object, what: str) -> str:
    """A text that converters can be given.

    Raises:
        TypeError: it is no ``str``.
        UnsupportedGrammarError: it holds NUL, on which some versions of XGrammar end the process,
            or a lone surrogate; at its place.
    """
    if not isinstance(text, str):
        raise TypeError(f"a {what} must be a str, not {type(text).__name__}")
    offset = text.find("\0")
    if offset >= 0:
        line, column = place(text, offset)
        refuse(
            f"line {line}, column {column}: this {what} holds NUL, which no text has; leave it out",
            what,
            line,
            column,
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            line, column = place(text, error.start)
            raise UnsupportedGrammarError(
                f"line {line}, column {column}: this {what} holds a lone surrogate, which is no "
                "character; decode the text as UTF-8",
                what,
                line,
                column,
            ) from error
    return text


def check_nesting(text: str, what: str, most: int = MAX_JSON_NESTING) -> int:
    """Levels of JSON text, whether it is JSON or not: converters do not read it as Python does."""
    deepest = _json.nesting(text)
    if deepest > most:
        refuse_size(
            f"this {what} is nested {deepest:,} levels deep; make it flatter, with `$ref` for what "
            "repeats",
            "MAX_JSON_NESTING",
            most,
        )
    return deepest


def json_text(
    value: object, what: str, levels: int = MAX_JSON_NESTING, limit: str = "MAX_JSON_NESTING"
) -> str:
    """A Python value as JSON text, without recursion on what is too deep for it.

    Raises:
        TypeError: a part of it is no JSON value; says where.
        UnsupportedGrammarError: a number cannot be written.
        LimitExceededError: it is nested too deeply, within itself for example, or too large.
    """
    try:
        written = _core.json_text(value, levels, MAX_JSON_NODES)
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnsupportedGrammarError(
            f"this {what} cannot be written as JSON: {error}", what, 1, 1
        ) from error
    if isinstance(written, str):
        return written
    why, keys, name = written
    if why == "values":
        refuse_size(f"this {what} has too many values", "MAX_JSON_NODES", MAX_JSON_NODES)
    if why == "levels":
        raising = "" if limit == "MAX_JSON_NESTING" else f", or raise it, Limits({limit}=...)"
        refuse_size(
            f"{pointer_to(keys[:8])}...: this {what} is nested too deeply, or holds itself; make "
            f"it flatter, with `$ref` for what repeats{raising}",
            limit,
            levels,
        )
    if why == "name":
        raise TypeError(
            f"{pointer_to(keys)}: this {what} has a name of type {name}; names in JSON are strings"
        )
    raise TypeError(
        f"{pointer_to(keys)}: this {what} holds a value of type {name}, which is no JSON; pass "
        "dicts, lists, strings, numbers, booleans and None"
    )


def loads(text: str, what: str) -> tuple[Any, bool]:
    """The value, and whether a name stands twice in one object: then the last one counts."""
    repeated = False

    def as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        made = dict(pairs)
        repeated = repeated or len(made) < len(pairs)
        return made

    try:
        return _json.loads(text, object_pairs_hook=as_dict), repeated
    except json.JSONDecodeError as error:
        raise UnsupportedGrammarError(
            f"line {error.lineno}, column {error.colno}: this {what} is no JSON: {error.msg}",
            what,
            error.lineno,
            error.colno,
        ) from error
    except ValueError as error:
        most = sys.get_int_max_str_digits()
        raise UnsupportedGrammarError(
            f"this {what} holds an integer of more than {most:,} digits; write a shorter one",
            what,
            1,
            1,
        ) from error
    except (RecursionError, MemoryError) as error:
        raise UnsupportedGrammarError(f"this {what} cannot be read: {error}", what, 1, 1) from error


def pointer_to(keys: list[object]) -> str:
    """A JSON pointer; `#` for the whole, and without its middle where it is long."""
    steps = ["#", *(str(key)[:60].replace("~", "~0").replace("/", "~1") for key in keys)]
    return "/".join(steps if len(steps) <= 12 else [*steps[:6], "...", *steps[-5:]])
