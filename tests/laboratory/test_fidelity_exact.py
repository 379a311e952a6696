"""Exact survival against enumeration and dense linear algebra, and its identities."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laboratory.fidelity_samples import (
    EXPRESSIONS,
    LISTS,
    VOCABULARY,
    random_model,
    unambiguous_grammar,
)
from oracles.earley import Oracle
from oracles.fidelity import ended_sequences, masked_probability, regular_survival, survival_of
from strategies.profiles import CASES, examples
from tokfold import Grammar, Matcher, Vocabulary, allocate_bitmask
from tokfold import compile as compile_grammar
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.laboratory.fidelity import (
    AmbiguousGrammarError,
    DeadEndError,
    ExactSurvival,
    MarkovModel,
    NotConvergedError,
    OutsideLanguageError,
    Productions,
    UnambiguityUnknownError,
    byte_vocabulary,
)

LONGEST = 4


@pytest.fixture(scope="module")
def lemma() -> MarkovModel:
    """The model of the paper's lemma 1: nothing, a, b, and the end."""
    vocabulary = Vocabulary([b"a", b"b", b"</s>"], stop_token_ids=[2])
    probabilities = [[0.6, 0.4, 0], [0.9, 0, 0.1], [0.01, 0.99, 0], [0, 0, 1]]
    successors = [[1, 2, 0], [1, 1, 1], [3, 2, 2], [3, 3, 3]]
    return MarkovModel(vocabulary, probabilities, successors)


def test_lemma_1(lemma):
    start = ExactSurvival('root ::= "a" | "ba"', lemma).begin()
    assert start.masked()[1] == pytest.approx(0.4, rel=1e-15)
    assert start.conditional()[1] == pytest.approx(0.0625, rel=1e-15)
    assert start.h == pytest.approx(0.064, rel=1e-15)


def test_the_stop_token_is_no_empty_word(lemma):
    """After "b" the empty word keeps the text a prefix of the language; the end is not allowed."""
    survival = ExactSurvival('root ::= "a" | "ba"', lemma)
    assert not survival.after([1]).allowed()[2]
    assert survival.after([0]).allowed().tolist() == [False, False, True]
    with pytest.raises(OutsideLanguageError, match="not in the language"):
        survival.after([1, 2])


def _solved(seed: int, states: int) -> tuple[ExactSurvival, Oracle, MarkovModel, Grammar] | None:
    grammar = unambiguous_grammar(seed)
    oracle = Oracle(grammar)
    model = random_model(seed, states=states)
    if not oracle.productive:
        return None
    read = Grammar.from_ebnf(str(grammar))
    try:
        return ExactSurvival(read, model), oracle, model, read
    except (AmbiguousGrammarError, UnambiguityUnknownError):
        return None


@given(st.integers(0, 1 << 32), st.sampled_from([0, 1, 3]))
@examples(120)
def test_survival_is_what_enumeration_finds(seed, states):
    solved = _solved(seed, states)
    if solved is None:
        return
    survival, oracle, model, _ = solved
    sequences, missing = ended_sequences(model, oracle.initial(prune=True), LONGEST)
    assert survival.h <= survival_of(sequences, ()) + missing + 1e-12
    assert survival.h >= survival_of(sequences, ()) - 1e-12
    CASES["survivals against enumeration"] += 1
    for tokens, probability in sequences[:20]:
        state, joint = survival.begin(), 1.0
        for token in tokens:
            assert state.defect() <= 1e-9
            prefix = (*state.tokens, token)
            joint *= state.probabilities[token]
            here = survival_of(sequences, prefix)
            h = state.survivals()[token]
            assert here - 1e-12 <= joint * h <= here + missing + 1e-12
            state = state.step(token)
            assert state.h == pytest.approx(h, rel=1e-9)
        assert state.is_terminated
        assert joint == pytest.approx(probability, rel=1e-12)
        CASES["sequences followed to the end"] += 1


