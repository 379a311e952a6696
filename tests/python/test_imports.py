"""Imports between the modules of the package: they run one way."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.imports import circles, module_graph

ALLOWED = [
    # A grammar is made of a structural tag, and tags are written as grammars.
    {"tokfold.grammar", "tokfold.structural_tags"},
]
"""The circles that there may be, each by the modules and packages that stand in it."""


def test_no_circle_is_new() -> None:
    for circle in circles(module_graph()):
        assert any(_in(circle, allowed) for allowed in ALLOWED), sorted(circle)


def test_each_circle_that_is_allowed_is_there() -> None:
    found = circles(module_graph())
    for allowed in ALLOWED:
        assert any(_in(circle, allowed) for circle in found), sorted(allowed)


def _in(circle: set[str], allowed: set[str]) -> bool:
    return all(any(f"{name}.".startswith(f"{one}.") for one in allowed) for name in circle)


@pytest.mark.parametrize(
    "back",
    [
        "from package.inner import one\n",
        "def function():\n    import package.inner.one\n",
        "if TYPE_CHECKING:\n    from package.inner.one import Name\n",
    ],
)
def test_circles_are_found(tmp_path: Path, back: str) -> None:
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    for file, text in (
        (inner.parent / "__init__.py", "import os\nfrom package.outer import f\n"),
        (inner.parent / "outer.py", "from package.inner import name\n"),
        (inner / "__init__.py", ""),
        (inner / "one.py", "from package.inner import two\n"),
        (inner / "two.py", back),
    ):
        file.write_text(text)
    graph = module_graph(inner.parent)
    assert graph["package"] == {"package.outer"}
    assert graph["package.outer"] == {"package.inner"}
    assert circles(graph) == [{"package.inner.one", "package.inner.two"}]
