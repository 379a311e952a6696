"""What a call is given that is something else: each error names what to pass."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pydantic
import pytest
import tokfold
import tokfold.structural_tags
from first_use.test_defaults import STOP, VOCABULARY, refused

PLAIN = tokfold.compile('root ::= "a" "b"', VOCABULARY, classes="never")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"type": "integer"}, "not dict: compiler.compile_json_schema(...) takes a JSON Schema"),
        ({"type": "structural_tag"}, "compiler.compile_structural_tag(...) takes a structural tag"),
        (None, "grammar must be a tokfold.Grammar or grammar text, not NoneType"),
        (b'root ::= "a"', "not bytes: decode the text, data.decode()"),
        (["a"], "not list: compiler.compile(...) takes a list of texts as choices"),
    ],
)
def test_a_compiler_is_given_no_grammar(source, said) -> None:
    compiler = tokfold.GrammarCompiler(VOCABULARY, classes="never", seed=False)
    assert said in refused(compiler.compile_grammar, source)
    error = compiler.submit("grammar", source).exception()
    assert type(error) is tokfold.ArgumentTypeError
    assert said in str(error)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("a", "data must be bytes, not str: pass a str to accept_string"),
        (bytearray(b"a"), "not bytearray: pass bytes(data), which is a copy"),
        (memoryview(b"a"), "not memoryview: pass bytes(data), which is a copy"),
        (7, "data must be bytes, not int"),
    ],
)
def test_a_matcher_is_given_no_bytes(data, said) -> None:
    matcher = tokfold.Matcher(PLAIN)
    assert said in refused(matcher.accept_bytes, data)
    assert matcher.text == b""


@pytest.mark.parametrize("token", [len(VOCABULARY), -1, 10**12])
def test_a_token_that_there_is_not(token) -> None:
    matcher = tokfold.Matcher(PLAIN)
    said = f"token {token} is outside the vocabulary of 257 tokens: pass ids from 0 to 256"
    assert refused(matcher.accept_token, token) == said
    assert refused(matcher.accept_tokens, [token]) == said


def test_bytes_are_no_state() -> None:
    matcher = tokfold.Matcher(PLAIN)
    data = matcher.state.to_bytes()
    said = refused(tokfold.Matcher.from_state, PLAIN, data)
    assert "call MatcherState.from_bytes(data) first" in said
    assert "not dict" in refused(tokfold.Matcher.from_state, PLAIN, {})
    state = tokfold.MatcherState.from_bytes(data)
    assert tokfold.Matcher.from_state(PLAIN, state).accept_string("ab")


def test_a_call_is_given_something_else() -> None:
    """Each of these was an error of Python that names no argument."""
    limits = "limits must be tokfold.Limits or None, not dict"
    assert refused(tokfold.Grammar.from_regex, "a", limits={}) == limits
    assert refused(tokfold.Grammar.choices, ["a"], limits={}) == limits
    tag = {"format": {"type": "const_string", "value": "a"}}
    said = refused(tokfold.structural_tags.assemble, tag, [b"a"])
    assert said == "vocabulary must be a tokfold.Vocabulary, not list"
    data = tokfold.Matcher(PLAIN).state.to_bytes()
    assert "state must be a tokfold.MatcherState" in refused(PLAIN.shortest, data)
    assert "classes must be tokfold.TokenClasses" in refused(PLAIN.take_classes, {})
    assert "interrupt must be a tokfold.Interrupt" in refused(PLAIN.warm, interrupt=5)
    assert "interrupt must be a tokfold.Interrupt" in refused(PLAIN.shortest, interrupt=5)
    said = refused(tokfold.rollback_batch, [[]], [1])
    assert said == "each of the matchers must be a tokfold.Matcher, not list"
    matcher = tokfold.Matcher(PLAIN)
    assert "a token must be its id" in refused(matcher.accept_token, "\ud800")
    assert "encode must be a function" in refused(matcher.forced_tokens, "x")
    words = tokfold.allocate_bitmask(2, len(VOCABULARY))
    said = refused(matcher.fill_bitmask_draft, [0], words, parents=0)
    assert said == "parents must be a list of whole numbers, not int"
    with pytest.raises(ValueError, match="lossy must be a set of keywords"):
        tokfold.Grammar.from_json_schema({}, lossy=b"")


def test_a_compiler_is_given_no_text() -> None:
    compiler = tokfold.GrammarCompiler(VOCABULARY, classes="never", seed=False)
    assert refused(compiler.compile_regex, ["a"]) == "a pattern must be a str, not list"
    assert refused(compiler.compile_lark, {}) == "a Lark grammar must be a str, not dict"
    # What was refused is no answer for another one of its type.
    assert refused(compiler.compile_regex, ["b"]) == "a pattern must be a str, not list"


def test_one_stop_token_needs_no_list() -> None:
    """As generation configs of transformers have it."""
    texts = [b"a", b"b", b"</s>"]
    vocabulary = tokfold.Vocabulary(texts, stop_token_ids=2)
    assert vocabulary == tokfold.Vocabulary(texts, stop_token_ids=[2])
    assert vocabulary.replace(stop_token_ids=np.int64(1)).stop_token_ids == (1,)
    matcher = tokfold.Matcher(tokfold.compile(["a"], vocabulary), stop_token_ids=1)
    assert matcher.stop_token_ids == (1,)
    assert "found True" in refused(tokfold.Vocabulary, texts, stop_token_ids=True)


def test_texts_are_no_stop_tokens() -> None:
    said = refused(tokfold.Matcher, PLAIN, stop_token_ids=["</s>"])
    assert "vocabulary.token_bytes.index(b'</s>') finds it by its bytes" in said
    assert VOCABULARY.token_bytes.index(b"</s>") == STOP
    said = refused(tokfold.Matcher, PLAIN, stop_token_ids="</s>")
    assert said == "stop_token_ids must be a token id or a list of them, not str"
    said = refused(tokfold.Vocabulary, [b"a", b"</s>"], stop_token_ids=["</s>"])
    assert "tokenizer.convert_tokens_to_ids('</s>') of transformers gives" in said


def test_one_text_is_no_choice_of_texts() -> None:
    assert "not one text: pass a list, ['yes']" in refused(tokfold.Grammar.choices, "yes")
    assert "one is of the type int" in refused(tokfold.Grammar.choices, ["yes", 1])


def test_one_tag_is_no_list_of_tags() -> None:
    tags = [
        {"type": "tag", "begin": f"<{name}>", "content": {"type": "any_text"}, "end": "</>"}
        for name in "ab"
    ]
    format = {"type": "triggered_tags", "triggers": ["<"], "tags": tags}
    grammar = tokfold.Grammar.from_structural_tag({"type": "structural_tag", "format": format})
    said = refused(grammar.with_tags, removed="<a>")
    assert said == (
        "removed must be a list, not str: pass a list also for one text or id, removed=[...]"
    )
    assert "added must be a list, not dict" in refused(grammar.with_tags, tags[0])
    grammar.with_tags(removed=["<a>"])


def test_a_processor_is_given_a_schema() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokfold.transformers import GrammarLogitsProcessor

    said = refused(GrammarLogitsProcessor, {"type": "object"})
    assert said.endswith("not builtins.dict; tokfold.compile makes one")
    assert "not builtins.str;" in refused(GrammarLogitsProcessor, 'root ::= "a"')


def test_the_name_of_a_model_is_no_file(tmp_path, monkeypatch) -> None:
    said = refused(tokfold.Vocabulary.from_file, "meta-llama/Llama-3-8B")
    assert "from_file reads local paths only" in said
    assert "Vocabulary.from_huggingface(transformers.AutoTokenizer.from_pretrained('meta-" in said
    monkeypatch.chdir(tmp_path)
    assert "from_pretrained('gpt2'))" in refused(tokfold.Vocabulary.from_file, "gpt2")
    (tmp_path / "models" / "mine").mkdir(parents=True)
    assert "found none of them" in refused(tokfold.Vocabulary.from_file, "models/mine")
    assert "cannot be read" in refused(tokfold.Vocabulary.from_file, "models/tokenizer.json")


def test_special_tokens_are_a_mapping(tmp_path) -> None:
    said = refused(tokfold.Vocabulary.from_file, tmp_path, special_tokens=["<|end|>"])
    assert said == 'special_tokens must be a mapping of text to id, {"<|end|>": 7}, not list'


def test_a_cancelled_matcher_names_its_way_back() -> None:
    matcher = tokfold.Matcher(PLAIN)
    matcher.cancel()
    bitmask = tokfold.allocate_bitmask(2, len(VOCABULARY))
    for call in (
        lambda: matcher.accept_token(ord("a")),
        lambda: matcher.accept_bytes(b"a"),
        lambda: matcher.accept_string("a"),
        lambda: matcher.accept_tokens([ord("a")]),
        lambda: matcher.fill_bitmask(bitmask),
        lambda: matcher.fill_bitmask_draft([ord("a")], bitmask),
        lambda: matcher.forced_bytes(),
    ):
        said = refused(call)
        assert said.startswith("another thread cancelled the call: cancel() of this matcher")
        assert "resume()" in said
    matcher.resume()
    assert matcher.accept_string("ab")
    interrupt = tokfold.Interrupt()
    interrupt.cancel()
    said = refused(tokfold.Matcher(PLAIN).accept_token, ord("a"), interrupt=interrupt)
    assert said == "another thread cancelled the call"


def test_a_vocabulary_is_made_of_a_vocabulary() -> None:
    """Its tokens alone were taken, and a text never ended."""
    for options in ({}, {"stop_token_ids": [STOP]}):
        said = refused(tokfold.Vocabulary, VOCABULARY, **options)
        assert "this is a vocabulary already, whose stop and special tokens would be lost" in said
        assert "vocabulary.replace(...)" in said
    again = tokfold.Vocabulary(VOCABULARY.token_bytes, VOCABULARY.stop_token_ids)
    assert again == VOCABULARY


# ------------------------------------------------------------------ options and files


@pytest.mark.parametrize(
    ("call", "wrong", "right"),
    [
        (tokfold.Grammar.from_json_schema, "additional_propertys", "additional_properties"),
        (tokfold.Grammar.from_json_schema, "keyorder", "key_order"),
        (tokfold.compile, "limit", "limits"),
        (tokfold.Matcher, "max_token", "max_tokens"),
    ],
)
def test_an_option_that_is_misspelled(call, wrong, right) -> None:
    with pytest.raises(TypeError, match=f"has no option '{wrong}'; did you mean '{right}'"):
        call({"type": "null"}, **{wrong: None})


def test_an_option_that_nothing_is_like() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        tokfold.Grammar.from_json_schema({"type": "null"}, colour=1)


def test_a_file_in_place_of_a_schema() -> None:
    for schema in ("folder/schema.json", Path("folder/schema.json")):
        with pytest.raises((TypeError, ValueError), match="read_text") as caught:
            tokfold.Grammar.from_json_schema(schema)
        assert isinstance(caught.value, tokfold.TokfoldError)


def test_half_of_a_pair_in_a_name() -> None:
    """Whatever a name holds, the error is one of tokfold's."""
    for schema in ({"\ud800": 1}, {"type": "object", "\ud800": 1}, {"properties": {"\ud800": {}}}):
        with pytest.raises(tokfold.TokfoldError):
            tokfold.Grammar.from_json_schema(schema)
    with pytest.raises(tokfold.TokfoldError):
        tokfold.compile({"\ud800": 1}, tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1]))


