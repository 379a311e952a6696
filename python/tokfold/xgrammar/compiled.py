"""A compiled grammar: over classes of tokens, or plain where classes are not exact."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import xgrammar as xgr

import tokfold
from tokfold import _json
from tokfold._lazy import lazy
from tokfold.errors import TokfoldError
from tokfold.xgrammar.ending import EndingMatcher
from tokfold.xgrammar.forms import GrammarForm
from tokfold.xgrammar.lengths import alphabet, forced_text_ends
from tokfold.xgrammar.spelling import needs_bytes
from tokfold.xgrammar.vocabulary import FoldedVocabulary, Ids, SourceVocabulary, TokenClasses

__all__ = ["MAX_FORCED", "CompiledGrammar"]

ENVELOPE_VERSION = 1

MAX_STOP_SETS = 4
"""Sets of stop tokens for which a grammar keeps what counts tokens: requests may name their own."""

MAX_FORCED = 1 << 16
"""Bytes that jump-forward follows: XGrammar keeps some 6 KB for each."""


class Recompiler(Protocol):
    """A compiler that compiles again what was saved."""

    @property
    def vocabulary_fingerprint(self) -> str:
        """What a saved grammar is checked against."""

    def recompile(self, grammar: xgr.Grammar, *, trust_lookahead: bool) -> CompiledGrammar:
        """Compile a grammar that was compiled before."""


class CompiledGrammar:
    """What :class:`tokfold.xgrammar.GrammarCompiler` makes; not to be built by hand.

    Immutable, and safe to share between threads and matchers.

    Attributes:
        fallback_reason: why XGrammar runs over the full vocabulary, or None when it runs over
            classes.
    """

    _new_compiler: ClassVar[Callable[[xgr.TokenizerInfo], Recompiler]]
    """Makes the compiler of :meth:`deserialize_json`; the module of the compiler sets it."""

    def __init__(
        self,
        source: SourceVocabulary,
        grammar: xgr.Grammar,
        inner: xgr.CompiledGrammar,
        folded: FoldedVocabulary | None,
        fallback_reason: TokfoldError | None,
        compile_plain: Callable[[], xgr.CompiledGrammar],
        compile_own: Callable[[tuple[int, ...]], tokfold.CompiledGrammar],
        *,
        trust_lookahead: bool,
    ) -> None:
        self.fallback_reason = fallback_reason
        self._source = source
        self._grammar = grammar
        self._inner = inner
        self._folded = folded
        self._compile_plain = compile_plain
        self._compile_own = lru_cache(MAX_STOP_SETS)(compile_own)
        self._trust_lookahead = trust_lookahead
        self._lock = threading.RLock()
        self._byteless: xgr.CompiledGrammar | None = None
        self._plain: xgr.CompiledGrammar | None = inner if folded is None else None
        self._has_captures = folded is not None and GrammarForm(grammar).has_captures

    # ------------------------------------------------------- XGrammar's own

    @property
    def grammar(self) -> xgr.Grammar:
        """The grammar, as XGrammar gives it back after compiling."""
        if self._folded is None:
            return self._inner.grammar
        # Tokens that are taken whole are of a vocabulary.
        return self.plain.grammar if self.takes_tokens else self.byteless.grammar

    @property
    def tokenizer_info(self) -> xgr.TokenizerInfo:
        """The tokenizer info of the compiler."""
        return self._source.info

    @property
    def memory_size_bytes(self) -> int:
        """Approximate memory held by this grammar, in bytes."""
        folded = 0 if self._folded is None else self._folded.memory_size_bytes
        return int(self._inner.memory_size_bytes) + folded

    def serialize_json(self) -> str:
        """The grammar and the fingerprint of its vocabulary, as JSON.

        The classes are not in it: :meth:`deserialize_json` computes them again.
        """
        return _json.dumps(
            {
                "tokfold_xgrammar": ENVELOPE_VERSION,
                "vocabulary": self._source.fingerprint,
                "trust_lookahead": self._trust_lookahead,
                "grammar": _json.loads(self._grammar.serialize_json()),
            }
        )

    @staticmethod
    def deserialize_json(json_str: str, tokenizer_info: xgr.TokenizerInfo) -> CompiledGrammar:
        """Compile again what :meth:`serialize_json` wrote.

        Args:
            json_str: its result.
            tokenizer_info: of the vocabulary that the grammar was compiled for.

        Raises:
            InvalidJSONError: not JSON.
            DeserializeFormatError: not written by ``serialize_json``, or for another vocabulary.
            DeserializeVersionError: written by another version.
        """
        try:
            envelope: Any = _json.loads(json_str)
        except json.JSONDecodeError as error:
            raise xgr.InvalidJSONError(f"Failed to parse JSON: {error}") from error
        if not isinstance(envelope, dict) or "tokfold_xgrammar" not in envelope:
            raise xgr.DeserializeFormatError(
                "This was not written by CompiledGrammar.serialize_json of tokfold.xgrammar"
            )
        if envelope["tokfold_xgrammar"] != ENVELOPE_VERSION:
            raise xgr.DeserializeVersionError(
                f"Written in version {envelope['tokfold_xgrammar']}, this tokfold reads "
                f"{ENVELOPE_VERSION}"
            )
        compiler = CompiledGrammar._new_compiler(tokenizer_info)
        try:
            if compiler.vocabulary_fingerprint != envelope["vocabulary"]:
                raise xgr.DeserializeFormatError(
                    "The grammar was compiled for another vocabulary than tokenizer_info has"
                )
            grammar = xgr.Grammar.deserialize_json(_json.dumps(envelope["grammar"]))
            trust_lookahead = bool(envelope["trust_lookahead"])
        except KeyError as error:
            raise xgr.DeserializeFormatError(f"The field {error} is missing") from error
        return compiler.recompile(grammar, trust_lookahead=trust_lookahead)

    # --------------------------------------------------------------- tokfold

    @property
    def is_compressed(self) -> bool:
        """Whether XGrammar runs over classes of tokens here."""
        return self._folded is not None

    @property
    def folded(self) -> FoldedVocabulary:
        """The vocabulary that XGrammar sees.

        Raises:
            UnsupportedGrammarError, LimitExceededError: the grammar is not compressed, and why.
        """
        if self._folded is None:
            raise self._not_compressed()
        return self._folded

    @property
    def classes(self) -> TokenClasses:
        """The partition of the tokens by their bytes, a :class:`tokfold.TokenClasses`.

        Stop tokens and tokens named in the grammar are in it by their bytes; which bit of a class
        bitmask a token reads says :attr:`class_of_token`.

        Raises:
            UnsupportedGrammarError, LimitExceededError: the grammar is not compressed, and why.
        """
        return self.folded.classes

    @property
    def class_of_token(self) -> Ids:
        """The bit of each token in a class bitmask, to unfold on a device by a gather.

        A token is allowed exactly when its bit is set. There is no -1: tokens that are never
        allowed (special tokens, padding, dead ones) read a bit that is always 0.

        Returns:
            int32, shape ``(vocab_size,)``, values in ``[0, num_class_bits)``, read-only.

        Raises:
            UnsupportedGrammarError, LimitExceededError: the grammar is not compressed, and why.
        """
        return self.folded.view(self._source.stop_token_ids).class_of_token

    @property
    def num_class_bits(self) -> int:
        """Bits of a row of a class bitmask: the classes, the stop bit, a few that pad.

        Raises:
            UnsupportedGrammarError, LimitExceededError: the grammar is not compressed, and why.
        """
        return self.folded.size

    # ----------------------------------------------------- for the matchers

    @property
    def source(self) -> SourceVocabulary:
        """The model's vocabulary."""
        return self._source

    @property
    def inner(self) -> xgr.CompiledGrammar:
        """What XGrammar compiled: over representatives, or over the full vocabulary."""
        return self._inner

    @property
    def plain(self) -> xgr.CompiledGrammar:
        """Plain XGrammar over the full vocabulary, compiled when first asked for."""
        with self._lock:
            if self._plain is None:
                self._plain = self._compile_plain()
            return self._plain

    @property
    def has_captures(self) -> bool:
        """Whether the grammar is compressed and records captures."""
        return self._has_captures

    @lazy
    def takes_tokens(self) -> bool:
        """Whether the grammar takes tokens whole, by their ids."""
        return bool(GrammarForm(self._grammar).token_edges)

    @lazy
    def forced_text_ends(self) -> bool:
        """Whether jump-forward may be left to XGrammar: what is forced is known to end soon."""
        return forced_text_ends(GrammarForm(self._grammar), MAX_FORCED)

    @lazy
    def alphabet(self) -> bytes:
        """Bytes that may occur in a text of the grammar."""
        return alphabet(GrammarForm(self._grammar))

    @property
    def byteless(self) -> xgr.CompiledGrammar:
        """The grammar without a vocabulary: it reads strings only, and costs next to nothing."""
        with self._lock:
            if self._byteless is None:
                compiler = xgr.GrammarCompiler(
                    xgr.TokenizerInfo([]), max_threads=1, cache_enabled=False
                )
                self._byteless = compiler.compile_grammar(self._grammar)
            return self._byteless

    def counting(
        self,
        stop_token_ids: Collection[int],
        max_tokens: int,
        *,
        terminate_without_stop_token: bool,
    ) -> EndingMatcher:
        """What says which tokens leave a text of at most ``max_tokens`` to be completed.

        Raises:
            UnsupportedGrammarError, LimitExceededError: the grammar is not compressed, and why; or
                its tokens are not counted.
            TokenBudgetError: even the shortest text takes more.
            ValueError: ``max_tokens`` is negative.
        """
        if self._folded is None:
            raise self._not_compressed()
        stops = tuple(sorted(set(stop_token_ids)))
        with self._lock:
            own = self._compile_own(stops)
        matcher = tokfold.Matcher(
            own, terminate_without_stop_token=terminate_without_stop_token, max_tokens=max_tokens
        )
        form = GrammarForm(self._grammar)
        return EndingMatcher(
            matcher,
            as_bytes=needs_bytes(form),
            has_dead_ends=not forced_text_ends(form, sys.maxsize),
        )

    def _not_compressed(self) -> TokfoldError:
        reason = self.fallback_reason
        if reason is None:
            return TokfoldError("The vocabulary holds no token with text: there are no classes")
        return type(reason)(*_error_arguments(reason))


def _error_arguments(error: TokfoldError) -> tuple[object, ...]:
    """Arguments that make the same error again, so that each raise has its own traceback."""
    reduced = error.__reduce__()
    return tuple(reduced[1]) if isinstance(reduced, tuple) else error.args
