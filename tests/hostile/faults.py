"""Faults that the tests must see: each assertion fails for one of them."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import tokfold
from tokfold import Matcher

FAULTS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {}


def fault(name: str) -> Callable[[Any], Any]:
    def take(make: Callable[[], contextlib.AbstractContextManager[Any]]) -> Any:
        FAULTS[name] = make
        return make

    return take


def injected(name: str) -> contextlib.AbstractContextManager[Any]:
    """A context in which there is a fault; ``""`` for none."""
    return FAULTS[name]() if name else contextlib.nullcontext()


_fill = Matcher.fill_bitmask
_accept = Matcher.accept_token


def _filled(change: Callable[[Any, int], Any]) -> contextlib.AbstractContextManager[Any]:
    def fill(self: Matcher, bitmask: Any, row: int = 0) -> bool:
        result = _fill(self, bitmask, row)
        change(bitmask, row)
        return result

    return mock.patch.object(Matcher, "fill_bitmask", fill)


@fault("a crash")
def _crash() -> contextlib.AbstractContextManager[Any]:
    def crash(_bitmask: Any, _row: int) -> None:
        # Without the handlers of Python and of libraries, one of which may abort instead.
        ctypes.CDLL(None).signal(signal.SIGSEGV.value, None)
        ctypes.string_at(0)

    return _filled(crash)


@fault("a hang")
def _hang() -> contextlib.AbstractContextManager[Any]:
    return _filled(lambda bitmask, row: time.sleep(1_000))


@fault("an error without a type")
def _untyped() -> contextlib.AbstractContextManager[Any]:
    return _filled(lambda bitmask, row: {}["key"])


@fault("memory without end")
def _memory() -> contextlib.AbstractContextManager[Any]:
    return _filled(lambda bitmask, row: bytearray(64 << 30))


@fault("all bits")
def _all() -> contextlib.AbstractContextManager[Any]:
    def change(bitmask: Any, row: int) -> None:
        bitmask[row] = -1

    return _filled(change)


@fault("no bits")
def _none() -> contextlib.AbstractContextManager[Any]:
    def change(bitmask: Any, row: int) -> None:
        bitmask[row] = 0

    return _filled(change)


@fault("a mask that changes")
def _changing() -> contextlib.AbstractContextManager[Any]:
    """Right, but for one bit from the second mask on."""
    masks: list[int] = []

    def change(bitmask: Any, row: int) -> None:
        masks.append(row)
        if len(masks) > 1:
            bitmask[row][20] ^= 1 << 7

    return _filled(change)


@fault("a token that is half taken")
def _half() -> contextlib.AbstractContextManager[Any]:
    def accept(self: Matcher, token_id: int) -> bool:
        _accept(self, token_id)
        return False

    return mock.patch.object(Matcher, "accept_token", accept)


@fault("a cancelled call that has moved")
def _moved() -> contextlib.AbstractContextManager[Any]:
    def accept(self: Matcher, token_id: int) -> bool:
        try:
            return _accept(self, token_id)
        except tokfold.CancelledError:
            self._core.cancel(False)
            _accept(self, token_id)
            raise

    return mock.patch.object(Matcher, "accept_token", accept)


@fault("a bound that is passed")
def _bound() -> contextlib.AbstractContextManager[Any]:
    def counters(self: Matcher) -> dict[str, int]:
        return {"bytes_held": 2 * self.compiled.limits.max_matcher_bytes}

    return mock.patch.object(Matcher, "counters", counters)


@fault("an untyped error in forced_bytes")
def _forced() -> contextlib.AbstractContextManager[Any]:
    def forced(self: Matcher, limit: int = 0) -> bytes:
        raise KeyError(limit)

    return mock.patch.object(Matcher, "forced_bytes", forced)


@fault("masks that hostile requests change")
def _harmed() -> contextlib.AbstractContextManager[Any]:
    """Masks under deadlines are others than those without."""

    def fill(self: Matcher, bitmask: Any, row: int = 0) -> bool:
        result = _fill(self, bitmask, row)
        if self.compiled.limits.max_mask_milliseconds is not None:
            bitmask[row][20] ^= 1 << 7
        return result

    return mock.patch.object(Matcher, "fill_bitmask", fill)
