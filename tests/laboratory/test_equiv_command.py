"""``tokfold equiv``: what it prints, and the exit codes that scripts go by."""

from __future__ import annotations

import json

import pytest
from cli.cli_runner import as_json, fails, run
from laboratory.mutants.recorded import path_of

DIGITS = 'root ::= "a" [0-9]{0,64}\n'
SAME = 'root ::= "a" digits\ndigits ::= ([0-9]{1,64})?\n'
FEWER = 'root ::= "a" [0-9]{0,63}\n'
HARD = (
    'root ::= "a" root "b" | ""\n',
    'root ::= "a" "a" root "b" "b" | "ab" | "" | "aaaabbbb"\n',
)
"""Equal, and no proof is found; or after more pairs than are allowed below."""


@pytest.fixture
def files(tmp_path):
    def write(*texts: str) -> list[str]:
        paths = [tmp_path / f"{number}.gbnf" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        return [str(path) for path in paths]

    return write


def test_proved(files):
    paths = files(DIGITS, SAME)
    assert "proved equal" in run("equiv", *paths).stdout
    document = as_json("equiv", *paths)
    assert document["verdict"] == "proved"
    assert document["difference"] is document["depth"] is document["accepted_by"] is None


def test_different(files):
    paths = files(DIGITS, FEWER)
    shown = run("equiv", *paths, code=1).stdout
    assert "different" in shown
    assert "65 bytes" in shown
    document = as_json("equiv", *paths, code=1)
    assert document["verdict"] == "different"
    assert document["accepted_by"] == "left"
    assert document["is_shortest"] is True
    text = bytes.fromhex(document["difference_hex"])
    assert len(text) == 65
    assert text.decode() == document["difference"]
    assert as_json("equiv", *reversed(paths), code=1)["accepted_by"] == "right"


def test_bounded(files):
    paths = files(*HARD)
    document = as_json("equiv", *paths, "--max-pairs", 2, code=3)
    assert document["verdict"] == "bounded"
    assert document["depth"] >= 0
    assert document["difference"] is None
    shown = run("equiv", *paths, "--max-pairs", 2, code=3).stdout
    assert "bounded" in shown
    assert "proved" not in shown


def test_a_difference_that_is_no_text(files):
    paths = files("root ::= [à-ï]", "root ::= [à-î]")
    document = as_json("equiv", *paths, code=1)
    assert bytes.fromhex(document["difference_hex"]) == "ï".encode()
    assert document["difference"] == "ï"


def test_a_long_difference_is_cut_for_people_only(files):
    paths = files('root ::= "a"{0,900}', 'root ::= "a"{0,899}')
    shown = run("equiv", *paths, code=1).stdout
    assert "a" * 401 not in shown
    assert "900 bytes" in shown
    assert as_json("equiv", *paths, code=1)["difference"] == "a" * 900


def test_start_rules(files):
    paths = files('root ::= "a"\nx ::= "b"\n', 'y ::= "b"\n')
    assert run("equiv", *paths, "--root", "x", "--other-root", "y").exit_code == 0
    assert run("equiv", *paths, "--other-root", "y", code=1).exit_code == 1


def test_standard_input(files):
    (path,) = files(DIGITS)
    assert run("equiv", "-", path, stdin=SAME.encode()).exit_code == 0
    assert run("equiv", path, "-", stdin=FEWER.encode(), code=1).exit_code == 1
    assert "standard input" in fails("equiv", "-", "-")


def test_what_cannot_be_used(files, tmp_path):
    good, broken, ahead = files(DIGITS, 'root ::= "a', 'root ::= a "b"\na ::= "a" (= "c")')
    assert "line 1" in fails("equiv", good, broken)
    assert "lookahead" in fails("equiv", good, ahead)
    assert "none.gbnf" in fails("equiv", good, tmp_path / "none.gbnf")
    run("equiv", good, good, "--max-pairs", 0, code=2)


def test_a_real_grammar(files):
    text = path_of("json").read_text(encoding="utf-8")
    (path,) = files(text.replace("hexdig{4}", "hexdig{3,4}"))
    result = run("equiv", path_of("json"), path, "--json", code=1)
    document = json.loads(result.stdout)
    assert document["accepted_by"] == "right"
    assert len(bytes.fromhex(document["difference_hex"])) == len(b'"\\u000"')
