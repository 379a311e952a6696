"""Slow truths about tables: Lark's interactive parser, and all texts up to a length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import lark
from hypothesis import strategies as st
from tokfold.mask_store.errors import LarkGrammarError
from tokfold.mask_store.grammar import END, LarkGrammar
from tokfold.mask_store.lark_reader import read_lark

TERMINALS = ("A", "B", "C", "D")
RULES = ("start", "p", "q", "r")


@st.composite
def grammar_texts(draw: st.DrawFn) -> str:
    """Small grammars in Lark's language; by far not all are LALR(1)."""
    rules = RULES[: draw(st.integers(1, len(RULES)))]
    symbols = st.sampled_from(rules + TERMINALS[: draw(st.integers(1, 4))])
    lines = []
    for rule in rules:
        expansions = draw(st.lists(st.lists(symbols, max_size=4), min_size=1, max_size=3))
        lines.append(f"{rule}: " + " | ".join(" ".join(e) for e in expansions))
    lines += [f'{name}: "{name.lower()}"' for name in TERMINALS]
    return "\n".join(lines)


def table_of(text: str) -> LarkGrammar | None:
    """The grammar; None where Lark refuses it."""
    try:
        return read_lark(text, lexer="basic")
    except LarkGrammarError:
        return None


class LarkTruth:
    """What Lark's interactive parser says to rows of terminals."""

    def __init__(self, text: str, **options: Any) -> None:
        self._parser = lark.Lark(text, parser="lalr", lexer="basic", **options)

    @classmethod
    def of(cls, parser: lark.Lark) -> LarkTruth:
        self = object.__new__(cls)
        self._parser = parser
        return self

    def begin(self) -> Any:
        return self._parser.parse_interactive("")

    @staticmethod
    def feed(parser: Any, row: Sequence[str]) -> bool:
        """Whether the parser takes the terminals; it has then read them."""
        try:
            for name in row:
                if name == END:
                    parser.feed_eof()
                else:
                    parser.feed_token(lark.Token(name, ""))
        except lark.exceptions.UnexpectedToken:
            return False
        return True

    def takes(self, row: Sequence[str]) -> bool:
        return self.feed(self.begin(), row)

    def texts(self, terminals: Sequence[str], length: int) -> Iterator[tuple[tuple[str, ...], Any]]:
        """All rows of terminals that can be read, with the parser that has read them."""
        level: list[tuple[tuple[str, ...], Any]] = [((), self.begin())]
        while level:
            yield from level
            if len(level[0][0]) == length:
                return
            following = []
            for row, parser in level:
                for name in terminals:
                    fork = parser.copy()
                    if self.feed(fork, (name,)):
                        following.append(((*row, name), fork))
            level = following


def takes_copy(parser: Any, row: Sequence[str]) -> bool:
    """Whether a parser would take the terminals; it stays where it is."""
    return LarkTruth.feed(parser.copy(), row)
