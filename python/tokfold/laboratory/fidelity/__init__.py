"""Faithfulness: what a mask does to the distribution of a model.

Masks make every text one of the language, but they do not give the model's distribution given that
the text is in the language: each step is blind to what the choice makes of the rest. Here is by
how much: measured for any model and any loop, and exact for small Markov models under unambiguous
grammars. The ground is section 8 of "Attention Meets Reachability"; see ``docs/laboratory``.

- ``hf``: one call for a model of transformers; ``recorder``: for any loop
- ``steppers``, ``samplers``, ``estimate``: models as samplers ask them, four ways to draw, and what
  the draws tell; ``plot``: a picture of it
- ``markov``, ``exact``, ``divergence``, ``bounds``: small models, and what is exact about them
- ``productions``, ``epsilon``, ``inside``, ``chart``, ``automaton``, ``parses``, ``unambiguity``:
  how that is computed; ``linear``, ``components``, ``utf8``: with what
- ``errors``: what can go wrong, by name
"""

from tokfold.laboratory.fidelity.bounds import (
    StepFidelity,
    kl_bound,
    log_spread,
    step_fidelity,
    total_variation_bound,
)
from tokfold.laboratory.fidelity.divergence import (
    KlDivergence,
    TotalVariation,
    kl_divergence,
    total_variation,
)
from tokfold.laboratory.fidelity.errors import (
    AmbiguousGrammarError,
    DeadEndError,
    ModelError,
    NotConvergedError,
    OutsideLanguageError,
    UnambiguityUnknownError,
)
from tokfold.laboratory.fidelity.estimate import (
    Estimate,
    KlEstimate,
    effective_sample_size,
    estimate_kl,
    estimate_log_h,
)
from tokfold.laboratory.fidelity.exact import ExactState, ExactSurvival
from tokfold.laboratory.fidelity.markov import MarkovModel
from tokfold.laboratory.fidelity.parses import count_parses
from tokfold.laboratory.fidelity.productions import Productions
from tokfold.laboratory.fidelity.recorder import Recorder, Sequences
from tokfold.laboratory.fidelity.samplers import Sample, draw, sample
from tokfold.laboratory.fidelity.steppers import Stepper
from tokfold.laboratory.fidelity.unambiguity import (
    Unambiguity,
    require_unambiguous,
)
from tokfold.vocabulary import byte_vocabulary

__all__ = [
    "AmbiguousGrammarError",
    "DeadEndError",
    "Estimate",
    "ExactState",
    "ExactSurvival",
    "KlDivergence",
    "KlEstimate",
    "MarkovModel",
    "ModelError",
    "NotConvergedError",
    "OutsideLanguageError",
    "Productions",
    "Recorder",
    "Sample",
    "Sequences",
    "StepFidelity",
    "Stepper",
    "TotalVariation",
    "Unambiguity",
    "UnambiguityUnknownError",
    "byte_vocabulary",
    "count_parses",
    "draw",
    "effective_sample_size",
    "estimate_kl",
    "estimate_log_h",
    "kl_bound",
    "kl_divergence",
    "log_spread",
    "require_unambiguous",
    "sample",
    "step_fidelity",
    "total_variation",
    "total_variation_bound",
]
