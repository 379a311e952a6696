"""Structural tags: reading, assembling, the cache of leaves, errors, the page about them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tokfold
from strategies.composition import joined as joined_texts
from strategies.structural_tags import of, tag, token
from support.forks import exit_code
from tokfold import structural_tags
from tokfold._sources.frames import FrameSource
from tokfold._tags import leaves, reading
from tokfold._tags.reading import read
from tokfold.errors import (
    GrammarSyntaxError,
    InvalidSchemaError,
    SchemaError,
    StructuralTagError,
    UnsatisfiableSchemaError,
    UnsupportedGrammarError,
)
from tokfold.structural_tags import LeafCache, assemble

ROOT = Path(__file__).resolve().parents[2]
Json = dict[str, Any]

A = {"type": "const_string", "value": "a"}
FREE = {"type": "any_text"}


def grammar_of(format: Json, *arguments: Any, **options: Any) -> tokfold.Grammar:
    return assemble({"type": "structural_tag", "format": format}, *arguments, **options)


def verdict(grammar: tokfold.Grammar, text: str) -> str:
    found = tokfold.recognize(grammar, text)
    whole = found.read == len(text.encode())
    return "accepted" if found.accepted else "prefix" if whole else "refused"


# --------------------------------------------------------------------- verdicts


def test_recorded_verdicts():
    """XGrammar's, of every format of text; ``tests/differential`` records them.

    It spells U+007F in a string of an ``enum`` with an escape, and in no other string: there ours
    is not compared.
    """
    path = ROOT / "tests" / "data" / "structural_tags.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) > 300
    vocabulary = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])
    for line in lines:
        case = json.loads(line)
        if "\x7f" in case["texts"] or "\\u007f" in line:
            continue
        grammar = assemble(case["tag"])
        compiled = tokfold.compile(
            grammar, vocabulary, classes="never", options=tokfold.CompileOptions(check_tokens=False)
        )
        for text, said in case["texts"].items():
            matcher = tokfold.Matcher(compiled)
            taken = matcher.accept_string(text)
            complete = "accepted" if matcher.is_accepting else "prefix"
            assert (complete if taken else "refused") == said, (case["tag"], text)
            assert verdict(grammar, text) == said


def test_the_frame_is_grammar_text():
    """Without free text, a pattern or a schema nothing else is needed."""
    inner = of("or", elements=[A, of("star", content=of("const_string", value='"\\\n')), A])
    format = of("sequence", elements=[tag("<", inner, [">", ""]), of("optional", content=A)])
    grammar = grammar_of(format)
    assert str(grammar) == (
        'star_0 ::= "\\"\\\\\\n"*\n'
        'or_0 ::= "a" | star_0 | "a"\n'
        'tag_0 ::= "<" or_0 (">" | "")\n'
        'optional_0 ::= "a"?\n'
        "sequence_0 ::= tag_0 optional_0\n"
        "root ::= sequence_0\n"
    )
    assert tokfold.Grammar.from_ebnf(str(grammar), lookahead="implied") == grammar


@pytest.mark.parametrize("make", [json.dumps, dict, lambda value: Model(value)])
def test_a_tag_is_text_an_object_or_a_model(make):
    document = {"type": "structural_tag", "format": of("plus", content=A)}
    assert assemble(make(document)) == assemble(document)
    assert verdict(assemble(make(document)), "aa") == "accepted"


class Model:
    """As pydantic's."""

    def __init__(self, document: Json) -> None:
        self.document = document

    def model_dump(self) -> Json:
        return self.document


def test_xgrammars_own_objects():
    xst = pytest.importorskip("xgrammar.structural_tag")
    format = xst.TriggeredTagsFormat(
        triggers=["<"],
        tags=[xst.TagFormat(begin="<a", content=xst.AnyTextFormat(), end=">")],
        excludes=["!"],
    )
    grammar = assemble(xst.StructuralTag(format=format))
    texts = {"x<ab>y": "accepted", "x<b": "refused", "x<a": "prefix", "!": "refused"}
    assert {text: verdict(grammar, text) for text in texts} == texts


