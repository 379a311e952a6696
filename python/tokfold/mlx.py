"""A logits processor for ``mlx-lm``: the generated text stays within a grammar.

::

    compiled = tokfold.compile(grammar, vocabulary)
    processor = GrammarLogitsProcessor(compiled)
    generate(model, tokenizer, prompt, logits_processors=[processor])

It takes grammars compiled for tokfold's own engine and those of :mod:`tokfold.xgrammar`; XGrammar
is needed for the latter only.

What stands in ``tokens`` at the first call is prompt; a grammar sees only what is generated after
it. The model ends where the tokenizer of ``mlx-lm`` says, so compile with its stop tokens:
``Vocabulary.from_huggingface(tokenizer, stop_token_ids=tokenizer.eos_token_ids)``.
"""

from __future__ import annotations

from tokfold._extras import require
from tokfold._history import SequenceProcessor

require("mlx.core", "mlx", "tokfold.mlx")

import mlx.core as mx  # noqa: E402 - after the check that names the extra

__all__ = ["GrammarLogitsProcessor"]


class GrammarLogitsProcessor(SequenceProcessor):
    """Masks what a grammar does not allow next, for one sequence.

    Drafts that are taken back (``draft_model``) are followed. In a batch each sequence needs a
    processor of its own: ``BatchGenerator.insert(prompts, logits_processors=[[p], [q]])``; one that
    is shared raises as soon as its first sequence comes back.

    A processor may be used for one generation after another: tokens that do not go on from those
    of the last call are a new prompt. Only one case is beyond this rule: a new prompt that is the
    old one, some or all of what was generated after it, and one token more; call :meth:`reset`
    before it.

    After a stop token logits are left as they are: ``mlx-lm`` looks ahead by a token, and drops it.
    Columns past the vocabulary of the grammar are masked.

    Args:
        compiled_grammar: of either engine.
        on_error: what to do where a token or mask passes a limit, or no token of the vocabulary
            spells what must come next. ``"end"``: the text ends; from then on only its stop tokens
            are allowed, the reason is logged and in :attr:`failures`. ``"raise"``: the call raises
            it. ``"unconstrained"``: a warning, and the text goes on as the model has it, which is
            no longer of the grammar.
        max_tokens: the tokens that a text may take, the stop token counted: what the library is
            told, too. A token is masked when the text could not be completed with those that are
            left, so no text is cut.
        prefer_end: how many of the last of these tokens begin nothing new, as
            :class:`tokfold.Matcher` has it.
        prefix: the end of the prompt that belongs to the text: what the assistant's turn was begun
            with. A grammar sees it before the first token.

    Raises:
        TokenBudgetError: even the shortest text takes more than ``max_tokens``.
        MatcherStateError: no text of a grammar begins with ``prefix``.
        UnsupportedGrammarError: ``max_tokens`` for a grammar that cannot be counted, as those of
            :mod:`tokfold.xgrammar`.
        TypeError: something else than a compiled grammar.
        ValueError: ``on_error`` is none of the three, or ``"end"`` and there is no stop token.
    """

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """Mask the logits of the next token.

        Args:
            tokens: integers, shape ``(length,)``: prompt and what was generated.
            logits: floating, shape ``(1, width)``; not written to.

        Returns:
            The logits, masked; shape and dtype stay.

        Raises:
            ValueError: there is more than one row.
            VocabularyError: there are fewer columns than tokens in the vocabulary.
            MatcherStateError: a token was generated that had been masked, or the processor is
                shared by several sequences.
            TokfoldError: a limit was passed, or no token can follow (:class:`UnwritableTextError`),
                where ``on_error="raise"``.
        """
        if logits.ndim != 2 or logits.shape[0] != 1:
            raise ValueError(
                f"logits must have the shape (1, width), not {tuple(logits.shape)}: each sequence "
                "needs a processor of its own"
            )
        # The model goes on while we wait for the last token and make the mask.
        mx.async_eval(logits)
        self._sequence.follow(tokens)
        allowed = self._sequence.allowed(logits.shape[1])
        if allowed is None:
            return logits
        return mx.where(mx.array(allowed), logits, mx.array(-mx.inf, dtype=logits.dtype))
