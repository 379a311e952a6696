"""XGrammar's compiler, with the vocabulary folded before XGrammar sees it.

A grammar goes through here in four steps: XGrammar's own converter makes a grammar object of
whatever the user gave; its rules are read back (:mod:`tokfold.xgrammar.forms`); tokfold computes
classes from them; XGrammar compiles the grammar over one representative a class.

What classes cannot express exactly is never folded: the grammar is compiled over the full
vocabulary, and a :class:`tokfold.errors.FallbackWarning` names what stood in the way.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import xgrammar as xgr
from xgrammar.grammar import (
    _convert_named_grammars_to_lists,
    _convert_schema_to_str,
    _get_structural_tag_str_from_args,
)

import tokfold
from tokfold import _converters
from tokfold._quoting import quoted
from tokfold._text_checks import TAG_LEVELS, json_text
from tokfold.compiler import for_waiters
from tokfold.errors import (
    FallbackWarning,
    GrammarSyntaxError,
    LimitExceededError,
    TokfoldError,
    UnsupportedGrammarError,
)
from tokfold.xgrammar.compiled import CompiledGrammar
from tokfold.xgrammar.folding import Folder
from tokfold.xgrammar.forms import IS_028, GrammarForm
from tokfold.xgrammar.refusals import refuse_crash, refuse_inexact
from tokfold.xgrammar.tags import with_token_ids
from tokfold.xgrammar.vocabulary import FoldedVocabulary, SourceVocabulary

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["GrammarCompiler"]

MAX_CACHED = 256
"""Compiled grammars that a compiler keeps: each holds some bytes for every token."""


class GrammarCompiler:
    """Compiles grammars for one tokenizer.

    Names, arguments and errors are those of :class:`xgrammar.GrammarCompiler`; safe to share
    between threads. One grammar asked for by several threads is compiled once.

    Args:
        tokenizer_info: the vocabulary.
        max_threads: threads that XGrammar compiles with.
        cache_enabled: keep what was compiled; at most 256 grammars, the least recently used go
            first.
        cache_limit_bytes: approximate bound on the memory of the cache, -1 for none.
        enable_dynamic_compilation: make what XGrammar knows of a state when a mask first needs it,
            not as it compiles; from XGrammar 0.2.9 on.
        strict: raise where a grammar cannot be folded exactly, instead of falling back to the
            full vocabulary with a warning.
        cache_dir: folder to keep classes in between processes, passed to
            :func:`tokfold.compile_classes`.
        limits: bounds for :func:`tokfold.compile_classes`, or None for its own.

    Raises:
        ValueError: ``tokenizer_info`` is none.
        RuntimeError, TypeError: ``cache_limit_bytes`` is below -1, or no number.
        TypeError: ``enable_dynamic_compilation`` with XGrammar 0.2.8, which has no such option.
    """

    def __init__(
        self,
        tokenizer_info: xgr.TokenizerInfo,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
        enable_dynamic_compilation: bool = False,
        strict: bool = False,
        cache_dir: str | Path | None = None,
        limits: tokfold.Limits | None = None,
    ) -> None:
        if not isinstance(tokenizer_info, xgr.TokenizerInfo):
            raise ValueError(
                "Please convert the tokenizer to TokenizerInfo before passing it "
                "to GrammarCompiler."
            )
        self._source = SourceVocabulary(tokenizer_info)
        self._strict = strict
        self._folder = Folder(self._source, limits, cache_dir)
        self._cache_limit_bytes = cache_limit_bytes
        self._cache_enabled = cache_enabled
        self._cache: OrderedDict[Hashable, Future[CompiledGrammar]] = OrderedDict()
        self._lock = threading.RLock()
        # no cache of XGrammar's own: it mixes up grammars that differ in token ids only
        self._options: dict[str, Any] = {"max_threads": max_threads, "cache_enabled": False}
        if enable_dynamic_compilation:
            if IS_028:
                raise TypeError("enable_dynamic_compilation needs xgrammar 0.2.9: this is 0.2.8")
            self._options["enable_dynamic_compilation"] = True
        self._plain = xgr.GrammarCompiler(
            tokenizer_info,
            cache_limit_bytes=cache_limit_bytes,  # which it checks
            **self._options,
        )

    # -------------------------------------------------------------- compile_*

    @overload
    def compile_grammar(self, grammar: str, *, root_rule_name: str = "root") -> CompiledGrammar: ...

    @overload
    def compile_grammar(self, grammar: xgr.Grammar) -> CompiledGrammar: ...

    def compile_grammar(
        self, grammar: str | xgr.Grammar, *, root_rule_name: str = "root"
    ) -> CompiledGrammar:
        """Compile EBNF text, or a grammar object.

        Args:
            grammar: the text or the object.
            root_rule_name: rule to start from, for text.

        Raises:
            ValueError: neither.
            RuntimeError: XGrammar cannot read the text.
            UnsupportedGrammarError, LimitExceededError: cannot be folded, where ``strict``.
        """
        if isinstance(grammar, str):
            levels = _converters.check_grammar(grammar)
            return self._cached(
                ("ebnf", grammar, root_rule_name),
                lambda: self._compile(
                    xgr.Grammar.from_ebnf(grammar, root_rule_name=root_rule_name),
                    text=grammar,
                ),
                levels,
            )
        if isinstance(grammar, xgr.Grammar):
            return self._cached(
                ("grammar", grammar.serialize_json()), lambda: self._compile(grammar)
            )
        raise ValueError("Invalid grammar type. Please pass a string or a Grammar object.")

    def compile_json_schema(
        self,
        schema: str | type[BaseModel] | dict[str, Any],
        *,
        any_whitespace: bool = True,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        strict_mode: bool = True,
        max_whitespace_cnt: int | None = None,
        any_order: bool = False,
    ) -> CompiledGrammar:
        """Compile a JSON schema; the arguments are XGrammar's.

        Raises:
            RuntimeError: XGrammar cannot convert the schema.
            TypeError: ``separators`` are no tuple or list of texts.
            UnsupportedGrammarError, LimitExceededError: cannot be folded, where ``strict``; or
                would take XGrammar too long, or end the process.
        """
        if separators is not None and not (
            isinstance(separators, tuple | list) and all(isinstance(s, str) for s in separators)
        ):
            raise TypeError(f"separators must be two texts, (',', ': '), not {quoted(separators)}")
        if isinstance(schema, dict):
            schema = json_text(schema, "JSON schema")
        text, levels, _ = _converters.check_schema(
            _convert_schema_to_str(schema), is_open=not strict_mode
        )
        options: dict[str, Any] = {
            "any_whitespace": any_whitespace,
            "indent": indent,
            "separators": separators,
            "strict_mode": strict_mode,
            "max_whitespace_cnt": max_whitespace_cnt,
            "any_order": any_order,
        }
        hashable = dict(options, separators=None if separators is None else tuple(separators))
        return self._cached(
            ("schema", text, *hashable.values()),
            lambda: self._compile(
                xgr.Grammar.from_json_schema(text, **options), trust_lookahead=True
            ),
            levels,
        )

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Compile the grammar of JSON."""
        return self._cached(
            ("json",),
            lambda: self._compile(xgr.Grammar.builtin_json_grammar(), trust_lookahead=True),
        )

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """Compile a regular expression.

        Raises:
            RuntimeError: XGrammar cannot convert it.
            UnsupportedGrammarError, LimitExceededError: cannot be folded, where ``strict``.
        """
        levels = _converters.check_pattern(regex, as_automaton=False).levels
        return self._cached(
            ("regex", regex),
            lambda: self._compile(xgr.Grammar.from_regex(regex), trust_lookahead=True),
            levels,
        )

    def compile_lark(
        self, lark_string: str, *, named_grammars: dict[str, xgr.Grammar | str] | None = None
    ) -> CompiledGrammar:
        """Compile Lark text; the tokenizer resolves the special tokens that it names.

        Args:
            lark_string: the text; it must define ``start``.
            named_grammars: what ``@name`` refers to in the text.

        Raises:
            RuntimeError: XGrammar cannot convert it.
            TypeError: ``named_grammars`` is no such mapping.
            UnsupportedGrammarError, LimitExceededError: cannot be folded, where ``strict``.
        """
        levels = _converters.check_lark(lark_string)
        names, _ = _convert_named_grammars_to_lists(named_grammars)
        values = [
            value if isinstance(value, str) else value.serialize_json()
            for value in (named_grammars or {}).values()
        ]
        return self._cached(
            ("lark", lark_string, tuple(names), tuple(values)),
            lambda: self._compile(
                xgr.Grammar.from_lark(
                    lark_string,
                    tokenizer_info=self._source.info,
                    named_grammars=named_grammars,
                )
            ),
            levels,
        )

    @overload
    def compile_structural_tag(
        self, structural_tag: xgr.StructuralTag | str | dict[str, Any]
    ) -> CompiledGrammar: ...

    @overload
    def compile_structural_tag(
        self, tags: list[xgr.StructuralTagItem], triggers: list[str]
    ) -> CompiledGrammar: ...

    def compile_structural_tag(
        self,
        *args: Any,
        **kwargs: Any,
    ) -> CompiledGrammar:
        """Compile a structural tag; the arguments are XGrammar's.

        Raises:
            InvalidJSONError: not JSON.
            InvalidStructuralTagError: no structural tag.
            TypeError: the arguments are neither of the two forms.
            UnsupportedGrammarError, LimitExceededError: cannot be folded, where ``strict``.
        """
        for value in (*args, *kwargs.values()):
            if isinstance(value, dict):  # what is written as JSON by recursion
                json_text(value, "structural tag", TAG_LEVELS)
        text = _get_structural_tag_str_from_args(list(args), kwargs)
        levels = _converters.check_tag(text)

        def make() -> CompiledGrammar:
            grammar, trust_lookahead = self._of_tag(with_token_ids(text, self._token_id))
            return self._compile(grammar, trust_lookahead=trust_lookahead)

        return self._cached(("structural tag", text), make, levels)

    def recompile(self, grammar: xgr.Grammar, *, trust_lookahead: bool) -> CompiledGrammar:
        """Compile a grammar that a compiler of this package has compiled before.

        Args:
            grammar: the object.
            trust_lookahead: its lookahead was written by one of XGrammar's converters.
        """
        return self._compile(grammar, trust_lookahead=trust_lookahead)

    # ------------------------------------------------------------------ cache

    def clear_cache(self) -> None:
        """Forget every compiled grammar."""
        with self._lock:
            self._cache.clear()

    def get_cache_size_bytes(self) -> int:
        """Approximate memory of the cache, in bytes."""
        with self._lock:
            return sum(
                future.result().memory_size_bytes
                for future in self._cache.values()
                if future.done()
            )

    @property
    def cache_limit_bytes(self) -> int:
        """Bound on the memory of the cache, -1 for none."""
        return self._cache_limit_bytes

    @property
    def vocabulary_fingerprint(self) -> str:
        """What a saved grammar is checked against."""
        return self._source.fingerprint

    def _cached(
        self, key: Hashable, make: Callable[[], CompiledGrammar], levels: int = 0
    ) -> CompiledGrammar:
        if _converters.is_deep(levels):  # else no frame of ours stands between
            make = partial(_converters.with_stack, levels, make)
        if not self._cache_enabled:
            return make()
        mine: Future[CompiledGrammar] = Future()
        try:
            with self._lock:
                future = self._cache.setdefault(key, mine)
                self._cache.move_to_end(key)
            if future is mine:
                mine.set_result(make())
        except BaseException as error:
            with self._lock:
                if self._cache.get(key) is mine:
                    del self._cache[key]
            if not mine.done():
                mine.set_exception(for_waiters(error))
            raise
        if future is mine:
            self._trim(key)
        return future.result()

    def _trim(self, newest: Hashable) -> None:
        with self._lock:
            while len(self._cache) > 1 and (
                len(self._cache) > MAX_CACHED
                or 0 <= self._cache_limit_bytes < self.get_cache_size_bytes()
            ):
                oldest = next(key for key in self._cache if key != newest)
                del self._cache[oldest]

    # ---------------------------------------------------------------- folding

    def _compile(
        self, grammar: xgr.Grammar, *, text: str | None = None, trust_lookahead: bool = False
    ) -> CompiledGrammar:
        def compile_plain() -> xgr.CompiledGrammar:
            return self._plain.compile_grammar(grammar)

        folded: FoldedVocabulary | None = None
        reason: TokfoldError | None = None
        inner: xgr.CompiledGrammar
        form = GrammarForm(grammar)
        refuse_crash(form, text)
        if not any(self._source.token_bytes):  # a matcher of strings
            inner = compile_plain()
        else:
            try:
                if any(not 0 <= token < self._source.size for token in form.token_ids):
                    compile_plain()  # raises XGrammar's error, which names the id
                folded = self._fold(form, text, trust_lookahead, compile_plain)
            except (UnsupportedGrammarError, LimitExceededError, GrammarSyntaxError) as error:
                if self._strict:
                    raise
                reason = error
                _warn(reason)
                inner = compile_plain()
            else:
                inner = xgr.GrammarCompiler(folded.info, **self._options).compile_grammar(
                    form.over_representatives(folded.inner_ids)
                )
        return CompiledGrammar(
            self._source,
            grammar,
            inner,
            folded,
            reason,
            compile_plain,
            lambda stop_token_ids: self._folder.compile(form, stop_token_ids),
            trust_lookahead=trust_lookahead,
        )

    def _fold(
        self,
        form: GrammarForm,
        text: str | None,
        trust_lookahead: bool,
        compile_plain: Callable[[], object],
    ) -> FoldedVocabulary:
        try:
            refuse_inexact(form, trust_lookahead=trust_lookahead, text=text)
            return self._folder.fold(form, text)
        except RuntimeError:  # XGrammar's, of a pattern that it cannot read
            compile_plain()  # raises it with the name of the user's rule
            raise

    def _of_tag(self, text: str) -> tuple[xgr.Grammar, bool]:
        """The grammar of a structural tag, and whether XGrammar wrote every lookahead in it."""
        try:
            return xgr.Grammar.from_structural_tag(text), False
        except RuntimeError:
            if IS_028 or '"lark"' not in text:
                raise
        # special tokens that Lark text names are resolved by XGrammar's compiler alone
        options = dict(self._options, enable_dynamic_compilation=True)
        compiler = xgr.GrammarCompiler(self._source.info, **options)
        # which writes a lookahead where it finds one implied
        return compiler.compile_structural_tag(text).grammar, "(=" not in text

    def _token_id(self, token: str) -> int:
        if not token:
            raise xgr.InvalidStructuralTagError(
                "Invalid structural tag error: Token string must be non-empty"
            )
        try:
            return self._source.token_bytes.index(token.encode())
        except ValueError:
            raise xgr.InvalidStructuralTagError(
                f'Invalid structural tag error: Token string "{token}" not found in vocabulary'
            ) from None


CompiledGrammar._new_compiler = partial(GrammarCompiler, cache_enabled=False)


def _warn(reason: TokfoldError) -> None:
    warnings.warn(
        f"{reason}. XGrammar runs over the full vocabulary for this grammar",
        FallbackWarning,
        stacklevel=6,
    )
