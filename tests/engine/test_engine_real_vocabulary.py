"""On every real grammar, over a real vocabulary: masks by every way are the same.

Walks of a whole vocabulary's trie take subtrees at once and go by way of loops; walks over
representatives do neither, so the two are held against each other. Small vocabularies, as the
other tests draw them, have too few tokens for much of that to happen.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from strategies.profiles import LONG

pytest.importorskip("mistral_common")

import tokfold
from strategies.engine import compiled_with
from tokfold.cli.inputs import read_packaged_tekken

GRAMMARS = sorted((Path(__file__).parents[2] / "grammars").glob("*/*.gbnf"))
STEPS = 2_000 if LONG else 150
"""Masks of each text."""

STRINGS = r"""
root ::= "{" "\"name\": " short ", \"note\": " note ", \"id\": " code ", " key ": " text "}"
short ::= "\"" [^"\\\r\n]{3,40} "\""
note ::= "\"" [^"\\\r\n]{0,300} "\""
code ::= "\"" [a-z0-9_-]{5,96} "\""
text ::= "\"" inside
inside ::= "\"" | [^"\\\u0000-\u001f] inside | "\\" ["\\/bfnrt] inside
key ::= "\"" ("\"" | [^"\\\x00-\x1fn] inside | "n" ("\"" | [^"\\\x00-\u001fa] inside | "a" inside))
"""
TEXT = (
    '{"name": "Grace Brewster Murray Hopper, é", "note": "' + "ein Text, 日本語 " * 12 + '", '
    '"id": "cobol-1959_0001", "nanometre": "line\\nend"}'
)


@pytest.fixture(scope="module")
def vocabulary():
    return read_packaged_tekken()


def check(grammar: tokfold.Grammar, vocabulary: tokfold.Vocabulary, text: bytes) -> None:
    pool = tokfold.MaskPool(vocabulary, 1 << 20)
    ways = [
        compiled_with(grammar, vocabulary, classes="never", pool=None),
        compiled_with(grammar, vocabulary, classes="never", pool=pool),
        compiled_with(grammar, vocabulary, classes="never", pool=pool),
    ]
    folded = compiled_with(grammar, vocabulary, classes="never", pool=None)
    folded.take_classes(tokfold.compile_classes(grammar, vocabulary))
    matchers = [tokfold.Matcher(compiled) for compiled in (*ways, folded)]
    row = tokfold.allocate_bitmask(1, len(vocabulary))
    tokens = vocabulary.encode_greedy(text)
    for step, token in enumerate(tokens[:STEPS]):
        rows = []
        for matcher in matchers:
            matcher.fill_bitmask(row)
            rows.append(row.copy())
        for other in rows[1:]:
            assert np.array_equal(rows[0], other), (step, text[:40])
        assert rows[0][0, token // 32] >> token % 32 & 1
        assert all(matcher.accept_token(token) for matcher in matchers)


@pytest.mark.parametrize("path", GRAMMARS, ids=lambda path: path.stem)
def test_masks_of_real_texts(path, vocabulary):
    grammar = tokfold.Grammar.from_file(path)
    texts = sorted((path.parent / "valid").iterdir(), key=lambda text: text.stat().st_size)
    check(grammar, vocabulary, texts[-1].read_bytes())


def test_masks_within_strings(vocabulary):
    """Bounds near and far, names that begin like a key, characters of several bytes."""
    check(tokfold.Grammar.from_ebnf(STRINGS), vocabulary, TEXT.encode())


NODES = 40_000
"""Fewer nodes of the trie than a mask may enter; it has ten times as many."""

LOOKED_FOR = {
    "type": "object",
    "patternProperties": {"github": {"type": "string", "pattern": "ab.c"}, "hip": {"type": "null"}},
    "additionalProperties": {"type": "string", "pattern": "\\.ya?ml$"},
}
LOOKED_FOR_TEXT = (
    '{"my github": "über ab-c, then more 日本語", "file": "docs/naïve/config.yaml", "chip": null, '
    '"gitlab hipp": null, "gith": "x.yml", "githubgithub": "abéc"}'
)


def test_masks_of_texts_in_which_words_are_looked_for(vocabulary):
    """Names with a word or without it, values that contain one or end so."""
    check(tokfold.Grammar.from_json_schema(LOOKED_FOR), vocabulary, LOOKED_FOR_TEXT.encode())


def test_most_tokens_are_read_at_once_where_a_word_is_looked_for(vocabulary):
    """What leads to the states of a search, as they all read on, needs no walk."""
    schema = {"type": "string", "pattern": "github"}
    grammar = tokfold.Grammar.from_json_schema(schema)
    compiled = compiled_with(grammar, vocabulary, classes="never", pool=None)
    matcher = tokfold.Matcher(compiled)
    row = tokfold.allocate_bitmask(1, len(vocabulary))
    assert matcher.accept_string('"')
    matcher.fill_bitmask(row)
    assert compiled.counters()["trie_nodes"] < NODES


def test_ends_of_strings_in_which_many_letters_differ(vocabulary):
    """Each state of `email` reads most tokens, and `regex` beside it tells their letters apart."""
    formats = {"pattern": "regex", "mail": "email"}
    properties = {name: {"type": "string", "format": kind} for name, kind in formats.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    grammar = tokfold.Grammar.from_json_schema(schema)
    limits = tokfold.Limits(max_mask_work=1_000_000)  # a fifth of the default
    compiled = compiled_with(grammar, vocabulary, classes="never", limits=limits)
    shortest = compiled.shortest()
    matcher = tokfold.Matcher(compiled, max_tokens=shortest.tokens + 1)
    tokens = matcher.closing_tokens()
    assert len(tokens) == shortest.tokens
    assert matcher.accept_tokens(tokens)
    assert matcher.is_accepting
