"""JSON: how deep it is, and how it is read and written without recursion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tokfold import _json
from tokfold._converters.bounds import MAX_JSON_NESTING, MAX_JSON_NODES, refuse_size
from tokfold.errors import UnsupportedGrammarError

__all__ = ["check_nesting", "json_text", "loads", "pointer_to"]


def check_nesting(text: str, what: str, most: int = MAX_JSON_NESTING) -> int:
    """Levels of JSON text, whether it is JSON or not: converters do not read it as Python does.

    Raises:
        LimitExceededError: there are more than ``most``.
    """
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

    Args:
        value: dicts, lists and so on.
        what: for errors.
        levels: how deep they may stand in each other.
        limit: name of the bound of levels.

    Raises:
        TypeError: a part of it is no JSON value; says where.
        UnsupportedGrammarError: a number cannot be written.
        LimitExceededError: it is nested too deeply, within itself for example, or too large.
    """
    path: list[tuple[Iterator[tuple[object, object]], object]] = []
    entered: list[object] = []
    nodes = deepest = 0
    raising = "" if limit == "MAX_JSON_NESTING" else f", or raise it, Limits({limit}=...)"
    found: object = value
    while True:
        nodes += 1
        if nodes > MAX_JSON_NODES:
            refuse_size(f"this {what} has too many values", "MAX_JSON_NODES", MAX_JSON_NODES)
        if isinstance(found, dict | list | tuple):
            if len(path) >= levels:
                refuse_size(
                    f"{pointer_to(entered[:8])}...: this {what} is nested too deeply, or holds "
                    f"itself; make it flatter, with `$ref` for what repeats{raising}",
                    limit,
                    levels,
                )
            deepest = max(deepest, len(path) + 1)
            items = found.items() if isinstance(found, dict) else enumerate(found)
            path.append((iter(items), found))
        elif not (found is None or isinstance(found, str | int | float)):
            raise TypeError(
                f"{pointer_to(entered)}: this {what} holds a value of type {type(found).__name__}, "
                "which is no JSON; pass dicts, lists, strings, numbers, booleans and None"
            )
        while path:
            step = next(path[-1][0], None)
            if step is None:
                path.pop()
                del entered[len(path) - 1 if path else 0 :]
                continue
            key, found = step
            if isinstance(path[-1][1], dict) and not isinstance(key, str | int | float | None):
                raise TypeError(
                    f"{pointer_to(entered)}: this {what} has a name of type {type(key).__name__}; "
                    "names in JSON are strings"
                )
            del entered[len(path) - 1 :]
            entered.append(key)
            break
        else:
            break
    try:
        return _json.dumps(value) if deepest <= MAX_JSON_NESTING else _json.dumps_deep(value)
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnsupportedGrammarError(
            f"this {what} cannot be written as JSON: {error}", what, 1, 1
        ) from error


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
    except (ValueError, RecursionError, MemoryError) as error:  # a number of thousands of digits
        raise UnsupportedGrammarError(f"this {what} cannot be read: {error}", what, 1, 1) from error


def pointer_to(keys: list[object]) -> str:
    """A JSON pointer; `#` for the whole, and without its middle where it is long."""
    steps = ["#", *(str(key)[:60].replace("~", "~0").replace("/", "~1") for key in keys)]
    return "/".join(steps if len(steps) <= 12 else [*steps[:6], "...", *steps[-5:]])
