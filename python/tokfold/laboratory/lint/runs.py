"""Runs of optional parts that are counts: ``x? x? x?`` and ``(x (x (x)?)?)?``."""

from __future__ import annotations

from collections.abc import Iterator

from tokfold.laboratory.form import Expr, Repeat, Seq
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding, few
from tokfold.laboratory.lint.rewriting import in_rule, sequence
from tokfold.laboratory.lint.texts import expr_text, shortened

__all__ = ["optional_runs"]

MIN_NESTED = 3
"""Levels of a nest that is told; ``(x x?)?`` reads well enough."""


def optional_runs(facts: Facts, notes: list[str]) -> Iterator[Finding]:
    """Findings of both kinds, in the rules that are reached."""
    for name in facts.bodies:
        if name in facts.reachable:
            yield from few(_rows(facts, name), notes)
            yield from few(_nests(facts, name), notes)


def _finding(facts: Facts, name: str, old: Expr, new: Expr, count: Expr, part: Expr) -> Finding:
    return Finding(
        "optional-run",
        f"optional parts one after the other: this is {shortened(expr_text(facts.form, count))}",
        facts.place(name, part),
        name,
        f"write {shortened(expr_text(facts.form, count))}",
        in_rule(facts.form, name, old, new),
    )


def _rows(facts: Facts, name: str) -> Iterator[Finding]:
    for expr in facts.exprs_of[name]:
        if not isinstance(expr, Seq):
            continue
        made: list[Expr] = []
        told: list[tuple[Repeat, Expr]] = []
        at = 0
        while at < len(expr.parts):
            base = _base(expr.parts[at])[0]
            end, least, most, optional = at, 0, 0, 0
            while end < len(expr.parts):
                body, low, high = _base(expr.parts[end])
                if body is not base or high is None:
                    break
                least, most = least + low, most + high
                optional += (low, high) == (0, 1)
                end += 1
            if optional >= 2:
                made.append(Repeat(base, least, most))
                told.append((Repeat(base, least, most), expr.parts[at]))
                at = end
            else:
                made.append(expr.parts[at])
                at += 1
        new = sequence(made)
        for count, part in told:
            yield _finding(facts, name, expr, new, count, part)


def _base(part: Expr) -> tuple[Expr, int, int | None]:
    """What a part repeats, and how often."""
    if isinstance(part, Repeat) and part.most != 0:
        return part.body, part.least, part.most
    return part, 1, 1


def _nests(facts: Facts, name: str) -> Iterator[Finding]:
    levels: dict[Expr, tuple[Expr, int]] = {}
    """Of a nest: what is read at each level, and how many levels there are."""
    inner: set[Expr] = set()
    for expr in facts.exprs_of[name]:
        if not isinstance(expr, Repeat) or (expr.least, expr.most) != (0, 1):
            continue
        levels[expr] = expr.body, 1
        if isinstance(expr.body, Seq):
            *head, last = expr.body.parts
            if last in levels and levels[last][0] is sequence(head):
                levels[expr] = levels[last][0], levels[last][1] + 1
                inner.add(last)
    for expr, (base, depth) in levels.items():
        if depth >= MIN_NESTED and expr not in inner:
            count = Repeat(base, 0, depth)
            yield _finding(facts, name, expr, count, count, expr)
