"""White space that can run away: loops over characters that are only white space."""

from __future__ import annotations

from collections.abc import Iterator

from tokfold.laboratory.form import (
    Alt,
    Chars,
    Expr,
    Literal,
    Macro,
    Ref,
    Repeat,
    Seq,
    children,
)
from tokfold.laboratory.lint.cycles import components, is_loop, reached
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding, Same, few
from tokfold.laboratory.lint.rewriting import in_rule
from tokfold.laboratory.lint.texts import expr_text, quoted_text, shortened
from tokfold.vocabulary import Vocabulary

__all__ = ["BOUND", "runaway_whitespace"]

BOUND = 16
"""The bound that is proposed."""
WHITE = b" \t\n\r\v\f"


def runaway_whitespace(facts: Facts, vocabulary: Vocabulary, notes: list[str]) -> Iterator[Finding]:
    """Loops and recursive rules that can read white space for ever."""
    apart = {*vocabulary.stop_token_ids, *vocabulary.special_token_ids}
    blank = [
        token
        for number, token in enumerate(vocabulary)
        if number not in apart and token and not token.strip(WHITE)
    ]
    if not blank:
        return
    white = _white(facts)
    said = f"the vocabulary has {len(blank):,} tokens of white space, the longest of "
    said += f"{max(map(len, blank))} bytes"
    for name in facts.bodies:
        if name not in facts.useful:
            continue
        loops = [e for e in facts.exprs_of[name] if isinstance(e, Repeat) and e.most is None]
        found = (
            _finding(facts, name, loop, said, blank)
            for loop in loops
            if loop.body in white and not _is_text(facts, loop)
        )
        yield from few(found, notes)
    yield from _recursive(facts, white, said)


def _finding(facts: Facts, name: str, expr: Repeat, said: str, blank: list[bytes]) -> Finding:
    bounded = Repeat(expr.body, expr.least, max(expr.least, BOUND))
    shown = shortened(expr_text(facts.form, expr))
    longest = max(blank, key=len)
    only = all(
        _is_white(e) or not isinstance(e, Chars | Literal | Macro) for e in _under(facts, expr)
    )
    return Finding(
        "runaway-whitespace",
        f"{shown} takes white space without bound; {said}",
        facts.place(name, expr),
        name,
        f"bound it, which gives up longer runs: {shortened(expr_text(facts.form, bounded))}"
        if only
        else "take the white space out of the loop, or give it a bound of its own",
        in_rule(facts.form, name, expr, bounded, Same.SMALLER) if only else None,
        {"tokens": len(blank), "longest": quoted_text(longest[:32])},
    )


def _under(facts: Facts, expr: Expr) -> set[Expr]:
    """An expression and all that it is made of, rules that it calls included."""
    seen: set[Expr] = set()
    work = [expr]
    while work:
        top = work.pop()
        if top not in seen:
            seen.add(top)
            work.extend(children(top))
            if isinstance(top, Ref):
                work.append(facts.bodies[top.name])
    return seen


def _is_text(facts: Facts, expr: Repeat) -> bool:
    """Whether a loop reads text: a class of white space and more, alone, is one of its copies."""
    seen: set[Expr] = set()
    work = [expr.body]
    while work:
        top = work.pop()
        if top in seen:
            continue
        seen.add(top)
        if isinstance(top, Chars) and not _is_white(top):
            if any(first <= code <= last for first, last in top.ranges for code in WHITE):
                return True
        elif isinstance(top, Ref):
            work.append(facts.bodies[top.name])
        elif isinstance(top, Seq):
            full = [part for part in top.parts if part not in facts.nullable]
            work.extend(top.parts if not full else full if len(full) == 1 else ())
        else:
            work.extend(children(top))
    return False


def _white(facts: Facts) -> frozenset[Expr]:
    """The expressions with a text that is white space, at least one, and that are meant for it.

    A class with other characters is not meant for it: white space in the text of a string is text.
    A sequence is where all its parts are, or may be empty.
    """
    above: dict[Expr, list[Expr]] = {}
    for expr in facts.exprs:
        if isinstance(expr, Alt):
            for part in expr.parts:
                above.setdefault(part, []).append(expr)
        elif isinstance(expr, Repeat) and expr.most != 0:
            above.setdefault(expr.body, []).append(expr)
        elif isinstance(expr, Seq):
            full = [part for part in expr.parts if part not in facts.nullable]
            for part in expr.parts if not full else full if len(full) == 1 else ():
                above.setdefault(part, []).append(expr)
        if isinstance(expr, Ref):
            above.setdefault(facts.bodies[expr.name], []).append(expr)
    return reached((expr for expr in facts.exprs if _is_white(expr)), above)


def _is_white(expr: Expr) -> bool:
    if isinstance(expr, Literal):
        return not expr.data.strip(WHITE)
    if isinstance(expr, Chars):
        return bool(expr.ranges) and all(
            last < 128 and all(code in WHITE for code in range(first, last + 1))
            for first, last in expr.ranges
        )
    return False


def _recursive(facts: Facts, white: frozenset[Expr], said: str) -> Iterator[Finding]:
    """Rules that read white space and then themselves: ``ws ::= "" | " " ws``."""
    edges: dict[str, list[str]] = {}
    for name in facts.bodies:
        if name in facts.useful and facts.bodies[name] in white:
            edges[name] = [
                e.name
                for expr in facts.exprs_of[name]
                if isinstance(expr, Seq) and any(part in white for part in expr.parts)
                for e in _only_rule(facts, expr, white)
            ]
    for part in components(edges):
        if is_loop(part, edges):
            name = min(part, key=list(facts.bodies).index)
            yield Finding(
                "runaway-whitespace",
                f"{name} takes white space and then itself without bound; {said}",
                facts.place(name),
                name,
                f"bound it: a class of white space, {{0,{BOUND}}}",
            )


def _only_rule(facts: Facts, expr: Seq, white: frozenset[Expr]) -> list[Ref]:
    """The calls in a sequence whose other parts are white space or may be empty."""
    found = []
    for position, part in enumerate(expr.parts):
        rest = [p for at, p in enumerate(expr.parts) if at != position]
        if isinstance(part, Ref) and all(p in white or p in facts.nullable for p in rest):
            found.append(part)
    return found
