"""The form of a grammar: its rules as written, for all that looks at them or rewrites them.

The engine forgets the form on purpose: its network is the same for many ways of writing one
language. The laboratory is about the ways of writing. A :class:`Form` keeps each rule as it stands,
repetitions, choices and single-call rules included.

Expressions are interned: equal expressions are one object, so ``is`` compares them, and a grammar
nested ten thousand deep is compared, hashed and remembered without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, final
from weakref import WeakValueDictionary

from tokfold import _core
from tokfold._sources.record import Lookahead
from tokfold.grammar import Grammar
from tokfold.limits import Limits

__all__ = [
    "EMPTY",
    "Alt",
    "Chars",
    "Empty",
    "Expr",
    "Form",
    "FormRule",
    "Literal",
    "Macro",
    "Place",
    "Ref",
    "Repeat",
    "Seq",
    "below",
    "children",
    "postorder",
]


@dataclass(frozen=True, order=True)
class Place:
    """Where something stands in grammar text: line and column, from 1, columns in characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Expr:
    """A right-hand side or a part of it. Interned: equal expressions are the same object."""

    __slots__ = ("__weakref__", "_key")
    _interned: ClassVar[WeakValueDictionary[object, Expr]] = WeakValueDictionary()
    _key: tuple[object, ...]

    @classmethod
    def _intern(cls, key: tuple[object, ...]) -> tuple[Expr, bool]:
        known = Expr._interned.get((cls, key))
        if known is not None:
            return known, False
        made = object.__new__(cls)
        made._key = key
        Expr._interned[(cls, key)] = made
        return made, True

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._key


@final
class Empty(Expr):
    """The empty string."""

    __slots__ = ()

    def __new__(cls) -> Empty:  # noqa: D102
        made, _ = cls._intern(())
        assert isinstance(made, Empty)
        return made

    def __repr__(self) -> str:
        return "Empty()"


EMPTY = Empty()


@final
class Literal(Expr):
    """Bytes, at least one, that are whole code points in UTF-8 (grammar text has no others).

    Attributes:
        data: the bytes.
    """

    __slots__ = ("data",)
    data: bytes

    def __new__(cls, data: bytes) -> Literal:  # noqa: D102
        if not data:
            raise ValueError("a literal has bytes; the empty string is EMPTY")
        data.decode("utf-8", "surrogatepass")  # raises UnicodeDecodeError, a ValueError
        made, new = cls._intern((data,))
        assert isinstance(made, Literal)
        if new:
            made.data = data
        return made

    def __repr__(self) -> str:
        return f"Literal({self.data!r})"


@final
class Chars(Expr):
    """One code point out of a set; none where the set is empty.

    Attributes:
        ranges: first and last code points, sorted, apart from each other.
    """

    __slots__ = ("ranges",)
    ranges: tuple[tuple[int, int], ...]

    def __new__(cls, ranges: Iterable[tuple[int, int]]) -> Chars:  # noqa: D102
        merged: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if not 0 <= first <= last <= 0x10FFFF:
                raise ValueError(f"no range of code points: {first:#x} to {last:#x}")
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        key = tuple(merged)
        made, new = cls._intern((key,))
        assert isinstance(made, Chars)
        if new:
            made.ranges = key
        return made

    def __repr__(self) -> str:
        return f"Chars({self.ranges!r})"


@final
class Ref(Expr):
    """A rule, by its name.

    Attributes:
        name: the rule's name.
    """

    __slots__ = ("name",)
    name: str

    def __new__(cls, name: str) -> Ref:  # noqa: D102
        made, new = cls._intern((name,))
        assert isinstance(made, Ref)
        if new:
            made.name = name
        return made

    def __repr__(self) -> str:
        return f"Ref({self.name!r})"


@final
class Seq(Expr):
    """One after the other, at least two.

    Attributes:
        parts: the expressions in order.
    """

    __slots__ = ("parts",)
    parts: tuple[Expr, ...]

    def __new__(cls, parts: Iterable[Expr]) -> Seq:  # noqa: D102
        key = tuple(parts)
        if len(key) < 2:
            raise ValueError("a sequence has two parts or more")
        made, new = cls._intern((key,))
        assert isinstance(made, Seq)
        if new:
            made.parts = key
        return made

    def __repr__(self) -> str:
        return f"Seq of {len(self.parts)}"


@final
class Alt(Expr):
    """One of several, at least two.

    Attributes:
        parts: the alternatives in the order written.
    """

    __slots__ = ("parts",)
    parts: tuple[Expr, ...]

    def __new__(cls, parts: Iterable[Expr]) -> Alt:  # noqa: D102
        key = tuple(parts)
        if len(key) < 2:
            raise ValueError("a choice has two alternatives or more")
        made, new = cls._intern((key,))
        assert isinstance(made, Alt)
        if new:
            made.parts = key
        return made

    def __repr__(self) -> str:
        return f"Alt of {len(self.parts)}"


