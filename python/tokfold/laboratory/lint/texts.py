"""Expressions and texts as grammar text, for messages and rewrites."""

from __future__ import annotations

from collections.abc import Iterable

from tokfold.laboratory.form import EMPTY, Expr, Form, FormRule, Ref, postorder

__all__ = ["expr_text", "quoted_text", "rule_text", "shortened"]

SHOWN = 60
"""Characters of an expression that a message shows."""


def rule_text(form: Form, rule: FormRule) -> str:
    """A rule in one line of grammar text."""
    names = [e.name for e in postorder(_parts(rule)) if isinstance(e, Ref)]
    macros = [name for e in postorder(_parts(rule)) for name in getattr(e, "rules", ())]
    others = dict.fromkeys([*names, *macros])
    others.pop(rule.name, None)
    stubs = [FormRule(name, EMPTY) for name in others]
    return str(form.with_rules([rule, *stubs], rule.name)).split("\n", 1)[0]


def _parts(rule: FormRule) -> list[Expr]:
    return [rule.body] if rule.lookahead is None else [rule.body, rule.lookahead]


def expr_text(form: Form, expr: Expr) -> str:
    """An expression as grammar text."""
    return rule_text(form, FormRule("_", expr)).split("::=", 1)[1].strip()


def shortened(text: str, width: int = SHOWN) -> str:
    """A text, cut in the middle where it is long."""
    if len(text) <= width:
        return text
    half = (width - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def quoted_text(data: str | bytes | Iterable[int]) -> str:
    """A text in double quotes, with the escapes of a literal of the grammar."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    out = []
    for char in raw.decode("utf-8", "surrogateescape"):
        point = ord(char)
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif 0xDC80 <= point <= 0xDCFF:
            out.append(f"\\x{point - 0xDC00:02x}")
        elif char.isprintable():
            out.append(char)
        else:
            out.append(f"\\x{point:02x}" if point < 0x80 else f"\\u{{{point:x}}}")
    return '"' + "".join(out) + '"'


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\\": "\\\\", '"': '\\"'}
