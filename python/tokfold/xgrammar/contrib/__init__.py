"""XGrammar's integrations, over classes of tokens.

``hf``: the logits processor for transformers.
"""

from __future__ import annotations

from tokfold.xgrammar.contrib import hf

__all__ = ["hf"]
