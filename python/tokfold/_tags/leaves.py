"""Leaves of structural tags: JSON schemas, patterns, grammar texts.

Each becomes a grammar by itself and is kept by its content, so a request with 500 tools of which
499 were seen before costs one conversion.

Cost: a conversion takes some 0.1 ms for a small schema; what is known, a hash of its text.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

from tokfold import _core
from tokfold._checks import check_number
from tokfold._quoting import quoted
from tokfold._sources.built import Built
from tokfold._sources.frames import FrameSource
from tokfold._sources.regular import RegularSource
from tokfold._sources.schema import SchemaSource, converted
from tokfold._sources.texts import EbnfSource, LarkSource
from tokfold._tags.formats import (
    Format,
    GrammarText,
    JsonSchema,
    Regex,
    Sequence,
    Tag,
    children,
)
from tokfold._tags.markers import NO_MARKERS, Markers
from tokfold._written import written_in
from tokfold.errors import (
    DeadlineExceededError,
    GrammarSyntaxError,
    LimitExceededError,
    SchemaError,
    UnsupportedGrammarError,
)
from tokfold.interrupt import Interrupt, check_governing
from tokfold.limits import DEFAULT_LIMITS, Limits

Leaf = JsonSchema | Regex | GrammarText

_BYTES_FOR_A_CHARACTER = 16
"""What a grammar takes in memory for each character of its text, or of that of its schema; measured
on schemas of tools."""

_BYTES_FOR_AN_EDGE = 32
"""What a grammar takes for each of its expressions, and for states and edges of its automata."""

_BYTES_FOR_A_GRAMMAR = 1_000

_FEW = 8
"""Fewer schemas are converted one after the other."""


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
        check_number("max_bytes", max_bytes, 0)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._leaves: OrderedDict[tuple[object, ...], tuple[Built, int]] = OrderedDict()
        self._bytes = self._hits = self._misses = 0
        self._prepared: set[tuple[object, ...]] = set()

    def grammar(
        self, leaf: Leaf, markers: Markers = NO_MARKERS, limits: Limits | None = None
    ) -> Built:
        """The grammar of a leaf.

        Args:
            leaf: the leaf.
            markers: special tokens, which are taken whole where the style of a schema writes them.
            limits: bounds on size and work of the conversion.

        Raises:
            SchemaError: a schema cannot be turned into a grammar; says where.
            UnsupportedGrammarError: a pattern or a grammar text means what no grammar says.
            GrammarSyntaxError: a pattern or a grammar text is none.
            LimitExceededError: it is too large.
        """
        check_governing()
        make, taken = _MAKERS[type(leaf)], _markers_in(leaf, markers)
        key = _key(leaf, taken, limits)
        if taken:
            make = partial(_json_schema, taken=taken)
        with self._lock:
            found = self._leaves.get(key)
            if found is not None:
                self._leaves.move_to_end(key)
                if key in self._prepared:
                    self._prepared.remove(key)
                else:
                    self._hits += 1
                return found[0]
            self._misses += 1
        with _placed(leaf):
            grammar = make(leaf, limits)
        self._keep(key, grammar, _size(key, grammar))
        return grammar

    def prepare(
        self,
        formats: Iterable[Format],
        markers: Markers = NO_MARKERS,
        limits: Limits | None = None,
    ) -> None:
        """Convert the schemas among some formats side by side, where they are many and new.

        What cannot be converted is left to :meth:`grammar`, which says why.
        """
        wanted: dict[tuple[object, ...], dict[str, JsonSchema]] = {}
        with self._lock:
            for leaf in _schemas_among(formats):
                key = _key(leaf, _markers_in(leaf, markers), limits)
                if key not in self._leaves:
                    wanted.setdefault(key[2:], {})[leaf.schema] = leaf
        for leaves in wanted.values():
            if len(leaves) < _FEW:
                continue
            check_governing()
            first = next(iter(leaves.values()))
            taken = _markers_in(first, markers)
            fields = {**_fields(first), **taken}
            all_found = _core.convert_json_schemas(
                list(leaves), fields, limits, Interrupt._of(None, limits or DEFAULT_LIMITS)
            )
            for leaf, found in zip(leaves.values(), all_found, strict=True):
                if found is None:
                    continue
                source = SchemaSource(leaf.schema, [], fields)
                grammar = Built._of(source, limits, converted=converted(found))
                key = _key(leaf, taken, limits)
                with self._lock:
                    self._misses += 1
                    self._prepared.add(key)
                self._keep(key, grammar, _size(key, grammar))

    def kept(self, grammar: Built) -> Built:
        """A grammar that was put together, as it is here: the one that says the same, if any."""
        key = ("composed", grammar._key)
        with self._lock:
            found = self._leaves.get(key)
            if found is not None:
                self._leaves.move_to_end(key)
                return found[0]
        source = grammar._source
        characters = len(source.text) if isinstance(source, FrameSource) else 0
        self._keep(key, grammar, _BYTES_FOR_A_GRAMMAR + _BYTES_FOR_A_CHARACTER * characters)
        return grammar

    def _keep(self, key: tuple[object, ...], grammar: Built, size: int) -> None:
        with self._lock:
            if size > self._max_bytes or key in self._leaves:
                self._prepared.discard(key)
                return
            self._leaves[key] = grammar, size
            self._bytes += size
            while self._bytes > self._max_bytes:
                gone, (_, dropped) = self._leaves.popitem(last=False)
                self._prepared.discard(gone)
                self._bytes -= dropped

    def clear(self) -> None:
        """Forget all leaves."""
        with self._lock:
            self._leaves.clear()
            self._prepared.clear()
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


class Leaves(NamedTuple):
    """The leaves of one tag: all are converted under its limits, and kept in its cache."""

    cache: LeafCache
    limits: Limits | None

    def grammar(self, leaf: Leaf, markers: Markers = NO_MARKERS) -> Built:
        """As :meth:`LeafCache.grammar`."""
        return self.cache.grammar(leaf, markers, self.limits)

    def prepare(self, formats: Iterable[Format], markers: Markers = NO_MARKERS) -> None:
        """As :meth:`LeafCache.prepare`."""
        self.cache.prepare(formats, markers, self.limits)

    def kept(self, grammar: Built) -> Built:
        """As :meth:`LeafCache.kept`."""
        return self.cache.kept(grammar)


default_cache = LeafCache()
"""The cache that serves where none is given."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=default_cache._after_fork)


