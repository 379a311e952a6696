"""Is a grammar unambiguous? A proof, two parses of one text, or "unknown".

The question is undecidable. The proof is Schmitz's noncanonical test (Conservative ambiguity
detection in context-free grammars, ICALP 2007) with stacks that are known to a depth:

Take a rule ``B`` and a string with two parses from ``B``, as small as possible together. Nodes of
the two with the same rule name over the same span are then equal but for the roots. Read both
parses from the left. Until the first node ends that only one of them has, all nodes that ended are
in both: each side goes down into rules on its own, and nodes that ended are stepped over by both
at once, by name. Where that node ends, one side leaves a rule which the other does not leave by
the same production. From there on each side goes its own way, over the same bytes, up to the end
of ``B``. If no two such ways exist, no rule has two parses. Each side remembers the last few
places to return to; what is beneath is forgotten, and a return there may go anywhere that the rule
is called from. So more ways are looked at than there are, never fewer: the proof is sound, for
any depth, and deeper stacks prove more.

Ways that are found are tried: the string is parsed, and parses are counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import combinations_with_replacement

from tokfold._quoting import quoted
from tokfold.laboratory.fidelity.epsilon import count_empty, factored, without_empty
from tokfold.laboratory.fidelity.errors import AmbiguousGrammarError, UnambiguityUnknownError
from tokfold.laboratory.fidelity.parses import count_parses, shortest_strings
from tokfold.laboratory.fidelity.productions import Productions, Symbol

__all__ = ["Unambiguity", "require_unambiguous"]

MAX_PAIRS = 200_000
DEPTHS = (0, 1, 2, 3, 4, 6)
_CANDIDATES = 12
"""Ways that are tried as texts, at each depth."""
_TRIES_PER_PAIR = 100

_Config = tuple[int, tuple[int, ...], int]
"""A dot, the dots to return to (the next one last), and what is beneath them.

