"""A grammar as productions: what stands in the arena of the core, with nothing left but symbols.

A right-hand side becomes sequences of symbols; a choice inside a sequence, a repetition and a
literal's letters become symbols of their own, equal ones once. Nothing recurses on the grammar.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from tokfold import _core
from tokfold._checks import is_one_of
from tokfold._quoting import quoted
from tokfold._utf8 import utf8_sequences
from tokfold.chart_gpu.letters import Alphabet, AlphabetName, byte_sets
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.grammar import Grammar
from tokfold.limits import DEFAULT_LIMITS, Limits

__all__ = ["Productions", "read_productions"]

_EMPTY, _LITERAL, _CLASS, _RULE, _SEQUENCE, _CHOICE, _REPEAT, _MACRO = range(8)

Body: TypeAlias = tuple[int, ...]
Bodies: TypeAlias = tuple[Body, ...]
_Flat: TypeAlias = tuple[int, list[int], bytes]


@dataclass
class Productions:
    """Productions over symbols, numbered from 0.

    Attributes:
        bodies: of each symbol, its right-hand sides. Empty for leaves.
        letters: of each symbol, a number whose bit ``i`` says that letter ``i`` is a string of it.
            0 for all but leaves.
        start: the start symbol.
        alphabet: what the letters are.
    """

    bodies: list[Bodies]
    letters: list[int]
    start: int
    alphabet: Alphabet


@dataclass
class _Reader:
    alphabet: Alphabet
    limits: Limits
    bodies: list[Bodies] = field(default_factory=list)
    letters: list[int] = field(default_factory=list)
    known: dict[Hashable, int] = field(default_factory=dict)
    written: int = 0

    def symbol(self, key: Hashable, bodies: Bodies = (), letters: int = 0) -> int:
        """The symbol of a key; made with these productions if there is none."""
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.bodies)
            self.bodies.append(bodies)
            self.letters.append(letters)
            self.count(1 + sum(map(len, bodies)))
        return found

    def count(self, written: int) -> None:
        """Bound what is written: repetitions may ask for any amount."""
        self.written += written
        most = self.limits.max_binary_rules
        if self.written > most:
            raise LimitExceededError(
                f"limit max_binary_rules = {most} reached: the productions of the grammar, with "
                'its repetitions written out; engine="chart" counts repetitions, or raise the '
                "limit",
                "max_binary_rules",
                most,
            )

    def leaf(self, letters: int) -> int:
        return self.symbol(("leaf", letters), (), letters)

    def one(self, bodies: Bodies) -> Body:
        """Bodies as one sequence: as they are, or as a symbol that stands for the choice."""
        if len(bodies) == 1:
            return bodies[0]
        return (self.symbol(("choice", bodies), bodies),)

    def literal(self, data: bytes) -> Bodies:
        body = tuple(self.leaf(1 << letter) for letter in self.alphabet.letters_of_literal(data))
        self.count(len(body))
        return (body,)

    def chars(self, ranges: Sequence[tuple[int, int]]) -> Bodies:
        if self.alphabet.name != "bytes":
            return ((self.leaf(1 << self.alphabet.letter_of_class(ranges)),),)
        single = 0
        bodies: dict[Body, None] = {}
        for first, last in ranges:
            for steps in utf8_sequences(first, last):
                if len(steps) == 1:
                    single |= byte_sets(*steps[0])
                else:
                    bodies[tuple(self.leaf(byte_sets(*step)) for step in steps)] = None
        ends: Bodies = ((self.leaf(single),),) if single else ()
        return (*ends, *bodies)

    def repeat(self, body: Body, least: int, most: int | None) -> Bodies:
        if not body:
            return ((),)
        self.count(least * len(body))
        before = body * least
        if most is None:
            key = ("star", body)
            star = self.symbol(key)
            self.bodies[star] = ((), (*body, star))
            self.count(len(body))
            return ((*before, star),)
        rest: Body = ()
        for passes in range(1, most - least + 1):
            rest = (self.symbol(("up to", body, passes), ((), (*body, *rest))),)
        return ((*before, *rest),)


def read_productions(
    grammar: Grammar, alphabet: AlphabetName = "bytes", limits: Limits | None = None
) -> Productions:
    """The productions of a grammar."""
    if not isinstance(grammar, Grammar):
        raise TypeError(f"grammar must be a tokfold.Grammar, not {type(grammar).__name__}")
    if not is_one_of(alphabet, get_args(AlphabetName)):
        names = ", ".join(f'"{name}"' for name in get_args(AlphabetName))
        raise ValueError(f"alphabet must be one of {names}, not {quoted(alphabet)}")
    rules, flat, places, root = _core.read_arena(grammar._as_rules._core)
    reached, used = _reached(rules, flat, root)
    for index in reached:
        name, _, lookahead, has_options, line, column = rules[index]
        if lookahead is not None and grammar.lookahead != "implied":
            raise _unsupported(
                "lookahead", f"rule {quoted(name)} narrows what follows it", line, column
            )
        if has_options:
            raise _unsupported(
                "options", f"rule {quoted(name)} has options in brackets", line, column
            )
    reader = _Reader(Alphabet(alphabet), limits or DEFAULT_LIMITS)
    of_rule = {index: reader.symbol(("rule", index)) for index in reached}
    bodies: dict[int, Bodies] = {}
    for index in used:
        kind, numbers, data = flat[index]
        if kind == _MACRO:
            raise _unsupported(data.decode(), "it has no productions", *places[index])
        made = _bodies_of(reader, kind, numbers, data, bodies, of_rule)
        bodies[index] = tuple(dict.fromkeys(made))
    for index in reached:
        reader.bodies[of_rule[index]] = bodies[rules[index][1]]
        reader.count(len(bodies[rules[index][1]]))
    return Productions(reader.bodies, reader.letters, of_rule[root], reader.alphabet)


def _bodies_of(
    reader: _Reader,
    kind: Literal[0, 1, 2, 3, 4, 5, 6, 7] | int,
    numbers: list[int],
    data: bytes,
    bodies: dict[int, Bodies],
    of_rule: dict[int, int],
) -> Bodies:
    if kind == _EMPTY:
        return ((),)
    if kind == _LITERAL:
        return reader.literal(data)
    if kind == _CLASS:
        return reader.chars(list(zip(numbers[::2], numbers[1::2], strict=True)))
    if kind == _RULE:
        return ((of_rule[numbers[0]],),)
    if kind == _CHOICE:
        return tuple(body for part in numbers for body in bodies[part])
    if kind == _SEQUENCE:
        parts = [reader.one(bodies[part]) for part in numbers]
        reader.count(sum(map(len, parts)))
        return (tuple(symbol for part in parts for symbol in part),)
    most = numbers[2] if len(numbers) > 2 else None
    return reader.repeat(reader.one(bodies[numbers[0]]), numbers[1], most)


def _reached(
    rules: list[tuple[str, int, int | None, bool, int, int]], flat: list[_Flat], root: int
) -> tuple[list[int], list[int]]:
    """The rules that the root reaches, and the expressions of their bodies; both ascending."""
    seen, work = {root}, [root]
    used: set[int] = set()
    while work:
        todo = [rules[work.pop()][1]]
        while todo:
            index = todo.pop()
            if index in used:
                continue
            used.add(index)
            kind, numbers, _ = flat[index]
            if kind == _RULE and numbers[0] not in seen:
                seen.add(numbers[0])
                work.append(numbers[0])
            elif kind in (_SEQUENCE, _CHOICE):
                todo.extend(numbers)
            elif kind == _REPEAT:
                todo.append(numbers[0])
    return sorted(seen), sorted(used)


def _unsupported(construct: str, why: str, line: int, column: int) -> UnsupportedGrammarError:
    return UnsupportedGrammarError(
        f"line {line}, column {column}: a chart on a device cannot take {construct}: {why}; "
        "tokfold.compile may",
        construct,
        line,
        column,
    )
