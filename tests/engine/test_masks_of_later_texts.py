"""Masks take no more the more texts a grammar has read.

Walks of a vocabulary remember what they meet: the sets of stacks inside of strings, say. What they
met in other texts must not keep them from remembering what they meet in this one.
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("mistral_common")

import tokfold
from strategies.engine import compiled_with
from tokfold.cli.inputs import read_packaged_tekken

STRINGS = 10
WORDS = "one two three four five six seven eight nine ten eleven twelve"


def masks(compiled: tokfold.CompiledGrammar, names: list[str]) -> tuple[list[bytes], int]:
    """The masks of an object with some members, and the nodes of the trie that they enter."""
    matcher = tokfold.Matcher(compiled)
    vocabulary = compiled.vocabulary
    row = tokfold.allocate_bitmask(1, len(vocabulary))
    before = compiled.counters()["trie_nodes"]
    text = json.dumps(dict.fromkeys(names, WORDS)).removesuffix("}")
    rows = []
    for token in vocabulary.encode_greedy(text.encode()):
        matcher.fill_bitmask(row)
        rows.append(row.tobytes())
        assert matcher.accept_token(token)
    return rows, compiled.counters()["trie_nodes"] - before


def test_strings_of_other_texts_do_not_slow_masks_down():
    """Each string counts its words, so each word is a set of stacks that no other string has."""
    members = {
        f"s{number}": {"pattern": rf"^(?:\S+\s+){{0,{14 + number}}}\S+$", "maxLength": 200}
        for number in range(STRINGS)
    }
    schema = {"properties": {name: {"type": "string", **says} for name, says in members.items()}}
    grammar = tokfold.Grammar.from_json_schema({"type": "object", **schema})
    vocabulary = read_packaged_tekken()
    *others, last = members
    fresh, used = (compiled_with(grammar, vocabulary, classes="never", pool=None) for _ in range(2))
    masks(used, others)
    later, entered = masks(used, [last])
    alone, entered_alone = masks(fresh, [last])
    assert later == alone
    assert entered < 1.5 * entered_alone