@pytest.mark.parametrize(("value", "name"), [(None, "NoneType"), (1.0, "float"), ("a", "str")])
def test_what_is_no_number(value, name) -> None:
    matcher = tokfold.Matcher(PLAIN)
    bitmask = tokfold.allocate_bitmask(2, len(VOCABULARY))
    assert refused(matcher.rollback, value) == f"count must be a whole number, not {name}"
    said = f"row must be a whole number, not {name}"
    assert refused(matcher.fill_bitmask, bitmask, value) == said
    assert refused(matcher.fill_class_bitmask, bitmask, row=value) == said
    said = refused(matcher.accept_token, value)
    assert said.startswith("a token must be its id, a whole number")
    assert said.endswith(f"not {name}")
    said = "interrupt must be a tokfold.Interrupt or None, not int"
    for call in (matcher.rollback, matcher.accept_token):
        assert refused(call, 0, interrupt=7) == said
    for source in ({"type": "integer"}, {"format": {"type": "any_text"}}, 'root ::= "a"'):
        assert refused(tokfold.compile, source, VOCABULARY, interrupt=7) == said


@pytest.mark.parametrize("data", ["a", 5, None])
def test_what_is_no_saved_state(data) -> None:
    said = f"data must be bytes, not {type(data).__name__}"
    assert refused(tokfold.MatcherState.from_bytes, data) == said


