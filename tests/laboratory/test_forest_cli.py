"""``tokfold cost``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

typer = pytest.importorskip("typer")
pytest.importorskip("rich")

import typer.testing as typer_testing  # noqa: E402
from tokfold.cli import app as application  # noqa: E402
from tokfold.laboratory.commands.cost import cost  # noqa: E402

GRAMMARS = Path(__file__).parents[2] / "grammars"


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture
def write(tmp_path):
    def written(name: str, content: str) -> str:
        (tmp_path / name).write_bytes(content.encode())
        return str(tmp_path / name)

    return written


def run(*arguments: str, stdin: str = "", code: int = 0):
    app = typer.Typer(cls=application._Group)
    app.command()(cost)
    app.command("other")(lambda: None)  # so that the command keeps its name
    result = typer_testing.CliRunner().invoke(app, ["cost", *arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result


def test_size_growth_and_steps(write):
    grammar = write("g.gbnf", 'root ::= S | ""\nS ::= S S | "a" | "b"')
    text = write("t.txt", "abab\n")
    shown = run(grammar, "--text", text, "--chomp").stdout
    assert "κ = 15" in shown
    assert "quadratic" in shown
    assert '"aaaa"' in shown
    assert "parse trees: 5" in shown
    assert "in the language" in shown
    last = next(line for line in shown.splitlines() if line.split()[:2] == ["3", '"b"'])
    assert last.split()[2:] == ["12", "18", "11", "8", "6", "3"]


def test_json(write):
    grammar = write("g.gbnf", 'root ::= "a" root | "é" root | ""')
    text = write("t.txt", "aéa")
    for flag, items in (("--no-leo", [5, 0, 6, 7]), ("--leo", [5, 0, 6, 6])):
        found = json.loads(run(grammar, "--text", text, flag, "--json").stdout)
        assert found["sizes"]["kappa"] == 10
        assert [step["new_items"] for step in found["text"]["steps"]] == items
        assert found["text"]["accepted"] is True
        assert found["text"]["trees"] == "1"
    classes = {(c["counter"], c["leo"]): c["class"] for c in found["growth"]["classes"]}
    assert classes["new_packed_nodes", False] == "linear"
    assert classes["new_packed_nodes", True] == "constant"


def test_without_a_text_nothing_is_said_of_one(write):
    shown = run(write("g.gbnf", 'root ::= "a" | "b"')).stdout
    assert "The language is finite" in shown
    assert "parse trees" not in shown


def test_beginnings_cycles_and_big_numbers(write):
    text = write("t.txt", "a" * 80)
    shown = run(write("g.gbnf", 'root ::= root root | "a"'), "--text", text).stdout
    assert "parse trees: 2.894e44" in shown  # the 79th Catalan number
    assert "Costliest bytes" in shown
    shown = run(write("h.gbnf", 'root ::= root | "a" root | "a"'), "--text", text).stdout
    assert "infinitely many parse trees" in shown
    shown = run(write("i.gbnf", 'root ::= "a" root | "b"'), "--text", text).stdout
    assert "the beginning of a string" in shown


@pytest.mark.parametrize(
    ("grammar", "text", "message"),
    [
        ('root ::= "a"', "b", "byte 0x62 at offset 0"),
        ('root ::= "a"\nroot ::= ', "a", "line 2"),
        ('root ::= Regex("a+")', "a", "Regex, which is no production"),
    ],
)
def test_errors_are_one_line(write, grammar, text, message):
    result = run(write("g.gbnf", grammar), "--text", write("t.txt", text), code=2)
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not result.stdout


def test_standard_input_is_read_once(write):
    grammar, text = 'root ::= "a"', write("t.txt", "a")
    for both in (("-", "--text", "-"), ("-", "--text", "-", "--chomp", "--json")):
        result = run(*both, stdin=grammar, code=2)
        assert "cannot both come from standard input" in result.stderr
        assert not result.stdout
    assert "in the language" in run("-", "--text", text, stdin=grammar).stdout
    assert "in the language" in run(write("g.gbnf", grammar), "--text", "-", stdin="a").stdout


def test_a_real_grammar():
    grammar = GRAMMARS / "json" / "json.gbnf"
    text = GRAMMARS / "json" / "valid" / "order.json"
    found = json.loads(run(str(grammar), "--text", str(text), "--json", "--search", "9999").stdout)
    assert found["text"]["trees"] == "1"
    assert len(found["text"]["steps"]) == text.stat().st_size
    assert found["growth"]["families_untried"] > 0
