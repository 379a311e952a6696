"""Formats that need a converter: JSON schemas, patterns, grammar texts, texts that are counted.

Each is converted by itself and kept by its content, so a request with 500 tools of which 499 were
seen before costs one conversion. What XGrammar converts is asked for as a structural tag of the
one format, so it means what it means there.

XGrammar 0.2.8 misreads two spellings of a regular expression, and loses NUL in XML styles; both
are refused by name (:func:`_misread`, :func:`_lost_nul`).

Cost: a conversion takes some 0.2 ms for a small schema; what is known, a hash of its text.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tokfold import _converters, _core, _json
from tokfold._extras import require, xgrammar_reason
from tokfold.errors import GrammarSyntaxError, LimitExceededError, UnsupportedGrammarError
from tokfold.grammar import Grammar
from tokfold.interrupt import check_governing
from tokfold.structural_tags.budgets import MAX_RULES, bounded_text, num_rules
from tokfold.structural_tags.formats import AnyText, EbnfGrammar, JsonSchema, Regex
from tokfold.structural_tags.literals import escaped

__all__ = ["CacheInfo", "Leaf", "LeafCache", "default_cache"]

Leaf = JsonSchema | Regex | EbnfGrammar | AnyText
"""``any_text`` is one where it has both ``max_chars`` and excluded texts."""

_BYTES_FOR_A_CHARACTER = 16
"""What a grammar takes in memory for each character of its text; measured on schemas of tools."""

_BYTES_FOR_A_GRAMMAR = 1_000


class CacheInfo(NamedTuple):
    """What a cache did and holds."""

    hits: int
    misses: int
    leaves: int
    bytes: int


class LeafCache:
    """Converted leaves by content, the ones used last; safe between threads.

    Two threads that ask for the same new leaf may both convert it: what they make is the same.

    Args:
        max_bytes: about so many bytes of grammars are kept. A leaf larger than that is converted
            each time.
    """

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int):
            raise TypeError(f"max_bytes must be an int, not {type(max_bytes).__name__}")
        if max_bytes < 0:
            raise ValueError(f"max_bytes must be 0 or more, not {max_bytes}")
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._leaves: OrderedDict[tuple[object, ...], tuple[Grammar, int]] = OrderedDict()
        self._bytes = self._hits = self._misses = 0

    def grammar(self, leaf: Leaf) -> Grammar:
        """The grammar of a leaf.

        Raises:
            UnsupportedGrammarError: the converter does not take it, or misreads it.
            LimitExceededError: it would take the converter too long, or end the process.
            GrammarSyntaxError: a grammar text is not in the language.
            MissingExtraError: it takes XGrammar to convert it, which is not installed.
        """
        check_governing()
        make, key = _MAKERS[type(leaf)], _key(leaf)
        with self._lock:
            found = self._leaves.get(key)
            if found is not None:
                self._leaves.move_to_end(key)
                self._hits += 1
                return found[0]
            self._misses += 1
        grammar, characters = make(leaf)
        characters += sum(len(part) for part in key if isinstance(part, str))
        self._keep(key, grammar, _BYTES_FOR_A_GRAMMAR + _BYTES_FOR_A_CHARACTER * characters)
        return grammar

    def kept(self, grammar: Grammar) -> Grammar:
        """A grammar that was put together, as it is here: the one that says the same, if any."""
        key = ("composed", grammar._key)
        with self._lock:
            found = self._leaves.get(key)
            if found is not None:
                self._leaves.move_to_end(key)
                return found[0]
        characters = len(grammar._frame_text or "")
        self._keep(key, grammar, _BYTES_FOR_A_GRAMMAR + _BYTES_FOR_A_CHARACTER * characters)
        return grammar

    def _keep(self, key: tuple[object, ...], grammar: Grammar, size: int) -> None:
        with self._lock:
            if size > self._max_bytes or key in self._leaves:
                return
            self._leaves[key] = grammar, size
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, (_, dropped) = self._leaves.popitem(last=False)
                self._bytes -= dropped

    def clear(self) -> None:
        """Forget all leaves."""
        with self._lock:
            self._leaves.clear()
            self._bytes = 0

    @property
    def info(self) -> CacheInfo:
        """Hits and misses so far, leaves held, and about how many bytes they take."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, len(self._leaves), self._bytes)

    def _after_fork(self) -> None:
        """In a child process: another thread of the parent may have been at work here."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return LeafCache, (self._max_bytes,)

    def __repr__(self) -> str:
        info = self.info
        return f"<LeafCache: {info.leaves} leaves, {info.bytes:,} of {self._max_bytes:,} bytes>"


default_cache = LeafCache()
"""The cache that serves where none is given."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=default_cache._after_fork)


