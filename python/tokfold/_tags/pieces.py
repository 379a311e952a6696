"""Tags as the core takes them: texts and contents in turn, and a few texts of which one is last.

Schemas, patterns and grammars are contents as they are, texts between them are texts. What else
may stand in a tag (free text, choices, repetitions) is put together by itself and is a content like
these. That does for all that is read by its text alone; tokens stay with the frame, and so do many
tags in a tag, which are handed over by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tokfold._tags import formats
from tokfold._tags.formats import Format, Tag, Token

if TYPE_CHECKING:
    from tokfold import _core
    from tokfold._sources.built import Built
    from tokfold._tags.leaves import Leaves
    from tokfold._tags.markers import Markers

_MANY_WITHIN = 32
"""A format with so many others is no part of a content: changes would make all of it anew."""

Given = tuple[str, list[tuple[str, "_core.Grammar", "_core.Grammar"]], list[str]]
"""How a tag begins; its contents, each with the text before it, as written and as compiled; its
ends."""

_OF_TOKENS = (
    formats.Token,
    formats.ExcludeToken,
    formats.AnyTokens,
    formats.TokenTriggeredTags,
    formats.TokenDispatch,
)


class Makers(NamedTuple):
    """What makes grammars of contents."""

    leaves: Leaves
    alone: Callable[[Format, tuple[str, ...]], Built]
    """The grammar of a format by itself, in a tag that ends in one of some texts."""
    markers: Markers
    """Special tokens; the core has no tag in whose texts one stands."""


def of_tag(tag: Tag, trigger: str, makers: Makers) -> Given | None:
    """A tag behind what triggers it; None where it is written as text."""
    if isinstance(tag.begin, Token) or isinstance(tag.end, Token):
        return None
    pieces = _pieces(tag.content, tag.end, makers)
    return None if pieces is None else _given(tag.begin[len(trigger) :], pieces, tag.end, makers)


def of_rule(pattern: str, content: Format, ends: tuple[str, ...], makers: Makers) -> Given | None:
    """What follows a pattern in free text; None where it is written as text.

    ``ends`` are the texts that end the tag around the free text.
    """
    pieces = _pieces(content, ends, makers)
    return None if pieces is None else _given(pattern, pieces, ("",), makers)


def _given(
    begin: str, pieces: list[str | Built], ends: tuple[str, ...], makers: Makers
) -> Given | None:
    texts = [begin, *(piece for piece in pieces if isinstance(piece, str)), *ends]
    if makers.markers.are_in(*texts):
        return None
    contents = []
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
        else:
            contents.append((text, piece._core, piece._compilable))
            text = ""
    return begin, contents, [text + end for end in ends] if text else list(ends)


def _pieces(format: Format, ends: tuple[str, ...], makers: Makers) -> list[str | Built] | None:
    """A format as texts and contents in turn."""
    if isinstance(format, formats.JsonSchema):  # most are
        schema = makers.leaves.grammar(format, makers.markers)
        return None if makers.markers and schema._takes_tokens else [schema]
    match format:
        case formats.Sequence():
            found: list[str | Built] = []
            for each in format.elements:
                if isinstance(each, formats.ConstString):
                    found.append(each.value)
                    continue
                pieces = _pieces(each, ends, makers)
                if pieces is None:
                    return None
                found += pieces
            return found
        case formats.ConstString():
            return [format.value]
        case formats.Regex():
            return [makers.leaves.grammar(format)]
        case formats.GrammarText():
            leaf = makers.leaves.grammar(format)
            # Macros that a person wrote may take tokens, or need what is not there.
            return None if leaf._core.macro_names() else [leaf]
        case Tag(begin=str(begin), end=(str(end),)):
            pieces = _pieces(format.content, (end,), makers)
            return None if pieces is None else [begin, *pieces, end]
    if not _stands_alone(format, makers):
        return None
    alone = makers.alone(format, ends)
    # a special token may stand in its texts
    return None if makers.markers and alone._takes_tokens else [alone]


def _stands_alone(format: Format, makers: Makers) -> bool:
    todo: list[Format] = [format]
    while todo:
        one = todo.pop()
        within = formats.children(one)
        if isinstance(one, _OF_TOKENS) or len(within) >= _MANY_WITHIN:
            return False
        if isinstance(one, Tag) and (isinstance(one.begin, Token) or isinstance(one.end, Token)):
            return False
        if isinstance(one, formats.GrammarText) and makers.leaves.grammar(one)._core.macro_names():
            return False
        todo += within
    return True
