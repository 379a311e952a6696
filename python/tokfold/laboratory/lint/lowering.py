"""Rules as productions over characters, for the search of ambiguities.

A nonterminal is a rule, or a choice or repetition inside one. A parse is a tree of these: which
alternative was taken, and what each copy of a repetition read. Copies that read nothing are left
out of loops over something that may be empty: that such loops have endlessly many parses is a
finding of its own (``nullable-loop``), and would hide every other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tokfold.laboratory.form import Alt, Chars, Empty, Expr, Literal, Macro, Ref, Repeat, Seq
from tokfold.laboratory.lint.cycles import components, is_loop
from tokfold.laboratory.lint.facts import Facts

__all__ = ["Lowered", "Production"]

MAX_COPIES = 64
"""Copies of a repetition that are written out; one that must have more is not looked into."""

Key = tuple[str, Expr | None, int]
"""Rule, expression in it (``None``: the whole), how many copies are left of a repetition (-1: any
number; -2: this is no rest of a repetition)."""


@dataclass(frozen=True)
class Production:
    """A way to write a nonterminal.

    Attributes:
        symbols: characters (the number of a set) and nonterminals (below zero: ``~number``).
        is_copy: the first symbol is a copy in a loop, which must read something.
    """

    symbols: tuple[int, ...]
    is_copy: bool = False


class Lowered:
    """The productions of a form's useful rules.

    Attributes:
        keys: what each nonterminal stands for.
        productions: those of each nonterminal.
        sets: the sets of characters.
        left_out: what is not looked into, as rules.
    """

    def __init__(self, facts: Facts, max_copies: int = MAX_COPIES) -> None:
        self.facts = facts
        self.max_copies = max_copies
        self.keys: list[Key] = []
        self.productions: list[list[Production]] = []
        self.sets: list[Chars] = []
        self.left_out: dict[str, None] = {}
        self._numbers: dict[Key, int] = {}
        self._set_numbers: dict[Chars, int] = {}
        self.start = self._nonterminal((facts.form.root, None, -2))
        done = 0
        while done < len(self.keys):
            self.productions.append(self._written(self.keys[done]))
            done += 1
        self.nullable = self._nullable()
        self.cyclic = self._cyclic()

    def _nonterminal(self, key: Key) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return self._numbers[key]

    def _set(self, chars: Chars) -> int:
        if chars not in self._set_numbers:
            self._set_numbers[chars] = len(self.sets)
            self.sets.append(chars)
        return self._set_numbers[chars]

    def _written(self, key: Key) -> list[Production]:
        rule, expr, left = key
        body = self.facts.bodies[rule] if expr is None else expr
        if left != -2:
            assert isinstance(body, Repeat)
            return self._rest(rule, body, left)
        if isinstance(body, Alt):
            # Equal alternatives are a finding of their own.
            parts = [part for part in dict.fromkeys(body.parts) if part in self.facts.productive]
            return [Production(self._symbols(rule, part)) for part in parts]
        if isinstance(body, Repeat):
            return self._repeat(rule, body)
        if isinstance(body, Macro):
            self.left_out[rule] = None
            return []
        return [Production(self._symbols(rule, body))] if body in self.facts.productive else []

    def _repeat(self, rule: str, expr: Repeat) -> list[Production]:
        least = 0 if expr.body in self.facts.nullable else expr.least
        if least > MAX_COPIES:
            self.left_out[rule] = None
            return []
        if expr.most == 0 or expr.body not in self.facts.productive:
            return [Production(())]
        copy = self._symbols(rule, expr.body)
        if expr.most == 1:
            # No loop: that `x?` has the empty text twice where x may be empty is found like any.
            return [Production(copy)] if expr.least else [Production(()), Production(copy)]
        left = -1 if expr.most is None else expr.most - least
        if left == 0:
            return [Production(copy * least)]
        rest = ~self._nonterminal((rule, expr, min(left, self.max_copies)))
        return [Production((*copy * least, rest))] if least else self._rest(rule, expr, left)

    def _rest(self, rule: str, expr: Repeat, left: int) -> list[Production]:
        left = min(left, self.max_copies)
        again = left - 1 if left > 0 else left
        first = self._copy(rule, expr)
        if again == 0:
            return [Production(()), Production((first,), is_copy=True)]
        rest = ~self._nonterminal((rule, expr, again))
        return [Production(()), Production((first, rest), is_copy=True)]

    def _copy(self, rule: str, expr: Repeat) -> int:
        """One symbol for the body of a repetition."""
        symbols = self._symbols(rule, expr.body)
        if len(symbols) == 1:
            return symbols[0]
        return ~self._nonterminal((rule, expr.body, -2))

    def _symbols(self, rule: str, expr: Expr) -> tuple[int, ...]:
        symbols: list[int] = []
        work = [expr]
        while work:
            top = work.pop()
            if isinstance(top, Seq):
                work.extend(reversed(top.parts))
            elif isinstance(top, Literal):
                for char in top.data.decode("utf-8", "surrogatepass"):
                    symbols.append(self._set(Chars([(ord(char), ord(char))])))
            elif isinstance(top, Chars):
                symbols.append(self._set(top))
            elif isinstance(top, Ref):
                symbols.append(~self._nonterminal((top.name, None, -2)))
            elif not isinstance(top, Empty):
                symbols.append(~self._nonterminal((rule, top, -2)))
        return tuple(symbols)

    # --- facts ------------------------------------------------------------------------------------

    def _nullable(self) -> frozenset[int]:
        found: set[int] = set()
        waiting: dict[int, list[tuple[int, int]]] = {}
        counts: list[list[int]] = []
        work: list[int] = []
        for number, productions in enumerate(self.productions):
            counts.append([])
            for index, production in enumerate(productions):
                counts[number].append(len(production.symbols))
                if not production.symbols:
                    work.append(number)
                if all(symbol < 0 for symbol in production.symbols) and not production.is_copy:
                    for symbol in production.symbols:
                        waiting.setdefault(~symbol, []).append((number, index))
        while work:
            number = work.pop()
            if number in found:
                continue
            found.add(number)
            for parent, index in waiting.get(number, ()):
                counts[parent][index] -= 1
                if counts[parent][index] == 0:
                    work.append(parent)
        return frozenset(found)

    def alone(self, production: Production) -> list[int]:
        """The nonterminals that can be a production altogether, as the rest of it may be empty."""
        symbols = production.symbols
        full = [
            position
            for position, symbol in enumerate(symbols)
            if symbol >= 0 or ~symbol not in self.nullable or (production.is_copy and not position)
        ]
        if len(full) > 1 or any(symbols[position] >= 0 for position in full):
            return []
        return [~symbols[full[0]]] if full else [~symbol for symbol in symbols]

    def _cyclic(self) -> Mapping[int, int]:
        """For each nonterminal that can become itself, the number of its cycle."""
        edges = {
            number: [below for production in productions for below in self.alone(production)]
            for number, productions in enumerate(self.productions)
        }
        self.order: list[list[int]] = components(edges)
        """Those that others of the same length wait for first."""
        return {
            number: index
            for index, part in enumerate(self.order)
            if is_loop(part, edges)
            for number in part
        }
