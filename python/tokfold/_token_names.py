"""Tokens that grammar text names by their texts (``<|end|>``), looked up in a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tokfold.errors import GrammarSyntaxError, UnsupportedGrammarError

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary

__all__ = ["NamedTokens", "ids_of_texts"]

_PIECES = re.compile(
    r"""
    (?<=[A-Za-z0-9_.\-]) \[ [^\]"\r\n]* (?: "[^"\r\n]*" [^\]"\r\n]* )* \] (?= [ \t]* ::= )
    | " (?: [^"\\\r\n] | \\[^\r\n] )* "?
    | ' [^'\r\n]* '
    | \[ (?: [^\]\\\r\n] | \\[^\r\n] )* \]?
    | \# [^\r\n]*
    | (?P<token> (?P<not>!?) (?P<text> < [^>\r\n]* > ) )
    """,
    re.VERBOSE,
)
"""What the reader of grammar text takes as a whole: options of a rule, literals, classes, comments
and tokens. The rest has none of their beginnings."""

_LINES = re.compile(r"\r\n|\r|\n")


def ids_of_texts(texts: Iterable[str], vocabulary: Vocabulary) -> dict[str, list[int]]:
    """The ids of the tokens with some texts, ascending; a text that no token has is not there."""
    by_bytes = {text.encode("utf-8", "surrogatepass"): text for text in texts}
    found: dict[str, list[int]] = {}
    if by_bytes:
        for token_id, token in enumerate(vocabulary.token_bytes):
            if token in by_bytes:
                found.setdefault(by_bytes[token], []).append(token_id)
    return found


class NamedTokens:
    """Grammar text with ids in place of the texts of tokens, and where that moved what follows.

    Cost: a pass over the text, and one over the vocabulary where a token is named.

    Attributes:
        text: the text to read.

    Raises:
        UnsupportedGrammarError: the vocabulary has no such token.
    """

    def __init__(self, text: str, vocabulary: Vocabulary | None) -> None:
        """Look tokens up; without a vocabulary each is there, as some token."""
        named = [
            piece
            for piece in (_PIECES.finditer(text) if "<" in text else ())
            if piece["token"] and not piece["text"].startswith("<[")
        ]
        names = {piece["text"] for piece in named}
        ids = {name: [0] for name in names}
        if vocabulary is not None:
            ids = ids_of_texts(names, vocabulary)
        parts: list[str] = []
        self._moved: list[tuple[int, int, int]] = []
        """Line, column behind a token as it is read, and how much further that is than it was."""
        at = 0
        for piece, (line, column) in zip(named, _places(text, named), strict=True):
            found = ids.get(piece["text"])
            if found is None:
                raise UnsupportedGrammarError(
                    f"line {line}, column {column}: {piece['token']}: the vocabulary has no such "
                    "token; write its text as a literal, or another token",
                    piece["token"],
                    line,
                    column,
                )
            written = f"{'Exclude' if piece['not'] else ''}Token({', '.join(map(str, found))})"
            parts += (text[at : piece.start()], written)
            at = piece.end()
            before = self._moved[-1] if self._moved else (0, 0, 0)
            moved = before[2] if before[0] == line else 0
            more = len(written) - len(piece["token"])
            self._moved.append((line, column + moved + len(written), moved + more))
        self.text = "".join([*parts, text[at:]])

    def placed(
        self, error: GrammarSyntaxError | UnsupportedGrammarError
    ) -> GrammarSyntaxError | UnsupportedGrammarError:
        """An error of the text that was read, with its place in the text that was given."""
        shifts = [m for line, end, m in self._moved if line == error.line and end <= error.column]
        if not shifts:
            return error
        column = error.column - shifts[-1]
        was, now = (f"line {error.line}, column {c}" for c in (error.column, column))
        message = str(error).replace(was, now, 1)
        if isinstance(error, UnsupportedGrammarError):
            return UnsupportedGrammarError(message, error.construct, error.line, column)
        return GrammarSyntaxError(message, error.line, column)


def _places(text: str, pieces: Iterable[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Line and column, from 1, of pieces in order. Cost: one pass over the text."""
    line, start, known = 1, 0, 0
    for piece in pieces:
        for end in _LINES.finditer(text, known, piece.start()):
            line, start = line + 1, end.end()
        known = piece.start()
        yield line, piece.start() - start + 1