def test_a_bitmask_of_another_kind_says_what_came() -> None:
    matcher = tokfold.Matcher(PLAIN)
    for wrong, found in (
        (np.zeros((1, 9), np.int64), "not an array of int64 and shape (1, 9)"),
        ([0] * 9, "not list"),
        (None, "not NoneType"),
    ):
        for call in (matcher.fill_bitmask, partial(tokfold.fill_bitmask_batch, [matcher])):
            said = refused(call, wrong)
            assert "numpy array of dtype int32" in said
            assert said.endswith(f"{found}: tokfold.allocate_bitmask makes one")


def test_what_is_compiled_is_no_grammar() -> None:
    said = refused(tokfold.recognize, PLAIN, "ab")
    assert said == "grammar must be a tokfold.Grammar, not CompiledGrammar: pass its .grammar"


@pytest.mark.parametrize(
    ("request_of_a_server", "ours"),
    [
        ({"regex": "a+"}, "tokfold.Grammar.from_regex(source['regex'])"),
        ({"json": {"type": "object"}}, "tokfold.Grammar.from_json_schema(source['json'])"),
        ({"choice": ["a"]}, "tokfold.Grammar.choices(source['choice'])"),
        ({"ebnf": 'root ::= "a"'}, "tokfold.Grammar.from_ebnf(source['ebnf'])"),
    ],
)
def test_a_request_of_a_server(request_of_a_server, ours) -> None:
    said = refused(tokfold.compile, request_of_a_server, VOCABULARY)
    assert said.endswith(f". Of a request to vLLM or SGLang pass {ours}")


