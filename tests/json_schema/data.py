"""The two collections that these tests read; the project holds no copy of them.

``TOKFOLD_JSON_SCHEMA_SUITE`` names a folder of the official test suite (``tests``, ``remotes``),
``TOKFOLD_MASKBENCH`` a folder of MaskBench's files. Without them the folders
``json-schema-suite`` and ``maskbench`` of ``shared``, beside the checkout, serve.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUITE = "TOKFOLD_JSON_SCHEMA_SUITE"
MASKBENCH = "TOKFOLD_MASKBENCH"
SHARED = Path(__file__).resolve().parents[3] / "shared"
REMOTES = "http://localhost:1234/"
"""Where the official suite says that its ``remotes`` are."""


def _folder(variable: str, name: str) -> Path | None:
    path = Path(os.environ.get(variable) or SHARED / name)
    return path if path.is_dir() else None


def suite() -> Path | None:
    """The folder of the official suite, if there is one."""
    return _folder(SUITE, "json-schema-suite")


def maskbench() -> Path | None:
    """The folder of MaskBench's files, if there is one."""
    return _folder(MASKBENCH, "maskbench")


@dataclass(frozen=True)
class Instance:
    """A value that a schema allows, or does not."""

    description: str
    value: Any
    valid: bool


@dataclass(frozen=True)
class Group:
    """A schema and its instances."""

    name: str
    schema: Any
    instances: tuple[Instance, ...]


def suite_files(folder: Path, draft: str, part: str) -> Iterator[tuple[str, list[Group]]]:
    """The files of a part of a draft: their names and groups.

    Args:
        folder: of the suite.
        draft: ``draft4`` to ``draft2020-12``.
        part: ``required``, ``optional`` or ``format``.
    """
    where = {"required": "", "optional": "optional", "format": "optional/format"}[part]
    for path in sorted((folder / "tests" / draft / where).glob("*.json")):
        names: dict[str, int] = {}
        groups = []
        for group in json.loads(path.read_text(encoding="utf-8")):
            name = group["description"]
            names[name] = names.get(name, 0) + 1
            if names[name] > 1:
                name = f"{name} ({names[name]})"
            groups.append(Group(name, group["schema"], _instances(group["tests"])))
        yield path.name, groups


def remotes(folder: Path) -> dict[str, Any]:
    """The documents that the suite refers to, by their URI."""
    root = folder / "remotes"
    return {
        REMOTES + path.relative_to(root).as_posix(): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.json"))
        if path.relative_to(root).parts[0] not in ("draft3", "v1")
    }


def _instances(tests: list[Any]) -> tuple[Instance, ...]:
    return tuple(Instance(t.get("description", ""), t["data"], t["valid"]) for t in tests)


THIRDS = 3
HELD_BACK = 0
"""The third of MaskBench that nothing is tuned on."""


def third(name: str) -> int:
    """Which third of MaskBench a schema belongs to; the same for ever."""
    return hashlib.sha256(name.encode()).digest()[0] % THIRDS


def maskbench_names(folder: Path) -> list[str]:
    """The names of all schemas, sorted."""
    return sorted(path.stem for path in folder.glob("*.json"))


def maskbench_group(folder: Path, name: str) -> Group:
    """One schema of MaskBench."""
    document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return Group(name, document["schema"], _instances(document["tests"]))
