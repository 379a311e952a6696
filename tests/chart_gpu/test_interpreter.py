"""Charts on a device, by Triton's interpreter on the CPU.

Triton asks once for a process whether it interprets, when it is first imported, and by then other
tests may have imported it. So these run in a process of their own.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("triton")

import tokfold
from support import processes

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="this is that process")
def test_all_that_needs_a_device():
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    source = str(Path(tokfold.__file__).parents[1])
    environment = {**kept, "TRITON_INTERPRET": "1", "PYTHONPATH": source}
    files = ("test_charts.py", "test_masks.py", "test_device_matcher.py", "test_page.py")
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-rs"]
    command += [f"tests/chart_gpu/{name}" for name in files]
    result = processes.run(command, cwd=ROOT, env=environment)
    assert result.returncode == 0, result.stdout[-20_000:] + result.stderr[-2_000:]
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed, result.stdout
    assert int(passed[1]) > 28
