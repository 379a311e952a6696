"""Structural tags of model families: the texts they take, their options, what is refused.

The texts are written by hand from the chat templates of the families. Nothing here needs XGrammar;
``tests/differential/test_model_families.py`` has it beside ours.
"""

from __future__ import annotations

import doctest
import importlib
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
import tokfold
from strategies.conversations import (
    ADD,
    REASONING_IS_OPTIONAL,
    REASONLESS,
    TOOLS,
    WEATHER,
    WRITERS,
    WRONG,
    forced,
)
from tokfold.errors import StructuralTagError
from tokfold.structural_tags import assemble, families, for_model
from tokfold.structural_tags.family import Family
from tokfold.structural_tags.family_table import FAMILIES

PAIR = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["a", "n"],
}
F = {"type": "function", "function": {"name": "f", "parameters": PAIR}}
EMPTY = {"type": "object", "properties": {}}
SEARCH = {"type": "search", "name": "browser.search", "parameters": PAIR}
BYTES = tokfold.Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], [256])


def verdict(tag: dict[str, Any], text: str) -> str:
    found = tokfold.recognize(assemble(tag), text)
    whole = found.read == len(text.encode())
    return "accepted" if found.accepted else "prefix" if whole else "refused"


def accepts(tag: dict[str, Any], text: str) -> bool:
    return verdict(tag, text) == "accepted"


# -------------------------------------------------------------------- calls as they are

ENABLED_AND_REQUIRED = {
    "cohere": "Hm.<|END_THINKING|><cofl:tool_calls>"
    '<cofl:tool_call id="0" name="f"><cofl:value name="a" type="raw">x</cofl:value>'
    '<cofl:value name="n" type="json">1</cofl:value></cofl:tool_call></cofl:tool_calls>',
    "command_a": "Hm.<|END_THINKING|><|START_ACTION|>[\n"
    '    {"tool_call_id": "0", "tool_name": "f", "parameters": {"a": "x", "n": 1}}\n'
    "]<|END_ACTION|>",
    "command_r7b": "<|START_THINKING|>Hm.<|END_THINKING|><|START_ACTION|>[\n"
    '    {"tool_call_id": "0", "tool_name": "f", "parameters": {"a": "x", "n": 1}}\n'
    "]<|END_ACTION|>",
    "deepseek_r1": "Hm.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
    '```json\n{"a": "x", "n": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek_v3_1": "Hm.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"
    '{"a": "x", "n": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek_v3_2": 'Hm.</think>\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n'
    '<｜DSML｜parameter name="a" string="true">x</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="n" string="false">1</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "deepseek_v4": 'Hm.</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n'
    '<｜DSML｜parameter name="a" string="true">x</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="n" string="false">1</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    "deepseek_v4_1": 'Hm.</think>\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="f">\n'
    '<｜DSML｜ parameter name="a" string="true">x</｜DSML｜ parameter>\n'
    '<｜DSML｜ parameter name="n" string="false">1</｜DSML｜ parameter>\n'
    "</｜DSML｜ invoke>\n</｜DSML｜ calls>",
    "exaone": "Hm.</think>\n\n"
    '<tool_call>{"name": "f", "arguments": {"a": "x", "n": 1}}</tool_call>',
    "gemma": '{"name": "f", "parameters": {"a": "x", "n": 1}}',
    "gemma_4": '<|channel>thought\nHm.<channel|><|tool_call>call:f{a:<|"|>x<|"|>,n:1}<tool_call|>',
    "glm_4_7": "Hm.</think><tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value>"
    "<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>",
    "granite": '<|tool_call|>[{"name": "f", "arguments": {"a": "x", "n": 1}}]',
    "harmony": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
    'to=functions.f<|constrain|>json<|message|>{"a": "x", "n": 1}<|call|>',
    "kimi": "Hm.</think><|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
    '<|tool_call_argument_begin|>{"a": "x", "n": 1}<|tool_call_end|><|tool_calls_section_end|>',
    "kimi_k3": "Hm.<|close|>think<|sep|><|open|>response<|sep|>I ask.<|close|>response<|sep|>"
    '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>'
    '<|open|>argument key="a" type="string"<|sep|>x<|close|>argument<|sep|>'
    '<|open|>argument key="n" type="number"<|sep|>1<|close|>argument<|sep|>'
    "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
    "llama": '{"name": "f", "parameters": {"a": "x", "n": 1}}',
    "mimo": "<think>Hm.</think><tool_call><function=f><parameter=a>x</parameter>"
    "<parameter=n>1</parameter></function></tool_call>",
    "minimax": 'Hm.</think>\n\n\n<minimax:tool_call>\n<invoke name="f">\n'
    '<parameter name="a">x</parameter>\n<parameter name="n">1</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
    "minimax_m3": 'Hm.</mm:think>]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">'
    "]<]minimax[>[<a>x]<]minimax[>[</a>]<]minimax[>[<n>1]<]minimax[>[</n>]<]minimax[>[</invoke>\n"
    "]<]minimax[>[</tool_call>",
    "mistral": '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "x", "n": 1}}]',
    "mistral_13": '[TOOL_CALLS]f[ARGS]{"a": "x", "n": 1}',
    "phi": '<|tool_call|>[{"name": "f", "arguments": {"a": "x", "n": 1}}]<|/tool_call|>',
    "qwen_3": "Hm.</think>\n\n"
    '<tool_call>\n{"name": "f", "arguments": {"a": "x", "n": 1}}\n</tool_call>',
    "qwen_3_5": "Hm.</think>\n\n<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n"
    "<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
    "qwen_3_coder": "Hm.</think>\n\n<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n"
    "<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
}


