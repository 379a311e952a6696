"""A vocabulary, steps with a ``GrammarCompiler``, and a gate that holds a compilation open."""

from __future__ import annotations

import threading
from random import Random

import numpy as np
import pytest
import tokfold
from support.processes import DEADLINE_S
from tokfold import GrammarCompiler


def build_tokens() -> list[bytes]:
    """Enough for masks to be shared by the pool."""
    random = Random(1)
    letters = [*"abcdex", *'()[]{},:-+" \\/0129', "é", "true", "null"]
    out = dict.fromkeys(bytes([b]) for b in range(256))
    while len(out) < 2_000:
        out["".join(random.choices(letters, k=random.randint(1, 5))).encode()] = None
    return [*out, b"</s>"]


TOKENS = build_tokens()
STOP = len(TOKENS) - 1
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP])
STRING = 'root ::= "{key}" "\\"" [^"\\\\]* "\\""\n'
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<",
        "content": {"type": "const_string", "value": "a"},
        "end": ">",
    },
}


def compiler_of(**options) -> GrammarCompiler:
    options.setdefault("classes", "never")
    options.setdefault("seed", False)
    return GrammarCompiler(VOCABULARY, **options)


def row_of(matcher: tokfold.Matcher) -> np.ndarray:
    bitmask = tokfold.allocate_bitmask(1, len(TOKENS))
    matcher.fill_bitmask(bitmask)
    return bitmask[0].copy()


def takes(compiled: tokfold.CompiledGrammar, text: str) -> bool:
    matcher = tokfold.Matcher(compiled)
    return matcher.accept_string(text) and matcher.is_accepting


def use(compiler: GrammarCompiler, texts: list[str], prefix: str = "") -> None:
    """Make a mask of each grammar."""
    for text in texts:
        matcher = tokfold.Matcher(compiler.compile_grammar(text))
        assert matcher.accept_string(prefix)
        row_of(matcher)


class Gate:
    """Compiling stops at a gate, for grammars that hold a word, until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.word, self.entered, self.opened = "slow", threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self.compiled: list[str] = []
        real = tokfold.compiler.compile

        def compile(grammar, *args, **options):
            self.compiled.append(str(grammar))
            if self.word in str(grammar):
                self.entered.set()
                assert self.opened.wait(DEADLINE_S)
                if self.error is not None:
                    raise self.error
            return real(grammar, *args, **options)

        monkeypatch.setattr("tokfold.compiler.compile", compile)


SLOW = 'root ::= "slow"'
"""Stops at the gate."""
