"""Which format a path holds."""

from __future__ import annotations

import os
from pathlib import Path

from tokfold._loaders import hf_tokenizer_json, sentencepiece_model, tekken, tiktoken_file
from tokfold._loaders.files import describe, parse_json_object, read_bytes
from tokfold._loaders.parts import LoadedVocabulary
from tokfold._quoting import quoted
from tokfold.errors import VocabularyError

_EXPECTED = "a tokenizer.json, a tekken.json, a *.tiktoken file or a SentencePiece tokenizer.model"


def _file_in(folder: Path) -> Path:
    """Find the tokenizer file of a model folder."""
    for name in ("tokenizer.json", "tekken.json", "tokenizer.model"):
        if (folder / name).is_file():
            return folder / name
    rank_files = sorted(folder.glob("*.tiktoken"))
    if len(rank_files) == 1:
        return rank_files[0]
    found = "several *.tiktoken files: name one" if rank_files else "none of them"
    raise VocabularyError(f"{folder}: expected a folder with {_EXPECTED}, found {found}")


def _load_json(data: bytes, path: Path) -> LoadedVocabulary:
    content = parse_json_object(data, path)
    if "model" in content:
        return hf_tokenizer_json.load(content, path)
    if isinstance(content.get("vocab"), list) and "config" in content:
        return tekken.load(content, path)
    raise VocabularyError(
        f"{path}: expected a tokenizer.json (with 'model') or a tekken.json (with 'config' and "
        f"'vocab'), found {describe(content)}"
    )


def load_path(path: Path) -> tuple[LoadedVocabulary, Path]:
    """Read a tokenizer file, or the one in a folder.

    The content decides on the format: a ``tokenizer.model`` is SentencePiece for some models and
    a rank file for others.

    Returns:
        The vocabulary and the folder whose other files go with it.
    """
    path = _file_in(path) if os.path.isdir(path) else path
    data = read_bytes(path)
    if path.suffix == ".json" or data.lstrip()[:1] == b"{":
        loaded = _load_json(data, path)
    elif path.suffix == ".tiktoken" or tiktoken_file.looks_like(data):
        loaded = tiktoken_file.load(data, path)
    elif data[0] == 0x0A:  # field 1 of a protobuf message
        loaded = sentencepiece_model.load(data, path)
    else:
        raise VocabularyError(f"{path}: expected {_EXPECTED}, found {quoted(data[:16])}")
    return loaded, path.parent
