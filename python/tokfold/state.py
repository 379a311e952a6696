"""States of matchers as values, which go from process to process.

This module checks version and bytes of a saved state. :meth:`tokfold.Matcher.from_state` checks
that it is of this grammar, and the core its numbers.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tokfold._checks import wrong_type
from tokfold.errors import MatcherStateError

__all__ = ["MatcherState"]

_MAGIC = b"tokfold state 2\n"

FOREIGN_STATE = (
    "the state was saved for another grammar, under another engine of CompileOptions, or by "
    "another version of tokfold"
)

MAX_STATE_TEXT_BYTES = 65_536
"""Bytes of the longest text that a state keeps."""


class MatcherState:
    """Where a matcher stands, as a value: equal states allow the same texts to follow.

    Equal and hashed by content, across matchers, forks and processes. It keeps the text that was
    read before, which counts for no comparison, unless that has more than 65,536 bytes: then keep
    :attr:`Matcher.text <tokfold.Matcher.text>` beside it, and pass it to
    :meth:`Matcher.from_state <tokfold.Matcher.from_state>`.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile('root ::= "a"+', vocabulary)
        >>> matcher = tokfold.Matcher(compiled)
        >>> matcher.accept_token(0)
        True
        >>> saved = matcher.state.to_bytes()  # for another process
        >>> again = tokfold.Matcher.from_state(compiled, tokfold.MatcherState.from_bytes(saved))
        >>> again.text, again.state == matcher.state
        (b'a', True)
    """

    __slots__ = ("_data", "_engine", "_text")

    def __init__(self, engine: int, data: bytes, text: bytes | None = None) -> None:
        self._engine, self._data = engine, data
        self._text = text if text is None or len(text) <= MAX_STATE_TEXT_BYTES else None

    @property
    def text(self) -> bytes | None:
        """Everything that was read before; None where the state does not keep it."""
        return self._text

    def without_text(self) -> MatcherState:
        """The same state, which does not keep the text."""
        return MatcherState(self._engine, self._data)

    def to_bytes(self) -> bytes:
        """Bytes that :meth:`from_bytes` reads in any process: versioned and checksummed."""
        kept = 0 if self._text is None else 1 + len(self._text)
        head = self._engine.to_bytes(8, "little") + kept.to_bytes(4, "little")
        body = head + (self._text or b"") + self._data
        return _MAGIC + hashlib.sha256(body).digest()[:16] + body

    @classmethod
    def from_bytes(cls, data: bytes) -> MatcherState:
        """Read what :meth:`to_bytes` wrote.

        The checksum finds damage, not forgery: a forged state does no harm, but masks there mean
        nothing. Sign states that leave your hands.

        Raises:
            MatcherStateError: the bytes are damaged, or of another version.
            ArgumentTypeError: ``data`` is no bytes.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise wrong_type("data", "bytes", data)
        data = bytes(data)
        start = len(_MAGIC)
        digest, body = data[start : start + 16], data[start + 16 :]
        if not data.startswith(_MAGIC):
            raise MatcherStateError("not a saved matcher state of this version of tokfold")
        kept = int.from_bytes(body[8:12], "little")
        size = len(body) - 12 - max(kept - 1, 0)
        if hashlib.sha256(body).digest()[:16] != digest or size < 4 or size % 4:
            raise MatcherStateError("the saved matcher state is damaged")
        text = body[12 : len(body) - size] if kept else None
        return cls(int.from_bytes(body[:8], "little"), body[len(body) - size :], text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MatcherState):
            return NotImplemented
        return self._engine == other._engine and self._data == other._data

    def __hash__(self) -> int:
        return hash((self._engine, self._data))

    def __reduce__(self) -> tuple[Any, ...]:
        return MatcherState, (self._engine, self._data, self._text)

    def __repr__(self) -> str:
        text = "without the text" if self._text is None else f"{len(self._text)} bytes of text"
        return f"<MatcherState of {len(self._data)} bytes, {text} before it>"
