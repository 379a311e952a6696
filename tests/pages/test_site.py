"""The site has every page and every public name; building it is another matter (``make docs``)."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import tokfold

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_of_docs", DOCS / "build_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_has_every_public_name(site: ModuleType) -> None:
    listed = [name for names in site.reference().values() for name in names]
    assert len(listed) == len(set(listed))
    assert {f"tokfold.{name}" for name in tokfold.__all__} <= set(listed)


def test_the_navigation_has_every_page(site: ModuleType, tmp_path: Path) -> None:
    text = site.stage(tmp_path).read_text(encoding="utf-8")
    assert "@" not in text.replace("@media", "")
    named = re.findall(r"[\w/.-]+\.md", text.split("\nnav:\n")[1])
    pages = tmp_path / "pages"
    there = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    assert sorted(named) == sorted(there)
