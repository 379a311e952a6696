"""Running commands of the command line, and small files for them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import typer.testing as typer_testing
from support import processes
from tokfold.cli.app import app

ROOT = Path(__file__).parents[2]
TEXTS = [
    b"{",
    b"}",
    b'"',
    b":",
    b",",
    b"a",
    b"b",
    b"ab",
    b"1",
    b"12",
    b" ",
    b"\n",
    b"\xc3",
    b"\xa9",
]
JSON_LIKE = """\
root ::= "{" ws pair ("," ws pair)* "}"
pair ::= string ":" ws (number | "true" | "false")
string ::= "\\"" [a-zé]* "\\""
number ::= [0-9]+
ws ::= " "*
"""


def write_tokenizer(path: Path, texts: list[bytes]) -> str:
    """A tokenizer.json with these tokens and one special token that ends the text."""
    spelled = {"".join(spelling()[byte] for byte in text): i for i, text in enumerate(texts)}
    end = {"id": len(texts), "content": "</s>", "special": True}
    document = {
        "version": "1.0",
        "added_tokens": [end],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": spelled, "merges": []},
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def spelling() -> dict[int, str]:
    """GPT-2's character for each byte."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    return {byte: chr(byte) for byte in kept} | {
        byte: chr(256 + number) for number, byte in enumerate(others)
    }


def run(*arguments: object, code: int | None = 0, stdin: bytes | None = None):
    result = typer_testing.CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    assert code in (None, result.exit_code), result.output
    assert "Traceback" not in result.output
    return result


def as_json(*arguments: object, code: int | None = 0, stdin: bytes | None = None):
    return json.loads(run(*arguments, "--json", code=code, stdin=stdin).stdout)


def fails(*arguments: object) -> str:
    """The one line that a command prints when it cannot work."""
    result = run(*arguments, code=2)
    lines = result.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert not result.stdout
    return lines[0]


def process(*arguments: str, code: str = "from tokfold.cli import main; main()", **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment}
    command = [sys.executable, "-c", code, *arguments]
    return processes.run(command, env=environment, text=False)
