"""Structural tags of model families: a row of the table and a request make a dict.

Every function returns a format in JSON's form. Fields that have their default value are left out.
Tools whose names the marks of a family cannot hold are refused.

Example:
    >>> from tokfold.structural_tags.family_table import FAMILIES
    >>> from tokfold.structural_tags.family_tags import Request, format_of
    >>> format_of(FAMILIES["llama"], Request(tools=[], choice="auto", reasoning="enabled"))
    {'type': 'any_text', 'excludes': ['<think>', '</think>']}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tokfold._sources.schema import MAX_WHITESPACE
from tokfold._tags.fields import fail, short
from tokfold.structural_tags.family import Answer, Call, Family, MessageFamily, Section
from tokfold.structural_tags.tool_choice import Choice, Tool

__all__ = ["Reasoning", "Request", "format_of"]

Reasoning = Literal["enabled", "disabled", "auto"]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a tag is made for."""

    tools: Sequence[Tool]
    """Those that may be called; at least one where a call must come, and one where it is forced."""
    choice: Choice
    reasoning: Reasoning
    parallel: bool = True
    any_order: bool = False
    exclude_special_tokens: bool = True
    exclude_end_markers: bool = True
    max_whitespace_cnt: int | None = MAX_WHITESPACE
    max_reasoning_tokens: int | None = None
    end_of_reasoning: str = ""
    """What arguments never hold beside the marks of a call: where reasoning need not come, parsers
    take the first of these for its end."""

    def excluded(self, markers: Iterable[str]) -> list[str]:
        """The markers, or none of them where they are allowed."""
        return list(markers) if self.exclude_special_tokens else []


def format_of(family: Family | MessageFamily, request: Request) -> Json:
    """Build the format of the structural tag of a family, for tools that it can call."""
    if isinstance(family, MessageFamily):
        return _messages(family, request)
    if family.reasoning is not None and request.reasoning != "enabled":
        request = replace(request, end_of_reasoning=family.reasoning.end)
    if family.answer is not None:
        rest = _answer(family, family.answer, request)
    else:
        rest = [_free_text(family, request)]
    return _in_a_row([*_reasoning(family, request), *rest])


# ------------------------------------------------------------------------- reasoning


def _reasoning(family: Family, request: Request) -> list[Json]:
    """What comes before all else."""
    reasoning, mode = family.reasoning, request.reasoning
    if reasoning is None:
        return []
    if mode == "disabled":
        return [_text(reasoning.disabled)] if reasoning.disabled else []
    excludes = reasoning.excludes
    if mode == "enabled" and reasoning.excludes_when_enabled is not None:
        excludes = reasoning.excludes_when_enabled
    begin = "" if mode == "enabled" and reasoning.in_prompt else reasoning.begin
    text = _any_text(request.excluded(excludes), request.max_reasoning_tokens)
    block = _tag(begin, text, reasoning.end)
    if reasoning.after:
        block = _in_a_row([block, _text(reasoning.after)])
    if mode == "enabled":
        return [block]
    if reasoning.skipped:
        block = _either([block, _text(reasoning.skipped)])
    return [_optional(block)]


# ----------------------------------------------------------------------------- calls


def _call(call: Call, tool: Tool, request: Request) -> Json:
    """The tag of a call of one tool."""
    _check_name(call, tool.name)
    name_in_json = json.dumps(tool.name, ensure_ascii=False)[1:-1]
    begin, *others = (
        part.replace("{json_name}", name_in_json).replace("{name}", tool.name)
        for part in call.begin.split("{number}")
    )
    content: list[Json] = []
    for text in others:
        content += [{"type": "regex", "pattern": r"\d+"}, _text(text)]
    content.append(_arguments(call, tool, request))
    return _tag(begin, _in_a_row(content), _ends(call, tool))


def _ends(call: Call, tool: Tool) -> str | list[str]:
    """What ends a call; a tool that needs no arguments may have an end more."""
    if not call.end_without_arguments or tool.schema.get("required"):
        return call.end
    return [call.end, call.end_without_arguments]


def _check_name(call: Call, name: str) -> None:
    """Refuse a name that could not be told from what follows it.

    In a string of JSON it is escaped. Elsewhere it ends at the first character of what follows.
    """
    if not name:
        fail("tools", "a tool has an empty name; name it, so that the model can call it")
    if "{name}" not in call.begin:
        return
    # arguments follow, as an object or as elements
    follows = call.begin.partition("{name}")[2] or ("{" if call.style == "gemma" else "<")
    wrong = [one for one in name if one == follows[0] or not one.isprintable()]
    if wrong:
        fail(
            "tools",
            f"the name {short(name)} holds {short(wrong[0])}, which cannot stand in a name in the "
            f"calls of this family ({short(call.begin)}); rename the tool: letters, digits, '_' "
            "and '-' do everywhere",
        )


def _arguments(call: Call, tool: Tool, request: Request) -> Json:
    found: Json = {"type": "json_schema", "json_schema": tool.schema}
    if call.style != "json":
        found["style"] = call.style
    if request.any_order:
        found["any_order"] = True
    # said also where it is the default: other libraries have another one
    found["max_whitespace_cnt"] = request.max_whitespace_cnt
    excludes = request.excluded(call.excludes)
    if request.exclude_end_markers:
        excludes += [*call.cuts, *filter(None, [request.end_of_reasoning])]
    if excludes:
        found["excludes"] = list(dict.fromkeys(excludes))
    return found