def test_every_family_is_here():
    assert families() == sorted(ENABLED_AND_REQUIRED) == sorted(WRITERS)


@pytest.mark.parametrize("model", ENABLED_AND_REQUIRED)
def test_a_call_behind_reasoning(model):
    tag = for_model(model, [F], tool_choice="required")
    text = ENABLED_AND_REQUIRED[model]
    assert verdict(tag, text) == "accepted"
    assert json.loads(json.dumps(tag)) == tag
    for end in range(0, len(text), 5):
        assert verdict(tag, text[:end]) == "prefix", text[:end]
    name = r"(?<=[\"=>.\]:])f(?=[\"\n>:<\[{])"
    (place,) = (found.start() for found in re.finditer(name, text))
    assert verdict(tag, text[:place] + "g" + text[place + 1 :]) == "refused"
    marks = [i for i, letter in enumerate(text) if letter in "<>|｜/[]{}_"]
    grammar = assemble(tag)
    for i in marks:
        assert not tokfold.recognize(grammar, text[:i] + text[i + 1 :]).accepted, text[i:]


# --------------------------------------------------------------------------- conversations

MODES = [("enabled", "First\nthis."), ("disabled", None), ("auto", "First this."), ("auto", None)]


@pytest.mark.parametrize("model", WRITERS)
@pytest.mark.parametrize(("mode", "thought"), MODES)
def test_conversations(model, mode, thought):
    def text(answer: str, *calls: Any) -> str:
        return WRITERS[model](mode, thought, answer, list(calls))

    tag = for_model(model, TOOLS, reasoning=mode)
    assert accepts(tag, text("Hello. <Bye>"))
    assert accepts(tag, text("It is this: ", ADD))
    assert accepts(tag, text("", WEATHER, ADD))
    once = for_model(model, TOOLS, reasoning=mode, parallel=False)
    assert accepts(once, text("", WEATHER))
    assert accepts(once, text("Hello."))
    assert verdict(once, text("", WEATHER, ADD)) == "refused"
    must = for_model(model, TOOLS, reasoning=mode, tool_choice="required")
    assert accepts(must, text("", WEATHER))
    assert accepts(must, text("", ADD, WEATHER))
    assert not accepts(must, text("Hello."))
    for call in WRONG.values():
        assert not accepts(must, text("", call))
    one = for_model(model, TOOLS, reasoning=mode, tool_choice=forced("add"))
    assert accepts(one, text("", ADD))
    assert verdict(one, text("", WEATHER)) == "refused"
    allowed = {"mode": "required", "tools": [forced("add")]}
    some = {"type": "allowed_tools", "allowed_tools": allowed}
    one_of = for_model(model, TOOLS, reasoning=mode, tool_choice=some)
    assert accepts(one_of, text("", ADD))
    assert not accepts(one_of, text("Hello."))
    assert verdict(one_of, text("", WEATHER)) == "refused"
    assert accepts(for_model(model, TOOLS, reasoning=mode, tool_choice="none"), text("Hello."))


