"""What a caller may do to a matcher, in random order.

Steps name tokens by a number that is taken modulo what there is to choose from, so that any step
makes sense in any state and a shrunk walk still walks.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st


@dataclass(frozen=True)
class Accept:
    """Takes one of the tokens that are allowed, if there are any."""

    choice: int


@dataclass(frozen=True)
class Offer:
    """Offers any token, allowed or not."""

    choice: int


@dataclass(frozen=True)
class OfferText:
    """Offers the bytes of any token, as text."""

    choice: int


@dataclass(frozen=True)
class Rollback:
    """Takes back up to so many steps."""

    steps: int


@dataclass(frozen=True)
class Reset:
    """Back to the start."""


@dataclass(frozen=True)
class Fork:
    """Goes on in a copy; what was must not notice."""


@dataclass(frozen=True)
class Switch:
    """Goes on in an earlier copy."""

    choice: int


Step = Accept | Offer | OfferText | Rollback | Reset | Fork | Switch

_CHOICES = st.integers(0, 1 << 16)


def walks(max_steps: int = 12) -> st.SearchStrategy[list[Step]]:
    """Hypothesis strategy: a list of steps, most of them forward."""
    accept = st.builds(Accept, _CHOICES)
    step = st.one_of(
        accept,
        accept,
        accept,
        accept,
        st.builds(Offer, _CHOICES),
        st.builds(OfferText, _CHOICES),
        st.builds(Rollback, st.integers(1, 4)),
        st.builds(Fork),
        st.builds(Switch, _CHOICES),
        st.just(Reset()),
    )
    return st.lists(step, max_size=max_steps)


def build_walk(random: Random, steps: int) -> list[Step]:
    """The same for a seed: so many steps, and more of those that lead somewhere."""
    makers = [
        lambda: Accept(random.randrange(1 << 16)),
        lambda: Offer(random.randrange(1 << 16)),
        lambda: OfferText(random.randrange(1 << 16)),
        lambda: Rollback(random.randint(1, 4)),
        lambda: Fork(),
        lambda: Switch(random.randrange(1 << 16)),
        lambda: Reset(),
    ]
    return [make() for make in random.choices(makers, [55, 10, 10, 9, 7, 7, 2], k=steps)]
