"""Hypothesis profiles, default dispositions of signals, and a count of what was compared."""

from __future__ import annotations

import gc

import pytest
from strategies.profiles import CASES, register
from support.processes import default_signals

register()
default_signals()


def pytest_sessionstart():
    """Collecting makes millions of objects, none of which is garbage."""
    gc.disable()


def pytest_collection_finish():
    """Modules, tests and their cases stay: the collector need not look at them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


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
