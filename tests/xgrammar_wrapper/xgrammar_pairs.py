"""A small vocabulary, and grammars compiled by plain XGrammar and by the wrapper."""

from __future__ import annotations

import numpy as np
import xgrammar as xgr
from tokfold import xgrammar as txgr

TOKENS = [b"a", b"b", b"ab", b"", b"a", b"</s>", b"x", b"bb", b"<end>", b'"', b"1", b"\xc3"]
STOPS = [5, 8]


def make_info(tokens: list[bytes] | None = None, stops: list[int] | None = None, size: int = 40):
    return xgr.TokenizerInfo(
        TOKENS if tokens is None else tokens,
        xgr.VocabType.RAW,
        vocab_size=size,
        stop_token_ids=STOPS if stops is None else stops,
    )


def compiled_pair(grammar: str, info: xgr.TokenizerInfo | None = None):
    """Plain first, then wrapped; so does ``makers``."""
    info = info or make_info()
    plain = xgr.GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar)
    return plain, txgr.GrammarCompiler(info).compile_grammar(grammar)


def allowed(matcher: xgr.GrammarMatcher | txgr.GrammarMatcher, size: int) -> list[int]:
    """The tokens that the mask of a matcher allows."""
    words = np.zeros(-(-size // 32), dtype=np.int32)
    matcher.fill_next_token_bitmask(words)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[:size]
    return np.flatnonzero(bits).tolist()


def makers():
    """What makes matchers of a pair, one for each."""
    return xgr.GrammarMatcher, txgr.GrammarMatcher
