"""CONTRIBUTING.md answers its questions: the files that it names exist, with the names in them.

The design pages are what it says of them: short, listed in DESIGN.md, and named by the code. Every
folder of modules has a map.
"""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

from tokfold.cli.commands import COMMANDS, LABORATORY

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "rust" / "core" / "src"
STORE = ROOT / "rust" / "mask_store" / "src"
MOST_LINES = 400
"""Of a design page."""
PAGE = re.compile(r"docs/design/([\w-]+)\.md(?:, \"([^\"]+)\")?")
"""How code names a page, with a heading of it or without."""
WITHOUT_PAGE: tuple[str, ...] = ()
"""Folders of the core, but for those of tests, whose ``mod.rs`` names no design page."""


def test_places_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("## Where is ...?\n")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 42
    recipes = text.split("## Recipes\n")[1].split("\n## ")[0]
    assert recipes.count("\n**") >= 10
    named = re.findall(r"`((?:rust|python|tests|docs|examples)[/\w.-]*/[\w.-]+)`", table + recipes)
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert all(re.search(r"`(rust|python|tests)/", row) for row in rows)
    for row in rows:  # a bare file stands beside the one before it; a name stands in one of them
        files = re.findall(r"`((?:rust|python|tests)/[\w/.-]+)`", row)
        folder = (ROOT / files[0]).parent
        bare = re.findall(r"`(\w+\.rs)`", row)
        assert [name for name in bare if not (folder / name).exists()] == []
        sources = "".join(
            path.read_text(encoding="utf-8")
            for path in [*(ROOT / file for file in files), *(folder / name for name in bare)]
            if path.is_file()
        )
        for name in re.findall(r"`(?:\w+::)?(\w+)`", row.split("|")[2]):
            assert re.search(rf"\b{name}\b", sources), name


def test_every_folder_of_tests_is_described() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`tests/(\w+)", text.split("## Tests\n")[1].split("\n## ")[0]))
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert {name for name in folders if name[0] not in "_."} <= named


def design_pages(root: Path) -> list[Path]:
    return [root / "DESIGN.md", *sorted((root / "docs" / "design").rglob("*.md"))]


def long_pages(root: Path) -> list[str]:
    pages = {page.name: page.read_text(encoding="utf-8") for page in design_pages(root)}
    return [name for name, text in pages.items() if len(text.splitlines()) > MOST_LINES]


def unlisted_pages(root: Path) -> list[str]:
    text = (root / "DESIGN.md").read_text(encoding="utf-8")
    names = [page.relative_to(root).as_posix() for page in design_pages(root)[1:]]
    return [name for name in names if f"]({name}): " not in text]


def comment_of(module: str) -> str:
    """What stands at the head of a module of Rust, on one line."""
    lines = itertools.takewhile(lambda line: line.startswith("//!"), module.splitlines())
    return " ".join(line.removeprefix("//!").strip() for line in lines)


def test_no_design_page_is_long() -> None:
    assert len(design_pages(ROOT)) > 20
    assert long_pages(ROOT) == []


def test_the_design_lists_every_page() -> None:
    assert unlisted_pages(ROOT) == []


def test_long_and_unlisted_pages_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "docs" / "design").mkdir(parents=True)
    (tmp_path / "DESIGN.md").write_text("- [A](docs/design/a.md): a page.\n", encoding="utf-8")
    (tmp_path / "docs" / "design" / "a.md").write_text("a\n" * MOST_LINES, encoding="utf-8")
    (tmp_path / "docs" / "design" / "b.md").write_text("b\n" * (MOST_LINES + 1), encoding="utf-8")
    assert long_pages(tmp_path) == ["b.md"]
    assert unlisted_pages(tmp_path) == ["docs/design/b.md"]


def test_every_folder_of_the_core_names_its_design_page() -> None:
    crates = [*sorted(CORE.rglob("mod.rs")), *sorted(STORE.rglob("mod.rs")), STORE / "lib.rs"]
    modules = [path for path in crates if path.parent.name != "tests"]
    assert len(modules) > 20
    nameless = [
        path.parent.relative_to(CORE if path.is_relative_to(CORE) else STORE).as_posix()
        for path in modules
        if not re.search(rf"Design: {PAGE.pattern}", comment_of(path.read_text(encoding="utf-8")))
    ]
    assert sorted(nameless) == sorted(WITHOUT_PAGE)
    assert "Design: docs" not in comment_of("//! A folder.\n\n// Design: docs/design/a.md.\n")


def test_design_pages_that_code_names_exist() -> None:
    headings = {
        page.stem: set(re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE))
        for page in design_pages(ROOT)
    }
    sources = [
        path
        for folder in ("rust/core", "rust/mask_store", "rust/python", "python", "tests", "benches")
        for pattern in ("*.rs", "*.py")
        for path in sorted((ROOT / folder).rglob(pattern))
        if path != Path(__file__).resolve()
    ]
    named = [
        (path.relative_to(ROOT).as_posix(), page, heading)
        for path in sources
        for page, heading in PAGE.findall(
            re.sub(r"\s*\n\s*(?:(?://[/!]?|#) *)?", " ", path.read_text(encoding="utf-8"))
        )
    ]
    assert len({page for _, page, _ in named}) > 15
    missing = [
        where
        for where in named
        if where[1] not in headings or (where[2] and where[2] not in headings[where[1]])
    ]
    assert missing == []


# ------------------------------------------------------------------------- maps

NO_MODULES = {"tests", "data", "metaschemas"}
"""Folders of a folder that are no modules of it."""


def maps() -> dict[str, tuple[str, set[str]]]:
    """For each folder of modules: the comment at the head of its map, and its modules."""
    found = {}
    for source in (CORE, STORE, ROOT / "rust" / "python" / "src"):
        for path in source.rglob("*.rs"):
            folder = path.parent if path.name in ("mod.rs", "lib.rs") else path.with_suffix("")
            if folder.is_dir() and not NO_MODULES & {path.stem, *folder.relative_to(source).parts}:
                modules = {other.stem for other in folder.iterdir() if other.suffix in ("", ".rs")}
                modules = {name for name in modules if not name.endswith("tests")}
                head = comment_of(path.read_text(encoding="utf-8"))
                found[path.relative_to(ROOT).as_posix()] = head, modules - {"mod", "lib"}
    for path in (ROOT / "python" / "tokfold").rglob("__init__.py"):
        modules = {other.stem for other in path.parent.glob("*.py") if other.stem[:2] != "__"}
        modules |= {other.parent.name for other in path.parent.glob("*/__init__.py")}
        head = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.relative_to(ROOT).as_posix()] = head, modules
    return found


def unmapped(head: str, modules: set[str]) -> list[str]:
    return sorted(name for name in modules - NO_MODULES if not re.search(rf"\b{name}\b", head))


def test_every_folder_has_a_map() -> None:
    """The comment at the head of each ``mod.rs`` and package names every file of its folder."""
    found = maps()
    assert len(found) > 60
    missing = {path: unmapped(head, modules) for path, (head, modules) in found.items()}
    # A command is the module of its name.
    missing["python/tokfold/cli/__init__.py"] = [
        name
        for name in missing["python/tokfold/cli/__init__.py"]
        if name not in {**COMMANDS, **LABORATORY}
    ]
    assert {path: names for path, names in missing.items() if names} == {}
    assert unmapped("- `one`: a file", {"one", "two"}) == ["two"]