def _section(section: Section, calls: Sequence[Json], request: Request, before: str = "") -> Json:
    """The tag of a section: one call where it is forced, else at least one of all."""
    if request.choice == "forced":
        content = calls[0]
    else:
        content = _listed(calls, section.separator, at_least_one=True, once=not request.parallel)
    if section.opens:
        content = _in_a_row([_either([_text(text) for text in section.opens]), content])
    return _tag(before + section.begin, content, section.end)


def _free_text(family: Family, request: Request) -> Json:
    """Text that calls tools; calls alone, where they must come."""
    calls = [_call(family.call, tool, request) for tool in request.tools]
    section, choice = family.section, request.choice
    if not calls:
        excludes = family.excludes_without_calls
        markers = request.excluded(family.excludes if excludes is None else excludes)
        return _any_text([*markers, *family.never_without_calls])
    if section is not None and choice != "auto" and not section.text_follows:
        return _section(section, calls, request, section.before)
    tags = calls if section is None else [_section(section, calls, request)]
    if choice == "forced":
        return tags[0]
    found: Json = {"type": "triggered_tags", "triggers": [family.trigger], "tags": tags}
    excludes_in_text = request.excluded(family.excludes)
    if excludes_in_text:
        found["excludes"] = excludes_in_text
    once = not request.parallel or (section is not None and section.ends_output)
    return _counted(found, at_least_one=choice == "required", once=once)


def _answer(family: Family, answer: Answer, request: Request) -> list[Json]:
    """A block of text, and a section of calls behind it, or in its place."""
    is_begun = request.reasoning == "disabled" and not answer.or_calls
    text = _any_text(request.excluded(family.excludes))
    block = _tag("" if is_begun else answer.begin, text, answer.end)
    closing = [_text(answer.closing)] if answer.closing else []
    calls = [_call(family.call, tool, request) for tool in request.tools]
    if not calls or family.section is None:
        return [block, *closing]
    section = _section(family.section, calls, request)
    if answer.or_calls:
        return [_either([block, section]) if request.choice == "auto" else section, *closing]
    return [block, _optional(section) if request.choice == "auto" else section, *closing]


# -------------------------------------------------------------------------- messages


def _messages(family: MessageFamily, request: Request) -> Json:
    """Messages in any order, separators between them; of calls as many as the request wants."""
    calls = [
        _call(form, tool, request)
        for tool in request.tools
        for form in (family.function_calls if tool.is_function else family.server_calls)
    ]
    begins = [family.answer, family.preamble] * (request.choice == "auto")
    others = [_tag(begin, _any_text([]), list(family.ends)) for begin in begins]
    if request.reasoning != "disabled":
        text = _any_text([], request.max_reasoning_tokens)
        others.append(_tag(family.reasoning, text, list(family.ends)))

    def listed(messages: Sequence[Json], at_least_one: bool = True, once: bool = False) -> Json:
        return _listed(messages, family.separator, at_least_one=at_least_one, once=once)

    if request.choice == "auto" and (request.parallel or not calls):
        return listed([*calls, *others], at_least_one=False)
    between = _text(family.separator)
    before = [_optional(_in_a_row([listed(others), between]))] if others else []
    if not request.parallel:
        with_call = _in_a_row([*before, listed(calls, once=True)])
        if request.choice == "auto":
            return _either([listed(others, at_least_one=False), with_call])
        return with_call
    if not others:
        return listed(calls)
    # the first call is marked off from what comes before it and behind it, so that there is one
    behind = _optional(_in_a_row([between, listed([*calls, *others])]))
    return _in_a_row([*before, listed(calls, once=True), behind])


# --------------------------------------------------------------------------- formats


def _text(value: str) -> Json:
    return {"type": "const_string", "value": value}


def _any_text(excludes: list[str], max_tokens: int | None = None) -> Json:
    found: Json = {"type": "any_text"}
    if excludes:
        found["excludes"] = excludes
    if max_tokens is not None:
        found["max_tokens"] = max_tokens
    return found


def _tag(begin: str, content: Json, end: str | list[str]) -> Json:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _optional(content: Json) -> Json:
    return {"type": "optional", "content": content}


def _either(elements: list[Json]) -> Json:
    return {"type": "or", "elements": elements}


def _in_a_row(elements: list[Json]) -> Json:
    return elements[0] if len(elements) == 1 else {"type": "sequence", "elements": elements}


def _listed(tags: Sequence[Json], separator: str, *, at_least_one: bool, once: bool) -> Json:
    found: Json = {"type": "tags_with_separator", "tags": list(tags), "separator": separator}
    return _counted(found, at_least_one=at_least_one, once=once)


def _counted(found: Json, *, at_least_one: bool, once: bool) -> Json:
    """Free text or a list with its two flags."""
    if at_least_one:
        found["at_least_one"] = True
    if once:
        found["stop_after_first"] = True
    return found
