"""UTF-8 as sequences of byte sets."""

from __future__ import annotations

__all__ = ["utf8_paths"]

Terminal = frozenset[int]


def utf8_paths(first: int, last: int) -> list[tuple[Terminal, ...]]:
    """UTF-8 of the code points ``first`` to ``last``: byte sets one after the other, disjoint.

    Surrogates take three bytes, as in grammar text.
    """
    paths: list[tuple[Terminal, ...]] = []
    for low, high in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF)):
        a, b = max(low, first), min(high, last)
        if a <= b:
            paths += _paths(_encoded(a), _encoded(b))
    return paths


def _encoded(point: int) -> bytes:
    return chr(point).encode("utf-8", "surrogatepass")


def _paths(low: bytes, high: bytes) -> list[tuple[Terminal, ...]]:
    """Sequences of one length between two; at most four bytes, so recursion is shallow."""
    if len(low) == 1:
        return [(frozenset(range(low[0], high[0] + 1)),)]
    least, most = b"\x80" * (len(low) - 1), b"\xbf" * (len(low) - 1)
    first, last = low[0], high[0]
    paths: list[tuple[Terminal, ...]] = []
    if first == last:
        return [(frozenset({first}), *tail) for tail in _paths(low[1:], high[1:])]
    if low[1:] != least:
        paths += [(frozenset({first}), *tail) for tail in _paths(low[1:], most)]
        first += 1
    end = last if high[1:] == most else last - 1
    if first <= end:
        paths.append((frozenset(range(first, end + 1)), *[_continuation()] * len(least)))
    if end < last:
        paths += [(frozenset({last}), *tail) for tail in _paths(least, high[1:])]
    return paths


def _continuation() -> Terminal:
    return frozenset(range(0x80, 0xC0))
