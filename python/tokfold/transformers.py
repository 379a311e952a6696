"""A logits processor for ``transformers``: every row of a batch stays within its grammar.

::

    constrain = tokfold.transformers.processor(model, tokenizer, {"type": "object"})
    model.generate(**inputs, logits_processor=[constrain])

:class:`GrammarLogitsProcessor` takes what was compiled: grammars for tokfold's own engine, those of
:mod:`tokfold.xgrammar` (which alone needs XGrammar), and mask stores.

The state of a row is a function of its grammar and of what was generated in it. So rows are
followed by their history, not by their place: between two calls each row looks for the previous
row that shares the longest generated prefix with it, takes that row's matcher (or a fork), rolls
it back to the prefix and accepts the rest. This is right for greedy search, sampling, several
sequences for one prompt, beams that are reordered, dropped and doubled, and drafts that are taken
back (assisted generation). It is not made for methods that ask for scores of rows which are never
generated in (contrastive search).

What stands in ``input_ids`` at the first call is prompt, left padding included; a grammar sees
only what is generated after it. :func:`processor` compares the tokens at which the model stops with
those that end a text, and warns or raises where they differ.
"""

from __future__ import annotations

import contextlib
import math
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tokfold._checks import is_one_of, of_row, whole_number, wrong_type
from tokfold._extras import require
from tokfold._quoting import quoted

require("torch", "transformers", "tokfold.transformers")
require("transformers", "transformers", "tokfold.transformers")

import torch  # noqa: E402 - after the check that names the extra
import transformers  # noqa: E402

from tokfold._history import (  # noqa: E402
    MAX_LEFT,
    AnyCompiled,
    OnError,
    begin,
    check_width,
    checked_beginning,
    checked_on_error,
    is_failure,
    report,
    stop_token_ids,
    vocab_size,
    warn_of_no_stop,
)
from tokfold._loaders.checks import checked_ids  # noqa: E402
from tokfold._names import with_our_options  # noqa: E402
from tokfold._protocols import RowMatcher  # noqa: E402
from tokfold._source_kinds import Source, kind_of  # noqa: E402
from tokfold._token_checks import unwritable  # noqa: E402
from tokfold.batch import accept_token_batch, fill_bitmask_batch  # noqa: E402
from tokfold.bitmask import allow_only  # noqa: E402
from tokfold.engine import compile as tokfold_compile  # noqa: E402
from tokfold.errors import (  # noqa: E402
    ArgumentTypeError,
    MatcherStateError,
    StopTokenWarning,
    TokfoldError,
    VocabularyError,
)
from tokfold.limits import Limits  # noqa: E402
from tokfold.matcher import Matcher  # noqa: E402
from tokfold.torch import apply_token_bitmask_, plain  # noqa: E402
from tokfold.torch.backends import chosen_backend  # noqa: E402
from tokfold.torch.checks import DTYPES  # noqa: E402
from tokfold.vocabulary import Vocabulary  # noqa: E402

__all__ = ["GrammarLogitsProcessor", "processor"]

History = npt.NDArray[np.int64]

FLAGS = "min_new_tokens, suppress_tokens, bad_words_ids, no_repeat_ngram_size"
"""Options of ``generate()`` that mask tokens before any processor of the caller."""

ON_HOST = 1 << 17
"""Ids of prompts and texts, of all rows together, up to which they are looked at on the host."""

Ids: TypeAlias = "History | torch.Tensor"
"""Those of all rows: on the host, or where there are too many for that on their device."""

_vocabularies: weakref.WeakKeyDictionary[Any, dict[object, Vocabulary]] = (
    weakref.WeakKeyDictionary()
)
"""By tokenizer, and by what of it may change."""


