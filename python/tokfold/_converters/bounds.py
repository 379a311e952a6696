"""What is refused before it reaches a converter, and the bounds."""

from __future__ import annotations

from typing import NoReturn

from tokfold.errors import LimitExceededError, UnsupportedGrammarError

__all__ = [
    "CEILING",
    "LEVELS_ON_ANY_STACK",
    "MAX_EXCLUDED",
    "MAX_GRAMMAR_NESTING",
    "MAX_JSON_NESTING",
    "MAX_JSON_NODES",
    "MAX_LARK_LENGTH",
    "MAX_LARK_LEVELS",
    "MAX_LARK_WORK",
    "MAX_MACRO_WORK",
    "MAX_PATTERN_LENGTH",
    "MAX_PATTERN_NESTING",
    "MAX_PATTERN_WORK",
    "MAX_SCHEMA_LEVELS",
    "MAX_SCHEMA_WORK",
    "check_text",
    "place",
    "refuse",
    "refuse_size",
]

MAX_JSON_NESTING = 200
"""Levels of JSON text. Its readers, XGrammar's and Python's, recurse: on a stack of 512 KiB
XGrammar's dies between 1,000 and 3,000 levels. Of 2,000 schemas of MaskBench none has over 22."""

MAX_JSON_NODES = 1_000_000
"""Values and names in a value that is to become JSON: shared parts count as often as they are
written, which doubles with every level."""

MAX_SCHEMA_LEVELS = 16_000
"""Schemas within schemas, through `$ref` too. A level takes 5 KB of stack at most, and the thread
that converts has 16 KiB for each: 250 MiB, of which only what is used is ever real memory."""

MAX_SCHEMA_WORK = 100_000
"""Rules, and copies of subschemas, that the converter makes: some 15 µs each, so 1 to 2 s."""

MAX_PATTERN_NESTING = 200
"""Levels of groups in a pattern. On a stack of 512 KiB XGrammar dies between 300 and 1,000."""

MAX_PATTERN_WORK = 50_000
"""States of the automaton of a pattern, and what it costs to join them: some 20 µs each."""

MAX_PATTERN_LENGTH = 300_000
"""Characters of a pattern by itself; they take 0.2 s, and 0.6 s to be read again."""

MAX_MACRO_WORK = 100_000
"""The same of all macros of a grammar, and 25 for each: XGrammar reads them one by one."""

MAX_LARK_LENGTH = 1_000_000
"""Characters of Lark text."""

MAX_LARK_LEVELS = 16_000
"""Terminals within terminals, on a stack made for them. Without, 512 KiB end between 1,000 and
3,000."""

MAX_LARK_WORK = 200_000
"""Characters of a terminal after the terminals that it names are written out."""

MAX_EXCLUDED = 10_000
"""Characters of texts that strings of a schema must not hold. 20,000 take 1 s, 60,000 eleven."""

MAX_GRAMMAR_NESTING = 200
"""Levels of groups in grammar text that XGrammar reads: as for patterns."""

LEVELS_ON_ANY_STACK = 24
"""Levels that are converted in the caller's thread, whose stack may be small."""

CEILING = 1 << 60
"""Past this counts only say `too much`: they double with every level."""


def refuse_size(message: str, limit: str, value: int) -> NoReturn:
    raise LimitExceededError(f"{message}; {value:,} is the most", limit, value)


def refuse(message: str, what: str, line: int = 1, column: int = 1) -> NoReturn:
    raise UnsupportedGrammarError(message, what, line, column)


def place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def check_text(text: object, what: str) -> str:
    """A text that converters can be given.

    Raises:
        TypeError: it is no ``str``.
        UnsupportedGrammarError: it holds NUL, on which some versions of XGrammar end the process,
            or a lone surrogate; at its place.
    """
    if not isinstance(text, str):
        raise TypeError(f"a {what} must be a str, not {type(text).__name__}")
    offset = text.find("\0")
    if offset >= 0:
        line, column = place(text, offset)
        refuse(
            f"line {line}, column {column}: this {what} holds NUL, which no text has; leave it out",
            what,
            line,
            column,
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            line, column = place(text, error.start)
            raise UnsupportedGrammarError(
                f"line {line}, column {column}: this {what} holds a lone surrogate, which is no "
                "character; decode the text as UTF-8",
                what,
                line,
                column,
            ) from error
    return text
