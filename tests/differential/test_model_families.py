"""Structural tags of model families: our table and builder beside XGrammar's functions."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from strategies.conversations import OURS
from strategies.model_families import (
    CHOICES,
    HARMONY_SEPARATOR,
    NAME_ENDS,
    REASONING,
    SCHEMA,
    TOOLS,
    WRONG_TOOLS,
    F,
    canonical,
    function,
    mended,
    requests,
)
from strategies.profiles import CASES, LONG, examples

xgr = pytest.importorskip("xgrammar")

from tokfold.errors import StructuralTagError  # noqa: E402
from tokfold.structural_tags import assemble, families, for_model  # noqa: E402
from tokfold.structural_tags.family_table import FAMILIES  # noqa: E402
from xgrammar import builtin_structural_tag  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
OUR_NAMES = {"parallel": "parallel_tool_calls"}


def theirs(model: str, **arguments: Any) -> dict[str, Any] | None:
    """XGrammar's format; ``None`` is an error."""
    named = {OUR_NAMES.get(name, name): value for name, value in arguments.items()}
    try:
        return xgr.get_model_structural_tag(model, **named).model_dump()["format"]
    except (ValueError, AssertionError):  # where no tool is left, some only assert
        return None


def ours(model: str, **arguments: Any) -> dict[str, Any] | None:
    try:
        tag = for_model(model, **arguments, exclude_end_markers=False, markers="both")
    except StructuralTagError:
        return None
    assert list(tag) == ["type", "format"]
    assert tag["type"] == "structural_tag"
    assert json.loads(json.dumps(tag)) == tag
    return tag["format"]


def without_ours(format: Any) -> Any:
    """Our format without what XGrammar refuses: see the page of differences."""
    if isinstance(format, list):
        return [without_ours(each) for each in format if not _is_ours(each)]
    if not isinstance(format, dict) or format.get("type") == "json_schema":
        return format
    found = {name: without_ours(value) for name, value in format.items()}
    if format.get("type") == "tag" and "</function>\n</tool_call>" in format["end"]:
        found["end"] = format["end"][0] if isinstance(format["end"], list) else format["end"]
    return found


def _is_ours(format: object) -> bool:
    begin = format.get("begin", "") if isinstance(format, dict) else ""
    is_preamble = begin == "<|channel|>commentary<|message|>"
    is_spaced = begin.endswith(" <|constrain|>json<|message|>") and begin.startswith("<")
    return is_preamble or is_spaced


def compare(model: str, **arguments: Any) -> dict[str, Any] | None:
    """Ours, after it was found to be theirs."""
    mine, its = ours(model, **arguments), theirs(model, **arguments)
    assert (mine is None) == (its is None), (model, arguments, mine, its)
    if mine is None or its is None:
        CASES["families: refused by both"] += 1
        return None
    mine = without_ours(mine)
    right = mended(model, arguments.get("tool_choice"), arguments.get("reasoning"), its)
    assert canonical(mine) == canonical(right), (model, arguments, mine, right)
    CASES["families: equal tags"] += 1
    return mine


SHARED = [model for model in families() if model not in OURS]


def test_the_table_has_every_family():
    assert set(SHARED) == set(builtin_structural_tag._structural_tag_registry)


FLAGS = list(itertools.product([True, False], [True, False], [(False, None), (True, 2)]))
MISREAD = {"a function without a name"}
"""XGrammar takes these for tools of the server: see :data:`DIFFERENCES`."""


@pytest.mark.parametrize("tools", [name for name in TOOLS if name not in MISREAD])
@pytest.mark.parametrize("model", SHARED)
def test_every_choice_under_every_option(model, tools):
    some_are_equal = False
    for choice, reasoning in itertools.product(CHOICES.values(), REASONING):
        flags = FLAGS if LONG else Random(f"{model}{tools}{reasoning}").sample(FLAGS, 3)
        for parallel, exclude, (any_order, spaces) in flags:
            found = compare(
                model,
                tools=TOOLS[tools],
                tool_choice=choice,
                reasoning=reasoning,
                parallel=parallel,
                any_order=any_order,
                exclude_special_tokens=exclude,
                max_whitespace_cnt=spaces,
            )
            some_are_equal |= found is not None
            if found is None and not LONG:
                break  # it is wrong whatever the flags
    assert some_are_equal is (tools not in WRONG_TOOLS)


@pytest.mark.parametrize("reasoning", ["much", "", None, 1, []])
def test_reasoning_of_a_wrong_kind(reasoning):
    for model in SHARED:
        assert compare(model, tools=[F], reasoning=reasoning) is None