def _key(leaf: Leaf) -> tuple[object, ...]:
    """All that a leaf means, without where it stands."""
    if isinstance(leaf, JsonSchema):
        options = (leaf.style, leaf.any_order, leaf.max_whitespace_cnt, leaf.excludes)
        return (leaf.type, leaf.schema, *options)
    if isinstance(leaf, AnyText):
        return (leaf.type, leaf.max_chars, *leaf.excludes)
    return leaf.type, leaf.pattern if isinstance(leaf, Regex) else leaf.text


# ---------------------------------------------------------------- conversion


def _json_schema(leaf: Any) -> tuple[Grammar, int]:  # noqa: ANN401 - a leaf of this type
    is_plain = leaf.style == "json" and not leaf.any_order and not leaf.excludes
    if is_plain and leaf.max_whitespace_cnt is None:
        # The same rules in half the time: the converter of tags goes over them again.
        xgr = _xgrammar(leaf)
        with _refusals(leaf):
            schema, levels, _ = _converters.check_schema(leaf.schema)
            return _read(
                _converters.with_stack(levels, lambda: str(xgr.Grammar.from_json_schema(schema)))
            )
    document = {
        "type": leaf.type,
        "style": leaf.style,
        "any_order": leaf.any_order,
        "max_whitespace_cnt": leaf.max_whitespace_cnt,
        "excludes": leaf.excludes,
    }
    options = _json.dumps(document)
    with _refusals(leaf):
        _converters.check_excludes(leaf.excludes)
        schema, levels, _ = _converters.check_schema(leaf.schema)

    def convert() -> str | None:
        converted = _converted(leaf, f'{options[:-1]}, "json_schema": {schema}}}')
        if "\\u0000" in schema and leaf.style != "json" and _lost_nul(converted):
            return None
        return str(converted)

    printed = _converters.with_stack(levels, convert)
    if printed is None:
        raise _unsupported(leaf, "the schema has a NUL, which XGrammar loses in this style")
    return _read(printed)


def _regex(leaf: Any) -> tuple[Grammar, int]:  # noqa: ANN401
    fault = _misread(leaf.pattern)
    if fault is not None:
        raise _unsupported(leaf, fault)
    with _refusals(leaf):
        levels = _converters.check_pattern(leaf.pattern, as_automaton=True).levels
    document = _json.dumps({"type": "regex", "pattern": leaf.pattern})
    return _read(_converters.with_stack(levels, lambda: str(_converted(leaf, document))))


def _converted(leaf: Leaf, document: str) -> Any:  # noqa: ANN401 - an xgrammar.Grammar
    xgr = _xgrammar(leaf)
    with _refusals(leaf):
        return xgr.Grammar.from_structural_tag(f'{{"format": {document}}}')


def _xgrammar(leaf: Leaf) -> Any:  # noqa: ANN401 - the module
    return require("xgrammar", "xgrammar", f"a structural tag with the format {leaf.type}")


@contextmanager
def _refusals(leaf: Leaf) -> Iterator[None]:
    try:
        yield
    except LimitExceededError as error:
        message = f"{leaf.path} ({leaf.type}): {error}"
        raise LimitExceededError(message, error.limit, error.value) from error
    except UnsupportedGrammarError as error:
        raise _unsupported(leaf, str(error)) from error
    except (RuntimeError, ValueError, OverflowError, MemoryError) as error:
        # what XGrammar raises for what it refuses
        reason = f"XGrammar's converter does not take it: {xgrammar_reason(error)}"
        raise _unsupported(leaf, reason) from error


