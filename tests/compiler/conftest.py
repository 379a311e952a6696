from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("tokfold._core")

from compiler.samples import Gate


@pytest.fixture
def gate(monkeypatch) -> Iterator[Gate]:
    made = Gate(monkeypatch)
    yield made
    made.opened.set()
