"""Structural tags of model families: how they reason and call tools.

The formats are XGrammar's own (``xgrammar.get_model_structural_tag``), which knows where each
family puts its reasoning, which markers it has around calls, and how it writes arguments. Nothing
is added here but the words of errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tokfold._extras import require
from tokfold.errors import StructuralTagError
from tokfold.structural_tags.fields import short

if TYPE_CHECKING:
    from xgrammar import StructuralTag

__all__ = ["Reasoning", "families", "for_model"]

Reasoning = Literal["enabled", "disabled", "auto"]

_KNOWN_BY = "xgrammar.builtin_structural_tag"


def families() -> list[str]:
    """Names of the model families that :func:`for_model` knows, sorted.

    Raises:
        MissingExtraError: XGrammar is not installed.
    """
    require("xgrammar", "xgrammar", "structural_tags.families")
    registry = require(_KNOWN_BY, "xgrammar", "structural_tags.families")
    return sorted(registry._structural_tag_registry)


def for_model(
    model: str,
    tools: Sequence[Mapping[str, Any]] | None = None,
    *,
    tool_choice: str | Mapping[str, Any] = "auto",
    reasoning: Reasoning | bool = "enabled",
    parallel: bool = True,
    any_order: bool = False,
    exclude_special_tokens: bool = True,
    max_whitespace_cnt: int | None = None,
) -> StructuralTag:
    """The structural tag of what a model of a family puts out, for :func:`assemble`.

    Args:
        model: one of :func:`families`.
        tools: as in OpenAI's chat completions: ``{"type": "function", "function": {"name": ...,
            "parameters": {...}}}``. Other types are tools of the server, which few families know.
        tool_choice: ``"auto"``: text, calls or both. ``"none"``: no calls. ``"required"``: at
            least one call. ``{"type": "function", "function": {"name": ...}}``: a call of this
            tool. ``{"type": "allowed_tools", "allowed_tools": {"mode": ..., "tools": [...]}}``:
            some of the tools.
        reasoning: ``"enabled"`` (or ``True``): the output begins with reasoning. ``"disabled"``
            (or ``False``): there is none. ``"auto"``: with or without. Families that do not
            reason ignore it.
        parallel: whether there may be several calls.
        any_order: whether the properties of arguments may come in any order; required ones may
            then be missing.
        exclude_special_tokens: whether markers of the family are forbidden in free text.
        max_whitespace_cnt: the longest run of white space in arguments; ``None`` is no bound.

    Raises:
        StructuralTagError: there is no such family, or the tools or the choice are wrong.
        MissingExtraError: XGrammar is not installed.
    """
    xgr = require("xgrammar", "xgrammar", "structural_tags.for_model")
    known = families()
    if model not in known:
        raise StructuralTagError(
            f"there is no model family {short(model)}; there are: {', '.join(known)}", "", ""
        )
    for index, tool in enumerate(tools or ()):
        # XGrammar takes it for a tool of the server, which most families leave out
        is_function = isinstance(tool, Mapping) and tool.get("type") == "function"
        if is_function and "function" not in tool:
            raise StructuralTagError(
                f"for_model({short(model)}): tools[{index}] is a function without 'function', the "
                "object that holds its name and parameters",
                "",
                "",
            )
    modes = {True: "enabled", False: "disabled"}
    try:
        return xgr.get_model_structural_tag(  # type: ignore[no-any-return]
            model,
            tools=None if tools is None else list(tools),
            tool_choice=tool_choice,
            reasoning=modes[reasoning] if isinstance(reasoning, bool) else reasoning,
            any_order=any_order,
            exclude_special_tokens=exclude_special_tokens,
            max_whitespace_cnt=max_whitespace_cnt,
            parallel_tool_calls=parallel,
        )
    except (ValueError, AssertionError) as error:  # where no tool is left, some only assert
        reason = str(error) or "no tool is left that this family can call"
        raise StructuralTagError(f"for_model({short(model)}): {reason}", "", "") from error
