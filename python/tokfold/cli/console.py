"""Where output goes: results to standard output, progress and errors to standard error.

Consoles are made when used, not on import, so that redirected streams are honoured. Markup is off
everywhere: grammars and tokens are full of square brackets.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.text import Text

from tokfold.cli.advice import in_options

if TYPE_CHECKING:
    from rich.progress import Progress


class _Results(Console):
    """The console for results."""

    def on_broken_pipe(self) -> None:
        """Rich exits with 1 here, which is the answer "no"."""
        raise BrokenPipeError


def stdout() -> Console:
    """The console for results: 80 columns and no colour where it is no terminal."""
    return _Results(highlight=False, markup=False, emoji=False)


def leave_quietly() -> None:
    """Nobody reads any more: what is left to be written goes nowhere."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _stderr() -> Console:
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def fits_encoding(console: Console, text: str) -> bool:
    """Whether the console's encoding has every character of ``text``."""
    try:
        text.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def print_json(document: dict[str, Any]) -> None:
    """Write one JSON object, in ASCII, to standard output."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.stdout.flush()


def report_error(error: BaseException | str) -> None:
    """Write one line ``error: ...`` to standard error."""
    said = in_options(" ".join(_message(error).split()))
    line = Text.assemble(("error: ", "bold red"), said)
    _stderr().print(line, soft_wrap=True)


def report_note(level: str, text: str) -> None:
    """Write one line ``warning: ...`` or ``info: ...`` to standard error."""
    style = "bold yellow" if level == "warning" else "bold cyan"
    line = Text.assemble((f"{level}: ", style), in_options(" ".join(text.split())))
    _stderr().print(line, soft_wrap=True)


def _message(error: BaseException | str) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "out of memory; give a smaller grammar or vocabulary, or lower the limits"
    return str(error) or type(error).__name__


class Step(Protocol):
    """Tells the bar how far its step is."""

    def __call__(self, done: int, total: int) -> None:
        """Move the bar."""


class _Steps:
    """One line of progress that goes through named steps."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task = None if progress is None else progress.add_task("", visible=False, count="")

    @contextmanager
    def __call__(self, name: str) -> Iterator[Step]:
        """Show ``name`` while the body runs."""
        progress, task = self._progress, self._task
        if progress is None or task is None:
            yield lambda done, total: None
            return
        progress.reset(task, description=name, total=None, visible=True, count="")
        yield lambda done, total: progress.update(
            task, completed=done, total=total, count=f"{done:,} of {total:,}"
        )


@contextmanager
def steps() -> Iterator[_Steps]:
    """Progress on standard error, gone when done; nothing where it is no live terminal."""
    console = _stderr()
    if not console.is_terminal or console.is_dumb_terminal:
        yield _Steps(None)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Steps(progress)
