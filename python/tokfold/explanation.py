"""Why a token is allowed, or what stands against it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._schema_records import SchemaPlace
from tokfold.bitmask import allocate_bitmask, bits_of
from tokfold.engine import CompiledGrammar
from tokfold.errors import (
    LimitExceededError,
    UnsupportedGrammarError,
    UnsupportedSchemaError,
)
from tokfold.recognition import recognize
from tokfold.state import MatcherState

__all__ = ["Explanation", "allowed_bits", "explain", "open_rules", "place_in_schema"]

MAX_NEAREST = 8


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a grammar says of one token at one place.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile('root ::= "a"', vocabulary)
        >>> said = tokfold.Matcher(compiled).explain(1)
        >>> said.allowed, said.reason
        (False, 'byte 1 of 1, 0x62, cannot be')
    """

    token_id: int
    token: bytes
    """The token's bytes."""
    allowed: bool
    """Whether the mask allows it."""
    reason: str
    """In a sentence."""
    read: int
    """How many of its bytes could be read."""
    expected: bytes
    """The bytes that may come where it cannot go on (or after it), ascending."""
    may_end: bool
    """Whether the text may end before the token."""
    open_rules: tuple[str, ...]
    """The rules open there in one parse, outermost first; empty in very deep texts, where the
    grammar takes tokens whole, and where the matcher was made from a state."""
    innermost_rules: tuple[str, ...]
    """The rules that may go on there, in any parse; empty where ``open_rules`` is."""
    nearest: tuple[int, ...]
    """Allowed tokens that have most of their beginning in common with it, nearest first."""
    place: SchemaPlace | None = None
    """Where a JSON Schema is the grammar: the place in the document, and what which schema expects
    there; None where that is not known, as of a matcher that was made from a state."""

    @property
    def refused_byte(self) -> int | None:
        """The first byte that cannot be; None where there is none."""
        return self.token[self.read] if self.read < len(self.token) else None


class Explained(Protocol):
    """What explanations need of a :class:`tokfold.Matcher`."""

    compiled: CompiledGrammar
    _core: _core.Matcher
    _ending: dict[str, Any]
    _is_restored: bool

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""

    @property
    def state(self) -> MatcherState:
        """Where the matcher stands."""

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """The stop tokens in force."""

    @property
    def text(self) -> bytes:
        """Everything read since the start."""

    @property
    def tokens_left(self) -> int | None:
        """The tokens that the text may still take; None for no bound."""

    @property
    def prefer_end(self) -> int:
        """How many of the last tokens begin nothing new."""

    def fill_bitmask(
        self, bitmask: npt.NDArray[np.int32], *, tokens_left: int | None = None
    ) -> bool:
        """Write which tokens may come next."""

    @classmethod
    def from_state(cls, compiled: CompiledGrammar, state: MatcherState, **options: Any) -> Self:
        """A matcher that goes on from a state."""


def explain(matcher: Explained, token_id: int) -> Explanation:
    """What :meth:`Matcher.explain` returns."""
    compiled = matcher.compiled
    vocabulary = compiled.vocabulary
    token = vocabulary[token_id]
    bits = allowed_bits(matcher)
    allowed = bool(bits[token_id])
    is_stop = token_id in matcher.stop_token_ids
    is_text = not is_stop and bool(token)
    is_text = is_text and token_id not in vocabulary.stop_token_ids
    is_text = is_text and token_id not in vocabulary.special_token_ids
    read, expected = matcher._core.readable(token if is_text else b"")
    path, tops = open_rules(matcher, token[:read] if is_text else b"")
    if is_stop and matcher.is_accepting and not allowed and matcher.tokens_left != 0:
        ends = [i for i in matcher.stop_token_ids if bits[i]]
        reason = f"the grammar names the stop token that ends the text here: one of {ends}"
    elif is_stop and allowed and not matcher.is_accepting:
        reason = "it completes the text, and ends it"
    elif is_stop:
        reason = "the text is complete" if allowed else "the text is not complete here"
    elif not allowed and (why := _why_late(matcher, token_id)):
        reason = f"the text can be completed after it, but {why}"
    elif allowed and (not is_text or read < len(token)):
        reason = "it is taken whole, by its id, and the text can be completed after it"
    elif not is_text:
        reason = "a special or empty token is never text, and its id is not asked for here"
    elif allowed:
        reason = "the text can be completed after it"
    else:
        reason = f"byte {read + 1} of {len(token)}, 0x{token[read]:02x}, cannot be"
        if spent := _spent_rules(matcher, token[: read + 1], tops):
            reason = (
                f"{reason}: the tokens of {spent} are spent, so its text goes to its nearest end"
            )
    return Explanation(
        token_id=token_id,
        token=token,
        allowed=allowed,
        reason=reason,
        read=read,
        expected=expected,
        may_end=matcher.is_accepting,
        open_rules=path,
        innermost_rules=tops,
        nearest=_nearest(matcher, token, bits) if is_text and not allowed else (),
        place=_place(matcher, token if is_text else b"", read, is_stop),
    )


