"""The rules of a grammar while they are rewritten, and the log of what was done."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tokfold.errors import TokfoldError
from tokfold.laboratory.form import Expr, Form, FormRule, Macro, postorder
from tokfold.laboratory.optimize.algebra import references, simplified
from tokfold.laboratory.optimize.show import show

__all__ = ["OptimizeError", "Rewrite", "System"]


class OptimizeError(TokfoldError):
    """A grammar cannot be optimized as asked."""


@dataclass(frozen=True)
class Rewrite:
    """One change.

    Attributes:
        rule: the rule that was changed.
        law: the name of the law; the modules of :mod:`tokfold.laboratory.optimize.rewrites` state
            and prove them.
        before: the right-hand side before, cut where it is long.
        after: the right-hand side after; empty where the rule is gone.
    """

    rule: str
    law: str
    before: str
    after: str

    def __str__(self) -> str:
        after = self.after or "(gone)"
        return f"{self.rule}: {self.law}\n    {self.before}\n    {after}"


class System:
    """Rules by name, changed in place.

    A rule is *fixed* if its right-hand side says more than a language: it has options, exact
    lookahead or a macro. Fixed rules stay as they are and are never put in place of their names.
    A rule is *named* if a macro names it: it may change, but not go.

    Attributes:
        rules: right-hand sides by name, in order.
        root: name of the start rule.
        fixed: names of the fixed rules.
        named: names of the rules that macros name.
        log: what was done.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        implied = form.lookahead == "implied"
        self.root = form.root
        self.rules: dict[str, Expr] = {}
        self.fixed: set[str] = set()
        self.named: set[str] = set()
        self.log: list[Rewrite] = []
        memo: dict[Expr, Expr] = {}
        for rule in form.rules.values():
            macros = [node for node in postorder((rule.body,)) if isinstance(node, Macro)]
            self.named.update(name for macro in macros for name in macro.rules)
            narrowed = rule.lookahead is not None and not implied
            if macros or rule.options_of is not None or narrowed:
                self.fixed.add(rule.name)
                self.rules[rule.name] = rule.body
                if narrowed and rule.lookahead is not None:
                    # What stands in a lookahead must stay a rule of its own.
                    self.named.update(references(rule.lookahead))
                continue
            self.rules[rule.name] = rule.body
            self.put(rule.name, simplified(rule.body, memo), "simplify")

    def copy(self) -> System:
        """The same rules and log, to go another way."""
        other = object.__new__(System)
        other._form, other.root = self._form, self.root
        other.rules, other.log = dict(self.rules), list(self.log)
        other.fixed, other.named = set(self.fixed), set(self.named)
        return other

    @classmethod
    def untouched(cls, form: Form) -> System:
        """The rules exactly as they are written, none of them simplified."""
        made = cls(form)
        made.rules = {rule.name: rule.body for rule in form.rules.values()}
        made.log = []
        return made

    def open_rules(self) -> list[str]:
        """The rules that may be changed."""
        return [name for name in self.rules if name not in self.fixed]

    def put(self, name: str, body: Expr, law: str) -> bool:
        """Give a rule another right-hand side; False if it is the one that it has."""
        before = self.rules.get(name)
        if before is body:
            return False
        self.rules[name] = body
        self.log.append(Rewrite(name, law, "" if before is None else show(before), show(body)))
        return True

    def note(self, name: str, law: str, before: Expr | None, after: Expr | None) -> None:
        """Write a change into the log that was made in another way."""
        texts = ("" if expr is None else show(expr) for expr in (before, after))
        self.log.append(Rewrite(name, law, *texts))

    def drop(self, name: str, law: str) -> None:
        """Take a rule away; nothing names it any more."""
        self.log.append(Rewrite(name, law, show(self.rules.pop(name)), ""))
        self.fixed.discard(name)

    def add(self, near: str, body: Expr, law: str) -> str:
        """A new rule, named after another and placed after it.

        Sound: a name for an expression, used in its place, is what the expression is.
        """
        name = self.fresh(near)
        items = list(self.rules.items())
        at = next(i for i, (known, _) in enumerate(items) if known == near) + 1
        self.rules = dict([*items[:at], (name, body), *items[at:]])
        self.log.append(Rewrite(name, law, "", show(body)))
        return name

    def fresh(self, near: str) -> str:
        """A name that no rule has."""
        base = near.rstrip("0123456789").rstrip("_") or near
        names = (f"{base}_{number}" for number in itertools.count(1))
        return next(name for name in names if name not in self.rules)

    def each(self, law: str, change: Callable[[str, Expr], Expr]) -> bool:
        """Change the rules that may be; True if any did."""
        changed = False
        for name in self.open_rules():
            changed |= self.put(name, change(name, self.rules[name]), law)
        return changed

    def references(self) -> dict[str, frozenset[str]]:
        """For each rule the rules that it names, lookahead included."""
        found = {name: references(body) for name, body in self.rules.items()}
        for name in self.fixed:
            ahead = self._form.rules[name].lookahead
            if ahead is not None:
                found[name] = found[name] | references(ahead)
        return found

    def recursive(self) -> set[str]:
        """The rules that lead back to themselves, directly or not (Tarjan's components)."""
        names = self.references()
        index: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        on_stack: set[str] = set()
        found = {name for name, below in names.items() if name in below}
        for start in self.rules:
            if start in index:
                continue
            work = [(start, iter(sorted(names[start])))]
            index[start] = low[start] = len(index)
            stack.append(start)
            on_stack.add(start)
            while work:
                name, below = work[-1]
                callee = next(below, None)
                if callee is None:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[name])
                    if low[name] == index[name]:
                        at = stack.index(name)
                        if len(stack) - at > 1:
                            found.update(stack[at:])
                        on_stack.difference_update(stack[at:])
                        del stack[at:]
                elif callee not in index:
                    index[callee] = low[callee] = len(index)
                    stack.append(callee)
                    on_stack.add(callee)
                    work.append((callee, iter(sorted(names[callee]))))
                elif callee in on_stack:
                    low[name] = min(low[name], index[callee])
        return found

    def form(self) -> Form:
        """The rules as a form."""
        return self._form.with_rules(self._form_rules(), self.root)

    def _form_rules(self) -> Iterable[FormRule]:
        for name, body in self.rules.items():
            if name in self.fixed:
                yield replace(self._form.rules[name], body=body)
            else:
                yield FormRule(name, body)
