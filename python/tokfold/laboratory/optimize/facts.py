"""What the strings of expressions look like at their ends: sets of characters, and emptiness."""

from __future__ import annotations

from dataclasses import dataclass

from tokfold.laboratory.form import Alt, Chars, Expr, Literal, Macro, Ref, Repeat, Seq, postorder
from tokfold.laboratory.optimize.algebra import references
from tokfold.laboratory.optimize.system import System

__all__ = ["NOTHING", "Ends", "Facts", "width"]

_OTHER = 1 << 128
_ALL = (1 << 129) - 1
MAX_ROUNDS = 100


@dataclass(frozen=True)
class Ends:
    """Sets of characters as bits: ASCII, and one bit for all others.

    Attributes:
        nullable: the empty string is one of the strings.
        last: characters at the end of a string.
        alone: strings of one character.
    """

    nullable: bool
    last: int
    alone: int


NOTHING = Ends(False, 0, 0)
_ANY = Ends(True, _ALL, _ALL)


def width(characters: int) -> int:
    """How many ASCII characters a set has."""
    return (characters & ~_OTHER).bit_count()


class Facts:
    """The ends of the rules of a system, as it stands when this is made.

    A least fixpoint, rule by rule until nothing changes. After ``MAX_ROUNDS`` visits for each
    rule, and for rules that are fixed, nothing is known and everything assumed: facts guide choices
    of form and decide nothing about the language.
    """

    def __init__(self, system: System) -> None:
        self.rules: dict[str, Ends] = {
            name: _ANY if name in system.fixed else NOTHING for name in system.rules
        }
        nodes = {name: postorder((system.rules[name],)) for name in system.open_rules()}
        users: dict[str, list[str]] = {name: [] for name in system.rules}
        for name in nodes:
            for callee in references(system.rules[name]):
                users[callee].append(name)
        due = dict.fromkeys(reversed(nodes))  # rules mostly stand after those that name them
        budget = MAX_ROUNDS * len(nodes)
        while due and budget:
            budget -= 1
            name = next(iter(due))
            del due[name]
            found = self._ends(nodes[name])
            if found != self.rules[name]:
                self.rules[name] = found
                due.update(dict.fromkeys(user for user in users[name] if user in nodes))
        if due:
            self.rules = dict.fromkeys(self.rules, _ANY)

    def of(self, expr: Expr) -> Ends:
        """The ends of an expression."""
        return self._ends(postorder((expr,)))

    def _ends(self, nodes: list[Expr]) -> Ends:
        known: dict[Expr, Ends] = {}
        for node in nodes:
            known[node] = self._one(node, known)
        return known[nodes[-1]]

    def _one(self, node: Expr, known: dict[Expr, Ends]) -> Ends:
        match node:
            case Literal():
                text = node.data.decode("utf-8", "surrogatepass")
                last = _bit(ord(text[-1]))
                return Ends(False, last, last if len(text) == 1 else 0)
            case Chars():
                found = _bits(node.ranges)
                return Ends(False, found, found)
            case Ref():
                return self.rules[node.name]
            case Macro():
                return _ANY
            case Seq():
                return _in_order([known[part] for part in node.parts])
            case Alt():
                parts = [known[part] for part in node.parts]
                last = alone = 0
                for part in parts:
                    last, alone = last | part.last, alone | part.alone
                return Ends(any(part.nullable for part in parts), last, alone)
            case Repeat():
                body = known[node.body]
                single = node.least <= 1 or body.nullable
                return Ends(node.least == 0 or body.nullable, body.last, single * body.alone)
            case _:
                return Ends(True, 0, 0)


def _in_order(parts: list[Ends]) -> Ends:
    last = 0
    for part in reversed(parts):
        last |= part.last
        if not part.nullable:
            break
    solid = [part for part in parts if not part.nullable]
    if len(solid) > 1:
        alone = 0
    elif solid:
        alone = solid[0].alone
    else:
        alone = 0
        for part in parts:
            alone |= part.alone
    return Ends(not solid, last, alone)


def _bit(point: int) -> int:
    return 1 << point if point < 128 else _OTHER


def _bits(ranges: tuple[tuple[int, int], ...]) -> int:
    found = 0
    for low, high in ranges:
        if low < 128:
            found |= (1 << min(high, 127) + 1) - (1 << low)
        if high >= 128:
            found |= _OTHER
    return found
