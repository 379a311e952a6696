"""The slow truth about small grammars: all their strings up to a length, and grammars to ask of."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st
from tokfold.grammar import Grammar
from tokfold.laboratory.form import (
    EMPTY,
    Alt,
    Chars,
    Expr,
    Form,
    FormRule,
    Literal,
    Ref,
    Repeat,
    Seq,
    postorder,
)

Language = frozenset[bytes]
ALPHABET = b"ab+("


def languages(rules: Mapping[str, Expr], longest: int) -> dict[str, Language]:
    """For each rule its strings of at most ``longest`` bytes: the fixpoint, by iteration."""
    found: dict[str, Language] = {name: frozenset() for name in rules}
    while True:
        after = {name: _strings(body, found, longest) for name, body in rules.items()}
        if after == found:
            return found
        found = after


def language(form: Form, longest: int) -> Language:
    """The strings of a grammar of at most ``longest`` bytes."""
    return languages({r.name: r.body for r in form.rules.values()}, longest)[form.root]


def strings(expr: Expr, longest: int, known: Mapping[str, Language] | None = None) -> Language:
    """The strings of an expression whose rules have these languages."""
    return _strings(expr, known or {}, longest)


def _strings(expr: Expr, known: Mapping[str, Language], longest: int) -> Language:
    of: dict[Expr, Language] = {}
    for node in postorder((expr,)):
        of[node] = _node(node, of, known, longest)
    return of[expr]


def _node(
    node: Expr, of: Mapping[Expr, Language], known: Mapping[str, Language], longest: int
) -> Language:
    match node:
        case Literal():
            return frozenset({node.data} if len(node.data) <= longest else ())
        case Chars():
            points = [p for low, high in node.ranges for p in range(low, min(high, 0x7F) + 1)]
            return frozenset(chr(point).encode() for point in points)
        case Ref():
            return known[node.name]
        case Seq():
            found = frozenset({b""})
            for part in node.parts:
                found = _joined(found, of[part], longest)
            return found
        case Alt():
            return frozenset().union(*(of[part] for part in node.parts))
        case Repeat():
            return _powers(of[node.body], node.least, node.most, longest)
        case _:
            return frozenset({b""})


def _joined(one: Language, other: Language, longest: int) -> Language:
    by_length: dict[int, list[bytes]] = {}
    for text in other:
        by_length.setdefault(len(text), []).append(text)
    return frozenset(
        a + b
        for a in one
        for length, texts in by_length.items()
        if len(a) + length <= longest
        for b in texts
    )


def _powers(body: Language, least: int, most: int | None, longest: int) -> Language:
    power: Language = frozenset({b""})
    for _ in range(least):
        power = _joined(power, body, longest)
    found = power
    count = least
    while most is None or count < most:
        power = _joined(power, body, longest)
        count += 1
        if power <= found and (most is None or count > least + longest):
            break
        found |= power
    return found


_LEAVES = [
    *(Literal(bytes((byte,))) for byte in ALPHABET),
    Literal(b"ab"),
    Chars(((0x61, 0x62),)),
    Chars(((0x2B, 0x2B), (0x61, 0x61))),
    EMPTY,
]
_BOUNDS = [(0, 1), (0, None), (1, None), (1, 2), (0, 2), (2, 2), (2, None), (0, 3), (2, 3), (3, 5)]
_NAMES = ["root", "r1", "r2", "r3"]


def expressions(names: list[str]) -> st.SearchStrategy[Expr]:
    """Expressions as people and programs write them: nothing is in canonical form."""
    leaves = st.sampled_from([*_LEAVES, *(Ref(name) for name in names)])

    def larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        several = st.lists(inner, min_size=2, max_size=3)
        bounds = st.sampled_from(_BOUNDS)
        return st.one_of(
            several.map(Seq),
            several.map(Alt),
            st.tuples(inner, bounds).map(lambda pair: Repeat(pair[0], *pair[1])),
        )

    return st.recursive(leaves, larger, max_leaves=6)


@st.composite
def recursive_rules(draw: st.DrawFn, name: str, names: list[str]) -> Expr:
    """Right-hand sides that begin or end with the rule, or with others, as people write them."""
    inner = expressions(names)
    own, other = Ref(name), Ref(draw(st.sampled_from(names)))
    shapes: list[list[Expr]] = [
        [own, draw(inner), own],
        [own, draw(inner)],
        [draw(inner), own],
        [own, own],
        [other, draw(inner)],
        [draw(inner), other],
        [Literal(b"("), own, Literal(b"+")],
        [draw(inner), Alt((Seq((Literal(b"a"), own)), Literal(b"b")))],
    ]
    chosen = draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=3))
    ends = draw(st.lists(inner, min_size=1, max_size=2))
    return Alt([*(Seq(parts) for parts in chosen), *ends])


@st.composite
def loops(draw: st.DrawFn, names: list[str]) -> Expr:
    """A loop over a choice that calls rules, with something after it."""
    choices = draw(st.lists(expressions(names), min_size=1, max_size=2))
    body = Alt((Chars(((0x61, 0x62),)), *choices))
    least = draw(st.integers(0, 1))
    return Seq((draw(expressions(names)), Repeat(body, least, None), draw(expressions(names))))


def levels(name: str, names: list[str]) -> st.SearchStrategy[Expr]:
    """``B (O B)*`` with B the next rule, as in chains of operators."""
    below = Ref(names[(names.index(name) + 1) % len(names)])
    return st.one_of(expressions(names), st.sampled_from(_LEAVES)).map(
        lambda between: Seq((below, Repeat(Seq((between, below)), 0, None)))
    )


@st.composite
def forms(draw: st.DrawFn, max_rules: int = 4) -> Form:
    """Small grammars over four letters, with every kind of recursion."""
    names = _NAMES[: draw(st.integers(1, max_rules))]
    rules = []
    if draw(st.booleans()):
        rules.append(FormRule("start", Ref(draw(st.sampled_from(names)))))
    for name in names:
        kinds = st.one_of(
            expressions(names),
            recursive_rules(name, names),
            st.sampled_from(names).map(Ref),
            loops(names),
            st.sampled_from(_LEAVES).map(lambda leaf, own=name: Seq((leaf, Ref(own)))),
            levels(name, names),
        )
        rules.append(FormRule(name, draw(kinds)))
    return form_of(rules)


_BASE = Form.of(Grammar.from_ebnf('root ::= "a"\n'))


def form_of(rules: list[FormRule]) -> Form:
    """A grammar of rules; the first one is its root."""
    return _BASE.with_rules(rules, rules[0].name)
