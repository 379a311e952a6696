"""The slow truth about a model under a grammar: every sequence of tokens, one after the other.

No inside values, no chart: sequences are enumerated up to a length, each text is asked of the naive
Earley recognizer, and probabilities are multiplied. For right-linear grammars, whose completions
may be endless, there is a dense linear system over states of grammar and model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from oracles.earley import State

NextStates = Callable[[State], State]


def ended_sequences(model, initial: State, longest: int):
    """All sequences of at most ``longest`` tokens and a stop token that the model can write.

    Only those whose text is in the language.

    Returns:
        pairs of tokens and probability; and the probability of the prefixes of ``longest`` tokens
        that the language can still be reached from: what is missing is at most that.
    """
    vocabulary = model.vocabulary
    stops, special = set(vocabulary.stop_token_ids), set(vocabulary.special_token_ids)
    found, missing = [], 0.0
    work = [((), initial, model.start, 1.0)]
    while work:
        tokens, state, model_state, probability = work.pop()
        row = model.probabilities[model_state]
        if state.accepting:
            found += [((*tokens, stop), probability * row[stop]) for stop in stops if row[stop] > 0]
        for token, data in enumerate(vocabulary.token_bytes):
            if not data or token in stops or token in special or row[token] == 0:
                continue
            after = state.feed(data)
            if not after.viable:
                continue
            if len(tokens) == longest:
                missing += probability * row[token]
                continue
            work.append(
                (
                    (*tokens, token),
                    after,
                    int(model.successors[model_state, token]),
                    probability * row[token],
                )
            )
    return found, missing


def survival_of(sequences, prefix: Sequence[int]) -> float:
    """The joint probability of a prefix and of ending in the language, by enumeration."""
    size = len(prefix)
    return sum(p for tokens, p in sequences if tokens[:size] == tuple(prefix))


def masked_probability(model, initial: State, tokens: Sequence[int]) -> tuple[float, float]:
    """The probability of a whole sequence under masked sampling, and the product of the masses."""
    vocabulary = model.vocabulary
    stops, special = set(vocabulary.stop_token_ids), set(vocabulary.special_token_ids)
    state, model_state, masked, weight = initial, model.start, 1.0, 1.0
    for token in tokens:
        row = model.probabilities[model_state]
        mass = sum(
            row[other]
            for other, data in enumerate(vocabulary.token_bytes)
            if (
                state.accepting
                if other in stops
                else bool(data) and other not in special and state.feed(data).viable
            )
        )
        masked *= row[token] / mass
        weight *= mass
        if token not in stops:
            state = state.feed(vocabulary[token])
            model_state = int(model.successors[model_state, token])
    return masked, weight


def count_derivations(cfg, data: bytes, start: int | None = None, most: int = 1_000) -> int:
    """How many leftmost derivations a text has from a nonterminal, by trying them all.

    For grammars without cycles. Memory grows with the number; counts stop at ``most``.
    """
    size = len(data)
    bodies = defaultdict(list)
    for production in cfg.productions:
        bodies[production.lhs].append(production.rhs)
    # By fixed point over all spans: counts of derivations of height at most k, for growing k.
    spans = {
        (n, i, j): 0
        for n in range(len(cfg.names))
        for i in range(size + 1)
        for j in range(i, size + 1)
    }

    def ways(rhs, i: int, j: int) -> int:
        table = {i: 1}
        for symbol in rhs:
            after: dict[int, int] = {}
            for at, count in table.items():
                if isinstance(symbol, frozenset):
                    if at < j and data[at] in symbol:
                        after[at + 1] = after.get(at + 1, 0) + count
                    continue
                for to in range(at, j + 1):
                    if spans[symbol, at, to]:
                        after[to] = after.get(to, 0) + count * spans[symbol, at, to]
            table = after
        return table.get(j, 0)

    while True:
        new = {(n, i, j): min(sum(ways(rhs, i, j) for rhs in bodies[n]), most) for n, i, j in spans}
        if new == spans:
            return spans[cfg.start if start is None else start, 0, size]
        spans = new


def regular_survival(model, states: int, moves, accepting) -> np.ndarray:
    """``h`` of each state of a deterministic automaton over bytes and of the model, densely.

    Args:
        model: its tokens may have several bytes.
        states: of the automaton.
        moves: by state and byte, the next state; missing where there is none.
        accepting: the states in which a text may end.

    Returns:
        shape ``(states, S)``.
    """
    vocabulary = model.vocabulary
    stops, special = set(vocabulary.stop_token_ids), set(vocabulary.special_token_ids)
    count = len(model.probabilities)
    matrix = np.zeros((states * count, states * count))
    right = np.zeros(states * count)
    for state in range(states):
        for model_state in range(count):
            here = state * count + model_state
            row = model.probabilities[model_state]
            if state in accepting:
                right[here] = sum(row[stop] for stop in stops)
            for token, data in enumerate(vocabulary.token_bytes):
                if not data or token in stops or token in special:
                    continue
                after = state
                for byte in data:
                    after = moves.get((after, byte))
                    if after is None:
                        break
                if after is not None:
                    target = after * count + int(model.successors[model_state, token])
                    matrix[here, target] += row[token]
    solution = np.linalg.solve(np.eye(len(right)) - matrix, right)
    return solution.reshape(states, count)
