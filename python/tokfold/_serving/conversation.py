"""One request on its way through its grammar, bounded in tokens where the text can keep to that."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._forced import whole_characters
from tokfold._token_checks import unwritable
from tokfold.batch import MATCHERS_PER_THREAD
from tokfold.bitmask import allow_only
from tokfold.engine import CompiledGrammar
from tokfold.errors import TokenBudgetError, TokfoldError
from tokfold.matcher import Matcher

logger = logging.getLogger("tokfold")


class Conversation:
    """One request on its way through its grammar; never raises where a server could not go on.

    A mask that takes more than the limits allow, or that allows nothing, makes the conversation
    *failed*: its row allows ``last_resort`` alone, and every token is refused, so that the server
    ends the request with an error. :meth:`rollback` to before that takes the failure back. The log
    has the first failure as an error; what fails after a rollback is there for debugging alone.
    No row is ever empty: a server would draw any token from it.

    Args:
        compiled: the grammar.
        stop_token_ids: those of the request, in place of the vocabulary's; those that the
            vocabulary does not have are left out, and none means the vocabulary's.
        last_resort: the tokens of the row of a failure.

    Attributes:
        max_tokens: what the request may take; its text ends within them. A text that cannot be
            ended so, because it is too long or of a grammar that is not counted, goes on without,
            from the row on that says so; taking back what stands before it, as drafts are taken
            back, gives it its budget again.
        tokens_before: those of them that the request took before the text began.
        tokens_in_doubt: those that it may have taken besides; masks leave them over, as far as the
            text can do without.
        prefer_end: how many of the last of them begin nothing new.
    """

    def __init__(
        self,
        compiled: CompiledGrammar,
        stop_token_ids: Iterable[int] | None = None,
        last_resort: Sequence[int] = (),
    ) -> None:
        size = len(compiled.vocabulary)
        stops = sorted({i for i in stop_token_ids or () if 0 <= i < size})
        self._stops = stops or None
        self._last_resort = tuple(last_resort)
        self.matcher = Matcher(compiled, stop_token_ids=self._stops)
        self._ignored = 0
        self._is_logged = False
        self.failure: str | None = None
        self.max_tokens: int | None = None
        self.tokens_before = self.tokens_in_doubt = self.prefer_end = 0
        # The steps after which the text goes on without its budget, and those after which it was
        # last seen to fit.
        self._unbounded_from: int | None = None
        self._fitted_at: int | None = None
        self._is_warned = False

    @property
    def tokens_left(self) -> int | None:
        """What the text may still take; ``None`` where nothing bounds it, or nothing can."""
        if self.max_tokens is None or self._unbounded_from is not None:
            return None
        return max(0, self.max_tokens - self.tokens_before - self.matcher.num_steps)

    @property
    def is_terminated(self) -> bool:
        """Whether the text has ended by a stop token."""
        return self.matcher.is_terminated

    def accept(self, token_ids: Sequence[int], *, fail_later: bool = False) -> bool:
        """Read tokens, all or none; what follows the end of the text is read and ignored.

        False where one cannot follow, takes more than the limits allow, or is no token; nothing has
        changed then but :attr:`failure`, which has the reason where it is the limits.

        Callers that cannot go on where a token that a mask allowed is refused say ``fail_later``: a
        token that takes more than the limits allow, and those after it, count as read then, and the
        next row and the next tokens fail.
        """
        if self.failure is not None:
            return False
        taken, error = self._take(self.matcher, token_ids)
        if error is not None:
            self._fail(error)
        is_refused = taken < len(token_ids) and not self.matcher.is_terminated
        if is_refused and (error is None or not fail_later):
            self.matcher.rollback(taken)
            return False
        self._ignored += len(token_ids) - taken
        return True

    def valid_prefix(self, token_ids: Sequence[int]) -> int:
        """How many tokens masks would allow, up to the end of the text; nothing changes."""
        if self.failure is not None or self.matcher.is_terminated:
            return 0
        bounded = self._bounded()
        taken, error = self._take(bounded or self.matcher.fork(), token_ids)
        if error is not None and bounded is not None:  # to count took too much: no failure
            logger.debug("a draft is read no further: %s", error)
        elif error is not None:
            self._log(error)
        return taken

    def _bounded(self) -> Matcher | None:
        """A fork that is held to the budget; None where there is none that can be kept."""
        left = self.tokens_left
        if left is None:
            return None
        trial = self.matcher.fork()
        try:
            trial._allow_tokens(left, self.prefer_end)
        except TokfoldError:  # the next row says so
            return None
        return trial

    @staticmethod
    def _take(matcher: Matcher, token_ids: Sequence[int]) -> tuple[int, TokfoldError | None]:
        """How many were read, and why not the next one, where it is the limits."""
        size = len(matcher.compiled.vocabulary)
        for taken, token_id in enumerate(token_ids):
            if matcher.is_terminated or not 0 <= token_id < size:
                return taken, None
            try:
                if not matcher.accept_token(token_id):
                    return taken, None
            except TokfoldError as error:
                return taken, error
        return len(token_ids), None

    def _fail(self, error: BaseException) -> None:
        self.failure = str(error)
        self._log(error)

    def _log(self, error: BaseException) -> None:
        level = logging.DEBUG if self._is_logged else logging.ERROR
        self._is_logged = True
        logger.log(level, "a request fails: %s", error)

    def rollback(self, count: int) -> None:
        """Take back the last tokens, those that were ignored included.

        Raises:
            MatcherStateError: there are fewer; nothing has changed.
        """
        ignored = min(count, self._ignored)
        self.matcher.rollback(count - ignored)
        self._ignored -= ignored
        if count > 0:
            self.failure = None
        steps = self.matcher.num_steps
        if self._unbounded_from is not None and steps < self._unbounded_from:
            self._unbounded_from = None
        if self._fitted_at is not None:
            self._fitted_at = min(self._fitted_at, steps)

    def reset(self) -> None:
        """Take back all tokens."""
        self.matcher.reset()
        self._ignored, self.failure, self.tokens_before = 0, None, 0
        self._unbounded_from = self._fitted_at = None

    def copy(self) -> Conversation:
        """One at the same place that goes its own way."""
        same = object.__new__(Conversation)
        same.__dict__.update(self.__dict__)
        same._is_logged = same._is_warned = False
        # A fork shares its memory, and the bound on it, with all forks: not from the start on.
        if self.matcher.num_steps:
            same.matcher = self.matcher.fork()
        else:
            same.matcher = Matcher(self.matcher.compiled, stop_token_ids=self._stops)
            same.failure = same._unbounded_from = None
        return same

    def fill(self, bitmask: npt.NDArray[np.int32], row: int) -> None:
        """Write the row of the next token; words past the vocabulary's become 0."""
        words = -(-len(self.matcher.compiled.vocabulary) // 32)
        if self.matcher.is_terminated:
            _allow_some(bitmask[row], self.matcher.stop_token_ids)
            return
        if self.failure is None:
            try:
                if bitmask.shape[1] == words:
                    self._fill(bitmask, row)
                else:
                    narrow = np.zeros((1, words), dtype=np.int32)
                    self._fill(narrow, 0)
                    fitting = min(words, bitmask.shape[1])
                    bitmask[row] = 0
                    bitmask[row, :fitting] = narrow[0, :fitting]
                if not _is_empty(bitmask, row):
                    return
                raise unwritable(self.matcher)
            except TokfoldError as error:
                self._fail(error)
        _allow_some(bitmask[row], self._last_resort or self.matcher.stop_token_ids)

    def _fill(self, bitmask: npt.NDArray[np.int32], row: int) -> None:
        """Write a row within the budget, if there is one that can be kept."""
        if self.tokens_left is not None:
            try:
                self.matcher.fill_bitmask(bitmask, row, tokens_left=self._tokens_of_mask())
                self._fitted_at = self.matcher.num_steps
                return
            except TokfoldError as error:  # too long, not counted, or no time to count
                self._go_on_without(error)
        self.matcher.fill_bitmask(bitmask, row)

    def _go_on_without(self, error: TokfoldError) -> None:
        """Bound the text no longer from here on, and say so, unless it is a draft's."""
        steps = self._unbounded_from = self.matcher.num_steps
        # What follows rows within the budget and does not fit, these rows do not allow.
        fitted = isinstance(error, TokenBudgetError) and self._fitted_at is not None
        is_draft = fitted and self._fitted_at != steps
        level = logging.DEBUG if is_draft or self._is_warned else logging.WARNING
        self._is_warned |= level == logging.WARNING
        what = "draft does not end within" if is_draft else "text may be cut at"
        logger.log(level, "a %s max_tokens = %d: %s", what, self.max_tokens, error)

    def _tokens_of_mask(self) -> int | None:
        """The tokens that are left; near the end those with which nothing new begins."""
        left = self.tokens_left
        if left is not None and self.tokens_in_doubt:
            least = self.matcher._tokens_to_end(max(0, left - self.tokens_in_doubt))
            left = left if least is None else min(left, least)
        if left is None or left > self.prefer_end:
            return left
        needed = self.matcher._tokens_to_end()
        return left if needed is None else min(left, needed + 1)

    def fill_failed(self, bitmask: npt.NDArray[np.int32], row: int, error: BaseException) -> None:
        """Write the row of a mask that was tried elsewhere and failed."""
        self._fail(error)
        _allow_some(bitmask[row], self._last_resort or self.matcher.stop_token_ids)

    def forced_text(self) -> str:
        """What must come next, whole characters only; empty where there is a choice."""
        if self.failure is not None or self.matcher.is_terminated:
            return ""
        try:
            return whole_characters(self.matcher.forced_bytes())
        except TokfoldError as error:
            logger.warning("no jump: %s", error)
            return ""

    def replace(self, old: Sequence[int], new: Sequence[int]) -> bool:
        """Read other tokens in place of the last ones.

        Returns:
            False where one of the new cannot follow, or there were not as many old ones; nothing
            has changed then.
        """
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        trial = self.copy()
        try:
            trial.rollback(len(old) - same)
        except TokfoldError:
            return False
        if not trial.accept(new[same:]):
            self._is_logged |= trial._is_logged
            return False
        trial._is_logged |= self._is_logged
        trial._is_warned |= self._is_warned
        self.__dict__.update(trial.__dict__)
        return True


def _is_empty(bitmask: npt.NDArray[np.int32], row: int) -> bool:
    """Whether a row allows nothing; its first word is looked at first, of which most allow some."""
    return not bitmask.item(row, 0) and not np.count_nonzero(bitmask[row])


def _allow_some(row: npt.NDArray[np.int32], ids: Iterable[int]) -> None:
    """Allow tokens alone; the first one of the row where it has none of them."""
    allow_only(row, ids)
    if not row.any():
        allow_only(row, (0,))


def fill_rows(
    conversations: Sequence[Conversation], bitmask: npt.NDArray[np.int32], rows: Sequence[int]
) -> None:
    """Write the rows of many conversations, without the GIL; as :meth:`Conversation.fill`.

    Each mask is made once: one that fails ends its own request, and the others are not made again.
    """
    pairs = list(zip(conversations, rows, strict=True))
    together = [
        (each, row)
        for each, row in pairs
        if each.failure is None
        and each.tokens_left is None
        and not each.is_terminated
        and bitmask.shape[1] == -(-len(each.matcher.compiled.vocabulary) // 32)
    ]
    if len(together) < 2:
        together = []
    else:
        cores = [each.matcher._core for each, _ in together]
        threads = min(os.cpu_count() or 1, -(-len(together) // MATCHERS_PER_THREAD))
        numbers = [row for _, row in together]
        results = _core.fill_batch_each(cores, bitmask, numbers, threads, False)
        for (each, row), result in zip(together, results, strict=True):
            if isinstance(result, BaseException):
                each.fill_failed(bitmask, row, result)
            elif _is_empty(bitmask, row):
                each.fill_failed(bitmask, row, unwritable(each.matcher))
    done = {row for _, row in together}
    for each, row in pairs:
        if row not in done:
            each.fill(bitmask, row)