def test_literals_of_every_character():
    characters = [*map(chr, range(0x180)), "\u2028", "\ufeff", "\ud7ff", "\U0010ffff", "｜"]
    for character in characters:
        text = f"{character}1{character}"  # a digit would lengthen a hexadecimal escape
        grammar = grammar_of(of("const_string", value=text))
        assert verdict(grammar, text) == "accepted", character
        assert verdict(grammar, f"{character}2") == "refused"


def test_max_chars_without_excluded_texts_is_counted():
    grammar = grammar_of(of("sequence", elements=[of("any_text", max_chars=3), A]))
    texts = {"a": "accepted", "éééa": "accepted", "ééé": "prefix", "éééé": "refused"}
    assert {text: verdict(grammar, text) for text in texts} == texts
    for format in (of("any_text", max_tokens=0), of("any_text", max_chars=0, excludes=["x"])):
        assert [verdict(grammar_of(format), text) for text in ("", "a")] == ["accepted", "refused"]


def test_budgets_of_tokens():
    tokens = [*(bytes([byte]) for byte in range(128)), b"ab", b"<t>", b"</t>", b"x</t>", b"<<"]
    vocabulary = tokfold.Vocabulary(tokens)

    def after(content, *read):
        grammar = grammar_of(tag("<t>", content, "</t>"))
        matcher = tokfold.Matcher(
            tokfold.compile(grammar, vocabulary, options=tokfold.CompileOptions(check_tokens=False))
        )
        for one in (b"<t>", *read):
            assert matcher.accept_token(tokens.index(one))
        found = (b"a", b"ab", b"<", b"x</t>", b"</t>")
        return [matcher.fork().accept_token(tokens.index(one)) for one in found]

    two = of("any_text", max_tokens=2)
    assert after(two, b"ab") == [True, True, True, True, True]
    assert after(two, b"ab", b"ab") == [False, False, True, False, True]
    assert after(of("any_text", max_tokens=2, max_chars=3), b"ab") == [
        True,
        False,
        True,
        True,
        True,
    ]
    assert after(of("any_text", max_tokens=9, max_chars=3), b"a", b"ab") == [
        *(False, False, True, False, True),
    ]
    whole = of("any_tokens", max_tokens=2, exclude_tokens=[tokens.index(b"<<")])
    assert after(whole, b"ab") == [True, True, True, True, True]
    assert after(whole, b"ab", b"ab") == [False, False, True, False, True]


# ----------------------------------------------------------------------- ends


def test_free_text_ends_where_the_innermost_tag_does():
    pytest.importorskip("xgrammar")
    inner = tag("<i>", FREE, ["</i>", ";"])
    grammar = grammar_of(tag("<o>", of("sequence", elements=[FREE, inner, FREE]), "</o>"))
    texts = {
        "<o>x</i>;<i></o></i>y</o>": "accepted",
        "<o><i>x;</o>": "accepted",
        "<o></o>": "refused",
        "<o><i>;;</o></o>": "refused",
    }
    assert {text: verdict(grammar, text) for text in texts} == texts


TRIGGERED = of("triggered_tags", triggers=["<"], tags=[tag("<", A, ">")])
ENDLESS = [
    FREE,
    TRIGGERED,
    of("tags_with_separator", separator=",", tags=[tag("<", A, ">")]),
    of("dispatch", rules=[["<", A]]),
    of("star", content=A),
    of("plus", content=A),
    of("repeat", min=0, max=-1, content=A),
    of("repeat", min=0, max=2, content=FREE),
    of("optional", content=FREE),
    of("sequence", elements=[A, FREE]),
    of("or", elements=[A, of("star", content=A)]),
    of("any_tokens"),
    of("token_dispatch", rules=[[1, A]]),
    of("optional", content=of("any_text", excludes=["x"])),
]
ENDING = [
    A,
    of("any_text", excludes=["x"]),
    {**TRIGGERED, "excludes": ["x"]},
    of("dispatch", rules=[["<", A]], excludes=["x"]),
    of("repeat", min=0, max=0, content=FREE),
    of("repeat", min=0, max=9, content=A),
    of("optional", content=A),
    of("sequence", elements=[A, of("any_text", excludes=["x"])]),
    of("or", elements=[A, of("dispatch", rules=[["<", A]], excludes=["x"])]),
    tag("<", FREE, ">"),
]


