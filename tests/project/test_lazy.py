"""Cached properties without a lock."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.processes import DEADLINE_S
from tokfold._lazy import lazy


class Thing:
    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.asked = threading.Barrier(2)
        self.made = 0

    @lazy
    def slow(self) -> object:
        """What takes its time."""
        assert self.may_go_on.wait(DEADLINE_S)
        return object()

    @lazy
    def twice(self) -> object:
        self.asked.wait(DEADLINE_S)
        return object()

    @lazy
    def failing(self) -> object:
        self.made += 1
        if self.made == 1:
            raise ValueError("not yet")
        return self.made


def test_one_object_does_not_wait_for_another() -> None:
    slow, quick = Thing(), Thing()
    quick.may_go_on.set()
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(lambda: slow.slow)
        assert quick.slow is quick.slow  # with one lock for all this never ends
        slow.may_go_on.set()
        assert making.result(DEADLINE_S) is slow.slow


def test_two_threads_get_the_same() -> None:
    thing = Thing()
    with ThreadPoolExecutor(2) as pool:
        first, second = [pool.submit(lambda: thing.twice) for _ in range(2)]
        assert first.result(DEADLINE_S) is second.result(DEADLINE_S) is thing.twice


def test_what_fails_is_made_again() -> None:
    thing = Thing()
    with pytest.raises(ValueError, match="not yet"):
        _ = thing.failing
    assert (thing.failing, thing.failing, thing.made) == (2, 2, 2)


def test_the_class_shows_what_it_is() -> None:
    assert isinstance(Thing.slow, lazy)
    assert Thing.slow.__doc__ == "What takes its time."
