"""States of matchers as values, which go from process to process."""

from __future__ import annotations

import hashlib
from typing import Any

from tokfold.errors import MatcherStateError

__all__ = ["MatcherState"]

_MAGIC = b"tokfold state 1\n"


class MatcherState:
    """Where a matcher stands, as a value: equal states allow the same texts to follow.

    Equal and hashed by content, across matchers, forks and processes. What was read before is no
    part of it: keep :attr:`Matcher.text <tokfold.Matcher.text>` beside it, and pass it to
    :meth:`Matcher.from_state <tokfold.Matcher.from_state>`.
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
        return f"<MatcherState of {len(self._data)} bytes, without the text before it>"