@pytest.mark.parametrize("end", ["", ["", ""]])
@pytest.mark.parametrize("around", [lambda x: x, lambda x: of("optional", content=x)])
def test_a_tag_whose_content_is_endless_needs_an_end(end, around):
    for content in ENDLESS:
        with pytest.raises(StructuralTagError, match="can be endless, and 'end' is empty"):
            grammar_of(around(tag("[", content, end)))
    for content in ENDING:
        assert grammar_of(around(tag("[", content, end)))


def test_ends_are_checked_within_tags_of_all_formats():
    bad = tag("<a", FREE, "")
    for format, path in (
        (of("triggered_tags", triggers=["<"], tags=[bad]), "format.tags[0]"),
        (of("tags_with_separator", separator="", tags=[bad]), "format.tags[0]"),
        (of("dispatch", rules=[["x", A], ["<", bad]]), "format.rules[1][1]"),
        (of("star", content=bad), "format.content"),
        (of("sequence", elements=[A, of("or", elements=[bad])]), "format.elements[1].elements[0]"),
        (tag("x", bad, "y"), "format.content"),
    ):
        with pytest.raises(StructuralTagError) as caught:
            grammar_of(format)
        assert (caught.value.path, caught.value.format) == (path, "tag")


# ---------------------------------------------------------------------- leaves


@pytest.mark.parametrize(
    ("format", "error", "said"),
    [
        (of("json_schema", json_schema=False), UnsatisfiableSchemaError, "#: no value satisfies"),
        (
            of("json_schema", json_schema={"type": "x"}),
            InvalidSchemaError,
            "#: type: expected one of",
        ),
        (of("regex", pattern="(a"), GrammarSyntaxError, "column 1: .* is not closed"),
        (of("regex", pattern="(a)\\1"), UnsupportedGrammarError, "column 4: backreference"),
        (of("grammar", grammar="root ::= b"), GrammarSyntaxError, "line 1, column 10"),
        (of("grammar", grammar='root ::= "a" (= "b")'), UnsupportedGrammarError, "lookahead"),
    ],
)
def test_leaves_that_are_refused_say_where(format, error, said):
    with pytest.raises(error, match=said) as caught:
        grammar_of(of("sequence", elements=[A, format]))
    assert str(caught.value).startswith("format.elements[1] (")
    assert not isinstance(caught.value, StructuralTagError)


def test_errors_of_schemas_point_into_the_tag():
    schema = {"properties": {"a/b": {"items": {"minimum": "1"}}}}
    content = of("sequence", elements=[A, of("json_schema", json_schema=schema)])
    format = of("triggered_tags", triggers=["<"], tags=[tag("<a", content, ">")])
    with pytest.raises(InvalidSchemaError) as caught:
        grammar_of(format)
    place = "#/properties/a~1b/items"
    assert caught.value.pointer == (
        "#/format/tags/0/content/elements/1/json_schema" + place.removeprefix("#")
    )
    assert str(caught.value).startswith(
        f"format.tags[0].content.elements[1] (json_schema), behind '<aa': {place}: minimum: "
    )


def test_objects_are_closed_unless_asked_otherwise():
    schema = {"properties": {"a": {"type": "integer"}}, "type": "object"}
    format = tag("<", of("json_schema", json_schema=schema), ">")
    texts = ('<{"a": 1}>', '<{"a": 1, "b": 2}>', "<{}>")
    said = ["accepted", "refused", "accepted"]
    assert [verdict(grammar_of(format), text) for text in texts] == said
    opened = grammar_of(format, additional_properties=True)
    assert [verdict(opened, text) for text in texts] == ["accepted"] * 3
    free = of("dispatch", rules=[["<", of("json_schema", json_schema=schema)]])
    for is_open in (False, True):
        one = grammar_of(free, additional_properties=is_open)
        two = one.with_tags(added=[["!", of("json_schema", json_schema={**schema, "title": ""})]])
        for text in ('<{"b": 2}', '!{"b": 2}'):
            assert (verdict(two, text) == "accepted") is is_open
    with pytest.raises(TypeError, match="additional_properties"):
        grammar_of(format, additional_properties=1)


