"""The vocabulary of a server, and the grammars of its requests, compiled once."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from tokfold._serving.settings import Settings
from tokfold._tags.markers import ignore_markers
from tokfold.compiler import GrammarCompiler
from tokfold.engine import CompiledGrammar
from tokfold.errors import TokfoldError
from tokfold.grammar import Grammar
from tokfold.vocabulary import Vocabulary

logger = logging.getLogger("tokfold")

_ANY_TAG = '{"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}'

_FIRST_SAVE = 16
"""Grammars compiled before the pool is saved; then after four times as many, and so on."""


def vocabulary_of(
    tokenizer: Any,  # noqa: ANN401 - of any package
    size: int,
    stop_token_ids: Iterable[int] | None = None,
) -> Vocabulary:
    """The vocabulary of a server's tokenizer.

    That is one of transformers, of mistral-common inside, or one that makes XGrammar's
    ``TokenizerInfo`` itself (``init_xgrammar``). Ends of text that the model does not have are left
    out; without any, they are those of the tokenizer.
    """
    stops = sorted({i for i in stop_token_ids or () if 0 <= i < size}) or None
    own = getattr(tokenizer, "init_xgrammar", None)
    if callable(own):
        info, overridden = own()
        if info is not None:
            tokens = list(info.decoded_vocab)[:size]
            stops = stops or list(overridden or info.stop_token_ids)
            return Vocabulary(tokens, stops, size=size, name=type(tokenizer).__name__)
    inner = getattr(tokenizer, "transformers_tokenizer", None) or tokenizer
    return Vocabulary.from_huggingface(inner, size, stops)


class Grammars:
    """The grammars of all requests of a server, compiled once.

    Two readings of one vocabulary: in ``text``, special tokens are never text, so that no JSON
    string holds one; in ``tags``, they are text, so that a structural tag can have them as its
    markers. The second compiler is made when first needed, or by :meth:`prepare`.

    Safe between threads.
    """

    def __init__(self, vocabulary: Vocabulary, settings: Settings) -> None:
        self.vocabulary = vocabulary
        self.settings = settings
        self.text = self.compiler(vocabulary)
        self._lock = threading.Lock()
        self._tags: GrammarCompiler | None = None
        self._next_save = _FIRST_SAVE

    def compiler(self, vocabulary: Vocabulary) -> GrammarCompiler:
        """One more compiler with the settings."""
        settings = self.settings
        return GrammarCompiler(
            vocabulary,
            limits=settings.request_limits,
            classes=settings.classes,
            cache_dir=settings.cache_dir,
        )

    @property
    def tags(self) -> GrammarCompiler:
        """The compiler to which special tokens are text."""
        with self._lock:
            if self._tags is None:
                special = bool(self.vocabulary.special_token_ids)
                vocabulary = self.vocabulary.replace(special_token_ids=())
                # A server adds stop tokens of its own, which is no reason to refuse a request:
                # their texts are spelled by other tokens, as XGrammar has it.
                ignore_markers(vocabulary)
                ignore_markers(self.vocabulary)
                self._tags = self.compiler(vocabulary) if special else self.text
            return self._tags

    def prepare(self) -> threading.Thread:
        """Begin a thread that makes what the first structural tag would wait for, some 0.1 s."""

        def work() -> None:
            try:
                Grammar.from_structural_tag(_ANY_TAG, vocabulary=self.tags.vocabulary)
            except TokfoldError as error:  # the first request says so
                logger.debug("no structural tag was prepared: %s", error)

        thread = threading.Thread(target=work, name="tokfold-tags", daemon=True)
        thread.start()
        return thread

    def made(self, compile: Callable[[], CompiledGrammar]) -> CompiledGrammar:
        """Compile, and save the pool now and then: servers seldom end in peace."""
        compiled = compile()
        if self.settings.cache_dir is not None:
            with self._lock:
                made = sum(compiler.statistics().misses for compiler in self._compilers())
                due = made >= self._next_save
                if due:
                    self._next_save *= 4
            if due:
                self.save()
        return compiled

    def save(self) -> None:
        """Write the pools where there is a ``cache_dir``; a failure is logged."""
        if self.settings.cache_dir is None:
            return
        for compiler in self._compilers():
            try:
                compiler.save()
            except (OSError, TokfoldError) as error:
                logger.warning("the masks were not saved: %s", error)

    def clear(self) -> None:
        """Forget the compiled grammars and the pools."""
        for compiler in self._compilers():
            compiler.clear_cache()

    def _compilers(self) -> set[GrammarCompiler]:
        return {self.text} if self._tags is None else {self.text, self._tags}


_grammars: weakref.WeakValueDictionary[tuple[str, Settings], Grammars] = (
    weakref.WeakValueDictionary()
)
_grammars_lock = threading.Lock()


def grammars_of(vocabulary: Vocabulary, settings: Settings) -> Grammars:
    """The one :class:`Grammars` of this process for a vocabulary and settings."""
    with _grammars_lock:
        key = (vocabulary.fingerprint, settings)
        found = _grammars.get(key)
        if found is None:
            found = _grammars[key] = Grammars(vocabulary, settings)
        return found


def _after_fork() -> None:
    """In a child process: other threads of the parent may have held the locks."""
    global _grammars_lock
    _grammars_lock = threading.Lock()
    for grammars in list(_grammars.values()):
        grammars._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _save_all() -> None:
    for grammars in list(_grammars.values()):
        grammars.save()