@with_our_options("processor")
def processor(
    model: Any,  # noqa: ANN401 - any model that generates
    tokenizer: Any,  # noqa: ANN401 - of transformers
    grammar: Source | AnyCompiled | Sequence[AnyCompiled],
    *,
    stop_token_ids: int | Iterable[int] | None = None,
    limits: Limits | None = None,
    dead_rows: Literal["raise", "leave"] = "raise",
    on_error: OnError = "end",
    max_tokens: int | None = None,
    prefer_end: int = 0,
    prefix: str = "",
) -> GrammarLogitsProcessor:
    """Make the logits processor of a model and what it is to write; nothing else is needed.

    The vocabulary is read once for a tokenizer, with the width of the model. The text ends with the
    tokens at which ``model.generate()`` stops: ``eos_token_id`` of its generation config.

    Args:
        model: what ``generate()`` is called on.
        tokenizer: the tokenizer of the model, fast or slow.
        grammar: as for :func:`tokfold.compile`: a JSON Schema as a dict, a pydantic model or
            another type, grammar text, a list of texts to choose from, a structural tag, a
            :class:`tokfold.Grammar`; or what was compiled, or a list of that, as for
            :class:`GrammarLogitsProcessor`.
        stop_token_ids: the tokens that end the text, where ``generate()`` is called with an
            ``eos_token_id`` of its own.
        limits: as for :func:`tokfold.compile`.
        dead_rows: as for :class:`GrammarLogitsProcessor`.
        on_error: as there.
        max_tokens: as there: the ``max_new_tokens`` of ``generate()``, so that no text is cut.
        prefer_end: as there: how many of the last tokens begin nothing new.
        prefix: as there: the end of the prompt that belongs to the text, as ``'{"name": '``.

    Raises:
        VocabularyError: nothing says which token ends a text, or the tokenizer cannot be read, or
            what was compiled is for more tokens than the model has.
        ArgumentTypeError: ``model`` has no config with a ``vocab_size``.
        TokfoldError: as :func:`tokfold.compile`.

    Warns:
        StopTokenWarning: what was compiled ends with a token at which the model does not stop.

    Example:
        >>> from tokfold.transformers import processor  # doctest: +SKIP
        >>> constrain = processor(model, tokenizer, ["yes", "no"])  # doctest: +SKIP
        >>> model.generate(**inputs, logits_processor=[constrain])  # doctest: +SKIP
    """
    width = _width(model)
    if stop_token_ids is None:
        ends = _stops(model)
    else:
        given = stop_token_ids
        if isinstance(given, Iterable) and not isinstance(given, str):
            given = dict.fromkeys(given)
        ends = [*checked_ids(given, width, "stop_token_ids")]
    if _is_compiled(grammar):
        compiled: Any = grammar
        for one in compiled if isinstance(compiled, list | tuple) else [compiled]:
            check_width(width, vocab_size(one))
            _compare(ends, one, stacklevel=4)
    else:
        source: Any = grammar
        kind_of(source)  # before the vocabulary, which takes longer
        if not ends:
            raise VocabularyError(
                "nothing says which token ends a text: model.generation_config.eos_token_id is not "
                "set, so generate() would go on behind the text. Set it "
                f"({_eos_of(tokenizer)}), or pass stop_token_ids=[...] here and eos_token_id=... "
                "to generate()"
            )
        compiled = tokfold_compile(source, _vocabulary(tokenizer, width, ends), limits)
    made = GrammarLogitsProcessor(
        compiled,
        dead_rows=dead_rows,
        on_error=on_error,
        max_tokens=max_tokens,
        prefer_end=prefer_end,
        prefix=prefix,
    )
    made._ends = frozenset((*ends, *_stops(model)))
    return made


def _is_compiled(grammar: object) -> bool:
    """Whether something was compiled, or a list whose first entry was."""
    if isinstance(grammar, list | tuple):
        return bool(grammar) and _is_compiled(grammar[0])
    try:
        vocab_size(cast("AnyCompiled", grammar))
    except TypeError:
        return False
    return True


def _width(model: Any) -> int:  # noqa: ANN401
    """The number of logits."""
    config = getattr(model, "config", None)
    text = getattr(config, "get_text_config", None)
    if callable(text):
        config = text()
    width = whole_number(getattr(config, "vocab_size", None))
    if width is None:
        raise ArgumentTypeError(
            "model must be a model of transformers, whose config has a vocab_size, not "
            f"{type(model).__name__}"
        )
    return width


