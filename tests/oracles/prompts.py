"""Prompts that are healed, by all texts of a finite language and all tokens of a vocabulary."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

__all__ = ["allowed", "fewest", "taken_back"]


def taken_back(
    tokens: Sequence[bytes], silent: Collection[int], prompt: Sequence[int], texts: Sequence[bytes]
) -> int:
    """How many of the last tokens of a prompt are taken back."""
    most = 0
    for count in range(1, len(prompt)):
        last = prompt[len(prompt) - count :]
        if any(token_id in silent for token_id in last):
            break
        before = b"".join(tokens[i] for i in last)
        # a longer token that begins within the first of these tokens, and reaches into a text
        for start in range(len(tokens[last[0]])):
            suffix = before[start:]
            for token_id, token in enumerate(tokens):
                if token_id in silent or len(token) <= len(suffix):
                    continue
                if any((suffix + text).startswith(token) for text in texts):
                    most = count
    return most


def allowed(
    tokens: Sequence[bytes],
    stop: int,
    special: int,
    end: bytes,
    written: bytes,
    texts: Sequence[bytes],
    left: float = math.inf,
    ends_itself: bool = False,
) -> list[int]:
    """The tokens that may come where some bytes are written of ``end`` and a text behind it.

    After each, as many as are left then can write the rest, and a stop token, which a text that
    ``ends_itself`` has not.
    """
    wholes = [end + text for text in texts]
    found = []
    for token_id, token in enumerate(tokens):
        if token_id == stop:
            is_allowed = not ends_itself and written in wholes and left >= 1
        elif token_id == special:
            is_allowed = False
        else:
            after = fewest(tokens, {stop, special}, end, written + token, texts, ends_itself)
            is_allowed = after + 1 <= left and after < math.inf
        if is_allowed:
            found.append(token_id)
    return found


def fewest(
    tokens: Sequence[bytes],
    silent: Collection[int],
    end: bytes,
    written: bytes,
    texts: Sequence[bytes],
    ends_itself: bool = False,
) -> float:
    """The fewest tokens that write the rest of ``end`` and a text, and what stops it."""

    def split(rest: bytes) -> float:
        if not rest:
            return 0 if ends_itself else 1
        said = (token for i, token in enumerate(tokens) if i not in silent and token)
        return 1 + min(
            (split(rest[len(t) :]) for t in said if rest.startswith(t)), default=math.inf
        )

    wholes = [end + text for text in texts]
    rests = [whole[len(written) :] for whole in wholes if whole.startswith(written)]
    return min(map(split, rests), default=math.inf)
