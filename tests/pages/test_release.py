"""The release workflow builds what the pages promise, and messages name extras that exist."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from tokfold._extras import how_to_install

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
MANYLINUX = {"2014": "2.17", "2_28": "2.28", "2_34": "2.34"}
"""The glibc of each container in which wheels are built."""


def test_the_oldest_glibc_is_that_of_the_workflow() -> None:
    found = re.findall(r'target: \w+, manylinux: "(\w+)"', WORKFLOW)
    assert len(found) == 2
    assert {MANYLINUX[name] for name in found} == set(re.findall(r"\| glibc ([\d.]+) ", INSTALL))
    assert f"glibc {MANYLINUX[found[0]]}" in WORKFLOW


def test_as_many_files_as_are_built_are_published() -> None:
    targets = re.findall(r"\{ runner: [\w.-]+, target: ", WORKFLOW)
    assert f'test "$(ls dist | wc -l)" = {len(targets) + 2} ' in WORKFLOW


def test_the_oldest_python_is_that_of_the_metadata() -> None:
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert f"Python {oldest} and later" in INSTALL
    assert f'python: ["{oldest}", ' in WORKFLOW


def test_messages_name_extras_that_exist() -> None:
    """Calls of ``require`` name the extra as a literal."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    named = set()
    for path in (ROOT / "python" / "tokfold").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r'\brequire\(\s*[\w".]+,\s*"([\w-]+)",', text))
    assert len(named) > 5
    assert named <= {*extras, "lab"}  # that one is tokfold-laboratory


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (None, {"cli": 'pip install "tokfold[cli]"', "lab": "pip install tokfold-laboratory"}),
        (
            json.dumps({"url": "file:///checkout", "dir_info": {}}),
            {"cli": 'pip install ".[cli]" in a', "lab": "pip install ./laboratory in a"},
        ),
    ],
)
def test_an_extra_is_named_as_tokfold_was_installed(
    origin: str | None, said: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return origin

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    for extra, command in said.items():
        assert how_to_install(extra).startswith(command)


def test_both_distributions_have_one_version_and_the_same_needs() -> None:
    with open(ROOT / "laboratory" / "pyproject.toml", "rb") as file:
        laboratory = tomllib.load(file)["project"]
    with open(ROOT / "Cargo.toml", "rb") as file:
        version = tomllib.load(file)["workspace"]["package"]["version"]
    with open(ROOT / "pyproject.toml", "rb") as file:
        tests = tomllib.load(file)["dependency-groups"]["test"]
    assert laboratory["version"] == version
    needs = laboratory["dependencies"]
    assert needs[0] == f"tokfold[cli,xgrammar]=={version}"
    assert {*needs[1:]} <= {*tests}
