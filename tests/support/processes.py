"""Child processes that do not depend on how the suite is started.

A shell ignores SIGINT for what it puts into the background, ``nohup`` ignores SIGHUP, a runner may
have no terminal and no standard input. A child process inherits all of that. :func:`run` and
:func:`start` give each child the default dispositions of signals, a session of its own, an empty
standard input, and a deadline after which its whole session is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = [
    "DEADLINE_S",
    "DEVNULL",
    "PIPE",
    "Child",
    "TimeoutExpired",
    "default_signals",
    "is_inside",
    "run",
    "start",
    "until",
]

DEVNULL, PIPE = subprocess.DEVNULL, subprocess.PIPE
TimeoutExpired = subprocess.TimeoutExpired

DEADLINE_S = 300.0
"""Seconds after which a child that does not end is a failure of the test.

Generous: it only bounds a test that hangs, also on a machine that other work keeps busy.
"""


def default_signals() -> None:
    """Give the signals of this process the dispositions of a program started from a terminal.

    A child that is started later inherits no ignored and no blocked signal. Needs the main thread.
    """
    for name in ("SIGINT", "SIGHUP", "SIGQUIT", "SIGTERM", "SIGALRM", "SIGPROF", "SIGCHLD"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            default = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
            signal.signal(number, default)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, [])


class Child(subprocess.Popen[Any]):
    """A child process; its session ends with a ``with`` block, or with the tests."""

    def __exit__(self, *error: Any) -> None:
        self.end()

    def line(self) -> str:
        """The next line that the child prints, without its end; an error where there is none."""
        assert self.stdout is not None
        found = self.stdout.readline()
        if not found.endswith("\n"):
            out, err = self.communicate(timeout=DEADLINE_S)
            raise AssertionError(f"the child exited with {self.returncode}:\n{found}{out}\n{err}")
        return str(found[:-1])

    def ask(self, request: str) -> str:
        """Write a line to the child, and return the line that it answers with."""
        assert self.stdin is not None
        self.stdin.write(request + "\n")
        self.stdin.flush()
        return self.line()

    def end(self) -> None:
        """Kill the child and what it has started, and wait for them."""
        self.kill_session()
        with contextlib.suppress(OSError, ValueError):
            self.communicate(timeout=DEADLINE_S)

    def kill_session(self) -> None:
        """Kill the child, and on POSIX what it has started itself."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.pid, signal.SIGKILL)
            else:
                self.kill()


_started: weakref.WeakSet[Child] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for child in list(_started):
        if child.poll() is None:
            child.kill_session()


def start(
    command: Sequence[object],
    *,
    env: Mapping[str, str] | None = None,
    text: bool = True,
    stdin: int = subprocess.DEVNULL,
    **options: Any,
) -> Child:
    """A child process whose output is read through pipes.

    Args:
        command: the program and its arguments.
        env: the whole environment; that of this process when not given.
        text: whether the pipes carry text, in UTF-8, and not bytes.
        stdin: ``subprocess.PIPE`` for a child that is asked things.
        options: further options of ``subprocess.Popen``.
    """
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = Child(
        [str(part) for part in command],
        env=env,
        encoding="utf-8" if text else None,
        stdin=stdin,
        start_new_session=True,
        **{**piped, **options},
    )
    _started.add(child)
    return child


def run(
    command: Sequence[object],
    *,
    env: Mapping[str, str] | None = None,
    input: Any = None,
    text: bool = True,
    check: bool = False,
    deadline_s: float = DEADLINE_S,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """A child process that has ended, with its exit status and what it printed.

    Args:
        command: the program and its arguments.
        env: the whole environment; that of this process when not given.
        input: its standard input; empty when not given.
        text: whether input and output are text, and not bytes.
        check: whether an exit status other than 0 is an error, which shows what was printed.
        deadline_s: seconds until the child is killed and ``subprocess.TimeoutExpired`` is raised.
        options: further options of ``subprocess.Popen``.
    """
    stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
    with start(command, env=env, text=text, stdin=stdin, **options) as process:
        out, err = process.communicate(input, timeout=deadline_s)
    if check and process.returncode:
        raise AssertionError(f"{command!r} exited with {process.returncode}:\n{out}\n{err}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def until(
    holds: Callable[[], object], process: subprocess.Popen[Any] | None = None, what: str = ""
) -> None:
    """Wait until something holds: at most :data:`DEADLINE_S`, or as long as a process lives."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < DEADLINE_S, f"it does not come about: {what or holds}"
        if process is not None and process.poll() is not None and not holds():
            out, err = process.communicate()
            raise AssertionError(f"the process exited with {process.returncode}:\n{out}\n{err}")
        time.sleep(0.005)


def is_inside(thread: int, module: str) -> bool:
    """Whether a thread runs a function of a module, or waits in one that it calls."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_globals.get("__name__") == module:
            return True
        frame = frame.f_back
    return False
