"""Tools that come and go: the tags of free text, or between separators, changed one by one.

Only what is new is read and converted; the grammar is put together of the same formats and leaves,
so it is the one that the changed structural tag would give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tokfold._checks import whole_number
from tokfold._quoting import quoted
from tokfold._tags import formats
from tokfold._tags.fields import fail
from tokfold._tags.formats import Format, Tag, Token
from tokfold._tags.reading import Settings, read
from tokfold.errors import ArgumentTypeError, StructuralTagError

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
    settings: Settings,
) -> Format:
    """A format with other tags in its free text, as :meth:`tokfold.Grammar.with_tags` says."""
    new_ones, gone = list(added), list(dict.fromkeys(_checked_begins(removed)))
    place = _place(format, new_ones, gone, settings)
    return _replaced(format, place, _with_tags(place, new_ones, gone, settings))


def _checked_begins(removed: Iterable[object]) -> Iterable[str | int]:
    for index, one in enumerate(removed):
        begin = one if isinstance(one, str) else whole_number(one)
        if begin is None:
            hint = ': pass what stands in its "begin"' if isinstance(one, Mapping) else ""
            raise ArgumentTypeError(
                "removed must hold the texts, or ids of tokens, with which tags begin, and "
                f"removed[{index}] is {type(one).__name__}{hint}"
            )
        yield begin


def _place(
    format: Format, added: list[object], removed: list[str | int], settings: Settings
) -> Format:
    """The format whose tags change: the outermost that has what goes, and may have what comes.

    Free text goes before tags with a separator beside it, unless those alone have what goes.
    """
    level = _holders([format])
    blamed: Format | None = None
    while level:
        free = [one for one in level if not isinstance(one, formats.TagsWithSeparator)]
        fitting = [one for one in free or level if _fits(one, added, removed, settings)]
        if removed and not fitting:
            fitting = [one for one in level if _fits(one, added, removed, settings)]
        if len(fitting) == 1 and len(free) < 2:
            return fitting[0]
        if len(fitting) > 1 or len(free) > 1:
            break
        if blamed is None and len(free or level) == 1:
            (blamed,) = free or level
        level = _holders([one for holder in level for one in formats.children(holder)])
    if blamed is not None and not level:
        return blamed  # which says what is wrong
    raise StructuralTagError(
        "tags are added to the one format in which free text calls them or a separator stands "
        f"between them, and here is {len(level) or 'none'}; make the grammar of the changed "
        "structural tag",
        "format",
        format.type,
    )


def _holders(todo: list[Format]) -> list[Format]:
    """Free texts that call tags and tags with separators, but for those within others."""
    out: list[Format] = []
    while todo:
        one = todo.pop()
        if isinstance(one, (*_FREE, formats.TagsWithSeparator)):
            out.append(one)
        else:
            todo += formats.children(one)
    return out


def _fits(
    holder: Format, added: list[object], removed: list[str | int], settings: Settings
) -> bool:
    """Whether a format has what is removed, and may have what is added."""
    if removed and not {*_begins(holder)}.issuperset(removed):
        return False
    match holder:
        case formats.TriggeredTags():
            # Only looked at: whoever takes them reads them.
            texts = [one.get("begin") if isinstance(one, Mapping) else None for one in added]
            if not all(isinstance(text, str) for text in texts):
                texts = [_begin(tag) for tag in _tags_of(added, holder, settings)]
            return all(isinstance(text, str) and holder.triggers.beginning(text) for text in texts)
        case formats.TokenTriggeredTags():
            new = {_begin(tag) for tag in _tags_of(added, holder, settings)}
            return new <= set(holder.trigger_tokens)
        case formats.Dispatch() | formats.TokenDispatch():
            return all(isinstance(one, list | tuple) for one in added)
    return True


def _begins(holder: Any) -> list[str | int]:  # noqa: ANN401 - a format with tags or rules
    """What the tags, or rules, of a format begin with."""
    if isinstance(holder, formats.Dispatch | formats.TokenDispatch):
        return [trigger for trigger, _ in holder.rules]
    return [_begin(tag) for tag in holder.tags]


def _begin(tag: Tag) -> str | int:
    return tag.begin.token if isinstance(tag.begin, Token) else tag.begin


def _replaced(format: Format, old: Format, new: Format) -> Format:
    """A format with another in the place of one, and all as it is that does not hold it."""
    if format is old:
        return new
    within = formats.children(format)
    others = tuple(_replaced(one, old, new) for one in within)
    if all(other is one for other, one in zip(others, within, strict=True)):
        return format
    changed: Any = others
    match format:
        case formats.Sequence() | formats.Or():
            return replace(format, elements=changed)
        case Tag() | formats.Optional() | formats.Plus() | formats.Star() | formats.Repeat():
            return replace(format, content=others[0])
        case formats.TagsWithSeparator() | formats.TriggeredTags() | formats.TokenTriggeredTags():
            return replace(format, tags=changed)
        case formats.Dispatch() | formats.TokenDispatch():
            rules: Any = tuple(
                (trigger, other) for (trigger, _), other in zip(format.rules, others, strict=True)
            )
            return replace(format, rules=rules)
    raise AssertionError(format)


def _triggers_of(format: formats.TriggeredTags, texts: Iterable[str]) -> set[str]:
    """The triggers with which some texts begin."""
    return {trigger for text in texts for trigger in format.triggers.beginning(text)}


def _with_tags(
    format: Format, added: list[object], removed: list[str | int], settings: Settings
) -> Format:
    changes: dict[str, Any]
    if isinstance(format, formats.Dispatch | formats.TokenDispatch):
        kept = _kept(format, format.rules, removed)
        document = {"type": format.type, "rules": added}
        new = _read(document, settings, "added", "rules").rules if added else ()
        changes = {"rules": (*kept, *new)}
        return replace(format, **changes)
    if not isinstance(
        format, formats.TriggeredTags | formats.TokenTriggeredTags | formats.TagsWithSeparator
    ):
        raise AssertionError(format)
    tags: tuple[Tag, ...] = (
        *_kept(format, format.tags, removed),
        *_tags_of(added, format, settings),
    )
    if not tags and isinstance(format, formats.TagsWithSeparator):
        fail(format.path, "the last tag is removed, and it wants one", format.type)
    if not tags and format.at_least_one:
        fail(format.path, "'at_least_one' wants a tag, and the last one is removed", format.type)
    changes = {"tags": tags}
    if isinstance(format, formats.TriggeredTags):
        used = _triggers_of(format, (tag.begin for tag in tags if isinstance(tag.begin, str)))
        gone = _triggers_of(format, (begin for begin in removed if isinstance(begin, str)))
        left = (one for one in format.triggers if one in used or one not in gone)
        changes["triggers"] = formats.Triggers(left)
    elif isinstance(format, formats.TokenTriggeredTags):
        begun = {tag.begin.token for tag in tags if isinstance(tag.begin, Token)}
        changes["trigger_tokens"] = tuple(one for one in format.trigger_tokens if one in begun)
    return replace(format, **changes)


def _kept(format: Format, all_of_it: tuple[Any, ...], removed: list[str | int]) -> list[Any]:
    """The tags, or rules, that stay."""
    if not removed:
        return list(all_of_it)
    begins = _begins(format)
    there = set(begins)
    for one in removed:
        if one not in there:
            fail(
                format.path,
                f"no tag begins with {quoted(one)}, which is to be removed",
                format.type,
            )
    gone = set(removed)
    return [one for one, begin in zip(all_of_it, begins, strict=True) if begin not in gone]


def _tags_of(added: list[object], format: Format, settings: Settings) -> list[Tag]:
    out = []
    for index, one in enumerate(added):
        document = {"type": "tag", **one} if isinstance(one, Mapping) else one
        tag = _read(document, settings, f"added[{index}]")
        if not isinstance(tag, Tag):
            fail(format.path, f"what is added is a tag, not {tag.type}", format.type)
        out.append(tag)
    return out


def _read(document: object, settings: Settings, place: str, within: str = "") -> Any:  # noqa: ANN401
    """A format that is added; its faults stand in what was given, which errors call ``place``.

    What stands there is its field ``within``.
    """
    before = f"format.{within}" if within else "format"
    try:
        return read({"format": document}, settings)
    except StructuralTagError as error:
        if not error.path.startswith(before):
            raise
        path = place + error.path.removeprefix(before)
        message = path + str(error).removeprefix(error.path)
        raise StructuralTagError(message, error.format, path) from error
