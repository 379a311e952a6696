"""The scripts that compare stores: what they count, and that the long one goes on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from cli.cli_runner import write_tokenizer
from support import processes

ROOT = Path(__file__).resolve().parents[2]
JSON = ROOT / "grammars" / "lark" / "json"


CHECK = "check_mask_store.py"
TOKENS = [bytes([byte]) for byte in range(256)] + [b'{"', b'": ', b"true", b"12", b", "]


def run(name: str, *arguments: object, code: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    script = ROOT / "benches" / "python" / name
    command = [sys.executable, str(script), *map(str, arguments)]
    result = processes.run(command, env=environment)
    assert result.returncode == code, result.stderr
    return result.stdout


def test_positions_are_compared_and_not_twice(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "small.json", TOKENS)
    record = tmp_path / "record.jsonl"
    texts = sorted(JSON.glob("*valid/*.json"))
    options = ["--tokenizer", tmp_path / "small.json", "--grammar", JSON / "json.lark"]
    options += ["--record", record, "--texts", *texts]
    printed = run(CHECK, *options)
    lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    assert [line["file"] for line in lines] == [str(path) for path in texts]
    positions = sum(line["counts"]["positions"] for line in lines)
    valid = len(list(JSON.glob("valid/*")))
    assert f"{positions:,} masks whole" in printed
    assert f"along {valid} files ({len(texts) - valid} more" in printed
    assert "wrong: 0;" in printed
    again = run(CHECK, *options)
    assert f"{positions:,} masks whole" in again
    assert "0 groups of rows read anew" in again
    # Another setting is another comparison.
    run(CHECK, *options, "--seed", 2, "--positions", 1)
    assert len(record.read_text("utf-8").splitlines()) > len(lines)


def test_both_ways_are_measured_and_judged(tmp_path: Path) -> None:
    pytest.importorskip("xgrammar")
    write_tokenizer(tmp_path / "small.json", TOKENS)
    options = ["--tokenizer", tmp_path / "small.json", "--mutants", 20, "--grammars", "json"]
    printed = run("bench_two_ways.py", *options)
    rows = [line.split() for line in printed.splitlines() if line.strip().startswith("json  ")]
    assert [row[1].rstrip(",") for row in rows] == ["store", "engine", "engine"]
    judged = {row[-1] for row in rows}
    assert len(judged) == 1
    assert rows[0][-3] == "0"
    assert int(rows[1][-3]) == int(rows[2][-3]) > 0
    assert "json, engine: unlike Lark on" in printed