@pytest.mark.parametrize("model", sorted(WRITERS.keys() - REASONLESS))
def test_reasoning_is_as_asked(model):
    write = WRITERS[model]
    required, forbidden = (for_model(model, reasoning=mode) for mode in (True, False))
    reasoned, without = write("enabled", "Hm.", "Hi.", []), write("disabled", None, "Hi.", [])
    assert accepts(required, reasoned)
    assert accepts(forbidden, without)
    assert not accepts(forbidden, reasoned)
    plain = "Hi." if model == "minimax" else without
    assert accepts(required, plain) is (model in REASONING_IS_OPTIONAL)


@pytest.mark.parametrize("model", sorted(WRITERS.keys() - REASONLESS))
def test_reasoning_has_at_most_so_many_tokens(model):
    """Over a vocabulary in which each byte is a token."""
    write = WRITERS[model]
    tag = for_model(model, reasoning=True, max_reasoning_tokens=6)
    assert json.dumps(tag).count('"max_tokens": 6') == 1
    compiled = tokfold.compile(assemble(tag), BYTES)
    for count, is_taken in ((5, True), (6, True), (7, False)):
        matcher = tokfold.Matcher(compiled)
        text = write("enabled", "m" * count, "Hi.", []).encode()
        taken = all(map(matcher.accept_token, text))
        assert taken is is_taken, text
        assert matcher.is_accepting or not taken
    assert for_model(model, max_reasoning_tokens=None) == for_model(model)


# ---------------------------------------------------------------------------------- options


def test_markers_in_free_text():
    for model, marker in (("llama", "<think>"), ("glm_4_7", "</arg_key>"), ("kimi_k3", "<|open|>")):
        text = f"I say {marker}!"
        text += "<|close|>response<|sep|><|close|>message<|sep|>" * (model == "kimi_k3")
        assert not accepts(for_model(model, [F], reasoning=False), text)
        lax = for_model(model, [F], reasoning=False, exclude_special_tokens=False)
        assert accepts(lax, text)


@pytest.mark.parametrize(
    ("model", "begin"),
    [
        ("deepseek_v4_1", "<｜DSML｜ calls>"),
        ("glm_4_7", "<tool_call>"),
        ("mimo", "<tool_call>"),
        ("minimax_m3", "]<]minimax[>[<tool_call>"),
    ],
)
def test_no_call_begins_where_there_are_no_tools(model, begin):
    for tools, choice in (([F], "none"), ([], "auto"), (None, None)):
        tag = for_model(model, tools, tool_choice=choice, reasoning=False)
        assert verdict(tag, f"I call {begin}") == "refused"
        assert accepts(tag, f"I call {begin[:-1]}")
        lax = {"reasoning": False, "exclude_special_tokens": False}
        tag = for_model(model, tools, tool_choice=choice, **lax)
        said = "refused" if model == "deepseek_v4_1" else "accepted"
        assert verdict(tag, f"I call {begin}") == said


def test_kimi_may_open_its_reasoning_again():
    assert accepts(for_model("kimi"), "<think>Hm.</think>Hi.")
    for text in ("<think>Hm.</think>Hi.", "Hi."):
        assert accepts(for_model("kimi", reasoning="auto"), text)
    assert verdict(for_model("kimi", reasoning="auto"), "<think>a<think>b") == "refused"


def test_kimi_has_calls_in_sections_alone():
    text = "I call <|tool_call_begin|>"
    assert verdict(for_model("kimi", [F], reasoning=False), text) == "refused"
    assert accepts(for_model("kimi", [], reasoning=False), text)


def test_minimax_m3_may_close_reasoning_that_it_skips():
    skipped = "</mm:think>Hi."
    assert accepts(for_model("minimax_m3", reasoning="auto"), skipped)
    assert verdict(for_model("minimax_m3", reasoning="disabled"), skipped) == "refused"


def test_text_behind_a_call_that_must_come():
    for model, said in (
        ("minimax_m3", True),
        ("qwen_3", True),
        ("minimax", False),
        ("kimi", False),
    ):
        tag = for_model(model, [F], tool_choice="required")
        assert accepts(tag, ENABLED_AND_REQUIRED[model] + "Done.") is said
        once = for_model(model, [F], tool_choice="required", parallel=False)
        assert not accepts(once, ENABLED_AND_REQUIRED[model] + "Done.")


