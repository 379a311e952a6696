"""Ending a call early: from another thread, or at a deadline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tokfold import _core
from tokfold._checks import check_number, wrong_type
from tokfold._names import with_our_options
from tokfold._quoting import quoted
from tokfold.limits import Limits

__all__ = ["Interrupt"]

MOST_MILLISECONDS = (1 << 63) - 1
"""The farthest deadline, which the core counts in 64 bits."""


class Interrupt:
    """Ends every call that it is given to: when another thread cancels it, or at its deadline.

    A call looks at its interrupt every few milliseconds; compiling a million rules goes on for some
    tens of them. What was made stays usable. One interrupt may be given to several calls, which
    then share the deadline.

    ::

        interrupt = tokfold.Interrupt(milliseconds=2_000)
        compiled = tokfold.compile(grammar, vocabulary, interrupt=interrupt)

    Example:
        >>> grammar = tokfold.Grammar.from_ebnf('root ::= "a" root | ""')
        >>> interrupt = tokfold.Interrupt(milliseconds=60_000)
        >>> tokfold.recognize(grammar, "aaa", interrupt=interrupt).accepted
        True
    """

    __slots__ = ("_core",)

    @with_our_options("Interrupt")
    def __init__(self, milliseconds: int | None = None) -> None:
        """An interrupt whose time begins now.

        Args:
            milliseconds: the time until the deadline; None for no deadline.

        Raises:
            ValueError: ``milliseconds`` is negative, or more than 2^63 - 1.
            ArgumentTypeError: it is no whole number.
        """
        if milliseconds is not None:
            check_number("milliseconds", milliseconds, 0, "; None is no deadline")
            if milliseconds > MOST_MILLISECONDS:
                raise ValueError(
                    f"milliseconds must be {MOST_MILLISECONDS} or less, not "
                    f"{quoted(milliseconds)}; None is no deadline"
                )
        self._core = _core.Interrupt(milliseconds)

    @classmethod
    def _of(cls, interrupt: Interrupt | None, limits: Limits) -> _core.Interrupt | None:
        """The interrupt of a call that compiles: the caller's, the governing one, the limits'."""
        if interrupt is not None:
            return core_of(interrupt)
        governing = _governing.get()
        if governing is not None:
            return governing
        if limits.max_compile_milliseconds is None:
            return None
        return _core.Interrupt(limits.max_compile_milliseconds, limit="max_compile_milliseconds")

    @classmethod
    def of_limits(cls, limits: Limits) -> Interrupt:
        """An interrupt with the deadline ``max_compile_milliseconds``, which begins now."""
        self = object.__new__(cls)
        self._core = _core.Interrupt(
            limits.max_compile_milliseconds, limit="max_compile_milliseconds"
        )
        return self

    @classmethod
    def _of_mask(cls, limits: Limits) -> Interrupt:
        """An interrupt with the deadline ``max_mask_milliseconds``, which begins now."""
        self = object.__new__(cls)
        self._core = _core.Interrupt(limits.max_mask_milliseconds, limit="max_mask_milliseconds")
        return self

    def cancel(self) -> None:
        """End the calls: each raises :class:`tokfold.CancelledError` when it looks next."""
        self._core.cancel()

    @property
    def is_cancelled(self) -> bool:
        """Whether :meth:`cancel` was called."""
        return self._core.is_cancelled

    def check(self) -> None:
        """Raise where a call would end now.

        Raises:
            CancelledError: :meth:`cancel` was called.
            DeadlineExceededError: the deadline has passed.
        """
        self._core.check()

    def __repr__(self) -> str:
        return f"<Interrupt, {'cancelled' if self.is_cancelled else 'not cancelled'}>"


_governing: ContextVar[_core.Interrupt | None] = ContextVar("tokfold interrupt", default=None)


@contextmanager
def governing(interrupt: _core.Interrupt | None) -> Iterator[None]:
    """While it lasts, an interrupt ends what this thread converts and makes for a request."""
    token = _governing.set(interrupt)
    try:
        yield
    finally:
        _governing.reset(token)


def governs() -> _core.Interrupt | None:
    """The interrupt of the request that this thread works for; None where there is none."""
    return _governing.get()


def check_governing() -> None:
    """Raise where the request that this thread works for would end now."""
    interrupt = _governing.get()
    if interrupt is not None:
        interrupt.check()


def core_of(interrupt: Interrupt | None) -> _core.Interrupt | None:
    """The interrupt of the core, if any."""
    if interrupt is None:
        return None
    if not isinstance(interrupt, Interrupt):
        raise wrong_type("interrupt", "a tokfold.Interrupt or None", interrupt)
    return interrupt._core
