"""Grammars that are as ambiguous as can be, small enough for naive oracles."""

from __future__ import annotations

from random import Random

from oracles.model import Choice, Empty, Expr, Grammar, Literal, Ref, Repeat, Seq

from strategies.grammars import build_grammar


def tangled_grammar(random: Random) -> Grammar:
    """Rules that call one another with little between: empty ones, units, cycles, repetitions."""
    names = ["root", "x", "y", "z"][: random.randint(1, 4)]

    def part() -> Expr:
        kind = random.random()
        if kind < 0.5:
            return Ref(random.choice(names))
        if kind < 0.8:
            return Literal(random.choice([b"a", b"b", b"c", b"ab", b"abc"]))
        if kind < 0.86:
            return Choice((part(), Literal(b"c")))
        return Repeat(part(), *random.choice([(0, 1), (0, None), (1, None), (2, 3), (0, 4)]))

    def alternative() -> Expr:
        kind = random.random()
        if kind < 0.12:
            return Empty()
        if kind < 0.35:
            return part()
        return Seq(tuple(part() for _ in range(random.randint(2, 4))))

    def body() -> Expr:
        first = [Literal(random.choice([b"a", b"b", b"c"]))] if random.random() < 0.85 else []
        return Choice((*first, *(alternative() for _ in range(random.randint(1, 3)))))

    return Grammar({name: body() for name in names})


def any_grammar(random: Random) -> Grammar:
    """A tangled grammar, or one of the shapes of the other tests."""
    if random.random() < 0.7:
        return tangled_grammar(random)
    return build_grammar(random, rules=random.randint(1, 4))
