"""Structural tags that are wrong: what the error says, and where."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
import tokfold
from strategies.structural_tags import of, tag, token
from tokfold._tags import fields, reading
from tokfold._tags.assembly import check_tag
from tokfold._tags.reading import read
from tokfold.errors import StructuralTagError, TokfoldError
from tokfold.structural_tags import LeafCache, assemble

A = of("const_string", value="a")
VOCABULARY = tokfold.Vocabulary([b"a", b"<A>", b"<A>"])


def grammar_of(format: object, *arguments: Any) -> tokfold.Grammar:
    return assemble({"type": "structural_tag", "format": format}, *arguments)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (of("no_such"), "format", "there is no format of type 'no_such'; there are: any_text, "),
    ({"type": None}, "format", "the type of a format is a string, not null"),
    (of("const_string"), "format", "'value' is missing"),
    (of("const_string", value=1), "format", "'value' is a string, not the number 1"),
    (of("const_string", value="a\ud800"), "format", "'value' holds U+D800, half of a pair"),
    (of("regex", pattern=""), "format", "'pattern' is empty"),
    (of("grammar", grammar=""), "format", "'grammar' is empty"),
    (
        of("grammar", grammar="a", syntax="gbnf"),
        "format",
        "'syntax' is ebnf or lark, and not 'gbnf'",
    ),
    (of("json_schema", json_schema=[]), "format", "is an object, true or false, not a list"),
    (of("json_schema", json_schema={"a": {1}}), "format", "cannot be written as JSON"),
    (of("json_schema", json_schema={}, style="xml"), "format", "gemma, and not 'xml'"),
    (of("json_schema", json_schema={}, any_order=1), "format", "'any_order' is true or false"),
    (of("any_text", excludes="a"), "format", "'excludes' is a list, not a string"),
    (of("any_text", excludes=["a", ""]), "format", "'excludes[1]' is empty, and the empty text"),
    (of("any_text", excludes=[3]), "format", "the list 'excludes' holds strings, not the number 3"),
    (of("any_text", max_chars=-1), "format", "'max_chars' is a number from 0 to 2147483647"),
    (of("any_text", max_chars=1.5), "format", "'max_chars' is a whole number, not the number 1.5"),
    (of("sequence", elements=[]), "format", "'elements' is empty; it holds at least one"),
    (of("or", elements=[A, 3]), "format.elements[1]", "a format is an object, not the number 3"),
    (of("optional"), "format", "'content' is missing"),
    (of("repeat", min=2, max=1, content=A), "format", "'max' is 1, which is less than 'min', 2"),
    (of("repeat", min=-1, max=1, content=A), "format", "'min' is a number from 0"),
    (of("repeat", min=0, max=-2, content=A), "format", "or -1 for no bound, not -2"),
    (of("repeat", min=True, max=2, content=A), "format", "min is a whole number, not true"),
    (tag(1, A, ">"), "format", "'begin' is a string or a token, not the number 1"),
    (tag("<", A, []), "format", "'end' is empty"),
    (tag("<", A, [1]), "format", "the list 'end' holds strings, not the number 1"),
    (tag("<", A, None), "format", "'end' is a string, a list of them or a token, not null"),
    (tag(A, A, ">"), "format.begin", "the one format that can begin or end a tag is 'token'"),
    (of("triggered_tags", triggers=[], tags=[tag("<", A, "")]), "format", "'triggers' is empty"),
    (of("triggered_tags", triggers=["<"], tags=[]), "format", "'tags' is empty"),
    (of("triggered_tags", triggers=["<"], tags=[A]), "format.tags[0]", "each of 'tags' is a"),
    (
        of("triggered_tags", triggers=["<", "<a"], tags=[tag("<a", A, "")]),
        "format.tags[0]",
        'the tag begins with "<" and "<a"; keep one of these triggers',
    ),
    (
        of("triggered_tags", triggers=["<a"], tags=[tag("<b", A, "")]),
        "format.tags[0]",
        'no trigger is how the tag begins, which is "<b"',
    ),
    (
        of("triggered_tags", triggers=["<a", "<b"], tags=[tag("<a", A, "")]),
        "format.triggers[1]",
        "no tag begins with this trigger",
    ),
    (
        of("triggered_tags", triggers=["<a"], tags=[tag(token(1), A, "")]),
        "format.tags[0].begin",
        "a tag that a text triggers begins with a text",
    ),
    (of("tags_with_separator", tags=[tag("<", A, "")]), "format", "'separator' is missing"),
    (of("dispatch", rules=[["", A]]), "format.rules[0][0]", "the pattern is empty"),
    (of("dispatch", rules=[["a"]]), "format.rules[0]", "is a list of two"),
    (of("dispatch", rules=[[1, A]]), "format.rules[0][0]", "a pattern is a string"),
    (of("dispatch", rules=[]), "format", "'rules' is empty"),
    (of("dispatch", rules=[["a", A]], loop="no"), "format", "'loop' is true or false"),
    (token(-1), "format.token", "a token id is a number from 0 to 2147483647, not -1"),
    (token(1.5), "format.token", "a token is a whole number, not the number 1.5"),
    (token(9), "format.token", "the vocabulary has 3 tokens, and none is 9"),
    (token("zz"), "format.token", "the vocabulary has no token 'zz'"),
    (token(""), "format.token", "the text of a token is not empty"),
    (of("any_tokens", exclude_tokens=["zz"]), "format.exclude_tokens[0]", "has no token 'zz'"),
    (
        of("token_triggered_tags", trigger_tokens=[0, 0], tags=[tag(token(0), A, "")]),
        "format.tags[0]",
        "the token 0, with which it begins, is a trigger twice",
    ),
    (
        of("token_triggered_tags", trigger_tokens=[0], tags=[tag(token(1), A, "")]),
        "format.tags[0]",
        "the token 1, with which it begins, is no trigger",
    ),
    (
        of("token_triggered_tags", trigger_tokens=[0, 1], tags=[tag(token(0), A, "")]),
        "format.trigger_tokens[1]",
        "no tag begins with this token",
    ),
    (
        of("token_triggered_tags", trigger_tokens=[0], tags=[tag("<", A, "")]),
        "format.tags[0].begin",
        "a tag that a token triggers begins with a token",
    ),
    ({"min": 1, "max": 2, "content": A}, "format", "does not say its 'type'"),
    ({"rules": [["a", A]], "excludes": ["b"]}, "format", "does not say its 'type'"),
    ({"content": A, "begin": "<"}, "format", "does not say its 'type'"),
]


@pytest.mark.parametrize(("format", "path", "said"), WRONG)
def test_what_is_wrong_with_a_format(format, path, said):
    with pytest.raises(StructuralTagError, match=re.escape(said)) as caught:
        grammar_of(format, VOCABULARY)
    assert caught.value.path == path
    assert str(caught.value).startswith(path)
    # and so it is within others
    with pytest.raises(StructuralTagError, match=re.escape(said)) as caught:
        grammar_of(of("sequence", elements=[A, of("star", content=format)]), VOCABULARY)
    assert caught.value.path == "format.elements[1].content" + path.removeprefix("format")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.path, again.format) == (
        str(caught.value),
        caught.value.path,
        caught.value.format,
    )


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "the structural tag is no JSON: line 1, column 2"),
        ('{"format": {"type": "any_text"}} x', "the structural tag is no JSON: line 1, column 34"),
        ("[]", "a structural tag is a JSON object, not a list"),
        (3, "a structural tag is a JSON object, not the number 3"),
        ({"format": A, "type": "json_schema"}, "is 'structural_tag', not 'json_schema'"),
        ({"type": "structural_tag"}, "a structural tag has a 'format', and this one has none"),
        ('{"format":' * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_tag(document, said):
    with pytest.raises(StructuralTagError, match=re.escape(said)) as caught:
        assemble(document)
    assert (caught.value.path, caught.value.format) == ("", "")
    assert isinstance(caught.value, TokfoldError)
    assert isinstance(caught.value, ValueError)


def test_formats_are_nested_a_hundred_levels_deep():
    format = A
    for _ in range(99):
        format = of("optional", content=format)
    assert tokfold.recognize(grammar_of(format), "a").accepted
    with pytest.raises(StructuralTagError, match="formats are nested deeper than 100 levels"):
        grammar_of(of("optional", content=format))
    format = A
    for _ in range(99):  # the tags of a format are no level of their own
        format = of("triggered_tags", triggers=["<"], tags=[tag("<", format, ">")])
    assert read({"format": format}).type == "triggered_tags"


UNTYPED = [
    ({"value": "x"}, "const_string"),
    ({"begin": "<", "content": {"value": "x"}, "end": ">"}, "tag"),
    ({"elements": [{"value": "x"}]}, "sequence"),
    ({"content": {"value": "x"}}, "optional"),
    ({"excludes": ["x"]}, "any_text"),
    ({"json_schema": {"type": "integer"}, "style": "json"}, "json_schema"),
    ({"triggers": ["<"], "tags": [{"begin": "<", "content": A, "end": ""}]}, "triggered_tags"),
    ({"separator": "", "tags": [{"begin": "<", "content": A, "end": ""}]}, "tags_with_separator"),
    ({"rules": [["<", {"value": "x"}]]}, "dispatch"),
    ({"rules": [[1, {"value": "x"}]], "loop": True}, "token_dispatch"),
]


@pytest.mark.parametrize(("format", "type"), UNTYPED)
def test_formats_that_do_not_say_their_type(format, type):
    assert read({"format": format}).type == type


WIDE = {"properties": {f"p{number}": {"type": "string"} for number in range(40)}}
BOUNDED = [
    (of("json_schema", json_schema=WIDE), "max_schema_states"),
    (tag("<", of("regex", pattern="(a|b)*a(a|b){9}"), ">"), "max_automaton_states"),
    (of("grammar", grammar="root ::= " + "(" * 60 + '"a"' + ")" * 60), "max_nesting"),
]


@pytest.mark.parametrize(("format", "limit"), BOUNDED)
@pytest.mark.parametrize("door", ["grammar", "assemble", "compile", "compiler", "vllm"])
def test_limits_bound_each_part(format: dict[str, Any], limit: str, door: str):
    given = {"type": "structural_tag", "format": format}
    bounds = {"max_schema_states": 1, "max_automaton_states": 100, "max_nesting": 20}
    limits = tokfold.Limits(**{limit: bounds[limit]})
    tokens = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    byte_vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[256])
    compiler = tokfold.GrammarCompiler(byte_vocabulary, limits=limits)
    doors = {
        "grammar": lambda: tokfold.Grammar.from_structural_tag(given, limits=limits),
        "assemble": lambda: assemble(given, limits=limits),
        "compile": lambda: tokfold.compile(given, byte_vocabulary, limits),
        "compiler": lambda: compiler.compile_structural_tag(given),
        "vllm": lambda: check_tag(given, limits),
    }
    grammar = tokfold.Grammar.from_structural_tag(given)  # what is kept of it is under no limits
    for _ in range(2):
        with pytest.raises(tokfold.LimitExceededError) as caught:
            doors[door]()
        assert caught.value.limit == limit
    assert tokfold.Grammar.from_structural_tag(given) == grammar


def test_a_deadline_ends_the_conversion_of_a_tag():
    format = of("json_schema", json_schema=WIDE)
    with pytest.raises(tokfold.DeadlineExceededError):
        tokfold.Grammar.from_structural_tag(
            {"format": format}, interrupt=tokfold.Interrupt(milliseconds=0)
        )


def test_limits_that_bound_no_conversion_share_leaves():
    cache = LeafCache()
    given = {"format": of("json_schema", json_schema=WIDE)}
    for limits in (
        None,
        tokfold.Limits(),
        tokfold.Limits(max_compile_milliseconds=60_000, max_mask_milliseconds=50),
        tokfold.Limits(max_mask_work=1_000_000),
    ):
        assemble(given, cache=cache, limits=limits)
    assert (cache.info.misses, cache.info.hits) == (1, 3)
    assemble(given, cache=cache, limits=tokfold.Limits(max_schema_states=1_000))
    assert cache.info.misses == 2


STOPS = tokfold.Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"</s>", b"<|call|>"], stop_token_ids=[256, 257]
)
CALL = "<|call|>"


@pytest.mark.parametrize(
    "format",
    [
        tag(CALL, A, "x"),
        tag("<", A, f"{CALL}x"),
        of("tags_with_separator", tags=[tag("(", A, ")")], separator=CALL),
        of("triggered_tags", triggers=[CALL], tags=[tag(CALL, A, "x")]),
        of("triggered_tags", triggers=["<|call"], tags=[tag(CALL, A, "x")]),
        of("dispatch", rules=[[CALL, A]]),
    ],
)
@pytest.mark.parametrize("markers", ["tokens", "both"])
def test_a_stop_token_that_more_must_follow(format, markers):
    document = {"type": "structural_tag", "format": format, "markers": markers}
    with pytest.raises(StructuralTagError, match="is the stop token 257") as caught:
        assemble(document, STOPS)
    advice = re.search(r"pass (vocabulary\.replace\(.*\))", str(caught.value))
    assert advice
    assert assemble(document, eval(advice[1], {"vocabulary": STOPS}))


@pytest.mark.parametrize(
    "format",
    [tag("(", A, CALL), tag("(", A, ["x", CALL]), tag(CALL, A, ""), tag(CALL, A, ["", "x"])],
)
def test_a_stop_token_that_may_end_the_output(format):
    """The last two are refused where the grammar is made, since their content must follow."""
    document = {"type": "structural_tag", "format": format, "markers": "tokens"}
    if format["begin"] == CALL:
        with pytest.raises(tokfold.UnsupportedGrammarError, match="token 257 is a stop token"):
            tokfold.compile(document, STOPS)
        return
    matcher = tokfold.Matcher(tokfold.compile(document, STOPS))
    assert matcher.accept_bytes(b"(a")
    assert matcher.accept_token(257)
    assert matcher.is_terminated


UNKNOWN = [
    (
        of("any_text", exclude=["b"]),
        "format",
        "there is no field 'exclude'; did you mean 'excludes'?",
    ),
    (of("json_schema", json_schema={}, max_whitespace=0), "format", "'max_whitespace_cnt'?"),
    (
        of("sequence", elements=[A, of("regex", pattern="a", flags="i")]),
        "format.elements[1]",
        "'flags'",
    ),
    (tag("<", A, ">") | {"ends": [">"]}, "format", "did you mean 'end'?"),
    (
        of("triggered_tags", triggers=["<"], tags=[tag("<", A, ">") | {"stop": True}]),
        "format.tags[0]",
        "there is no field 'stop'; there are: type, begin, content, end",
    ),
    (
        of("triggered_tags", triggers=["<"], tags=[tag("<", A, ">")], stop_after_frist=True),
        "format",
        "did you mean 'stop_after_first'?",
    ),
    (tag(of("token", token=1) | {"text": "x"}, A, ">"), "format.begin", "there is no field 'text'"),
]


@pytest.mark.parametrize(("format", "path", "said"), UNKNOWN)
def test_a_field_that_there_is_not(format, path, said):
    with pytest.raises(StructuralTagError, match=re.escape(said)) as caught:
        grammar_of(format)
    assert caught.value.path == path


def test_a_field_that_the_tag_itself_does_not_have():
    with pytest.raises(StructuralTagError, match="did you mean 'markers'"):
        assemble({"type": "structural_tag", "format": A, "marker": "tokens"})


@pytest.mark.parametrize("nothing", [None, False, "", [], {}])
def test_a_field_of_other_releases_that_says_nothing(nothing):
    assert grammar_of({**A, "later": nothing}) == grammar_of(A)
    free = of("triggered_tags", triggers=["<"], tags=[tag("<", A, ">")])
    assert grammar_of({**free, "later": nothing}) == grammar_of(free)


def test_every_format_has_its_fields():
    """A new format needs a row, and no row is of a format that there is not."""
    assert set(fields._KNOWN) - {""} == set(reading._READERS)


@pytest.mark.parametrize(
    ("format", "mended"),
    [
        ({"grammar": 'start: "a"'}, {"syntax": "lark"}),
        ({"grammar": 'root ::= "a"', "syntax": "lark"}, {"syntax": None}),
    ],
)
def test_advice_on_a_grammar_in_another_language_stays_within_the_tag(format, mended):
    with pytest.raises(tokfold.GrammarSyntaxError) as caught:
        grammar_of(of("grammar", **format))
    said = str(caught.value)
    assert "Grammar.from" not in said
    assert '"syntax"' in said.rpartition(";")[2]
    fields = {name: value for name, value in {**format, **mended}.items() if value is not None}
    assert tokfold.recognize(grammar_of(of("grammar", **fields)), "a").accepted


def test_faults_of_added_tags_stand_in_what_was_added():
    found = grammar_of(of("triggered_tags", triggers=["<"], tags=[tag("<", A, ">")]))
    for added, path in (
        ([tag("<b", A, ">"), 5], "added[1]"),
        ([{"begin": "<b", "content": A}], "added[0]"),
        ([tag("<b", of("no_such"), ">")], "added[0].content"),
    ):
        with pytest.raises(StructuralTagError, match=re.escape(path)) as caught:
            found.with_tags(added=added)
        assert caught.value.path == path
    rules = grammar_of(of("dispatch", rules=[["<", A]]))
    with pytest.raises(StructuralTagError, match=r"^added\[0\]\[1\]") as caught:
        rules.with_tags(added=[["!", of("no_such")]])
    assert caught.value.path == "added[0][1]"


def test_a_place_in_the_text_that_a_tag_became_is_said_to_be_there():
    document = {"format": of("sequence", elements=[A, of("token", token=257), A])}
    grammar = assemble(document, STOPS)
    with pytest.raises(tokfold.UnsupportedGrammarError) as caught:
        tokfold.compile(grammar, STOPS)
    assert "of str(grammar)" in str(caught.value)
    line = str(grammar).splitlines()[caught.value.line - 1]
    assert line[caught.value.column - 1 :].startswith("Token(257)")
