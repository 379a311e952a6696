"""Expressions in canonical form: constructors that apply the laws of regular expressions.

Every function here keeps the language exactly, for any languages of the parts, with or without the
empty string, since each law is an equation of Kleene algebra. ``NONE``, a class of no characters,
is the language without strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from weakref import WeakKeyDictionary

from tokfold.laboratory.form import (
    EMPTY,
    Alt,
    Chars,
    Expr,
    Literal,
    Macro,
    Ref,
    Repeat,
    Seq,
    children,
    postorder,
)

__all__ = [
    "NONE",
    "alt",
    "alternatives",
    "rebuilt",
    "references",
    "renamed",
    "repeat",
    "seq",
    "simplified",
    "size",
    "star",
    "substituted",
]

NONE = Chars(())
"""The language without strings."""


def parts_of(expr: Expr) -> tuple[Expr, ...]:
    """An expression as a sequence: no part for the empty string, else one or more."""
    if expr is EMPTY:
        return ()
    return expr.parts if isinstance(expr, Seq) else (expr,)


def alternatives(expr: Expr) -> tuple[Expr, ...]:
    """An expression as a choice: ``x?`` is nothing or x; none for the language without strings."""
    found: dict[Expr, None] = {}
    work = [expr]
    while work:
        top = work.pop()
        if isinstance(top, Alt):
            work += reversed(top.parts)
        elif isinstance(top, Repeat) and (top.least, top.most) == (0, 1):
            found[EMPTY] = None
            work.append(top.body)
        elif top is not NONE:
            found[top] = None
    return tuple(found)


def seq(parts: Iterable[Expr]) -> Expr:
    """The parts one after the other.

    Laws: ``x "" = x``, ``x none = none``, ``"a" "b" = "ab"``; equal things side by side of which
    one is a repetition are counted together, ``x{a,b} x{c,d} = x{a+c,b+d}``, with ``x = x{1,1}``
    also for an x of several parts.
    """
    flat: list[Expr] = []
    for part in parts:
        for piece in parts_of(part):
            if piece is NONE:
                return NONE
            _append(flat, piece)
    if not flat:
        return EMPTY
    return flat[0] if len(flat) == 1 else Seq(flat)


def _append(flat: list[Expr], piece: Expr) -> None:
    """One more part; a sum of repetitions may again stand beside its equal."""
    while True:
        merged = _merged(flat, piece)
        if merged is None:
            flat.append(piece)
            return
        count, piece = merged
        del flat[len(flat) - count :]


_LONGEST = 16
"""How long the body of a repetition is that is looked for part by part."""


def _merged(flat: list[Expr], piece: Expr) -> tuple[int, Expr] | None:
    """How many of the last parts ``piece`` takes up, and what stands in their place."""
    if not flat:
        return None
    last = flat[-1]
    if isinstance(last, Literal) and isinstance(piece, Literal):
        return 1, Literal(last.data + piece.data)
    if isinstance(piece, Repeat):
        if isinstance(last, Repeat) and last.body is piece.body:
            return 1, _sum(piece.body, last, piece)
        body = parts_of(piece.body)
        if len(flat) >= len(body) and tuple(flat[len(flat) - len(body) :]) == body:
            return len(body), repeat(piece.body, piece.least + 1, _plus(piece.most, 1))
    for count in range(min(len(flat), _LONGEST)):
        before = flat[-1 - count]
        if isinstance(before, Repeat):
            body = parts_of(before.body)
            if body == (*flat[len(flat) - count :], piece):
                return count + 1, repeat(before.body, before.least + 1, _plus(before.most, 1))
    return None


def _plus(most: int | None, more: int | None) -> int | None:
    return None if most is None or more is None else most + more


def _sum(body: Expr, one: Repeat, other: Repeat) -> Expr:
    return repeat(body, one.least + other.least, _plus(one.most, other.most))


def alt(parts: Iterable[Expr]) -> Expr:
    """One of the parts.

    Laws: ``x | x = x``, ``x | none = x``; single characters become one class; the empty string
    becomes ``( ... )?``, or nothing where a part is a repetition from 0.
    """
    found: dict[Expr, None] = {}
    ranges: list[tuple[int, int]] = []
    singles: list[Expr] = []
    nullable = False
    for part in parts:
        for piece in part.parts if isinstance(part, Alt) else (part,):
            if piece is EMPTY:
                nullable = True
            elif piece is NONE:
                continue
            elif (own := characters(piece)) is not None:
                if not singles:
                    found[NONE] = None  # holds the place of the class
                ranges += own
                singles.append(piece)
            else:
                found[piece] = None
    kept: list[Expr] = []
    for piece in found:
        if piece is NONE:
            kept.append(singles[0] if len(set(singles)) == 1 else Chars(ranges))
        else:
            kept.append(piece)
    if not kept:
        return EMPTY if nullable else NONE
    whole = kept[0] if len(kept) == 1 else Alt(kept)
    if not nullable or any(isinstance(part, Repeat) and part.least == 0 for part in kept):
        return whole
    return repeat(whole, 0, 1)


def characters(expr: Expr) -> tuple[tuple[int, int], ...] | None:
    """The code points of an expression whose strings are one character each; else None."""
    if isinstance(expr, Chars):
        return expr.ranges
    if isinstance(expr, Literal):
        text = expr.data.decode("utf-8", "surrogatepass")
        if len(text) == 1:
            return ((ord(text), ord(text)),)
    return None


def star(body: Expr) -> Expr:
    """``body*``."""
    return repeat(body, 0, None)


def repeat(body: Expr, least: int, most: int | None) -> Expr:
    """``body{least,most}``.

    Laws: ``x{1,1} = x``, ``x{m,0} = ""{m,n} = ""``; a repetition of a repetition is one where the
    counts have no gap: k times i to j are all numbers from l i to h j if (l + 1) i <= l j + 1
    (of all k the least is the worst), and always if l = h. Under ``*`` and ``+`` a body, or an
    alternative of it, that lies between b and ``b*`` is b: ``(x* | y?)* = (x | y)*``; so is each
    part of a sequence of such that all can be empty: ``(x* y?)* = (x | y)*``.
    """
    if most == 0 or body is EMPTY:
        return EMPTY
    if body is NONE:
        return NONE if least else EMPTY
    if (least, most) == (1, 1):
        return body
    if most is None and least <= 1:
        body, nullable = _under_star(body)
        least = 0 if nullable else least
        if body is EMPTY:
            return EMPTY
    if most == 1 and any(isinstance(p, Repeat) and p.least == 0 for p in alternatives(body)):
        return body
    if isinstance(body, Repeat):
        joined = _product(body, least, most)
        if joined is not None:
            return joined
    return Repeat(body, least, most)


def _product(inner: Repeat, least: int, most: int | None) -> Expr | None:
    """A repetition of a repetition as one; None where the counts have gaps."""
    low, high = inner.least, inner.most
    without_gap = (
        most == least
        or (high is None and least > 0)
        or (low <= 1 and least == 0)
        or (high is not None and (least + 1) * low <= least * high + 1)
    )
    if not without_gap:
        return None
    top = None if most is None or high is None else most * high
    return repeat(inner.body, least * low, top)


def _under_star(body: Expr) -> tuple[Expr, bool]:
    """A body with the same star, and whether the empty string was found to be one of its own."""
    nullable = False
    while True:
        kept: list[Expr] = []
        for part in body.parts if isinstance(body, Alt) else (body,):
            stripped, empty = _stripped(part)
            kept += stripped
            nullable |= empty
        after = alt(kept) if kept else EMPTY
        if after is body:
            return body, nullable
        body = after


def _stripped(part: Expr) -> tuple[list[Expr], bool]:
    """What may stand in place of an alternative under a star, and whether it has the empty one."""
    if part is EMPTY:
        return [], True
    if isinstance(part, Repeat) and part.least <= 1:
        return [part.body], part.least == 0
    if isinstance(part, Seq) and all(isinstance(p, Repeat) and p.least == 0 for p in part.parts):
        return [p.body for p in part.parts if isinstance(p, Repeat)], True
    return [part], False


def rebuilt(
    expr: Expr,
    change: Callable[[Expr], Expr],
    memo: dict[Expr, Expr] | None = None,
) -> Expr:
    """An expression put together again in canonical form, each part changed after its parts.

    Args:
        expr: the expression.
        change: language-preserving, or whatever the caller makes of it; called once for each
            distinct part, with its parts already changed.
        memo: what is known of earlier calls with the same ``change``.
    """
    known = {} if memo is None else memo
    if expr in known:
        return known[expr]
    for node in postorder((expr,)):
        if node in known:
            continue
        made = node
        if isinstance(node, Seq):
            made = seq(known[part] for part in node.parts)
        elif isinstance(node, Alt):
            made = alt(known[part] for part in node.parts)
        elif isinstance(node, Repeat):
            made = repeat(known[node.body], node.least, node.most)
        known[node] = change(made)
    return known[expr]


def simplified(expr: Expr, memo: dict[Expr, Expr] | None = None) -> Expr:
    """The canonical form of an expression."""
    return rebuilt(expr, lambda node: node, memo)


def substituted(expr: Expr, bodies: Mapping[str, Expr]) -> Expr:
    """An expression with expressions in place of rules. Rules named by macros stay."""
    return rebuilt(
        expr, lambda node: bodies.get(node.name, node) if isinstance(node, Ref) else node
    )


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """An expression that names other rules, also in macros. Nothing else is changed."""
    known: dict[Expr, Expr] = {}
    for node in postorder((expr,)):
        made: Expr = node
        if isinstance(node, Ref):
            made = Ref(names.get(node.name, node.name))
        elif isinstance(node, Macro):
            made = Macro(node.name, node.number, (names.get(name, name) for name in node.rules))
        elif isinstance(node, Seq):
            made = Seq(known[part] for part in node.parts)
        elif isinstance(node, Alt):
            made = Alt(known[part] for part in node.parts)
        elif isinstance(node, Repeat):
            made = Repeat(known[node.body], node.least, node.most)
        known[node] = made
    return known[expr]


_REFERENCES: WeakKeyDictionary[Expr, frozenset[str]] = WeakKeyDictionary()


def references(expr: Expr) -> frozenset[str]:
    """The rules that an expression names, those of macros included. Remembered."""
    known = _REFERENCES.get(expr)
    if known is not None:
        return known
    found: set[str] = set()
    for node in postorder((expr,)):
        if isinstance(node, Ref):
            found.add(node.name)
        elif isinstance(node, Macro):
            found.update(node.rules)
    _REFERENCES[expr] = names = frozenset(found)
    return names


_SIZES: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()


def size(expr: Expr) -> int:
    """How many names, classes and literals the text of an expression has, and one more each.

    Remembered.
    """
    known = _SIZES.get(expr)
    if known is not None:
        return known
    sizes: dict[Expr, int] = {}
    for node in postorder((expr,)):
        sizes[node] = 1 + sum(sizes[child] for child in children(node))
    _SIZES[expr] = sizes[expr]
    return sizes[expr]
