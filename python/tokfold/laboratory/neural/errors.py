"""What can go wrong between a grammar and a model."""

from __future__ import annotations

from tokfold.errors import TokfoldError

__all__ = [
    "FeatureMismatchError",
    "NoTokenAllowedError",
    "RefusedTokenError",
    "UnusableLogitsError",
]


class RefusedTokenError(TokfoldError, ValueError):
    """A text of the training data is not one of the grammar.

    Attributes:
        text: which of the texts.
        position: which of its tokens.
    """

    def __init__(self, message: str, text: int, position: int) -> None:
        super().__init__(message)
        self.text = text
        self.position = position

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.text, self.position)


class NoTokenAllowedError(TokfoldError, RuntimeError):
    """The text could be completed, but no token of the vocabulary does it."""


class UnusableLogitsError(TokfoldError, ValueError):
    """Masked logits of which no distribution can be made.

    Attributes:
        row: which row, all dimensions but the last flattened.
    """

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.row)


class FeatureMismatchError(TokfoldError, ValueError):
    """Weights were learned for other features, or for another grammar."""
