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

from tokfold._quoting import quoted
from tokfold._tags.fields import Fields, fail, kind, short

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
        fail("tools", f"the tools are a list, not {kind(tools)}")
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
    type_ = _type_of(choice, ("function", "allowed_tools"))
    if type_ == "allowed_tools":
        return _allowed(tools, choice)
    reference = _reference(choice, type_)
    found = [tool for tool in tools if reference.is_of(tool)]
    if not found:
        _refuse_choice(choice, type_)
        fail("tool_choice", _not_there(reference, tools))
    if len(found) > 1:
        fail(
            "tool_choice",
            f"{len(found)} tools are {reference}, and one is to be called; keep one of them",
        )
    return found, "forced"


def _read_tool(value: object, path: str) -> Tool:
    tool = _object(value, path)
    if "function" not in tool.value:
        _refuse_form(tool)
    type_ = _type_of(tool, ("function",))
    if type_ != "function":
        name = _optional_text(tool, "name") or type_
        return Tool(type_, name, _schema(tool, name))
    if "function" not in tool.value:
        tool.fail(
            "this is a function without 'function', the object that holds its name and "
            f"parameters; write {_FUNCTION}"
        )
    function = _object(tool.value["function"], f"{path}.function")
    name = function.text("name")
    _optional_text(function, "description")
    strict = function.value.get("strict")
    if strict is not None and not isinstance(strict, bool):
        function.fail(f"'strict' is true or false, not {kind(strict)}")
    schema = _schema(function, name)
    return Tool("function", name, {"type": "object"} if strict is False else schema)


def _refuse_form(tool: Fields) -> None:
    """Refuse a tool in a form of others, which has the same parts at other places."""
    for name, (form, schema) in _SCHEMAS.items():
        if tool.value.get(name) is not None:
            tool.fail(
                f"this is {form}; write {{'type': 'function', 'function': {{'name': tool['name'], "
                f"'parameters': {schema}}}}}"
            )
    if tool.value.get("toolSpec") is not None:
        tool.fail(
            "this is a tool in Bedrock's form; write {'type': 'function', 'function': {'name': "
            "spec['name'], 'parameters': spec['inputSchema']['json']}}, where spec is "
            "tool['toolSpec']"
        )
    for name in _DECLARED:
        if tool.value.get(name) is not None:
            tool.fail(
                "this has functions in Gemini's form; write {'type': 'function', 'function': "
                "{'name': one['name'], 'parameters': ...}} for each one of "
                f"tool['{name}'], with its JSON Schema, whose types are in small letters"
            )
    if "type" not in tool.value:
        written = "{'type': 'function', 'function': tool}" if "name" in tool.value else _FUNCTION
        tool.fail(f"'type' is missing; write {written}")


def _refuse_choice(choice: Fields, type_: str) -> None:
    """Refuse a choice in Anthropic's form."""
    written = _CHOICES.get(type_)
    if type_ == "tool":
        name = short(choice.value.get("name"))
        written = f"{{'type': 'function', 'function': {{'name': {name}}}}}"
    if written is not None:
        choice.fail(f"this is a choice in Anthropic's form; write {written}")


def _schema(tool: Fields, name: str) -> dict[str, Any]:
    """The schema of the arguments of a tool, which are an object: other values are left out."""
    parameters = tool.value.get("parameters")
    if parameters is None:
        return {"type": "object"}
    if not isinstance(parameters, Mapping):
        tool.fail(f"'parameters' is a JSON Schema, an object, and not {_found(parameters)}")
    for key in parameters:
        if not isinstance(key, str):
            tool.fail(f"the names of 'parameters' are strings, not {kind(key)}")
    schema = dict(parameters)
    types = schema.get("type", "object")
    types = types if isinstance(types, list | tuple) else [types]
    if types and all(one in _OTHER_TYPES for one in types):
        tool.fail(
            f"the arguments of {short(name)} are an object, and its 'parameters' allow "
            f"{' or '.join(map(repr, types))} alone; write {{'type': 'object', 'properties': "
            "{...}}"
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
        f"it is 'auto', 'none', 'required' or an object, and not {short(word)}; {_FUNCTION} "
        "names a tool",
    )


def _some(tools: Sequence[Tool], what: str) -> list[Tool]:
    if not tools:
        fail(
            "tool_choice",
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


def _reference(value: Fields, type_: str) -> _Reference:
    if type_ != "function":
        _optional_text(value, "name")
        return _Reference(type_, "")
    function = value.value.get("function")
    if function is None:
        value.fail(f"'function', which holds the name, is missing; write {_FUNCTION}")
    return _Reference(type_, _object(function, f"{value.path}.function").text("name"))


def _allowed(tools: Sequence[Tool], choice: Fields) -> tuple[list[Tool], Choice]:
    if "allowed_tools" not in choice.value:
        choice.fail(f"'allowed_tools' is missing; write {_ALLOWED}")
    allowed = _object(choice.value["allowed_tools"], f"{choice.path}.allowed_tools")
    mode = allowed.needed("mode")
    if not isinstance(mode, str) or mode not in ("auto", "required"):
        allowed.fail(f"'mode' is 'auto' or 'required', not {short(mode)}")
    references = []
    allowed.needed("tools")
    for index, value in enumerate(allowed.items("tools")):
        one = _object(value, f"{allowed.path}.tools[{index}]")
        reference = _reference(one, one.text("type"))
        if not any(reference.is_of(tool) for tool in tools):
            one.fail(_not_there(reference, tools))
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


def _object(value: object, path: str) -> Fields:
    dump = getattr(value, "model_dump", None)
    if isinstance(value, type) or (callable(value) and not isinstance(value, Mapping)):
        name = getattr(value, "__name__", type(value).__name__)
        fail(
            path,
            f"this is an object, and not the {'class' if isinstance(value, type) else 'function'} "
            f"{name}; write "
            f'{{"type": "function", "function": {{"name": {quoted(name)}, "parameters": a '
            "JSON Schema, as Model.model_json_schema() gives it}}",
        )
    if callable(dump):
        value = dump()
    if not isinstance(value, Mapping):
        fail(path, f"this is an object, and not {kind(value)}")
    return Fields(value, path)


def _type_of(value: Fields, telling: tuple[str, ...]) -> str:
    """The type of an object. One that does not say it is told by the one field of that name."""
    if "type" not in value.value:
        told = [name for name in telling if name in value.value]
        if len(told) == 1:
            return told[0]
        value.fail(f"'type' is missing; write 'auto', 'none', 'required' or {_FUNCTION}")
    return value.text("type")


def _optional_text(value: Fields, name: str) -> str | None:
    return None if value.value.get(name) is None else value.text(name)
