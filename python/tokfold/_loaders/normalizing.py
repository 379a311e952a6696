"""What normalizers of the ``tokenizers`` library make of added tokens.

An added token is text beside the model. One that is ``normalized`` stands for what the normalizer
of its tokenizer makes of that text; tokenizers 0.23 decodes it to that.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

from tokfold._loaders.byte_decoding import BYTE_LEVEL_ALPHABET
from tokfold._loaders.files import describe
from tokfold._loaders.parts import utf8
from tokfold._quoting import quoted
from tokfold.errors import VocabularyError

_LETTERS = {byte: letter for letter, byte in BYTE_LEVEL_ALPHABET.items()}
_SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""White space of Unicode; four control characters, which Python strips too, are none."""
_OF_UNICODE = ("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents")
_NMT: dict[int, str | None] = {
    **dict.fromkeys((*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F)),
    **dict.fromkeys(map(ord, "\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029"), " "),
    **dict.fromkeys(map(ord, "\u2581\ufeff\ufffd"), " "),
}
"""What sentencepiece's rules for translation leave out, and what is a space to them."""


def _steps(section: object, where: str) -> list[dict[str, Any]]:
    """The steps of a section ``normalizer``, without the sequences that they stand in."""
    steps: list[dict[str, Any]] = []
    todo = [section]
    while todo:
        step = todo.pop()
        if not isinstance(step, dict):
            raise VocabularyError(f"{where}: expected a normalizer, found {describe(step)}")
        inner = step.get("normalizers")
        if step.get("type") == "Sequence" and isinstance(inner, list):
            todo.extend(reversed(inner))
        else:
            steps.append(step)
    return steps


def _is_settled(letter: str) -> bool:
    """Whether all versions of Unicode say the same of a character: its letters, or none.

    Python and each normalizer of the library have tables of different versions. A character that
    came after 3.2 is settled where it is a symbol that stands for no others.
    """
    if unicodedata.ucd_3_2_0.category(letter) != "Cn":
        return True
    return unicodedata.category(letter) == "So" and not unicodedata.decomposition(letter)


def _normalized(text: str, step: dict[str, Any]) -> str | None:
    """What a step makes of a text; None where that is not known here."""
    if step.get("type") in _OF_UNICODE and not all(map(_is_settled, text)):
        return None
    match step:
        case {"type": "Lowercase"}:
            return "".join(map(str.lower, text))  # one by one: no sigma at the end of a word
        case {"type": "NFC" | "NFD" | "NFKC" | "NFKD" as form}:
            return unicodedata.normalize(form, text)
        case {"type": "StripAccents"}:
            return "".join(letter for letter in text if unicodedata.category(letter)[0] != "M")
        case {"type": "Nmt"}:
            return text.translate(_NMT)
        case {"type": "ByteLevel"}:
            return "".join(_LETTERS[byte] for byte in utf8(text))
        case {"type": "Prepend", "prepend": str(mark)}:
            return mark + text if text else text
        case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)} if old:
            return text.replace(old, new)
        case {"type": "Strip", "strip_left": bool(left), "strip_right": bool(right)}:
            text = text.lstrip(_SPACES) if left else text
            return text.rstrip(_SPACES) if right else text
    return None


def normalizer(section: object, where: str) -> Callable[[str, bool], str]:
    """What a section ``normalizer`` makes of the text of a token, which may be a special one."""

    def normalize(text: str, special: bool) -> str:
        found = text
        for step in _steps(section, where) if section is not None else ():
            made = _normalized(found, step)
            if made is None and special:
                return text  # whatever its bytes are: they are no text
            if made is None:
                raise VocabularyError(
                    f"{where}: the added token {quoted(text)} is normalized by "
                    f"{quoted(step.get('type'))}, which cannot be followed here; load it with "
                    "its library and use Vocabulary.from_huggingface, or give the bytes "
                    "yourself: Vocabulary(token_bytes)"
                )
            found = made
        return found

    return normalize
