"""Expressions as text for people, cut where they are long."""

from __future__ import annotations

from tokfold._quoting import quoted
from tokfold.laboratory.form import Alt, Chars, Empty, Expr, Literal, Macro, Ref, Repeat, Seq

__all__ = ["show"]

_WIDTH = 160
_SHORT = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def show(expr: Expr, width: int = _WIDTH) -> str:
    """An expression as grammar text of at most ``width`` characters and an ellipsis."""
    text: list[str] = []
    length = 0
    work: list[Expr | str] = [expr]
    while work and length <= width:
        top = work.pop()
        if isinstance(top, str):
            text.append(top)
            length += len(top)
            continue
        work += reversed(_pieces(top, outermost=top is expr))
    whole = "".join(text)
    return whole if not work and length <= width else whole[:width] + " ..."


def _pieces(expr: Expr, outermost: bool) -> list[Expr | str]:
    match expr:
        case Empty():
            return ['""']
        case Literal():
            text = expr.data.decode("utf-8", "surrogatepass")
            return ['"' + "".join(_escaped(char, '"\\') for char in text) + '"']
        case Chars():
            return [_class(expr)]
        case Ref():
            return [expr.name]
        case Macro():
            return [f"{expr.name}(...)"]
        case Seq():
            return _joined(expr.parts, " ", bare=outermost)
        case Alt():
            return _joined(expr.parts, " | ", bare=outermost)
        case Repeat():
            bounds = f"{{{expr.least},{'' if expr.most is None else expr.most}}}"
            if expr.least == expr.most:
                bounds = f"{{{expr.least}}}"
            mark = _SHORT.get((expr.least, expr.most), bounds)
            nested = isinstance(expr.body, Repeat)
            return ["(", expr.body, ")", mark] if nested else [expr.body, mark]
        case _:
            raise TypeError(f"no expression: {quoted(expr)}")


def _joined(parts: tuple[Expr, ...], between: str, *, bare: bool) -> list[Expr | str]:
    pieces: list[Expr | str] = [] if bare else ["("]
    for index, part in enumerate(parts):
        pieces += [between] if index else []
        if isinstance(part, Seq) and between == " | ":
            pieces += _joined(part.parts, " ", bare=True)
        else:
            pieces.append(part)
    return pieces if bare else [*pieces, ")"]


def _class(expr: Chars) -> str:
    if not expr.ranges:
        return "[]"
    ranges, negated = expr.ranges, expr.ranges[-1][1] == 0x10FFFF
    if negated:
        ends = [-1, *(end for pair in ranges for end in pair), 0x110000]
        gaps = zip(ends[::2], ends[1::2], strict=True)
        ranges = tuple((low + 1, high - 1) for low, high in gaps if low + 1 < high)
    text = "".join(_range(low, high) for low, high in ranges)
    return f"[{'^' * negated}{text}]"


def _range(low: int, high: int) -> str:
    first, last = (_escaped(chr(end), "]\\^-") for end in (low, high))
    if high - low < 2:
        return first if low == high else first + last
    return f"{first}-{last}"


_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(char: str, special: str) -> str:
    if char in special:
        return "\\" + char
    if char in _NAMES:
        return _NAMES[char]
    if char.isprintable() and (char.isascii() or ord(char) < 0xD800):
        return char
    point = ord(char)
    return f"\\x{point:02x}" if point < 0x80 else f"\\u{{{point:x}}}"
