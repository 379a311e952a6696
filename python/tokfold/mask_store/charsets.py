"""Sets of characters as Python's :mod:`re` means them, as sorted intervals of code points."""

from __future__ import annotations

import functools
import importlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

__all__ = [
    "EVERYTHING",
    "Intervals",
    "category",
    "complement",
    "contains",
    "ignoring_case",
    "union",
]

Intervals = tuple[tuple[int, int], ...]
"""Sorted, disjoint, not adjacent, both ends inclusive."""

_LAST = 0x10FFFF
_LAST_CASED = 0x1FFFF
"""No script past the first two planes has letters of two cases."""
_SURROGATES = (0xD800, 0xDFFF)
EVERYTHING: Intervals = ((0, _SURROGATES[0] - 1), (_SURROGATES[1] + 1, _LAST))
"""All code points that UTF-8 can say: surrogates are none."""


def union(pieces: Iterable[tuple[int, int]]) -> Intervals:
    """Sorts intervals and joins those that touch; surrogates are left out."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(pieces):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    first, last = _SURROGATES
    parts: list[tuple[int, int]] = []
    for low, high in joined:
        parts += [
            p for p in ((low, min(high, first - 1)), (max(low, last + 1), high)) if p[0] <= p[1]
        ]
    return tuple(parts)


def complement(intervals: Intervals) -> Intervals:
    """All other code points."""
    parts, start = [], 0
    for low, high in intervals:
        if start < low:
            parts.append((start, low - 1))
        start = high + 1
    if start <= _LAST:
        parts.append((start, _LAST))
    return union(parts)


def contains(intervals: Intervals, point: int) -> bool:
    """Whether a code point is in a set."""
    i = bisect_right(intervals, (point, _LAST)) - 1
    return i >= 0 and intervals[i][1] >= point


@functools.cache
def _all_characters() -> str:
    points = np.concatenate([np.arange(low, high + 1, dtype="<u4") for low, high in EVERYTHING])
    text: str = points.tobytes().decode("utf-32-le")
    return text


@functools.cache
def category(letter: str, ascii_only: bool) -> Intervals:
    r"""The set of ``\d``, ``\w`` or ``\s``, and of their complements in capitals."""
    if letter.isupper():
        return complement(category(letter.lower(), ascii_only))
    if letter not in "dws":
        raise ValueError(letter)
    flags = re.ASCII if ascii_only else re.UNICODE
    text = _all_characters()
    gap = _SURROGATES[1] - _SURROGATES[0] + 1

    def point(position: int) -> int:
        return position if position < _SURROGATES[0] else position + gap

    found = re.finditer(rf"\{letter}+", text, flags)
    return union((point(m.start()), point(m.end() - 1)) for m in found)


@functools.cache
def _lowered(ascii_only: bool) -> tuple[dict[int, int], dict[int, tuple[int, ...]]]:
    """Code points that `re` changes to lower case, and lower ones that it takes for equal."""
    sre = importlib.import_module("_sre")
    if ascii_only:
        return {p: p + 32 for p in range(ord("A"), ord("Z") + 1)}, {}
    lower = sre.unicode_tolower
    changed = {p: lower(p) for p in range(_LAST_CASED + 1) if lower(p) != p}
    cases = importlib.import_module("re._casefix")._EXTRA_CASES
    return changed, dict(cases)


def ignoring_case(intervals: Intervals, ascii_only: bool) -> Intervals:
    """What a set matches under ``re.IGNORECASE``: as `re` compiles it."""
    changed, equal = _lowered(ascii_only)
    capitals = [p for p in changed if contains(intervals, p)]
    if not capitals and not any(contains(intervals, p) for p in (*changed.values(), *equal)):
        return intervals
    lower = union([*_without(intervals, capitals), *((changed[p],) * 2 for p in capitals)])
    others = [p for low, same in equal.items() if contains(lower, low) for p in same]
    lower = union([*lower, *((p, p) for p in others)])
    matched = [p for p, low in changed.items() if contains(lower, low)]
    unmatched = [p for p in changed if contains(lower, p) and not contains(lower, changed[p])]
    return union([*_without(lower, unmatched), *((p, p) for p in matched)])


def _without(intervals: Intervals, points: Sequence[int]) -> list[tuple[int, int]]:
    """The set less some single points."""
    if not points:
        return list(intervals)
    inverse = complement(intervals)
    return list(complement(union([*inverse, *((p, p) for p in points)])))
