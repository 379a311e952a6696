"""One interface over engines: Step, Mask and Ctr, and what a profile records of them.

An instrumented engine (paper, definition 25) reads a token (Step), says which tokens may come next
(Mask), and counts what both cost it (Ctr). Counters are whatever the engine itself counts or lets
be seen: they differ between engines, are never negative, and depend on nothing but grammar,
vocabulary, text and what the engine remembers, so that two runs give the same. Times are wall
times of the machine at hand.

The names of counters say what they belong to: ``mask.x`` is what one mask cost, ``step.x`` what
reading one token cost, ``state.x`` how large the state was when the mask was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tokfold._quoting import quoted
from tokfold.errors import TokfoldError
from tokfold.grammar import Grammar
from tokfold.laboratory.errors import TextRefusedError
from tokfold.vocabulary import Vocabulary

__all__ = [
    "Counts",
    "EngineProfile",
    "EngineRefusedError",
    "EngineStoppedError",
    "InstrumentError",
    "InstrumentedEngine",
    "Pass",
    "Profile",
    "StepCounters",
    "TextRefusedError",
    "Walk",
    "is_allowed",
    "new_row",
]

Counts = Mapping[str, int]
"""Counters by name."""

StepCounters = Callable[[Grammar, Sequence[bytes]], Mapping[str, Sequence[int]]]
"""Counters from elsewhere, for a column each in a profile.

