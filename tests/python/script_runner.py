"""Scripts in processes of their own, and what they print."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import tokfold


def child(body: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start a script that has everything of ``tokfold`` by name."""
    source = str(Path(tokfold.__file__).parent.parent)
    script = "import sys\nfrom tokfold import *\n" + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": source, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str], seconds: float = 60) -> str:
    """What a script that must succeed prints."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out
