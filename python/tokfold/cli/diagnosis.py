"""Where a text leaves a language, said for people.

Lines and columns are those of the first character that cannot be: its first byte, even where it
is a later byte of it that no string of the grammar has.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from tokfold import Grammar, LimitExceededError, Recognition, recognize
from tokfold._schema_records import SchemaPlace
from tokfold.cli.advice import in_options
from tokfold.cli.render import byte_ranges, escaped, quoted

MAX_FORCED = 24
"""Bytes of a forced continuation that are shown."""
MAX_STARTS = 6
"""With more bytes to go on with than this, continuations are not followed."""
MAX_FOLLOWED = 200_000
"""Bytes read again to find forced continuations: each further byte reads the text anew."""
MAX_POINTERS = 3
"""Pointers of schemas that expect the same at one place and are shown."""
TAB = "    "


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What ``tokfold check`` says of one text."""

    accepted: bool
    size: int
    """Bytes of the text."""
    read: int
    """Bytes that begin some string of the grammar."""
    complete: bool
    """Whether the bytes read are a string of the grammar."""
    line: int
    column: int
    """1-based, in characters."""
    found: str
    expected: list[str]
    """What might come instead: ranges of bytes, forced words."""
    expected_bytes: bytes
    hint: str
    text: bytes
    at: int
    """Offset of the character that cannot be."""
    place: SchemaPlace | None = None
    """Of a JSON Schema: where in the document that is, and what which schema expects there."""

    @property
    def expectation(self) -> str:
        """What might come instead, in one line."""
        parts = self.expected + (["end of text"] if self.complete else [])
        return ", ".join(parts) if parts else "nothing: no text goes on from here"

    def document(self) -> dict[str, Any]:
        """The content, as JSON values."""
        document: dict[str, Any] = {"accepted": self.accepted, "bytes": self.size}
        if not self.accepted:
            document |= {
                "read": self.read,
                "line": self.line,
                "column": self.column,
                "found": self.found,
                "expected": self.expected,
                "expected_bytes": list(self.expected_bytes),
                "may_end": self.complete,
                "hint": self.hint or None,
                "place": place_document(self.place),
            }
        return document

    def excerpt(self, width: int, ellipsis: str) -> tuple[str, int]:
        """The line in question, cut to ``width`` cells around the spot, and the spot's cell."""
        begin = self.text.rfind(b"\n", 0, self.at) + 1
        end = self.text.find(b"\n", self.at)
        end = len(self.text) if end < 0 else end
        # More than this many bytes away from the spot nothing can be within the width.
        near = 4 * width
        left = [_shown(char) for char in _decoded(self.text[max(begin, self.at - near) : self.at])]
        right = [_shown(char) for char in _decoded(self.text[self.at : min(end, self.at + near)])]
        room = max(0, width - 2 * len(ellipsis))
        if cell_len("".join(left + right)) <= width and begin >= self.at - near:
            return "".join(left + right), cell_len("".join(left))
        is_cut = begin < self.at - near
        while cell_len("".join(left)) > room * 2 // 3:
            left.pop(0)
            is_cut = True
        before = (ellipsis if is_cut else "") + "".join(left)
        shown = before
        for char in right:
            if cell_len(shown + char) > room + len(ellipsis):
                return shown + ellipsis, cell_len(before)
            shown += char
        return shown, cell_len(before)


def diagnose(grammar: Grammar, data: bytes) -> Diagnosis:
    """Recognize a text and work out what to say."""
    return described(grammar, data, recognize(grammar, data))


def described(grammar: Grammar, data: bytes, result: Recognition) -> Diagnosis:
    """Work out what to say of a text that was recognized."""
    at = _character_start(data, result.read)
    line_start = data.rfind(b"\n", 0, at) + 1
    rest = data[result.read :]
    hint = ""
    if result.complete and not result.accepted and rest in (b"\n", b"\r\n"):
        hint = "without the line end at its end the text is accepted: see --chomp"
    elif not result.accepted and data.startswith(codecs.BOM_UTF8) and result.read < 3:
        hint = (
            "the text begins with a byte order mark (U+FEFF), which some editors write, and which "
            "is a character of the text: save it as UTF-8 without the mark"
        )
    return Diagnosis(
        accepted=result.accepted,
        size=len(data),
        read=result.read,
        complete=result.complete,
        line=data.count(b"\n", 0, at) + 1,
        column=len(data[line_start:at].decode("utf-8", "replace")) + 1,
        found="" if result.accepted else _found(data, at, result.read),
        expected=[] if result.accepted else _expected(grammar, data, result.read, result.expected),
        expected_bytes=result.expected,
        hint=hint,
        text=data,
        at=at,
        place=None if result.accepted else _place(grammar, data, result.read),
    )


