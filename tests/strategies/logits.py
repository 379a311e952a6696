"""Logits of all dtypes and layouts, masks for them, and rows. Needs torch.

What kernels get wrong goes in on purpose: sizes around words and blocks, masks of nothing and of
everything, bits past the last class, NaNs, entries that lie where no kernel may write.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import pytest
import tokfold
import torch
from hypothesis import strategies as st
from oracles.logits import INTEGERS, masked_, unfolded

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether Triton runs kernels on the CPU. It asks when it is imported, once for a process."""

needs_interpreter = pytest.mark.skipif(
    not INTERPRETED, reason="Triton's interpreter: see tests/logits/test_interpreter.py"
)
BACKENDS = ["cpu", "torch", pytest.param("triton", marks=needs_interpreter)]
DEVICE_BACKENDS = BACKENDS[1:]
"""Those that a GPU has too."""

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

WRONG_ROWS: list[tuple[torch.Tensor, type[Exception], str]] = [
    (torch.zeros(3, dtype=torch.int64), ValueError, "2 masks, but 3 rows"),
    (torch.zeros(2), TypeError, "rows must be int32 or int64, not torch.float32"),
    (torch.zeros(2, 1, dtype=torch.int64), ValueError, "rows must have one dimension, not 2"),
]
"""Rows for two masks that a device is refused without looking at them: what, and what is said."""

# The kernel for GPUs takes 4,096 entries at a time.
SIZES = [1, 3, 31, 32, 33, 64, 100, 1_000, 4_095, 4_096, 4_097, 8_192, 9_000]
CLASSES = [1, 2, 31, 32, 33, 64, 100, 300]
PADDING = [0, 0, 1, 7, 40, 4_100]


def synthetic_classes(class_of: np.ndarray, num_classes: int) -> tokfold.TokenClasses:
    """Token classes of no grammar."""
    header = {"num_stop_classes": 0, "prune": True, "grammar": "", "vocabulary": "", "stats": {}}
    ids = np.zeros(num_classes, dtype=np.uint32)
    return tokfold.TokenClasses(class_of.astype(np.int32), ids, [b""] * num_classes, header)


def random_classes(num_tokens: int, num_classes: int, seed: int = 0) -> tokfold.TokenClasses:
    """Token classes of no grammar, some tokens in none."""
    rng = np.random.default_rng(seed)
    return synthetic_classes(rng.integers(-1, num_classes, num_tokens), num_classes)


def random_masks(rows: int, words: int, seed: int = 0) -> np.ndarray:
    """Rows of int32 words of any bits."""
    return np.random.default_rng(seed).integers(-(1 << 31), 1 << 31, (rows, words), dtype=np.int32)


def any_floats(shape: Sequence[int], dtype: torch.dtype, rng: np.random.Generator) -> torch.Tensor:
    """Floats of all kinds: any bits at all, so NaNs of all payloads, and some infinities."""
    info = torch.iinfo(INTEGERS[dtype])
    bits = torch.from_numpy(rng.integers(info.min, info.max + 1, shape)).to(INTEGERS[dtype])
    floats = bits.view(dtype)
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, -0.0, 0.0, 1.0], dtype=dtype)
    chosen = special[torch.from_numpy(rng.integers(0, len(special), shape))]
    return torch.where(torch.from_numpy(rng.random(shape) < 0.2), chosen, floats).contiguous()


Layout = tuple[Callable[[int, int], Sequence[int]], Callable[[Any, int, int], torch.Tensor]]

# The shape of the memory for so many rows and columns, and the logits within it.
LAYOUTS: dict[str, Layout] = {
    "rows": (lambda n, w: (n, w), lambda base, n, w: base),
    "columns of wider rows": (lambda n, w: (n, w + 5), lambda base, n, w: base[:, 2 : w + 2]),
    "every other row": (lambda n, w: (2 * n, w), lambda base, n, w: base[1::2]),
    "the last position": (lambda n, w: (n, 3, w), lambda base, n, w: base[:, -1]),
    "positions before rows": (
        lambda n, w: (3, n, w + 1),
        lambda base, n, w: base.transpose(0, 1)[:, 1, :w],
    ),
    "one row": (lambda n, w: (w,), lambda base, n, w: base),
    "a row of many": (lambda n, w: (3, w), lambda base, n, w: base[1]),
    "a part of a row": (lambda n, w: (w + 9,), lambda base, n, w: base[4 : w + 4]),
}


