"""Texts that can be pumped: ``u x^k z y^k w``, out of the recursions of a grammar.

Each comes from a derivation ``root => u A w`` and a recursion ``A => x A y``, so that it is in the
language for each ``k`` from 0 on, and each of its beginnings is the beginning of a string. Where
``x`` is empty, ``y`` stands in its place, and ``z`` goes before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tokfold.laboratory.forest.productions import Productions
from tokfold.laboratory.forest.slots import contains

__all__ = ["Pump", "pumps"]

_LONGEST = 400
"""Code points of the parts of a pump together; longer ones would not be pumped often enough."""
_CYCLES = 4
_ENTRIES = 64
_LEVELS = 3
_VISITS = 400_000
"""Calls looked at, after which the recursions of large grammars are left out."""


@dataclass(frozen=True)
class Pump:
    """A family of texts. All parts are code points as text, surrogates included.

    Attributes:
        head: ``u``.
        opening: ``x``, repeated; never empty.
        middle: ``z``.
        closing: ``y``, repeated as often.
        tail: ``w``.
        rule: the nonterminal whose recursion it is.
    """

    head: str
    opening: str
    middle: str
    closing: str
    tail: str
    rule: str

    def text(self, times: int) -> str:
        """The text with ``times`` passes of the recursion; in the language."""
        opening, closing = self.opening * times, self.closing * times
        return f"{self.head}{opening}{self.middle}{closing}{self.tail}"

    @property
    def size(self) -> int:
        """Code points of the parts together."""
        parts = (self.head, self.opening, self.middle, self.closing, self.tail)
        return sum(map(len, parts))


_Edge = tuple[int, int]
"""A production, by its number, and a place on its right-hand side."""

_Contexts = dict[int, tuple[str, str] | None]


class _Words:
    """Short words of a pruned grammar, and how its nonterminals call each other."""

    def __init__(self, grammar: Productions) -> None:
        self.grammar = grammar
        self.points = _representatives(grammar)
        self.best: dict[int, int] = {}
        self.length: dict[int, int] = {}
        self._find_shortest()
        self.word: dict[int, str | None] = {}
        for name in sorted(self.length, key=self.length.__getitem__):
            self.word[name] = self.joined(grammar.productions[self.best[name]].rhs)
        self.visits = 0
        self.calls: dict[int, list[_Edge]] = {}
        self.callers: dict[int, list[_Edge]] = {}
        for number, production in enumerate(grammar.productions):
            for place, symbol in enumerate(production.rhs):
                if symbol >= 0:
                    self.calls.setdefault(production.lhs, []).append((number, place))
                    self.callers.setdefault(symbol, []).append((number, place))

    def _find_shortest(self) -> None:
        """Knuth's generalisation of Dijkstra's algorithm: the length of each shortest word."""
        productions = self.grammar.productions
        missing = [sum(s >= 0 for s in p.rhs) for p in productions]
        total = [sum(s < 0 for s in p.rhs) for p in productions]
        users: dict[int, list[int]] = {}
        heap = []
        for number, production in enumerate(productions):
            for symbol in production.rhs:
                if symbol >= 0:
                    users.setdefault(symbol, []).append(number)
            if not missing[number]:
                heap.append((total[number], number))
        heapq.heapify(heap)
        while heap:
            length, number = heapq.heappop(heap)
            name = productions[number].lhs
            if name in self.length:
                continue
            self.length[name], self.best[name] = length, number
            for user in users.get(name, ()):
                total[user] += length
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(heap, (total[user], user))

    def joined(self, symbols: tuple[int, ...]) -> str | None:
        """A shortest word of some symbols; None where it is too long."""
        if sum(self.length[s] if s >= 0 else 1 for s in symbols) > _LONGEST:
            return None
        parts = [self.points[s] if s < 0 else self.word[s] or "" for s in symbols]
        return "".join(parts)

    def around(self, edge: _Edge) -> tuple[str, str] | None:
        """What stands before and after a symbol in a production."""
        rhs = self.grammar.productions[edge[0]].rhs
        left, right = self.joined(rhs[: edge[1]]), self.joined(rhs[edge[1] + 1 :])
        return None if left is None or right is None else (left, right)

    def cost(self, edge: _Edge) -> int:
        """How much longer a word becomes by going through a call."""
        rhs = self.grammar.productions[edge[0]].rhs
        sizes = [1 if s < 0 else self.length[s] for s in rhs]
        return sum(sizes) - sizes[edge[1]]

    def contexts(self, source: int, inside: frozenset[int] | None = None) -> _Contexts:
        """By nonterminal, what stands around it on its shortest way from another; None: too much.

        Dijkstra's algorithm, over all nonterminals or those of a set.
        """
        productions = self.grammar.productions
        found: _Contexts = {}
        heap: list[tuple[int, int, int, _Edge | None]] = [(0, 0, source, None)]
        while heap:
            length, _, name, edge = heapq.heappop(heap)
            if name in found:
                continue
            if edge is None:
                found[name] = ("", "")
            else:
                outer, inner = found[productions[edge[0]].lhs], self.around(edge)
                found[name] = None
                if outer is not None and inner is not None and length <= _LONGEST:
                    found[name] = (outer[0] + inner[0], inner[1] + outer[1])
            for call in self.calls.get(name, ()):
                target = productions[call[0]].rhs[call[1]]
                if target not in found and (inside is None or target in inside):
                    self.visits += 1
                    entry = (length + self.cost(call), self.visits, target, call)
                    heapq.heappush(heap, entry)
        return found


def _representatives(grammar: Productions) -> dict[int, str]:
    """A code point of each terminal: the one that most terminals read, a letter if possible."""
    used = sorted({s for p in grammar.productions for s in p.rhs if s < 0}, reverse=True)
    firsts = {first for s in used for first, _ in grammar.terminals[~s]}
    few = len(firsts) * len(used) <= _VISITS
    coverage = {
        point: few and sum(contains(grammar.terminals[~s], point) for s in used) for point in firsts
    }

    def order(point: int) -> tuple[int, bool, bool, int]:
        char = chr(point)
        return -coverage[point], not char.isalnum(), not char.isprintable(), point

    ranked = sorted(firsts, key=order)
    return {s: chr(next(p for p in ranked if contains(grammar.terminals[~s], p))) for s in used}


def _components(words: _Words) -> list[frozenset[int]]:
    """Sets of nonterminals that all reach each other, with a call inside (Tarjan)."""
    productions = words.grammar.productions
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[frozenset[int]] = []
    for root in words.length:
        if root in index:
            continue
        work: list[tuple[int, Iterator[_Edge]]] = []
        targets = [root]
        while work or targets:
            if targets:
                name = targets.pop()
                index[name] = low[name] = len(index)
                stack.append(name)
                on_stack.add(name)
                work.append((name, iter(words.calls.get(name, ()))))
            name, calls = work[-1]
            for number, place in calls:
                target = productions[number].rhs[place]
                if target not in index:
                    targets.append(target)
                    break
                if target in on_stack:
                    low[name] = min(low[name], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    popped = [stack.pop()]
                    while popped[-1] != name:
                        popped.append(stack.pop())
                    members = frozenset(popped)
                    on_stack -= members
                    if any(
                        productions[number].rhs[place] in members
                        for member in members
                        for number, place in words.calls.get(member, ())
                    ):
                        found.append(members)
    return found


def _cycles(words: _Words, name: int, inside: frozenset[int]) -> tuple[list[tuple[str, str]], bool]:
    """What some recursions of a nonterminal put before and after it, the shortest first.

    Those that put nothing are no use. Also says whether some are too long.
    """
    productions = words.grammar.productions
    found: dict[tuple[str, str], None] = {}
    too_long = False
    back = words.contexts(name, inside)
    for caller in inside:
        for edge in words.calls.get(caller, ()):
            if productions[edge[0]].rhs[edge[1]] != name:
                continue
            there = back[caller]
            around = words.around(edge)
            if there is None or around is None:
                too_long = True
                continue
            pair = (there[0] + around[0], around[1] + there[1])
            if pair != ("", ""):
                found[pair] = None
    ranked = sorted(found, key=lambda pair: (len(pair[0]) + len(pair[1]), pair))[:_CYCLES]
    mixed = [(a + c, d + b) for (a, b), (c, d) in combinations(ranked[:3], 2)]
    return ranked + mixed, too_long


def _entries(words: _Words, name: int, access: _Contexts) -> list[tuple[str, str]]:
    """What can stand before and after a nonterminal in a string, the shortest first.

    Each of its calls is there, and each call of those that call it, three levels up: two runs of
    white space that meet may be called by rules that are called by rules that meet.
    """
    start = words.grammar.start
    found: dict[tuple[str, str], None] = {}
    if name == start:
        found["", ""] = None
    level = {(name, "", "")}
    for _ in range(_LEVELS):
        above: set[tuple[int, str, str]] = set()
        for callee, left, right in sorted(level):
            for edge in words.callers.get(callee, ()):
                words.visits += 1
                around = words.around(edge)
                caller = words.grammar.productions[edge[0]].lhs
                if around is None:
                    continue
                inner = (around[0] + left, right + around[1])
                there = access[caller]
                if there is not None:
                    found[there[0] + inner[0], inner[1] + there[1]] = None
                if len(above) < _ENTRIES and sum(map(len, inner)) <= _LONGEST:
                    above.add((caller, *inner))
        level = above
    return sorted(found, key=lambda pair: (len(pair[0]) + len(pair[1]), pair))[:_ENTRIES]


def pumps(grammar: Productions) -> tuple[list[Pump], int]:
    """Texts to try, the likeliest first: short ones, and one of each recursion before the next.

    Each recursive nonterminal gives some of its recursions, at each place where it is called. Words
    are the shortest there are, of code points that as many terminals as possible read, since that
    is where ways of reading meet.

    Args:
        grammar: any; it is pruned first.

    Returns:
        The families, and how many recursive nonterminals have none, because their words are too
        long or the grammar is too large. Where both are none, the language is finite.
    """
    words = _Words(grammar.useful())
    start = words.grammar.start
    if start not in words.length:
        return [], 0
    access = words.contexts(start)
    found: dict[tuple[str, ...], tuple[int, int, Pump]] = {}
    left_out = 0
    for component in _components(words):
        for name in sorted(component):
            if words.visits > _VISITS:
                left_out += 1
                continue
            middle = words.word[name]
            cycles, too_long = _cycles(words, name, component)
            entries = _entries(words, name, access) if middle is not None else []
            if not cycles and not too_long:
                continue  # its recursions read nothing
            fits = False
            order = 0
            for head, tail in entries:
                for opening, closing in cycles:
                    rule = words.grammar.names[name]
                    pump = Pump(head, opening, middle or "", closing, tail, rule)
                    if not opening:
                        pump = Pump(head + (middle or ""), closing, "", "", tail, rule)
                    if pump.size > _LONGEST:
                        continue
                    fits = True
                    key = (pump.head, pump.opening, pump.middle, pump.closing)
                    if key not in found:
                        found[key] = (order, pump.size, pump)
                        order += 1
            left_out += not fits
    return [pump for _, _, pump in sorted(found.values(), key=lambda entry: entry[:2])], left_out
