"""Bounds on what the cost of a form may take, and the errors that name them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tokfold.errors import LimitExceededError
from tokfold.laboratory.errors import TextRefusedError

__all__ = ["CostLimitError", "CostLimits", "TextRefusedError"]


@dataclass(frozen=True, slots=True)
class CostLimits:
    """Bounds on the productions of a form, on a chart and on a forest.

    A bound that is reached raises :class:`CostLimitError`, which names the field here. All of them
    are counts, so a text ends at the same place on every machine.
    """

    max_symbols: int = 1_000_000
    """Symbols on the right-hand sides of all productions together, counted repetitions written
    out."""
    max_items: int = 4_000_000
    """Items of all Earley sets together, predicted ones included, and of what a forest adds."""
    max_work: int = 100_000_000
    """Pairs that the completer puts together, over the whole text."""
    max_nodes: int = 2_000_000
    """Nodes of a forest, packed ones included."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an int, not {type(value).__name__}")
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")


class CostLimitError(LimitExceededError):
    """A bound of :class:`CostLimits` was reached.

    Attributes:
        limit: name of the bound, a field of :class:`CostLimits`.
        value: the bound in force.
    """
