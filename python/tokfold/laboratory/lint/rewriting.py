"""Small rewrites of rules that keep the language, as the mends of findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tokfold.laboratory.form import (
    EMPTY,
    Alt,
    Chars,
    Empty,
    Expr,
    Form,
    Ref,
    Repeat,
    Seq,
    postorder,
)
from tokfold.laboratory.lint.findings import Rewrite, Same
from tokfold.laboratory.lint.texts import rule_text

__all__ = [
    "alternatives",
    "beginnings",
    "choice",
    "factored",
    "in_rule",
    "optional",
    "renamed",
    "sequence",
    "shared",
    "stripped",
    "substituted",
    "united",
]


def sequence(parts: Iterable[Expr]) -> Expr:
    """One after the other, empty parts left out and sequences in it spread."""
    flat: list[Expr] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Seq) else () if part is EMPTY else (part,))
    return EMPTY if not flat else flat[0] if len(flat) == 1 else Seq(flat)


def choice(parts: Iterable[Expr]) -> Expr | None:
    """One of several, each once; ``None`` of none."""
    once = list(dict.fromkeys(parts))
    return None if not once else once[0] if len(once) == 1 else Alt(once)


def optional(expr: Expr) -> Expr:
    """An expression or nothing."""
    return expr if isinstance(expr, Empty) else Repeat(expr, 0, 1)


def alternatives(expr: Expr) -> Sequence[Expr]:
    """What an expression is one of."""
    return expr.parts if isinstance(expr, Alt) else (expr,)


def substituted(root: Expr, changes: Mapping[Expr, Expr]) -> Expr:
    """An expression with others in the place of some of its parts, wherever they stand."""
    made: dict[Expr, Expr] = {}
    for expr in postorder([root]):
        if expr in changes:
            made[expr] = changes[expr]
        elif isinstance(expr, Seq):
            parts = [made[part] for part in expr.parts]
            made[expr] = expr if parts == list(expr.parts) else sequence(parts)
        elif isinstance(expr, Alt):
            parts = [made[part] for part in expr.parts]
            made[expr] = expr if parts == list(expr.parts) else Alt(parts)
        elif isinstance(expr, Repeat):
            made[expr] = Repeat(made[expr.body], expr.least, expr.most)
        else:
            made[expr] = expr
    return made[root]


def in_rule(form: Form, name: str, old: Expr, new: Expr, same: Same = Same.LANGUAGE) -> Rewrite:
    """The rewrite of a rule in which one expression takes another's place."""
    rule = form.rules[name]
    changed = replace(rule, body=substituted(rule.body, {old: new}))
    return Rewrite(((name, rule_text(form, changed)),), same)


def renamed(form: Form, callers: Iterable[str], old: str, new: Expr) -> list[tuple[str, str]]:
    """The rules that name ``old``, with ``new`` in its place."""
    changes: dict[Expr, Expr] = {Ref(old): new}
    found = []
    for name in callers:
        rule = form.rules[name]
        found.append((name, rule_text(form, replace(rule, body=substituted(rule.body, changes)))))
    return found


def stripped(expr: Expr, nullable: frozenset[Expr]) -> Expr | None:
    """An expression whose unbounded loop is that of ``expr``, and which is not empty.

    Args:
        expr: may be empty.
        nullable: what may be empty.

    Returns:
        ``None`` where that takes more than rearranging: a rule that may be empty is called.
    """
    found: list[Expr] = []
    work = [expr]
    while work:
        top = work.pop()
        if top not in nullable:
            found.append(top)
        elif isinstance(top, Alt | Seq):
            # Each part of a sequence that may be empty can stand alone: the others are.
            work.extend(reversed(top.parts))
        elif isinstance(top, Repeat):
            if top.most != 0:
                work.append(top.body)
        elif not isinstance(top, Empty):
            return None
    return choice(found)


def shared(parts: Sequence[Expr]) -> Sequence[Expr]:
    """What all of some alternatives begin with."""
    rows = [part.parts if isinstance(part, Seq) else (part,) for part in parts]
    count = 0
    while all(len(row) > count for row in rows) and len({row[count] for row in rows}) == 1:
        count += 1
    return rows[0][:count]


def beginnings(expr: Alt) -> list[list[Expr]]:
    """The alternatives of a choice by what they begin with, in the order of the first of each."""
    groups: dict[Expr, list[Expr]] = {}
    for part in dict.fromkeys(expr.parts):
        head = part.parts[0] if isinstance(part, Seq) else part
        groups.setdefault(head, []).append(part)
    return list(groups.values())


def factored(group: Sequence[Expr]) -> Expr:
    """Alternatives that begin alike, with what they begin with written once."""
    head = shared(group)
    rests = [
        sequence(part.parts[len(head) :]) if isinstance(part, Seq) else EMPTY for part in group
    ]
    spread = [x for rest in rests if rest is not EMPTY for x in alternatives(rest)]
    rest = choice(spread)
    if rest is None:
        return sequence(head)
    return sequence([*head, optional(rest) if EMPTY in rests else rest])


def united(parts: Iterable[Chars]) -> Chars:
    """The characters of any of some classes."""
    return Chars(pair for part in parts for pair in part.ranges)
