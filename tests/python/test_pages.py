"""``docs/json-schema.md``, ``docs/regular-expressions.md`` and ``docs/lark.md`` are true.

Every example prints what stands below it, and every link leads somewhere.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {"json-schema": 9, "regular-expressions": 8, "lark": 7}
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
