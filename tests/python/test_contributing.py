"""CONTRIBUTING.md answers its questions: the files that it names exist, with the names in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_places_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("## Where is ...?\n")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 25
    recipes = text.split("## Recipes\n")[1].split("\n## ")[0]
    assert recipes.count("\n**") == 5
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
