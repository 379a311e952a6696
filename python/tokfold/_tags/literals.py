"""Texts in grammar text, ASCII only."""

from __future__ import annotations


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
