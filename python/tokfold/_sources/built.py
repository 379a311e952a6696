"""A source with its grammar in the core: what `tokfold.Grammar` has below its public methods."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Self

from tokfold._core import Grammar as CoreGrammar
from tokfold._core import Tags as CoreTags
from tokfold._lazy import lazy
from tokfold._sources.frames import FrameSource, TagsSource
from tokfold._sources.record import Converted, Source
from tokfold.errors import UnsupportedGrammarError
from tokfold.interrupt import Interrupt, governs
from tokfold.limits import DEFAULT_LIMITS, Limits

MACROS_OF_BYTES = frozenset({"Regex", "Substring", "TagDispatch"})
"""Macros that the core expands to automata over bytes."""

MACROS_OF_TOKENS = frozenset({"Token", "ExcludeToken", "TokenTagDispatch"})
"""Macros that match one token by its id, whatever its bytes."""


class Built:
    """A source with what its conversion gave; all else is computed on first access.

    It is immutable. Two threads may compute the same value twice, with equal results.
    """

    __slots__ = ("__dict__", "_converted", "_limits", "_source")

    _source: Source
    _converted: Converted
    _limits: Limits | None

    @classmethod
    def _of(
        cls,
        source: Source,
        limits: Limits | None = None,
        interrupt: Interrupt | None = None,
        converted: Converted | None = None,
    ) -> Self:
        """What becomes of a source, converted here or before."""
        if converted is None:
            ends = Interrupt._of(interrupt, limits or DEFAULT_LIMITS)
            converted = source.convert(limits, ends)
        self = object.__new__(cls)
        self._source, self._limits, self._converted = source, limits, converted
        return self

    def __str__(self) -> str:
        """Grammar text of the same texts."""
        return self._text

    @lazy
    def _core(self) -> CoreGrammar:
        """All of it."""
        core, unread = self._converted.core, self._converted.unread
        if unread is not None:
            raise UnsupportedGrammarError(str(unread), unread.construct, unread.line, unread.column)
        return self._source.join(self._converted.frame, self._limits) if core is None else core

    @property
    def _without_lookahead(self) -> CoreGrammar:
        """All of it, without lookahead that says nothing."""
        is_implied = self._source.lookahead == "implied"
        return self._core.without_lookahead() if is_implied else self._core

    @property
    def _key(self) -> Hashable:
        """Equal for grammars of which it is plain that they are equal; not their text."""
        key = self._source.key
        return self if key is None else key

    @property
    def _tags(self) -> CoreTags | None:
        """The choice of tags that it is made of."""
        return self._source.tags if isinstance(self._source, TagsSource) else None

    @lazy
    def _text(self) -> str:
        return self._core.text()

    @property
    def _takes_tokens(self) -> bool:
        """Whether tokens are named by their ids: the grammar then needs their vocabulary."""
        return not MACROS_OF_TOKENS.isdisjoint(self._core.macro_names())

    @lazy
    def _is_text(self) -> bool:
        """Whether no tokens are named by their ids."""
        known = self._source.is_text
        return not self._takes_tokens if known is None else known

    @lazy
    def _compilable(self) -> CoreGrammar:
        """The grammar for the core to compile: automata for macros and for rules with a bound.

        Rules keep their names, numbers and places.
        """
        return self._with_automata(self._core)

    @property
    def _linkable(self) -> tuple[CoreGrammar, list[tuple[str, CoreGrammar | CoreTags]]] | None:
        """The frame and the parts, each for the core to compile by itself; None without parts.

        Tokens that are taken whole are ranges of ids once the vocabulary is known, so a part that
        takes some is not compiled by itself.
        """
        source, frame = self._source, self._converted.frame
        if frame is None or not isinstance(source, FrameSource):
            return None
        if not all(part._is_text for part in source.parts.values()):
            return None
        parts = [(name, part._tags or part._compilable) for name, part in source.parts.items()]
        return self._with_automata(frame), parts

    def _with_automata(self, expanded: CoreGrammar) -> CoreGrammar:
        has_macros = not MACROS_OF_BYTES.isdisjoint(expanded.macro_names())
        if not has_macros and not expanded.has_bounded_rules():
            return expanded
        return expanded.with_automata(self._limits, governs())
