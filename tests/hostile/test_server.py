"""Hostile requests beside ordinary ones, in one process: no crash, and masks as they are alone."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import tokfold
from strategies.profiles import LONG
from support import processes

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs resource limits of Linux"),
]

NAMES = [
    "repeated options",
    "8 left-recursive rules of pairs",
    "200 optional recursive rules",
    "2,500 times a or ab or nothing",
    "two and three of itself",
    "300 right-linear rules",
    "a left chain of 1,000",
    "10,000 open groups",
    "300 rules that are all empty",
    "1,500 tags that begin alike",
]
SCRIPT = """
import dataclasses, faulthandler, json, resource, sys
faulthandler.dump_traceback_later(300, exit=True)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
from hostile import faults, unseen
from hostile.child import DEADLINES, small_vocabulary
from hostile.serving import serve
names, fault, seconds = json.loads(sys.argv[1])
with faults.injected(fault):
    served = serve(small_vocabulary(), names, DEADLINES, seconds=seconds, threads=3)
print(json.dumps(dataclasses.asdict(served)))
"""


def served(names: list[str], fault: str = "", seconds: float = 1.0) -> dict:
    paths = [str(Path(tokfold.__file__).parent.parent), str(Path(__file__).parent.parent)]
    process = processes.run(
        [sys.executable, "-c", SCRIPT, json.dumps([names, fault, seconds])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert process.returncode == 0, process.stderr[-2_000:]
    return json.loads(process.stdout.splitlines()[-1])


def test_no_request_harms_another() -> None:
    found = served(NAMES, seconds=60.0 if LONG else 2.0)
    assert found["wrong"] == []
    assert found["untyped"] == []
    assert found["hostile"] >= len(NAMES)
    assert found["ordinary"] >= 1
    assert found["masks"] >= len(NAMES) // 2


def test_an_untyped_error_is_seen() -> None:
    found = served(["a left chain of 1,000"], "an untyped error in forced_bytes")
    assert any("KeyError" in error for error in found["untyped"])


def test_a_harmed_request_is_seen() -> None:
    found = served(["a left chain of 1,000"], "masks that hostile requests change")
    assert any("other masks beside hostile requests" in wrong for wrong in found["wrong"])