def test_arguments_in_any_order_and_with_less_white_space():
    turned = '{"name": "f", "parameters": {"n": 1, "a": "x"}}'
    spaced = '{"name": "f", "parameters": {   "a": "x", "n": 1}}'
    plain = for_model("llama", [F], tool_choice="required")
    assert [accepts(plain, text) for text in (turned, spaced)] == [False, True]
    free = for_model("llama", [F], tool_choice="required", any_order=True, max_whitespace_cnt=2)
    assert [accepts(free, text) for text in (turned, spaced)] == [True, False]


ARGUMENTS = ["5", "null", '"{}"', "[]", "{}", '{"n": 1}', '{"b": [1]}']
N = {"properties": {"n": {"type": "integer"}}}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("function", "taken"),
    [
        ({}, 3),
        ({"parameters": None}, 3),
        ({"parameters": {}}, 3),
        ({"parameters": {"description": "Takes nothing."}}, 3),
        ({"parameters": PAIR, "strict": False}, 3),
        ({"parameters": N, "strict": False}, 3),
        ({"parameters": {"type": ["object", "null"]}}, 3),
        ({"parameters": N}, 2),
        ({"parameters": {**N, "anyOf": [{"required": ["n"]}]}}, 1),
        ({"parameters": {"enum": [{"n": 1}, 5, None]}}, 1),
        ({"parameters": {"$ref": "#/$defs/N", "$defs": {"N": N}}}, 2),
        (
            {
                "parameters": {
                    "$schema": DRAFT_7,
                    "$ref": "#/definitions/N",
                    "definitions": {"N": N},
                }
            },
            2,
        ),
    ],
)
def test_arguments_are_an_object(function, taken):
    """Whatever else the schema allows, in JSON as in other styles."""
    tool = {"type": "function", "function": {"name": "f", **function}}
    tag = for_model("llama", [tool], tool_choice="required")
    objects = ARGUMENTS[4:]
    expected = {1: objects[1:2], 2: objects[:2], 3: objects}[taken]
    found = [each for each in ARGUMENTS if accepts(tag, f'{{"name": "f", "parameters": {each}}}')]
    assert found == expected
    tag = for_model("glm_4_7", [tool], tool_choice="required", reasoning=False)
    elements = "<arg_key>n</arg_key><arg_value>1</arg_value>"
    assert accepts(tag, f"<tool_call>f{elements}</tool_call>")
    assert not accepts(tag, "<tool_call>f5</tool_call>")