@dataclass
class Case:
    """Masks for logits: all that a call depends on."""

    classes: tokfold.TokenClasses
    masks: np.ndarray
    base: torch.Tensor
    layout: str
    shape: tuple[int, int]
    rows: list[int] | None
    rows_as: Callable[[list[int]], Any]
    masks_as: Callable[[np.ndarray], Any]
    max_row_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.layout} {self.shape} of {self.base.dtype}, {len(self.classes.class_of)} tokens "
            f"in {len(self.classes)} classes, {len(self.masks)} masks for rows {self.rows}"
        )

    def logits_in(self, base: torch.Tensor) -> torch.Tensor:
        """The logits within memory like that of the case."""
        return LAYOUTS[self.layout][1](base, *self.shape)

    @property
    def is_one_row(self) -> bool:
        return self.logits_in(self.base).ndim == 1

    def given_masks(self) -> Any:
        return self.masks_as(self.masks[0] if self.is_one_row else self.masks)

    def given_rows(self) -> Any:
        return None if self.rows is None else self.rows_as(self.rows)

    @cached_property
    def allowed(self) -> list[np.ndarray]:
        return [unfolded(mask, self.classes.class_of) for mask in self.masks]

    @cached_property
    def expected(self) -> torch.Tensor:
        """All of the memory afterwards: nothing but the logits may change."""
        base = self.base.clone()
        masked_(self.logits_in(base), self.allowed, self.rows)
        return base


def build_classes(random: Random, rng: np.random.Generator) -> tokfold.TokenClasses:
    """Any number of tokens in classes: mixed, in long runs, nearly all in none."""
    size, count = random.choice(SIZES), random.choice(CLASSES)
    makers: list[Callable[[], np.ndarray]] = [
        lambda: rng.integers(0, count, size),
        lambda: rng.integers(-1, count, size),
        lambda: np.arange(size) * count // size,
        lambda: np.where(rng.random(size) < 0.02, rng.integers(0, count, size), -1),
    ]
    return synthetic_classes(random.choice(makers)(), count)


def build_masks(
    random: Random, rng: np.random.Generator, count: int, words: int, size: int
) -> np.ndarray:
    """So many masks of so many bits; whatever stands past the last bit."""
    makers: list[Callable[[], np.ndarray]] = [
        lambda: np.full(words, -1),
        lambda: np.zeros(words),
        lambda: random_masks(1, words, random.getrandbits(32))[0],
        lambda: np.where(np.arange(words) == rng.integers(words), 1 << rng.integers(31), 0),
        lambda: np.where(np.arange(words) < words // 2, -1, 0),
    ]
    masks = np.array([random.choice(makers)() for _ in range(count)], dtype=np.int32)
    masks = masks.reshape(count, words)
    if random.random() < 0.5 and size % 32:  # else nobody may read what stands past the last bit
        masks[:, -1] &= (1 << size % 32) - 1
    return masks


def build_case(random: Random) -> Case:
    """Classes, masks and logits that fit each other; the simplest choices come first."""
    rng = np.random.default_rng(random.getrandbits(32))
    classes = build_classes(random, rng)
    dtype, layout = random.choice(DTYPES), random.choice(list(LAYOUTS))
    n, width = random.choice([1, 2, 3, 5, 0]), len(classes.class_of) + random.choice(PADDING)
    base = any_floats(LAYOUTS[layout][0](n, width), dtype, rng)
    is_one_row = LAYOUTS[layout][1](base, n, width).ndim == 1
    rows = None
    if not is_one_row and random.random() < 0.6:
        rows = [random.randrange(-1, n) for _ in range(random.randint(0, n + 2))]
    count = 1 if is_one_row else n if rows is None else len(rows)
    masks = build_masks(random, rng, count, -(-len(classes) // 32), len(classes))
    rows_as: list[Callable[[list[int]], Any]] = [
        list,
        tuple,
        lambda rows: torch.tensor(rows, dtype=torch.int64),
        lambda rows: torch.tensor(rows, dtype=torch.int32),
        lambda rows: np.array(rows, dtype=np.int64),
    ]
    masks_as: list[Callable[[np.ndarray], Any]] = [np.copy, lambda m: torch.from_numpy(m.copy())]
    return Case(
        classes,
        masks,
        base,
        layout,
        (n, width),
        rows,
        random.choice(rows_as),
        random.choice(masks_as),
        random.choice([32 << 20, 0]),
    )


def cases() -> st.SearchStrategy[Case]:
    """Hypothesis strategy over :func:`build_case`. These shrink badly, and are all alike likely."""
    return st.integers(0, 1 << 40).map(lambda seed: build_case(Random(seed)))
