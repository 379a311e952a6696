"""Names that people know from other libraries: errors say what stands for them here."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokfold
import tokfold.sglang
import tokfold.vllm
from tokfold import structural_tags
from tokfold._names import MOVED, NAMES, OPTIONS
from tokfold.errors import ArgumentTypeError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "names.md"
VOCABULARY = tokfold.Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=[256]
)
COMPILED = tokfold.compile('root ::= "a"', VOCABULARY)
OWNERS = {
    "tokfold": tokfold,
    "Matcher": tokfold.Matcher(COMPILED),
    "CompiledGrammar": COMPILED,
    "Grammar": tokfold.Grammar,
    "GrammarCompiler": tokfold.GrammarCompiler(VOCABULARY, seed=False),
    "Vocabulary": VOCABULARY,
}
CALLS = {
    "Grammar.from_ebnf": lambda **options: tokfold.Grammar.from_ebnf('root ::= "a"', **options),
    "Grammar.from_json_schema": lambda **options: tokfold.Grammar.from_json_schema({}, **options),
    "GrammarCompiler.compile_grammar": lambda **options: OWNERS["GrammarCompiler"].compile_grammar(
        'root ::= "a"', **options
    ),
    "GrammarCompiler.compile_structural_tag": lambda **options: OWNERS[
        "GrammarCompiler"
    ].compile_structural_tag({"format": {"type": "any_text"}}, **options),
    "GrammarCompiler": lambda **options: tokfold.GrammarCompiler(VOCABULARY, **options),
    "Interrupt": lambda **options: tokfold.Interrupt(**options),
    "Matcher": lambda **options: tokfold.Matcher(COMPILED, **options),
    "Vocabulary": lambda **options: tokfold.Vocabulary([b"a"], **options),
    "Vocabulary.from_file": lambda **options: tokfold.Vocabulary.from_file("none", **options),
    "Vocabulary.from_huggingface": lambda **options: tokfold.Vocabulary.from_huggingface(
        None, **options
    ),
    "for_model": lambda **options: structural_tags.for_model("llama", [], **options),
    "processor": lambda **options: transformers().processor(None, None, {}, **options),
}


def transformers() -> Any:
    pytest.importorskip("transformers")
    return importlib.import_module("tokfold.transformers")


@pytest.mark.parametrize(
    ("owner", "name"), [(owner, name) for owner, names in NAMES.items() for name in names]
)
def test_a_name_of_another_library_names_ours(owner: str, name: str) -> None:
    library, ours = NAMES[owner][name]
    with pytest.raises(AttributeError) as caught:
        getattr(OWNERS[owner], name)
    said = str(caught.value)
    assert f"has no attribute '{name}': that is a name of {library}; use {ours}" in said
    assert caught.value.name == name
    page = PAGE.read_text(encoding="utf-8")
    assert f"`{name}`" in page
    assert ours.replace("|", r"\|") in page


@pytest.mark.parametrize(
    ("call", "option"), [(call, option) for call, options in OPTIONS.items() for option in options]
)
def test_an_option_of_another_library_names_ours(call: str, option: str) -> None:
    library, ours = OPTIONS[call][option]
    with pytest.raises(ArgumentTypeError) as caught:
        CALLS[call](**{option: None})
    said = f"{call} has no option '{option}': that is one of {library}; use {ours}"
    assert str(caught.value) == said
    assert isinstance(caught.value, TypeError)
    page = PAGE.read_text(encoding="utf-8")
    assert f"| `{call}` | `{option}` | {library} | {ours} |" in page


@pytest.mark.parametrize("option", MOVED["compile"])
def test_an_option_that_stands_elsewhere_says_where(option: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        tokfold.compile('root ::= "a"', VOCABULARY, **{option: None})
    place = MOVED["compile"][option]
    assert str(caught.value) == f"compile has no option '{option}': pass {place}"
    if "CompileOptions" in place:
        assert hasattr(tokfold.CompileOptions(), option)
        assert f"CompileOptions({option}=...)" in place


@pytest.mark.parametrize("option", MOVED["processor"])
def test_options_of_schemas_stand_with_the_schema(option: str) -> None:
    for call, owner in (
        (lambda **options: tokfold.compile({"type": "object"}, VOCABULARY, **options), "compile"),
        (CALLS["processor"], "processor"),
    ):
        with pytest.raises(ArgumentTypeError) as caught:
            call(**{option: None})
        said = f"{owner} has no option '{option}': pass tokfold.Grammar.from_json_schema(schema, "
        assert str(caught.value) == f"{said}{option}=...) in place of the schema"


def test_all_options_of_schemas_are_known() -> None:
    ours = inspect.signature(tokfold.Grammar.from_json_schema).parameters
    assert MOVED["processor"].keys() == ours.keys() - {"schema", "limits", "interrupt"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tokfold.Limits(max_rule=1), "Limits has no option 'max_rule'; did you mean 'max_"),
        (lambda: tokfold.CompileOptions(cachedir="x"), "did you mean 'cache_dir'?"),
        (lambda: tokfold.vllm.install(cachedir="x"), "did you mean 'cache_dir'?"),
        (lambda: tokfold.sglang.register(cachedir="x"), "did you mean 'cache_dir'?"),
        (lambda: tokfold.Vocabulary.from_tiktoken(None, sizes=1), "did you mean 'size'?"),
        (
            lambda: OWNERS["GrammarCompiler"].compile_structural_tag([], ["<a"]),
            "compile_structural_tag has no option 'triggers': that is one of XGrammar; use one",
        ),
    ],
)
def test_options_that_are_misspelled_or_stand_by_position(
    call: Callable[[], object], said: str
) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        call()
    assert said in str(caught.value)


def test_limits_are_the_record_that_they_were() -> None:
    limits = tokfold.Limits(max_rules=3)
    assert dataclasses.replace(limits, max_nesting=4) == tokfold.Limits(max_rules=3, max_nesting=4)
    assert pickle.loads(pickle.dumps(limits)) == limits
    assert list(inspect.signature(tokfold.Limits).parameters) == [
        field.name for field in dataclasses.fields(limits)
    ]


@pytest.mark.parametrize("wrong", [{}, {"pool": None}, False])
def test_options_are_a_record(wrong: object) -> None:
    with pytest.raises(ArgumentTypeError, match=r"options must be tokfold\.CompileOptions, not "):
        tokfold.compile('root ::= "a"', VOCABULARY, options=wrong)


def test_the_door_is_narrow() -> None:
    parameters = inspect.signature(tokfold.compile).parameters
    assert list(parameters) == ["source", "vocabulary", "limits", "classes", "options", "interrupt"]
    fields = {field.name for field in dataclasses.fields(tokfold.CompileOptions)}
    public = {name for name in fields if not name.startswith("_")}
    assert public | {"grammar"} == MOVED["compile"].keys() - MOVED["processor"].keys()


def test_compilers_name_our_options_too() -> None:
    compiler = tokfold.GrammarCompiler(VOCABULARY, seed=False)
    with pytest.raises(TypeError, match='whitespace="spaced"'):
        compiler.compile_json_schema({"type": "object"}, any_whitespace=False)
    with pytest.raises(TypeError, match="additional_properties=True for False"):
        compiler.compile_json_schema({"type": "object"}, strict_mode=True)


def test_names_that_nobody_has_are_what_python_says() -> None:
    for value, said in (
        (tokfold, "module 'tokfold' has no attribute 'nothing'"),
        (OWNERS["Matcher"], "'Matcher' object has no attribute 'nothing'"),
        (tokfold.Grammar, "type object 'Grammar' has no attribute 'nothing'"),
    ):
        with pytest.raises(AttributeError) as caught:
            getattr(value, "nothing")  # noqa: B009
        assert str(caught.value) == said
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        tokfold.Grammar.from_json_schema({}, nothing=1)
    assert copy.copy(VOCABULARY) == VOCABULARY


def test_modules_that_are_imported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tokfold, "transformers", raising=False)
    with pytest.raises(AttributeError, match=r"it is a module; write import tokfold\.transformers"):
        tokfold.transformers  # noqa: B018


def test_names_are_those_of_xgrammar() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    theirs = {
        "tokfold": xgrammar,
        "Matcher": xgrammar.GrammarMatcher,
        "CompiledGrammar": xgrammar.CompiledGrammar,
        "Grammar": xgrammar.Grammar,
        "GrammarCompiler": xgrammar.GrammarCompiler,
        "Vocabulary": xgrammar.TokenizerInfo,
    }
    is_old = xgrammar.get_serialization_version() == "v16"  # of 0.2.8
    newer = {"find_jump_forward_tokens"} if is_old else set()
    for owner, names in NAMES.items():
        for name, (library, _) in names.items():
            if library == "XGrammar" and name not in newer:
                assert hasattr(theirs[owner], name), (owner, name)