def _size(key: tuple[object, ...], grammar: Built) -> int:
    """About how many bytes a leaf takes."""
    characters = sum(len(part) for part in key if isinstance(part, str))
    size = _BYTES_FOR_A_CHARACTER * characters + _BYTES_FOR_AN_EDGE * grammar._core.size()
    return _BYTES_FOR_A_GRAMMAR + size


def _key(
    leaf: Leaf, taken: Mapping[str, object] | None = None, limits: Limits | None = None
) -> tuple[object, ...]:
    """All that a leaf means, without where it stands; with the special tokens that it takes."""
    if isinstance(leaf, JsonSchema):
        options = (leaf.style, leaf.any_order, leaf.max_whitespace_cnt, leaf.excludes, leaf.is_open)
        return (leaf.type, leaf.schema, *options, repr(taken) if taken else "", limits)
    if isinstance(leaf, Regex):
        return leaf.type, leaf.pattern, limits
    return leaf.type, leaf.text, leaf.syntax, leaf.tokens, limits


# ---------------------------------------------------------------- conversion


def _json_schema(
    leaf: Any,  # noqa: ANN401
    limits: Limits | None,
    taken: Mapping[str, Any] | None = None,
) -> Built:
    return Built._of(SchemaSource(leaf.schema, [], {**_fields(leaf), **(taken or {})}), limits)


@cache
def _marks(style: str) -> tuple[str, ...]:
    """What a style writes around names and values."""
    return tuple(_core.style_marks(style))


def _markers_in(leaf: Leaf, markers: Markers) -> dict[str, Any]:
    """The option for special tokens in the marks of a schema's style, where there are any."""
    if not isinstance(leaf, JsonSchema) or not markers.are_in(*_marks(leaf.style)):
        return {}
    marks = _marks(leaf.style)
    for mark in marks:
        markers.atoms(mark, leaf.path, leaf.type, may_end=False)
    return {"markers": (markers.within(marks), markers.spelled)}


