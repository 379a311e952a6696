"""Errors that several parts of the laboratory raise."""

from __future__ import annotations

from tokfold.errors import TokfoldError

__all__ = ["TextRefusedError"]


class TextRefusedError(TokfoldError):
    """The text is not the beginning of any string of the grammar.

    Attributes:
        offset: bytes of it that can be read.
        line: 1-based line of the first byte that cannot be.
        column: 1-based column there, in code points.
    """

    def __init__(self, message: str, offset: int, line: int, column: int) -> None:
        super().__init__(message)
        self.offset = offset
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.offset, self.line, self.column)
