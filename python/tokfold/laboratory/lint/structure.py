"""Checks of how rules hang together: what is unused, endless, cyclic or left-recursive."""

from __future__ import annotations

from collections.abc import Iterator

from tokfold.laboratory.form import Alt, Expr, FormRule, Ref
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding, Rewrite
from tokfold.laboratory.lint.operators import operators
from tokfold.laboratory.lint.texts import rule_text

__all__ = ["structure"]


def structure(facts: Facts) -> Iterator[Finding]:
    """Unreachable, unproductive, cyclic and left-recursive rules."""
    yield from _unreachable(facts)
    yield from _unproductive(facts)
    yield from _cyclic(facts)
    yield from _left(facts)


def _unreachable(facts: Facts) -> Iterator[Finding]:
    gone = [name for name in facts.bodies if name not in facts.reachable]
    if not gone:
        return
    # Rules that only unreachable ones name go with them: the first has one rewrite for all.
    rewrite: Rewrite | None = Rewrite(tuple((name, None) for name in gone))
    for name in gone:
        yield Finding(
            "unreachable-rule",
            f"the rule {name} is never reached from {facts.form.root}",
            facts.place(name),
            name,
            "name it where it belongs, or remove it with the rules that only it names",
            rewrite,
            {"root": facts.form.root},
        )
        rewrite = None


def _unproductive(facts: Facts) -> Iterator[Finding]:
    for name in facts.bodies:
        if name in facts.reachable and not facts.is_productive(name):
            is_root = name == facts.form.root
            said = "the grammar has no text at all: " if is_root else ""
            yield Finding(
                "unproductive-rule",
                f"{said}no text of the rule {name} is ever complete",
                facts.place(name),
                name,
                "add an alternative that does not need the rule again, or remove what leads here",
                details={"root": is_root},
            )


def _cyclic(facts: Facts) -> Iterator[Finding]:
    for names in facts.cyclic:
        rules = [name for name in names if name in facts.useful]
        if not rules:
            continue
        way = " and ".join(rules) if len(rules) > 1 else rules[0]
        yield Finding(
            "cyclic-rule",
            f"{way} can become {'each other' if len(rules) > 1 else 'itself'} without reading "
            "anything",
            facts.place(rules[0]),
            rules[0],
            "take out the alternative that is the rule itself; where parts may be empty, let the "
            'list own the emptiness: `item*` in place of `list ::= list list | "" | item`',
            _without_itself(facts, rules[0]) or operators(facts, rules[0])
            if len(rules) == 1
            else None,
            {"rules": rules},
        )


def _without_itself(facts: Facts, name: str) -> Rewrite | None:
    """The rule without the alternatives that are the rule itself."""
    body = facts.bodies[name]
    itself = Ref(name)
    if not isinstance(body, Alt) or itself not in body.parts:
        return None
    rest = [part for part in body.parts if part is not itself]
    if not rest:
        return None
    changed: Expr = rest[0] if len(rest) == 1 else Alt(rest)
    old = facts.form.rules[name]
    return Rewrite(
        (
            (
                name,
                rule_text(facts.form, FormRule(name, changed, old.lookahead, old.options_of)),
            ),
        )
    )


def _left(facts: Facts) -> Iterator[Finding]:
    for names, hidden in facts.left_recursive:
        rules = [name for name in names if name in facts.useful]
        if not rules:
            continue
        way = rules[0] if len(rules) == 1 else f"{rules[0]} (by way of {', '.join(rules[1:6])})"
        if hidden:
            yield Finding(
                "hidden-left-recursion",
                f"{way} can begin with itself behind something that may be empty",
                facts.place(rules[0]),
                rules[0],
                "make what stands before the call read something, or move it into the rule's "
                "other alternatives",
                details={"rules": rules},
            )
        else:
            yield Finding(
                "left-recursion",
                f"{way} begins with itself",
                facts.place(rules[0]),
                rules[0],
                "for engines that refuse it: `a ::= a x | b` is `a ::= b x*`",
                details={"rules": rules},
            )
