"""Stop tokens of a matcher that are text in the vocabulary, beside XGrammar 0.2.9.

Both take such a token where the text is complete, and where the token completes it.
"""

from __future__ import annotations

from random import Random

import pytest
import tokfold
from strategies.engine import mask_of
from strategies.profiles import CASES, LONG

xgr = pytest.importorskip("xgrammar")

from tokfold.xgrammar.forms import IS_028  # noqa: E402


def grammar_of(random: Random) -> str:
    """Rules of which each has a text, so that pruning takes nothing away."""
    names = ["root", "x", "y", "z"][: random.randint(1, 4)]

    def atom(depth: int) -> str:
        match random.randrange(10):
            case 0 | 1 if names[1:]:
                return random.choice(names[1:])
            case 2 if depth:
                return f"({choice(depth - 1)}){random.choice(['', '?', '*', '+'])}"
            case 3:
                return f"[{random.choice(['ab', 'a-c', 'bc', '^a'])}]"
        return '"' + "".join(random.choices("abc", k=random.randint(1, 3))) + '"'

    def choice(depth: int) -> str:
        rows = ([atom(depth) for _ in range(random.randint(1, 3))] for _ in range(3))
        return " | ".join(" ".join(row) for row in rows)

    rules = [f'{name} ::= "{random.choice("abc")}" | {choice(2)}' for name in names]
    return "\n".join(rules)


@pytest.mark.skipif(IS_028, reason="XGrammar 0.2.8 takes no stop token for text")
@pytest.mark.parametrize("seed", range(2_000 if LONG else 150))
def test_walks(seed: int) -> None:
    random = Random(seed)
    text = grammar_of(random)
    words = ["".join(random.choices("abc", k=random.randint(1, 4))) for _ in range(7)]
    tokens = [word.encode() for word in ["a", "b", "c", *words, "</s>"]]
    end = len(tokens) - 1
    own = random.sample(range(len(tokens)), random.randint(1, 3))
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[end])
    options = tokfold.CompileOptions(check_tokens=False)
    classes = random.choice(["never", "now"])
    compiled = tokfold.compile(text, vocabulary, classes=classes, options=options)
    info = xgr.TokenizerInfo(tokens, vocab_type=xgr.VocabType.RAW, stop_token_ids=[end])
    theirs = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False).compile_grammar(text)
    for _ in range(4):
        ours = tokfold.Matcher(compiled, stop_token_ids=own)
        plain = xgr.GrammarMatcher(theirs, override_stop_tokens=own)
        while not ours.is_terminated:
            bits, _ = mask_of(ours, len(tokens))
            # a stop token of the vocabulary that the matcher does not have is text in XGrammar
            for token in set(range(len(tokens))) - {end}.difference(own):
                assert plain.fork().accept_token(token) == bits[token], (text, tokens, own, token)
            CASES["stop tokens of matchers: masks"] += 1
            allowed = [token for token in range(len(tokens)) if bits[token] and token not in own]
            ending = [token for token in own if bits[token]]
            if not allowed or (ending and random.random() < 0.3):
                allowed = ending
            if not allowed or ours.num_steps == 8:
                break
            token = random.choice(allowed)
            assert ours.accept_token(token)
            assert plain.accept_token(token)
            assert ours.is_terminated == plain.is_terminated()