def test_a_schema_of_objects_stands_in_the_tag_as_it_is():
    for schema in (PAIR, EMPTY, {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": PAIR}}):
        (tag,) = for_model("llama", named(parameters=schema))["format"]["tags"]
        assert json.dumps(tag["content"]["json_schema"]) == json.dumps(schema)


def test_names_in_json_are_escaped():
    tool = {"type": "function", "function": {"name": 'a"\\ü\n', "parameters": EMPTY}}
    for model in ("llama", "qwen_3", "exaone"):
        tag = for_model(model, [tool], tool_choice="required", reasoning=False)
        text = {
            "llama": '{"name": "a\\"\\\\ü\\n", "parameters": {}}',
            "qwen_3": '<tool_call>\n{"name": "a\\"\\\\ü\\n", "arguments": {}}\n</tool_call>',
            "exaone": '<tool_call>{"name": "a\\"\\\\ü\\n", "arguments": {}}</tool_call>',
        }[model]
        assert accepts(tag, text)


def test_names_that_look_like_blanks():
    for name in ("{name}", "{number}", "{json_name}", "{"):
        tool = {"type": "function", "function": {"name": name, "parameters": EMPTY}}
        tag = for_model("llama", [tool], tool_choice="required")
        assert accepts(tag, f'{{"name": "{name}", "parameters": {{}}}}')
        tag = for_model("kimi", [tool], tool_choice="required", reasoning=False)
        assert accepts(
            tag,
            f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:12"
            "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        )


@pytest.mark.parametrize("model", families())
@pytest.mark.parametrize("choice", ["auto", "required", forced("get_17")])
def test_errors_of_schemas_name_the_tool(model, choice):
    tools = [*named(name="get_16"), *named(name="get_17", parameters={"not": 3})]
    with pytest.raises(tokfold.InvalidSchemaError) as caught:
        assemble(for_model(model, tools, tool_choice=choice))
    where, _, said = str(caught.value).partition(": #: not: ")
    assert where.startswith("format.")
    assert "get_17" in where
    assert "get_16" not in where
    assert said.startswith("expected")


# -------------------------------------------------------------------------- server's tools

SEARCHED = ' to=browser.search<|channel|>commentary code<|message|>{"a": "x", "n": 1}<|call|>'


def test_harmony_calls_tools_of_the_server():
    tag = for_model("harmony", [F, SEARCH])
    assert accepts(tag, SEARCHED)
    assert accepts(tag, SEARCHED.replace(" to=browser.search", "", 1)) is False
    forced_search = for_model("harmony", [F, SEARCH], tool_choice={"type": "search"})
    assert accepts(forced_search, SEARCHED)
    called = (
        '<|channel|>commentary to=functions.f<|constrain|>json<|message|>{"a":"x","n":1}<|call|>'
    )
    assert accepts(tag, called)
    assert verdict(forced_search, called) == "refused"
    unnamed = for_model("harmony", [{"type": "search"}], tool_choice="required")
    assert accepts(unnamed, SEARCHED.replace("browser.search", "search"))


def test_harmony_writes_what_its_maker_documents():
    """A space before ``<|constrain|>``, and a preamble in ``commentary``."""
    preamble = "<|channel|>commentary<|message|>I look that up.<|end|>"
    call = (
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":"x","n":1}<|call|>'
    )
    for parallel in (True, False):
        tag = for_model("harmony", [F], parallel=parallel)
        assert accepts(tag, call)
        assert accepts(tag, preamble + "<|start|>assistant" + call)
        assert accepts(tag, preamble)
    assert accepts(for_model("harmony", [F], tool_choice="required"), call)


def test_qwen_coder_calls_a_tool_without_arguments():
    now = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
    for model in ("qwen_3_coder", "qwen_3_5"):
        tag = for_model(model, [now, F], reasoning="disabled")
        for end in ("</function>", "\n</function>"):
            assert accepts(tag, f"<tool_call>\n<function=now>\n{end}\n</tool_call>")
        assert not accepts(tag, "<tool_call>\n<function=f>\n</function>\n</tool_call>")


def test_harmony_demands_a_call():
    thought = "<|channel|>analysis<|message|>Hm.<|end|>"
    between = "<|start|>assistant"
    for parallel in (True, False):
        tag = for_model("harmony", [SEARCH], tool_choice="required", parallel=parallel)
        assert verdict(tag, "") == "prefix"
        assert verdict(tag, thought) == "prefix"
        assert accepts(tag, SEARCHED)
        assert accepts(tag, thought + between + thought + between + SEARCHED)
        assert accepts(tag, SEARCHED + between + thought) is parallel
        assert accepts(tag, SEARCHED + between + SEARCHED) is parallel


def test_other_families_leave_tools_of_the_server_out():
    for model in set(families()) - {"harmony", "mimo", "minimax_m3"}:
        assert for_model(model, [SEARCH, F]) == for_model(model, [F])
        assert for_model(model, [SEARCH]) == for_model(model, [])
    for model in ("mimo", "minimax_m3"):
        assert for_model(model, [SEARCH], tool_choice="none") == for_model(model, [])


# ---------------------------------------------------------------------------- kinds of tools


def test_tools_may_be_objects_of_other_libraries():
    tool = SimpleNamespace(model_dump=lambda: F)
    choice = SimpleNamespace(model_dump=lambda: forced("f"))
    for tools in ([tool], (F,), [F]):
        for chosen in (choice, forced("f"), {"function": {"name": "f"}}):
            assert for_model("qwen_3", tools, tool_choice=chosen) == for_model(
                "qwen_3", [F], tool_choice=forced("f")
            )


def test_lists_of_a_tag_are_its_own():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    tag = for_model("llama", [tool])
    tag["format"]["tags"].clear()
    tag["format"]["excludes"].append("<call>")
    again = for_model("llama", [tool])["format"]
    assert again["excludes"] == ["<think>", "</think>"]
    assert len(again["tags"]) == 1


def test_what_comes_out_serves_every_door():
    vocabulary = tokfold.Vocabulary([bytes([i]) for i in range(256)])
    tag = for_model("llama", [F], tool_choice="required")
    text = ENABLED_AND_REQUIRED["llama"]
    for grammar in (tag, json.dumps(tag), tokfold.Grammar.from_structural_tag(tag)):
        source = grammar if isinstance(grammar, tokfold.Grammar) else assemble(grammar)
        matcher = tokfold.Matcher(tokfold.compile(source, vocabulary))
        assert matcher.accept_string(text)
        assert matcher.is_accepting


# ----------------------------------------------------------------------------------- errors


def named(**function: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", **function}}]


def some(*references: object, mode: object = "auto") -> dict[str, Any]:
    tools = list(references)
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"model": "other"},
        "",
        "there is no model family 'other'; there are: cohere, c",
    ),
    *(
        ({"model": name}, "", f"did you mean '{family}'?")
        for name, family in [
            ("mistral-small-3.2", "mistral_13"),
            ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral_13"),
            ("Devstral-Small-2507", "mistral_13"),
            ("mistral-small-2503", "mistral"),
            ("deepseek-v3", "deepseek_r1"),
            ("deepseek-ai/DeepSeek-V3-0324", "deepseek_r1"),
            ("deepseek-v3.2-exp", "deepseek_v3_2"),
        ]
    ),
    ({"model": None}, "", "there is no model family null: pass a name; there are: cohere"),
    ({"model": ["llama"]}, "", "there is no model family a list: pass a name; there are"),
    ({"reasoning": 1}, "reasoning", "'auto', true or false, and not the number 1"),
    ({"parallel": 1}, "for_model", "'parallel' is true or false, not the number 1"),
    ({"any_order": "yes"}, "for_model", "'any_order' is true or false, not a string"),
    ({"exclude_special_tokens": None}, "for_model", "is true or false, not null"),
    ({"exclude_end_markers": "no"}, "for_model", "'exclude_end_markers' is true or false"),
    ({"max_whitespace_cnt": -1}, "for_model", "is a number from 0 to 2147483647, or null, not -1"),
    ({"max_whitespace_cnt": "3"}, "for_model", "is a whole number, not a string"),
    ({"tools": F}, "tools", "the tools are a list, not an object"),
    ({"tools": "f"}, "tools", "the tools are a list, not a string"),
    ({"tools": [F, 3]}, "tools[1]", "this is an object, and not the number 3"),
    ({"tools": [{}]}, "tools[0]", "'type' is missing; write {'type': 'function', 'function': {'n"),
    (
        {"tools": [{"name": "f", "parameters": {}}]},
        "tools[0]",
        "missing; write {'type': 'function', 'function': tool}",
    ),
    (
        {"tools": [F, {"name": "f", "title": None, "inputSchema": {"type": "object"}}]},
        "tools[1]",
        "this is a tool of MCP; write {'type': 'function', 'function': {'name': tool['name'], "
        "'parameters': tool['inputSchema']}}",
    ),
    (
        {"tools": [{"name": "f", "input_schema": {"type": "object"}}]},
        "tools[0]",
        "in Anthropic's form; write {'type': 'function', 'function': {'name': tool['name'], "
        "'parameters': tool['input_schema']}}",
    ),
    (
        {"tools": [{"type": "custom", "name": "f", "input_schema": {"type": "object"}}]},
        "tools[0]",
        "this is a tool in Anthropic's form",  # else its schema would be left out in silence
    ),
    (
        {"tools": [{"functionDeclarations": [{"name": "f"}]}]},
        "tools[0]",
        "Gemini's form; write {'type': 'function', 'function': {'name': one['name'], "
        "'parameters': ...}} for each one of tool['functionDeclarations'], with its JSON Schema",
    ),
    (
        {"tools": [{"function_declarations": [{"name": "f"}], "retrieval": None}]},
        "tools[0]",
        "for each one of tool['function_declarations']",
    ),
    (
        {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]},
        "tools[0]",
        "in Bedrock's form; write {'type': 'function', 'function': {'name': spec['name'], "
        "'parameters': spec['inputSchema']['json']}}, where spec is tool['toolSpec']",
    ),
    (
        {"tools": [{"name": "f", "parameter_definitions": {"a": {"type": "str"}}}]},
        "tools[0]",
        "Cohere's form; write {'type': 'function', 'function': {'name': tool['name'], "
        "'parameters': a JSON Schema of tool['parameter_definitions']}}",
    ),
    ({"tools": [{"type": 3}]}, "tools[0]", "'type' is a string, not the number 3"),
    ({"tools": [{"type": "s", "name": 3}]}, "tools[0]", "'name' is a string, not the number 3"),
    ({"tools": [{"type": "function", "name": "f"}]}, "tools[0]", "a function without 'function'"),
    ({"tools": [{"function": None}]}, "tools[0].function", "this is an object, and not null"),
    ({"tools": [{"function": {}}]}, "tools[0].function", "'name' is missing"),
    ({"tools": named(name=3)}, "tools[0].function", "'name' is a string, not the number 3"),
    ({"tools": named(name="\ud800")}, "tools[0].function", "'name' holds U+D800, half of a pair"),
    ({"tools": named(strict="no")}, "tools[0].function", "'strict' is true or false, not a string"),
    ({"tools": named(parameters=[])}, "tools[0].function", "an object, and not a list; leave it"),
    ({"tools": named(parameters={1: 2})}, "tools[0].function", "names of 'parameters' are strings"),
    (
        {"tools": named(parameters={"type": "string"})},
        "tools[0].function",
        "the arguments of 'f' are an object, and its 'parameters' allow 'string' alone; write {'t",
    ),
    ({"tools": named(parameters={"type": ["null", "array"]})}, "tools[0].function", "'array' alo"),
    (
        {"tools": [{"type": "search", "parameters": {"type": "integer"}}]},
        "tools[0]",
        "the arguments of 'search' are an object, and its 'parameters' allow 'integer' alone",
    ),
    ({"tools": named(description=3)}, "tools[0].function", "'description' is a string"),
    ({"tool_choice": "ANY"}, "tool_choice", "'required' or an object, and not 'ANY'; {'type': 'f"),
    ({"tool_choice": 3}, "tool_choice", "this is an object, and not the number 3"),
    ({"tool_choice": {}}, "tool_choice", "missing; write 'auto', 'none', 'required' or {'type'"),
    ({"tool_choice": {"tool": {"name": "f"}}}, "tool_choice", "'type' is missing; write 'auto'"),
    ({"tool_choice": {"type": "any"}}, "tool_choice", "in Anthropic's form; write 'required'"),
    ({"tool_choice": {"type": "none"}}, "tool_choice", "in Anthropic's form; write 'none'"),
    (
        {"tools": [F], "tool_choice": {"type": "tool", "name": "f"}},
        "tool_choice",
        "Anthropic's form; write {'type': 'function', 'function': {'name': 'f'}}",
    ),
    ({"tool_choice": "required"}, "tool_choice", "a call is required, and there is no tool"),
    ({"tool_choice": "any"}, "tool_choice", "a call is required, and there is no tool"),
    ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice", "the name, is missing"),
    (
        {"tools": [F], "tool_choice": forced("g")},
        "tool_choice",
        "no function has the name 'g'; there are: 'f'",
    ),
    (
        {"tools": [F, F], "tool_choice": forced("f")},
        "tool_choice",
        "2 tools are functions with the name 'f', and one is to be called; keep one of them",
    ),
    (
        {"tools": [F], "tool_choice": {"type": "search"}},
        "tool_choice",
        "no tool of the server has the type 'search'; there are: none",
    ),
    (
        {"tools": [SEARCH, SEARCH], "tool_choice": {"type": "search"}},
        "tool_choice",
        "2 tools are of type 'search'",
    ),
    (
        {"tools": [SEARCH], "tool_choice": {"type": "search"}},
        "tool_choice",
        "llama calls functions alone, of which the choice leaves none",
    ),
    (
        {"model": "mimo", "tools": [F, SEARCH]},
        "tools",
        "mimo calls functions alone, and no tool of type 'search'; leave it out",
    ),
    ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice", "'allowed_tools' is missing"),
    (
        {"tool_choice": {"allowed_tools": {"mode": "auto"}}},
        "tool_choice.allowed_tools",
        "'tools' is missing",
    ),
    (
        {"tools": [F], "tool_choice": some(forced("f"), mode="any")},
        "tool_choice.allowed_tools",
        "'mode' is 'auto' or 'required', not 'any'",
    ),
    (
        {"tools": [F], "tool_choice": some(forced("f"), forced("g"))},
        "tool_choice.allowed_tools.tools[1]",
        "no function has the name 'g'; there are: 'f'",
    ),
    (
        {"tools": [F], "tool_choice": some({"type": "function", "name": "f"})},
        "tool_choice.allowed_tools.tools[0]",
        "'function', which holds the name, is missing; write {'type'",
    ),
    (
        {"tools": [F], "tool_choice": some(mode="required")},
        "tool_choice",
        "a call is required, and no tool is allowed",
    ),
]


