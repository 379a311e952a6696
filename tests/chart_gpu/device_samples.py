"""Where the tests of charts on a device run, and what they compare."""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
import tokfold
import torch
from oracles.binary_chart import BinaryChart
from oracles.model import to_ebnf
from strategies.binary import any_grammar
from strategies.profiles import LONG, LONG_FACTOR
from tokfold.chart_gpu import BinaryGrammar, Charts, Tables, idle
from tokfold.chart_gpu.launches import KernelName

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Triton asks when it is imported, once for a process: see test_interpreter.py."""

DEVICE = "cpu" if INTERPRETED else "cuda"

KERNELS: list[KernelName] = ["triton"] if INTERPRETED else ["cuda", "triton"]
"""What reads letters there; the kernels in CUDA on a CPU are in test_cuda.py."""

needs_device = pytest.mark.skipif(
    not INTERPRETED and not torch.cuda.is_available(),
    reason="there is no GPU, and Triton does not interpret: see test_interpreter.py",
)


def times(cases: int) -> int:
    """How many random cases are tried of so many on a device: a third where Triton interprets.

    The long profile tries all, :data:`LONG_FACTOR` times.
    """
    if LONG:
        return cases * LONG_FACTOR
    return -(-cases // 3) if INTERPRETED else cases


def binary_of(text: str, alphabet="bytes") -> BinaryGrammar:
    return BinaryGrammar.of(tokfold.Grammar.from_ebnf(text), alphabet)


def some_grammar(random: Random) -> tokfold.Grammar:
    """A grammar with a string."""
    while True:
        grammar = tokfold.Grammar.from_ebnf(to_ebnf(any_grammar(random)))
        try:
            BinaryGrammar.of(grammar)
        except tokfold.UnsupportedGrammarError:
            continue
        return grammar


kernel: KernelName = "auto"
"""What reads the letters of :func:`charts_of`."""


def charts_of(binary: BinaryGrammar, rows: int, columns: int, **options) -> Charts:
    return Charts(Tables(binary, DEVICE), rows, columns, **{"kernel": kernel, **options})


def littered(charts: Charts) -> Charts:
    """The charts, with all bits set that mean nothing yet."""
    charts.ended.fill_(-1)
    charts.ending.fill_(-1)
    own = charts.row_predictions
    first = own[:, :, 0] & 1
    charts.predicted.fill_(-1)
    own[:, :, 0] = first | -2
    charts._row_following[:, 1:] = -1
    charts.complete[:, 1:] = 1
    return charts


def letters_on_device(letters) -> torch.Tensor:
    return torch.tensor(letters, dtype=torch.int32, device=DEVICE)


def bits(words: np.ndarray, count: int) -> list[int]:
    """The places set in a row of words, below ``count``."""
    flags = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little")
    return np.flatnonzero(flags[:count]).tolist()


def same_charts(charts: Charts, oracles: list[BinaryChart]) -> None:
    """All that the charts hold, bit for bit that of the oracles."""
    binary = charts.tables.grammar
    following = charts.next_letters().cpu().numpy()
    accepting = charts.accepting().tolist()
    predicted = charts.row_predictions.cpu().numpy()
    columns = charts.row_columns.cpu().numpy()
    assert charts.lengths.tolist() == [oracle.length for oracle in oracles]
    for row, oracle in enumerate(oracles):
        assert bits(following[row], binary.num_letters) == oracle.next_letters()
        assert accepting[row] == oracle.accepting
        places = oracle.length + 1
        for symbol in range(binary.num_symbols):
            expected = [place for place in range(places) if oracle.predicted[place][symbol]]
            assert bits(predicted[row, symbol], places) == expected
        for place in range(1, places):
            for number, left in enumerate(binary.lefts):
                expected = np.flatnonzero(oracle.ended[place][left]).tolist()
                assert bits(columns[row, place, number], place) == expected


def read_all(found: Charts, oracles: list[BinaryChart], texts: list[list[int]]) -> None:
    """The same letters for both at once, and what became of them."""
    expected = []
    for row, text in enumerate(texts):
        status = 3 if text[0] == idle else 0
        for letter in text:
            if letter == idle:
                break
            if letter not in oracles[row].next_letters():
                status = 1
            elif oracles[row].length == found.columns:
                status = 2
            if status:
                break
            oracles[row] = oracles[row].step(letter)
        expected.append(status)
    found.read_(torch.tensor(texts, dtype=torch.int32, device=found.tables.device))
    assert found.status.tolist() == expected


def some_text(random: Random, oracle: BinaryChart, many: int) -> list[int]:
    """Letters, of which most may come."""
    text: list[int] = []
    for _ in range(many):
        choices = [*oracle.next_letters() * 8, idle, -1, oracle.grammar.num_letters]
        text.append(random.choice(choices))
        if text[-1] in oracle.next_letters():
            oracle = oracle.step(text[-1])
    return text
