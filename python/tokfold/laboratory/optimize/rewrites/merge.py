"""Rules that are other rules by another name."""

from __future__ import annotations

from collections.abc import Mapping

from tokfold.laboratory.form import (
    Alt,
    Chars,
    Expr,
    Literal,
    Macro,
    Ref,
    Repeat,
    Seq,
    children,
    postorder,
)
from tokfold.laboratory.optimize.algebra import substituted
from tokfold.laboratory.optimize.system import System

__all__ = ["merge_equal", "remove_delegation"]

MAX_ROUNDS = 64


def remove_delegation(system: System) -> bool:
    """Put B in place of A where ``A ::= B``.

    Law: unfolding an equation, which keeps the least solution. A stays where a macro or a fixed
    rule names it, or where it is the root.
    """
    target: dict[str, str] = {}
    for name in system.open_rules():
        body = system.rules[name]
        if isinstance(body, Ref) and body.name != name:
            target[name] = body.name
    if not target:
        return False
    ends: dict[str, str | None] = {}
    for name in target:
        path: dict[str, None] = {}
        while name in target and name not in path and name not in ends:
            path[name] = None
            name = target[name]
        end = ends.get(name, None if name in path else name)
        ends.update(dict.fromkeys(path, end))  # None: names of each other only
    final: dict[str, Expr] = {name: Ref(end) for name, end in ends.items() if end is not None}
    return system.each("remove delegation", lambda _, body: substituted(body, final))


def merge_equal(system: System) -> bool:
    """Put one rule in place of all that are bisimilar to it.

    Law: if rules fall into classes such that the right-hand sides of a class are equal once each
    name is replaced by its class, then by induction over the rounds of the fixpoint iteration the
    rules of a class have one language. The coarsest such partition is found by refinement from one
    class; past ``MAX_ROUNDS`` rounds the finer one of equal right-hand sides, from below.
    """
    classes = _coarsest(system)
    first: dict[int, str] = {}
    for name in system.rules:
        if name not in system.fixed and (name == system.root or classes[name] not in first):
            first[classes[name]] = name
    renaming: dict[str, Expr] = {
        name: Ref(first[classes[name]])
        for name in system.open_rules()
        if first[classes[name]] != name
    }
    if not renaming:
        return False
    return system.each("merge equal rules", lambda _, body: substituted(body, renaming))


def _coarsest(system: System) -> dict[str, int]:
    order = postorder(system.rules[name] for name in system.open_rules())
    # A fixed rule is equal to itself only.
    apart = {name: -1 - index for index, name in enumerate(system.rules) if name in system.fixed}
    classes = {name: apart.get(name, 0) for name in system.rules}
    for _ in range(MAX_ROUNDS):
        after = _refined(system, order, classes, apart)
        if len(set(after.values())) == len(set(classes.values())):
            return after
        classes = after
    classes = {name: apart.get(name, index) for index, name in enumerate(system.rules)}
    while True:
        after = _refined(system, order, classes, apart)
        if len(set(after.values())) == len(set(classes.values())):
            return after
        classes = after


def _refined(
    system: System, order: list[Expr], classes: Mapping[str, int], apart: Mapping[str, int]
) -> dict[str, int]:
    """Rules by their right-hand sides, names standing for their classes."""
    numbers: dict[object, int] = {}
    of: dict[Expr, int] = {}
    for node in order:
        of[node] = numbers.setdefault(_key(node, of, classes), len(numbers))
    return {name: apart.get(name, of.get(body, 0)) for name, body in system.rules.items()}


def _key(node: Expr, of: Mapping[Expr, int], classes: Mapping[str, int]) -> object:
    match node:
        case Ref():
            return "rule", classes[node.name]
        case Literal():
            return "literal", node.data
        case Chars():
            return "class", node.ranges
        case Macro():
            return "macro", node
        case Alt():
            return "choice", frozenset(of[part] for part in node.parts)
        case Seq():
            return "sequence", tuple(of[part] for part in node.parts)
        case Repeat():
            return "repeat", of[node.body], node.least, node.most
        case _:
            assert not children(node)
            return "empty"
