"""Rewriting a grammar, its language kept, until an engine is fast on it (paper, section 10.3).

- ``api``: the call; ``search`` over ``profiles`` (what an engine likes) and ``rewrites``
- ``algebra``, ``facts``, ``system``: expressions, their strings, and rules while they are rewritten
- ``measure``, ``show``: times of several forms, and expressions for people
"""

from __future__ import annotations

from tokfold.laboratory.optimize.api import (
    MAX_PARTS,
    Check,
    Measurement,
    Optimized,
    RewriteFaultError,
    optimize,
)
from tokfold.laboratory.optimize.measure import Timing, time_forms
from tokfold.laboratory.optimize.profiles import PROFILES, Profile
from tokfold.laboratory.optimize.search import Choice
from tokfold.laboratory.optimize.system import OptimizeError, Rewrite

__all__ = [
    "MAX_PARTS",
    "PROFILES",
    "Check",
    "Choice",
    "Measurement",
    "OptimizeError",
    "Optimized",
    "Profile",
    "Rewrite",
    "RewriteFaultError",
    "Timing",
    "optimize",
    "time_forms",
]
