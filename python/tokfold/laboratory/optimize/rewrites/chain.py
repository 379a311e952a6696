"""Chains of operator levels become one level.

The law. ``A = B (O B)*`` and ``B = C (Q C)*`` give ``A = C ((O | Q) C)*``, for any languages.

Proof. Write q = Q C and o = O C. Then ``B = C q*`` and ``A = C q* (o q*)*``, and by the denesting
law of Kleene algebra ``(q | o)* = q* (o q*)*``. So ``A = C (q | o)*``, which is
``C ((Q | O) C)*``. Putting the right-hand side of B in place of B is an unfolding, which keeps the
least solution also where C leads back to A, as it does through parentheses.

The levels are what gives operators their precedence: the strings stay, the trees do not.
"""

from __future__ import annotations

from tokfold.laboratory.form import Expr, Ref, Repeat
from tokfold.laboratory.optimize.algebra import alt, parts_of, rebuilt, seq, star
from tokfold.laboratory.optimize.system import System

__all__ = ["denest_chains", "denested", "listed"]


def denest_chains(system: System) -> bool:
    """Flatten chains of levels, and slide and denest repetitions wherever they stand."""
    changed = system.each("slide or denest repetitions", lambda _, body: rebuilt(body, denested))
    again = True
    while again:
        again = False
        for name in system.open_rules():
            found = listed(system.rules[name])
            if found is None or not isinstance(found[0], Ref):
                continue
            below = found[0].name
            inner = None if below in system.fixed else listed(system.rules[below])
            if inner is None or below == name:
                continue
            unit, between = inner
            if found[0] is unit:
                continue  # the level below repeats itself: nothing would be gained
            flat = seq((unit, star(seq((alt((found[1], between)), unit)))))
            again |= system.put(name, flat, "flatten a chain of levels")
        changed |= again
    return changed


def listed(body: Expr) -> tuple[Expr, Expr] | None:
    """U and O of a right-hand side of the form ``U (O U)*``, else None."""
    parts = parts_of(body)
    if len(parts) < 2:
        return None
    last = parts[-1]
    if not (isinstance(last, Repeat) and (last.least, last.most) == (0, None)):
        return None
    unit, inside = parts[:-1], parts_of(last.body)
    if len(inside) <= len(unit) or inside[len(inside) - len(unit) :] != unit:
        return None
    return seq(unit), seq(inside[: len(inside) - len(unit)])


def denested(expr: Expr) -> Expr:
    """Slide and denest repetitions in a sequence.

    Laws: ``(x y)* x = x (y x)*``, of which the second is taken; ``x* (y x*)* = (x | y)*``.
    """
    parts = list(parts_of(expr))
    if len(parts) < 2:
        return expr
    for at, part in enumerate(parts):
        if not (isinstance(part, Repeat) and (part.least, part.most) == (0, None)):
            continue
        inside = parts_of(part.body)
        for count in range(1, len(inside)):
            if tuple(parts[at + 1 : at + 1 + count]) == inside[:count]:
                turned = star(seq((*inside[count:], *inside[:count])))
                return seq((*parts[:at], *inside[:count], turned, *parts[at + 1 + count :]))
        if at and len(inside) > 1 and parts[at - 1] is inside[-1]:
            before = parts[at - 1]
            if isinstance(before, Repeat) and (before.least, before.most) == (0, None):
                joined = star(alt((before.body, seq(inside[:-1]))))
                return seq((*parts[: at - 1], joined, *parts[at + 1 :]))
    return expr
