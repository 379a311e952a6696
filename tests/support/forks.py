"""Work in processes of their own, whose memory and patience are bounded."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support.processes import DEADLINE_S

Write = Callable[[Any], None]


@dataclass
class Outcome:
    """What a process wrote, and how it ended."""

    lines: list[Any] = field(default_factory=list)
    trouble: str = ""
    """``""``, ``"signal 11"``, ``"exit 1"``, or that it hung."""
    stderr: str = ""


def forked(work: Callable[[Write], None], *, gigabytes: float, seconds: float) -> Outcome:
    """Do some work in a fork; it writes lines of JSON.

    Args:
        work: what is done.
        gigabytes: address space that it may take besides what there is.
        seconds: the time between two lines after which it is said to hang, and killed.
    """
    reader, writer = os.pipe()
    errors_out, errors_in = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if not process:
        os.close(reader)
        os.close(errors_out)
        os.dup2(errors_in, 2)
        os.dup2(errors_in, 1)
        _child(work, writer, gigabytes)
    os.close(writer)
    os.close(errors_in)
    outcome = Outcome()
    received = {reader: b"", errors_out: b""}
    waiting = {reader, errors_out}
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], seconds)
        if not ready:
            outcome.trouble = f"hung: nothing in {seconds:.0f} s"
            os.kill(process, signal.SIGKILL)
            break
        for source in ready:
            data = os.read(source, 1 << 16)
            received[source] += data
            if not data:
                waiting.discard(source)
    os.close(reader)
    os.close(errors_out)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code and not outcome.trouble:
        outcome.trouble = f"signal {-code}" if code < 0 else f"exit {code}"
    outcome.lines = [json.loads(line) for line in received[reader].splitlines()]
    outcome.stderr = received[errors_out].decode(errors="replace")[-2_000:]
    return outcome


def exit_code(work: Callable[[], object]) -> int:
    """The exit status of a fork that does some work: 0 where that is true, else 1.

    A negative status is the signal that ended it; a fork that hangs is killed after
    :data:`support.processes.DEADLINE_S`.
    """
    process = os.fork()
    if not process:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    until = time.monotonic() + DEADLINE_S
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.002)


def _child(work: Callable[[Write], None], writer: int, gigabytes: float) -> None:
    code = 1
    try:
        faulthandler.enable(2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        bound = used + int(gigabytes * (1 << 30))
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))

        def write(line: Any) -> None:
            os.write(writer, json.dumps(line).encode() + b"\n")

        work(write)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.stderr.flush()
        os._exit(code)
