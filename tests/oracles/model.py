"""A grammar as a plain value: printed as XGrammar's EBNF, lowered to a CFG over bytes and tokens.

The same value feeds three readers that share no code: the oracles (through :func:`lower`), XGrammar
and tokfold (both through :func:`to_ebnf`). A disagreement between any two of them is a finding.

Literals hold bytes, but grammar text is text: :func:`to_ebnf` takes literals that are UTF-8, with
surrogates encoded as three bytes allowed, because XGrammar's classes accept them.

A token edge takes a token whole, whatever its bytes: it is lowered to letters past the bytes, one
for each token that the vocabulary lets an edge take.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

LAST_CODE_POINT = 0x10FFFF
FIRST_EDGE = 0x100
"""Letters below are bytes; letter ``FIRST_EDGE + id`` is the token of that id, taken whole."""


@dataclass(frozen=True)
class Empty:
    """The empty string."""


@dataclass(frozen=True)
class Literal:
    """Bytes, one after the other."""

    data: bytes


@dataclass(frozen=True)
class CharClass:
    """One code point inside (``negated``: outside) the inclusive ranges, as UTF-8."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool = False

    def code_points(self) -> list[tuple[int, int]]:
        """The code points as sorted, disjoint inclusive ranges."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted(self.ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        if not self.negated:
            return merged
        outside, start = [], 0
        for low, high in merged:
            if start < low:
                outside.append((start, low - 1))
            start = high + 1
        if start <= LAST_CODE_POINT:
            outside.append((start, LAST_CODE_POINT))
        return outside


@dataclass(frozen=True)
class Ref:
    """A rule, by name."""

    name: str


@dataclass(frozen=True)
class Seq:
    """One after the other."""

    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Choice:
    """Any one of these."""

    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Repeat:
    """``body`` at least ``low`` times, at most ``high`` (``None``: no bound)."""

    body: Expr
    low: int
    high: int | None


@dataclass(frozen=True)
class TokenEdge:
    """One token, whole: one of these ids (``excluded``: one of the others)."""

    ids: tuple[int, ...]
    excluded: bool = False


@dataclass(frozen=True)
class TokenDispatch:
    """Free tokens, and after each trigger its rule.

    A free token is neither trigger nor excluded. Without ``loops`` the first rule is the end.
    """

    tags: tuple[tuple[int, str], ...]
    excludes: tuple[int, ...] = ()
    loops: bool = True


Expr = Empty | Literal | CharClass | Ref | Seq | Choice | Repeat | TokenEdge | TokenDispatch


@dataclass(frozen=True)
class Grammar:
    """Rules in the order written; ``root`` is one of them."""

    rules: Mapping[str, Expr]
    root: str = "root"

    def __str__(self) -> str:
        return to_ebnf(self)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it, outside first."""
    yield expr
    match expr:
        case Seq(items) | Choice(items):
            for item in items:
                yield from walk(item)
        case Repeat(body):
            yield from walk(body)
        case TokenDispatch(tags):
            yield from (Ref(rule) for _, rule in tags)


# --- text -----------------------------------------------------------------------------------------


def _escape(code_point: int) -> str:
    """A character as it may stand in a literal or a class."""
    char = chr(code_point)
    if char.isascii() and (char.isalnum() or char == " "):
        return char
    if code_point < 0x80:
        return f"\\x{code_point:02x}"
    return f"\\u{code_point:04x}" if code_point < 0x10000 else f"\\U{code_point:08x}"


def _expr_text(expr: Expr) -> str:
    """An expression that can be an operand of a sequence or of a postfix operator."""
    match expr:
        case Empty():
            return '""'
        case Literal(data):
            text = data.decode("utf-8", "surrogatepass")
            return '"' + "".join(_escape(ord(c)) for c in text) + '"'
        case CharClass(ranges, negated):
            parts = (
                _escape(low) if low == high else f"{_escape(low)}-{_escape(high)}"
                for low, high in ranges
            )
            return "[" + ("^" if negated else "") + "".join(parts) + "]"
        case Ref(name):
            return name
        case Seq(items):
            return "(" + " ".join(map(_expr_text, items)) + ")" if items else '""'
        case Choice(items):
            if not items:
                return "[]"
            return "(" + " | ".join(map(_expr_text, items)) + ")"
        case Repeat(body, low, high):
            short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
            bounds = f"{{{low},{'' if high is None else high}}}"
            return f"({_expr_text(body)}){short or bounds}"
        case TokenEdge(ids, excluded):
            return f"{'Exclude' * excluded}Token({', '.join(map(str, ids))})"
        case TokenDispatch(tags, excludes, loops):
            arguments = [f"({trigger}, {rule})" for trigger, rule in tags]
            if not loops:
                arguments.append("loop_after_dispatch=false")
            if excludes:
                arguments.append(f"excludes=({', '.join(map(str, excludes))})")
            return f"TokenTagDispatch({', '.join(arguments)})"


