"""The reader of treebanks, on trees of our own."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import tokfold
from oracles.binary_chart import BinaryChart
from support import processes
from tokfold.chart_gpu import BinaryGrammar, TerminalLexer

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "treebank" / "read_grammar.py"

TREES = """
( (S (NP-SBJ (DT The) (NN dog))
     (VP (VBD saw) (NP (PRP$ her) (NN cat)
        (PP-LOC (IN in) (NP (DT a) (NN box)))))
     (. .)) )
( (S
    (NP-SBJ-1 (NNP Ann))
    (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1))))
    (. .)) )
( (FRAG (-LRB- -LRB-) (NP (NP (CD 3) (NNS boxes)) (PRT|ADVP (RP off))) (-RRB- -RRB-)) )
(S (VP (VB Go)) (, ,) (NP=2 (NN dog)) (. !))
"""


@pytest.fixture(scope="module")
def reader():
    spec = importlib.util.spec_from_file_location("read_grammar", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def trees_of(reader, text=TREES):
    return [reader.pruned(tree) for tree in reader.read_trees(text)]


def test_productions_are_those_of_the_trees(reader):
    trees = trees_of(reader)
    assert [reader.sentence(tree) for tree in trees] == [
        "DT NN VBD PRPS NN IN DT NN DOT ",
        "NNP VBD VBN DOT ",
        "LRB CD NNS RP RRB ",
        "VB COMMA NN DOT ",
    ]
    found = reader.productions(trees)
    assert found["root", ("s",)] == 3
    assert found["np", ('"DT "', '"NN "')] == 2
    assert found["vp", ('"VBD "', "vp")] == 1
    assert found["vp", ('"VBN "',)] == 1  # what an empty element leaves empty goes
    assert found["np", ("np", "prt_advp")] == 1
    assert sum(found.values()) == 7 + 5 + 5 + 4


def test_the_grammar_reads_its_sentences(reader):
    trees = trees_of(reader)
    grammar = tokfold.Grammar.from_ebnf(reader.grammar_text(reader.productions(trees)))
    binary = BinaryGrammar.of(grammar, "terminals")
    lexer = TerminalLexer(binary)
    for tree in trees:
        text = reader.sentence(tree)
        assert tokfold.recognize(grammar, text).accepted
        chart = BinaryChart(binary)
        letters, state = lexer.read(0, text.encode())
        assert state == 0
        for letter in letters:
            assert letter in chart.next_letters()
            chart = chart.step(letter)
        assert chart.accepting
    assert not tokfold.recognize(grammar, "NN DT DOT ").accepted
    assert tokfold.recognize(grammar, "NNP VBD DT NN IN NNP DOT ").accepted is False
    assert tokfold.recognize(grammar, "DT NN VBD VBN DOT ").accepted


def test_frequent_productions_alone(reader):
    trees = trees_of(reader, TREES * 2 + "( (S (NP (DT The) (NN dog)) (VP (VB go)) (. .)) )")
    found = reader.productions(trees)
    text = reader.grammar_text(found, at_least=3)
    assert "frag" not in text
    with pytest.raises(reader.TreebankError, match="productions occur 100 times"):
        reader.grammar_text(found, at_least=100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a)", "line 1: a bracket is opened and never closed"),
        ("(S (NN a))\n)", "line 2: '\\)' stands outside all trees"),
        ("\nword", "line 2: 'word' stands outside"),
        ("(S (NN a) b)", "line 1: the word 'b' has no tag of its own"),
    ],
)
def test_what_is_no_treebank(reader, text, message):
    with pytest.raises(reader.TreebankError, match=message):
        list(reader.read_trees(text))


def test_deep_trees(reader):
    (tree,) = trees_of(reader, "(S " * 5_000 + "(NN a)" + ")" * 5_000)
    assert reader.sentence(tree) == "NN "
    assert "root" in reader.grammar_text(reader.productions([tree]))


def test_the_command(tmp_path):
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "b.mrg").write_text(TREES, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}

    def run(*arguments) -> CompletedProcess[str]:
        command = [sys.executable, str(SCRIPT), *map(str, arguments)]
        return processes.run(command, env=environment)

    printed = run(tmp_path / "bank", "--trees", 2)
    assert tokfold.recognize(tokfold.Grammar.from_ebnf(printed.stdout), "NNP VBD VBN DOT ").accepted
    assert run(tmp_path / "bank", "--sentences").stdout.splitlines()[1] == "NNP VBD VBN DOT "
    (tmp_path / "bank" / "c.mrg").write_text("(S", encoding="utf-8")
    failed = run(tmp_path / "bank")
    assert failed.returncode == 1
    assert "c.mrg: line 1: a bracket is opened" in failed.stderr
