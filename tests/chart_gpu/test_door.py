"""``compile(engine="chart-gpu")`` where there is no device: a warning that says so, or an error."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest
import tokfold
from support import processes

ROOT = Path(__file__).resolve().parents[2]
GRAMMAR = tokfold.Grammar.from_ebnf('root ::= root root | "a"')
VOCABULARY = tokfold.Vocabulary([b"a", b"aa"])


def compiled(**options) -> tokfold.CompiledGrammar:
    return tokfold.compile(
        GRAMMAR, VOCABULARY, classes="never", engine="chart-gpu", check_tokens=False, **options
    )


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter is there")
class TestWithoutADevice:
    @pytest.fixture(autouse=True)
    def _no_device(self, monkeypatch):
        torch = pytest.importorskip("torch", minversion="2.4")
        pytest.importorskip("triton")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def test_a_warning_and_the_cpu(self):
        with pytest.warns(tokfold.FallbackWarning, match="there is no GPU that torch can use"):
            found = compiled()
        assert found.device is None
        matcher = tokfold.Matcher(found)
        assert type(matcher) is tokfold.Matcher
        assert matcher.accept_bytes(b"aaa")

    def test_a_device_that_was_named_must_be_there(self):
        with pytest.raises(tokfold.DeviceError, match='not on "cpu"') as caught:
            compiled(device="cpu")
        assert caught.value.reason == "missing"
        with pytest.raises(tokfold.DeviceError, match="the device cuda:9 cannot be used"):
            compiled(device="cuda:9")


@pytest.mark.parametrize("module", ["torch", "triton"])
def test_without_what_drives_a_device(module):
    """In a process of its own, where the module cannot be imported."""
    code = f"""
    import sys, warnings
    sys.modules[{module!r}] = None
    import tokfold
    from tokfold.chart_gpu import BinaryGrammar
    grammar = tokfold.Grammar.from_ebnf('root ::= root root | "a"')
    vocabulary = tokfold.Vocabulary([b"a"])
    assert BinaryGrammar.of(grammar).num_symbols == 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = tokfold.compile(
            grammar, vocabulary, classes="never", engine="chart-gpu", check_tokens=False
        )
    assert made.device is None
    print(caught[0].category.__name__, caught[0].message)
    try:
        tokfold.compile(grammar, vocabulary, classes="never", engine="chart-gpu", device="cuda")
    except tokfold.MissingExtraError as error:
        print(error)
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parents[1])}
    result = processes.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, check=True
    )
    warned, raised = result.stdout.splitlines()
    assert warned.startswith("FallbackWarning")
    assert f"needs the package '{module}', which is not installed" in warned
    assert warned.endswith('the charts are on the CPU, as with engine="chart"')
    assert "needs the package" in raised


def test_nothing_but_numpy_is_imported():
    code = """
    import sys, tokfold, tokfold.chart_gpu
    assert not {"torch", "triton"} & set(sys.modules)
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parents[1])}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    processes.run(command, env=environment, check=True, text=False)


def test_misuse():
    with pytest.raises(ValueError, match="device is for engine=\"chart-gpu\", not for 'auto'"):
        tokfold.compile(GRAMMAR, VOCABULARY, device="cuda")
    with pytest.raises(ValueError, match="alphabet is for engine=\"chart-gpu\", not for 'stack'"):
        tokfold.compile(GRAMMAR, VOCABULARY, engine="stack", alphabet="terminals")
    with pytest.raises(ValueError, match='alphabet must be "bytes" or "terminals", not \'words\''):
        compiled(alphabet="words")
    with pytest.raises(ValueError, match='"chart" or "chart-gpu", not \'gpu\''):
        tokfold.compile(GRAMMAR, VOCABULARY, engine="gpu")
    with pytest.raises(AttributeError, match="no attribute 'Chart'"):
        tokfold.chart_gpu.Chart  # noqa: B018
