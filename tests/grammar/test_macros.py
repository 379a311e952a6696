"""Grammars with macros in our own engine: names, places, errors, what stays as it was."""

from __future__ import annotations

import pickle
import sys
import threading

import pytest
import tokfold
from support import processes
from tokfold import Grammar, UnsupportedGrammarError, Vocabulary

TEXT = """root ::= "<" name ">" | "." other
name ::= "x" Regex("[a-c]{2}") "y"
other ::= TagDispatch(("#", tail), loop_after_dispatch=false)
tail ::= "!" Substring("é", "b")
"""
BYTES = [bytes([b]) for b in range(256)]


def test_the_grammar_stays_what_was_written():
    grammar = Grammar.from_ebnf(TEXT)
    before = (str(grammar), grammar.fingerprint, hash(grammar), grammar.rule_names)
    assert tokfold.recognize(grammar, "<xaby>").accepted
    assert tokfold.recognize(grammar, "..#!éb").accepted
    assert tokfold.recognize(grammar, "<xay>").read == 3
    assert (str(grammar), grammar.fingerprint, hash(grammar), grammar.rule_names) == before
    assert "Regex(" in str(grammar)
    again = pickle.loads(pickle.dumps(grammar))
    assert again == grammar
    assert tokfold.recognize(again, ".#!b").accepted
    assert grammar._compilable is grammar._compilable  # made once


def test_a_grammar_without_macros_is_compiled_as_it_is():
    grammar = Grammar.from_ebnf('root ::= "a" | unused\nunused ::= "b"')
    assert grammar._compilable is grammar._core


def test_macros_that_nothing_reaches_are_not_read():
    grammar = Grammar.from_ebnf('root ::= "a"\nunused ::= Regex("(")')
    assert tokfold.recognize(grammar, "a").accepted


def test_explanations_name_the_rules_of_the_text():
    vocabulary = Vocabulary([*BYTES, b"ab", b"</s>"], stop_token_ids=[257])
    compiled = tokfold.compile(Grammar.from_ebnf(TEXT), vocabulary, classes="now")
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_string("<x")
    found = matcher.explain(256)
    assert found.allowed
    assert (found.open_rules, found.innermost_rules) == (("root", "name"), ("name",))
    refused = matcher.explain(ord("d"))
    assert (refused.expected, refused.refused_byte) == (b"abc", ord("d"))
    matcher.reset()
    assert matcher.accept_string(".z#!")
    assert matcher.explain(0).open_rules[-1] == "tail"
    assert matcher.explain(0).innermost_rules == ("tail",)


def test_large_repetitions_are_the_rule_that_holds_them():
    grammar = Grammar.from_ebnf('root ::= "<" long\nlong ::= Regex("(ab){2,300}") ">"')
    matcher = tokfold.Matcher(
        tokfold.compile(
            grammar, Vocabulary(BYTES), options=tokfold.CompileOptions(check_tokens=False)
        )
    )
    assert matcher.accept_string("<ab" + "ab" * 200 + "a")
    assert matcher.explain(0).innermost_rules in {("long",), ("root",)}
    assert set(matcher.explain(0).open_rules) <= {"root", "long"}
    assert matcher.accept_string("b>")
    assert matcher.is_accepting


