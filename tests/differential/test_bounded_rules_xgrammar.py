"""Rules with ``max_chars``, ``max_tokens``, ``lazy`` beside XGrammar; where its bounds give way."""

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


# -------------------------------------------------------------------------- tokens

TOKENS = ["a", "b", "(", ")", "!", "ab", "ba", "aab", "(a", "(ab", "a)", "b!", "!a", "!b!"]
IN_TOKENS = xgrammar.TokenizerInfo([*TOKENS, "</s>"], stop_token_ids=[len(TOKENS)])
VOCABULARY = tokfold.Vocabulary([*(t.encode() for t in TOKENS), b"</s>"], [len(TOKENS)])


FRAMES = ["root ::= t", 'root ::= "(" t ")"', 'root ::= (t "!"){1,2}']
# Where what follows the rule is text of the rule too, their budget gives way: see below.
IN_FRAMES = [
    (frame, body)
    for frame in FRAMES
    for body in MAY_END
    if "excludes" not in body or frame == "root ::= t"
]


@pytest.mark.parametrize(("frame", "body"), IN_FRAMES)
@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_same_masks_of_rules_in_tokens(frame, body, most):
    """Along all paths of four tokens; where a rule may end at once, both end it."""
    text = f"{frame}\nt[max_tokens={most}] ::= {body}"
    compiler = xgrammar.GrammarCompiler(IN_TOKENS, cache_enabled=False)
    matcher = xgrammar.GrammarMatcher(compiler.compile_grammar(text))
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf(text), VOCABULARY, classes="now")
    bitmask = xgrammar.allocate_token_bitmask(1, len(TOKENS) + 1)
    ours = tokfold.Matcher(compiled)
    todo: list[tuple[int, ...]] = [()]
    while todo:
        path = todo.pop()
        for token in path:
            assert matcher.accept_token(token)
            assert ours.accept_token(token)
        bitmask.fill_(-1)
        matcher.fill_next_token_bitmask(bitmask)
        row = tokfold.allocate_bitmask(1, len(TOKENS) + 1)
        ours.fill_bitmask(row)
        size = len(TOKENS) + 1
        mine = [token for token in range(size) if row[0, token >> 5] >> (token & 31) & 1]
        other = [token for token in range(size) if int(bitmask[0, token >> 5]) >> (token & 31) & 1]
        assert mine == other, (text, [TOKENS[token] for token in path])
        if len(path) < 4:
            todo.extend((*path, token) for token in mine if token < len(TOKENS))
        matcher.reset()
        ours.reset()


def test_where_the_budget_gives_way_in_xgrammar():
    """docs/differences.md, "Rules of at most so many tokens"."""
    text = 'root ::= t "!"\nt[max_tokens=2] ::= "(" [ab]* ")"'
    compiler = xgrammar.GrammarCompiler(IN_TOKENS, cache_enabled=False)
    matcher = xgrammar.GrammarMatcher(compiler.compile_grammar(text))
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf(text), VOCABULARY)
    ours = tokfold.Matcher(compiled)
    for token, is_taken in (("(", True), ("ab", True), ("ab", False)):
        assert matcher.accept_token(TOKENS.index(token))
        assert ours.accept_token(TOKENS.index(token)) is is_taken
    free = 'root ::= "(" t ")"\nt[max_tokens=1] ::= [^!]*'
    matcher = xgrammar.GrammarMatcher(compiler.compile_grammar(free))
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf(free), VOCABULARY, classes="now")
    ours = tokfold.Matcher(compiled)
    for token, is_taken in (("(", True), ("a", True), (")", True), (")", False)):
        assert matcher.accept_token(TOKENS.index(token))
        if is_taken:
            assert ours.accept_token(TOKENS.index(token))
    assert ours.is_accepting
    assert not ours.accept_token(TOKENS.index(")"))
    none = 'root ::= t "!"\nt[max_tokens=0] ::= [ab]*'
    assert xgrammar.GrammarMatcher(compiler.compile_grammar(none)).accept_token(0)
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf(none), VOCABULARY)
    assert not tokfold.Matcher(compiled).accept_token(0)