@pytest.mark.parametrize(("arguments", "path", "said"), REFUSED)
def test_what_is_refused(arguments, path, said):
    with pytest.raises(StructuralTagError) as caught:
        for_model(**{"model": "llama", **arguments})
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{path}: " if path else "there is")
    assert caught.value.path == path


def test_any_tool_must_be_called():
    """``"any"`` is the word of Mistral's API; a tool of the server may have it for its type."""
    assert for_model("llama", [F], tool_choice="any") == for_model(
        "llama", [F], tool_choice="required"
    )
    of_server = {"type": "any", "parameters": PAIR}
    tag = for_model("harmony", [of_server], tool_choice={"type": "any"})
    assert accepts(tag, SEARCHED.replace("browser.search", "any"))


def test_a_function_of_python_is_refused_with_what_to_write():
    with pytest.raises(StructuralTagError) as caught:
        for_model("qwen_3", [len])
    said = str(caught.value)
    assert "this is an object, and not the function len; write {" in said
    assert said.count("{") == said.count("}")
    assert said.endswith("as Model.model_json_schema() gives it}}")


# --------------------------------------------------------------------------------- examples


@pytest.mark.parametrize("name", ["family", "family_table", "family_tags", "models", "tool_choice"])
def test_examples_of_docstrings(name):
    module = importlib.import_module(f"tokfold.structural_tags.{name}")
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


