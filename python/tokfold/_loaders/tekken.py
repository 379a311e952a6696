"""Mistral's ``tekken.json``, read without mistral-common."""

from __future__ import annotations

import binascii
from pathlib import Path
from typing import Any

from tokfold._loaders.files import describe
from tokfold._loaders.parts import LoadedVocabulary, check_size, is_id, utf8
from tokfold.errors import VocabularyError

_DEFAULT_SPECIAL_TOKENS = (
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
)
"""Special tokens of the files that name none (versions up to 7)."""


def _special_texts(section: object, count: int, where: str) -> list[str]:
    """Texts of the special tokens, filled up to ``count`` as mistral-common does."""
    if section is None:
        texts = list(_DEFAULT_SPECIAL_TOKENS)
    elif isinstance(section, list):
        texts = []
        for rank, entry in enumerate(section):
            fields = entry if isinstance(entry, dict) else {}
            text = fields.get("token_str")
            if fields.get("rank") != rank or not isinstance(text, str):
                raise VocabularyError(
                    f"{where}: expected special token {rank} with 'rank' and 'token_str', "
                    f"found {describe(entry)}"
                )
            texts.append(text)
    else:
        raise VocabularyError(
            f"{where}: expected a list 'special_tokens', found {describe(section)}"
        )
    if len(texts) > count:
        raise VocabularyError(
            f"{where}: {len(texts)} special tokens, but config has room for {count}"
        )
    return [*texts, *(f"<SPECIAL_{rank}>" for rank in range(len(texts), count))]


def _ordinary_tokens(section: list[Any], count: int, where: str) -> list[bytes]:
    if len(section) < count:
        raise VocabularyError(
            f"{where}: config asks for {count} ordinary tokens, 'vocab' holds {len(section)}"
        )
    tokens: list[bytes] = []
    for rank, entry in enumerate(section[:count]):
        fields = entry if isinstance(entry, dict) else {}
        try:
            if fields.get("rank") != rank:
                raise ValueError
            tokens.append(binascii.a2b_base64(fields["token_bytes"], strict_mode=True))
        except (KeyError, TypeError, ValueError) as error:  # binascii.Error is a ValueError
            raise VocabularyError(
                f"{where}: expected entry {rank} of 'vocab' with that 'rank' and 'token_bytes' "
                f"in base64, found {describe(entry)}"
            ) from error
    return tokens


def load(content: dict[str, Any], path: Path) -> LoadedVocabulary:
    """Read a parsed ``tekken.json``.

    Special tokens come first. The vocabulary is cut to the size that the file's config names:
    the released files hold more tokens than the models have.
    """
    where = str(path)
    config, vocabulary = content.get("config"), content.get("vocab")
    if not isinstance(config, dict) or not isinstance(vocabulary, list):
        raise VocabularyError(
            f"{where}: expected an object 'config' and a list 'vocab', found "
            f"{describe(config)} and {describe(vocabulary)}"
        )
    size, special_count = (
        config.get(key) for key in ("default_vocab_size", "default_num_special_tokens")
    )
    if not is_id(size) or not is_id(special_count) or special_count > size:
        raise VocabularyError(
            f"{where}: expected 'default_vocab_size' and 'default_num_special_tokens' in "
            f"'config', found {describe(size)} and {describe(special_count)}"
        )
    check_size(size, where)
    special = _special_texts(content.get("special_tokens"), special_count, where)
    ids_by_text = {text: rank for rank, text in enumerate(special)}
    ordinary = _ordinary_tokens(vocabulary, size - special_count, where)
    eos = ids_by_text.get("</s>")
    return LoadedVocabulary(
        tokens=[*map(utf8, special), *ordinary],
        kind="raw",
        name=path.parent.name if path.name == "tekken.json" else path.name.removesuffix(".json"),
        spell=utf8,
        special_ids=set(range(special_count)),
        ids_by_text=ids_by_text,
        stop_ids=() if eos is None else (eos,),
        ordinary_size=size,
    )
