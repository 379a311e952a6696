"""Compiling for a server: grammars that arrive with requests, thousands of them."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from tokfold._background import in_background
from tokfold._cache import CacheWarning, check_folder, usable_folder
from tokfold._converters import TAG_LEVELS, json_text
from tokfold.engine import ClassesMode, CompiledGrammar, compile
from tokfold.errors import (
    ArtifactError,
    LimitExceededError,
    TokfoldError,
    UnsupportedGrammarError,
    VocabularyError,
)
from tokfold.grammar import Grammar
from tokfold.limits import Limits
from tokfold.pool import DEFAULT_BYTES, MaskPool
from tokfold.vocabulary import Vocabulary

__all__ = ["CompilerStatistics", "GrammarCompiler"]

_SEED = r"""
root ::= "{" (string | bounded | filled) "}"
string ::= "\"" inside
inside ::= "\"" | [^"\\\x00-\x1f] inside | "\\" escape inside
escape ::= ["\\/bfnrt] | "u" [0-9A-Fa-f] [0-9A-Fa-f] [0-9A-Fa-f] [0-9A-Fa-f]
bounded ::= "\"" [^"\\\r\n]{0,100000} "\""
filled ::= "\"" [^"\\\r\n]{100000,200000} "\""
"""
"""What nearly every request holds: JSON strings, with and without bounds on their length."""

_POOL_NAME = "mask-pool.tokfold"

Kind = Literal["grammar", "json_schema", "regex", "lark", "structural_tag"]
_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class CompilerStatistics:
    """What a compiler did and holds."""

    hits: int
    """Requests that found their grammar compiled."""
    waits: int
    """Requests that waited for another that compiled the same."""
    misses: int
    """Requests that compiled."""
    evicted: int
    """Compiled grammars that went to make room."""
    failures: int
    """Requests whose grammar was refused."""
    grammars: int
    """Compiled grammars held."""
    seconds: float
    """Spent compiling."""
    pool: dict[str, int]
    """Counters of the pool: see :meth:`MaskPool.counters`."""


class GrammarCompiler:
    """A vocabulary with what was compiled for it; the methods have XGrammar's names.

    Equal requests are compiled once: those that come while the first is at work wait for it. What
    masks remember is shared between grammars by a :class:`MaskPool`, bounded in bytes, which a
    folder keeps from one process to the next. Safe between threads.

    ::

        compiler = tokfold.GrammarCompiler(vocabulary)
        compiled = compiler.compile_json_schema({"type": "object"})
        matcher = tokfold.Matcher(compiled)
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        limits: Limits | None = None,
        classes: ClassesMode = "auto",
        max_grammars: int = 1_000,
        max_pool_bytes: int = DEFAULT_BYTES,
        cache_dir: str | PathLike[str] | None = None,
        seed: bool = True,
    ) -> None:
        """A compiler without grammars.

        Args:
            vocabulary: the vocabulary of all grammars.
            limits: bounds for each grammar and its masks.
            classes: as for :func:`tokfold.compile`.
            max_grammars: compiled grammars held; the one not asked for longest goes first. Who
                uses one keeps it alive.
            max_pool_bytes: bound on the pool; 0 shares nothing between grammars.
            cache_dir: a folder for classes, as for :func:`tokfold.compile_classes`, and for the
                pool, which is read now and written by :meth:`save` and :meth:`close`. One that
                cannot be written, or vanishes, is a :class:`CacheWarning`; requests go on.
            seed: put what nearly every request holds into the pool now, in some milliseconds.

        Raises:
            ValueError: ``max_grammars`` is negative.
            ArtifactError: ``cache_dir`` is a file.
        """
        check_folder(cache_dir)
        if max_grammars < 0:
            raise ValueError(f"max_grammars must not be negative, not {max_grammars}")
        self.vocabulary = vocabulary
        self.limits = limits or Limits()
        self.pool = MaskPool(vocabulary, max_pool_bytes)
        self.max_grammars = max_grammars
        self._classes: ClassesMode = classes
        self._cache_dir = None if cache_dir is None else Path(cache_dir)
        self._lock = threading.Lock()
        self._compiled: OrderedDict[object, Future[CompiledGrammar]] = OrderedDict()
        self._hits = self._waits = self._misses = self._evicted = self._failures = 0
        self._seconds = 0.0
        _compilers.add(self)
        self._load()
        if seed and max_pool_bytes:
            grammar = Grammar.from_ebnf(_SEED)
            compile(grammar, vocabulary, classes="never", pool=self.pool).warm()

    # -- compiling ---------------------------------------------------------------------------

    def compile_grammar(self, grammar: Grammar | str) -> CompiledGrammar:
        """Compile a grammar, or grammar text.

        Raises:
            GrammarSyntaxError, UnsupportedGrammarError, LimitExceededError: as
                :meth:`Grammar.from_ebnf` and :func:`tokfold.compile`.
        """
        if isinstance(grammar, str):
            return self._get(
                ("ebnf", grammar), lambda: Grammar.from_ebnf(grammar, limits=self.limits)
            )
        return self._get(("grammar", grammar._key), lambda: grammar)

    def compile_json_schema(
        self, schema: str | dict[str, Any] | bool, **options: Any
    ) -> CompiledGrammar:
        """Compile a JSON schema; options, errors: those of :meth:`Grammar.from_json_schema`."""
        text = schema if isinstance(schema, str) else json_text(schema, "JSON schema")
        key = ("json schema", text, _key_of(options))
        return self._get(key, lambda: Grammar.from_json_schema(text, **options))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Compile the grammar of any JSON."""
        return self.compile_json_schema(True, strict_mode=False)

    def compile_regex(self, pattern: str) -> CompiledGrammar:
        """Compile a regular expression."""
        return self._get(("regex", pattern), lambda: Grammar.from_regex(pattern))

    def compile_lark(self, text: str, **options: Any) -> CompiledGrammar:
        """Compile a Lark grammar; the options are those of :meth:`Grammar.from_lark`."""
        key = ("lark", text, _key_of(options))
        return self._get(key, lambda: Grammar.from_lark(text, **options))

    def compile_structural_tag(self, tag: object) -> CompiledGrammar:
        """Compile a structural tag: see :mod:`tokfold.structural_tags`."""
        dump = getattr(tag, "model_dump_json", None)
        text = tag if dump is None else dump()
        try:
            key = text if isinstance(text, str) else json_text(text, "structural tag", TAG_LEVELS)
        except (TypeError, UnsupportedGrammarError, LimitExceededError):
            key = None  # it is no tag, which is said by who reads it
        if key is None:
            Grammar.from_structural_tag(tag, self.vocabulary)
        return self._get(
            ("structural tag", key), lambda: Grammar.from_structural_tag(tag, self.vocabulary)
        )

    def submit(
        self,
        kind: Kind,
        source: Any,  # noqa: ANN401 - what the method takes
        **options: Any,
    ) -> Future[CompiledGrammar]:
        """Compile in the background; the future can be cancelled as long as it waits.

        Args:
            kind: which of the ``compile_`` methods.
            source: its argument.
            **options: its options.
        """
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}")
        return in_background(getattr(self, f"compile_{kind}"), source, **options)

    def _get(self, key: object, make: Callable[[], Grammar]) -> CompiledGrammar:
        mine: Future[CompiledGrammar] = Future()
        try:
            with self._lock:
                future = self._compiled.setdefault(key, mine)
                self._compiled.move_to_end(key)
                if future is mine:
                    self._misses += 1
                elif future.done():
                    self._hits += 1
                else:
                    self._waits += 1
            if future is not mine:
                return future.result()
            began = time.perf_counter()
            compiled = compile(
                make(),
                self.vocabulary,
                self.limits,
                classes=self._classes,
                cache_dir=usable_folder(self._cache_dir),
                pool=self.pool if self.pool.max_bytes else None,
            )
            mine.set_result(compiled)
            with self._lock:
                self._seconds += time.perf_counter() - began
                self._make_room()
            return compiled
        except BaseException as error:
            # Those who wait get what this one gets; those who come later try again.
            with self._lock:
                if self._compiled.get(key) is mine and not mine.done():
                    self._failures += 1
                    del self._compiled[key]
            if not mine.done():
                mine.set_exception(_for_waiters(error))
            raise

    def _make_room(self) -> None:
        """Let those go that were not asked for longest. What is being compiled stays."""
        done = [key for key, future in self._compiled.items() if future.done()]
        for key in done[: max(0, len(self._compiled) - self.max_grammars)]:
            del self._compiled[key]
            self._evicted += 1

    def _after_fork(self) -> None:
        """In a child process nobody compiles what was being compiled."""
        self._lock = threading.Lock()
        kept = [(key, f) for key, f in self._compiled.items() if f.done()]
        self._compiled = OrderedDict(kept)

    # -- what is held ------------------------------------------------------------------------

    def statistics(self) -> CompilerStatistics:
        """What the compiler did and holds."""
        with self._lock:
            return CompilerStatistics(
                hits=self._hits,
                waits=self._waits,
                misses=self._misses,
                evicted=self._evicted,
                failures=self._failures,
                grammars=len(self._compiled),
                seconds=self._seconds,
                pool=self.pool.counters(),
            )

    def get_cache_size_bytes(self) -> int:
        """Bytes of the pool and of the compiled grammars: networks, masks, classes."""
        with self._lock:
            done = [future for future in self._compiled.values() if future.done()]
        held = sum(future.result().num_bytes for future in done if not future.exception())
        return held + self.pool.counters()["bytes"]

    def clear_cache(self) -> None:
        """Forget the compiled grammars and the pool."""
        with self._lock:
            kept = [(key, f) for key, f in self._compiled.items() if not f.done()]
            self._compiled = OrderedDict(kept)
        self.pool.clear()

    # -- the folder --------------------------------------------------------------------------

    @property
    def _pool_path(self) -> Path | None:
        if self._cache_dir is None:
            return None
        return self._cache_dir / f"{self.vocabulary.fingerprint[:32]}-{_POOL_NAME}"

    def _load(self, pool: MaskPool | None = None) -> None:
        path = self._pool_path
        if path is None or not self.pool.max_bytes:
            return
        try:
            (pool or self.pool).load(path)
        except FileNotFoundError:
            pass
        except (ArtifactError, VocabularyError, OSError) as error:
            warnings.warn(f"{error}; masks are made again", CacheWarning, stacklevel=3)

    def save(self) -> None:
        """Write the pool to ``cache_dir``, with what other processes wrote there meanwhile.

        Raises:
            ValueError: the compiler has no ``cache_dir``.
            OSError, ArtifactError: the folder cannot be made, or the file cannot be written.
        """
        path = self._pool_path
        if path is None:
            raise ValueError("this compiler has no cache_dir")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What others saved, and over it what this process used last.
        both = MaskPool(self.vocabulary, self.pool.max_bytes)
        self._load(both)
        both._core.add_bytes(self.pool._core.to_bytes(self.pool.max_bytes))
        both.save(path)

    def close(self) -> None:
        """Save the pool where there is a ``cache_dir``, and forget the compiled grammars."""
        if self._pool_path is not None:
            try:
                self.save()
            except (OSError, ArtifactError) as error:
                warnings.warn(f"the masks were not saved: {error}", CacheWarning, stacklevel=2)
        self.clear_cache()

    def __enter__(self) -> GrammarCompiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_compilers: weakref.WeakSet[GrammarCompiler] = weakref.WeakSet()


def _after_fork() -> None:
    for compiler in list(_compilers):
        compiler._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _key_of(source: object) -> str:
    """Equal for sources that are equal."""
    try:
        return json.dumps(source, ensure_ascii=False, default=repr)
    except (ValueError, RecursionError) as error:
        raise UnsupportedGrammarError(
            f"an option is nested too deeply, or holds itself: {error}", "options", 1, 1
        ) from error


def _for_waiters(error: BaseException) -> BaseException:
    """What those who wait raise: Ctrl-C in one thread is no Ctrl-C in others."""
    if isinstance(error, Exception):
        return error
    return TokfoldError(f"the request that compiled this grammar was interrupted: {error!r}")
