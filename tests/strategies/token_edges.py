"""Grammars that take tokens whole, over vocabularies that make this doubtful.

Ordinary random grammars, in which some terminals have become token edges: of tokens whose bytes the
grammar reads as well, of duplicates, of special tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import strategies as st
from oracles.model import (
    CharClass,
    Choice,
    Expr,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    TokenDispatch,
    TokenEdge,
    walk,
)

from strategies.engine import LARGE_BOUNDS, Setting
from strategies.grammars import BOUNDS, build_grammar
from strategies.vocabularies import build_vocabulary


class _Edges:
    """Puts token edges into a grammar."""

    def __init__(self, random: Random, grammar: Grammar, setting: Setting) -> None:
        self.random, self.names = random, list(grammar.rules)
        self.ids = range(len(setting.tokens))
        self.tokens = setting.tokens
        self.takeable = sorted(setting.oracle.takeable)

    def some(self, ids: Sequence[int], most: int) -> tuple[int, ...]:
        count = self.random.randint(1, min(most, len(ids)))
        return tuple(self.random.sample(list(ids), count))

    def edge(self, bounds: Sequence[tuple[int, int | None]] = BOUNDS) -> Expr:
        roll = self.random.random()
        if roll < 0.5:
            return TokenEdge(self.some(self.takeable, 2))
        if roll < 0.7:
            return TokenEdge(self.some(self.ids, 3), excluded=True)
        if roll < 0.85:
            return Repeat(TokenEdge(self.some(self.takeable, 2)), *self.random.choice(bounds))
        return self.dispatch()

    def dispatch(self) -> TokenDispatch:
        triggers = self.some(self.takeable, 2)
        if self.random.random() < 0.2:
            triggers += triggers[:1]  # two rules of one trigger
        others = [i for i in self.ids if i not in triggers]
        some_others = bool(others) and self.random.random() < 0.6
        return TokenDispatch(
            tuple((trigger, self.random.choice(self.names)) for trigger in triggers),
            self.some(others, 3) if some_others else (),
            self.random.random() < 0.6,
        )

    def beside(self, literal: Literal) -> Expr:
        """A text, or a token of that text."""
        alike = [i for i in self.takeable if literal.data.startswith(self.tokens[i])]
        return Choice((literal, TokenEdge((self.random.choice(alike or self.takeable),))))

    def put(self, expr: Expr, share: float) -> Expr:
        match expr:
            case Literal(data) if data and self.random.random() < share / 3:
                return self.beside(expr)
            case Literal() | CharClass() if self.random.random() < share:
                return self.edge()
            case Seq(items):
                return Seq(tuple(self.put(item, share) for item in items))
            case Choice(items):
                return Choice(tuple(self.put(item, share) for item in items))
            case Repeat(body, low, high):
                return Repeat(self.put(body, share), low, high)
        return expr


def has_edges(grammar: Grammar) -> bool:
    """Whether the grammar takes any token whole."""
    parts = (part for body in grammar.rules.values() for part in walk(body))
    return any(isinstance(part, TokenEdge | TokenDispatch) for part in parts)


def _vocabulary_setting(random: Random, grammar: Grammar, size: int, *, plain: bool) -> Setting:
    """A vocabulary for a grammar that has no token edges yet, with a token that they can take."""
    tokens = build_vocabulary(random, grammar, size=size)

    def some(most: int, least: int = 0) -> tuple[int, ...]:
        return tuple(sorted(random.sample(range(1, size), random.randint(least, most))))

    tokens[0] = tokens[0] or b"a"
    if plain:
        return Setting(grammar, tuple(tokens), some(1, 1))
    override = random.choice([None, None, None, some(2)])
    when_complete = random.choice([False, False, False, True])
    return Setting(grammar, tuple(tokens), some(2), some(3), override, when_complete)


def build_edge_setting(
    random: Random, *, rules: int = 3, size: int = 12, plain: bool = False
) -> Setting:
    """A grammar with token edges and a vocabulary.

    ``plain``: with one stop token and nothing else that XGrammar does not know.
    """
    grammar = build_grammar(random, rules=rules, unicode=0.2)
    setting = _vocabulary_setting(random, grammar, size, plain=plain)
    edges = _Edges(random, grammar, setting)
    share = random.choice([0.3, 0.5, 0.15, 0.8])
    made = {name: edges.put(body, share) for name, body in grammar.rules.items()}
    if not has_edges(Grammar(made)):
        made["root"] = Choice((made["root"], Seq((edges.edge(), Ref(random.choice(edges.names))))))
    return replace(setting, grammar=Grammar(made))


def build_counted_edge_setting(random: Random, *, size: int = 9) -> Setting:
    """Large repetitions of token edges, of rules that hold them, and beside the texts of both."""
    base = Grammar({"root": Choice((Literal(b"a"), Literal(b"b")))})
    tokens = [b"a", b"b", b"c", *random.choices([b"a", b"aa", b"ab", b"b" * 18, b"c"], k=size - 4)]
    setting = Setting(base, (*tokens, b"</s>"), stops=(size - 1,), specials=(random.randrange(3),))
    edges = _Edges(random, Grammar({"root": base.rules["root"], "x": Ref("root")}), setting)

    def counted() -> Expr:
        body = random.choice(
            [
                TokenEdge(edges.some(edges.takeable, 2)),
                Choice((Literal(b"a"), TokenEdge(edges.some(edges.takeable, 2)))),
                Seq((TokenEdge((0,)), Repeat(Literal(b"b"), 0, 1))),
                TokenEdge(edges.some(edges.ids, 2), excluded=True),
                Ref("x"),
            ]
        )
        return Repeat(body, *random.choice(LARGE_BOUNDS))

    roots: list[Expr] = [
        Seq((counted(), Literal(b"c"))),
        Seq((counted(), TokenEdge((2,)))),
        Seq((counted(), counted())),
        Repeat(Seq((counted(), Literal(b"c"))), 0, random.choice([2, 18, None])),
        Seq((Literal(b"a"), Repeat(counted(), 0, 1), Ref("root"))),
    ]
    root = Choice((*random.sample(roots, random.randint(1, 2)), Literal(b"c")))
    x = Choice((Literal(b"b"), Seq((edges.edge(LARGE_BOUNDS), Literal(b"a")))))
    return replace(setting, grammar=Grammar({"root": root, "x": x}))


@st.composite
def edge_settings(draw, max_rules: int = 3, max_size: int = 12, **options) -> Setting:
    """Hypothesis strategy over :func:`build_edge_setting`."""
    rules, size = draw(st.integers(1, max_rules)), draw(st.integers(4, max_size))
    random = draw(st.randoms(use_true_random=False, note_method_calls=False))
    return build_edge_setting(random, rules=rules, size=size, **options)
