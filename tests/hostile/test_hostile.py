"""Hostile inputs end in time, with an answer or a typed error, and all bits they give are right.

Every input of :mod:`hostile.cases` goes through compiling, masks, tokens, forks, rollbacks,
cancelled calls and deadlines in a process of its own. A quick run takes some of them, and a long
one (``TOKFOLD_HYPOTHESIS=long``) all. How long anything takes decides nothing: see
``benches/python/bench_responsiveness.py`` for that.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tokfold
from hostile import unseen
from hostile.cases import CASES
from strategies.profiles import CASES as COUNTS
from strategies.profiles import LONG
from support import processes

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs forks, /proc and resource limits"),
]

SLACK = 1.2
"""What may be held, by the bound."""
FAST = [
    "repetition of 10^12",
    "repeated options",
    "options 900 deep",
    "30 left-recursive rules of pairs",
    "two and three of itself",
    "three ambiguous rules, any text",
    "300 right-linear rules",
    "a left chain of 1,000",
    "a fork reads while its sibling makes a mask",
    "120 kB of text on stacks",
    "a lone surrogate",
    "10,000 open groups",
    "300 rules that are all empty",
    "left recursion behind what is empty",
    "lengths modulo primes",
    "100,000 brackets",
    "many steps, rolled back",
    "a draft of 2,000 tokens",
    "1,500 tags that begin alike",
]
# Schemas, patterns and Lark text, which the core converts.
FAST_CONVERTED = [
    "a dict of items 3,000 deep",
    "items 900 deep",
    "allOf of 1,000",
    "a reference to itself",
    "a tree of itself, 30 ways",
    "a chain of 2,000 references",
    "5,000 definitions",
    "a set in a schema",
    "a surrogate in the text",
    "a pattern of 20,000 groups in a schema",
    "a pattern of 30,000 groups",
    "a surrogate in a pattern",
    "plus of plus",
    "terminals in a ring",
]
# These have parts that XGrammar's converters read.
FAST_WITH_XGRAMMAR = [
    "sequences 5,000 deep",
    "triggers of another type",
]
# XGrammar's converters crashed or hung on them before there were guards.
GUARDED = [name for name, case in CASES.items() if case.guards]

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Has a process fork for each input."""
    tests = Path(__file__).parent.parent
    paths = [str(Path(tokfold.__file__).parent.parent), str(tests)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "hostile.child"]
    with processes.start(command, env=environment, stdin=processes.PIPE, stderr=None) as process:

        def asked(case: str, mode: str = "default", fault: str = "", **bounds: float) -> Any:
            request = {"case": case, "mode": mode, "fault": fault, **bounds}
            return json.loads(process.ask(json.dumps(request)))

        yield asked


def facts(outcome: Any, kind: str) -> list[list[Any]]:
    return [line[1:] for line in outcome["lines"] if line[0] == kind]


def complaints(outcome: Any) -> list[str]:
    """All that is wrong with what became of an input."""
    begun = facts(outcome, "begin")
    found = []
    if outcome["trouble"]:
        found.append(f"{outcome['trouble']} in {begun[-1:]}: {outcome['stderr'][-600:]}")
    elif not facts(outcome, "end"):
        found.append(f"ended early in {begun[-1:]}")
    for name, kind, typed, message in facts(outcome, "error"):
        if not typed:
            found.append(f"{name} raises {kind}: {message}")
        elif len(message) < 15:
            found.append(f"{name} raises {kind}, which says too little: {message}")
    for name, ratio in facts(outcome, "held"):
        if ratio > SLACK:
            found.append(f"{name} holds {ratio:.2f} times its bound")
    return [*found, *(what for (what,) in facts(outcome, "wrong"))]


def check(ask: Ask, name: str) -> None:
    masks: dict[int, str] = {}
    for mode in ("default", "deadlines", "small")[: 3 if LONG else 2]:
        outcome = ask(name, mode, patience=4.0 if LONG else 0.4)
        assert complaints(outcome) == [], mode
        for step, digest in facts(outcome, "mask"):
            assert masks.setdefault(step, digest) == digest, f"{mode}: another mask at step {step}"
        for tried in facts(outcome, "tried"):
            COUNTS["tokens tried on hostile inputs"] += tried[0]["allowed"] + tried[0]["forbidden"]
            COUNTS["calls cancelled on hostile inputs"] += tried[0]["cancelled"]
            COUNTS["hostile tokens recognized"] += tried[0]["recognized"]


@pytest.mark.parametrize("name", FAST)
def test_a_hostile_grammar(ask: Ask, name: str) -> None:
    check(ask, name)


@pytest.mark.parametrize("name", FAST_CONVERTED)
def test_a_hostile_input_for_the_core(ask: Ask, name: str) -> None:
    check(ask, name)


@pytest.mark.parametrize("name", FAST_WITH_XGRAMMAR)
def test_a_hostile_input_for_a_converter(ask: Ask, name: str) -> None:
    pytest.importorskip("xgrammar")
    check(ask, name)


@pytest.mark.parametrize("name", GUARDED)
def test_an_input_that_guards_keep_from_a_converter(ask: Ask, name: str) -> None:
    pytest.importorskip("xgrammar")
    check(ask, name)


REST = [n for n in CASES if n not in (*FAST, *FAST_CONVERTED, *FAST_WITH_XGRAMMAR, *GUARDED)]


@pytest.mark.skipif(not LONG, reason="TOKFOLD_HYPOTHESIS=long tries all of them")
@pytest.mark.parametrize("name", REST)
def test_every_hostile_input(ask: Ask, name: str) -> None:
    pytest.importorskip("xgrammar")
    check(ask, name)


def test_the_lists_name_cases() -> None:
    assert set(FAST) | set(FAST_CONVERTED) | set(FAST_WITH_XGRAMMAR) <= set(CASES)
    assert {CASES[name].kind for name in FAST_CONVERTED} == {"json_schema", "regex", "lark"}
    assert {CASES[name].kind for name in GUARDED} <= {"grammar", "structural_tag"}
    assert len(CASES) >= 150
    assert len(unseen.UNSEEN) >= 25
    held_back = [name for name in unseen.UNSEEN if CASES[name].held_back]
    assert 3 * len(held_back) >= len(unseen.UNSEEN) - 6


# -- the assertions see what they are for ----------------------------------------------------------

SEEN = {
    "a crash": "signal 11",
    "a hang": "hung: nothing in",
    "an error without a type": "raises KeyError",
    "memory without end": "raises MemoryError",
    "all bits": "is allowed, and accept_token says False",
    "no bits": "is expected, or its token allowed, but not both",
    "a mask that changes": "after it was cancelled is another",
    "a token that is half taken": "the matcher stands elsewhere",
    "a cancelled call that has moved": "accept that failed with CancelledError",
    "a bound that is passed": "matcher holds 2.00 times its bound",
}


@pytest.mark.parametrize("fault", SEEN)
def test_a_fault_is_seen(ask: Ask, fault: str) -> None:
    bounds = {"seconds": 1.0} if fault == "a hang" else {}
    found = complaints(ask("palindromes", fault=fault, **bounds))
    assert any(SEEN[fault] in complaint for complaint in found), found


def test_without_a_fault_there_is_none(ask: Ask) -> None:
    outcome = ask("palindromes")
    assert complaints(outcome) == []
    ((tried,),) = facts(outcome, "tried")
    assert min(tried.values()) > 0, tried
