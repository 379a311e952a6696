"""Structural tags to grammars: a frame of our own around leaves that are converted once.

XGrammar converts a tag as a whole, every time. Here the leaves (schemas, patterns, grammar texts)
are converted each by itself (:mod:`tokfold._tags.leaves`); the frame around them (tags,
triggers, separators, free text) is written as grammar text in which a leaf is a rule defined
elsewhere.

What a format means is what XGrammar 0.2.9 makes of it: the rules here accept the same texts and
the same beginnings of texts. Three rules of its reading matter everywhere:

* *Free text ends where its tag does.* ``any_text`` and ``triggered_tags`` never hold the end of
  the innermost tag around them, wherever in it they stand; ``any_tokens``, ``exclude_token`` and
  ``token_triggered_tags`` never its end token. ``dispatch`` and ``token_dispatch`` do not care.
* *Endless content needs an end.* A tag whose content may go on for ever ends in something, unless
  the content itself excludes something.
* *Free text is bytes where it excludes, characters where not:* the macro ``TagDispatch`` takes
  bytes that are no UTF-8, a character class does not.

Rules with equal text are one rule, so a format that stands twice costs once.

Most tags hold a leaf and texts, and what is written of such a tag is the same in every frame but
for the name of the leaf (:class:`known.Written`). A frame with other tags takes it over.

Many tags at one place are no text at all: they are handed to the core
(:mod:`tokfold._tags.known`).

Cost: linear in the tag, beside the leaves that are new; about a microsecond for a tag that was
written before, and nothing for one that was handed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tokfold._sources.built import Built
from tokfold._sources.frames import FrameSource, TagsSource
from tokfold._tags import formats, known
from tokfold._tags.endless import check_ends
from tokfold._tags.fields import fail
from tokfold._tags.formats import Format, Tag, Token
from tokfold._tags.known import (
    CLOSED,
    Before,
    Chosen,
    Dispatched,
    Grouped,
    Key,
    Written,
)
from tokfold._tags.leaves import Leaf, LeafCache, Leaves, default_cache
from tokfold._tags.literals import literal
from tokfold._tags.markers import NO_MARKERS, Markers, markers_of
from tokfold._tags.pieces import Makers
from tokfold._tags.reading import Settings, read_tag
from tokfold.interrupt import Interrupt, check_governing, governing
from tokfold.limits import DEFAULT_LIMITS, Limits, check_limits

if TYPE_CHECKING:
    from tokfold import _core
    from tokfold.vocabulary import Vocabulary

_T = TypeVar("_T")


def of_tag(
    tag: object,
    vocabulary: Vocabulary | None,
    cache: LeafCache | None,
    additional_properties: bool,
    limits: Limits | None,
    interrupt: Interrupt | None,
) -> TagSource:
    """The source of a structural tag; see :func:`tokfold.structural_tags.assemble`."""
    check_limits(limits)
    if not isinstance(additional_properties, bool):
        raise TypeError("additional_properties must be True or False")
    with governing(Interrupt._of(interrupt, limits or DEFAULT_LIMITS)):
        settings = Settings(vocabulary, additional_properties, limits=_bounds(limits))
        return of_format(*read_tag(tag, settings), cache)


def check_tag(tag: object, limits: Limits) -> None:
    """Read a structural tag and all in it, without the vocabulary that its tokens are of."""
    with governing(Interrupt._of(None, limits)):
        of_format(*read_tag(tag, Settings(any_token=True, limits=_bounds(limits))))


def _bounds(limits: Limits | None) -> Limits | None:
    """The bounds that a conversion obeys, for the keys of leaves: None for the defaults.

    Bounds of masks say nothing about a conversion, and its deadline is that of the interrupt.
    """
    bounds = None if limits is None else Limits(**limits.as_fields())
    return None if bounds == DEFAULT_LIMITS else bounds


@dataclass(frozen=True, eq=False)
class TagSource(FrameSource):
    """A structural tag: its frame, and what that was put together of.

    Attributes:
        format: the format that was read.
        settings: go with the grammar.
        written: what the next frame may take over.
    """

    format: Format
    settings: Settings
    written: Before

    @property
    def said(self) -> tuple[object, ...]:
        """The format, and what it was read with."""
        vocabulary = self.settings.vocabulary
        words = "" if vocabulary is None else vocabulary.fingerprint
        return "tag", self.format, self.settings.additional_properties, words

    def __reduce__(self) -> tuple[Any, ...]:
        """The format is pickled, and put together again."""
        return of_format, (self.format, self.settings)

    def over(self, vocabulary: Vocabulary) -> TagSource:
        """The same with the special tokens of a vocabulary that stand in its texts."""
        if self.settings.vocabulary is not None or not markers_of(vocabulary):
            return self
        return of_format(self.format, self.settings._replace(vocabulary=vocabulary))


def of_format(
    format: Format,
    settings: Settings,
    cache: LeafCache | None = None,
    before: Before | None = None,
) -> TagSource:
    """The source of a format that was read; see :func:`of_tag`.

    ``before``: what was written of formats that are in this one too.
    """
    before = before or Before.nothing()
    check_ends(format, before)
    markers = NO_MARKERS
    if settings.vocabulary is not None:
        markers = markers_of(settings.vocabulary, settings.spelled)
    leaves = Leaves(default_cache if cache is None else cache, settings.limits)
    frame = _Frame(leaves, before, markers)
    text = frame.text(format)
    return TagSource(text, frame.parts, format, settings, frame.written)


# ------------------------------------------------------------------- the frame


class _Ends(NamedTuple):
    """How the innermost tag around a format ends."""

    texts: tuple[str, ...] = ()
    tokens: tuple[int, ...] = ()


class _Frame:
    """The rules around the leaves.

    A format becomes an *atom*: a literal, or the name of a rule.

    Attributes:
        parts: the leaves, by the names they have in the text.
        written: what the next frame may take over.
    """

    def __init__(self, leaves: Leaves, before: Before, markers: Markers = NO_MARKERS) -> None:
        self.parts: dict[str, Built] = {}
        self._written: dict[Key, Written] = {}
        self._grouped: dict[tuple[str, ...], Grouped] = {}
        self._chosen: dict[str, Chosen] = {}
        self._dispatched: dict[tuple[bool, tuple[str, ...], tuple[str, ...]], Dispatched] = {}
        self.written = Before(self._written, self._grouped, self._chosen, self._dispatched)
        self._before = before
        self._leaves = leaves
        self._markers = markers
        self._makers = Makers(leaves, partial(_alone, leaves, markers), markers)
        self._lines: list[str] = []
        self._names: dict[str, str] = {}
        self._part_names: dict[int, str] = {}
        self._counts: dict[str, int] = {}

    def text(self, format: Format, ends: _Ends = _Ends()) -> str:  # noqa: B008 - a constant
        atom = self._atom(format, ends)
        return "".join([*self._lines, f"root ::= {atom}\n"])

    def _rule(self, hint: str, body: str, options: str = "") -> str:
        """The name of the rule with this body, and options in brackets."""
        check_governing()
        right = f"{options} ::= {body}\n"
        name = self._names.get(right)
        if name is None:
            name = self._names[right] = self._fresh(hint)
            self._lines.append(name + right)
        return name

    def _fresh(self, hint: str) -> str:
        count = self._counts.get(hint, 0)
        self._counts[hint] = count + 1
        return f"{hint}_{count}"

    def _part(self, leaf: Leaf) -> str:
        return self._part_name(leaf.type, self._leaves.grammar(leaf, self._markers))

    def _part_name(self, hint: str, grammar: Built) -> str:
        name = self._part_names.get(id(grammar))
        if name is None:
            name = self._part_names[id(grammar)] = self._fresh(hint)
            self.parts[name] = grammar  # holds it, so that its id stays its own
        return name

    def _handed_over(self, hint: str, tags: _core.Tags) -> str:
        name = self._fresh(hint)
        self.parts[name] = Built._of(TagsSource(tags))
        return name

    def _text_of(
        self,
        format: Format,
        atoms: Iterable[str | Format],
        triggers: tuple[str, ...] | None = None,
    ) -> str:
        """What is written of a format that is made of leaves and texts.

        The atoms are looked at where nothing was written before. ``triggers`` are those of the free
        text, if the format is a tag that one of them begins.
        """
        key = id(format), triggers
        if key in self._before.written or key in self._written:
            return self._again(key)
        texts: list[str] = []
        leaves = []
        for atom in atoms:
            if isinstance(atom, str):
                texts.append(atom.replace("%", "%%"))
            elif isinstance(atom, formats.ConstString):
                texts.append(self._literal(atom.value, atom).replace("%", "%%"))
            else:
                assert isinstance(atom, (formats.JsonSchema, formats.Regex, formats.GrammarText))
                texts.append("%s")
                leaves.append((atom.type, self._leaves.grammar(atom, self._markers)))
        text = " ".join(text for text in texts if text != '""') or '""'
        self._written[key] = Written(format, text, tuple(leaves))
        return self._again(key)

    def _again(self, key: Key) -> str:
        """What was written before."""
        found = self._before.written.get(key)
        if found is None:
            found = self._written[key]
        else:
            self._written[key] = found
        _, text, leaves = found
        if len(leaves) == 1:
            ((hint, grammar),) = leaves
            name = self._part_names.get(id(grammar))
            return text % (name or self._part_name(hint, grammar))
        return text % tuple([self._part_name(*leaf) for leaf in leaves])

    def _atom(self, format: Format, ends: _Ends) -> str:
        match format:
            case formats.ConstString():
                text = self._literal(format.value, format)
                is_one = not self._markers.are_in(format.value)
                return text if is_one else self._rule("const_string", text)
            case formats.JsonSchema() | formats.Regex() | formats.GrammarText():
                return self._part(format)
            case formats.AnyText():
                return self._any_text(format, ends)
            case formats.Token():
                return self._rule("token", f"Token({format.token})")
            case formats.ExcludeToken():
                return self._exclude_token(format.exclude_tokens, ends)
            case formats.AnyTokens():
                return self._any_tokens(format, ends)
            case formats.Sequence():
                if all(type(each) in CLOSED for each in format.elements):
                    return self._rule("sequence", self._text_of(format, format.elements))
                atoms = [self._atom(each, ends) for each in format.elements]
                return self._rule("sequence", " ".join(atoms))
            case formats.Or():
                return self._or(format, ends)
            case formats.Optional():
                return self._rule("optional", f"{self._atom(format.content, ends)}?")
            case formats.Plus():
                return self._rule("plus", f"{self._atom(format.content, ends)}+")
            case formats.Star():
                return self._rule("star", f"{self._atom(format.content, ends)}*")
            case formats.Repeat():
                bounds = f"{{{format.min},{'' if format.max is None else format.max}}}"
                return self._rule("repeat", self._atom(format.content, ends) + bounds)
            case formats.Tag():
                return self._rule("tag", self._tag(format))
            case formats.TriggeredTags():
                return self._triggered_tags(format, ends)
            case formats.TokenTriggeredTags():
                return self._token_triggered_tags(format, ends)
            case formats.TagsWithSeparator():
                return self._tags_with_separator(format)
            case formats.Dispatch():
                handed_over = known.dispatched(format, ends.texts, self._before, self._makers)
                if handed_over is not None:
                    self._dispatched[format.loop, format.excludes, ends.texts] = handed_over
                    return self._handed_over("dispatch", handed_over.tags)
                rules = [(text, self._atom(content, ends)) for text, content in format.rules]
                marked = [text for text, _ in rules if self._markers.are_in(text)]
                whole = [
                    f"{self._literal(text, format, first_whole=True, may_end=False)} {atom}"
                    for text, atom in rules
                    if text in marked and not text.startswith(format.excludes)
                ]
                excludes = format.excludes
                if not self._markers.spelled:
                    rules = [rule for rule in rules if rule[0] not in marked]
                    excludes = (*excludes, *map(self._markers.first_in, marked))
                return self._dispatch("dispatch", rules, format.loop, excludes, whole)
            case formats.TokenDispatch():
                pairs = [(token, self._atom(content, ends)) for token, content in format.rules]
                return self._token_dispatch(
                    "token_dispatch", pairs, format.loop, format.exclude_tokens
                )

    # ------------------------------------------------------------- free text

    def _any_text(self, format: formats.AnyText, ends: _Ends) -> str:
        if format.max_tokens == 0 or format.max_chars == 0:
            return '""'
        excludes = (*format.excludes, *ends.texts)
        if excludes:
            text = self._dispatch("any_text", (), False, excludes)
            if format.max_chars is not None:
                text = self._rule("any_text", text, f"[max_chars={format.max_chars}]")
        else:
            count = "*" if format.max_chars is None else f"{{0,{format.max_chars}}}"
            text = self._rule("any_text", _ANY + count)
        if format.max_tokens is not None:
            text = self._rule("any_text", text, f"[max_tokens={format.max_tokens}]")
        return text

    def _exclude_token(self, excludes: Sequence[int], ends: _Ends) -> str:
        return self._rule("exclude_token", f"ExcludeToken({_ids((*excludes, *ends.tokens))})")

    def _any_tokens(self, format: formats.AnyTokens, ends: _Ends) -> str:
        if format.max_tokens == 0:
            return '""'
        count = "*" if format.max_tokens is None else f"{{0,{format.max_tokens}}}"
        return self._rule(
            "any_tokens", f"{self._exclude_token(format.exclude_tokens, ends)}{count}"
        )

    def _dispatch(
        self,
        hint: str,
        rules: Iterable[tuple[str, str]],
        loop: bool,
        excludes: Iterable[str],
        whole: Iterable[str] = (),
    ) -> str:
        """Free text, with patterns and the atoms of what follows them.

        Args:
            hint: what names begin with.
            rules: the patterns and the atoms.
            loop: whether free text goes on behind what follows.
            excludes: what the text never holds.
            whole: what may come in the text beside these, and begins with a token or holds one.
        """
        excluded = tuple(dict.fromkeys(excludes))
        if whole := list(dict.fromkeys(whole)):
            return self._dispatch_whole(hint, list(rules), loop, excluded, whole)
        # A pattern that begins with an excluded text never comes. One that holds it later never
        # comes either, but its beginning is text all the same.
        possible = [rule for rule in rules if not rule[0].startswith(excluded)]
        pairs = [f"({literal(text)}, {name})" for text, name in self._merged(hint, possible)]
        pairs.append(f"loop_after_dispatch={'true' if loop else 'false'}")
        if excluded:
            pairs.append(f"excludes=({', '.join(map(literal, excluded))})")
        return self._rule(hint, f"TagDispatch({', '.join(pairs)})")

    def _dispatch_whole(
        self,
        hint: str,
        rules: list[tuple[str, str]],
        loop: bool,
        excludes: tuple[str, ...],
        whole: list[str],
    ) -> str:
        """Free text in which tokens begin something too: no text holds these."""
        some = self._rule(f"{hint}_whole", " | ".join(whole))
        text = self._dispatch(hint, rules, loop, excludes)
        if loop:
            more = self._rule(f"{hint}_more", f"{some} {text}")
            return self._rule(hint, f"{text} {more}*")
        before = self._dispatch(hint, (), False, (*excludes, *(text for text, _ in rules)))
        return self._rule(hint, f"{text} | {before} {some}")

    def _literal(
        self, text: str, format: Format, *, first_whole: bool = False, may_end: bool = True
    ) -> str:
        """A text of a format, in which special tokens stand for their texts."""
        return self._markers.atoms(
            text, format.path, format.type, first_whole=first_whole, may_end=may_end
        )

    def _token_dispatch(
        self, hint: str, rules: Sequence[tuple[int, str]], loop: bool, excludes: Iterable[int]
    ) -> str:
        """Free tokens, with triggers and the atoms of what follows them."""
        triggers = {token for token, _ in rules}
        # A trigger dispatches, whether it is excluded from the free tokens or not.
        excluded = [token for token in dict.fromkeys(excludes) if token not in triggers]
        pairs = [f"({token}, {name})" for token, name in self._merged(hint, rules)]
        pairs.append(f"loop_after_dispatch={'true' if loop else 'false'}")
        if excluded:
            pairs.append(f"excludes=({_ids(excluded)})")
        return self._rule(hint, f"TokenTagDispatch({', '.join(pairs)})")

    def _merged(self, hint: str, rules: Iterable[tuple[_T, str]]) -> list[tuple[_T, str]]:
        """One rule for each trigger: where it has several, any of them may follow."""
        atoms: dict[_T, dict[str, None]] = {}
        for trigger, atom in rules:
            atoms.setdefault(trigger, {})[atom] = None
        return [(trigger, self._group(hint, choices)) for trigger, choices in atoms.items()]

    def _group(self, hint: str, choices: Iterable[str]) -> str:
        """The name of a rule for one of several atoms."""
        body = " | ".join(choices)
        is_name = "|" not in body and not body.startswith('"')
        return body if is_name else self._rule(f"{hint}_group", body)

    # ------------------------------------------------------------------ tags

    def _tag(
        self, tag: Tag, triggers: tuple[str, ...] | None = None, trigger: str | None = None
    ) -> str:
        """A tag, as a sequence of atoms, in free text that has ``triggers``.

        ``trigger`` is what was read of its beginning; all, where that is a token.
        """
        begin = None
        if trigger is not None:
            begin = tag.begin[len(trigger) :] if isinstance(tag.begin, str) else ""
        if type(tag.content) in CLOSED:
            return self._text_of(tag, self._around(tag, begin), triggers)
        if isinstance(tag.end, Token):
            ends = _Ends(tokens=(tag.end.token,))
        else:
            ends = _Ends(texts=tuple(text for text in tag.end if text))
        around = [
            self._atom(one, ends) if not isinstance(one, str) else one
            for one in self._around(tag, begin)
        ]
        return " ".join(atom for atom in around if atom != '""') or '""'

    def _around(self, tag: Tag, begin: str | None) -> Iterator[str | Format]:
        """The beginning of a tag or what stands in its place, its content, its end."""
        if isinstance(tag.begin, Token):
            yield f"Token({tag.begin.token})" if begin is None else literal(begin)
        else:
            begin = tag.begin if begin is None else begin
            yield self._literal(begin, tag, may_end=_may_have_no_end(tag))
        yield tag.content
        if isinstance(tag.end, Token):
            yield f"Token({tag.end.token})"
        else:
            last = " | ".join(self._literal(text, tag) for text in tag.end)
            yield f"({last})" if len(tag.end) > 1 else last

    def _or(self, format: formats.Or, ends: _Ends) -> str:
        tags = tuple(each for each in format.elements if isinstance(each, Tag))
        chosen = known.chosen(format.path, tags, self._before, self._makers)
        if chosen.handed_over is None:
            atoms = [self._atom(each, ends) for each in format.elements]
            return self._rule("or", " | ".join(atoms))
        self._chosen[format.path] = chosen
        one = self._one_of("or_tags", chosen, map(self._tag, chosen.written))
        others = [self._atom(each, ends) for each in format.elements if not isinstance(each, Tag)]
        return self._rule("or", " | ".join([one, *others]))

    def _one_of(self, hint: str, chosen: Chosen, written: Iterable[str]) -> str:
        """One of some tags; ``written`` is what is written of those that the core does not have."""
        bodies = list(dict.fromkeys(written))
        if chosen.handed_over is None:
            return self._rule(hint, " | ".join(bodies))
        name = self._handed_over(hint, chosen.handed_over)
        return self._rule(f"{hint}_all", " | ".join([name, *bodies])) if bodies else name

    def _triggered_tags(self, format: formats.TriggeredTags, ends: _Ends) -> str:
        name = "triggered_tags"
        grouped = known.grouped(format, self._before, self._makers)
        self._grouped[format.triggers] = grouped
        is_free = not (format.at_least_one and format.stop_after_first)
        rules: list[tuple[str, str]] = []
        first: list[str] = []
        whole: list[str] = []
        unspelled: list[str] = []
        for index, (trigger, chosen) in enumerate(grouped.groups.items()):
            is_written = chosen.handed_over is None
            if not chosen.tags and is_free:
                path = f"{format.path}.triggers[{index}]"
                fail(path, "no tag begins with this trigger; leave it out, or add the tag", name)
            if is_free or not is_written:
                bodies = (
                    self._triggered_tag(tag, format.triggers, trigger) for tag in chosen.written
                )
                rest = self._one_of(f"{name}_group", chosen, bodies)
                never = self._never_spelled(trigger, chosen.tags)
                if not never:
                    rules.append((trigger, rest))
                elif others := [tag for tag in chosen.tags if id(tag) not in never]:
                    # Behind the letters of the trigger these follow, and no others.
                    bodies = (self._triggered_tag(tag, format.triggers, trigger) for tag in others)
                    few = Chosen(tuple(others), None, tuple(others))
                    rules.append((trigger, self._one_of(f"{name}_group", few, bodies)))
                else:
                    unspelled += map(self._markers.first_in, never.values())
            if self._markers and is_free and not trigger.startswith(format.excludes):
                whole += self._whole_tags(format, trigger, chosen.tags, rest)
            # What is first is what follows a trigger in free text, or begins with a token that is
            # longer than the trigger.
            if format.at_least_one and (
                is_written or any(self._stands_across(tag, trigger) for tag in chosen.tags)
            ):
                first += map(self._tag, chosen.tags)
            elif format.at_least_one:
                text = self._literal(trigger, format, may_end=False)
                first.append(f"{text} {rest}" if trigger else rest)
        text = " | ".join(dict.fromkeys(first))
        if not is_free:
            return self._rule(name, text)
        excludes = (*format.excludes, *ends.texts, *unspelled)
        free = self._dispatch(name, rules, not format.stop_after_first, excludes, whole)
        return self._after_one(name, text, free)

    def _never_spelled(self, trigger: str, tags: Iterable[Tag]) -> dict[int, str]:
        """By the ids of tags the texts of those that free text never begins by letters.

        They begin with a special token there.
        """
        if self._markers.spelled:
            return {}
        if self._markers.are_in(trigger):
            return {id(tag): trigger for tag in tags}
        return {
            id(tag): tag.begin
            for tag in tags
            if isinstance(tag.begin, str) and self._markers.starts_in(tag.begin, len(trigger))
        }

    def _stands_across(self, tag: Tag, trigger: str) -> bool:
        """Whether a special token stands where the trigger of a tag ends."""
        begin = tag.begin
        return isinstance(begin, str) and self._markers.stands_across(begin, len(trigger))

    def _whole_tags(
        self, format: formats.TriggeredTags, trigger: str, tags: Iterable[Tag], rest: str
    ) -> Iterator[str]:
        """Tags of which a token is the trigger, or part of it, or has it as its beginning.

        ``rest`` is the rule of what follows them.
        """
        begins = [(tag, tag.begin) for tag in tags if isinstance(tag.begin, str)]
        if any(self._stands_across(tag, trigger) for tag in tags):
            for tag, begin in begins:
                if self._markers.starts_in(begin, len(trigger)):
                    may_end = _may_have_no_end(tag)
                    text = self._literal(begin, tag, first_whole=True, may_end=may_end)
                    yield f"{text} {self._tag(tag, ('',), begin)}"
        elif self._markers.are_in(trigger):
            yield f"{self._literal(trigger, format, first_whole=True, may_end=False)} {rest}"

    def _triggered_tag(self, tag: Tag, triggers: tuple[str, ...], trigger: str) -> str:
        key = id(tag), triggers
        return (
            self._again(key) if key in self._before.written else self._tag(tag, triggers, trigger)
        )

    def _after_one(self, name: str, first: str, free: str) -> str:
        """Free text; where there is something first, after that."""
        return self._rule(name, f"{self._rule(f'{name}_first', first)} {free}") if first else free

    def _any_of(self, tags: Iterable[Tag]) -> str:
        return " | ".join(dict.fromkeys(map(self._tag, tags)))

    def _token_triggered_tags(self, format: formats.TokenTriggeredTags, ends: _Ends) -> str:
        groups: dict[int, list[str]] = {token: [] for token in format.trigger_tokens}
        name = "token_triggered_tags"
        for tag in format.tags:
            if not isinstance(tag.begin, Token):
                fail(
                    f"{tag.path}.begin",
                    "a tag that a token triggers begins with a token; for texts there is "
                    "'triggered_tags'",
                    name,
                )
            found = format.trigger_tokens.count(tag.begin.token)
            if found != 1:
                what = "is no trigger; add it" if not found else "is a trigger twice; keep one"
                fail(tag.path, f"the token {tag.begin.token}, with which it begins, {what}", name)
            groups[tag.begin.token].append(self._tag(tag, (), ""))
        if format.at_least_one and format.stop_after_first:
            return self._rule(name, self._any_of(format.tags))
        for index, token in enumerate(format.trigger_tokens):
            if not groups[token]:
                path = f"{format.path}.trigger_tokens[{index}]"
                fail(path, "no tag begins with this token; leave it out, or add the tag", name)
        rules = [
            (token, self._rule(f"{name}_group", " | ".join(dict.fromkeys(bodies))))
            for token, bodies in groups.items()
        ]
        excludes = (*format.exclude_tokens, *ends.tokens)
        free = self._token_dispatch(name, rules, not format.stop_after_first, excludes)
        return self._after_one(name, self._any_of(format.tags) if format.at_least_one else "", free)

    def _tags_with_separator(self, format: formats.TagsWithSeparator) -> str:
        name = "tags_with_separator"
        chosen = known.chosen(format.path, format.tags, self._before, self._makers)
        self._chosen[format.path] = chosen
        tags = self._one_of(f"{name}_tags", chosen, map(self._tag, chosen.written))
        body = tags
        if not format.stop_after_first:
            separator = self._literal(format.separator, format, may_end=False)
            more = self._rule(f"{name}_more", f"{separator} {tags}")
            body = self._rule(f"{name}_some", f"{tags} {more}*")
        return body if format.at_least_one else self._rule(name, f"{body}?")


def _alone(leaves: Leaves, markers: Markers, format: Format, ends: tuple[str, ...]) -> Built:
    """The grammar of a format by itself, in a tag that ends in one of some texts."""
    frame = _Frame(leaves, Before.nothing(), markers)
    text = frame.text(format, _Ends(texts=tuple(text for text in ends if text)))
    return leaves.kept(Built._of(FrameSource(text, frame.parts)))


_ANY = "[\\u0000-\\U0010ffff]"


def _ids(tokens: Iterable[int]) -> str:
    return ", ".join(map(str, dict.fromkeys(tokens)))


def _may_have_no_end(tag: Tag) -> bool:
    """Whether the text that ends a tag may be empty."""
    return not isinstance(tag.end, Token) and "" in tag.end
