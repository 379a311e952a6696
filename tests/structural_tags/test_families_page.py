"""``docs/model-families.md`` has one row for each family, and what it says is in the table."""

from __future__ import annotations

import re
from pathlib import Path

from tokfold.structural_tags import families
from tokfold.structural_tags.family import Family
from tokfold.structural_tags.family_table import ALIASES, FAMILIES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "model-families.md"


def code(text: str) -> str:
    """A text in a cell of a table."""
    return f"`{text}`".replace("\n", "\\n").replace("|", "\\|")


def begins_with(name: str) -> tuple[str, str]:
    """How a prompt ends that ``reasoning="enabled"`` fits, and what the output begins with."""
    family = FAMILIES[name]
    if not isinstance(family, Family):
        return "the assistant's header", code(family.reasoning)
    if family.reasoning is None:
        return "the assistant's header", "the answer"
    if family.reasoning.in_prompt:
        return code(family.reasoning.begin), "the reasoning"
    return "the assistant's header", code(family.reasoning.begin)


def call(name: str) -> str:
    family = FAMILIES[name]
    found = family.call if isinstance(family, Family) else family.function_calls[0]
    begin = found.begin.replace("{json_name}", "f").replace("{name}", "f").replace("{number}", "0")
    return code(f"{begin}...{found.end}")


def rows(title: str) -> list[list[str]]:
    """The cells of the table below a title, from the rows that begin with code."""
    text = PAGE.read_text(encoding="utf-8")
    (section,) = (part for part in re.split(r"(?m)^(?=#)", text) if part.startswith(title + "\n"))
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    cells = [line.replace("\\|", "\0").strip("| ").split("|") for line in lines]
    return [[cell.strip().replace("\0", "\\|") for cell in line] for line in cells]


def test_the_page_has_every_family() -> None:
    found = {cells[0].strip("`"): tuple(cells[2:5]) for cells in rows("# Model families")}
    assert list(found) == families()
    assert found == {name: (*begins_with(name), call(name)) for name in families()}


def test_the_page_has_what_arguments_never_hold() -> None:
    found = {cells[0].strip("`"): cells[1] for cells in rows("## What arguments never hold")}
    expected = {}
    for name in families():
        family = FAMILIES[name]
        call = family.call if isinstance(family, Family) else family.function_calls[0]
        if call.cuts:
            expected[name] = ", ".join(map(code, call.cuts))
    assert found == expected


def test_other_names_are_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8").lower()
    plain = "".join(letter for letter in text if letter.isalnum())
    assert all(alias in plain for alias in ALIASES)
