"""The formats of a structural tag, as values.

These are XGrammar's formats (``xgrammar.structural_tag``) after reading and checking: tokens are
ids, defaults are filled in, a single end is a tuple of one. :mod:`reading` makes them from JSON,
:mod:`assembly` makes a grammar of them. Each knows its path in the tag, for messages.
"""

from __future__ import annotations

from collections import Counter, abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from tokfold._lazy import lazy


@dataclass(frozen=True, slots=True)
class _Format:
    type: ClassVar[str]
    path: str


# ---------------------------------------------------------------------- text


@dataclass(frozen=True, slots=True)
class ConstString(_Format):
    """This text."""

    type: ClassVar[str] = "const_string"
    value: str


@dataclass(frozen=True, slots=True)
class JsonSchema(_Format):
    """What a JSON schema allows, written as ``style`` says."""

    type: ClassVar[str] = "json_schema"
    schema: str
    """JSON text; its keys in the order given, which is the order of properties."""
    style: str
    any_order: bool
    max_whitespace_cnt: int | None
    excludes: tuple[str, ...]
    is_open: bool
    """Whether objects that do not say otherwise have other members than those that are named."""
    behind: str
    """The text before it in the tag around it, for messages: it has the name of a tool."""


@dataclass(frozen=True, slots=True)
class GrammarText(_Format):
    """What a grammar text allows."""

    type: ClassVar[str] = "grammar"
    text: str
    syntax: str
    """``"ebnf"`` or ``"lark"``."""
    tokens: tuple[tuple[str | int, ...], ...] | None
    """For each token that the text names its name and its ids; None without a vocabulary."""


@dataclass(frozen=True, slots=True)
class Regex(_Format):
    """What a regular expression matches."""

    type: ClassVar[str] = "regex"
    pattern: str


@dataclass(frozen=True, slots=True)
class AnyText(_Format):
    """Any text in which none of ``excludes`` occurs, nor the end of the tag around it."""

    type: ClassVar[str] = "any_text"
    excludes: tuple[str, ...]
    max_tokens: int | None
    max_chars: int | None


# -------------------------------------------------------------------- tokens


@dataclass(frozen=True, slots=True)
class Token(_Format):
    """One token."""

    type: ClassVar[str] = "token"
    token: int


@dataclass(frozen=True, slots=True)
class ExcludeToken(_Format):
    """One token, none of these, nor the end of the tag around it."""

    type: ClassVar[str] = "exclude_token"
    exclude_tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AnyTokens(_Format):
    """Any number of tokens, none of these, nor the end of the tag around it."""

    type: ClassVar[str] = "any_tokens"
    exclude_tokens: tuple[int, ...]
    max_tokens: int | None


# --------------------------------------------------------------- composition


@dataclass(frozen=True, slots=True)
class Sequence(_Format):
    """One after the other."""

    type: ClassVar[str] = "sequence"
    elements: tuple[Format, ...]


@dataclass(frozen=True, slots=True)
class Or(_Format):
    """One of them."""

    type: ClassVar[str] = "or"
    elements: tuple[Format, ...]


@dataclass(frozen=True, slots=True)
class Optional(_Format):
    """Once or not at all."""

    type: ClassVar[str] = "optional"
    content: Format


@dataclass(frozen=True, slots=True)
class Plus(_Format):
    """Once or more."""

    type: ClassVar[str] = "plus"
    content: Format


@dataclass(frozen=True, slots=True)
class Star(_Format):
    """Any number of times."""

    type: ClassVar[str] = "star"
    content: Format


@dataclass(frozen=True, slots=True)
class Repeat(_Format):
    """So many times; ``None`` is no upper bound."""

    type: ClassVar[str] = "repeat"
    min: int
    max: int | None
    content: Format


@dataclass(frozen=True, slots=True)
class Tag(_Format):
    """Begin, content, one of the ends."""

    type: ClassVar[str] = "tag"
    begin: str | Token
    content: Format
    end: tuple[str, ...] | Token


# --------------------------------------------------- free text that dispatches


class Triggers(tuple[str, ...]):
    """Texts that begin tags, with an index of them: there may be ten thousand, and as many tags."""

    @lazy
    def _hash(self) -> int:
        return super().__hash__()

    @lazy
    def _counts(self) -> dict[str, int]:
        return dict(Counter(self))

    @lazy
    def _lengths(self) -> list[int]:
        return sorted({len(trigger) for trigger in self})

    def __hash__(self) -> int:
        return self._hash

    def beginning(self, text: str) -> list[str]:
        """The triggers with which a text begins, the shortest first; repeated ones as often."""
        found: list[str] = []
        for length in self._lengths:
            if length > len(text):
                break
            start = text[:length]
            found += [start] * self._counts.get(start, 0)
        return found


@dataclass(frozen=True, slots=True)
class TriggeredTags(_Format):
    """Free text; a trigger in it is the beginning of a tag."""

    type: ClassVar[str] = "triggered_tags"
    triggers: Triggers
    tags: tuple[Tag, ...]
    at_least_one: bool
    stop_after_first: bool
    excludes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenTriggeredTags(_Format):
    """Free tokens; a trigger among them begins a tag."""

    type: ClassVar[str] = "token_triggered_tags"
    trigger_tokens: tuple[int, ...]
    tags: tuple[Tag, ...]
    at_least_one: bool
    stop_after_first: bool
    exclude_tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TagsWithSeparator(_Format):
    """Tags with a separator between them, and nothing else."""

    type: ClassVar[str] = "tags_with_separator"
    tags: tuple[Tag, ...]
    separator: str
    at_least_one: bool
    stop_after_first: bool


@dataclass(frozen=True, slots=True)
class Dispatch(_Format):
    """Free text; what follows a pattern in it is of the pattern's format."""

    type: ClassVar[str] = "dispatch"
    rules: tuple[tuple[str, Format], ...]
    loop: bool
    excludes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenDispatch(_Format):
    """Free tokens; what follows one of these is of its format."""

    type: ClassVar[str] = "token_dispatch"
    rules: tuple[tuple[int, Format], ...]
    loop: bool
    exclude_tokens: tuple[int, ...]


Format = (
    ConstString
    | JsonSchema
    | GrammarText
    | Regex
    | AnyText
    | Token
    | ExcludeToken
    | AnyTokens
    | Sequence
    | Or
    | Optional
    | Plus
    | Star
    | Repeat
    | Tag
    | TriggeredTags
    | TokenTriggeredTags
    | TagsWithSeparator
    | Dispatch
    | TokenDispatch
)


def children(format: Format) -> abc.Sequence[Format]:
    """The formats of which one is made."""
    found = _CHILDREN.get(type(format))
    return () if found is None else found(format)


_CHILDREN: dict[type, Callable[[Any], abc.Sequence[Format]]] = {
    **dict.fromkeys((Sequence, Or), lambda one: one.elements),
    **dict.fromkeys((Dispatch, TokenDispatch), lambda one: [content for _, content in one.rules]),
    **dict.fromkeys((TriggeredTags, TokenTriggeredTags, TagsWithSeparator), lambda one: one.tags),
    **dict.fromkeys((Tag, Optional, Plus, Star, Repeat), lambda one: (one.content,)),
}
