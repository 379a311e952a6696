"""The kernels in CUDA against the slow chart, bit for bit.

They run on the CPU: the same source, compiled by g++ (``cuda_on_cpu``). NVRTC compiles it for GPUs,
where there is none. Masks are in ``test_masks.py``, since the levels of the tree are Triton's.
"""

from __future__ import annotations

import ctypes
import warnings
from pathlib import Path
from random import Random

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("triton")

import tokfold  # noqa: E402
from chart_gpu.cuda_samples import CpuModule, SanitizedModule, needs_compiler, on_cpu  # noqa: E402
from chart_gpu.device_samples import (  # noqa: E402
    INTERPRETED,
    binary_of,
    littered,
    read_all,
    same_charts,
    some_grammar,
    some_text,
)
from oracles.binary_chart import BinaryChart  # noqa: E402
from strategies.profiles import CASES, LONG, LONG_FACTOR  # noqa: E402
from tokfold.chart_gpu import BinaryGrammar, Charts, Tables, cuda, idle, launches  # noqa: E402

FACTOR = LONG_FACTOR if LONG else 1
ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "DT JJ NN IN DT NN VBZ DT NN IN NNP DOT"
NEAR = 227 << 10


def charts_of(binary: BinaryGrammar, rows: int, columns: int, **options) -> Charts:
    charts = Charts(Tables(binary, "cpu"), rows, columns, kernel="cuda", **options)
    assert charts.kernel == "cuda"
    return littered(charts)


def english() -> BinaryGrammar:
    grammar = tokfold.Grammar.from_file(ROOT / "grammars" / "english_tags" / "english_tags.gbnf")
    return BinaryGrammar.of(grammar, "words")


@needs_compiler
@pytest.mark.parametrize("max_shared", [NEAR, 400, 0])
def test_random_grammars(monkeypatch, max_shared):
    module = on_cpu(monkeypatch, max_shared=max_shared)
    for seed in range(40 * FACTOR):
        random = Random(seed)
        binary = BinaryGrammar.of(some_grammar(random))
        rows, many = random.randint(1, 4), random.choice([1, 1, 3])
        found = charts_of(binary, rows, random.choice([5, 9, 40, 70]))
        oracles = [BinaryChart(binary) for _ in range(rows)]
        for _ in range(6):
            launched = len(module.launched)
            read_all(found, oracles, [some_text(random, oracle, many) for oracle in oracles])
            assert len(module.launched) == launched + 1
            same_charts(found, oracles)
            CASES["chart-gpu: rows of charts by CUDA's source against the oracle"] += rows
    kinds = {kernel for kernel, _ in module.launched}
    assert kinds <= {"read_rows_near", "read_rows_half", "read_rows_far"}
    assert ("read_rows_near" in kinds) == (max_shared > 0)
    assert ("read_rows_half" in kinds) == (0 < max_shared < NEAR)
    assert ("read_rows_far" in kinds) == (max_shared < NEAR)


@needs_compiler
@pytest.mark.parametrize("max_shared", [NEAR, 0])
@pytest.mark.parametrize(
    "text",
    [
        'root ::= root root | "a" | "b" root "c" | x\nx ::= x "d" | "d"',
        'root ::= "a" root | "b" root | "c" root | "d" root | "a" | "d"',  # as deep as it is long
    ],
)
def test_texts_longer_than_words(monkeypatch, text, max_shared):
    on_cpu(monkeypatch, max_shared=max_shared)
    binary = binary_of(text)
    found, oracles = charts_of(binary, 2, 70), [BinaryChart(binary) for _ in range(2)]
    random = Random(4)
    read_all(found, oracles, [some_text(random, oracle, 3) for oracle in oracles])
    for _ in range(34):
        texts = []
        for oracle in oracles:
            letter = random.choice(oracle.next_letters())
            texts.append([letter, random.choice(oracle.step(letter).next_letters())])
        read_all(found, oracles, texts)
    same_charts(found, oracles)
    # What is left of a longer text means nothing.
    found.rollback_(torch.tensor([40, 5], dtype=torch.int32))
    lengths = found.lengths.tolist()
    assert lengths[0] < 32 < 60 < lengths[1]
    oracles = [_first(binary, oracle, n) for oracle, n in zip(oracles, lengths, strict=True)]
    read_all(found, oracles, [some_text(random, oracle, 9) for oracle in oracles])
    same_charts(found, oracles)


