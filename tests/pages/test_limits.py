"""The page of limits has each that an error can name, with its value."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import tokfold

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
TABLED = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+|none) \|", PAGE, re.MULTILINE))
ELSEWHERE = {"max_lexer_states", "max_walk_work", "max_multiple"}
"""Fields of LexerLimits; what the converter tells as a schema that it cannot read."""


def test_each_field_with_its_default() -> None:
    found = {name: value for name, value in TABLED.items() if hasattr(tokfold.Limits(), name)}
    assert found == {
        field.name: "none" if field.default is None else f"{field.default:,}"
        for field in fields(tokfold.Limits)
    }


def test_each_limit_that_the_core_names() -> None:
    named: set[str] = set()
    for path in (ROOT / "rust" / "core" / "src").rglob("*.rs"):
        if not {"laboratory", "tests"} & set(path.parts):
            named |= set(re.findall(r'\blimit(?:: |\()"(max_\w+)"', path.read_text()))
    assert len(named) > 15
    assert named - TABLED.keys() - ELSEWHERE == set()
