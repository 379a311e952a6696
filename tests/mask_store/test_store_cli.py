"""``tokfold store``, on its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.testing as typer_testing
from mask_store.store_samples import JSON
from tokfold.cli.store import store
from tokfold.errors import TokfoldError

app = typer.Typer(rich_markup_mode="rich")
app.command()(store)


@pytest.fixture
def grammar(tmp_path: Path) -> str:
    path = tmp_path / "json.lark"
    path.write_text(JSON, encoding="utf-8")
    return str(path)


def run(*arguments: str) -> str:
    result = typer_testing.CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def asked(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def test_questions_are_answered_with_texts(grammar: str) -> None:
    question = asked(grammar, "--before", "NUMBER", "--row", "RSQB", "--other", "RBRACE")[
        "question"
    ]
    assert question["legality"] == "depends"
    assert question["legal_after"][0] == "LSQB"
    assert question["other"]["jointly_legal"] is False
    assert question["other"]["apart_after"][-1] == "NUMBER"
    shown = run(grammar, "--before", "COLON", "--row", "STRING", "--other", "NUMBER")
    assert "STRING after COLON: always" in shown
    assert "jointly legal with NUMBER" in shown


def test_terminals_are_listed(grammar: str) -> None:
    names = [t["name"] for t in asked(grammar, "--terminals")["terminals"]]
    assert {"STRING", "NUMBER", "WS", "TRUE"} <= set(names)


def test_a_store_is_built_and_its_reductions_shown(grammar: str, tmp_path: Path) -> None:
    tokens = {chr(byte): byte for byte in range(0x21, 0x7F)}
    numbered = {token: i for i, token in enumerate([*tokens, "[]", "{}", '":', "],"])}
    document = {
        "version": "1.0",
        "added_tokens": [{"id": len(numbered), "content": "</s>", "special": True}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": numbered, "merges": []},
    }
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps(document), encoding="utf-8")
    made = asked(grammar, "--tokenizer", str(tokenizer))["store"]
    counts = list(made["rows"].values())
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0]
    assert "jointly legal: joined" in run(grammar, "-t", str(tokenizer))


def test_half_questions_are_named(grammar: str) -> None:
    with pytest.raises(TokfoldError, match="belong together"):
        run(grammar, "--before", "NUMBER")
    with pytest.raises(TokfoldError, match="--other"):
        run(grammar, "--other", "NUMBER")
    with pytest.raises(TokfoldError, match="no terminal 'NO'"):
        run(grammar, "--before", "NO", "--row", "NUMBER")
