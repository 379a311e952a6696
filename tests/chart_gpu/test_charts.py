"""Charts on a device against the slow chart over the same grammar, bit for bit."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("triton")

import tokfold  # noqa: E402
from chart_gpu import device_samples  # noqa: E402
from chart_gpu.device_samples import (  # noqa: E402
    DEVICE,
    INTERPRETED,
    KERNELS,
    binary_of,
    charts_of,
    letters_on_device,
    littered,
    needs_device,
    read_all,
    same_charts,
    some_grammar,
    some_text,
    times,
)
from oracles.binary_chart import BinaryChart  # noqa: E402
from strategies.profiles import CASES, LONG  # noqa: E402
from tokfold.chart_gpu import BinaryGrammar, Charts, Tables, idle, launches  # noqa: E402

pytestmark = needs_device
SENTENCE = "DT JJ NN IN DT NN VBZ DT NN IN NNP DOT"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True, params=KERNELS)
def _kernel(request, monkeypatch):
    monkeypatch.setattr(device_samples, "kernel", request.param)


def step_all(found: Charts, oracles: list[BinaryChart], letters: list[int]) -> None:
    """The same letter for both, and what became of it."""
    expected = []
    for row, letter in enumerate(letters):
        if letter == idle:
            expected.append(3)
        elif letter not in oracles[row].next_letters():
            expected.append(1)
        elif oracles[row].length == found.columns:
            expected.append(2)
        else:
            expected.append(0)
            oracles[row] = oracles[row].step(letter)
    found.step_(letters_on_device(letters))
    assert found.status.tolist() == expected


@pytest.mark.parametrize("part", range(4))
def test_random_grammars_rollbacks_and_branches(part):
    for seed in range(part, times(28), 4):
        random = Random(seed)
        binary = BinaryGrammar.of(some_grammar(random))
        rows = random.randint(1, 4)
        found = charts_of(binary, rows, random.choice([5, 9, 40]))
        oracles = [[BinaryChart(binary)] for _ in range(rows)]
        for _ in range(9):
            now = [history[-1] for history in oracles]
            same_charts(found, now)
            CASES["chart-gpu: rows of charts against the oracle"] += rows
            kind = random.random()
            if kind < 0.12:
                counts = [random.randint(0, len(history) - 1) for history in oracles]
                found.rollback_(letters_on_device(counts))
                oracles = [h[: len(h) - count] for h, count in zip(oracles, counts, strict=True)]
                continue
            if kind < 0.24 and rows > 1:
                to, source = random.sample(range(rows), 2)
                found.copy_(to, source)
                oracles[to] = list(oracles[source])
                continue
            letters = []
            for oracle in now:
                choices = [*oracle.next_letters() * 5, idle, -1, binary.num_letters - 1]
                letters.append(random.choice(choices))
            step_all(found, now, letters)
            for history, oracle in zip(oracles, now, strict=True):
                if oracle is not history[-1]:
                    history.append(oracle)


def test_texts_longer_than_words():
    binary = binary_of('root ::= root root | "a" | "b" root "c" | x\nx ::= x "d" | "d"')
    length = 36 if INTERPRETED and not LONG else 70
    found = charts_of(binary, 2, length)
    oracles = [BinaryChart(binary) for _ in range(2)]
    random = Random(4)
    for _ in range(length):
        choices = [oracle.next_letters() for oracle in oracles]
        step_all(found, oracles, [random.choice(choice) for choice in choices])
    same_charts(found, oracles)
    found.rollback_(letters_on_device([length - 32, 3]))
    assert found.lengths.tolist() == [32, length - 3]


def test_an_english_sentence():
    grammar = tokfold.Grammar.from_file(ROOT / "grammars" / "english_tags" / "english_tags.gbnf")
    binary = BinaryGrammar.of(grammar, "words")
    found, oracles = charts_of(binary, 1, 40), [BinaryChart(binary)]
    for letter in binary.encode(SENTENCE.split()):
        step_all(found, oracles, [letter])
    same_charts(found, oracles)
    assert found.accepting().tolist() == [True]


@pytest.mark.skipif(not INTERPRETED, reason="sizes for the interpreter")
@pytest.mark.parametrize("programs", [1, 2])
def test_few_programs_and_small_blocks(monkeypatch, programs):
    """Each loop of the kernel goes round more than once."""
    monkeypatch.setattr(launches, "PROGRAMS", programs)
    monkeypatch.setattr(launches, "BLOCK", 4)
    random = Random(programs)
    binary = BinaryGrammar.of(
        tokfold.Grammar.from_ebnf(
            'root ::= x root | root y | y z | "a"\nx ::= y y | "b" | z "c"\n'
            'y ::= root z x | "c" | z\nz ::= x x x | "a" | "ab" z?'
        )
    )
    assert len(binary.rules) > 8
    found, oracles = charts_of(binary, 5, 40), [BinaryChart(binary) for _ in range(5)]
    for _ in range(6 if LONG else 4):
        step_all(found, oracles, [random.choice(o.next_letters()) for o in oracles])
    same_charts(found, oracles)


def test_what_becomes_of_letters():
    binary = binary_of('root ::= "a" root | "b"')
    found = charts_of(binary, 3, 2)
    a, b = binary.encode(b"ab")
    found.step_(letters_on_device([a, idle, -1]))
    assert found.status.tolist() == [0, 3, 1]
    found.check()
    found.step_(letters_on_device([a, b, 99]))
    found.step_(letters_on_device([a, b, b]))
    assert found.status.tolist() == [2, 1, 0]
    assert found.lengths.tolist() == [2, 1, 1]
    assert found.accepting().tolist() == [False, True, True]
    with pytest.raises(tokfold.LimitExceededError, match=r"rows \[0\] have no room") as caught:
        found.check()
    assert (caught.value.limit, caught.value.value) == ("columns", 2)
    found.reset_()
    assert found.lengths.tolist() == found.status.tolist() == [0, 0, 0]
    same_charts(found, [BinaryChart(binary)] * 3)


def test_letters_that_are_read_at_once():
    for seed in range(times(3)):
        random = Random(seed)
        binary = BinaryGrammar.of(some_grammar(random))
        found, oracles = littered(charts_of(binary, 3, 7)), [BinaryChart(binary) for _ in range(3)]
        for many in (3, 1, 4):
            read_all(found, oracles, [some_text(random, oracle, many) for oracle in oracles])
            same_charts(found, oracles)
    found.read_(letters_on_device([[]] * 3))
    for bad in ([[0]], [0, 0, 0]):
        with pytest.raises(ValueError, match=r"int32 of the shape \(3, letters\)"):
            found.read_(letters_on_device(bad))
    with pytest.raises(ValueError, match="must be contiguous"):
        found.read_(letters_on_device([[0, 0]] * 3)[:, ::2])


def test_a_grammar_of_the_empty_string_alone():
    found = charts_of(binary_of('root ::= ""'), 1, 3)
    assert found.accepting().tolist() == [True]
    found.step_(letters_on_device([0]))
    assert found.status.tolist() == [1]


def test_memory_and_misuse():
    binary = binary_of('root ::= root root | "a"')
    with pytest.raises(tokfold.LimitExceededError, match="2 charts of 1000 letters") as caught:
        charts_of(binary, 2, 1_000, limits=tokfold.Limits(max_matcher_bytes=10_000))
    assert (caught.value.limit, caught.value.value) == ("max_matcher_bytes", 10_000)
    found = charts_of(binary, 2, 10)
    assert 0 < found.nbytes < 10_000
    assert found.tables.nbytes > 0
    assert "2 rows, 10 letters" in repr(found)
    with pytest.raises(ValueError, match="rows and columns must be 1 or more"):
        charts_of(binary, 0, 10)
    for bad in ([0], [[0, 0]]):
        with pytest.raises(ValueError, match=r"int32 of the shape \(2,\)"):
            found.step_(letters_on_device(bad))
    with pytest.raises(ValueError, match="int32 of the shape"):
        found.step_(letters_on_device([0, 0]).long())
    with pytest.raises(ValueError, match="must be contiguous"):
        found.step_(letters_on_device([0, 0, 0, 0])[::2])
    for rows in ((0, 2), (-1, 0)):
        with pytest.raises(IndexError, match="there are 2 rows"):
            found.copy_(*rows)


def test_devices_that_are_not_there():
    with pytest.raises(tokfold.DeviceError, match="cannot be used") as caught:
        Tables(binary_of('root ::= "a"'), "cuda:77")
    assert caught.value.reason == "missing"


def test_a_device_without_memory(monkeypatch):
    def full(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.\nmore")

    tables = Tables(binary_of('root ::= "a"'), DEVICE)
    monkeypatch.setattr(torch, "zeros", full)
    with pytest.raises(tokfold.DeviceError, match="used up by 1 charts of 4 letters") as caught:
        Charts(tables, 1, 4)
    assert caught.value.reason == "memory"


@pytest.mark.skipif(INTERPRETED, reason="the interpreter has no graphs")
def test_a_step_that_is_captured():
    binary = binary_of('root ::= root root | "a" | "b" root "c"')
    found, oracles = charts_of(binary, 4, 40), [BinaryChart(binary) for _ in range(4)]
    letters = letters_on_device([idle] * 4)
    found.step_(letters)  # compiled once before
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found.step_(letters)
    found.reset_()
    random = Random(2)
    for _ in range(30):
        chosen = [random.choice(oracle.next_letters()) for oracle in oracles]
        letters.copy_(torch.tensor(chosen))
        graph.replay()
        oracles = [o.step(letter) for o, letter in zip(oracles, chosen, strict=True)]
    same_charts(found, oracles)
