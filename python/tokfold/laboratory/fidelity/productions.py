"""A grammar as productions over bytes: what the exact inside algorithm and its check work on.

Code points become sequences of byte ranges that do not overlap, repetitions become helper rules
that count from the left (``R -> E R |``), so that a grammar has here as many parses of a text as
its expressions have: an unambiguous grammar stays unambiguous.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tokfold._quoting import quoted
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.grammar import Grammar
from tokfold.laboratory.fidelity.components import strong_components
from tokfold.laboratory.fidelity.utf8 import utf8_paths
from tokfold.laboratory.form import (
    Alt,
    Chars,
    Empty,
    Expr,
    Form,
    FormRule,
    Literal,
    Macro,
    Ref,
    Repeat,
    Seq,
    postorder,
)

__all__ = ["Productions", "Symbol", "Terminal"]

Terminal = frozenset[int]
"""The bytes that may be read at one place."""
Symbol = int | Terminal
"""A nonterminal, by its number, or a terminal."""
Rhs = tuple[Symbol, ...]

MAX_SYMBOLS = 50_000


@dataclass(frozen=True)
class Productions:
    """Productions over bytes.

    Attributes:
        names: of each nonterminal; helper rules are named after what they stand for.
        rules: the right-hand sides of each nonterminal.
        start: number of the start symbol.
    """

    names: tuple[str, ...]
    rules: tuple[tuple[Rhs, ...], ...]
    start: int

    @classmethod
    def of(
        cls, grammar: Grammar | Form | str, root: str = "root", *, max_symbols: int = MAX_SYMBOLS
    ) -> Productions:
        """The productions of a grammar.

        Args:
            grammar: the grammar, its form, or its text.
            root: name of the start rule, for text.
            max_symbols: bound on the symbols of all right-hand sides.

        Raises:
            UnsupportedGrammarError: it has a macro, a rule with options, or lookahead that is not
                implied by the rules.
            LimitExceededError: it is larger than ``max_symbols``.
        """
        form = grammar if isinstance(grammar, Form) else Form.of(grammar, root)
        return _Lowering(form, max_symbols).productions()

    @property
    def kappa(self) -> int:
        """Control states of the compiled automaton, the paper's definition 10."""
        dots = sum(len(rhs) + 1 for body in self.rules for rhs in body)
        return 1 + 2 * len(self.names) + dots

    def nullable(self) -> frozenset[int]:
        """The nonterminals that derive the empty string."""
        return self._least(lambda symbol, found: symbol in found)

    def trimmed(self) -> Productions:
        """Without what no complete derivation from the start uses; the start stays.

        Keeps the numbers: a nonterminal that is of no use has no right-hand sides.
        """
        productive = self._least(
            lambda symbol, found: symbol in found if isinstance(symbol, int) else bool(symbol)
        )
        kept = [
            tuple(
                rhs
                for rhs in body
                if all(s in productive if isinstance(s, int) else bool(s) for s in rhs)
            )
            for body in self.rules
        ]
        reached, work = {self.start}, [self.start]
        while work:
            for rhs in kept[work.pop()]:
                for symbol in rhs:
                    if isinstance(symbol, int) and symbol not in reached:
                        reached.add(symbol)
                        work.append(symbol)
        rules = tuple(body if lhs in reached else () for lhs, body in enumerate(kept))
        return Productions(self.names, rules, self.start)

    def _least(self, holds: object) -> frozenset[int]:
        """The nonterminals with a right-hand side all of whose symbols hold, least solution."""
        assert callable(holds)
        uses: dict[int, list[tuple[int, int]]] = {}
        missing: list[list[int]] = []
        found: set[int] = set()
        work: list[int] = []
        for lhs, body in enumerate(self.rules):
            counts = []
            for index, rhs in enumerate(body):
                open_symbols = 0
                for symbol in rhs:
                    if isinstance(symbol, int):
                        uses.setdefault(symbol, []).append((lhs, index))
                        open_symbols += 1
                    elif not holds(symbol, found):
                        open_symbols += len(rhs) + 1  # never
                counts.append(open_symbols)
                if open_symbols == 0 and lhs not in found:
                    found.add(lhs)
                    work.append(lhs)
            missing.append(counts)
        while work:
            for lhs, index in uses.get(work.pop(), ()):
                missing[lhs][index] -= 1
                if missing[lhs][index] == 0 and lhs not in found:
                    found.add(lhs)
                    work.append(lhs)
        return frozenset(found)

    def components(self) -> list[list[int]]:
        """Strongly connected sets of nonterminals, callees before callers."""
        return strong_components(
            [sorted({s for rhs in body for s in rhs if isinstance(s, int)}) for body in self.rules]
        )

    def __str__(self) -> str:
        lines = []
        for name, body in zip(self.names, self.rules, strict=True):
            for rhs in body:
                lines.append(f"{name} -> {' '.join(map(self.shown, rhs)) or 'ε'}")
        return "\n".join(lines)

    def shown(self, symbol: Symbol) -> str:
        """A symbol for people."""
        if isinstance(symbol, int):
            return self.names[symbol]
        values, parts = sorted(symbol), []
        while values:
            first = last = values.pop(0)
            while values and values[0] == last + 1:
                last = values.pop(0)
            ends = [chr(b) if 0x20 < b < 0x7F else f"\\x{b:02x}" for b in (first, last)]
            parts.append(ends[0] if first == last else "-".join(ends))
        return f"[{''.join(parts)}]"


