"""Many matchers at once, in threads that are made once and with the GIL released.

``_threads`` says how many threads a call takes where the caller names no number.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import os
from collections.abc import Callable, Sequence
from typing import Literal, TypeGuard, get_args

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._checks import (
    bitmask_error,
    check_number,
    is_one_of,
    of_row,
    shared,
    whole_numbers,
    wrong_type,
)
from tokfold._protocols import BatchMatcher, is_matcher
from tokfold._quoting import quoted
from tokfold.bitmask import allow_only
from tokfold.errors import CancelledError, MatcherStateError, TokfoldError, VocabularyError
from tokfold.matcher import Matcher

__all__ = [
    "accept_token_batch",
    "fill_bitmask_batch",
    "fill_class_bitmask_batch",
    "rollback_batch",
]

Ended = Literal["stop", "leave", "raise"]

_CORE = operator.attrgetter("_core")

MATCHERS_PER_THREAD = 16
"""A warm mask takes a microsecond or two, as long as it takes to hand work to a thread."""


def fill_bitmask_batch(
    matchers: Sequence[BatchMatcher],
    bitmask: npt.NDArray[np.int32],
    rows: Sequence[int] | None = None,
    threads: int | None = None,
    *,
    ended: Ended = "stop",
) -> npt.NDArray[np.bool_]:
    """Write the rows of many matchers, without the GIL.

    Args:
        matchers: the matchers, over vocabularies of one size; none twice. Those of a
            :class:`tokfold.mask_store.MaskStore`, and a :class:`tokfold.chart_gpu.DeviceMatcher`,
            may be among them; then all are filled one by one.
        bitmask: int32, C-contiguous, shape ``(rows, ceil(V / 32))``; a torch tensor on the CPU is
            taken too.
        rows: the row of each matcher; by default 0, 1, 2 and so on.
        threads: how many to use, that of the caller among them, so that 0 is as 1; by default one
            for each 16 matchers, at most one for each CPU.
        ended: what becomes of the row of a text that has ended. ``"stop"``: it allows the stop
            tokens of its matcher alone. ``"leave"``: nothing is written into it, and the answer is
            False. ``"raise"``: the call raises :class:`MatcherStateError`.

    Returns:
        bool, shape ``(len(matchers),)``: False where every token is allowed.

    Raises:
        TokfoldError: as :meth:`Matcher.fill_bitmask`, for the first matcher that does; ``row`` of
            the error, with which its message begins, is its row. Rows then mean nothing.
        VocabularyError: a text has ended, ``ended="stop"``, and its matcher has no stop token.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile('root ::= "a" "b"', vocabulary)
        >>> matchers = [tokfold.Matcher(compiled) for _ in range(2)]
        >>> matchers[1].accept_token(0)
        True
        >>> bitmask = tokfold.allocate_bitmask(2, len(vocabulary))
        >>> tokfold.fill_bitmask_batch(matchers, bitmask)
        array([ True,  True])
        >>> [f"{row:04b}" for row in bitmask[:, 0]]
        ['0101', '0010']
    """
    return _filled(matchers, bitmask, rows, threads, False, ended)


def fill_class_bitmask_batch(
    matchers: Sequence[BatchMatcher],
    bitmask: npt.NDArray[np.int32],
    rows: Sequence[int] | None = None,
    threads: int | None = None,
    *,
    ended: Ended = "stop",
) -> npt.NDArray[np.bool_]:
    """Write the rows of token classes of many matchers, without the GIL.

    Args:
        matchers: the matchers, of grammars with as many classes; none twice.
        bitmask: int32, C-contiguous, shape ``(rows, ceil(C / 32))`` for ``C`` classes.
        rows: as for :func:`fill_bitmask_batch`.
        threads: as there.
        ended: as there, by the classes of stop tokens.

    Returns:
        As there.

    Raises:
        TokfoldError: as :meth:`Matcher.fill_class_bitmask`, for the first matcher that does, with
            its ``row`` as there. Rows then mean nothing.
        VocabularyError: as for :func:`fill_bitmask_batch`.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile("root ::= [ab]+", vocabulary, classes="now")
        >>> matchers = [tokfold.Matcher(compiled) for _ in range(2)]
        >>> bitmask = tokfold.allocate_bitmask(2, len(compiled.classes))
        >>> tokfold.fill_class_bitmask_batch(matchers, bitmask)
        array([ True,  True])
    """
    return _filled(matchers, bitmask, rows, threads, True, ended)


def _filled(
    matchers: Sequence[BatchMatcher],
    bitmask: npt.NDArray[np.int32],
    rows: Sequence[int] | None,
    threads: int | None,
    classes: bool,
    ended: Ended,
) -> npt.NDArray[np.bool_]:
    _check_many(matchers)
    if not is_one_of(ended, get_args(Ended)):
        raise ValueError(f"ended must be 'stop', 'leave' or 'raise', not {quoted(ended)}")
    tensor = shared(bitmask)
    bitmask = bitmask if tensor is None else tensor
    places = None if rows is None else whole_numbers("rows", rows)
    if places is not None:
        if len(places) != len(matchers):
            raise ValueError(f"{len(matchers)} matchers, but {len(places)} rows")
        for place in places:
            if not 0 <= place < 1 << 63:
                raise ValueError(f"the bitmask has no row {quoted(place)}")
    if not _are_ours(matchers):
        fills = [_filler(matcher, classes) for matcher in matchers]
        said = [
            _said(matcher, fill, bitmask, index if places is None else places[index])
            for index, (matcher, fill) in enumerate(zip(matchers, fills, strict=True))
        ]
        return _settled(matchers, said, bitmask, places, classes, ended)
    count = _threads(threads, len(matchers))
    try:
        cores = list(map(_CORE, matchers))
        try:
            found = _core.fill_batch(cores, bitmask, places, count, classes)
        except TokfoldError:  # which row it is, and whether its text has just ended
            each = _core.fill_batch_each(cores, bitmask, places, count, classes)
            found = _settled(matchers, each, bitmask, places, classes, ended)
        if not classes:
            for index, matcher in enumerate(matchers):
                if matcher._has_no_end and found[index]:
                    matcher._check_end(bitmask, index if places is None else places[index])
        return found
    except TypeError as error:
        raise bitmask_error(bitmask, error) from None


def accept_token_batch(
    matchers: Sequence[BatchMatcher],
    token_ids: Sequence[int],
    threads: int | None = None,
    *,
    ended: Literal["leave", "raise"] = "leave",
) -> npt.NDArray[np.bool_]:
    """Read a token with each of many matchers, without the GIL.

    Args:
        matchers: the matchers; none twice.
        token_ids: the token of each.
        threads: as for :func:`fill_bitmask_batch`.
        ended: what becomes of a text that has ended. ``"leave"``: its matcher stays as it is,
            whatever the token, which may be padding of any number, and the answer is False.
            ``"raise"``: the call raises :class:`MatcherStateError`.

    Returns:
        bool, shape ``(len(matchers),)``: False where the token cannot follow, and that matcher is
        as it was.

    Raises:
        TokfoldError: as :meth:`Matcher.accept_token`, for the first matcher that does; ``row`` of
            the error, with which its message begins, is its place in ``matchers``. No matcher has
            moved.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile('root ::= "a"+', vocabulary)
        >>> matchers = [tokfold.Matcher(compiled) for _ in range(3)]
        >>> tokfold.accept_token_batch(matchers, [0, 1, 0]).tolist()
        [True, False, True]
    """
    if not is_one_of(ended, ("leave", "raise")):
        raise ValueError(f"ended must be 'leave' or 'raise', not {quoted(ended)}")
    _check_many(matchers)
    ids = whole_numbers("token_ids", token_ids)
    if len(ids) != len(matchers):
        raise ValueError(f"{len(matchers)} matchers, but {len(ids)} tokens")
    count = _threads(threads, len(matchers))
    if _are_ours(matchers):
        try:
            return _core.accept_batch(list(map(_CORE, matchers)), ids, count)
        except (OverflowError, TokfoldError):  # whose row it is, is found below
            if len(set(map(id, matchers))) < len(matchers):
                raise
        going_on = [i for i, m in enumerate(matchers) if ended == "raise" or not m.is_terminated]
        if len(going_on) < len(matchers):  # the threads are for those that have not ended
            cores = [matchers[index]._core for index in going_on]
            with contextlib.suppress(OverflowError, TokfoldError):
                taken = np.zeros(len(matchers), dtype=np.bool_)
                tokens = [ids[index] for index in going_on]
                taken[going_on] = _core.accept_batch(cores, tokens, count)
                return taken
    return _accepted_one_by_one(matchers, ids, ended == "leave")


def rollback_batch(
    matchers: Sequence[BatchMatcher], counts: Sequence[int], threads: int | None = None
) -> None:
    """Take back steps of each of many matchers, without the GIL.

    Args:
        matchers: the matchers; none twice.
        counts: the number of steps of each.
        threads: as for :func:`fill_bitmask_batch`.

    Raises:
        MatcherStateError: one has fewer steps; no matcher has moved.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile('root ::= "a"+', vocabulary)
        >>> matchers = [tokfold.Matcher(compiled) for _ in range(2)]
        >>> accepted = tokfold.accept_token_batch(matchers, [0, 0])
        >>> tokfold.rollback_batch(matchers, [1, 0])
        >>> [matcher.text for matcher in matchers]
        [b'', b'a']
    """
    _check_many(matchers)
    steps = whole_numbers("counts", counts)
    if len(steps) != len(matchers):
        raise ValueError(f"{len(matchers)} matchers, but {len(steps)} counts")
    for row, (matcher, count) in enumerate(zip(matchers, steps, strict=True)):
        if count < 0:
            raise ValueError(f"row {row}: count must be 0 or more, not {quoted(count)}")
        if not is_matcher(matcher):
            raise wrong_type("each of the matchers", "a tokfold.Matcher", matcher)
        if count > matcher.num_steps:
            error = MatcherStateError(
                f"{quoted(count)} steps cannot be taken back: {matcher.num_steps} were accepted"
            )
            raise of_row(error, row)
    if not _are_ours(matchers):
        for matcher, count in zip(matchers, steps, strict=True):
            matcher.rollback(count)
        return
    cores = list(map(_CORE, matchers))
    _core.rollback_batch(cores, steps, _threads(threads, len(matchers)))


def _accepted_one_by_one(
    matchers: Sequence[BatchMatcher], ids: list[int], leave_ended: bool
) -> npt.NDArray[np.bool_]:
    """Read a token with each; where one raises, those before it take theirs back."""
    have_ended = [leave_ended and matcher.is_terminated for matcher in matchers]
    taken: list[bool] = []
    try:
        for matcher, token_id, has_ended in zip(matchers, ids, have_ended, strict=True):
            taken.append(not has_ended and matcher.accept_token(token_id))
    except BaseException as error:
        for matcher, was_taken in zip(matchers, taken, strict=False):
            if was_taken:
                matcher.rollback(1)
        if isinstance(error, TokfoldError):
            of_row(error, len(taken))
        raise
    return np.array(taken, dtype=np.bool_)


def _said(
    matcher: BatchMatcher,
    fill: Callable[[npt.NDArray[np.int32], int], bool],
    bitmask: npt.NDArray[np.int32],
    row: int,
) -> bool | TokfoldError:
    """What filling a row says, or the error of the text in it."""
    try:
        return fill(bitmask, row)
    except TokfoldError as error:
        return error


def _settled(
    matchers: Sequence[BatchMatcher],
    said: Sequence[bool | TokfoldError],
    bitmask: npt.NDArray[np.int32],
    places: Sequence[int] | None,
    classes: bool,
    ended: Ended,
) -> npt.NDArray[np.bool_]:
    """What was said of each row, where texts that have ended are settled and errors have a row."""
    found = np.zeros(len(said), dtype=np.bool_)
    for index, (matcher, answer) in enumerate(zip(matchers, said, strict=True)):
        row = index if places is None else places[index]
        if not isinstance(answer, TokfoldError):
            found[index] = answer
        elif ended == "raise" or not matcher.is_terminated:
            if isinstance(answer, CancelledError) and isinstance(matcher, Matcher):
                matcher._name_resume(answer)
            raise of_row(answer, row)
        elif ended == "stop":
            found[index] = True
            _only_stops(matcher, bitmask, row, classes)
    return found


def _only_stops(
    matcher: BatchMatcher, bitmask: npt.NDArray[np.int32], row: int, classes: bool
) -> None:
    """Allow the stop tokens of a matcher alone, or their classes."""
    ids = list(matcher.stop_token_ids)
    if not ids:
        error = VocabularyError(
            "the text has ended, and no stop token can hold its row: give the vocabulary "
            "stop_token_ids, or pass ended='leave' and leave the row out"
        )
        raise of_row(error, row)
    if classes:
        folded = matcher.compiled.classes if isinstance(matcher, Matcher) else None
        if folded is None:
            missing = MatcherStateError("there are no token classes (yet): wait() for them")
            raise of_row(missing, row)
        ids = [int(folded.class_of[token_id]) for token_id in ids]
    allow_only(bitmask if bitmask.ndim == 1 else bitmask[row], ids)


def _filler(matcher: BatchMatcher, classes: bool) -> Callable[[npt.NDArray[np.int32], int], bool]:
    if not classes:
        return matcher.fill_bitmask
    if isinstance(matcher, Matcher):
        return matcher.fill_class_bitmask
    raise MatcherStateError(
        f"a {type(matcher).__name__} has no token classes: fill its row by "
        "tokfold.fill_bitmask_batch"
    )


def _check_many(matchers: Sequence[BatchMatcher]) -> None:
    if not isinstance(matchers, Sequence):
        raise wrong_type("matchers", "a sequence of tokfold.Matcher", matchers)


def _are_ours(matchers: Sequence[BatchMatcher]) -> TypeGuard[Sequence[Matcher]]:
    """Whether the core reads for all of them; asked once for each kind."""
    if all(issubclass(kind, Matcher) for kind in set(map(type, matchers))):
        return True
    rows: dict[int, int] = {}
    for row, matcher in enumerate(matchers):
        if not is_matcher(matcher):
            raise wrong_type("each of the matchers", "a tokfold.Matcher", matcher)
        first = rows.setdefault(id(matcher), row)
        if first != row:
            error = MatcherStateError(
                f"this matcher stands in row {first} too, and none may be twice in one batch: fork "
                "it"
            )
            raise of_row(error, row)
    return False


@functools.cache
def _cpus() -> int:
    """Asked once: it reads a file, which takes longer than a mask."""
    return os.cpu_count() or 1


def _threads(threads: int | None, count: int) -> int:
    if threads is None:
        wanted = -(-count // MATCHERS_PER_THREAD)
        return wanted if wanted < 2 else min(_cpus(), wanted)
    check_number("threads", threads, 0)
    return min(threads, 1 << 16)
