"""``tokfold report``: what an issue needs, in one file, and nothing that is private."""

from __future__ import annotations

import json

import pytest
import tokfold

pytest.importorskip("typer")
pytest.importorskip("rich")

from cli.cli_runner import JSON_LIKE, TEXTS, fails, run, write_tokenizer


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pairs.gbnf").write_text(JSON_LIKE, encoding="utf-8")
    (tmp_path / "bad.gbnf").write_text('root ::= "a" | maybe\n', encoding="utf-8")
    (tmp_path / "schema.json").write_text('{"type": "integer"}', encoding="utf-8")
    (tmp_path / "text.txt").write_bytes(b'{"a": 1, "b": x}')
    (tmp_path / "raw.txt").write_bytes(b"\xff")
    return tmp_path


def report(*arguments: object) -> dict:
    return json.loads(run("report", *arguments).stdout)


def test_versions_and_platform_without_a_grammar(monkeypatch):
    monkeypatch.setenv("TOKFOLD_CLASSES", "never")
    monkeypatch.setenv("PRIVATE_TOKEN", "hidden-value")
    found = report()
    assert found["tokfold"] == tokfold.__version__
    assert found["packages"]["numpy"]
    assert found["platform"]["system"]
    assert found["environment"]["TOKFOLD_CLASSES"] == "never"
    assert "hidden-value" not in json.dumps(found)
    assert "case" not in found


def test_a_case_that_replay_takes(folder):
    output = folder / "report.json"
    tokenizer = write_tokenizer(folder / "tokenizer.json", TEXTS)
    arguments = [folder / "pairs.gbnf", "--text", folder / "text.txt", "-t", tokenizer]
    printed = run("report", *arguments, "-o", output)
    assert not printed.stdout
    found = json.loads(output.read_text(encoding="utf-8"))
    assert found["vocabulary"]["size"] == len(TEXTS) + 1
    assert found["result"]["error"] == "VocabularyError"  # no token has an x
    assert found["result"]["accepted"] is False
    assert found["result"]["bytes_read"] == 14
    assert (found["result"]["line"], found["result"]["column"]) == (1, 15)
    assert str(folder) not in json.dumps(found)
    cases = folder / "cases.jsonl"
    cases.write_text(json.dumps(found["case"]) + "\n", encoding="utf-8")
    replayed = json.loads(run("replay", cases, "--json").stdout)
    assert replayed["total"]["agreed"] == replayed["total"]["cases"] == 1


def test_tokens_and_the_reason_where_they_stop(folder):
    tokenizer = write_tokenizer(folder / "tokenizer.json", TEXTS)
    text = folder / "stops.txt"
    text.write_bytes(b'{"a":1}}')
    result = report(folder / "pairs.gbnf", "--text", text, "-t", tokenizer)["result"]
    assert result["tokens_read"] == len(result["tokens"]) - 1
    assert "cannot be" in result["reason"]


def test_what_may_come_next_after_a_text_that_can_go_on(folder):
    tokenizer = write_tokenizer(folder / "tokenizer.json", TEXTS)
    text = folder / "begun.txt"
    text.write_bytes(b'{"a":')
    result = report(folder / "pairs.gbnf", "--text", text, "-t", tokenizer)["result"]
    assert (result["accepted"], result["prefix"]) == (False, True)
    assert result["next"]["allowed_tokens"] == 3
    assert result["next"]["stop_tokens"] == []
    assert list(result["next"]["first"].values()) == ["1", "12", " "]


def test_without_a_text_there_is_no_verdict_on_one(folder):
    found = report(folder / "schema.json")
    assert found["result"] == {"grammar": "is read"}
    assert found["case"] == {"json_schema": {"type": "integer"}, "source": "tokfold report"}


def test_options_of_the_converter_are_part_of_the_case(folder):
    schema = {"properties": {"a": True, "b": True}, "required": ["a", "b"], "type": "object"}
    (folder / "two.json").write_text(json.dumps(schema), encoding="utf-8")
    (folder / "swapped.txt").write_bytes(b'{"b": 1, "a": 2}')
    arguments = [folder / "two.json", "--text", folder / "swapped.txt"]
    assert report(*arguments)["result"]["accepted"] is False
    options = {"key_order": "any"}
    found = report(*arguments, "--options", json.dumps(options))
    assert found["result"]["accepted"] is True
    assert found["case"]["options"] == options
    assert "key_ordr" in fails("report", folder / "two.json", "--options", '{"key_ordr": "any"}')
    assert "an object" in fails("report", folder / "two.json", "--options", "[]")
    assert "not a JSON" in fails("report", folder / "two.json", "--options", "{")
    assert "name the file" in fails("report", "--options", "{}")


