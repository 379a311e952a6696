"""What is known of a frame when the next one is put together.

That is what was written of its tags, and the tags that were handed to the core.

Many tags of which one comes (behind a trigger, between separators, in a choice), and free text with
many patterns, are no grammar text. They are handed to the core as they are, as ``_core.Tags``; a
frame that has most of the same tags says which are gone and hands over what is new behind them.
What cannot be handed over (:mod:`tokfold._tags.pieces`) is written beside the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tokfold import _core
from tokfold._tags import formats
from tokfold._tags.fields import fail
from tokfold._tags.formats import Format, Tag, Token
from tokfold._tags.literals import literal
from tokfold._tags.pieces import Given, Makers, of_rule, of_tag

if TYPE_CHECKING:
    from tokfold._sources.built import Built

CLOSED = frozenset(
    {formats.ConstString, formats.JsonSchema, formats.Regex, formats.GrammarText},
)
"""Formats that mean the same wherever they stand, and hold no others."""

MANY_TAGS = 32
"""So many tags at one place, or patterns in free text, are handed to the core as they are."""

_Free = tuple[bool, tuple[str, ...], tuple[str, ...]]
"""Whether free text loops, what it excludes, the ends of the tag around it."""

Key = tuple[int, tuple[str, ...] | None]
"""The id of a format; of a tag, the triggers of which one stands before it, if any do."""


class Written(NamedTuple):
    """What is written of a tag or a sequence of leaves and texts."""

    format: Format
    """Held, so that its id stays its own."""
    text: str
    """With ``%s`` for each leaf."""
    leaves: tuple[tuple[str, Built], ...]
    """With what their names begin with."""


class Chosen(NamedTuple):
    """Tags of which one comes at some place."""

    tags: tuple[Tag, ...]
    handed_over: _core.Tags | None
    """Those of the tags that the core has, in their order; None where these would be few."""
    written: tuple[Tag, ...]
    """Those that are written as text, in their order."""

    def without(self, gone: list[int]) -> Chosen:
        """The same without the tags at some places, in order."""
        if not gone:
            return self
        there = set(gone)
        tags = tuple(tag for place, tag in enumerate(self.tags) if place not in there)
        if self.handed_over is None:
            return Chosen(tags, None, tags)
        is_written = set(map(id, self.written))
        numbers = [place for place, tag in enumerate(self.tags) if id(tag) not in is_written]
        handed_over = [number for number, place in enumerate(numbers) if place in there]
        if len(numbers) - len(handed_over) < MANY_TAGS:
            return Chosen(tags, None, tags)
        kept = set(map(id, tags))
        return Chosen(
            tags,
            self.handed_over.changed(handed_over, []) if handed_over else self.handed_over,
            tuple(tag for tag in self.written if id(tag) in kept),
        )

    def and_more(self, more: tuple[Tag, ...], trigger: str, makers: Makers) -> Chosen:
        """The same with more tags behind them, which all begin with a trigger."""
        tags = (*self.tags, *more)
        if len(tags) < MANY_TAGS:
            return Chosen(tags, None, tags)
        known = self.handed_over
        if known is not None and not more:
            return self
        given, written = [], []
        makers.leaves.prepare(tags if known is None else more, makers.markers)
        for tag in tags if known is None else more:
            found = of_tag(tag, trigger, makers)
            if found is None:
                written.append(tag)
            else:
                given.append(found)
        if known is not None:
            handed_over = known.changed([], given) if given else known
            return Chosen(tags, handed_over, (*self.written, *written))
        if len(given) < MANY_TAGS:
            return Chosen(tags, None, tags)
        return Chosen(tags, _core.Tags(given), tuple(written))


NOTHING = Chosen((), None, ())


class Grouped(NamedTuple):
    """Tags by their triggers."""

    tags: tuple[Tag, ...]
    groups: dict[str, Chosen]


class Dispatched(NamedTuple):
    """Free text with patterns, as the core has it."""

    rules: tuple[tuple[str, Format], ...]
    patterns: frozenset[str]
    tags: _core.Tags


class Before(NamedTuple):
    """What is known of an earlier frame."""

    written: Mapping[Key, Written]
    grouped: Mapping[tuple[str, ...], Grouped]
    """By triggers."""
    chosen: Mapping[str, Chosen]
    """By the path of what holds the tags."""
    dispatched: Mapping[_Free, Dispatched]

    @classmethod
    def nothing(cls) -> Before:
        """Where there was no frame."""
        return cls({}, {}, {}, {})

    def num_known(self, format: Format) -> int:
        """How many of the tags or rules of a format, the first ones, were there before."""
        if isinstance(format, formats.TriggeredTags) and format.triggers in self.grouped:
            return _gone(self.grouped[format.triggers].tags, format.tags)[1]
        if isinstance(format, formats.TagsWithSeparator) and format.path in self.chosen:
            return _gone(self.chosen[format.path].tags, format.tags)[1]
        if isinstance(format, formats.Dispatch):
            free = (format.loop, format.excludes)
            known = [found for key, found in self.dispatched.items() if key[:2] == free]
            return _gone(known[0].rules, format.rules)[1] if known else 0
        return 0

    def rules_of(self, format: formats.Dispatch, free: _Free) -> Dispatched | None:
        """What is known of rules with which a format begins."""
        found = self.dispatched.get(free)
        if found is None:
            return None
        gone, _ = _gone(found.rules, format.rules)
        if not gone:
            return found
        if len(gone) == len(found.rules):
            return None
        there = set(gone)
        rules = tuple(rule for place, rule in enumerate(found.rules) if place not in there)
        patterns = found.patterns.difference(found.rules[place][0] for place in gone)
        return Dispatched(rules, patterns, found.tags.changed(gone, []))

    def tags_of(self, format: formats.TriggeredTags) -> Grouped:
        """What is known of tags with which a format begins."""
        found = self.grouped.get(format.triggers)
        if found is None:
            return Grouped((), {})
        gone, count = _gone(found.tags, format.tags)
        if not gone:
            return found
        kept = set(map(id, format.tags[:count]))
        if any(id(found.tags[place]) in kept for place in gone):
            return Grouped((), {})  # a tag that is there twice
        groups = {}
        for trigger, group in found.groups.items():
            places = [place for place, tag in enumerate(group.tags) if id(tag) not in kept]
            groups[trigger] = group.without(places)
        return Grouped(format.tags[:count], groups)


_T = TypeVar("_T")


def _gone(known: tuple[_T, ...], now: tuple[_T, ...]) -> tuple[list[int], int]:
    """The places of what is no longer there, and how many of those that are now were known.

    These are the first ones.
    """
    if known == now[: len(known)]:
        return [], len(known)
    gone, count = [], 0
    for place, one in enumerate(known):
        if count < len(now) and now[count] is one:
            count += 1
        else:
            gone.append(place)
    return gone, count


def grouped(format: formats.TriggeredTags, before: Before, makers: Makers) -> Grouped:
    """The tags of a format by their triggers, with what the core has of them."""
    known = before.tags_of(format)
    new: dict[str, list[Tag]] = {trigger: [] for trigger in format.triggers}
    for tag in format.tags[len(known.tags) :]:
        new[trigger_of(format, tag)].append(tag)
    groups = {
        trigger: known.groups.get(trigger, NOTHING).and_more(tuple(more), trigger, makers)
        for trigger, more in new.items()
    }
    return Grouped(format.tags, groups)


def chosen(path: str, tags: tuple[Tag, ...], before: Before, makers: Makers) -> Chosen:
    """Tags of which one comes, with what the core has of them."""
    known = before.chosen.get(path, NOTHING)
    gone, count = _gone(known.tags, tags)
    if known.handed_over is None:
        return NOTHING.and_more(tags, "", makers)
    return known.without(gone).and_more(tags[count:], "", makers)


def dispatched(
    format: formats.Dispatch, ends: tuple[str, ...], before: Before, makers: Makers
) -> Dispatched | None:
    """Free text with patterns for the core; None where it is written as text.

    ``ends`` are the texts that end the tag around it.
    """
    if len(format.rules) < MANY_TAGS:
        return None
    known = before.rules_of(format, (format.loop, format.excludes, ends))
    new = format.rules[len(known.rules) :] if known else format.rules
    patterns = known.patterns if known else frozenset[str]()
    given: list[Given] = []
    seen = set[str]()
    makers.leaves.prepare((content for _, content in new), makers.markers)
    for pattern, content in new:
        # What begins with an excluded text never comes; behind what is there twice is a choice.
        if pattern in patterns or pattern in seen or pattern.startswith(format.excludes):
            return None
        found = of_rule(pattern, content, ends, makers)
        if found is None:
            return None
        seen.add(pattern)
        given.append(found)
    if known:
        tags = known.tags.changed([], given) if given else known.tags
    else:
        tags = _core.Tags(given, None, (format.loop, list(dict.fromkeys(format.excludes))))
    return Dispatched(format.rules, patterns | seen, tags)


def trigger_of(format: formats.TriggeredTags, tag: Tag) -> str:
    """The trigger that a tag begins with."""
    if isinstance(tag.begin, Token):
        fail(
            f"{tag.path}.begin",
            "a tag that a text triggers begins with a text; for tokens there is "
            "'token_triggered_tags'",
            format.type,
        )
    begin = tag.begin
    found = format.triggers.beginning(begin)
    if len(found) > 1:
        names = " and ".join(map(literal, found))
        fail(tag.path, f"the tag begins with {names}; keep one of these triggers", format.type)
    if not found:
        fail(
            tag.path,
            f"no trigger is how the tag begins, which is {literal(begin)}; add one",
            format.type,
        )
    return found[0]
