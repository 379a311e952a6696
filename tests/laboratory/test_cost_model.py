"""The cost model: what it fits it finds again, what it says is bounded by what is so."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from strategies.profiles import examples
from tokfold.laboratory import cost_model
from tokfold.laboratory.cost_model import (
    FEATURES,
    Affine,
    CostModel,
    CostModelError,
    CostRanking,
    evaluate,
    fit_affine,
    fit_cost_model,
    fit_ranking,
    median_factor,
    predict_step_time,
    rank_correlation,
    spearman,
    symbolic_time,
    training_cases,
    training_profiles,
)
from tokfold.laboratory.cost_model.fitting import average_ranks
from tokfold.laboratory.instruments import Pass, byte_vocabulary


def counted(**counters) -> dict[str, np.ndarray]:
    return {name.replace("__", "."): np.array(counts) for name, counts in counters.items()}


def synthetic(seed: int, steps: int = 400, noise: float = 0.0) -> Pass:
    """A pass whose times are an affine function of its counters."""
    random = np.random.default_rng(seed)
    visits, made = random.integers(1, 30, steps), random.integers(0, 4, steps)
    nodes, work = made * random.integers(10, 3_000, steps), random.integers(0, 80, steps)
    counters = counted(
        mask__sets_visited=visits,
        mask__memo_misses=made,
        mask__trie_nodes=nodes,
        mask__bytes_made=np.zeros(steps, dtype=np.int64),
        step__work=work,
        step__completions=np.zeros(steps, dtype=np.int64),
        step__earley_sets=np.zeros(steps, dtype=np.int64),
        step__bytes=random.integers(1, 9, steps),
    )
    masks = 0.6 + 0.05 * visits + 1.5 * made + 0.02 * nodes
    reads = 0.2 + 0.01 * work
    disturbed = np.exp(random.normal(0, noise, (2, steps))) if noise else np.ones((2, steps))
    return Pass(counters, (masks * disturbed[0])[None], (reads * disturbed[1])[None])


def test_a_fit_finds_the_coefficients_again():
    model = fit_cost_model([synthetic(1), synthetic(2)])
    assert model.mask.intercept == pytest.approx(0.6, rel=0.05)
    assert model.mask.coefficients == pytest.approx((0.05, 1.5, 0.02, 0.0), rel=0.05, abs=1e-12)
    assert model.step.intercept == pytest.approx(0.2, rel=0.05)
    assert model.step.coefficients[0] == pytest.approx(0.01, rel=0.05)
    other = synthetic(3)
    assert median_factor(model.predict(other.counters), other.total()) < 1.02


def test_a_fit_is_not_led_astray_by_disturbed_steps():
    one = synthetic(1, noise=0.05)
    one.mask_us[0, ::10] *= 30
    model = fit_cost_model([one])
    clean = synthetic(2)
    assert median_factor(model.predict_mask(clean.counters), clean.mask()) < 1.1


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(5, 40))
@examples(60)
def test_no_coefficient_is_negative_and_the_fit_beats_a_constant(seed, width, steps):
    random = np.random.default_rng(seed)
    table = random.integers(0, 50, (steps, width)).astype(float)
    times = np.exp(random.normal(0, 2, steps))
    fitted = fit_affine([f"c{i}" for i in range(width)], table, times)
    assert all(c >= 0 for c in fitted.coefficients)
    assert fitted.intercept >= 0
    predicted = fitted({f"c{i}": table[:, i] for i in range(width)})
    constant = np.full(steps, np.median(times))
    error, least = (np.abs(np.log(p / times)).mean() for p in (predicted, constant))
    assert error <= least * 1.02 + 0.01


def test_predictions_grow_with_every_counter():
    model = CostModel.shipped()
    zero = {name: np.zeros(1) for part in FEATURES["own"] for name in part}
    least = model.predict(zero)
    assert least > 0
    for name in zero:
        assert model.predict({**zero, name: np.array([1e6])}) >= least


def brute_ranks(values):
    return [(sum(v < x for v in values) + sum(v <= x for v in values) - 1) / 2 for x in values]


@given(st.lists(st.integers(0, 6), min_size=2, max_size=12))
@examples(100)
def test_ranks_are_those_of_the_definition(values):
    assert average_ranks(np.array(values, dtype=float)).tolist() == brute_ranks(values)


@given(st.data(), st.integers(3, 20))
@examples(60)
def test_spearman_against_scipy(data, size):
    stats = pytest.importorskip("scipy.stats")
    sides = [
        np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)), dtype=float)
        for _ in range(2)
    ]
    if any(len(set(side.tolist())) == 1 for side in sides):
        with pytest.raises(CostModelError, match="no order"):
            spearman(*sides)
        return
    assert spearman(*sides) == pytest.approx(stats.spearmanr(*sides).statistic, abs=1e-12)


def test_median_factor_is_symmetric_and_named():
    one, other = np.array([1.0, 2.0, 8.0]), np.array([2.0, 2.0, 2.0])
    assert median_factor(one, other) == median_factor(other, one) == 2.0
    with pytest.raises(CostModelError, match="above 0"):
        median_factor(np.array([0.0]), np.array([1.0]))
    with pytest.raises(CostModelError, match="2 predictions of 1"):
        median_factor(one[:2], other[:1])


def test_bad_data_is_named():
    with pytest.raises(CostModelError, match="nothing to fit"):
        fit_cost_model([])
    with pytest.raises(CostModelError, match=r"lacks the counters mask\.memo_misses"):
        CostModel.shipped().predict_mask(counted(mask__sets_visited=[1]))
    with pytest.raises(CostModelError, match="not above 0"):
        fit_affine(["a"], np.ones((2, 1)), np.array([1.0, 0.0]))
    with pytest.raises(CostModelError, match="negative"):
        fit_affine(["a"], -np.ones((2, 1)), np.ones(2))
    with pytest.raises(CostModelError, match="2 rows of counters for 3"):
        fit_affine(["a"], np.ones((2, 1)), np.ones(3))
    with pytest.raises(CostModelError, match="'nobody'"):
        fit_ranking("nobody", [synthetic(1)])
    with pytest.raises(CostModelError, match="no profiles"):
        evaluate(CostModel.shipped(), {})


def test_models_are_kept_as_text():
    model = fit_cost_model([synthetic(1)], {"processor": "x"})
    assert CostModel.from_json(model.to_json()) == model
    for text in ("", "{}", "[1]", '{"format": 2}', '{"format": 1, "mask": {}}'):
        with pytest.raises(CostModelError):
            CostModel.from_json(text)
    shipped = CostModel.shipped()
    assert shipped.about["processor"]
    assert shipped.about["held_out"]["factor"] <= 1.5, "the bar of the shipped model"


def test_a_ranking_orders_and_hides_microseconds():
    training, other = synthetic(1), synthetic(2)
    names = FEATURES["own"][0] + FEATURES["own"][1]
    ranking = fit_ranking("own", [training], names=names)
    faster = Pass(training.counters, training.mask_us / 1e3, training.step_us / 1e3)
    again = fit_ranking("own", [faster], names=names)
    ranks = ranking.ranks(other.counters)
    assert ranks.min() == 0.0
    assert ranks.max() <= 1.0
    assert spearman(ranks, other.total()) > 0.99
    # What was a thousand times as fast ranks the same: no time can be read out of it.
    assert spearman(again.ranks(other.counters), ranks) > 0.9999
    assert again._score.intercept == pytest.approx(ranking._score.intercept, rel=1e-3)
    assert not any("us" in name or "predict" in name for name in vars(CostRanking))
    costly = {name: counts * 10 for name, counts in other.counters.items()}
    assert ranking.order({"cheap": other.counters, "costly": costly}) == ["costly", "cheap"]
    assert rank_correlation(ranking, {"a": training, "b": other}) > 0.99


def test_every_training_text_is_of_its_grammar():
    cases = training_cases()
    assert len({case.name for case in cases}) == len(cases) >= 25
    assert cases == training_cases()
    assert cases != training_cases(seed=1)
    for case in [*cases, *training_cases(seed=1)]:
        assert tokfold.recognize(tokfold.Grammar.from_ebnf(case.grammar), case.text).accepted


def test_the_counters_of_the_engine_are_those_of_the_model():
    chosen = [case for case in training_cases() if case.name.startswith(("recursive", "wide"))]
    done = []
    found = training_profiles(
        byte_vocabulary(),
        "own",
        chosen,
        repeats=1,
        max_tokens=60,
        progress=lambda *at: done.append(at),
    )
    assert list(found) == [case.name for case in chosen]
    assert done[-1] == (len(chosen), len(chosen))
    model = fit_cost_model([p for one in found.values() for p in (one.cold, one.warm)])
    accuracy = evaluate(model, found)
    assert accuracy.steps == 2 * 60 * len(chosen)
    assert set(accuracy.by_grammar) == set(found)
    assert json.loads(json.dumps(accuracy.document()))["factor"] == accuracy.factor >= 1.0


def brute_makespan(times, threads):
    ends = [0.0] * threads
    for time in times:
        first = ends.index(min(ends))
        ends[first] += time
    return max(ends)


@given(
    st.lists(st.floats(0, 1e4), min_size=1, max_size=20),
    st.integers(1, 8),
    st.floats(0, 1e5),
)
@examples(100)
def test_step_times_are_bounded_by_what_must_be_done(times, threads, model_us):
    batch = len(times)
    symbolic = symbolic_time(times, batch, threads)
    assert symbolic == pytest.approx(brute_makespan(times, threads))
    assert symbolic >= max(times) * (1 - 1e-12)
    assert symbolic >= sum(times) / threads * (1 - 1e-12)
    assert symbolic <= sum(times) / threads + max(times) + 1e-6
    seen = predict_step_time(times, batch=batch, threads=threads, model_us=model_us, sync_us=3.0)
    assert seen.visible_us == max(symbolic, model_us) + 3.0
    assert seen.hidden_us == min(symbolic, model_us)
    after = predict_step_time(
        times, batch=batch, threads=threads, model_us=model_us, select_us=3.0, overlap=False
    )
    assert after.visible_us == model_us + symbolic + 3.0
    assert after.visible_us >= seen.visible_us
    assert seen.critical == ("masks" if symbolic > model_us else "model")


def test_work_grows_with_the_batch_and_shrinks_with_threads():
    assert symbolic_time(10.0, 32, 1) == 320.0
    assert symbolic_time(10.0, 32, 4) == 80.0
    assert symbolic_time(10.0, 33, 4) == 90.0
    assert symbolic_time(10.0, 2, 8, dispatch_us=5.0) == 15.0
    for bad in ({"batch": 0}, {"threads": 0}, {"batch": 2, "each_us": [1.0]}, {"each_us": -1.0}):
        with pytest.raises(ValueError, match=r"1 or more|times for a batch|negative"):
            symbolic_time(**{"each_us": 1.0, "batch": 1, "threads": 1, **bad})
    with pytest.raises(ValueError, match="negative"):
        predict_step_time(1.0, batch=1, threads=1, model_us=-1.0)


def test_everything_public_is_there():
    for name in cost_model.__all__:
        assert getattr(cost_model, name) is not None
    assert isinstance(CostModel.shipped().mask, Affine)
