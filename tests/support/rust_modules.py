"""Which module of the Rust core uses which, told by the text: `use`, and paths in the code."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from support.imports import Graph

CORE: Final = Path(__file__).parents[2] / "rust" / "core" / "src"
STORE: Final = Path(__file__).parents[2] / "rust" / "mask_store" / "src"
PYTHON: Final = Path(__file__).parents[2] / "rust" / "python" / "src"


def folder_graph(core: Path = CORE) -> Graph:
    """What each folder, or file beside ``lib.rs``, uses of the others; its tests are left out."""
    return _graph(core, lambda text: _heads(text, "crate"))


def file_graph(folder: Path) -> Graph:
    """What each file of a folder uses of the others there; ``mod.rs``, which has all, stays out."""
    crate = next(
        (crate for crate in (CORE, STORE, PYTHON) if folder.is_relative_to(crate)), folder.parent
    )
    inside = rf"(?:{'::'.join(('crate', *folder.relative_to(crate).parts))}|super)"
    return _graph(folder, lambda text: _heads(text, inside))


def _graph(folder: Path, used: Callable[[str], set[str]]) -> Graph:
    names = {_name(path, folder) for path in _sources(folder)}
    graph: Graph = {name: set() for name in names}
    for path in _sources(folder):
        name = _name(path, folder)
        graph[name] |= {other for other in used(_code(path)) if other in names} - {name}
    return graph


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.rs")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts not in (("lib",), ("mod",)) and not any("tests" in part for part in parts):
            yield path


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).parts[0].removesuffix(".rs")


def _code(path: Path) -> str:
    """The text without comments and without the tests at its end."""
    text = path.read_text(encoding="utf-8").partition("#[cfg(test)]\nmod tests {")[0]
    return re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


def _heads(text: str, before: str) -> set[str]:
    """The first names of paths: of ``crate::a::b`` it is a, of ``crate::{a::c, b}`` a and b."""
    found: set[str] = set()
    for one, several in re.findall(rf"\b{before}::(?:(\w+)|\{{([^;]*)\}};)", text):
        found |= {one} if one else set(re.findall(r"(?:^|[,{])\s*(\w+)", several))
    return found