def test_patterns_that_xgrammar_misreads():
    for pattern, text in (
        (r"[\^a]", "^"),
        (r"[\u005ea]", "a"),
        (r"\x41b", "Ab"),
        (r"[a\^]", "^"),
        (r"[^\^a]", "b"),
        (r"\[[\]\^]", "[^"),
        (r"\x41\x62", "Ab"),
        (r"\\x41b", "\\x41b"),
        (r"\^[[a]", "^["),
    ):
        assert verdict(grammar_of(of("regex", pattern=pattern)), text) == "accepted"


def test_a_parenthesis_and_an_equals_sign_are_no_lookahead():
    text = 'root ::= "(=" [(=] "\\"(=" x\nx ::= "a"'
    assert verdict(grammar_of(of("grammar", grammar=text)), '(=("(=a') == "accepted"


@pytest.mark.parametrize("style", reading.STYLES)
@pytest.mark.parametrize(
    ("options", "most"),
    [({}, 32), ({"max_whitespace_cnt": 3}, 3), ({"max_whitespace_cnt": None}, None)],
)
def test_white_space_is_bounded(style, options, most):
    """32 characters at one place where a tag says nothing."""
    schema = {"type": "object", "additionalProperties": False}
    before, behind = ("{", "}") if style in ("json", "gemma") else ("", "")
    for document in (True, False):
        tag = {"format": of("json_schema", json_schema=schema, style=style, **options)}
        grammar = assemble(json.dumps(tag) if document else tag)
        for count in (0, 3, 4, 32, 33, 500):
            said = verdict(grammar, before + " " * count + behind)
            assert (said == "accepted") == (most is None or count <= most), (count, said)


def test_grammars_in_lark():
    text = 'start: "<" NAME ("," NAME)* ">"\nNAME: /[a-z]+/'
    format = of(
        "sequence",
        elements=[of("grammar", grammar=text, syntax="lark"), of("const_string", value="!")],
    )
    for written, said in (("<a,bc>!", "accepted"), ("<a", "prefix"), ("<a,>", "refused")):
        assert verdict(grammar_of(format), written) == said
    # the same text is another grammar in the other syntax
    text = 'start: "a" #\n'
    lark, ebnf = (of("grammar", grammar=text, syntax=syntax) for syntax in ("lark", "ebnf"))
    cache = LeafCache()
    assert verdict(grammar_of(lark, cache=cache), "a") == "accepted"
    with pytest.raises(GrammarSyntaxError, match=r"format \(grammar\)"):
        grammar_of(ebnf, cache=cache)
    assert grammar_of(of("grammar", grammar='root ::= "a"')) == grammar_of(
        of("grammar", grammar='root ::= "a"', syntax="ebnf")
    )


def test_lark_in_a_tag_names_tokens():
    over = tokfold.Vocabulary(
        [*(bytes([byte]) for byte in range(256)), b"<|call|>", b"</s>"],
        stop_token_ids=[257],
        special_token_ids=[256],
    )
    format = of("grammar", grammar='start: "a" <|call|> "b"', syntax="lark")
    matcher = tokfold.Matcher(tokfold.compile(grammar_of(format, vocabulary=over), over))
    assert [matcher.accept_token(one) for one in (ord("a"), ord("<"), 256, ord("b"))] == [
        *(True, False, True, True)
    ]
    with pytest.raises(UnsupportedGrammarError, match=r"pass it, as Grammar\.from_structural_tag"):
        grammar_of(format)
    with pytest.raises(UnsupportedGrammarError, match=r"<\|other\|>"):
        grammar_of(of("grammar", grammar="start: <|other|>", syntax="lark"), vocabulary=over)


def test_errors_of_lark_in_a_tag():
    for text, error in (
        ("start: (", GrammarSyntaxError),
        ('root ::= "a"', GrammarSyntaxError),
        ('start: %json {"type": "integer", "minimum": "x"}', SchemaError),
    ):
        with pytest.raises(error, match=r"format.elements\[0\] \(grammar\)") as caught:
            grammar_of(
                of(
                    "sequence",
                    elements=[
                        of("grammar", grammar=text, syntax="lark"),
                        of("regex", pattern="a*"),
                    ],
                )
            )
        if error is SchemaError:
            assert caught.value.pointer == "#/format/elements/0/grammar"


