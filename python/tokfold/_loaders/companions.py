"""The files beside a tokenizer file: stop tokens, added tokens, the model's vocabulary size.

Which of them counts where they differ, says ``resolve``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokfold._loaders.files import describe, parse_json_object, read_bytes
from tokfold._loaders.parts import LoadedVocabulary, check_size, is_id
from tokfold.errors import VocabularyError

KNOWN_STOP_TOKENS = frozenset(
    text.encode()
    for text in (
        "</s>",
        "<|end_of_text|>",
        "<|eot_id|>",
        "<|endoftext|>",
        "<eos>",
        "<|eos|>",
        "<end_of_turn>",
        "<｜end▁of▁sentence｜>",
    )
)
"""The stop tokens that XGrammar looks for when nobody names any."""


@dataclass(slots=True)
class Companions:
    """What the other files of a model folder say.

    Attributes:
        stop_ids: ids called end of sequence, each with the file that does.
        stop_texts: token texts called end of sequence.
        size: the model's vocabulary size, if given.
        added: id, text, special flag and normalized flag of tokens of tokenizer_config.json.

    """

    stop_ids: dict[int, Path] = field(default_factory=dict)
    stop_texts: list[str] = field(default_factory=list)
    size: int | None = None
    added: list[tuple[int, str, bool, bool]] = field(default_factory=list)


def _read(folder: Path, name: str) -> tuple[dict[str, Any], Path]:
    path = folder / name
    if not path.is_file():
        return {}, path
    return parse_json_object(read_bytes(path), path), path


def _setting(content: dict[str, Any], key: str) -> object:
    """Look up a setting of a model's config.json; multimodal models nest it in ``text_config``."""
    nested = content.get("text_config")
    value = content.get(key)
    return nested.get(key) if value is None and isinstance(nested, dict) else value


def _add_stop_ids(found: Companions, value: object, path: Path) -> None:
    values = value if isinstance(value, list) else [] if value is None else [value]
    for token_id in values:
        if not is_id(token_id):
            raise VocabularyError(
                f"{path}: expected token ids as 'eos_token_id', found {describe(value)}; "
                "pass stop_token_ids=[...] to overrule the file"
            )
        found.stop_ids.setdefault(token_id, path)


def _add_stop_text(found: Companions, value: object) -> None:
    text = value.get("content") if isinstance(value, dict) else value
    if isinstance(text, str):
        found.stop_texts.append(text)


def _add_tokens(found: Companions, section: object, path: Path) -> None:
    if not isinstance(section, dict):
        return
    for key, entry in section.items():
        fields = entry if isinstance(entry, dict) else {}
        text = fields.get("content")
        if not key.isascii() or not key.isdigit() or len(key) > 9 or not isinstance(text, str):
            raise VocabularyError(
                f"{path}: expected an id with 'content' in 'added_tokens_decoder', "
                f"found {describe(key)}: {describe(entry)}"
            )
        special, normalized = fields.get("special") is True, fields.get("normalized") is True
        found.added.append((int(key), text, special, normalized))


def read_companions(folder: Path, *, stop_tokens: bool, size: bool) -> Companions:
    """Read what lies beside a tokenizer file; all of it is optional."""
    found = Companions()
    config, path = _read(folder, "config.json") if stop_tokens or size else ({}, folder)
    declared = _setting(config, "vocab_size") if size else None
    if declared is not None:
        if not is_id(declared):
            raise VocabularyError(
                f"{path}: expected a number as 'vocab_size', found {describe(declared)}; "
                "pass size=... to overrule the file"
            )
        found.size = check_size(declared, str(path))
    tokenizer_config, tokenizer_path = _read(folder, "tokenizer_config.json")
    _add_tokens(found, tokenizer_config.get("added_tokens_decoder"), tokenizer_path)
    if stop_tokens:
        generation, generation_path = _read(folder, "generation_config.json")
        _add_stop_ids(found, generation.get("eos_token_id"), generation_path)
        _add_stop_ids(found, _setting(config, "eos_token_id"), path)
        _add_stop_text(found, tokenizer_config.get("eos_token"))
        special_map, _ = _read(folder, "special_tokens_map.json")
        _add_stop_text(found, special_map.get("eos_token"))
    return found


def add_tokens(
    loaded: LoadedVocabulary, added: list[tuple[int, str, bool, bool]], where: str
) -> None:
    """Put further tokens into a vocabulary, in place.

    An id that the tokenizer file gives to another token stays with that token.
    """
    ids = dict(loaded.ids_by_text)
    for token_id, text, special, normalized in added:
        data = loaded.spell(loaded.normalize(text, special) if normalized else text)
        if token_id >= len(loaded.tokens):
            check_size(token_id + 1, where)
            loaded.tokens.extend([b""] * (token_id + 1 - len(loaded.tokens)))
        if not loaded.tokens[token_id]:
            loaded.tokens[token_id] = data
            ids.setdefault(text, token_id)
        if special and (loaded.tokens[token_id] == data or ids.get(text) == token_id):
            loaded.special_ids.add(token_id)
    loaded.ids_by_text = ids


def known_stop_ids(loaded: LoadedVocabulary) -> list[int]:
    """Ids of the tokens of :data:`KNOWN_STOP_TOKENS`.

    Tokens marked as special go first: ``</s>`` is also the end of a struck-out passage in HTML,
    and some vocabularies hold it as an ordinary token. A file of ranks (tiktoken, tekken) holds
    nothing but text beside its special tokens, so an ordinary ``</s>`` ends nothing there: Qwen's
    file has one.
    """
    named = {loaded.ids_by_text.get(token.decode()) for token in KNOWN_STOP_TOKENS}
    tokens = enumerate(loaded.tokens)
    found = [i for i, token in tokens if token in KNOWN_STOP_TOKENS or i in named]
    special = [token_id for token_id in found if token_id in loaded.special_ids]
    return special or ([] if loaded.kind == "raw" else found)
