"""Times of several forms of one grammar on one engine, taken in turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokfold.grammar import Grammar
from tokfold.laboratory.instruments.base import EngineRefusedError, InstrumentedEngine
from tokfold.laboratory.instruments.profile import make_engine
from tokfold.vocabulary import Vocabulary

__all__ = ["Timing", "time_forms"]

_CLOCK = time.perf_counter_ns


@dataclass(frozen=True)
class Timing:
    """What one form cost along a text.

    Attributes:
        name: of the form.
        compile_seconds: from the grammar to what masks need.
        step_us: microseconds of each mask with the reading of the token after it, the least over
            the rounds; shape ``(T,)``. Empty where the engine refuses the form.
        refused: what the engine says then.
    """

    name: str
    compile_seconds: float
    step_us: npt.NDArray[np.float64]
    refused: str = ""

    @property
    def mean_us(self) -> float:
        """Mean over the steps; infinite where the engine refuses the form."""
        return float(self.step_us.mean()) if len(self.step_us) else float("inf")


def time_forms(
    forms: Sequence[tuple[str, Grammar]],
    engine: str,
    vocabulary: Vocabulary,
    token_ids: Sequence[int],
    *,
    rounds: int = 3,
    seconds: float = 20.0,
) -> list[Timing]:
    """Go through a text with each form in turns, so that a busy machine is busy for all alike.

    A round begins cold: nothing is remembered of the round before. Steps that some form did not
    come to before the time was over count for none.

    Args:
        forms: names and grammars.
        engine: a name out of :data:`tokfold.laboratory.instruments.ENGINES`.
        vocabulary: the vocabulary.
        token_ids: the text.
        rounds: how often; the least time of each step counts.
        seconds: for all rounds of all forms; at least one token of one round is read by each.

    Raises:
        InstrumentError: there is no such engine, or it stopped in the middle of the text.
        MissingExtraError: the engine is not installed.
    """
    made: list[tuple[str, InstrumentedEngine | None, str]] = []
    for name, grammar in forms:
        try:
            made.append((name, make_engine(engine, grammar, vocabulary), ""))
        except EngineRefusedError as error:
            made.append((name, None, error.reason))
    best: dict[str, npt.NDArray[np.float64]] = {}
    over = time.perf_counter() + seconds
    live = sum(one is not None for _, one, _ in made)
    for turn in range(rounds):
        if turn and time.perf_counter() > over:
            break
        for name, one, _ in made:
            if one is None:
                continue
            found = _walk(one, token_ids, seconds / max(live, 1))
            kept = best.get(name, found)
            shared = min(len(kept), len(found))
            best[name] = np.minimum(kept[:shared], found[:shared])
    steps = min((len(found) for found in best.values()), default=0)
    return [
        Timing(
            name,
            one.compile_seconds if one is not None else 0.0,
            best[name][:steps] if one is not None else np.zeros(0),
            refused,
        )
        for name, one, refused in made
    ]


def _walk(
    engine: InstrumentedEngine, token_ids: Sequence[int], seconds: float
) -> npt.NDArray[np.float64]:
    walk = engine.begin(cold=True)
    found: list[int] = []
    was_enabled = gc.isenabled()
    gc.disable()
    over = time.perf_counter() + seconds
    try:
        for token in token_ids:
            began = _CLOCK()
            walk.fill()
            taken = walk.accept(token)
            found.append(_CLOCK() - began)
            walk.check()
            if not taken or time.perf_counter() > over:
                break
    finally:
        if was_enabled:
            gc.enable()
    return np.array(found, dtype=np.float64) / 1e3
