"""Vocabularies that are empty or impossible, and tokens of a megabyte."""

from __future__ import annotations

import pytest
from support.hostile_runner import NEEDS_LIMITS, SMALL_STACK, check, outcomes, run
from tokfold import Grammar, Vocabulary, VocabularyError, compile_classes

pytestmark = NEEDS_LIMITS


@pytest.mark.parametrize("tokens", [[], [b""], [None, b""]])
def test_an_empty_vocabulary(tokens):
    with pytest.raises(VocabularyError, match="empty"):
        Vocabulary(tokens)


@pytest.mark.parametrize("stop", [[3], [-1], [2**32], [2**70], [0, 3]])
def test_a_stop_token_outside(stop):
    with pytest.raises(VocabularyError, match=r"stop_token_ids"):
        Vocabulary([b"a", b"b", b"c"], stop_token_ids=stop)


def test_tokens_past_the_view_of_a_repetition_are_apart():
    """Copies are written out for tokens of up to a kilobyte; the others are classes of their own,
    but for those whose beginning is dead."""
    long = [b"a" * n for n in (1_000, 1_024, 1_025, 3_000, 3_001)]
    tokens = [b"a", b"b", *long, b"b" * 3_000, b"a" * 3_000]
    cut = compile_classes(Grammar.from_ebnf('root ::= "a"{0,1000000}'), Vocabulary(tokens))
    assert cut.class_of[1] == cut.class_of[7] == -1
    assert len(set(cut.class_of[4:7].tolist())) == 3
    assert cut.class_of[5] == cut.class_of[8]
    assert cut.stats["over_budget_tokens"] >= 4
    star = compile_classes(Grammar.from_ebnf('root ::= "a"*'), Vocabulary(tokens))
    assert star.class_of.tolist() == [0, -1, 0, 0, 0, 0, 0, -1, 0]


@pytest.mark.parametrize("stack", [0, SMALL_STACK])
def test_a_token_of_a_megabyte(stack):
    body = """
        M = 1_000_000
        for name, text, token in (
            ("star", "root ::= [a-z]*", b"a" * M),
            ("open", 'root ::= "(" root ")" | "a"', b"(" * M),
            ("close", 'root ::= "(" root ")" | "a"', b")" * M),
            ("both", 'root ::= "(" root ")" | "a"', b"(" * (M // 2) + b")" * (M // 2)),
            ("ambiguous", 'root ::= root root | root root root | "a" | ""', b"a" * M),
            ("palindrome", 'root ::= "a" root "a" | "b" root "b" | ""', b"ab" * (M // 2)),
            ("subsets", 'root ::= [ab]* "a" [ab]{25}', b"ab" * (M // 2)),
        ):
            grammar = Grammar.from_ebnf(text)
            step(name, lambda: compile_classes(grammar, Vocabulary([*BYTES, token])))
        """
    steps = check(run(body, stack))
    assert set(outcomes(steps)) == {"ok"}
    assert steps["star"].value == 1


def test_a_token_of_a_megabyte_and_a_repetition():
    """Its length decides how many copies there are of what is repeated."""
    body = """
        vocabulary = Vocabulary([*BYTES, b"a" * 1_000_000])
        for text in ('root ::= "a"{0,1000000}', 'root ::= ("a" | "b" root "c"){0,1000000}'):
            grammar = Grammar.from_ebnf(text)
            step(text, lambda: compile_classes(grammar, vocabulary))
        """
    check(run(body))


@pytest.mark.parametrize("stack", [0, SMALL_STACK])
@pytest.mark.parametrize("prune", [True, False])
def test_tokens_of_10_000_brackets(stack, prune):
    """Past some depth a token is a class of its own; not one is taken for another."""
    body = """
        text = 'root ::= "(" root ")" root | "[" root "]" root | "(" root "]" | "a" | ""'
        grammar = Grammar.from_ebnf(text)
        tokens = [*BYTES]
        for half in (b"(", b")", b"([", b"])", b")("):
            tokens += [half * n for n in (100, 490, 499, 500, 501, 999, 1000, 1001, 5000)]
        tokens += [b"(" * n + b")" * n for n in (499, 501, 5000)]
        tokens += [b")" * n + b"(" * n for n in (499, 501, 5000)]
        tokens += [b"(" * n + b"a" + b"]" * n for n in (499, 501, 5000)]
        found = step("fold", lambda: compile_classes(grammar, Vocabulary(tokens), prune=PRUNE))
        apart = [found.class_of[tokens.index(b"(" * n)] for n in (100, 499, 1000, 5000)]
        step("apart", lambda: None if len(set(apart)) == 4 else 1 / 0)
        """
    steps = check(run(body.replace("PRUNE", str(prune)), stack))
    assert outcomes(steps) == ["ok", "ok"]