def _fields(leaf: JsonSchema) -> dict[str, Any]:
    """The options of the converter; those of equal leaves are equal, but for the schema."""
    return {
        "any_order": leaf.any_order,
        "excludes": leaf.excludes,
        "max_whitespace": leaf.max_whitespace_cnt,
        "open_objects": leaf.is_open,
        "style": leaf.style,
    }


def _schemas_among(todo: Iterable[Format]) -> Iterator[JsonSchema]:
    """Schemas, and those in sequences and tags."""
    for one in todo:
        if isinstance(one, JsonSchema):
            yield one
        elif isinstance(one, Sequence | Tag):
            yield from _schemas_among(children(one))


def _regex(leaf: Any, limits: Limits | None) -> Built:  # noqa: ANN401
    return Built._of(RegularSource([(leaf.pattern, "ecma", "", False)]), limits)


def _grammar(leaf: Any, limits: Limits | None) -> Built:  # noqa: ANN401
    """Our own readers: they take what XGrammar's take, with the same meaning, and keep NUL."""
    tokens = None if leaf.tokens is None else {name: ids for name, *ids in leaf.tokens}
    if leaf.syntax == "lark":
        with written_in(leaf.text, "Lark", in_tag=True):
            grammar = Built._of(LarkSource(leaf.text, "start", "rust", {}, tokens), limits)
    else:
        with written_in(leaf.text, "grammar text", in_tag=True):
            grammar = Built._of(EbnfSource(leaf.text, "root", True, tokens), limits)
    unread = grammar._converted.unread
    if unread is not None:
        raise UnsupportedGrammarError(
            f"line {unread.line}, column {unread.column}: {unread.construct}: a token that is "
            "named by its text is looked up in a vocabulary; pass it, as "
            "Grammar.from_structural_tag(tag, vocabulary)",
            unread.construct,
            unread.line,
            unread.column,
        )
    # A grammar that is put together ignores lookahead, and must not ignore one that says anything.
    rule = grammar._core.narrowing_lookahead()
    if rule is not None:
        raise UnsupportedGrammarError(
            f"the lookahead `(= ...)` of rule {quoted(rule)} narrows XGrammar's masks without "
            "changing what it accepts; leave it out, the rules say what follows",
            "lookahead",
            1,
            1,
        )
    return grammar


_MAKERS: dict[type, Callable[[Any, Limits | None], Built]] = {
    JsonSchema: _json_schema,
    Regex: _regex,
    GrammarText: _grammar,
}


# -------------------------------------------------------------------- errors


@contextmanager
def _placed(leaf: Leaf) -> Iterator[None]:
    """Errors of a leaf as errors of the tag: they say where in it the leaf stands."""
    where = f"{leaf.path} ({leaf.type})"
    if isinstance(leaf, JsonSchema) and leaf.behind:
        where += f", behind {quoted(leaf.behind)}"
    try:
        yield
    except SchemaError as error:
        pointer = _in_tag(leaf, error.pointer)
        raise type(error)(f"{where}: {error}", pointer, error.keyword, error.reason) from error
    except UnsupportedGrammarError as error:
        message = f"{where}: {error}"
        raise UnsupportedGrammarError(message, error.construct, error.line, error.column) from error
    except GrammarSyntaxError as error:
        raise GrammarSyntaxError(f"{where}: {error}", error.line, error.column) from error
    except DeadlineExceededError:
        raise
    except LimitExceededError as error:
        place = None if error.pointer is None else _in_tag(leaf, error.pointer)
        raise LimitExceededError(f"{where}: {error}", error.limit, error.value, place) from error


def _in_tag(leaf: Leaf, pointer: str) -> str:
    """A pointer into the schema of a leaf as one into the tag; Lark text may hold such a schema."""
    if isinstance(leaf, JsonSchema):
        return f"{_pointer(leaf.path)}/json_schema{pointer.removeprefix('#')}"
    return f"{_pointer(leaf.path)}/{leaf.type}"


def _pointer(path: str) -> str:
    """A path in a tag (``format.tags[3].content``) as a JSON pointer."""
    return "#/" + path.replace("[", ".").replace("]", "").replace(".", "/")
