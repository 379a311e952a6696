"""``tokfold replay``: files of cases, good and bad, and their scores."""

from __future__ import annotations

import base64
import json

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from cli.cli_runner import as_json, fails, run


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


E_ACUTE = base64.b64encode("é".encode()).decode()
A = {"grammar": 'root ::= "a"+', "text": "aa", "accepted": True}


@pytest.fixture
def replayed(tmp_path):
    def replay(*cases: object, code: int = 0, options: tuple[object, ...] = ()):
        path = tmp_path / "cases.jsonl"
        lines = (case if isinstance(case, str) else json.dumps(case) for case in cases)
        path.write_text("\n".join(lines), encoding="utf-8")
        shown = run("replay", path, *options, code=code).stdout
        return as_json("replay", path, *options, code=code), shown

    return replay


def test_replay_agrees(replayed):
    found, shown = replayed(
        A,
        "",
        {**A, "text": "", "accepted": False, "prefix": True},
        {**A, "text": "ab", "accepted": False, "prefix": False, "source": "other", "note": "b"},
        {**A, "grammar": 'x ::= "a"+', "root": "x"},
        {"grammar": "root ::= [^a]", "bytes": E_ACUTE, "accepted": True},
    )
    assert found["total"] == {
        "cases": 5,
        "agreed": 5,
        "disagreed": 0,
        "refused": 0,
        "refused_by_error": {},
    }
    assert found["grammars"] == 3
    assert {source: score["cases"] for source, score in found["sources"].items()} == {
        "(no source)": 4,
        "other": 1,
    }
    assert found["disagreements"] == found["refused"] == []
    assert "5 of 5 agree; 3 grammars" in shown
    assert "Disagreements" not in shown


def test_replay_disagrees(replayed):
    found, shown = replayed(
        A,
        {**A, "text": "aab", "source": "s"},
        {**A, "accepted": False, "source": "s"},
        {**A, "text": "", "accepted": False, "prefix": False},
        {"grammar": A["grammar"], "bytes": "/w==", "accepted": False, "prefix": True},
        code=1,
    )
    assert found["total"]["disagreed"] == 4
    assert found["sources"]["s"] == {
        "cases": 2,
        "agreed": 0,
        "disagreed": 2,
        "refused": 0,
        "refused_by_error": {},
    }
    first = found["disagreements"][0]
    assert (first["line"], first["text"]) == (2, "aab")
    assert first["expected"] == {"accepted": True, "prefix": None}
    assert first["found"] == {"accepted": False, "prefix": False}
    assert (first["where"]["read"], first["where"]["recognized"]) == (2, False)
    assert 'cases.jsonl:2: "aab" should be accepted, is refused' in shown
    assert 'at 1:3 found "b", expected "a" or the end' in shown
    assert 'cases.jsonl:3: "aa" should be refused, is accepted' in shown
    assert "should be no beginning of any text, is the beginning of a text" in shown
    assert "should be the beginning of a text, is no beginning of any text" in shown
    assert "1 of 5 agree" in shown


def test_replay_names_the_errors(replayed):
    found, shown = replayed(
        A,
        {**A, "grammar": "root ::="},
        {**A, "grammar": 'root ::= TokenTagDispatch((1, x))\nx ::= "b"'},
        {**A, "grammar": "root ::= root"},
        {**A, "grammar": "root ::= root", "text": "b"},
        code=1,
    )
    assert (found["total"]["agreed"], found["total"]["refused"]) == (1, 4)
    errors = found["total"]["refused_by_error"]
    assert errors["GrammarSyntaxError"] == 1
    assert errors["UnsupportedGrammarError: TokenTagDispatch"] == 1
    assert sum(errors.values()) == 4
    assert [row["line"] for row in found["refused"]] == [2, 3, 4, 5]
    assert "cases.jsonl:2: line 1, column 1:" in shown


def test_replay_lists_as_many_as_asked_for(replayed):
    cases = [{**A, "text": "b" * n} for n in range(1, 6)] + [{**A, "grammar": "x"}] * 3
    found, shown = replayed(*cases, code=1, options=("--failures", 2))
    assert len(found["disagreements"]) == len(found["refused"]) == 2
    assert found["total"]["disagreed"] == 5
    assert "and 3 more: see --failures" in shown


