"""What errors on grammars advise: each test follows the advice, and looks at what it gives."""

from __future__ import annotations

import json
import re

import pytest
import tokfold
from tokfold import Grammar, GrammarSyntaxError, UnsupportedGrammarError


def test_what_is_no_grammar_of_a_name_in_lark():
    with pytest.raises(
        TypeError, match=r"named\['x'\] must be Lark text or a tokfold\.Grammar, not int"
    ):
        Grammar.from_lark('start: "a"', named={"x": 5})


@pytest.mark.parametrize(
    ("dialect", "wrong", "named"),
    [("python", "(?&a)", "(?P<n>a)"), ("ecma", "(?-:a)", "(?<n>a)")],
)
def test_the_advice_on_groups_is_that_of_the_dialect(dialect, wrong, named):
    with pytest.raises(GrammarSyntaxError, match="there is no such group") as caught:
        Grammar.from_regex(wrong, dialect=dialect)
    assert named.replace("n>a)", "name>") in str(caught.value)
    assert Grammar.from_regex(named, dialect=dialect)


def test_grammar_text_as_a_part_of_lark():
    with pytest.raises(GrammarSyntaxError, match=r"named\['x'\] is grammar text") as caught:
        Grammar.from_lark("start: @x", named={"x": 'root ::= "b"'})
    assert "pass Grammar.from_ebnf(text)" in str(caught.value)
    part = Grammar.from_ebnf('root ::= "b"')
    assert tokfold.recognize(Grammar.from_lark("start: @x", named={"x": part}), "b").accepted


def test_a_pattern_of_several_lines_has_its_places():
    with pytest.raises(GrammarSyntaxError) as caught:
        Grammar.from_regex("é\nb\n[z-a]")
    assert (caught.value.line, caught.value.column) == (3, 2)
    assert str(caught.value).startswith("line 3, column 2: ")


def test_groups_may_be_nested_as_deep_in_lark_as_in_grammar_text():
    for depth, is_taken in ((3, True), (4, False)):
        text = "(" * depth + '"a"' + ")" * depth
        for read, head in ((Grammar.from_ebnf, "root ::= "), (Grammar.from_lark, "start: ")):
            limits = tokfold.Limits(max_nesting=3)
            if is_taken:
                assert read(head + text, limits=limits)
            else:
                with pytest.raises(tokfold.LimitExceededError, match="max_nesting"):
                    read(head + text, limits=limits)


def test_advice_within_a_class_stays_within_it():
    for letter in "CRX":
        with pytest.raises(UnsupportedGrammarError, match="a class holds one"):
            Grammar.from_regex(rf"[\{letter}x]")


@pytest.mark.parametrize(
    ("compiled", "takes", "refuses"),
    [
        (re.compile("a  # c", re.VERBOSE), "a", "a  # c"),
        (re.compile(r"\w+", re.ASCII), "a", "é"),
        (re.compile(r"\w  b", re.ASCII | re.VERBOSE | re.IGNORECASE), "aB", "éb"),
        (re.compile(b"ab"), "ab", "b"),
    ],
)
def test_the_advice_on_a_compiled_pattern_keeps_its_flags(compiled, takes, refuses):
    with pytest.raises(TypeError) as caught:
        Grammar.from_regex(compiled)
    call = re.search(r"call (Grammar\.from_regex\(.*?\)), with", str(caught.value))
    assert call
    found = eval(call[1], {"Grammar": Grammar, "pattern": compiled})
    assert tokfold.recognize(found, takes).accepted
    assert not tokfold.recognize(found, refuses).accepted


@pytest.mark.parametrize("name", ["A", "a/b", "a~b", "a%b", 'a"b', "a b", "é"])
def test_the_advice_on_definitions_leads_to_them(name):
    schema = {"$defs": {name: {"type": "integer"}}}
    vocabulary = tokfold.Vocabulary([b"1", b"</s>"], stop_token_ids=[1])
    with pytest.raises(tokfold.AmbiguousSourceError) as caught:
        tokfold.compile(schema, vocabulary)
    advice = re.search(r'as \{("\$ref": .*), \.\.\.\}', str(caught.value))
    assert advice
    note = next(note for note in Grammar.from_json_schema(schema).notes if "as {" in note.message)
    for found in (f"{{{advice[1]}}}", re.search(r"as (\{.*\})", note.message)[1]):
        mended = Grammar.from_json_schema({**schema, **json.loads(found)})
        assert tokfold.recognize(mended, "1").accepted
        assert not tokfold.recognize(mended, "null").accepted
