"""The tools of a request and which of them may be called, in the form of OpenAI's chat completions.

Example:
    >>> from tokfold.structural_tags.tool_choice import chosen, read_tools
    >>> tools = read_tools([{"type": "function", "function": {"name": "now"}}])
    >>> chosen(tools, {"type": "function", "function": {"name": "now"}})
    ([Tool(type='function', name='now', schema={'type': 'object'})], 'forced')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tokfold._tags.fields import (
    Object,
    checked_characters,
    fail,
    items,
    kind,
    needed,
    short,
    text,
)

__all__ = ["Choice", "Tool", "chosen", "read_tools"]

Choice = Literal["auto", "required", "forced"]
"""Calls may come, must come, or one call of the one tool that is left must come."""

_FUNCTION = "{'type': 'function', 'function': {'name': ...}}"
_ALLOWED = "{'type': 'allowed_tools', 'allowed_tools': {'mode': 'auto', 'tools': [...]}}"

_SCHEMAS = {
    "inputSchema": ("a tool of MCP", "tool['inputSchema']"),
    "input_schema": ("a tool in Anthropic's form", "tool['input_schema']"),
    "parameter_definitions": (
        "a tool in Cohere's form",
        "a JSON Schema of tool['parameter_definitions']",
    ),
}
"""What holds the schema of a tool in forms of others, the form, and what to pass."""
_CHOICES = {"any": "'required'", "auto": "'auto'", "none": "'none'"}
"""Types of choices in Anthropic's form, and what to write."""
_DECLARED = ("functionDeclarations", "function_declarations")
"""What holds functions in Gemini's form."""


_OTHER_TYPES = ("array", "boolean", "integer", "null", "number", "string")
"""Types of JSON values that are no object."""


class Tool(NamedTuple):
    """A tool as a model sees it."""

    type: str
    """``"function"``, or the type of a tool of the server."""
    name: str
    """What the model calls it by."""
    schema: dict[str, Any]
    """What the arguments obey, which are an object."""

    @property
    def is_function(self) -> bool:
        """Whether the client runs it, not the server."""
        return self.type == "function"


def read_tools(tools: object) -> list[Tool]:
    """Read the tools of a request.

    Args:
        tools: a list of objects (mappings, or what has ``model_dump``); ``None`` is none.
    """
    if tools is None:
        return []
    if not isinstance(tools, Sequence) or isinstance(tools, str | bytes):
        fail("tools", "", f"the tools are a list, not {kind(tools)}")
    return [_read_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]


def chosen(tools: Sequence[Tool], tool_choice: object) -> tuple[list[Tool], Choice]:
    """Find the tools that a choice leaves, and whether one of them must be called.

    No choice is ``"auto"``.
    """
    if tool_choice is None:
        return list(tools), "auto"
    if isinstance(tool_choice, str):
        return _chosen_by_word(tools, tool_choice)
    choice = _object(tool_choice, "tool_choice")
    type_ = _type_of(choice, "tool_choice", ("function", "allowed_tools"))
    if type_ == "allowed_tools":
        return _allowed(tools, choice)
    reference = _reference(choice, type_, "tool_choice")
    found = [tool for tool in tools if reference.is_of(tool)]
    if not found:
        _refuse_choice(choice, type_)
        fail("tool_choice", "", _not_there(reference, tools))
    if len(found) > 1:
        fail(
            "tool_choice",
            "",
            f"{len(found)} tools are {reference}, and one is to be called; keep one of them",
        )
    return found, "forced"


def _read_tool(value: object, path: str) -> Tool:
    tool = _object(value, path)
    if "function" not in tool:
        _refuse_form(tool, path)
    type_ = _type_of(tool, path, ("function",))
    if type_ != "function":
        name = _optional_text(tool, "name", path)
        name = name or type_
        return Tool(type_, name, _schema(tool, name, path))
    if "function" not in tool:
        fail(
            path,
            "",
            "this is a function without 'function', the object that holds its name and "
            f"parameters; write {_FUNCTION}",
        )
    path += ".function"
    function = _object(tool["function"], path)
    name = text(function, "name", path, "")
    _optional_text(function, "description", path)
    strict = function.get("strict")
    if strict is not None and not isinstance(strict, bool):
        fail(path, "", f"'strict' is true or false, not {kind(strict)}")
    schema = _schema(function, name, path)
    return Tool("function", name, {"type": "object"} if strict is False else schema)


