"""``docs/chart-gpu.md`` is true: every example prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("triton")

from chart_gpu.device_samples import needs_device

PAGE = Path(__file__).parents[2] / "docs" / "chart-gpu.md"


@needs_device
def test_the_page_is_true():
    pairs = re.findall(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(pairs) == 4
    names: dict[str, object] = {}
    for code, printed in pairs:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == printed
