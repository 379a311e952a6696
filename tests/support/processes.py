"""Child processes that do not depend on how the suite is started.

A shell ignores SIGINT for what it puts into the background, ``nohup`` ignores SIGHUP, a runner may
have no terminal and no standard input. A child process inherits all of that. :func:`run` and
:func:`start` give each child the default dispositions of signals, a session of its own, an empty
standard input, and a deadline after which its whole session is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["DEADLINE_S", "default_signals", "interrupt", "run", "start", "until"]

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


@contextlib.contextmanager
def start(
    command: Sequence[object],
    *,
    env: Mapping[str, str] | None = None,
    text: bool = True,
    stdin: int = subprocess.DEVNULL,
    **options: Any,
) -> Iterator[subprocess.Popen[Any]]:
    """A child process whose output is read through pipes; its session ends with the block.

    Args:
        command: the program and its arguments.
        env: variables beside those of this process.
        text: whether the pipes carry text, and not bytes.
        stdin: ``subprocess.PIPE`` for a child that is asked things.
        options: further options of ``subprocess.Popen``.
    """
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, **(env or {})},
        text=text,
        stdin=stdin,
        start_new_session=True,
        **{**piped, **options},
    )
    try:
        yield process
    finally:
        _kill_session(process)
        with contextlib.suppress(OSError, ValueError):
            process.communicate(timeout=DEADLINE_S)


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
        env: variables beside those of this process.
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


def interrupt(process: subprocess.Popen[Any]) -> None:
    """What Ctrl-C does to a program in the foreground: SIGINT for all of its session."""
    os.killpg(process.pid, signal.SIGINT)


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


def _kill_session(process: subprocess.Popen[Any]) -> None:
    """End a child and what it has started itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
