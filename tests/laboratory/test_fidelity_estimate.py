"""Samplers, estimates and bounds against the exact values."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laboratory.fidelity_samples import EXPRESSIONS, LISTS, VOCABULARY, random_model
from oracles.earley import Oracle
from oracles.fidelity import ended_sequences, masked_probability
from oracles.model import Choice, Empty, Literal, Ref, Repeat, Seq
from oracles.model import Grammar as OracleGrammar
from strategies.profiles import CASES, LONG, examples
from tokfold import Grammar, Matcher, Vocabulary, allocate_bitmask
from tokfold import compile as compile_grammar
from tokfold.laboratory.fidelity import (
    DeadEndError,
    ExactSurvival,
    MarkovModel,
    ModelError,
    Recorder,
    draw,
    effective_sample_size,
    estimate_kl,
    estimate_log_h,
    kl_bound,
    kl_divergence,
    log_spread,
    sample,
    step_fidelity,
    total_variation,
    total_variation_bound,
)

FINITE = OracleGrammar(
    {
        "root": Seq((Repeat(Literal(b"a"), 0, 2), Choice((Literal(b"b"), Ref("group"), Empty())))),
        "group": Seq((Literal(b"("), Literal(b"b"), Literal(b")"))),
    }
)
NESTED = OracleGrammar(
    {"root": Choice((Seq((Literal(b"("), Ref("root"), Literal(b")"))), Literal(b"ab"), Empty()))}
)


def _family():
    """Pairs of grammar and model with texts of some twenty tokens, over which masks cost much."""
    letters = Vocabulary(
        [bytes([c]) for c in b"0123456789+*()abcxyz[],"] + [b"</s>"], stop_token_ids=[23]
    )
    for text in (EXPRESSIONS, LISTS, 'root ::= ("a" [0-9] ",")* "x"?'):
        for seed in range(3):
            random = np.random.default_rng(seed)
            table = random.dirichlet(np.full(24, 0.8), size=25)
            table[:, 23] += 0.25
            table[:, 11:14] += 0.05
            model = MarkovModel.bigram(letters, table / table.sum(axis=1, keepdims=True))
            yield text, letters, model


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(1e-12, 1)), min_size=2, max_size=6))
@examples(300)
def test_bounds_hold_for_any_step(pairs):
    p = np.array([pair[0] for pair in pairs])
    if p.sum() < 1e-6:
        return
    h = np.array([pair[1] for pair in pairs])
    step = step_fidelity(p / p.sum(), h, np.ones(len(p), dtype=bool))
    assert step.kl <= step.kl_bound * (1 + 1e-9) + 1e-12
    assert step.total_variation <= step.total_variation_bound * (1 + 1e-9) + 1e-12
    CASES["steps against the bounds"] += 1


@pytest.mark.parametrize("spread", [1e-6, 1e-3, 0.0099, 0.0101, 0.5, 3.0, 40.0, 300.0])
def test_bounds_are_reached_by_two_tokens(spread):
    """The worst cases of both, and none of them is above."""
    gamma = math.exp(spread)
    h = np.array([1.0, math.exp(-spread)])
    allowed = np.ones(2, dtype=bool)
    x = spread / math.expm1(spread)
    # With 1 + share * (gamma - 1) = 1 / x, the logarithmic mean of the survivals is extreme.
    share = (1 / x - 1) / (gamma - 1)
    step = step_fidelity(np.array([share, 1 - share]), h, allowed)
    assert step.kl == pytest.approx(kl_bound(spread), rel=1e-4, abs=1e-15)
    share = 1 / (1 + math.exp(spread / 2))
    step = step_fidelity(np.array([share, 1 - share]), h, allowed)
    assert step.total_variation == pytest.approx(total_variation_bound(spread), rel=1e-6)
    # Tighter than the paper's.
    assert kl_bound(spread) < spread
    assert total_variation_bound(spread) < math.sqrt(spread / 2)


def test_the_spread_is_over_tokens_of_positive_probability():
    """A token that is allowed and never chosen may have any survival: KL and TV are zero here."""
    p, h = np.array([0.5, 0.5, 0.0]), np.array([0.3, 0.3, 1e-9])
    step = step_fidelity(p, h, np.ones(3, dtype=bool))
    assert (step.log_spread, step.kl_bound, step.total_variation_bound) == (0, 0, 0)
    assert log_spread(p, np.array([0.3, 0.0, 1.0]), np.ones(3, dtype=bool)) == math.inf
    assert kl_bound(math.inf) == math.inf
    assert total_variation_bound(math.inf) == 1
    with pytest.raises(ValueError, match="0 or more"):
        kl_bound(-1.0)


def test_bounds_are_never_violated_over_10000_steps():
    random = np.random.default_rng(0)
    steps = 0
    for text, _, model in _family():
        survival = ExactSurvival(text, model)
        here = 0
        while here < 1_200:
            state = survival.begin()
            while not state.is_terminated and len(state.tokens) < 40:
                step = state.fidelity()
                here += 1
                assert step.kl <= step.kl_bound * (1 + 1e-9) + 1e-13
                bound = step.total_variation_bound * (1 + 1e-9) + 1e-13
                assert step.total_variation <= bound
                # Any token but a stop token, while there is one: longer texts, more prefixes.
                masked = state.masked()
                masked[23] *= 0.05
                state = state.step(int(random.choice(24, p=masked / masked.sum())))
        steps += here
    assert steps >= 10_000
    CASES["steps of processes against the bounds"] += steps


@pytest.mark.parametrize("method", ["importance", "smc"])
def test_the_estimate_of_log_h_with_64_samples(method):
    """RMSE of 0.25 over grammars and models; and the intervals hold what they say, about."""
    errors, covered = [], 0
    for text, letters, model in _family():
        exact = ExactSurvival(text, model)
        compiled = compile_grammar(Grammar.from_ebnf(text), letters, classes="never")
        for seed in range(12 if LONG else 4):
            drawn = sample(model, compiled, method=method, count=64, max_tokens=200, seed=seed)
            errors.append(drawn.log_h.log_h - exact.log_h)
            covered += drawn.log_h.low <= exact.log_h <= drawn.log_h.high
    assert math.sqrt(np.mean(np.square(errors))) <= 0.25
    assert covered / len(errors) >= 0.8  # of 0.95: weights are skewed


def test_estimates_are_unbiased():
    """The mean of many estimates of h is h: masks, and sequential Monte Carlo with resampling."""
    text, letters, model = next(iter(_family()))
    exact = ExactSurvival(text, model)
    compiled = compile_grammar(Grammar.from_ebnf(text), letters, classes="never")
    for method in ("mask", "smc"):
        values = []
        resampled = 0
        for seed in range(60):
            drawn = sample(model, compiled, method=method, count=16, max_tokens=300, seed=seed)
            values.append(math.exp(drawn.log_h.log_h))
            resampled += drawn.resamplings
        error = np.std(values) / math.sqrt(len(values))
        assert abs(np.mean(values) - exact.h) <= 4 * error
        assert method == "mask" or resampled > 60


@given(st.integers(0, 1 << 32), st.sampled_from([FINITE, NESTED]))
@examples(15)
def test_weights_and_masses_are_those_of_the_oracle(seed, grammar):
    oracle = Oracle(grammar)
    model = random_model(seed)
    compiled = compile_grammar(Grammar.from_ebnf(str(grammar)), VOCABULARY, classes="never")
    random = np.random.default_rng(seed)
    drawn = draw(model, compiled, count=8, max_tokens=12, random=random)
    for tokens, masses, weight, ended in zip(
        drawn.tokens, drawn.log_masses, drawn.log_weights, drawn.ended, strict=True
    ):
        assert weight == pytest.approx(masses.sum())
        if math.isinf(weight):
            assert not ended
            continue
        masked, product = masked_probability(model, oracle.initial(prune=True), tokens)
        assert masked > 0
        assert weight == pytest.approx(math.log(product), abs=1e-9)
        assert ended == (tokens[-1] in VOCABULARY.stop_token_ids)
        CASES["weights against the oracle"] += 1


def _distributions(model, grammar, longest=6):
    """Of each text under masks and under the true process, by enumeration."""
    start = Oracle(grammar).initial(prune=True)
    sequences, missing = ended_sequences(model, start, longest)
    total = sum(p for _, p in sequences)
    masked = np.array([masked_probability(model, start, tokens)[0] for tokens, _ in sequences])
    return sequences, masked, np.array([p for _, p in sequences]) / total, missing / total


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_divergences_of_a_finite_language_are_exact(seed):
    random = np.random.default_rng(seed)
    table = random.dirichlet(np.ones(len(VOCABULARY)), size=len(VOCABULARY) + 1)
    model = MarkovModel.bigram(VOCABULARY, table)
    _, q, p, missing = _distributions(model, FINITE)
    assert missing == 0
    read = Grammar.from_ebnf(str(FINITE))
    survival = ExactSurvival(read, model)
    kl = kl_divergence(survival, read)
    assert kl.left_out == 0
    assert kl.kl == pytest.approx((q * np.log(q / p)).sum(), rel=1e-9)
    variation = total_variation(survival, read, tolerance=1e-12)
    assert variation.low == pytest.approx(np.abs(q - p).sum() / 2, rel=1e-9)
    assert variation.high == pytest.approx(variation.low, abs=1e-9)
    compiled = compile_grammar(read, VOCABULARY, classes="never")
    drawn = draw(model, compiled, count=3_000, max_tokens=9, random=random)
    assert drawn.kl.low - 0.02 <= kl.kl <= drawn.kl.high + 0.02
    assert not drawn.kl.is_lower_bound


def test_divergences_of_endless_languages():
    """A regular language closes, with texts of any length; a nested one is told as bounds."""
    table = np.random.default_rng(0).dirichlet(np.ones(len(VOCABULARY)), 13)
    table[:, [0, 1, 8]] += 0.2
    model = MarkovModel.bigram(VOCABULARY, table / table.sum(axis=1, keepdims=True))
    text = 'root ::= "a"* "b"'
    read = Grammar.from_ebnf(text)
    survival = ExactSurvival(read, model)
    # Dense: after only a's one of these tokens, after b a stop token. E_q[log w] by state.
    going, done, stops = [0, 10], [1, 2], [8, 11]
    p = model.probabilities
    stop_mass = p[:, stops].sum(axis=1)
    mass = p[:, going + done].sum(axis=1)
    to_come = np.log(mass) + (p[:, done] / mass[:, None]) @ np.log(stop_mass[done])
    moves = np.zeros((13, 13))
    moves[:, going] = p[:, going] / mass[:, None]
    expected = survival.log_h - np.linalg.solve(np.eye(13) - moves, to_come)[model.start]
    kl = kl_divergence(survival, read)
    assert kl.left_out == 0
    assert kl.kl == pytest.approx(expected, rel=1e-9)
    variation = total_variation(survival, read, tolerance=1e-3)
    assert variation.low <= variation.high <= variation.low + 1e-3
    grammar = OracleGrammar({"root": Seq((Repeat(Literal(b"a"), 0, None), Literal(b"b")))})
    _, q, true, missing = _distributions(model, grammar, longest=9)
    assert np.abs(q - true).sum() / 2 == pytest.approx(variation.low, abs=1 - q.sum() + missing)
    nested = Grammar.from_ebnf(str(NESTED))
    survival = ExactSurvival(nested, model)
    few, more = (kl_divergence(survival, nested, max_nodes=n) for n in (10, 60))
    assert few.left_out > more.left_out
    assert 0 < few.kl <= more.kl


def test_samplers_draw_what_they_say():
    random = np.random.default_rng(2)
    table = random.dirichlet(np.ones(len(VOCABULARY)), size=len(VOCABULARY) + 1)
    model = MarkovModel.bigram(VOCABULARY, table)
    sequences, q, p, _ = _distributions(model, FINITE)
    names = [tokens for tokens, _ in sequences]
    compiled = compile_grammar(Grammar.from_ebnf(str(FINITE)), VOCABULARY, classes="never")

    def distance(method, truth) -> float:
        drawn = sample(model, compiled, method=method, count=2_000, max_tokens=9, seed=1)
        counts = Counter(map(tuple, drawn.tokens))
        shares = np.array([counts[name] / 2_000 for name in names])
        assert shares.sum() == pytest.approx(1)
        return float(np.abs(shares - truth).sum() / 2)

    apart = float(np.abs(q - p).sum() / 2)
    assert apart > 0.2
    assert distance("mask", q) < 0.08
    assert distance("importance", p) < 0.08
    assert distance("smc", p) < 0.08
    assert distance("exact", p) < 0.08


def test_cut_sequences_are_told_and_bounded():
    text = 'root ::= "a" "a"* '
    vocabulary = Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
    model = MarkovModel.bigram(vocabulary, np.tile([0.9, 0.1], (3, 1)))
    compiled = compile_grammar(Grammar.from_ebnf(text), vocabulary, classes="never")
    random = np.random.default_rng(0)
    drawn = draw(model, compiled, count=400, max_tokens=8, random=random)
    assert drawn.cut.sum() > 100
    exact = ExactSurvival(text, model)
    within = 0.9 * (1 - 0.9**7)
    assert math.exp(drawn.log_h.log_h) == pytest.approx(within, rel=0.2)
    assert drawn.log_h.log_h < exact.log_h <= drawn.log_h.log_h_upper + 1e-12
    assert drawn.kl.is_lower_bound
    with pytest.raises(DeadEndError, match="max_tokens"):
        sample(model, compiled, method="importance", count=4, max_tokens=1)


def test_sequences_that_die_weigh_nothing():
    vocabulary = Vocabulary([b"a", b"b", b"</s>"], stop_token_ids=[2])
    table = [[0.5, 0, 0.5], [0, 0, 1], [0, 0, 1], [0.5, 0.5, 0]]
    model = MarkovModel.bigram(vocabulary, table)
    compiled = compile_grammar(
        Grammar.from_ebnf('root ::= "a" | "bb"'), vocabulary, classes="never"
    )
    drawn = draw(model, compiled, count=200, max_tokens=9, random=np.random.default_rng(0))
    assert 60 < drawn.dead.sum() < 140
    assert drawn.kl.kl == math.inf
    exact = ExactSurvival('root ::= "a" | "bb"', model)
    assert math.exp(drawn.log_h.log_h) == pytest.approx(exact.h, rel=0.3)
    read = Grammar.from_ebnf('root ::= "a" | "bb"')
    assert kl_divergence(exact, read).kl == math.inf


def test_a_recorder_follows_any_loop():
    model = random_model(8)
    compiled = compile_grammar(Grammar.from_ebnf(str(NESTED)), VOCABULARY, classes="never")
    survival = ExactSurvival(str(NESTED), model)
    random = np.random.default_rng(3)
    recorder = Recorder()
    for _ in range(50):
        matcher, state = Matcher(compiled), survival.begin()
        bitmask = allocate_bitmask(1, len(VOCABULARY))
        while not matcher.is_terminated and not math.isinf(state.log_h):
            matcher.fill_bitmask(bitmask)
            logits = model(state.tokens) + 3.0  # any constant: logits, not probabilities
            token = int(random.choice(len(VOCABULARY), p=state.masked()))
            mass = recorder.step(logits, bitmask[0], token, survivals=state.survivals())
            assert mass == pytest.approx(math.log(state.probabilities[state.allowed()].sum()))
            assert recorder.steps[-1].kl == pytest.approx(state.fidelity().kl, abs=1e-12)
            matcher.accept_token(token)
            state = state.step(token)
        recorder.end(is_dead=not matcher.is_terminated)
    assert len(recorder.sequences) == 50
    assert recorder.sequences.log_h.low <= survival.log_h <= recorder.sequences.log_h.high


def test_bad_input():
    model = random_model(0)
    compiled = compile_grammar(Grammar.from_ebnf(str(NESTED)), VOCABULARY, classes="never")
    with pytest.raises(ValueError, match="method must be"):
        sample(model, compiled, method="greedy")
    with pytest.raises(ValueError, match="count and max_tokens"):
        sample(model, compiled, count=0)
    with pytest.raises(ValueError, match="needs a MarkovModel"):
        sample(lambda tokens: np.zeros(12), compiled, method="exact")
    with pytest.raises(ModelError, match="numbers or -inf"):
        sample(lambda tokens: np.full(12, np.nan), compiled)
    with pytest.raises(ModelError, match="the model has 3 tokens"):
        sample(lambda tokens: np.zeros(3), compiled)
    with pytest.raises(ModelError, match="one row is needed"):
        sample(lambda tokens: np.zeros((2, 12)), compiled)
    recorder = Recorder()
    with pytest.raises(ModelError, match="does not allow it"):
        recorder.step(np.zeros(2), np.array([True, False]), 1)
    with pytest.raises(DeadEndError):
        recorder.step(np.array([0, -np.inf]), np.array([False, True]), 1)
    with pytest.raises(ModelError, match="a mask is a row"):
        recorder.step(np.zeros(2), np.zeros(2), 1)
    with pytest.raises(ValueError, match="at least one"):
        estimate_log_h([], [])
    with pytest.raises(ValueError, match="0 or less"):
        estimate_log_h([0.5], [True])
    with pytest.raises(ValueError, match="level"):
        estimate_log_h([-1.0, -2.0], [True, True], level=1.0)
    nothing = estimate_log_h([-np.inf, -1.0], [False, False])
    assert (nothing.log_h, nothing.low, nothing.high) == (-math.inf, -math.inf, 0)
    assert not nothing.is_reliable
    assert math.isnan(estimate_kl([-1.0], [False]).kl)
    assert effective_sample_size(np.array([-1.0, -1.0, -np.inf])) == pytest.approx(2)


def test_models_are_checked():
    two = Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
    good = np.full((3, 2), 0.5)
    with pytest.raises(ModelError, match=r"sum to 0\.9"):
        MarkovModel.bigram(two, [[0.5, 0.4], [0, 1], [1, 0]])
    with pytest.raises(ModelError, match=r"state 2 gives token 0 the probability -0\.5"):
        MarkovModel.bigram(two, [[0.5, 0.5], [0, 1], [-0.5, 1.5]])
    with pytest.raises(ModelError, match="shape"):
        MarkovModel.bigram(two, np.zeros((2, 2)))
    with pytest.raises(ModelError, match="no stop token"):
        MarkovModel(Vocabulary([b"a", b"b"]), good, np.zeros((3, 2)))
    with pytest.raises(ModelError, match="outside the 3 states"):
        MarkovModel(two, good, np.full((3, 2), 7))
    with pytest.raises(ModelError, match="start"):
        MarkovModel(two, good, np.zeros((3, 2)), start=3)
    with pytest.raises(ModelError, match="there is no text"):
        MarkovModel.from_sequences(two, [])
    with pytest.raises(ModelError, match="outside the vocabulary"):
        MarkovModel.from_sequences(two, [[0, 5]])
    counted = MarkovModel.from_sequences(two, [[0, 0], [0]], smoothing=0)
    assert counted.probabilities[0].tolist() == [1 / 3, 2 / 3]
    assert counted.probabilities[2].tolist() == [1, 0]
