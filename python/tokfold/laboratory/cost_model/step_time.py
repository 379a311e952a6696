"""The visible time of a decoding step, from the time of its masks (paper, definition 27)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["StepTime", "predict_step_time", "symbolic_time"]


@dataclass(frozen=True)
class StepTime:
    """One step of a batch; all in microseconds.

    Attributes:
        model_us: the model's forward pass over the batch.
        symbolic_us: masks and states of all sequences, spread over the threads.
        visible_us: from one token to the next.
        hidden_us: symbolic work that runs while the model does.
        critical: what the step waits for: ``"model"`` or ``"masks"``.
    """

    model_us: float
    symbolic_us: float
    visible_us: float
    hidden_us: float

    @property
    def critical(self) -> str:
        """What the step waits for."""
        return "masks" if self.symbolic_us > self.model_us else "model"


def symbolic_time(
    each_us: float | Sequence[float], batch: int, threads: int, dispatch_us: float = 0.0
) -> float:
    """Time until masks and states of a batch are done, in microseconds.

    Sequences share nothing (paper, proposition 8), so their work adds up and is divided among
    threads, each taking the next sequence when it is free. Engines that share what masks remember,
    as ours does, do better when sequences meet the same states for the first time.

    Args:
        each_us: of each sequence, or of all alike.
        batch: sequences.
        threads: threads that work on masks at once.
        dispatch_us: added once, for handing the work out and waiting for the last thread.

    Raises:
        ValueError: ``batch`` or ``threads`` is less than 1, a time is negative, or there is not one
            time for each sequence.
    """
    if batch < 1 or threads < 1:
        raise ValueError(f"batch and threads must be 1 or more, not {batch} and {threads}")
    times = [float(each_us)] * batch if isinstance(each_us, int | float) else list(each_us)
    if len(times) != batch:
        raise ValueError(f"there are {len(times)} times for a batch of {batch}")
    if dispatch_us < 0 or any(time < 0 for time in times):
        raise ValueError("a time is negative")
    free = [0.0] * min(threads, batch)
    for time in times:
        heapq.heapreplace(free, free[0] + time)
    return max(free) + dispatch_us


def predict_step_time(
    each_us: float | Sequence[float],
    *,
    batch: int,
    threads: int,
    model_us: float,
    sync_us: float = 0.0,
    select_us: float = 0.0,
    dispatch_us: float = 0.0,
    overlap: bool = True,
) -> StepTime:
    """How long a step takes from one token to the next, masks included.

    Args:
        each_us: mask and state of one sequence: measured, or predicted by a
            :class:`tokfold.laboratory.cost_model.CostModel`. One for each sequence, or one for all.
        batch: sequences decoded together.
        threads: threads that work on masks at once.
        model_us: the model's forward pass over the batch.
        sync_us: waiting for both to meet.
        select_us: choosing the tokens.
        dispatch_us: as for :func:`symbolic_time`.
        overlap: masks are made while the model runs; else after it.

    Raises:
        ValueError: as :func:`symbolic_time`; ``model_us``, ``sync_us`` or ``select_us`` is
            negative.
    """
    if min(model_us, sync_us, select_us) < 0:
        raise ValueError("a time is negative")
    symbolic = symbolic_time(each_us, batch, threads, dispatch_us)
    together = max(model_us, symbolic) if overlap else model_us + symbolic
    hidden = min(model_us, symbolic) if overlap else 0.0
    return StepTime(model_us, symbolic, together + sync_us + select_us, hidden)