def test_leaves_are_converted_once(monkeypatch):
    converted = []
    convert = leaves._MAKERS[leaves.GrammarText]
    monkeypatch.setitem(
        leaves._MAKERS,
        leaves.GrammarText,
        lambda *given: converted.append(given) or convert(*given),
    )
    cache = LeafCache()

    def tools(numbers: range) -> Json:
        tags = [
            tag(f"<{n}>", of("grammar", grammar=f'root ::= "{n % 7}" "{n}"'), ">") for n in numbers
        ]
        return of("tags_with_separator", tags=tags, separator=",")

    first = grammar_of(tools(range(500)), cache=cache)
    assert len(converted) == 500
    assert grammar_of(tools(range(500)), cache=cache) == first
    assert len(converted) == 500
    grammar = grammar_of(tools(range(1, 501)), cache=cache)
    assert len(converted) == 501
    assert verdict(grammar, "<500>3500>,<1>11>") == "accepted"
    assert verdict(grammar, "<0>") == "refused"
    assert cache.info[:3] == (999, 501, 501)
    # within one tag too: the same content is one part
    twice = grammar_of(of("sequence", elements=[of("grammar", grammar='root ::= "a"')] * 3))
    assert str(twice).count('"a"') == 1


def test_what_tells_leaves_apart():
    base: Json = {"json_schema": {"type": "string"}}
    formats = [
        of("json_schema", **base),
        of("json_schema", **base, style="qwen_xml"),
        of("json_schema", **base, any_order=True),
        of("json_schema", **base, max_whitespace_cnt=1),
        of("json_schema", **base, excludes=["a"]),
        of("json_schema", json_schema={"type": "integer"}),
        of("json_schema", json_schema={"properties": {"a": {}, "b": {}}}),
        of("json_schema", json_schema={"properties": {"b": {}, "a": {}}}),
        of("regex", pattern="a"),
        of("grammar", grammar="a"),
    ]
    keys = {leaves._key(read({"format": format})) for format in formats}
    assert len(keys) == len(formats)
    same = [{"excludes": ["a", "b"]}, {"excludes": ["b", "a", "b"]}]
    assert len({leaves._key(read({"format": of("json_schema", **base, **x)})) for x in same}) == 1


def test_the_cache_keeps_what_was_used_last_within_its_bound():
    def leaf(n: int) -> Any:
        return read({"format": of("grammar", grammar=f'root ::= "{n:04}"')})

    probe = LeafCache()
    probe.grammar(leaf(0))
    size = probe.info.bytes
    cache = LeafCache(3 * size)
    for n in (0, 1, 2, 0, 3):  # 3 drives out 1, which was used the longest ago
        cache.grammar(leaf(n))
    assert cache.info == (1, 4, 3, 3 * size)
    first = cache.grammar(leaf(0))
    assert cache.grammar(leaf(0)) is first
    assert cache.info.misses == 4
    cache.grammar(leaf(1))
    assert cache.info == (3, 5, 3, 3 * size)
    cache.grammar(read({"format": of("grammar", grammar='root ::= "a"' + " " * size)}))
    assert cache.info == (3, 6, 3, 3 * size)  # what is too large drives nothing out
    cache.clear()
    assert cache.info[2:] == (0, 0)
    assert repr(cache) == f"<LeafCache: 0 leaves, 0 of {3 * size:,} bytes>"
    with pytest.raises(ValueError, match="0 or more, not -1"):
        LeafCache(-1)
    with pytest.raises(TypeError, match="a whole number, not float"):
        LeafCache(1.5)


