"""What does not fit is refused, by an error that says what to do, and no logit has changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import tokfold  # noqa: E402
from strategies.logits import (  # noqa: E402
    BACKENDS,
    DEVICE_BACKENDS,
    INTERPRETED,
    WRONG_ROWS,
    random_classes,
    random_masks,
)
from support import processes  # noqa: E402
from tokfold.torch import Fold, MaskTable, apply_class_bitmask_, apply_token_bitmask_  # noqa: E402
from tokfold.torch import backends as torch_backends  # noqa: E402
from tokfold.torch import checks as torch_checks  # noqa: E402

CLASSES = random_classes(100, 40)
WORDS = 2


def ones(*shape: int, **options: Any) -> torch.Tensor:
    return torch.ones(shape or (3, 107), **options)


def masks(rows: int = 3, words: int = WORDS) -> torch.Tensor:
    return torch.from_numpy(random_masks(rows, words))


@dataclass
class Bad:
    """A call that must fail, and how; ``fold`` is that of 100 tokens in 40 classes."""

    error: type[Exception] | tuple[type[Exception], ...]
    match: str
    logits: Callable[[], Any] = ones
    masks: Callable[[], Any] = masks
    rows: Any = None


BAD = {
    # logits
    "logits on another device": Bad(
        ValueError, r"logits are on meta .* fold.to\(", lambda: ones(device="meta")
    ),
    "numpy logits": Bad(TypeError, "logits must be a torch.Tensor, not ndarray", ones().numpy),
    "float64": Bad(TypeError, "bfloat16, not torch.float64", lambda: ones(dtype=torch.float64)),
    "whole numbers": Bad(TypeError, "not torch.int32", lambda: ones(dtype=torch.int32)),
    "complex": Bad(TypeError, "not torch.complex64", lambda: ones(dtype=torch.complex64)),
    "no dimension": Bad(ValueError, "one or two dimensions, not 0", lambda: torch.tensor(1.0)),
    "three dimensions": Bad(ValueError, "two dimensions, not 3", lambda: ones(1, 3, 107)),
    "too few columns": Bad(
        ValueError, "99 columns, and the vocabulary 100 tokens", lambda: ones(3, 99)
    ),
    "no columns": Bad(ValueError, "0 columns", lambda: ones(3, 0)),
    "columns apart": Bad(ValueError, "side by side", lambda: ones(3, 214)[:, ::2]),
    "transposed": Bad(ValueError, "side by side", lambda: ones(107, 3).t()),
    "one row, entries apart": Bad(
        ValueError, "side by side", lambda: ones(214)[::2], lambda: masks()[0]
    ),
    "columns that are one": Bad(ValueError, "side by side", lambda: ones(3, 1).expand(3, 107)),
    # masks
    "masks on another device": Bad(
        (TypeError, ValueError), "meta", masks=lambda: masks().to("meta")
    ),
    "masks of 64 bits": Bad(
        TypeError, "must be int32, not (torch.)?int64", masks=lambda: masks().long()
    ),
    "masks without sign": Bad(
        TypeError, "must be int32, not uint32", masks=lambda: masks().numpy().view(np.uint32)
    ),
    "masks of the other endianness": Bad(
        TypeError, "must be int32", masks=lambda: masks().numpy().astype(">i4")
    ),
    "masks to be trained": Bad(
        TypeError,
        "must be int32, not torch.float32",
        masks=lambda: torch.zeros(3, WORDS, requires_grad=True),
    ),
    "sparse masks": Bad(ValueError, "contiguous", masks=lambda: masks().to_sparse()),
    "bools": Bad(TypeError, "must be int32", masks=lambda: torch.ones(3, 100, dtype=torch.bool)),
    "a list": Bad(TypeError, "not list", masks=lambda: masks().tolist()),
    "too many words": Bad(ValueError, r"shape \(n, 2\), not \(3, 3\)", masks=lambda: masks(3, 3)),
    "too few words": Bad(ValueError, "of another grammar", masks=lambda: masks(3, 1)),
    "one mask for rows": Bad(ValueError, r"shape \(n, 2\), not \(2,\)", masks=lambda: masks()[0]),
    "masks for one row": Bad(ValueError, r"shape \(2\), not \(3, 2\)", lambda: ones(107)),
    "masks of three dimensions": Bad(ValueError, "shape", masks=lambda: masks()[None]),
    "masks apart": Bad(ValueError, "contiguous", masks=lambda: masks(6)[::2]),
    "words apart": Bad(ValueError, "contiguous", masks=lambda: masks(3, 4)[:, ::2]),
    "numpy masks apart": Bad(ValueError, "contiguous", masks=lambda: masks(6).numpy()[::2]),
    "columns first": Bad(
        ValueError, "contiguous", masks=lambda: np.asfortranarray(masks().numpy())
    ),
    # rows
    "fewer masks": Bad(ValueError, "2 masks for 3 rows", masks=lambda: masks(2)),
    "more masks": Bad(ValueError, "4 masks for 3 rows", masks=lambda: masks(4)),
    "fewer rows": Bad(ValueError, "3 masks, but 2 rows", rows=[0, 1]),
    "more rows": Bad(ValueError, "3 masks, but 4 rows", rows=torch.tensor([0, 1, 2, 0])),
    "a row past the last": Bad(IndexError, "3 rows, not one of index 3", rows=[0, 3, 1]),
    "a row before the first": Bad(IndexError, "index -2", rows=torch.tensor([0, 1, -2])),
    "a row of 64 bits": Bad(IndexError, "index 4294967296", rows=[0, 1, 1 << 32]),
    "a row past 64 bits": Bad(IndexError, "index", rows=[0, 1, 1 << 64]),
    "rows for one row": Bad(
        ValueError, "rows are for logits of two", lambda: ones(107), lambda: masks()[0], [0]
    ),
    "rows that are no numbers": Bad((TypeError, ValueError), "'a'", rows=["a", "b", "c"]),
    "rows that are bools": Bad(TypeError, "truth values", rows=[True, False, True]),
    "rows that are bytes": Bad(TypeError, "a tensor, not bytes", rows=bytes([0, 1, 2])),
    "rows without data": Bad(
        ValueError, "with data", rows=torch.zeros(3, dtype=torch.int64, device="meta")
    ),
    "rows that are halves": Bad((TypeError, ValueError), "row", rows=[0.5, 1.5, 2.5]),
    "rows of floats": Bad((TypeError, ValueError), "row", rows=torch.tensor([0.5, 1.5, 2.5])),
    "rows of bools": Bad((TypeError, ValueError), "row", rows=torch.tensor([True, True, False])),
    "rows of two dimensions": Bad(
        (TypeError, ValueError), "row", rows=torch.tensor([[0], [1], [2]])
    ),
    "rows of no dimension": Bad((TypeError, ValueError), "row", rows=torch.tensor(1)),
}


def refused(call: Callable[[Any, Any], Any], bad: Bad) -> None:
    """The call fails as it must, and the logits are what they were."""
    logits, given = bad.logits(), bad.masks()
    with pytest.raises(bad.error, match=bad.match):
        call(logits, given)
    if not isinstance(logits, torch.Tensor) or logits.device.type == "cpu":
        assert (logits == 1).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
class TestRefused:
    def test_class_masks(self, bad, backend):
        fold = Fold(CLASSES)
        refused(lambda a, b: apply_class_bitmask_(a, b, fold, bad.rows, backend=backend), bad)

    def test_tables(self, bad, backend):
        """What is refused leaves no trace: the masks that come next are right."""
        fold = Fold(CLASSES)
        table = MaskTable(fold, 16)
        refused(lambda a, b: table.apply_(a, b, bad.rows, backend=backend), bad)
        logits, expected = ones(), ones()
        apply_class_bitmask_(expected, masks(), fold)
        table.apply_(logits, masks().numpy(), backend=backend)
        assert torch.equal(logits, expected)


TOKEN_WORDS = 4
BAD_TOKENS = {
    "too few columns": Bad(
        ValueError, "columns", lambda: ones(3, 99), lambda: masks(3, TOKEN_WORDS)
    ),
    "masks of classes": Bad(ValueError, r"shape \(n, 4\)", masks=lambda: masks(3, 2)),
    "float64": Bad(
        TypeError,
        "float64",
        lambda: ones(dtype=torch.float64),
        lambda: masks(3, TOKEN_WORDS),
    ),
    "masks on another device": Bad(
        ValueError, "meta", masks=lambda: masks(3, TOKEN_WORDS).to("meta")
    ),
    "a row past the last": Bad(
        IndexError, "index 3", masks=lambda: masks(3, TOKEN_WORDS), rows=[0, 3, 1]
    ),
    "rows for one row": Bad(
        ValueError,
        "two dimensions",
        lambda: ones(107),
        lambda: masks(1, TOKEN_WORDS)[0],
        [0],
    ),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bad", BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_token_masks(bad, backend) -> None:
    refused(lambda a, b: apply_token_bitmask_(a, b, 100, bad.rows, backend=backend), bad)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_vocabulary_of_fewer_than_no_tokens(backend) -> None:
    logits = ones()
    with pytest.raises((ValueError, OverflowError)):
        apply_token_bitmask_(logits, masks(3, 0), -5, backend=backend)
    assert logits.eq(1).all()


def test_a_fold_on_another_device() -> None:
    fold = Fold(CLASSES).to("meta")
    logits = ones()
    with pytest.raises(ValueError, match="logits are on cpu and the fold on meta"):
        apply_class_bitmask_(logits, masks(), fold)
    assert logits.eq(1).all()
    with pytest.raises(ValueError, match="numpy array and the logits on meta"):
        apply_class_bitmask_(ones(device="meta"), masks().numpy(), fold)
    with pytest.raises(ValueError, match="masks are on cpu and the logits on meta"):
        apply_class_bitmask_(ones(device="meta"), masks(), fold)


@pytest.mark.parametrize("wrong", [CLASSES, None, 100])
def test_what_is_no_fold(wrong) -> None:
    logits = ones()
    with pytest.raises((TypeError, AttributeError)):
        apply_class_bitmask_(logits, masks(), wrong)
    assert logits.eq(1).all()


# --------------------------------------------------------------------- backends


@pytest.mark.parametrize("backend", ["cuda", "", None, "CPU", np.array(["cpu", "torch"])])
def test_a_backend_that_is_none(backend) -> None:
    logits = ones()
    fold = Fold(CLASSES)
    for call in (
        lambda *given, **more: apply_class_bitmask_(*given, fold, **more),
        MaskTable(fold).apply_,
    ):
        with pytest.raises(ValueError, match='backend must be "auto", "cpu", "triton" or "torch"'):
            call(logits, masks(), backend=backend)
    assert logits.eq(1).all()


def test_our_kernel_writes_on_the_cpu_only() -> None:
    fold = Fold(CLASSES).to("meta")
    with pytest.raises(ValueError, match='backend="cpu" cannot write logits on meta'):
        apply_class_bitmask_(ones(device="meta"), masks().to("meta"), fold, backend="cpu")


@pytest.mark.skipif(INTERPRETED, reason="Triton's interpreter writes on the CPU")
def test_triton_writes_on_a_gpu_only() -> None:
    pytest.importorskip("triton")
    logits = ones()
    with pytest.raises(
        ValueError, match='backend="triton" writes logits on a GPU, and these are on cpu'
    ):
        apply_class_bitmask_(logits, masks(), Fold(CLASSES), backend="triton")
    assert logits.eq(1).all()


@pytest.fixture
def no_triton(monkeypatch):
    """As where Triton is not installed; what was found out before is forgotten."""
    monkeypatch.setitem(sys.modules, "triton", None)
    torch_backends._has_triton.cache_clear()
    yield
    torch_backends._has_triton.cache_clear()


def test_without_triton(no_triton) -> None:
    logits, expected = ones(), ones()
    with pytest.raises(tokfold.MissingExtraError, match="'triton', which is not installed"):
        apply_class_bitmask_(logits, masks(), Fold(CLASSES), backend="triton")
    with pytest.raises(tokfold.MissingExtraError, match='backend="triton" needs'):
        MaskTable(Fold(CLASSES)).apply_(logits, masks().numpy(), backend="triton")
    assert logits.eq(1).all()
    apply_class_bitmask_(logits, masks(), Fold(CLASSES))  # the CPU needs none
    apply_class_bitmask_(expected, masks(), Fold(CLASSES), backend="torch")
    assert torch.equal(logits, expected)


def test_a_gpu_without_triton_is_warned_of_once(no_triton, recwarn) -> None:
    for _ in range(3):
        assert torch_backends.chosen_backend("auto", torch.device("cuda")) == "torch"
    assert [warning.category for warning in recwarn] == [tokfold.FallbackWarning]
    assert "Triton is not installed" in str(recwarn[0].message)
    assert torch_backends.chosen_backend("auto", torch.device("cpu")) == "cpu"
    assert torch_backends.chosen_backend("auto", torch.device("meta")) == "torch"
    assert len(recwarn) == 1


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import tokfold
try:
    import tokfold.torch
except tokfold.MissingExtraError as error:
    print(error)
"""


