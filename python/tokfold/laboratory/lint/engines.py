"""Rules of thumb for each engine: what it refuses, masks wrongly, or is slow with.

They are true of tokfold, of XGrammar 0.2.8 and 0.2.9, and of llguidance 1.9.1 with its converter
``gbnf_to_lark``; none of the others need be installed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from tokfold.engine import compile as compile_grammar
from tokfold.errors import LimitExceededError, MissingExtraError, UnsupportedGrammarError
from tokfold.laboratory.form import (
    Chars,
    Expr,
    FormRule,
    Literal,
    Macro,
    Place,
    Ref,
    Repeat,
    Seq,
    children,
)
from tokfold.laboratory.lint.catalogue import Engine
from tokfold.laboratory.lint.cycles import components, is_loop, reached
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding, Rewrite, few
from tokfold.laboratory.lint.lexemes import greedy_lexemes
from tokfold.laboratory.lint.rewriting import substituted
from tokfold.laboratory.lint.texts import expr_text, rule_text, shortened
from tokfold.options import CompileOptions
from tokfold.vocabulary import Vocabulary

__all__ = ["engines"]

WIDE = 64
"""Characters of a class that is wide."""
COUNT_OF_WIDE = 16
COUNT_OF_OTHER = 256
"""Copies from which a count is large: of something with a wide class in it, and of others."""


def engines(
    facts: Facts, wanted: Collection[Engine], vocabulary: Vocabulary | None
) -> tuple[list[Finding], list[str]]:
    """The findings of some engines, and what was not looked into."""
    found: list[Finding] = []
    notes: list[str] = []
    if Engine.OWN in wanted:
        found.extend(_refused(facts, vocabulary, notes))
    if Engine.XGRAMMAR in wanted:
        found.extend(_recursive_root(facts))
        found.extend(_repeated_self(facts))
        found.extend(_large_counts(facts, notes))
        found.extend(_lookahead(facts))
    if Engine.LLGUIDANCE in wanted:
        found.extend(_unsupported(facts, notes))
        found.extend(greedy_lexemes(facts, notes))
    return found, notes


# --- tokfold --------------------------------------------------------------------------------------


def _refused(facts: Facts, vocabulary: Vocabulary | None, notes: list[str]) -> Iterator[Finding]:
    grammar = facts.form.source
    if facts.form.root not in facts.useful:
        return  # it has no text, and that is told
    if vocabulary is None:
        if grammar._takes_tokens:
            notes.append("tokfold: tokens are named by their ids: not compiled without a tokenizer")
            return
        vocabulary = Vocabulary([bytes([byte]) for byte in range(256)])
    try:
        compile_grammar(
            grammar,
            vocabulary,
            grammar._limits,
            classes="never",
            options=CompileOptions(check_tokens=False),
        )
    except MissingExtraError as error:
        notes.append(f"tokfold: not compiled: {error}")
    except UnsupportedGrammarError as error:
        place = Place(error.line, error.column)
        yield Finding(
            "refused",
            f"{error} (the first of its kind: mend it and look again)",
            place,
            _rule_at(facts, place),
            "leave the construct out, or fold with tokfold.xgrammar, which falls back",
            details={"construct": error.construct},
        )
    except LimitExceededError as error:
        yield Finding(
            "refused",
            str(error),
            None,
            "",
            f"raise Limits.{error.limit}, or make the grammar smaller",
            details={"limit": error.limit, "value": error.value},
        )


def _rule_at(facts: Facts, place: Place) -> str:
    """The rule in whose text a place is."""
    name = ""
    for rule in facts.form.rules.values():
        if rule.place is not None and rule.place <= place:
            name = rule.name
    return name


# --- XGrammar -------------------------------------------------------------------------------------


def _recursive_root(facts: Facts) -> Iterator[Finding]:
    root = facts.form.root
    itself = Ref(root)
    if itself not in facts.followed or root not in facts.useful:
        return
    callers = [name for name in facts.useful if itself in facts.exprs_of[name]]
    first = min(callers, key=list(facts.bodies).index)
    inner = f"{root}_inner"
    while inner in facts.bodies:
        inner += "_"
    changed: list[tuple[str, str | None]] = []
    for rule in facts.form.rules.values():
        body = substituted(rule.body, {itself: Ref(inner)})
        if rule.name == root:
            changed.append((root, rule_text(facts.form, FormRule(root, Ref(inner)))))
            moved = replace(rule, name=inner, body=body)
            changed.append((inner, rule_text(facts.form, moved)))
        elif body is not rule.body:
            changed.append((rule.name, rule_text(facts.form, replace(rule, body=body))))
    yield Finding(
        "recursive-root",
        f"{root} is the start and is called in {first}, where something follows",
        facts.place(first, itself),
        first,
        f"give the grammar a start of its own that is called by nothing: {root} ::= {inner}",
        Rewrite(tuple(changed)),
        {"callers": sorted(callers)},
    )


def _repeated_self(facts: Facts) -> Iterator[Finding]:
    below: dict[str, list[str]] = {}
    counted: set[str] = set()
    for name, body in facts.bodies.items():
        parts = body.parts if isinstance(body, Seq) else (body,)
        full = [part for part in parts if isinstance(part, Repeat | Ref | Literal | Chars | Macro)]
        if len(full) != 1 or len(full) != sum(bool(children(p)) or p in full for p in parts):
            continue
        only = full[0]
        if isinstance(only, Repeat) and isinstance(only.body, Ref) and only.most is not None:
            below[name] = [only.body.name]
            if (only.least, only.most) != (0, 1):
                counted.add(name)
        elif isinstance(only, Ref):
            below[name] = [only.name]
    for part in components(below):
        counts = [name for name in part if name in counted and name in facts.reachable]
        if counts and is_loop(part, below):
            yield Finding(
                "repeated-self",
                f"{counts[0]} is nothing but a counted repetition of itself",
                facts.place(counts[0], facts.bodies[counts[0]]),
                counts[0],
                "give it something to read",
                details={"rules": part},
            )


def _large_counts(facts: Facts, notes: list[str]) -> Iterator[Finding]:
    wide = _wide(facts)
    for name in facts.bodies:
        if name in facts.reachable:
            yield from few(_large_counts_of(facts, name, wide), notes)


def _large_counts_of(facts: Facts, name: str, wide: frozenset[Expr]) -> Iterator[Finding]:
    for expr in facts.exprs_of[name]:
        if not isinstance(expr, Repeat):
            continue
        count = expr.least if expr.most is None else expr.most
        other = not isinstance(expr.body, Chars | Literal) and count >= COUNT_OF_OTHER
        if (expr.body in wide and count >= COUNT_OF_WIDE) or other:
            shown = shortened(expr_text(facts.form, expr))
            yield Finding(
                "large-count",
                f"{shown} is a large count"
                + (" of a wide class of characters" if expr.body in wide else ""),
                facts.place(name, expr),
                name,
                "for XGrammar: `*` or `+` where the bound is not needed; tokfold counts",
                details={"count": count},
            )


def _wide(facts: Facts) -> frozenset[Expr]:
    """The expressions with a wide class in them, rules that they call included."""
    above: dict[Expr, list[Expr]] = {}
    for expr in facts.exprs:
        for child in children(expr):
            above.setdefault(child, []).append(expr)
        if isinstance(expr, Ref):
            above.setdefault(facts.bodies[expr.name], []).append(expr)
    work = [
        e
        for e in facts.exprs
        if isinstance(e, Chars) and sum(last - first + 1 for first, last in e.ranges) >= WIDE
    ]
    return reached(work, above)


def _lookahead(facts: Facts) -> Iterator[Finding]:
    for rule in facts.form.rules.values():
        ahead = rule.lookahead
        if ahead is not None and facts.form.lookahead == "exact":
            yield Finding(
                "lookahead",
                f"the rule {rule.name} ends with (= {shortened(expr_text(facts.form, ahead))})",
                facts.place(rule.name, ahead),
                rule.name,
                "leave it out, and write what must follow where the rule is called",
                Rewrite(((rule.name, rule_text(facts.form, replace(rule, lookahead=None))),)),
            )


# --- llguidance -----------------------------------------------------------------------------------


def _unsupported(facts: Facts, notes: list[str]) -> Iterator[Finding]:
    names = dict.fromkeys(facts.bodies)
    if facts.form.root != "root":
        yield _not_read(facts, facts.form.root, None, "the start rule is not named root")
    if "start" in names and facts.form.root == "root":
        yield _not_read(facts, "start", None, "a rule is named start, which is what root becomes")
    for rule in facts.form.rules.values():
        if rule.options_of is not None:
            yield _not_read(facts, rule.name, None, "the rule has options in brackets")
        if rule.lookahead is not None:
            yield _not_read(facts, rule.name, rule.lookahead, "lookahead")
        yield from few(_unsupported_in(facts, rule.name), notes)


def _unsupported_in(facts: Facts, name: str) -> Iterator[Finding]:
    for expr in reversed(facts.exprs_of[name]):
        if isinstance(expr, Macro):
            yield _not_read(facts, name, expr, expr.name)
        elif isinstance(expr, Chars) and expr.ranges in ((), ((0, 0x10FFFF),)):
            yield _not_read(facts, name, expr, f"the class {expr_text(facts.form, expr)}")
        elif isinstance(expr, Repeat) and isinstance(expr.body, Repeat):
            shown = shortened(expr_text(facts.form, expr))
            yield _not_read(facts, name, expr, f"the repetition {shown} of a repetition")


def _not_read(facts: Facts, name: str, expr: Expr | None, what: str) -> Finding:
    return Finding(
        "unsupported",
        f"{what}: llguidance's converter does not read it",
        facts.place(name, expr),
        name,
        "write it in another way: classes by their ranges, and a rule for an inner repetition",
    )
