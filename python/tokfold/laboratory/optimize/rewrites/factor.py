"""What alternatives have in common at an end is written once.

Laws: ``a b | a c = a (b | c)`` and ``b a | c a = (b | c) a``, with ``b`` or ``c`` possibly empty.
"""

from __future__ import annotations

from tokfold.laboratory.form import Alt, Expr, Literal, Ref, postorder
from tokfold.laboratory.optimize.algebra import alt, alternatives, parts_of, rebuilt, seq
from tokfold.laboratory.optimize.system import System

__all__ = ["factor_prefixes", "factor_suffixes", "factored"]


def factor_prefixes(system: System) -> bool:
    """Factor common beginnings that call a rule: an engine then follows the call once."""
    return system.each(
        "factor a common beginning",
        lambda _, body: rebuilt(body, lambda e: factored(e, calls=True)),
    )


def factor_suffixes(system: System) -> bool:
    """Factor common ends that call a rule."""
    return system.each(
        "factor a common end",
        lambda _, body: rebuilt(body, lambda e: factored(e, calls=True, at_end=True)),
    )


def factored(expr: Expr, *, calls: bool = False, at_end: bool = False) -> Expr:
    """A choice with what its alternatives have in common at one end written once.

    Args:
        expr: what is no choice comes back as it is.
        calls: factor only what names a rule.
        at_end: at the end instead of the beginning.
    """
    choices = alternatives(expr)
    if not isinstance(expr, Alt) and len(choices) < 2:
        return expr
    groups: dict[Expr | None, list[list[Expr]]] = {}
    for choice in choices:
        pieces = _pieces(choice, at_end)
        groups.setdefault(pieces[0] if pieces else None, []).append(pieces)
    if all(len(group) == 1 for group in groups.values()):
        return expr
    made: list[Expr] = []
    for group in groups.values():
        count = _common(group)
        common = group[0][:count]
        if len(group) == 1 or not count or (calls and not _calls(common)):
            made += [_joined(pieces, at_end) for pieces in group]
            continue
        rest = alt(_joined(pieces[count:], at_end) for pieces in group)
        rest = factored(rest, calls=calls, at_end=at_end) if len(group) > 2 else rest
        head = _joined(common, at_end)
        made.append(seq((rest, head) if at_end else (head, rest)))
    return alt(made)


def _pieces(expr: Expr, at_end: bool) -> list[Expr]:
    """The parts of a sequence, literals cut into characters, from the end in question."""
    pieces: list[Expr] = []
    for part in parts_of(expr):
        if isinstance(part, Literal):
            text = part.data.decode("utf-8", "surrogatepass")
            pieces += [Literal(char.encode("utf-8", "surrogatepass")) for char in text]
        else:
            pieces.append(part)
    return pieces[::-1] if at_end else pieces


def _joined(pieces: list[Expr], at_end: bool) -> Expr:
    return seq(pieces[::-1] if at_end else pieces)


def _common(group: list[list[Expr]]) -> int:
    count = 0
    for column in zip(*group, strict=False):
        if any(piece is not column[0] for piece in column):
            break
        count += 1
    return count


def _calls(pieces: list[Expr]) -> bool:
    return any(isinstance(node, Ref) for node in postorder(pieces))
