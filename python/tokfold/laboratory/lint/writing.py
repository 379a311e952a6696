"""Checks of the way of writing: what could say the same with less."""

from __future__ import annotations

from collections.abc import Iterator

from tokfold.laboratory.form import (
    EMPTY,
    Alt,
    Chars,
    Expr,
    Literal,
    Macro,
    Place,
    Ref,
    Repeat,
    postorder,
)
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding, Rewrite, few
from tokfold.laboratory.lint.rewriting import (
    beginnings,
    choice,
    factored,
    in_rule,
    renamed,
    sequence,
    shared,
    stripped,
    united,
)
from tokfold.laboratory.lint.runs import optional_runs
from tokfold.laboratory.lint.texts import expr_text, shortened

__all__ = ["writing"]


REWRITTEN = 50
"""Names of names that get a rewrite: each may rewrite much of the grammar."""


def writing(facts: Facts, notes: list[str]) -> Iterator[Finding]:
    """Empty classes, loops over nothing, equal alternatives, delegation, optional runs."""
    for name in facts.bodies:
        if name not in facts.reachable:
            continue  # said to be unreachable already
        exprs = reversed(facts.exprs_of[name])
        yield from few((f for expr in exprs for f in _of(facts, name, expr)), notes)
    yield from optional_runs(facts, notes)
    yield from _delegation(facts)


def _of(facts: Facts, name: str, expr: Expr) -> Iterator[Finding]:
    if isinstance(expr, Chars) and not expr.ranges:
        yield _empty_class(facts, name, expr)
    elif isinstance(expr, Repeat):
        yield from _repeat(facts, name, expr)
    elif isinstance(expr, Alt):
        yield from _equal(facts, name, expr)
        yield from _prefixes(facts, name, expr)


def _shown(facts: Facts, expr: Expr) -> str:
    return shortened(expr_text(facts.form, expr))


def _empty_class(facts: Facts, name: str, expr: Chars) -> Finding:
    body = facts.bodies[name]
    rewrite = None
    if isinstance(body, Alt) and expr in body.parts:
        rest = choice(part for part in body.parts if part is not expr)
        rewrite = None if rest is None else in_rule(facts.form, name, body, rest)
    return Finding(
        "empty-class",
        "this class holds no character: nothing matches it",
        facts.place(name, expr),
        name,
        "write the characters that are meant, or remove what needs it; any character is `[^]`",
        rewrite,
    )


def _repeat(facts: Facts, name: str, expr: Repeat) -> Iterator[Finding]:
    if expr.most == 0:
        yield Finding(
            "never-repeated",
            f"{_shown(facts, expr.body)} is repeated zero times: it reads nothing",
            facts.place(name, expr),
            name,
            "remove it, or mend the bound",
            in_rule(facts.form, name, expr, EMPTY),
        )
        return
    loops = expr.most is None or expr.most > 1
    if loops and expr.body in facts.nullable:
        unbounded = expr.most is None
        made: Expr | None = None
        if unbounded:
            inner = stripped(expr.body, facts.nullable)
            made = None if inner is None else Repeat(inner, 0, None)
        elif isinstance(expr.body, Repeat) and expr.body.body not in facts.nullable:
            # At least one copy may be all there is, so the lower bound of either is zero.
            most = expr.body.most
            made = Repeat(expr.body.body, 0, None if most is None else most * (expr.most or 0))
        yield Finding(
            "nullable-loop",
            f"the loop {_shown(facts, expr)} goes over something that may be empty",
            facts.place(name, expr),
            name,
            "let the loop own the emptiness: what is repeated should read something"
            if made is None
            else f"write {_shown(facts, made)}",
            None if made is None else in_rule(facts.form, name, expr, made),
        )


def _equal(facts: Facts, name: str, expr: Alt) -> Iterator[Finding]:
    seen: dict[Expr, int] = {}
    double: list[Expr] = []
    for part in expr.parts:
        seen[part] = seen.get(part, 0) + 1
        if seen[part] == 2 and part in facts.productive:
            double.append(part)
    if double:
        rest = choice(expr.parts)
        assert rest is not None
        shown = ", ".join(_shown(facts, part) for part in double[:4])
        yield Finding(
            "duplicate-alternative",
            f"the alternative {shown} stands here more than once",
            _again(facts, name, expr, double[0]),
            name,
            "remove the second",
            in_rule(facts.form, name, expr, rest),
        )
    singles = [part for part in dict.fromkeys(expr.parts) if _class_of(part) is not None]
    meeting = _meeting(singles)
    if meeting:
        whole = united(c for c in map(_class_of, meeting) if c is not None)
        parts = [p for p in dict.fromkeys(expr.parts) if p not in meeting]
        at = min(expr.parts.index(part) for part in meeting)
        before = [p for p in expr.parts[:at] if p in parts]
        after = [p for p in parts if p not in before]
        merged = choice([*before, whole, *after])
        assert merged is not None
        yield Finding(
            "duplicate-alternative",
            "the alternatives "
            + ", ".join(_shown(facts, part) for part in meeting[:4])
            + " share characters",
            facts.place(name, meeting[1]),
            name,
            f"make them one class: {_shown(facts, whole)}",
            in_rule(facts.form, name, expr, merged),
        )


