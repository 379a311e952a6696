"""What a first user tried, by the names that they used: it is right, or refused by name.

Each test is a row of what once went wrong in silence. Small vocabularies have the tokens of real
ones, which take part too where TOKFOLD_TOKENIZERS, or a folder beside the checkout, has them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tokfold
import tokfold.structural_tags
from oracles.family_readers import SPECIALS
from support.tokenizers import folders
from tokfold.errors import (
    MatcherStateError,
    StopTokenWarning,
    StructuralTagError,
    TokfoldError,
    UnwritableTextError,
    VocabularyWarning,
)
from tokfold.structural_tags import families, for_model
from tokfold.structural_tags.family_table import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
BYTES = [bytes([byte]) for byte in range(256)]
QUERY = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": QUERY}}]


def vocabulary_of(family: str) -> tokfold.Vocabulary:
    marks = [mark.encode() for mark in SPECIALS[family]]
    return tokfold.Vocabulary([*BYTES, b"</s>", *marks], [256], range(257, 257 + len(marks)))


def allowed(matcher) -> set[int]:
    row = tokfold.allocate_bitmask(1, len(matcher.vocabulary))
    if not matcher.fill_bitmask(row):
        return set(range(len(matcher.vocabulary)))
    return {*np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()}


def id_of(vocabulary: tokfold.Vocabulary, text: str) -> int:
    return vocabulary.token_bytes.index(text.encode())


# -------------------------------------------------------------- markers that are tokens


def check_harmony(vocabulary: tokfold.Vocabulary) -> tokfold.Matcher:
    tag = for_model("gpt-oss", TOOLS, vocabulary=vocabulary)
    compiled = tokfold.compile(tag, vocabulary, classes="never")
    matcher = tokfold.Matcher(compiled)
    channel, call = id_of(vocabulary, "<|channel|>"), id_of(vocabulary, "<|call|>")
    assert channel in allowed(matcher)
    assert id_of(vocabulary, "<") not in allowed(matcher)  # no letters in place of the token
    assert matcher.accept_token(channel)
    assert matcher.accept_string("commentary to=functions.f ")
    assert matcher.accept_token(id_of(vocabulary, "<|constrain|>"))
    assert matcher.accept_string("json")
    assert matcher.accept_token(id_of(vocabulary, "<|message|>"))
    assert matcher.accept_string('{"q": "a')
    assert call not in allowed(matcher)  # no special token within a string
    assert not matcher.accept_token(call)
    assert matcher.accept_string('"}')
    assert call in allowed(matcher)
    assert matcher.accept_token(call)
    assert matcher.is_accepting
    return matcher


def test_gpt_oss_writes_its_own_channel_token() -> None:
    check_harmony(vocabulary_of("harmony"))


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_gpt_oss_over_o200k_from_its_file(folder) -> None:
    vocabulary = tokfold.Vocabulary.from_file(folder)
    if b"<|channel|>" not in vocabulary.token_bytes:
        pytest.skip("no vocabulary of gpt-oss")
    check_harmony(vocabulary)
    ends = ["<|return|>", "<|call|>", "<|endoftext|>"]  # as in the model's generation config
    matcher = check_harmony(
        vocabulary.replace(stop_token_ids=[id_of(vocabulary, end) for end in ends])
    )
    assert matcher.is_terminated
    matcher.rollback(1)
    found = allowed(matcher)
    assert [end for end in ends if id_of(vocabulary, end) in found] == ["<|call|>"]
    matcher.reset()
    for mark in ("<|channel|>", "final", "<|message|>", "Hello"):
        special = mark.startswith("<")
        take = matcher.accept_token if special else matcher.accept_string
        assert take(id_of(vocabulary, mark) if special else mark)
    found = allowed(matcher)
    assert id_of(vocabulary, "<|call|>") not in found
    assert id_of(vocabulary, "<|return|>") in found
    assert id_of(vocabulary, "<|end|>") in found


@pytest.mark.parametrize("family", [name for name in families() if SPECIALS[name]])
def test_the_first_marker_is_its_token(family) -> None:
    """Of a call that must come: Qwen, Kimi, DeepSeek, GLM and the others; no letter of it is."""
    if family in ("llama", "kimi_k3", "cohere", "minimax"):
        return  # what comes first there is text, or an answer
    vocabulary = vocabulary_of(family)
    section = getattr(FAMILIES[family], "section", None)
    mark = getattr(FAMILIES[family], "trigger", "") or getattr(section, "begin", "<|channel|>")
    first = next((one for one in SPECIALS[family] if mark.startswith(one)), None)
    tag = for_model(family, TOOLS, tool_choice="required", reasoning=False)
    found = allowed(tokfold.Matcher(tokfold.compile(tag, vocabulary, classes="never")))
    if first is None:
        assert "DSML" in mark
        return
    assert id_of(vocabulary, first) in found
    assert first.encode()[0] not in found


def test_a_tag_of_llama_3_takes_its_python_tag() -> None:
    vocabulary = vocabulary_of("llama")
    text = {"type": "any_text", "excludes": ["<|python_tag|>"]}
    code = {"type": "tag", "begin": "<|python_tag|>", "content": text, "end": ""}
    for markers, spelled in (("tokens", False), ("both", True)):
        tag = {"type": "structural_tag", "format": code, "markers": markers}
        matcher = tokfold.Matcher(tokfold.compile(tag, vocabulary, classes="never"))
        assert (ord("<") in allowed(matcher)) is spelled
        assert matcher.accept_token(257)
        assert 257 not in allowed(matcher)
        assert matcher.accept_string("print(1)")
        assert matcher.is_accepting


# -------------------------------------------------------------------- arguments


@pytest.mark.parametrize("family", ["qwen_3", "exaone", "deepseek_r1", "kimi", "harmony"])
@pytest.mark.parametrize("reasoning", ["disabled", "auto", "enabled"])
def test_arguments_do_not_hold_the_end_of_a_call(family, reasoning) -> None:
    from strategies.conversations import WRITERS

    thought = "Hm." if reasoning == "enabled" else None
    end = {
        "deepseek_r1": "<｜tool▁call▁end｜>",
        "kimi": "<|tool_call_end|>",
        "harmony": "<|call|>",
    }.get(family, "</tool_call>")
    for exclude in (True, False):
        tag = for_model(family, TOOLS, reasoning=reasoning, exclude_end_markers=exclude)
        grammar = tokfold.Grammar.from_structural_tag(tag)

        def reads(value: str, grammar=grammar) -> bool:
            text = WRITERS[family](reasoning, thought, "", [("f", {"q": "VALUE"})])
            return tokfold.recognize(grammar, text.replace("VALUE", value)).accepted

        assert reads("plain")
        assert reads(f"a {end} b") is not exclude
        # with reasoning before it, a parser has found the end of that
        ends_reasoning = reasoning != "enabled" and family != "harmony"
        assert reads("a </think> b") is not (exclude and ends_reasoning)


def test_openai_documented_forms_are_taken() -> None:
    grammar = tokfold.Grammar.from_structural_tag(for_model("gpt-oss", TOOLS))
    for text in (
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"q": "a"}<|call|>',
        "<|channel|>commentary<|message|>I look that up.<|end|>",
    ):
        assert tokfold.recognize(grammar, text).accepted
    now = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]
    coder = tokfold.Grammar.from_structural_tag(for_model("qwen_3_coder", now, reasoning=False))
    text = "<tool_call>\n<function=now>\n</function>\n</tool_call>"
    assert tokfold.recognize(coder, text).accepted


# --------------------------------------------------------------------- families


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gpt-oss", "harmony"),
        ("llama-3.1", "llama"),
        ("qwen3", "qwen_3"),
        ("mistral", "mistral"),
        ("Phi-4-mini", "phi"),
        ("granite-3.3", "granite"),
        ("CohereForAI/c4ai-command-r7b-12-2024", "command_r7b"),
        ("Command-R7B", "command_r7b"),
    ],
)
def test_family_names_that_people_write(name, family) -> None:
    assert for_model(name, TOOLS) == for_model(family, TOOLS)


@pytest.mark.parametrize(
    "name", ["hermes", "Qwen/Qwen3-8B", "granite-4.0-h-tiny", "qwen_4", None, ""]
)
def test_other_names_are_refused_with_a_hint(name) -> None:
    with pytest.raises(StructuralTagError, match="there is no model family") as said:
        for_model(name, TOOLS)
    assert "'qwen_3'" in str(said.value) or "there are: cohere" in str(said.value)


def test_reasoning_says_which_prompt_it_fits() -> None:
    page = (ROOT / "docs" / "model-families.md").read_text(encoding="utf-8")
    for family in families():
        assert f"| `{family}` |" in page
    assert "## Which `reasoning` fits" in page
    tag = for_model("qwen3", TOOLS, reasoning="auto")
    grammar = tokfold.Grammar.from_structural_tag(tag)
    for text in ("<think>Hm.</think>\n\nHi.", "Hi."):
        assert tokfold.recognize(grammar, text).accepted


# ----------------------------------------------------------------- the end of a text


def test_a_vocabulary_without_stop_tokens() -> None:
    vocabulary = tokfold.Vocabulary(BYTES)
    with pytest.raises(UnwritableTextError, match="has no stop token"):
        tokfold.compile(["yes", "no"], vocabulary, classes="never")
    with pytest.warns(StopTokenWarning, match="nothing ends a text"):
        tokfold.compile({"type": "integer"}, vocabulary, classes="never")
    ends = tokfold.compile(
        ["yes", "no"],
        vocabulary,
        classes="never",
        options=tokfold.CompileOptions(terminate_without_stop_token=True),
    )
    matcher = tokfold.Matcher(ends)
    assert matcher.accept_string("no")
    assert matcher.is_terminated


def test_a_grammar_that_only_a_special_token_spells() -> None:
    letters = [byte for byte in BYTES if byte != b"<"]
    vocabulary = tokfold.Vocabulary([*letters, b"</s>", b"<t>"], [255], [256])
    with pytest.raises(UnwritableTextError, match="The special token 256 has the bytes b'<t>'"):
        tokfold.compile('root ::= "<t>"', vocabulary, classes="never")


def test_a_vocabulary_without_a_closing_brace() -> None:
    letters = [byte for byte in BYTES if byte != b"}"]
    vocabulary = tokfold.Vocabulary([*letters, b"</s>"], [255])
    with pytest.warns(VocabularyWarning, match="has '}', which every text needs"):
        tokfold.compile(QUERY, vocabulary, classes="never")


# ------------------------------------------------------------------ batches and states


def test_one_text_of_64_has_ended() -> None:
    vocabulary = tokfold.Vocabulary([*BYTES, b"</s>"], [256])
    compiled = tokfold.compile('root ::= "ab"', vocabulary, classes="never")
    matchers = [tokfold.Matcher(compiled) for _ in range(64)]
    assert matchers[17].accept_tokens([*b"ab", 256]) == 3
    rows = tokfold.allocate_bitmask(64, len(vocabulary))
    assert tokfold.fill_bitmask_batch(matchers, rows).all()
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
    assert np.flatnonzero(bits[17]).tolist() == [256]
    assert np.flatnonzero(bits[16]).tolist() == [ord("a")]
    with pytest.raises(MatcherStateError, match="row 17: "):
        tokfold.fill_bitmask_batch(matchers, rows, ended="raise")


def test_a_matcher_from_a_saved_state_has_its_text() -> None:
    vocabulary = tokfold.Vocabulary([*BYTES, b"</s>"], [256])
    compiled = tokfold.compile(QUERY, vocabulary, classes="never")
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_string('{"q": ')
    saved = tokfold.MatcherState.from_bytes(matcher.state.to_bytes())
    assert tokfold.Matcher.from_state(compiled, saved).text == b'{"q": '


# ------------------------------------------------------------------------ first minutes


def test_the_first_page_says_what_objects_may_have() -> None:
    """One default for Python, tags, Lark and servers: an object has the members that are named."""
    page = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "An object has the members that its schema names" in page
    assert "`additional_properties=True`" in page
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": QUERY}}
    vocabulary = tokfold.Vocabulary([*BYTES, b"</s>"], [256])
    by_default = [
        tokfold.Grammar.from_json_schema(QUERY),
        tokfold.Grammar.from_structural_tag(tag),
        tokfold.Grammar.from_lark(f"start: %json {json.dumps(QUERY)}"),
        tokfold.compile(QUERY, vocabulary).grammar,
        tokfold.GrammarCompiler(vocabulary).compile_json_schema(json.dumps(QUERY)).grammar,
    ]
    opened = [
        tokfold.Grammar.from_json_schema(QUERY, additional_properties=True),
        tokfold.Grammar.from_structural_tag(tag, additional_properties=True),
    ]
    for grammars, is_open in ((by_default, False), (opened, True)):
        for grammar in grammars:
            assert tokfold.recognize(grammar, '{"q": "a"}').accepted
            assert tokfold.recognize(grammar, '{"q": "a", "x": 1}').accepted == is_open


@pytest.mark.parametrize(
    ("call", "ours"),
    [
        (lambda: tokfold.GrammarMatcher, "tokfold.Matcher(compiled)"),
        (lambda: tokfold.LLMatcher, "tokfold.Matcher(compiled)"),
        (lambda: tokfold.Generator, "tokfold.transformers.processor("),
        (lambda: tokfold.Grammar.from_json_schema({}, any_whitespace=False), 'whitespace="'),
        (lambda: tokfold.Grammar.from_json_schema({}, strict_mode=True), "additional_properties="),
    ],
)
def test_names_of_other_libraries_name_ours(call, ours) -> None:
    with pytest.raises((AttributeError, TypeError)) as said:
        call()
    assert ours in str(said.value)


def test_missing_extras_name_a_checkout(monkeypatch) -> None:
    from tokfold._extras import require

    with pytest.raises(tokfold.MissingExtraError, match=r'pip install "\.\[cli\]" in a checkout'):
        require("no_such_module", "cli", "the command line")
    with pytest.raises(TokfoldError):
        require("no_such_module", "cli", "the command line")


def test_tags_travel_as_json() -> None:
    """What ``for_model`` makes is read from JSON text and from a dict alike."""
    tag = for_model("qwen3", TOOLS, vocabulary=vocabulary_of("qwen_3"))
    one = tokfold.Grammar.from_structural_tag(json.dumps(tag))
    assert str(one) == str(tokfold.Grammar.from_structural_tag(tag))
