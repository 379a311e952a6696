"""A grammar without empty right-hand sides and common beginnings, parse for parse the same."""

from __future__ import annotations

from itertools import product

from tokfold._quoting import quoted
from tokfold.laboratory.fidelity.components import strong_components
from tokfold.laboratory.fidelity.errors import AmbiguousGrammarError, UnambiguityUnknownError
from tokfold.laboratory.fidelity.productions import Productions, Symbol

__all__ = ["count_empty", "factored", "without_empty"]

_MOST_NULLABLE = 12
"""In one right-hand side: it is written out with and without each."""
_MOST_SYMBOLS = 1_000_000


def count_empty(productions: Productions) -> None:
    """Check that no rule derives the empty string in two ways, and none derives only itself.

    Args:
        productions: trimmed.

    Raises:
        AmbiguousGrammarError: a rule does.
    """
    nullable = productions.nullable()
    edges: list[list[int]] = []
    empties: list[int] = []
    for body in productions.rules:
        units: set[int] = set()
        empty = 0
        for rhs in body:
            solid = [s for s in rhs if s not in nullable]
            if not solid:
                empty += 1
                units |= {s for s in rhs if isinstance(s, int)}
            elif len(solid) == 1 and isinstance(solid[0], int):
                units.add(solid[0])
        empties.append(empty)
        edges.append(sorted(units))
    for members in strong_components(edges):
        if len(members) > 1 or members[0] in edges[members[0]]:
            names = [productions.names[m] for m in members]
            raise AmbiguousGrammarError(
                f"the grammar is ambiguous without bound: the rule {quoted(names[0])} derives "
                f"itself (by way of {', '.join(map(repr, names))}), so its strings have parses "
                "without end. Take the cycle out, and do not repeat what may be empty",
                names[0],
                None,
            )
    for lhs, empty in enumerate(empties):
        if empty > 1:
            name = productions.names[lhs]
            raise AmbiguousGrammarError(
                f"the grammar is ambiguous: the rule {quoted(name)} derives the empty string in "
                "two ways. Leave one of the alternatives non-empty",
                name,
                b"",
            )


def without_empty(productions: Productions) -> Productions:
    """The same strings less the empty one, with one parse for each parse before.

    Args:
        productions: checked by :func:`count_empty`: where a symbol may be empty, it is so in one
            way, so that leaving it out stands for that one.

    Raises:
        UnambiguityUnknownError: a right-hand side has too many symbols that may be empty.
    """
    nullable = productions.nullable()
    rules = []
    size = 0
    for lhs, body in enumerate(productions.rules):
        kept: list[tuple[Symbol, ...]] = []
        for rhs in body:
            maybe = sum(symbol in nullable for symbol in rhs)
            if maybe > _MOST_NULLABLE:
                raise UnambiguityUnknownError(
                    f"a right-hand side of {quoted(productions.names[lhs])} has {maybe} symbols "
                    f"that may be empty, more than {_MOST_NULLABLE}: the check does not write it "
                    "out. Split it into rules, or pass assume_unambiguous=True if you know"
                )
            size += (len(rhs) + 1) << maybe
            if size > _MOST_SYMBOLS:
                raise UnambiguityUnknownError(
                    f"written out without empty rules, the grammar has more than {_MOST_SYMBOLS:,} "
                    "symbols, too many to check: pass assume_unambiguous=True if you know"
                )
            choices = [((s,), ()) if s in nullable else ((s,),) for s in rhs]
            for chosen in product(*choices):
                flat = tuple(symbol for part in chosen for symbol in part)
                if flat:
                    kept.append(flat)
        rules.append(tuple(kept))
    return Productions(productions.names, tuple(rules), productions.start).trimmed()


def factored(productions: Productions) -> tuple[Productions, list[tuple[int, Symbol]]]:
    """The same strings and parses, with no two alternatives that begin alike and go on.

    Long lists of words become trees, so that there are few pairs of alternatives to tell apart.

    Args:
        productions: without empty right-hand sides; none are made.

    Returns:
        the productions; and for each nonterminal that is new where it comes from: one, and what
        stands before it there.
    """
    origins: list[tuple[int, Symbol]] = []
    names = list(productions.names)
    rules: list[tuple[tuple[Symbol, ...], ...]] = list(productions.rules)
    at = 0
    while at < len(rules):
        kept: list[tuple[Symbol, ...]] = []
        groups: dict[Symbol, list[tuple[Symbol, ...]]] = {}
        for rhs in rules[at]:
            if len(rhs) == 1:
                kept.append(rhs)
            else:
                groups.setdefault(rhs[0], []).append(rhs[1:])
        for first, rests in groups.items():
            if len(rests) == 1:
                kept.append((first, *rests[0]))
            else:
                kept.append((first, len(rules)))
                names.append(names[at])
                origins.append((at, first))
                rules.append(tuple(rests))
        rules[at] = tuple(kept)
        at += 1
    return Productions(tuple(names), tuple(rules), productions.start), origins
