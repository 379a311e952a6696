"""Many matchers at once, in threads that are made once and with the GIL released."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold.errors import MatcherStateError
from tokfold.matcher import Matcher

__all__ = [
    "accept_token_batch",
    "fill_bitmask_batch",
    "fill_class_bitmask_batch",
    "rollback_batch",
]

_CORE = operator.attrgetter("_core")

MATCHERS_PER_THREAD = 16
"""A warm mask takes a microsecond or two, as long as it takes to hand work to a thread."""


def fill_bitmask_batch(
    matchers: Sequence[Matcher],
    bitmask: npt.NDArray[np.int32],
    rows: Sequence[int] | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.bool_]:
    """Write the rows of many matchers, without the GIL.

    Args:
        matchers: the matchers, over vocabularies of one size; none twice.
        bitmask: int32, C-contiguous, shape ``(rows, ceil(V / 32))``.
        rows: the row of each matcher; by default 0, 1, 2 and so on.
        threads: how many to use; by default one for each 16 matchers, at most one for each CPU.

    Returns:
        bool, shape ``(len(matchers),)``: False where every token is allowed.

    Raises:
        As :meth:`Matcher.fill_bitmask`, for the first matcher that does. Rows then mean nothing.
    """
    return _filled(matchers, bitmask, rows, threads, False)


def fill_class_bitmask_batch(
    matchers: Sequence[Matcher],
    bitmask: npt.NDArray[np.int32],
    rows: Sequence[int] | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.bool_]:
    """Write the rows of token classes of many matchers, without the GIL.

    Args:
        matchers: the matchers, of grammars with as many classes; none twice.
        bitmask: int32, C-contiguous, shape ``(rows, ceil(C / 32))`` for ``C`` classes.
        rows: as for :func:`fill_bitmask_batch`.
        threads: as there.

    Returns:
        As there.

    Raises:
        As :meth:`Matcher.fill_class_bitmask`, for the first matcher that does. Rows then mean
        nothing.
    """
    return _filled(matchers, bitmask, rows, threads, True)


def _filled(
    matchers: Sequence[Matcher],
    bitmask: npt.NDArray[np.int32],
    rows: Sequence[int] | None,
    threads: int | None,
    classes: bool,
) -> npt.NDArray[np.bool_]:
    places = None if rows is None else list(rows)
    if places is not None:
        if len(places) != len(matchers):
            raise ValueError(f"{len(matchers)} matchers, but {len(places)} rows")
        for place in places:
            if not 0 <= place < 1 << 63:
                raise ValueError(f"the bitmask has no row {place}")
    if _any_on_device(matchers):
        fills = [m.fill_class_bitmask if classes else m.fill_bitmask for m in matchers]
        pairs = enumerate(fills) if places is None else zip(places, fills, strict=True)
        return np.array([fill(bitmask, row) for row, fill in pairs], dtype=bool)
    count = _threads(threads, len(matchers))
    return _core.fill_batch(list(map(_CORE, matchers)), bitmask, places, count, classes)


def accept_token_batch(
    matchers: Sequence[Matcher], token_ids: Sequence[int], threads: int | None = None
) -> npt.NDArray[np.bool_]:
    """Read a token with each of many matchers, without the GIL.

    Args:
        matchers: the matchers; none twice.
        token_ids: the token of each.
        threads: as for :func:`fill_bitmask_batch`.

    Returns:
        bool, shape ``(len(matchers),)``: False where the token cannot follow, and that matcher is
        as it was.

    Raises:
        As :meth:`Matcher.accept_token`, for the first matcher that does; no matcher has moved.
    """
    if len(token_ids) != len(matchers):
        raise ValueError(f"{len(matchers)} matchers, but {len(token_ids)} tokens")
    ids = list(map(operator.index, token_ids))
    count = _threads(threads, len(matchers))
    if not _any_on_device(matchers):
        try:
            return _core.accept_batch(list(map(_CORE, matchers)), ids, count)
        except OverflowError:  # an id that is none, which is named below
            pass
    ids = [m._id(m.compiled, token_id) for m, token_id in zip(matchers, ids, strict=True)]
    return _accepted_one_by_one(matchers, ids)


def rollback_batch(
    matchers: Sequence[Matcher], counts: Sequence[int], threads: int | None = None
) -> None:
    """Take back steps of each of many matchers, without the GIL.

    Args:
        matchers: the matchers; none twice.
        counts: the number of steps of each.
        threads: as for :func:`fill_bitmask_batch`.

    Raises:
        MatcherStateError: one has fewer steps; no matcher has moved.
    """
    if len(counts) != len(matchers):
        raise ValueError(f"{len(matchers)} matchers, but {len(counts)} counts")
    for matcher, count in zip(matchers, counts, strict=True):
        if count < 0:
            raise ValueError(f"count must be 0 or more, not {count}")
        if count > matcher.num_steps:
            raise MatcherStateError(
                f"{count} steps cannot be taken back: {matcher.num_steps} were accepted"
            )
    if _any_on_device(matchers):
        for matcher, count in zip(matchers, counts, strict=True):
            matcher.rollback(count)
        return
    cores = list(map(_CORE, matchers))
    _core.rollback_batch(cores, list(counts), _threads(threads, len(matchers)))


def _accepted_one_by_one(matchers: Sequence[Matcher], ids: list[int]) -> npt.NDArray[np.bool_]:
    """Read a token with each; where one raises, those before it take theirs back."""
    taken: list[bool] = []
    try:
        for matcher, token_id in zip(matchers, ids, strict=True):
            taken.append(matcher.accept_token(token_id))
    except BaseException:
        for matcher, was_taken in zip(matchers, taken, strict=False):
            if was_taken:
                matcher.rollback(1)
        raise
    return np.array(taken, dtype=np.bool_)


def _any_on_device(matchers: Sequence[Matcher]) -> bool:
    """Whether the core's matcher is not what reads, for one of them; asked once for each kind."""
    if "tokfold.chart_gpu" not in sys.modules:
        return False  # There are no such matchers.
    kinds = cast("set[type[Matcher]]", set(map(type, matchers)))
    return any(kind._is_on_device for kind in kinds)


def _threads(threads: int | None, count: int) -> int:
    if threads is None:
        return min(os.cpu_count() or 1, -(-count // MATCHERS_PER_THREAD))
    if threads < 0:
        raise ValueError(f"threads must be 0 or more, not {threads}")
    return threads
