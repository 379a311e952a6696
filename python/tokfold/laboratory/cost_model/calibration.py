"""Fitting the cost model of our own engine on the machine at hand, and saying how good it is."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

import tokfold
from tokfold.grammar import Grammar
from tokfold.laboratory.cost_model.families import TrainingCase, training_cases
from tokfold.laboratory.cost_model.fitting import (
    CostModelError,
    Floats,
    median_factor,
    spearman,
)
from tokfold.laboratory.cost_model.model import CostModel, CostRanking, fit_cost_model
from tokfold.laboratory.instruments.base import EngineProfile, Pass
from tokfold.laboratory.instruments.profile import EngineFactory, make_engine, profile
from tokfold.vocabulary import Vocabulary

__all__ = [
    "Accuracy",
    "calibrate",
    "evaluate",
    "machine",
    "rank_correlation",
    "training_profiles",
]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Accuracy:
    """How far a model is off, mask and reading of a token together.

    Attributes:
        steps: how many were predicted, cold and warm.
        factor: ``exp(median |log predicted - log measured|)`` over all.
        cold: the same over the cold pass.
        made: the same over steps of the cold pass whose masks had to be made.
        warm: the same over the warm pass.
        rank: Spearman's correlation over all steps.
        by_grammar: the factor for each grammar.
    """

    steps: int
    factor: float
    cold: float
    made: float
    warm: float
    rank: float
    by_grammar: dict[str, float]

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def training_profiles(
    vocabulary: Vocabulary,
    engine: str | EngineFactory,
    cases: list[TrainingCase] | None = None,
    *,
    repeats: int = 5,
    seconds: float = 10.0,
    max_tokens: int | None = None,
    progress: Progress | None = None,
) -> dict[str, EngineProfile]:
    """The profile of each training case that the engine takes, by name.

    Args:
        vocabulary: the vocabulary.
        engine: a name, or what makes the engine.
        cases: None: all of :func:`training_cases`.
        repeats: as for :func:`.profile.profile`, for each case.
        seconds: likewise.
        max_tokens: likewise.
        progress: told how many of how many cases are done.
    """
    chosen = training_cases() if cases is None else cases
    found: dict[str, EngineProfile] = {}
    for index, case in enumerate(chosen):
        made = profile(
            Grammar.from_ebnf(case.grammar),
            vocabulary,
            case.text,
            {"engine": partial(make_engine, engine)},
            repeats=repeats,
            seconds=seconds,
            max_tokens=max_tokens,
        )
        if "engine" in made.engines and len(made.engines["engine"].allowed):
            found[case.name] = made.engines["engine"]
        if progress is not None:
            progress(index + 1, len(chosen))
    return found


def calibrate(
    vocabulary: Vocabulary,
    *,
    repeats: int = 5,
    progress: Progress | None = None,
) -> CostModel:
    """Fit the model of our own engine to this machine and a vocabulary; some ten seconds.

    Nothing else should run meanwhile.
    """
    found = training_profiles(vocabulary, "own", repeats=repeats, progress=progress)
    passes = [one for each in found.values() for one in (each.cold, each.warm)]
    about = {
        **machine(),
        "vocabulary": vocabulary.name,
        "tokens": len(vocabulary),
        "training": sorted(found),
    }
    return fit_cost_model(passes, about)


def evaluate(model: CostModel, profiles: Mapping[str, EngineProfile]) -> Accuracy:
    """Compare a model with what was measured, on grammars that it was not fitted to.

    Raises:
        CostModelError: there is nothing to compare.
    """
    if not profiles:
        raise CostModelError("there are no profiles to compare the model with")
    pairs: dict[tuple[str, str], tuple[Floats, Floats]] = {}
    made: list[tuple[Floats, Floats]] = []
    for name, one in profiles.items():
        for which, way in one.passes().items():
            predicted, measured = model.predict(way.counters), way.total("min")
            pairs[name, which] = predicted, measured
            if which == "cold":
                is_made = way.counters["mask.memo_misses"] > 0
                made.append((predicted[is_made], measured[is_made]))
    cold = [pair for (_, which), pair in pairs.items() if which == "cold"]
    warm = [pair for (_, which), pair in pairs.items() if which == "warm"]
    return Accuracy(
        steps=sum(len(measured) for _, measured in pairs.values()),
        factor=_factor([*cold, *warm]),
        cold=_factor(cold),
        made=_factor(made),
        warm=_factor(warm),
        rank=spearman(*_joined([*cold, *warm])),
        by_grammar={name: _factor([pairs[name, "cold"], pairs[name, "warm"]]) for name in profiles},
    )


def rank_correlation(ranking: CostRanking, passes: Mapping[str, Pass]) -> float:
    """Spearman's correlation of a ranking with measured times, over all steps of all passes."""
    if not passes:
        raise CostModelError("there are no passes to compare the ranking with")
    names = next(iter(passes.values())).counters
    together = {
        name: np.concatenate([one.counters[name] for one in passes.values()]) for name in names
    }
    measured = np.concatenate([one.total("min") for one in passes.values()])
    return spearman(ranking.ranks(together), measured)


def _joined(pairs: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    return np.concatenate([p for p, _ in pairs]), np.concatenate([m for _, m in pairs])


def _factor(pairs: list[tuple[Floats, Floats]]) -> float:
    predicted, measured = _joined(pairs)
    return median_factor(predicted, measured) if len(measured) else float("nan")


def machine() -> dict[str, Any]:
    """What times were measured on."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "tokfold": tokfold.__version__,
    }