def _again(facts: Facts, name: str, expr: Alt, part: Expr) -> Place | None:
    """The second place of an alternative, after the beginning of its choice."""
    begin = facts.place(name, expr)
    places = [p for p in facts.places(name, part) if begin is None or p >= begin]
    return places[1] if len(places) > 1 else begin


def _class_of(part: Expr) -> Chars | None:
    """The one character that an alternative reads; ``None`` where it is no such."""
    if isinstance(part, Chars):
        return part if part.ranges else None
    if isinstance(part, Literal):
        text = part.data.decode("utf-8", "surrogatepass")
        return Chars([(ord(text), ord(text))]) if len(text) == 1 else None
    return None


def _meeting(singles: list[Expr]) -> list[Expr]:
    """Those of some alternatives of one character that share characters, in order."""
    spans = sorted(
        (first, last, number)
        for number, part in enumerate(singles)
        for first, last in getattr(_class_of(part), "ranges", ())
    )
    met: set[int] = set()
    end, owner = -1, -1
    for first, last, number in spans:
        if first <= end and number != owner:
            met |= {number, owner}
        if last > end:
            end, owner = last, number
    return [part for number, part in enumerate(singles) if number in met]


def _prefixes(facts: Facts, name: str, expr: Alt) -> Iterator[Finding]:
    live = [part for part in dict.fromkeys(expr.parts) if part in facts.productive]
    if len(live) < 2:
        return
    groups = beginnings(Alt(live))
    alike = [group for group in groups if _is_costly(facts, name, group)]
    if not alike:
        return
    shown = ", ".join(
        f"{_shown(facts, sequence(shared(group)))} ({len(group)} times)" for group in alike[:4]
    )
    made = choice(factored(group) if group in alike else x for group in groups for x in group)
    assert made is not None
    yield Finding(
        "unfactored-prefix",
        f"alternatives here begin alike: {shown}",
        facts.place(name, expr),
        name,
        "write what they begin with once, and a choice of the rests after it",
        in_rule(facts.form, name, expr, made),
    )


def _is_costly(facts: Facts, name: str, group: list[Expr]) -> bool:
    """Whether alternatives begin alike, and not only with characters or with the rule itself.

    Characters are shared by every engine, and the calls of a left-recursive rule are one call.
    """
    if len(group) < 2:
        return False
    head = shared(group)
    if head[0] is Ref(name):
        return False
    return any(
        part not in facts.nullable and any(isinstance(e, Ref) for e in postorder([part]))
        for part in head
    )


def _delegation(facts: Facts) -> Iterator[Finding]:
    names: dict[str, str] = {}
    for name, rule in facts.form.rules.items():
        plain = rule.options_of is None and rule.lookahead is None
        if isinstance(rule.body, Ref) and plain and name != facts.form.root:
            names[name] = rule.body.name
    called_by_macro = {r for e in facts.exprs if isinstance(e, Macro) for r in e.rules}
    inner = set(names.values())
    told = 0
    for name in names:
        if name in inner or name not in facts.useful:
            continue  # told with the one that names it
        chain = [name]
        while chain[-1] in names and names[chain[-1]] not in chain:
            chain.append(names[chain[-1]])
        target = chain[-1]
        if target in names:
            continue  # only itself: not productive, and told so
        rewrite = None
        told += 1
        if name not in called_by_macro and told <= REWRITTEN:
            rules: list[tuple[str, str | None]] = [
                *renamed(facts.form, facts.callers[name], name, Ref(target))
            ]
            rewrite = Rewrite((*rules, (name, None)))
        yield Finding(
            "delegation",
            f"{' is only '.join(chain[:5])}{' ...' if len(chain) > 5 else ''}",
            facts.place(name),
            name,
            f"write {target} where {name} is called, unless the name is for the reader",
            rewrite,
            {"chain": chain},
        )
