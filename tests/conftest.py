"""Hypothesis profiles, and a count of what was compared."""

from __future__ import annotations

from strategies.profiles import CASES, register

register()


def pytest_terminal_summary(terminalreporter):
    if CASES:
        terminalreporter.section("cases compared")
        for name, count in sorted(CASES.items()):
            terminalreporter.write_line(f"{count:>10,}  {name}")
