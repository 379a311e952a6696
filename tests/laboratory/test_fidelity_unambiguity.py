"""The proof of unambiguity: never wrong either way, and strong enough for real grammars."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laboratory.fidelity_samples import unambiguous_grammar
from oracles.fidelity import count_derivations
from oracles.model import lower
from strategies.grammars import grammars
from strategies.profiles import CASES, examples
from tokfold import Grammar
from tokfold.laboratory.fidelity import (
    AmbiguousGrammarError,
    Productions,
    UnambiguityUnknownError,
    count_parses,
    require_unambiguous,
)

GRAMMARS = Path(__file__).parents[2] / "grammars"
PROVED = {
    "nesting": 'root ::= "a" root "b" | ""',
    "precedence": 'root ::= root "+" t | t\nt ::= t "*" f | f\nf ::= "x" | "(" root ")"',
    "no bounded lookahead": 'root ::= a "x" | b "y"\na ::= "c" a | "c"\nb ::= "c" b | "c"',
    "white space with one owner": 'root ::= "[" ws (v (ws "," ws v)* ws)? "]"\n'
    'v ::= "1" | root\nws ::= [ \\n]*',
    "strings": 'root ::= "\\"" ([^"\\\\] | "\\\\" .)* "\\""',
    "right to left": 'root ::= root "a" | root "b" "c" | ""',
    "optional runs": 'root ::= "-"? [0-9]+ ("." [0-9]+)? ([eE] [+-]? [0-9]+)?',
    "dangling else told apart": 'root ::= m | o\nm ::= "i" m "e" m | "x"\n'
    'o ::= "i" root | "i" m "e" o',
}
AMBIGUOUS = {
    "operators": ('root ::= root "+" root | "x"', "root"),
    "dangling else": ('root ::= "i" root | "i" root "e" root | "x"', "root"),
    "two runs": ('root ::= "a"* "a"*', "root"),
    "alternatives that overlap": ('root ::= [a-z]* | "abc"', "root"),
    "the same twice": ('root ::= "(" r ")"\nr ::= "a" | "a"', "r"),
    "classes that overlap": ("root ::= [a-m] | [k-z]", "root"),
    "empty in two ways": ('root ::= a b?\na ::= "" | "a"\nb ::= "" | "b"', "(repetition)"),
    "repeats the empty string": ('root ::= ("a" | "")* "b"', "(repetition)"),
    "cycle": ('root ::= a | "x"\na ::= root', "root"),
    "hidden cycle": ('root ::= e root | "x"\ne ::= "" | "y"', "root"),
    "Catalan": ('root ::= "a" | root root', "root"),
}


@pytest.mark.parametrize("name", PROVED)
def test_proved(name):
    require_unambiguous(Productions.of(PROVED[name]))


def test_long_lists_of_words_are_proved():
    words = " | ".join(f'"word{i}"' for i in range(1_000))
    assert require_unambiguous(Productions.of(f"root ::= ({words}) root?")).pairs < 20_000
    with pytest.raises(AmbiguousGrammarError) as raised:
        require_unambiguous(Productions.of(f'root ::= {words} | "word" [x7] "7"'))
    assert raised.value.witness == b"word77"


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_refused_with_a_witness(name):
    text, rule = AMBIGUOUS[name]
    productions = Productions.of(text)
    with pytest.raises(AmbiguousGrammarError, match="ambiguous") as raised:
        require_unambiguous(productions)
    assert raised.value.rule == rule
    witness, start = raised.value.witness, productions.names.index(rule)
    if witness is None:
        assert name in ("cycle", "hidden cycle", "repeats the empty string")
    else:
        assert count_parses(productions, witness, start) > 1


def test_the_grammar_of_json_is_proved():
    grammar = Grammar.from_file(GRAMMARS / "json" / "json.gbnf")
    assert require_unambiguous(Productions.of(grammar)).depth == 1


def test_what_is_neither_is_said_to_be_unknown():
    palindromes = Productions.of('root ::= "a" root "a" | "b" root "b" | "c" | ""')
    with pytest.raises(UnambiguityUnknownError, match="assume_unambiguous=True"):
        require_unambiguous(palindromes)
    with pytest.raises(UnambiguityUnknownError, match="max_pairs of 5 allows"):
        require_unambiguous(Productions.of(PROVED["precedence"]), max_pairs=5)


def _texts(cfg, longest: int):
    letters = sorted(
        {min(s) for p in cfg.productions for s in p.rhs if isinstance(s, frozenset) and s}
    )
    for size in range(longest + 1):
        for text in itertools.islice(itertools.product(letters[:3], repeat=size), 60):
            yield bytes(text)


def _check(grammar) -> None:
    cfg = lower(grammar).pruned()
    productions = Productions.of(Grammar.from_ebnf(str(grammar)))
    try:
        require_unambiguous(productions, max_pairs=20_000)
    except UnambiguityUnknownError:
        CASES["unambiguity unknown"] += 1
        return
    except AmbiguousGrammarError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        CASES["refused as ambiguous"] += 1
        if refused.witness is not None:
            starts = [n for n, name in enumerate(productions.names) if name == refused.rule]
            counts = [count_parses(productions, refused.witness, start) for start in starts]
            assert max(counts) > 1
        return
    CASES["proved unambiguous"] += 1
    for text in _texts(cfg, 4):
        assert count_derivations(cfg, text) <= 1


@given(grammars(max_rules=3, unicode=0.0))
@examples(60)
def test_proofs_hold_for_random_grammars(grammar):
    _check(grammar)


@given(st.integers(0, 1 << 32))
@examples(60)
def test_proofs_hold_for_grammars_that_often_are_unambiguous(seed):
    _check(unambiguous_grammar(seed))


@given(st.integers(0, 1 << 32), st.lists(st.sampled_from([b"a", b"b", b"(", b")"]), max_size=6))
@examples(60)
def test_parses_are_counted_as_derivations_are(seed, letters):
    grammar, text = unambiguous_grammar(seed), b"".join(letters)
    productions = Productions.of(Grammar.from_ebnf(str(grammar)))
    try:
        require_unambiguous(productions, max_pairs=1)
    except AmbiguousGrammarError as error:
        if error.witness is None:
            return  # without end
    except UnambiguityUnknownError:
        pass
    assert count_parses(productions, text) == count_derivations(lower(grammar), text)
