"""How far masked sampling is from the true distribution, over whole texts.

Prefixes that cannot be told apart, since the grammar and the model are in the same states after
them, are one node. KL is a sum over nodes: how often masked sampling comes through, times the KL
of the step there. Where the nodes are finitely many, one linear system gives it exactly; else nodes
are taken by how often they are visited until the bound, and the rest is told.

The total variation depends on the weight of a text, not only on where it leads, so nodes are
followed by length and weight. What is not followed to the end has known probabilities under both
distributions (the true one by the exact ``h``), and these bound what it may add.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tokfold.bitmask import allocate_bitmask
from tokfold.engine import compile as compile_grammar
from tokfold.grammar import Grammar
from tokfold.laboratory.fidelity.errors import DeadEndError
from tokfold.laboratory.fidelity.exact import ExactState, ExactSurvival
from tokfold.laboratory.fidelity.recorder import as_mask
from tokfold.matcher import Matcher
from tokfold.options import CompileOptions

__all__ = ["KlDivergence", "TotalVariation", "kl_divergence", "total_variation"]


@dataclass(frozen=True)
class KlDivergence:
    """``KL(masked || true)`` over whole texts, in nats.

    Attributes:
        kl: the value, exact where nothing was left out; else a lower bound.
        left_out: how often masked sampling leaves the nodes that were looked at: the probability
            that a text does. 0 where ``kl`` is exact.
        nodes: nodes looked at.
    """

    kl: float
    left_out: float
    nodes: int


@dataclass(frozen=True)
class TotalVariation:
    """The total variation between the masked and the true distribution over whole texts.

    Attributes:
        low: the least that it can be.
        high: the most that it can be.
        nodes: nodes looked at.
    """

    low: float
    high: float
    nodes: int


class _Walk:
    """States of grammar and model together."""

    def __init__(self, survival: ExactSurvival, grammar: Grammar) -> None:
        if survival.h <= 0:
            raise DeadEndError("the model's texts are in the language with probability zero")
        vocabulary = survival.model.vocabulary
        self._compiled = compile_grammar(
            grammar, vocabulary, classes="never", options=CompileOptions(check_tokens=False)
        )
        self._bitmask = allocate_bitmask(1, len(vocabulary))
        self.root = (survival.begin(), Matcher(self._compiled))

    def key(self, node: tuple[ExactState, Matcher]) -> Hashable:
        state, matcher = node
        return matcher.state, state.model_state

    def steps(
        self, node: tuple[ExactState, Matcher]
    ) -> tuple[list[tuple[int, float]], float, float]:
        """Tokens that masked sampling takes with their probabilities; the mass; the step's KL."""
        state, matcher = node
        matcher.fill_bitmask(self._bitmask)
        mask = as_mask(self._bitmask[0], len(state.probabilities))
        chosen = np.where(mask, state.probabilities, 0.0)
        mass = float(chosen.sum())
        masked = chosen / mass
        true = state.conditional()
        tokens = np.flatnonzero(masked)
        kl = np.inf
        if (true[tokens] > 0).all():
            kl = float((masked[tokens] * np.log(masked[tokens] / true[tokens])).sum())
        return [(int(token), float(masked[token])) for token in tokens], mass, max(kl, 0.0)

    def after(
        self, node: tuple[ExactState, Matcher], token: int
    ) -> tuple[ExactState, Matcher] | None:
        """The node after a token; None after a stop token."""
        state, matcher = node
        next_state = state.step(token)
        if next_state.is_terminated:
            return None
        forked = matcher.fork()
        forked.accept_token(token)
        return next_state, forked


