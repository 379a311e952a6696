"""Texts of tags in which special tokens of a vocabulary stand.

A tokenizer writes a marker (``<tool_call>``) as one token where that token is special, and special
tokens are no text. So a marker in the text of a tag is that token; or, where a tag says so, the
same text spelled by other tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from tokfold._quoting import quoted
from tokfold._tags.fields import fail, short
from tokfold._tags.literals import literal
from tokfold.vocabulary import Vocabulary

_SHORTEST_STOP = 3
"""Characters of the shortest stop token that counts as a marker: a line end is none."""


def _longest_of(texts: list[str]) -> re.Pattern[str] | None:
    """What finds the longest of some texts at a place; None for none.

    Texts that begin alike are one branch: vocabularies have a thousand that begin with ``<|``, and
    where each were a branch of its own, a text of ``<|`` alone took microseconds a character.
    """

    def pattern(texts: list[str]) -> str:
        first, last = min(texts), max(texts)
        same = sum(
            1 for _ in takewhile(lambda both: both[0] == both[1], zip(first, last, strict=False))
        )
        begin = first[:same]
        branches: dict[str, list[str]] = {}
        for text in texts:
            branches.setdefault(text[len(begin) : len(begin) + 1], []).append(text[len(begin) :])
        ends = branches.pop("", None) is not None
        if not branches:
            return re.escape(begin)
        rest = f"(?:{'|'.join(map(pattern, branches.values()))}){'?' if ends else ''}"
        return re.escape(begin) + rest

    return re.compile(pattern(texts)) if texts else None


class Markers:
    """The special tokens of a vocabulary, by their texts; made once for each vocabulary.

    Args:
        vocabulary: the vocabulary; None has no markers.
        spelled: whether a marker may be spelled by other tokens too.

    Example:
        >>> from tokfold import Vocabulary
        >>> tokens = [b"<", b"call", b">", b"<call>"]
        >>> Markers(Vocabulary(tokens, special_token_ids=[3])).atoms("<call>{", "format", "tag")
        '("<call>" | Token(3)) "{"'
    """

    def __init__(self, vocabulary: Vocabulary | None, *, spelled: bool = True) -> None:
        self.spelled = spelled
        self._ids: dict[str, list[int]] = {}
        self._stops: dict[str, int] = {}
        if vocabulary is not None:
            for token_id in vocabulary.special_token_ids:
                text = _text(vocabulary[token_id])
                if text:
                    self._ids.setdefault(text, []).append(token_id)
            for token_id in vocabulary.stop_token_ids:
                text = _text(vocabulary[token_id])
                if len(text) >= _SHORTEST_STOP and not text.isspace() and text not in self._ids:
                    self._stops.setdefault(text, token_id)
        self._pattern = _longest_of([*self._ids, *self._stops])

    def __bool__(self) -> bool:
        return self._pattern is not None

    def _found(self, text: str) -> Iterator[re.Match[str]]:
        return iter(()) if self._pattern is None else self._pattern.finditer(text)

    def are_in(self, *texts: str) -> bool:
        """Whether a marker stands in one of some texts."""
        pattern = self._pattern
        return pattern is not None and any(map(pattern.search, texts))

    def within(self, texts: Iterable[str]) -> list[tuple[str, list[int]]]:
        """The special tokens that stand in some texts: each text, and its ids."""
        return [(text, ids) for text, ids in self._ids.items() if any(text in one for one in texts)]

    def starts_in(self, text: str, length: int) -> bool:
        """Whether a marker of a text starts within its first characters."""
        found = next(self._found(text), None)
        return found is not None and found.start() < length

    def first_in(self, text: str) -> str:
        """A text up to the end of its first marker, which is there."""
        return text[: next(self._found(text)).end()]

    def stands_across(self, text: str, length: int) -> bool:
        """Whether a marker starts within the first characters of a text, and ends behind them."""
        return any(found.start() < length < found.end() for found in self._found(text))

    def left(self, text: str) -> list[str]:
        """What of a text is no marker."""
        return [text] if self._pattern is None else self._pattern.split(text)

    def atoms(
        self, text: str, path: str, format: str, *, first_whole: bool = False, may_end: bool = True
    ) -> str:
        """A text as grammar text, each marker as its token, or a choice of that and its letters.

        ``first_whole``: the first marker is its token alone. ``may_end``: the output can end behind
        the text, so that it may end with a stop token; elsewhere that is an error.
        """
        if self._pattern is None:
            return literal(text)
        parts: list[str] = []
        at = 0
        for found in self._found(text):
            marker = found[0]
            ids = self._ids.get(marker) or [self._stops[marker]]
            if marker in self._stops and not (may_end and found.end() == len(text)):
                fail(
                    path,
                    f"the text holds {short(marker)}, which is the stop token {ids[0]} of the "
                    "vocabulary: a stop token ends the output, and more has to follow this one. "
                    "Leave it out of the stop tokens, and it is taken here: pass "
                    "vocabulary.replace(stop_token_ids="
                    f"[i for i in vocabulary.stop_token_ids if i != {ids[0]}])",
                    format,
                )
            if found.start() > at:
                parts.append(literal(text[at : found.start()]))
            whole = f"Token({', '.join(map(str, ids))})"
            alone = first_whole or not self.spelled
            parts.append(whole if alone else f"({literal(marker)} | {whole})")
            first_whole = False
            at = found.end()
        if at < len(text) or not parts:
            parts.append(literal(text[at:]))
        return " ".join(parts)


def check_written(tag: Mapping[str, Any], vocabulary: Vocabulary) -> None:
    """Refuse a tag whose texts the tokens of a vocabulary cannot write.

    Raises:
        StructuralTagError: a stop token stands in a text, and more has to follow it; or no token
            has one of its bytes.
    """
    markers = markers_of(vocabulary)
    single, written = vocabulary._spelled_bytes
    for path, format, text in _texts(tag, ""):
        markers.atoms(text, path, format, may_end=path.rpartition(".")[2] in _LAST)
        if len(single) == 256:
            continue
        rest = "".join(markers.left(text)).encode()
        missing = [byte for byte in rest if byte not in written]
        if missing:
            fail(
                path,
                f"the vocabulary {quoted(vocabulary.name)} cannot write {short(text)}: no token "
                f"has the byte {quoted(bytes(missing[:1]))}; take the vocabulary of a model of "
                "this family",
                format,
            )


_TEXTS = ("begin", "end", "separator", "triggers", "value")
"""The fields whose texts a model has to write."""
_LAST = ("end", "value")
"""Those behind which the output may end."""


def _texts(value: object, path: str) -> Iterator[tuple[str, str, str]]:
    """The texts of a tag: where each stands, the type of its format, and itself."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _texts(item, f"{path}[{i}]")
    elif isinstance(value, dict):
        format = str(value.get("type", ""))
        for name, field in value.items():
            if name == "json_schema":
                continue
            where = f"{path}.{name}" if path else name
            if name in _TEXTS:
                texts = field if isinstance(field, list) else [field]
                yield from ((where, format, text) for text in texts if text)
            else:
                yield from _texts(field, where)


NO_MARKERS = Markers(None)


def markers_of(vocabulary: Vocabulary, spelled: bool = True) -> Markers:
    """The special tokens of a vocabulary as structural tags look for them: sorted once."""
    if spelled:
        return vocabulary._keep("_markers", Markers)
    return vocabulary._keep("_whole_markers", lambda one: Markers(one, spelled=False))


def ignore_markers(vocabulary: Vocabulary) -> None:
    """Take the texts of structural tags as they are, from now on and over this vocabulary."""
    vocabulary.__dict__["_markers"] = vocabulary.__dict__["_whole_markers"] = NO_MARKERS


def _text(token: bytes) -> str:
    """The text of a token; empty where it is none."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return ""
