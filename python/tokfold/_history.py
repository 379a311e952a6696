"""What the logits processors share: matchers of both engines by one set of names, and a sequence.

Libraries tell a logits processor all tokens of a sequence, and not which of them are prompt.
"""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from tokfold._checks import checked_count, is_one_of, wrong_type
from tokfold._protocols import BatchMatcher, ByteReader, RowMatcher, is_matcher
from tokfold._quoting import quoted
from tokfold._token_checks import unwritable
from tokfold.bitmask import allocate_bitmask
from tokfold.engine import CompiledGrammar
from tokfold.errors import (
    ArgumentTypeError,
    FallbackWarning,
    MatcherStateError,
    StopTokenWarning,
    TokfoldError,
    UnsupportedGrammarError,
    VocabularyError,
)
from tokfold.matcher import NO_BUDGET, NO_END, Matcher
from tokfold.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokfold import xgrammar as txgr
    from tokfold.mask_store import MaskStore

logger = logging.getLogger("tokfold")

AnyCompiled: TypeAlias = "CompiledGrammar | txgr.CompiledGrammar | MaskStore | BatchMatcher"
"""A matcher stands for the texts that go on from where it is, each in a fork."""

OnError = Literal["raise", "end", "unconstrained"]

MAX_LEFT = 4_096
"""Sequences that were left open and are remembered: their hashes."""


class _EndlessMatcher(Matcher):
    """A matcher that raises where it would warn that nothing can end its text."""

    __slots__ = ()

    def _check_end(self, bitmask: npt.NDArray[np.int32], row: int) -> None:
        words = bitmask if bitmask.ndim == 1 else bitmask[row]
        if not words.any() and self.is_accepting:
            raise VocabularyError(NO_END)


class _XGrammarMatcher:
    """A matcher of :mod:`tokfold.xgrammar` by the names of our own."""

    __slots__ = ("_matcher",)

    def __init__(self, matcher: txgr.GrammarMatcher) -> None:
        self._matcher = matcher

    def fill_bitmask(self, bitmask: npt.NDArray[np.int32], row: int = 0) -> bool:
        return self._matcher.fill_next_token_bitmask(bitmask, row)

    def accept_token(self, token_id: int) -> bool:
        return self._matcher.accept_token(token_id)

    def rollback(self, count: int = 1) -> None:
        self._matcher.rollback(count)

    def fork(self) -> RowMatcher:
        return _XGrammarMatcher(self._matcher.fork())

    @property
    def is_terminated(self) -> bool:
        return self._matcher.is_terminated()


def _store(compiled: object) -> MaskStore | None:
    """A mask store, if it is one."""
    from tokfold.mask_store import MaskStore

    return compiled if isinstance(compiled, MaskStore) else None


def checked_beginning(
    max_tokens: int | None, prefix: str, prefer_end: int
) -> tuple[int | None, str, int]:
    """What :func:`begin` is given beside a grammar, if it can be kept."""
    if not isinstance(prefix, str):
        raise wrong_type("prefix", "a str", prefix)
    most = None if max_tokens is None else checked_count(max_tokens, "max_tokens")
    last = checked_count(prefer_end, "prefer_end")
    if last and most is None:
        raise ValueError(NO_BUDGET)
    return most, prefix, last


def begin(
    compiled: AnyCompiled, max_tokens: int | None = None, prefix: str = "", prefer_end: int = 0
) -> RowMatcher:
    """A matcher behind a prefix, of whichever engine, that may take so many tokens from there.

    Where nothing can end the text, an empty mask is an error: a model cannot choose of it.
    """
    is_counted = isinstance(compiled, CompiledGrammar)
    is_later = bool(prefix) and is_counted
    matcher = _begin(compiled, *((None, 0) if is_later else (max_tokens, prefer_end)))
    if not prefix:
        return matcher
    if not isinstance(matcher, ByteReader):
        raise UnsupportedGrammarError(
            "prefix: XGrammar's matchers do not take it here; compile the grammar with "
            "tokfold.compile",
            "prefix",
            1,
            1,
        )
    try:
        data = prefix.encode()
    except UnicodeEncodeError as error:
        raise MatcherStateError(
            f"no text of the grammar begins with the prefix {quoted(prefix)}: character "
            f"{error.start + 1} is a lone surrogate, which is no character; decode it as UTF-8"
        ) from error
    if not matcher.accept_bytes(data):
        read = 0
        while read < len(data) and matcher.accept_bytes(data[read : read + 1]):
            read += 1
        raise MatcherStateError(
            f"no text of the grammar begins with the prefix {quoted(prefix)}: byte {read + 1} of "
            f"{len(data)} cannot be; pass what of the prompt belongs to the text, or none of it"
        )
    if isinstance(matcher, Matcher):
        matcher._limit_tokens(max_tokens, prefer_end)
    return matcher


