"""Stacks that are large enough for what XGrammar's converters recurse."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from tokfold._converters.bounds import LEVELS_ON_ANY_STACK, MAX_SCHEMA_LEVELS
from tokfold.errors import LimitExceededError

_T = TypeVar("_T")

_STACK_FOR_A_LEVEL = 16 << 10

_stack_lock = threading.Lock()


def _after_fork() -> None:
    """In a child process: another thread of the parent may have held the lock."""
    global _stack_lock
    _stack_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def is_deep(levels: int) -> bool:
    """Whether work that recurses so deep takes a stack of its own."""
    return levels > LEVELS_ON_ANY_STACK


def with_stack(levels: int, work: Callable[[], _T]) -> _T:
    """Do some work that recurses so deep: here, or in a thread whose stack is large enough."""
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
