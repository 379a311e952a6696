"""Special tokens in styles: tokens in the marks, never in a value or a name.

The oracle writes a call of each style piece by piece, and each marker in it in each way.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import tokfold
from tokfold import Matcher, Vocabulary
from tokfold.errors import StructuralTagError

CALLS = {
    "qwen_xml": ("<parameter=", "<parameter=", ">", "</parameter>"),
    "minimax_xml": ("<parameter", '<parameter name="', '">', "</parameter>"),
    "minimax_m3_xml": ("minimax", "]<]minimax[>[<", ">", "]<]minimax[>[</a>"),
    "deepseek_xml": (
        "｜DSML｜",
        '<｜DSML｜parameter name="',
        '" string="true">',
        "</｜DSML｜parameter>",
    ),
    "deepseek_v4_1_xml": (
        "｜DSML｜",
        '<｜DSML｜ parameter name="',
        '" string="true">',
        "</｜DSML｜ parameter>",
    ),
    "glm_xml": ("arg_key", "<arg_key>", "</arg_key><arg_value>", "</arg_value>"),
    "cohere_xml": ("cofl:value", '<cofl:value name="', '" type="raw">', "</cofl:value>"),
    "kimi_k3_xml": (
        "<|sep|>",
        '<|open|>argument key="',
        '" type="string"<|sep|>',
        "<|close|>argument<|sep|>",
    ),
}
"""A marker, and the marks before the name ``a``, behind it and at the end, by style."""


def vocabulary(*special: str) -> Vocabulary:
    """Bytes, special tokens from 256 on, and a stop token."""
    tokens = [*(bytes([byte]) for byte in range(256)), *(text.encode() for text in special)]
    count = len(special)
    return Vocabulary(
        [*tokens, b"</s>"],
        stop_token_ids=[256 + count],
        special_token_ids=range(256, 256 + count),
    )


def compiled(style: str, schema: dict[str, Any], over: Vocabulary, markers: str) -> Any:
    format = {"type": "json_schema", "json_schema": schema, "style": style}
    tag = {"type": "structural_tag", "format": format, "markers": markers}
    return tokfold.compile(tag, over)


def is_read(found: Any, pieces: list[int | str]) -> bool:
    matcher = Matcher(found)
    return all(
        matcher.accept_token(one) if isinstance(one, int) else matcher.accept_bytes(one.encode())
        for one in pieces
    ) and bool(matcher.is_accepting)


def ways(text: str, marker: str) -> list[list[int | str]]:
    """A text in each way: each marker as its token, or by its letters."""
    first, *rest = text.split(marker)
    out: list[list[int | str]] = [[first]]
    for part in rest:
        out = [[*way, one, part] for way in out for one in (256, marker)]
    return out


@pytest.mark.parametrize("markers", ["tokens", "both"])
@pytest.mark.parametrize("style", CALLS)
def test_marks_take_tokens_and_values_do_not(style: str, markers: str) -> None:
    marker, before, named, end = CALLS[style]
    value = f"1{marker}2"
    over = vocabulary(marker, marker[:-1])  # the longer of two that begin at one place counts
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "enum": [value, "y"]}},
        "required": ["a"],
    }
    found = compiled(style, schema, over, markers)
    read = 0
    for parts in product(*(ways(text, marker) for text in (f"{before}a{named}", value, end))):
        opened, within, closed = parts
        is_whole = markers == "both" or not any(
            isinstance(one, str) and marker in one for one in (*opened, *closed)
        )
        right = is_whole and 256 not in within
        assert is_read(found, [*opened, *within, *closed]) == right, parts
        read += right
    assert read


NESTED = {
    "enum": {"enum": ["<x>", "y"]},
    "member": {
        "type": "object",
        "properties": {"b": {"enum": ["<x>"]}},
        "required": ["b"],
        "additionalProperties": False,
    },
    "name": {
        "type": "object",
        "properties": {"<x>": {"enum": [1]}},
        "required": ["<x>"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("markers", ["tokens", "both"])
@pytest.mark.parametrize(
    ("kind", "before", "behind"),
    [("enum", "", ""), ("member", '{"b":"', '"}'), ("name", '{"', '":1}')],
)
def test_json_in_an_element_holds_no_token(
    kind: str, before: str, behind: str, markers: str
) -> None:
    over = vocabulary("</parameter>", "<parameter=", "<x>")
    schema = {"type": "object", "properties": {"a": NESTED[kind]}, "required": ["a"]}
    found = compiled("qwen_xml", schema, over, markers)
    assert is_read(found, [257, f"a>{before}<x>{behind}", 256])
    assert not is_read(found, [257, f"a>{before}", 258, behind, 256])
    assert is_read(found, [f"<parameter=a>{before}<x>{behind}</parameter>"]) == (markers == "both")


def test_a_name_is_no_mark() -> None:
    over = vocabulary("<parameter=", "name")
    schema = {"type": "object", "properties": {"my_name": {"enum": ["v"]}}, "required": ["my_name"]}
    for style, before, behind in [
        ("qwen_xml", [256], ">v</parameter>"),
        ("minimax_xml", ["<parameter ", 257, '="'], '">v</parameter>'),
    ]:
        found = compiled(style, schema, over, "tokens")
        assert is_read(found, [*before, "my_name", behind])
        assert not is_read(found, [*before, "my_", 257, behind])


def test_arrays_with_unique_items_stand_beside_tokens() -> None:
    over = vocabulary("</parameter>", "<parameter=")
    items = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    schema = {"type": "object", "properties": {"a": items}, "required": ["a"]}
    found = compiled("qwen_xml", schema, over, "tokens")
    assert is_read(found, [257, "a>[1,2]", 256])
    assert not is_read(found, [257, "a>[1,1]", 256])
    assert not is_read(found, ["<parameter=a>[1,2]", 256])


@pytest.mark.parametrize("count", [1, 20])
def test_many_tools_take_tokens(count: int) -> None:
    """Many schemas are converted side by side."""
    over = vocabulary("</parameter>", "<parameter=")
    tags = [
        {
            "type": "tag",
            "begin": f"<f{number}>",
            "content": {
                "type": "json_schema",
                "json_schema": {
                    "type": "object",
                    "properties": {f"a{number}": {"enum": ["</par"]}},
                    "required": [f"a{number}"],
                },
                "style": "qwen_xml",
            },
            "end": ".",
        }
        for number in range(count)
    ]
    format = {"type": "triggered_tags", "triggers": ["<f"], "tags": tags}
    for markers in ("tokens", "both"):
        tag = {"type": "structural_tag", "format": format, "markers": markers}
        found = tokfold.compile(tag, over)
        assert is_read(found, ["<f0>", 257, "a0></par", 256, "."])
        assert is_read(found, ["<f0><parameter=a0></par", 256, "."]) == (markers == "both")


def test_a_stop_token_in_a_mark_is_refused() -> None:
    over = Vocabulary(
        [*(bytes([byte]) for byte in range(256)), b"</parameter>"], stop_token_ids=[256]
    )
    schema = {"type": "object", "properties": {"a": {"enum": ["v"]}}}
    with pytest.raises(StructuralTagError, match="stop token 256"):
        compiled("qwen_xml", schema, over, "both")


@pytest.mark.parametrize("markers", ["tokens", "both"])
def test_strings_of_gemma_stand_between_tokens(markers: str) -> None:
    over = vocabulary('<|"|>')
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"items": {"enum": ["v"]}}},
    }
    found = compiled("gemma", schema, over, markers)
    assert is_read(found, ["{a:", 256, 'x<|"', 256, ",b:[", 256, "v", 256, "]}"])
    assert not is_read(found, ["{a:", 256, "x", 256, "y", 256, "}"])
    assert not is_read(found, ["{", 256, "a", 256, ":1}"])
    assert is_read(found, ['{a:<|"|>x<|"|>}']) == (markers == "both")
    assert is_read(found, ["{a:", 256, 'x<|"|>}']) == (markers == "both")
