"""Scripts in processes of their own, and what they print."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import tokfold

from support import processes


def child(
    body: str, *arguments: object, stdin: int = processes.DEVNULL, **environment: str
) -> processes.Child:
    """Start a script that has everything of ``tokfold`` by name."""
    source = str(Path(tokfold.__file__).parent.parent)
    script = "import sys\nfrom tokfold import *\n" + textwrap.dedent(body)
    return processes.start(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": source, **environment},
        stdin=stdin,
    )


def output(process: processes.Child) -> str:
    """What a script that must succeed prints."""
    with process:
        out, err = process.communicate(timeout=processes.DEADLINE_S)
    assert process.returncode == 0, err
    return str(out)