def _begin(compiled: AnyCompiled, max_tokens: int | None, prefer_end: int) -> RowMatcher:
    if isinstance(compiled, CompiledGrammar):
        has_end = bool(compiled.vocabulary.stop_token_ids)
        kind = Matcher if has_end else _EndlessMatcher
        return kind(compiled, max_tokens=max_tokens, prefer_end=prefer_end)
    store = _store(compiled)
    if max_tokens is not None:
        reader = "XGrammar" if store is None else "a mask store"
        if is_matcher(compiled):
            reader = f"a {type(compiled).__name__}"
        why = (
            f"{reader} does not count what a text still needs; compile the grammar with "
            "tokfold.compile"
        )
        if isinstance(compiled, Matcher):
            why = (
                "the text of a matcher has the budget that it was begun with, if any: pass "
                "Matcher(compiled, max_tokens=..., prefer_end=...), or what was compiled"
            )
        raise UnsupportedGrammarError(f"max_tokens: {why}", "max_tokens", 1, 1)
    if store is not None:
        from tokfold.mask_store import StoreMatcher

        return StoreMatcher(store)
    if is_matcher(compiled):
        return compiled.fork()
    from tokfold import xgrammar as txgr

    return _XGrammarMatcher(txgr.GrammarMatcher(cast("txgr.CompiledGrammar", compiled)))


def _vocabulary(compiled: AnyCompiled) -> Vocabulary | None:
    """The vocabulary; None of what XGrammar compiled, and of what is no grammar."""
    is_ours = isinstance(compiled, CompiledGrammar) or is_matcher(compiled) or _store(compiled)
    return cast("CompiledGrammar", compiled).vocabulary if is_ours else None


def vocab_size(compiled: AnyCompiled) -> int:
    """The number of tokens; refuses what is no compiled grammar."""
    vocabulary = _vocabulary(compiled)
    if vocabulary is not None:
        return len(vocabulary)
    if not hasattr(compiled, "fallback_reason"):  # what XGrammar's own lacks
        raise ArgumentTypeError(
            "a grammar must be a tokfold.CompiledGrammar or a tokfold.xgrammar.CompiledGrammar, or "
            f"a tokfold.mask_store.MaskStore, not {type(compiled).__module__}."
            f"{type(compiled).__qualname__}; tokfold.compile makes one"
        )
    return int(cast("txgr.CompiledGrammar", compiled).tokenizer_info.vocab_size)


def stop_token_ids(compiled: AnyCompiled) -> tuple[int, ...]:
    """The tokens that end a text."""
    if is_matcher(compiled):
        return compiled.stop_token_ids
    vocabulary = _vocabulary(compiled)
    if vocabulary is not None:
        return vocabulary.stop_token_ids
    return tuple(cast("txgr.CompiledGrammar", compiled).tokenizer_info.stop_token_ids)


def check_width(width: int, size: int) -> None:
    """Refuse scores with fewer columns than the vocabulary has tokens."""
    if width < size:
        raise VocabularyError(
            f"the scores have {width} columns, and the vocabulary of the grammar {size} tokens: "
            "the grammar was compiled for another tokenizer, or the model has fewer ids than the "
            "tokenizer; in that case pass the width of the model, "
            f"Vocabulary.from_huggingface(tokenizer, size={width})"
        )


def checked_on_error(on_error: OnError, stops: tuple[int, ...]) -> OnError:
    """The option, if it is one and can be kept."""
    if not is_one_of(on_error, get_args(OnError)):
        raise ValueError(
            f"on_error must be 'raise', 'end' or 'unconstrained', not {quoted(on_error)}"
        )
    if on_error == "end" and not stops:
        raise ValueError(
            "on_error='end' needs a stop token, and the vocabulary has none: give it "
            "stop_token_ids, or pass on_error='raise'"
        )
    return on_error


def is_failure(error: TokfoldError) -> bool:
    """Whether the grammar cannot go on in this text; else the processor is used wrongly."""
    return not isinstance(error, MatcherStateError)


