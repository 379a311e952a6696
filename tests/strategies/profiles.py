"""How hard to look: `TOKFOLD_HYPOTHESIS=long` for hours of cases, else a minute of fixed ones."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

LONG = os.environ.get("TOKFOLD_HYPOTHESIS") == "long"

LONG_FACTOR = int(os.environ.get("TOKFOLD_HYPOTHESIS_FACTOR", "40"))
"""How many times more examples a long run tries."""

CASES: Counter[str] = Counter()
"""What the tests of this session have really compared; printed at its end."""


def register() -> None:
    """Registers both profiles with Hypothesis and loads the one asked for."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    settings.register_profile(
        "fast", deadline=None, derandomize=True, database=None, suppress_health_check=checks
    )
    settings.register_profile("long", deadline=None, print_blob=True, suppress_health_check=checks)
    settings.load_profile("long" if LONG else "fast")


def some(count: int) -> int:
    """How many examples are tried of so many: a third when fast, :data:`LONG_FACTOR` times all."""
    return count * LONG_FACTOR if LONG else -(-count // 3)


def examples(count: int) -> Callable[[Any], Any]:
    """Decorator: :func:`some` of so many examples."""
    return settings(max_examples=some(count))
