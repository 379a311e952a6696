"""From the text of a token to its bytes: byte-level alphabets, byte fallback, decoder pipelines.

Where no file says which of these a tokenizer has, its tokens tell (:func:`kind_from_texts`).

A decoder of the ``tokenizers`` library works on the whole sequence of tokens. Grammar-constrained
decoding needs the bytes of each token by itself, so a pipeline is taken only when the bytes of a
sequence are the concatenation of the bytes of its tokens. The one liberty: what a decoder does
at the very start or end of a text (dropping the space that the encoder put in front) is left out,
because it belongs to the text and not to a token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from tokfold._loaders.files import describe
from tokfold._loaders.parts import Kind, utf8
from tokfold._quoting import quoted
from tokfold.errors import VocabularyError

Stage: TypeAlias = Callable[[str], str | bytes]
"""One step of a pipeline; bytes mean that the token is done."""

_BYTE_PIECE = re.compile("<0x([0-9A-Fa-f]{2})>")


def _byte_level_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 stands for itself, the rest is shifted past 255."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = sorted(set(range(256)) - set(printable))
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(256 + i): byte for i, byte in enumerate(shifted)})
    return alphabet


BYTE_LEVEL_ALPHABET: Mapping[str, int] = _byte_level_alphabet()

# Characters below 256 that are not in the alphabet go to one that Latin-1 lacks: encoding the
# translated text then fails exactly when one character is unmapped, and both steps are native.
_TO_LATIN_1 = {byte: 0xFFFD for byte in range(256)} | {
    ord(character): byte for character, byte in BYTE_LEVEL_ALPHABET.items()
}


def decode_byte_level(text: str) -> bytes:
    """Bytes of a token in GPT-2's alphabet; with one unmapped character, its literal UTF-8."""
    try:
        return text.translate(_TO_LATIN_1).encode("latin-1")
    except UnicodeEncodeError:
        return utf8(text)


def byte_piece(text: str) -> int | None:
    """Return the byte that a piece ``<0xHH>`` is, ``None`` if it is no such piece."""
    match = _BYTE_PIECE.fullmatch(text) if len(text) == 6 else None
    return int(match[1], 16) if match else None


def decode_byte_fallback(text: str) -> bytes:
    """Bytes of a SentencePiece piece: ``<0xHH>`` exactly is a byte, else ``▁`` is a space."""
    byte = byte_piece(text)
    return utf8(text.replace("▁", " ")) if byte is None else bytes((byte,))


def decode_metaspace(text: str) -> bytes:
    """Bytes of a SentencePiece piece in a vocabulary without byte pieces."""
    return utf8(text.replace("▁", " "))


STANDARD: Mapping[Kind, Callable[[str], bytes]] = {
    "byte_level": decode_byte_level,
    "byte_fallback": decode_byte_fallback,
    "raw": utf8,
}


def kind_from_texts(texts: Iterable[str], declared: Kind | None) -> Kind | None:
    """Return the kind that a vocabulary shows by itself, ``declared`` if it shows nothing.

    Tokenizers get saved with a decoder that does not fit their vocabulary. Half of the 256 byte
    pieces, or half of the byte-level alphabet with 99 % of the tokens spelled in it, outweigh
    what the decoder says. The thresholds are XGrammar's, for the same verdict on the same files.
    """
    known = texts if isinstance(texts, (set, dict)) else set(texts)
    if sum(f"<0x{byte:02X}>" in known for byte in range(256)) >= 128:
        return "byte_fallback"
    if declared == "byte_level":
        return declared
    if sum(character in known for character in BYTE_LEVEL_ALPHABET) < 128:
        return declared
    spelled = sum(BYTE_LEVEL_ALPHABET.keys() >= set(text) for text in known)
    return "byte_level" if spelled >= 0.99 * len(known) else declared


def _replace(section: Mapping[str, Any], where: str, after_fuse: bool) -> Stage:
    pattern, content = section.get("pattern"), section.get("content")
    old = pattern.get("String") if isinstance(pattern, dict) else None
    if not isinstance(old, str) or not old or not isinstance(content, str):
        raise VocabularyError(
            f"{where}: the decoder replaces {describe(pattern)}; only a fixed string is supported"
        )
    if after_fuse and len(old) > 1:
        raise VocabularyError(
            f"{where}: the decoder replaces {quoted(old)} in the joined text, where it can lie "
            "across tokens, so a token has no bytes of its own"
        )
    return lambda text: text.replace(old, content)


