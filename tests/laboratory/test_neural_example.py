"""The worked example does what it says, and the page is true."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(ROOT / "examples" / "laboratory" / "grammar_conditioned.py"))


def test_a_model_that_is_told_keeps_more_of_its_mass(example):
    """Both learn as long from the same beginning; each text sampled was recognized on the way."""
    with contextlib.redirect_stdout(io.StringIO()):
        results = example["main"](steps=60, count=10, names=("plain", "both told"), size=10)
    plain, told = results["plain"], results["both told"]
    assert told["mass"] > plain["mass"] + 0.01
    assert told["behind mask"] < plain["behind mask"]
    for found in results.values():
        assert found["ended"] > 0
        assert found["behind mask"] <= found["loss"] + 1e-4
        assert 0 <= found["least mass"] <= found["mass"] <= 1
        assert found["kl"] >= -1e-4 or found["ended"] < 10  # Jensen


def test_seeds_decide_everything(example):
    with contextlib.redirect_stdout(io.StringIO()):
        one, other = (
            example["main"](steps=5, count=5, names=("both told",), size=3) for _ in range(2)
        )
    assert one == other


def test_the_page_is_true():
    page = (ROOT / "docs" / "laboratory" / "neural.md").read_text(encoding="utf-8")
    pairs = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert len(pairs) == 3
    names: dict[str, object] = {}
    for code, printed in pairs:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == printed