def test_without_torch() -> None:
    source = str(Path(tokfold.__file__).parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r}){WITHOUT_TORCH}"]
    result = processes.run(command, check=True)
    assert result.stdout == (
        "tokfold.torch needs the package 'torch', which is not installed: "
        'pip install ".[torch]" in a checkout of tokfold\n'
    )


@pytest.mark.parametrize("backend", DEVICE_BACKENDS)
def test_tables_of_no_size(backend) -> None:
    fold = Fold(CLASSES)
    for options in ({"capacity": 0}, {"max_rows": 0}, {"capacity": -1}):
        with pytest.raises(ValueError, match="must be 1 or more"):
            MaskTable(fold, **options)
    table = MaskTable(fold, max_rows=2)
    logits = ones()
    with pytest.raises(ValueError, match="3 masks, and the table was made for 2 in one call"):
        table.apply_(logits, masks().numpy(), backend=backend)
    assert logits.eq(1).all()
    assert table.counters == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("wrong", ["x", 1.5, True, [1], np.zeros((2, 2), dtype=np.int64)], ids=repr)
def test_tables_whose_sizes_are_no_numbers(wrong) -> None:
    fold = Fold(CLASSES)
    for name in ("capacity", "max_rows"):
        with pytest.raises(tokfold.ArgumentTypeError, match=f"{name} must be a whole number, not"):
            MaskTable(fold, **{name: wrong})
    with pytest.raises(tokfold.ArgumentTypeError, match=r"max_rows must be .* not NoneType"):
        MaskTable(fold, max_rows=None)


@pytest.mark.parametrize("size", [1 << 50, 1 << 62, 1 << 70])
def test_tables_that_no_memory_holds(size) -> None:
    fold = Fold(CLASSES)
    for options in ({"capacity": size}, {"capacity": 1, "max_rows": size}):
        with pytest.raises(tokfold.DeviceError, match="cpu has no room for a table") as caught:
            MaskTable(fold, **options)
        assert caught.value.reason == "memory"
        assert "pass a smaller capacity or max_rows" in str(caught.value)


def test_masks_of_a_table_are_on_the_cpu() -> None:
    logits = ones()
    with pytest.raises(ValueError, match=r"takes masks on the CPU, and these are on meta: .*cpu"):
        MaskTable(Fold(CLASSES)).apply_(logits, masks().to("meta"))
    assert logits.eq(1).all()


@pytest.mark.parametrize(("rows", "error", "says"), WRONG_ROWS)
def test_rows_on_a_device_are_refused_unseen(rows, error, says) -> None:
    device = torch.device("meta")  # nothing of it can be looked at, as nothing of a GPU is
    with pytest.raises(error, match=says):
        torch_checks.rows_on_device(rows.to(device), 2, 2, device)