def test_parallel_of_a_wrong_kind():
    for model in SHARED:
        assert compare(model, tools=[F], parallel=1) is None


@pytest.mark.parametrize("model", ["Lama", "gemma_5", ""])
def test_a_family_that_there_is_not(model):
    assert compare(model) is None


@examples(400)
@given(st.sampled_from(SHARED), requests())
def test_random_requests(model, request):
    compare(model, **request)


@pytest.mark.parametrize("model", SHARED)
@pytest.mark.parametrize("name", ["", "f\n", "f\x00", *(f"f{end}g" for end in NAME_ENDS)])
def test_names_that_a_call_could_not_end(model, name):
    """Ours is refused, or the name stands in the call as JSON escapes it."""
    begin = getattr(FAMILIES[model], "call", None)
    raw = begin is None or "{name}" in begin.begin
    arguments = "{" if model == "gemma_4" else "<"
    end = begin.begin.partition("{name}")[2][:1] or arguments if begin and raw else ""
    refused = ours(model, tools=[function(name)]) is None
    if not name or (raw and not name.isprintable()) or (end and end in name):
        assert refused
    elif not raw:
        assert not refused


# ---------------------------------------------------------------- equal grammars, compiled

BYTES = [bytes([byte]) for byte in range(256)]


def its_verdict(format: dict[str, Any], text: str) -> str:
    info = xgr.TokenizerInfo(BYTES, xgr.VocabType.RAW, stop_token_ids=[])
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    tag = {"type": "structural_tag", "format": format}
    matcher = xgr.GrammarMatcher(compiler.compile_structural_tag(tag))
    if not matcher.accept_string(text):
        return "refused"
    return "accepted" if matcher.is_completed() else "prefix"


def our_verdict(format: dict[str, Any], text: str) -> str:
    found = tokfold.recognize(assemble({"type": "structural_tag", "format": format}), text)
    read = found.read == len(text.encode())
    return "accepted" if found.accepted else "prefix" if read else "refused"


HARMONY = {
    "thought": "<|channel|>analysis<|message|>Hm.<|end|>",
    "answer": "<|channel|>final<|message|>Hi.<|return|>",
    "call": '<|channel|>commentary to=functions.f<|constrain|>json<|message|>{"city": "A"}<|call|>',
    "search": ' to=search<|channel|>commentary code<|message|>{"city": "A"}<|call|>',
}


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("reasoning", ["enabled", "disabled"])
@pytest.mark.parametrize("choice", ["auto", "required", "f"])
def test_harmony_is_what_xgrammar_has_of_it_but_for_calls_that_must_come(
    choice, reasoning, parallel
):
    """All rows of up to three messages."""
    arguments = {
        "tools": TOOLS["of both kinds"],
        "tool_choice": CHOICES[choice],
        "reasoning": reasoning,
        "parallel": parallel,
    }
    mine, its = ours("harmony", **arguments), theirs("harmony", **arguments)
    accepted = 0
    for length in range(4):
        for row in itertools.product(HARMONY, repeat=length):
            text = HARMONY_SEPARATOR.join(map(HARMONY.__getitem__, row))
            verdict = its_verdict(its, text)
            if verdict == "accepted" and choice != "auto" and "<|call|>" not in text:
                verdict = "prefix"
            assert our_verdict(mine, text) == verdict, row
            accepted += verdict == "accepted"
    assert accepted >= (1 if choice == "f" else 2)


# -------------------------------------------------------------------------- differences


class Difference(NamedTuple):
    """What both say; without a text, of the request alone."""

    what: str
    """As it stands in the table of ``docs/differences.md``, with both verdicts."""
    model: str
    arguments: dict[str, Any]
    text: str | None
    xgrammar: str
    ours: str


