"""Whether parentheses stand on the stack.

How newlines become terminals is worked out in the core (``mask_store::decode::layout``), as
``lark.indenter.Indenter`` does it, which is Lark's: inside of parentheses a newline is dropped,
outside it is followed by indents and dedents, as its column compares with those of the lines that
the text stands in.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokfold.mask_store.grammar import Indentation, Production

__all__ = ["is_balanced"]


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
