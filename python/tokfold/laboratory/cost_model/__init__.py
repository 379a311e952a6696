"""What a step costs by its counters, and what of it shows (paper, section 10.2).

- ``model``: the cost of a step by its counters; ``step_time``: what of a mask shows in a step
- ``calibration``, ``fitting``: fitted on the machine at hand, and how good it is
- ``families``, ``programs``: the grammars and texts for that
"""

from __future__ import annotations

from tokfold.laboratory.cost_model.calibration import (
    Accuracy,
    calibrate,
    evaluate,
    rank_correlation,
    training_profiles,
)
from tokfold.laboratory.cost_model.families import TrainingCase, training_cases
from tokfold.laboratory.cost_model.fitting import (
    Affine,
    CostModelError,
    fit_affine,
    median_factor,
    spearman,
)
from tokfold.laboratory.cost_model.model import (
    FEATURES,
    CostModel,
    CostRanking,
    fit_cost_model,
    fit_ranking,
)
from tokfold.laboratory.cost_model.step_time import StepTime, predict_step_time, symbolic_time

__all__ = [
    "FEATURES",
    "Accuracy",
    "Affine",
    "CostModel",
    "CostModelError",
    "CostRanking",
    "StepTime",
    "TrainingCase",
    "calibrate",
    "evaluate",
    "fit_affine",
    "fit_cost_model",
    "fit_ranking",
    "median_factor",
    "predict_step_time",
    "rank_correlation",
    "spearman",
    "symbolic_time",
    "training_cases",
    "training_profiles",
]
