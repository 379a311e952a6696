"""The grammar as an input of the model: conditioned logits and routing, never at the mask's cost.

A matcher knows which configurations are live; :class:`GrammarFeatures` writes them as numbers. A
learned embedding of these moves the logits (:class:`GrammarConditionedLogits`) or the gates of a
mixture of experts (:class:`GrammarRouter`). The hard mask comes last and overwrites, so what is
learned, and how badly, decides which allowed token is chosen and never which is allowed::

    features = GrammarFeatures(compiled)
    head = GrammarConditionedLogits(features, dim=32)
    seen = conditions_of(features, matchers)      # one row for each matcher
    logits = head(model(tokens), seen)            # -inf wherever a token may not come

Source: "Attention Meets Reachability", sections 9.1 (the mask), 9.2 (routing, equation 4) and 9.4
(definition 24, proposition 7).

- ``features``, ``configurations``: what a matcher knows, as numbers
- ``conditions``, ``modules``, ``masking``: a batch, the learned parts, and the hard mask
- ``errors``: what can go wrong
"""

from __future__ import annotations

from tokfold._extras import require

require("torch", "torch", "tokfold.laboratory.neural")

from tokfold.laboratory.neural.conditions import (  # noqa: E402 - after the check of the extra
    Conditions,
    conditions_along,
    conditions_of,
)
from tokfold.laboratory.neural.configurations import Configurations  # noqa: E402
from tokfold.laboratory.neural.errors import (  # noqa: E402
    FeatureMismatchError,
    NoTokenAllowedError,
    RefusedTokenError,
    UnusableLogitsError,
)
from tokfold.laboratory.neural.features import GrammarFeatures  # noqa: E402
from tokfold.laboratory.neural.masking import hard_mask, log_allowed_mass  # noqa: E402
from tokfold.laboratory.neural.modules import (  # noqa: E402
    GrammarConditionedLogits,
    GrammarEmbedding,
    GrammarRouter,
    Routing,
)

__all__ = [
    "Conditions",
    "Configurations",
    "FeatureMismatchError",
    "GrammarConditionedLogits",
    "GrammarEmbedding",
    "GrammarFeatures",
    "GrammarRouter",
    "NoTokenAllowedError",
    "RefusedTokenError",
    "Routing",
    "UnusableLogitsError",
    "conditions_along",
    "conditions_of",
    "hard_mask",
    "log_allowed_mass",
]
