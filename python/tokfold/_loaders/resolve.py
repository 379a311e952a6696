"""From what files and callers say to one size and one set of stop tokens: which of them counts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from tokfold._loaders.checks import checked_size, integer
from tokfold._loaders.companions import Companions
from tokfold._loaders.parts import LoadedVocabulary
from tokfold._quoting import quoted
from tokfold.errors import VocabularyError, VocabularyWarning


def checked_special(
    loaded: LoadedVocabulary, special_tokens: Mapping[str, int]
) -> list[tuple[int, str, bool, bool]]:
    """Return the ``special_tokens`` argument, as tokens to add."""
    added: list[tuple[int, str, bool, bool]] = []
    for text, value in special_tokens.items():
        token_id = integer(value, f"special_tokens[{quoted(text)}]")
        if not isinstance(text, str) or not text or token_id < 0:
            raise VocabularyError(
                f"special_tokens: expected text: id, found {quoted(text)}: {quoted(value)}"
            )
        taken = loaded.tokens[token_id] if token_id < len(loaded.tokens) else b""
        is_its_name = loaded.ids_by_text.get(text) == token_id
        if taken and taken != loaded.spell(text) and not is_its_name:
            raise VocabularyError(
                f"special_tokens: id {token_id} of {quoted(text)} belongs to the token "
                f"{quoted(taken)}"
            )
        added.append((token_id, text, True, False))
    return added


def final_size(loaded: LoadedVocabulary, companions: Companions, size: int | None) -> int:
    """Return the number of ids: the argument, else config.json's, else the tokenizer's."""
    total = len(loaded.tokens)
    if size is not None:
        size = checked_size(size)
        if size < loaded.ordinary_size:
            warnings.warn(
                f"{loaded.name}: size={size} leaves out the last of {loaded.ordinary_size} tokens, "
                "added ones not counted: no text can be written with them. Leave size out for all "
                f"{total}, unless the model puts out {size}",
                VocabularyWarning,
                stacklevel=5,
            )
        return size
    if companions.size is None:
        return total
    if companions.size < loaded.ordinary_size:
        raise VocabularyError(
            f"{loaded.name}: config.json gives the model {companions.size} ids, but the tokenizer "
            f"has {loaded.ordinary_size} besides added tokens; pass size={total} to keep them or "
            f"size={companions.size} to leave the last out"
        )
    return companions.size


def named_stop_ids(loaded: LoadedVocabulary, companions: Companions, size: int) -> list[int]:
    """Stop tokens that the files or the tokenizer name."""
    found: dict[int, str] = {token_id: loaded.name for token_id in loaded.stop_ids}
    found.update((token_id, str(path)) for token_id, path in companions.stop_ids.items())
    for text in companions.stop_texts:
        token_id = loaded.ids_by_text.get(text)
        if token_id is not None:
            found.setdefault(token_id, f"eos_token {quoted(text)}")
    for token_id, source in found.items():
        if token_id >= size:
            raise VocabularyError(
                f"{source}: stop token {token_id} is outside [0, {size}); pass "
                "stop_token_ids=[...] with the right ones, or a size that covers it"
            )
    return list(found)
