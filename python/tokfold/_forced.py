"""A text in the tokens of a tokenizer, as it stands in the middle of another text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tokfold._checks import whole_numbers, wrong_type
from tokfold._quoting import quoted
from tokfold.errors import VocabularyError

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary

BEFORE = ("\n", "a", "0", ".", "=")
"""What stands before the text where a tokenizer puts a space before all that it encodes."""


def written(
    vocabulary: Vocabulary, data: bytes, encode: Callable[[str], Sequence[int]] | None
) -> tuple[list[int], int]:
    """The tokens of bytes, and how many of these merge with nothing that may follow.

    ``encode`` is as for :func:`encoded`, and gives no token of those bytes at the end that are no
    whole character; without it each token is the longest that fits.
    """
    if encode is None:
        ids = vocabulary.encode_greedy(data)
    else:
        if not callable(encode):
            raise wrong_type("encode", "a function of a text, or None", encode)
        text = whole_characters(data)
        data = text.encode()
        ids = encoded(vocabulary, encode, text)
    settled, end, count = len(data) - vocabulary._compiled.unsettled(data), 0, 0
    for token_id in ids:
        end += len(vocabulary[token_id])
        if end > settled:
            break
        count += 1
    return ids, count


def encoded(vocabulary: Vocabulary, encode: Callable[[str], Sequence[int]], text: str) -> list[int]:
    """The tokens of a text alone, by the tokenizer's own function.

    Many tokenizers put a space before each text, since a word that begins it shall have the token
    that it has behind a space. In the middle of an output there is none, so the text is encoded
    behind another one, whose tokens are taken off. The tokens of the text are those that it has
    there exactly where a token ends before it: neither merges nor the best split into pieces reach
    over the end of a token.

    Raises:
        VocabularyError: ``encode`` writes another text.
        ArgumentTypeError: it gives no list of ids.
    """
    data = text.encode()
    if not data:
        return []
    ids = whole_numbers("the result of encode", encode(text))
    written = vocabulary.decode(ids)
    if written == data:
        return ids
    said = f"encode must write the text {quoted(text)} alone, and wrote {quoted(written)}: "
    if not {*vocabulary.special_token_ids, *vocabulary.stop_token_ids}.isdisjoint(ids):
        raise VocabularyError(
            f"{said}leave out special tokens, as tokenizer.encode(text, add_special_tokens=False) "
            "does"
        )
    if written != b" " + data:
        raise VocabularyError(
            f"{said}the tokenizer changes this text before it cuts it into tokens. Leave special "
            "tokens out, as tokenizer.encode(text, add_special_tokens=False) does; if there are "
            "none, pass an encode that keeps the text as it is, or call forced_tokens() without one"
        )
    for before in BEFORE:
        ids = list(encode(before + text))
        found = _behind(vocabulary, ids, b" " + before.encode(), data)
        if found is not None:
            return found
    raise VocabularyError(
        f"{said}the tokenizer puts a space before each text, and what stands before it (one of "
        f"{', '.join(map(repr, BEFORE))} was tried) merges with it. Pass an encode that adds no "
        "space, or call forced_tokens() without one"
    )


def _behind(vocabulary: Vocabulary, ids: list[int], begin: bytes, data: bytes) -> list[int] | None:
    """The tokens of some bytes behind others; None where no token ends between the two."""
    if vocabulary.decode(ids) != begin + data:
        return None
    end = 0
    for place, token_id in enumerate(ids):
        if end == len(begin):
            return ids[place:]
        end += len(vocabulary[token_id])
    return None


def whole_characters(data: bytes) -> str:
    """The longest beginning of some bytes that is text."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:  # it ends, or begins, within a character
        return data[: error.start].decode()