def _stops(model: Any) -> list[int]:  # noqa: ANN401
    """The tokens at which ``generate()`` stops: none where its generation config says none."""
    config = getattr(model, "generation_config", None)
    if config is None:
        config = getattr(model, "config", None)
    if config is None:
        raise wrong_type("model", "a model of transformers", model)
    found = getattr(config, "eos_token_id", None)
    if isinstance(found, torch.Tensor):
        found = found.tolist()
    if found is None:
        return []
    return sorted({*found} if isinstance(found, list | tuple | set) else {int(found)})


def _eos_of(tokenizer: Any) -> str:  # noqa: ANN401
    eos = getattr(tokenizer, "eos_token_id", None)
    return "the tokenizer has none either" if eos is None else f"the tokenizer's is {eos}"


def _vocabulary(tokenizer: Any, width: int, ends: list[int]) -> Vocabulary:  # noqa: ANN401
    """The vocabulary of a tokenizer, read once while nothing of it changes."""

    def read() -> Vocabulary:
        return Vocabulary.from_huggingface(tokenizer, width, ends)

    try:
        known = _vocabularies.setdefault(tokenizer, {})
        added = sorted((text, i) for text, i in tokenizer.get_added_vocab().items())
        state = (width, tuple(ends), len(tokenizer), tuple(added), tuple(tokenizer.all_special_ids))
    except (TypeError, AttributeError):  # no weak references, or no tokenizer of transformers
        return read()
    if state not in known:
        known[state] = read()
    return known[state]


def _compare(ends: Iterable[int], compiled: AnyCompiled, stacklevel: int) -> None:
    """Warn where a text ends with a token at which the model goes on."""
    ours = set(stop_token_ids(compiled))
    others = sorted(ours - set(ends))
    if others:
        listed = ", ".join(map(str, others))
        warnings.warn(
            f"the grammar was compiled with the stop tokens {sorted(ours)}, and the model stops at "
            f"{sorted(ends)}: behind {listed} the text has ended and generate() goes on, without "
            "the grammar. Read the vocabulary with stop_token_ids=model.generation_config."
            "eos_token_id (a list), or set that",
            StopTokenWarning,
            stacklevel=stacklevel + 1,
        )


@dataclass
class _Row:
    """One row: its matcher, and how many of the generated tokens that has accepted.

    A row that has finished, or was given a token that its grammar refuses, accepts no more, so
    ``accepted`` may be less than what was generated. ``failed_after`` is how many of them it was
    given when a limit was passed: going back before that takes the failure back.
    """

    matcher: RowMatcher
    grammar: int
    accepted: int
    refused: bool
    failure: TokfoldError | None = None
    failed_after: int = 0

    @property
    def is_open(self) -> bool:
        return not self.refused and self.failure is None and not self.matcher.is_terminated


def _check_tensors(ids: torch.Tensor, scores: torch.Tensor) -> None:
    """Refuse tensors that are not one row of ids and one of scores for each text."""
    if ids.ndim != 2 or scores.ndim != 2 or len(ids) != len(scores):
        raise ValueError(
            f"input_ids of shape {tuple(ids.shape)} and scores of shape {tuple(scores.shape)} do "
            "not belong together: they need (rows, length) and (rows, width), as many rows in both"
        )
    if ids.is_floating_point() or ids.is_complex() or not scores.is_floating_point():
        raise TypeError(
            f"input_ids must be whole numbers and scores floating, not {ids.dtype} and "
            f"{scores.dtype}"
        )


def _kept(ids: torch.Tensor) -> Ids:
    """A copy of ids that nobody else writes to; where they are on the host they can be read."""
    if ids.numel() > ON_HOST:
        return ids.clone()
    if ids.device.type != "cuda":
        copied: History = np.array(ids.cpu().numpy())
        return copied
    there = torch.empty(ids.shape, dtype=ids.dtype, pin_memory=True)  # one step of the bus
    found: History = there.copy_(ids).numpy()
    return found