def _refuse_form(tool: Object, path: str) -> None:
    """Refuse a tool in a form of others, which has the same parts at other places."""
    for name, (form, schema) in _SCHEMAS.items():
        if tool.get(name) is not None:
            fail(
                path,
                "",
                f"this is {form}; write {{'type': 'function', 'function': {{'name': tool['name'], "
                f"'parameters': {schema}}}}}",
            )
    if tool.get("toolSpec") is not None:
        fail(
            path,
            "",
            "this is a tool in Bedrock's form; write {'type': 'function', 'function': {'name': "
            "spec['name'], 'parameters': spec['inputSchema']['json']}}, where spec is "
            "tool['toolSpec']",
        )
    for name in _DECLARED:
        if tool.get(name) is not None:
            fail(
                path,
                "",
                "this has functions in Gemini's form; write {'type': 'function', 'function': "
                "{'name': one['name'], 'parameters': ...}} for each one of "
                f"tool['{name}'], with its JSON Schema, whose types are in small letters",
            )
    if "type" not in tool:
        written = "{'type': 'function', 'function': tool}" if "name" in tool else _FUNCTION
        fail(path, "", f"'type' is missing; write {written}")


def _refuse_choice(choice: Object, type_: str) -> None:
    """Refuse a choice in Anthropic's form."""
    written = _CHOICES.get(type_)
    if type_ == "tool":
        written = f"{{'type': 'function', 'function': {{'name': {short(choice.get('name'))}}}}}"
    if written is not None:
        fail("tool_choice", "", f"this is a choice in Anthropic's form; write {written}")


def _schema(value: Object, name: str, path: str) -> dict[str, Any]:
    """The schema of the arguments of a tool, which are an object: other values are left out."""
    parameters = value.get("parameters")
    if parameters is None:
        return {"type": "object"}
    if not isinstance(parameters, Mapping):
        fail(
            path,
            "",
            f"'parameters' is a JSON Schema, an object, and not {_found(parameters)}",
        )
    for key in parameters:
        if not isinstance(key, str):
            fail(path, "", f"the names of 'parameters' are strings, not {kind(key)}")
    schema = dict(parameters)
    types = schema.get("type", "object")
    types = types if isinstance(types, list | tuple) else [types]
    if types and all(one in _OTHER_TYPES for one in types):
        fail(
            path,
            "",
            f"the arguments of {short(name)} are an object, and its 'parameters' allow "
            f"{' or '.join(map(repr, types))} alone; write {{'type': 'object', 'properties': "
            "{...}}",
        )
    if "object" in types and all(one in ("object", *_OTHER_TYPES) for one in types):
        schema["type"] = "object"
        if "$ref" in schema and "/draft-0" in str(schema.get("$schema")):
            # which hides what stands beside it
            schema["allOf"] = [{"$ref": schema.pop("$ref")}]
    return schema


def _found(parameters: object) -> str:
    """What stands in place of a schema, and what to do."""
    if isinstance(parameters, type) and hasattr(parameters, "model_json_schema"):
        name = parameters.__name__
        return f"the class {name}; pass {name}.model_json_schema()"
    return f"{kind(parameters)}; leave it out where any arguments do"


def _chosen_by_word(tools: Sequence[Tool], word: str) -> tuple[list[Tool], Choice]:
    if word == "none":
        return [], "auto"
    if word == "auto":
        return list(tools), "auto"
    if word in ("required", "any"):
        return _some(tools, "there is no tool"), "required"
    fail(
        "tool_choice",
        "",
        f"it is 'auto', 'none', 'required' or an object, and not {short(word)}; {_FUNCTION} "
        "names a tool",
    )


