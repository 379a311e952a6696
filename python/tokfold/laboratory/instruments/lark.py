"""A grammar as Lark text for llguidance, without a change of language.

llguidance reads a text as lexemes, each the longest that fits, and a grammar over lexemes. Rules
written for a scannerless engine would change their language there: ``[a-z]+ "b"`` has no string at
all when the first lexeme takes every ``b``. So each character is a lexeme of its own here: no
character is the beginning of another, and nothing is left to be decided by length. What this costs
is speed: hand-written Lark with long lexemes is faster. llguidance's own converter,
``gbnf_to_lark``, makes lexemes of rules and is not used: it refuses most grammars as tokfold prints
them, and of what it takes it changes some.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokfold._quoting import quoted
from tokfold.grammar import Grammar
from tokfold.laboratory.form import (
    Alt,
    Chars,
    Empty,
    Expr,
    Form,
    Literal,
    Macro,
    Ref,
    Repeat,
    Seq,
    children,
    postorder,
)
from tokfold.laboratory.instruments.base import EngineRefusedError

__all__ = ["to_lark"]

MAX_NESTING = 16
"""What is nested deeper becomes a rule: parsers of Lark text may recurse."""
_SURROGATES = (0xD800, 0xDFFF)


def to_lark(grammar: Grammar) -> str:
    """Lark text for llguidance with the strings of a grammar, one lexeme for each character.

    The encodings of surrogates, which grammar text may ask for and which are no UTF-8, are left
    out: llguidance cannot express them.

    Raises:
        EngineRefusedError: the grammar holds a macro, rule options or exact lookahead, or a
            character class that holds nothing but surrogates.
    """
    form = Form.of(grammar)
    numbers = {name: index for index, name in enumerate(form.rules)}
    for rule in form.rules.values():
        where = f"rule {quoted(rule.name)}" + (f" at {rule.place}" if rule.place else "")
        if rule.options_of is not None:
            raise EngineRefusedError(
                "llguidance", f"{where} has options in brackets; leave them out"
            )
        if rule.lookahead is not None and form.lookahead == "exact":
            raise EngineRefusedError("llguidance", f"{where} has lookahead; leave it out")
    writer = _Writer({name: _rule_name(name, index) for name, index in numbers.items()})
    lines = ["%llguidance {}", f"start: {writer.names[form.root]}"]
    bodies = [rule.body for rule in form.rules.values()]
    writer.write(bodies)
    lines += [f"{writer.names[r.name]}: {writer.texts[r.body][0]}" for r in form.rules.values()]
    return "\n".join([*lines, *writer.extra]) + "\n"


def _rule_name(name: str, index: int) -> str:
    """A name that Lark takes for a rule, not for a lexeme, and no two alike."""
    return f"r{index}_{re.sub(r'[^a-z0-9]', '_', name.lower())}"


class _Writer:
    """Texts of expressions, children first."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.texts: dict[Expr, tuple[str, bool, int]] = {}
        """Text, whether it stands for itself without parentheses, and how deep it is nested."""
        self.extra: list[str] = []

    def write(self, bodies: Iterable[Expr]) -> None:
        """Write all expressions under some."""
        for expr in postorder(bodies):
            depth = 1 + max((self.texts[child][2] for child in children(expr)), default=0)
            text, is_atom = self._text(expr)
            if depth > MAX_NESTING and not is_atom:
                name = f"x{len(self.extra)}"
                self.extra.append(f"{name}: {text}")
                text, is_atom, depth = name, True, 1
            self.texts[expr] = text, is_atom, depth

    def _atom(self, expr: Expr) -> str:
        text, is_atom, _ = self.texts[expr]
        return text if is_atom else f"({text})"

    def _text(self, expr: Expr) -> tuple[str, bool]:
        match expr:
            case Empty():
                return '""', True
            case Literal():
                chars = [_quoted(c) for c in expr.data.decode("utf-8", "surrogatepass")]
                return " ".join(chars), len(chars) == 1
            case Chars():
                return _class(expr.ranges), True
            case Ref():
                return self.names[expr.name], True
            case Seq():
                return " ".join(self._atom(part) for part in expr.parts), False
            case Alt():
                return " | ".join(self._atom(part) for part in expr.parts), False
            case Repeat(most=0):
                return '""', True
            case Repeat():
                body = self._atom(expr.body)
                if isinstance(expr.body, Repeat | Empty):
                    body = f"({body})"  # two quantifiers in a row are no Lark
                return body + _times(expr.least, expr.most), True
            case Macro():
                raise EngineRefusedError(
                    "llguidance", f"there is no {expr.name} in it; write the rule out"
                )
        raise TypeError(f"no expression: {quoted(expr)}")


def _times(least: int, most: int | None) -> str:
    common = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (least, most) in common:
        return common[least, most]
    return f"{{{least},{'' if most is None else most}}}"


def _quoted(char: str) -> str:
    point = ord(char)
    if _SURROGATES[0] <= point <= _SURROGATES[1]:
        raise EngineRefusedError("llguidance", f"U+{point:04X} is a surrogate: no UTF-8 has it")
    return f"/{_point(point)}/"


def _class(ranges: tuple[tuple[int, int], ...]) -> str:
    kept = []
    for first, last in ranges:
        kept += [(first, min(last, _SURROGATES[0] - 1)), (max(first, _SURROGATES[1] + 1), last)]
    parts = [
        _point(first) if first == last else f"{_point(first)}-{_point(last)}"
        for first, last in kept
        if first <= last
    ]
    if not parts:
        raise EngineRefusedError("llguidance", "a character class holds no character of UTF-8")
    return f"/[{''.join(parts)}]/"


def _point(point: int) -> str:
    char = chr(point)
    return char if char.isascii() and char.isalnum() else f"\\x{{{point:x}}}"
