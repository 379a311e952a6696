"""Which module of the package imports which, and the circles of that."""

import ast
from collections.abc import Container
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[2] / "python" / "tokfold"

Graph = dict[str, set[str]]


def module_graph(package: Path = PACKAGE) -> Graph:
    """The modules that each module imports: at once, in a function, or for types alone."""
    found = [*package.rglob("*.py"), *package.rglob("*.pyi")]
    files = {_name_of(path, package): path for path in sorted(found)}
    return {name: _imported(path, files.keys()) - {name} for name, path in files.items()}


def circles(graph: Graph) -> list[set[str]]:
    """The strongly connected components of more than one module, in the order of their names."""
    reached = {name: _reached_from(name, graph) for name in graph}
    found = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }
    return sorted((set(circle) for circle in found), key=sorted)


def _name_of(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, modules: Container[str]) -> set[str]:
    """The modules that a text imports: ``from a import b`` may mean ``a.b``, or else ``a``."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            module = node.module or ""
            inner = (f"{module}.{alias.name}" for alias in node.names)
            named |= {name if name in modules else module for name in inner}
    return {name for name in named if name in modules}


def _reached_from(name: str, graph: Graph) -> set[str]:
    """What the imports of a module lead to; the module itself only where they lead back."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting.extend(new)
    return reached
