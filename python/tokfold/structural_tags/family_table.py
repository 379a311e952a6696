"""The table of model families.

Example:
    >>> from tokfold.structural_tags.family_table import FAMILIES
    >>> FAMILIES["glm_4_7"].call.begin
    '<tool_call>{name}'
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tokfold.structural_tags.family import (
    THINK,
    Answer,
    Call,
    Family,
    MessageFamily,
    Reasoning,
    Section,
)

__all__ = ["ALIASES", "FAMILIES"]

_THEN_LINES = Reasoning(after="\n\n")

# ----------------------------------------------------------- calls as JSON objects

_LLAMA = Family(
    call=Call(begin='{"name": "{json_name}", "parameters": ', end="}"),
    trigger='{"name": ',
    reasoning=None,
)

_QWEN_3 = Family(
    call=Call(
        begin='<tool_call>\n{"name": "{json_name}", "arguments": ',
        end="}\n</tool_call>",
        cuts=("</tool_call>",),
    ),
    trigger="<tool_call>",
    reasoning=_THEN_LINES,
)

_GEMMA = Family(
    call=Call(begin='{"name": "{json_name}", "parameters": ', end="}"),
    trigger='{"name": ',
    reasoning=None,
    excludes=(),
)

_GEMMA_4_TEXT = ("<|channel>", "<channel|>")
_GEMMA_4_CALL = ("<|tool_call>", "<tool_call|>")
_GEMMA_4 = Family(
    call=Call(
        begin="<|tool_call>call:{name}",
        end="<tool_call|>",
        style="gemma",
        excludes=(*_GEMMA_4_TEXT, *_GEMMA_4_CALL),
        cuts=_GEMMA_4_CALL,
    ),
    trigger="<|tool_call>",
    reasoning=Reasoning(
        begin="<|channel>thought\n",
        end="<channel|>",
        in_prompt=False,
        excludes=(*_GEMMA_4_TEXT, "<|tool_call>"),
    ),
    excludes=_GEMMA_4_TEXT,
    excludes_without_calls=(*_GEMMA_4_TEXT, "<|tool_call>"),
)

_EXAONE = Family(
    call=Call(
        begin='<tool_call>{"name": "{json_name}", "arguments": ',
        end="}</tool_call>",
        cuts=("</tool_call>",),
    ),
    trigger="<tool_call>",
    reasoning=Reasoning(after="\n\n", excludes_when_enabled=()),
)

# -------------------------------------------------- sections of calls, arguments as JSON

_KIMI = Family(
    call=Call(
        begin="<|tool_call_begin|>functions.{name}:{number}<|tool_call_argument_begin|>",
        end="<|tool_call_end|>",
        cuts=("<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>"),
    ),
    section=Section(begin="<|tool_calls_section_begin|>", end="<|tool_calls_section_end|>"),
    trigger="<|tool_calls_section_begin|>",
    # the prompt does not end with the marker of every model, so it may come again
    reasoning=Reasoning(excludes_when_enabled=()),
    excludes=(*THINK, "<|tool_call_begin|>"),
    excludes_without_calls=THINK,
)

_MISTRAL = Family(
    call=Call(begin='{"name": "{json_name}", "arguments": ', end="}", cuts=("[TOOL_CALLS]",)),
    # with a space in between where the tokenizer is of SentencePiece
    section=Section(begin="[TOOL_CALLS]", opens=("[", " ["), end="]", separator=", "),
    trigger="[TOOL_CALLS]",
    reasoning=None,
    excludes=(),
)

_MISTRAL_13 = Family(
    call=Call(begin="[TOOL_CALLS]{name}[ARGS]", end="", cuts=("[TOOL_CALLS]",)),
    trigger="[TOOL_CALLS]",
    reasoning=None,
    excludes=(),
)

_PHI = Family(
    call=Call(begin='{"name": "{json_name}", "arguments": ', end="}"),
    section=Section(begin="<|tool_call|>[", end="]<|/tool_call|>", separator=", "),
    trigger="<|tool_call|>",
    reasoning=None,
    excludes=(),
)

_PIPES = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
"""vLLM's parsers leave them out of what they stream."""

_GRANITE = Family(
    call=Call(begin='{"name": "{json_name}", "arguments": ', end="}"),
    section=Section(begin="<|tool_call|>[", end="]", separator=", "),
    trigger="<|tool_call|>",
    reasoning=None,
    excludes=(),
)

_DEEPSEEK_R1 = Family(
    call=Call(
        begin="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n",
        end="\n```<｜tool▁call▁end｜>",
        cuts=("<｜tool▁call▁end｜>", *_PIPES),
    ),
    section=Section(begin="<｜tool▁calls▁begin｜>", end="<｜tool▁calls▁end｜>", separator="\n"),
    trigger="<｜tool▁calls▁begin｜>",
)