def _first(binary: BinaryGrammar, oracle: BinaryChart, length: int) -> BinaryChart:
    """The oracle as it was after its first letters."""
    before = object.__new__(BinaryChart)
    before.grammar = binary
    before.ended, before.predicted = oracle.ended[: length + 1], oracle.predicted[: length + 1]
    before.accepting = length > 0 and bool(before.ended[-1][binary.start, 0])
    return before


@needs_compiler
@pytest.mark.parametrize(("threads", "max_shared"), [(32, NEAR), (512, NEAR), (256, 30_000)])
def test_an_english_sentence(monkeypatch, threads, max_shared):
    """With as many threads as on a GPU; and where the pairs stay in the device's memory."""
    module = on_cpu(monkeypatch, threads=threads, max_shared=max_shared)
    binary = english()
    found, oracles = charts_of(binary, 1, 40), [BinaryChart(binary)]
    read_all(found, oracles, [binary.encode(SENTENCE.split())])
    same_charts(found, oracles)
    assert found.accepting().tolist() == [True]
    assert module.launched == [("read_rows_near" if max_shared == NEAR else "read_rows_half", 1)]


@needs_compiler
@pytest.mark.parametrize(("sanitizer", "max_shared"), [("thread", NEAR), ("address,undefined", 0)])
def test_threads_that_run_at_once(monkeypatch, tmp_path, sanitizer, max_shared):
    """No two threads meet but behind a barrier or by atomics, and none reads where nothing is."""
    module = SanitizedModule(sanitizer, tmp_path, max_shared)
    on_cpu(monkeypatch, module)
    random = Random(1)
    binary = BinaryGrammar.of(some_grammar(random))
    module.charts = found = charts_of(binary, 2, 40)
    oracles = [BinaryChart(binary) for _ in range(2)]
    read_all(found, oracles, [some_text(random, oracle, 4) for oracle in oracles])
    read_all(found, oracles, [[-1], [idle]])
    same_charts(found, oracles)
    binary = english()
    module.charts = found = charts_of(binary, 1, 40)
    oracles = [BinaryChart(binary)]
    read_all(found, oracles, [binary.encode(SENTENCE.split())])
    same_charts(found, oracles)


@needs_compiler
def test_branches_and_more_columns(monkeypatch):
    on_cpu(monkeypatch)
    for seed in range(12 * FACTOR):
        random = Random(seed)
        binary = BinaryGrammar.of(some_grammar(random))
        found = Charts(Tables(binary, "cpu"), 2, 6, kernel="cuda")
        oracles = [BinaryChart(binary) for _ in range(2)]
        read_all(found, oracles, [some_text(random, oracle, 6) for oracle in oracles])
        found.copy_(0, 1)
        oracles[0] = oracles[1]
        read_all(found, oracles, [some_text(random, oracle, 2) for oracle in oracles])
        found = found.with_columns(70, ahead=3, nodes=5)
        assert (found.kernel, found.columns, found.ahead, found.nodes) == ("cuda", 70, 3, 7)
        read_all(found, oracles, [some_text(random, oracle, 4) for oracle in oracles])
        same_charts(found, oracles)


@needs_compiler
def test_more_rows_than_blocks(monkeypatch):
    module = on_cpu(monkeypatch)
    binary = binary_of('root ::= root root | "a" | "b" root "c"')
    rows = 40
    found, oracles = charts_of(binary, rows, 9), [BinaryChart(binary) for _ in range(rows)]
    random = Random(7)
    for _ in range(3):
        read_all(found, oracles, [some_text(random, oracle, 2) for oracle in oracles])
    same_charts(found, oracles)
    assert module.launched[0] == ("read_rows_near", 8 * module.multiprocessors)