class _Lowering:
    """One form on its way to productions."""

    def __init__(self, form: Form, max_symbols: int) -> None:
        self._form, self._left, self._max = form, max_symbols, max_symbols
        self._names = list(form.rules)
        self._rules: list[list[Rhs]] = [[] for _ in self._names]
        self._numbers = {name: number for number, name in enumerate(form.rules)}
        self._symbols: dict[Expr, Rhs] = {}

    def productions(self) -> Productions:
        for rule in self._form.rules.values():
            self._check(rule)
        for expr in postorder(rule.body for rule in self._form.rules.values()):
            self._symbols[expr] = self._lowered(expr)
        for name, rule in self._form.rules.items():
            body = rule.body
            alternatives = body.parts if isinstance(body, Alt) else (body,)
            for part in alternatives:
                self._add(self._numbers[name], self._symbols[part])
        rules = tuple(map(tuple, self._rules))
        return Productions(tuple(self._names), rules, self._numbers[self._form.root])

    def _check(self, rule: FormRule) -> None:
        what = None
        if rule.lookahead is not None and self._form.lookahead == "exact":
            what = "lookahead"
        elif rule.options_of is not None:
            what = "rule options"
        else:
            for expr in postorder([rule.body]):
                if isinstance(expr, Macro):
                    what = expr.name
        if what is not None:
            line, column = (rule.place.line, rule.place.column) if rule.place else (1, 1)
            raise UnsupportedGrammarError(
                f"line {line}, column {column}: rule {quoted(rule.name)} has {what}, which "
                "productions over bytes cannot say; write it as rules, or estimate instead of "
                "computing",
                what,
                line,
                column,
            )

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise LimitExceededError(
                f"written out as productions, the grammar has more than {self._max:,} symbols; "
                "make counted repetitions smaller, or raise max_symbols",
                "max_symbols",
                self._max,
            )

    def _add(self, lhs: int, rhs: Rhs) -> None:
        self._spend(len(rhs) + 1)
        self._rules[lhs].append(rhs)

    def _helper(self, name: str, bodies: Iterable[Rhs] = ()) -> int:
        number = len(self._names)
        self._names.append(name)
        self._rules.append([])
        for rhs in bodies:
            self._add(number, rhs)
        return number

    def _lowered(self, expr: Expr) -> Rhs:
        """The expression as a part of a right-hand side; what it is made of is done."""
        match expr:
            case Literal():
                return tuple(frozenset({byte}) for byte in expr.data)
            case Ref():
                return (self._numbers[expr.name],)
            case Seq():
                self._spend(sum(len(self._symbols[part]) for part in expr.parts))
                return tuple(symbol for part in expr.parts for symbol in self._symbols[part])
            case Alt():
                return (self._helper("(choice)", (self._symbols[p] for p in expr.parts)),)
            case Chars():
                return self._characters(expr)
            case Repeat():
                return self._repeated(expr)
            case Empty():
                return ()
        raise TypeError(f"no expression: {quoted(expr)}")

    def _characters(self, expr: Chars) -> Rhs:
        paths = [path for first, last in expr.ranges for path in utf8_paths(first, last)]
        single = frozenset(byte for path in paths if len(path) == 1 for byte in path[0])
        longer = [path for path in paths if len(path) > 1]
        if not longer:
            return (single,)
        bodies: list[Rhs] = [(single,)] if single else []
        return (self._helper("(character)", [*bodies, *longer]),)

    def _repeated(self, expr: Repeat) -> Rhs:
        body = self._symbols[expr.body]
        if expr.most == 0:
            return ()
        self._spend(expr.least * len(body))
        head = body * expr.least
        if expr.most is None:
            rest = self._helper("(repetition)")
            self._add(rest, ())
            self._add(rest, (*body, rest))
            return (*head, rest)
        tail: Rhs = ()
        for _ in range(expr.most - expr.least):
            tail = (self._helper("(repetition)", [(), (*body, *tail)]),)
        return (*head, *tail)