@final
class Repeat(Expr):
    """A body, at least ``least`` and at most ``most`` times.

    Attributes:
        body: what is repeated.
        least: the least number of times.
        most: the greatest number of times; ``None`` is without bound.
    """

    __slots__ = ("body", "least", "most")
    body: Expr
    least: int
    most: int | None

    def __new__(cls, body: Expr, least: int, most: int | None) -> Repeat:  # noqa: D102
        if least < 0 or (most is not None and most < least):
            raise ValueError(f"no repetition: {{{least},{most}}}")
        made, new = cls._intern((body, least, most))
        assert isinstance(made, Repeat)
        if new:
            made.body, made.least, made.most = body, least, most
        return made

    def __repr__(self) -> str:
        return f"Repeat({self.body!r}, {self.least}, {self.most})"


@final
class Macro(Expr):
    """One of XGrammar's macros (``TagDispatch``, ``Regex``, ``Token``, ...), taken as it is.

    Attributes:
        name: the macro's name.
        number: which one of the grammar that it was read from.
        rules: names of the rules that it names, as often as it does.
    """

    __slots__ = ("name", "number", "rules")
    name: str
    number: int
    rules: tuple[str, ...]

    def __new__(cls, name: str, number: int, rules: Iterable[str]) -> Macro:  # noqa: D102
        key = (name, number, tuple(rules))
        made, new = cls._intern(key)
        assert isinstance(made, Macro)
        if new:
            made.name, made.number, made.rules = key
        return made

    def __repr__(self) -> str:
        return f"Macro({self.name!r}, {self.number}, {self.rules!r})"


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions that an expression is made of, in order."""
    if isinstance(expr, Seq | Alt):
        return expr.parts
    if isinstance(expr, Repeat):
        return (expr.body,)
    return ()


def postorder(roots: Iterable[Expr]) -> list[Expr]:
    """All expressions under ``roots``, each once, children before parents."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    work: list[tuple[Expr, bool]] = [(root, False) for root in reversed(list(roots))]
    while work:
        expr, done = work.pop()
        if done:
            order.append(expr)
        elif expr not in seen:
            seen.add(expr)
            work.append((expr, True))
            work.extend((child, False) for child in reversed(children(expr)))
    return order


def below(expr: Expr) -> Iterator[Expr]:
    """An expression and all that it is made of, as often as they occur, in the order of the text.

    Shared parts are visited each time: of an expression that was read from text, that is as many as
    the text has; a rewritten one should be visited by :func:`postorder`.
    """
    work = [expr]
    while work:
        top = work.pop()
        yield top
        work.extend(reversed(children(top)))


@dataclass(frozen=True)
class FormRule:
    """A named right-hand side.

    Attributes:
        name: unique in its grammar.
        body: the right-hand side.
        lookahead: what stands in ``(= ...)`` at the end, if anything.
        options_of: the rule of the grammar read whose options in brackets this one has.
        place: where the name stands; ``None`` for rules made by rewriting.
    """

    name: str
    body: Expr
    lookahead: Expr | None = None
    options_of: int | None = None
    place: Place | None = None


_EMPTY, _LITERAL, _CLASS, _RULE, _SEQUENCE, _CHOICE, _REPEAT, _MACRO = range(8)