def report(error: TokfoldError, on_error: OnError, row: int) -> None:
    """Say that a row fails, and what becomes of it."""
    if on_error == "end":
        logger.error("row %d ends here, since its grammar fails: %s", row, error)
        return
    warnings.warn(
        f"row {row} goes on without its grammar, which fails: {error}",
        FallbackWarning,
        stacklevel=4,
    )


def warn_of_no_stop(stacklevel: int) -> None:
    """Say that a text has ended by itself, and no token can stop the library."""
    warnings.warn(
        "a text has ended by itself (terminate_without_stop_token), and a further token is asked "
        "for, which no stop token can be: generation goes on without the grammar. Give the "
        "vocabulary the tokens at which generation stops, stop_token_ids=[...]: behind its end a "
        "text allows these alone",
        StopTokenWarning,
        stacklevel=stacklevel + 1,
    )


class Sequence:
    """One sequence, prompt and all, followed from call to call.

    A call goes on with the sequence when its tokens are some of those of the call before, the
    whole prompt at least, and at most one more; otherwise it begins a new one. So drafts that are
    taken back are followed, and a second generation is noticed. Sequences that take turns are
    noticed when an earlier one comes back.

    A token or mask that passes a limit, or a mask that allows nothing, makes the sequence *failed*,
    unless ``on_error`` is to raise it: from then on stop tokens alone are allowed, or all tokens.
    Going back before it takes the failure back.

    Behind a text that ended by itself, without a stop token, stop tokens alone are allowed until
    one comes.
    """

    def __init__(
        self,
        compiled: AnyCompiled,
        on_error: OnError = "raise",
        max_tokens: int | None = None,
        prefix: str = "",
        prefer_end: int = 0,
    ) -> None:
        self._compiled = compiled
        self._beginning = checked_beginning(max_tokens, prefix, prefer_end)
        if self._beginning != (None, "", 0):
            begin(compiled, *self._beginning)  # refuses now what the first call would
        self._on_error = on_error
        self._stops = stop_token_ids(compiled)
        self._vocab_size = vocab_size(compiled)
        self._bitmask = allocate_bitmask(1, self._vocab_size)
        self._has_warned = False
        self.reset()

    def reset(self) -> None:
        """Take the next call for the first of a generation, whatever its tokens."""
        self._matcher: RowMatcher | None = None
        self._seen: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._prompt_length = 0
        self._accepted: list[int] = []
        self.failure: TokfoldError | None = None
        self._failed: list[int] = []  # what was generated where it failed
        # Hashes of what was followed and left before it ended, the oldest first.
        self._left: dict[int, None] = {}

    @property
    def is_open(self) -> bool:
        """Whether a text was begun and has not ended."""
        return self._matcher is not None and not self.has_ended

    @property
    def has_ended(self) -> bool:
        """Whether a text was begun and has ended."""
        if self._matcher is None:
            return False
        if self.failure is not None:  # the matcher has not read the stop token
            after = self._seen[self._prompt_length + len(self._failed) :]
            return bool(np.isin(after, self._stops).any())
        return self._matcher.is_terminated

    def jumps(self, tokens: npt.ArrayLike) -> bool:
        """Whether tokens go on from those of the last call by more than one, in an open text."""
        found, length = np.asarray(tokens), len(self._seen)
        return (
            self.is_open and len(found) > length + 1 and np.array_equal(found[:length], self._seen)
        )

    def follow(self, tokens: npt.ArrayLike) -> None:
        """Go to where the sequence is now.

        Args:
            tokens: integers, shape ``(length,)``: the prompt and what was generated.

        Raises:
            ValueError: the tokens are not those of one sequence.
            MatcherStateError: a token had been masked, or the sequence was left for another one.
        """
        found = np.array(tokens, dtype=np.int64)
        if found.ndim != 1:
            raise ValueError(f"tokens must have the shape (length,), not {found.shape}")
        if not np.array_equal(found[: len(self._seen)], self._seen) and self.is_open:
            self._left[hash(self._seen.tobytes())] = None
            if len(self._left) > MAX_LEFT:
                del self._left[next(iter(self._left))]
        if not self._continues(found):
            if hash(found[:-1].tobytes()) in self._left:
                raise MatcherStateError(
                    "a sequence goes on that was left for another one: each sequence needs a "
                    "processor of its own. If this is the prompt of a new generation, call reset() "
                    "before it."
                )
            self._matcher, self._accepted = begin(self._compiled, *self._beginning), []
            self._prompt_length = len(found)
            self.failure = None
        self._seen = found
        self._advance(found[self._prompt_length :].tolist())

    def allowed(self, width: int) -> npt.NDArray[np.bool_] | None:
        """Which tokens may come next; None where nothing is masked.

        Args:
            width: the number of scores, at least the size of the vocabulary; those past the
                vocabulary are masked.

        Returns:
            bool, shape ``(width,)``; None also behind the stop token of a text.

        Warns:
            StopTokenWarning: the text has ended by itself, and there is no stop token.
        """
        check_width(width, self._vocab_size)
        if self._matcher is None:
            return None
        if self._matcher.is_terminated:
            if not self._waits_for_a_stop():
                return None
            if self._stops:
                return np.isin(np.arange(width), self._stops)
            if not self._has_warned:
                self._has_warned = True
                warn_of_no_stop(3)
            return None
        restricted = True
        if self.failure is None:
            try:
                restricted = self._matcher.fill_bitmask(self._bitmask)
                if restricted and not self._bitmask.any():
                    raise unwritable(self._matcher)
            except TokfoldError as error:
                self._fail(error, list(self._accepted))
        if self.failure is not None:
            if self._on_error == "unconstrained" or self.has_ended:
                return None
            return np.isin(np.arange(width), self._stops)
        known = self._vocab_size
        if not restricted and known == width:
            return None
        if not restricted:
            self._bitmask[:] = -1
        bits = np.unpackbits(self._bitmask.view(np.uint8)[0], count=known, bitorder="little")
        mask = bits.view(np.bool_)
        return mask if known == width else np.pad(mask, (0, width - known))

    def _waits_for_a_stop(self) -> bool:
        """Whether the text, which has ended, ended by itself, and no stop token has come since."""
        last = max(0, len(self._accepted) - 1)
        return not np.isin(self._seen[self._prompt_length + last :], self._stops).any()

    def _continues(self, found: npt.NDArray[np.int64]) -> bool:
        if self._matcher is None or len(found) < self._prompt_length:
            return False
        known = found[: max(len(found) - 1, self._prompt_length)]
        return len(known) <= len(self._seen) and np.array_equal(known, self._seen[: len(known)])

    def _advance(self, generated: list[int]) -> None:
        """Take the matcher back to what is shared with its text, and on to the end."""
        assert self._matcher is not None
        accepted = self._accepted
        if generated[: len(accepted)] != accepted:
            pairs = zip(accepted, generated, strict=False)
            differ = (at for at, (ours, theirs) in enumerate(pairs) if ours != theirs)
            shared = next(differ, min(len(accepted), len(generated)))
            self._matcher.rollback(len(accepted) - shared)
            del accepted[shared:]
        if generated[: len(self._failed)] != self._failed:
            self.failure = None
        if self.failure is not None:
            return
        for token in generated[len(accepted) :]:
            if self._matcher.is_terminated:
                return
            try:
                taken = 0 <= token < self._vocab_size and self._matcher.accept_token(token)
            except TokfoldError as error:
                self._fail(error, [*accepted, token])
                return
            if not taken:
                raise MatcherStateError(
                    f"token {token}, generated at place {len(accepted)}, had been masked. Is there "
                    "another logits processor after this one? If the token is of the prompt of a "
                    "new generation, call reset() before it."
                )
            accepted.append(token)

    def _fail(self, error: TokfoldError, generated: list[int]) -> None:
        if self._on_error == "raise" or not is_failure(error):
            raise error
        self.failure, self._failed = error, generated
        report(error, self._on_error, 0)


class SequenceProcessor:
    """What processors of one sequence share: the options, and what became of the text."""

    def __init__(
        self,
        compiled_grammar: AnyCompiled,
        *,
        on_error: OnError = "end",
        max_tokens: int | None = None,
        prefer_end: int = 0,
        prefix: str = "",
    ) -> None:
        vocab_size(compiled_grammar)  # refuses what is no compiled grammar
        self._stops = stop_token_ids(compiled_grammar)
        checked_on_error(on_error, self._stops)
        self._sequence = Sequence(compiled_grammar, on_error, max_tokens, prefix, prefer_end)

    @property
    def failures(self) -> dict[int, TokfoldError]:
        """Why the grammar of this text, row 0, could not go on; empty where it could."""
        failure = self._sequence.failure
        return {} if failure is None else {0: failure}

    def reset(self) -> None:
        """Take the next call for the first of a generation."""
        self._sequence.reset()