def _metaspace(section: Mapping[str, Any], where: str) -> Stage:
    mark = section.get("replacement", "▁")
    if not isinstance(mark, str) or len(mark) != 1:
        raise VocabularyError(
            f"{where}: expected one character as Metaspace replacement, found {describe(mark)}"
        )
    return lambda text: text.replace(mark, " ")


def _strip(section: Mapping[str, Any], where: str) -> Stage:
    content, start, stop = (section.get(key) for key in ("content", "start", "stop"))
    if not isinstance(content, str) or not isinstance(start, int) or not isinstance(stop, int):
        raise VocabularyError(
            f"{where}: expected a Strip decoder with content, start and stop, "
            f"found {describe(dict(section))}"
        )

    def stage(text: str) -> str:
        low = min(start, len(text) - len(text.lstrip(content)))
        high = min(stop, len(text) - low - len(text[low:].rstrip(content)))
        return text[low : len(text) - high]

    return stage


def _byte_fallback(text: str) -> str | bytes:
    byte = byte_piece(text)
    if byte is None:
        return text
    return chr(byte) if byte < 0x80 else bytes((byte,))  # ASCII goes through what follows


def _steps(decoder: object, where: str) -> list[dict[str, Any]]:
    """Flatten nested Sequences."""
    if not isinstance(decoder, dict) or not isinstance(decoder.get("type"), str):
        raise VocabularyError(f"{where}: expected a decoder with a type, found {describe(decoder)}")
    if decoder["type"] != "Sequence":
        return [decoder]
    inner = decoder.get("decoders")
    if not isinstance(inner, list):
        raise VocabularyError(
            f"{where}: expected a list of decoders in a Sequence, found {describe(inner)}"
        )
    try:
        return [step for part in inner for step in _steps(part, where)]
    except RecursionError as error:
        raise VocabularyError(f"{where}: the decoder is nested too deeply") from error


def _stage(step: Mapping[str, Any], where: str, after_fuse: bool) -> Stage | None:
    """Make the stage of one step; ``None`` for what concerns the ends of the whole text only."""
    match step["type"]:
        case "ByteLevel":
            return decode_byte_level
        case "ByteFallback":
            return _byte_fallback
        case "Metaspace":
            return _metaspace(step, where)
        case "Replace":
            return _replace(step, where, after_fuse)
        case "Strip":
            return None if after_fuse else _strip(step, where)
        case "Fuse":
            return None
        case other:
            raise VocabularyError(
                f"{where}: decoder {quoted(other)} is not supported: what it makes of a token "
                "depends on the tokens around it, so the token has no bytes of its own; give the "
                "bytes yourself: Vocabulary(token_bytes)"
            )


def pipeline(decoder: object, where: str) -> tuple[Kind, Callable[[str], bytes]]:
    """Compile the ``decoder`` section of a tokenizer.json.

    Returns:
        How the tokens are spelled, and a function from the text of a token to its bytes.

    Raises:
        VocabularyError: a step is unknown, or makes a token's bytes depend on its neighbours.
    """
    kind: Kind = "raw"
    stages: list[Stage] = []
    fused = False
    for step in _steps(decoder, where):
        if kind == "byte_level" and step["type"] not in ("Fuse", "Strip"):
            raise VocabularyError(f"{where}: decoder {quoted(step['type'])} after 'ByteLevel'")
        if kind == "raw":
            kind = {"ByteLevel": "byte_level", "ByteFallback": "byte_fallback"}.get(
                step["type"], kind
            )  # type: ignore[assignment]
        stage = _stage(step, where, fused)
        fused = fused or step["type"] in ("Fuse", "ByteLevel")
        if stage is not None:
            stages.append(stage)
    if stages == [decode_byte_level]:
        return kind, decode_byte_level

    def decode(text: str) -> bytes:
        for stage in stages:
            result = stage(text)
            if isinstance(result, bytes):
                return result
            text = result
        return utf8(text)

    return kind, decode
