"""Child processes of the tests do not depend on how the suite is started."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest
from support import processes
from support.processes import DEADLINE_S

TESTS = Path(__file__).parents[1]
posix = pytest.mark.skipif(os.name != "posix", reason="dispositions of signals are of POSIX")

CHILD = (
    "import os, signal, sys\n"
    "ignored = [s.name for s in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}\n"
    "    if isinstance(s, signal.Signals) and signal.getsignal(s) is signal.SIG_IGN]\n"
    "blocked = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
    "print(ignored, blocked, os.getsid(0) == os.getpid(), repr(sys.stdin.read()))\n"
)
SUITE = (
    "import sys\n"
    "from support.processes import default_signals, run\n"
    "if sys.argv[1] == 'as the suite does': default_signals()\n"
    f"print(run([sys.executable, '-c', {CHILD!r}]).stdout, end='')\n"
)


def as_started_in_the_background() -> None:
    """What shells, ``nohup`` and runners do to what they start."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGALRM])


def started_in_the_background(how: str) -> str:
    return str(
        processes.run(
            [sys.executable, "-c", SUITE, how],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            preexec_fn=as_started_in_the_background,
            check=True,
        ).stdout
    )


@posix
def test_a_child_has_default_dispositions_whatever_the_parent_ignores() -> None:
    assert started_in_the_background("as the suite does") == "[] [] True ''\n"


@posix
def test_without_it_a_child_inherits_them() -> None:
    """Lest the test before holds because nothing is inherited."""
    assert "SIGINT" in started_in_the_background("as it comes")


@posix
def test_this_suite_ignores_no_interrupt() -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])


@posix
def test_what_a_child_has_started_ends_with_it() -> None:
    script = (
        "import subprocess, sys, time\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(other.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with processes.start([sys.executable, "-c", script]) as child:
        other = int(child.line())
        os.kill(other, 0)

    def is_over() -> bool:
        """Gone, or dead and not yet collected by whoever adopted it."""
        try:
            os.kill(other, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{other}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"

    processes.until(is_over)


def test_a_child_that_does_not_end_is_ended() -> None:
    with pytest.raises(processes.TimeoutExpired):
        processes.run([sys.executable, "-c", "import time; time.sleep(600)"], deadline_s=0.5)


def test_a_child_that_leaves_says_what_it_printed() -> None:
    with (
        processes.start([sys.executable, "-c", "import sys; sys.exit('gone')"]) as child,
        pytest.raises(AssertionError, match=r"exited with 1(.|\n)*gone"),
    ):
        child.line()
    with pytest.raises(AssertionError, match=r"exited with 1(.|\n)*gone"):
        processes.run([sys.executable, "-c", "import sys; sys.exit('gone')"], check=True)


RULES = {
    r"\bsubprocess\.(run|Popen|call|check_\w+)\b": "support.processes.run or start",
    r"^\s*[^\"'\n]*\bos\.(fork|kill)\(": "support.forks.exit_code or forked",
    r"\bsignal\.alarm\(": "support.processes.DEADLINE_S",
    r"\b(timeout|wait|join|result)\((timeout=)?[1-9]": "support.processes.DEADLINE_S",
}
CLOCKS = {
    r"\btime\.(monotonic|perf_counter|process_time|thread_time)\(": "counts, the order of events",
    r"\bRLIMIT_CPU\b": "limits that count work, or support.processes.DEADLINE_S",
}
MAY_LOOK = {
    "hostile/child.py": "it goes on with an input for so long; how far it comes decides nothing",
    "hostile/serving.py": "it serves for so long, and at least so many requests",
    "laboratory/test_lint_engines.py": "what another library takes long for is looked for",
}
"""Files that look at a clock, and why nothing depends on it."""


def test_every_test_starts_its_processes_by_the_one_helper() -> None:
    """And waits with the one deadline, and bounds no time: that fails on a machine that is busy."""
    assert DEADLINE_S >= 120
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        if path.parent.name == "support" or path == Path(__file__):
            continue
        text = path.read_text(encoding="utf-8")
        may_look = path.relative_to(TESTS).as_posix() in MAY_LOOK
        for pattern, instead in (RULES if may_look else {**RULES, **CLOCKS}).items():
            for match in re.finditer(pattern, text, re.MULTILINE):
                line = text.count("\n", 0, match.end()) + 1
                found.append(f"{path.relative_to(TESTS)}:{line}: use {instead}")
    assert found == []