def _on_host(ids: Ids) -> History:
    if not isinstance(ids, torch.Tensor):
        return ids
    found: History = ids.cpu().numpy()
    return found


def _are_equal(ours: Ids, theirs: Ids) -> bool:
    """Whether ids are the same; those of a device are compared there."""
    if isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor):
        return torch.equal(ours, theirs.to(ours.device))
    first, second = _on_host(ours), _on_host(theirs)
    return first.shape == second.shape and first.tobytes() == second.tobytes()


class _Masks:
    """Token masks on their way to the scores.

    Attributes:
        words: int32, a row for each mask.
        apply: the kernel for masks of all rows, if there is one: what it asks of its arguments
            holds in each step, and is not checked again.
    """

    def __init__(self, rows: int, size: int, device: torch.device) -> None:
        is_cuda = device.type == "cuda"
        shape = (rows, -(-size // 32))
        self._here = torch.full(shape, -1, dtype=torch.int32, pin_memory=is_cuda)
        self._there = self._here
        if device.type != "cpu":
            self._there = torch.empty_like(self._here, device=device)
        self.words: npt.NDArray[np.int32] = self._here.numpy()
        self.apply: Any = None
        if is_cuda and chosen_backend("auto", device) == "triton":
            from tokfold.torch import kernels

            self.apply = kernels.apply_tokens

    def __deepcopy__(self, memo: dict[int, Any]) -> _Masks:
        """Rows of their own: an array copied by itself would lie beside the tensor that is sent."""
        made = _Masks(self._here.shape[0], self._here.shape[1] * 32, self._there.device)
        made.words[:] = self.words
        return made

    def sent(self, count: int) -> torch.Tensor:
        """The first masks, so many, where the scores are. Waits until they are there."""
        if count == self._here.shape[0]:
            return self._there if self._there is self._here else self._there.copy_(self._here)
        there = self._there[:count]
        return there if self._there is self._here else there.copy_(self._here[:count])


class GrammarLogitsProcessor(transformers.LogitsProcessor):
    """Masks what a grammar does not allow next.

    A processor may be used for one ``generate()`` after another, and not for several at once, as
    in threads: each needs one of its own (what was compiled is shared), and a generation that goes
    on after another one has begun is refused. A call goes on with a generation when it has as many
    rows as the call before and the same prompt, and each row, but for its last token, is how some
    row of the call before began; otherwise it begins a new one. Only one case is
    beyond this rule: a new prompt that is the old prompt, the beginning of what was generated after
    it, and one token more; call :meth:`reset` before it.

    Rows that have finished are left as they are: ``generate()`` pads them, also where the model
    stops at a token that is a marker of a tag (``<|call|>``), if ``model`` is given. Scores may be
    wider than the vocabulary of the grammar, as models pad them: those past the vocabulary are
    masked too. Narrower scores are of another model, or of a vocabulary that was read without its
    size, and raise.

    A text that ends by itself, without a stop token (``terminate_without_stop_token``), allows
    behind its end the tokens alone at which the model stops, or where no ``model`` is given the
    stop tokens of its grammar.

    A model stops at the ``eos_token_id`` of its generation config, and a grammar ends its text with
    a stop token of its vocabulary. Where these differ, ``generate()`` goes on behind the end:
    :class:`tokfold.StopTokenWarning`. It is seen at once where ``model`` is given, else when it
    happens.

    Args:
        compiled_grammar: one for all rows, or a list: with ``n`` grammars for ``r`` rows, each
            stands for ``r / n`` rows that follow one another, as ``generate()`` lays out beams
            and ``num_return_sequences``. Both engines may be in one list.
        dead_rows: what to do where a row was given a token that had been masked. ``"raise"``: it
            is a mistake, as of another processor after this one. ``"leave"``: the row is lost and
            left as it is; beam search does this when fewer tokens are allowed than there are
            beams (the score of such a beam is -inf), assisted generation with drafts.
        on_error: what to do where a token or mask of a row passes a limit, or no token of the
            vocabulary spells what must come next in it; the other rows go on as ever. ``"end"``:
            the row ends; only its stop tokens are allowed from then on, the reason is logged and
            in :attr:`failures`. ``"raise"``: the call raises it, for all rows.
            ``"unconstrained"``: a warning, and the row goes on as the model has it, which is no
            longer of the grammar.
        model: whose generation config is compared with the stop tokens; not kept.
        max_tokens: the tokens that each text may take, the stop token counted: the
            ``max_new_tokens`` of ``generate()``. A token is masked when the text could not be
            completed with those that are left, so no text is cut.
        prefer_end: how many of the last of these tokens begin nothing new, as
            :class:`tokfold.Matcher` has it.
        prefix: the end of each prompt that belongs to the text: what the assistant's turn was begun
            with, as ``'{"name": '``. The grammar sees it before the first token that is generated;
            what is decoded is the rest of the text.

    Warns:
        StopTokenWarning: a stop token of a grammar is none of the model's; in a call, a text has
            ended by itself, and there is no stop token that could stop the model.

    Raises:
        ValueError: an empty list, or vocabularies of different sizes; an option that is none, or
            ``on_error="end"`` where there is no stop token.
        TypeError: something else than a compiled grammar.
        TokenBudgetError: even the shortest text takes more than ``max_tokens``.
        MatcherStateError: no text of a grammar begins with ``prefix``.
        UnsupportedGrammarError: ``max_tokens`` for a grammar that cannot be counted, as those of
            :mod:`tokfold.xgrammar`.
    """

    def __init__(
        self,
        compiled_grammar: AnyCompiled | Sequence[AnyCompiled],
        *,
        dead_rows: Literal["raise", "leave"] = "raise",
        on_error: OnError = "end",
        model: object = None,
        max_tokens: int | None = None,
        prefer_end: int = 0,
        prefix: str = "",
    ) -> None:
        if not is_one_of(dead_rows, ("raise", "leave")):
            raise ValueError(f"dead_rows must be 'raise' or 'leave', not {quoted(dead_rows)}")
        given: Any = compiled_grammar
        if isinstance(given, Mapping | str | bytes):
            vocab_size(cast("AnyCompiled", given))  # which refuses a schema and a text
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
        self._beginning = checked_beginning(max_tokens, prefix, prefer_end)
        if self._beginning != (None, "", 0):
            for grammar in grammars:
                begin(grammar, *self._beginning)  # refuses now what the first call would
        self._ends = frozenset(() if model is None else _stops(model))
        """The tokens behind which ``generate()`` pads a row, where its grammar goes on too."""
        self._has_warned = model is not None
        self._has_warned_of_no_stop = False
        if model is not None:
            for grammar in grammars:
                _compare(_stops(model), grammar, stacklevel=2)
        self.reset()

    @property
    def failures(self) -> dict[int, TokfoldError]:
        """Why the grammars of rows could not go on, by row; of this generation."""
        rows = enumerate(self._rows)
        return {index: row.failure for index, row in rows if row.failure is not None}

    def reset(self) -> None:
        """Take the next call for the first of a generation."""
        self._rows: list[_Row] = []
        self._prompt_length = 0
        self._ids: Ids | None = None  # those of the call before
        self._open: list[int] | None = None  # the rows open behind it, where it did not raise
        self._masks: _Masks | None = None
        self._closing: dict[int, tuple[int, ...]] = {}
        """The tokens that may come in rows whose texts ended by themselves and wait for a stop."""
        self._left: dict[int, None] = {}
        """Hashes of the ids of generations that were left with texts open, the oldest first."""

    @torch.no_grad()
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Mask the scores of the next token.

        Args:
            input_ids: int64, shape ``(rows, length)``: prompt and what was generated.
            scores: floating, shape ``(rows, width)``, ``width`` at least the size of the
                vocabulary; written to.

        Returns:
            ``scores``, masked.

        Raises:
            VocabularyError: there are fewer columns than tokens in the vocabulary.
            TypeError: ``input_ids`` are no whole numbers, or ``scores`` not floating.
            ValueError: they have other shapes; the number of rows is no multiple of the number of
                grammars.
            MatcherStateError: a row was given a token that its grammar refuses, where
                ``dead_rows="raise"``, or has no token left (seen on a CPU alone); or a generation
                goes on that was left for another one.
            TokfoldError: a limit was passed, or no token can follow in a row
                (:class:`UnwritableTextError`), where ``on_error="raise"``.
        """
        _check_tensors(input_ids, scores)
        check_width(scores.shape[-1], self._vocab_size)
        ids = _kept(input_ids)  # one wait for the device, instead of one for each look
        try:
            self._read(ids, scores.device)
            self._ids = ids
            self._masked(scores)
            if scores.device.type == "cpu" and self._dead_rows == "raise":
                self._check_choice(scores)
        except MatcherStateError:
            self._left[hash(_on_host(ids).tobytes())] = None  # what goes on behind it has no text
            raise
        return scores

    def _read(self, ids: Ids, device: torch.device) -> None:
        """Take the rows on to what was generated."""
        was_open, self._open = self._open, None
        if was_open is not None and self._goes_on(ids, was_open):
            self._one_token_on(ids[:, -1].tolist(), was_open)
            self._look_behind_the_end(ids)
        elif (told := self._continued(ids)) is not None:
            self._rows = self._followed(*told)
            self._look_behind_the_end(ids)
        else:
            self._leave(ids)
            self._begin(ids, device)

    def _waiting(self, ids: Ids) -> dict[int, tuple[int, ...]]:
        """What may come in rows whose texts ended by themselves, and in which no stop came since.

        Nothing where no token that the grammar knows would stop the model.
        """
        ended = [
            index
            for index, row in enumerate(self._rows)
            if row.failure is None and not row.refused and row.matcher.is_terminated
        ]
        if not ended:
            return {}
        known = tuple(sorted(end for end in self._ends if end < self._vocab_size))
        history, found = _on_host(ids[:, self._prompt_length :]), {}
        for index in ended:
            row = self._rows[index]
            stops = self._stops[row.grammar]
            tokens = map(int, history[index, max(0, row.accepted - 1) :])
            if not any(token in stops or token in self._ends for token in tokens):
                found[index] = known or stops
        return found

    def _look_behind_the_end(self, ids: Ids) -> None:
        """Warn where all texts have ended and generation goes on; with beams and drafts it may."""
        if self._has_warned or self._dead_rows == "leave":
            return
        has_ended = all(row.failure is None and row.matcher.is_terminated for row in self._rows)
        if has_ended and not self._waiting(ids):
            self._has_warned = True
            stops = sorted({stop for stops in self._stops for stop in stops})
            warnings.warn(
                f"all texts have ended, with one of the stop tokens {stops}, and a further token "
                "is asked for. Where the model's generation config has another eos_token_id, "
                "generation goes on without the grammar: read the vocabulary with "
                "stop_token_ids=[...] of the model, or use "
                "tokfold.transformers.processor(model, tokenizer, grammar). Drafts of assisted "
                'generation may reach behind the end: pass dead_rows="leave" there',
                StopTokenWarning,
                stacklevel=4,
            )

    # ---------------------------------------------------------------- history

    def _goes_on(self, ids: Ids, was_open: list[int]) -> bool:
        """Whether each row is what it was in the call before, and one token more."""
        before = self._ids
        if before is None:
            return False
        length = before.shape[1] - self._prompt_length
        return (
            all(self._rows[index].accepted == length for index in was_open)
            and ids.shape == (before.shape[0], before.shape[1] + 1)
            and _are_equal(ids[:, :-1], before)
        )

    def _continued(self, ids: Ids) -> tuple[History, History] | None:
        """What was generated at the call before and is now, where that generation goes on."""
        before = self._ids
        if before is None or ids.shape[0] != before.shape[0]:
            return None
        start = self._prompt_length
        generated = ids.shape[1] - start
        if not 0 < generated <= before.shape[1] - start + 1:
            return None
        if not _are_equal(ids[:, :start], before[:, :start]):
            return None
        history, previous = _on_host(ids[:, start:]), _on_host(before[:, start:])
        # Whatever a row is, but for its last token it was told by some row before.
        known = {row.tobytes() for row in np.ascontiguousarray(previous[:, : generated - 1])}
        told = np.ascontiguousarray(history[:, :-1])
        return (previous, history) if all(row.tobytes() in known for row in told) else None

    def _leave(self, ids: Ids) -> None:
        """Note that another generation begins, and refuse one that was left and goes on.

        A generation that was cut is left for good. One that goes on a token later takes turns with
        others, as those of two threads do, and each call would begin its text anew.
        """
        if self._ids is not None and any(row.is_open for row in self._rows):
            self._left[hash(_on_host(self._ids).tobytes())] = None
            if len(self._left) > MAX_LEFT:
                del self._left[next(iter(self._left))]
        if self._left and hash(np.ascontiguousarray(_on_host(ids)[:, :-1]).tobytes()) in self._left:
            raise MatcherStateError(
                "a generation goes on that was left for another one: each generate() that runs "
                "beside others, as in threads, needs a processor of its own. If this is the prompt "
                "of a new generation, call reset() before it."
            )

    def _begin(self, ids: Ids, device: torch.device) -> None:
        count = ids.shape[0]
        if count % len(self._grammars):
            raise ValueError(
                f"{count} rows cannot be shared out among {len(self._grammars)} grammars"
            )
        self._prompt_length = ids.shape[1]
        self._masks = _Masks(count, self._vocab_size, device)
        share = count // len(self._grammars)
        self._rows = [
            _Row(
                begin(self._grammars[row // share], *self._beginning),
                row // share,
                0,
                False,
            )
            for row in range(count)
        ]

    def _one_token_on(self, tokens: list[int], was_open: list[int]) -> None:
        """Read a token in each row: in several at once, and one by one what is not so simple."""
        rows = self._rows
        ours = {i: m for i in was_open if isinstance(m := rows[i].matcher, Matcher)}
        taken: dict[int, bool] = {}
        with contextlib.suppress(TokfoldError):  # no row has moved: below each says for itself
            if len(ours) == 1:
                taken = {index: one.accept_token(tokens[index]) for index, one in ours.items()}
            else:
                found = accept_token_batch(list(ours.values()), [tokens[index] for index in ours])
                taken = dict(zip(ours, found.tolist(), strict=True))
        for index in was_open:
            row = rows[index]
            if taken.get(index):
                row.accepted += 1
            else:
                last = np.full(row.accepted + 1, tokens[index], dtype=np.int64)
                if row.accepted and self._ids is not None:
                    last[row.accepted - 1] = int(self._ids[index, -1])
                self._advanced(row, index, last, row.accepted)

    def _followed(self, previous: History, history: History) -> list[_Row]:
        """The rows for a new history, from those of the previous one."""
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
                # A model may have more ids than the vocabulary: their scores are masked.
                taken = 0 <= token < self._vocab_size and row.matcher.accept_token(token)
            except TokfoldError as error:
                self._fail(row, index, error, row.accepted + 1)
                break
            if taken:
                row.accepted += 1
            elif self._dead_rows == "raise" and not self._is_padding(tokens, row.accepted):
                masked = MatcherStateError(
                    f"token {token}, generated at place {row.accepted}, had been masked. Is there "
                    "another logits processor after this one, or one before it that leaves none "
                    f"of the grammar's tokens ({FLAGS})? For beam search and assisted generation "
                    'pass dead_rows="leave".'
                )
                raise of_row(masked, index)
            else:
                row.refused = True
        return row

    def _is_padding(self, tokens: History, place: int) -> bool:
        """Whether a token stands behind one at which the model has stopped."""
        return place > 0 and int(tokens[place - 1]) in self._ends

    # ------------------------------------------------------------------ masks

    def _masked(self, scores: torch.Tensor) -> torch.Tensor:
        assert self._masks is not None
        assert self._ids is not None
        masks, rows = self._masks, self._rows
        ends = self._on_error == "end"
        listed = [
            i for i, row in enumerate(rows) if row.is_open or (ends and row.failure is not None)
        ]
        self._closing = {}
        if len(listed) < len(rows) and (waiting := self._waiting(self._ids)):
            self._closing = {index: stops for index, stops in waiting.items() if stops}
            listed = sorted([*listed, *self._closing])
            is_lost = len(self._closing) < len(waiting) and self._dead_rows == "raise"
            if is_lost and not self._has_warned_of_no_stop:
                self._has_warned_of_no_stop = True
                warn_of_no_stop(4)
        if not listed:
            self._open = []
            return scores
        self._fill(masks.words, listed)
        closing = self._closing
        self._open = [i for i in listed if rows[i].failure is None and i not in closing]
        # A mask for each that is listed, and for none of them where a row has just failed.
        if not ends and any(rows[index].failure is not None for index in listed):
            listed = [index if rows[index].failure is None else -1 for index in listed]
        there = masks.sent(len(listed))
        count, width = scores.shape
        is_all = len(listed) == count and listed == list(range(count))
        if scores.dtype in DTYPES and scores.stride(-1) == 1:
            fits = scores.device == there.device and scores.stride(0) >= width
            if is_all and fits and masks.apply is not None:
                masks.apply(scores, there, self._vocab_size, None)
                return scores
            places = None if is_all else listed
            return apply_token_bitmask_(scores, there, self._vocab_size, places)
        numbers = torch.tensor(listed, device=scores.device)
        plain.apply_tokens(scores, there, self._vocab_size, numbers)
        return scores

    def _check_choice(self, scores: torch.Tensor) -> None:
        """Refuse a row in which no token has a score that is left; on a device that would wait."""
        lost = (scores.amax(dim=-1) == -math.inf).nonzero().flatten().tolist()
        lost = [row for row in lost if row in (self._open or ())]
        if lost:
            error = MatcherStateError(
                "the scores of all tokens that the grammar allows are -inf. Another processor or "
                f"a flag of generate() leaves none of them ({FLAGS}): take it out, or have the "
                "grammar say it"
            )
            raise of_row(error, lost[0])

    def _fill(self, words: npt.NDArray[np.int32], listed: list[int]) -> None:
        """Write the masks of rows, one after the other: several at once, and else row by row."""
        rows = [self._rows[index] for index in listed]
        ours = {
            place: row.matcher
            for place, row in enumerate(rows)
            if row.failure is None
            and listed[place] not in self._closing
            and isinstance(row.matcher, Matcher)
        }
        try:
            if len(ours) > 1:
                fill_bitmask_batch(list(ours.values()), words, list(ours))
            else:
                ours = {}
        except TokfoldError:
            ours = {}  # row by row: each says for itself, and the others do not fail with it
        for place, (index, row) in enumerate(zip(listed, rows, strict=True)):
            if index in self._closing:
                allow_only(words[place], self._closing[index])
                continue
            if row.failure is None:
                try:
                    if place not in ours and not row.matcher.fill_bitmask(words, place):
                        words[place] = -1
                    if not words[place].any():
                        raise unwritable(row.matcher)
                except TokfoldError as error:
                    self._fail(row, index, error, row.accepted)
            if row.failure is not None:
                allow_only(words[place], self._stops[row.grammar])

    def _fail(self, row: _Row, index: int, error: TokfoldError, after: int) -> None:
        if self._on_error == "raise" or not is_failure(error):
            raise of_row(error, index)
        row.failure, row.failed_after = error, after
        report(error, self._on_error, index)
