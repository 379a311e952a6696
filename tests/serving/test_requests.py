"""Requests of servers: what they hold is what the library reads, digit for digit."""

import json

import pytest
import tokfold
from tokfold import Grammar, _json
from tokfold._serving import any_tag, choices

EXACT = '{"const": 9007199254740993.0}'


def old(schema: object, **more: object) -> str:
    structure = {"begin": "<f>", "schema": schema, "end": "</f>"}
    return json.dumps({"structures": [structure], "triggers": ["<f"], **more})


def grammar(text: str) -> Grammar:
    return Grammar.from_structural_tag(_json.dumps(any_tag(text)))


@pytest.mark.parametrize("schema", [EXACT, "\ufeff" + EXACT, '{"maximum": %s}' % ("9" * 5_000)])
def test_the_old_form_with_schemas_as_text(schema):
    value = schema.removeprefix("\ufeff")
    assert grammar(old(schema)) == grammar(old("?").replace('"?"', value))
    assert value in _json.dumps(any_tag(old(schema)))


def test_a_name_that_stands_twice():
    twice = '{"type": "integer", "type": "string"}'
    for text in (old(twice), old("?").replace('"?"', twice)):
        with pytest.raises(tokfold.InvalidSchemaError, match="this name before"):
            grammar(text)
    with pytest.raises(
        tokfold.StructuralTagError, match=r"^structures\[0\]: the name 'begin' stands twice"
    ):
        any_tag(old({}).replace('"begin"', '"begin": "<g>", "begin"'))


@pytest.mark.parametrize(
    ("schema", "error", "said"),
    [
        (
            '{"a":\n1',
            tokfold.StructuralTagError,
            r"^structures\[0\]\.schema: the text is no JSON: line 2, column 2: ",
        ),
        ("[" * 100_000, tokfold.LimitExceededError, r"structures\[0\]\.schema is nested 100,000"),
        ('{"const": "\\u0000"}', tokfold.UnsupportedGrammarError, "schema holds NUL"),
        ('{"const": "\0"}', tokfold.UnsupportedGrammarError, "this structural tag holds NUL"),
        ({"const": "\0"}, tokfold.UnsupportedGrammarError, "this structural tag holds NUL"),
    ],
)
def test_schemas_of_the_old_form_that_are_refused(schema, error, said):
    with pytest.raises(error, match=said):
        any_tag(old(schema))


def test_choices_without_nul_and_lone_surrogates():
    assert choices(["a", "b"]) == 'root ::= "a" | "b"'
    for text, said in (("a\0", "this choice holds NUL"), ("\ud800", "a lone surrogate")):
        with pytest.raises(tokfold.UnsupportedGrammarError, match=said):
            choices(["a", text])


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ({"structures": [{"begin": "<a>", "schema": {}}], "triggers": ["<a"]}, "'end' is missing"),
        ({"structures": [{"begin": "<a>", "schema": {}, "end": ""}]}, "'triggers' is missing"),
        ({"structures": [3], "triggers": ["<a"]}, "one of them is a value of another kind"),
        ({"structures": 3, "triggers": ["<a"]}, "one of them is a value of another kind"),
    ],
)
def test_what_a_tag_of_the_old_form_lacks(tag, said):
    with pytest.raises(ValueError, match="a structural tag of the old form has triggers") as caught:
        any_tag(json.dumps(tag))
    assert said in str(caught.value)
    assert "Error" not in str(caught.value)


@pytest.mark.parametrize("given", ["abc", {"a": 1}, 3, [], ["a", 1], None])
def test_choices_that_are_no_list_of_texts(given):
    with pytest.raises(ValueError, match="choices are a list of texts, at least one"):
        choices(given)
