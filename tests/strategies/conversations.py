"""What models of each family put out: reasoning, an answer, calls of tools.

Written from the chat templates of the families, not from the grammars, so that a grammar which
does not take them is found out. ``mode`` is how the model was asked to reason, ``thought`` is
``None`` where it does not reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Call = tuple[str, dict[str, Any]]
Writer = Callable[[str, str | None, str, list[Call]], str]
"""Of mode, thought, answer and calls."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"location": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["location"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        },
    },
]
WEATHER: Call = ("get_weather", {"location": "Paris, ça", "days": 3})
ADD: Call = ("add", {"a": 1, "b": -2})
WRONG: dict[str, Call] = {
    "a value of another type": ("get_weather", {"location": "Paris", "days": "x"}),
    "a required argument missing": ("add", {"a": 1}),
    "an argument that there is not": ("add", {"a": 1, "b": 2, "c": 3}),
    "a tool that there is not": ("subtract", {"a": 1, "b": 2}),
}


def forced(name: str) -> dict[str, Any]:
    """The choice of one tool."""
    return {"type": "function", "function": {"name": name}}


def _thinking(
    *, begins: bool = False, suffix: str = "", begin: str = "<think>", end: str = "</think>"
) -> Callable[[str, str | None], str]:
    """Reasoning before everything else.

    The prompt ends with its beginning where reasoning is enabled, unless the model ``begins``.
    """

    def write(mode: str, thought: str | None) -> str:
        if thought is None:
            return ""
        opened = mode == "enabled" and not begins
        return f"{'' if opened else begin}{thought}{end}{suffix}"

    return write


THINK = _thinking()
THINK_AND_LINES = _thinking(suffix="\n\n")


def llama(mode, thought, text, calls):
    return text + "".join(
        f'{{"name": "{name}", "parameters": {json.dumps(arguments)}}}' for name, arguments in calls
    )


def _listed(before: str, after: str) -> Writer:
    def write(mode, thought, text, calls):
        written = [{"name": name, "arguments": arguments} for name, arguments in calls]
        return text + (before + json.dumps(written)[1:-1] + after if calls else "")

    return write


def mistral_13(mode, thought, text, calls):
    return text + "".join(
        f"[TOOL_CALLS]{name}[ARGS]{json.dumps(arguments)}" for name, arguments in calls
    )


def _hermes(before: str, after: str, thinking: Callable[[str, str | None], str]) -> Writer:
    def write(mode, thought, text, calls):
        written = (
            f'<tool_call>{before}{{"name": "{name}", "arguments": {json.dumps(arguments)}}}{after}'
            "</tool_call>"
            for name, arguments in calls
        )
        return thinking(mode, thought) + text + "".join(written)

    return write


def kimi(mode, thought, text, calls):
    written = "".join(
        f"<|tool_call_begin|>functions.{name}:{i}<|tool_call_argument_begin|>"
        f"{json.dumps(arguments)}<|tool_call_end|>"
        for i, (name, arguments) in enumerate(calls)
    )
    section = f"<|tool_calls_section_begin|>{written}<|tool_calls_section_end|>" if calls else ""
    return THINK(mode, thought) + text + section


def kimi_k3(mode, thought, text, calls):
    def block(name: str, body: str) -> str:
        return f"<|open|>{name}<|sep|>{body}<|close|>{name.split()[0]}<|sep|>"

    kinds = {str: "string", int: "number"}
    written = ""
    for i, (name, arguments) in enumerate(calls):
        body = "".join(
            block(f'argument key="{key}" type="{kinds[type(value)]}"', str(value))
            for key, value in arguments.items()
        )
        written += block(f'call tool="{name}" index="{i}"', body)
    answer = block("response", text)
    found = answer if mode != "disabled" else answer.removeprefix("<|open|>response<|sep|>")
    if thought is not None:
        think = block("think", thought)
        found = (think.removeprefix("<|open|>think<|sep|>") if mode == "enabled" else think) + found
    return found + (block("tools", written) if calls else "") + "<|close|>message<|sep|>"


def _deepseek(begin: str, between: str, end: str, join: str) -> Writer:
    def write(mode, thought, text, calls):
        written = join.join(
            f"<｜tool▁call▁begin｜>{begin}{name}{between}{json.dumps(arguments)}"
            f"{end}<｜tool▁call▁end｜>"
            for name, arguments in calls
        )
        section = f"<｜tool▁calls▁begin｜>{written}<｜tool▁calls▁end｜>" if calls else ""
        return THINK(mode, thought) + text + section

    return write


def _dsml(section: str, invoke: str, parameter: str) -> Writer:
    def write(mode, thought, text, calls):
        written = ""
        for name, arguments in calls:
            written += f'<｜DSML｜{invoke} name="{name}">\n'
            for key, value in arguments.items():
                is_text = str(isinstance(value, str)).lower()
                written += (
                    f'<｜DSML｜{parameter} name="{key}" string="{is_text}">{value}'
                    f"</｜DSML｜{parameter}>\n"
                )
            written += f"</｜DSML｜{invoke}>\n"
        whole = f"\n\n<｜DSML｜{section}>\n{written}</｜DSML｜{section}>" if calls else ""
        return THINK(mode, thought) + text + whole

    return write


def _qwen_xml(lines: str, thinking: Callable[[str, str | None], str]) -> Writer:
    def write(mode, thought, text, calls):
        written = ""
        for name, arguments in calls:
            body = lines.join(
                f"<parameter={key}>{value}</parameter>" for key, value in arguments.items()
            )
            written += (
                f"<tool_call>{lines}<function={name}>{lines}{body}{lines}</function>{lines}"
                "</tool_call>"
            )
        return thinking(mode, thought) + text + written

    return write


