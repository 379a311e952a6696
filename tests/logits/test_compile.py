"""In graphs of ``torch.compile``, whole ones: the same logits, and few graphs."""

from __future__ import annotations

import gc
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import torch._dynamo.testing as dynamo_testing  # noqa: E402
from oracles.logits import bits_of  # noqa: E402
from strategies.logits import (  # noqa: E402
    DTYPES,
    INTERPRETED,
    any_floats,
    random_classes,
    random_masks,
)
from strategies.profiles import LONG  # noqa: E402
from tokfold.torch import Fold, apply_class_bitmask_  # noqa: E402

pytestmark = pytest.mark.skipif(INTERPRETED, reason="once is enough")

WIDTH = 1_010


def in_place(logits, masks, fold, rows=None):
    apply_class_bitmask_(logits, masks, fold, rows)
    return logits


def amid_others(hidden, masks, fold, rows=None):
    """What a graph may move about: the logits are made before, and used after."""
    logits = hidden * 2 - 1
    masked = apply_class_bitmask_(logits, masks, fold, rows)
    return masked.softmax(-1), logits + 1


class Compiled:
    """A function as one graph, a count of graphs, and what must be equal."""

    def __init__(self, function, backend: str) -> None:
        torch._dynamo.reset()
        self.counter = dynamo_testing.CompileCounterWithBackend(backend)
        self.function = function
        self.compiled = torch.compile(function, fullgraph=True, backend=self.counter)

    def check(self, logits, masks, fold, rows=None) -> None:
        ours, theirs = logits.clone(), logits.clone()
        found = self.compiled(ours, masks, fold, rows)
        expected = self.function(theirs, masks, fold, rows)
        pairs = [(ours, theirs), (found, expected)]
        if isinstance(found, tuple):
            pairs = [(ours, theirs), *zip(found, expected, strict=True)]
        for left, right in pairs:
            if self.function is in_place:
                assert np.array_equal(bits_of(left), bits_of(right))
            else:
                torch.testing.assert_close(left, right, equal_nan=True)

    @property
    def graphs(self) -> int:
        return self.counter.frame_count


@pytest.fixture(autouse=True)
def _forgotten():
    yield
    torch._dynamo.reset()


def a_fold(num_classes: int) -> Fold:
    return Fold(random_classes(1_000, num_classes, seed=num_classes))


def masks_for(fold: Fold, rows: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(random_masks(rows, fold.num_words, seed))


def some_logits(rows: int, seed: int = 0, dtype=torch.float32) -> torch.Tensor:
    return any_floats((rows, WIDTH), dtype, np.random.default_rng(seed))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", [in_place, amid_others])
@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_to_eager(function, backend, dtype) -> None:
    compiled = Compiled(function, backend)
    fold = a_fold(70)
    for seed in range(3):
        logits = some_logits(3, seed, dtype)
        compiled.check(logits, masks_for(fold, 3, seed), fold)
        compiled.check(logits, masks_for(fold, 3, seed), fold, torch.tensor([2, -1, seed]))
    assert compiled.graphs == 2  # rows are given, or not


def test_layouts() -> None:
    compiled = Compiled(in_place, "aot_eager")
    fold = a_fold(70)
    base = some_logits(9).view(3, 3, WIDTH)
    for logits in (base[:, -1], base.transpose(0, 1)[:, 1], base[:, 0, :1_003], base[0]):
        compiled.check(logits, masks_for(fold, 3), fold)
    compiled.check(base[1, 1], masks_for(fold, 1)[0], fold)


def test_memory_past_the_logits_is_not_touched() -> None:
    compiled = torch.compile(in_place, fullgraph=True, backend="aot_eager")
    fold = a_fold(70)
    base, expected = (some_logits(9).view(3, 3, WIDTH) for _ in range(2))
    compiled(base[:, 1, 5:1_007], masks_for(fold, 3), fold)
    in_place(expected[:, 1, 5:1_007], masks_for(fold, 3), fold)
    assert np.array_equal(bits_of(base), bits_of(expected))


def test_many_folds_in_few_graphs() -> None:
    """A server has a fold for each grammar: they must not each be a graph."""
    compiled = Compiled(in_place, "eager")
    folds = [a_fold(70 + i) for i in range(12)] + [a_fold(33 * i) for i in range(2, 20)]
    for fold in [*folds, *folds]:
        compiled.check(some_logits(3), masks_for(fold, 3), fold)
    assert compiled.graphs <= 4


def test_batches_and_rows_in_few_graphs() -> None:
    compiled = Compiled(in_place, "eager")
    fold = a_fold(70)
    generator = torch.Generator().manual_seed(1)
    for batch in range(2, 12):
        compiled.check(some_logits(batch), masks_for(fold, batch), fold)
    assert compiled.graphs <= 3
    before = compiled.graphs
    for count in range(2, 12):
        rows = torch.randint(-1, 12, (count,), generator=generator)
        compiled.check(some_logits(12), masks_for(fold, count), fold, rows)
    assert compiled.graphs <= before + 3
    compiled.check(some_logits(3), masks_for(fold, 3), fold, [2, 0, 2])  # a graph for each list


def test_what_does_not_fit() -> None:
    """Errors come through, from the graph or while it is made, and nothing has changed."""
    fold = a_fold(70)
    compiled = torch.compile(in_place, fullgraph=True, backend="eager")
    compiled(torch.zeros(3, WIDTH), masks_for(fold, 3), fold)
    bad = [
        (torch.ones(3, WIDTH, dtype=torch.float64), 3, None),
        (torch.ones(3, 900), 3, None),
        (torch.ones(4, WIDTH), 3, None),
        (torch.ones(3, WIDTH), 3, torch.tensor([0, 1, 3])),
        (torch.ones(3, WIDTH), 3, torch.tensor([0, 1])),
        (torch.ones(3, 2 * WIDTH)[:, ::2], 3, None),
    ]
    for logits, count, rows in bad:
        with pytest.raises((ValueError, TypeError, IndexError, torch._dynamo.exc.Unsupported)):
            compiled(logits, masks_for(fold, count), fold, rows)
        assert logits.eq(1).all()
    good = torch.ones(3, WIDTH)
    compiled(good, masks_for(fold, 3), fold)
    expected = in_place(torch.ones(3, WIDTH), masks_for(fold, 3), fold)
    assert torch.equal(good, expected)


def test_a_fold_that_only_the_function_holds() -> None:
    """Graphs know a fold by its number; it must be there as long as they are."""

    def make():
        fold = a_fold(70)
        masks = masks_for(fold, 3)
        step = torch.compile(
            lambda logits: apply_class_bitmask_(logits, masks, fold),
            fullgraph=True,
            backend="aot_eager",
        )
        return step, in_place(torch.ones(3, WIDTH), masks, fold)

    step, expected = make()
    for _ in range(3):
        gc.collect()
        assert torch.equal(step(torch.ones(3, WIDTH)), expected)


@pytest.mark.skipif(not shutil.which("g++"), reason="inductor needs a compiler of C++")
def test_by_inductor() -> None:
    compiled = Compiled(amid_others, "inductor")
    fold = a_fold(70)
    for dtype in DTYPES if LONG else DTYPES[:1]:
        logits = torch.randn(3, WIDTH, generator=torch.Generator().manual_seed(1)).to(dtype)
        compiled.check(logits, masks_for(fold, 3), fold, torch.tensor([2, -1, 2]))
