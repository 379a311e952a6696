"""From a grammar to a form that an engine likes: laws that always help, then a greedy search.

An e-graph of all forms explodes. Here each right-hand side is kept in one canonical form
(:mod:`tokfold.laboratory.optimize.algebra`), and what is left to choose are a few moves over the
whole grammar, each kept where the cost of the engine's profile falls.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokfold.laboratory.form import Form
from tokfold.laboratory.optimize.profiles import Profile
from tokfold.laboratory.optimize.rewrites.chain import denest_chains
from tokfold.laboratory.optimize.rewrites.cleanup import (
    drop_cycles,
    drop_unproductive,
    drop_unreachable,
)
from tokfold.laboratory.optimize.rewrites.merge import merge_equal, remove_delegation
from tokfold.laboratory.optimize.rewrites.recursion import expose_recursion
from tokfold.laboratory.optimize.system import System

__all__ = ["Choice", "candidates", "canonical", "search"]

MAX_ROUNDS = 4

_ALWAYS = (
    drop_unproductive,
    drop_unreachable,
    drop_cycles,
    remove_delegation,
    merge_equal,
    drop_unreachable,
    expose_recursion,
)


@dataclass(frozen=True)
class Choice:
    """A move that was tried.

    Attributes:
        move: its name.
        before: the cost before.
        after: the cost after.
        kept: whether it was kept.
    """

    move: str
    before: float
    after: float
    kept: bool


def canonical(system: System, profile: Profile) -> None:
    """Apply what helps an engine in any case: no useless rules, no delegation, no ambiguity."""
    for _ in range(MAX_ROUNDS):
        # A list, since each is to be applied in every round.
        always = (*_ALWAYS, profile.recursion, drop_unreachable)
        if not any([rewrite(system) for rewrite in always]):
            return


def search(form: Form, profile: Profile) -> tuple[System, list[Choice]]:
    """The cheapest form that the moves of a profile lead to, greedily.

    Args:
        form: the grammar.
        profile: the engine's.
    """
    system = System(form)
    canonical(system, profile)
    cost = profile.cost(system)
    tried: list[Choice] = []
    for move in profile.moves:
        other = system.copy()
        if not move.apply(other):
            continue
        _tidy(other)
        after = profile.cost(other)
        tried.append(Choice(move.name, cost, after, after < cost))
        if after < cost:
            system, cost = other, after
    for finish in profile.finish:
        finish(system)
    drop_unreachable(system)
    return system, tried


def candidates(form: Form, profile: Profile) -> list[tuple[str, System]]:
    """Forms to be measured beside the one that the search finds.

    The first differs from the grammar in the engine's needs only (for XGrammar, a fresh start
    rule); the second is canonical.
    """
    plain = System.untouched(form)
    common = System(form)
    canonical(common, profile)
    denest_chains(common)
    found = [("as written", plain), ("canonical", common)]
    for _, system in found:
        for finish in profile.finish[-1:]:
            finish(system)
        drop_unreachable(system)
    return found


def _tidy(system: System) -> None:
    remove_delegation(system)
    merge_equal(system)
    drop_unreachable(system)
