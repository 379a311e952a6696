"""Readers of what models of each family put out: reasoning, text, calls. They know no grammar.

The caller says how markers look. So one reader serves two inputs: text, in which a marker is
spelled in letters, and tokens, in which one character stands for the token of a marker. Each marker
is looked for wherever it stands, as the parsers of servers do; text in JSON counts for families
whose parsers read JSON to its end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["READERS", "SPECIALS", "Call", "Output", "Reader"]

Marks = Callable[[str], str]
"""What a text with markers in it looks like."""


class Call(NamedTuple):
    """A call; the values of elements are texts, and ``is_text`` says of which a type decides."""

    name: str
    arguments: dict[str, Any]
    is_raw: bool = False
    """Whether values are as they stand in elements: strings, and JSON for all other types."""


class Output(NamedTuple):
    reasoning: str | None
    text: str
    calls: list[Call]


Reader = Callable[[str, str, Marks], Output]
"""Of an output, how the model was asked to reason, and the marks."""


def _thinking(
    text: str, mode: str, m: Marks, begin: str, end: str, *, begins: bool = False
) -> tuple[str | None, str]:
    """The reasoning, and what follows it."""
    begin, end = m(begin), m(end)
    if mode == "disabled":
        return None, text
    if text.startswith(begin):
        text = text[len(begin) :]
    elif mode == "auto":
        return None, text
    else:
        assert not begins, "the reasoning does not begin"
    reasoning, found, rest = text.partition(end)
    assert found, "the reasoning does not end"
    return reasoning, rest


THINK = ("<think>", "</think>")
CALLS = ("<tool_call>", "</tool_call>")
PIPES = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
M3 = "]<]minimax[>["

SPECIALS: dict[str, tuple[str, ...]] = {
    "cohere": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "command_a": (
        *("<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>"),
        *("<|START_TEXT|>", "<|END_TEXT|>"),
    ),
    "command_r7b": (
        *("<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>"),
        *("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ),
    "deepseek_r1": (
        *(*THINK, *PIPES),
        *("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"),
    ),
    "deepseek_v3_1": (
        *(*THINK, *PIPES),
        *("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"),
    ),
    "deepseek_v3_2": (*THINK, "｜DSML｜"),
    "deepseek_v4": (*THINK, "｜DSML｜"),
    "deepseek_v4_1": (*THINK, "｜DSML｜"),
    "exaone": (*THINK, *CALLS),
    "gemma": (),
    "gemma_4": ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>'),
    "glm_4_7": (*THINK, *CALLS, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    "granite": ("<|tool_call|>",),
    "harmony": (
        *("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"),
        *("<|end|>", "<|call|>", "<|return|>"),
    ),
    "kimi": (
        *(*THINK, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        *("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"),
    ),
    "kimi_k3": ("<|open|>", "<|close|>", "<|sep|>"),
    "llama": ("<|python_tag|>",),
    "mimo": (*THINK, *CALLS),
    "minimax": (*THINK, "<minimax:tool_call>", "</minimax:tool_call>"),
    "minimax_m3": ("<mm:think>", "</mm:think>", M3),
    "mistral": ("[TOOL_CALLS]",),
    "mistral_13": ("[TOOL_CALLS]", "[ARGS]"),
    "phi": ("<|tool_call|>", "<|/tool_call|>"),
    "qwen_3": (*THINK, *CALLS),
    "qwen_3_5": (*THINK, *CALLS),
    "qwen_3_coder": (*THINK, *CALLS),
}
"""By family, what tokenizers have as one token."""

_MARKERS = sorted({one for some in SPECIALS.values() for one in some}, key=len, reverse=True)


def _compiled(pattern: str, m: Marks) -> re.Pattern[str]:
    """A pattern in which markers stand as they are."""
    some = re.compile("|".join(map(re.escape, _MARKERS)))
    return re.compile(some.sub(lambda one: re.escape(m(one[0])), pattern), re.DOTALL)


def _between(text: str, begin: str, end: str) -> tuple[list[str], str]:
    """What stands between two markers, each to the next end, and what is left."""
    found, left = [], ""
    while True:
        before, began, text = text.partition(begin)
        left += before
        if not began:
            return found, left
        inner, ended, text = text.partition(end)
        assert ended, f"{begin!r} without its end"
        found.append(inner)


def _json_call(text: str, arguments: str = "arguments") -> Call:
    value = json.loads(text)
    assert list(value) == ["name", arguments], value
    return Call(value["name"], value[arguments])


def _hermes(line: str) -> Reader:
    def read(text: str, mode: str, m: Marks) -> Output:
        reasoning, text = _thinking(text, mode, m, *THINK)
        found, left = _between(text, m("<tool_call>"), m("</tool_call>"))
        for inner in found:
            assert inner.startswith(line + "{")
            assert inner.endswith("}" + line)
        return Output(reasoning, left, [_json_call(inner) for inner in found])

    return read


def _decoded(text: str, place: int) -> tuple[Any, int]:
    """JSON to its end, wherever markers stand in it."""
    return json.JSONDecoder(strict=True).raw_decode(text, place)


def _objects(text: str, mode: str, m: Marks) -> Output:
    calls, left, at = [], "", 0
    while (place := text.find('{"name": ', at)) >= 0:
        left += text[at:place]
        value, at = _decoded(text, place)
        assert list(value) == ["name", "parameters"]
        calls.append(Call(value["name"], value["parameters"]))
    return Output(None, left + text[at:], calls)


def gemma_4(text: str, mode: str, m: Marks) -> Output:
    """The first end of a call ends it, wherever it stands, as servers have it."""
    begin, end = "<|channel>thought\n", "<channel|>"
    reasoning, text = _thinking(text, mode, m, begin, end, begins=True)
    found, left = _between(text, m("<|tool_call>"), m("<tool_call|>"))
    calls = []
    for one in found:
        head, opened, _ = one.partition("{")
        assert opened
        assert head.startswith("call:")
        arguments, at = _bare_value(one, len(head), m('<|"|>'))
        assert at == len(one), one
        calls.append(Call(head.removeprefix("call:"), arguments))
    return Output(reasoning, left, calls)


def _bare_value(text: str, at: int, quote: str) -> tuple[Any, int]:
    """A value with bare names, and strings between two marks."""
    if text.startswith(quote, at):
        inner, ended, _ = text[at + len(quote) :].partition(quote)
        assert ended, text
        return inner, at + len(inner) + 2 * len(quote)
    if text[at] not in "{[":
        found = re.compile(r"[^,\]}]*").match(text, at)
        assert found
        return json.loads(found[0].strip()), found.end()
    close = "}" if text[at] == "{" else "]"
    pairs: list[tuple[str, Any]] = []
    at += 1
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(" \n\t"))
        if text[at] == close:
            break
        if text[at] == ",":
            assert pairs
            at += 1
            continue
        name = ""
        if close == "}":
            name, colon, rest = text[at:].partition(":")
            assert colon, text
            at = len(text) - len(rest.lstrip(" \n\t"))
        value, at = _bare_value(text, at, quote)
        pairs.append((name.strip(), value))
    return dict(pairs) if close == "}" else [value for _, value in pairs], at + 1


def _lists(begin: str, end: str) -> Reader:
    def read(text: str, mode: str, m: Marks) -> Output:
        calls, left = [], ""
        while True:
            before, began, text = text.partition(m(begin))
            left += before
            if not began:
                return Output(None, left, calls)
            value, at = _decoded(text, len(text) - len(text.lstrip(" ")))
            calls += [Call(one["name"], one["arguments"]) for one in value]
            assert text.startswith(m(end), at)
            text = text[at + len(m(end)) :]

    return read


def mistral_13(text: str, mode: str, m: Marks) -> Output:
    left, *calls = text.split(m("[TOOL_CALLS]"))
    found = []
    for call in calls:
        name, began, rest = call.partition(m("[ARGS]"))
        assert began
        value, at = _decoded(rest, 0)
        found.append(Call(name, value))
        left += rest[at:]
    return Output(None, left, found)


def _sections(section: tuple[str, str], call: str, join: str = "") -> Reader:
    """Sections of calls; ``call`` is a pattern with the groups ``name`` and ``json``."""

    def read(text: str, mode: str, m: Marks) -> Output:
        reasoning, text = _thinking(text, mode, m, *THINK)
        sections, left = _between(text, m(section[0]), m(section[1]))
        pattern = _compiled(call, m)
        calls = []
        for one in sections:
            at = 0
            while at < len(one):
                found = pattern.match(one, at)
                assert found, one[at:]
                calls.append(Call(found["name"], json.loads(found["json"])))
                at = found.end()
                if at < len(one):
                    assert one.startswith(join, at)
                    at += len(join)
            assert one, "an empty section"
        return Output(reasoning, left, calls)

    return read


def _elements(text: str, pattern: str, m: Marks) -> list[re.Match[str]]:
    """Elements in a row, white space between them."""
    found, at = [], 0
    compiled = _compiled(r"\s*" + pattern, m)
    while text[at:].strip():
        one = compiled.match(text, at)
        assert one, text[at:]
        found.append(one)
        at = one.end()
    return found


def _arguments(text: str, pattern: str, m: Marks) -> dict[str, str]:
    """Elements with the groups ``key`` and ``value``."""
    found = _elements(text, pattern, m)
    return {one["key"]: one["value"] for one in found}


def _tree(opens: str, closes: str, m: Marks) -> Callable[[str], dict[str, Any]]:
    """Reads elements whose values may hold elements; objects are dicts, arrays are lists.

    Args:
        opens: a pattern of a beginning, with the groups ``key`` and perhaps ``kind``.
        closes: what ends the element of a key.
        m: the marks.
    """
    begin = _compiled(opens, m)

    def value(text: str, at: int, key: str, kind: str | None) -> tuple[Any, int]:
        end = m(closes.replace("KEY", key))
        inner = begin.match(text, len(text) - len(text[at:].lstrip()))
        holds = inner is not None if kind is None else kind in ("list", "dict")
        if not holds:
            place = text.index(end, at)
            return text[at:place], place + len(end)
        pairs: list[tuple[str, Any]] = []
        while inner := begin.match(text, len(text) - len(text[at:].lstrip())):
            found = inner.groupdict()
            one, at = value(text, inner.end(), found["key"] or "", found.get("kind"))
            pairs.append((found["key"] or "", one))
        at = len(text) - len(text[at:].lstrip())
        assert text.startswith(end, at), text[at:]
        if kind == "list" or {name for name, _ in pairs} == {"item"}:
            return [one for _, one in pairs], at + len(end)
        return dict(pairs), at + len(end)

    def read(text: str) -> dict[str, Any]:
        found, at = {}, 0
        while text[at:].strip():
            one = begin.match(text, len(text) - len(text[at:].lstrip()))
            assert one, text[at:]
            groups = one.groupdict()
            found[one["key"]], at = value(text, one.end(), one["key"], groups.get("kind"))
        return found

    return read


def _in_elements(
    call: tuple[str, str],
    head: str,
    argument: str | tuple[str, str],
    *,
    tail: str = "",
    section: tuple[str, str] | None = None,
    thinking: tuple[str, str] = THINK,
    begins: bool = False,
) -> Reader:
    """Calls between two markers: a head with the group ``name``, arguments, a tail."""

    def read(text: str, mode: str, m: Marks) -> Output:
        reasoning, text = _thinking(text, mode, m, *thinking, begins=begins)
        if mode == "auto" and reasoning is None and thinking[0] == "<mm:think>":
            text = text.removeprefix(m("</mm:think>"))  # reasoning that is skipped
        if mode == "disabled" and section and section[0].startswith("<minimax:"):
            text = text.removeprefix(m("\n</think>\n\n"))  # a block that the prompt has opened
        calls = []
        inner, left = [text], ""
        if section is not None:
            inner, left = _between(text, m(section[0]), m(section[1]))
        for one in inner:
            found, rest = _between(one, m(call[0]), m(call[1]))
            if section is None:
                left += rest
            else:
                assert found, "an empty section"
                assert not rest.strip(), rest
            for each in found:
                begun = _compiled(head, m).match(each)
                assert begun, each
                assert each.endswith(m(tail))
                body = each[begun.end() : len(each) - len(m(tail))]
                if isinstance(argument, str):
                    arguments = _arguments(body, argument, m)
                else:
                    arguments = _tree(*argument, m)(body)
                calls.append(Call(begun["name"], arguments, True))
        return Output(reasoning, left, calls)

    return read


def _dsml(space: str, section: str, parameter: str) -> Reader:
    return _in_elements(
        (f"<｜DSML｜{space}invoke name=", f"</｜DSML｜{space}invoke>\n"),
        r'"(?P<name>[^"]*)">\n',
        rf'<｜DSML｜{space}parameter name="(?P<key>[^"]*)" string="(?:true|false)">'
        rf"(?P<value>.*?)</｜DSML｜{space}parameter>",
        section=(f"<｜DSML｜{section}>\n", f"</｜DSML｜{section}>"),
    )


def _qwen_xml(line: str, *, begins: bool) -> Reader:
    return _in_elements(
        (f"<tool_call>{line}<function=", f"</function>{line}</tool_call>"),
        rf"(?P<name>[^>]*)>{line}",
        r"<parameter=(?P<key>[^>]*)>\n?(?P<value>.*?)\n?</parameter>",
        begins=begins,
    )


def kimi_k3(text: str, mode: str, m: Marks) -> Output:
    opened, closed, sep = map(m, ("<|open|>", "<|close|>", "<|sep|>"))

    def block(name: str, text: str, is_open: bool = False) -> tuple[str, str]:
        if not is_open:
            assert text.startswith(f"{opened}{name}{sep}"), text
            text = text[len(f"{opened}{name}{sep}") :]
        inner, ended, rest = text.partition(f"{closed}{name}{sep}")
        assert ended, text
        return inner, rest

    reasoning = None
    if mode == "enabled" or text.startswith(f"{opened}think{sep}"):
        reasoning, text = block("think", text, mode == "enabled")
    answer, text = block("response", text, mode == "disabled")
    calls = []
    if text.startswith(f"{opened}tools{sep}"):
        tools, text = block("tools", text)
        call = (
            r'<|open|>call tool="(?P<name>[^"]*)" index="\d+"<|sep|>(?P<body>.*?)'
            r"<|close|>call<|sep|>"
        )
        argument = (
            r'<|open|>argument key="(?P<key>[^"]*)" type="[a-z]+"<|sep|>(?P<value>.*?)'
            r"<|close|>argument<|sep|>"
        )
        for one in _elements(tools, call, m):
            calls.append(Call(one["name"], _arguments(one["body"], argument, m), True))
        assert calls
    assert text == f"{closed}message{sep}", text
    return Output(reasoning, answer, calls)


def harmony(text: str, mode: str, m: Marks) -> Output:
    channel, message = m("<|channel|>"), m("<|message|>")
    ends = tuple(map(m, ("<|end|>", "<|return|>", "<|call|>")))
    reasoning, answer, calls = "", "", []
    while text:
        head, found, rest = text.partition(message)
        assert found, text
        place, end = min((rest.find(end), end) for end in ends if end in rest)
        body, text = rest[:place], rest[place + len(end) :]
        if text:
            assert text.startswith(m("<|start|>") + "assistant"), text
            text = text[len(m("<|start|>")) + len("assistant") :]
            assert text, "a message is announced, and does not come"
        if end == m("<|call|>"):
            header = head.replace(m("<|constrain|>"), " ").replace(channel, " ")
            name = re.search(r"to=functions\.([\w.-]+)", header)
            assert name, head
            assert set(header.split()) == {"commentary", name[0], "json"}, head
            calls.append(Call(name[1], json.loads(body)))
        elif head == f"{channel}analysis":
            reasoning += body
        else:
            assert head in (f"{channel}final", f"{channel}commentary"), head
            answer += body
    return Output(reasoning, answer, calls)


def _command(name: str, begins: bool) -> Reader:
    thinking = ("<|START_THINKING|>", "<|END_THINKING|>")

    def block(text: str, begin: str, end: str) -> str:
        assert text.startswith(begin), text
        inner, ended, rest = text[len(begin) :].partition(end)
        assert ended
        assert not rest
        return inner

    def read(text: str, mode: str, m: Marks) -> Output:
        reasoning, text = _thinking(text, mode, m, *thinking, begins=begins)
        answer = m(f"<|START_{name}|>")
        if text.startswith(answer):
            return Output(reasoning, block(text, answer, m(f"<|END_{name}|>")), [])
        calls = []
        for one in json.loads(block(text, m("<|START_ACTION|>"), m("<|END_ACTION|>"))):
            assert list(one) == ["tool_call_id", "tool_name", "parameters"]
            assert one["tool_call_id"].isdigit()
            calls.append(Call(one["tool_name"], one["parameters"]))
        assert calls
        return Output(reasoning, "", calls)

    return read


READERS: dict[str, Reader] = {
    "cohere": _in_elements(
        ("<cofl:tool_call id=", "</cofl:tool_call>"),
        r'"\d+" name="(?P<name>[^"]*)">',
        (r'<cofl:value(?: name="(?P<key>[^"]*)")? type="(?P<kind>[a-z]+)">', "</cofl:value>"),
        section=("<cofl:tool_calls>", "</cofl:tool_calls>"),
        thinking=("<|START_THINKING|>", "<|END_THINKING|>"),
    ),
    "command_a": _command("TEXT", begins=False),
    "command_r7b": _command("RESPONSE", begins=True),
    "deepseek_r1": _sections(
        PIPES,
        r"<｜tool▁call▁begin｜>function<｜tool▁sep｜>(?P<name>[\w-]+)\n```json\n(?P<json>.*?)"
        r"\n```<｜tool▁call▁end｜>",
        "\n",
    ),
    "deepseek_v3_1": _sections(
        PIPES,
        r"<｜tool▁call▁begin｜>(?P<name>[\w-]+)<｜tool▁sep｜>(?P<json>.*?)<｜tool▁call▁end｜>",
    ),
    "deepseek_v3_2": _dsml("", "function_calls", "parameter"),
    "deepseek_v4": _dsml("", "tool_calls", "parameter"),
    "deepseek_v4_1": _dsml(" ", " calls", " parameter"),
    "exaone": _hermes(""),
    "gemma": _objects,
    "gemma_4": gemma_4,
    "glm_4_7": _in_elements(
        ("<tool_call>", "</tool_call>"),
        r"(?P<name>[\w-]+)",
        r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>",
    ),
    "granite": _lists("<|tool_call|>", ""),
    "harmony": harmony,
    "kimi": _sections(
        ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        r"<|tool_call_begin|>functions\.(?P<name>[\w-]+):\d+<|tool_call_argument_begin|>"
        r"(?P<json>.*?)<|tool_call_end|>",
    ),
    "kimi_k3": kimi_k3,
    "llama": _objects,
    "mimo": _qwen_xml("", begins=True),
    "minimax": _in_elements(
        ("<invoke name=", "</invoke>\n"),
        r'"(?P<name>[^"]*)">\n',
        r'<parameter name="(?P<key>[^"]*)">(?P<value>.*?)</parameter>',
        section=("<minimax:tool_call>\n", "</minimax:tool_call>"),
    ),
    "minimax_m3": _in_elements(
        (f"{M3}<invoke name=", f"{M3}</invoke>\n"),
        r'"(?P<name>[^"]*)">',
        (rf"{M3}<(?P<key>[^/>][^>]*)>", f"{M3}</KEY>"),
        section=(f"{M3}<tool_call>\n", f"{M3}</tool_call>"),
        thinking=("<mm:think>", "</mm:think>"),
    ),
    "mistral": _lists("[TOOL_CALLS]", ""),
    "mistral_13": mistral_13,
    "phi": _lists("<|tool_call|>", "<|/tool_call|>"),
    "qwen_3": _hermes("\n"),
    "qwen_3_5": _qwen_xml("\n", begins=False),
    "qwen_3_coder": _qwen_xml("\n", begins=False),
}
"""By family."""