def test_a_grammar_for_each_text() -> None:
    said = refused(tokfold.compile, [{"type": "integer"}, bool], VOCABULARY)
    assert "compile each: a processor takes the list of what was compiled" in said
    assert "compile each" not in refused(tokfold.compile, ["a", 1], VOCABULARY)


def test_the_schema_of_a_tool_is_a_model() -> None:
    class Answer(pydantic.BaseModel):
        number: int

    tools = [{"type": "function", "function": {"name": "f", "parameters": Answer}}]
    said = refused(tokfold.structural_tags.for_model, "llama", tools)
    assert said.endswith("and not the class Answer; pass Answer.model_json_schema()")


def test_what_is_no_option_of_a_reader() -> None:
    ebnf, lark = tokfold.Grammar.from_ebnf, tokfold.Grammar.from_lark
    schema = tokfold.Grammar.from_json_schema
    for call, said in (
        (partial(ebnf, 'root ::= "a"', root=5), "root must be a str, the name of a rule, not int"),
        (
            partial(ebnf, 'root ::= "a"', limits={}),
            "limits must be tokfold.Limits or None, not dict",
        ),
        (
            partial(lark, 'start: "a"', start=[1]),
            "start must be a str, the name of a rule, not list",
        ),
        (partial(lark, 'start: "a"', named=[1]), "named must be a mapping of names to"),
        (partial(lark, 'start: "a"', named={1: ""}), "a name of named must be a str, not int"),
        (partial(schema, {}, resources={5: {}}), "a URI of resources must be a str, not int"),
        (partial(schema, {}, formats={5: "a"}), "a name of formats must be a str, not int"),
        (
            partial(schema({}).place_in_schema, 5, 0),
            "document must be a str or bytes, not int",
        ),
        (
            partial(tokfold.Matcher, PLAIN, terminate_without_stop_token="x"),
            "terminate_without_stop_token must be True, False or None, not str",
        ),
        (partial(tokfold.Matcher(PLAIN).process_prompt, 5), "token_ids must be a list of whole"),
        (partial(tokfold.MaskPool, "a"), "vocabulary must be a tokfold.Vocabulary, not str"),
        (
            partial(tokfold.compile_classes, PLAIN.grammar, VOCABULARY, prune="x"),
            "prune must be True or False, not str",
        ),
        (
            partial(
                tokfold.GrammarCompiler(VOCABULARY).compile_structural_tag,
                {"format": {"type": "any_text"}},
                vocabulary=VOCABULARY,
            ),
            "the vocabulary is that of the compiler",
        ),
    ):
        assert refused(call).startswith(said), said
    for wrong in (True, [5], "uniqueItems"):
        with pytest.raises(ValueError, match="lossy must be a set of keywords"):
            schema({}, lossy=wrong)
