"""Rules put in place of their names.

Law (the paper, definition 30 and Lemma 8): an equation may be unfolded in another. All names of a
rule in a right-hand side are unfolded at once, into the expression that the rule has. A rule that
names itself is never unfolded, so every unfolding ends; one that names itself through others may
be, since the least solution of ``X = F(X, Y), Y = G(X, Y)`` is that of
``X = F(X, G(X, Y)), Y = G(X, Y)``. The start rule is not unfolded (the side condition of the
lemma; it would be sound, and the rule would stay).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from tokfold.laboratory.form import Expr, Ref, below
from tokfold.laboratory.optimize.algebra import references, size, substituted
from tokfold.laboratory.optimize.facts import Facts, width
from tokfold.laboratory.optimize.system import System

__all__ = ["inline_root", "inline_small", "inline_wide"]

MAX_SIZE = 48
MAX_GROWTH = 150
WIDE = 8


def inline_root(system: System) -> bool:
    """``root ::= A`` becomes the right-hand side of A, where nothing else names A."""
    body = system.rules[system.root]
    if not isinstance(body, Ref) or body.name in system.fixed or body.name == system.root:
        return False
    inner = system.rules[body.name]
    if body.name in system.named or body.name in references(inner):
        return False
    if any(
        name != system.root and body.name in names for name, names in system.references().items()
    ):
        return False
    return system.put(system.root, inner, "inline")


def inline_small(system: System, most: int = 3) -> bool:
    """Unfold rules that are a class, a literal or the like: of at most ``most`` parts, no names."""
    return _inline(system, lambda name, body: size(body) <= most and not references(body))


def inline_wide(system: System, least: int = WIDE) -> bool:
    """Unfold rules that can end with ``least`` ASCII characters: identifiers, numbers, text.

    A token that runs past the end of such a rule cannot be settled when XGrammar compiles; put in
    place, the rule has no end of its own. Only rules that lead back to themselves in no way, of at
    most ``MAX_SIZE``, and no more than ``MAX_GROWTH`` for all uses of one: each copy costs the
    engine when it compiles.
    """
    facts, recursive = Facts(system), system.recursive()
    return _inline(
        system,
        lambda name, body: (
            size(body) <= MAX_SIZE
            and name not in recursive
            and width(facts.rules[name].last) >= least
        ),
    )


def _inline(system: System, chosen: Callable[[str, Expr], bool]) -> bool:
    """Unfold the chosen rules that do not name themselves, callees first."""
    uses = _uses(system)
    users: defaultdict[str, set[str]] = defaultdict(set)
    for other in system.open_rules():
        for callee in references(system.rules[other]):
            users[callee].add(other)
    changed = False
    for name in _callees_first(system):
        body = system.rules[name]
        if name in system.fixed or name == system.root or not uses[name]:
            continue
        if name in references(body) or not chosen(name, body):
            continue
        if (uses[name] - 1) * size(body) > MAX_GROWTH:
            continue
        inlined: Mapping[str, Expr] = {name: body}
        for other in sorted(users[name] - {name}):
            after = substituted(system.rules[other], inlined)
            changed |= system.put(other, after, f"inline {name}")
            for callee in references(body):
                users[callee].add(other)
    return changed


def _uses(system: System) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name in system.open_rules():
        counts.update(node.name for node in below(system.rules[name]) if isinstance(node, Ref))
    return counts


def _callees_first(system: System) -> list[str]:
    names = system.references()
    order: list[str] = []
    seen: set[str] = set()
    work = [(system.root, False)]
    while work:
        name, done = work.pop()
        if done:
            order.append(name)
        elif name not in seen:
            seen.add(name)
            work.append((name, True))
            work += [(callee, False) for callee in sorted(names[name]) if callee not in seen]
    return order
