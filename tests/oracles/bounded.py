"""Rules of at most so many characters or tokens by definition.

:func:`expanded` writes a grammar in which some rules have a bound on their characters as one
without bounds, with a rule for each number of characters. It takes any grammar, also where no
automaton could follow a bounded rule, and grows with bounds and splits. :func:`in_tokens` writes
one in which a rule has a bound on its tokens, over letters of which one stands before each token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product

from oracles.model import CharClass, Choice, Empty, Expr, Grammar, Literal, Ref, Repeat, Seq

NOTHING = Choice(())


def characters(data: bytes) -> int:
    """Bytes that do not go on with a character."""
    return sum(byte & 0xC0 != 0x80 for byte in data)


def expanded(grammar: Grammar, bounds: Mapping[str, int]) -> Grammar:
    """The grammar in which the rules named in ``bounds`` have at most so many characters."""
    return _Expansion(grammar, bounds).all()


class _Expansion:
    def __init__(self, grammar: Grammar, bounds: Mapping[str, int]) -> None:
        self.grammar, self.bounds = grammar, bounds
        self.rules: dict[str, Expr] = {}
        self.todo: list[tuple[str, int]] = []

    def all(self) -> Grammar:
        for name, body in self.grammar.rules.items():
            if name in self.bounds:
                numbers = range(self.bounds[name] + 1)
                self.rules[name] = Choice(tuple(self.exactly(body, number) for number in numbers))
            else:
                self.rules[name] = body
        while self.todo:
            name, number = self.todo.pop()
            self.rules[f"{name}#{number}"] = self.exactly(self.grammar.rules[name], number)
        return Grammar(self.rules, self.grammar.root)

    def exactly(self, expr: Expr, number: int) -> Expr:
        """Its texts of exactly so many characters."""
        match expr:
            case Empty():
                return expr if number == 0 else NOTHING
            case Literal(data):
                return expr if characters(data) == number else NOTHING
            case CharClass():
                return expr if number == 1 else NOTHING
            case Ref(name):
                if number > self.bounds.get(name, number):
                    return NOTHING
                key = f"{name}#{number}"
                if key not in self.rules:
                    self.rules[key] = NOTHING
                    self.todo.append((name, number))
                return Ref(key)
            case Choice(items):
                return Choice(tuple(self.exactly(item, number) for item in items))
            case Seq(()):
                return Empty() if number == 0 else NOTHING
            case Seq((first, *rest)):
                return self.split(first, Seq(tuple(rest)), number, range(number + 1))
            case Repeat(body, low, high):
                if high == 0 or (low == 0 and number == 0):
                    return Empty() if number == 0 else NOTHING
                less = None if high is None else high - 1
                # Past the least number of times, a time without characters says nothing.
                firsts = range(number + 1) if low else range(1, number + 1)
                return self.split(body, Repeat(body, max(low - 1, 0), less), number, firsts)
        raise AssertionError(expr)

    def split(self, first: Expr, rest: Expr, number: int, firsts: range) -> Expr:
        ways = (
            Seq((self.exactly(first, count), self.exactly(rest, number - count)))
            for count in firsts
        )
        return Choice(tuple(ways))


# ------------------------------------------------------------------------- tokens of a rule

BEGIN = 0
"""The letter that stands before each token; no text has it."""


def in_tokens(grammar: Grammar, name: str, words: Collection[bytes], most: int) -> Grammar:
    """The grammar over bytes and begins of tokens, where a rule of these words has ``most`` tokens.

    Tokens are counted that begin within a word. Where one more begins, what was read goes on to the
    nearest end: no word that begins so is shorter. Without any token there are the shortest words.
    """
    rules = {rule: _with_begins(body) for rule, body in grammar.rules.items() if rule != name}
    ways = (way for word in words for way in _in_tokens(word, words, most))
    rules[name] = Choice(tuple(ways))
    return Grammar({rule: rules[rule] for rule in grammar.rules}, grammar.root)


def _in_tokens(word: bytes, words: Collection[bytes], most: int) -> Iterator[Expr]:
    for begins in product((False, True), repeat=len(word)):
        places = [place for place, is_begin in enumerate(begins) if is_begin]
        spent = None
        if most == 0:
            spent = b""
        elif len(places) > most:
            spent = word[: places[most]]
        if spent is not None:
            others = (other for other in words if other.startswith(spent))
            if any(len(other) < len(word) for other in others):
                continue
        letters = (
            bytes([BEGIN, byte]) if is_begin else bytes([byte])
            for byte, is_begin in zip(word, begins, strict=True)
        )
        yield Literal(b"".join(letters)) if word else Empty()


def _with_begins(expr: Expr) -> Expr:
    begin = Repeat(Literal(bytes([BEGIN])), 0, 1)
    match expr:
        case CharClass():  # of ASCII
            return Seq((begin, expr))
        case Literal(data):
            return Seq(tuple(part for byte in data for part in (begin, Literal(bytes([byte])))))
        case Seq(items):
            return Seq(tuple(map(_with_begins, items)))
        case Choice(items):
            return Choice(tuple(map(_with_begins, items)))
        case Repeat(body, low, high):
            return Repeat(_with_begins(body), low, high)
    return expr