def allowed_bits(matcher: Explained) -> npt.NDArray[np.uint8]:
    """For each token 1 where it may come next, else 0."""
    size = len(matcher.compiled.vocabulary)
    bitmask = allocate_bitmask(1, size)
    matcher.fill_bitmask(bitmask)
    return bits_of(bitmask[0], size)


def _spent_rules(matcher: Explained, further: bytes, innermost: tuple[str, ...]) -> str:
    """The rules with ``max_tokens`` that forbid the last of some bytes; empty where none does.

    A recognizer sees no tokens, so it reads what these rules alone forbid.
    """
    grammar = matcher.compiled.grammar
    if matcher._is_restored or not innermost:
        return ""
    bounds = dict(grammar._core.token_bounds())
    named = [f"the rule {name} (max_tokens={bounds[name]})" for name in innermost if name in bounds]
    text = matcher.text + further
    try:
        can_be = named and recognize(grammar, text, matcher.compiled.limits).read == len(text)
    except (LimitExceededError, UnsupportedGrammarError):
        return ""
    return " or ".join(named) if can_be else ""


def _why_late(matcher: Explained, token_id: int) -> str:
    """Why the budget forbids a token; empty where something else forbids it."""
    left = matcher.tokens_left
    if left is None:
        return ""
    free = matcher.from_state(matcher.compiled, matcher.state, **matcher._ending)

    def allows(tokens_left: int | None) -> bool:
        bitmask = allocate_bitmask(1, len(matcher.compiled.vocabulary))
        free.fill_bitmask(bitmask, tokens_left=tokens_left)
        return bool(bitmask[0, token_id // 32] >> token_id % 32 & 1)

    if not allows(None):
        return ""
    if left <= matcher.prefer_end and allows(left):
        return (
            f"it takes the text further from its end, which none of the last {matcher.prefer_end} "
            f"tokens does: {left} are left"
        )
    return f"not in time: {left} tokens are left, and it is one of them"


def _place(matcher: Explained, further: bytes, read: int, is_stop: bool) -> SchemaPlace | None:
    place = place_in_schema(matcher, further, read, is_whole=is_stop)
    if further or is_stop or place is None or place.reasons:
        return place
    # A token that is no text is refused for the same reason as a byte that no JSON text has.
    return place_in_schema(matcher, b"\0")


def place_in_schema(
    matcher: Explained, further: bytes = b"", read: int = 0, *, is_whole: bool = False
) -> SchemaPlace | None:
    """What a JSON Schema says of the place where a matcher stands, or ``read`` bytes on.

    None where the grammar is none of a JSON Schema, where the matcher was restored and does not
    know what was read before, where the limits of the grammar end the work, and where the
    conversion left a part of the schema out that no grammar can say: a document is judged by all.
    """
    if matcher._is_restored or matcher.compiled.grammar._schema is None:
        return None
    text = matcher.text
    try:
        return matcher.compiled.grammar.place_in_schema(
            text + further, len(text) + read, is_whole=is_whole
        )
    except (LimitExceededError, UnsupportedSchemaError):
        return None


def open_rules(matcher: Explained, further: bytes = b"") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The open rules where a matcher stands, or ``further`` on: those of one parse, innermost.

    Both empty where the text is nested deeper than the parser that finds them goes (the matcher
    itself has no such bound, and what it says must not fail for want of names), where the
    matcher was restored and does not know what was read before, and where the grammar takes tokens
    whole: the parser reads bytes.
    """
    grammar = matcher.compiled.grammar
    if matcher._is_restored or grammar._takes_tokens:
        return (), ()
    try:
        path, tops = _core.open_rules(
            grammar._compilable,
            matcher.text + further,
            skip_lookahead=grammar.lookahead == "implied",
            limits=matcher.compiled.limits,
        )
    except LimitExceededError:
        return (), ()
    # Before the first byte no rule has been entered.
    return tuple(path) or (grammar.root,), tuple(tops) or (grammar.root,)


def _nearest(matcher: Explained, token: bytes, bits: npt.NDArray[np.uint8]) -> tuple[int, ...]:
    allowed = np.flatnonzero(bits).tolist()
    vocabulary = matcher.compiled.vocabulary
    stops = set(matcher.stop_token_ids)

    def distance(token_id: int) -> tuple[int, int, int]:
        other = vocabulary[token_id]
        pairs = zip(token, other, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return -shared, abs(len(other) - len(token)), token_id

    return tuple(sorted((i for i in allowed if i not in stops), key=distance)[:MAX_NEAREST])
