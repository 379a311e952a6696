"""Every example of a docstring prints what it shows, and every public name has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import warnings
from types import ModuleType

import pytest
import tokfold

FLAGS = doctest.ELLIPSIS
FINDER = doctest.DocTestFinder()


def modules() -> list[str]:
    found = pkgutil.walk_packages(tokfold.__path__, "tokfold.", onerror=lambda _: None)
    return sorted(module.name for module in found if not module.name.endswith("__main__"))


def imported(name: str) -> ModuleType:
    """A module, where what it needs is there."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name}: {error}")


@pytest.mark.parametrize("name", modules())
def test_examples_print_what_they_show(name: str) -> None:
    module = imported(name)
    for test in FINDER.find(module, name, module, extraglobs={"tokfold": tokfold}):
        if "chart_gpu" in test.docstring:
            pytest.importorskip("torch", minversion="2.4")
            pytest.importorskip("triton")
        said: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
        assert not said, "".join(said)


@pytest.mark.parametrize("name", tokfold.__all__)
def test_public_names_have_an_example(name: str) -> None:
    doc = getattr(tokfold, name).__doc__ or ""
    examples = [e for e in doctest.DocTestParser().get_examples(doc) if not e.options]
    assert examples, f"{name} has no example that runs"