Beneath: ``-1 - B``, the end of the rule B from which it all began; or a nonterminal of which only
the name is known, which may return to any call of it.
"""
_Pair = tuple[_Config | None, _Config | None, bool]
"""Both sides, and whether they parted; None and None where the rule of both has ended."""


@dataclass(frozen=True)
class Unambiguity:
    """A proof, by what it took.

    Attributes:
        depth: return addresses that had to be known.
        pairs: pairs of places looked at, all depths together.
    """

    depth: int
    pairs: int


def require_unambiguous(productions: Productions, *, max_pairs: int = MAX_PAIRS) -> Unambiguity:
    """Prove that no text has two parses.

    Args:
        productions: the grammar.
        max_pairs: bound on pairs of places looked at, for each depth of stacks.

    Raises:
        AmbiguousGrammarError: a text has two parses; says which.
        UnambiguityUnknownError: neither this nor a proof within the bounds.
    """
    trimmed = productions.trimmed()
    count_empty(trimmed)
    plain, origins = factored(without_empty(trimmed))
    grammar = _Items(plain)
    spent, reason = 0, ""
    for depth in DEPTHS:
        search = _Search(grammar, depth, max_pairs)
        is_proved = search.run()
        spent += len(search.came_from)
        for start, string in search.candidates():
            while start >= len(productions.names):
                start, before = origins[start - len(productions.names)]
                head = grammar.shortest[before] if isinstance(before, int) else {min(before)}
                string = bytes(head) + string
            if count_parses(plain, string, start) > 1:
                name = plain.names[start]
                raise AmbiguousGrammarError(
                    f"the grammar is ambiguous: the rule {quoted(name)} derives {quoted(string)} "
                    "in two ways, and the exact inside algorithm would count both. Rewrite it so "
                    "that each text has one parse, or estimate instead of computing",
                    name,
                    string,
                )
        if is_proved:
            return Unambiguity(depth, spent)
        if search.is_full:
            reason = f"more work than max_pairs of {max_pairs:,} allows, at depth {depth}"
            break
        reason = f"stacks known to depth {depth} do not suffice"
    raise UnambiguityUnknownError(
        "whether the grammar is unambiguous was neither proved nor refuted "
        f"({reason}). If you know that each text has one parse, pass assume_unambiguous=True; "
        "or raise max_pairs, or estimate instead of computing"
    )


class _Items:
    """The dotted productions of a grammar without empty right-hand sides."""

    def __init__(self, productions: Productions) -> None:
        self.productions = productions
        self.after: list[Symbol | None] = []
        self.lhs: list[int] = []
        self.first: list[list[int]] = []
        self.callers: list[list[int]] = [[] for _ in productions.names]
        for lhs, body in enumerate(productions.rules):
            firsts = []
            for rhs in body:
                firsts.append(len(self.after))
                for at, symbol in enumerate(rhs):
                    if isinstance(symbol, int):
                        self.callers[symbol].append(firsts[-1] + at + 1)
                self.after += [*rhs, None]
                self.lhs += [lhs] * (len(rhs) + 1)
            self.first.append(firsts)
        self.shortest = shortest_strings(productions)
        self.begins = _beginnings(productions)


class _Search:
    """All pairs of places at one depth, breadth first."""

    def __init__(self, items: _Items, depth: int, max_pairs: int) -> None:
        self._items, self._depth, self._max = items, depth, max_pairs
        self.came_from: dict[_Pair, tuple[_Pair, Symbol | None, int]] = {}
        self._queue: deque[_Pair] = deque()
        self._ends: list[_Pair] = []
        self.is_full = False
        self._tries = 0
        self._down: dict[_Config, list[_Config]] = {}
        self._ways: dict[_Config, list[_Config | None]] = {}

    def run(self) -> bool:
        """Whether no two ways through one string were found, and all were looked at."""
        items = self._items
        for lhs, firsts in enumerate(items.first):
            for one, other in combinations_with_replacement(firsts, 2):
                if self.is_full:
                    return False
                begin: _Pair = ((one, (), -1 - lhs), (other, (), -1 - lhs), False)
                self._add(begin, begin, None, lhs)
        while self._queue and not self.is_full and len(self._ends) < _CANDIDATES:
            pair = self._queue.popleft()
            first, second, parted = pair
            if first is None or second is None:
                self._ends.append(pair)
            elif parted:
                self._read(pair, self._onward(first), self._onward(second), True)
            else:
                self._read(pair, self._below(first), self._below(second), False)
                self._part(pair)
        return not self._ends and not self.is_full

    def _add(self, pair: _Pair, before: _Pair, symbol: Symbol | None, start: int) -> None:
        one, other, parted = pair
        if one is not None and other is not None:
            if not self._can_go_on(one, other):
                return
            if other < one:
                pair = (other, one, parted)  # the order means nothing
        if pair in self.came_from:
            return
        if len(self.came_from) >= self._max:
            self.is_full = True
            return
        self.came_from[pair] = (before, symbol, start)
        self._queue.append(pair)

    def _can_go_on(self, one: _Config, other: _Config) -> bool:
        """Whether some byte can come next on both sides, as far as their rules say."""
        first, second = self._items.after[one[0]], self._items.after[other[0]]
        if first is None or second is None or first == second:
            return True
        begins = self._items.begins
        heads = begins[first] if isinstance(first, int) else first
        return not heads.isdisjoint(begins[second] if isinstance(second, int) else second)

    def _read(
        self,
        pair: _Pair,
        ones: list[_Config] | list[_Config | None],
        others: list[_Config] | list[_Config | None],
        parted: bool,
    ) -> None:
        items, start = self._items, self.came_from[pair][2]
        self._tries += len(ones) * len(others)
        if self._tries > _TRIES_PER_PAIR * self._max:
            self.is_full = True
            return
        for one in ones:
            for other in others:
                if one is None or other is None:
                    if one is other and parted:
                        self._add((None, None, True), pair, None, start)
                    continue
                first, second = items.after[one[0]], items.after[other[0]]
                common: Symbol | None = None
                if isinstance(first, int) or isinstance(second, int):
                    common = first if first == second else None
                elif first is not None and second is not None:
                    common = first & second or None
                if common is not None:
                    self._add((_step(one), _step(other), parted), pair, common, start)

    def _part(self, pair: _Pair) -> None:
        """The first node ends that one side only has."""
        one, other, _ = pair
        assert one is not None
        assert other is not None
        items, start = self._items, self.came_from[pair][2]
        for ending, staying in ((one, other), (other, one)):
            if items.after[ending[0]] is not None:
                continue
            if staying[0] == ending[0]:
                continue  # both leave by one production: the node is in both
            # What stays may go down, or leave its own rule: both are ways onward.
            for left in self._left(ending):
                if left is None:
                    if None in self._onward(staying):
                        self._add((None, None, True), pair, None, start)
                    continue
                self._add((left, staying, True), pair, None, start)

    def _below(self, config: _Config) -> list[_Config]:
        """A configuration and all that it becomes by going down into rules."""
        known = self._down.get(config)
        if known is None:
            seen, work = {config}, [config]
            while work:
                for below in self._entered(work.pop()):
                    if below not in seen:
                        seen.add(below)
                        work.append(below)
            known = self._down[config] = sorted(seen)
        return known

    def _onward(self, config: _Config) -> list[_Config | None]:
        """A configuration and all that it becomes without reading: down into rules, and out."""
        known = self._ways.get(config)
        if known is None:
            seen: set[_Config | None] = {config}
            work = [config]
            while work:
                top = work.pop()
                more: list[_Config | None] = [*self._entered(top)]
                if self._items.after[top[0]] is None:
                    more += self._left(top)
                for way in more:
                    if way not in seen:
                        seen.add(way)
                        if way is not None:
                            work.append(way)
            known = self._ways[config] = list(seen)
        return known

    def _entered(self, config: _Config) -> list[_Config]:
        """Into the rule that is next; a call at the end of a rule needs no return."""
        dot, returns, beneath = config
        items = self._items
        symbol = items.after[dot]
        if not isinstance(symbol, int):
            return []
        if items.after[dot + 1] is not None:
            returns = (*returns, dot + 1)
            if len(returns) > self._depth:
                # Forgotten: where the rule returns to in which the deepest known place stands.
                forgotten = len(returns) - self._depth
                if self._depth == 0:
                    return [(first, (), symbol) for first in items.first[symbol]]
                beneath = items.lhs[returns[forgotten]]
                returns = returns[forgotten:]
        return [(first, returns, beneath) for first in items.first[symbol]]

    def _left(self, config: _Config) -> list[_Config | None]:
        """Out of a rule that has ended; None: out of that from which all began."""
        _, returns, beneath = config
        if returns:
            return [(returns[-1], returns[:-1], beneath)]
        if beneath < 0:
            return [None]
        items = self._items
        found: list[_Config | None] = [None]
        seen, work = {beneath}, [beneath]
        while work:
            for dot in items.callers[work.pop()]:
                lhs = items.lhs[dot]
                if items.after[dot] is not None:
                    found.append((dot, (), lhs))
                elif lhs not in seen:
                    seen.add(lhs)
                    work.append(lhs)
        return found

    def candidates(self) -> list[tuple[int, bytes]]:
        """Rules with strings that the ways found spell: two parses each, if the ways are real."""
        found = []
        for end in self._ends:
            pair, parts = end, []
            while True:
                before, symbol, start = self.came_from[pair]
                if symbol is not None:
                    parts.append(
                        self._items.shortest[symbol]
                        if isinstance(symbol, int)
                        else bytes([min(symbol)])
                    )
                if before == pair:
                    break
                pair = before
            found.append((start, b"".join(reversed(parts))))
        return found


def _beginnings(productions: Productions) -> list[frozenset[int]]:
    """The bytes that strings of each nonterminal begin with."""
    found: list[set[int]] = [set() for _ in productions.rules]
    callers: list[set[int]] = [set() for _ in productions.rules]
    for lhs, body in enumerate(productions.rules):
        for rhs in body:
            if isinstance(rhs[0], int):
                callers[rhs[0]].add(lhs)
            else:
                found[lhs] |= rhs[0]
    work = list(range(len(found)))
    while work:
        callee = work.pop()
        for lhs in callers[callee]:
            if not found[callee] <= found[lhs]:
                found[lhs] |= found[callee]
                work.append(lhs)
    return [frozenset(heads) for heads in found]


def _step(config: _Config) -> _Config:
    return (config[0] + 1, *config[1:])
