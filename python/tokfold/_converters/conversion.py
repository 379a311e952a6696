"""Conversion itself, on a stack that is large enough."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tokfold._converters.bounds import LEVELS_ON_ANY_STACK, MAX_SCHEMA_LEVELS
from tokfold._converters.lark import check_lark
from tokfold._converters.patterns import check_pattern
from tokfold._converters.schemas import check_schema
from tokfold._extras import require, xgrammar_reason
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.interrupt import check_governing

__all__ = ["convert", "is_deep", "with_stack"]

_T = TypeVar("_T")

_STACK_FOR_A_LEVEL = 16 << 10

_stack_lock = threading.Lock()


def is_deep(levels: int) -> bool:
    """Whether work that recurses so deep takes a stack of its own."""
    return levels > LEVELS_ON_ANY_STACK


def with_stack(levels: int, work: Callable[[], _T]) -> _T:
    """Do some work that recurses so deep: here, or in a thread whose stack is large enough.

    Raises:
        LimitExceededError: there is no memory for the stack.
        Exception: whatever ``work`` raises.
    """
    if not is_deep(levels):
        return work()
    made: list[_T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            failed.append(error)

    stack = max(1 << 20, math.ceil(levels * _STACK_FOR_A_LEVEL / (1 << 20)) << 20)
    thread = threading.Thread(target=run, name="tokfold-convert", daemon=True)
    with _stack_lock:  # a thread that others start just now has a large stack, too: no harm
        before = threading.stack_size(stack)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            raise LimitExceededError(
                f"there is no memory for a stack of {stack:,} bytes, which {levels:,} levels take; "
                "make the grammar flatter",
                "MAX_SCHEMA_LEVELS",
                MAX_SCHEMA_LEVELS,
            ) from error
        finally:
            threading.stack_size(before)
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


def convert(converter: str, source: object, **options: Any) -> str:
    """The grammar text that one of XGrammar's converters makes.

    Args:
        converter: ``from_json_schema`` (of text), ``from_regex`` or ``from_lark``.
        source: what it is given.
        options: its options.

    Raises:
        TypeError: ``source`` is no text, or an option is of another type than it must be.
        UnsupportedGrammarError: the converter does not take it.
        LimitExceededError: it would take too long, or too much stack.
        MissingExtraError: XGrammar is not installed.
    """
    xgr = require("xgrammar", "xgrammar", f"Grammar.{converter}")
    check_governing()
    what = converter.removeprefix("from_").replace("_", " ")
    if converter == "from_json_schema":
        is_open = options.get("strict_mode", True) is False
        source, levels, _ = check_schema(source, is_open=is_open)
    elif converter == "from_regex":
        levels = check_pattern(source, as_automaton=False).levels
    else:
        levels = check_lark(source)
    check_governing()
    try:
        return with_stack(levels, lambda: str(getattr(xgr.Grammar, converter)(source, **options)))
    except (RuntimeError, ValueError, OverflowError, MemoryError) as error:
        # what XGrammar raises for what it refuses, and what an option that is too large leads to
        if isinstance(error, UnsupportedGrammarError):
            raise
        reason = xgrammar_reason(error) or f"it gives no reason ({type(error).__name__})"
        raise UnsupportedGrammarError(
            f"XGrammar's converter does not take this {what}: {reason}",
            what,
            1,
            1,
        ) from error
