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
from tokfold.chart_gpu import BinaryGrammar, Charts, Tables

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Triton asks when it is imported, once for a process: see test_interpreter.py."""

DEVICE = "cpu" if INTERPRETED else "cuda"

needs_device = pytest.mark.skipif(
    not INTERPRETED and not torch.cuda.is_available(),
    reason="there is no GPU, and Triton does not interpret: see test_interpreter.py",
)


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


def charts_of(binary: BinaryGrammar, rows: int, columns: int, **options) -> Charts:
    return Charts(Tables(binary, DEVICE), rows, columns, **options)


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
