"""Instrumented engines (paper, section 10.1): one interface over ours, XGrammar and llguidance.

- ``base``: the interface; ``own``, ``xgrammar``, ``llguidance``: the engines; ``lark``: grammars
  for the last of them
- ``profile``, ``report``: a text through several engines; ``maskdiff``: where their masks differ
"""

from __future__ import annotations

from tokfold.laboratory.instruments.base import (
    Counts,
    EngineProfile,
    EngineRefusedError,
    EngineStoppedError,
    InstrumentedEngine,
    InstrumentError,
    Pass,
    Profile,
    StepCounters,
    TextRefusedError,
    Walk,
)
from tokfold.laboratory.instruments.llguidance import LlguidanceEngine
from tokfold.laboratory.instruments.own import OwnEngine
from tokfold.laboratory.instruments.profile import ENGINES, make_engine, profile, profile_engine
from tokfold.laboratory.instruments.xgrammar import XgrammarEngine
from tokfold.vocabulary import byte_vocabulary

__all__ = [
    "ENGINES",
    "Counts",
    "EngineProfile",
    "EngineRefusedError",
    "EngineStoppedError",
    "InstrumentError",
    "InstrumentedEngine",
    "LlguidanceEngine",
    "OwnEngine",
    "Pass",
    "Profile",
    "StepCounters",
    "TextRefusedError",
    "Walk",
    "XgrammarEngine",
    "byte_vocabulary",
    "make_engine",
    "profile",
    "profile_engine",
]
