"""The script that compares stores along files: what it counts, and that it goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from python.cli_runner import write_tokenizer

ROOT = Path(__file__).resolve().parents[2]
JSON = ROOT / "grammars" / "lark" / "json"


def run(*arguments: object, code: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    script = ROOT / "benches" / "python" / "check_mask_store.py"
    command = [sys.executable, str(script), *map(str, arguments)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == code, result.stderr
    return result.stdout


def test_positions_are_compared_and_not_twice(tmp_path: Path) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b'{"', b'": ', b"true", b"12", b", "]
    write_tokenizer(tmp_path / "small.json", tokens)
    record = tmp_path / "record.jsonl"
    texts = sorted(JSON.glob("*valid/*.json"))
    options = ["--tokenizer", tmp_path / "small.json", "--grammar", JSON / "json.lark"]
    options += ["--record", record, "--texts", *texts]
    printed = run(*options)
    lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    assert [line["file"] for line in lines] == [str(path) for path in texts]
    positions = sum(line["counts"]["positions"] for line in lines)
    valid = len(list(JSON.glob("valid/*")))
    assert f"{positions:,} masks whole" in printed
    assert f"along {valid} files ({len(texts) - valid} more" in printed
    assert "wrong: 0;" in printed
    again = run(*options)
    assert f"{positions:,} masks whole" in again
    assert "0 groups of rows read anew" in again
    # Another setting is another comparison.
    run(*options, "--seed", 2, "--positions", 1)
    assert len(record.read_text("utf-8").splitlines()) > len(lines)