@pytest.mark.parametrize(
    ("text", "construct", "line", "column"),
    [
        ('root ::= "a"\n  Regex("(")', "Regex", 2, 3),
        ('root ::= "a" | Regex("(a)\\\\1")', "Regex", 1, 16),
        ('root ::= Regex("a") | Token(999)', "Token", 1, 23),
        ('root ::= TagDispatch(("a", x))\nx[lazy] ::= "b" | "(" x ")"', "lazy", 2, 1),
        ('root ::= Regex("a") x\nx[max_tokens=3] ::= "b" x "c" | "d"', "max_tokens", 2, 1),
        ('root ::= a "c"\na ::= Regex("a") (= "b")', "lookahead", 2, 1),
        ('root ::= Regex("a") | TokenTagDispatch((999, x))\nx ::= "b"', "TokenTagDispatch", 1, 23),
    ],
)
def test_what_is_left_is_refused_by_name_and_place(text, construct, line, column):
    grammar = Grammar.from_ebnf(text)
    vocabulary = Vocabulary(BYTES)
    for refused in (
        lambda: tokfold.compile(grammar, vocabulary),
        lambda: tokfold.compile_classes(grammar, vocabulary),
        lambda: tokfold.recognize(grammar, "x"),
    ):
        with pytest.raises(UnsupportedGrammarError) as caught:
            refused()
        error = caught.value
        assert (error.construct, error.line, error.column) == (construct, line, column)
        assert str(error).startswith(f"line {line}, column {column}: {construct}: ")
        assert "/project/" not in str(error)


def test_implied_lookahead_is_passed_over():
    text = 'root ::= part "b"\npart ::= Regex("a+") (= Regex("b"))\n'
    grammar = Grammar.from_ebnf(text, lookahead="implied")
    assert tokfold.recognize(grammar, "aab").accepted


def test_a_pattern_takes_characters():
    grammar = Grammar.from_ebnf('root ::= Regex(".")')
    assert tokfold.recognize(grammar, "é").accepted
    assert not tokfold.recognize(grammar, "\n").read
    assert tokfold.recognize(grammar, b"\xe0\x80\x80").read == 1
    assert not tokfold.recognize(grammar, b"\xff").read


def test_lookaround_and_word_boundaries():
    grammar = Grammar.from_ebnf(r'root ::= "<" Regex("(?!if\\b)[a-z]+\\b") ">"')
    texts = {"<iffy>": True, "<if>": False, "<a>": True, "<>": False}
    assert {text: tokfold.recognize(grammar, text).accepted for text in texts} == texts


def test_a_pattern_inside_of_a_json_string():
    """Its texts, with the escapes that JSON needs and no others."""
    grammar = Grammar.from_ebnf(r'root ::= "\"" Regex("a[\"\\n/]{1,200}", json_string=true) "\""')
    for text in ('"a/"', r'"a\n"', r'"a\"/\n"', f'"a{"/" * 200}"'):
        assert tokfold.recognize(grammar, text).accepted, text
    for text in ('"a""', '"a\n"', r'"a\/"', r'"a\u002f"', f'"a{"/" * 201}"'):
        assert not tokfold.recognize(grammar, text).accepted, text


def test_limits_name_the_macro():
    limits = tokfold.Limits(max_automaton_states=50)
    for macro in ('Regex("(?=a)[ab]{9}c[ab]{99}")', f'Substring("{"abc" * 50}")'):
        grammar = Grammar.from_ebnf(f'root ::= "a"\n  | {macro}', limits=limits)
        with pytest.raises(tokfold.LimitExceededError, match=r"line 2, column 5: \w+: ") as caught:
            tokfold.recognize(grammar, "a")
        assert (caught.value.limit, caught.value.value) == ("max_automaton_states", 50)


def test_many_threads_may_ask_at_once():
    grammar = Grammar.from_ebnf('root ::= Regex("a+") Regex("[b-d]{3}") Substring("x", "y")')
    found: list[bool] = []

    def ask() -> None:
        found.append(tokfold.recognize(grammar, "aabcdxy").accepted)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


WITHOUT = """
import sys
sys.modules["xgrammar"] = None
import tokfold
grammar = tokfold.Grammar.from_ebnf('root ::= Regex("a") | Substring("b", "c")')
print([tokfold.recognize(grammar, text).accepted for text in ("a", "bc", "ab")])
"""


def test_nothing_else_is_needed():
    result = processes.run([sys.executable, "-c", WITHOUT])
    assert (result.stdout, result.stderr) == ("[True, True, False]\n", "")
