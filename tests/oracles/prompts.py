"""Prompts that are healed, by all texts of a finite language and all tokens of a vocabulary."""

from __future__ import annotations

from collections.abc import Collection, Sequence

__all__ = ["allowed", "taken_back"]


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
) -> list[int]:
    """The tokens that may come where some bytes are written of ``end`` and a text behind it."""
    wholes = [end + text for text in texts]
    found = []
    for token_id, token in enumerate(tokens):
        if token_id == stop:
            is_allowed = written in wholes
        elif token_id == special:
            is_allowed = False
        else:
            is_allowed = any(whole.startswith(written + token) for whole in wholes)
        if is_allowed:
            found.append(token_id)
    return found
