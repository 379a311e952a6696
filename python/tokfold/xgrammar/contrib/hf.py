"""``xgrammar.contrib.hf``: a logits processor for ``transformers``, with XGrammar's signature.

:class:`tokfold.transformers.GrammarLogitsProcessor` does more: beams, left padding, a second
``generate()``.
"""

from __future__ import annotations

import torch
import transformers
import xgrammar as xgr

from tokfold.xgrammar.compiled import CompiledGrammar
from tokfold.xgrammar.matcher import GrammarMatcher

__all__ = ["LogitsProcessor"]


class LogitsProcessor(transformers.LogitsProcessor):
    """Keeps each row of a batch within its grammar; for one ``generate()``, without beams.

    Args:
        compiled_grammar: one for all rows, or a list with one for each.
        max_tokens: each row ends within so many tokens, the stop token counted: the
            ``max_new_tokens`` of ``generate()``. XGrammar has no such bound.

    Raises:
        TokenBudgetError, UnsupportedGrammarError: with the first scores, as
            :class:`tokfold.xgrammar.GrammarMatcher` for ``max_tokens``.
    """

    def __init__(
        self,
        compiled_grammar: CompiledGrammar | list[CompiledGrammar],
        *,
        max_tokens: int | None = None,
    ) -> None:
        self.max_tokens = max_tokens
        self.matchers: list[GrammarMatcher] = []
        self.compiled_grammars = (
            compiled_grammar if isinstance(compiled_grammar, list) else [compiled_grammar]
        )
        self.full_vocab_size = self.compiled_grammars[0].tokenizer_info.vocab_size
        self.token_bitmask: torch.Tensor | None = None
        self.prefilled = False
        self.batch_size = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Take the tokens sampled last, and mask what may not come next.

        Args:
            input_ids: int64, shape ``(batch, length)``.
            scores: shape ``(batch, vocabulary)``; written to on the CPU and on CUDA.

        Returns:
            The masked scores.

        Raises:
            ValueError: not as many grammars as rows.
            RuntimeError: the batch has changed, or a token was sampled that was masked.
        """
        if not self.matchers:
            self._start(input_ids.shape[0])
        if input_ids.shape[0] != self.batch_size:
            raise RuntimeError(
                "Expect input_ids.shape[0] to be LogitsProcessor.batch_size."
                f"Got {input_ids.shape[0]} for the former, and {self.batch_size} for the latter."
            )
        if self.prefilled:
            for row, matcher in enumerate(self.matchers):
                token = int(input_ids[row, -1])
                if not matcher.is_terminated() and not matcher.accept_token(token):
                    raise RuntimeError(f"Row {row} was given token {token}, which is masked")
        self.prefilled = True
        assert self.token_bitmask is not None
        for row, matcher in enumerate(self.matchers):
            if not matcher.is_terminated():
                matcher.fill_next_token_bitmask(self.token_bitmask, row)
        masked: torch.Tensor = scores if scores.device.type == "cuda" else scores.to("cpu")
        xgr.apply_token_bitmask_inplace(masked, self.token_bitmask.to(masked.device))
        return masked.to(scores.device)

    def _start(self, batch_size: int) -> None:
        self.batch_size = batch_size
        if len(self.compiled_grammars) == 1:
            self.compiled_grammars = self.compiled_grammars * batch_size
        if len(self.compiled_grammars) != batch_size:
            raise ValueError(
                "The number of compiled grammars must be equal to the batch size: "
                f"{len(self.compiled_grammars)} for {batch_size} rows"
            )
        self.matchers = [
            GrammarMatcher(compiled, max_tokens=self.max_tokens)
            for compiled in self.compiled_grammars
        ]
        self.token_bitmask = xgr.allocate_token_bitmask(batch_size, self.full_vocab_size)
