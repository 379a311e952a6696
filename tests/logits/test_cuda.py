"""On a GPU: the same logits as on the CPU, no waiting, no allocation, graphs that are captured."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.4")

from random import Random  # noqa: E402

import tokfold  # noqa: E402
from hypothesis import given, note  # noqa: E402
from oracles.logits import bits_of, masked_, unfolded  # noqa: E402
from strategies.logits import (  # noqa: E402
    DTYPES,
    INTERPRETED,
    WRONG_ROWS,
    any_floats,
    cases,
    random_classes,
    random_masks,
)
from strategies.profiles import CASES, examples  # noqa: E402
from tokfold.torch import (  # noqa: E402
    Fold,
    MaskTable,
    NextMasks,
    apply_class_bitmask_,
    apply_token_bitmask_,
)
from tokfold.torch import backends as torch_backends  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
    pytest.mark.skipif(INTERPRETED, reason="the interpreter is not the GPU"),
]

BACKENDS = ["torch", "triton"]
SIZE = 128_000


@pytest.fixture(autouse=True)
def _needs_triton(request) -> None:
    if "triton" in request.node.name:
        pytest.importorskip("triton")


@pytest.fixture
def no_waiting():
    """Every operation that waits for the GPU is an error."""

    class Mode:
        def __enter__(self):
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")

        def __exit__(self, *_):
            torch.cuda.set_sync_debug_mode("default")

    return Mode()


def some(rows: int, dtype: torch.dtype = torch.float32, size: int = SIZE) -> torch.Tensor:
    return any_floats((rows, size), dtype, np.random.default_rng(rows))


def expected_of(logits, masks, fold: Fold, rows=None) -> np.ndarray:
    """The bits that the logits must have afterwards."""
    class_of = fold.class_of.cpu().numpy().astype(np.int32)
    tokens = [unfolded(mask, class_of) for mask in np.atleast_2d(masks)]
    return bits_of(masked_(logits.cpu().clone(), tokens, rows))


@pytest.mark.parametrize("backend", BACKENDS)
class TestAnyLogits:
    @examples(60)
    @given(case=cases())
    def test_class_masks(self, backend, case):
        note(str(case))
        fold = Fold(case.classes, "cuda")
        base = case.base.cuda()
        logits = case.logits_in(base)
        masks = torch.as_tensor(case.given_masks()).cuda()
        given = case.given_rows()
        if isinstance(given, torch.Tensor):
            given = given.cuda()
        returned = apply_class_bitmask_(logits, masks, fold, given, backend=backend)
        assert returned is logits
        assert np.array_equal(bits_of(base), bits_of(case.expected))
        CASES[f"torch: rows of logits on a GPU, {backend}"] += len(case.masks)

    @examples(30)
    @given(case=cases())
    def test_tables(self, backend, case):
        note(str(case))
        fold = Fold(case.classes, "cuda")
        table = MaskTable(fold, 3, max_rows=8)
        for _ in range(3):
            base = case.base.cuda()
            rows = None if case.rows is None else list(case.rows)
            masks = case.masks[0] if case.is_one_row else case.masks
            table.apply_(case.logits_in(base), masks, rows, backend=backend)
            assert np.array_equal(bits_of(base), bits_of(case.expected))

    @examples(30)
    @given(case=cases())
    def test_token_masks(self, backend, case):
        note(str(case))
        size = len(case.classes.class_of)
        bits = np.zeros((len(case.masks), -(-size // 32) * 32), dtype=np.uint8)
        bits[:, :size] = np.array(case.allowed).reshape(-1, size)
        words = torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32))
        words = (words[0] if case.is_one_row else words).cuda()
        base = case.base.cuda()
        rows = None if case.rows is None else list(case.rows)
        apply_token_bitmask_(case.logits_in(base), words, size, rows, backend=backend)
        assert np.array_equal(bits_of(base), bits_of(case.expected))


@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_large_vocabulary(backend, dtype) -> None:
    fold = Fold(random_classes(SIZE - 7, 700), "cuda")
    logits, masks = some(16, dtype), random_masks(16, fold.num_words)
    expected = expected_of(logits, masks, fold)
    found = logits.cuda()
    apply_class_bitmask_(found, torch.from_numpy(masks).cuda(), fold, backend=backend)
    assert np.array_equal(bits_of(found), expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_of_one_row_all_count(backend) -> None:
    """Programs of one row run at once, and none may undo what another has written."""
    count = 64
    fold = Fold(random_classes(SIZE, 32 * count), "cuda")
    masks = np.full((count, fold.num_words), -1, dtype=np.int32)
    masks[np.arange(count), np.arange(count)] = 0  # each forbids 32 classes of its own
    expected = np.zeros((2, SIZE), dtype=np.float32)
    expected[1] = -np.inf
    on_device = torch.from_numpy(masks).cuda()
    rows = torch.ones(count, dtype=torch.int64, device="cuda")
    table = MaskTable(fold, count)
    for _ in range(30):
        logits = torch.zeros(2, SIZE, device="cuda")
        apply_class_bitmask_(logits, on_device, fold, rows, backend=backend)
        assert np.array_equal(logits.cpu().numpy(), expected)
        logits = torch.zeros(2, SIZE, device="cuda")
        table.apply_(logits, masks, [1] * count, backend=backend)
        assert np.array_equal(logits.cpu().numpy(), expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_that_do_not_exist(backend) -> None:
    """On the GPU they are for none; rows that the CPU can see are looked at."""
    fold = Fold(random_classes(1_000, 40), "cuda")
    masks = random_masks(5, 2)
    listed = [1, -1, 4, 1 << 40, -(1 << 40)]
    logits = some(4, size=1_003)
    kept = [row if 0 <= row < 4 else -1 for row in listed]
    expected = expected_of(logits, masks, fold, kept)
    found = logits.cuda()
    given = torch.tensor(listed, device="cuda")
    apply_class_bitmask_(found, torch.from_numpy(masks).cuda(), fold, given, backend=backend)
    assert np.array_equal(bits_of(found), expected)
    found = logits.cuda()
    for seen in (listed, torch.tensor(listed)):
        with pytest.raises(IndexError, match="4 rows, not one of index 4"):
            apply_class_bitmask_(found, torch.from_numpy(masks).cuda(), fold, seen, backend=backend)
    with pytest.raises(IndexError, match="index 4"):
        MaskTable(fold).apply_(found, masks, listed, backend=backend)
    assert np.array_equal(bits_of(found), bits_of(logits))


@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
def test_what_is_elsewhere(backend) -> None:
    classes = random_classes(1_000, 40)
    fold, masks = Fold(classes, "cuda"), random_masks(2, 2)
    here, there = torch.ones(2, 1_000), torch.ones(2, 1_000, device="cuda")
    on_device = torch.from_numpy(masks).cuda()
    with pytest.raises(ValueError, match="logits are on cpu and the fold on cuda:0"):
        apply_class_bitmask_(here, on_device, fold, backend=backend)
    with pytest.raises(ValueError, match="logits are on cuda:0 and the fold on cpu"):
        apply_class_bitmask_(there, on_device, Fold(classes), backend=backend)
    with pytest.raises(ValueError, match="masks are on cpu and the logits on cuda:0"):
        apply_class_bitmask_(there, torch.from_numpy(masks), fold, backend=backend)
    with pytest.raises(ValueError, match="numpy array and the logits on cuda:0"):
        apply_class_bitmask_(there, masks, fold, backend=backend)
    with pytest.raises(ValueError, match='backend="cpu" cannot write logits on cuda:0'):
        apply_class_bitmask_(there, on_device, fold, backend="cpu")
    for rows, error, says in WRONG_ROWS:
        with pytest.raises(error, match=says):
            apply_class_bitmask_(there, on_device, fold, rows.cuda(), backend=backend)
    assert here.eq(1).all()
    assert there.eq(1).all()


def test_without_triton(monkeypatch) -> None:
    fold, masks = Fold(random_classes(1_000, 40), "cuda"), random_masks(2, 2)
    logits = some(2, size=1_003)
    found, expected = logits.cuda(), expected_of(logits, masks, fold)
    monkeypatch.setitem(sys.modules, "triton", None)
    torch_backends._has_triton.cache_clear()
    try:
        with pytest.warns(tokfold.FallbackWarning, match="Triton is not installed"):
            apply_class_bitmask_(found, torch.from_numpy(masks).cuda(), fold)
    finally:
        torch_backends._has_triton.cache_clear()
    assert np.array_equal(bits_of(found), expected)


# -------------------------------------------------------------- waiting, memory


def test_allocated_masks_are_where_the_gpu_reads_them() -> None:
    masks = Fold(random_classes(1_000, 40), "cuda").allocate(3)
    assert torch.from_numpy(masks).is_pinned()
    assert (masks == -1).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_waits_and_nothing_is_allocated_triton(no_waiting, dtype) -> None:
    fold = Fold(random_classes(SIZE, 700), "cuda")
    logits = some(8, dtype)
    found = logits.cuda()
    masks = random_masks(8, fold.num_words)
    on_device = torch.from_numpy(masks).cuda()
    tokens = torch.full((8, SIZE // 32), -1, dtype=torch.int32, device="cuda")
    rows = torch.arange(8, device="cuda")
    kinds = (rows, rows.int(), None)
    for some_rows in kinds:
        apply_class_bitmask_(found, on_device, fold, some_rows, backend="triton")
    apply_token_bitmask_(found, tokens, SIZE, backend="triton")
    found.copy_(logits)
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    with no_waiting:
        for some_rows in kinds:
            apply_class_bitmask_(found, on_device, fold, some_rows, backend="triton")
        apply_token_bitmask_(found, tokens, SIZE, backend="triton")
        apply_class_bitmask_(found[0], on_device[0], fold, backend="triton")
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    assert np.array_equal(bits_of(found), expected_of(logits, masks, fold))


@pytest.mark.parametrize("backend", BACKENDS)
def test_tables_do_not_wait(no_waiting, backend) -> None:
    fold = Fold(random_classes(SIZE, 700), "cuda")
    table = MaskTable(fold, 6, max_rows=4)
    masks = random_masks(9, fold.num_words)
    draw = Random(5)
    logits = torch.zeros(4, SIZE, device="cuda")
    table.apply_(logits, masks[:4], [3, 2, 1, 0], backend=backend)
    with no_waiting:
        for _ in range(3):  # as many as may be on their way at once
            table.apply_(logits, masks[[draw.randrange(9) for _ in range(4)]], backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gpu_that_is_far_behind(backend) -> None:
    """What is on its way is not written over by the calls that follow."""
    fold = Fold(random_classes(1_000, 90), "cuda")
    all_masks = random_masks(30, fold.num_words)
    table = MaskTable(fold, 8, max_rows=5)
    draw = Random(7)
    given = np.empty((5, fold.num_words), dtype=np.int32)
    done = []
    for call in range(40):
        if call % 10 == 0:
            torch.cuda._sleep(200_000_000)
        ids = [draw.randrange(30) for _ in range(5)]
        rows = draw.choice([None, [4, 0, 2, -1, 4]])
        given[:] = all_masks[ids]
        logits = torch.zeros(5, 1_003, device="cuda")
        table.apply_(logits, given, rows, backend=backend)
        done.append((logits, ids, rows))
    for logits, ids, rows in done:
        expected = expected_of(torch.zeros(5, 1_003), all_masks[ids], fold, rows)
        assert np.array_equal(bits_of(logits), expected)
    assert table.counters.evicted > 0


# ----------------------------------------------------------------------- graphs


def test_cuda_graphs_triton() -> None:
    """Captured once, and run with other logits, masks and rows in the same memory."""
    fold = Fold(random_classes(SIZE, 700), "cuda")
    logits = torch.zeros(6, SIZE + 8, dtype=torch.bfloat16, device="cuda")[:, :SIZE]
    masks = torch.zeros((6, fold.num_words), dtype=torch.int32, device="cuda")
    rows = torch.arange(6, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # once before, so that the kernel is compiled
        apply_class_bitmask_(logits, masks, fold, rows)
        apply_class_bitmask_(logits, masks, fold)
    torch.cuda.current_stream().wait_stream(side)
    with_rows, without = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(with_rows):
        apply_class_bitmask_(logits, masks, fold, rows)
    with torch.cuda.graph(without):
        apply_class_bitmask_(logits, masks, fold)
    for seed in range(5):
        values = any_floats((6, SIZE), torch.bfloat16, np.random.default_rng(seed))
        words = random_masks(6, fold.num_words, seed)
        listed = [Random(seed).randrange(-1, 6) for _ in range(6)]
        masks.copy_(torch.from_numpy(words))
        rows.copy_(torch.tensor(listed))
        for graph, for_rows in ((with_rows, listed), (without, None)):
            logits.copy_(values)
            graph.replay()
            assert np.array_equal(bits_of(logits), expected_of(values, words, fold, for_rows))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_torch_compile_triton(mode) -> None:
    import torch._dynamo

    torch._dynamo.reset()

    @torch.compile(fullgraph=True, mode=mode)
    def step(hidden, masks, fold, rows):
        return apply_class_bitmask_(hidden * 1, masks, fold, rows)

    for count in (70, 90):
        fold = Fold(random_classes(5_000, count), "cuda")
        for seed in range(4):
            logits = torch.randn(4, 5_003, generator=torch.Generator().manual_seed(seed))
            words = random_masks(4, fold.num_words, seed)
            on_device = torch.from_numpy(words).cuda()
            for rows in (None, [2, 0, -1, 2]):
                given = None if rows is None else torch.tensor(rows, device="cuda")
                found = step(logits.cuda(), on_device, fold, given).clone()
                assert np.array_equal(bits_of(found), expected_of(logits, words, fold, rows))
    torch._dynamo.reset()


@pytest.mark.parametrize("way", ["classes", "tokens"])
def test_generation(way) -> None:
    """A generation with masks made beside the model is that of the CPU."""
    tokens = [bytes([b]) for b in b"[]ab,1"] + [b"[[", b"]]", b"a,", b"],", b"</s>"]
    stop, size = len(tokens) - 1, len(tokens)
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[stop])
    text = 'root ::= list\nlist ::= "[" (item ("," item)*)? "]"\nitem ::= list | "a" "b"* | "1"'
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf(text), vocabulary, classes="now")
    texts = []
    for device in ("cpu", "cuda"):
        matchers = [tokfold.Matcher(compiled) for _ in range(9)]
        fold = Fold(compiled, device) if way == "classes" else None
        with NextMasks(matchers, fold=fold) as masks:
            masks.begin()
            for step in range(40):
                generator = torch.Generator().manual_seed(step)
                logits = torch.randn(9, size + 5, generator=generator).to(device)
                logits[:, stop] += step * torch.arange(9, device=device) / 9
                masks.begin(masks.apply_(logits).argmax(dim=-1))
            masks.wait()
        texts.append([matcher.text for matcher in matchers])
    assert texts[0] == texts[1]
    assert any(texts[0])


@pytest.mark.parametrize("on_host", [1 << 17, 40, 0])
def test_a_processor_of_transformers(monkeypatch, on_host) -> None:
    """Rows that end one after another: the texts of the CPU, and two waits for each step."""
    pytest.importorskip("transformers")
    from tokfold.transformers import GrammarLogitsProcessor

    monkeypatch.setattr("tokfold.transformers.ON_HOST", on_host)
    tokens = [bytes([b]) for b in b"[]ab,1"] + [b"[[", b"]]", b"a,", b"],", b"</s>"]
    stop, size = len(tokens) - 1, len(tokens)
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[stop])
    text = 'root ::= list\nlist ::= "[" (item ("," item)*)? "]"\nitem ::= list | "a" "b"* | "1"'
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf(text), vocabulary, classes="now")
    texts = []
    for device in ("cpu", "cuda"):
        processor = GrammarLogitsProcessor(compiled)
        ids = torch.arange(7, device=device)[:, None]
        for step in range(30):
            generator = torch.Generator().manual_seed(step)
            scores = torch.randn(7, size + 5, generator=generator).to(device)
            scores[:, stop] += step * torch.arange(7, device=device) / 9
            if device == "cuda":
                torch.cuda.synchronize()
                torch.cuda.set_sync_debug_mode("warn")
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    scores = processor(ids, scores)
            finally:
                if device == "cuda":
                    torch.cuda.set_sync_debug_mode("default")
            waits = [w for w in caught if "synchronizing" in str(w.message)]
            assert len(waits) <= 2 or on_host < 1 << 17  # a copy from the device, and one to it
            has_ended = [stop in row for row in ids[:, 1:].tolist()]
            chosen = torch.where(
                torch.tensor(has_ended, device=device), 0, scores[:, :size].argmax(dim=-1)
            )
            ids = torch.cat([ids, chosen[:, None]], dim=1)
        texts.append(ids.tolist())
    assert texts[0] == texts[1]
    assert sum(stop in row for row in texts[0]) > 3