_DEEPSEEK_V3_1 = Family(
    call=Call(
        begin="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>",
        end="<｜tool▁call▁end｜>",
        cuts=("<｜tool▁call▁end｜>", *_PIPES),
    ),
    section=Section(begin="<｜tool▁calls▁begin｜>", end="<｜tool▁calls▁end｜>"),
    trigger="<｜tool▁calls▁begin｜>",
)

# -------------------------------------------------------------- arguments as elements


def _dsml(
    calls: str,
    invoke: str,
    style: str,
    never_without_calls: tuple[str, ...] = (),
    cuts: tuple[str, ...] = (),
    ends_output: bool = True,
) -> Family:
    """DeepSeek's markup, whose names of elements changed from version to version."""
    return Family(
        call=Call(
            begin=f'<｜DSML｜{invoke} name="{{name}}">\n',
            end=f"</｜DSML｜{invoke}>\n",
            style=style,
            cuts=(f"</｜DSML｜{invoke}>", f"</｜DSML｜{calls}>", *cuts),
        ),
        section=Section(
            begin=f"<｜DSML｜{calls}>\n",
            end=f"</｜DSML｜{calls}>",
            before="\n\n",
            ends_output=ends_output,
        ),
        trigger=f"<｜DSML｜{calls}>",
        never_without_calls=never_without_calls,
    )


_QWEN_XML = Family(
    call=Call(
        begin="<tool_call>\n<function={name}>\n",
        end="\n</function>\n</tool_call>",
        end_without_arguments="</function>\n</tool_call>",
        style="qwen_xml",
        cuts=("</tool_call>", "</function>", "<parameter="),
    ),
    trigger="<tool_call>\n<function=",
    reasoning=_THEN_LINES,
)

_MIMO_TEXT = (*THINK, "</tool_call>", "<function=")
_MIMO = Family(
    call=Call(
        begin="<tool_call><function={name}>",
        end="</function></tool_call>",
        style="qwen_xml",
        cuts=("</tool_call>", "</function>"),
    ),
    trigger="<tool_call>",
    reasoning=Reasoning(in_prompt=False, excludes=("<tool_call>", *_MIMO_TEXT)),
    excludes=_MIMO_TEXT,
    excludes_without_calls=("<tool_call>", *_MIMO_TEXT),
    refuses_server_tools=True,
)

