"""Tools that come and go: the tags of a structural tag's free text, changed one by one.

Only what is new is read and converted; the grammar is put together of the same formats and leaves,
so it is the one that the changed structural tag would give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokfold.errors import StructuralTagError
from tokfold.structural_tags import formats
from tokfold.structural_tags.fields import fail
from tokfold.structural_tags.formats import Format, Tag, Token
from tokfold.structural_tags.reading import read

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary

__all__ = ["changed"]

_FREE = (
    formats.TriggeredTags,
    formats.TokenTriggeredTags,
    formats.Dispatch,
    formats.TokenDispatch,
)


def changed(
    format: Format,
    added: Iterable[object],
    removed: Iterable[str | int],
    vocabulary: Vocabulary | None,
) -> Format:
    """A format with other tags in its free text.

    Args:
        format: has one format with free text and tags.
        added: as for :meth:`tokfold.Grammar.with_tags`.
        removed: as for :meth:`tokfold.Grammar.with_tags`.
        vocabulary: for tokens given as text.

    Raises:
        StructuralTagError: there is no such format, or more than one; what is added is no tag; what
            is to be removed is not there.
    """
    found = _free_texts(format)
    if len(found) != 1:
        how_many = "none" if not found else f"{len(found)}"
        raise StructuralTagError(
            "tags are added to the one format in which free text calls them, and here is "
            f"{how_many}; make the grammar of the changed structural tag",
            "format",
            format.type,
        )
    new = _with_tags(found[0], list(added), list(dict.fromkeys(removed)), vocabulary)
    return _replaced(format, found[0], new)


def _free_texts(format: Format) -> list[Format]:
    out: list[Format] = []
    todo: list[Format] = [format]
    while todo:
        one = todo.pop()
        if isinstance(one, _FREE):
            out.append(one)
        todo += _children(one)
    return out


def _children(format: Format) -> tuple[Format, ...]:
    """The formats within one, but for those behind its own tags."""
    match format:
        case formats.Sequence() | formats.Or():
            return tuple(format.elements)
        case Tag() | formats.Optional() | formats.Plus() | formats.Star() | formats.Repeat():
            return (format.content,)
        case formats.TagsWithSeparator():
            return tuple(format.tags)
    return ()


def _replaced(format: Format, old: Format, new: Format) -> Format:
    if format is old:
        return new
    match format:
        case formats.Sequence() | formats.Or():
            elements = tuple(_replaced(each, old, new) for each in format.elements)
            return replace(format, elements=elements)
        case Tag() | formats.Optional() | formats.Plus() | formats.Star() | formats.Repeat():
            return replace(format, content=_replaced(format.content, old, new))
        case formats.TagsWithSeparator():
            tags: Any = tuple(_replaced(tag, old, new) for tag in format.tags)
            return replace(format, tags=tags)
    return format


def _with_tags(
    format: Format, added: list[object], removed: list[str | int], vocabulary: Vocabulary | None
) -> Format:
    match format:
        case formats.TriggeredTags():
            kept, beginnings = _kept_tags(format, removed)
            tags = (*kept, *_tags_of(added, format, vocabulary))
            triggers = tuple(
                trigger
                for trigger in format.triggers
                if any(isinstance(tag.begin, str) and tag.begin.startswith(trigger) for tag in tags)
                or not any(begin.startswith(trigger) for begin in beginnings)
            )
            return replace(format, tags=_some(format, tags), triggers=triggers)
        case formats.TokenTriggeredTags():
            kept, _ = _kept_tags(format, removed)
            tags = (*kept, *_tags_of(added, format, vocabulary))
            begun = {tag.begin.token for tag in tags if isinstance(tag.begin, Token)}
            triggers_left = tuple(token for token in format.trigger_tokens if token in begun)
            return replace(format, tags=_some(format, tags), trigger_tokens=triggers_left)
        case formats.Dispatch() | formats.TokenDispatch():
            rules: tuple[Any, ...] = format.rules
            _check_there(format, removed, {trigger for trigger, _ in rules})
            kept_rules = tuple(rule for rule in rules if rule[0] not in removed)
            document = {"type": format.type, "rules": added}
            new_rules = _read(document, vocabulary).rules if added else ()
            changes: dict[str, Any] = {"rules": (*kept_rules, *new_rules)}
            return replace(format, **changes)
    raise AssertionError(format)


def _kept_tags(
    format: formats.TriggeredTags | formats.TokenTriggeredTags, removed: list[str | int]
) -> tuple[list[Tag], list[str]]:
    """The tags that stay, and the beginnings of those that go."""
    if not removed:
        return list(format.tags), []
    begins = [tag.begin.token if isinstance(tag.begin, Token) else tag.begin for tag in format.tags]
    _check_there(format, removed, set(begins))
    gone = set(removed)
    kept = [tag for tag, begin in zip(format.tags, begins, strict=True) if begin not in gone]
    return kept, [begin for begin in removed if isinstance(begin, str)]


def _check_there(format: Format, removed: list[str | int], there: set[Any]) -> None:
    for one in removed:
        if one not in there:
            fail(format.path, format.type, f"no tag begins with {one!r}, which is to be removed")


def _some(
    format: formats.TriggeredTags | formats.TokenTriggeredTags, tags: tuple[Tag, ...]
) -> tuple[Tag, ...]:
    if not tags and format.at_least_one:
        fail(format.path, format.type, "'at_least_one' wants a tag, and the last one is removed")
    return tags


def _tags_of(added: list[object], format: Format, vocabulary: Vocabulary | None) -> list[Tag]:
    out = []
    for one in added:
        document = {"type": "tag", **one} if isinstance(one, Mapping) else one
        tag = _read(document, vocabulary)
        if not isinstance(tag, Tag):
            fail(format.path, format.type, f"what is added is a tag, not {tag.type}")
        out.append(tag)
    return out


def _read(document: object, vocabulary: Vocabulary | None) -> Any:  # noqa: ANN401 - a format
    return read({"format": document}, vocabulary)
