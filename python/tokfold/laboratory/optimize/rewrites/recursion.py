"""Recursion at the ends of a rule becomes repetition.

The law. Let X be the least language with ``X = X O X | X S | P X | B`` for languages O, S, P, B,
any of which may have the empty string or none at all. Then ``X = U (O U)*`` with ``U = P* B S*``.

Proof. Y = U (O U)* is contained in X: ``P^n B S^m`` is, by n + m uses of ``P X`` and ``X S``, and
so is u o u' ... by uses of ``X O X``. Conversely Y is closed under the four: B is in U; ``P Y`` is
in Y since ``P U`` is in U; ``Y S`` is, since Y is (U O)* U as well and ``U S`` is in U; and
``Y O Y = U (O U)* O U (O U)*`` is in ``U (O U)*``. X, the least that is closed, is contained in Y.

Two more ways of writing it. With ``V = P* B``, U is ``V S*``, and by the denesting law
``x* (y x*)* = (x | y)*`` the whole is ``V (S | O V)*``, where nothing stands twice but V. And
``V (S | O V)*`` is the least X with ``X = V | X S | X O V`` (Arden's lemma).

O, S, P and B may name the rule again, and rules that lead back to it: by the diagonal rule of
fixpoints, ``mu X. F(X, X) = mu Z. mu X. F(X, Z)``, the occurrences at the ends can be solved first,
the others as if they were another rule. Special cases: ``A ::= A x | y`` is ``y x*``,
``A ::= x A | y`` is ``x* y``, ``A ::= A A | b`` is ``b+``.

Source: the paper, section 10.3 (recursion normalization); the law in this generality is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokfold.laboratory.form import EMPTY, Alt, Expr, Ref, Repeat
from tokfold.laboratory.optimize.algebra import (
    alt,
    alternatives,
    parts_of,
    references,
    seq,
    size,
    star,
)
from tokfold.laboratory.optimize.system import System

__all__ = [
    "Recursion",
    "expose_recursion",
    "normalize_ambiguity",
    "normalize_recursion",
    "solved",
]

MAX_ALTERNATIVES = 128
MAX_UNFOLDINGS = 16
MAX_UNIT = 6
"""The size up to which U is written twice; what is larger becomes a rule."""


def normalize_recursion(system: System, max_unit: int = MAX_UNIT) -> bool:
    """Solve every rule that begins or ends with itself, by repetition.

    Law: that of this module, as ``X = V (S | O V)*`` with ``V = P* B``. A large V becomes a rule of
    its own where it would stand twice.
    """
    changed = False
    for name in system.open_rules():
        found = solved(name, system.rules[name])
        if found is None:
            continue
        law = "recursion to repetition"
        unit, between, after = found.unit(), alt(found.both), alt(found.after)
        if found.both and size(unit) > max_unit and not isinstance(unit, Ref):
            unit = Ref(system.add(name, unit, "name a part"))
        loop = star(alt((after, seq((between, unit)))))
        changed |= system.put(name, seq((unit, loop)), law)
    return changed


def normalize_ambiguity(system: System, is_loop: Callable[[Expr], bool]) -> bool:
    """Solve rules that begin and end with themselves, by left recursion.

    Law: ``X = V (S | O V)*`` with ``V = P* B`` is the least X with ``X = V | X S | X O V``, and V
    the least with ``V = B | P V``. Engines that parse as Earley did share what they read of a rule
    that begins at one place, so that calls cost less there than in repetitions; where V begins with
    no call but of rules without calls, it is a repetition all the same. Recursion at one
    end only is kept, unless ``is_loop`` says of what is repeated that it is better repeated; then
    as :func:`normalize_recursion` does.
    """
    changed = False
    for name in system.open_rules():
        found = solved(name, system.rules[name])
        if found is None:
            continue
        if found.both and _begins_plainly(system, found):
            unit = found.unit()
            if size(unit) > MAX_UNIT:
                unit = Ref(system.add(name, unit, "name a part"))
            passes = (*found.after, seq((alt(found.both), unit)))
            changed |= system.put(name, seq((unit, star(alt(passes)))), "recursion to repetition")
            continue
        if not found.both:
            if is_loop(alt((*found.before, *found.after))):
                whole = seq((found.unit(), star(alt(found.after))))
                changed |= system.put(name, whole, "recursion to repetition")
            continue
        unit = alt(found.others)
        if found.before:
            inner = system.add(name, unit, "name a part")
            right = (seq((part, Ref(inner))) for part in found.before)
            system.put(inner, alt((unit, *right)), "name a part")
            unit = Ref(inner)
        elif size(unit) > MAX_UNIT and not isinstance(unit, Ref):
            unit = Ref(system.add(name, unit, "name a part"))
        left = [*(seq((Ref(name), part)) for part in found.after)]
        left.append(seq((Ref(name), alt(found.both), unit)))
        changed |= system.put(name, alt((unit, *left)), "ambiguity to left recursion")
    return changed


def _begins_plainly(system: System, found: Recursion) -> bool:
    """Whether what a rule begins with calls nothing that calls in turn."""
    for choice in (*found.before, *found.others):
        first = parts_of(choice)[:1]
        body = first[0] if first else EMPTY
        if isinstance(body, Ref):
            body = system.rules[body.name]
        if references(body):
            return False
    return True


@dataclass(frozen=True)
class Recursion:
    """The alternatives of a rule by where it stands in them: ``X O X``, ``X S``, ``P X``, ``B``.

    Attributes:
        both: the O.
        after: the S.
        before: the P.
        others: the B.
    """

    both: tuple[Expr, ...]
    after: tuple[Expr, ...]
    before: tuple[Expr, ...]
    others: tuple[Expr, ...]

    def unit(self) -> Expr:
        """``P* B``."""
        return seq((star(alt(self.before)), alt(self.others)))


def solved(name: str, body: Expr) -> Recursion | None:
    """A right-hand side taken apart; None where the rule stands at no end of it."""
    own = Ref(name)
    both: list[Expr] = []
    before: list[Expr] = []
    after: list[Expr] = []
    others: list[Expr] = []
    for part in alternatives(body):
        parts = parts_of(part)
        leads, trails = bool(parts) and parts[0] is own, bool(parts) and parts[-1] is own
        if leads and trails and len(parts) == 1:
            continue  # the rule itself adds nothing
        if leads and trails:
            both.append(seq(parts[1:-1]))
        elif leads:
            after.append(seq(parts[1:]))
        elif trails:
            before.append(seq(parts[:-1]))
        else:
            others.append(part)
    if not (both or before or after):
        return None
    return Recursion(tuple(both), tuple(after), tuple(before), tuple(others))


def expose_recursion(system: System) -> bool:
    """Bring names of a rule at the ends of its right-hand side into plain view.

    A choice at the end of an alternative is distributed, ``x (y A | z) = x y A | x z``, and a rule
    at an end whose own right-hand side leads back at that end is unfolded, if it does not name
    itself (Lemma 8; unfolding keeps the least solution also where the two name each other). That
    makes ``A ::= B x | y``, ``B ::= A z | w`` direct. At most ``MAX_UNFOLDINGS`` steps for each
    rule and ``MAX_ALTERNATIVES`` alternatives, else the rule stays as it is.
    """
    changed = False
    for name in system.open_rules():
        body = system.rules[name]
        after = _exposed(system, name, body)
        if after is not None:
            changed |= system.put(name, after, "unfold to show recursion")
    return changed


def _exposed(system: System, name: str, body: Expr) -> Expr | None:
    done: list[Expr] = []
    work = list(reversed(alternatives(body)))
    steps = 0
    bound = 4 * size(body) + 256
    while work:
        part = work.pop()
        opened = _opened(system, name, part)
        if opened is None:
            done.append(part)
            continue
        steps += 1
        work += reversed(opened)
        if steps > MAX_UNFOLDINGS or len(work) + len(done) > MAX_ALTERNATIVES:
            return None
    if not steps:
        return None
    result = alt(done)
    return result if size(result) <= bound else None


def _opened(system: System, name: str, part: Expr) -> list[Expr] | None:
    """The alternatives of a part with one end opened; None where there is nothing to open."""
    parts = parts_of(part)
    if not parts:
        return None
    for at in (0, -1):
        inside = _inside(system, name, parts[at], at)
        if inside is None:
            continue
        if at == 0:
            return [seq((choice, *parts[1:])) for choice in inside]
        return [seq((*parts[:-1], choice)) for choice in inside]
    return None


def _inside(system: System, name: str, end: Expr, at: int) -> list[Expr] | None:
    """The alternatives of what stands at an end, if one of them leads back to the rule there."""
    if isinstance(end, Ref):
        if end.name == name or end.name in system.fixed:
            return None
        body = system.rules[end.name]
        if end.name in references(body):
            return None
    elif isinstance(end, Alt) or (isinstance(end, Repeat) and (end.least, end.most) == (0, 1)):
        body = end
    else:
        return None
    found = list(alternatives(body))
    for choice in found:
        parts = parts_of(choice)
        if choice is not EMPTY and isinstance(parts[at], Ref) and parts[at] is Ref(name):
            return found
    return None
