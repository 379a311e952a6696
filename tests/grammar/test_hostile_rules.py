"""Grammars of many rules: a named error that says what to do, or the answer, soon."""

from __future__ import annotations

import pytest
from strategies.profiles import LONG
from support.hostile_runner import NEEDS_LIMITS, STACKS, check, outcomes, run

pytestmark = NEEDS_LIMITS

MANY = 100_000 if LONG else 20_000

RULES = """
N = {n}
def rules(first, each, last=""):
    lines = [first, *(each(i) for i in range(N)), *([last] if last else [])]
    return "\\n".join(lines)
"""

# Name: number of rules, text, sample, and what recognition must say, where it says something.
MANY_RULES = {
    "flat": (
        MANY,
        """rules("root ::= " + " | ".join(f"r{i}" for i in range(N)),
                 lambda i: f'r{i} ::= "k{i}"')""",
        'f"k{N - 1}"',
        [True, 6],
    ),
    "chain": (
        MANY,
        """rules("root ::= r0", lambda i: f'r{i} ::= "x" r{i + 1}', f'r{N} ::= "y"')""",
        '"x" * N + "y"',
        [True, MANY + 1],
    ),
    "chain of 5,000": (
        5_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "x" r{i + 1}', f'r{N} ::= "y"')""",
        '"x" * N + "y"',
        [True, 5_001],
    ),
    "left chain": (
        MANY,
        """rules("root ::= r0", lambda i: f'r{i} ::= r{i + 1} "x" | r{i + 1} "y"',
                 f'r{N} ::= "y"')""",
        '"y" + "xy" * (N // 2)',
        [True, MANY + 1],
    ),
    "left chain of 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= r{i + 1} "x" | r{i + 1} "y"',
                 f'r{N} ::= "y"')""",
        '"y" + "xy" * (N // 2)',
        [True, 2_001],
    ),
    "cycle of 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "x" r{(i + 1) % N} | "y"')""",
        '"x" * 100_000 + "y"',
        [True, 100_001],
    ),
    "large cycle": (
        MANY,
        """rules("root ::= r0", lambda i: f'r{i} ::= "x" r{(i + 1) % N} | "y"')""",
        '"x" * 1_000 + "y"',
        [True, 1_001],
    ),
    "bracket cycle of 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "(" r{(i + 1) % N} ")" r{i * 7 % N} | "y"')""",
        '"(" * 300 + "y" + ")y" * 300',
        [True, 901],
    ),
    "large bracket cycle": (
        MANY,
        """rules("root ::= r0", lambda i: f'r{i} ::= "(" r{(i + 1) % N} ")" r{i * 7 % N} | "y"')""",
        '"(" * 300 + "y" + ")y" * 300',
        [True, 901],
    ),
    "left cycle of 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= r{(i + 1) % N} "x" | "y"')""",
        '"y" + "x" * 2_000',
        None,
    ),
    "left cycle of 100,000": (
        100_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= r{(i + 1) % N} "x" | "y"')""",
        '"y"',
        None,
    ),
    "tangled left cycle of 300": (
        300,
        """rules("root ::= r0",
                 lambda i: f'r{i} ::= r{(i + 1) % N} "x" | r{i * 7 % N} "z" | "y"')""",
        '"y" + "xz" * 100',
        [True, 201],
    ),
    "names only": (
        MANY,
        """rules("root ::= r0", lambda i: f"r{i} ::= r{i + 1}", f'r{N} ::= "y"')""",
        '"y"',
        [True, 1],
    ),
    "right-nested, 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "(" r{i + 1} ")" | "[" r{i + 1} "]"',
                 f'r{N} ::= "y"')""",
        '"([" * (N // 2) + "y" + "])" * (N // 2)',
        [True, 4_001],
    ),
    "right-nested": (
        MANY,
        """rules("root ::= r0", lambda i: f'r{i} ::= "(" r{i + 1} ")" | "[" r{i + 1} "]"',
                 f'r{N} ::= "y"')""",
        '"(" * 100',
        [False, 100],
    ),
    # Each level is a frame of the stack: recognition may give up.
    "doubling": (
        3_000,
        """rules("root ::= r0", lambda i: f"r{i} ::= r{i + 1} r{i + 1}", f'r{N} ::= "y"')""",
        '"yyyy"',
        [False, 4],
    ),
    "optional rules": (
        3_000,
        """rules("root ::= " + " ".join(f"r{i}" for i in range(N)),
                 lambda i: f'r{i} ::= "k{i}" | ""')""",
        '"k1k2k2999"',
        [True, 9],
    ),
    "unused": (
        300_000,
        """rules('root ::= "a"', lambda i: f'a_rule_that_nobody_uses_{i} ::= "x"')""",
        '"a"',
        [True, 1],
    ),
}


SMALL = {n for n in MANY_RULES if MANY_RULES[n][0] <= 5_000 and n != "optional rules"}
SMALL |= {"names only", "left cycle of 100,000", "unused"}
ON_STACKS = [(name, stack) for name in MANY_RULES for stack in (STACKS if name in SMALL else [0])]


@pytest.mark.parametrize(("name", "stack"), ON_STACKS)
def test_many_rules(name, stack):
    n, text, sample, expected = MANY_RULES[name]
    steps = check(run(RULES.format(n=n) + f"both({text}, {sample})", stack))
    found = steps["recognized"]
    if expected is None:
        assert found.outcome == "LimitExceededError"
    else:
        # The limits may be reached, but then in the same way for folding.
        assert (found.outcome, found.value) == ("ok", expected) or (
            {s.limit for s in steps.values()} - {None} and found.outcome == "LimitExceededError"
        )
        if n <= 2_000:
            assert outcomes(steps) == ["ok"] * 4
