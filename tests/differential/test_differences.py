"""``docs/differences.md`` says what is so: every witness in it, in both engines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import tokfold
import xgrammar as xgr
from tokfold.xgrammar.forms import IS_028

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
WITNESSES = [
    json.loads(block)
    for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
]


def tokens_of(witness):
    if "bytes" in witness:
        return [bytes.fromhex(token) for token in witness["bytes"]]
    return [token.encode() for token in witness["tokens"]]


def token_of(witness):
    return bytes.fromhex(witness["token"]) if "bytes" in witness else witness["token"].encode()


@pytest.mark.parametrize("witness", WITNESSES, ids=lambda witness: witness["grammar"][:40])
def test_witness(witness):
    if IS_028 and "since" in witness:
        pytest.skip(f"of XGrammar {witness['since']}")
    tokens = [*tokens_of(witness), b"</s>"]
    token_id = tokens.index(token_of(witness))
    info = xgr.TokenizerInfo(tokens, stop_token_ids=[len(tokens) - 1])
    compiled = xgr.GrammarCompiler(info, cache_enabled=False).compile_grammar(witness["grammar"])
    theirs = xgr.GrammarMatcher(compiled)
    assert theirs.accept_string(witness["text"])
    rows = xgr.allocate_token_bitmask(1, len(tokens))
    theirs.fill_next_token_bitmask(rows)
    assert bool(rows[0, 0] >> token_id & 1) is witness["xgrammar_mask"]
    assert theirs.accept_token(token_id) is witness["xgrammar_accepts"]

    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[len(tokens) - 1])
    grammar = tokfold.Grammar.from_ebnf(witness["grammar"])
    for classes in ("never", "now"):
        ours = tokfold.Matcher(tokfold.compile(grammar, vocabulary, classes=classes))
        assert ours.accept_string(witness["text"])
        bitmask = tokfold.allocate_bitmask(1, len(vocabulary))
        ours.fill_bitmask(bitmask)
        assert bool(np.bitwise_and(bitmask[0, 0] >> token_id, 1)) is witness["ours"]
        assert ours.accept_token(token_id) is witness["ours"]


def test_the_page_has_witnesses_of_each_kind():
    contradictions = [w for w in WITNESSES if w["xgrammar_mask"] is not w["xgrammar_accepts"]]
    dead_ends = [w for w in WITNESSES if w["xgrammar_accepts"] is not w["ours"]]
    assert len(contradictions) >= 2
    assert dead_ends
