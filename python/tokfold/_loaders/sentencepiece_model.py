"""SentencePiece's ``tokenizer.model``, read without sentencepiece or protobuf.

Only three facts are needed (``sentencepiece_model.proto``): field 1 of the file is a piece, with
its text in field 1 and its type in field 3; field 2 is the trainer's settings, with the end of
sentence id in field 42.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tokfold._loaders.byte_decoding import byte_piece, decode_metaspace
from tokfold._loaders.parts import LoadedVocabulary, check_size, utf8
from tokfold.errors import VocabularyError

_PIECE, _TRAINER_SPEC = 1, 2
_PIECE_TEXT, _PIECE_TYPE = 1, 3
_EOS_ID = 42
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_DEFAULT_EOS_ID = 2


class _DamagedError(Exception):
    """The bytes are no protobuf message."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise _DamagedError(f"a number breaks off at byte {at}")


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of each field: an int for a varint, bytes for all else."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire == 2:
            length, at = _varint(data, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise _DamagedError(f"unknown wire type {wire} at byte {at}")
        if at + length > len(data):
            raise _DamagedError(f"a field of {length} bytes breaks off at byte {at}")
        yield key >> 3, data[at : at + length]
        at += length


def _piece(body: bytes) -> tuple[str, int]:
    text, kind = b"", _NORMAL
    for number, value in _fields(body):
        if number == _PIECE_TEXT and isinstance(value, bytes):
            text = value
        elif number == _PIECE_TYPE and isinstance(value, int):
            kind = value
    return text.decode("utf-8"), kind


def _eos_id(trainer_spec: bytes) -> int:
    eos = _DEFAULT_EOS_ID
    for number, value in _fields(trainer_spec):
        if number == _EOS_ID and isinstance(value, int):
            eos = value  # none is -1, which reads as 2**64 - 1 here: past all pieces
    return eos


def _parse(data: bytes) -> tuple[list[tuple[str, int]], int]:
    pieces: list[tuple[str, int]] = []
    eos: int | None = None
    for number, value in _fields(data):
        if number == _PIECE and isinstance(value, bytes):
            pieces.append(_piece(value))
        elif number == _TRAINER_SPEC and isinstance(value, bytes):
            eos = _eos_id(value)
    if not pieces:
        raise _DamagedError("it holds no pieces")
    if eos is None:  # comes after the pieces: a file cut between two of them shows here
        raise _DamagedError("the trainer's settings are missing")
    return pieces, eos


def load(data: bytes, path: Path) -> LoadedVocabulary:
    """Read a SentencePiece model."""
    try:
        pieces, eos = _parse(data)
    except (_DamagedError, UnicodeDecodeError) as error:
        raise VocabularyError(
            f"{path}: expected a SentencePiece model, but the file is something else, damaged "
            f"or truncated ({len(data)} bytes): {error}"
        ) from error
    check_size(len(pieces), str(path))
    tokens: list[bytes] = []
    special: set[int] = set()
    has_bytes = False
    for token_id, (text, kind) in enumerate(pieces):
        byte = byte_piece(text) if kind == _BYTE else None
        if byte is not None:
            has_bytes = True
            tokens.append(bytes((byte,)))
        elif kind in (_UNKNOWN, _CONTROL):
            special.add(token_id)
            tokens.append(utf8(text))
        else:
            tokens.append(decode_metaspace(text))
    return LoadedVocabulary(
        tokens=tokens,
        kind="byte_fallback" if has_bytes else "raw",
        name=path.parent.name if path.name == "tokenizer.model" else path.name,
        spell=decode_metaspace,
        special_ids=special,
        ids_by_text={text: token_id for token_id, (text, _) in enumerate(pieces)},
        stop_ids=(eos,) if eos < len(pieces) else (),
        ordinary_size=len(pieces),
    )
