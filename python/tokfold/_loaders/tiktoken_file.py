"""``*.tiktoken`` rank files: one token a line, base64 bytes and rank. Read without tiktoken."""

from __future__ import annotations

import binascii
from pathlib import Path

from tokfold._loaders.parts import LoadedVocabulary, check_size, utf8
from tokfold._quoting import quoted
from tokfold.errors import VocabularyError


def _parse_line(line: bytes) -> tuple[bytes, int] | None:
    fields = line.split()
    if len(fields) != 2 or not fields[1].isdigit() or len(fields[1]) > 9:
        return None
    if fields[0] == b"=":  # A token of no bytes: the multilingual file of Whisper has one.
        return b"", int(fields[1])
    try:
        return binascii.a2b_base64(fields[0], strict_mode=True), int(fields[1])
    except binascii.Error:
        return None


def looks_like(data: bytes) -> bool:
    """Whether the first line is one of a rank file."""
    return _parse_line(data[:4096].split(b"\n", 1)[0]) is not None


def load(data: bytes, path: Path) -> LoadedVocabulary:
    """Read a rank file. It holds no special tokens: they are known to the caller only."""
    ranks: dict[int, bytes] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        parsed = _parse_line(line)
        if parsed is None:
            raise VocabularyError(
                f"{path}, line {number}: expected base64 bytes and a rank, found "
                f"{quoted(line[:40])}"
            )
        token, rank = parsed
        if rank in ranks:
            raise VocabularyError(f"{path}, line {number}: rank {rank} comes a second time")
        ranks[rank] = token
    size = check_size(max(ranks, default=-1) + 1, str(path))
    return LoadedVocabulary(
        tokens=[ranks.get(rank, b"") for rank in range(size)],
        kind="raw",
        name=path.name.removesuffix(".tiktoken"),
        spell=utf8,
        ordinary_size=size,
    )
