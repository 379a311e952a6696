"""A logits processor for ``transformers``: every row of a batch stays within its grammar.

::

    compiled = tokfold.compile(grammar, vocabulary)
    model.generate(**inputs, logits_processor=[GrammarLogitsProcessor(compiled)])

It takes grammars compiled for tokfold's own engine and those of :mod:`tokfold.xgrammar`; XGrammar
is needed for the latter only.

The state of a row is a function of its grammar and of what was generated in it. So rows are
followed by their history, not by their place: between two calls each row looks for the previous
row that shares the longest generated prefix with it, takes that row's matcher (or a fork), rolls
it back to the prefix and accepts the rest. This is right for greedy search, sampling, several
sequences for one prompt, beams that are reordered, dropped and doubled, and drafts that are taken
back (assisted generation). It is not made for methods that ask for scores of rows which are never
generated in (contrastive search).

What stands in ``input_ids`` at the first call is prompt, left padding included; a grammar sees
only what is generated after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from tokfold._extras import require

require("torch", "transformers", "tokfold.transformers")
require("transformers", "transformers", "tokfold.transformers")

import torch  # noqa: E402 - after the check that names the extra
import transformers  # noqa: E402

from tokfold._history import (  # noqa: E402
    AnyCompiled,
    AnyMatcher,
    OnError,
    begin,
    checked_on_error,
    is_failure,
    report,
    stop_token_ids,
    vocab_size,
)
from tokfold.batch import fill_bitmask_batch  # noqa: E402
from tokfold.bitmask import allocate_bitmask  # noqa: E402
from tokfold.errors import MatcherStateError, TokfoldError  # noqa: E402
from tokfold.matcher import Matcher  # noqa: E402
from tokfold.torch import apply_token_bitmask_, plain  # noqa: E402
from tokfold.torch.checks import DTYPES  # noqa: E402

__all__ = ["GrammarLogitsProcessor"]

History = npt.NDArray[np.int64]


@dataclass
class _Row:
    """One row: its matcher, and how many of the generated tokens that has accepted.

    A row that has finished, or was given a token that its grammar refuses, accepts no more, so
    ``accepted`` may be less than what was generated. ``failed_after`` is how many of them it was
    given when a limit was passed: going back before that takes the failure back.
    """

    matcher: AnyMatcher
    grammar: int
    accepted: int
    refused: bool
    failure: TokfoldError | None = None
    failed_after: int = 0

    @property
    def is_open(self) -> bool:
        return not self.refused and self.failure is None and not self.matcher.is_terminated


class GrammarLogitsProcessor(transformers.LogitsProcessor):
    """Masks what a grammar does not allow next.

    A processor may be used for one ``generate()`` after another. A call goes on with a generation
    when it has as many rows as the call before and the same prompt, and each row, but for its last
    token, is how some row of the call before began; otherwise it begins a new one. Only one case is
    beyond this rule: a new prompt that is the old prompt, the beginning of what was generated after
    it, and one token more; call :meth:`reset` before it.

    Rows that have finished are left as they are: ``generate()`` pads them. Scores past the
    vocabulary of the grammar are masked too.

    Args:
        compiled_grammar: one for all rows, or a list: with ``n`` grammars for ``r`` rows, each
            stands for ``r / n`` rows that follow one another, as ``generate()`` lays out beams
            and ``num_return_sequences``. Both engines may be in one list.
        dead_rows: what to do where a row was given a token that had been masked. ``"raise"``: it
            is a mistake, as of another processor after this one. ``"leave"``: the row is lost and
            left as it is; beam search does this when fewer tokens are allowed than there are
            beams (the score of such a beam is -inf), assisted generation with drafts.
        on_error: what to do where a token or mask of a row passes a limit; the other rows go on
            as ever. ``"end"``: the row ends; only its stop tokens are allowed from then on, the
            reason is logged and in :attr:`failures`. ``"raise"``: the call raises it, for all rows.
            ``"unconstrained"``: a warning, and the row goes on as the model has it, which is no
            longer of the grammar.

    Raises:
        ValueError: an empty list, or vocabularies of different sizes; an option that is none, or
            ``on_error="end"`` where there is no stop token.
        TypeError: something else than a compiled grammar.
    """

    def __init__(
        self,
        compiled_grammar: AnyCompiled | Sequence[AnyCompiled],
        *,
        dead_rows: Literal["raise", "leave"] = "raise",
        on_error: OnError = "end",
    ) -> None:
        if dead_rows not in ("raise", "leave"):
            raise ValueError(f"dead_rows must be 'raise' or 'leave', not {dead_rows!r}")
        grammars = (
            list(compiled_grammar) if isinstance(compiled_grammar, Iterable) else [compiled_grammar]
        )
        if not grammars:
            raise ValueError("There must be at least one grammar")
        self._grammars = grammars
        sizes = [vocab_size(grammar) for grammar in grammars]
        self._vocab_size = sizes[0]
        if len(set(sizes)) > 1:
            raise ValueError("The grammars were compiled for vocabularies of different sizes")
        self._dead_rows = dead_rows
        self._stops = [stop_token_ids(grammar) for grammar in grammars]
        for stops in self._stops:
            checked_on_error(on_error, stops)
        self._on_error: OnError = on_error
        self.reset()

    @property
    def failures(self) -> dict[int, TokfoldError]:
        """Why the grammars of rows could not go on, by row; of this generation."""
        rows = enumerate(self._rows)
        return {index: row.failure for index, row in rows if row.failure is not None}

    def reset(self) -> None:
        """Take the next call for the first of a generation."""
        self._rows: list[_Row] = []
        self._prompt: torch.Tensor | None = None
        self._history: History = np.zeros((0, 0), dtype=np.int64)
        self._bitmask: npt.NDArray[np.int32] | None = None

    @torch.no_grad()
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Mask the scores of the next token.

        Args:
            input_ids: int64, shape ``(rows, length)``: prompt and what was generated.
            scores: floating, shape ``(rows, width)``; written to.

        Returns:
            ``scores``, masked.

        Raises:
            ValueError: the number of rows is no multiple of the number of grammars.
            MatcherStateError: a row was given a token that its grammar refuses, where
                ``dead_rows="raise"``.
            TokfoldError: a limit was passed, where ``on_error="raise"``.
        """
        history = self._continued(input_ids)
        if history is None:
            self._begin(input_ids)
        else:
            self._rows = self._followed(history)
            self._history = history.copy()
        return self._masked(scores)

    # ---------------------------------------------------------------- history

    def _continued(self, input_ids: torch.Tensor) -> History | None:
        """What was generated, where the call goes on with the generation of the call before."""
        prompt = self._prompt
        if prompt is None or input_ids.shape[0] != prompt.shape[0]:
            return None
        generated = input_ids.shape[1] - prompt.shape[1]
        if not 0 < generated <= self._history.shape[1] + 1:
            return None
        if not torch.equal(input_ids[:, : prompt.shape[1]], prompt):
            return None
        history: History = input_ids[:, prompt.shape[1] :].cpu().numpy()
        # Whatever a row is, but for its last token it was told by some row before.
        known = {row.tobytes() for row in np.ascontiguousarray(self._history[:, : generated - 1])}
        told = np.ascontiguousarray(history[:, :-1])
        return history if all(row.tobytes() in known for row in told) else None

    def _begin(self, input_ids: torch.Tensor) -> None:
        count = input_ids.shape[0]
        if count % len(self._grammars):
            raise ValueError(
                f"{count} rows cannot be shared out among {len(self._grammars)} grammars"
            )
        self._prompt = input_ids.clone()
        self._history = np.zeros((count, 0), dtype=np.int64)
        self._bitmask = allocate_bitmask(count, self._vocab_size)
        share = count // len(self._grammars)
        self._rows = [
            _Row(begin(self._grammars[row // share]), row // share, 0, False)
            for row in range(count)
        ]

    def _followed(self, history: History) -> list[_Row]:
        """The rows for a new history, from those of the previous one."""
        previous = self._history
        shared = min(previous.shape[1], history.shape[1])
        parents: list[tuple[int, int]] = []
        for index, tokens in enumerate(history):
            if np.array_equal(previous[index, :shared], tokens[:shared]):
                parents.append((index, shared))
                continue
            agree = previous[:, :shared] == tokens[:shared]
            lengths = np.where(agree.all(axis=1), shared, agree.argmin(axis=1))
            # what another grammar has accepted says nothing about this one
            lengths[[row.grammar != self._rows[index].grammar for row in self._rows]] = -1
            parent = int(lengths.argmax())
            parents.append((parent, int(lengths[parent])))
        uses = [0] * len(self._rows)
        for parent, _ in parents:
            uses[parent] += 1
        rows = []
        for index, (parent, length) in enumerate(parents):
            row = self._rows[parent]
            uses[parent] -= 1
            if uses[parent]:  # somebody else takes this matcher yet
                row = replace(row, matcher=row.matcher.fork())
            rows.append(self._advanced(row, index, history[index], length))
        return rows

    def _advanced(self, row: _Row, index: int, tokens: History, length: int) -> _Row:
        """Take a row back to its first ``length`` tokens and on to the end of ``tokens``."""
        if length < row.failed_after:
            row.failure, row.failed_after = None, 0
        if row.accepted > length:
            row.matcher.rollback(row.accepted - length)
            row.accepted = length
            row.refused = False
        elif row.refused and row.accepted == length:
            row.refused = False  # it was the token after these that was refused
        while row.accepted < len(tokens) and row.is_open:
            token = int(tokens[row.accepted])
            try:
                taken = row.matcher.accept_token(token)
            except TokfoldError as error:
                self._fail(row, index, error, row.accepted + 1)
                break
            if taken:
                row.accepted += 1
            elif self._dead_rows == "raise":
                raise MatcherStateError(
                    f"row {index}: token {token}, generated at place {row.accepted}, had been "
                    "masked. Is there another logits processor after this one? For beam search "
                    'and assisted generation pass dead_rows="leave".'
                )
            else:
                row.refused = True
        return row

    # ------------------------------------------------------------------ masks

    def _masked(self, scores: torch.Tensor) -> torch.Tensor:
        bitmask = self._bitmask
        assert bitmask is not None
        open_rows = [index for index, row in enumerate(self._rows) if row.is_open]
        ours = {i: m for i in open_rows if isinstance(m := self._rows[i].matcher, Matcher)}
        try:
            fill_bitmask_batch(list(ours.values()), bitmask, list(ours))
        except TokfoldError as error:
            if self._on_error == "raise" or not is_failure(error):
                raise
            ours = {}  # row by row: the others are not to fail with it
        for index in open_rows:
            if index not in ours:
                self._fill(bitmask, index)
        masked = [index for index in open_rows if self._rows[index].failure is None]
        if self._on_error == "end":
            for index in self.failures:
                self._only_stops(bitmask[index], self._rows[index])
            masked = sorted([*masked, *self.failures])
        if not masked:
            return scores
        # A model may have fewer columns than the tokenizer has tokens.
        width = min(self._vocab_size, scores.shape[1])
        masks = torch.from_numpy(bitmask[masked, : -(-width // 32)]).to(scores.device)
        if scores.dtype in DTYPES and scores.stride(-1) == 1:
            return apply_token_bitmask_(scores, masks, width, masked)
        rows = torch.tensor(masked, device=scores.device)
        plain.apply_tokens(scores, masks, width, rows)
        return scores

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int) -> None:
        row = self._rows[index]
        try:
            if not row.matcher.fill_bitmask(bitmask, index):
                bitmask[index] = -1
        except TokfoldError as error:
            self._fail(row, index, error, row.accepted)

    def _fail(self, row: _Row, index: int, error: TokfoldError, after: int) -> None:
        if self._on_error == "raise" or not is_failure(error):
            raise error
        row.failure, row.failed_after = error, after
        report(error, self._on_error, index)

    def _only_stops(self, bits: npt.NDArray[np.int32], row: _Row) -> None:
        bits[:] = 0
        words = bits.view(np.uint32)
        for token_id in self._stops[row.grammar]:
            words[token_id >> 5] |= np.uint32(1 << (token_id & 31))
