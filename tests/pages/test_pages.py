"""The pages of ``docs`` with examples that print are true.

Every example prints what stands below it, and every link leads somewhere.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support import processes

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {
    "ending-in-time": 4,
    "from-llama-cpp": 1,
    "from-llguidance": 1,
    "from-outlines": 1,
    "json-schema": 18,
    "lark": 11,
    "masked": 6,
    "names": 1,
    "operations": 2,
    "regular-expressions": 9,
}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("name", "examples"), PAGES.items())
def test_examples(name: str, examples: int) -> None:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    if "pydantic import" in text:
        pytest.importorskip("pydantic")
    pairs = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(pairs) == text.count("```python\n") == examples
    names: dict[str, object] = {"__name__": "page"}
    for code, printed in pairs:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            # Models need their annotations as values.
            exec(compile(code, name, "exec", dont_inherit=True), names)
        assert out.getvalue() == printed


def test_check_prints_what_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("pydantic")
    pytest.importorskip("typer")
    text = (DOCS / "json-schema.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```console\n\$ tokfold (check .*?)\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    model = text.split("```python\n")[1].split("\n\ngrammar =")[0]
    exec(compile(model, "json-schema", "exec", dont_inherit=True), names)
    schema = names["Person"].model_json_schema()
    (tmp_path / "person.json").write_text(json.dumps(schema), encoding="utf-8")
    answer = {"name": "Ada", "born": "1815-12-10", "children": 21}
    (tmp_path / "answer.json").write_text(json.dumps(answer, indent=2) + "\n", encoding="utf-8")
    result = processes.run(
        [sys.executable, "-m", "tokfold.cli", *shown[0].split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(DOCS.parent / "python"), "PYTHONUTF8": "1"},
    )
    assert result.returncode == 1, result.stderr
    printed = "".join(f"{line.rstrip()}\n" for line in result.stdout.splitlines())
    assert printed == shown[1]


def anchors(page: Path) -> set[str]:
    headings = re.findall(
        r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links(name: str) -> None:
    page = DOCS / f"{name}.md"
    links = re.findall(r"\]\(([^)]+)\)", FENCE.sub("", page.read_text(encoding="utf-8")))
    for link in links:
        if "://" not in link:
            file, _, anchor = link.partition("#")
            target = DOCS / file if file else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link
