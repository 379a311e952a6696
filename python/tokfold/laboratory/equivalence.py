"""Do two grammars have the same language?

Undecidable in general. :func:`compare` never says ``equal`` on a guess: it gives a text that tells
the grammars apart, a proof, or the length up to which no text does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tokfold import _core
from tokfold._quoting import quoted
from tokfold.grammar import Grammar
from tokfold.limits import Limits

__all__ = ["MAX_PAIRS", "Verdict", "compare"]

MAX_PAIRS = 200_000
"""Pairs of states that :func:`compare` looks at unless told otherwise: seconds."""


@dataclass(frozen=True)
class Verdict:
    """What a comparison found.

    Attributes:
        kind: ``"different"``: a text is in one language and not in the other. ``"proved"``: the
            languages are the same, since the pairs of states that were met close. ``"bounded"``:
            neither was found within the bounds.
        difference: for ``"different"``, the text.
        accepted_by: for ``"different"``, which grammar takes it.
        is_shortest: for ``"different"``, whether no shorter text tells them apart (bytes).
        depth: for ``"bounded"``, no text of fewer bytes tells them apart.
        pairs: pairs of states met, one of each grammar.
    """

    kind: Literal["different", "proved", "bounded"]
    difference: bytes | None
    accepted_by: Literal["left", "right"] | None
    is_shortest: bool
    depth: int | None
    pairs: int

    def __str__(self) -> str:
        if self.difference is not None:
            side, other = ("first", "second")
            if self.accepted_by == "right":
                side, other = other, side
            shortest = "a shortest difference" if self.is_shortest else "a difference"
            text = self.difference.decode("utf-8", "backslashreplace")
            return (
                f"different: {quoted(text)} is in the {side} language, not in the {other} "
                f"({shortest})"
            )
        if self.kind == "proved":
            return f"proved equal: {self.pairs} pairs of states close"
        return (
            f"bounded: no text of fewer than {self.depth} bytes tells them apart "
            f"({self.pairs} pairs of states looked at)"
        )


def compare(
    left: Grammar,
    right: Grammar,
    *,
    max_pairs: int = MAX_PAIRS,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Compare the languages of two grammars.

    Both become one network; a pair of stack sets, one of each grammar, must accept alike and lead
    to such pairs again (bisimulation up to congruence; ``docs/design/laboratory.md`` has the
    argument). What is in one language only is found in time for real grammars; a proof is found
    where the grammars do the same at corresponding places, be their rules divided as they may.

    Args:
        left: a grammar.
        right: another.
        max_pairs: pairs of states to look at before giving a bound.
        limits: bounds on the network and, as ``max_total_work``, on the work of the search.
        progress: called now and then with the pairs met and ``max_pairs``.

    Raises:
        UnsupportedGrammarError: one of the grammars cannot be handled exactly; says which.
        LimitExceededError: the network of one of them, or of both together, is larger than the
            limits allow; says which.
        MissingExtraError: a macro needs XGrammar, which is not installed.
    """
    if max_pairs < 1:
        raise ValueError(f"max_pairs must be at least 1, not {max_pairs}")
    skips = (left.lookahead == "implied", right.lookahead == "implied")
    text, depth, pairs = _core.compare(
        left._compilable, right._compilable, skips, max_pairs, limits, progress
    )
    if text is not None:
        data, is_left, is_shortest = text
        side: Literal["left", "right"] = "left" if is_left else "right"
        return Verdict("different", data, side, is_shortest, None, pairs)
    if depth is None:
        return Verdict("proved", None, None, False, None, pairs)
    return Verdict("bounded", None, None, False, depth, pairs)
