"""One grammar of a text and of grammars that it names, the obvious way: texts put together."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tokfold._sources.built import Built


def joined(text: str, parts: Mapping[str, Built]) -> str:
    """The text with the rules of the parts, which get their part's name in front."""
    pieces = [text]
    for name, part in parts.items():
        pieces.append(_renamed(str(part), f"{name}__", set(part._core.rule_names())))
        pieces.append(f"{name} ::= {name}__{part._core.root()}\n")
    return "".join(pieces)


_WORDS = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|([A-Za-z0-9_.-]+)(=)?')
"""Literals and classes, to pass over; words, and whether they name an argument."""


def _renamed(text: str, prefix: str, rules: set[str]) -> str:
    """The text of a grammar, printed by tokfold, with something before the names of its rules."""

    def word(match: re.Match[str]) -> str:
        name, argument = match.groups()
        return match[0] if name not in rules or argument else prefix + name

    return _WORDS.sub(word, text)