def _some(tools: Sequence[Tool], what: str) -> list[Tool]:
    if not tools:
        fail(
            "tool_choice",
            "",
            f"a call is required, and {what}; name a tool, or choose 'auto' or 'none'",
        )
    return list(tools)


class _Reference(NamedTuple):
    """What a choice says of a tool: the name of a function, or the type of another tool."""

    type: str
    name: str

    def is_of(self, tool: Tool) -> bool:
        if self.type == "function":
            return tool.is_function and tool.name == self.name
        return tool.type == self.type

    def __str__(self) -> str:
        if self.type == "function":
            return f"functions with the name {short(self.name)}"
        return f"of type {short(self.type)}"


def _reference(value: Object, type_: str, path: str) -> _Reference:
    if type_ != "function":
        _optional_text(value, "name", path)
        return _Reference(type_, "")
    if value.get("function") is None:
        fail(path, "", f"'function', which holds the name, is missing; write {_FUNCTION}")
    path += ".function"
    return _Reference(type_, text(_object(value["function"], path), "name", path, ""))


def _allowed(tools: Sequence[Tool], choice: Object) -> tuple[list[Tool], Choice]:
    path = "tool_choice.allowed_tools"
    if "allowed_tools" not in choice:
        fail("tool_choice", "", f"'allowed_tools' is missing; write {_ALLOWED}")
    allowed = _object(choice["allowed_tools"], path)
    mode = needed(allowed, "mode", path, "")
    if not isinstance(mode, str) or mode not in ("auto", "required"):
        fail(path, "", f"'mode' is 'auto' or 'required', not {short(mode)}")
    references = []
    listed = items(needed(allowed, "tools", path, ""), "tools", path, "")
    for index, value in enumerate(listed):
        where = f"{path}.tools[{index}]"
        one = _object(value, where)
        reference = _reference(one, text(one, "type", where, ""), where)
        if not any(reference.is_of(tool) for tool in tools):
            fail(where, "", _not_there(reference, tools))
        references.append(reference)
    left = [tool for tool in tools if any(one.is_of(tool) for one in references)]
    if mode == "required":
        return _some(left, "no tool is allowed"), "required"
    return left, "auto"


def _not_there(reference: _Reference, tools: Sequence[Tool]) -> str:
    is_function = reference.type == "function"
    same = [tool for tool in tools if tool.is_function is is_function]
    there = sorted({short(tool.name if is_function else tool.type) for tool in same})
    listed = ", ".join(there[:20]) + (", …" if len(there) > 20 else "")
    if is_function:
        return f"no function has the name {short(reference.name)}; there are: {listed or 'none'}"
    return (
        f"no tool of the server has the type {short(reference.type)}; there are: "
        f"{listed or 'none'}. {_FUNCTION} names a function"
    )


def _object(value: object, path: str) -> Object:
    dump = getattr(value, "model_dump", None)
    if isinstance(value, type) or (callable(value) and not isinstance(value, Mapping)):
        name = getattr(value, "__name__", type(value).__name__)
        fail(
            path,
            "",
            f"this is an object, and not the {'class' if isinstance(value, type) else 'function'} "
            f'{name}; write {{"type": "function", "function": {{"name": {name!r}, "parameters": a '
            "JSON Schema, as Model.model_json_schema() gives it}}",
        )
    if callable(dump):
        value = dump()
    if not isinstance(value, Mapping):
        fail(path, "", f"this is an object, and not {kind(value)}")
    return value


def _type_of(value: Object, path: str, telling: tuple[str, ...]) -> str:
    """The type of an object. One that does not say it is told by the one field of that name."""
    if "type" not in value:
        told = [name for name in telling if name in value]
        if len(told) == 1:
            return told[0]
        fail(path, "", f"'type' is missing; write 'auto', 'none', 'required' or {_FUNCTION}")
    return text(value, "type", path, "")


def _optional_text(value: Object, name: str, path: str) -> str | None:
    found = value.get(name)
    if found is not None and not isinstance(found, str):
        fail(path, "", f"'{name}' is a string, not {kind(found)}")
    return None if found is None else checked_characters(found, name, path, "")