@dataclass(frozen=True, eq=False)
class Form:
    """Rules by name, in order, and the name of the start rule. Immutable.

    Attributes:
        rules: the rules; every name that occurs in a body is there.
        root: name of the start rule.
        source: the grammar that was read: macros and options are taken from it.
        places: where each expression stands, for an expression as often as it occurs, by rule:
            pairs of an expression and its place, in the order of the arena, children before
            parents. Empty for rewritten forms.
    """

    rules: Mapping[str, FormRule]
    root: str
    source: Grammar
    places: Mapping[str, tuple[tuple[Expr, Place], ...]]

    @classmethod
    def of(cls, grammar: Grammar | str, root: str = "root") -> Form:
        """The form of a grammar, or of grammar text."""
        if isinstance(grammar, str):
            grammar = Grammar.from_ebnf(grammar, root)
        grammar = grammar._as_rules
        rules, flat, where, start = _core.read_arena(grammar._core)
        names = [rule[0] for rule in rules]
        exprs: list[Expr] = []
        for kind, numbers, data in flat:
            exprs.append(_expression(kind, numbers, data, exprs, names))
        places: dict[str, tuple[tuple[Expr, Place], ...]] = {}
        read: dict[str, FormRule] = {}
        for index, (name, body, lookahead, has_options, line, column) in enumerate(rules):
            read[name] = FormRule(
                name,
                exprs[body],
                None if lookahead is None else exprs[lookahead],
                index if has_options else None,
                Place(line, column),
            )
            roots = [body] if lookahead is None else [body, lookahead]
            ids = _reached(roots, flat)
            places[name] = tuple((exprs[i], Place(*where[i])) for i in ids)
        return cls(read, names[start], grammar, places)

    def with_rules(self, rules: Iterable[FormRule], root: str | None = None) -> Form:
        """The form with other rules, in this order."""
        named = {rule.name: rule for rule in rules}
        return Form(named, self.root if root is None else root, self.source, {})

    @property
    def lookahead(self) -> Lookahead:
        """What ``(= ...)`` means in the grammar."""
        return self.source.lookahead

    def grammar(self, limits: Limits | None = None) -> Grammar:
        """The grammar of this form, under the limits of the grammar read or under others.

        Raises:
            LimitExceededError: it is larger than the limits allow.
            KeyError: a body names a rule that is not there.
        """
        text = str(self)
        bounds = limits if limits is not None else self.source._limits
        return Grammar.from_ebnf(text, self.root, lookahead=self.lookahead, limits=bounds)

    def __str__(self) -> str:
        """Grammar text that reads back as this grammar, in XGrammar's EBNF."""
        numbers: dict[Expr, int] = {}
        rule_numbers = {name: index for index, name in enumerate(self.rules)}
        bodies = [rule.body for rule in self.rules.values()]
        ahead = [rule.lookahead for rule in self.rules.values() if rule.lookahead is not None]
        flat: list[tuple[int, list[int], bytes]] = []
        for expr in postorder([*bodies, *ahead]):
            numbers[expr] = len(flat)
            flat.append(_flattened(expr, numbers, rule_numbers))
        rules = [
            (
                rule.name,
                numbers[rule.body],
                None if rule.lookahead is None else numbers[rule.lookahead],
                rule.options_of,
            )
            for rule in self.rules.values()
        ]
        bounds = Limits(max_rules=max(len(rules), 1))
        base = self.source._core
        return _core.build_arena(base, rules, flat, rule_numbers[self.root], bounds).text()

    def __repr__(self) -> str:
        return f"Form(root={self.root!r}, rules={len(self.rules)})"


def _expression(
    kind: int, numbers: list[int], data: bytes, exprs: list[Expr], names: list[str]
) -> Expr:
    made: Mapping[int, Callable[[], Expr]] = {
        _EMPTY: lambda: EMPTY,
        _LITERAL: lambda: Literal(data),
        _CLASS: lambda: Chars(zip(numbers[::2], numbers[1::2], strict=True)),
        _RULE: lambda: Ref(names[numbers[0]]),
        _SEQUENCE: lambda: Seq(exprs[i] for i in numbers),
        _CHOICE: lambda: Alt(exprs[i] for i in numbers),
        _REPEAT: lambda: Repeat(
            exprs[numbers[0]], numbers[1], numbers[2] if len(numbers) > 2 else None
        ),
        _MACRO: lambda: Macro(data.decode(), numbers[0], (names[i] for i in numbers[1:])),
    }
    return made[kind]()


def _flattened(
    expr: Expr, numbers: Mapping[Expr, int], rules: Mapping[str, int]
) -> tuple[int, list[int], bytes]:
    match expr:
        case Literal():
            return _LITERAL, [], expr.data
        case Chars():
            return _CLASS, [end for pair in expr.ranges for end in pair], b""
        case Ref():
            return _RULE, [rules[expr.name]], b""
        case Seq():
            return _SEQUENCE, [numbers[part] for part in expr.parts], b""
        case Alt():
            return _CHOICE, [numbers[part] for part in expr.parts], b""
        case Repeat():
            most = [] if expr.most is None else [expr.most]
            return _REPEAT, [numbers[expr.body], expr.least, *most], b""
        case Macro():
            return _MACRO, [expr.number, *(rules[name] for name in expr.rules)], expr.name.encode()
        case _:
            return _EMPTY, [], b""


def _reached(roots: list[int], flat: list[tuple[int, list[int], bytes]]) -> list[int]:
    """The numbers of all expressions under ``roots``, ascending: children before parents."""
    reached: set[int] = set()
    work = list(roots)
    while work:
        number = work.pop()
        if number in reached:
            continue
        reached.add(number)
        kind, numbers, _ = flat[number]
        if kind in (_SEQUENCE, _CHOICE):
            work.extend(numbers)
        elif kind == _REPEAT:
            work.append(numbers[0])
    return sorted(reached)