@pytest.mark.parametrize(
    "schema", ['{"const": 9007199254740993.0}', '{"maximum": %s}' % ("9" * 5_000)]
)
def test_numbers_that_python_changes_are_reported_as_they_are_written(folder, schema):
    content = f'{{"type": "json_schema", "json_schema": {schema}}}'
    tag = f'{{"type": "structural_tag", "format": {content}}}'
    for key, text in (("json_schema", schema), ("structural_tag", tag)):
        (folder / "given.json").write_text(text, encoding="utf-8")
        (folder / "number.txt").write_text("9007199254740993", encoding="utf-8")
        found = report(folder / "given.json", "--text", folder / "number.txt")
        assert found["case"][key] == text
        assert found["result"]["accepted"] is True


def test_replay_reads_a_report(folder):
    output = folder / "report.json"
    run("report", folder / "pairs.gbnf", "--text", folder / "text.txt", "-o", output)
    assert json.loads(run("replay", output, "--json").stdout)["total"]["agreed"] == 1
    run("report", folder / "bad.gbnf", "-o", output)
    refused = json.loads(run("replay", output, "--json", code=1).stdout)
    assert "GrammarSyntaxError" in json.dumps(refused)
    run("report", "-o", output)
    assert "has no case" in fails("replay", output)


def test_a_report_without_a_verdict_agrees_once_its_grammar_is_read(folder):
    """The error of the report is mended: whether the text is in the language it does not say."""
    output = folder / "report.json"
    run("report", folder / "bad.gbnf", "--text", folder / "text.txt", "-o", output)
    found = json.loads(output.read_text(encoding="utf-8"))
    assert "accepted" not in found["case"]
    for text in ("yes", "no"):
        found["case"] |= {"grammar": 'root ::= "yes"', "text": text}
        output.write_text(json.dumps(found), encoding="utf-8")
        assert json.loads(run("replay", output, "--json").stdout)["total"]["agreed"] == 1
    run("report", folder / "pairs.gbnf", "-o", output)  # no text
    assert json.loads(run("replay", output, "--json").stdout)["total"]["agreed"] == 1


def test_no_paths_of_the_environment(folder, monkeypatch):
    monkeypatch.setenv("TOKFOLD_CACHE_DIR", "/home/somebody/private")
    monkeypatch.setenv("TOKFOLD_CLASSES", "never")
    found = report(folder / "pairs.gbnf")
    assert found["environment"]["TOKFOLD_CACHE_DIR"] == "(a path)"
    assert found["environment"]["TOKFOLD_CLASSES"] == "never"


def test_an_error_is_the_result(folder):
    found = report(folder / "bad.gbnf", "--text", folder / "text.txt")
    assert found["result"]["error"] == "GrammarSyntaxError"
    assert "maybe" in found["result"]["message"]
    assert str(folder) not in json.dumps(found)
    assert found["case"]["grammar"] == 'root ::= "a" | maybe\n'
    assert "accepted" not in found["case"]


def test_kinds_of_grammars_and_texts(folder):
    found = report(folder / "schema.json", "--text", folder / "raw.txt")
    assert found["case"]["json_schema"] == {"type": "integer"}
    assert found["case"]["bytes"] == "/w=="
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "x"}}
    (folder / "tag.json").write_text(json.dumps(tag), encoding="utf-8")
    assert report(folder / "tag.json")["case"]["structural_tag"] == tag
    (folder / "torn.json").write_text("{", encoding="utf-8")
    torn = report(folder / "torn.json")
    assert torn["case"]["json_schema"] == "{"
    assert "JSON" in torn["result"]["message"]
    assert report("[0-9]+", "--regex")["case"]["regex"] == "[0-9]+"


def test_wrong_use(folder):
    assert "name the file of the grammar" in fails("report", "--text", folder / "text.txt")
    assert "from a file" in fails("report", "-")
    assert "No such file" in fails("report", folder / "missing.gbnf")
