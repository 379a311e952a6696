"""What the converters of patterns and of macros would do: states, and levels of groups."""

from __future__ import annotations

import re
from typing import NamedTuple

from tokfold._converters.bounds import (
    CEILING,
    MAX_MACRO_WORK,
    MAX_PATTERN_LENGTH,
    MAX_PATTERN_NESTING,
    MAX_PATTERN_WORK,
)
from tokfold._text_checks import check_text, refuse_size


class PatternCounts(NamedTuple):
    """What a pattern comes to."""

    levels: int
    states: int
    joints: int
    work: int


class _Part(NamedTuple):
    """An expression: states, places where it may begin and end, joints, and whether it is nullable.

    They are those of Glushkov's construction; ``least`` are the fewest states XGrammar may count.
    """

    states: int
    firsts: int
    lasts: int
    joints: int
    is_nullable: bool
    least: int
    copies: int
    """States that are copied while repetitions are written out."""


_NOTHING = _Part(0, 0, 0, 0, True, 0, 0)
_MAX_UNROLLED = 100_000
"""States past which XGrammar leaves a repetition as it is."""
_WORK_FOR_A_MACRO = 25
_LARGE_REPEAT = 128
"""Counts past which it does so in a macro."""
_BOUNDS = re.compile(r"\{\s*(\d*)\s*(?:(,)\s*(\d*)\s*)?\}")
_ATOM = re.compile(r"\\(?:x[0-9A-Fa-f]{1,8}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|c.|.)|.", re.DOTALL)
_CLASS = re.compile(
    r"\[\^?(?:[^\]\\]|\\.)*\]?", re.DOTALL
)  # `[]` and `[^]` end, as XGrammar reads them
_GROUP = re.compile(r"\((?:\?(?:[:=!>]|<[=!]|P?<\w*>|P?'\w*'|[a-zA-Z-]*[:)]))?")
_WIDE_STATES = 12
"""States of a character that takes several bytes, as `.` and `[^a]` do; 9 at least."""
_SPACE_STATES = 30
"""States of white space and of what is none, of which XGrammar 0.2.9 has all of Unicode."""


def check_pattern(pattern: object, what: str = "pattern", *, as_automaton: bool) -> PatternCounts:
    """Count what a pattern comes to, of which an automaton is made, or else grammar text.

    An automaton is made of ``pattern`` in a schema, and of a macro.
    """
    text = check_text(pattern, "regex") if not as_automaton else str(pattern)
    if len(text) > MAX_PATTERN_LENGTH:
        refuse_size(
            f"{what} has {len(text):,} characters", "MAX_PATTERN_LENGTH", MAX_PATTERN_LENGTH
        )
    # The alternatives so far, the sequence so far, and its last atom, for each open group.
    groups: list[tuple[_Part | None, _Part, _Part | None]] = []
    either: _Part | None = None
    before, last = _NOTHING, None
    deepest = offset = 0
    while offset < len(text):
        letter = text[offset]
        if letter == "(":
            groups.append((either, before, last))
            either, before, last = None, _NOTHING, None
            if len(groups) > deepest:
                deepest = len(groups)
                if deepest > MAX_PATTERN_NESTING:
                    refuse_size(
                        f"{what} has groups that are nested too deeply, at position {offset + 1}",
                        "MAX_PATTERN_NESTING",
                        MAX_PATTERN_NESTING,
                    )
            opened = _GROUP.match(text, offset)
            offset = opened.end() if opened else offset + 1
            continue
        if letter == ")" and groups:
            inner = _either(either, _then(before, last))
            either, before, last = groups.pop()
            before, last = _then(before, last), inner
            offset += 1
            continue
        if letter == "|":
            either = _either(either, _then(before, last))
            before, last = _NOTHING, None
            offset += 1
            continue
        if letter in "*+?":
            last = _repeated(last or _NOTHING, 0 if letter != "+" else 1, 1 if letter == "?" else 0)
            offset += 1
            continue
        if letter == "{":
            bounds = _BOUNDS.match(text, offset)
            if bounds:
                least = _count_of(bounds[1])
                most = least if bounds[2] is None else _count_of(bounds[3])
                last = _repeated(last or _NOTHING, least, most)
                offset = bounds.end()
                continue
        found = _CLASS.match(text, offset) if letter == "[" else _ATOM.match(text, offset)
        assert found is not None
        before, last = _then(before, last), _atom(found[0])
        offset = found.end()
    while groups:  # it is no pattern, and XGrammar says so
        inner = _either(either, _then(before, last))
        either, before, last = groups.pop()
        before, last = _then(before, last), inner
    whole = _either(either, _then(before, last))
    work = whole.states + whole.joints // 16 + whole.copies // 400 if as_automaton else 0
    if work > MAX_PATTERN_WORK:
        refuse_size(
            f"{what} comes to {work:,} states and joints, written out; lower the counts in braces, "
            "or have fewer optional parts in a row",
            "MAX_PATTERN_WORK",
            MAX_PATTERN_WORK,
        )
    return PatternCounts(deepest, whole.states, whole.joints, work)


