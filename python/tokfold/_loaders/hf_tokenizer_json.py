"""``tokenizer.json`` of the ``tokenizers`` library, read without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tokfold._loaders import byte_decoding
from tokfold._loaders.files import describe
from tokfold._loaders.normalizing import normalizer
from tokfold._loaders.parts import Kind, LoadedVocabulary, by_id, check_size, is_id
from tokfold._quoting import quoted
from tokfold.errors import VocabularyError


class AddedToken(NamedTuple):
    """A token that stands beside the model: literal text, matched before the model runs."""

    id: int
    text: str
    special: bool
    normalized: bool


def _model_entries(model: dict[str, Any], where: str) -> list[tuple[str, int]]:
    """(text, id) of each token of the ``model`` section."""
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict):
        bad = next((text for text, value in vocabulary.items() if not is_id(value)), None)
        if bad is not None:
            raise VocabularyError(
                f"{where}: expected an id for token {quoted(bad)}, found "
                f"{describe(vocabulary[bad])}"
            )
        return list(vocabulary.items())
    if isinstance(vocabulary, list):  # Unigram: [[piece, score], ...], the id is the position
        entries: list[tuple[str, int]] = []
        for token_id, entry in enumerate(vocabulary):
            if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
                raise VocabularyError(
                    f"{where}: expected [piece, score] as token {token_id}, found {describe(entry)}"
                )
            entries.append((entry[0], token_id))
        return entries
    raise VocabularyError(f"{where}: expected a 'vocab' in 'model', found {describe(vocabulary)}")


def _added_tokens(section: object, where: str) -> list[AddedToken]:
    if section is None:
        return []
    if not isinstance(section, list):
        raise VocabularyError(f"{where}: expected a list 'added_tokens', found {describe(section)}")
    tokens: list[AddedToken] = []
    for entry in section:
        fields = entry if isinstance(entry, dict) else {}
        token_id, text, special = fields.get("id"), fields.get("content"), fields.get("special")
        if not is_id(token_id) or not isinstance(text, str):
            raise VocabularyError(
                f"{where}: expected an added token with 'id' and 'content', found {describe(entry)}"
            )
        normalized = fields.get("normalized") is True
        tokens.append(AddedToken(token_id, text, special is True, normalized))
    return tokens


def _check_numbering(added: list[AddedToken], entries: list[tuple[str, int]], where: str) -> None:
    """Refuse a file to which the library would give other ids than it says.

    The library ignores the ids of added tokens: one that the model has keeps the model's id, the
    others are numbered on from the *count* of the model's tokens. A file that says otherwise
    means two things at once, and a mask would allow a token that decodes to something else.
    """
    model = dict(entries)
    count = len(entries)
    seen: dict[str, int] = {}
    highest = -1
    for token in added:
        if not token.text:
            continue
        known = seen.get(token.text, model.get(token.text))
        expected = max(highest + 1, count) if known is None else known
        if token.id != expected:
            raise VocabularyError(
                f"{where}: added token {quoted(token.text)} has id {token.id}, but the tokenizers "
                f"library would number it {expected}; load it with that library and use "
                "Vocabulary.from_huggingface, or give the bytes yourself: Vocabulary(token_bytes)"
            )
        seen[token.text] = expected
        highest = max(highest, expected)


def _types(section: object) -> set[str]:
    """All ``type`` names in a section, nested ones included."""
    found: set[str] = set()
    todo = [section]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if isinstance(value.get("type"), str):
                found.add(value["type"])
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
    return found


def spelling(
    decoder: object,
    pre_tokenizer: object,
    model_type: str,
    byte_fallback: bool,
    texts: Iterable[str],
    where: str,
) -> tuple[Kind, Callable[[str], bytes]]:
    """How the tokens of a tokenizer spell bytes; ``pre_tokenizer`` counts without ``decoder``."""
    declared: Kind | None = None
    decode: Callable[[str], bytes] | None = None
    if decoder is not None:
        declared, decode = byte_decoding.pipeline(decoder, where)
    kind = byte_decoding.kind_from_texts(texts, declared)
    if kind is not None and kind == declared and decode is not None:
        return kind, decode
    if kind is not None:
        return kind, byte_decoding.STANDARD[kind]
    hints = _types(pre_tokenizer)
    if "ByteLevel" in hints:
        return "byte_level", byte_decoding.decode_byte_level
    if byte_fallback:
        return "byte_fallback", byte_decoding.decode_byte_fallback
    if "Metaspace" in hints:
        return "raw", byte_decoding.decode_metaspace
    raise VocabularyError(
        f"{where}: a {model_type} model without a decoder: the library joins its tokens with "
        "spaces, so nothing tells the bytes of a token; give them yourself: Vocabulary(token_bytes)"
    )


def load(content: dict[str, Any], path: Path) -> LoadedVocabulary:
    """Read a parsed ``tokenizer.json``."""
    where = str(path)
    model = content.get("model")
    if not isinstance(model, dict):
        raise VocabularyError(f"{where}: expected an object 'model', found {describe(model)}")
    entries = _model_entries(model, where)
    added = _added_tokens(content.get("added_tokens"), where)
    texts = by_id(entries, where) if entries else []
    _check_numbering(added, entries, where)
    ordinary_size = len(texts)
    highest = max((token.id for token in added), default=-1)
    check_size(max(ordinary_size, highest + 1), where)
    texts.extend([None] * (highest + 1 - ordinary_size))
    normalize = normalizer(content.get("normalizer"), where)
    for token in added:
        is_normalized = token.normalized
        texts[token.id] = normalize(token.text, token.special) if is_normalized else token.text
    ids_by_text = dict(entries) | {token.text: token.id for token in added}
    kind, decode = spelling(
        content.get("decoder"),
        content.get("pre_tokenizer"),
        str(model.get("type", "?")),
        model.get("byte_fallback") is True,
        ids_by_text,
        where,
    )
    return LoadedVocabulary(
        tokens=[b"" if text is None else decode(text) for text in texts],
        kind=kind,
        name=path.parent.name if path.name == "tokenizer.json" else path.name,
        spell=decode,
        normalize=normalize,
        special_ids={token.id for token in added if token.special},
        ids_by_text=ids_by_text,
        ordinary_size=ordinary_size,
    )
