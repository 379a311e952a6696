"""A naive Earley recognizer over bytes, for any context-free grammar.

Cyclic, left-recursive, hidden-left-recursive, nullable, ambiguous: no case is special. Empty rules
follow Aycock and Horspool (2002): where a nullable nonterminal is predicted, the item that predicts
it also steps over it.

"These bytes may stand here" has two meanings, and both are needed:

- *viable*: some completion exists. What tokfold's own engine promises;
- *viable, unpruned*: after the last byte some item is left, whether or not it can be completed.
  What XGrammar does: ``root ::= "a" root`` takes ``a`` for ever.

The first is the second on the grammar without its useless productions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from oracles.model import Cfg, Grammar, Symbol, lower

Item = tuple[int, int]
"""A dotted production (its number) and the position where it began."""


@dataclass(frozen=True)
class Predicted:
    """The items that begin at a position, which are the same wherever the same is predicted."""

    dots: tuple[int, ...]
    waiting: dict[int, list[int]]
    """Those that wait for a nonterminal."""


class State:
    """Where a recognizer stands after some bytes; never changes, so branches may share it."""

    def __init__(
        self, recognizer: Recognizer, before: tuple[State, ...], kernel: set[Item]
    ) -> None:
        self._recognizer = recognizer
        self._sets = (*before, self)
        self._after: dict[int, State] = {}
        self._stepped: dict[int, set[Item]] = {}
        self._items, self._waiting, self._predicted = recognizer._close(self._sets, kernel)

    @property
    def viable(self) -> bool:
        """Whether any item is left."""
        return bool(self._items)

    @property
    def accepting(self) -> bool:
        """Whether the bytes so far are a sentence."""
        return (self._recognizer._end, 0) in self._items

    def step(self, byte: int) -> State:
        """The state after one more byte."""
        if byte not in self._after:
            self._after[byte] = self.after(self.scanned(byte))
        return self._after[byte]

    def scanned(self, letter: int) -> set[Item]:
        """The items that have just read one more letter."""
        letters, here = self._recognizer._letters, len(self._sets) - 1
        kernel = {(dot + 1, origin) for dot, origin in self._items if letter in letters[dot]}
        kernel.update((dot + 1, here) for dot in self._predicted.dots if letter in letters[dot])
        return kernel

    def stepped(self, nonterminal: int) -> set[Item]:
        """The items that have just read a nonterminal which began here."""
        if nonterminal not in self._stepped:
            here, began = len(self._sets) - 1, self._predicted.waiting.get(nonterminal, ())
            found = {(dot + 1, origin) for dot, origin in self._waiting.get(nonterminal, ())}
            self._stepped[nonterminal] = found.union((dot + 1, here) for dot in began)
        return self._stepped[nonterminal]

    def after(self, kernel: set[Item]) -> State:
        """The state after this one in which these items have just read something.

        Items of an earlier state may be among them, since what they wait for began no later.
        """
        return State(self._recognizer, self._sets, kernel)

    def feed(self, data: bytes) -> State:
        """The state after more bytes."""
        state = self
        for byte in data:
            if not state.viable:
                break
            state = state.step(byte)
        return state

    def allowed(self, token: bytes) -> bool:
        """Whether the token may come next. An empty token never may: it is not text."""
        return bool(token) and self.feed(token).viable

    def mask(self, vocabulary: Sequence[bytes]) -> list[bool]:
        """:meth:`allowed` for each token."""
        return [self.allowed(token) for token in vocabulary]

    def next_bytes(self) -> list[int]:
        """The bytes that may come next; and the letters of tokens, past the bytes."""
        dots = {dot for dot, _ in self._items}.union(self._predicted.dots)
        return sorted(frozenset().union(*(self._recognizer._letters[dot] for dot in dots)))


class Recognizer:
    """The recognizer of one grammar, exactly as its productions stand."""

    def __init__(self, cfg: Cfg) -> None:
        self._nullable = cfg.nullable()
        self._symbol_after: list[Symbol | None] = []  # of each dotted production; None: complete
        self._lhs: list[int] = []  # of each dotted production
        self._first_dots: defaultdict[int, list[int]] = defaultdict(list)  # of each nonterminal
        fresh_start = len(cfg.names)
        begin = self._add_production(fresh_start, (cfg.start,))
        self._end = begin + 1
        for production in cfg.productions:
            self._add_production(production.lhs, production.rhs)
        self._letters = [s if isinstance(s, frozenset) else frozenset() for s in self._symbol_after]
        self._predict = cache(self._predict)
        self.initial = State(self, (), {(begin, 0)})

    def _add_production(self, lhs: int, rhs: tuple[Symbol, ...]) -> int:
        first = len(self._symbol_after)
        self._first_dots[lhs].append(first)
        self._symbol_after += [*rhs, None]
        self._lhs += [lhs] * (len(rhs) + 1)
        return first

    def _predict(self, nonterminals: frozenset[int]) -> Predicted:
        """The items that begin where these may come. One that ends there has read nothing: what
        waits for it has stepped over it."""
        dots: dict[int, None] = {}
        waiting: defaultdict[int, list[int]] = defaultdict(list)
        todo = [dot for symbol in nonterminals for dot in self._first_dots[symbol]]
        while todo:
            dot = todo.pop()
            symbol = self._symbol_after[dot]
            if dot in dots:
                continue
            dots[dot] = None
            if isinstance(symbol, int):
                if symbol not in waiting:
                    todo += self._first_dots[symbol]
                waiting[symbol].append(dot)
                if symbol in self._nullable:
                    todo.append(dot + 1)
        return Predicted(tuple(dots), dict(waiting))

    def _close(
        self, sets: tuple[State, ...], kernel: set[Item]
    ) -> tuple[set[Item], dict[int, list[Item]], Predicted]:
        """All items that follow from the kernel and began before, those of them that wait for each
        nonterminal, and the items that begin here."""
        here = len(sets) - 1
        items, todo = set(kernel), list(kernel)
        waiting: defaultdict[int, list[Item]] = defaultdict(list)
        completed: set[Item] = set()
        while todo:
            dot, origin = todo.pop()
            symbol = self._symbol_after[dot]
            if symbol is None:
                wanted = (self._lhs[dot], origin)
                if origin < here and wanted not in completed:
                    completed.add(wanted)
                    new = sets[origin].stepped(wanted[0]) - items
                    items |= new
                    todo += new
            elif isinstance(symbol, int):
                waiting[symbol].append((dot, origin))
                over = (dot + 1, origin)
                if symbol in self._nullable and over not in items:
                    items.add(over)
                    todo.append(over)
        return items, dict(waiting), self._predict(frozenset(waiting))


class Oracle:
    """Both recognizers of a grammar."""

    def __init__(self, grammar: Grammar, takeable: Collection[int] = ()) -> None:
        self.cfg = lower(grammar, takeable)
        self.pruned = Recognizer(self.cfg.pruned())
        self.unpruned = Recognizer(self.cfg)
        self.productive = self.cfg.start in self.cfg.productive()

    def accepts(self, data: bytes) -> bool:
        """Whether the bytes are a sentence."""
        return self.unpruned.initial.feed(data).accepting

    def viable(self, data: bytes) -> bool:
        """Whether the bytes begin a sentence."""
        return self.productive and self.pruned.initial.feed(data).viable

    def viable_unpruned(self, data: bytes) -> bool:
        """Whether some item is left after the bytes (XGrammar's meaning)."""
        return self.unpruned.initial.feed(data).viable

    def initial(self, prune: bool) -> State:
        """The start, under either meaning."""
        return (self.pruned if prune else self.unpruned).initial


def accepts(grammar: Grammar, data: bytes) -> bool:
    """Whether the bytes are a sentence of the grammar."""
    return Oracle(grammar).accepts(data)


def viable_tokens(state: State, vocabulary: Iterable[bytes]) -> list[int]:
    """The tokens that may come next."""
    return [token for token, data in enumerate(vocabulary) if state.allowed(data)]
