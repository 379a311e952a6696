"""Bad input, tried in processes of its own: memory and stack are bounded, and what hangs is ended.

What is tested for would take the tests along: a crash, gigabytes, hours. A process has 4 GB of
address space, and most cases run in a thread with a stack of 256 KiB, as a server might start it.
How long a step takes decides nothing: the limits that end it count work. A step that no limit ends
goes on until the one deadline of the tests.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest
import tokfold
from strategies.profiles import LONG

from support import processes

NEEDS_LIMITS = pytest.mark.skipif(os.name != "posix", reason="needs resource limits")

SMALL_STACK = 256 << 10
STACKS = [SMALL_STACK, 0] if LONG else [SMALL_STACK]
"""Sizes of stacks, 0 for the usual one: what holds on the small one holds there."""
# Bare exceptions that would escape to a user; PanicException is not even an Exception.
NAMED = {
    "ok",
    "ArtifactError",
    "GrammarSyntaxError",
    "InvalidSchemaError",
    "LimitExceededError",
    "StructuralTagError",
    "UnsatisfiableSchemaError",
    "UnsupportedGrammarError",
    "UnsupportedSchemaError",
    "VocabularyError",
}

CHILD = """
import json, resource, sys, threading
gigabytes, stack = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import builtins
from tokfold import *
import tokfold.recognition, tokfold.classes, tokfold.grammar
resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, gigabytes << 30))
BYTES = [bytes([b]) for b in range(256)]
MORE = [b"ab", b"aa", b"((", b"))", b"()", b"xx", b'","', b"123", b"stop"]
WORDS = Vocabulary([*BYTES, *MORE], stop_token_ids=[264])
STEPS = []

def step(name, work):
    result, value, limit = None, None, None
    try:
        result = work()
        outcome = "ok"
    except BaseException as error:
        outcome, value = type(error).__name__, str(error)[:500]
        limit = getattr(error, "limit", None)
    if outcome == "ok":
        value = {"Recognition": lambda r: [r.accepted, r.read], "TokenClasses": len}.get(
            type(result).__name__, lambda r: None)(result)
    print(json.dumps([name, outcome, value, limit]), flush=True)
    return result

def both(text, sample, vocabulary=WORDS):
    "Read, fold with and without pruning, recognize."
    grammar = step("read", lambda: Grammar.from_ebnf(text))
    if grammar is not None:
        step("pruned", lambda: compile_classes(grammar, vocabulary))
        step("unpruned", lambda: compile_classes(grammar, vocabulary, prune=False))
        step("recognized", lambda: recognize(grammar, sample))

def main():
    exec(builtins.compile(sys.stdin.read(), "case", "exec"), globals())

if stack:
    threading.stack_size(stack)
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
else:
    main()
print("end", flush=True)
"""


class Step:
    """What became of one call in the other process."""

    def __init__(self, name: str, outcome: str, value, limit: str | None) -> None:
        self.name, self.outcome, self.value, self.limit = name, outcome, value, limit

    def __repr__(self) -> str:
        return f"{self.name}: {self.outcome} {self.value}"


def run(body: str, stack: int = 0, prefix: str = "") -> dict[str, Step]:
    """The steps of a script, after checking that it ended by itself."""
    process = processes.run(
        [sys.executable, "-c", prefix + CHILD, "4", str(stack)],
        input=textwrap.dedent(body),
        env={**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parent.parent)},
    )
    *lines, end = process.stdout.splitlines() or [""]
    steps = [Step(*json.loads(line)) for line in lines if line.startswith("[")]
    trouble = f"ended with {process.returncode} after {steps}: {process.stderr[:300]}"
    assert (process.returncode, end) == (0, "end"), trouble
    return {step.name: step for step in steps}


def check(steps: dict[str, Step]) -> dict[str, Step]:
    """Hold every step against what any input may come to."""
    assert steps
    for step in steps.values():
        assert step.outcome in NAMED, step
        if step.outcome != "ok":
            assert len(step.value) > 30, f"does not say what to do: {step}"
    return steps


def outcomes(steps: dict[str, Step]) -> list[str]:
    return [step.outcome for step in steps.values()]
