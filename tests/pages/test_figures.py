"""Figures of the pages are those that a benchmark kept in ``benches/results``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    path = ROOT / "benches" / "python" / "page_tables.py"
    spec = importlib.util.spec_from_file_location("page_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def report(tables: ModuleType) -> dict[str, Any]:
    return tables.newest()


def test_the_figure_of_the_readme_is_what_was_measured(
    tables: ModuleType, report: dict[str, Any]
) -> None:
    assert tables.headline(report) in README
    assert f"{report['machine']['processor']}, {report['date']}" in README


def test_one_run_measured_all_engines(report: dict[str, Any]) -> None:
    assert {"tokfold never", "xgrammar", "llguidance"} <= set(report["engines"])


def test_the_page_of_benchmarks_has_the_rest(tables: ModuleType, report: dict[str, Any]) -> None:
    assert tables.details(report) in BENCHMARKS
    assert report["date"] in BENCHMARKS
    assert f"{report['machine']['cores']} cores" in BENCHMARKS
    for package, version in report["versions"].items():
        assert f"{package} {version}" in BENCHMARKS


def test_the_schemas_are_unseen(report: dict[str, Any]) -> None:
    """They belong to the third of the corpus that nothing is tuned on."""
    assert report["held_back"] == "only"
    assert report["schemas"] == 300


def test_the_comparison_is_with_the_versions_that_were_measured(report: dict[str, Any]) -> None:
    section = README.split("## Beside other libraries\n")[1].split("\n## ")[0]
    for package, name in (("xgrammar", "XGrammar"), ("llguidance", "llguidance")):
        assert f"| {name} {report['versions'][package]} |" in section