_GLM_TEXT = (*THINK, "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
_GLM_4_7 = Family(
    call=Call(
        begin="<tool_call>{name}", end="</tool_call>", style="glm_xml", cuts=("</tool_call>",)
    ),
    trigger="<tool_call>",
    reasoning=Reasoning(excludes=("<tool_call>", *_GLM_TEXT)),
    excludes=_GLM_TEXT,
    excludes_without_calls=("<tool_call>", *_GLM_TEXT),
)

_MINIMAX = Family(
    call=Call(
        begin='<invoke name="{name}">\n',
        end="</invoke>\n",
        style="minimax_xml",
        cuts=("</invoke>", "</minimax:tool_call>"),
    ),
    section=Section(begin="<minimax:tool_call>\n", end="</minimax:tool_call>", before="\n"),
    trigger="<minimax:tool_call>",
    # the prompt opens a block in any case, which the model closes
    reasoning=Reasoning(after="\n\n", excludes_when_enabled=(), disabled="\n</think>\n\n"),
)

_M3 = "]<]minimax[>["
_M3_TEXT = (
    "<mm:think>",
    "</mm:think>",
    f"{_M3}</tool_call>",
    f"{_M3}<invoke",
    f"{_M3}</invoke>",
)
_MINIMAX_M3 = Family(
    call=Call(
        begin=f'{_M3}<invoke name="{{name}}">',
        end=f"{_M3}</invoke>\n",
        style="minimax_m3_xml",
    ),
    section=Section(begin=f"{_M3}<tool_call>\n", end=f"{_M3}</tool_call>", text_follows=True),
    trigger=f"{_M3}<tool_call>",
    reasoning=Reasoning(
        begin="<mm:think>",
        end="</mm:think>",
        excludes=(f"{_M3}<tool_call>", *_M3_TEXT),
        skipped="</mm:think>",
    ),
    excludes=_M3_TEXT,
    excludes_without_calls=(f"{_M3}<tool_call>", *_M3_TEXT),
    refuses_server_tools=True,
)

_COHERE_THINK = ("<|START_THINKING|>", "<|END_THINKING|>")
_COHERE = Family(
    call=Call(
        begin='<cofl:tool_call id="{number}" name="{name}">',
        end="</cofl:tool_call>",
        style="cohere_xml",
    ),
    section=Section(begin="<cofl:tool_calls>", end="</cofl:tool_calls>"),
    trigger="<cofl:tool_calls>",
    reasoning=Reasoning(
        begin="<|START_THINKING|>",
        end="<|END_THINKING|>",
        excludes=_COHERE_THINK,
        excludes_when_enabled=(),
    ),
    excludes=_COHERE_THINK,
)

# -------------------------------------------------------------------------- blocks


def _command(text: str, *, in_prompt: bool) -> Family:
    """Cohere's Command, whose answers stand between two markers of a name."""
    begin, end = f"<|START_{text}|>", f"<|END_{text}|>"
    markers = (*_COHERE_THINK, "<|START_ACTION|>", "<|END_ACTION|>", begin, end)
    return Family(
        call=Call(
            begin='{"tool_call_id": "{number}", "tool_name": "{json_name}", "parameters": ',
            end="}",
            cuts=("<|END_ACTION|>",),
        ),
        section=Section(
            begin="<|START_ACTION|>[\n    ", end="\n]<|END_ACTION|>", separator=",\n    "
        ),
        reasoning=Reasoning(
            begin=_COHERE_THINK[0], end=_COHERE_THINK[1], in_prompt=in_prompt, excludes=markers
        ),
        answer=Answer(begin=begin, end=end, or_calls=True),
        excludes=markers,
    )


_KIMI_K3 = Family(
    call=Call(
        begin='<|open|>call tool="{name}" index="{number}"<|sep|>',
        end="<|close|>call<|sep|>",
        style="kimi_k3_xml",
        excludes=("<|open|>", "<|close|>", "<|sep|>"),
    ),
    section=Section(begin="<|open|>tools<|sep|>", end="<|close|>tools<|sep|>"),
    reasoning=Reasoning(
        begin="<|open|>think<|sep|>",
        end="<|close|>think<|sep|>",
        excludes=("<|open|>", "<|close|>"),
    ),
    answer=Answer(
        begin="<|open|>response<|sep|>",
        end="<|close|>response<|sep|>",
        closing="<|close|>message<|sep|>",
    ),
    excludes=("<|open|>", "<|close|>"),
)

# ------------------------------------------------------------------------ messages

_HARMONY_MARKERS = (
    *("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"),
    *("<|end|>", "<|call|>", "<|return|>"),
)
_HARMONY = MessageFamily(
    function_calls=tuple(
        Call(begin=begin, end="<|call|>", cuts=_HARMONY_MARKERS)
        for begin in (
            "<|channel|>commentary to=functions.{name}<|constrain|>json<|message|>",
            "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>",
            " to=functions.{name}<|channel|>commentary <|constrain|>json<|message|>",
            " to=functions.{name}<|channel|>commentary json<|message|>",
        )
    ),
    server_calls=tuple(
        Call(begin=begin, end="<|call|>", cuts=_HARMONY_MARKERS)
        for begin in (
            "<|channel|>commentary to={name} code<|message|>",
            " to={name}<|channel|>commentary code<|message|>",
        )
    ),
    reasoning="<|channel|>analysis<|message|>",
    answer="<|channel|>final<|message|>",
    preamble="<|channel|>commentary<|message|>",
    ends=("<|end|>", "<|return|>"),
    separator="<|start|>assistant",
)

FAMILIES: Mapping[str, Family | MessageFamily] = MappingProxyType(
    {
        "cohere": _COHERE,
        "command_a": _command("TEXT", in_prompt=True),
        "command_r7b": _command("RESPONSE", in_prompt=False),
        "deepseek_r1": _DEEPSEEK_R1,
        "deepseek_v3_1": _DEEPSEEK_V3_1,
        # SGLang's parser takes ends without ｜DSML｜ for ends
        "deepseek_v3_2": _dsml(
            "function_calls",
            "invoke",
            "deepseek_xml",
            cuts=("</invoke>", "</function_calls>", "</parameter>"),
            ends_output=False,
        ),
        "deepseek_v4": _dsml("tool_calls", "invoke", "deepseek_xml"),
        "deepseek_v4_1": _dsml(" calls", " invoke", "deepseek_v4_1_xml", ("<｜DSML｜ calls>",)),
        "exaone": _EXAONE,
        "gemma": _GEMMA,
        "gemma_4": _GEMMA_4,
        "glm_4_7": _GLM_4_7,
        "granite": _GRANITE,
        "harmony": _HARMONY,
        "kimi": _KIMI,
        "kimi_k3": _KIMI_K3,
        "llama": _LLAMA,
        "mimo": _MIMO,
        "minimax": _MINIMAX,
        "minimax_m3": _MINIMAX_M3,
        "mistral": _MISTRAL,
        "mistral_13": _MISTRAL_13,
        "phi": _PHI,
        "qwen_3": _QWEN_3,
        "qwen_3_5": _QWEN_XML,
        "qwen_3_coder": _QWEN_XML,
    }
)
"""Every family by its name, sorted."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "c4aicommandr7b122024": "command_r7b",
        "commandaplus": "command_a",
        "gemma3": "gemma",
        "gptoss": "harmony",
        "granite3": "granite",
        "granite31": "granite",
        "granite32": "granite",
        "granite33": "granite",
        "kimik2": "kimi",
        "llama3": "llama",
        "llama31": "llama",
        "llama32": "llama",
        "llama33": "llama",
        "minimaxm2": "minimax",
        "phi4mini": "phi",
    }
)
"""Other names of families, in small letters and digits alone, with what they mean."""