def _count_of(digits: str | None) -> int:
    return min(int(digits[:12]), CEILING) if digits else 0


def _atom(text: str) -> _Part:
    if text in ("^", "$"):
        return _NOTHING
    if "\\s" in text.lower():
        return _Part(_SPACE_STATES, 1, 1, 0, False, 1, 0)
    wide = not text.isascii() or text[:2] in ("[^", "\\W", "\\D", "\\S", "\\u", "\\U", "\\x")
    if text == "." or wide or (text[0] == "[" and "\\" in text):
        return _Part(_WIDE_STATES, 1, 1, 0, False, 1, 0)
    return _Part(2, 1, 1, 0, False, 1, 0)


def _then(one: _Part, two: _Part | None) -> _Part:
    if two is None or two is _NOTHING:
        return one
    return _Part(
        min(CEILING, one.states + two.states),
        one.firsts + (two.firsts if one.is_nullable else 0),
        two.lasts + (one.lasts if two.is_nullable else 0),
        min(CEILING, one.joints + two.joints + one.lasts * two.firsts),
        one.is_nullable and two.is_nullable,
        min(CEILING, one.least + two.least),
        min(CEILING, one.copies + two.copies),
    )


def _either(one: _Part | None, two: _Part) -> _Part:
    if one is None:
        return two
    return _Part(
        min(CEILING, one.states + two.states),
        one.firsts + two.firsts,
        one.lasts + two.lasts,
        min(CEILING, one.joints + two.joints),
        one.is_nullable or two.is_nullable,
        min(CEILING, one.least + two.least),
        min(CEILING, one.copies + two.copies),
    )


def _repeated(part: _Part, least: int, most: int) -> _Part:
    """A repetition; `most` is 0 for no bound."""
    times = max(least, most, 1)
    is_nullable = part.is_nullable or least == 0
    pairs = part.lasts * part.firsts
    if times == 1:
        joints = part.joints + (pairs if most == 0 else 0)
        return part._replace(is_nullable=is_nullable, joints=min(CEILING, joints))
    if part.least * times > _MAX_UNROLLED:  # XGrammar leaves it as it is
        return part._replace(is_nullable=is_nullable)
    copies = min(CEILING, part.copies + times * times * part.states // 2)
    if times > _LARGE_REPEAT:  # written out to see whether it can be, and then not kept
        return part._replace(is_nullable=is_nullable, copies=copies)
    joined = times * times // 2 if part.is_nullable else times - 1
    ends = times if least < times else 1
    return _Part(
        min(CEILING, part.states * times),
        min(CEILING, part.firsts * (times if part.is_nullable else 1)),
        min(CEILING, part.lasts * (times if part.is_nullable else ends)),
        min(CEILING, part.joints * times + joined * pairs),
        is_nullable,
        min(CEILING, part.least * times),
        copies,
    )


_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def check_macro(name: str, text: str, already: int = 0) -> PatternCounts:
    """Count what a macro of a grammar text comes to: ``Regex(...)`` or ``Substring(...)``.

    ``already`` is the work of the macros before it; the work that is returned has that in it.
    """
    if name == "Regex":
        literal = _LITERAL.search(text)
        pattern = "" if literal is None else _unescaped(literal[1])
        counts = check_pattern(pattern, "this pattern", as_automaton=True)
    else:
        letters = sum(len(literal[1]) for literal in _LITERAL.finditer(text))
        if letters > MAX_PATTERN_WORK:
            refuse_size(
                f"this text has {letters:,} characters", "MAX_PATTERN_WORK", MAX_PATTERN_WORK
            )
        counts = PatternCounts(0, letters, 0, letters)
    work = already + counts.work + _WORK_FOR_A_MACRO
    if work > MAX_MACRO_WORK:
        refuse_size(
            f"up to here the macros of this grammar come to {work:,} states and joints; have fewer "
            "of them, or smaller ones",
            "MAX_MACRO_WORK",
            MAX_MACRO_WORK,
        )
    return counts._replace(work=work)


_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,8})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL
)
_NAMED = {"n": "\n", "r": "\r", "t": "\t"}


def _unescaped(text: str) -> str:
    """What a literal of grammar text says; characters without meaning here become letters."""

    def character(match: re.Match[str]) -> str:
        digits = match[1] or match[2] or match[3]
        if digits is None:
            return _NAMED.get(match[4], match[4])
        code = int(digits, 16)
        return chr(code) if 0 < code < 0xD800 or 0xDFFF < code <= 0x10FFFF else "?"

    return _ESCAPE.sub(character, text)