def test_replay_of_other_kinds(replayed):
    array = {"json_schema": {"type": "array", "items": {"type": "integer"}}, "text": "[1,2]"}
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}
    found, _ = replayed(
        {"regex": "[0-9]+", "text": "27", "accepted": True},
        {"json_schema": True, "text": "[null]", "accepted": True},
        {**array, "options": {"whitespace": "spaced"}, "accepted": False, "prefix": True},
        {**array, "options": {"separators": [",", ":"]}, "accepted": True},
        {**array, "accepted": True},
        {"lark": 'start: "a" "b"', "text": "ab", "accepted": True},
        {"structural_tag": tag, "text": "ab", "accepted": True},
        {"json_schema": {"type": "foo"}, "text": "", "accepted": False},
        code=1,
    )
    errors = {"InvalidSchemaError: type": 1}
    assert found["total"]["refused_by_error"] == errors
    assert [d["line"] for d in found["disagreements"]] == [3]  # "spaced" wants a space there
    assert found["grammars"] == 8


# A line of a file of cases, and what is said of it.
BAD_LINES = [
    ("{", "not a JSON document"),
    ("[]", "a case is a JSON object"),
    ('{"text": "a", "accepted": true}', "this one has 0"),
    ('{"grammar": "a", "regex": "a", "text": "a", "accepted": true}', "this one has 2"),
    ('{"regex": 1, "text": "a", "accepted": true}', '"regex" must be a string, not 1'),
    ('{"regex": "a", "text": "a"}', '"accepted" is missing: true or false'),
    ('{"regex": "a", "text": "a", "accepted": 1}', '"accepted" must be true or false'),
    ('{"regex": "a", "accepted": true}', 'either "text"'),
    ('{"regex": "a", "text": "a", "bytes": "", "accepted": true}', 'either "text"'),
    ('{"regex": "a", "bytes": "?", "accepted": true}', "not base64"),
    ('{"regex": "a", "text": 3, "accepted": true}', '"text" must be a string'),
    ('{"regex": "a", "text": "a", "accepted": true, "prefix": false}', '"prefix" false'),
    ('{"regex": "a", "text": "a", "accepted": true, "prefx": true}', 'unknown key "prefx"'),
    ('{"regex": "a", "text": "a", "accepted": true, "root": "x"}', '"root" names a rule'),
    ('{"regex": "a", "text": "a", "accepted": true, "options": {}}', '"options" are for'),
    ('{"regex": "a", "text": "a", "accepted": true, "source": 1}', '"source" must be'),
    ("[" * 100_000, "recursion"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_replay_of_a_bad_line(tmp_path, line, message):
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{json.dumps(A)}\n\n{line}\n", encoding="utf-8")
    said = fails("replay", path)
    assert f"{path}: line 3: " in said
    assert message in said


def test_replay_of_bad_files(tmp_path):
    assert "No such file" in fails("replay", tmp_path / "missing.jsonl")
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b'{"a": "\xff"}')
    assert "line 1: byte 0xff is not UTF-8" in fails("replay", path)
    path.write_bytes(b"")
    assert as_json("replay", path)["total"]["cases"] == 0


def test_replay_of_options_that_no_converter_has(tmp_path):
    path = tmp_path / "cases.jsonl"
    case = {"json_schema": {}, "options": {"odd": 1}, "text": "", "accepted": False}
    path.write_text(json.dumps(case))
    assert f"{path}: line 1: json_schema: " in fails("replay", path)


def test_replay_from_standard_input():
    assert as_json("replay", "-", stdin=json.dumps(A).encode())["total"]["agreed"] == 1


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"json_schema": {}, "options": {"key_order": "x"}}, "key_order must be 'schema' or 'any'"),
        ({"lark": 'start: "a"', "options": {"dialect": "x"}}, "dialect must be 'rust' or 'python'"),
        ({"lark": "start: @x", "options": {"named": [1]}}, "named must be a mapping"),
    ],
)
def test_replay_of_a_wrong_value_of_an_option(tmp_path, case, said):
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({**case, "text": "a", "accepted": True}), encoding="utf-8")
    shown = run("replay", path, code=2)
    assert "Traceback" not in shown.stderr
    assert f"line 1: {next(iter(case))}: {said}" in " ".join(shown.stderr.split())
