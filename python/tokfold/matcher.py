"""Matchers: one text each, on its way through a grammar.

One file of more than 600 lines: it is one class, and nearly half of its lines document its methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._checks import (
    ANY_NUMBER,
    bitmask_error,
    checked_count,
    checked_parents,
    checked_stops,
    checked_token,
    checked_tokens,
    no_bytes,
    shared,
    utf8_of,
    whole_number,
    wrong_type,
)
from tokfold._forced import written
from tokfold._names import Named, missing, with_our_options
from tokfold._quoting import quoted
from tokfold.engine import CompiledGrammar, Shortest
from tokfold.errors import (
    ArgumentTypeError,
    CancelledError,
    MatcherStateError,
    StopTokenWarning,
    TokenBudgetError,
    VocabularyError,
)
from tokfold.interrupt import Interrupt, core_of
from tokfold.prompt import HealedPrompt, heal
from tokfold.state import FOREIGN_STATE, MAX_STATE_TEXT_BYTES, MatcherState

if TYPE_CHECKING:
    from tokfold.explanation import Explanation
    from tokfold.vocabulary import Vocabulary

__all__ = ["Matcher"]

MAX_FORCED_BYTES = 4_096
MAX_CLOSING_TOKENS = 4_096

NO_BUDGET = "prefer_end counts the last tokens of max_tokens: pass that too"
NO_END = (
    "the mask is empty: the text is complete and nothing can follow it, but nothing can end it "
    "either, since the vocabulary has no stop token. Give it one, Vocabulary(..., "
    "stop_token_ids=[...]) or vocabulary.replace(stop_token_ids=[...]); or pass Matcher(compiled, "
    "terminate_without_stop_token=True), which ends the text by itself; Matcher(compiled, "
    "stop_token_ids=[]) takes the empty mask without this warning"
)
"""What is said of a text that nothing ends."""


class Matcher(metaclass=Named):
    """One text on its way through a grammar.

    A token is allowed in the mask exactly when :meth:`accept_token` would take it, which is
    exactly when the text can still be completed after it (with stop tokens: when it is complete).

    Safe between threads in this sense: a matcher that two threads use at once raises, and forks
    may be used by a thread each.

    The calls that read, undo or write masks take an ``interrupt``, a :class:`tokfold.Interrupt`:
    each raises :class:`CancelledError` or :class:`DeadlineExceededError` when it ends, also where
    it has ended before, and the matcher is as it was. The deadlines of ``limits`` count besides,
    and so does :meth:`cancel`, after which steps can still be taken back::

        matcher.accept_string(text, interrupt=tokfold.Interrupt(milliseconds=20))

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> matcher = tokfold.Matcher(tokfold.compile('root ::= "a"+ "b"', vocabulary))
        >>> bitmask = tokfold.allocate_bitmask(1, len(vocabulary))
        >>> matcher.fill_bitmask(bitmask)
        True
        >>> f"{bitmask[0, 0]:04b}"  # tokens 0 and 2
        '0101'
        >>> matcher.accept_token(2), matcher.accept_token(0)
        (True, False)
        >>> matcher.text, matcher.is_accepting
        (b'ab', True)
    """

    __slots__ = (
        "_before",
        "_core",
        "_ending",
        "_has_no_end",
        "_is_cancelled",
        "_is_restored",
        "compiled",
    )

    if not TYPE_CHECKING:  # a checker would believe that there is every name
        __getattr__ = missing

    @with_our_options("Matcher")
    def __init__(
        self,
        compiled: CompiledGrammar,
        *,
        stop_token_ids: int | Sequence[int] | None = None,
        terminate_without_stop_token: bool | None = None,
        max_tokens: int | None = None,
        prefer_end: int = 0,
    ) -> None:
        """Begin a text.

        Args:
            compiled: what :func:`tokfold.compile` made.
            stop_token_ids: stop tokens in place of the vocabulary's. A token given here ends the
                text, where it is complete, or where this token completes it: no text goes on
                behind one. Stop tokens of the vocabulary that are not given here are never
                allowed. ``[]``: nothing ends the text, and the mask of a complete one may be empty.
            terminate_without_stop_token: the text ends by itself as soon as it is complete; by
                default as :func:`tokfold.compile` was told.
            max_tokens: the tokens that the text may take, the stop token counted: a token is
                allowed exactly when the text can still be completed with those that are left. Of
                an object of many members in any order a completion writes the required ones in
                the order of the schema. Bytes read with :meth:`accept_bytes` are no tokens.
                ``None`` is no bound.
            prefer_end: the number of tokens, the last of ``max_tokens``, for which a token is
                masked if the text needs more tokens to its end after it than before. So no new
                item begins, and a string that has begun may go on.

        Raises:
            VocabularyError: a stop token is outside the vocabulary.
            TokenBudgetError: even the shortest text takes more than ``max_tokens``.
            UnsupportedGrammarError: ``max_tokens`` where only charts read the grammar, or members
                come in any order under conditions that change what is required.
            ValueError: ``max_tokens`` or ``prefer_end`` is negative, or ``prefer_end`` has no
                ``max_tokens`` to count from.
        """
        if not isinstance(compiled, CompiledGrammar):
            what = "a tokfold.CompiledGrammar, made by tokfold.compile(grammar, vocabulary)"
            raise wrong_type("compiled", what, compiled)
        stops = checked_stops(stop_token_ids, compiled.vocabulary)
        self.compiled = compiled
        self._is_cancelled = self._is_restored = False
        self._before: bytes | None = b""
        # Who passes no stop tokens means it.
        has_stops = stops is not None or compiled.vocabulary.stop_token_ids
        # What a move to another grammar keeps.
        self._ending: dict[str, Any] = {
            "stop_token_ids": stops,
            "terminate_without_stop_token": terminate_without_stop_token,
        }
        when_complete = _ends_itself(compiled, terminate_without_stop_token)
        self._has_no_end = not has_stops and not when_complete
        self._core = _core.Matcher(compiled._core, stop_ids=stops, when_complete=when_complete)
        self._limit_tokens(max_tokens, prefer_end)

    def _limit_tokens(self, max_tokens: int | None, prefer_end: int) -> None:
        """The budget of the text, from its first step on."""
        last = checked_count(prefer_end, "prefer_end")
        if max_tokens is not None:
            self._core.limit_tokens(checked_count(max_tokens, "max_tokens"), last)
        elif last:
            raise ValueError(NO_BUDGET)

    def fill_bitmask(
        self,
        bitmask: npt.NDArray[np.int32],
        row: int = 0,
        *,
        tokens_left: int | None = None,
        interrupt: Interrupt | None = None,
    ) -> bool:
        """Write which tokens may come next into a row of a bitmask.

        Args:
            bitmask: int32, C-contiguous, shape ``(rows, ceil(V / 32))`` or ``(ceil(V / 32),)``;
                bit ``j`` of word ``i`` is token ``32 * i + j``, 1 is allowed. Bits past the last
                token are 0. A torch tensor on the CPU is
                taken too.
            row: the row.
            tokens_left: the tokens that the text may still take, the one that this mask is for and
                the stop token counted: a token is allowed exactly when the text can be completed
                in time after it. Together with ``max_tokens`` the lesser counts.
            interrupt: ends the call early.

        Returns:
            False where every token is allowed and the row need not be applied.

        Raises:
            MatcherStateError: the text has ended, or another thread uses the matcher.
            TokenBudgetError: the text cannot be completed with ``tokens_left`` tokens.
            UnsupportedGrammarError: ``tokens_left`` as ``max_tokens`` of the constructor.
            LimitExceededError: this mask takes more work than ``limits`` allow; the row then means
                nothing, the matcher is as it was. Its subclass :class:`DeadlineExceededError`: it
                takes longer; the next try goes on from what this one made.
            CancelledError: another thread called :meth:`cancel`, or cancelled ``interrupt``.
            TypeError, ValueError: the bitmask has another dtype, shape or layout, or another thread
                writes into it: give each rows of its own, ``bitmask[row : row + 1]``.

        Warns:
            StopTokenWarning: the row is empty, since the text is complete and nothing can follow
                it, and nothing can end it: the vocabulary has no stop token.
        """
        if row is True or row is False:
            raise wrong_type("row", "a whole number", row)
        left = None if tokens_left is None else checked_count(tokens_left, "tokens_left")
        ends = core_of(interrupt)
        try:
            is_restricted = self._core.fill(bitmask, row, ends, left)
            if self._has_no_end and is_restricted:
                self._check_end(bitmask, row)
            return is_restricted
        except CancelledError as error:
            self._name_resume(error)
            raise
        except TypeError as error:
            tensor = shared(bitmask)
            if tensor is None:
                raise bitmask_error(bitmask, error, row) from None
            return self.fill_bitmask(tensor, row, tokens_left=tokens_left, interrupt=interrupt)
        except OverflowError:
            raise ValueError(f"the bitmask has no row {quoted(row)}") from None

    def _check_end(self, bitmask: npt.NDArray[np.int32], row: int) -> None:
        """Warn of an empty mask of a text that is complete, which no stop token can end."""
        words = bitmask if bitmask.ndim == 1 else bitmask[row]
        if not words.any() and self.is_accepting:
            warnings.warn(NO_END, StopTokenWarning, stacklevel=3)

    def fill_class_bitmask(
        self,
        bitmask: npt.NDArray[np.int32],
        row: int = 0,
        *,
        tokens_left: int | None = None,
        interrupt: Interrupt | None = None,
    ) -> bool:
        """Write which token classes may come next into a row of a bitmask.

        Classes are those of ``compiled.classes``; a token is allowed when its class is.
        :class:`tokfold.torch.Fold` unfolds such rows where the logits are.

        Args:
            bitmask: int32, C-contiguous, shape ``(rows, ceil(C / 32))`` or ``(ceil(C / 32),)`` for
                ``C`` classes.
            row: the row.
            tokens_left: as for :meth:`fill_bitmask`.
            interrupt: ends the call early.

        Returns:
            False where every token is allowed.

        Raises:
            MatcherStateError: there are no classes (yet), or a stop token of this matcher is no
                stop token of the vocabulary; as :meth:`fill_bitmask` too.
            TokenBudgetError, UnsupportedGrammarError: as :meth:`fill_bitmask`.
            LimitExceededError, CancelledError, TypeError, ValueError: as :meth:`fill_bitmask`.
        """
        if row is True or row is False:
            raise wrong_type("row", "a whole number", row)
        left = None if tokens_left is None else checked_count(tokens_left, "tokens_left")
        ends = core_of(interrupt)
        try:
            return self._core.fill_classes(bitmask, row, ends, left)
        except CancelledError as error:
            self._name_resume(error)
            raise
        except TypeError as error:
            tensor = shared(bitmask)
            if tensor is None:
                raise bitmask_error(bitmask, error, row) from None
            return self.fill_class_bitmask(
                tensor, row, tokens_left=tokens_left, interrupt=interrupt
            )
        except OverflowError:
            raise ValueError(f"the bitmask has no row {quoted(row)}") from None

    def accept_token(self, token_id: int, *, interrupt: Interrupt | None = None) -> bool:
        """Read a token; False where it cannot follow, and nothing has changed.

        Raises:
            VocabularyError: the vocabulary has no such token.
            MatcherStateError: the text has ended, or another thread uses the matcher.
            LimitExceededError: it takes more work or memory than ``limits`` allow, or longer
                (:class:`DeadlineExceededError`); nothing has changed.
            CancelledError: another thread called :meth:`cancel`, or cancelled ``interrupt``;
                nothing has changed.
        """
        if token_id is True or token_id is False:
            raise wrong_type("a token", "its id, a whole number", token_id)
        try:
            if interrupt is None:
                return self._core.accept_token(token_id)
            return self._core.accept_token(token_id, core_of(interrupt))
        except CancelledError as error:
            self._name_resume(error)
            raise
        except OverflowError:
            return self._core.accept_token(checked_token(token_id, self.vocabulary))
        except (TypeError, VocabularyError):
            checked_token(token_id, self.vocabulary)  # says which ids there are
            raise

    def accept_bytes(self, data: bytes, *, interrupt: Interrupt | None = None) -> bool:
        """Read bytes as one step, however they would be tokenized; as :meth:`accept_token`.

        Raises:
            ArgumentTypeError: ``data`` is no bytes; a str is for :meth:`accept_string`.
            As :meth:`accept_token`.
        """
        if not isinstance(data, bytes):
            raise no_bytes(data)
        try:
            return self._core.accept_bytes(data, core_of(interrupt))
        except CancelledError as error:
            self._name_resume(error)
            raise

    def accept_string(self, text: str, *, interrupt: Interrupt | None = None) -> bool:
        """Read the UTF-8 of a text as one step; as :meth:`accept_token`.

        A text with a lone surrogate has no UTF-8, and no grammar takes it.
        """
        data = utf8_of(text)
        return data is not None and self.accept_bytes(data, interrupt=interrupt)

    def accept_tokens(self, token_ids: Sequence[int], *, interrupt: Interrupt | None = None) -> int:
        """Read the longest prefix of some tokens that can follow, each as a step; how many.

        Nothing follows where the text has ended: the call returns 0 then, and reads no token behind
        a stop token.

        Raises:
            VocabularyError, LimitExceededError, CancelledError: as :meth:`accept_token`; nothing
                has changed then.
            MatcherStateError: another thread uses the matcher.
        """
        ids = checked_tokens(token_ids, self.vocabulary)
        try:
            return self._core.accept_prefix(ids, core_of(interrupt))
        except CancelledError as error:
            self._name_resume(error)
            raise

    def fill_bitmask_draft(
        self,
        token_ids: Sequence[int],
        bitmask: npt.NDArray[np.int32],
        parents: Sequence[int] | None = None,
        *,
        classes: bool = False,
        interrupt: Interrupt | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Write the rows of all nodes of a tree of draft tokens; the matcher stays where it is.

        Row 0 is what may come next; row ``i + 1`` what may come after node ``i``. The row of a node
        that is not allowed, or that ends the text, is empty.

        Args:
            token_ids: the token of each node.
            bitmask: int32, C-contiguous, shape ``(rows, ceil(V / 32))`` with a row more than nodes.
            parents: the node before each node, which stands before it; -1 for the matcher's place.
                By default the tokens are a chain.
            classes: rows of token classes, as :meth:`fill_class_bitmask` writes them, of
                ``ceil(C / 32)`` words.
            interrupt: ends the call early.

        Returns:
            bool, shape ``(len(token_ids),)``: whether each token is allowed where it stands.

        Raises:
            VocabularyError, MatcherStateError, LimitExceededError, CancelledError: as
                :meth:`accept_token`. The rows then mean nothing.
                MatcherStateError too where a parent does not stand before its node.
            ValueError: the bitmask has too few rows, there are not as many parents as tokens, or a
                parent is below -1.
        """
        ids = checked_tokens(token_ids, self.vocabulary)
        nodes = list(range(-1, len(ids) - 1)) if parents is None else checked_parents(parents)
        ends = core_of(interrupt)
        try:
            allowed = self._core.fill_draft(nodes, ids, bitmask, classes, ends)
        except CancelledError as error:
            self._name_resume(error)
            raise
        except TypeError as error:
            tensor = shared(bitmask)
            if tensor is None:
                raise bitmask_error(bitmask, error) from None
            return self.fill_bitmask_draft(
                token_ids, tensor, parents, classes=classes, interrupt=interrupt
            )
        return np.array(allowed, dtype=np.bool_)

    def rollback(self, count: int = 1, *, interrupt: Interrupt | None = None) -> None:
        """Take back the last steps, over a stop token too.

        Of steps before the last 256 a matcher keeps only the tokens: to go back there it reads up
        to 63 of them again, which takes some 50 microseconds.

        Raises:
            MatcherStateError: there are fewer steps; nothing has changed.
            ArgumentTypeError, ValueError: ``count`` is no whole number, or negative.
            CancelledError, DeadlineExceededError: ``interrupt`` ended the call.
        """
        ends, number = core_of(interrupt), whole_number(count)
        if number is None:
            raise wrong_type("count", "a whole number", count)
        if number < 0:
            raise ValueError(f"count must be 0 or more, not {quoted(number)}")
        try:
            self._core.rollback(number, ends)
        except OverflowError:
            raise MatcherStateError(
                f"{quoted(count)} steps cannot be taken back: {self.num_steps} were accepted"
            ) from None

    def reset(self, *, interrupt: Interrupt | None = None) -> None:
        """Take back all steps; a restored matcher goes back to where it was restored.

        Raises:
            CancelledError, DeadlineExceededError: ``interrupt`` ended the call.
        """
        self._core.reset(core_of(interrupt))

    def fork(self) -> Matcher:
        """A matcher at the same place that goes its own way from here, rollback included.

        Costs the same at any place: the two share their memory.
        """
        forked = object.__new__(type(self))
        forked.compiled, forked._is_restored = self.compiled, self._is_restored
        forked._has_no_end, forked._before = self._has_no_end, self._before
        forked._ending, forked._is_cancelled = self._ending, False
        forked._core = self._core.fork()
        return forked

    __copy__ = fork

    def __deepcopy__(self, memo: dict[int, Any]) -> Matcher:
        return self.fork()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a matcher cannot be pickled: save its state, which can")

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return self._core.is_accepting()

    @property
    def is_terminated(self) -> bool:
        """Whether the text has ended: by a stop token, or by itself."""
        return self._core.is_terminated()

    @property
    def num_steps(self) -> int:
        """Steps accepted, which is how many can be rolled back."""
        return self._core.steps()

    @property
    def prefer_end(self) -> int:
        """The last tokens of the budget that may not take the text further from its end."""
        return self._core.prefer_end()

    @property
    def tokens_left(self) -> int | None:
        """The tokens that the text may still take, the stop token counted; None without a bound."""
        return self._core.tokens_left()

    def shortest(self, *, interrupt: Interrupt | None = None) -> Shortest:
        """The fewest tokens, and the fewest bytes, with which the text can end from here.

        Raises:
            UnsupportedGrammarError: as for ``max_tokens`` of the constructor.
            LimitExceededError, CancelledError: as :meth:`fill_bitmask`.
        """
        try:
            return Shortest(*self._core.shortest(core_of(interrupt)))
        except CancelledError as error:
            self._name_resume(error)
            raise

    def closing_tokens(
        self, limit: int = MAX_CLOSING_TOKENS, *, interrupt: Interrupt | None = None
    ) -> list[int]:
        """A shortest completion of the text, to be forced; the matcher stays where it is.

        Of the tokens after which the fewest follow it takes always that with the lowest id.

        Args:
            limit: the most tokens to return: a caller that wants more reads them and asks again.
            interrupt: ends the call early.

        Returns:
            Token ids, without a stop token; empty where the text may end here.

        Raises:
            TokenBudgetError: no tokens of the vocabulary complete the text.
            UnsupportedGrammarError, LimitExceededError, CancelledError: as :meth:`shortest`.
        """
        try:
            return self._core.closing_tokens(checked_count(limit, "limit"), core_of(interrupt))
        except CancelledError as error:
            self._name_resume(error)
            raise

    def closing_bytes(
        self, limit: int = MAX_CLOSING_TOKENS, *, interrupt: Interrupt | None = None
    ) -> bytes:
        """A completion of the fewest bytes: what closes a text that was cut.

        Of the bytes after which the fewest follow it takes always the lowest, but where items of
        an array must differ. The matcher stays where it is, and no budget of tokens counts here.

        Args:
            limit: the most bytes to return: a caller that wants more reads them and asks again.
            interrupt: ends the call early.

        Returns:
            The bytes; empty where the text may end here.

        Raises:
            UnsupportedGrammarError: a token must come that no bytes write; and as
                :meth:`shortest`.
            LimitExceededError, CancelledError: as :meth:`shortest`.

        Example:
            >>> vocabulary = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])
            >>> compiled = tokfold.compile({"type": "array", "items": {"const": 1}}, vocabulary)
            >>> matcher = tokfold.Matcher(compiled)
            >>> matcher.accept_string("[1, ")
            True
            >>> matcher.closing_bytes()
            b'1]'
        """
        try:
            return self._core.closing_bytes(checked_count(limit, "limit"), core_of(interrupt))
        except CancelledError as error:
            self._name_resume(error)
            raise

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary whose tokens are read."""
        return self.compiled.vocabulary

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """The stop tokens in force, ascending."""
        return tuple(self._core.stop_ids())

    @property
    def text(self) -> bytes:
        """Everything read since the start.

        It takes as long as the text is: who streams a text decodes ``vocabulary[token]`` of each
        token.

        Raises:
            MatcherStateError: the matcher was made from a state without its text.
        """
        if self._before is None:
            raise MatcherStateError(
                "the text is not known, since this matcher was made from a state that does not "
                "keep the text before it (it was left out, or has more than "
                f"{MAX_STATE_TEXT_BYTES:,} bytes): pass that text, Matcher.from_state(compiled, "
                'state, text=...), or text=b"", which counts from the state on'
            )
        since: bytes = self._core.text()
        return self._before + since if self._before else since

    @property
    def has_whole_text(self) -> bool:
        """Whether :attr:`text` is known: not where a state did not keep what came before."""
        return self._before is not None

    @property
    def expected_bytes(self) -> bytes:
        """The bytes that may come next in a text of the grammar, ascending; none after the end.

        A token that the grammar takes whole has no byte here: the mask has it.
        ``max_tokens`` does not count here: a token is allowed by its mask, and there it counts.
        """
        return b"" if self.is_terminated else self._core.expected()

    def forced_bytes(
        self, limit: int = MAX_FORCED_BYTES, *, interrupt: Interrupt | None = None
    ) -> bytes:
        """What must come next, whatever is chosen; empty where there is a choice.

        Ends where the text may end, where a byte may be chosen, or after ``limit`` bytes, and after
        256 KiB in any case: a caller that wants more reads them and asks again. The grammar forces
        these bytes: those that ``max_tokens`` alone leaves no choice for are not found.

        Raises:
            MatcherStateError: the text has ended.
            LimitExceededError: as for :meth:`accept_token`; all bytes together may take
                ``max_accept_work``.
            CancelledError: as :meth:`accept_token`.
        """
        limit = checked_count(limit, "limit")
        try:
            return self._core.forced_bytes(limit, core_of(interrupt))
        except CancelledError as error:
            self._name_resume(error)
            raise

    def _tokens_behind(self, begin: bytes) -> list[int] | None:
        """The tokens that begin so and go on with bytes that may come next.

        None where they are to be found one by one. Raises as :meth:`fill_bitmask`.
        """
        return self._core.tokens_behind(begin)

    def _tokens_behind_in_time(self, begin: bytes, most: int) -> list[tuple[int, int]] | None:
        """As :meth:`_tokens_behind`, each behind the fewest tokens that end the text then.

        The stop token counts. Tokens that need more than ``most`` are left out.
        """
        return self._core.tokens_behind_in_time(begin, min(most, ANY_NUMBER))

    def _mask_deadline(self) -> Interrupt:
        """An interrupt with the deadline of one mask, which begins now."""
        return Interrupt._of_mask(self.compiled.limits)

    def forced_tokens(
        self,
        encode: Callable[[str], Sequence[int]] | None = None,
        *,
        limit: int = MAX_FORCED_BYTES,
        interrupt: Interrupt | None = None,
    ) -> list[int]:
        """The tokens of :meth:`forced_bytes`, but for those that may merge with what follows.

        A tokenizer writes a text in its own way, and a model expects that way. The last bytes that
        are forced may be the beginning of a longer token: the tokens with these bytes are left to
        the model, whose mask allows what begins with them. A token that is taken whole, as a marker
        of a tool call may be, is in the list where nothing else may come. The matcher stays where
        it is.

        With ``max_tokens`` the list ends before the first token after which too few are left, so
        :meth:`accept_tokens` takes all of it in any case.

        Args:
            encode: the tokenizer's own, of a text, without special tokens:
                ``lambda text: tokenizer.encode(text, add_special_tokens=False)``. Where it puts a
                space before each text, as Llama 2's does, the text is encoded behind another one.
                By default each token is the longest that fits, which is not how tokenizers write
                every text.
            limit: bytes, as for :meth:`forced_bytes`; a token that is taken whole counts as one.
            interrupt: ends the call early.

        Raises:
            VocabularyError: ``encode`` writes another text; without it, no token fits.
            MatcherStateError, LimitExceededError, CancelledError: as :meth:`forced_bytes`.
        """
        limit = checked_count(limit, "limit")
        fork, within = self._core.fork(), core_of(interrupt)
        forced: list[int] = []
        try:
            while limit > 0:
                data = fork.forced_bytes(limit, within)
                ids, settled = written(self.compiled.vocabulary, data, encode)
                taken, whole = fork.accept_prefix(ids, within), None
                if taken == len(ids) and not fork.is_terminated():
                    whole = fork.forced_token(within)
                # Before a token that is taken whole nothing merges.
                forced += ids[: taken if whole is not None else min(taken, settled)]
                if whole is None or not fork.accept_prefix([whole], within):
                    break
                forced.append(whole)
                limit -= len(data) + 1
                if fork.is_terminated():
                    break
        except CancelledError as error:
            self._name_resume(error)
            raise
        return forced

    def process_prompt(self, token_ids: Sequence[int]) -> HealedPrompt:
        """Take back the last tokens of a prompt that a tokenizer may have merged with the text.

        A tokenizer cuts a prompt without what follows it, and a model expects the tokens that the
        whole would have. Tokens are taken back where a longer token begins with their last bytes
        and goes on with what may come next in the text: :mod:`tokfold.prompt` has the definition.
        The masks of the matcher that is returned allow exactly the tokens that write these bytes
        anew, and go on with the text. This matcher stays where it is.

        The first token of the prompt stays, and so do special tokens and all before them.

        It takes microseconds where a prompt ends with a quote, and some 10 ms a mask where it ends
        with a space, over 128,000 tokens. Where items are unique (``uniqueItems``), with
        ``max_tokens`` near the end, each token is tried: seconds, which the deadline of a mask
        bounds.

        The model writes what was taken back, so ``max_tokens`` counts these tokens too.

        Args:
            token_ids: the prompt, or its last tokens and one before.

        Returns:
            The tokens that are left, for the model, and the matcher of what it writes.

        Raises:
            VocabularyError: the prompt has a token that the vocabulary has not.
            MatcherStateError: the text has ended.
            TokenBudgetError: the end of the prompt and a text take more tokens than are left.
            LimitExceededError: as :meth:`accept_token`.

        Example:
            >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
            >>> matcher = tokfold.Matcher(tokfold.compile('root ::= "b"+', vocabulary))
            >>> matcher.process_prompt([1, 0])  # the model may write "ab"
            HealedPrompt(token_ids=[1], matcher=<PromptMatcher before b'a', after 0 steps>)
        """
        return heal(self.fork(), token_ids)

    def _allow_tokens(self, left: int | None, prefer_end: int | None = None) -> None:
        """Allow so many tokens more, or any number. Errors as for ``max_tokens``."""
        last = self._core.prefer_end() if prefer_end is None else min(prefer_end, ANY_NUMBER)
        self._core.limit_tokens(ANY_NUMBER, last)
        if left is not None:
            read = ANY_NUMBER - (self._core.tokens_left() or 0)
            self._core.limit_tokens(min(read + left, ANY_NUMBER), last)

    def _tokens_to_end(self, enough: int = 0) -> int | None:
        """The fewest tokens that end the text, the stop token counted, or ``enough`` if these do.

        None where no tokens of the vocabulary end it. A number ``enough`` that is far from the
        fewest costs next to nothing.
        """
        try:
            self.fork()._allow_tokens(enough)
        except TokenBudgetError as error:
            return error.needed
        return enough

    def explain(self, token_id: int) -> Explanation:
        """Why a token is allowed, or what stands against it.

        Raises:
            VocabularyError: the vocabulary has no such token.
            MatcherStateError: the text has ended.
        """
        from tokfold.explanation import explain

        # It asks several questions of one state, which no other thread moves.
        return explain(self.fork(), checked_token(token_id, self.vocabulary))

    @property
    def state(self) -> MatcherState:
        """Where the matcher stands, as a value; it keeps :attr:`text`, up to 65,536 bytes.

        Raises:
            MatcherStateError: only charts can read the grammar (see
                :attr:`CompiledGrammar.is_for_charts <tokfold.CompiledGrammar.is_for_charts>`): keep
                the text.
        """
        text = self.text if self.has_whole_text else None
        return MatcherState(self.compiled._core.fingerprint, self._core.state(), text)

    @classmethod
    def from_state(
        cls,
        compiled: CompiledGrammar,
        state: MatcherState,
        *,
        text: bytes | None = None,
        **options: Any,
    ) -> Matcher:
        """A matcher that goes on from a state, in this or another process.

        Args:
            compiled: the same grammar, compiled with the same ``engine`` by the same version.
            state: where to begin; nothing before it can be rolled back.
            text: what was read before, in place of the text that the state keeps. It is the
                beginning of :attr:`text` here, and is not read again or checked.
            options: those of the constructor; ``max_tokens`` counts from the state on.

        Raises:
            MatcherStateError: the state is of another grammar.
            TokenBudgetError, UnsupportedGrammarError: as the constructor.
        """
        budget = options.pop("max_tokens", None), options.pop("prefer_end", 0)
        if text is not None and not isinstance(text, bytes):
            raise wrong_type("text", "the bytes that were read before, matcher.text", text)
        if isinstance(state, bytes | bytearray | memoryview):
            raise ArgumentTypeError(
                "state must be a tokfold.MatcherState, not the bytes of one: call "
                "MatcherState.from_bytes(data) first"
            )
        if not isinstance(state, MatcherState):
            raise wrong_type("state", "a tokfold.MatcherState", state)
        self = cls(compiled, **options)
        if state._engine != compiled._core.fingerprint:
            raise MatcherStateError(FOREIGN_STATE)
        self._core.restore(state._data)
        self._is_restored = True
        self._before = state.text if text is None else text
        self._limit_tokens(*budget)
        return self

    def moved_to(self, compiled: CompiledGrammar, **options: Any) -> Matcher:
        """A matcher that goes on from here under a grammar with other tools.

        For a text that stands at a dispatch point: in free text, where no tag has begun. The free
        text begins anew there, so what was written before is no beginning of a new tag. This
        matcher stays as it is.

        The moved matcher keeps the options of this one: its stop tokens, its budget with the tokens
        that are left, and ``prefer_end``. An option that the call names counts instead.

        Args:
            compiled: for the same vocabulary, the same structural tag but for the tags that its
                free text calls: see :meth:`tokfold.Grammar.with_tags`.
            options: those of the constructor. ``max_tokens`` counts from here on; left out, the
                budget goes on with :attr:`tokens_left`; ``None`` is no bound.

        Returns:
            A matcher that stands there; nothing before can be rolled back.

        Raises:
            MatcherStateError: the text stands in a tag or in the beginning of one, or that grammar
                has no free text here which begins as this one does. What was written before is not
                read again: a call of before counts for no ``stop_after_first`` there.
            TokenBudgetError: the text cannot be completed under that grammar with the tokens that
                are left.
            UnsupportedGrammarError: the text has a budget, and that grammar cannot count tokens, as
                for ``max_tokens`` of the constructor.
        """
        if not isinstance(compiled, CompiledGrammar):
            raise wrong_type(
                "compiled", "a tokfold.CompiledGrammar, made by tokfold.compile", compiled
            )
        state = self._core.state_for(compiled._core)
        options = {**self._ending, **options}
        most = options.pop("max_tokens", self.tokens_left)
        last = options.pop("prefer_end", 0 if most is None else self.prefer_end)
        other = Matcher(compiled, **options)
        other._core.restore(state)
        other._is_restored = True
        other._before = self.text if self.has_whole_text else None
        other._limit_tokens(most, last)
        return other

    def cancel(self) -> None:
        """Make the call that another thread is in end with :class:`CancelledError`.

        Stays in force until :meth:`resume`; the state is as it was before that call. Until then
        :meth:`rollback`, :meth:`reset`, what reads attributes and what makes another matcher
        (:meth:`fork`, :meth:`moved_to`) still work, and no call that reads text or makes a mask.
        """
        self._is_cancelled = True
        self._core.cancel(True)

    def _name_resume(self, error: CancelledError) -> None:
        """Say in the error of a call that this matcher is cancelled, where it is."""
        if self._is_cancelled:
            error.args = (
                f"{error}: cancel() of this matcher was called, and counts until its resume()",
            )

    def resume(self) -> None:
        """Take back :meth:`cancel`."""
        self._is_cancelled = False
        self._core.cancel(False)

    def counters(self) -> dict[str, int]:
        """What the state holds and what it took to come here, forks included.

        ``items``, the Earley items of the state; ``earley_sets`` made; ``completions`` of rules;
        ``work`` units spent; ``bytes_held``; ``steps``. The costs of masks are with
        :meth:`CompiledGrammar.counters`.
        """
        own = self._core.counters()
        return {**own, "bytes_held": self._core.bytes_held(), "steps": self._core.steps()}

    def __repr__(self) -> str:
        without = "" if self.has_whole_text else ", from a state without its text"
        return f"<Matcher after {self.num_steps} steps{without}>"


def _ends_itself(compiled: CompiledGrammar, terminate: bool | None) -> bool:
    """Whether a text ends as soon as it is complete: as a matcher was told, else its grammar."""
    if not isinstance(terminate, bool | None):
        raise wrong_type("terminate_without_stop_token", "True, False or None", terminate)
    return compiled.terminate_without_stop_token if terminate is None else terminate
