"""What the post-lexer remembers of a text, and whether parentheses stand on the stack.

How newlines become terminals is worked out in the core (``mask_store::decode::layout``), as
``lark.indenter.Indenter`` does it, which is Lark's: inside of parentheses a newline is dropped,
outside it is followed by indents and dedents, as its column compares with those of the lines that
the text stands in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokfold.mask_store.grammar import Indentation, Production

__all__ = ["Layout", "is_balanced"]


@dataclass(frozen=True)
class Layout:
    """What the post-lexer remembers, and the newline terminal in progress.

    Attributes:
        parens: parentheses that are open.
        columns: columns of the lines that the text stands in, ascending.
        column: that of the newline terminal in progress; None if it has no line feed yet, or if
            none is in progress.
    """

    parens: int = 0
    columns: tuple[int, ...] = (0,)
    column: int | None = None


def is_balanced(productions: Sequence[Production], indentation: Indentation) -> bool:
    """Whether each production alone closes what it opens, and nothing else."""
    for production in productions:
        depth = 0
        for symbol in production.expansion:
            depth += (symbol in indentation.open_parens) - (symbol in indentation.close_parens)
            if depth < 0:
                return False
        if depth:
            return False
    return True
