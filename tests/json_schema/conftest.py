"""Where the data of these tests is: beside the checkout, or where variables say."""

from __future__ import annotations

from pathlib import Path

import pytest
from json_schema import data


def _found(folder: Path | None, variable: str, name: str) -> Path:
    if folder is None:
        pytest.skip(
            f"the project holds no copy of {name}: set {variable} to a folder of it, or put it "
            f"at {data.SHARED}"
        )
    return folder


@pytest.fixture(scope="session")
def suite() -> Path:
    """The folder of the official test suite, with ``tests`` and ``remotes``."""
    return _found(data.suite(), data.SUITE, "JSON-Schema-Test-Suite")


@pytest.fixture(scope="session")
def maskbench() -> Path:
    """The folder of MaskBench's files."""
    return _found(data.maskbench(), data.MASKBENCH, "MaskBench")
