"""`tokfold optimize`: its output is a grammar, its JSON says all of it, its errors are lines."""

from __future__ import annotations

import json

import pytest
import typer
import typer.testing
from tokfold import Grammar
from tokfold.cli.app import _Group
from tokfold.laboratory.commands.optimize import optimize
from tokfold.laboratory.equivalence import compare

TEXT = 'root ::= e\ne ::= e "+" e | e "*" e | "(" e ")" | n\nn ::= [0-9]+\n'

app = typer.Typer(cls=_Group, pretty_exceptions_enable=False)
app.command()(optimize)
app.command("other")(lambda: None)


@pytest.fixture
def grammar(tmp_path):
    path = tmp_path / "sums.gbnf"
    path.write_text(TEXT)
    return path


def run(*arguments: object, code: int = 0, stdin: str = ""):
    runner = typer.testing.CliRunner()
    result = runner.invoke(app, ["optimize", *map(str, arguments)], input=stdin)
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize("engine", ["own", "xgrammar", "llguidance"])
def test_the_output_is_the_grammar(grammar, engine):
    output = run(grammar, "--for", engine).stdout
    assert "# equality: proved equal" in output
    assert "parse trees" in output
    assert compare(Grammar.from_ebnf(TEXT), Grammar.from_ebnf(output)).kind == "proved"


def test_log_and_file(grammar, tmp_path):
    out = tmp_path / "fast.gbnf"
    output = run(grammar, "--for", "own", "--log", "--out", out).stdout
    assert "e: recursion to repetition" in output
    assert not output.startswith("#")
    assert Grammar.from_file(out).root == "root"


def test_json(grammar, tmp_path):
    text = tmp_path / "text"
    text.write_text("1+2*(3+4)\n")
    found = json.loads(run(grammar, "--measure", text, "--chomp", "--json").stdout)
    assert found["certificate"]["kind"] == "proved"
    assert found["times"][0]["form"] == "given"
    assert all(row["tokens"] == 9 for row in found["times"])
    # Times choose the form: where the given one is fastest, nothing was rewritten.
    assert all(step["rule"] == "e" for step in found["log"][:1])
    assert Grammar.from_ebnf(found["text"], found["root"])


def test_errors_are_one_line(grammar, tmp_path):
    text = tmp_path / "text"
    text.write_text("1+x")
    for arguments, expected in (
        ((grammar, "--for", "nope"), "no engine is named 'nope'"),
        ((grammar, "--measure", text), "column 3"),
        ((grammar, "--tokenizer", text), "--tokenizer is for --measure"),
        ((tmp_path / "none.gbnf",), "No such file"),
    ):
        result = run(*arguments, code=2)
        lines = [line for line in result.stderr.splitlines() if line]
        assert len(lines) == 1, lines
        assert expected in lines[0]
        assert not result.stdout


def test_standard_input_is_read_once(grammar, tmp_path):
    result = run("-", "--measure", "-", code=2, stdin=TEXT)
    assert "cannot both come from standard input" in " ".join(result.stderr.split())
    assert not result.stdout
    text = tmp_path / "text"
    text.write_text("1+2")
    assert "e ::=" in run("-", "--for", "own", "--measure", text, stdin=TEXT).stdout
    assert "e ::=" in run(grammar, "--for", "own", "--measure", "-", stdin="1+2").stdout
