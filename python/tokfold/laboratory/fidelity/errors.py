"""What can go wrong between a model and a grammar, by name."""

from __future__ import annotations

from tokfold.errors import TokfoldError

__all__ = [
    "AmbiguousGrammarError",
    "DeadEndError",
    "ModelError",
    "NotConvergedError",
    "OutsideLanguageError",
    "UnambiguityUnknownError",
]


class AmbiguousGrammarError(TokfoldError, ValueError):
    """The grammar has two parses of one text, which the exact inside algorithm would both count.

    Attributes:
        rule: name of the ambiguous rule; helper rules are named after the expression.
        witness: bytes that the rule derives in two ways; ``None`` for a cycle ``A -> ... -> A``.
    """

    def __init__(self, message: str, rule: str, witness: bytes | None) -> None:
        super().__init__(message)
        self.rule = rule
        self.witness = witness

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.rule, self.witness)


class UnambiguityUnknownError(TokfoldError, ValueError):
    """Neither a proof that the grammar is unambiguous nor a text with two parses was found."""


class ModelError(TokfoldError, ValueError):
    """A model's probabilities are none, or do not fit the vocabulary."""


class NotConvergedError(TokfoldError, ArithmeticError):
    """The inside fixed point did not settle within the bound on sweeps.

    Attributes:
        sweeps: sweeps done.
        rate: by what factor the change shrank in the last sweep; near 1 or above, the model nests
            (nearly) without end.
    """

    def __init__(self, message: str, sweeps: int, rate: float) -> None:
        super().__init__(message)
        self.sweeps = sweeps
        self.rate = rate

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.sweeps, self.rate)


class OutsideLanguageError(TokfoldError, ValueError):
    """A token or text cannot follow in the language.

    Attributes:
        position: number of the token, from 0.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.position)


class DeadEndError(TokfoldError, ValueError):
    """The model gives every allowed token, or every completion, the probability zero."""
