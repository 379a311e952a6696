"""Tokenizer objects: transformers (fast and slow), tokenizers, tiktoken.

Objects are told by what they offer, so none of those packages is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, cast

from tokfold._loaders import byte_decoding, hf_tokenizer_json
from tokfold._loaders.dispatch import load_path
from tokfold._loaders.files import describe
from tokfold._loaders.parts import Kind, LoadedVocabulary, by_id, is_id, utf8
from tokfold.errors import VocabularyError


class Backend(Protocol):
    """The part of ``tokenizers.Tokenizer`` that is used."""

    decoder: object
    pre_tokenizer: object
    model: object

    def id_to_token(self, token_id: int, /) -> str | None:
        """Return the text of a token."""

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        """Return the added tokens by id; each has ``content`` and ``special``."""


def _vocabulary(tokenizer: object, where: str) -> dict[Any, int]:
    """Call ``get_vocab`` and check what comes: text (some tokenizers: bytes) to id."""
    get_vocab = getattr(tokenizer, "get_vocab", None)
    if not callable(get_vocab):
        hint = ""
        if isinstance(tokenizer, str | PathLike):
            hint = "; Vocabulary.from_file reads the files of one, by their path or folder"
        raise VocabularyError(
            f"{where}: expected a tokenizer of transformers or tokenizers, but the object has no "
            f"get_vocab(){hint}"
        )
    entries = get_vocab()
    if not isinstance(entries, Mapping):
        raise VocabularyError(f"{where}: get_vocab() gave {type(entries).__name__}, not a dict")
    for text, token_id in entries.items():
        if not isinstance(text, (str, bytes)) or not is_id(token_id):
            raise VocabularyError(
                f"{where}: get_vocab() holds {describe(text)}: {describe(token_id)}"
            )
    return dict(entries)


def _eos(tokenizer: object) -> tuple[int, ...]:
    eos = getattr(tokenizer, "eos_token_id", None)
    values = eos if isinstance(eos, (list, tuple)) else [eos]
    return tuple(value for value in values if is_id(value))


def _name(tokenizer: object) -> str:
    name = getattr(tokenizer, "name_or_path", None)
    return Path(name).name if isinstance(name, str) and name else type(tokenizer).__name__


def _section(component: object, where: str) -> object:
    """Take the JSON of a decoder or pre-tokenizer of a ``tokenizers.Tokenizer``.

    Its pickle state is that JSON; serializing the whole tokenizer takes a hundred times longer.
    """
    if component is None:
        return None
    try:
        return json.loads(cast("bytes", component.__getstate__()))
    except Exception as error:  # the binding raises bare Exception for a decoder in Python
        raise VocabularyError(
            f"{where}: {type(component).__name__} cannot be serialized: {error}; "
            "give the bytes yourself: Vocabulary(token_bytes)"
        ) from error


def _load_fast(backend: Backend, tokenizer: object, where: str) -> LoadedVocabulary:
    """Read a ``tokenizers.Tokenizer``, alone or inside a fast tokenizer of transformers."""
    ids_by_text = _vocabulary(backend, where)
    texts = by_id(ids_by_text.items(), where)
    for token_id, text in enumerate(texts):
        if text is None:  # a gap, or a Unigram piece that comes twice
            texts[token_id] = backend.id_to_token(token_id)
    added = backend.get_added_tokens_decoder()
    for token_id in added:  # decoding asks for them first, and 0.23 normalizes them
        texts[token_id] = backend.id_to_token(token_id)
    kind, decode = hf_tokenizer_json.spelling(
        _section(backend.decoder, where),
        _section(backend.pre_tokenizer, where),
        type(backend.model).__name__,
        getattr(backend.model, "byte_fallback", False) is True,
        ids_by_text,
        where,
    )
    return LoadedVocabulary(
        tokens=[b"" if text is None else decode(text) for text in texts],
        kind=kind,
        name=_name(tokenizer),
        spell=decode,
        special_ids={token_id for token_id, token in added.items() if token.special},
        ids_by_text=ids_by_text,
        stop_ids=_eos(tokenizer),
    )


def _slow_spelling(
    tokenizer: object, entries: Mapping[Any, int], where: str
) -> tuple[Kind, Callable[[str], bytes]]:
    texts = {text for text in entries if isinstance(text, str)}
    if hasattr(tokenizer, "sp_model"):
        if "<0x0A>" in texts:
            return "byte_fallback", byte_decoding.decode_byte_fallback
        return "raw", byte_decoding.decode_metaspace
    kind = byte_decoding.kind_from_texts(texts, None)
    if kind is None and len(texts) < len(entries):
        kind = "raw"  # get_vocab() gives bytes, as tokenizers built on tiktoken do
    if kind is None:
        raise VocabularyError(
            f"{where}: nothing tells the bytes of its tokens; if you know them, use "
            "Vocabulary(token_bytes)"
        )
    return kind, byte_decoding.STANDARD[kind]


def _load_slow(tokenizer: object, where: str) -> LoadedVocabulary:
    entries = _vocabulary(tokenizer, where)
    kind, decode = _slow_spelling(tokenizer, entries, where)
    added = getattr(tokenizer, "added_tokens_decoder", {})
    special = {token_id for token_id, token in added.items() if token.special}
    special.update(getattr(tokenizer, "all_special_ids", ()))
    tokens: list[bytes] = []
    for token in by_id(entries.items(), where):
        if token is None:
            tokens.append(b"")
        else:
            tokens.append(token if isinstance(token, bytes) else decode(token))
    return LoadedVocabulary(
        tokens=tokens,
        kind=kind,
        name=_name(tokenizer),
        spell=decode,
        special_ids={token_id for token_id in special if 0 <= token_id < len(tokens)},
        ids_by_text={text: token_id for text, token_id in entries.items() if isinstance(text, str)},
        stop_ids=_eos(tokenizer),
    )


def load(tokenizer: object) -> LoadedVocabulary:
    """Read a tokenizer object."""
    where = type(tokenizer).__name__
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "get_added_tokens_decoder"):
        return _load_fast(cast("Backend", backend), tokenizer, where)
    mistral = getattr(getattr(tokenizer, "tokenizer", None), "instruct_tokenizer", None)
    if mistral is not None:  # mistral-common inside: its get_vocab() has lost the bytes
        return load_path(Path(mistral.tokenizer.file_path))[0]
    return _load_slow(tokenizer, where)


def load_tiktoken(encoding: object) -> LoadedVocabulary:
    """Read a ``tiktoken.Encoding``."""
    ranks = getattr(encoding, "_mergeable_ranks", None)
    special = getattr(encoding, "_special_tokens", None)
    if not isinstance(ranks, dict) or not isinstance(special, dict):
        raise VocabularyError(
            f"{type(encoding).__name__}: expected a tiktoken.Encoding with its ranks"
        )
    entries = [(str(text), rank) for text, rank in special.items()]
    size = max([*ranks.values(), *special.values()], default=-1) + 1
    tokens = [b""] * size
    for token, rank in ranks.items():
        tokens[rank] = token
    for text, rank in entries:
        tokens[rank] = utf8(text)
    return LoadedVocabulary(
        tokens=tokens,
        kind="raw",
        name=str(getattr(encoding, "name", "tiktoken")),
        spell=utf8,
        special_ids={rank for _, rank in entries},
        ids_by_text=dict(entries),
        ordinary_size=size,
    )
