"""Greibach normal form and the token displacements of CFGzip.

Sullivan and Koller, "Accelerating Constrained Decoding with Token Space Compression":
section 2.1 (GNF and the stack machine that it is), Algorithm 1 in section 3.2.2 (displacements),
Appendix C (stack adjacency). The partition of a vocabulary by equal displacements is the paper's,
the yardstick for ours: ours must be as sound, and should not be finer.

The conversion is the textbook's (Hopcroft and Ullman 1979, theorem 4.6, after Paull's removal of
left recursion): prune, remove empty and unit productions, order the nonterminals, substitute. It
grows exponentially at worst; :class:`TooLargeError` says so instead of trying.

The displacements are those of the *pruned* grammar: they speak about sentences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from oracles.model import ByteSet, Cfg, Production, Symbol, show_bytes

Stack = tuple[str, ...]
"""Nonterminals, top first."""

Rules = dict[str, set[tuple[ByteSet, Stack]]]
"""For each nonterminal, what it may become: one byte, then nonterminals."""

Displacement = frozenset[tuple[Stack, Stack]]
"""Pairs (popped, pushed in its place)."""


class TooLargeError(Exception):
    """The construction was given up; nothing is wrong with the grammar."""


class Gnf:
    """A grammar in Greibach normal form."""

    def __init__(self, rules: Rules, start: str, *, nullable: bool) -> None:
        self.rules = rules
        self.start = start
        self.nullable = nullable  # whether the empty string is a sentence
        self.adjacent = _stack_adjacency(rules)

    def __str__(self) -> str:
        lines = [
            f"{name} -> {show_bytes(byte_set)} {' '.join(rest)}"
            for name in self.rules
            for byte_set, rest in sorted(self.rules[name], key=lambda p: (sorted(p[0]), p[1]))
        ]
        return "\n".join(lines + [f"{self.start} -> ε"] * self.nullable)

    def pushes(self, name: str, byte: int) -> Iterable[Stack]:
        """The stack machine: what may stand in the place of ``name`` once it has read ``byte``."""
        return {rest for byte_set, rest in self.rules.get(name, ()) if byte in byte_set}

    def accepts(self, data: bytes, max_stacks: int = 200_000) -> bool:
        """Whether the bytes are a sentence, by running the stack machine on all paths at once."""
        if not data:
            return self.nullable
        stacks: set[Stack] = {(self.start,)}
        for position, byte in enumerate(data):
            left = len(data) - position - 1  # every symbol left on a stack needs a byte
            stacks = {
                pushed + stack[1:]
                for stack in stacks
                if stack
                for pushed in self.pushes(stack[0], byte)
                if len(pushed) + len(stack) - 1 <= left
            }
            if len(stacks) > max_stacks:
                raise TooLargeError("stacks")
        return () in stacks

    def displacement(
        self, token: bytes, *, adjacency: bool = True, max_configurations: int = 20_000
    ) -> Displacement:
        """Algorithm 1 on all paths at once.

        A configuration is (input popped so far, output stack, last symbol popped from it or last
        popped from the input). The last one matters only when a stack backtrack comes next: without
        it, two ways to the same empty output stack would be mistaken for one.
        """
        configurations: set[tuple[Stack, Stack, str | None]] = {((), (), None)}
        for byte in token:
            after: set[tuple[Stack, Stack, str | None]] = set()
            for popped, pushed, last in configurations:
                if pushed:
                    top, rest = pushed[0], pushed[1:]
                    after |= {(popped, new + rest, top) for new in self.pushes(top, byte)}
                    continue
                for top in self.rules:  # stack backtrack
                    if last is None or not adjacency or (last, top) in self.adjacent:
                        after |= {((*popped, top), new, top) for new in self.pushes(top, byte)}
            if len(after) > max_configurations:
                raise TooLargeError(f"displacement of {token!r}")
            configurations = after
        return frozenset((popped, pushed) for popped, pushed, _ in configurations)

    def partition(
        self,
        vocabulary: Sequence[bytes],
        *,
        adjacency: bool = True,
        max_configurations: int = 20_000,
    ) -> list[int]:
        """The paper's class of each token; -1: no displacement, or an empty token."""
        classes: dict[Displacement, int] = {}
        return [
            classes.setdefault(displacement, len(classes)) if displacement else -1
            for displacement in (
                self.displacement(token, adjacency=adjacency, max_configurations=max_configurations)
                if token
                else frozenset()
                for token in vocabulary
            )
        ]


