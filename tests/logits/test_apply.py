"""Masks onto logits: the same bits by every kernel, in every layout, and nothing else written.

What takes ``backend`` runs by our kernel, by plain torch and, in a process of its own, by Triton's
interpreter (``test_interpreter.py``). This folder has no ``__init__.py``: it would be torch itself.
"""

from __future__ import annotations

import tracemalloc
from random import Random

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import tokfold  # noqa: E402
from hypothesis import event, given, note  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from oracles.logits import (  # noqa: E402
    INTEGERS,
    bits_of,
    bits_of_words,
    masked_,
    minus_infinity,
    unfolded,
)
from strategies.logits import (  # noqa: E402
    BACKENDS,
    DTYPES,
    any_floats,
    cases,
    needs_interpreter,
    random_classes,
    random_masks,
    synthetic_classes,
)
from strategies.profiles import CASES, examples  # noqa: E402
from tokfold.torch import Fold, apply_class_bitmask_, apply_token_bitmask_  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


@pytest.mark.parametrize("backend", BACKENDS)
class TestAnyLogits:
    """Random classes, masks, rows, dtypes and layouts, against the oracle."""

    @examples(100)
    @given(case=cases())
    def test_class_masks(self, backend, case):
        note(str(case))
        event(f"{case.layout}, rows {'given' if case.rows is not None else 'not given'}")
        fold = Fold(case.classes, max_row_bytes=case.max_row_bytes)
        for _ in range(2):  # rows that are remembered are the same rows
            base = case.base.clone()
            logits = case.logits_in(base)
            place = logits.data_ptr()
            returned = apply_class_bitmask_(
                logits, case.given_masks(), fold, case.given_rows(), backend=backend
            )
            assert returned is logits
            assert logits.data_ptr() == place
            assert np.array_equal(bits_of(base), bits_of(case.expected))
        CASES[f"torch: rows of logits, {backend}"] += len(case.masks)

    @examples(50)
    @given(case=cases())
    def test_token_masks(self, backend, case):
        note(str(case))
        size = len(case.classes.class_of)
        bits = np.zeros((len(case.masks), -(-size // 32) * 32), dtype=np.uint8)
        bits[:, :size] = np.array(case.allowed).reshape(-1, size)
        bits[:, size:] = 1  # past the last token: nobody may read these
        words = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
        base = case.base.clone()
        logits = case.logits_in(base)
        given = case.masks_as(words[0] if case.is_one_row else words)
        returned = apply_token_bitmask_(logits, given, size, case.given_rows(), backend=backend)
        assert returned is logits
        assert np.array_equal(bits_of(base), bits_of(case.expected))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_all_kinds(backend, dtype) -> None:
    """Of 16 bits all numbers there are; of 32 those around each exponent, and all NaNs' kinds."""
    if dtype == torch.float32:
        tops = torch.arange(1 << 10, dtype=torch.int64) << 22
        near = torch.tensor([0, 1, (1 << 21), (1 << 22) - 1], dtype=torch.int64)
        values = (tops[:, None] + near).flatten().to(torch.int32).view(dtype)
    else:
        values = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
    allowed = np.arange(len(values)) % 3 != 0
    fold = Fold(synthetic_classes(np.where(allowed, 1, 0), 2))
    logits = values.clone()
    apply_class_bitmask_(logits, np.array([2], dtype=np.int32), fold, backend=backend)
    assert np.array_equal(bits_of(logits)[allowed], bits_of(values)[allowed])
    assert (bits_of(logits)[~allowed] == minus_infinity(dtype)).all()
    assert torch.isnan(values).any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_of_one_row_all_count(backend) -> None:
    classes = random_classes(5_000, 70)
    masks = random_masks(7, 3)
    rows = [1, 0, 1, 1, -1, 3, 0]
    logits = any_floats((4, 5_003), torch.float32, np.random.default_rng(0))
    expected = logits.clone()
    tokens = [unfolded(mask, classes.class_of) for mask in masks]
    both = [tokens[1] & tokens[6], tokens[0] & tokens[2] & tokens[3], tokens[5]]
    masked_(expected, both, [0, 1, 3])
    apply_class_bitmask_(logits, masks, Fold(classes), rows, backend=backend)
    assert np.array_equal(bits_of(logits), bits_of(expected))


@needs_interpreter
@pytest.mark.parametrize("width", [4_000, 4_100, 9_000])
def test_triton_writes_no_allowed_entries(monkeypatch, width) -> None:
    """Programs of one row run at once: one that writes back what it read undoes the others."""
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    written: dict[int, set[int]] = {}

    class Recorder:
        def __getattr__(self, name):
            return getattr(native, name)

        def store(self, places, values, mask):
            for place, value in zip(places[mask].tolist(), values[mask].tolist(), strict=True):
                written.setdefault(place, set()).add(value)
            return native.store(places, values, mask)

    native = interpreter._interpreter
    monkeypatch.setattr(interpreter, "_interpreter", Recorder())
    classes = random_classes(4_000, 40)
    masks = random_masks(3, 2)
    logits = torch.zeros(2, width)
    apply_class_bitmask_(logits, masks, Fold(classes), [1, 1, 0], backend="triton")
    assert {value for values in written.values() for value in values} == {
        minus_infinity(torch.float32)
    }
    assert len(written) == int((logits == -torch.inf).sum())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("num_classes", [(1 << 15) - 1, 1 << 15, (1 << 15) + 1])
def test_classes_past_16_bits(backend, num_classes) -> None:
    class_of = np.arange(num_classes - 1, -1, -1, dtype=np.int32)
    masks = random_masks(2, -(-num_classes // 32))
    logits = any_floats((2, num_classes), torch.float16, np.random.default_rng(0))
    expected = masked_(logits.clone(), [unfolded(mask, class_of) for mask in masks])
    fold = Fold(synthetic_classes(class_of, num_classes))
    apply_class_bitmask_(logits, masks, fold, backend=backend)
    assert np.array_equal(bits_of(logits), bits_of(expected))


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_of_one_word(backend) -> None:
    """A column of words is contiguous however far apart torch says that its entries are."""
    words = torch.tensor([[0b101, 0b010, -1]], dtype=torch.int32).T
    assert words.is_contiguous()
    assert words.stride(1) == 3
    allowed = torch.tensor([[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 0]]).bool()
    expected = torch.zeros(3, 5).masked_fill(~allowed, -torch.inf)
    logits = apply_token_bitmask_(torch.zeros(3, 5), words, 4, backend=backend)
    assert torch.equal(logits, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_far_apart(backend) -> None:
    """Entries that no 32 bits can number, at strides that they can. Memory that is not touched
    costs nothing.
    """
    apart = (1 << 30) + 64
    try:
        base = torch.empty(2 * apart + 200, dtype=torch.float16)
    except RuntimeError:
        pytest.skip("no such memory here")
    logits = base.as_strided((3, 130), (apart, 1))
    logits[:] = 1
    classes, masks = random_classes(100, 33), random_masks(3, 2)
    expected = masked_(torch.ones(3, 130), [unfolded(mask, classes.class_of) for mask in masks])
    apply_class_bitmask_(logits, masks, Fold(classes), backend=backend)
    assert torch.equal(logits.float(), expected)


@pytest.mark.filterwarnings("ignore:Use of masked_fill_ on expanded tensors")
@pytest.mark.parametrize("backend", BACKENDS)
def test_expanded_rows(backend) -> None:
    """Rows that are one and the same memory: what any of the masks forbids is masked, or refused"""
    classes, masks = random_classes(100, 33), random_masks(3, 2)
    base = torch.zeros(1, 100)
    tokens = [unfolded(mask, classes.class_of) for mask in masks]
    expected = masked_(base.clone(), [tokens[0] & tokens[1] & tokens[2]])
    try:
        apply_class_bitmask_(base.expand(3, 100), masks, Fold(classes), backend=backend)
    except ValueError:
        expected = torch.zeros(1, 100)
    assert torch.equal(base, expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_that_require_gradients(backend, dtype) -> None:
    """Written as data: the mask is no part of the graph, and the logits stay what they are."""
    classes, masks = random_classes(100, 33), random_masks(2, 2)
    logits = torch.zeros(2, 107, dtype=dtype, requires_grad=True)
    expected = masked_(
        torch.zeros(2, 107, dtype=dtype), [unfolded(mask, classes.class_of) for mask in masks]
    )
    returned = apply_class_bitmask_(logits, masks, Fold(classes), backend=backend)
    assert returned is logits
    assert logits.is_leaf
    assert logits.requires_grad
    assert torch.equal(logits.detach(), expected)
    with torch.inference_mode():
        inferred = apply_class_bitmask_(
            torch.zeros(2, 107, dtype=dtype), masks, Fold(classes), backend=backend
        )
    assert np.array_equal(bits_of(inferred), bits_of(expected))


def test_no_token_is_in_a_class() -> None:
    """No text ends and none goes on: nothing that a server could do with it."""
    with pytest.raises(ValueError, match="the grammar takes no token of this vocabulary"):
        Fold(synthetic_classes(np.full(40, -1), 0))


# ----------------------------------------------------------------- the grammar's


TOKENS = [bytes([b]) for b in b"[]{}ab,:1 "] + [b"[[", b"]]", b"ab", b"a,", b"],", b"", b"</s>"]
STOP = len(TOKENS) - 1
TEXT = 'root ::= "[" (item ("," item)*)? "]"\nitem ::= root | "a" "b"* | "1"'


@pytest.fixture(scope="module")
def compiled() -> tokfold.CompiledGrammar:
    vocabulary = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP], size=40)
    return tokfold.compile(tokfold.Grammar.from_ebnf(TEXT), vocabulary, classes="now")


def token_rows(matchers) -> np.ndarray:
    rows = tokfold.allocate_bitmask(len(matchers), 40)
    tokfold.fill_bitmask_batch(matchers, rows)
    return rows


def class_rows(matchers, fold: Fold) -> np.ndarray:
    rows = fold.allocate(len(matchers))
    tokfold.fill_class_bitmask_batch(matchers, rows)
    return rows


def walked(compiled, seed: int) -> tokfold.Matcher:
    """A matcher after some random steps, which has not ended."""
    draw, matcher = Random(seed), tokfold.Matcher(compiled)
    for _ in range(seed % 9):
        allowed = bits_of_words(token_rows([matcher])[0], STOP).nonzero()[0].tolist()
        if allowed:
            assert matcher.accept_token(draw.choice(allowed))
    return matcher


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("extra", [0, 9])
def test_the_logits_that_xgrammar_makes(compiled, backend, dtype, extra) -> None:
    xgr = pytest.importorskip("xgrammar")
    fold = Fold(compiled)
    matchers = [walked(compiled, seed) for seed in range(40)]
    logits = torch.randn(40, 40 + extra, generator=torch.Generator().manual_seed(1)).to(dtype)
    expected = logits.clone()
    rows = torch.from_numpy(token_rows(matchers))
    xgr.apply_token_bitmask_inplace(expected, rows, vocab_size=40)
    apply_class_bitmask_(logits, class_rows(matchers, fold), fold, backend=backend)
    assert torch.equal(logits[:, :40], expected[:, :40])
    assert logits[:, 40:].eq(-torch.inf).all()
    unfolder = tokfold.Unfolder(compiled.classes)
    row = tokfold.allocate_bitmask(1, 40)
    for mask, expected_row in zip(class_rows(matchers, fold), rows.numpy(), strict=True):
        unfolder.unfold(mask, row[0])
        assert np.array_equal(row[0], expected_row)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_of_a_draft_tree(compiled, backend) -> None:
    """A row for each node: those that are refused or end the text have no mask, for all masked."""
    fold, matcher = Fold(compiled), tokfold.Matcher(compiled)
    nodes = [b"[", b"a", b"1", b"b", b"]", b"]", b"</s>", b"]]", b"[["]
    parents = [-1, 0, 0, 1, 1, 2, 4, 0, -1]
    ids = [TOKENS.index(node) for node in nodes]
    tokens = tokfold.allocate_bitmask(len(ids) + 1, 40)
    taken = matcher.fill_bitmask_draft(ids, tokens, parents)
    expected = torch.zeros(len(ids) + 1, 45)
    apply_token_bitmask_(expected, tokens, 40, backend=backend)

    whole, logits = fold.allocate(len(ids) + 1), torch.zeros(len(ids) + 1, 45)
    assert np.array_equal(matcher.fill_bitmask_draft(ids, whole, parents, classes=True), taken)
    apply_class_bitmask_(logits, whole, fold, backend=backend)
    assert torch.equal(logits, expected)

    at: list[tokfold.Matcher | None] = [matcher]
    for token, parent in zip(ids, parents, strict=True):
        before = at[parent + 1]
        after = before.fork() if before and not before.is_terminated else None
        at.append(after if after and after.accept_token(token) else None)
    assert [node is not None for node in at[1:]] == taken.tolist()
    rows = [i for i, node in enumerate(at) if node and not node.is_terminated]
    assert len(rows) == len(ids) - 1  # "]]" is refused, and "</s>" ends the text
    order = Random(1).sample(rows, len(rows))
    masks = np.concatenate([class_rows([at[row] for row in order], fold), fold.allocate(2)])
    masks[-2:] = 0
    logits = torch.zeros(len(ids) + 1, 45)
    apply_class_bitmask_(logits, masks, fold, [*order, -1, -1], backend=backend)
    assert torch.equal(logits[rows], expected[rows])
    others = [row for row in range(len(at)) if row not in rows]
    assert logits[others].eq(0).all()


# ----------------------------------------------------------------------- memory


class NothingNew(TorchDispatchMode):
    """Every operation of torch must give a view of what is there already."""

    def __init__(self, *known: torch.Tensor) -> None:
        super().__init__()
        self.known = {tensor.untyped_storage().data_ptr() for tensor in known}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        storage = out.untyped_storage()
        # Triton's interpreter makes some without entries.
        assert not storage.size() or storage.data_ptr() in self.known, f"{func} makes a tensor"
        return out


@pytest.mark.parametrize("backend", [BACKENDS[0], BACKENDS[2]])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_is_allocated(backend, dtype) -> None:
    size = 20_000 if backend == "triton" else 128_000
    fold = Fold(random_classes(size, 400))
    logits = torch.zeros(8, size, dtype=dtype)
    masks = torch.from_numpy(random_masks(8, fold.num_words))
    tokens = torch.from_numpy(random_masks(8, size // 32))
    apply_class_bitmask_(logits, masks, fold, backend=backend)  # what is made once is there now
    with NothingNew(logits, masks, tokens, fold.class_of):
        apply_class_bitmask_(logits, masks, fold, backend=backend)
        apply_class_bitmask_(logits[0], masks[0], fold, backend=backend)
        apply_token_bitmask_(logits, tokens, size, backend=backend)


def test_our_kernel_allocates_no_rows() -> None:
    fold = Fold(random_classes(128_000, 400))
    logits, masks = torch.zeros(16, 128_000), random_masks(16, fold.num_words)
    for rows in (None, list(range(16))):
        apply_class_bitmask_(logits, masks, fold, rows)
        tracemalloc.start()
        try:
            apply_class_bitmask_(logits, masks, fold, rows)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 20_000  # a row of token bits alone has 16,000 bytes


@examples(30)
@given(seed=st.integers(0, 1 << 32))
def test_the_oracle(seed):
    """It is a loop over entries; here is that loop."""
    rng = np.random.default_rng(seed)
    class_of = rng.integers(-1, 40, 50)
    [mask] = random_masks(1, 2, seed)
    [logits] = any_floats((1, 60), torch.float16, rng)
    found = masked_(logits.clone(), [unfolded(mask, class_of)])
    for column, (now, before) in enumerate(zip(bits_of(found), bits_of(logits), strict=True)):
        bit = class_of[column] if column < 50 else -1
        is_allowed = bit >= 0 and int(mask[bit // 32]) >> (bit % 32) & 1
        assert now == (before if is_allowed else minus_infinity(torch.float16))
    assert INTEGERS.keys() == set(DTYPES)
