"""Hypothesis profiles, and a count of what was compared."""

from __future__ import annotations

import os

import pytest
from strategies.profiles import CASES, register

register()


def pytest_sessionfinish(session):
    """A worker of pytest-xdist hands its counts over."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["cases"] = dict(CASES)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    CASES.update(getattr(node, "workeroutput", {}).get("cases", {}))


def pytest_terminal_summary(terminalreporter):
    if CASES:
        terminalreporter.section("cases compared")
        for name, count in sorted(CASES.items()):
            terminalreporter.write_line(f"{count:>10,}  {name}")


# The hostile inputs hold findings that are still open (CHANGELOG, known weaknesses): they run when
# asked for, TOKFOLD_HOSTILE=1, until every one of them is mended.
OPEN = ["python/test_hostile.py", "python/test_grammar_api.py"]
collect_ignore = [] if os.environ.get("TOKFOLD_HOSTILE") else OPEN