def _stack_adjacency(rules: Rules) -> set[tuple[str, str]]:
    """Appendix C: (A, B) where A can be popped, leaving nothing, right before B is."""
    last_of: defaultdict[str, set[str]] = defaultdict(set)  # the graph of right-most nonterminals
    for name, productions in rules.items():
        last_of[name] |= {rest[-1] for _, rest in productions if rest}
    unary = {
        name for name, productions in rules.items() if any(not rest for _, rest in productions)
    }
    pairs = set()
    for productions in rules.values():
        for _, rest in productions:
            for before, after in pairwise(rest):
                seen, frontier = {before}, [before]
                while frontier:
                    new = last_of[frontier.pop()] - seen
                    seen |= new
                    frontier += new
                pairs |= {(name, after) for name in seen & unary}
    return pairs


# --- the conversion -------------------------------------------------------------------------------

_Productions = dict[int, set[tuple[Symbol, ...]]]


class _Conversion:
    """Productions on their way to normal form, with a bound on their number."""

    def __init__(self, cfg: Cfg, max_productions: int) -> None:
        self.max_productions = max_productions
        self.names = list(cfg.names)
        pruned = cfg.pruned()
        self.nullable_start = pruned.start in pruned.nullable()
        self.start = self.fresh("start'")
        self.rules: _Productions = defaultdict(set)
        self.rules[self.start] = {(pruned.start,)}
        for p in pruned.productions:
            self.rules[p.lhs].add(p.rhs)

    def fresh(self, name: str) -> int:
        self.names.append(name)
        return len(self.names) - 1

    def check(self) -> None:
        if sum(map(len, self.rules.values())) > self.max_productions:
            raise TooLargeError("productions")

    def remove_empty(self) -> None:
        """A nullable symbol may be left out; nothing else may derive the empty string."""
        productions = [Production(lhs, rhs) for lhs in self.rules for rhs in self.rules[lhs]]
        nullable = Cfg(tuple(self.names), tuple(productions), self.start).nullable()
        out: _Productions = defaultdict(set)
        for lhs, alternatives in self.rules.items():
            for rhs in alternatives:
                variants: set[tuple[Symbol, ...]] = {()}
                for symbol in rhs:
                    kept = {(*v, symbol) for v in variants}
                    variants = kept | variants if symbol in nullable else kept
                    if len(variants) > self.max_productions:
                        raise TooLargeError("productions")
                out[lhs] |= variants - {()}
        self.rules = out
        self.check()

    def remove_units(self) -> None:
        """``A -> B`` becomes ``A ->`` whatever B becomes."""
        out: _Productions = defaultdict(set)
        for lhs in self.rules:
            reached, frontier = {lhs}, [lhs]
            while frontier:
                new = {
                    rhs[0]
                    for rhs in self.rules.get(frontier.pop(), ())
                    if len(rhs) == 1 and isinstance(rhs[0], int)
                } - reached
                reached |= new
                frontier += new
            for name in reached:
                out[lhs] |= {
                    rhs
                    for rhs in self.rules.get(name, ())
                    if len(rhs) > 1 or rhs[0] not in self.rules
                }
        # A nonterminal left without productions derived only the empty string, or only itself.
        out = {lhs: {r for r in rhss if not self._dead(r, out)} for lhs, rhss in out.items()}
        self.rules = defaultdict(set, out)
        self.prune()

    @staticmethod
    def _dead(rhs: tuple[Symbol, ...], rules: _Productions) -> bool:
        return any(isinstance(s, int) and s not in rules for s in rhs)

    def prune(self) -> None:
        """Drops useless productions."""
        productions = [Production(lhs, rhs) for lhs in self.rules for rhs in self.rules[lhs]]
        rules: _Productions = defaultdict(set)
        for p in Cfg(tuple(self.names), tuple(productions), self.start).pruned().productions:
            rules[p.lhs].add(p.rhs)
        self.rules = rules
        self.check()

    def order(self) -> list[int]:
        """Breadth first from the start."""
        order = [self.start]
        for lhs in order:
            for rhs in sorted(self.rules[lhs], key=repr):
                order += [s for s in dict.fromkeys(rhs) if isinstance(s, int) and s not in order]
        return order

    def remove_left_recursion(self, order: list[int]) -> list[int]:
        """Every production then begins with a byte or with a later nonterminal (Paull)."""
        rank = {name: number for number, name in enumerate(order)}
        tails: list[int] = []
        for lhs in order:
            while early := {
                r for r in self.rules[lhs] if isinstance(r[0], int) and rank[r[0]] < rank[lhs]
            }:
                self.rules[lhs] -= early
                self.rules[lhs] |= {
                    head + r[1:]
                    for r in early
                    for head in self.rules[r[0]]  # type: ignore[index]
                }
                self.check()
            loops = {r[1:] for r in self.rules[lhs] if r[0] == lhs}
            self.rules[lhs] = {r for r in self.rules[lhs] if r[0] != lhs}
            loops -= {()}  # A -> A says nothing
            if loops:
                tail = self.fresh(f"{self.names[lhs]}'")
                tails.append(tail)
                self.rules[lhs] |= {(*r, tail) for r in self.rules[lhs]}
                self.rules[tail] = loops | {(*r, tail) for r in loops}
                self.check()
        return tails

    def substitute_heads(self, lhs: int) -> None:
        """Makes every production of ``lhs`` begin with a byte; its heads must do so already."""
        while headed := {r for r in self.rules[lhs] if isinstance(r[0], int)}:
            self.rules[lhs] -= headed
            self.rules[lhs] |= {
                head + r[1:]
                for r in headed
                for head in self.rules[r[0]]  # type: ignore[index]
            }
            self.check()

    def normal_form(self) -> Rules:
        """Names for bytes that do not come first; nonterminals by name."""
        out: Rules = {}

        def name(symbol: Symbol) -> str:
            if isinstance(symbol, int):
                return f"{symbol}:{self.names[symbol]}"
            preterminal = show_bytes(symbol)
            out.setdefault(preterminal, set()).add((symbol, ()))
            return preterminal

        for lhs, alternatives in self.rules.items():
            out.setdefault(name(lhs), set()).update(
                (rhs[0], tuple(map(name, rhs[1:]))) for rhs in alternatives
            )
        return out