def kl_divergence(
    survival: ExactSurvival, grammar: Grammar, *, max_nodes: int = 2_000
) -> KlDivergence:
    """``KL(masked || true)`` over whole texts.

    Args:
        survival: of the model under the grammar.
        grammar: the grammar that ``survival`` was solved for.
        max_nodes: bound on the nodes looked at.

    Raises:
        DeadEndError: the model's texts are in the language with probability zero.
    """
    walk = _Walk(survival, grammar)
    numbers: dict[Hashable, int] = {walk.key(walk.root): 0}
    nodes = [walk.root]
    edges: list[tuple[int, int, float]] = []
    kls: dict[int, float] = {}
    heap = [(-1.0, 0)]
    while heap and len(kls) < max_nodes:
        reach, number = heapq.heappop(heap)
        steps, _, kl = walk.steps(nodes[number])
        kls[number] = kl
        if kl == np.inf:
            return KlDivergence(np.inf, 0.0, len(kls))
        for token, probability in steps:
            below = walk.after(nodes[number], token)
            if below is None:
                continue
            key = walk.key(below)
            if key not in numbers:
                numbers[key] = len(nodes)
                nodes.append(below)
                heapq.heappush(heap, (reach * probability, numbers[key]))
            edges.append((number, numbers[key], probability))
    inside = sorted(kls)
    place = {number: at for at, number in enumerate(inside)}
    moves = np.zeros((len(inside), len(inside)))
    leaving = np.zeros(len(inside))
    for source, target, probability in edges:
        if target in place:
            moves[place[source], place[target]] += probability
        else:
            leaving[place[source]] += probability
    begin = np.zeros(len(inside))
    begin[place[0]] = 1.0
    visits = np.linalg.solve(np.eye(len(inside)) - moves.T, begin)
    kl = float(visits @ np.array([kls[number] for number in inside]))
    left = float(visits @ leaving) if leaving.any() else 0.0
    return KlDivergence(kl, left, len(inside))


def total_variation(
    survival: ExactSurvival,
    grammar: Grammar,
    *,
    tolerance: float = 1e-3,
    max_nodes: int = 5_000,
) -> TotalVariation:
    """The total variation between masked and true distribution over whole texts, between bounds.

    Args:
        survival: of the model under the grammar.
        grammar: the grammar that ``survival`` was solved for.
        tolerance: end when the bounds are as near as this.
        max_nodes: bound on the nodes looked at.

    Raises:
        DeadEndError: the model's texts are in the language with probability zero.
    """
    walk = _Walk(survival, grammar)
    ended = 0.0
    count = 0
    # By length, state and weight: probability under masks, weight, and one node of them.
    level: dict[Hashable, tuple[float, float, tuple[ExactState, Matcher]]] = {
        0: (1.0, 1.0, walk.root)
    }
    skipped_low = skipped_high = 0.0

    def true_share(probability: float, weight: float, log_h: float) -> float:
        return probability * weight * math.exp(log_h - survival.log_h)

    while level:
        shares = [(q, true_share(q, w, node[0].log_h)) for q, w, node in level.values()]
        high = sum(q + p for q, p in shares) / 2
        low = sum(abs(q - p) for q, p in shares) / 2
        if high - low + skipped_high - skipped_low <= tolerance or count >= max_nodes:
            return TotalVariation(
                ended + low + skipped_low, min(ended + high + skipped_high, 1.0), count
            )
        following: dict[Hashable, tuple[float, float, tuple[ExactState, Matcher]]] = {}
        for q, weight, node in level.values():
            p = true_share(q, weight, node[0].log_h)
            # What can hardly matter is not followed: half the tolerance at most, all together.
            if (q + p) * max_nodes < tolerance or math.isinf(node[0].log_h):
                skipped_low += abs(q - p) / 2
                skipped_high += (q + p) / 2
                continue
            count += 1
            steps, mass, _ = walk.steps(node)
            for token, probability in steps:
                below = walk.after(node, token)
                q_next, w_next = q * probability, weight * mass
                if below is None:
                    ended += abs(q_next - true_share(q_next, w_next, 0.0)) / 2
                    continue
                key = (walk.key(below), f"{w_next:.12e}")
                before = following.get(key)
                if before is not None:
                    q_next += before[0]
                following[key] = (q_next, w_next, below)
        level = following
    return TotalVariation(ended + skipped_low, min(ended + skipped_high, 1.0), count)