NAMED = function("f", parameters={"type": "object", "properties": {}})
QUOTED = function('say "hi"', parameters={"type": "object", "properties": {}})
MINIMAX_CALL = (
    '\n</think>\n\n\n<minimax:tool_call>\n<invoke name="f">\n</invoke>\n</minimax:tool_call>'
)
SPACED = HARMONY["call"].replace("<|constrain|>", " <|constrain|>")
PREAMBLE = "<|channel|>commentary<|message|>I look.<|end|>"
DIFFERENCES = [
    Difference(
        "`harmony`: a call with a space before `<\\|constrain\\|>`",
        "harmony",
        {"tools": [F]},
        SPACED,
        "refused",
        "accepted",
    ),
    Difference(
        "`harmony`: a message for the user in `commentary`",
        "harmony",
        {"tools": [F]},
        PREAMBLE,
        "refused",
        "accepted",
    ),
    Difference(
        "`qwen_3_coder`, `qwen_3_5`: `<function=f>\\n</function>` of a tool that requires nothing",
        "qwen_3_coder",
        {"tools": [NAMED], "reasoning": "disabled"},
        "<tool_call>\n<function=f>\n</function>\n</tool_call>",
        "refused",
        "accepted",
    ),
    Difference(
        '`harmony`, `"required"`: the empty output',
        "harmony",
        {"tools": [F], "tool_choice": "required"},
        "",
        "accepted",
        "prefix",
    ),
    Difference(
        "`harmony`, a named function: reasoning alone",
        "harmony",
        {"tools": [F], "tool_choice": function("f")},
        HARMONY["thought"],
        "accepted",
        "prefix",
    ),
    Difference(
        '`minimax`, `"disabled"`: `\\n</think>\\n\\n`, then a call that must come',
        "minimax",
        {"tools": [NAMED], "tool_choice": "required", "reasoning": "disabled"},
        MINIMAX_CALL,
        "refused",
        "accepted",
    ),
    Difference(
        '`llama`, a function with the name `say "hi"`: the name with `\\"`',
        "llama",
        {"tools": [QUOTED], "tool_choice": "required"},
        '{"name": "say \\"hi\\"", "parameters": {}}',
        "refused",
        "accepted",
    ),
    Difference(
        "a function without `parameters`, or with a schema that does not say `object`: "
        '`"parameters": 5`',
        "llama",
        {"tools": [function("f")], "tool_choice": "required"},
        '{"name": "f", "parameters": 5}',
        "accepted",
        "refused",
    ),
    Difference(
        'a function whose `parameters` are `{"type": "string"}`',
        "llama",
        {"tools": [function("f", parameters={"type": "string"})]},
        None,
        "a tag",
        "error",
    ),
    Difference(
        "a function whose `parameters` are a list",
        "harmony",
        {"tools": [function("f", parameters=[SCHEMA])]},
        ' to=function<|channel|>commentary code<|message|>{"a": 1}<|call|>',
        "accepted",
        "error",
    ),
    Difference(
        'a function that is `{"type": "function", "name": "f"}`',
        "llama",
        {"tools": TOOLS["a function without a name"]},
        "Hi.",
        "accepted",
        "error",
    ),
    Difference(
        '`"strict": "no"`',
        "llama",
        {"tools": [function("f", parameters=SCHEMA, strict="no")]},
        "Hi.",
        "accepted",
        "error",
    ),
    Difference(
        '`any_order="yes"`, `max_whitespace_cnt="3"`',
        "llama",
        {"tools": [F], "any_order": "yes", "max_whitespace_cnt": "3"},
        "Hi.",
        "accepted",
        "error",
    ),
    Difference(
        "`max_whitespace_cnt=-1`",
        "llama",
        {"tools": [F], "max_whitespace_cnt": -1},
        None,
        "a tag",
        "error",
    ),
    Difference(
        "an empty name; in `qwen_3_5`, `harmony` and others that write names as they are, a name "
        "with what ends it (`f>g`) or a line end",
        "qwen_3_5",
        {"tools": [function("f>g")]},
        None,
        "a tag",
        "error",
    ),
    Difference(
        "a name that holds half of a surrogate pair",
        "llama",
        {"tools": [function("f\ud800")]},
        None,
        "a tag",
        "error",
    ),
    Difference(
        "a choice without a type, of a function and of allowed tools",
        "llama",
        {
            "tools": [F],
            "tool_choice": {
                "function": {"name": "f"},
                "allowed_tools": {"mode": "auto", "tools": []},
            },
        },
        None,
        "a tag",
        "error",
    ),
    Difference(
        '`tool_choice="any"`',
        "llama",
        {"tools": [F], "tool_choice": "any"},
        '{"name": "f", "parameters": {"city": "A"}}',
        "error",
        "accepted",
    ),
    Difference("tools in a tuple", "llama", {"tools": (F,)}, "Hi.", "error", "accepted"),
]


@pytest.mark.parametrize("case", DIFFERENCES, ids=lambda case: case.what)
def test_where_we_differ(case):
    for format, verdict, said in (
        (theirs(case.model, **case.arguments), its_verdict, case.xgrammar),
        (ours(case.model, **case.arguments), our_verdict, case.ours),
    ):
        if format is None:
            assert said == "error"
        else:
            assert said == ("a tag" if case.text is None else verdict(format, case.text))


def test_the_page_has_all_differences():
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    table = page.split("## Model families")[1].split("## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    assert [tuple(row[:3]) for row in rows[2:]] == [
        (case.what, case.xgrammar, case.ours) for case in DIFFERENCES
    ]