@needs_compiler
def test_a_grammar_of_the_empty_string_alone(monkeypatch):
    on_cpu(monkeypatch)
    found = charts_of(binary_of('root ::= ""'), 1, 3)
    found.read_(torch.tensor([[0, -1]], dtype=torch.int32))
    assert (found.status.tolist(), found.accepting().tolist()) == ([1], [True])


@needs_compiler
def test_the_struct_is_that_of_the_source():
    assert CpuModule()._library.chart_bytes() == ctypes.sizeof(launches._Chart)


# --------------------------------------------------------------------- without a compiler


def test_what_cannot_be_compiled():
    """A named error where it was asked for, Triton's kernel and a warning where it was not."""
    tables = Tables(binary_of('root ::= "a"'), "cpu")
    with pytest.raises(tokfold.DeviceError, match="GPUs of NVIDIA, not on cpu") as caught:
        Charts(tables, 1, 4, kernel="cuda")
    assert caught.value.reason == "missing"
    with pytest.raises(ValueError, match='kernel must be "auto", "cuda" or "triton", not \'c\''):
        Charts(tables, 1, 4, kernel="c")


def test_no_compiler(monkeypatch):
    def missing(_name):
        raise OSError("libnvrtc.so.13: cannot open shared object file")

    monkeypatch.setattr(cuda.ctypes, "CDLL", missing)
    with pytest.raises(tokfold.DeviceError, match=r"no compiler for CUDA.*cannot open") as caught:
        cuda.compiled_for(9, 0)
    assert caught.value.reason == "compiler"


def test_a_warning_and_triton(monkeypatch):
    def refused(_device):
        raise tokfold.DeviceError("there is no compiler for CUDA", "compiler")

    class OnCuda:
        def __getattr__(self, name):
            return torch.device("cuda") if name == "device" else getattr(tables, name)

    tables = Tables(binary_of('root ::= "a"'), "cpu")
    monkeypatch.setattr(cuda, "module_of", refused)
    monkeypatch.setattr(launches, "_warned", set())
    size = {"rows": 1, "nodes": 0, "width": 1, "ahead": 0, "limits": tokfold.Limits()}
    with pytest.warns(tokfold.FallbackWarning, match=r"no compiler.*kernels are Triton's"):
        assert launches.launches_for(OnCuda(), "auto", **size).name == "triton"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        assert launches.launches_for(OnCuda(), "auto", **size).name == "triton"
    with pytest.raises(tokfold.DeviceError, match="no compiler"):
        launches.launches_for(OnCuda(), "cuda", **size)


def test_places_past_31_bits(monkeypatch):
    on_cpu(monkeypatch, CpuModule.__new__(CpuModule))
    tables = Tables(binary_of('root ::= "a" "b"'), "cpu")
    with pytest.raises(tokfold.LimitExceededError, match="number with 31 bits") as caught:
        Charts(tables, 1, 1 << 34, kernel="cuda")
    assert caught.value.limit == "columns"


@pytest.mark.skipif(INTERPRETED, reason="once is enough")
@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (99, 0)])
def test_it_compiles_for_gpus(capability):
    try:
        cuda._nvrtc()
    except tokfold.DeviceError as error:
        pytest.skip(str(error))
    image = cuda.compiled_for(*capability)
    assert image.startswith(b"\x7fELF") == (capability < (99, 0))
    for kernel in cuda.KERNELS:
        assert kernel.encode() in image


def test_a_source_that_is_refused(monkeypatch):
    try:
        cuda._nvrtc()
    except tokfold.DeviceError as error:
        pytest.skip(str(error))
    with pytest.raises(tokfold.DeviceError, match="compute capabilities from") as caught:
        cuda.compiled_for(1, 0)
    assert caught.value.reason == "compiler"
    monkeypatch.setattr(cuda, "SOURCE", "__init__.py")
    with pytest.raises(tokfold.DeviceError, match=r"NVRTC refuses __init__.py.*error") as caught:
        cuda.compiled_for(9, 0)
    assert caught.value.reason == "compiler"


