"""Checks of what callers pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tokfold._checks import whole_number
from tokfold._loaders.parts import check_size
from tokfold._quoting import quoted
from tokfold.errors import VocabularyError


def checked_tokens(token_bytes: Sequence[bytes | None]) -> list[bytes]:
    if hasattr(token_bytes, "stop_token_ids"):
        raise VocabularyError(
            "token_bytes: this is a vocabulary already, whose stop and special tokens would be "
            "lost; pass it on as it is, make another one with vocabulary.replace(...), or pass "
            "vocabulary.token_bytes, which are the bytes alone"
        )
    if isinstance(token_bytes, (bytes, bytearray, memoryview, str, Mapping)):
        raise VocabularyError(
            f"token_bytes: expected a sequence of bytes, found {type(token_bytes).__name__}"
        )
    try:
        tokens = [token or b"" for token in token_bytes]
    except TypeError as error:
        raise VocabularyError(
            f"token_bytes: expected a sequence of bytes, found {type(token_bytes).__name__}"
        ) from error
    for token_id, token in enumerate(tokens):
        if type(token) is not bytes:
            raise VocabularyError(
                f"token {token_id}: expected bytes, found {type(token).__name__}"
                + ("; encode it, or read the tokenizer's file" if isinstance(token, str) else "")
            )
    check_size(len(tokens), "token_bytes")
    return tokens


def integer(value: object, what: str) -> int:
    """Return an integer, numpy's included; no bool, and no float that happens to be whole."""
    number = whole_number(value)
    if number is not None:
        return number
    raise VocabularyError(f"{what}: expected an integer, found {quoted(value)}")


def checked_size(size: object) -> int:
    return check_size(integer(size, "size"), f"size {quoted(size)}")


def checked_ids(ids: int | Iterable[int], size: int, what: str) -> tuple[int, ...]:
    """Sorted ids, each an integer in ``[0, size)`` that comes once; a number is a list of one."""
    number = whole_number(ids)
    if number is not None:
        ids = [number]
    is_one = isinstance(ids, (str, bytes)) or getattr(ids, "shape", None) == ()
    if is_one or not isinstance(ids, Iterable):
        raise VocabularyError(f"{what}: expected a list of token ids, found {quoted(ids)}")
    ids = list(ids)
    text = next((value for value in ids if isinstance(value, str)), None)
    if text is not None:
        raise VocabularyError(
            f"{what}: expected an integer, found {quoted(text)}; pass the id of the token, which "
            f"tokenizer.convert_tokens_to_ids({quoted(text)}) of transformers gives"
        )
    checked = [integer(value, what) for value in ids]
    for token_id in checked:
        if not 0 <= token_id < size:
            raise VocabularyError(
                f"{what}: id {quoted(token_id)} is outside [0, {size}); leave it out, or pass a "
                "size that covers it"
            )
    if len(set(checked)) < len(checked):
        twice = next(token_id for token_id in checked if checked.count(token_id) > 1)
        raise VocabularyError(f"{what}: id {quoted(twice)} comes twice")
    return tuple(sorted(checked))
