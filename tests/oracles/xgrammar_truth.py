"""What XGrammar itself accepts, one byte at a time.

Every byte is a token of its own here, so none of XGrammar's mask machinery is in play: only its
parser. Its masks are known to contradict it now and then; its ``accept_token`` is the truth.
"""

from __future__ import annotations

import xgrammar

from oracles.model import Grammar, to_ebnf


class ByteTruth:
    """XGrammar's parser for one grammar, over a vocabulary of the 256 bytes."""

    def __init__(self, grammar: Grammar) -> None:
        info = xgrammar.TokenizerInfo(
            [bytes((byte,)) for byte in range(256)],
            vocab_type=xgrammar.VocabType.RAW,
            stop_token_ids=[],
        )
        compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        parsed = xgrammar.Grammar.from_ebnf(to_ebnf(grammar), root_rule_name=grammar.root)
        self._matcher = xgrammar.GrammarMatcher(compiler.compile_grammar(parsed))

    def read(self, data: bytes) -> tuple[int, list[bool]]:
        """How many bytes are taken, and whether each prefix that is taken is a sentence."""
        self._matcher.reset()
        complete = [self._matcher.is_completed()]
        for count, byte in enumerate(data):
            if not self._matcher.accept_token(byte):
                return count, complete
            complete.append(self._matcher.is_completed())
        return len(data), complete
