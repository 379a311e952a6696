"""The naive recognizer along tokens, where a grammar may take a token whole.

Two ways to read a token, both tried side by side:

- *by its bytes*, one letter each, if it is text: neither stop nor special, and with bytes;
- *whole*, by one letter of its own, which only token edges take. Special tokens too, if they have
  bytes; stop tokens never.

The letter of a token can be read only where a token begins, since nothing else asks for it. Both
ways end at the same place, so what they have read are items of one Earley set; the sets of the
bytes on the way stand before it, and no item that took the token whole refers to them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from oracles.earley import Oracle, State
from oracles.model import FIRST_EDGE, Grammar


@dataclass(frozen=True)
class Tokens:
    """A vocabulary: the bytes of each token, stop tokens, special tokens."""

    texts: tuple[bytes, ...]
    stops: tuple[int, ...] = ()
    specials: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def takeable(self) -> frozenset[int]:
        """What a token edge can take."""
        return frozenset(t for t, text in enumerate(self.texts) if text) - set(self.stops)

    @property
    def textual(self) -> frozenset[int]:
        """What can be read by its bytes."""
        return self.takeable - set(self.specials)


class TokenOracle:
    """A grammar and a vocabulary."""

    def __init__(self, grammar: Grammar, tokens: Tokens) -> None:
        self.tokens = tokens
        self.takeable, self.textual = tokens.takeable, tokens.textual
        self.letters = Oracle(grammar, self.takeable)
        self.productive = self.letters.productive

    def initial(self, prune: bool = True) -> State:
        """The start: with ``prune``, of what can be completed."""
        return self.letters.initial(prune)

    def read(self, state: State, token: int, *, whole: bool = True) -> State:
        """The state after a token, which is viable if the token may stand there.

        Args:
            state: the state before.
            token: no stop token.
            whole: whether token edges may take it.
        """
        last, kernel = state, set()
        if token in self.textual:
            text = self.tokens.texts[token]
            last = state.feed(text[:-1])
            kernel = last.scanned(text[-1])
        if whole:
            kernel = kernel | state.scanned(FIRST_EDGE + token)
        return last.after(kernel)

    def is_ambiguous(self, state: State, token: int) -> bool:
        """Whether both readings of a token lead somewhere."""
        by_bytes = self.read(state, token, whole=False)
        return by_bytes.viable and bool(state.scanned(FIRST_EDGE + token))

    def allows(self, state: State, token: int) -> bool:
        """Whether a token may come next: a stop token where the text is complete."""
        if token in self.tokens.stops:
            return state.accepting
        return self.read(state, token).viable

    def mask(self, state: State) -> list[bool]:
        """:meth:`allows` for each token."""
        return [self.allows(state, token) for token in range(len(self.tokens))]

    def follow(self, ids: Sequence[int], *, prune: bool = True) -> State | None:
        """Where tokens lead, none of them a stop token; ``None`` where they cannot stand."""
        state = self.initial(prune)
        for token in ids:
            state = self.read(state, token)
            if not state.viable:
                return None
        return state

    def viable(self, ids: Sequence[int]) -> bool:
        """Whether the tokens begin something that the grammar takes."""
        return self.productive and self.follow(ids) is not None

    def accepts(self, ids: Sequence[int]) -> bool:
        """Whether the tokens are what the grammar takes, start to end."""
        state = self.follow(ids)
        return state is not None and state.accepting


def readings(tokens: Tokens, ids: Sequence[int]) -> list[tuple[int, ...]]:
    """Every way to read some tokens, as letters: what :class:`TokenOracle` does at once.

    Twice as many for each token, so for a few tokens only.
    """
    found: list[tuple[int, ...]] = [()]
    for token in ids:
        ways: Collection[tuple[int, ...]] = [(FIRST_EDGE + token,)] * (token in tokens.takeable)
        if token in tokens.textual:
            ways = [*ways, tuple(tokens.texts[token])]
        found = [before + way for before in found for way in ways]
    return found
