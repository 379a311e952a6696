"""``docs/laboratory/lint.md`` and the code have the same codes, and every example is true."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest
import tokfold
from tokfold.laboratory.lint import CATALOGUE, lint

PAGE = (Path(__file__).parents[2] / "docs/laboratory/lint.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `([\w-]+)`\n(.*?)(?=^### |\Z)", PAGE, re.DOTALL | re.MULTILINE))


def test_the_table_has_all_codes_and_what_they_are():
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| (\w*) \| (.*?) \|$", PAGE, re.MULTILINE)
    assert [
        (
            code,
            kind.severity.word,
            kind.engine.value if kind.engine else "",
            kind.title + (" (with a tokenizer)" if kind.needs_vocabulary else ""),
        )
        for code, kind in CATALOGUE.items()
    ] == rows
    assert list(SECTIONS) == list(CATALOGUE)


@pytest.mark.parametrize("code", CATALOGUE)
def test_each_example_has_its_code_and_its_mend_has_not(code: str):
    section = SECTIONS[code]
    assert " ".join(CATALOGUE[code].why.split())[1:] in " ".join(section.split())
    wrong, mended = re.findall(r"```ebnf\n(.*?)```", section, re.DOTALL)
    tokens = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    vocabulary = None
    if tokens:
        texts = [text.encode() for text in json.loads(tokens[0])]
        stops = [number for number, text in enumerate(texts) if text == b"</s>"]
        vocabulary = tokfold.Vocabulary(texts, stop_token_ids=stops)
    assert CATALOGUE[code].needs_vocabulary == (vocabulary is not None)
    findings = [f for f in lint(wrong, vocabulary).findings if f.code == code]
    assert findings
    assert all(f.mend and f.message for f in findings)
    assert not [f for f in lint(mended, vocabulary).findings if f.code == code]


def test_the_python_example_prints_what_stands_below_it():
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue() == printed
