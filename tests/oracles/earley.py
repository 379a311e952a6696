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

from oracles.model import Cfg, Grammar, Symbol, lower

Item = tuple[int, int]
"""A dotted production (its number) and the position where it began."""


class State:
    """Where a recognizer stands after some bytes; never changes, so branches may share it."""

    def __init__(
        self, recognizer: Recognizer, before: tuple[State, ...], kernel: set[Item]
    ) -> None:
        self._recognizer = recognizer
        self._sets = (*before, self)
        self._after: dict[int, State] = {}
        self.items, self._waiting = recognizer._close(self._sets, kernel)

    @property
    def viable(self) -> bool:
        """Whether any item is left."""
        return bool(self.items)

    @property
    def accepting(self) -> bool:
        """Whether the bytes so far are a sentence."""
        return (self._recognizer._end, 0) in self.items

    def step(self, byte: int) -> State:
        """The state after one more byte."""
        if byte not in self._after:
            self._after[byte] = self.after(self.scanned(byte))
        return self._after[byte]

    def scanned(self, letter: int) -> set[Item]:
        """The items that have just read one more letter."""
        after = self._recognizer._symbol_after
        return {
            (dot + 1, origin)
            for dot, origin in self.items
            if isinstance(after[dot], frozenset) and letter in after[dot]
        }

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
        after = self._recognizer._symbol_after
        scanned = (after[dot] for dot, _ in self.items)
        return sorted({byte for s in scanned if isinstance(s, frozenset) for byte in s})


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
        self.initial = State(self, (), {(begin, 0)})

    def _add_production(self, lhs: int, rhs: tuple[Symbol, ...]) -> int:
        first = len(self._symbol_after)
        self._first_dots[lhs].append(first)
        self._symbol_after += [*rhs, None]
        self._lhs += [lhs] * (len(rhs) + 1)
        return first

    def _close(
        self, sets: tuple[State, ...], kernel: set[Item]
    ) -> tuple[set[Item], dict[int, list[Item]]]:
        """All items that follow from the kernel, and those that wait for each nonterminal."""
        here = len(sets) - 1
        items, todo = set(kernel), list(kernel)
        waiting: defaultdict[int, list[Item]] = defaultdict(list)

        def add(item: Item) -> None:
            if item not in items:
                items.add(item)
                todo.append(item)

        completed: set[tuple[int, int]] = set()
        while todo:
            dot, origin = todo.pop()
            symbol = self._symbol_after[dot]
            if symbol is None:
                lhs = self._lhs[dot]
                # A rule that began here has read nothing; stepping over it was done below.
                if origin < here and (lhs, origin) not in completed:
                    completed.add((lhs, origin))
                    for waiting_dot, waiting_origin in sets[origin]._waiting.get(lhs, ()):
                        add((waiting_dot + 1, waiting_origin))
            elif isinstance(symbol, int):
                if symbol not in waiting:
                    for first in self._first_dots[symbol]:
                        add((first, here))
                waiting[symbol].append((dot, origin))
                if symbol in self._nullable:
                    add((dot + 1, origin))
        return items, dict(waiting)


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
