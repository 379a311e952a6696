"""Stop tokens of a matcher that are text in its vocabulary: they may complete the text."""

from __future__ import annotations

from random import Random

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from strategies.engine import compiled_with, mask_of
from strategies.profiles import CASES, examples
from tokfold import Grammar, Matcher

TOKENS = [b"a", b"b", b",", b"(", b")", b"ab", b"b)", b"),", b"a)", b",,", b"aa", b"</s>"]
END = len(TOKENS) - 1
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=[END])
GRAMMARS = [
    'root ::= "(" [ab]* ")"',
    'root ::= ("(" [ab]* ")," )+',
    'root ::= "(" root ")" | "ab"',
    'root ::= [ab]+ ("," [ab]+)* ")"?',
    'root ::= "(" t ")"\nt[max_tokens=2] ::= [ab]*',
    'root ::= "(" t\nt[max_tokens=1] ::= [ab]* ")"',
    'root ::= t "),"\nt[max_tokens=3] ::= [ab]+',
    'root ::= t t\nt[max_chars=3] ::= [ab]+ ")"',
]


@examples(200)
@given(
    st.sampled_from(GRAMMARS),
    st.sets(st.integers(0, END), min_size=1),
    st.sampled_from(["never", "now"]),
    st.randoms(use_true_random=False),
)
def test_a_stop_token_of_text_comes_where_its_letters_complete_the_text(
    text: str, stops: set[int], classes: str, random: Random
) -> None:
    compiled = compiled_with(Grammar.from_ebnf(text), VOCABULARY, classes=classes)
    matcher, plain = Matcher(compiled, stop_token_ids=sorted(stops)), Matcher(compiled)
    for _ in range(12):
        rows, allowed = mask_of(plain, len(TOKENS))[0], mask_of(matcher, len(TOKENS))[0]
        for token, is_allowed in enumerate(allowed):
            expected = rows[token]
            if token in stops:
                after = plain.fork()
                completes = token != END and after.accept_token(token) and after.is_accepting
                expected = plain.is_accepting or completes
            elif token == END:
                expected = False
            assert is_allowed == expected, (text, matcher.text, TOKENS[token])
            fork = matcher.fork()
            assert fork.accept_token(token) == is_allowed
            if is_allowed and token in stops:
                assert fork.is_terminated
                assert fork.is_accepting
                read = b"" if matcher.is_accepting else TOKENS[token]
                assert fork.text == matcher.text + read
                again = Matcher.from_state(compiled, fork.state, stop_token_ids=sorted(stops))
                assert again.is_terminated
                fork.rollback()
                assert mask_of(fork, len(TOKENS))[0] == allowed
            CASES["stop tokens of text: bits"] += 1
        ways = [t for t, is_allowed in enumerate(allowed) if is_allowed and t not in stops]
        if not ways:
            return
        token = random.choice(ways)
        assert matcher.accept_token(token)
        assert plain.accept_token(token)


@pytest.mark.parametrize("engine", ["stack", "chart"])
def test_on_a_chart_it_comes_where_it_completes_the_text_too(engine: str) -> None:
    grammar = Grammar.from_ebnf('root ::= "(" "a"* ")"')
    compiled = compiled_with(grammar, VOCABULARY, engine=engine, classes="never")
    stop = TOKENS.index(b"a)")
    matcher = Matcher(compiled, stop_token_ids=[stop])
    assert not mask_of(matcher, len(TOKENS))[0][stop]
    assert matcher.accept_string("(a")
    assert mask_of(matcher, len(TOKENS))[0][stop]
    assert matcher.fork().accept_token(stop)
    assert matcher.accept_string(")")
    assert mask_of(matcher, len(TOKENS))[0][stop]
    assert matcher.accept_token(stop)


def test_a_draft_takes_it_too() -> None:
    compiled = compiled_with(Grammar.from_ebnf(GRAMMARS[0]), VOCABULARY, classes="never")
    stop = TOKENS.index(b"a)")
    matcher = Matcher(compiled, stop_token_ids=[stop])
    rows = tokfold.allocate_bitmask(3, len(TOKENS))
    draft = [TOKENS.index(b"("), stop]
    assert matcher.fill_bitmask_draft(draft, rows).tolist() == [True, True]
    assert not rows[2].any()
