"""Grammars with macros in our own engine: names, places, errors, what stays as it was."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import pytest

pytest.importorskip("xgrammar")

import tokfold
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
    matcher = tokfold.Matcher(tokfold.compile(grammar, Vocabulary(BYTES)))
    assert matcher.accept_string("<ab" + "ab" * 200 + "a")
    assert matcher.explain(0).innermost_rules in {("long",), ("root",)}
    assert set(matcher.explain(0).open_rules) <= {"root", "long"}
    assert matcher.accept_string("b>")
    assert matcher.is_accepting


@pytest.mark.parametrize(
    ("text", "construct", "line", "column"),
    [
        ('root ::= "a"\n  Regex("(")', "Regex", 2, 3),
        ('root ::= "a" | Regex("\\\\bx")', "Regex", 1, 16),
        ('root ::= Regex("a") | Token(999)', "Token", 1, 23),
        ('root ::= TagDispatch(("a", x))\nx[lazy] ::= "b"', "lazy", 2, 1),
        ('root ::= Regex("a") x\nx[max_tokens=3] ::= "b"', "max_tokens", 2, 1),
        ('root ::= Regex("a") (= "b")', "lookahead", 1, 1),
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


def test_bytes_that_are_not_utf_8_are_xgrammars():
    """``.`` takes what looks like UTF-8 to XGrammar's automata, and no byte alone."""
    grammar = Grammar.from_ebnf('root ::= Regex(".")')
    assert tokfold.recognize(grammar, "é").accepted
    assert tokfold.recognize(grammar, b"\xe0\x80\x80").accepted
    assert not tokfold.recognize(grammar, b"\xff").read


def test_dead_ends_are_kept_without_pruning():
    """No JSON string holds a line end, so what comes before it leads nowhere."""
    grammar = Grammar.from_ebnf('root ::= "a" | Regex("b\\n", json_string=true)')
    vocabulary = Vocabulary([b"a", b"b", b"c"])
    folded = [
        tokfold.compile_classes(grammar, vocabulary, prune=prune).class_of.tolist()
        for prune in (True, False)
    ]
    assert [classes[1] == -1 for classes in folded] == [True, False]
    assert tokfold.recognize(grammar, "b").read == 0


def test_classes_from_a_cache_know_which_xgrammar_made_them(tmp_path, monkeypatch):
    grammar = Grammar.from_ebnf(TEXT)
    vocabulary = Vocabulary(BYTES)
    made = tokfold.compile_classes(grammar, vocabulary, cache_dir=tmp_path)
    assert tokfold.compile_classes(grammar, vocabulary, cache_dir=tmp_path) == made
    count = len(list(tmp_path.rglob("*.tokfold*")))
    monkeypatch.setattr("tokfold.classes.installed_version", lambda name: "another")
    tokfold.compile_classes(grammar, vocabulary, cache_dir=tmp_path)
    assert len(list(tmp_path.rglob("*.tokfold*"))) == count + 1


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


MISSING = """
import sys
sys.modules["xgrammar"] = None
import tokfold
grammar = tokfold.Grammar.from_ebnf('root ::= Regex("a") | Substring("b")')
assert "Regex" in str(grammar) and len(grammar.fingerprint) == 64
for use in (
    lambda: tokfold.recognize(grammar, "a"),
    lambda: tokfold.compile(grammar, tokfold.Vocabulary([b"a"])),
):
    try:
        use()
    except tokfold.MissingExtraError as error:
        print(error)
print(tokfold.recognize(tokfold.Grammar.from_ebnf('root ::= "a"'), "a").accepted)
"""


def test_without_xgrammar_the_extra_is_named():
    result = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    assert all('pip install "tokfold[xgrammar]"' in line for line in lines[:2])
    assert lines[0].startswith("a grammar with Regex and Substring needs")
    assert lines[2] == "True"


def test_the_core_takes_no_automaton_that_names_what_is_not_there():
    core = Grammar.from_ebnf('root ::= Regex("a") | x\nx ::= "b"')._core
    (number, *_), *_ = core.macros()
    good = (2, 0, [1], [(0, 97, 97, 1)], [])
    for bad in (
        [],
        [(2, 2, [1], [], [])],
        [(2, 0, [2], [], [])],
        [(2, 0, [1], [(0, 97, 97, 2)], [])],
        [(2, 0, [1], [(0, 98, 97, 1)], [])],
        [(2, 0, [1], [], [(0, True, 2, 1, 1, 1)])],
        [(2, 0, [1], [], [(0, False, 0, 1, 1, 1)])],
        [good, (2, 0, [1], [], [(0, False, 0, 2, 1, 1)])],
    ):
        with pytest.raises(ValueError, match="not there"):
            core.with_meanings({number: bad})
    with pytest.raises(ValueError, match="not there"):
        core.with_meanings({number + 1: [good]})
    assert core.with_meanings({number: [good]}).macros() == []
