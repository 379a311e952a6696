"""Many matchers at once, in threads that are made once and with the GIL released."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._checks import bitmask_error, wrong_type
from tokfold.errors import MatcherStateError
from tokfold.matcher import Matcher

__all__ = [
    "accept_token_batch",
    "fill_bitmask_batch",
    "fill_class_bitmask_batch",
    "rollback_batch",
]

if TYPE_CHECKING:
    from tokfold.mask_store import StoreMatcher

AnyMatcher: TypeAlias = "Matcher | StoreMatcher"

_CORE = operator.attrgetter("_core")

_ELSEWHERE = {"tokfold.chart_gpu", "tokfold.mask_store"}
"""Who has matchers with another core."""

MATCHERS_PER_THREAD = 16
"""A warm mask takes a microsecond or two, as long as it takes to hand work to a thread."""


def fill_bitmask_batch(
    matchers: Sequence[AnyMatcher],
    bitmask: npt.NDArray[np.int32],
    rows: Sequence[int] | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.bool_]:
    """Write the rows of many matchers, without the GIL.

    Args:
        matchers: the matchers, over vocabularies of one size; none twice. Matchers of a
            :class:`tokfold.mask_store.MaskStore` may be among them; then all are filled one by one.
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
    matchers: Sequence[AnyMatcher],
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
    matchers: Sequence[AnyMatcher],
    bitmask: npt.NDArray[np.int32],
    rows: Sequence[int] | None,
    threads: int | None,
    classes: bool,
) -> npt.NDArray[np.bool_]:
    _check_many(matchers)
    places = None if rows is None else list(rows)
    if places is not None:
        if len(places) != len(matchers):
            raise ValueError(f"{len(matchers)} matchers, but {len(places)} rows")
        for place in places:
            if not 0 <= place < 1 << 63:
                raise ValueError(f"the bitmask has no row {place}")
    if _any_on_device(matchers):
        _check(matchers)
        fills = [_filler(matcher, classes) for matcher in matchers]
        pairs = enumerate(fills) if places is None else zip(places, fills, strict=True)
        return np.array([fill(bitmask, row) for row, fill in pairs], dtype=bool)
    count = _threads(threads, len(matchers))
    try:
        found = _core.fill_batch(list(map(_CORE, matchers)), bitmask, places, count, classes)
        if not classes:
            for index, matcher in enumerate(cast("Sequence[Matcher]", matchers)):
                if matcher._has_no_end and found[index]:
                    matcher._check_end(bitmask, index if places is None else places[index])
        return found
    except (AttributeError, TypeError) as error:
        _check(matchers)
        if isinstance(error, AttributeError):
            raise
        raise bitmask_error(bitmask, error) from None


def accept_token_batch(
    matchers: Sequence[AnyMatcher], token_ids: Sequence[int], threads: int | None = None
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
    _check_many(matchers)
    if len(token_ids) != len(matchers):
        raise ValueError(f"{len(matchers)} matchers, but {len(token_ids)} tokens")
    ids = list(map(operator.index, token_ids))
    count = _threads(threads, len(matchers))
    if not _any_on_device(matchers):
        try:
            return _core.accept_batch(list(map(_CORE, matchers)), ids, count)
        except OverflowError:  # an id that is none, which is named below
            pass
        except (AttributeError, TypeError):
            _check(matchers)
            raise
    ids = [_id(m, token_id) for m, token_id in zip(matchers, ids, strict=True)]
    return _accepted_one_by_one(matchers, ids)


def rollback_batch(
    matchers: Sequence[AnyMatcher], counts: Sequence[int], threads: int | None = None
) -> None:
    """Take back steps of each of many matchers, without the GIL.

    Args:
        matchers: the matchers; none twice.
        counts: the number of steps of each.
        threads: as for :func:`fill_bitmask_batch`.

    Raises:
        MatcherStateError: one has fewer steps; no matcher has moved.
    """
    _check_many(matchers)
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


def _accepted_one_by_one(matchers: Sequence[AnyMatcher], ids: list[int]) -> npt.NDArray[np.bool_]:
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


def _id(matcher: AnyMatcher, token_id: int) -> int:
    if isinstance(matcher, Matcher):
        return matcher._id(matcher.compiled, token_id)
    return matcher._id(token_id)


def _filler(matcher: AnyMatcher, classes: bool) -> Callable[[npt.NDArray[np.int32], int], bool]:
    if not classes:
        return matcher.fill_bitmask
    if isinstance(matcher, Matcher):
        return matcher.fill_class_bitmask
    raise MatcherStateError(
        f"a {type(matcher).__name__} has no token classes: fill its row by "
        "tokfold.fill_bitmask_batch"
    )


def _check_many(matchers: Sequence[AnyMatcher]) -> None:
    if not isinstance(matchers, Sequence):
        raise wrong_type("matchers", "a sequence of tokfold.Matcher", matchers)


def _check(matchers: Sequence[AnyMatcher]) -> None:
    """Refuse what is no matcher."""
    for matcher in matchers:
        if not isinstance(matcher, Matcher) and not hasattr(matcher, "_is_on_device"):
            raise wrong_type("each of the matchers", "a tokfold.Matcher", matcher)


def _any_on_device(matchers: Sequence[AnyMatcher]) -> bool:
    """Whether the core's matcher is not what reads, for one of them; asked once for each kind."""
    if not _ELSEWHERE & sys.modules.keys():
        return False  # There are no such matchers.
    kinds = cast("set[type[Matcher]]", set(map(type, matchers)))
    return any(getattr(kind, "_is_on_device", False) for kind in kinds)


def _threads(threads: int | None, count: int) -> int:
    if threads is None:
        return min(os.cpu_count() or 1, -(-count // MATCHERS_PER_THREAD))
    if threads < 0:
        raise ValueError(f"threads must be 0 or more, not {threads}")
    return threads
