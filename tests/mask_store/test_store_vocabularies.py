"""Stores over odd vocabularies: bytes that are no tokens, and sizes around whole words."""

from __future__ import annotations

import random

import lark
import pytest
from lark.indenter import Indenter
from mask_store.store_samples import parses
from mask_store.test_store_matcher import accepted, allowed
from strategies.profiles import LONG
from tokfold import Vocabulary
from tokfold.mask_store.lark_reader import read_lark
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.store import MaskStore


class Lines(Indenter):
    NL_type, INDENT_type, DEDENT_type, tab_len = "_NL", "_INDENT", "_DEDENT", 4  # type: ignore[assignment]
    OPEN_PAREN_types, CLOSE_PAREN_types = ["LPAR"], ["RPAR"]  # type: ignore[assignment]


BLOCKS = r"""
start: (line | block)+
block: A ":" _NL _INDENT (line | block)+ _DEDENT
line: A "(" A* ")" _NL | A _NL
A: "a"
_NL: /(\r?\n[ \t]*(#[^\n]*)?)+/
LPAR: "("
RPAR: ")"
%declare _INDENT _DEDENT
"""

PIECES = [*"a:\n\r \t#()", "\r\n", "\n ", "a\n", ":\n\t", "a\r\n", ")\n", "\n\n", "#a\n"]


@pytest.mark.parametrize("seed", range(120 if LONG else 24))
def test_newlines_where_bytes_are_no_tokens(seed: int) -> None:
    """What the lexer does inside of a token may lead through states to which no token leads."""
    rng = random.Random(seed)
    pieces = {piece for piece in PIECES if rng.random() < 0.6}
    pieces |= {"".join(rng.choices("a:\n\r \t#()", k=rng.randint(2, 4))) for _ in range(8)}
    tokens = [piece.encode() for piece in sorted(pieces)]
    vocabulary = Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)])
    store = MaskStore(read_lark(BLOCKS, postlex=Lines()), vocabulary)
    truth = lark.Lark(BLOCKS, parser="lalr", postlex=Lines())
    for _ in range(6):
        matcher = StoreMatcher(store)
        for _ in range(12):
            mask = allowed(matcher)
            assert mask == accepted(matcher), matcher.text
            assert matcher.is_accepting == parses(truth, matcher.text.decode()), matcher.text
            choices = sorted(mask - {len(tokens)})
            if not choices:
                break
            assert matcher.accept_token(rng.choice(choices))


@pytest.mark.parametrize("size", [30, 31, 32, 33, 63, 64, 95])
def test_vocabularies_around_whole_words(size: int) -> None:
    tokens = [b"a" * (token % 9 + 1) + b"b" * (token // 9) for token in range(size - 1)]
    vocabulary = Vocabulary([*tokens, b"</s>"], stop_token_ids=[size - 1])
    matcher = StoreMatcher(MaskStore(read_lark("start: /[ab]+/"), vocabulary))
    assert allowed(matcher) == accepted(matcher) == set(range(size - 1))
    assert matcher.accept_token(0)
    assert allowed(matcher) == set(range(size))
