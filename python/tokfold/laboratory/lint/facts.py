"""What can be known of a grammar without running it: least fixpoints and cycles, exactly.

All of it is computed on interned expressions, in time linear in the grammar but for the sets of
first characters. A macro's own language is not looked into: it counts as productive and as not
empty, which can hide a finding and never makes one up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tokfold._lazy import lazy
from tokfold.laboratory.form import (
    Alt,
    Chars,
    Empty,
    Expr,
    Form,
    Literal,
    Macro,
    Place,
    Ref,
    Repeat,
    Seq,
    children,
    postorder,
)
from tokfold.laboratory.lint.cycles import components, is_loop, reached

__all__ = ["Facts"]


class Facts:
    """What holds of the rules of a form.

    Attributes:
        form: the form.
        exprs: all its expressions, children before parents.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.bodies: Mapping[str, Expr] = {n: rule.body for n, rule in form.rules.items()}
        self.exprs = postorder(self.bodies.values())

    # --- places -----------------------------------------------------------------------------------

    def places(self, rule: str, expr: Expr) -> list[Place]:
        """Where an expression stands in a rule, as often as it does."""
        return self._places.get((rule, expr), [])

    def place(self, rule: str, expr: Expr | None = None) -> Place | None:
        """Where an expression first stands in a rule; the rule's own place where it is not told."""
        found = [] if expr is None else self.places(rule, expr)
        return found[0] if found else self.form.rules[rule].place

    @lazy
    def _places(self) -> dict[tuple[str, Expr], list[Place]]:
        found: dict[tuple[str, Expr], list[Place]] = {}
        for name, pairs in self.form.places.items():
            for expr, place in pairs:
                found.setdefault((name, expr), []).append(place)
        return found

    @lazy
    def exprs_of(self) -> Mapping[str, list[Expr]]:
        """The expressions of each rule, each once, children before parents."""
        return {name: postorder([body]) for name, body in self.bodies.items()}

    @lazy
    def callers(self) -> Mapping[str, list[str]]:
        """For each rule the rules that name it, in the order of the grammar."""
        found: dict[str, list[str]] = {name: [] for name in self.bodies}
        for name, exprs in self.exprs_of.items():
            for expr in exprs:
                if isinstance(expr, Ref):
                    found[expr.name].append(name)
        return found

    # --- least fixpoints --------------------------------------------------------------------------

    @lazy
    def nullable(self) -> frozenset[Expr]:
        """The expressions that have the empty string."""
        return self._least(lambda e: isinstance(e, Empty))

    @lazy
    def productive(self) -> frozenset[Expr]:
        """The expressions that have some string."""
        return self._least(lambda e: isinstance(e, Empty | Literal | Macro) or _holds(e))

    def _least(self, holds: Callable[[Expr], bool]) -> frozenset[Expr]:
        """What holds of a sequence when it does of all parts, of a choice when of one."""
        waiting = {e: len(e.parts) if isinstance(e, Seq) else 1 for e in self.exprs}
        above: dict[Expr, list[Expr]] = {}
        for expr in self.exprs:
            for child in children(expr):
                above.setdefault(child, []).append(expr)
            if isinstance(expr, Ref):
                above.setdefault(self.bodies[expr.name], []).append(expr)
        found: set[Expr] = set()
        work = [e for e in self.exprs if holds(e) or (isinstance(e, Repeat) and e.least == 0)]
        while work:
            expr = work.pop()
            if expr in found:
                continue
            found.add(expr)
            for parent in above.get(expr, ()):
                waiting[parent] -= 1
                if waiting[parent] <= 0:
                    work.append(parent)
        return frozenset(found)

    def is_productive(self, rule: str) -> bool:
        """Whether a rule has some string."""
        return self.bodies[rule] in self.productive

    # --- what is used -----------------------------------------------------------------------------

    @lazy
    def reachable(self) -> frozenset[str]:
        """The rules that the root names, directly or by way of others; the root among them."""
        return self._reached(lambda expr: True)

    @lazy
    def useful(self) -> frozenset[str]:
        """The rules that some text needs: named on the way to something complete."""
        if not self.is_productive(self.form.root):
            return frozenset()
        return self._reached(lambda expr: expr in self.productive and not _is_never(expr))

    def _reached(self, enters: Callable[[Expr], bool]) -> frozenset[str]:
        found = {self.form.root}
        seen: set[Expr] = set()
        work = [self.bodies[self.form.root]]
        while work:
            expr = work.pop()
            if expr in seen or not enters(expr):
                continue
            seen.add(expr)
            work.extend(children(expr))
            names = (
                (expr.name,)
                if isinstance(expr, Ref)
                else expr.rules
                if isinstance(expr, Macro)
                else ()
            )
            for name in names:
                if name not in found:
                    found.add(name)
                    work.append(self.bodies[name])
        return frozenset(found)

    # --- cycles -----------------------------------------------------------------------------------

    @lazy
    def cyclic(self) -> list[list[str]]:
        """Rules that can become themselves, by common cycles; only among productive expressions."""
        edges = {expr: self._alone(expr) for expr in self.exprs if expr in self.productive}
        return self._rules_in(components(edges), edges)

    def _alone(self, expr: Expr) -> list[Expr]:
        """What an expression can be altogether: the rest of it may be empty."""
        if isinstance(expr, Ref):
            below: list[Expr] = [self.bodies[expr.name]]
        elif isinstance(expr, Alt):
            below = list(expr.parts)
        elif isinstance(expr, Seq):
            rest = [part for part in expr.parts if part not in self.nullable]
            below = list(expr.parts) if not rest else rest if len(rest) == 1 else []
        elif isinstance(expr, Repeat) and expr.most != 0:
            alone = expr.least <= 1 or expr.body in self.nullable
            below = [expr.body] if alone else []
        else:
            below = []
        return [part for part in below if part in self.productive]

    @lazy
    def left_edges(self) -> dict[Expr, list[tuple[Expr, bool]]]:
        """What an expression can begin with, and whether something that may be empty is skipped."""
        edges: dict[Expr, list[tuple[Expr, bool]]] = {}
        for expr in self.exprs:
            if expr not in self.productive:
                continue
            below: list[tuple[Expr, bool]] = []
            if isinstance(expr, Ref):
                below = [(self.bodies[expr.name], False)]
            elif isinstance(expr, Alt):
                below = [(part, False) for part in expr.parts if part in self.productive]
            elif isinstance(expr, Seq):
                skipped = False
                for part in expr.parts:
                    below.append((part, skipped))
                    if part not in self.nullable:
                        break
                    skipped = skipped or self._reads(part)
            elif isinstance(expr, Repeat) and expr.most != 0 and expr.body in self.productive:
                again = expr.most is None or expr.most > 1
                skips = again and expr.body in self.nullable and self._reads(expr.body)
                below = [(expr.body, skips)]
            edges[expr] = below
        return edges

    def _reads(self, expr: Expr) -> bool:
        """Whether an expression has a string that is not empty."""
        return expr in self._reading

    @lazy
    def _reading(self) -> frozenset[Expr]:
        """The expressions that have a string that is not empty."""
        above: dict[Expr, list[Expr]] = {}
        for expr in self.exprs:
            if expr not in self.productive or (_is_never(expr)):
                continue
            for child in children(expr):
                above.setdefault(child, []).append(expr)
            if isinstance(expr, Ref):
                above.setdefault(self.bodies[expr.name], []).append(expr)
        work = [e for e in self.exprs if isinstance(e, Literal | Macro) or _holds(e)]
        return reached(work, above)

    @lazy
    def left_recursive(self) -> list[tuple[list[str], bool]]:
        """Rules that begin with themselves, by common cycles, and whether behind something empty.

        Hidden is a cycle in which some step skips what may be empty and need not be.
        """
        plain = {expr: [below for below, _ in edges] for expr, edges in self.left_edges.items()}
        found = []
        for part in components(plain):
            rules = self._rules_in([part], plain)
            if not rules:
                continue
            inside = set(part)
            hidden = any(
                skips and below in inside for expr in part for below, skips in self.left_edges[expr]
            )
            found.append((rules[0], hidden))
        return found

    @lazy
    def _order(self) -> Mapping[str, int]:
        """The number of each rule in the grammar."""
        return {name: number for number, name in enumerate(self.bodies)}

    def _rules_in(
        self, parts: Iterable[list[Expr]], edges: Mapping[Expr, Iterable[Expr]]
    ) -> list[list[str]]:
        """The rules named on cycles, in the order of the grammar."""
        order = self._order
        found = []
        for part in parts:
            if is_loop(part, edges):
                names = {expr.name for expr in part if isinstance(expr, Ref)}
                found.append(sorted(names, key=order.__getitem__))
        return sorted((f for f in found if f), key=lambda names: order[names[0]])

    @lazy
    def followed(self) -> frozenset[Expr]:
        """The expressions after which something may still be read, where a text needs them."""
        work: list[Expr] = []
        useful = [
            e
            for name in self.useful
            for e in self.exprs_of[name]
            if e in self.productive and not _is_never(e)
        ]
        below: dict[Expr, list[Expr]] = {}
        for expr in useful:
            if isinstance(expr, Ref):
                below[expr] = [self.bodies[expr.name]]
            elif isinstance(expr, Seq):
                tail, after = [], False
                for part in reversed(expr.parts):
                    tail.append(part)
                    if after:
                        work.append(part)
                    after = after or self._reads(part)
                below[expr] = tail
            else:
                below[expr] = [child for child in children(expr) if child in self.productive]
            again = isinstance(expr, Repeat) and (expr.most is None or expr.most > 1)
            if isinstance(expr, Repeat) and again and self._reads(expr.body):
                work.append(expr.body)
        return reached(work, below)


def _is_never(expr: Expr) -> bool:
    """Whether something is repeated zero times."""
    return isinstance(expr, Repeat) and expr.most == 0


def _holds(expr: Expr) -> bool:
    return isinstance(expr, Chars) and bool(expr.ranges)
