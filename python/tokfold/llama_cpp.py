"""A logits processor for ``llama-cpp-python``: the generated text stays within a grammar.

::

    llm = llama_cpp.Llama("model.gguf")
    compiled = tokfold.compile(grammar, vocabulary(llm))
    processor = GrammarLogitsProcessor(compiled)
    llm.create_completion(
        prompt,
        logits_processor=llama_cpp.LogitsProcessorList([processor]),
        stopping_criteria=llama_cpp.StoppingCriteriaList([processor.should_stop]),
    )

It takes grammars compiled for tokfold's own engine and those of :mod:`tokfold.xgrammar`; XGrammar
is needed for the latter only. The processor itself needs numpy alone.

What stands in ``input_ids`` at the first call is prompt; a grammar sees only what is generated
after it.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokfold._extras import require
from tokfold._history import SequenceProcessor
from tokfold.errors import MatcherStateError, VocabularyError
from tokfold.vocabulary import Vocabulary

if TYPE_CHECKING:
    import llama_cpp

__all__ = ["GrammarLogitsProcessor", "vocabulary"]


class GrammarLogitsProcessor(SequenceProcessor):
    """Masks what a grammar does not allow next, for one sequence.

    A processor may be used for one generation after another: tokens that do not go on from those
    of the last call are a new prompt. Where they do, as with the next turn of a conversation, call
    :meth:`reset` before it: otherwise that raises.

    ``llama-cpp-python`` drops what a processor raises. Then this one allows nothing but the stop
    tokens, where there are any, and keeps the error for :meth:`should_stop`, which goes with the
    processor, and for :meth:`check`.

    After a stop token scores are left as they are. Columns past the vocabulary of the grammar are
    masked.

    Two options of ``llama-cpp-python`` do not go with any processor. With a ``draft_model``
    processors are told drafts as if they had been generated, which raises here. With ``logit_bias``
    no processor is called.

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

    _error: BaseException | None = None

    def reset(self) -> None:
        """Take the next call for the first of a generation, and forget an error."""
        super().reset()
        self._error = None

    def __call__(
        self, input_ids: npt.NDArray[np.intc], scores: npt.NDArray[np.single]
    ) -> npt.NDArray[np.single]:
        """Mask the scores of the next token.

        Args:
            input_ids: integers, shape ``(length,)``: prompt and what was generated.
            scores: floating, shape ``(width,)``, of any stride; written to.

        Returns:
            ``scores``, masked.

        Raises:
            ValueError: there is more than one row.
            VocabularyError: there are fewer columns than tokens in the vocabulary.
            MatcherStateError: a token was generated that had been masked, there is a draft model,
                or the processor is shared by several models.
            TokfoldError: a limit was passed, or no token can follow (:class:`UnwritableTextError`),
                where ``on_error="raise"``.
        """
        if scores.ndim != 1:
            raise ValueError(f"scores must have the shape (width,), not {scores.shape}")
        self._error = None
        try:
            allowed = self._allowed(input_ids, len(scores))
        except BaseException as error:
            self._error = error
            allowed = np.isin(np.arange(len(scores)), self._stops)
            if allowed.any():  # the library draws from these scores, before anybody sees the error
                scores[~allowed] = -np.inf
            raise
        if allowed is not None:
            # By numbers: a mask as an index takes four times as long where it looks random.
            scores[np.flatnonzero(~allowed)] = -np.inf
        return scores

    def should_stop(self, input_ids: npt.NDArray[np.intc], logits: npt.NDArray[np.single]) -> bool:
        """An item of a ``StoppingCriteriaList``: whether a stop token was generated.

        Raises:
            Exception: what the call before raised, and the library dropped.
        """
        del input_ids, logits  # those of the last call
        self.check()
        return self._sequence.has_ended

    def check(self) -> None:
        """Raise what the last call raised; for ``create_chat_completion``, which has no criteria.

        Raises:
            Exception: as the call.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _allowed(self, input_ids: npt.NDArray[np.intc], width: int) -> npt.NDArray[np.bool_] | None:
        if self._sequence.jumps(input_ids):
            raise MatcherStateError(
                "several tokens came at once: of a draft model, with which llama-cpp-python does "
                "not tell processors where they are, or of a new prompt that goes on from the "
                "last text. Leave out draft_model; call reset() before such a prompt."
            )
        self._sequence.follow(input_ids)
        return self._sequence.allowed(width)


def vocabulary(llm: llama_cpp.Llama) -> Vocabulary:
    """The vocabulary of a loaded model.

    Stop tokens are those that the model's file calls ends of generation, special tokens its control
    and unknown tokens.

    Args:
        llm: the model; ``vocab_only=True`` is enough.

    Raises:
        MissingExtraError: ``llama-cpp-python`` is not installed.
        VocabularyError: the file has no vocabulary, or one whose bytes depend on the neighbours of
            a token (WordPiece).
    """
    api = require("llama_cpp", "llama-cpp", "tokfold.llama_cpp.vocabulary")
    source = api.llama_model_get_vocab(llm.model)
    kind = api.llama_vocab_type(source)
    if kind in (api.LLAMA_VOCAB_TYPE_NONE, api.LLAMA_VOCAB_TYPE_WPM):
        what = "WordPiece, whose tokens have no bytes of their own" if kind else "no vocabulary"
        raise VocabularyError(f"{llm.model_path}: the file has {what}")
    size = api.llama_vocab_n_tokens(source)
    mark = api.LLAMA_TOKEN_ATTR_CONTROL | api.LLAMA_TOKEN_ATTR_UNKNOWN
    buffer = ctypes.create_string_buffer(64)
    tokens = []
    for token in range(size):
        length = api.llama_token_to_piece(source, token, buffer, len(buffer), 0, True)
        if length < 0:  # what it would have taken
            buffer = ctypes.create_string_buffer(-length)
            length = api.llama_token_to_piece(source, token, buffer, len(buffer), 0, True)
        tokens.append(buffer.raw[:length])
    return Vocabulary(
        tokens,
        stop_token_ids=[i for i in range(size) if api.llama_vocab_is_eog(source, i)],
        special_token_ids=[i for i in range(size) if api.llama_vocab_get_attr(source, i) & mark],
        name=Path(llm.model_path).stem,
    )
