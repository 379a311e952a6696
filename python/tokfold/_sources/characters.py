"""Texts with lone surrogates, which no grammar reads."""

from __future__ import annotations

from tokfold._text_checks import place
from tokfold.errors import GrammarSyntaxError


def check_characters(text: str) -> None:
    """Refuse a text with a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise lone_surrogate(text, error) from error


def lone_surrogate(text: str, error: UnicodeEncodeError) -> GrammarSyntaxError:
    """The error of a text that has no UTF-8."""
    line, column = place(text, error.start)
    return GrammarSyntaxError(
        f"line {line}, column {column}: a lone surrogate is no character; decode the text as UTF-8",
        line,
        column,
    )