@given(st.integers(0, 1 << 32))
@examples(60)
def test_masks_are_the_engine_s(seed):
    solved = _solved(seed, 0)
    if solved is None:
        return
    survival, _, _, read = solved
    matcher = Matcher(compile_grammar(read, VOCABULARY, classes="never"))
    bitmask = allocate_bitmask(1, len(VOCABULARY))
    state, random = survival.begin(), np.random.default_rng(seed)
    for _ in range(6):
        matcher.fill_bitmask(bitmask)
        mask = [bool(bitmask[0, i // 32] >> i % 32 & 1) for i in range(len(VOCABULARY))]
        assert state.allowed().tolist() == mask
        textual = [i for i in range(len(VOCABULARY)) if mask[i] and i not in (8, 11)]
        if not textual:
            break
        token = int(random.choice(textual))
        state = state.step(token)
        matcher.accept_token(token)


# All of a and b; and with an odd number of a, by what was read and by what is to come.
REGULAR = {
    "root ::= [ab]*": {0, 1},
    'root ::= root [ab] | ""': {0, 1},
    'root ::= e | o\ne ::= "a" o | "b" e | ""\no ::= "a" e | "b" o': {0, 1},
    'root ::= o\ne ::= "a" o | "b" e | ""\no ::= "a" e | "b" o': {1},
    'root ::= o\ne ::= o "a" | e "b" | ""\no ::= e "a" | o "b"': {1},
    'root ::= "b"* "a" ("b" | "a" "b"* "a")*': {1},
}


@pytest.mark.parametrize("states", [0, 4])
@pytest.mark.parametrize("text", REGULAR)
def test_survival_of_regular_languages_is_the_dense_solution(text, states):
    model = random_model(5, states=states)
    a, b = 0x61, 0x62
    moves = {(0, a): 1, (0, b): 0, (1, a): 0, (1, b): 1}
    truth = regular_survival(model, 2, moves, REGULAR[text])
    # The ways to an odd number by what is to come are an odd number, too: ambiguous it is not, and
    # no bound on lookahead tells which of both an "a" begins.
    survival = ExactSurvival(text, model)
    assert survival.h == pytest.approx(truth[0, model.start], rel=1e-11)
    for prefix in ([], [0], [1, 0], [2], [10, 1], [0, 1, 2, 3]):
        state = survival.after(prefix)
        assert state.defect() <= 1e-9
        parity = state.text.count(b"a") % 2
        assert state.h == pytest.approx(truth[parity, state.model_state], rel=1e-11)


@pytest.mark.parametrize("text", [EXPRESSIONS, LISTS])
def test_the_martingale_identity_over_long_texts(text):
    vocabulary = byte_vocabulary()
    random = np.random.default_rng(3)
    table = random.dirichlet(np.full(257, 0.1), size=258) * 0.1
    table[:, [ord(c) for c in "0+*()ax[],"]] += random.random((258, 10))
    table[:, 256] += 0.5
    model = MarkovModel.bigram(vocabulary, table / table.sum(axis=1, keepdims=True))
    survival = ExactSurvival(text, model)
    for _ in range(5):
        state = survival.begin()
        for _ in range(40):
            assert state.defect() <= 1e-9
            masked = state.masked()
            token = int(random.choice(257, p=masked))
            if token == 256:
                break
            before = float(state.survivals()[token])
            state = state.step(token)
            assert state.h == pytest.approx(before, rel=1e-9)
            CASES["martingale identities"] += 1


def test_the_exact_sampler_draws_from_the_conditional_distribution():
    model = random_model(11)
    survival = ExactSurvival('root ::= "a" ("b" | "ba" "b"?)?', model)
    random = np.random.default_rng(1)
    drawn = Counter(survival.sample(random).tokens for _ in range(4_000))
    for tokens, count in drawn.items():
        state, probability = survival.begin(), 1.0
        for token in tokens:
            probability *= state.probabilities[token]
            state = state.step(token)
        expected = probability / survival.h
        deviation = 5 * np.sqrt(4_000 * expected * (1 - expected)) + 1
        assert abs(count - 4_000 * expected) <= deviation


def test_the_weight_of_a_sequence_is_its_probability_over_that_of_the_mask(lemma):
    oracle = Oracle(unambiguous_grammar(3))
    model = random_model(3)
    for tokens, probability in ended_sequences(model, oracle.initial(prune=True), 3)[0][:30]:
        masked, weight = masked_probability(model, oracle.initial(prune=True), tokens)
        assert masked * weight == pytest.approx(probability, rel=1e-12)


def test_257_model_states_times_kappa_150():
    """Work is counted, the time is measured by the benchmark: products of matrices a sweep."""
    alternatives = "\n".join(
        f'r{i} ::= "{chr(97 + i)}" r{(i + 1) % 12} "," r{(i + 5) % 12} ")" | "{chr(109 + i)}"'
        for i in range(12)
    )
    productions = Productions.of(f"root ::= r0\n{alternatives}")
    assert productions.kappa >= 150
    random = np.random.default_rng(0)
    model = MarkovModel.bigram(byte_vocabulary(), random.dirichlet(np.ones(257), size=258))
    survival = ExactSurvival(productions, model)
    assert survival.sweeps <= 10
    assert survival.products <= 2_000
    state = survival.after(b"abo")
    assert state.defect() <= 1e-9


def test_a_near_critical_model_is_refused_not_guessed():
    vocabulary = Vocabulary([b"(", b")", b"</s>"], stop_token_ids=[2])
    productions = 'root ::= "(" root root | ")"'

    def solved(opening: float) -> float:
        # After its last bracket the model stops by itself; h is the least solution of a quadratic.
        row = [opening, 0.999999999 - opening, 1e-9]
        model = MarkovModel(vocabulary, [row, [0, 0, 1]], [[0, 0, 0], [1, 1, 1]])
        return ExactSurvival(productions, model).h

    assert solved(0.2) == pytest.approx(1e-9 * (1 - np.sqrt(1 - 4 * 0.2 * 0.799999999)) / 0.4)
    with pytest.raises(NotConvergedError, match="max_sweeps"):
        solved(0.4999999)


def test_bad_input():
    model = random_model(0)
    with pytest.raises(AmbiguousGrammarError, match="would count both") as raised:
        ExactSurvival('root ::= root root | "a"', model)
    assert raised.value.rule == "root"
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.rule, again.witness) == (raised.value.rule, raised.value.witness)
    with pytest.raises(UnsupportedGrammarError, match="line 2, column 1: rule 'r' has Token"):
        ExactSurvival('root ::= "a" r\nr ::= Token(1)', model)
    with pytest.raises(LimitExceededError, match="max_symbols"):
        ExactSurvival('root ::= ("a" | "b"){0,60000}', model)
    with pytest.raises(LimitExceededError, match="max_states"):
        ExactSurvival('root ::= "a"', model, max_states=14)
    with pytest.raises(LimitExceededError, match="max_bytes"):
        ExactSurvival('root ::= "a"', model, max_bytes=1_000)
    survival = ExactSurvival('root ::= "a"* ")"', model)
    with pytest.raises(OutsideLanguageError, match=r"token 1, b'b', cannot follow b'a'") as outside:
        survival.after([0, 1])
    assert outside.value.position == 1
    with pytest.raises(OutsideLanguageError, match="has ended"):
        survival.after([5, 8]).step(0)
    with pytest.raises(OutsideLanguageError, match="outside the vocabulary"):
        survival.after([99])
    for special in (7, 9):
        with pytest.raises(OutsideLanguageError):
            survival.after([special])


def test_zero_probabilities_are_dead_ends_by_name():
    vocabulary = Vocabulary([b"a", b"b", b"</s>"], stop_token_ids=[2])
    never_b = MarkovModel.bigram(vocabulary, np.tile([0.5, 0, 0.5], (4, 1)))
    survival = ExactSurvival('root ::= "b" | "ba"', never_b)
    assert survival.h == 0
    assert survival.log_h == -np.inf
    with pytest.raises(DeadEndError):
        survival.begin().masked()
    with pytest.raises(DeadEndError):
        survival.sample(np.random.default_rng(0))
    after = survival.after([1])  # the model never goes there; the value is right all the same
    assert after.h == pytest.approx(0.75)
    endless = MarkovModel.bigram(vocabulary, np.tile([1.0, 0, 0], (4, 1)))
    assert ExactSurvival('root ::= "a"*', endless).h == 0


def test_a_text_longer_than_the_stack_is_deep():
    model = MarkovModel.bigram(
        Vocabulary([b"(", b")", b"</s>"], stop_token_ids=[2]), np.tile([0.3, 0.3, 0.4], (4, 1))
    )
    survival = ExactSurvival('root ::= "(" root ")" | ""', model)
    state = survival.after([0] * 3_000)
    assert state.h == 0  # below the smallest number
    # With k brackets open: h(k) = p h(k + 1) + q^k s, with p, q = 0.3 and s = 0.4 for each k, so
    # what is left of the sum is q^k s / (1 - p q).
    expected = 3_000 * np.log(0.3) + np.log(0.4 / (1 - 0.3 * 0.3))
    assert state.log_h == pytest.approx(expected, rel=1e-12)
    assert state.defect() <= 1e-9
    assert state.conditional().sum() == pytest.approx(1)


def test_scales_of_different_places_meet():
    """Two rules that began at different places wait for one, at all depths of nesting."""
    letters = Vocabulary([bytes([c]) for c in b"()bacwz"] + [b"</s>"], stop_token_ids=[7])
    model = MarkovModel.bigram(letters, np.full((9, 8), 1 / 8))
    text = """
        root ::= "(" root ")" | "b" p "z" | y q
        y ::= "b" "a"
        p ::= "a" n "z"
        q ::= n "w" "w"
        n ::= "c" | "cc"
    """
    survival = ExactSurvival(text, model)
    state = survival.begin()
    for depth in range(200):
        here = state
        for token in (2, 3, 4):  # "bac"
            here = here.step(token)
            assert here.defect() <= 1e-9
        # Then "zz", "ww", "czz" or "cww", and a bracket for each that is open, and the end.
        ways = 2 * (8.0**-2 + 8.0**-3)
        expected = np.log(ways) - (depth + 1) * np.log(8)
        assert here.log_h == pytest.approx(expected, rel=1e-12)
        state = state.step(0)
