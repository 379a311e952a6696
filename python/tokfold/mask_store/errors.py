"""What a grammar of terminals can be refused for."""

from __future__ import annotations

from tokfold._quoting import quoted
from tokfold.errors import TokfoldError

__all__ = ["LarkGrammarError", "TableLoopError", "UnsupportedPatternError", "inexact"]


class LarkGrammarError(TokfoldError, ValueError):
    """The Lark package refuses the grammar, or it holds something no mask store can be made for."""


class UnsupportedPatternError(LarkGrammarError):
    """The pattern of a terminal holds something that cannot be turned into an automaton exactly.

    Attributes:
        terminal: the terminal's name.
        construct: the construct, in words of regular expressions.
        pattern: the pattern, as given to :mod:`re`.
    """

    def __init__(self, message: str, terminal: str, construct: str, pattern: str) -> None:
        super().__init__(message)
        self.terminal = terminal
        self.construct = construct
        self.pattern = pattern

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.terminal, self.construct, self.pattern)


def inexact(terminal: str, pattern: str, construct: str, advice: str) -> UnsupportedPatternError:
    """The error for a construct in the pattern of a terminal, with what to write instead."""
    return UnsupportedPatternError(
        f"terminal {terminal}: {construct} cannot be turned into an automaton exactly (in "
        f"{quoted(pattern)}): {advice}",
        terminal,
        construct,
        pattern,
    )


class TableLoopError(LarkGrammarError):
    """The table reduces for ever without reading: a rule can stand for itself."""