def to_ebnf(grammar: Grammar) -> str:
    """The grammar as XGrammar's EBNF."""
    return "".join(f"{name} ::= {_expr_text(expr)}\n" for name, expr in grammar.rules.items())


# --- UTF-8 ----------------------------------------------------------------------------------------


def encode(code_point: int) -> bytes:
    """UTF-8, with surrogates as three bytes."""
    return chr(code_point).encode("utf-8", "surrogatepass")


def _same_length_ranges(low: bytes, high: bytes) -> list[list[tuple[int, int]]]:
    """Byte ranges for all encodings between two encodings of one length."""
    if len(low) == 1:
        return [[(low[0], high[0])]]
    if low[0] == high[0]:
        tails = _same_length_ranges(low[1:], high[1:])
        return [[(low[0], low[0]), *tail] for tail in tails]
    least, greatest = b"\x80" * (len(low) - 1), b"\xbf" * (len(low) - 1)
    out = [[(low[0], low[0]), *tail] for tail in _same_length_ranges(low[1:], greatest)]
    if low[0] + 1 < high[0]:
        out.append([(low[0] + 1, high[0] - 1), *[(0x80, 0xBF)] * len(least)])
    out += [[(high[0], high[0]), *tail] for tail in _same_length_ranges(least, high[1:])]
    return out


def utf8_ranges(low: int, high: int) -> list[list[tuple[int, int]]]:
    """The encodings of the code points ``low`` to ``high`` as sequences of byte ranges."""
    out = []
    for first, last in [(0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, LAST_CODE_POINT)]:
        a, b = max(low, first), min(high, last)
        if a <= b:
            out += _same_length_ranges(encode(a), encode(b))
    return out


# --- context-free grammar over bytes and tokens ---------------------------------------------------

ByteSet = frozenset[int]
"""Bytes; or tokens, from :data:`FIRST_EDGE` on."""
Symbol = int | ByteSet
"""A nonterminal (its number) or a terminal (the bytes it takes)."""


@dataclass(frozen=True)
class Production:
    """``lhs -> rhs``."""

    lhs: int
    rhs: tuple[Symbol, ...]


@dataclass(frozen=True)
class Cfg:
    """Productions over nonterminals ``0 .. len(names) - 1``."""

    names: tuple[str, ...]
    productions: tuple[Production, ...]
    start: int

    def __str__(self) -> str:
        def show(symbol: Symbol) -> str:
            return self.names[symbol] if isinstance(symbol, int) else show_bytes(symbol)

        return "\n".join(
            f"{self.names[p.lhs]} -> {' '.join(map(show, p.rhs)) or 'ε'}" for p in self.productions
        )

    def nullable(self) -> set[int]:
        """The nonterminals that derive the empty string."""
        return self._closure(lambda rhs, found: all(s in found for s in rhs))

    def productive(self) -> set[int]:
        """The nonterminals that derive some string of bytes."""
        return self._closure(
            lambda rhs, found: all(s in found if isinstance(s, int) else bool(s) for s in rhs)
        )

    def beginning(self) -> set[int]:
        """The nonterminals that can begin with a byte, completed or not."""
        nullable = self.nullable()

        def begins(rhs: tuple[Symbol, ...], found: set[int]) -> bool:
            for symbol in rhs:
                if symbol in found if isinstance(symbol, int) else symbol:
                    return True
                if symbol not in nullable:
                    break
            return False

        return self._closure(begins)

    def _closure(self, holds) -> set[int]:
        found: set[int] = set()
        while True:
            more = {p.lhs for p in self.productions if holds(p.rhs, found)}
            if more <= found:
                return found
            found |= more

    def pruned(self) -> Cfg:
        """Without the productions that no complete derivation from the start uses."""
        productive = self.productive()
        kept = [
            p
            for p in self.productions
            if all(s in productive if isinstance(s, int) else s for s in p.rhs)
        ]
        reachable, frontier = {self.start}, [self.start]
        while frontier:
            lhs = frontier.pop()
            for p in kept:
                if p.lhs == lhs:
                    new = {s for s in p.rhs if isinstance(s, int)} - reachable
                    reachable |= new
                    frontier += sorted(new)
        return Cfg(self.names, tuple(p for p in kept if p.lhs in reachable), self.start)