# ---------------------------------------------------------- what arguments never hold

CUT = [
    (name, mark)
    for name, family in FAMILIES.items()
    for mark in (family.call if isinstance(family, Family) else family.function_calls[0]).cuts
]


@pytest.mark.parametrize(("model", "mark"), CUT)
def test_arguments_never_hold_what_parsers_cut_at(model, mark):
    """Between two values, in a name that the schema does not know, and spelled by any bytes."""
    text = ENABLED_AND_REQUIRED[model]
    (place,) = (found.start() for found in re.finditer(r'(?<=[">\]\n])x(?=["<\n\]])', text))
    held = f"{text[:place]}a{mark}b{text[place + 1 :]}"
    strict = for_model(model, [F], tool_choice="required")
    lax = for_model(
        model,
        [F],
        tool_choice="required",
        exclude_end_markers=False,
        exclude_special_tokens=model != "gemma_4",  # there they are these markers
    )
    assert accepts(lax, text)
    assert accepts(strict, text)
    assert accepts(lax, held)
    only = for_model(model, [F], tool_choice="required", exclude_special_tokens=False)
    assert verdict(only, held) == "refused"
    assert verdict(strict, held) == "refused"
    near = f"{text[:place]}a{mark[:-1]}b{text[place + 1 :]}"
    assert accepts(strict, near)
    # the mask forbids the byte that ends it, as the text says
    compiled = tokfold.compile(strict, BYTES, classes="never")
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_string(f"{text[:place]}a{mark[:-1]}")
    row = tokfold.allocate_bitmask(1, len(BYTES))
    assert matcher.fill_bitmask(row)
    last = mark.encode()[-1]
    assert not row[0, last // 32] >> last % 32 & 1
    assert row[0, ord("a") // 32] >> ord("a") % 32 & 1
    assert not matcher.accept_bytes(bytes([last]))


def test_a_string_may_have_a_mark_by_an_escape():
    for model, x in (
        ("qwen_3", r'"<\/tool_call>"'),
        ("kimi", r'"<\u007ctool_call_end|>"'),
        ("harmony", r'"\u003c|call|>"'),
    ):
        strict = for_model(model, [F], tool_choice="required")
        assert accepts(strict, ENABLED_AND_REQUIRED[model].replace('"x"', x)), model