def test_threads_share_a_cache():
    cache = LeafCache(200_000)
    formats = [of("grammar", grammar=f'root ::= "{n}" root | "x"') for n in range(60)]
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        random = Random(seed)
        try:
            for _ in range(150):
                n = random.randrange(60)
                grammar = grammar_of(tag("<", formats[n], ">"), cache=cache)
                assert verdict(grammar, f"<{n}x>") == "accepted"
                assert cache.info.bytes <= 200_000
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert cache.info.hits + cache.info.misses == 600


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_does_not_wait_for_a_thread_of_its_parent():
    default = structural_tags.default_cache
    formats = [of("grammar", grammar=f'root ::= "{letter}"') for letter in "xy"]
    for at_work in (False, True):
        assert grammar_of(formats[0])
        held = default.info.leaves
        with default._lock if at_work else contextlib.nullcontext():

            def child(left: int = 0 if at_work else held) -> bool:
                kept = default.info.leaves == left
                found = [verdict(grammar_of(format), "x") for format in formats]
                return kept and found == ["accepted", "refused"]

            assert exit_code(child) == 0


def test_without_xgrammar(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgrammar", None)
    assert verdict(grammar_of(tag("<", of("plus", content=A), ">")), "<aa>") == "accepted"
    assert grammar_of(tag("<", FREE, ">"))
    for format in (of("json_schema", json_schema={}), of("regex", pattern="never seen")):
        assert grammar_of(format, cache=LeafCache())
    for model in structural_tags.families():
        assert assemble(structural_tags.for_model(model))


# ------------------------------------------------------------------- composing


def test_rules_of_parts_keep_to_themselves():
    """Whatever their names, and whatever stands in literals and classes."""
    first = 'root ::= b "root" [a"b] (a | root c)\na ::= "b" a | "]"\nb ::= "a"\nc ::= "\\"a"'
    other = 'root ::= a tag_0 root?\ntag_0 ::= "tag_0"\na ::= [\\]a]'
    elements = [of("grammar", grammar=text) for text in (first, other, first)]
    text_of_first = 'aroot"b]'
    whole = text_of_first + "]tag_0atag_0" + text_of_first
    grammar = grammar_of(tag("<", of("sequence", elements=elements), ">"))
    assert verdict(grammar, f"<{whole}>") == "accepted"
    assert verdict(grammar, f"<{whole[:-1]}]]>") == "refused"
    assert verdict(grammar, f"<{text_of_first}") == "prefix"


def test_words_that_are_arguments_are_not_renamed():
    text = (
        "root ::= excludes | loop_after_dispatch\n"
        'excludes ::= TagDispatch(("<", x), loop_after_dispatch=false, excludes=("no"))\n'
        'loop_after_dispatch ::= "l"\n'
        'x ::= "1"\n'
    )
    part = tokfold.Grammar.from_ebnf(text)
    joined = joined_texts("root ::= p\n", {"p": part})
    assert "loop_after_dispatch=false, excludes=(" in joined
    assert "p__root ::= p__excludes | p__loop_after_dispatch\n" in joined


ALIKE = (
    'root ::= "<" a b ">"\na ::= "a" | "(" b ")"\nb ::= [a-c] | "[" a "]"',
    'root ::= "<" b ">"\na ::= "a" | "(" b ")"\nb ::= [a-c] | "[" a "]"',  # the same rules
    'root ::= "<" a b ">"\na ::= "a" | "(" b ")"\nb ::= [a-b] | "[" a "]"',  # another class
    'root ::= "<" a b ">"\na ::= "a" | "(" b ")"\nb ::= [a-c] | "[" b "]"',  # another callee
    'root ::= "<" a b ">"\na ::= "a"\nb ::= "c"{1,2}',
    'root ::= "<" a b ">"\na ::= "a"\nb ::= "c"{1,3}',  # another bound
    'root ::= "<" a b ">"\na ::= "a"\nb ::= "c"{1,}',
)


def test_rules_that_say_the_same_are_held_once_and_no_others():
    """Against the texts of the parts put together, which share nothing."""
    parts = {f"p{i}": tokfold.Grammar.from_ebnf(text) for i, text in enumerate(ALIKE)}
    text = "root ::= " + " | ".join(f'"{i}" p{i}' for i in range(len(ALIKE))) + "\n"
    composed = tokfold.Grammar._of(FrameSource(text, parts))
    apart = tokfold.Grammar.from_ebnf(joined_texts(text, parts))
    # Of the second part a and b are those of the first; of the last two, a is that of the fifth.
    assert len(composed.rule_names) == len(apart.rule_names) - 4
    insides = (
        "aa",
        "ac",
        "a[a]",
        "a[c]",
        "(b)b",
        "(c)b",
        "a[[c]]",
        "a[(c)]",
        "acc",
        "accc",
        "acccc",
    )
    for i in range(len(ALIKE)):
        for inside in (*insides, "b", "[a]", "c", "[c]"):
            word = f"{i}<{inside}>"
            assert verdict(composed, word) == verdict(apart, word), word


# ---------------------------------------------------------------------- tokens

VOCABULARY = tokfold.Vocabulary([b"a", b"<A>", b"<A>"])


def text_of(format: Json, vocabulary: tokfold.Vocabulary | None = None) -> str:
    return str(grammar_of(format, vocabulary))


def test_tokens_are_found_by_their_text():
    assert "Token(1)" in text_of(token("<A>"), VOCABULARY)  # the first of two
    assert text_of(token("<A>"), VOCABULARY) == text_of(token(1))
    both = of("any_tokens", exclude_tokens=["<A>", 1, "a"])
    assert "ExcludeToken(1, 0)" in text_of(both, VOCABULARY)
    with pytest.raises(StructuralTagError, match="needs a vocabulary; pass the vocabulary"):
        text_of(token("<A>"))


def test_the_end_token_of_a_tag_is_excluded_within_it():
    for free in (of("any_tokens", exclude_tokens=[7]), of("exclude_token", exclude_tokens=[7])):
        two = [tag("<", free, token(2)), tag("<", free, token(1))]
        text = text_of(of("sequence", elements=two))
        assert "ExcludeToken(7, 2)" in text
        assert "ExcludeToken(7, 1)" in text
        inner = tag("<", of("sequence", elements=[free, A]), ">")
        text = text_of(tag("[", of("sequence", elements=[inner, free]), token(2)))
        assert re.findall(r"ExcludeToken\((.*?)\)", text) == ["7", "7, 2"]
    triggered = of("token_triggered_tags", trigger_tokens=[0], tags=[tag(token(0), A, token(1))])
    text = text_of(tag("<", triggered, token(2)))
    assert "TokenTagDispatch((0, " in text
    assert "loop_after_dispatch=true, excludes=(2))" in text
    text = text_of(of("token_dispatch", rules=[[0, A]], exclude_tokens=[1, 0], loop=False))
    assert "loop_after_dispatch=false, excludes=(1))" in text  # a trigger dispatches all the same


def test_nothing_may_be_excluded():
    assert "ExcludeToken()" in text_of(of("exclude_token"))
    assert "ExcludeToken()" in text_of(of("any_tokens"))


# ---------------------------------------------------------------------- models


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"model": "llama-9"},
            r"there is no model family 'llama-9'; did you mean 'llama'\? there are: cohere, ",
        ),
        (
            {"model": "llama", "tool_choice": "required"},
            "tool_choice: a call is required, and there is no tool; name a tool, or choose 'auto'",
        ),
        (
            {"model": "llama", "tools": [{"type": "function", "name": "f", "parameters": {}}]},
            r"tools\[0\]: this is a function without 'function', the object that holds its name",
        ),
        ({"model": "llama", "reasoning": "much"}, "reasoning: it is 'enabled', .* not 'much'"),
        (
            {"model": "llama", "tools": [{"type": "search"}], "tool_choice": "required"},
            "tool_choice: a call must come, and llama calls functions alone",
        ),
    ],
)
def test_what_for_model_refuses(arguments, said):
    with pytest.raises(StructuralTagError, match=said):
        assemble(structural_tags.for_model(**arguments))


def test_reasoning_may_be_true_or_false():
    for value, name in ((True, "enabled"), (False, "disabled")):
        one, two = (structural_tags.for_model("qwen_3", reasoning=x) for x in (value, name))
        assert one == two


# ------------------------------------------------------------------- the page

PAGE = (ROOT / "docs" / "structural-tags.md").read_text(encoding="utf-8")


def test_the_page_about_structural_tags_is_true():
    """Every example prints what stands below it."""
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 6
    names: dict[str, Any] = {}
    for code, printed in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == printed


def test_the_page_has_every_format():
    for name in reading._READERS.keys() - {"qwen_xml_parameter"}:
        assert f"`{name}`" in PAGE
