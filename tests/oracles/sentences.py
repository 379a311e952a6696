"""Random sentences, and random bytes that may stand at the start of one.

A sentence is a random derivation that turns to the shallowest productions once its budget is spent.
Prefixes are walked with the recognizer, so that they also exist where no sentence does.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from oracles.earley import State
from oracles.model import Cfg, Production


class SentenceSampler:
    """Random sentences of a grammar."""

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg.pruned()
        self.productive = cfg.start in cfg.productive()
        self._productions: dict[int, list[Production]] = {}
        for production in self.cfg.productions:
            self._productions.setdefault(production.lhs, []).append(production)
        self._height = self._heights()

    def _heights(self) -> dict[int, int]:
        """The least height of a derivation from each nonterminal."""
        height: dict[int, int] = {}
        while True:
            before = dict(height)
            for p in self.cfg.productions:
                below = [height.get(s) for s in p.rhs if isinstance(s, int)]
                if None not in below:
                    height[p.lhs] = min(height.get(p.lhs, 1 << 30), 1 + max(below, default=0))
            if height == before:
                return height

    def _production_height(self, production: Production) -> int:
        return 1 + max((self._height[s] for s in production.rhs if isinstance(s, int)), default=0)

    def sample(self, random: Random, budget: int = 20) -> bytes | None:
        """A sentence made with about ``budget`` free choices; ``None``: the language is empty."""
        if not self.productive:
            return None
        out = bytearray()
        stack = [self.cfg.start]
        while stack:
            symbol = stack.pop()
            if isinstance(symbol, frozenset):
                out.append(random.choice(sorted(symbol)))
                continue
            choices = self._productions[symbol]
            if budget <= 0:
                least = min(map(self._production_height, choices))
                choices = [p for p in choices if self._production_height(p) == least]
            production = random.choice(choices)
            budget -= 1
            stack += reversed(production.rhs)
        return bytes(out)


def random_prefix(
    start: State, random: Random, length: int, vocabulary: Sequence[bytes] = ()
) -> bytes:
    """Up to ``length`` random steps that the grammar allows, by bytes or by given tokens."""
    state, out = start, bytearray()
    for _ in range(length):
        tokens = [t for t in vocabulary if state.allowed(t)] if vocabulary else []
        if tokens:
            piece = random.choice(tokens)
        elif allowed := state.next_bytes():
            piece = bytes((random.choice(allowed),))
        else:
            break
        out += piece
        state = state.feed(piece)
    return bytes(out)
