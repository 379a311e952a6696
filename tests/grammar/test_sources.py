"""``tokfold.compile`` takes what a grammar is made of, where that is unambiguous."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import tokfold
from tokfold import AmbiguousSourceError, Grammar, GrammarCompiler, Matcher, Vocabulary
from tokfold._source_kinds import kind_of

BYTES = Vocabulary([*(bytes([b]) for b in range(256)), b"</s>"], stop_token_ids=[256])
TAG = {"type": "structural_tag", "format": {"type": "const_string", "value": "x"}}


@dataclass
class Line:
    a: int


def accepts(compiled: tokfold.CompiledGrammar, text: str) -> bool:
    matcher = Matcher(compiled)
    return matcher.accept_string(text) and matcher.is_accepting


SOURCES: list[tuple[Any, str, str, str]] = [
    ('root ::= "a" | "b"', "grammar", "a", "c"),
    (Grammar.from_ebnf('root ::= "a"'), "grammar", "a", "b"),
    ({"type": "integer"}, "json_schema", "12", "x"),
    ({"type": "object", "required": ["type"]}, "json_schema", '{"type": 1}', "{}"),
    (True, "json_schema", '{"a": [1]}', "a"),
    (TAG, "structural_tag", "x", "y"),
    (["yes", "no"], "choices", "no", '"no"'),
    (("yes", "no"), "choices", "yes", "maybe"),
    (int, "json_schema", "3", "true"),
    (list[int], "json_schema", "[3]", "3"),
    (int | None, "json_schema", "null", "true"),
    (Literal["a", "b"], "json_schema", '"a"', "a"),
    (Line, "json_schema", '{"a": 1}', '{"a": "b"}'),
]


@pytest.mark.parametrize(("source", "kind", "good", "bad"), SOURCES)
def test_sources(source: Any, kind: str, good: str, bad: str) -> None:
    if kind == "json_schema" and not isinstance(source, (dict, bool)):
        pytest.importorskip("pydantic")
    assert kind_of(source) == kind
    compiled = tokfold.compile(source, BYTES, classes="never")
    assert accepts(compiled, good)
    assert not accepts(compiled, bad)


@pytest.mark.parametrize(("source", "kind", "good", "bad"), SOURCES)
def test_sources_of_a_compiler(source: Any, kind: str, good: str, bad: str) -> None:
    if kind == "json_schema" and not isinstance(source, (dict, bool)):
        pytest.importorskip("pydantic")
    with GrammarCompiler(BYTES, classes="never", seed=False) as compiler:
        compiled = compiler.compile(source)
        assert accepts(compiled, good)
        assert not accepts(compiled, bad)
        assert compiler.compile(source) is compiled


def test_typed_dicts() -> None:
    pytest.importorskip("pydantic")
    from typing_extensions import TypedDict  # which pydantic asks for before Python 3.12

    class Point(TypedDict):
        x: int

    compiled = tokfold.compile(Point, BYTES, classes="never")
    assert accepts(compiled, '{"x": 1}')
    assert not accepts(compiled, "{}")


def test_models() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Answer(pydantic.BaseModel):
        score: int

    assert accepts(tokfold.compile(Answer, BYTES, classes="never"), '{"score": 1}')
    with pytest.raises(AmbiguousSourceError, match="pass the class Answer"):
        tokfold.compile(Answer(score=1), BYTES)


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ('{"type": "integer"}', "Grammar.from_json_schema"),
        (' [{"a": 1}]', "json.loads"),
        ("true", "json.loads"),
        ('"yes"', "json.loads"),
        ("12", "json.loads"),
        ("[a-z]+", "Grammar.from_regex"),
        ('{"type": }', "Grammar.from_json_schema"),
        ("yes|no", "Grammar.from_regex"),
        ('start: "a"', "Grammar.from_lark"),
        ("grammars/json.gbnf", "Grammar.from_file"),
        ("", "Grammar.from_regex"),
        ([], "at least one"),
        (["a", 1], "must hold texts"),
        ([{"enum": ["a"]}], "must hold texts"),
        ([{"type": "function", "function": {"name": "f"}}], "structural_tags.for_model(family,"),
        ([{"name": "f", "inputSchema": {}}], "structural_tags.for_model(family,"),
        ([{"name": "f", "parameters": {}}], "structural_tags.for_model(family,"),
        (({"functionDeclarations": []},), "structural_tags.for_model(family,"),
        ([{"toolSpec": {"name": "f"}}], "structural_tags.for_model(family,"),
        (re.compile("a"), 'pattern.pattern, dialect="python"), with search=True'),
        (re.compile("a", re.S | re.I), 'dialect="python", flags="is"), with'),
        (Path("a.gbnf"), "Grammar.from_file"),
        (b'root ::= "a"', "decode it as UTF-8"),
        (Line(1), "pass the class Line"),
        (None, "must be a tokfold.Grammar"),
        (12, "must be a tokfold.Grammar"),
        ({"a", "b"}, "must be a tokfold.Grammar"),
        (
            {"name": "string", "year": "integer"},
            "'name', 'year': as a schema it would",
        ),
        ({"propertis": {"a": {}}, "title": "A"}, "but 'propertis': as a schema"),
        ({"title": "Dune", "pages": 412, "a": 1, "b": 2, "c": 3}, "'pages', 'a', 'b', ...: as a"),
        ({"$defs": {"A": {"type": "null"}}}, '{"$ref": "#/$defs/A", ...}'),
    ],
)
def test_ambiguous_sources_are_refused(source: Any, advice: str) -> None:
    for compile in (tokfold.compile, lambda source, _: GrammarCompiler(BYTES).compile(source)):
        with pytest.raises(AmbiguousSourceError, match=re.escape(advice)) as caught:
            compile(source, BYTES)
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, tokfold.TokfoldError)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"title": "anything"},
        {"x-note": 1},
        {"$defs": {"A": {"type": "null"}}, "$ref": "#/$defs/A"},
        {"nullable": True, "other": 1},
        {"const": 1, "name": "a"},
    ],
)
def test_mappings_that_are_schemas(schema: dict[str, Any]) -> None:
    assert accepts(tokfold.compile(schema, BYTES, classes="never"), "1") == ("$ref" not in schema)
    assert Grammar.from_json_schema(schema) is not None


def test_faults_of_sources_have_their_names() -> None:
    with pytest.raises(tokfold.GrammarSyntaxError, match="line 1"):
        tokfold.compile('root ::= "a', BYTES)
    with pytest.raises(tokfold.InvalidSchemaError):
        tokfold.compile({"type": "json_schema"}, BYTES)
    with pytest.raises(tokfold.StructuralTagError):
        tokfold.compile({"type": "structural_tag"}, BYTES)


def test_limits_and_interrupts_hold_for_sources() -> None:
    limits = tokfold.Limits(max_grammar_bytes=20)
    with pytest.raises(tokfold.LimitExceededError, match="max_grammar_bytes"):
        tokfold.compile({"description": "x" * 100}, BYTES, limits)
    interrupt = tokfold.Interrupt()
    interrupt.cancel()
    with pytest.raises(tokfold.CancelledError):
        tokfold.compile({"type": "integer"}, BYTES, interrupt=interrupt)
    with pytest.raises(tokfold.DeadlineExceededError):
        tokfold.compile({"type": "integer"}, BYTES, interrupt=tokfold.Interrupt(milliseconds=0))
