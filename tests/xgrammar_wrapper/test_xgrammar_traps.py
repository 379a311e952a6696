"""Where plain XGrammar's masks contradict its own ``accept_token``, ours must agree with it.

One row for each flaw of XGrammar's that was found: each needs a cure in what the wrapper hands to
XGrammar, and a class whose representative falls into the trap would take the others along.
"""

from __future__ import annotations

import pytest

xgr = pytest.importorskip("xgrammar")

from tokfold import xgrammar as txgr  # noqa: E402

TRAPS = {
    "tokens skipped as a subtree": ('root ::= "xbxa" | "xc"', ["xa", "xbxa", "c"], []),
    "a recursive root, left": ('root ::= root "d" | "c"', ["c", "d", "dd"], ["c"]),
    "a recursive root, inside": ('root ::= "a" root "b" | ""', ["a", "b", "bb", "ab"], ["a", "a"]),
    "a negated class beyond ASCII after a rule": (
        'root ::= "*"+ [^/\\ud800-\\udfff]',
        ["*", "**", "*,", "*（", "**（", "（", "/"],
        [],
    ),
    "the same with a range": (
        'root ::= "*"+ [^/\\u0100-\\u01ff]',
        ["*", "**", "*,", "*（", "**（", "ā"],
        ["*"],
    ),
}


def allowed(module, grammar: str, vocabulary: list[str], prefix: list[str]) -> list[bool]:
    stop = len(vocabulary)
    info = xgr.TokenizerInfo([*vocabulary, "</s>"], stop_token_ids=[stop])
    compiled = module.GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar)
    matcher = module.GrammarMatcher(compiled)
    for token in prefix:
        assert matcher.accept_token(vocabulary.index(token))
    bitmask = xgr.allocate_token_bitmask(1, stop + 1)
    matcher.fill_next_token_bitmask(bitmask)
    words = [int(word) & 0xFFFFFFFF for word in bitmask[0]]
    return [bool(words[i // 32] >> (i % 32) & 1) for i in range(stop)]


def accepted(grammar: str, vocabulary: list[str], prefix: list[str]) -> list[bool]:
    """What plain XGrammar's ``accept_token`` takes."""
    stop = len(vocabulary)
    info = xgr.TokenizerInfo([*vocabulary, "</s>"], stop_token_ids=[stop])
    compiled = xgr.GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar)
    out = []
    for token in range(stop):
        matcher = xgr.GrammarMatcher(compiled)
        for before in prefix:
            assert matcher.accept_token(vocabulary.index(before))
        out.append(matcher.accept_token(token))
    return out


@pytest.mark.parametrize("trap", TRAPS)
def test_ours_agrees_with_accept_token(trap):
    grammar, vocabulary, prefix = TRAPS[trap]
    assert allowed(txgr, grammar, vocabulary, prefix) == accepted(grammar, vocabulary, prefix)


@pytest.mark.parametrize("trap", TRAPS)
def test_the_trap_is_still_there(trap):
    """Where XGrammar has mended a flaw, the cure can go."""
    grammar, vocabulary, prefix = TRAPS[trap]
    assert allowed(xgr, grammar, vocabulary, prefix) != accepted(grammar, vocabulary, prefix)
