"""Ranges of characters as what their UTF-8 is: sequences of ranges of bytes."""

from __future__ import annotations

_BOUNDS = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
"""The last code points that take one, two, three and four bytes."""


def utf8_sequences(first: int, last: int) -> list[list[tuple[int, int]]]:
    """The UTF-8 of all code points from first to last: sequences of ranges of bytes.

    Surrogates take three bytes, as anything between 0x800 and 0xFFFF.
    """
    out = []
    begin = first
    for end in _BOUNDS:
        if begin <= min(end, last):
            low, high = _encoded(begin), _encoded(min(end, last))
            out.extend(_between(low, high))
            begin = min(end, last) + 1
    return out


def _encoded(point: int) -> bytes:
    return chr(point).encode("utf-8", "surrogatepass")


def _between(low: bytes, high: bytes) -> list[list[tuple[int, int]]]:
    """As many bytes in both; at most four, so it may recurse."""
    if len(low) == 1 or low[0] == high[0]:
        if len(low) == 1:
            return [[(low[0], high[0])]]
        return [[(low[0], low[0]), *rest] for rest in _between(low[1:], high[1:])]
    least, most = bytes([0x80] * (len(low) - 1)), bytes([0xBF] * (len(low) - 1))
    out: list[list[tuple[int, int]]] = []
    begin, end = low[0], high[0]
    if low[1:] != least:
        out += [[(begin, begin), *rest] for rest in _between(low[1:], most)]
        begin += 1
    upper = []
    if high[1:] != most:
        upper = [[(end, end), *rest] for rest in _between(least, high[1:])]
        end -= 1
    if begin <= end:
        out.append([(begin, end), *([(0x80, 0xBF)] * len(least))])
    return out + upper
