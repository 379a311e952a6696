"""Hostile schemas: a result or a typed error, in bounded time, and never a wider language.

Each case has a process of its own with bounded memory and a thread with a small stack.
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
from json_schema.hostile_cases import CASES, KEYWORDS
from strategies.profiles import LONG
from support import processes

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs forks, /proc and resource limits"),
]

SLOW = {
    "10 MB of members",
    "10^5 properties, any order",
    "a description of 100 MB",
    "ten kinds that items must contain",
    "unevaluatedProperties with 100 branches",
}
"""Cases of the long profile alone."""

Ask = Callable[[str], Any]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Has a process fork for each case."""
    tests = Path(__file__).parent.parent
    paths = [
        str(Path(tokfold.__file__).parent.parent),
        str(tests),
        os.environ.get("PYTHONPATH", ""),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "json_schema.hostile_child"]
    with processes.start(command, env=environment, stdin=processes.PIPE, stderr=None) as process:
        yield lambda name: json.loads(process.ask(json.dumps(name)))


def outcome_of(found: Any) -> list[Any]:
    """What became of a case, after checking that it ended and is not wrong."""
    assert found["trouble"] == "", f"{found['trouble']}: {found['stderr'][-600:]}"
    assert ["end"] in found["lines"], found
    assert [line[1] for line in found["lines"] if line[0] == "wrong"] == []
    (line,) = (line[1:] for line in found["lines"] if line[0] == "outcome")
    return list(line[:2])


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_schema(ask: Ask, name: str) -> None:
    if name in SLOW and not LONG:
        pytest.skip("TOKFOLD_HYPOTHESIS=long tries it")
    kind, message = outcome_of(ask(name))
    assert kind in CASES[name].outcomes, message
    assert kind == "result" or len(message) >= 20, message


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_wrong_values_of_a_keyword(ask: Ask, keyword: str) -> None:
    outcome_of(ask(keyword))
