"""The vocabulary of one tokenizer, folded under one grammar after the other."""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

import numpy as np

import tokfold
from tokfold.errors import GrammarSyntaxError, TokfoldError, UnsupportedGrammarError
from tokfold.xgrammar.forms import GrammarForm
from tokfold.xgrammar.spelling import in_bytes, needs_bytes, spell
from tokfold.xgrammar.vocabulary import FoldedVocabulary, SourceVocabulary

__all__ = ["Folder"]

MAX_STOP_SETS = 4
"""Vocabularies that are kept, one for each set of stop tokens: requests may name their own."""


class Folder:
    """Makes classes for XGrammar to run over.

    Safe to share between threads. The sorted vocabularies are kept: one, and another in the byte
    spelling (:mod:`tokfold.xgrammar.spelling`) once a grammar needs it.
    """

    def __init__(
        self,
        source: SourceVocabulary,
        limits: tokfold.Limits | None,
        cache_dir: str | Path | None,
    ) -> None:
        self._source = source
        self._limits = limits
        self._cache_dir = cache_dir
        self._vocabularies: dict[bool, tokfold.Vocabulary] = {}
        self._with_stops = lru_cache(MAX_STOP_SETS)(self._replaced)
        self._lock = threading.Lock()

    def fold(self, form: GrammarForm, text: str | None) -> FoldedVocabulary:
        """The small vocabulary for a grammar.

        Args:
            form: the grammar.
            text: the user's own text, to find places in, or None.
        """
        as_bytes = needs_bytes(form)
        spelled, root = spell(form)
        try:
            classes = self._classes(spelled, root, as_bytes)
        except (UnsupportedGrammarError, GrammarSyntaxError) as error:
            raise _located(error, text, form.root_name) from error
        return FoldedVocabulary(
            self._source,
            classes,
            singletons=form.token_ids & frozenset(range(self._source.size)),
            keep_dead=form.has_exclude_token,
        )

    def compile(
        self, form: GrammarForm, stop_token_ids: tuple[int, ...]
    ) -> tokfold.CompiledGrammar:
        """The grammar for tokfold's engine, over the model's vocabulary with these stop tokens."""
        if form.token_edges:
            raise UnsupportedGrammarError(
                "max_tokens: the grammar takes tokens by their ids, which are "
                "not counted under XGrammar; use tokfold.Matcher, or write their text",
                "max_tokens",
                1,
                1,
            )
        as_bytes = needs_bytes(form)
        text, root = spell(form)
        return tokfold.compile(
            tokfold.Grammar.from_ebnf(text, root=root, limits=self._limits),
            self._with_stops(as_bytes, stop_token_ids),
            self._limits,
            classes="never",
            options=tokfold.CompileOptions(check_tokens=False),
        )

    def _replaced(self, as_bytes: bool, stop_token_ids: tuple[int, ...]) -> tokfold.Vocabulary:
        return self._vocabulary(as_bytes).replace(stop_token_ids=stop_token_ids)

    def _classes(self, text: str, root: str, as_bytes: bool) -> tokfold.TokenClasses:
        classes = tokfold.compile_classes(
            tokfold.Grammar.from_ebnf(text, root=root, limits=self._limits),
            self._vocabulary(as_bytes),
            limits=self._limits,
            prune=False,  # XGrammar goes on along rules that can never be completed
            cache_dir=self._cache_dir,
        )
        return self._in_real_bytes(classes) if as_bytes else classes

    def _vocabulary(self, as_bytes: bool) -> tokfold.Vocabulary:
        with self._lock:
            vocabulary = self._vocabularies.get(as_bytes)
            if vocabulary is None:
                texts = self._source.token_bytes
                vocabulary = self._vocabularies[as_bytes] = tokfold.Vocabulary(
                    [in_bytes(text) for text in texts] if as_bytes else texts,
                    # by their bytes; which tokens stop is up to each matcher
                    stop_token_ids=[],
                    special_token_ids=self._source.empty_ids,
                )
            return vocabulary

    def _in_real_bytes(self, classes: tokfold.TokenClasses) -> tokfold.TokenClasses:
        """The same partition, with representatives of the model's vocabulary."""
        texts = self._source.token_bytes
        tokens = np.flatnonzero(classes.class_of >= 0)
        of_token = classes.class_of[tokens]
        lengths = np.array([len(texts[token]) for token in tokens.tolist()], dtype=np.int64)
        order = np.lexsort((tokens, lengths, of_token))  # by class, then length, then id
        firsts = np.searchsorted(of_token[order], np.arange(len(classes)))
        shortest = tokens[order][firsts].astype(np.uint32)
        header = dict(classes._header, vocabulary=self._vocabulary(False).fingerprint)
        return tokfold.TokenClasses(
            classes.class_of,
            shortest,
            [texts[token] for token in shortest.tolist()],
            header,
            {name: classes.stats[name] for name in classes.stats.keys() - header["stats"].keys()},
        )


def _located(error: TokfoldError, text: str | None, root: str) -> TokfoldError:
    """The error of the core at its place in the user's text, where it is met there too."""
    if text is not None and isinstance(error, UnsupportedGrammarError):
        try:
            grammar = tokfold.Grammar.from_ebnf(text, root=root, lookahead="implied")
            tokfold.recognize(grammar, b"")
        except UnsupportedGrammarError as located:
            if located.construct == error.construct:
                return located
        except TokfoldError:
            pass
    return error
