"""Where the masks of two engines differ along a text, and which engine contradicts itself.

A mask promises: the tokens that it allows are those that the engine would read. Where two masks
differ, each token in question is offered to both engines. One that reads what its mask forbids, or
does not read what its mask allows, contradicts itself; where neither does, the engines understand
the grammar differently. A third voice says what is right: the token read byte by byte, with no
mask, by tokfold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from tokfold._quoting import quoted
from tokfold.engine import compile
from tokfold.errors import LimitExceededError
from tokfold.grammar import Grammar
from tokfold.laboratory.instruments.base import (
    EngineStoppedError,
    InstrumentedEngine,
    InstrumentError,
    Walk,
    bits_of,
)
from tokfold.laboratory.instruments.profile import EngineFactory, check_text, make_engine
from tokfold.matcher import Matcher
from tokfold.options import CompileOptions
from tokfold.vocabulary import Vocabulary, byte_vocabulary

__all__ = ["MaskDiff", "MaskDifference", "TokenVerdict", "mask_diff"]

MAX_TRIED = 1_000


class Fault(Enum):
    """What is wrong at a token."""

    FIRST = "the first engine contradicts itself"
    SECOND = "the second engine contradicts itself"
    BOTH = "both engines contradict themselves"
    NEITHER = "the engines understand the grammar differently"


@dataclass(frozen=True)
class TokenVerdict:
    """One token on which two engines differ.

    Attributes:
        token_id: the token.
        token: its bytes.
        allowed: whether each engine's mask allows it, the first engine first.
        taken: whether each engine reads it.
        possible: whether it can follow in the grammar, by reading it byte by byte; None where that
            cannot be said (special tokens, which are no text; grammars that take tokens whole).
    """

    token_id: int
    token: bytes
    allowed: tuple[bool, bool]
    taken: tuple[bool, bool]
    possible: bool | None

    @property
    def contradicts(self) -> tuple[bool, bool]:
        """Whether the mask of each engine disagrees with what it reads."""
        return self.allowed[0] != self.taken[0], self.allowed[1] != self.taken[1]

    @property
    def fault(self) -> Fault:
        """Who is to blame."""
        first, second = self.contradicts
        if first and second:
            return Fault.BOTH
        if first or second:
            return Fault.FIRST if first else Fault.SECOND
        return Fault.NEITHER


@dataclass(frozen=True)
class MaskDifference:
    """A place of the text where two engines differ.

    Attributes:
        index: tokens of the text read before.
        offset: bytes of the text read before.
        total: tokens on which the two masks differ here.
        verdicts: those that were tried, by ascending id; first of all the token of the text, if it
            is one of them, or if the masks agree and only one engine reads it.
    """

    index: int
    offset: int
    total: int
    verdicts: tuple[TokenVerdict, ...]


@dataclass(frozen=True)
class MaskDiff:
    """What comparing two engines along a text gave.

    Attributes:
        engines: their names.
        masks: how many masks were compared.
        tokens: how many tokens the text has.
        differences: the places where they differ, as many as were asked for.
        ended: why the comparison ended before the end of the text; empty where it did not.
    """

    engines: tuple[str, str]
    masks: int
    tokens: int
    differences: tuple[MaskDifference, ...]
    ended: str = ""

    @property
    def same(self) -> bool:
        """Whether no difference was found along the whole text."""
        return not self.differences and not self.ended


def mask_diff(
    grammar: Grammar,
    vocabulary: Vocabulary,
    text: bytes,
    engines: tuple[str | EngineFactory, str | EngineFactory],
    *,
    places: int | None = 1,
    max_tried: int = MAX_TRIED,
    token_ids: Sequence[int] | None = None,
) -> MaskDiff:
    """Compare the masks of two engines before each token of a text, and after the last.

    Args:
        grammar: the grammar.
        vocabulary: the vocabulary.
        text: the beginning of a string of the grammar.
        engines: two names out of :data:`.profile.ENGINES`, or what makes an engine.
        places: how many places with differences to find; None: all.
        max_tried: how many of the tokens on which masks differ are offered to the engines, at each
            place.
        token_ids: the text as tokens; None: each the longest that fits.

    Raises:
        EngineRefusedError: an engine does not take the grammar.
        TextRefusedError: the text is not the beginning of any string of the grammar.
        VocabularyError: without ``token_ids``, no token fits at some place.
        InstrumentError: no engine has such a name, or ``token_ids`` are not those of the text.
        MissingExtraError: an engine is not installed.
    """
    check_text(grammar, text)
    tokens = vocabulary.encode_greedy(text) if token_ids is None else list(token_ids)
    if vocabulary.decode(tokens) != text:
        raise InstrumentError("token_ids are not those of the text")
    made = [make_engine(engine, grammar, vocabulary) for engine in engines]
    first, second = made
    truth = _Truth(grammar, vocabulary)
    walks = first.begin(cold=True), second.begin(cold=True)
    names = _names(made)
    found: list[MaskDifference] = []
    ended, masks, offset = "", 0, 0
    for index in range(len(tokens) + 1):
        token_id = tokens[index] if index < len(tokens) else None
        try:
            here = _place(walks, truth, index, offset, token_id, max_tried)
        except (EngineStoppedError, LimitExceededError, RuntimeError) as error:
            ended = f"at token {index + 1}: {error}"
            break
        masks += 1
        if here is not None:
            found.append(here)
            if places is not None and len(found) >= places:
                break
        if token_id is None:
            break
        taken = [walk.accept(token_id) for walk in walks]
        if not all(taken):
            refusing = " and ".join(n for n, ok in zip(names, taken, strict=True) if not ok)
            ended = f"at token {index + 1}: {refusing} does not take {quoted(vocabulary[token_id])}"
            break
        truth.read(token_id)
        offset += len(vocabulary[token_id])
    return MaskDiff(names, masks, len(tokens), tuple(found), ended)


def _names(engines: Sequence[InstrumentedEngine]) -> tuple[str, str]:
    first, second = (engine.name for engine in engines)
    return (first, second) if first != second else (f"{first} (first)", f"{second} (second)")


def _place(
    walks: tuple[Walk, Walk],
    truth: _Truth,
    index: int,
    offset: int,
    token_id: int | None,
    max_tried: int,
) -> MaskDifference | None:
    """The difference at one place, if there is any."""
    bits = []
    for walk in walks:
        walk.fill()
        walk.check()
        bits.append(bits_of(walk.row, truth.vocabulary))
    differing = np.flatnonzero(bits[0] != bits[1]).tolist()
    tried = differing[:max_tried]
    if token_id is not None and token_id in differing:
        tried = [token_id, *(i for i in tried if i != token_id)][:max_tried]
    verdicts = []
    for candidate in tried:
        taken = tuple(walk.would_accept(candidate) for walk in walks)
        allowed = bool(bits[0][candidate]), bool(bits[1][candidate])
        possible = truth(candidate)
        piece = truth.vocabulary[candidate]
        verdicts.append(TokenVerdict(candidate, piece, allowed, (taken[0], taken[1]), possible))
    if token_id is not None and token_id not in differing:
        taken = tuple(walk.would_accept(token_id) for walk in walks)
        if taken[0] != taken[1]:
            allowed = bool(bits[0][token_id]), bool(bits[1][token_id])
            piece = truth.vocabulary[token_id]
            pair = taken[0], taken[1]
            verdicts.insert(0, TokenVerdict(token_id, piece, allowed, pair, True))
    if not verdicts and not differing:
        return None
    return MaskDifference(index, offset, len(differing), tuple(verdicts))


class _Truth:
    """Whether a token may follow some text, by reading it byte by byte, without any mask."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._matcher: Matcher | None = None
        if not grammar._takes_tokens:
            compiled = compile(
                grammar,
                byte_vocabulary(),
                classes="never",
                options=CompileOptions(pool=None, check_tokens=False),
            )
            self._matcher = Matcher(compiled)
        self._stops = set(vocabulary.stop_token_ids)
        self._special = set(vocabulary.special_token_ids)

    def read(self, token_id: int) -> None:
        """Go on after a token of the text."""
        if self._matcher is not None:
            self._matcher.accept_bytes(self.vocabulary[token_id])

    def __call__(self, token_id: int) -> bool | None:
        if self._matcher is None or token_id in self._special:
            return None
        if token_id in self._stops:
            return self._matcher.is_accepting
        piece = self.vocabulary[token_id]
        return bool(piece) and self._matcher.fork().accept_bytes(piece)
