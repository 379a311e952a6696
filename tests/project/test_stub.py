"""`_core.pyi` says of the compiled core what the compiled core is: checked by mypy's stubtest."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support import processes

pytest.importorskip("tokfold._core")
pytest.importorskip("mypy.stubtest")

ROOT = Path(__file__).resolve().parents[2]

# PyO3 gives every module an `__all__` of all that it holds; a stub has no use for it.
ALLOWED = r"tokfold\._core\.__all__"

# The stub needs numpy alone; the package's leaves lead to libraries that take minutes to read.
CONFIG = """
[mypy]
[mypy-xgrammar.*,torch.*,transformers.*,tokenizers.*,tiktoken.*]
follow_imports = skip
ignore_missing_imports = True
"""


def test_the_stub_is_that_of_the_core(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text(ALLOWED + "\n")
    command = [sys.executable, "-m", "mypy.stubtest", "tokfold._core"]
    command += ["--allowlist", str(allowed), "--ignore-unused-allowlist"]
    config = tmp_path / "mypy.ini"
    config.write_text(CONFIG)
    command += ["--mypy-config-file", str(config)]
    # Away from the checkout: its `python` folder must not be taken for a package.
    path = str(ROOT / "python")
    environment = {**os.environ, "MYPYPATH": path, "PYTHONPATH": path}
    result = processes.run(command, cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