def harmony(mode, thought, text, calls):
    messages = []
    if thought is not None:
        messages.append(f"<|channel|>analysis<|message|>{thought}<|end|>")
    for name, arguments in calls:
        messages.append(
            f"<|channel|>commentary to=functions.{name}<|constrain|>json<|message|>"
            f"{json.dumps(arguments)}<|call|>"
        )
    if text:
        messages.append(f"<|channel|>final<|message|>{text}<|return|>")
    return "<|start|>assistant".join(messages)


def minimax(mode, thought, text, calls):
    written = ""
    for name, arguments in calls:
        body = "".join(
            f'<parameter name="{key}">{value}</parameter>\n' for key, value in arguments.items()
        )
        written += f'<invoke name="{name}">\n{body}</invoke>\n'
    whole = f"\n<minimax:tool_call>\n{written}</minimax:tool_call>" if calls else ""
    # without reasoning the family closes an empty block that the prompt has opened
    empty = "\n</think>\n\n" if mode == "disabled" and thought is None else ""
    return THINK_AND_LINES(mode, thought) + empty + text + whole


def minimax_m3(mode, thought, text, calls):
    mark = "]<]minimax[>["
    written = ""
    for name, arguments in calls:
        body = "".join(f"{mark}<{key}>{value}{mark}</{key}>" for key, value in arguments.items())
        written += f'{mark}<invoke name="{name}">{body}{mark}</invoke>\n'
    whole = f"{mark}<tool_call>\n{written}{mark}</tool_call>" if calls else ""
    think = _thinking(begin="<mm:think>", end="</mm:think>")
    return think(mode, thought) + text + whole


def glm_4_7(mode, thought, text, calls):
    written = ""
    for name, arguments in calls:
        body = "".join(
            f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"
            for key, value in arguments.items()
        )
        written += f"<tool_call>{name}{body}</tool_call>"
    return THINK(mode, thought) + text + written


def gemma_4(mode, thought, text, calls):
    def value(one):
        return f'<|"|>{one}<|"|>' if isinstance(one, str) else json.dumps(one)

    written = "".join(
        f"<|tool_call>call:{name}{{"
        + ",".join(f"{key}:{value(one)}" for key, one in arguments.items())
        + "}<tool_call|>"
        for name, arguments in calls
    )
    think = _thinking(begins=True, begin="<|channel>thought\n", end="<channel|>")
    return think(mode, thought) + text + written


def cohere(mode, thought, text, calls):
    kinds = {str: "raw", int: "json"}
    written = ""
    for i, (name, arguments) in enumerate(calls):
        body = "".join(
            f'<cofl:value name="{key}" type="{kinds[type(value)]}">{value}</cofl:value>'
            for key, value in arguments.items()
        )
        written += f'<cofl:tool_call id="{i}" name="{name}">{body}</cofl:tool_call>'
    whole = f"<cofl:tool_calls>{written}</cofl:tool_calls>" if calls else ""
    think = _thinking(begin="<|START_THINKING|>", end="<|END_THINKING|>")
    return think(mode, thought) + text + whole


def _command(name: str, begins: bool) -> Writer:
    think = _thinking(begins=begins, begin="<|START_THINKING|>", end="<|END_THINKING|>")

    def write(mode, thought, text, calls):
        if not calls:
            return f"{think(mode, thought)}<|START_{name}|>{text}<|END_{name}|>"
        # the templates write what is said before calls as reasoning, and not as an answer
        written = ",\n".join(
            f'    {{"tool_call_id": "{i}", "tool_name": "{name}", '
            f'"parameters": {json.dumps(arguments)}}}'
            for i, (name, arguments) in enumerate(calls)
        )
        return f"{think(mode, thought)}<|START_ACTION|>[\n{written}\n]<|END_ACTION|>"

    return write


WRITERS: dict[str, Writer] = {
    "cohere": cohere,
    "command_a": _command("TEXT", begins=False),
    "command_r7b": _command("RESPONSE", begins=True),
    "deepseek_r1": _deepseek("function<｜tool▁sep｜>", "\n```json\n", "\n```", "\n"),
    "deepseek_v3_1": _deepseek("", "<｜tool▁sep｜>", "", ""),
    "deepseek_v3_2": _dsml("function_calls", "invoke", "parameter"),
    "deepseek_v4": _dsml("tool_calls", "invoke", "parameter"),
    "deepseek_v4_1": _dsml(" calls", " invoke", " parameter"),
    "exaone": _hermes("", "", THINK_AND_LINES),
    "gemma": llama,
    "gemma_4": gemma_4,
    "glm_4_7": glm_4_7,
    "granite": _listed("<|tool_call|>[", "]"),
    "harmony": harmony,
    "kimi": kimi,
    "kimi_k3": kimi_k3,
    "llama": llama,
    "mimo": _qwen_xml("", _thinking(begins=True)),
    "minimax": minimax,
    "minimax_m3": minimax_m3,
    "mistral": _listed("[TOOL_CALLS][", "]"),
    "mistral_13": mistral_13,
    "phi": _listed("<|tool_call|>[", "]<|/tool_call|>"),
    "qwen_3": _hermes("\n", "\n", THINK_AND_LINES),
    "qwen_3_5": _qwen_xml("\n", THINK_AND_LINES),
    "qwen_3_coder": _qwen_xml("\n", THINK_AND_LINES),
}

OURS = frozenset({"command_a", "command_r7b", "gemma", "granite", "mistral", "mistral_13", "phi"})
"""Families that XGrammar does not have."""

REASONLESS = frozenset({"llama", *OURS} - {"command_a", "command_r7b"})
"""Families whose format has no reasoning; asked for it or not, the output is the same."""

REASONING_IS_OPTIONAL = frozenset({"harmony"})
"""Families that may leave reasoning out where it is enabled."""
