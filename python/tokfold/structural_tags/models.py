"""Structural tags of model families: how they reason and call tools.

The table in :mod:`family_table` says what marks each family, :mod:`family_tags` builds the tag, and
:mod:`tool_choice` reads the tools of a request. All of it needs the standard library alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

from tokfold._names import with_our_options
from tokfold._quoting import quoted
from tokfold._sources.schema import MAX_WHITESPACE
from tokfold._tags.fields import Fields, fail, kind, short
from tokfold._tags.markers import check_written
from tokfold._tags.reading import MARKERS
from tokfold.structural_tags.family import Family, MessageFamily
from tokfold.structural_tags.family_table import ALIASES, FAMILIES
from tokfold.structural_tags.family_tags import Reasoning, Request, format_of
from tokfold.structural_tags.tool_choice import Choice, Tool, chosen, read_tools
from tokfold.vocabulary import Vocabulary, check_vocabulary

__all__ = ["Reasoning", "families", "for_model"]

_MODES: Mapping[object, Reasoning] = {
    "enabled": "enabled",
    "disabled": "disabled",
    "auto": "auto",
    True: "enabled",
    False: "disabled",
}


_OTHERS = [
    ("mistralsmall(32|2506)|devstral", "mistral_13"),
    ("deepseekv3(0324)?$", "deepseek_r1"),
]
"""Models whose family has the name of others: what their squeezed names begin with."""


def families() -> list[str]:
    """List the names of the model families that :func:`for_model` knows, sorted.

    Example:
        >>> from tokfold import structural_tags
        >>> structural_tags.families()[:3]
        ['cohere', 'command_a', 'command_r7b']
    """
    return sorted(FAMILIES)


@with_our_options("for_model")
def for_model(
    model: str,
    tools: Sequence[Mapping[str, Any]] | None = None,
    *,
    tool_choice: str | Mapping[str, Any] | None = "auto",
    reasoning: Reasoning | bool = "enabled",
    parallel: bool = True,
    any_order: bool = False,
    exclude_special_tokens: bool = True,
    exclude_end_markers: bool = True,
    max_whitespace_cnt: int | None = MAX_WHITESPACE,
    max_reasoning_tokens: int | None = None,
    markers: Literal["tokens", "both"] = "tokens",
    vocabulary: Vocabulary | None = None,
) -> dict[str, Any]:
    """Make the structural tag of what a model of a family puts out.

    The result is a dict for :func:`assemble`, :meth:`tokfold.Grammar.from_structural_tag` and
    :func:`tokfold.compile`, or for any other reader of the format. Schemas of tools stand in it,
    without a copy of what is in them.

    Args:
        model: one of :func:`families`, however it is spelled (``"Qwen3"``, ``"deepseek-v3.1"``), or
            another name of one (``"gpt-oss"``, ``"llama-3.1"``). The name of a model
            (``"Qwen/Qwen3-8B"``) is refused, and the error has the nearest family.
        tools: as in OpenAI's chat completions: ``{"type": "function", "function": {"name": ...,
            "parameters": {...}}}``, or an object whose ``model_dump`` gives that. The arguments are
            a JSON object, whatever else ``parameters`` allow; without ``parameters``, or with
            ``"strict": False``, any object. Other types are tools of the server:
            ``{"type": ..., "name": ..., "parameters": {...}}``, where the name is the type by
            default. ``harmony`` calls them, ``mimo`` and ``minimax_m3`` refuse them, and for other
            families they are left out.
        tool_choice: ``"auto"``, ``None``: text, calls or both. ``"none"``: no calls.
            ``"required"`` or ``"any"``: at least one call. ``{"type": "function", "function":
            {"name": ...}}``: a call of this tool. ``{"type": ...}``: a call of the tool of the
            server that has this type. ``{"type": "allowed_tools", "allowed_tools": {"mode": ...,
            "tools": [...]}}``: some of the tools; the mode is ``"auto"`` or ``"required"``.
        reasoning: ``"enabled"`` (or ``True``): the output begins with reasoning, whose beginning
            marker most families have in the prompt already. ``"disabled"`` (or ``False``): there is
            none. ``"auto"``: with or without, and the output writes the beginning marker, as Qwen 3
            with its own template does. docs/model-families.md says which fits a prompt. Families
            that do not reason ignore it.
        parallel: whether there may be several calls.
        any_order: whether the properties of arguments may come in any order.
        exclude_special_tokens: whether markers of the family are forbidden in free text.
        exclude_end_markers: whether strings and names in arguments never hold a text at which the
            parsers of vLLM or SGLang for the family end the call, wherever it stands
            (``</tool_call>``); docs/model-families.md lists these texts. ``False`` is for readers
            that read JSON to its end.
        max_whitespace_cnt: the longest run of white space in arguments; ``None`` is no bound, as it
            is in XGrammar by default.
        max_reasoning_tokens: how many tokens the reasoning has at most, its markers aside; then its
            end comes (docs/ending-in-time.md). ``harmony`` has so many in each message of it.
            Families that do not reason ignore it.
        markers: how the model writes a marker that is a special token of the vocabulary for which
            the tag is compiled. ``"tokens"``: as that token, and free text never has its letters.
            ``"both"``: spelled by other tokens too. The tag has the choice in a field of its own,
            which other readers of tags ignore; what reads the output is to look for the same.
        vocabulary: that of the model. The markers of the tag are looked for in it, now and not
            where the tag is compiled. The tag stays the same.

    Raises:
        StructuralTagError: there is no such family, an option has a value of another kind, a tool
            or the choice is malformed, or a call must come and the family can call no tool that is
            left; or a marker holds a stop token of ``vocabulary``, or its tokens cannot write it.

    Example:
        >>> import tokfold
        >>> from tokfold import structural_tags
        >>> tools = [{"type": "function", "function": {"name": "now", "parameters": {}}}]
        >>> tag = structural_tags.for_model("llama", tools, tool_choice="required")
        >>> grammar = tokfold.Grammar.from_structural_tag(tag)
        >>> tokfold.recognize(grammar, '{"name": "now", "parameters": {}}').accepted
        True
    """
    model = _family_name(model)
    family = FAMILIES[model]
    if not isinstance(reasoning, bool | str) or reasoning not in _MODES:
        fail(
            "reasoning",
            f"it is 'enabled', 'disabled', 'auto', true or false, and not {short(reasoning)}",
        )
    options = Fields(
        {
            "parallel": parallel,
            "any_order": any_order,
            "exclude_special_tokens": exclude_special_tokens,
            "exclude_end_markers": exclude_end_markers,
            "max_whitespace_cnt": max_whitespace_cnt,
            "max_reasoning_tokens": max_reasoning_tokens,
        },
        "for_model",
    )
    left, choice = chosen(read_tools(tools), tool_choice)
    request = Request(
        tools=_callable(model, family, left, choice),
        choice=choice,
        reasoning=_MODES[reasoning],
        parallel=options.flag("parallel"),
        any_order=options.flag("any_order"),
        exclude_special_tokens=options.flag("exclude_special_tokens"),
        exclude_end_markers=options.flag("exclude_end_markers"),
        max_whitespace_cnt=options.budget("max_whitespace_cnt"),
        max_reasoning_tokens=options.budget("max_reasoning_tokens"),
    )
    if markers not in MARKERS:
        fail("markers", f"it is 'tokens' or 'both', and not {short(markers)}")
    tag = {"type": "structural_tag", "format": format_of(family, request)}
    if markers == "tokens":
        tag["markers"] = markers
    if vocabulary is not None:
        check_vocabulary(vocabulary)
        check_written(tag, vocabulary)
    return tag


def _family_name(model: object) -> str:
    """The name of a family as the table has it."""
    if isinstance(model, str):
        if model in FAMILIES:
            return model
        wanted = _squeezed(model.rpartition("/")[2])
        names = {**{_squeezed(name): name for name in FAMILIES}, **ALIASES}
        if wanted in names:
            return names[wanted]
        # the longest name that a model's name begins with, then what is spelled alike
        begun = [name for name in names if wanted.startswith(name)]
        near = [max(begun, key=len)] if begun else get_close_matches(wanted, names, 2, 0.75)
        found = [names[name] for name in near]
        if other := next((of for start, of in _OTHERS if re.match(start, wanted)), None):
            found = [other]
        said = " or ".join(dict.fromkeys(map(quoted, found)))
        hint = f"; did you mean {said}?" if said else ""
        if wanted.startswith(("hermes", "nous", "qwen25", "qwen2", "granite4")):
            hint = (
                "; these models write calls between <tool_call> and </tool_call>, as 'qwen_3' "
                "does with reasoning=False;"
            )
        elif wanted.startswith("llama4"):
            hint = "; 'llama' is Llama 3, which writes calls as JSON, and Llama 4 as Python;"
        fail("", f"there is no model family {short(model)}{hint or ';'} there are: {_known()}")
    fail("", f"there is no model family {kind(model)}: pass a name; there are: {_known()}")


def _known() -> str:
    return ", ".join(families())


def _squeezed(name: str) -> str:
    """A name in small letters and digits alone."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _callable(
    model: str, family: Family | MessageFamily, tools: Sequence[Tool], choice: Choice
) -> list[Tool]:
    """The tools that a family can call, of those that a choice leaves."""
    if isinstance(family, MessageFamily):
        return list(tools)
    of_server = [tool for tool in tools if not tool.is_function]
    if of_server and family.refuses_server_tools:
        fail(
            "tools",
            f"{model} calls functions alone, and no tool of type {short(of_server[0].type)}; leave "
            "it out",
        )
    left = [tool for tool in tools if tool.is_function]
    if choice != "auto" and not left:
        fail(
            "tool_choice",
            f"a call must come, and {model} calls functions alone, of which the choice leaves "
            "none; name a function, or choose 'auto'",
        )
    return left
