"""Formats that may go on for ever, and tags that have no end although their content may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokfold._tags import formats
from tokfold._tags.fields import fail
from tokfold._tags.formats import Format, Tag, Token
from tokfold._tags.known import CLOSED

if TYPE_CHECKING:
    from tokfold._tags.known import Before


def check_ends(format: Format, before: Before) -> None:
    """Refuse tags that have no end although their content may go on for ever."""
    todo: list[Format] = [format]
    while todo:
        one = todo.pop()
        new = formats.children(one)[before.num_known(one) :]  # the others were looked at
        todo += [child for child in new if type(child) not in CLOSED]
        if not isinstance(one, Tag) or isinstance(one.end, Token) or any(one.end):
            continue
        if _is_endless(one.content) and not _excludes(one.content):
            fail(
                one.path,
                "the content can be endless, and 'end' is empty; give the tag an end"
                + (", or exclude something from the content" * _may_exclude(one.content)),
                one.type,
            )


_ENDLESS = (
    formats.AnyText,
    formats.AnyTokens,
    formats.TriggeredTags,
    formats.TokenTriggeredTags,
    formats.TagsWithSeparator,
    formats.Dispatch,
    formats.TokenDispatch,
    formats.Star,
    formats.Plus,
)


def _is_endless(format: Format) -> bool:
    """Whether XGrammar takes a format for one that may go on for ever."""
    match format:
        case formats.Sequence() | formats.Or():
            return any(_is_endless(each) and not _excludes(each) for each in format.elements)
        case formats.Optional():
            return _is_endless(format.content)
        case formats.Repeat():
            return format.max is None or (format.max != 0 and _is_endless(format.content))
    return isinstance(format, _ENDLESS)


def _may_exclude(format: Format) -> bool:
    return isinstance(format, _WITH_TEXTS + _WITH_TOKENS)


_WITH_TEXTS = (formats.AnyText, formats.TriggeredTags, formats.Dispatch)
_WITH_TOKENS = (formats.AnyTokens, formats.TokenTriggeredTags, formats.TokenDispatch)


def _excludes(format: Format) -> bool:
    match format:
        case formats.AnyText() | formats.TriggeredTags() | formats.Dispatch():
            return bool(format.excludes)
        case formats.AnyTokens() | formats.TokenTriggeredTags() | formats.TokenDispatch():
            return bool(format.exclude_tokens)
    return False
