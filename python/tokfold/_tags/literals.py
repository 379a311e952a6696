"""Texts in grammar text, ASCII only."""

from __future__ import annotations

import re

__all__ = ["escaped", "literal", "unescaped"]


def literal(text: str) -> str:
    """A text as a literal."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(_in_literal(ord(character)) for character in text)}"'


def _in_literal(code: int) -> str:
    return chr(code) if 0x20 <= code < 0x7F and code not in b'"\\' else escaped(code)


def escaped(code: int) -> str:
    """A code point by its number, for a literal or a class. What follows is no part of it."""
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_NAMED = {"n": "\n", "r": "\r", "t": "\t"}


def unescaped(text: str) -> str:
    """What stands between the quotes of a literal that the core printed, as a text."""
    return _ESCAPE.sub(
        lambda found: (
            _NAMED.get(found[4], found[4])
            if found[4]
            else chr(int(found[found.lastindex or 0], 16))
        ),
        text,
    )
