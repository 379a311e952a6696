"""What is refused before XGrammar compiles it, and what is not folded.

Two questions, both answered by name and with the place in the text:

* :func:`refuse_crash`: would XGrammar's compiler end the process? Such a grammar is refused
  wherever it would be compiled, over classes or not.
* :func:`refuse_inexact`: is there something that classes cannot express? Such a grammar falls
  back to the full vocabulary, or is refused where the compiler is strict.

Cost: linear in the grammar and its text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NoReturn

import xgrammar as xgr

from tokfold._quoting import quoted
from tokfold._text_checks import place
from tokfold.errors import UnsupportedGrammarError
from tokfold.xgrammar.automata import automata_of
from tokfold.xgrammar.forms import (
    IS_028,
    MACRO_KINDS,
    NESTED_KINDS,
    REFERENCE_KINDS,
    Expression,
    GrammarForm,
    Kind,
    Rule,
)

__all__ = ["refuse_crash", "refuse_inexact"]


# ---------------------------------------------------------------------- crashes


def refuse_crash(form: GrammarForm, text: str | None = None) -> None:
    """Raise for a grammar that XGrammar dies of; names the rules, and where the first stands.

    It unrolls a repetition of a rule that is nothing but a repetition by unrolling that one
    first, so it never ends where rules repeat each other in a circle: ``root ::= root{0,2}``. A
    rule that is nothing but a reference takes part, as its place is first taken by what it refers
    to, once. Such rules match the empty text or nothing.

    Places are those in ``text``, the user's own; without it in the printed grammar.
    """
    alone = {
        rule: leaf for rule in range(len(form.rules)) if (leaf := _reference_alone(form, rule))
    }
    repeats: dict[int, int] = {}
    for rule, leaf in alone.items():
        callee = leaf.data[0]
        if leaf.kind == Kind.RULE_REFERENCE:
            if callee not in alone or form.rules[callee].capture:
                continue
            leaf = alone[callee]
        if leaf.kind == Kind.REPEAT:
            repeats[rule] = leaf.data[0]
    seen: set[int] = set()
    for rule in repeats:
        path: dict[int, None] = {}
        while rule in repeats and rule not in seen:
            seen.add(rule)
            path[rule] = None
            rule = repeats[rule]
        if rule in path:
            circle = list(path)[list(path).index(rule) :]
            text = _text(form, text)
            names = sorted(form.rules[member].name for member in circle)
            written = [(at, name) for name in names if (at := _place(text, name))]
            (line, column, _), first = min(written, default=((1, 1, 0), names[0]))
            through = ", ".join(map(quoted, names[:8])) + (", ..." if len(names) > 8 else "")
            raise UnsupportedGrammarError(
                f"line {line}, column {column}: rule {quoted(first)} is a repetition of itself and "
                f"of nothing else (by way of {through}); XGrammar's compiler would end the process "
                "on it. It matches no text: leave it out, or give it another alternative",
                "repetition of itself",
                line,
                column,
            )


def _reference_alone(form: GrammarForm, rule: int) -> Expression | None:
    """The one reference or repetition that a rule consists of, if it does."""
    options = form.rules[rule]
    if (
        options.max_tokens >= 0
        or options.max_chars >= 0
        or options.lazy
        or options.temperature is not None
    ):
        return None  # XGrammar keeps such a rule as it is
    expression = form.body(rule)
    while expression.kind in NESTED_KINDS and len(expression.data) == 1:
        expression = form.expressions[expression.data[0]]
    return expression if expression.kind in REFERENCE_KINDS else None


# ------------------------------------------------------------------- exactness


def refuse_inexact(form: GrammarForm, *, trust_lookahead: bool, text: str | None = None) -> None:
    """Raise for what classes cannot express; places are as for :func:`refuse_crash`.

    ``trust_lookahead``: every lookahead comes from one of XGrammar's converters. Else each must
    be one that those converters write; a lookahead of the user's narrows masks on purpose, and
    dropping it would undo that.
    """
    for rule in form.rules:
        if rule.max_tokens >= 0:
            _refuse("max_tokens", form, rule, text)
        if rule.max_chars >= 0:
            _refuse("max_chars", form, rule, text)
        if rule.lazy:
            _refuse("lazy", form, rule, text)
        if (
            rule.lookahead >= 0
            and not trust_lookahead
            and _shape(form, rule.lookahead) not in _converter_lookaheads()
        ):
            _refuse("lookahead", form, rule, text)
    root = form.rules[form.root]
    if form.has_suffix_or_stop:
        _refuse("suffix/stop", form, root, text)
    if form.has_captures and form.token_edges:
        _refuse("capture beside Token", form, root, text)
    if form.root_is_recursive and form.token_edges:
        # here a fresh start rule would change what accept_token takes
        _refuse("recursive root beside Token", form, root, text)
    if form.has_exclude_token and not IS_028:
        # the bytes of a token may end before such an edge, which takes the token from there
        rule = next(rule for rule in form.rules if _holds(form, rule.body, Kind.EXCLUDE_TOKEN))
        _refuse("ExcludeToken", form, rule, text, macro="ExcludeToken")
    for expression in form.expressions:
        if expression.kind > Kind.SUBSTRING:
            _refuse(f"expression kind {expression.kind}", form, root, text)
    for index, rule in enumerate(form.rules):
        kind = form.body(index).kind
        if kind == Kind.TOKEN_TAG_DISPATCH:
            _refuse(_MACROS[kind], form, rule, text, macro=_MACROS[kind])
        if kind in MACRO_KINDS:
            try:
                automata_of(form, index)
            except UnsupportedGrammarError as error:
                _refuse(f"{_MACROS[kind]}: {error}", form, rule, text, macro=_MACROS[kind])


_MACROS: dict[int, str] = {
    Kind.TAG_DISPATCH: "TagDispatch",
    Kind.TOKEN_TAG_DISPATCH: "TokenTagDispatch",
    Kind.REGEX: "Regex",
    Kind.SUBSTRING: "Substring",
}


def _refuse(
    construct: str, form: GrammarForm, rule: Rule, text: str | None, macro: str | None = None
) -> NoReturn:
    text = _text(form, text)
    name = rule.name
    while (found := _place(text, name)) is None and re.search(r"_\d+$", name):
        name = name[: name.rindex("_")]  # XGrammar has moved a part of that rule to one of its own
    line, column, start = found or (1, 1, 0)
    written = -1 if macro is None else text.find(f"{macro}(", start)
    if written >= 0:
        line, column = place(text, written)
    raise UnsupportedGrammarError(
        f"line {line}, column {column}: {construct} in rule {quoted(name)} cannot be folded "
        "exactly",
        construct,
        line,
        column,
    )


def _holds(form: GrammarForm, root: int, kind: Kind) -> bool:
    """Whether an expression has a part of a kind."""
    todo = [root]
    for index in todo:  # grows
        expression = form.expressions[index]
        if expression.kind == kind:
            return True
        todo += expression.data if expression.kind in NESTED_KINDS else ()
    return False


def _text(form: GrammarForm, text: str | None) -> str:
    return str(form.original()) if text is None else text


def _place(text: str, name: str) -> tuple[int, int, int] | None:
    """Line, column and offset of a rule; None for one that XGrammar added."""
    start = re.search(rf"^[ \t]*({re.escape(name)})\s*(\[|::=)", text, re.MULTILINE)
    if start is None:
        return None
    return *place(text, start.start(1)), start.start(1)


# -------------------------------------------------------------------- lookahead


def _shape(form: GrammarForm, expression_id: int, depth: int = 1) -> tuple[object, ...]:
    """An expression without ids, names and repetition bounds, to compare across grammars."""
    expression = form.expressions[expression_id]
    if expression.kind in NESTED_KINDS:
        return (expression.kind, *(_shape(form, child, depth) for child in expression.data))
    if expression.kind in REFERENCE_KINDS:
        if depth == 0:
            return (expression.kind,)
        body = form.rules[expression.data[0]].body
        return (expression.kind, _shape(form, body, depth - 1))
    return (expression.kind, *expression.data)


@cache
def _converter_lookaheads() -> frozenset[tuple[object, ...]]:
    """Shapes of the lookahead that XGrammar's converters write of their own accord."""
    shapes = set()
    for grammar in (
        xgr.Grammar.builtin_json_grammar(),
        xgr.Grammar.from_json_schema("{}"),
        xgr.Grammar.from_json_schema({"type": "object"}, strict_mode=False),
        xgr.Grammar.from_json_schema("{}", max_whitespace_cnt=2),
    ):
        form = GrammarForm(grammar)
        shapes |= {_shape(form, rule.lookahead) for rule in form.rules if rule.lookahead >= 0}
    return frozenset(shapes)
