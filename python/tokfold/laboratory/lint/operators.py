"""Rules of operators and operands, and of lists, without the ambiguity."""

from __future__ import annotations

from tokfold.laboratory.form import EMPTY, Alt, Expr, Form, FormRule, Ref, Repeat, Seq, children
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Rewrite
from tokfold.laboratory.lint.rewriting import choice, sequence
from tokfold.laboratory.lint.texts import rule_text

__all__ = ["operators"]


def operators(facts: Facts, name: str) -> Rewrite | None:
    """``a ::= a op a | pre a | a post | b`` as operands with operators between them.

    The texts stay the same: each is a row of operands, and any operand may have any prefixes and
    suffixes, whichever side of an operator they applied to.
    """
    rule = facts.form.rules[name]
    itself = Ref(name)
    if not isinstance(rule.body, Alt):
        return None
    infix: list[Expr] = []
    before: list[Expr] = []
    after: list[Expr] = []
    single: list[Expr] = []
    for part in rule.body.parts:
        parts = part.parts if isinstance(part, Seq) else (part,)
        if part is itself:
            continue
        if parts[0] is itself and parts[-1] is itself:
            infix.append(sequence(parts[1:-1]))
        elif parts[-1] is itself:
            before.append(sequence(parts[:-1]))
        elif parts[0] is itself:
            after.append(sequence(parts[1:]))
        else:
            single.append(part)
    joined = not any(infix_part is not EMPTY for infix_part in infix)
    least = 1
    if joined and EMPTY in single and not before and not after:
        # `a ::= a a | "" | b`: the loop owns the emptiness.
        single = [part for part in single if part is not EMPTY]
        least = 0
    operator, operand = choice(infix), choice(single)
    if operator is None or operand is None:
        return None
    if _ends_with_itself(facts, single, itself):
        return None  # the ambiguity would stay
    looped = [part for part in (*before, *after) if part in facts.nullable]
    if looped or (operator in facts.nullable and len(infix) > 1):
        return None
    pre, post = choice(before), choice(after)
    ends = [Repeat(x, 0, None) if x is not None else None for x in (pre, post)]
    whole = sequence([x for x in (ends[0], operand, ends[1]) if x is not None])
    extra: list[FormRule] = []
    if isinstance(whole, Alt | Seq):
        helper = _free_name(facts.form, f"{name}_operand")
        extra = [FormRule(helper, whole)]
        whole = Ref(helper)
    body: Expr
    if operator not in facts.nullable:
        body = sequence([whole, Repeat(sequence([operator, whole]), 0, None)])
    elif joined and not any(part in facts.nullable for part in single):
        body = Repeat(whole, least, None)
    else:
        return None
    changed = [FormRule(rule.name, body, rule.lookahead, rule.options_of), *extra]
    return Rewrite(tuple((r.name, rule_text(facts.form, r)) for r in changed))


def _free_name(form: Form, name: str) -> str:
    while name in form.rules:
        name += "_"
    return name


def _ends_with_itself(facts: Facts, parts: list[Expr], itself: Ref) -> bool:
    """Whether some expressions can begin or end with the rule itself, by way of others."""
    for at_end in (False, True):
        seen: set[Expr] = set()
        work = list(parts)
        while work:
            expr = work.pop()
            if expr is itself:
                return True
            if expr in seen or expr not in facts.productive:
                continue
            seen.add(expr)
            if isinstance(expr, Seq):
                for part in reversed(expr.parts) if at_end else expr.parts:
                    work.append(part)
                    if part not in facts.nullable:
                        break
            else:
                work.extend(children(expr))
            if isinstance(expr, Ref):
                work.append(facts.bodies[expr.name])
    return False
