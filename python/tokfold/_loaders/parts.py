"""What a reader hands over, and the checks that all readers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeGuard

from tokfold._quoting import quoted
from tokfold.errors import VocabularyError

Kind: TypeAlias = Literal["byte_level", "byte_fallback", "raw"]

MAX_VOCABULARY_SIZE = 1 << 22
"""Largest vocabulary taken; one absurd id in a damaged file must not allocate gigabytes."""


@dataclass(slots=True)
class LoadedVocabulary:
    """A vocabulary as one format gives it.

    Attributes:
        tokens: the bytes of each id; ``b""`` where no token has that id.
        kind: how the format spells bytes.
        name: short name, for messages.
        spell: the bytes of a token text under this format, for tokens that other files add.
        normalize: such a text, which may be a special token's, as the format normalizes it.
        special_ids: ids that the tokenizer marks as special.
        ids_by_text: the id of a token by its text, to look up the names of stop tokens.
        stop_ids: stop tokens that the format itself names.
        ordinary_size: one more than the highest id that is no added token.

    """

    tokens: list[bytes]
    kind: Kind
    name: str
    spell: Callable[[str], bytes]
    normalize: Callable[[str, bool], str] = lambda text, special: text
    special_ids: set[int] = field(default_factory=set)
    ids_by_text: Mapping[str, int] = field(default_factory=dict)
    stop_ids: tuple[int, ...] = ()
    ordinary_size: int = 0


def is_id(value: object) -> TypeGuard[int]:
    """Whether ``value``, read from a file, is an integer that can be a token id."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_size(size: int, where: str) -> int:
    """Return ``size``, or raise when a vocabulary of that many ids is out of the question."""
    if size <= 0:
        raise VocabularyError(f"{where}: the vocabulary is empty")
    if size > MAX_VOCABULARY_SIZE:
        raise VocabularyError(
            f"{where}: a vocabulary of {quoted(size)} ids; at most {MAX_VOCABULARY_SIZE} are taken"
        )
    return size


def by_id(entries: Iterable[tuple[str, int]], where: str) -> list[str | None]:
    """Turn (text, id) pairs into a list indexed by id, ``None`` where there is none."""
    pairs = list(entries)
    size = check_size(max((token_id for _, token_id in pairs), default=-1) + 1, where)
    texts: list[str | None] = [None] * size
    for text, token_id in pairs:
        if texts[token_id] is not None:
            raise VocabularyError(
                f"{where}: id {token_id} belongs to both {quoted(texts[token_id])} and "
                f"{quoted(text)}"
            )
        texts[token_id] = text
    return texts


def utf8(text: str) -> bytes:
    """UTF-8 bytes of a token text, which holds no half of a surrogate pair."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise VocabularyError(
            f"token {quoted(text)} holds half a surrogate pair and has no UTF-8 form"
        ) from error
