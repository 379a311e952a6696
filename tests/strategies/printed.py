"""Real grammars for the oracles: what ``str(grammar)`` prints, read as a plain value.

The printed form has few spellings, so this reader is short, and shares nothing with the library's.
"""

from __future__ import annotations

import re

from oracles.model import (
    CharClass,
    Choice,
    Empty,
    Expr,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    TokenDispatch,
    TokenEdge,
)

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<literal>"(?:[^"\\]|\\.)*")
      | (?P<class>\[(?:[^\]\\]|\\.)*\])
      | (?P<edge>(?:Exclude)?Token\([\d,\ ]*\))
      | (?P<dispatch>TokenTagDispatch\((?:[^()]|\([^()]*\))*\))
      | (?P<name>[A-Za-z_.][\w.\-]*)
      | (?P<bounds>\{\d+(?:,\d*)?\})
      | (?P<look>\(=)
      | (?P<mark>[()|?*+])
    )""",
    re.VERBOSE | re.DOTALL,
)
_CHAR = re.compile(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})|\\x([0-9a-f]{2})|\\(.)|(.)", re.DOTALL)
_NAMED = {"n": "\n", "r": "\r", "t": "\t"}
_SHORT = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def _chars(text: str) -> list[tuple[str, bool]]:
    """The characters of a literal or class, and whether each was escaped."""
    out = []
    for short, long, byte, named, plain in (m.groups() for m in _CHAR.finditer(text)):
        if plain is not None:
            out.append((plain, False))
        elif named is not None:
            out.append((_NAMED.get(named, named), True))
        else:
            out.append((chr(int(short or long or byte, 16)), True))
    return out


def _class(text: str) -> CharClass:
    chars = _chars(text)
    negated = bool(chars) and chars[0] == ("^", False)
    chars = chars[negated:]
    ranges, at = [], 0
    while at < len(chars):
        low = high = ord(chars[at][0])
        if at + 2 < len(chars) and chars[at + 1] == ("-", False):
            high = ord(chars[at + 2][0])
            at += 2
        ranges.append((low, high))
        at += 1
    return CharClass(tuple(ranges), negated)


def _ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def _dispatch(text: str) -> TokenDispatch:
    tags = re.findall(r"\((\d+), ([A-Za-z_.][\w.\-]*)\)", text)
    excludes = re.search(r"excludes=\(([^()]*)\)", text)
    return TokenDispatch(
        tuple((int(trigger), rule) for trigger, rule in tags),
        _ids(excludes[1]) if excludes else (),
        "loop_after_dispatch=false" not in text,
    )


class _Reader:
    """One right-hand side."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            assert match, text[at : at + 40]
            assert match.lastgroup
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self.at = 0

    @property
    def here(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def choice(self) -> Expr:
        items = [self.sequence()]
        while self.here[1] == "|":
            self.at += 1
            items.append(self.sequence())
        return items[0] if len(items) == 1 else Choice(tuple(items))

    def sequence(self) -> Expr:
        items: list[Expr] = []
        while self.here[0] != "end" and self.here[1] not in ("|", ")"):
            kind, text = self.here
            self.at += 1
            match kind:
                case "literal":
                    data = "".join(c for c, _ in _chars(text[1:-1]))
                    items.append(Literal(data.encode("utf-8", "surrogatepass")))
                case "class":
                    items.append(_class(text[1:-1]))
                case "edge":
                    items.append(TokenEdge(_ids(text), text.startswith("Exclude")))
                case "dispatch":
                    items.append(_dispatch(text))
                case "name":
                    items.append(Ref(text))
                case "bounds":
                    low, comma, high = text[1:-1].partition(",")
                    most = (int(high) if high else None) if comma else int(low)
                    items.append(Repeat(items.pop(), int(low), most))
                case "mark" if text in _SHORT:
                    items.append(Repeat(items.pop(), *_SHORT[text]))
                case _:
                    inner = self.choice()
                    assert self.here[1] == ")"
                    self.at += 1
                    if kind != "look":  # implied by the rules
                        items.append(inner)
        return items[0] if len(items) == 1 else Seq(tuple(items)) if items else Empty()


def read_printed(text: str, root: str = "root") -> Grammar:
    """The grammar that was printed."""
    rules = {}
    for line in filter(str.strip, text.splitlines()):
        name, _, body = line.partition(" ::= ")
        rules[name] = _Reader(body).choice()
    return Grammar(rules, root)
