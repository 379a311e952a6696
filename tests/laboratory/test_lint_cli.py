"""``tokfold lint`` as a command: exit codes, JSON, settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
import typer.testing as typer_testing
from tokfold import Grammar
from tokfold.cli.app import _Group
from tokfold.laboratory.commands.lint import lint
from tokfold.laboratory.lint import lint as lint_grammar

ROOT = Path(__file__).parents[2]

app = typer.Typer(cls=_Group, add_completion=False, pretty_exceptions_enable=False)
app.command()(lint)
app.command()(lambda: None)  # a second command, so that the first is called by its name


def run(*arguments: object, code: int = 0, stdin: str | None = None) -> str:
    result = typer_testing.CliRunner().invoke(app, ["lint", *map(str, arguments)], input=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.output


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.gbnf"
    path.write_text('root ::= root "d" | "c" | "c"\nunused ::= "x"\n', encoding="utf-8")
    return path


def test_clean_is_zero():
    out = run(ROOT / "grammars/json/json.gbnf", "--engine", "own")
    assert "nothing found" in out
    assert "no proof that there is none" in " ".join(out.split())


def test_findings_are_one_and_fail_on_sets_from_where(bad: Path):
    out = run(bad, code=1)
    assert f"{bad}:2:1: warning: the rule unused is never reached from root" in out
    assert "[unreachable-rule]" in out
    assert "(remove rule unused)" in out
    run(bad, "--fail-on", "error", code=0)
    run(bad, "--fail-on", "never", code=0)
    run(ROOT / "grammars/smiles/smiles.gbnf", "--quick", code=0)
    run(ROOT / "grammars/smiles/smiles.gbnf", "--quick", "--fail-on", "information", code=1)


def test_settings(bad: Path):
    ignored = ["--ignore", "unreachable-rule", "--ignore", "duplicate-alternative"]
    run(bad, "--engine", "own", *ignored, code=0)
    assert "recursive-root" in run(bad, "--engine", "xgrammar", *ignored, code=1)
    assert "there is no code 'nonsense' to ignore" in run(bad, "--ignore", "nonsense", code=2)


def test_json(bad: Path):
    document = json.loads(run(bad, "--json", code=1))
    assert document["counts"]["warning"] == 3
    codes = {f["code"]: f for f in document["findings"]}
    assert codes["unreachable-rule"]["line"] == 2
    assert codes["recursive-root"]["engine"] == "xgrammar"
    assert codes["recursive-root"]["rewrite"]["same_texts"]
    assert all(f["why"] and f["mend"] for f in document["findings"])
    assert document["notes"]


def test_text_that_is_no_grammar_is_a_finding(tmp_path: Path):
    path = tmp_path / "g.gbnf"
    path.write_text('root ::= a "x"\n', encoding="utf-8")
    assert f'{path}:1:10: error: the rule "a" is not defined' in run(path, code=1)
    path.write_text('root ::= "x\n', encoding="utf-8")
    assert f"{path}:1:10: error: " in run(path, code=1)
    document = json.loads(run("-", "--json", code=1, stdin="root = 3"))
    assert [f["code"] for f in document["findings"]] == ["syntax-error"]


def test_what_cannot_be_read_is_two(tmp_path: Path):
    assert "No such file" in run(tmp_path / "none.gbnf", code=2)
    path = tmp_path / "latin.gbnf"
    path.write_bytes('root ::= "é"'.encode("latin-1"))
    assert "byte 0xe9 is not UTF-8" in run(path, code=2)
    path.write_bytes(b"\xef\xbb\xbfroot ::=\n" + '"é"'.encode("latin-1"))
    assert "line 2: byte 0xe9 is not UTF-8" in run(path, code=2)
    run(path, "--engine", "outlines", code=2)


def test_other_kinds_of_grammar():
    pattern = r"\{\s*\}"
    assert f"{pattern}, as grammar text: nothing found" in run(pattern, "--regex")
    pytest.importorskip("mistral_common")
    out = " ".join(run(pattern, "--regex", "-t", "tekken").split())
    assert f"{pattern}, as grammar text: information: one token is possible in " in out


def test_a_schema(tmp_path: Path):
    path = tmp_path / "schema.json"
    path.write_text('{"type": "object", "properties": {"name": {"type": "string"}}}')
    stdin = path.read_text()
    for said in (
        json.loads(run(path, "--json", "--fail-on", "never")),
        json.loads(run("-", "--schema", "--json", "--fail-on", "never", stdin=stdin)),
    ):
        codes = {finding["code"] for finding in said["findings"]}
        assert not codes & {"unreachable-rule", "unsupported"}
        [note] = [note for note in said["notes"] if note.startswith("converted")]
        assert "unreachable-rule and unsupported are not looked for" in note
    library = lint_grammar(Grammar.from_json_schema(stdin))
    assert said["findings"] == [finding.document() for finding in library.findings]
    assert said["notes"] == list(library.notes)
    shown = " ".join(run(path, "--quick", "--engine", "own").split())
    assert shown.endswith("as grammar text: nothing found")
    path.write_text('{"type": ')
    assert "not a JSON document" in run(path, code=2)
    assert "--root names a rule of grammar text" in run(path, "--root", "name", code=2)


def test_a_tokenizer(tmp_path: Path, bad: Path):
    pytest.importorskip("mistral_common")
    path = tmp_path / "ws.gbnf"
    path.write_text('root ::= "{" [ \\n]* "}"\n', encoding="utf-8")
    document = json.loads(run(path, "-t", "tekken", "--json", code=1))
    codes = [f["code"] for f in document["findings"]]
    assert codes == ["runaway-whitespace", "straddling-tokens"]
    assert document["vocabulary"]["size"] > 100_000
    tokens = {example["text"] for example in document["findings"][1]["details"]["examples"]}
    assert "{\n" in tokens
    assert "{}" in tokens
