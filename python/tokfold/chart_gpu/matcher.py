"""One text on a device, with the interface of a matcher."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tokfold._checks import bitmask_row, check_number, checked_token, checked_tokens, utf8_of
from tokfold._quoting import quoted
from tokfold.chart_gpu.grammar import DeviceGrammar
from tokfold.chart_gpu.text import DeviceText
from tokfold.engine import CompiledGrammar
from tokfold.errors import MatcherStateError, StopTokenWarning, TokfoldError
from tokfold.matcher import NO_END, Matcher, _ends_itself
from tokfold.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokfold.interrupt import Interrupt

__all__ = ["DeviceMatcher"]


class _Step(NamedTuple):
    """What was read at once, a token or bytes, and where the text stood then."""

    token: int | None
    data: bytes
    is_stop: bool
    length: int
    state: int


class DeviceMatcher:
    """One text on its way, on a device.

    Its answers are those of a :class:`tokfold.Matcher`. Each mask waits for the device, which is
    the price of answers in Python, and so does each step but those by a token that the mask before
    it allows; what does not wait is :class:`Charts`, for many texts at once. What the device has no
    answer for, :attr:`on_cpu` has.

    A step on the device runs to its end: an ``interrupt`` is looked at before it begins.

    Attributes:
        compiled: the grammar and the vocabulary.
        device: the grammar on the device.
    """

    __slots__ = (
        "_has_no_end",
        "_is_cancelled",
        "_lock",
        "_no_text",
        "_steps",
        "_stops",
        "_text",
        "_twin",
        "_twin_steps",
        "_when_complete",
        "compiled",
        "device",
    )

    def __init__(
        self,
        compiled: CompiledGrammar,
        device: DeviceGrammar,
        *,
        stop_token_ids: Sequence[int] | None = None,
        terminate_without_stop_token: bool | None = None,
    ) -> None:
        """Begin a text.

        Waits for classes that are being made in the background: the token tree is made of them.

        Args:
            compiled: what :func:`tokfold.compile` made.
            device: the same grammar on a device; shared between matchers.
            stop_token_ids: as for :class:`tokfold.Matcher`.
            terminate_without_stop_token: the same.

        Warns:
            FallbackWarning: the classes could not be made; the tree is larger, and the masks the
                same.

        Raises:
            ValueError: the device has another grammar.
            VocabularyError: a stop token is outside the vocabulary.
            LimitExceededError: ``max_matcher_bytes`` are too few for a chart.
            DeviceError: the memory of the device is used up.
        """
        if device.grammar != compiled.grammar:
            raise ValueError("the device has another grammar: make DeviceGrammar(compiled.grammar)")
        self.compiled, self.device = compiled, device
        self._when_complete = _ends_itself(compiled, terminate_without_stop_token)
        self._twin = Matcher(
            compiled,
            stop_token_ids=stop_token_ids,
            terminate_without_stop_token=terminate_without_stop_token,
        )
        self._twin_steps: list[_Step] = []
        self._stops = frozenset(self._twin.stop_token_ids)
        self._has_no_end = self._twin._has_no_end
        vocabulary = compiled.vocabulary
        self._no_text = frozenset((*vocabulary.stop_token_ids, *vocabulary.special_token_ids))
        compiled.wait()  # the tree is small over classes, and cannot change later
        self._begin(DeviceText(device, compiled.vocabulary, compiled.classes, self._stops))
        self._steps: list[_Step] = []

    def _begin(self, text: DeviceText) -> None:
        """What each matcher has of its own, forks too."""
        self._text = text
        self._is_cancelled = False
        self._lock = threading.Lock()

    # -------------------------------------------------------------------------- answers

    def fill_bitmask(
        self,
        bitmask: npt.NDArray[np.int32],
        row: int = 0,
        *,
        interrupt: Interrupt | None = None,
    ) -> bool:
        """As :meth:`tokfold.Matcher.fill_bitmask`."""
        with self._alone(interrupt):
            own = bitmask_row(bitmask, row, -(-len(self.vocabulary) // 32))
            self._refuse_ended()
            own[:] = self._text.token_words()
            allowed = int(np.unpackbits(own.view(np.uint8)).sum())
            if self._has_no_end and not allowed and self.is_accepting:
                warnings.warn(NO_END, StopTokenWarning, stacklevel=2)
            return allowed < len(self.vocabulary)

    def device_bitmask(self) -> torch.Tensor:
        """Which tokens may come next, on the device: int32, shape ``(1, ceil(V / 32))``.

        The next mask of this matcher is written over it. What
        :func:`tokfold.torch.apply_token_bitmask_` takes.

        Raises:
            MatcherStateError: the text has ended, or another thread uses the matcher.
            LimitExceededError: more nodes of the token tree are alive than ``max_tree_nodes``.
        """
        with self._alone():
            self._refuse_ended()
            return self._text.token_row()

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary whose tokens are read."""
        return self.compiled.vocabulary

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return self._text.is_accepting

    @property
    def is_terminated(self) -> bool:
        """Whether the text has ended: by a stop token, or by itself."""
        if self._steps and self._steps[-1].is_stop:
            return True
        return self._when_complete and self.is_accepting

    @property
    def num_steps(self) -> int:
        """Steps accepted, which is how many can be rolled back."""
        return len(self._steps)

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """The stop tokens in force, ascending."""
        return tuple(sorted(self._stops))

    @property
    def text(self) -> bytes:
        """Everything read since the start."""
        return b"".join(step.data for step in self._steps)

    @property
    def expected_bytes(self) -> bytes:
        """The bytes that may come next, ascending; none after the end."""
        return b"" if self.is_terminated else self._text.expected_bytes

    # ---------------------------------------------------------------------------- steps

    def accept_token(self, token_id: int, *, interrupt: Interrupt | None = None) -> bool:
        """As :meth:`tokfold.Matcher.accept_token`."""
        with self._alone(interrupt):
            return self._accept(checked_token(token_id, self.vocabulary))

    def accept_tokens(self, token_ids: Sequence[int], *, interrupt: Interrupt | None = None) -> int:
        """As :meth:`tokfold.Matcher.accept_tokens`."""
        ids = checked_tokens(token_ids, self.vocabulary)
        with self._alone(interrupt):
            before, count = len(self._steps), 0
            try:
                for token_id in ids:
                    if interrupt is not None:
                        interrupt.check()
                    if self.is_terminated or not self._accept(token_id):
                        break
                    count += 1
            except BaseException:
                self._cut(before)
                raise
            return count

    def accept_bytes(self, data: bytes, *, interrupt: Interrupt | None = None) -> bool:
        """As :meth:`tokfold.Matcher.accept_bytes`."""
        with self._alone(interrupt):
            self._refuse_ended()
            return self._read(None, bytes(data))

    def accept_string(self, text: str, *, interrupt: Interrupt | None = None) -> bool:
        """As :meth:`tokfold.Matcher.accept_string`."""
        data = utf8_of(text)
        return data is not None and self.accept_bytes(data, interrupt=interrupt)

    def _accept(self, token_id: int) -> bool:
        self._refuse_ended()
        if token_id in self._stops:
            if not self.is_accepting:
                return False
            self._steps.append(_Step(token_id, b"", True, self._text.length, self._text.state))
            return True
        data = self.compiled.vocabulary[token_id]
        if not data or token_id in self._no_text:
            return False
        return self._read(token_id, data)

    def _read(self, token: int | None, data: bytes) -> bool:
        if not self._text.read(data, token):
            return False
        self._steps.append(_Step(token, data, False, self._text.length, self._text.state))
        return True

    def rollback(self, count: int = 1, *, interrupt: Interrupt | None = None) -> None:
        """As :meth:`tokfold.Matcher.rollback`."""
        count = check_number("count", count, 0)
        with self._alone(interrupt):
            if count > len(self._steps):
                raise MatcherStateError(
                    f"{quoted(count)} steps cannot be taken back: {len(self._steps)} were accepted"
                )
            self._cut(len(self._steps) - count)

    def reset(self, *, interrupt: Interrupt | None = None) -> None:
        """Take back all steps."""
        with self._alone(interrupt):
            self._cut(0)

    def _cut(self, steps: int) -> None:
        del self._steps[steps:]
        last = self._steps[-1] if self._steps else _Step(None, b"", False, 0, 0)
        self._text.cut(last.length, last.state)

    def fork(self) -> DeviceMatcher:
        """A matcher at the same place that goes its own way from here; the chart is copied."""
        with self._alone():
            forked = object.__new__(type(self))
            forked.compiled, forked.device = self.compiled, self.device
            forked._when_complete, forked._stops = self._when_complete, self._stops
            forked._has_no_end, forked._no_text = self._has_no_end, self._no_text
            forked._begin(self._text.fork())
            forked._steps = list(self._steps)
            forked._twin, forked._twin_steps = self._twin.fork(), list(self._twin_steps)
            return forked

    __copy__ = fork

    def cancel(self) -> None:
        """Make calls from here on end with :class:`TokfoldError`, until :meth:`resume`."""
        self._is_cancelled = True

    def resume(self) -> None:
        """Take back :meth:`cancel`."""
        self._is_cancelled = False

    @contextmanager
    def _alone(self, interrupt: Interrupt | None = None) -> Iterator[None]:
        if interrupt is not None:
            interrupt.check()
        if self._is_cancelled:
            raise TokfoldError("the matcher was cancelled: resume() it to go on")
        if not self._lock.acquire(blocking=False):
            raise MatcherStateError("another thread uses the matcher: fork it for each thread")
        try:
            yield
        finally:
            self._lock.release()

    def _refuse_ended(self) -> None:
        if self.is_terminated:
            raise MatcherStateError("the text has ended: roll back or reset the matcher to go on")

    # ------------------------------------------------------------------ the CPU's answers

    @property
    def on_cpu(self) -> Matcher:
        """A matcher on the CPU that has read the same, for what the device has no answer for.

        ``explain``, ``forced_bytes``, ``state``, drafts, class masks. It catches up when it is
        asked for; leave its steps to the device, or fork it.
        """
        same = 0
        for ours, theirs in zip(self._steps, self._twin_steps, strict=False):
            if ours != theirs:
                break
            same += 1
        self._twin.rollback(len(self._twin_steps) - same)
        del self._twin_steps[same:]
        for step in self._steps[same:]:
            if step.token is None:
                taken = self._twin.accept_bytes(step.data)
            else:
                taken = self._twin.accept_token(step.token)
            if not taken:
                raise TokfoldError(
                    f"the chart on the CPU refuses {quoted(step.data)}: please report it"
                )
            self._twin_steps.append(step)
        return self._twin

    @property
    def num_bytes(self) -> int:
        """Bytes held on the device."""
        return self._text.charts.nbytes

    def __repr__(self) -> str:
        return f"<DeviceMatcher after {self.num_steps} steps on {self._text.charts.tables.device}>"
