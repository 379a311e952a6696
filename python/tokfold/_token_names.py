"""Tokens that grammars name by their texts (``<|end|>``), looked up in a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tokfold import _core

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary


def ids_of_texts(texts: Iterable[str], vocabulary: Vocabulary) -> dict[str, list[int]]:
    """The ids of the tokens with some texts, ascending; a text that no token has is not there."""
    by_bytes = {text.encode("utf-8", "surrogatepass"): text for text in texts}
    found: dict[str, list[int]] = {}
    if by_bytes:
        for token_id, token in enumerate(vocabulary.token_bytes):
            if token in by_bytes:
                found.setdefault(by_bytes[token], []).append(token_id)
    return found


def ids_in_text(text: str, vocabulary: Vocabulary | None) -> dict[str, list[int]]:
    """The ids of the tokens that a grammar text names; without a vocabulary each id is 0.

    Cost: a pass over the text, and one over the vocabulary where a token is named.
    """
    try:
        names = _core.token_names(text) if "<" in text else []
    except UnicodeEncodeError:
        names = []  # the reader of the grammar text refuses a lone surrogate
    return {name: [0] for name in names} if vocabulary is None else ids_of_texts(names, vocabulary)


def names_in_lark(texts: Iterable[str]) -> set[str]:
    """What may be names of tokens in Lark texts."""
    return {found for text in texts for found in re.findall(r"<[^<>\s]+>", text)}


def ids_in_lark(text: str, vocabulary: Vocabulary | None) -> dict[str, list[int]]:
    """As :func:`ids_in_text`, of Lark text."""
    names = names_in_lark([text])
    return {name: [0] for name in names} if vocabulary is None else ids_of_texts(names, vocabulary)