def to_gnf(cfg: Cfg, *, max_productions: int = 3_000, merge_equal: bool = True) -> Gnf:
    """Converts a grammar; ``merge_equal`` makes one of nonterminals with the same productions."""
    conversion = _Conversion(cfg, max_productions)
    conversion.remove_empty()
    conversion.remove_units()
    order = conversion.order()
    tails = conversion.remove_left_recursion(order)
    for lhs in [*reversed(order), *tails]:
        conversion.substitute_heads(lhs)
    conversion.prune()
    start = f"{conversion.start}:{conversion.names[conversion.start]}"
    rules = conversion.normal_form()
    if merge_equal:
        rules = _merge_equal(rules, start)
    return Gnf(rules, start, nullable=conversion.nullable_start)


def _merge_equal(rules: Rules, start: str) -> Rules:
    """Replaces nonterminals that have the same productions by one of them, until none are left."""
    while True:
        first_with: dict[frozenset[tuple[ByteSet, Stack]], str] = {}
        same: dict[str, str] = {}
        for name in rules:
            if name != start:
                same[name] = first_with.setdefault(frozenset(rules[name]), name)
        if all(name == other for name, other in same.items()):
            return rules
        rules = {
            name: {(b, tuple(same[s] for s in rest)) for b, rest in productions}
            for name, productions in rules.items()
            if same.get(name, name) == name
        }
