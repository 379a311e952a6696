"""Imports between the modules of the package, and of the Rust core: they run one way."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest
import tokfold
from support import processes
from support.imports import PACKAGE, circles, module_graph
from support.rust_modules import CORE, PYTHON, STORE, file_graph, folder_graph


def test_there_is_no_circle() -> None:
    assert [sorted(circle) for circle in circles(module_graph())] == []


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


BELOW = {"apart", "budget", "error", "graph", "hash", "ids", "limits"}
"""What stands below everything in the core."""


def test_folders_of_the_core_use_each_other_one_way() -> None:
    graph = folder_graph()
    assert circles(graph) == []
    assert all(graph[name] <= BELOW for name in BELOW)
    assert graph["compile"] >= {"engine", "network"}  # else nothing was read


def design_table(page: str) -> dict[str, set[str]]:
    """What DESIGN.md says that each folder of the core uses: ``one, other -> used, used``."""
    block = page.split("Dependencies run one way.")[1].split("```")[1]
    table: dict[str, set[str]] = {}
    for line in block.strip().splitlines():
        users, _, used = line.partition(" -> ")
        for user in users.split(", "):
            assert user not in table, f"{user} has two lines"
            table[user] = set() if used == "(nothing)" else set(used.split(", "))
    return table


def test_the_design_says_which_folders_use_which() -> None:
    page = (CORE.parents[2] / "DESIGN.md").read_text(encoding="utf-8")
    used = {name: uses - BELOW for name, uses in folder_graph().items() if name not in BELOW}
    assert design_table(page) == used


def test_files_of_the_engine_use_each_other_one_way() -> None:
    graph = file_graph(CORE / "engine")
    assert circles(graph) == []
    assert graph["matcher"] >= {"history", "mask", "stop"}
    assert graph["mask"] >= {"history", "lock"}


@pytest.mark.parametrize(
    ("room", "file", "used"),
    [
        ("mask", "answers", {"trie_walk", "query", "uncached"}),
        ("matcher", "fill", set[str]()),
    ],
)
def test_files_of_a_room_use_each_other_one_way(room: str, file: str, used: set[str]) -> None:
    graph = file_graph(CORE / "engine" / room)
    assert circles(graph) == []
    assert graph[file] >= used


def test_files_of_a_folder_of_a_crate_use_each_other_one_way() -> None:
    crates = (CORE, PYTHON, STORE)
    within = [path for crate in crates for path in crate.rglob("*") if path.is_dir()]
    folders = [PYTHON, STORE, *within]
    assert len(folders) > 30
    assert [circle for folder in folders for circle in circles(file_graph(folder))] == []


@pytest.mark.parametrize(
    "back",
    ["use crate::core::one::Name;", "use super::{lock, one::Name};", "fn f() -> super::one::N {}"],
)
def test_circles_of_rust_are_found(tmp_path: Path, back: str) -> None:
    folder = tmp_path / "core"
    (folder / "two").mkdir(parents=True)
    for file, text in (
        ("mod.rs", "mod one;\nuse one::Name;\n"),
        ("lock.rs", "// use super::one;\n"),
        ("one.rs", "use super::two::Other;\n#[cfg(test)]\nmod tests {\n    use super::lock;\n}\n"),
        ("two/mod.rs", f"{back}\n"),
        ("two/tests.rs", "use crate::core::lock;\n"),
    ):
        (folder / file).write_text(text)
    graph = file_graph(folder)
    assert graph["one"] == {"two"}
    assert graph["two"] <= {"lock", "one"}
    assert circles(graph) == [{"one", "two"}]


def test_only_leaves_import_optional_packages() -> None:
    page = (CORE.parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    leaves = re.findall(r"`(\w+)`", page.split("documented. Only ")[1].split(" import optional")[0])
    assert "xgrammar" in leaves
    assert "engine" not in leaves
    known = {*sys.stdlib_module_names, "numpy", "tokfold"}
    found = {}
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        names = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
        names |= {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)}
        found[part] = found.get(part, set()) | {name.partition(".")[0] for name in names} - known
    assert {part for part, names in found.items() if names} == {*leaves}


def imported_by_init() -> dict[str, str]:
    """Where the names of the package are, as type checkers read it."""
    tree = ast.parse(Path(tokfold.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    out: dict[str, str] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.module is not None
        assert not any(name.asname for name in node.names)
        out |= {name.name: node.module.removeprefix("tokfold.") for name in node.names}
    return out


def test_names_are_where_type_checkers_look_for_them() -> None:
    assert imported_by_init() == tokfold._PLACES
    assert sorted(tokfold._PLACES) == sorted(tokfold.__all__)
    assert {*tokfold.__all__, *tokfold._MODULES, "matcher", "__version__"} <= {*dir(tokfold)}
    assert {"TYPE_CHECKING", "importlib", "sys"}.isdisjoint(dir(tokfold))
    for name, module in tokfold._PLACES.items():
        found = getattr(tokfold, name)
        assert found is getattr(importlib.import_module(f"tokfold.{module}"), name)
        assert getattr(tokfold, module) is importlib.import_module(f"tokfold.{module}")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tokfold.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("code", "unused"),
    [
        ("import tokfold", ["numpy", "tokfold.grammar"]),
        ("import tokfold; tokfold.errors.TokfoldError", ["numpy", "tokfold.grammar"]),
        ("from tokfold import Grammar; Grammar.from_json_schema({})", ["numpy"]),
        ("import tokfold.cli, tokfold.cli.commands", ["numpy", "tokfold.grammar", "typer"]),
        ("from tokfold import *; compile, Matcher", ["torch", "transformers", "xgrammar"]),
    ],
)
def test_a_name_imports_what_it_needs(code: str, unused: list[str]) -> None:
    look = f"{code}\nimport sys\nprint([name for name in {unused} if name in sys.modules])"
    result = processes.run([sys.executable, "-c", look])
    assert (result.stdout, result.stderr) == ("[]\n", "")
