"""Random structural tags over a small alphabet, and XGrammar's verdicts on texts.

The alphabet is small so that triggers, ends and excluded texts overlap: there free text is
difficult.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

LETTERS = "ab<>"
PIECES = ("a", "b", "<", ">", "ab", "ba", "<a", "<b", "a>", "<a>", "</", "aa", "é")
"""What texts of tags are made of."""

SCHEMAS = (
    {"type": "integer"},
    {"enum": ["a", "b"]},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
)
PATTERNS = ("a+b", "[ab]{2}", "<?a", "(a|b)*>", "b?")
GRAMMARS = (
    'root ::= "a" root "b" | "<"',
    'root ::= x{1,3}\nx ::= "ab" | "b"',
    'root ::= [^a]? "a"',
)


def of(kind: str, **fields: Any) -> dict[str, Any]:
    """A format of this type."""
    return {"type": kind, **fields}


def tag(begin: Any, content: dict[str, Any], end: Any) -> dict[str, Any]:
    """A format of type tag."""
    return of("tag", begin=begin, content=content, end=end)


def token(which: int | str) -> dict[str, Any]:
    """A format of type token."""
    return of("token", token=which)


def _piece(random: Random) -> str:
    return random.choice(PIECES)


def _texts(random: Random, most: int) -> list[str]:
    return [_piece(random) for _ in range(random.randint(0, most))]


OF_TAGS = ("triggered_tags", "triggered_tags", "tags_with_separator", "dispatch", "or")
"""Formats that hold tags, or what is like them."""


def build_format(
    random: Random, depth: int, counted: bool = False, kinds: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """A format of text at most so deep; the simplest come first.

    Args:
        random: decides.
        depth: of formats within formats.
        counted: whether ``max_chars`` may occur.
        kinds: the types of which one is made, if not all.
    """
    leaves = ["const_string", "any_text", "any_text", "regex", "grammar", "json_schema"]
    nested = [
        *("sequence", "or", "tag", "optional", "plus", "star", "repeat"),
        *("triggered_tags", "tags_with_separator", "dispatch", "tag", "triggered_tags"),
    ]
    kind = random.choice(kinds or (leaves if depth <= 0 else leaves + nested * 2))
    inner = lambda: build_format(random, depth - 1 - random.randint(0, 1), counted)  # noqa: E731
    flags = {name: True for name in ("at_least_one", "stop_after_first") if random.random() < 0.3}
    match kind:
        case "const_string":
            return {"type": kind, "value": "".join(_texts(random, 2))}
        case "any_text":
            found = {"type": kind} | _some(random, "excludes", _texts(random, 2))
            if counted and random.random() < 0.5:
                found["max_chars"] = random.randint(0, 4)
            return found
        case "regex":
            return {"type": kind, "pattern": random.choice(PATTERNS)}
        case "grammar":
            return {"type": kind, "grammar": random.choice(GRAMMARS)}
        case "json_schema":
            return {"type": kind, "json_schema": random.choice(SCHEMAS)}
        case "or" if kinds is not None:
            tags = [build_tag(random, depth - 1, None, counted) for _ in range(3)]
            elements = [
                *tags[: random.randint(1, 3)],
                *(inner() for _ in range(random.randint(0, 1))),
            ]
            return {"type": kind, "elements": elements}
        case "sequence" | "or":
            return {"type": kind, "elements": [inner() for _ in range(random.randint(1, 3))]}
        case "optional" | "plus" | "star":
            return {"type": kind, "content": inner()}
        case "repeat":
            least = random.randint(0, 2)
            most = random.choice([-1, least, least + 1, least + 20])
            return {"type": kind, "min": least, "max": most, "content": inner()}
        case "tag":
            return build_tag(random, depth, None, counted)
        case "tags_with_separator":
            tags = [
                build_tag(random, depth - 1, None, counted) for _ in range(random.randint(1, 3))
            ]
            return {"type": kind, "tags": tags, "separator": random.choice(["", *PIECES]), **flags}
        case "triggered_tags":
            triggers = list(dict.fromkeys(_texts(random, 2))) or [_piece(random)]
            tags = [
                build_tag(random, depth - 1, trigger + random.choice(["", *PIECES]), counted)
                for trigger in triggers
                for _ in range(random.randint(1, 2))
            ]
            found = {"type": kind, "triggers": triggers, "tags": tags, **flags}
            return found | _some(random, "excludes", _texts(random, 2))
        case _:
            rules = [[_piece(random), inner()] for _ in range(random.randint(1, 3))]
            found = {"type": "dispatch", "rules": rules, "loop": random.random() < 0.7}
            return found | _some(random, "excludes", _texts(random, 2))


def build_tag(random: Random, depth: int, begin: str | None, counted: bool) -> dict[str, Any]:
    """A format of type tag."""
    if begin is None:
        begin = "".join(_texts(random, 2))
    end: str | list[str] = "".join(_texts(random, 2))
    if random.random() < 0.25:
        end = [end, _piece(random)]
    content = build_format(random, depth - 1, counted)
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _some(random: Random, name: str, texts: list[str]) -> dict[str, Any]:
    return {name: texts} if texts and random.random() < 0.6 else {}


@st.composite
def structural_tags(
    draw, depth: int = 3, counted: bool = False, kinds: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """Hypothesis strategy over :func:`build_format`."""
    random = draw(st.randoms(use_true_random=False, note_method_calls=False))
    format = build_format(random, draw(st.integers(0, depth)), counted, kinds)
    return {"type": "structural_tag", "format": format}
