"""A form as plain productions ``A -> X1 ... Xm``, by one convention.

Definition 1 of the paper knows no repetition and no group. What a form has of them becomes
nonterminals of its own, *helpers*:

- the alternatives of a rule are its productions; a literal is one terminal for each code point, a
  character class is one terminal, the empty string is no symbol;
- a choice inside a sequence, or as an alternative of a choice, is a helper with a production for
  each of its alternatives;
- a repetition is a helper, wherever it stands. ``x?`` is ``R -> ε | x``; ``x{m,}`` is
  ``R -> x ... x | R x`` with ``m`` times ``x`` (``x*`` is ``R -> ε | R x``, ``x+`` is
  ``R -> x | R x``); ``x{m,m}`` is ``R -> x ... x``; any other ``x{m,n}`` counts by
  ``Cm -> x ... x``, ``Ck -> Ck-1 x`` and ``R -> Cm | ... | Cn``;
- equal groups of one grammar share one helper, and equal productions of one nonterminal are one:
  productions are a set.

Helpers are left-recursive, because that is what costs an Earley recognizer least, and unambiguous
where their bodies are and are not empty. A body that may be empty makes ``x*`` cyclic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from tokfold._quoting import quoted
from tokfold.errors import UnsupportedGrammarError
from tokfold.laboratory.forest.limits import CostLimitError, CostLimits
from tokfold.laboratory.form import (
    Alt,
    Chars,
    Expr,
    Form,
    FormRule,
    Literal,
    Macro,
    Place,
    Ref,
    Repeat,
    Seq,
    postorder,
)

__all__ = ["Production", "Productions", "Ranges", "closure"]

Ranges = tuple[tuple[int, int], ...]
"""A terminal: first and last code points, sorted, apart from each other."""


@dataclass(frozen=True)
class Production:
    """``lhs -> rhs``.

    Attributes:
        lhs: a nonterminal.
        rhs: nonterminals are 0 and up, terminal ``i`` is ``~i``.
    """

    lhs: int
    rhs: tuple[int, ...]


@dataclass(frozen=True)
class Productions:
    """A context-free grammar as definition 1 of the paper has it.

    Attributes:
        names: of the nonterminals, those of the form's rules first; helpers are named after the
            rule where they stand first, ``rule~1``.
        rules: how many of the nonterminals are rules of the form.
        terminals: the sets of code points.
        productions: by nonterminal, in the order written.
        start: the start symbol.
    """

    names: tuple[str, ...]
    rules: int
    terminals: tuple[Ranges, ...]
    productions: tuple[Production, ...]
    start: int
    nullable: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nullable", closure(self.productions, lambda terminal: False))

    @classmethod
    def of(cls, form: Form, limits: CostLimits | None = None) -> Productions:
        """The productions of a form.

        Raises:
            UnsupportedGrammarError: the form has macros, rule options, or a lookahead that is not
                known to be implied: what they mean is not a production.
            CostLimitError: there are more symbols than the limits allow.
        """
        return _Lowering(form, limits or CostLimits()).done()

    def useful(self) -> Productions:
        """The grammar without productions that no complete derivation from the start uses.

        Nonterminals and terminals keep their numbers. The language is the same, and each Earley
        item of a text under the result belongs to some whole string that begins with the text.
        """
        productive = closure(self.productions, lambda terminal: bool(self.terminals[~terminal]))

        def can_end(rhs: Iterable[int]) -> bool:
            return all(s in productive if s >= 0 else self.terminals[~s] for s in rhs)

        kept: dict[int, list[Production]] = {}
        for production in self.productions:
            if can_end(production.rhs):
                kept.setdefault(production.lhs, []).append(production)
        reached, work = {self.start}, [self.start]
        while work:
            for production in kept.get(work.pop(), ()):
                for symbol in production.rhs:
                    if symbol >= 0 and symbol not in reached:
                        reached.add(symbol)
                        work.append(symbol)
        left = tuple(p for group in kept.values() for p in group if p.lhs in reached)
        return Productions(self.names, self.rules, self.terminals, left, self.start)

    def symbol_text(self, symbol: int) -> str:
        """A symbol as it is shown to a person."""
        if symbol >= 0:
            return self.names[symbol]
        ranges = self.terminals[~symbol]
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return repr(chr(ranges[0][0]))
        parts = (
            ascii(chr(a))[1:-1] + (f"-{ascii(chr(b))[1:-1]}" if b > a else "") for a, b in ranges
        )
        return f"[{''.join(parts)}]"

    def __str__(self) -> str:
        return "\n".join(
            f"{self.names[p.lhs]} -> {' '.join(map(self.symbol_text, p.rhs)) or 'ε'}"
            for p in self.productions
        )


def closure(productions: Sequence[Production], passes: Callable[[int], bool]) -> frozenset[int]:
    """The nonterminals with a production of which every symbol is in the set or passes the test."""
    waiting: dict[int, list[int]] = {}
    missing: list[int] = []
    found: set[int] = set()
    work: list[int] = []
    for number, production in enumerate(productions):
        if any(s < 0 and not passes(s) for s in production.rhs):
            missing.append(-1)
            continue
        calls = {s for s in production.rhs if s >= 0}
        missing.append(len(calls))
        for symbol in calls:
            waiting.setdefault(symbol, []).append(number)
        if not calls and production.lhs not in found:
            found.add(production.lhs)
            work.append(production.lhs)
    while work:
        for number in waiting.get(work.pop(), ()):
            missing[number] -= 1
            lhs = productions[number].lhs
            if missing[number] == 0 and lhs not in found:
                found.add(lhs)
                work.append(lhs)
    return frozenset(found)


class _Lowering:
    """A form on its way to productions."""

    def __init__(self, form: Form, limits: CostLimits) -> None:
        self.form = form
        self.limits = limits
        self.names = list(form.rules)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.terminals: dict[Ranges, int] = {}
        self.productions: list[dict[tuple[int, ...], None]] = [{} for _ in self.names]
        self.sequences: dict[Expr, tuple[int, ...]] = {}
        self.symbols = 0
        self.copied = 0

    def done(self) -> Productions:
        for number, rule in enumerate(self.form.rules.values()):
            self.refuse(rule)
            self.rule, self.count = rule.name, 0
            parts = rule.body.parts if isinstance(rule.body, Alt) else (rule.body,)
            for part in postorder(parts):
                if part not in self.sequences:
                    self.sequences[part] = self.sequence(part)
            for part in parts:
                self.add(number, self.sequences[part])
        flat = tuple(
            Production(lhs, rhs) for lhs, group in enumerate(self.productions) for rhs in group
        )
        start = self.numbers[self.form.root]
        rules = len(self.form.rules)
        return Productions(tuple(self.names), rules, tuple(self.terminals), flat, start)

    def refuse(self, rule: FormRule) -> None:
        if rule.lookahead is not None and self.form.lookahead != "implied":
            self.unsupported(rule, "a lookahead (= ...)", rule.place)
        if rule.options_of is not None:
            self.unsupported(rule, "options in brackets", rule.place)
        for expr in postorder([rule.body]):
            if isinstance(expr, Macro):
                places = self.form.places.get(rule.name, ())
                place = next((p for e, p in places if e is expr), rule.place)
                self.unsupported(rule, expr.name, place)

    def unsupported(self, rule: FormRule, construct: str, place: Place | None) -> NoReturn:
        at = place or Place(1, 1)
        raise UnsupportedGrammarError(
            f"{at}: rule {quoted(rule.name)} has {construct}, which is no production of a "
            "context-free grammar; write it as rules, or leave it out",
            construct,
            at.line,
            at.column,
        )

    def sequence(self, expr: Expr) -> tuple[int, ...]:
        """The symbols in place of an expression whose parts are done."""
        match expr:
            case Literal():
                points = map(ord, expr.data.decode("utf-8", "surrogatepass"))
                return tuple(self.terminal(((point, point),)) for point in points)
            case Chars():
                return (self.terminal(expr.ranges),)
            case Ref():
                return (self.numbers[expr.name],)
            case Seq():
                size = sum(len(self.sequences[part]) for part in expr.parts)
                self.room(size)
                # Sequences in sequences, each long, may be many though no production has them all.
                self.copied += size
                if self.copied > 8 * self.limits.max_symbols:
                    self.room(self.copied)
                return tuple(s for part in expr.parts for s in self.sequences[part])
            case Alt():
                helper = self.helper()
                for part in expr.parts:
                    self.add(helper, self.sequences[part])
                return (helper,)
            case Repeat():
                return (self.repeat(expr),)
            case _:
                return ()

    def repeat(self, expr: Repeat) -> int:
        body, least, most = self.sequences[expr.body], expr.least, expr.most
        self.room(len(body) * least)
        helper = self.helper()
        if most is None:
            self.add(helper, body * least)
            self.add(helper, (helper, *body))
        elif most == least:
            self.add(helper, body * least)
        elif (least, most) == (0, 1):
            self.add(helper, ())
            self.add(helper, body)
        else:
            self.room((most - least) * (len(body) + 2))
            passes = self.helper()
            self.add(passes, body * least)
            self.add(helper, (passes,))
            for _ in range(least, most):
                before, passes = passes, self.helper()
                self.add(passes, (before, *body))
                self.add(helper, (passes,))
        return helper

    def helper(self) -> int:
        self.count += 1
        self.names.append(f"{self.rule}~{self.count}")
        self.productions.append({})
        return len(self.names) - 1

    def terminal(self, ranges: Ranges) -> int:
        return ~self.terminals.setdefault(ranges, len(self.terminals))

    def add(self, lhs: int, rhs: tuple[int, ...]) -> None:
        if rhs not in self.productions[lhs]:
            self.room(len(rhs) + 1)
            self.symbols += len(rhs) + 1
            self.productions[lhs][rhs] = None

    def room(self, more: int) -> None:
        """Refuse what is too long before it is made."""
        if self.symbols + more > self.limits.max_symbols:
            raise CostLimitError(
                f"rule {quoted(self.rule)}: with its repetitions written out the grammar has more "
                f"than {self.limits.max_symbols:,} symbols; use smaller counts, or raise "
                "max_symbols",
                "max_symbols",
                self.limits.max_symbols,
            )
