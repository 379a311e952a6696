"""Requests to models, and a form of structural tags in which equal languages of them are equal.

A tag in its canonical form is a set of alternatives, each a row of parts. Tags without free text
of their own are what stands in them; neighbouring texts are one; a list of tags that may be empty
is the one that may not, or nothing; a list of one tag is that tag. Nothing else is done to it, so
equal forms are equal languages.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
Row = tuple[tuple[Any, ...], ...]

_DEFAULTS = {"max_tokens": None, "max_chars": None}


def canonical(format: Json) -> frozenset[Row]:
    """The alternatives of a format; a field that is not known here is an error."""
    rest = {**format}
    match rest.pop("type"):
        case "const_string":
            value = rest.pop("value")
            found = {(("text", value),)} if value else {()}
        case "regex":
            found = {(("regex", rest.pop("pattern")),)}
        case "any_text":
            found = {(("any_text", frozenset(rest.pop("excludes", []))),)}
        case "json_schema":
            schema = rest.pop("json_schema")
            if schema in (True, {}):  # any JSON in XGrammar: see the page of differences
                schema = {"type": "object"}
            schema = json.dumps(schema)  # the order of properties counts
            style, bound = rest.pop("style", "json"), rest.pop("max_whitespace_cnt", None)
            excludes = frozenset(rest.pop("excludes", []))
            found = {(("schema", schema, style, rest.pop("any_order", False), bound, excludes),)}
        case "sequence":
            found = _row(*map(canonical, rest.pop("elements")))
        case "or":
            found = frozenset().union(*map(canonical, rest.pop("elements")))
        case "optional":
            found = canonical(rest.pop("content")) | {()}
        case "tag":
            begin, content, end = (rest.pop(name) for name in ("begin", "content", "end"))
            ends = [end] if isinstance(end, str) else end
            if _is_free(content):
                found = {(("tag", begin, canonical(content), frozenset(ends)),)}
            else:
                texts = frozenset((("text", text),) for text in ends)
                found = _row(frozenset([(("text", begin),)]), canonical(content), texts)
        case "tags_with_separator":
            tags = frozenset().union(*map(canonical, rest.pop("tags")))
            separator = rest.pop("separator")
            once = rest.pop("stop_after_first", False)
            found = tags if once else {(("list", tags, separator),)}
            if not rest.pop("at_least_one", False):
                found = frozenset(found) | {()}
        case "triggered_tags":
            tags = frozenset().union(*map(canonical, rest.pop("tags")))
            triggers = frozenset(rest.pop("triggers"))
            excludes = frozenset(rest.pop("excludes", []))
            flags = rest.pop("at_least_one", False), rest.pop("stop_after_first", False)
            found = {(("triggered", triggers, tags, excludes, *flags),)}
        case other:
            raise AssertionError(other)
    assert rest.items() <= _DEFAULTS.items(), rest
    return frozenset(found)


def _is_free(format: Json) -> bool:
    """Whether a format has free text that is in no tag within it: that text ends with the tag."""
    if format["type"] in ("any_text", "triggered_tags"):
        return True
    within = [*format.get("elements", []), *filter(None, [format.get("content")])]
    return format["type"] != "tag" and any(map(_is_free, within))


def _row(*parts: frozenset[Row]) -> frozenset[Row]:
    """One after the other, with neighbouring texts put together."""
    rows = set()
    for choice in itertools.product(*parts):
        row: list[tuple[Any, ...]] = []
        for atom in itertools.chain.from_iterable(choice):
            if atom == ("text", ""):
                continue
            if atom[0] == "text" and row and row[-1][0] == "text":
                row[-1] = ("text", row[-1][1] + atom[1])
            else:
                row.append(atom)
        rows.add(tuple(row))
    return frozenset(rows)


# ---------------------------------------------------------------- where XGrammar is wrong

HARMONY_SEPARATOR = "<|start|>assistant"


def mended(model: str, choice: object, reasoning: object, dumped: Json) -> Json:
    """XGrammar's format, with its two faults of families out of it.

    ``minimax`` closes an empty block of reasoning, and then writes the lines behind it twice.
    ``harmony`` does not demand a call that must come.
    """
    if model == "minimax" and reasoning in ("disabled", False):
        first, again, rest = dumped["elements"]
        assert first["value"] == "\n</think>\n\n"
        assert again["value"] == "\n\n"
        return {"type": "sequence", "elements": [first, rest]}
    if model == "harmony" and _demands(choice):
        return _with_a_call(dumped)
    return dumped


def _demands(choice: object) -> bool:
    if not isinstance(choice, dict):
        return choice == "required"
    if "allowed_tools" in choice:
        return choice["allowed_tools"]["mode"] == "required"
    return True


def _with_a_call(dumped: Json) -> Json:
    if dumped["type"] == "optional":
        return dumped["content"]
    if dumped["type"] == "or":
        return {"type": "or", "elements": dumped["elements"][1:]}
    calls = [tag for tag in dumped["tags"] if tag["end"] == "<|call|>"]
    others = [tag for tag in dumped["tags"] if tag not in calls]
    between = {"type": "const_string", "value": HARMONY_SEPARATOR}

    def listed(tags: list[Json], **flags: bool) -> Json:
        return {
            "type": "tags_with_separator",
            "tags": tags,
            "separator": HARMONY_SEPARATOR,
            "at_least_one": True,
            **flags,
        }

    if not others:
        return listed(calls)
    before = {"type": "sequence", "elements": [listed(others), between]}
    behind = {"type": "sequence", "elements": [between, listed(calls + others)]}
    elements = [
        {"type": "optional", "content": before},
        listed(calls, stop_after_first=True),
        {"type": "optional", "content": behind},
    ]
    return {"type": "sequence", "elements": elements}


# -------------------------------------------------------------------------------- requests

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}


def function(name: str, **others: Any) -> Json:
    return {"type": "function", "function": {"name": name, **others}}


F, G = function("f", parameters=SCHEMA, strict=True), function("g", parameters={})
SEARCH = {"type": "search", "parameters": SCHEMA}
BROWSE = {"type": "browse", "name": "browser.open", "description": "Opens a page."}

TOOLS: dict[str, Any] = {
    "none given": None,
    "none": [],
    "one": [F],
    "several": [F, G],
    "without parameters": [function("f"), function("g", parameters=None, description="g")],
    "not strict": [function("f", parameters=SCHEMA, strict=False)],
    "no type": [{"function": {"name": "f", "parameters": SCHEMA}}],
    "of the server": [SEARCH],
    "of both kinds": [BROWSE, F, SEARCH, G],
    "of one name": [F, F],
    "of one type": [SEARCH, SEARCH, F],
    "no list": {"f": F},
    "no objects": [F, 3],
    "a function without a name": [{"type": "function", "name": "f"}],
    "a name that is no string": [{"type": "search", "name": 3}],
    "parameters that are no object": [{"type": "search", "parameters": [SCHEMA]}],
    "a type that is no string": [{"type": 3, "function": {"name": "f"}}],
    "nothing in it": [{}],
}
WRONG_TOOLS = {
    "no list",
    "no objects",
    "a function without a name",
    "a name that is no string",
    "parameters that are no object",
    "a type that is no string",
    "nothing in it",
}


def allowed(mode: object, *references: object) -> Json:
    tools = list(references)
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


CHOICES: dict[str, Any] = {
    "auto": "auto",
    "not given": None,
    "none": "none",
    "required": "required",
    "f": function("f"),
    "f, without a type": {"function": {"name": "f"}},
    "a function that is not there": function("h"),
    "search": {"type": "search"},
    "browse": {"type": "browse", "name": "whatever"},
    "a type that is not there": {"type": "draw"},
    "f allowed": allowed("auto", function("f")),
    "f allowed, without a type": {"allowed_tools": allowed("auto", F)["allowed_tools"]},
    "f and search required": allowed("required", function("f"), {"type": "search"}),
    "search allowed": allowed("auto", {"type": "search", "name": "x"}),
    "nothing allowed": allowed("auto"),
    "nothing allowed, and required": allowed("required"),
    "another allowed": allowed("auto", function("h")),
    "another type allowed": allowed("auto", {"type": "draw"}),
    "an allowed function without its name": allowed("auto", {"type": "function", "name": "f"}),
    "allowed in no way": allowed("none", F),
    "allowed, no objects": allowed("auto", "f"),
    "allowed, no type": allowed("auto", {"function": {"name": "f"}}),
    "allowed, and not said what": {"type": "allowed_tools", "mode": "auto", "tools": [F]},
    "a function without its name": {"type": "function", "name": "f"},
    "a word that there is not": "some",
    "no word": 3,
    "nothing in it": {},
}

REASONING: tuple[Any, ...] = ("enabled", "disabled", "auto", True, False)

NAME_ENDS = '"\\><:[{\n'
"""What ends the name of a function in the calls of some family, or is escaped there."""
NAMES = st.text(
    st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"], exclude_characters=NAME_ENDS),
    min_size=1,
    max_size=6,
)
"""Names that every family can call; :data:`NAME_ENDS` are refused by name in some."""
SCHEMAS = st.sampled_from(
    [SCHEMA, {}, {"type": "object"}, {"type": "object", "properties": {}}, None]
)
FUNCTIONS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "parameters": SCHEMAS,
        "strict": st.sampled_from([True, False, None]),
        "description": st.none() | NAMES,
    },
).map(lambda function: {"type": "function", "function": function})
SERVER_TOOLS = st.fixed_dictionaries(
    {"type": st.sampled_from(["search", "browse", "draw"])},
    optional={"name": st.none() | NAMES, "parameters": SCHEMAS},
)


@st.composite
def requests(draw: st.DrawFn) -> Json:
    """Arguments of ``for_model`` without the family."""
    tools = draw(st.lists(FUNCTIONS | SERVER_TOOLS, max_size=4))
    references = [
        function(tool["function"]["name"]) if "function" in tool else {"type": tool["type"]}
        for tool in [*tools, F, SEARCH]
    ]
    named = st.sampled_from(references)
    some = st.lists(named, max_size=3)
    choices = [
        st.sampled_from(["auto", "none", "required", None]),
        named,
        st.builds(
            lambda mode, some: allowed(mode, *some), st.sampled_from(["auto", "required"]), some
        ),
    ]
    return {
        "tools": tools,
        "tool_choice": draw(st.one_of(choices)),
        "reasoning": draw(st.sampled_from(REASONING)),
        "parallel": draw(st.booleans()),
        "any_order": draw(st.booleans()),
        "exclude_special_tokens": draw(st.booleans()),
        "max_whitespace_cnt": draw(st.none() | st.integers(0, 9)),
    }
