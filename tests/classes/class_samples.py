"""A grammar and a vocabulary that tests of several modules fold, and many strings at once."""

from __future__ import annotations

import numpy as np

NESTED = 'root ::= "(" root ")" | "[" root "]" | [a-z]+'
TOKENS = [b"xyz", b"(", b"</s>", b"ab", b"", b"c", b"<pad>", b"#", b"d", b"(", b"<eot>", b"))"]
BYTES = [bytes([b]) for b in range(256)]


def words(count: int, letters: str = "abc", longest: int = 12) -> list[bytes]:
    """Distinct strings over some letters, the same at every call."""
    rng = np.random.default_rng(1)
    made: dict[bytes, None] = {}
    while len(made) < count:
        codes = rng.integers(0, len(letters), rng.integers(1, longest + 1))
        made["".join(letters[code] for code in codes).encode()] = None
    return list(made)
