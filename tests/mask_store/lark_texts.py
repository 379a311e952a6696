"""What Lark says of a text."""

from __future__ import annotations

import logging

import lark
from lark.exceptions import LarkError

logging.getLogger("lark").setLevel(logging.CRITICAL)


def parses(parser: lark.Lark, text: str) -> bool:
    """Whether Lark accepts a text.

    A newline terminal without a line feed makes Lark's indenter fail with an IndexError: such a
    text is not accepted either.
    """
    try:
        parser.parse(text)
    except (LarkError, IndexError, AssertionError):
        return False
    return True
