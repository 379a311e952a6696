"""Masks of the next step, made while the model computes its logits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

import numpy as np
import numpy.typing as npt
import torch

from tokfold._checks import check_number, of_row, whole_number, wrong_type
from tokfold._protocols import BatchMatcher, is_matcher
from tokfold._quoting import quoted
from tokfold.batch import (
    accept_token_batch,
    fill_bitmask_batch,
    fill_class_bitmask_batch,
    rollback_batch,
)
from tokfold.bitmask import allocate_bitmask
from tokfold.errors import ArgumentTypeError, MatcherStateError, TokfoldError
from tokfold.matcher import Matcher
from tokfold.torch.checks import check_logits, check_tensor, listed_numbers
from tokfold.torch.fold import Fold
from tokfold.torch.logits import apply_token_bitmask_
from tokfold.torch.table import MaskTable

__all__ = ["NextMasks"]


class NextMasks:
    """Masks for a batch of texts, filled in a thread of its own while the model works.

    What a mask costs is then hidden behind the model: a step takes ``max(model, masks)`` and what
    it takes to hand over. The thread works without the GIL::

        with tokfold.torch.NextMasks(matchers, fold=fold) as masks:
            masks.begin()                        # for the first token
            while True:
                logits = masks.apply_(model(tokens))  # meanwhile masks are filled
                if not masks.rows:
                    break                        # all texts have ended
                tokens = sample(logits)
                masks.begin(tokens)              # accept, and fill for the next step

    Texts that have ended are left as they are: their rows are not masked, their tokens not read.

    Attributes:
        matchers: one for each row of the logits.
        rows: the rows of texts that had not ended when masks were last waited for.
        fill_seconds: what accepting and filling took, all steps together.
        visible_seconds: how long :meth:`apply_` waited for it: what was not hidden.
    """

    def __init__(
        self,
        matchers: Sequence[BatchMatcher],
        *,
        fold: Fold | None = None,
        threads: int | None = None,
    ) -> None:
        """Make the thread.

        Args:
            matchers: one for each row of the logits, over one vocabulary; used by nobody else
                between :meth:`begin` and :meth:`apply_`. Those of a mask store too,
                and those on a device.
            fold: where all matchers are of one grammar with classes: masks go to the device as
                class masks. Without, as token masks.
            threads: for the masks, as for :func:`tokfold.fill_bitmask_batch`.

        Raises:
            ArgumentTypeError: an argument has another type; the message names it.
            ValueError: there are no matchers, or they do not go together or with the fold.
        """
        if not isinstance(matchers, Sequence):
            raise wrong_type("matchers", "a sequence of tokfold.Matcher", matchers)
        for matcher in matchers:
            if not is_matcher(matcher):
                raise wrong_type("each of the matchers", "a tokfold.Matcher", matcher)
        if fold is not None and not isinstance(fold, Fold):
            raise wrong_type("fold", "a tokfold.torch.Fold or None", fold)
        if threads is not None:
            check_number("threads", threads, 0, "; None leaves it open")
        if not matchers:
            raise ValueError("there must be at least one matcher")
        self.matchers = list(matchers)
        self.rows: list[int] = []
        self.fill_seconds = self.visible_seconds = 0.0
        self._fold = fold
        self._threads = threads
        self._size = len(self.matchers[0].vocabulary)
        if any(len(matcher.vocabulary) != self._size for matcher in self.matchers):
            raise ValueError("the matchers are for vocabularies of different sizes")
        if fold is not None:
            ours = [matcher for matcher in self.matchers if isinstance(matcher, Matcher)]
            if len(ours) < len(self.matchers):
                raise ValueError(
                    "a matcher of a mask store, or on a device, fills no class masks: leave out "
                    "fold=..., and masks go to the logits as token masks"
                )
            for compiled in {id(m.compiled): m.compiled for m in ours}.values():
                if not fold.is_of(compiled):
                    raise ValueError(
                        "a matcher is of another grammar than the fold, or has no classes"
                    )
        count = len(self.matchers)
        self._table = None if fold is None else MaskTable(fold, max_rows=count)
        self._masks: npt.NDArray[np.int32] = (
            allocate_bitmask(count, self._size) if fold is None else fold.allocate(count)
        )
        self._executor = ThreadPoolExecutor(1, "tokfold-next-masks")
        self._pending: Future[list[int]] | None = None
        self._is_closed = False

    def begin(self, token_ids: Sequence[int] | torch.Tensor | None = None) -> None:
        """Read a token in each text, and fill the masks of the next step; returns at once.

        Args:
            token_ids: the token of each row; those of texts that have ended do not matter. ``None``
                reads none.

        Raises:
            MatcherStateError: the masks of the step before were not asked for; behind
                :meth:`close`.
            ArgumentTypeError: the tokens are no whole numbers.
            ValueError: there are not as many tokens as texts.
        """
        if self._is_closed:
            raise MatcherStateError("begin() after close(): make another NextMasks")
        if self._pending is not None:
            raise MatcherStateError("begin() was called already: call apply_() or wait() first")
        tokens = None if token_ids is None else _listed(token_ids)
        if tokens is not None and len(tokens) != len(self.matchers):
            raise ValueError(f"{len(self.matchers)} texts, but {len(tokens)} tokens")
        self._pending = self._executor.submit(self._work, tokens)

    def wait(self) -> list[int]:
        """Wait for the masks; the rows that they are for: those of texts that have not ended.

        Raises:
            MatcherStateError: nothing was begun, or a token is one that had been masked: then
                no text has moved.
        """
        if self._pending is None:
            raise MatcherStateError("there are no masks: call begin() first")
        pending = self._pending
        began = time.perf_counter()
        try:
            self.rows = pending.result()
            return self.rows
        finally:
            if pending.done():  # else Ctrl-C ended the wait: the thread is at work
                self._pending = None
            self.visible_seconds += time.perf_counter() - began

    def apply_(self, logits: torch.Tensor) -> torch.Tensor:
        """Wait for the masks, and write -inf over the logits of tokens that may not come next.

        Args:
            logits: shape ``(rows, width)``, as for :func:`apply_class_bitmask_`. Where they are
                refused, the masks are still there for others.

        Returns:
            ``logits``.

        Raises:
            As :meth:`wait` and :func:`apply_class_bitmask_`.
        """
        self._check(logits)
        rows = self.wait()
        if not rows:
            return logits
        masks = self._masks[: len(rows)]
        if self._table is not None:
            return self._table.apply_(logits, masks, rows)
        on_device = torch.from_numpy(masks).to(logits.device, non_blocking=True)
        return apply_token_bitmask_(logits, on_device, self._size, rows)

    def _check(self, logits: torch.Tensor) -> None:
        """Refuse logits that the masks cannot go onto, while the masks are not taken yet."""
        check_tensor(logits)
        check_logits(logits, self._size, logits.device if self._fold is None else self._fold.device)
        if logits.ndim != 2:
            raise ValueError("logits must have the shape (rows, width): logits[None] has one row")
        if logits.shape[0] != len(self.matchers):
            raise ValueError(
                f"logits have {logits.shape[0]} rows, and there are {len(self.matchers)} matchers: "
                "each row has a matcher, also where its text has ended"
            )

    def _work(self, tokens: Sequence[int] | None) -> list[int]:
        began = time.perf_counter()
        rows = [i for i, matcher in enumerate(self.matchers) if not matcher.is_terminated]
        if tokens is not None:
            matchers = [self.matchers[row] for row in rows]
            try:
                taken = accept_token_batch(matchers, [tokens[row] for row in rows], self._threads)
            except TokfoldError as error:
                raise _whose(error, rows) from None
            if not taken.all():
                moved = [matcher for matcher, took in zip(matchers, taken, strict=True) if took]
                rollback_batch(moved, [1] * len(moved))
                row = rows[int(np.argmin(taken))]
                masked = MatcherStateError(
                    f"token {tokens[row]} had been masked, and no row has read its token"
                )
                raise of_row(masked, row)
            rows = [row for row in rows if not self.matchers[row].is_terminated]
        matchers = [self.matchers[row] for row in rows]
        fill = fill_bitmask_batch if self._fold is None else fill_class_bitmask_batch
        try:
            fill(matchers, self._masks, threads=self._threads)
        except TokfoldError as error:
            raise _whose(error, rows) from None
        self.fill_seconds += time.perf_counter() - began
        return rows

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._executor.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _whose(error: TokfoldError, rows: Sequence[int]) -> TokfoldError:
    """The error of a batch of some rows, which names the row among all."""
    return error if error.row is None else of_row(error, rows[error.row])


def _listed(token_ids: object) -> list[int]:
    """Tokens, copied: the caller may write the next ones into the same list."""
    if isinstance(token_ids, torch.Tensor):
        return listed_numbers(token_ids, "token_ids")
    has_order = not isinstance(token_ids, str | bytes | Mapping | Set)
    is_number = isinstance(token_ids, np.ndarray) and token_ids.ndim == 0
    if not has_order or is_number or not isinstance(token_ids, Iterable):
        raise wrong_type("token_ids", "a sequence of ids or a torch.Tensor", token_ids)
    tokens = []
    for row, token in enumerate(token_ids):
        number = whole_number(token)
        if number is None:
            kind = type(token).__name__
            error = ArgumentTypeError(
                f"a token must be its id, a whole number, not {kind} ({quoted(token)})"
            )
            raise of_row(error, row)
        tokens.append(number)
    return tokens
