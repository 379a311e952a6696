"""Texts of a form: small ones, random ones, and ones that use a given place."""

from __future__ import annotations

import heapq
import math
from random import Random

from laboratory.mutants.places import Path, Users, through
from tokfold.laboratory.form import (
    EMPTY,
    Alt,
    Chars,
    Empty,
    Expr,
    Form,
    Literal,
    Ref,
    Repeat,
    Seq,
    postorder,
)

_BYTE = 1 << 20
"""Cost of a byte; a rule costs one, so that a cheapest derivation never comes back to a rule."""
_SIMPLEST = [*range(0x61, 0x7B), *range(0x30, 0x3A), *range(0x20, 0x7F)]


def utf8(code_point: int) -> bytes:
    return chr(code_point).encode("utf-8", "surrogatepass")


def is_written(data: bytes) -> bool:
    """Whether a literal may hold it: a class may have surrogates, a literal has none."""
    return not any(0xD800 <= ord(char) < 0xE000 for char in data.decode("utf-8", "surrogatepass"))


class Texts:
    """What a form derives."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.users = Users.among(form)
        self._cost: dict[Expr, float] = {}
        self._rule_cost = dict.fromkeys(form.rules, math.inf)
        bodies = postorder(rule.body for rule in form.rules.values())
        while True:
            for expr in bodies:
                self._cost[expr] = self._of_parts(expr)
            now = {name: 1 + self._cost[rule.body] for name, rule in form.rules.items()}
            if now == self._rule_cost:
                break
            self._rule_cost = now
        self._from_root = self._ways()

    def _of_parts(self, expr: Expr) -> float:
        cost = self._cost
        match expr:
            case Empty():
                return 0
            case Literal():
                return _BYTE * len(expr.data)
            case Chars():
                return _BYTE * len(utf8(expr.ranges[0][0])) if expr.ranges else math.inf
            case Ref():
                return self._rule_cost[expr.name]
            case Seq():
                return sum(cost[part] for part in expr.parts)
            case Alt():
                return min(cost[part] for part in expr.parts)
            case Repeat():
                return cost[expr.body] * expr.least if expr.least else 0
        raise NotImplementedError(f"texts of {expr!r}")

    def cost(self, expr: Expr) -> float:
        """Of the cheapest text of an expression; infinite where there is none."""
        for part in postorder([expr]):
            if part not in self._cost:
                self._cost[part] = self._of_parts(part)
        return self._cost[expr]

    def _ways(self) -> dict[str, tuple[float, str, Path]]:
        """For each rule the cheapest surroundings, and where in which rule they end."""
        ways: dict[str, tuple[float, str, Path]] = {}
        uses: dict[str, list[tuple[str, Path]]] = {}
        for name, users in self.users.of.items():
            for user, path in users:
                uses.setdefault(user, []).append((name, path))
        queue: list[tuple[float, str, str, Path]] = [(0, self.form.root, "", ())]
        while queue:
            cost, name, user, path = heapq.heappop(queue)
            if name in ways:
                continue
            ways[name] = (cost, user, path)
            for other, place in uses.get(name, ()):
                around = self.cost(through(self.form.rules[name].body, place, EMPTY))
                if other not in ways and around < math.inf:
                    heapq.heappush(queue, (cost + around + 1, other, name, place))
        return ways

    def around(self, name: str, inner: Expr, random: Random, detours: int = 0) -> Expr | None:
        """What the root derives where this rule derives ``inner``; ``None``: it never does.

        The first ``detours`` steps on the way to the root are random, the others the cheapest.
        """
        if name not in self._from_root:
            return None
        while name != self.form.root or detours > 0:
            _, user, path = self._from_root[name]
            known = [use for use in self.users.of.get(name, ()) if use[0] in self._from_root]
            if detours > 0 and known:
                user, path = random.choice(known)
            elif name == self.form.root:
                break
            detours -= 1
            wider = through(self.form.rules[user].body, path, inner)
            if self.cost(wider) == math.inf:
                return None
            name, inner = user, wider
        return inner

    def sample(self, expr: Expr, random: Random, budget: int = 0) -> bytes | None:
        """A text of an expression with about so many free choices; the others are the cheapest.

        ``None``: there is none.
        """
        if self.cost(expr) == math.inf:
            return None
        out = bytearray()
        work = [expr]
        while work:
            top = work.pop()
            match top:
                case Literal():
                    out += top.data
                case Chars():
                    out += utf8(_code_point(top, random))
                case Ref():
                    work.append(self.form.rules[top.name].body)
                case Seq():
                    work.extend(reversed(top.parts))
                case Alt():
                    parts = [part for part in top.parts if self.cost(part) < math.inf]
                    if budget <= 0:
                        least = min(map(self.cost, parts))
                        parts = [part for part in parts if self.cost(part) == least]
                    budget -= 1
                    work.append(random.choice(parts))
                case Repeat():
                    times = top.least
                    if budget > 0 and self.cost(top.body) < math.inf:
                        more = random.choice([0, 1, 1, 2, 3])
                        limit = top.most if top.most is not None else times + 3
                        times = min(times + more, limit)
                        budget -= 1
                    work.extend([top.body] * times)
        return bytes(out)


def _code_point(chars: Chars, random: Random) -> int:
    """One of a set: often a plain one, often the end of a range."""
    if random.random() < 0.5:
        for code_point in random.sample(_SIMPLEST, 12):
            if any(first <= code_point <= last for first, last in chars.ranges):
                return code_point
    first, last = random.choice(chars.ranges)
    return random.choice([first, last, random.randint(first, last)])


def nudged(text: bytes, random: Random) -> bytes:
    """A text near another one; mostly in no language that has the other."""
    if not text:
        return bytes([random.randrange(0x20, 0x7F)])
    at, end = sorted((random.randrange(len(text)), random.randrange(len(text))))
    piece = text[at : end + 1][:4]
    match random.randrange(5):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + piece + text[at:]
        case 2:
            return text[:at] + bytes([random.choice(text)]) + text[at + 1 :]
        case 3:
            return text[:at] + text[end:]
        case _:
            return text[: end + 1]