class FakeDriver:
    """The driver, as far as its calls can be seen from outside.

    Attributes:
        calls: names and arguments, in order.
        failing: the call that fails, and its error.
    """

    def __init__(self, failing: tuple[str, int] = ("", 0)) -> None:
        self.calls: list[tuple[str, tuple]] = []
        self.failing = failing
        self.contexts = 0

    def cuGetErrorString(self, result, text):  # noqa: N802
        text._obj.value = f"error number {result}".encode()
        return 0

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, arguments))
            if name == self.failing[0]:
                return self.failing[1]
            self.contexts += (name == "cuCtxPushCurrent_v2") - (name == "cuCtxPopCurrent_v2")
            if name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = {16: 132, 97: NEAR}[arguments[1]]
            elif name == "cuModuleGetFunction":
                arguments[0]._obj.value = 1_000 + len(self.calls)
            elif name == "cuDevicePrimaryCtxRetain":
                arguments[0]._obj.value = 5
            return 0

        return call


@pytest.fixture
def loaded(monkeypatch):
    def load(*failing) -> tuple[FakeDriver, cuda.Module]:
        driver = FakeDriver(*failing)
        monkeypatch.setattr(cuda.ctypes, "CDLL", lambda _name: driver)
        stream = type("Stream", (), {"cuda_stream": 77})
        monkeypatch.setattr(torch.cuda, "current_stream", lambda _index: stream)
        try:
            return driver, cuda.Module(1, b"image")
        finally:
            assert driver.contexts == 0

    return load


def test_a_launch(loaded):
    driver, module = loaded()
    assert (module.multiprocessors, module.max_shared) == (132, NEAR)
    sizes = [call[1][2] for call in driver.calls if call[0] == "cuFuncSetAttribute"]
    assert sizes == [NEAR] * len(cuda.KERNELS)
    del driver.calls[:]
    arguments = [launches._Chart(rows=3, pitch=7), ctypes.c_void_p(99), ctypes.c_int(4)]
    module.launch("read_rows_far", 2, 64, 1_024, arguments)
    names = [name for name, _ in driver.calls]
    assert names == ["cuCtxPushCurrent_v2", "cuLaunchKernel", "cuCtxPopCurrent_v2"]
    function, *sizes, stream, places, extra = driver.calls[1][1]
    assert (sizes, stream.value, extra) == ([2, 1, 1, 64, 1, 1, 1_024], 77, None)
    assert function.value == module._functions["read_rows_far"].value
    assert ctypes.cast(places[0], ctypes.POINTER(launches._Chart))[0].pitch == 7
    assert ctypes.cast(places[1], ctypes.POINTER(ctypes.c_void_p))[0] == 99
    assert ctypes.cast(places[2], ctypes.POINTER(ctypes.c_int))[0] == 4
    driver.failing = ("cuLaunchKernel", 700)
    with pytest.raises(tokfold.DeviceError, match="refuses cuLaunchKernel: error number 700"):
        module.launch("read_rows_far", 2, 64, 1_024, arguments)
    assert driver.contexts == 0


@pytest.mark.parametrize(
    ("call", "result", "reason"),
    [
        ("cuInit", 100, "missing"),
        ("cuDevicePrimaryCtxRetain", 2, "memory"),
        ("cuModuleLoadData", 209, "compiler"),
        ("cuModuleLoadData", 2, "memory"),
        ("cuFuncSetAttribute", 1, "compiler"),
    ],
)
def test_a_driver_that_refuses(loaded, call, result, reason):
    with pytest.raises(tokfold.DeviceError, match=f"cuda:1 refuses {call}") as caught:
        loaded((call, result))
    assert caught.value.reason == reason


def test_kernels_are_compiled_once_for_a_device(monkeypatch):
    tried = []

    def refused(*capability):
        tried.append(capability)
        raise tokfold.DeviceError("no", reasons.pop())

    monkeypatch.setattr(cuda, "_modules", {})
    monkeypatch.setattr(cuda, "compiled_for", refused)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _index: (9, 0))
    monkeypatch.setattr(torch.version, "hip", None, raising=False)
    reasons = ["compiler", "memory"]  # memory there may be later
    for expected in ("memory", "compiler", "compiler"):
        with pytest.raises(tokfold.DeviceError) as caught:
            cuda.module_of(torch.device("cuda:1"))
        assert caught.value.reason == expected
    assert tried == [(9, 0)] * 2
