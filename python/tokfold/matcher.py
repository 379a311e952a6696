"""Matchers: one text each, on its way through a grammar."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold.engine import CompiledGrammar
from tokfold.errors import MatcherStateError, VocabularyError

if TYPE_CHECKING:
    from tokfold.explanation import Explanation
    from tokfold.interrupt import Interrupt

__all__ = ["Matcher", "MatcherState"]

MAX_FORCED_BYTES = 4_096
_MAGIC = b"tokfold state 1\n"


class MatcherState:
    """Where a matcher stands, as a value: equal states allow the same texts to follow.

    Equal and hashed by content, across matchers, forks and processes. What was read before is no
    part of it.
    """

    __slots__ = ("_data", "_engine")

    def __init__(self, engine: int, data: bytes) -> None:
        self._engine, self._data = engine, data

    def to_bytes(self) -> bytes:
        """Bytes that :meth:`from_bytes` reads in any process: versioned and checksummed."""
        body = self._engine.to_bytes(8, "little") + self._data
        return _MAGIC + hashlib.sha256(body).digest()[:16] + body

    @classmethod
    def from_bytes(cls, data: bytes) -> MatcherState:
        """Read what :meth:`to_bytes` wrote.

        The checksum finds damage, not forgery: a forged state does no harm, but masks there mean
        nothing. Sign states that leave your hands.

        Raises:
            MatcherStateError: the bytes are damaged, or of another version.
        """
        data = bytes(data)
        start = len(_MAGIC)
        digest, body = data[start : start + 16], data[start + 16 :]
        if not data.startswith(_MAGIC):
            raise MatcherStateError("not a saved matcher state of this version of tokfold")
        if hashlib.sha256(body).digest()[:16] != digest or len(body) < 12 or len(body) % 4:
            raise MatcherStateError("the saved matcher state is damaged")
        return cls(int.from_bytes(body[:8], "little"), body[8:])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MatcherState):
            return NotImplemented
        return self._engine == other._engine and self._data == other._data

    def __hash__(self) -> int:
        return hash((self._engine, self._data))

    def __reduce__(self) -> tuple[Any, ...]:
        return MatcherState, (self._engine, self._data)

    def __repr__(self) -> str:
        return f"<MatcherState of {len(self._data)} bytes>"


class Matcher:
    """One text on its way through a grammar.

    A token is allowed in the mask exactly when :meth:`accept_token` would take it, which is
    exactly when the text can still be completed after it (with stop tokens: when it is complete).
    With ``engine="chart-gpu"`` it is a :class:`tokfold.chart_gpu.DeviceMatcher`.

    Safe between threads in this sense: a matcher that two threads use at once raises, and forks
    may be used by a thread each.

    The calls that read, undo or write masks take an ``interrupt``, a :class:`tokfold.Interrupt`:
    each raises :class:`CancelledError` or :class:`DeadlineExceededError` when it ends, also where
    it has ended before, and the matcher is as it was. The deadlines of ``limits`` and
    :meth:`cancel` count besides::

        matcher.accept_string(text, interrupt=tokfold.Interrupt(milliseconds=20))
    """

    __slots__ = ("_core", "_is_restored", "compiled")

    _is_on_device: ClassVar[bool] = False
    """Whether the core's matcher is not what reads."""

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """A matcher, or one on the device where the grammar was compiled for one."""
        compiled = arguments[0] if arguments else options.get("compiled")
        if cls is Matcher and isinstance(compiled, CompiledGrammar) and compiled.device is not None:
            from tokfold.chart_gpu import DeviceMatcher

            return cast(Self, object.__new__(DeviceMatcher))
        return object.__new__(cls)

    def __init__(
        self,
        compiled: CompiledGrammar,
        *,
        stop_token_ids: Sequence[int] | None = None,
        terminate_without_stop_token: bool = False,
    ) -> None:
        """Begin a text.

        Args:
            compiled: what :func:`tokfold.compile` made.
            stop_token_ids: stop tokens in place of the vocabulary's. A token given here ends the
                text and is never text; stop tokens of the vocabulary that are not given here are
                never allowed.
            terminate_without_stop_token: the text ends by itself as soon as it is complete.

        Raises:
            VocabularyError: a stop token is outside the vocabulary.
        """
        if not isinstance(compiled, CompiledGrammar):
            raise TypeError(
                f"compiled must be a tokfold.CompiledGrammar, not {type(compiled).__name__}"
            )
        stops = None if stop_token_ids is None else [self._id(compiled, i) for i in stop_token_ids]
        self.compiled = compiled
        self._is_restored = False
        self._core = _core.Matcher(
            compiled._core, stop_ids=stops, when_complete=terminate_without_stop_token
        )

    @staticmethod
    def _id(compiled: CompiledGrammar, token_id: int) -> int:
        size = len(compiled.vocabulary)
        token_id = operator.index(token_id)
        if not 0 <= token_id < size:
            raise VocabularyError(
                f"token {token_id} is outside the vocabulary of {size} tokens: pass ids from 0 to "
                f"{size - 1}"
            )
        return token_id

    def fill_bitmask(
        self,
        bitmask: npt.NDArray[np.int32],
        row: int = 0,
        *,
        interrupt: Interrupt | None = None,
    ) -> bool:
        """Write which tokens may come next into a row of a bitmask.

        Args:
            bitmask: int32, C-contiguous, shape ``(rows, ceil(V / 32))`` or ``(ceil(V / 32),)``;
                bit ``j`` of word ``i`` is token ``32 * i + j``, 1 is allowed. Bits past the last
                token are 0. A torch tensor goes in as ``tensor.numpy()``.
            row: the row.
            interrupt: ends the call early.

        Returns:
            False where every token is allowed and the row need not be applied.

        Raises:
            MatcherStateError: the text has ended, or another thread uses the matcher.
            LimitExceededError: this mask takes more work than ``limits`` allow; the row then means
                nothing, the matcher is as it was. Its subclass :class:`DeadlineExceededError`: it
                takes longer; the next try goes on from what this one made.
            CancelledError: another thread called :meth:`cancel`, or cancelled ``interrupt``.
            TypeError, ValueError: the bitmask has another dtype, shape or layout, or another thread
                writes into it: give each rows of its own, ``bitmask[row : row + 1]``.
        """
        try:
            return self._core.fill(bitmask, row, _within(interrupt))
        except OverflowError:
            raise ValueError(f"the bitmask has no row {row}") from None

    def fill_class_bitmask(
        self,
        bitmask: npt.NDArray[np.int32],
        row: int = 0,
        *,
        interrupt: Interrupt | None = None,
    ) -> bool:
        """Write which token classes may come next into a row of a bitmask.

        Classes are those of ``compiled.classes``; a token is allowed when its class is.
        :class:`tokfold.torch.Fold` unfolds such rows where the logits are.

        Args:
            bitmask: int32, C-contiguous, shape ``(rows, ceil(C / 32))`` or ``(ceil(C / 32),)`` for
                ``C`` classes.
            row: the row.
            interrupt: ends the call early.

        Returns:
            False where every token is allowed.

        Raises:
            MatcherStateError: there are no classes (yet), or a stop token of this matcher is no
                stop token of the vocabulary; as :meth:`fill_bitmask` too.
            LimitExceededError, CancelledError, TypeError, ValueError: as :meth:`fill_bitmask`.
        """
        try:
            return self._core.fill_classes(bitmask, row, _within(interrupt))
        except OverflowError:
            raise ValueError(f"the bitmask has no row {row}") from None

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
        try:
            if interrupt is None:
                return self._core.accept_token(token_id)
            return self._core.accept_token(token_id, interrupt._core)
        except OverflowError:
            return self._core.accept_token(self._id(self.compiled, token_id))

    def accept_bytes(self, data: bytes, *, interrupt: Interrupt | None = None) -> bool:
        """Read bytes as one step, however they would be tokenized; as :meth:`accept_token`."""
        return self._core.accept_bytes(data, _within(interrupt))

    def accept_string(self, text: str, *, interrupt: Interrupt | None = None) -> bool:
        """Read the UTF-8 of a text as one step; as :meth:`accept_token`."""
        return self._core.accept_bytes(text.encode(), _within(interrupt))

    def accept_tokens(self, token_ids: Sequence[int], *, interrupt: Interrupt | None = None) -> int:
        """Read the longest prefix of some tokens that can follow, each as a step; how many.

        Raises:
            As :meth:`accept_token`; nothing has changed then.
        """
        ids = [self._id(self.compiled, i) for i in token_ids]
        return self._core.accept_prefix(ids, _within(interrupt))

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
            ValueError: the bitmask has too few rows, or there are not as many parents as tokens.
        """
        ids = [self._id(self.compiled, token_id) for token_id in token_ids]
        before = range(-1, len(ids) - 1) if parents is None else parents
        nodes = [min(max(operator.index(node), -1), len(ids)) for node in before]
        allowed = self._core.fill_draft(nodes, ids, bitmask, classes, _within(interrupt))
        return np.array(allowed, dtype=np.bool_)

    def rollback(self, count: int = 1, *, interrupt: Interrupt | None = None) -> None:
        """Take back the last steps, over a stop token too. Costs the same for any number.

        Raises:
            MatcherStateError: there are fewer steps; nothing has changed.
            CancelledError, DeadlineExceededError: as :meth:`accept_token`.
        """
        if count < 0:
            raise ValueError(f"count must be 0 or more, not {count}")
        try:
            self._core.rollback(count, _within(interrupt))
        except OverflowError:
            raise MatcherStateError(
                f"{count} steps cannot be taken back: {self.num_steps} were accepted"
            ) from None

    def reset(self, *, interrupt: Interrupt | None = None) -> None:
        """Take back all steps; a restored matcher goes back to where it was restored.

        Raises:
            CancelledError, DeadlineExceededError: as :meth:`accept_token`.
        """
        self._core.reset(_within(interrupt))

    def fork(self) -> Matcher:
        """A matcher at the same place that goes its own way from here, rollback included.

        Costs the same at any place: the two share their memory.
        """
        forked = object.__new__(type(self))
        forked.compiled, forked._is_restored = self.compiled, self._is_restored
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
    def stop_token_ids(self) -> tuple[int, ...]:
        """The stop tokens in force, ascending."""
        return tuple(self._core.stop_ids())

    @property
    def text(self) -> bytes:
        """Everything read since the start, or since the state was restored."""
        return self._core.text()

    @property
    def expected_bytes(self) -> bytes:
        """The bytes that may come next, ascending; none after the end."""
        return b"" if self.is_terminated else self._core.expected()

    def forced_bytes(
        self, limit: int = MAX_FORCED_BYTES, *, interrupt: Interrupt | None = None
    ) -> bytes:
        """What must come next, whatever is chosen; empty where there is a choice.

        Ends where the text may end, where a byte may be chosen, or after ``limit`` bytes, and after
        256 KiB in any case: a caller that wants more reads them and asks again.

        Raises:
            MatcherStateError: the text has ended.
            LimitExceededError: as for :meth:`accept_token`; all bytes together may take
                ``max_accept_work``.
            CancelledError: as :meth:`accept_token`.
        """
        if limit < 0:
            raise ValueError(f"limit must be 0 or more, not {limit}")
        return self._core.forced_bytes(limit, _within(interrupt))

    def explain(self, token_id: int) -> Explanation:
        """Why a token is allowed, or what stands against it.

        Raises:
            VocabularyError: the vocabulary has no such token.
            MatcherStateError: the text has ended.
        """
        from tokfold.explanation import explain

        return explain(self, self._id(self.compiled, token_id))

    @property
    def state(self) -> MatcherState:
        """Where the matcher stands, as a value.

        Raises:
            MatcherStateError: only charts can read the grammar (see
                :attr:`CompiledGrammar.is_for_charts <tokfold.CompiledGrammar.is_for_charts>`): keep
                the text.
        """
        return MatcherState(self.compiled._core.fingerprint, self._core.state())

    @classmethod
    def from_state(cls, compiled: CompiledGrammar, state: MatcherState, **options: Any) -> Matcher:
        """A matcher that goes on from a state, in this or another process.

        Args:
            compiled: the same grammar compiled, by the same version.
            state: where to begin; nothing before it can be rolled back.
            options: those of the constructor.

        Raises:
            MatcherStateError: the state is of another grammar.
        """
        if compiled.device is None:
            self = cls(compiled, **options)
        else:  # a state does not have the text, so no chart can be made
            self = object.__new__(Matcher)
            Matcher.__init__(self, compiled, **options)
        if state._engine != compiled._core.fingerprint:
            raise MatcherStateError("the state was saved for another grammar or version of tokfold")
        self._core.restore(state._data)
        self._is_restored = True
        return self

    def moved_to(self, compiled: CompiledGrammar, **options: Any) -> Matcher:
        """A matcher that goes on from here under a grammar with other tools.

        For a text that stands at a dispatch point: in free text, where no tag has begun. The free
        text begins anew there, so what was written before is no beginning of a new tag. This
        matcher stays as it is.

        Args:
            compiled: for the same vocabulary, the same structural tag but for the tags that its
                free text calls: see :meth:`tokfold.Grammar.with_tags`.
            options: those of the constructor.

        Returns:
            A matcher that stands there; nothing before can be rolled back.

        Raises:
            MatcherStateError: the text stands in a tag or in the beginning of one, or the grammars
                differ in more than these tags.
        """
        state = self._core.state_for(compiled._core)
        other = Matcher(compiled, **options)
        other._core.restore(state)
        other._is_restored = True
        return other

    def cancel(self) -> None:
        """Make the call that another thread is in end with :class:`CancelledError`.

        Stays in force until :meth:`resume`; the state is as it was before that call.
        """
        self._core.cancel(True)

    def resume(self) -> None:
        """Take back :meth:`cancel`."""
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
        return f"<Matcher after {self.num_steps} steps>"


def _within(interrupt: Interrupt | None) -> _core.Interrupt | None:
    return None if interrupt is None else interrupt._core