def _read(printed: str) -> tuple[Grammar, int]:
    return Grammar.from_ebnf(_core.repair_printed(printed), lookahead="implied"), len(printed)


def _unsupported(leaf: Leaf, reason: str) -> UnsupportedGrammarError:
    return UnsupportedGrammarError(f"{leaf.path} ({leaf.type}): {reason}", leaf.type, 1, 1)


def _grammar(leaf: Any) -> tuple[Grammar, int]:  # noqa: ANN401
    """Our own reader: it takes what XGrammar's takes, with the same meaning, and keeps NUL."""
    try:
        grammar = Grammar.from_ebnf(leaf.text, lookahead="implied")  # there is none: see below
    except GrammarSyntaxError as error:
        message = f"{leaf.path} ({leaf.type}): {error}"
        raise GrammarSyntaxError(message, error.line, error.column) from error
    if _has_lookahead(grammar):
        # A grammar that is put together ignores the lookahead that converters write, and must not
        # ignore what a person wrote.
        raise UnsupportedGrammarError(
            f"{leaf.path} ({leaf.type}): a lookahead `(= ...)` written by hand narrows XGrammar's "
            "masks without changing what it accepts; leave it out, the rules say what follows",
            "lookahead",
            1,
            1,
        )
    return grammar, len(leaf.text)


def _bounded_text(leaf: Any) -> tuple[Grammar, int]:  # noqa: ANN401
    rules = num_rules(leaf.max_chars, leaf.excludes)
    if rules > MAX_RULES:
        raise UnsupportedGrammarError(
            f"{leaf.path} (any_text): 'max_chars' of {leaf.max_chars:,} beside excluded texts (the "
            f"end of a tag is one) takes {rules:,} rules, and {MAX_RULES:,} is the most; lower it, "
            "or leave it out",
            "max_chars",
            1,
            1,
        )
    text = bounded_text(leaf.max_chars, leaf.excludes, escaped)
    return Grammar.from_ebnf(text, lookahead="implied"), len(text)


_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]')


def _has_lookahead(grammar: Grammar) -> bool:
    text = str(grammar)
    return "(=" in text and "(=" in _STRINGS.sub("", text)


_MAKERS: dict[type, Callable[[Any], tuple[Grammar, int]]] = {
    JsonSchema: _json_schema,
    Regex: _regex,
    EbnfGrammar: _grammar,
    AnyText: _bounded_text,
}


# ---------------------------------------------------------- XGrammar's slips

_PIECE = re.compile(r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.|.", re.DOTALL)
_CARETS = ("\\^", "\\x5e", "\\x5E", "\\u005e", "\\u005E")


def _misread(pattern: str) -> str | None:
    r"""What of a pattern XGrammar 0.2.8 reads as something else, and what to write instead.

    It writes a pattern as grammar text, where ``[\^a]`` becomes ``[^a]``, and ``\x41b``, which
    takes every hexadecimal digit there, becomes U+041B.
    """
    pieces = _PIECE.findall(pattern)
    in_class = False
    for piece, following in zip(pieces, [*pieces[1:], ""], strict=True):
        if len(piece) == 4 and piece[1] == "x" and re.match("[0-9A-Fa-f]", following):
            right = f"\\u00{piece[2:]}"
            return f"XGrammar reads `{piece}{following}` as one character; write `{right}`"
        if piece == "[" and not in_class:
            in_class = True
            if following in _CARETS:
                return (
                    f"XGrammar reads a class that begins with `{following}` as a negated one; "
                    "write it later in the class, as in `[a^]`"
                )
        elif piece == "]":
            in_class = False
    return None


def _lost_nul(converted: Any) -> bool:  # noqa: ANN401 - an xgrammar.Grammar
    """Whether a literal has a NUL, at which XGrammar's printer cuts it off."""
    document = _json.loads(converted.serialize_json())
    data: list[int] = document["grammar_expr_data"]
    byte_string = 0
    return any(
        data[start] == byte_string and 0 in data[start + 2 : start + 2 + data[start + 1]]
        for start in document["grammar_expr_indptr"]
    )
