"""What is known of a frame when the next one is put together.

That is what was written of its tags, and the tags that were handed to the core.

Many tags behind one trigger, and free text with many patterns, are no grammar text. They are handed
to the core as they are, as ``_core.Tags``; a frame that has most of the same tags says which are
gone and hands over what is new behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tokfold import _core
from tokfold.structural_tags import formats
from tokfold.structural_tags.fields import fail
from tokfold.structural_tags.formats import Format, Tag, Token
from tokfold.structural_tags.literals import literal

if TYPE_CHECKING:
    from tokfold.grammar import Grammar
    from tokfold.structural_tags.leaves import LeafCache

__all__ = [
    "CLOSED",
    "Before",
    "Dispatched",
    "Grouped",
    "Key",
    "Written",
    "dispatched",
    "grouped",
    "trigger_of",
]

CLOSED = frozenset(
    {formats.ConstString, formats.JsonSchema, formats.Regex, formats.EbnfGrammar},
)
"""Formats that mean the same wherever they stand, and hold no others."""

MANY_TAGS = 32
"""So many tags behind one trigger, or patterns in free text, are handed to the core as they are."""

Key = tuple[int, tuple[str, ...] | None]
"""The id of a format; of a tag, the triggers of which one stands before it, if any do."""


class Written(NamedTuple):
    """What is written of a tag or a sequence of leaves and texts."""

    format: Format
    """Held, so that its id stays its own."""
    text: str
    """With ``%s`` for each leaf."""
    leaves: tuple[tuple[str, Grammar], ...]
    """With what their names begin with."""


class Grouped(NamedTuple):
    """Tags by their triggers."""

    tags: tuple[Tag, ...]
    groups: dict[str, tuple[Tag, ...]]
    choices: dict[str, _core.Tags]
    """For each trigger with many tags what was handed to the core."""


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
    dispatched: Mapping[tuple[bool, tuple[str, ...]], Dispatched]
    """By whether it loops and what it excludes."""

    def num_known(self, format: Format) -> int:
        """How many of the tags or rules of a format, the first ones, were there before."""
        if isinstance(format, formats.TriggeredTags) and format.triggers in self.grouped:
            return _gone(self.grouped[format.triggers].tags, format.tags)[1]
        if isinstance(format, formats.Dispatch):
            found = self.dispatched.get((format.loop, format.excludes))
            return 0 if found is None else _gone(found.rules, format.rules)[1]
        return 0

    def rules_of(self, format: formats.Dispatch) -> Dispatched | None:
        """What is known of rules with which a format begins."""
        found = self.dispatched.get((format.loop, format.excludes))
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
            return Grouped((), {}, {})
        gone, count = _gone(found.tags, format.tags)
        if not gone:
            return found
        kept = set(map(id, format.tags[:count]))
        if any(id(found.tags[place]) in kept for place in gone):
            return Grouped((), {}, {})  # a tag that is there twice
        groups, choices = {}, {}
        for trigger, group in found.groups.items():
            places = [place for place, tag in enumerate(group) if id(tag) not in kept]
            groups[trigger] = tuple(tag for tag in group if id(tag) in kept)
            if groups[trigger] and trigger in found.choices:
                choice = found.choices[trigger]
                choices[trigger] = choice.changed(places, []) if places else choice
        return Grouped(format.tags[:count], groups, choices)


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


def grouped(format: formats.TriggeredTags, before: Before, cache: LeafCache) -> Grouped:
    """The tags of a format by their triggers, with what the core has of them.

    Raises:
        StructuralTagError: a tag begins with no trigger, or with several.
        UnsupportedGrammarError, GrammarSyntaxError, MissingExtraError: as for
            :meth:`LeafCache.grammar`.
    """
    known = before.tags_of(format)
    new: dict[str, list[Tag]] = {trigger: [] for trigger in format.triggers}
    for tag in format.tags[len(known.tags) :]:
        new[trigger_of(format, tag)].append(tag)
    groups = {trigger: (*known.groups.get(trigger, ()), *new[trigger]) for trigger in new}
    choices: dict[str, _core.Tags] = {}
    is_free = not (format.at_least_one and format.stop_after_first)
    for trigger, group in groups.items():
        if len(group) < MANY_TAGS or not is_free:
            continue
        choice = known.choices.get(trigger)
        given = _given(group if choice is None else new[trigger], trigger, cache)
        if given is not None:
            choices[trigger] = choice.changed([], given) if choice else _core.Tags(given)
    return Grouped(format.tags, groups, choices)


def dispatched(format: formats.Dispatch, before: Before, cache: LeafCache) -> Dispatched | None:
    """Free text with patterns for the core; None where it is written as text.

    Raises:
        UnsupportedGrammarError, GrammarSyntaxError, MissingExtraError: as for
            :meth:`LeafCache.grammar`.
    """
    if len(format.rules) < MANY_TAGS:
        return None
    known = before.rules_of(format)
    new = format.rules[len(known.rules) :] if known else format.rules
    patterns = known.patterns if known else frozenset[str]()
    given: list[_Given] = []
    seen = set[str]()
    for pattern, content in new:
        # What begins with an excluded text never comes; behind what is there twice is a choice.
        end = _leaf_and_end(content, cache)
        if end is None or pattern in patterns or pattern in seen:
            return None
        if pattern.startswith(format.excludes):
            return None
        seen.add(pattern)
        leaf, text = end
        given.append((pattern, leaf._core, leaf._compilable, [text]))
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
            format.type,
            "a tag that a text triggers begins with a text; for tokens there is "
            "'token_triggered_tags'",
        )
    begin = tag.begin
    found = [trigger for trigger in format.triggers if begin.startswith(trigger)]
    if len(found) > 1:
        names = " and ".join(map(literal, found))
        fail(tag.path, format.type, f"the tag begins with {names}; keep one of these triggers")
    if not found:
        fail(
            tag.path,
            format.type,
            f"no trigger is how the tag begins, which is {literal(begin)}; add one",
        )
    return found[0]


_Given = tuple[str, _core.Grammar, _core.Grammar, list[str]]


def _given(tags: Iterable[Tag], trigger: str, cache: LeafCache) -> list[_Given] | None:
    """Tags for the core; None where one of them is not of texts and one leaf."""
    out = []
    for tag in tags:
        if not isinstance(tag.begin, str) or isinstance(tag.end, Token):
            return None
        leaf = _leaf(tag.content, cache)
        if leaf is None:
            return None
        out.append((tag.begin[len(trigger) :], leaf._core, leaf._compilable, list(tag.end)))
    return out


def _leaf(content: Format, cache: LeafCache) -> Grammar | None:
    """The grammar of content that the core can make a part of; None where it is no such leaf."""
    if not isinstance(content, (formats.JsonSchema, formats.Regex, formats.EbnfGrammar)):
        return None
    leaf = cache.grammar(content)
    # Macros that a person wrote may take tokens, or need what is not there.
    is_plain = not isinstance(content, formats.EbnfGrammar) or not leaf._core.macro_names()
    return leaf if is_plain else None


def _leaf_and_end(content: Format, cache: LeafCache) -> tuple[Grammar, str] | None:
    """A leaf and the text behind it; None where content is not made of these."""
    end = ""
    if isinstance(content, formats.Sequence) and len(content.elements) == 2:
        content, last = content.elements
        if not isinstance(last, formats.ConstString):
            return None
        end = last.value
    leaf = _leaf(content, cache)
    return None if leaf is None else (leaf, end)
