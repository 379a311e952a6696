"""Rules and alternatives that no string needs."""

from __future__ import annotations

from collections import defaultdict

from tokfold.laboratory.form import Alt, Chars, Expr, Ref, Repeat, children, postorder
from tokfold.laboratory.optimize.algebra import NONE, alt, alternatives, substituted
from tokfold.laboratory.optimize.system import System

__all__ = ["drop_cycles", "drop_unproductive", "drop_unreachable"]


def drop_unreachable(system: System) -> bool:
    """Take away rules that the root does not reach.

    Law: the least solution of a system of equations in the root does not depend on equations that
    its own do not mention, directly or not.
    """
    names = system.references()
    reached = {system.root}
    work = [system.root]
    while work:
        fresh = names[work.pop()] - reached
        reached |= fresh
        work += fresh
    gone = [name for name in system.rules if name not in reached]
    for name in gone:
        system.drop(name, "drop an unreachable rule")
    return bool(gone)


def drop_unproductive(system: System) -> bool:
    """Take away alternatives that name rules without strings.

    Law: such a rule is the empty language in the least solution, and ``x none = none``,
    ``x | none = x``. Rules that are fixed count as productive. Where the root itself has no
    strings, nothing is done.
    """
    productive = _productive(system)
    if system.root not in productive:
        return False
    bad = {name: NONE for name in system.rules if name not in productive}
    if not bad:
        return False
    changed = False
    for name in system.open_rules():
        if name in bad:
            continue  # nothing will name it
        after = substituted(system.rules[name], bad)
        changed |= system.put(name, after, "drop unproductive alternatives")
    return changed


def _productive(system: System) -> set[str]:
    """The rules that have strings: a least fixpoint, by counting what each expression waits for."""
    roots = [system.rules[name] for name in system.open_rules()]
    waiting: dict[Expr, int] = {}
    parents: defaultdict[Expr, list[Expr]] = defaultdict(list)
    work: list[Expr] = []
    for node in postorder(roots):
        below = children(node)
        if isinstance(node, Ref):
            waiting[node] = 1
            if node.name in system.fixed:
                work.append(node)
            continue
        free = not below or (isinstance(node, Repeat) and node.least == 0)
        waiting[node] = 0 if free else 1 if isinstance(node, Alt) else len(below)
        for child in below:
            parents[child].append(node)
        if free and not (isinstance(node, Chars) and not node.ranges):
            work.append(node)
    heads: defaultdict[Expr, list[str]] = defaultdict(list)
    for name in system.open_rules():
        heads[system.rules[name]].append(name)
    done: set[Expr] = set()
    found = set(system.fixed)
    while work:
        node = work.pop()
        if node in done:
            continue
        done.add(node)
        for name in heads[node]:
            found.add(name)
            if Ref(name) in waiting:
                work.append(Ref(name))
        for parent in parents[node]:
            waiting[parent] -= 1
            if waiting[parent] == 0:
                work.append(parent)
    return found


def drop_cycles(system: System) -> bool:
    """Take away alternatives of a rule that are the rule itself.

    Law: the least X with X = X | Y is that of X = Y.
    """
    return system.each("drop a rule's own alternative", _without_itself)


def _without_itself(name: str, body: Expr) -> Expr:
    parts = alternatives(body)
    kept = [part for part in parts if not (isinstance(part, Ref) and part.name == name)]
    return body if len(kept) == len(parts) else alt(kept)
