"""Which part of a JSON Schema a rule of its grammar comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tokfold._schema_records import RuleOrigin
from tokfold.grammar import Grammar

__all__ = ["origins_of"]

_WORD = re.compile(
    r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)', re.DOTALL
)
"""What grammar text is made of, names among it; not those within literals and classes."""


def origins_of(grammar: Grammar) -> Mapping[str, RuleOrigin]:
    """The origins of rules, also of those that grammar text has for the states of automata.

    Such a rule has the origin of the first rule that leads to it through states alone.
    """
    origins = dict(grammar.rule_origins)
    if not origins:
        return origins
    called: dict[str, list[str]] = {}
    for line in str(grammar).splitlines():
        name, _, body = line.partition(" ::= ")
        called[name] = [found for match in _WORD.finditer(body) if (found := match["name"])]
    for origin, work in [(origin, [name]) for name, origin in origins.items()]:
        while work:
            for callee in called.get(work.pop(), ()):
                if callee not in origins:
                    origins[callee] = origin
                    work.append(callee)
    return origins
