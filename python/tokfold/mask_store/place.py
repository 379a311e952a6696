"""Where a text of a mask store stands."""

from __future__ import annotations

from dataclasses import dataclass

from tokfold.mask_store.newlines import Layout

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """One way in which the text so far may be meant.

    Attributes:
        stack: states of the parser, the start first; the terminal in progress has been read,
            unless it is ignored or the newline of a post-lexer.
        state: of the lexer.
        scanner: in which the terminal in progress began.
        layout: of the post-lexer, before the newline terminal in progress.
    """

    stack: tuple[int, ...]
    state: int
    scanner: int
    layout: Layout
