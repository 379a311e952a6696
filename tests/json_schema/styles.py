"""The styles of structural tags, slow and obvious: how a value is written, how a text is read.

A text may have several readings: where a style does not say what a value is, `1` is a number and
a string. :func:`readings` gives all of them.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

BLANKS = " \t\r\n"
MOST_BLANKS = 2
"""White space at one place."""


class Style(NamedTuple):
    """What stands around a member."""

    open: str
    named: str
    behind_kind: str
    """Empty where the kind of a value is not said."""
    before_value: str
    close: str
    kinds: tuple[str, ...] = ()
    """Of a string, a number, a boolean, null, an array, an object."""
    item: str = ""
    """Where arrays and objects within values are elements too."""
    repeats_name: bool = False
    pads_strings: bool = False
    pads_scalars: bool = True
    is_escaped: bool = False


_LETTERS = re.compile(r'[^\x00-\x20"&<>\x7f\xa0]+')
_SPELLED = re.compile(r"[^\x00-\x1f\x7f]+")
"""Names, where nothing is spelled otherwise and where some characters are."""

_DSML = "｜DSML｜"
_IS_STRING = ("true", "false", "false", "false", "false", "false")
STYLES: dict[str, Style] = {
    "qwen_xml": Style("<parameter=", ">", "", "", "</parameter>", pads_strings=True),
    "minimax_xml": Style('<parameter name="', '">', "", "", "</parameter>", pads_strings=True),
    "minimax_m3_xml": Style(
        "]<]minimax[>[<",
        ">",
        "",
        "",
        "]<]minimax[>[</",
        item="]<]minimax[>[<item>",
        repeats_name=True,
        pads_scalars=False,
    ),
    "deepseek_xml": Style(
        f'<{_DSML}parameter name="',
        '" string="',
        '">',
        "",
        f"</{_DSML}parameter>",
        _IS_STRING,
    ),
    "deepseek_v4_1_xml": Style(
        f'<{_DSML} parameter name="',
        '" string="',
        '">',
        "",
        f"</{_DSML} parameter>",
        _IS_STRING,
    ),
    "glm_xml": Style(
        "<arg_key>", "</arg_key>", "", "<arg_value>", "</arg_value>", pads_strings=True
    ),
    "cohere_xml": Style(
        '<cofl:value name="',
        '" type="',
        '">',
        "",
        "</cofl:value>",
        ("raw", "json", "json", "json", "list", "dict"),
        item='<cofl:value type="',
        is_escaped=True,
    ),
    "kimi_k3_xml": Style(
        '<|open|>argument key="',
        '" type="',
        '"<|sep|>',
        "",
        "<|close|>argument<|sep|>",
        ("string", "number", "boolean", "null", "array", "object"),
        is_escaped=True,
    ),
}


def _kind(value: Any) -> int:
    for kind, types in enumerate([str, (int, float), bool, type(None), list, dict]):
        if isinstance(value, types) and (kind != 1 or not isinstance(value, bool)):
            return kind
    raise AssertionError(value)


def _name(style: Style, name: str, which: str) -> str:
    if not style.is_escaped:
        return name
    if which == "cohere_xml":
        return html.escape(name, quote=True).replace("&#x27;", "'")
    return name.replace("&", "&amp;").replace('"', "&quot;")


ALL_STYLES = (*STYLES, "gemma")


def write(value: Any, which: str, random: Random | None = None) -> str:
    """A value in a style, with white space drawn by chance."""
    if which == "gemma":
        return _write_gemma(value, random)
    style = STYLES[which]

    def blanks() -> str:
        if random is None:
            return ""
        return "".join(random.choices(BLANKS, k=random.randint(0, MOST_BLANKS)))

    def element(opened: str, value: Any, name: str) -> str:
        content = whole(value, is_nested=True)
        if style.kinds:
            opened += style.kinds[_kind(value)] + style.behind_kind
        if style.before_value:
            opened += blanks() + style.before_value
        return opened + content + style.close + (f"{name}>" if style.repeats_name else "")

    def whole(value: Any, *, is_nested: bool) -> str:
        match value:
            case dict() if style.item or not is_nested:
                out = blanks()
                for name, inner in value.items():
                    written = _name(style, name, which)
                    out += element(style.open + written + style.named, inner, written) + blanks()
                return out
            case list() if style.item:
                return blanks() + "".join(element(style.item, x, "item") + blanks() for x in value)
            case str():
                return blanks() + value + blanks() if style.pads_strings else value
        text = json.dumps(value)
        return blanks() + text + blanks() if style.pads_scalars and is_nested else text

    return whole(value, is_nested=False)


def readings(text: str, which: str) -> list[Any]:
    """The objects that a text may mean."""
    if which == "gemma":
        value, end = _read_gemma(text, 0)
        return [] if value is _NOTHING or end < len(text) else [value]
    style = STYLES[which]
    return [value for value, end in _objects(text, 0, style, which) if end == len(text)]


def _objects(text: str, start: int, style: Style, which: str) -> Iterator[tuple[dict, int]]:
    for at in _blanks(text, start):
        yield {}, at
        if not text.startswith(style.open, at):
            continue
        begin = at + len(style.open)
        for end in _places(text, style.named, begin):
            name = text[begin:end]
            read = html.unescape(name) if style.is_escaped else name
            letters = _SPELLED if style.is_escaped else _LETTERS
            if not letters.fullmatch(name) or _name(style, read, which) != name:
                continue
            for value, behind in _elements(text, end + len(style.named), name, style, which):
                for others, last in _objects(text, behind, style, which):
                    if read not in others:
                        yield {read: value, **others}, last


def _items(text: str, start: int, style: Style, which: str) -> Iterator[tuple[list, int]]:
    for at in _blanks(text, start):
        yield [], at
        if text.startswith(style.item, at):
            begin = at + len(style.item)
            for value, behind in _elements(text, begin, "item", style, which):
                for others, last in _items(text, behind, style, which):
                    yield [value, *others], last


def _elements(text: str, at: int, name: str, style: Style, which: str) -> Iterator[tuple[Any, int]]:
    """Values from behind the name on, and where the element ends."""
    close = style.close + (f"{name}>" if style.repeats_name else "")
    limit = style.close.removesuffix("</") if style.repeats_name else style.close
    kinds: list[int] = list(range(6))
    if style.kinds:
        end = text.find(style.behind_kind, at)
        kinds = [kind for kind, word in enumerate(style.kinds) if word == text[at:end]]
        at = end + len(style.behind_kind)
    if style.before_value:
        marks = [place for place in _blanks(text, at) if text.startswith(style.before_value, place)]
        if not marks:
            return
        at = marks[0] + len(style.before_value)
    for end in _places(text, close, at):
        content = text[at:end]
        if 0 in kinds and limit not in content:
            for inner in _stripped(content) if style.pads_strings else [content]:
                yield inner, end + len(close)
        for inner in _stripped(content) if style.pads_scalars else [content]:
            try:
                value = json.loads(inner)
            except ValueError:
                continue
            is_inner = style.item and isinstance(value, (list, dict))
            if not isinstance(value, str) and _kind(value) in kinds and not is_inner:
                yield value, end + len(close)
    if style.item and 4 in kinds:
        for found, end in _items(text, at, style, which):
            if text.startswith(close, end):
                yield found, end + len(close)
    if style.item and 5 in kinds:
        for value, end in _objects(text, at, style, which):
            if text.startswith(close, end):
                yield value, end + len(close)


def _blanks(text: str, at: int) -> list[int]:
    out = [at]
    while out[-1] < len(text) and text[out[-1]] in BLANKS and len(out) <= MOST_BLANKS:
        out.append(out[-1] + 1)
    return out


def _places(text: str, what: str, at: int) -> Iterator[int]:
    while (at := text.find(what, at)) >= 0:
        yield at
        at += 1


def _stripped(content: str) -> list[str]:
    starts = _blanks(content, 0)
    ends = [len(content) - end for end in _blanks(content[::-1], 0)]
    return list(dict.fromkeys(content[a:b] for a, b in itertools.product(starts, ends) if a <= b))


# ------------------------------------------------------------------------------ Gemma

_QUOTE = '<|"|>'
_BLANKS_OF_GEMMA = " \t\n"
_BARE_NAME = re.compile(r'[^\x00-\x20"&<>\x7f\xa0:,{}\[\]]+')
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+([eE][+-]?[0-9]+)?)?")
_NOTHING: Any = object()
"""In place of a value: none stands there."""


def _write_gemma(value: Any, random: Random | None) -> str:
    def blanks() -> str:
        if random is None:
            return ""
        return "".join(random.choices(_BLANKS_OF_GEMMA, k=random.randint(0, MOST_BLANKS)))

    match value:
        case dict():
            members = [
                f"{name}{blanks()}:{blanks()}{_write_gemma(inner, random)}"
                for name, inner in value.items()
            ]
            return "{" + (_in_a_row(members, blanks) or blanks()) + "}"
        case list():
            items = [_write_gemma(inner, random) for inner in value]
            return "[" + (_in_a_row(items, blanks) or blanks()) + "]"
        case str():
            return _QUOTE + value + _QUOTE
    return json.dumps(value)


def _in_a_row(parts: list[str], blanks: Callable[[], str]) -> str:
    return ",".join(f"{blanks()}{part}{blanks()}" for part in parts)


def _behind_blanks(text: str, at: int) -> int:
    end = at
    while end < len(text) and text[end] in _BLANKS_OF_GEMMA and end - at < MOST_BLANKS:
        end += 1
    return end


def _read_gemma(text: str, at: int) -> tuple[Any, int]:
    """The value that begins there, and its end."""
    for word, value in (("null", None), ("true", True), ("false", False)):
        if text.startswith(word, at):
            return value, at + len(word)
    if text.startswith(_QUOTE, at):
        begin = at + len(_QUOTE)
        end = text.find(_QUOTE, begin)
        return (text[begin:end], end + len(_QUOTE)) if end >= 0 else (_NOTHING, at)
    if number := _NUMBER.match(text, at):
        return json.loads(number[0]), number.end()
    if text[at : at + 1] not in ("{", "["):
        return _NOTHING, at
    is_object = text[at] == "{"
    close = "}" if is_object else "]"
    found: Any = {} if is_object else []
    at = _behind_blanks(text, at + 1)
    if text.startswith(close, at):
        return found, at + 1
    while True:
        name = None
        if is_object:
            name = _BARE_NAME.match(text, at)
            if name is None or name[0] in found:
                return _NOTHING, at
            at = _behind_blanks(text, name.end())
            if not text.startswith(":", at):
                return _NOTHING, at
            at = _behind_blanks(text, at + 1)
        value, at = _read_gemma(text, at)
        if value is _NOTHING:
            return _NOTHING, at
        if name is not None:
            found[name[0]] = value
        else:
            found.append(value)
        at = _behind_blanks(text, at)
        if text.startswith(close, at):
            return found, at + 1
        if not text.startswith(",", at):
            return _NOTHING, at
        at = _behind_blanks(text, at + 1)
