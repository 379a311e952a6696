"""``docs/model-families.md`` has one row for each family, and what it says is in the table."""

from __future__ import annotations

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


def test_the_page_has_every_family() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    found = {}
    for row in rows:
        cells = [cell.strip() for cell in row.replace("\\|", "\0").strip("| ").split("|")]
        cells = [cell.replace("\0", "\\|") for cell in cells]
        found[cells[0].strip("`")] = (cells[2], cells[3], cells[4])
    assert list(found) == families()
    assert found == {name: (*begins_with(name), call(name)) for name in families()}


def test_other_names_are_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8").lower()
    plain = "".join(letter for letter in text if letter.isalnum())
    assert all(alias in plain for alias in ALIASES)
