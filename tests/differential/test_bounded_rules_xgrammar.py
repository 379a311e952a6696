"""Rules with ``max_chars`` and ``lazy`` beside XGrammar, and where its bound gives way."""

from __future__ import annotations

from itertools import product

import pytest
import tokfold
import xgrammar

WORDS = ["".join(word) for length in range(6) for word in product("ab", repeat=length)]
INFO = xgrammar.TokenizerInfo([*map(chr, range(128)), "</s>"], stop_token_ids=[128])
COMPILER = xgrammar.GrammarCompiler(INFO, cache_enabled=False)

# A text of these may end after each character, so XGrammar keeps their bounds.
MAY_END = [
    "[ab]*",
    '"a"*',
    '"a"* "b"*',
    '("a" "b"?){0,3}',
    '"" | "a" t',
    'Regex("a*b?a*")',
    'TagDispatch(loop_after_dispatch=false, excludes=("ab"))',
    "u u\nu ::= [ab]*",
]
LAZY = ['[ab]* "b"', '"a" | "ab"', '"ab" | "a" "b" "b"', '"a"*', '"a"+ "b" | "b" [ab]', '[ab] "a"*']


def theirs(grammar: str, text: str) -> bool:
    matcher = xgrammar.GrammarMatcher(COMPILER.compile_grammar(grammar))
    return matcher.accept_string(text) and matcher.is_completed()


def ours(grammar: str, text: str) -> bool:
    read = tokfold.recognize(tokfold.Grammar.from_ebnf(grammar), text)
    return read.accepted and read.complete


CASES = [(f"max_chars={most}", body) for body in MAY_END for most in (1, 2, 3)]
CASES += [("lazy", body) for body in LAZY]


@pytest.mark.parametrize("frame", ["root ::= t", 'root ::= "(" t ")"', 'root ::= t "!" t "!"'])
@pytest.mark.parametrize(("option", "body"), CASES)
def test_the_same_texts(option, body, frame):
    grammar = f"{frame}\nt[{option}] ::= {body}"
    for word in WORDS:
        text = f"({word})" if "(" in frame else f"{word}!{word}!" if "!" in frame else word
        assert ours(grammar, text) == theirs(grammar, text), (grammar, text)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ('root ::= t ")"\nt[max_chars=3] ::= ("aa")*', "aaaa)"),
        ('root ::= t ")"\nt[max_chars=2] ::= "a"+ ("b" "a"+)*', "aba)"),
        ('root ::= t t ")"\nt[max_chars=1] ::= "a"*', "aaa)"),
    ],
)
def test_where_their_bound_gives_way(grammar, text):
    """docs/differences.md, "Rules of at most so many characters"."""
    assert theirs(grammar, text)
    assert not ours(grammar, text)


def test_a_rule_whose_texts_are_all_longer():
    grammar = 'root ::= a "x"\na[max_chars=2] ::= "a"{3,5}'
    assert theirs(grammar, "aaax")
    with pytest.raises(tokfold.UnsupportedGrammarError, match="its shortest text has 3") as caught:
        ours(grammar, "aaax")
    assert (caught.value.construct, caught.value.line) == ("max_chars", 2)
