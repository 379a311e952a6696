"""Calls of a matcher that an interrupt of their own ends: they raise, and nothing has changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tokfold._core")

import tokfold
from tokfold import CancelledError, DeadlineExceededError, Interrupt, Matcher

BYTES = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])
PLAIN = tokfold.compile(
    tokfold.Grammar.from_ebnf('root ::= "ab" [c-z]{0,9} "!" | "abc" root'), BYTES, classes="never"
)
E = "root ::= " + " ".join(["e"] * 1_500) + '\ne ::= "a" | "ab" | ""'


def row() -> np.ndarray[Any, Any]:
    return np.full((4, 8), -1, dtype=np.int32)


CALLS: dict[str, Callable[[Matcher, Interrupt | None], object]] = {
    "accept_token": lambda m, i: m.accept_token(ord("c"), interrupt=i),
    "accept_tokens": lambda m, i: m.accept_tokens(b"cd", interrupt=i),
    "accept_bytes": lambda m, i: m.accept_bytes(b"cd", interrupt=i),
    "accept_string": lambda m, i: m.accept_string("cd", interrupt=i),
    "fill_bitmask": lambda m, i: m.fill_bitmask(row(), 1, interrupt=i),
    "fill_bitmask_draft": lambda m, i: list(
        m.fill_bitmask_draft([ord("c"), ord("d")], row(), interrupt=i)
    ),
    "forced_bytes": lambda m, i: m.forced_bytes(interrupt=i),
    "rollback": lambda m, i: m.rollback(interrupt=i),
    "reset": lambda m, i: m.reset(interrupt=i),
}


def begun(compiled: tokfold.CompiledGrammar = PLAIN) -> Matcher:
    matcher = Matcher(compiled)
    assert matcher.accept_token(ord("a"))
    assert matcher.accept_token(ord("b"))
    return matcher


def seen(matcher: Matcher) -> tuple[object, ...]:
    bitmask = row()
    matcher.fill_bitmask(bitmask)
    return matcher.text, matcher.num_steps, matcher.is_accepting, bitmask[0].tolist()


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_that_has_ended_ends_the_call(name: str) -> None:
    cancelled, late = Interrupt(), Interrupt(milliseconds=0)
    cancelled.cancel()
    time.sleep(0.002)
    matcher = begun()
    before = seen(matcher)
    with pytest.raises(CancelledError):
        CALLS[name](matcher, cancelled)
    assert seen(matcher) == before
    with pytest.raises(DeadlineExceededError, match="milliseconds = 0"):
        CALLS[name](matcher, late)
    assert seen(matcher) == before


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_that_lives_changes_nothing(name: str) -> None:
    plain, within = begun(), begun()
    assert CALLS[name](plain, None) == CALLS[name](within, Interrupt(milliseconds=60_000))
    assert seen(plain) == seen(within)


def test_classes() -> None:
    grammar = tokfold.Grammar.from_ebnf("root ::= [a-z]+")
    compiled = tokfold.compile(grammar, BYTES, classes="now")
    assert compiled.classes is not None
    bitmask = np.zeros((1, -(-len(compiled.classes) // 32)), dtype=np.int32)
    matcher = Matcher(compiled)
    cancelled = Interrupt()
    cancelled.cancel()
    with pytest.raises(CancelledError):
        matcher.fill_class_bitmask(bitmask, interrupt=cancelled)
    assert not bitmask.any()
    matcher.fill_class_bitmask(bitmask, interrupt=Interrupt())
    assert bitmask.any()


@pytest.mark.parametrize("end", ["cancel", "deadline"])
def test_a_call_under_way_is_ended(end: str) -> None:
    """Reading a very ambiguous text again and again takes long; an interrupt ends it before."""
    limits = tokfold.Limits(max_accept_work=1 << 40)
    grammar = tokfold.Grammar.from_ebnf(E, limits=limits)
    matcher = Matcher(
        tokfold.compile(
            grammar,
            BYTES,
            classes="never",
            limits=limits,
            options=tokfold.CompileOptions(check_tokens=False),
        )
    )
    interrupt = Interrupt(milliseconds=30 if end == "deadline" else None)
    timer = threading.Timer(0.03, interrupt.cancel)
    if end == "cancel":
        timer.start()
    wanted = CancelledError if end == "cancel" else DeadlineExceededError

    def read_again_and_again() -> None:
        for _ in range(1_000):
            matcher.accept_bytes(b"ab" * 700, interrupt=interrupt)
            matcher.reset(interrupt=interrupt)

    with pytest.raises(wanted):
        read_again_and_again()
    timer.cancel()
    read = matcher.text
    assert read in (b"", b"ab" * 700)
    matcher.reset()
    assert matcher.accept_bytes(b"ab")


@pytest.mark.parametrize(
    ("milliseconds", "error", "message"),
    [
        ("5", TypeError, "milliseconds must be a whole number, not str"),
        (0.5, TypeError, "milliseconds must be a whole number, not float"),
        (-1, ValueError, "milliseconds must be 0 or more, not -1"),
        (10**30, ValueError, f"milliseconds must be {(1 << 63) - 1} or less, not 1000"),
    ],
)
def test_deadlines_that_are_none(milliseconds, error, message):
    with pytest.raises(error, match=message):
        Interrupt(milliseconds=milliseconds)
    assert not Interrupt(milliseconds=(1 << 63) - 1).is_cancelled


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_interrupt_is_named(name):
    with pytest.raises(TypeError, match=r"interrupt must be a tokfold.Interrupt or None, not int"):
        CALLS[name](begun(), 5)
