"""``DeviceGrammar`` where there is no device: an error that says what is missing."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest
import tokfold
import tokfold.chart_gpu
from strategies.engine import compiled_with
from support import processes

ROOT = Path(__file__).resolve().parents[2]
GRAMMAR = tokfold.Grammar.from_ebnf('root ::= root root | "a"')


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter is there")
class TestWithoutADevice:
    @pytest.fixture(autouse=True)
    def _no_device(self, monkeypatch):
        torch = pytest.importorskip("torch", minversion="2.4")
        pytest.importorskip("triton")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def test_no_device(self):
        with pytest.raises(tokfold.DeviceError, match="there is no GPU that torch can use") as told:
            tokfold.chart_gpu.DeviceGrammar(GRAMMAR)
        assert told.value.reason == "missing"

    def test_a_device_that_is_named(self):
        with pytest.raises(tokfold.DeviceError, match='not on "cpu"') as caught:
            tokfold.chart_gpu.DeviceGrammar(GRAMMAR, device="cpu")
        assert caught.value.reason == "missing"
        with pytest.raises(tokfold.DeviceError, match="the device cuda:9 cannot be used"):
            tokfold.chart_gpu.DeviceGrammar(GRAMMAR, device="cuda:9")


@pytest.mark.parametrize("module", ["torch", "triton"])
def test_without_what_drives_a_device(module):
    """In a process of its own, where the module cannot be imported."""
    code = f"""
    import sys
    sys.modules[{module!r}] = None
    import tokfold
    from tokfold import chart_gpu
    grammar = tokfold.Grammar.from_ebnf('root ::= root root | "a"')
    assert chart_gpu.BinaryGrammar.of(grammar).num_symbols == 1
    for name in ("DeviceGrammar", "DeviceMatcher"):
        try:
            getattr(chart_gpu, name)
        except tokfold.MissingExtraError as error:
            print(error)
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parents[1])}
    result = processes.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, check=True
    )
    for name, line in zip(
        ("DeviceGrammar", "DeviceMatcher"), result.stdout.splitlines(), strict=True
    ):
        assert line.startswith(f"tokfold.chart_gpu.{name}")
        assert f"needs the package '{module}', which is not installed" in line


def test_nothing_but_numpy_is_imported():
    code = """
    import sys, tokfold, tokfold.chart_gpu
    assert not {"torch", "triton"} & set(sys.modules)
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parents[1])}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    processes.run(command, env=environment, check=True, text=False)


def test_misuse():
    with pytest.raises(ValueError, match='"auto", "stack" or "chart", not \'chart-gpu\''):
        compiled_with(GRAMMAR, tokfold.Vocabulary([b"a"]), engine="chart-gpu")
    with pytest.raises(AttributeError, match="no attribute 'Chart'"):
        tokfold.chart_gpu.Chart  # noqa: B018
    pytest.importorskip("torch", minversion="2.4")
    pytest.importorskip("triton")
    with pytest.raises(ValueError, match='alphabet must be "bytes" or "terminals", not \'words\''):
        tokfold.chart_gpu.DeviceGrammar(GRAMMAR, alphabet="words")
