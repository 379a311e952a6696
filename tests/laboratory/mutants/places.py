"""Where in a form a thing stands, what the form is with another thing there, and the way to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tokfold.laboratory.form import EMPTY, Alt, Expr, Form, FormRule, Ref, Repeat, Seq, children

Path = tuple[int, ...]
"""From a body to a part of it: which child, which child of that, ..."""


def sequence(parts: Iterable[Expr]) -> Expr:
    """One after the other, however many."""
    kept = [part for part in parts if part is not EMPTY]
    return Seq(kept) if len(kept) > 1 else kept[0] if kept else EMPTY


def choice(parts: Iterable[Expr]) -> Expr:
    """One of them, at least one."""
    kept = tuple(parts)
    return Alt(kept) if len(kept) > 1 else kept[0]


def with_children(expr: Expr, parts: Iterable[Expr]) -> Expr:
    """The same kind of expression of other parts."""
    if isinstance(expr, Seq):
        return Seq(parts)
    if isinstance(expr, Alt):
        return Alt(parts)
    assert isinstance(expr, Repeat)
    (body,) = parts
    return Repeat(body, expr.least, expr.most)


def occurrences(body: Expr) -> list[tuple[Path, Expr]]:
    """Every part of a body with the way to it, outside first, in the order of the text."""
    found: list[tuple[Path, Expr]] = []
    work: list[tuple[Path, Expr]] = [((), body)]
    while work:
        path, expr = work.pop()
        found.append((path, expr))
        below = [((*path, number), child) for number, child in enumerate(children(expr))]
        work.extend(reversed(below))
    return found


def along(body: Expr, path: Path) -> list[Expr]:
    """What lies on the way, from the body to the part itself."""
    way = [body]
    for number in path:
        way.append(children(way[-1])[number])
    return way


def replaced(body: Expr, path: Path, new: Expr) -> Expr:
    """The body with something else in one place."""
    *parents, _ = along(body, path)
    for parent, number in zip(reversed(parents), reversed(path), strict=True):
        parts = list(children(parent))
        parts[number] = new
        new = with_children(parent, parts)
    return new


def through(body: Expr, path: Path, probe: Expr) -> Expr:
    """What the body derives when the part at the path is used, as ``probe``, at least once."""
    *parents, _ = along(body, path)
    for parent, number in zip(reversed(parents), reversed(path), strict=True):
        if isinstance(parent, Seq):
            probe = replaced(parent, (number,), probe)
        elif isinstance(parent, Repeat):
            probe = sequence([probe, *[parent.body] * (parent.least - 1)])
    return probe


def mapped(body: Expr, change: Mapping[Expr, Expr]) -> Expr:
    """The body with some expressions in the place of others, wherever they stand."""
    done: dict[Expr, Expr] = {}
    work: list[tuple[Expr, bool]] = [(body, False)]
    while work:
        expr, ready = work.pop()
        if expr in done:
            continue
        if expr in change:
            done[expr] = change[expr]
        elif not children(expr):
            done[expr] = expr
        elif ready:
            done[expr] = with_children(expr, (done[child] for child in children(expr)))
        else:
            work.append((expr, True))
            work.extend((child, False) for child in children(expr))
    return done[body]


def references(body: Expr) -> list[tuple[Path, str]]:
    """The rules that a body names, as often as it does."""
    return [(path, expr.name) for path, expr in occurrences(body) if isinstance(expr, Ref)]


def with_bodies(form: Form, bodies: dict[str, Expr], root: str | None = None) -> Form:
    """The form with other right-hand sides; new rules come last, those no longer in use go."""
    all_of = {name: bodies.get(name, rule.body) for name, rule in form.rules.items()} | bodies
    start = root or form.root
    used, work = {start}, [start]
    while work:
        new = {name for _, name in references(all_of[work.pop()])} - used
        used |= new
        work.extend(new)
    rules = [FormRule(name, body) for name, body in all_of.items() if name in used]
    return form.with_rules(rules, start)


def fresh(form: Form, stem: str) -> str:
    """A name that no rule has."""
    number = 1
    while f"{stem}_{number}" in form.rules:
        number += 1
    return f"{stem}_{number}"


@dataclass(frozen=True)
class Users:
    """Which rules name which, and which are recursive."""

    of: Mapping[str, tuple[tuple[str, Path], ...]]
    recursive: frozenset[str]

    @classmethod
    def among(cls, form: Form) -> Users:
        """The users of each rule of a form."""
        of: defaultdict[str, list[tuple[str, Path]]] = defaultdict(list)
        named: dict[str, set[str]] = {}
        for rule in form.rules.values():
            uses = references(rule.body)
            named[rule.name] = {name for _, name in uses}
            for path, name in uses:
                of[name].append((rule.name, path))
        recursive = set()
        for name in form.rules:
            seen: set[str] = set()
            work = [name]
            while work:
                new = named[work.pop()] - seen
                seen |= new
                work.extend(new)
            if name in seen:
                recursive.add(name)
        return cls({name: tuple(uses) for name, uses in of.items()}, frozenset(recursive))
