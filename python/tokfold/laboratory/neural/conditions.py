"""What the grammar says at the places of a batch: features and the hard mask, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from tokfold._quoting import quoted
from tokfold.batch import fill_bitmask_batch
from tokfold.bitmask import allocate_bitmask
from tokfold.laboratory.neural.errors import NoTokenAllowedError, RefusedTokenError
from tokfold.laboratory.neural.features import GrammarFeatures
from tokfold.matcher import Matcher

__all__ = ["Conditions", "conditions_along", "conditions_of"]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Features and masks of any number of places.

    Made by :func:`conditions_of` and :func:`conditions_along`, which see to it that every place
    allows at least one token.

    Attributes:
        features: float32, shape ``(..., size)``.
        bitmask: int32, shape ``(..., ceil(V / 32))``: bit ``j`` of word ``i`` is token
            ``32 * i + j``, 1 is allowed.
        vocab_size: ``V``, tokens of the vocabulary.
    """

    features: torch.Tensor
    bitmask: torch.Tensor
    vocab_size: int

    def to(self, device: torch.device | str) -> Conditions:
        """The same on another device."""
        return replace(self, features=self.features.to(device), bitmask=self.bitmask.to(device))

    @property
    def allowed(self) -> torch.Tensor:
        """The masks as bool, shape ``(..., V)``."""
        bits = torch.arange(32, dtype=torch.int32, device=self.bitmask.device)
        return (self.bitmask[..., None] >> bits & 1).bool().flatten(-2)[..., : self.vocab_size]


def conditions_of(features: GrammarFeatures, matchers: Sequence[Matcher]) -> Conditions:
    """What holds where some matchers stand: for generation.

    Args:
        features: which features.
        matchers: matchers of the same compiled grammar whose texts have not ended; none twice.

    Returns:
        Conditions of the shape ``(len(matchers), ...)``, on the CPU.

    Raises:
        MatcherStateError: a text has ended: leave its row out.
        NoTokenAllowedError: no token of the vocabulary can follow, so nothing can be sampled.
        LimitExceededError: as for :meth:`Matcher.fill_bitmask`.
        ValueError: a matcher is of another compiled grammar.
    """
    size = len(features.compiled.vocabulary)
    rows = np.zeros((len(matchers), features.size), np.float32)
    bitmask = allocate_bitmask(len(matchers), size)
    fill_bitmask_batch(matchers, bitmask, ended="raise")
    for row, words, matcher in zip(rows, bitmask, matchers, strict=True):
        allowed = _count(words)
        if not allowed:
            raise NoTokenAllowedError(
                f"no token of the vocabulary may come after {matcher.num_steps} steps, though the "
                "text is not complete: the next byte must be one of "
                f"{quoted(matcher.expected_bytes)}; "
                "add tokens of single bytes to the vocabulary, or change the grammar"
            )
        features.write(matcher, allowed, row)
    return Conditions(torch.from_numpy(rows), torch.from_numpy(bitmask), size)


def conditions_along(
    features: GrammarFeatures, texts: Sequence[Sequence[int]], start: Matcher | None = None
) -> Conditions:
    """What holds before each token of some texts: for training, where the texts are known.

    Args:
        features: which features.
        texts: the tokens of each text, stop token included where the text ends with one.
        start: where each text begins; by default at the beginning of the language. It stays where
            it is.

    Returns:
        Conditions of the shape ``(len(texts), longest, ...)``, on the CPU. Row ``[n, t]`` is what
        holds before token ``t`` of text ``n``. Rows past the end of a text are padding: features
        of 0, every token allowed.

    Raises:
        RefusedTokenError: a token may not come where it stands; says which and why.
        LimitExceededError, ValueError: as for :func:`conditions_of`.
        VocabularyError: there is no such token.
    """
    size = len(features.compiled.vocabulary)
    start = Matcher(features.compiled) if start is None else start
    longest = max((len(text) for text in texts), default=0)
    rows = np.zeros((len(texts), longest, features.size), np.float32)
    bitmask = np.broadcast_to(_all(size), (len(texts), longest, -(-size // 32))).copy()
    known: dict[bytes, tuple[int, int]] = {}  # states recur, and have equal features and masks
    for number, text in enumerate(texts):
        matcher = start.fork()
        for at, token in enumerate(text):
            if matcher.is_terminated:
                raise _refused(number, at, token, "the text has ended before it")
            place = number, at
            like = known.setdefault(matcher._core.state(), place)
            if like is place:
                matcher.fill_bitmask(bitmask[place])
                features.write(matcher, _count(bitmask[place]), rows[place])
            else:
                rows[place], bitmask[place] = rows[like], bitmask[like]
            if not matcher.accept_token(token):
                raise _refused(number, at, token, matcher.explain(token).reason)
    return Conditions(torch.from_numpy(rows), torch.from_numpy(bitmask), size)


def _all(size: int) -> npt.NDArray[np.int32]:
    """A row in which every token is allowed, and nothing past the last."""
    bits = np.zeros(-(-size // 32) * 32, np.uint8)
    bits[:size] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def _count(words: npt.NDArray[np.int32]) -> int:
    """How many tokens a row allows."""
    return int(np.unpackbits(words.view(np.uint8)).sum())


def _refused(text: int, position: int, token: int, reason: str) -> RefusedTokenError:
    return RefusedTokenError(
        f"text {text}, token {position} (id {token}) may not come there: {reason}; leave the text "
        "out, or train on a grammar that has it",
        text,
        position,
    )