def show_bytes(byte_set: ByteSet) -> str:
    """A byte set for people: ``[0-9a]``."""
    if byte_set and min(byte_set) >= FIRST_EDGE:
        return f"Token({', '.join(str(letter - FIRST_EDGE) for letter in sorted(byte_set))})"
    out, values = [], sorted(byte_set)
    while values:
        low = high = values.pop(0)
        while values and values[0] == high + 1:
            high = values.pop(0)
        ends = [chr(b) if 0x20 < b < 0x7F else f"\\x{b:02x}" for b in (low, high)]
        out.append(ends[0] if low == high else "-".join(ends))
    return "[" + "".join(out) + "]"


class _Lowering:
    def __init__(self, grammar: Grammar, takeable: Collection[int]) -> None:
        self.takeable = frozenset(takeable)
        self.names = list(grammar.rules)
        self.productions: list[Production] = []
        self.rule_number = {name: number for number, name in enumerate(grammar.rules)}
        self.number_of: dict[Expr, int] = {}
        for name, expr in grammar.rules.items():
            for rhs in self.alternatives(expr):
                self.productions.append(Production(self.rule_number[name], rhs))

    def alternatives(self, expr: Expr) -> list[tuple[Symbol, ...]]:
        """The expression as a choice of right-hand sides."""
        match expr:
            case Empty():
                return [()]
            case Literal(data):
                return [tuple(frozenset((byte,)) for byte in data)]
            case CharClass():
                return [
                    tuple(frozenset(range(a, b + 1)) for a, b in sequence)
                    for low, high in expr.code_points()
                    for sequence in utf8_ranges(low, high)
                ]
            case Ref(name):
                return [(self.rule_number[name],)]
            case Choice(items):
                return [rhs for item in items for rhs in self.alternatives(item)]
            case Seq(items):
                return [tuple(symbol for item in items for symbol in self.symbols(item))]
            case Repeat(_, 0, 0):
                return [()]
            case Repeat(body, 0, None):
                return [(), (*self.symbols(body), self.nonterminal(expr))]
            case Repeat(body, 0, high):
                return [(), (*self.symbols(body), *self.symbols(Repeat(body, 0, high - 1)))]
            case Repeat(body, low, high):
                rest = Repeat(body, 0, None if high is None else high - low)
                return [(*self.symbols(body) * low, *self.symbols(rest))]
            case TokenEdge(ids, excluded):
                return [(self.edge(self.takeable - set(ids) if excluded else set(ids)),)]
            case TokenDispatch(tags, excludes, loops):
                free = self.edge(self.takeable - {*excludes, *(trigger for trigger, _ in tags)})
                again = (self.nonterminal(expr),)
                after = again if loops else ()
                called = [
                    (self.edge({trigger}), self.rule_number[rule], *after) for trigger, rule in tags
                ]
                return [(), (free, *again), *called]
        raise TypeError(expr)

    def edge(self, ids: Collection[int]) -> ByteSet:
        """Those of these tokens that an edge can take."""
        return frozenset(FIRST_EDGE + i for i in self.takeable & set(ids))

    def symbols(self, expr: Expr) -> tuple[Symbol, ...]:
        """The expression as a part of one right-hand side."""
        match expr:
            case Empty() | Literal() | Ref() | Seq() | Repeat(_, 0, 0) | TokenEdge():
                return self.alternatives(expr)[0]
            case _:
                return (self.nonterminal(expr),)

    def nonterminal(self, expr: Expr) -> int:
        """A nonterminal of its own for the expression; equal expressions share one."""
        if expr not in self.number_of:
            self.number_of[expr] = number = len(self.names)
            self.names.append(f"{_expr_text(expr)}")
            for rhs in self.alternatives(expr):
                self.productions.append(Production(number, rhs))
        return self.number_of[expr]


def lower(grammar: Grammar, takeable: Collection[int] = ()) -> Cfg:
    """The same language over bytes: UTF-8 spelled out, repetition expanded, nothing pruned.

    Args:
        grammar: the grammar.
        takeable: the tokens that a token edge can take.
    """
    lowering = _Lowering(grammar, takeable)
    start = lowering.rule_number[grammar.root]
    return Cfg(tuple(lowering.names), tuple(lowering.productions), start)


def grammar(
    rules: Mapping[str, Expr | str] | Sequence[tuple[str, Expr]], root: str = "root"
) -> Grammar:
    """A grammar from rules; a plain string stands for the literal."""
    items = rules.items() if isinstance(rules, Mapping) else rules
    return Grammar({n: Literal(e.encode()) if isinstance(e, str) else e for n, e in items}, root)
