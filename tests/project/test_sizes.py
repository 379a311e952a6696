"""How long files and functions of the Rust core are, and how many words the project explains."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.rust_modules import CORE

MOST_LINES_OF_A_FILE = 500
MOST_LINES_OF_A_FUNCTION = 80
LONG_FUNCTIONS = 5
"""So many functions may be longer."""
WORDS = 25
DESIGN = CORE.parents[2] / "DESIGN.md"

TYPE = re.compile(
    r"^(?: *(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|union)|(?:pub(?:\([^)]*\))? )?type) (\w+)",
    re.MULTILINE,
)
"""Also within functions; but an indented ``type`` is one that a trait asks for."""
FUNCTION = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?(?:const )?fn (\w+)")
UNIT_TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod \w+ \{", re.MULTILINE)


def sources(root: Path) -> Iterator[tuple[str, str]]:
    """The files of a crate by their paths in it, without tests."""
    for path in sorted(root.rglob("*.rs")):
        is_test = path.stem == "tests" or path.stem.endswith("_tests") or "tests" in path.parts
        if not is_test:
            yield str(path.relative_to(root)), UNIT_TESTS.split(path.read_text())[0]


def names_of_several_types(root: Path) -> dict[str, list[str]]:
    """The names of types that more than one file defines."""
    files = defaultdict(list)
    for file, text in sources(root):
        for name in set(TYPE.findall(text)):
            files[name].append(file)
    return {name: where for name, where in files.items() if len(where) > 1}


def end_of(lines: list[str], start: int, indent: str) -> int:
    """The last line of a function; of one that a trait asks for, the last of its signature."""
    signed = next(at for at in range(start, len(lines)) if lines[at].endswith(("{", "}", ";")))
    return lines.index(indent + "}", signed) if lines[signed][-1] == "{" else signed


def long_functions(root: Path) -> list[tuple[str, str, int]]:
    """The functions that take more lines than most, with file, name and lines."""
    found = []
    for file, text in sources(root):
        lines = text.splitlines()
        for start, line in enumerate(lines):
            if (match := FUNCTION.match(line)) is not None:
                count = end_of(lines, start, match[1]) - start + 1
                if count > MOST_LINES_OF_A_FUNCTION:
                    found.append((file, match[2], count))
    return found


def test_no_type_name_stands_for_two_things() -> None:
    assert names_of_several_types(CORE) == {}


def test_functions_are_short() -> None:
    found = long_functions(CORE)
    assert len(found) <= LONG_FUNCTIONS, "; ".join(
        f"{file}: {name} has {lines} lines" for file, name, lines in found
    )


def test_files_are_short() -> None:
    lines = {
        str(path.relative_to(CORE)): path.read_text().count("\n") for path in CORE.rglob("*.rs")
    }
    assert {file: n for file, n in lines.items() if n > MOST_LINES_OF_A_FILE} == {}


def test_few_words_are_explained() -> None:
    section = DESIGN.read_text().split("## The words\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| *")]
    assert 0 < len(rows) <= WORDS, ", ".join(row.split("|")[1].strip() for row in rows)


@pytest.mark.parametrize("name", ["one", "two_tests", "tests"])
def test_what_is_too_much_is_found(tmp_path: Path, name: str) -> None:
    body = "    call();\n" * MOST_LINES_OF_A_FUNCTION
    for file, text in (
        (
            "zero.rs",
            "fn short() {\n    struct Pair;\n    call();\n}\nfn empty() {}\n"
            "trait Last {\n    fn asked(&self);\n}\n",
        ),
        (
            f"{name}.rs",
            f"pub(crate) enum Pair {{}}\n\nimpl Pair {{\n  pub fn long() {{\n{body}  }}\n}}\n"
            f"#[cfg(test)]\nmod inner {{\n    fn longer() {{\n{body}{body}}}\n}}\n",
        ),
    ):
        (tmp_path / file).write_text(text)
    is_counted = name == "one"
    assert (names_of_several_types(tmp_path) != {}) is is_counted
    lines = MOST_LINES_OF_A_FUNCTION + 2
    assert long_functions(tmp_path) == [("one.rs", "long", lines)] * is_counted