Called with the grammar and the bytes of each token of the text; gives, for each name, one count for
each token.
"""

Row = npt.NDArray[np.int32]
"""One row of a bitmask, shape ``(1, ceil(V / 32))``: bit ``j`` of word ``i`` is token 32 i + j."""


class InstrumentError(TokfoldError):
    """An engine cannot be looked at as asked."""


class EngineRefusedError(InstrumentError):
    """An engine does not take a grammar or a vocabulary.

    Attributes:
        engine: its name.
        reason: what it says.
    """

    def __init__(self, engine: str, reason: str) -> None:
        super().__init__(f"{engine} does not take this grammar: {reason}")
        self.engine = engine
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.engine, self.reason)


class EngineStoppedError(InstrumentError):
    """An engine gave up in the middle of a text: a limit, or an error of its own.

    Attributes:
        engine: its name.
        reason: what it says.
    """

    def __init__(self, engine: str, reason: str) -> None:
        super().__init__(f"{engine} gave up: {reason}")
        self.engine = engine
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.engine, self.reason)


class Walk(Protocol):
    """One text on its way through one engine."""

    @property
    def row(self) -> Row:
        """Where :attr:`fill` writes the mask. Bits past the vocabulary mean nothing."""

    @property
    def fill(self) -> Callable[[], object]:
        """Mask. The bare call of the engine: what is timed."""

    @property
    def accept(self) -> Callable[[int], bool]:
        """Step: reads a token; False where the engine does not take it: the walk is then over."""

    def check(self) -> None:
        """Raise :class:`EngineStoppedError` where the engine has given up without raising."""

    def counters(self) -> Counts:
        """Ctr: what was spent since the last call, and the size of the state now.

        Called after :attr:`fill` it gives ``mask.`` and ``state.`` counters, after :attr:`accept`
        ``step.`` counters. Not timed, and may cost much more than what it counts.
        """

    def would_accept(self, token_id: int) -> bool:
        """Whether :attr:`accept` would take a token here; the walk stays where it is."""


class InstrumentedEngine(Protocol):
    """A grammar and a vocabulary in one engine, ready for walks."""

    name: str
    version: str
    vocabulary: Vocabulary
    compile_seconds: float
    """From the grammar to what walks need, the vocabulary already read by the engine."""
    remembers: bool
    """Whether masks become cheaper when they, or others under this grammar, were made before. Where
    they do not, cold and warm are one and the same pass."""

    def begin(self, *, cold: bool, counting: bool = False) -> Walk:
        """Begin a text.

        Args:
            cold: as if no text had been read under this grammar before: all that was remembered of
                masks is forgotten.
            counting: the walk will be asked for its counters; it may then be slower.
        """


@dataclass(frozen=True)
class Pass:
    """What one way of going through the text cost, ``T`` tokens.

    Attributes:
        counters: for each counter int64, shape ``(T,)``.
        mask_us: microseconds of each mask in each repeat, float64, shape ``(R, T)``.
        step_us: microseconds of reading each token, likewise.
    """

    counters: dict[str, npt.NDArray[np.int64]]
    mask_us: npt.NDArray[np.float64]
    step_us: npt.NDArray[np.float64]

    @property
    def repeats(self) -> int:
        """How often the text was gone through for the times."""
        return len(self.mask_us)

    def mask(self, how: str = "min") -> npt.NDArray[np.float64]:
        """Microseconds of each mask, ``min`` or ``median`` over the repeats; shape ``(T,)``."""
        return _over_repeats(self.mask_us, how)

    def step(self, how: str = "min") -> npt.NDArray[np.float64]:
        """Microseconds of reading each token, as :meth:`mask`."""
        return _over_repeats(self.step_us, how)

    def total(self, how: str = "min") -> npt.NDArray[np.float64]:
        """Microseconds of mask and reading together, as :meth:`mask`."""
        return _over_repeats(self.mask_us + self.step_us, how)


def _over_repeats(times: npt.NDArray[np.float64], how: str) -> npt.NDArray[np.float64]:
    if how not in ("min", "median"):
        raise ValueError(f"how must be 'min' or 'median', not {quoted(how)}")
    found: npt.NDArray[np.float64] = (np.min if how == "min" else np.median)(times, axis=0)
    return found


@dataclass(frozen=True)
class EngineProfile:
    """One engine along the text.

    Attributes:
        engine: its name.
        version: of its package.
        compile_seconds: from the grammar to what walks need.
        allowed: how many tokens each mask allows, int64, shape ``(T,)``.
        cold: nothing remembered when the text began; it fills the memory as it goes.
        warm: the same text again.
        stopped: why the engine did not get to the end of the text; empty where it did. ``T`` is
            then less than the tokens of the text.
        given: what the engine was given in place of the grammar, in words; empty where it was the
            grammar.
    """

    engine: str
    version: str
    compile_seconds: float
    allowed: npt.NDArray[np.int64]
    cold: Pass
    warm: Pass
    stopped: str = ""
    given: str = ""

    def passes(self) -> dict[str, Pass]:
        """Both, by name."""
        return {"cold": self.cold, "warm": self.warm}


@dataclass(frozen=True)
class Profile:
    """A text under a grammar, through several engines.

    Attributes:
        vocabulary: what the text was cut with.
        token_ids: the tokens of the text.
        engines: the engines that took the grammar, in the order asked for.
        refused: the engines that did not, with their reasons.
        extra: counters from elsewhere, int64, shape ``(T,)`` each.
        may_end: whether the text is a whole string of the grammar, not only the beginning of one.
    """

    vocabulary: Vocabulary
    token_ids: list[int]
    engines: dict[str, EngineProfile]
    refused: dict[str, str]
    extra: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    may_end: bool = False

    def tokens(self) -> list[bytes]:
        """The bytes of each token of the text."""
        return [self.vocabulary[i] for i in self.token_ids]


def new_row(vocabulary: Vocabulary) -> Row:
    """A row of a bitmask, all bits 0."""
    return np.zeros((1, (len(vocabulary) + 31) // 32), dtype=np.int32)


def bits_of(row: Row, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    """A row as one bool for each token, shape ``(V,)``."""
    bits = np.unpackbits(row.reshape(-1).view(np.uint8), bitorder="little")
    return bits[: len(vocabulary)].astype(np.bool_)


def is_allowed(row: Row, token_id: int) -> bool:
    """Whether a row allows a token."""
    return bool(row[0, token_id >> 5] >> (token_id & 31) & 1)