def _place(grammar: Grammar, data: bytes, read: int) -> SchemaPlace | None:
    try:
        return grammar.place_in_schema(data, read)
    except LimitExceededError:  # the verdict stands without it
        return None


def place_document(place: SchemaPlace | None) -> dict[str, Any] | None:
    """What a JSON Schema says of a place, as JSON values."""
    if place is None:
        return None
    reasons = [{"pointers": list(r.pointers), "message": r.message} for r in place.reasons]
    return {"pointer": place.pointer, "reasons": reasons}


def place_notes(place: SchemaPlace | None) -> list[tuple[str, str]]:
    """The same as names and what there is to say of them."""
    if place is None:
        return []
    notes = [("document", place.pointer or "the document itself")]
    for number, reason in enumerate(place.reasons):
        pointers = list(reason.pointers[:MAX_POINTERS])
        if len(reason.pointers) > MAX_POINTERS:
            pointers.append(f"({len(reason.pointers) - MAX_POINTERS} more)")
        message = in_options(reason.message)
        said = f"{', '.join(pointers)}: {message}" if pointers else message
        notes.append(("" if number else "schema", said))
    return notes


def _character_start(data: bytes, offset: int) -> int:
    """Where the UTF-8 character that ``offset`` is in begins; ``offset`` where it is in none."""
    for start in range(offset - 1, max(-1, offset - 4), -1):
        if data[start] & 0xC0 != 0x80:
            inside = _length(data[start]) > offset - start
            return start if inside and _may_begin(data[start : start + 4]) else offset
    return offset


def _length(lead: int) -> int:
    """Bytes of the UTF-8 character that begins with ``lead``."""
    return 1 if lead < 0xC2 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4 if lead < 0xF5 else 1


def _may_begin(data: bytes) -> bool:
    """Whether ``data`` begins with a UTF-8 character or is the beginning of one."""
    return _first_character(data) is not None or len(data) < _length(data[0])


def _first_character(data: bytes) -> bytes | None:
    """The UTF-8 character that ``data`` begins with, None where it is no UTF-8."""
    for length in range(1, min(4, len(data)) + 1):
        try:
            data[:length].decode()
        except UnicodeDecodeError:
            continue
        return data[:length]
    return None


def _found(data: bytes, at: int, read: int) -> str:
    if at == len(data):
        return "end of text"
    if read == len(data):
        return "end of text, inside a character"
    char = _first_character(data[at : at + 4])
    if char is None:
        return f"byte 0x{data[at]:02x}, which is not UTF-8"
    name = {b"\n": "line end", b"\t": "tab", b" ": "space", b"\r": "carriage return"}.get(char)
    shown = name or quoted(escaped(char))
    if len(char) == 1:
        return shown
    return f"{shown} (U+{ord(char.decode()):04X}, refused at byte {read - at + 1} of {len(char)})"


def _expected(grammar: Grammar, data: bytes, read: int, expected: bytes) -> list[str]:
    """Words where the grammar forces them, else ranges of bytes."""
    prefix = data[:read]
    budget = MAX_FOLLOWED
    if not 0 < len(expected) <= MAX_STARTS or budget < len(prefix) * len(expected) * 2:
        return byte_ranges(expected)
    words: list[str] = []
    singles: list[int] = []
    for start in expected:
        word = bytes([start])
        while len(word) < MAX_FORCED and _is_wordy(word[-1]) and budget > 0:
            budget -= len(prefix) + len(word)
            try:
                further = recognize(grammar, prefix + word)
            except LimitExceededError:  # nested too deep for it: bytes will do
                return byte_ranges(expected)
            if len(further.expected) != 1 or further.complete or not _is_wordy(further.expected[0]):
                break
            word += further.expected
        if len(word) == 1:
            singles.append(start)
        else:
            words.append(quoted(escaped(word)))
    return words + byte_ranges(singles)


def _is_wordy(byte: int) -> bool:
    """Whether a forced byte makes a word longer: letters, digits, what begins and ends keys."""
    return chr(byte).isalnum() or byte in b'"_-<>/'


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _shown(char: str) -> str:
    if char == "\t":
        return TAB
    return "" if char == "\r" else escaped(char.encode("utf-8", "surrogateescape"))
