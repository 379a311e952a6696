"""``tokfold check --schema``, and what other commands say of JSON Schemas."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("typer")

from cli.cli_runner import TEXTS, as_json, fails, run, write_tokenizer

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"$ref": "https://example.com/age"}},
    "required": ["name", "age"],
}
EXPECTED = "expected an integer between 0 and 150, not 151"
AGE = {"type": "integer", "minimum": 0, "maximum": 150}


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "person"  # no extension says what it is
    path.write_text(json.dumps({**SCHEMA, "properties": {"name": {"type": "string"}, "age": AGE}}))
    return path


def test_check_against_a_schema(schema, tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{\n  "name": "Ada",\n  "age": 36\n}\n')
    bad.write_text('{\n  "name": "Ada",\n  "age": 151\n}\n')
    result = run("check", good, bad, "--schema", schema, code=1)
    lines = result.stdout.splitlines()
    assert lines[0] == f"{good}: accepted (32 bytes)"
    assert lines[1] == f"{bad}:3:12: refused"
    assert [line.split() for line in lines[6:8]] == [
        ["document", "/age"],
        [
            "schema",
            "#/properties/age:",
            "expected",
            "an",
            "integer",
            "between",
            "0",
            "and",
            "150,",
            "not",
            "151",
        ],
    ]
    assert lines[-1] == "1 of 2 accepted"
    found = as_json("check", "--schema", schema, bad, code=1)["files"][0]["place"]
    reason = {
        "pointers": ["#/properties/age"],
        "message": EXPECTED,
    }
    assert found == {"pointer": "/age", "reasons": [reason]}
    assert as_json("check", "-s", schema, good)["accepted"] == 1


def test_check_against_a_schema_takes_its_options(schema, tmp_path):
    text = tmp_path / "text.json"
    text.write_text('{"age": 1, "name": "A", "x": [2]}')
    assert "which is required, before" in run("check", text, "-s", schema, code=1).stdout
    run("check", text, "-s", schema, "--key-order", "any", "--additional-properties")
    closed = run("check", text, "-s", schema, "--key-order", "any", code=1)
    assert '#: no member "x" is allowed' in closed.stdout
    text.write_text('{"age": 1, "name": "A"}')
    for option in (("--whitespace", "compact"), ("--max-whitespace", "0"), ("--indent", "2")):
        run("check", text, "-s", schema, "--key-order", "any", *option, code=1)
    run("check", text, "-s", schema, "--key-order", "any", "--separators", ", ", ": ")
    run("check", text, "-s", schema, "--key-order", "any", "--max-whitespace", "none")
    text.write_text('{"name": "A", "age": 1.0}')
    run("check", text, "-s", schema, code=1)
    run("check", text, "-s", schema, "--integers", "1.0")


def test_check_against_a_schema_takes_formats(tmp_path):
    schema, text = tmp_path / "s.json", tmp_path / "text.json"
    schema.write_text('{"format": "ticket", "type": "string"}')
    text.write_text('"a=1"')
    run("check", text, "-s", schema, "--formats", "ticket=^a=[0-9]$", "--formats", "b=c")
    run("check", text, "-s", schema, "--formats", "ticket=^b", code=1)
    run("check", text, "-s", schema, "--formats", "annotation")
    said = " ".join(fails("check", text, "-s", schema, "--formats", "ticket=x(").split())
    assert 'formats["ticket"]: the pattern "x(", column' in said
    assert "NAME=PATTERN" in fails("check", text, "-s", schema, "--formats", "none")
    both = ("--formats", "annotation", "--formats", "a=b")
    assert "give it alone" in fails("check", text, "-s", schema, *both)


def test_check_against_a_schema_with_resources(tmp_path):
    schema, age, text = tmp_path / "s.json", tmp_path / "age.json", tmp_path / "text.json"
    schema.write_text(json.dumps(SCHEMA))
    age.write_text(json.dumps(AGE))
    text.write_text('{"name": "A", "age": -1}')
    assert "https://example.com/age" in fails("check", text, "-s", schema)
    resource = f"https://example.com/age={age}"
    result = run("check", text, "-s", schema, "--resource", resource, code=1)
    assert "https://example.com/age#: expected an integer" in " ".join(result.stdout.split())
    assert "URI=FILE" in fails("check", text, "-s", schema, "--resource", "age.json")


def test_check_under_a_schema_leaves_out_a_line_end(schema, tmp_path):
    text = tmp_path / "text.json"
    text.write_bytes(b'{"name": "A", "age": 1}\n')
    run("check", schema.rename(tmp_path / "s.json"), text)
    result = run("check", tmp_path / "s.json", text, "--no-chomp", code=1)
    assert "white space around the value is no" in result.stdout


def test_check_misused_with_schemas(schema, tmp_path):
    grammar = tmp_path / "a.gbnf"
    grammar.write_text('root ::= "a"')
    assert "--key-order is an option of JSON Schemas" in fails(
        "check", grammar, "-", "--key-order", "any"
    )
    assert "name a text" in fails("check", grammar)
    assert "contradict" in fails("check", "-s", schema, "x.json", "--lark")
    assert "standard input" in fails("check", "-s", "-", "-")
    assert "--max-whitespace x" in fails("check", "-s", schema, "-", "--max-whitespace", "x")


def test_lint_says_which_schema(tmp_path):
    path = tmp_path / "s.json"
    items = {"contains": {"properties": {"x": {"type": "integer"}}}}
    path.write_text(json.dumps({"properties": {"a": {"type": "array", **items}}}))
    found = as_json("lint", path, "--fail-on", "never")["findings"]
    assert found
    assert all("schema" in finding for finding in found if finding["rule"])
    assert "#/properties/a" in run("lint", path, "--fail-on", "never").stdout


def test_explain_says_which_schema(schema, tmp_path):
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json", [bytes([b]) for b in range(128)])
    text = tmp_path / "text.json"
    text.write_bytes(b'{"name": "Ada", "age": 151}')
    explain = ("explain", schema, "--schema", "-t", tokenizer, "--text", text)
    lines = run(*explain, code=1).stdout.splitlines()
    assert ["document", "/age"] in [line.split() for line in lines]
    assert "open rules" not in "".join(lines)
    assert as_json(*explain, code=1)["place"]["reasons"][0]["message"] == EXPECTED
    text.write_bytes(b'{"name": "Ada", "age": 15')
    place = as_json(*explain)["place"]
    assert place["pointer"] == "/age"
    assert place["reasons"][0]["message"] == "expected an integer between 0 and 150"
    assert "/age" in run(*explain).stdout
    asked = as_json(*explain, "--token", "1", code=1)["place"]
    assert asked == place


def test_explain_of_another_grammar_has_no_place(tmp_path):
    grammar, text = tmp_path / "a.gbnf", tmp_path / "text"
    grammar.write_text('root ::= "{" "a"')
    text.write_bytes(b"{b")
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json", TEXTS)
    explain = ("explain", grammar, "-t", tokenizer, "--text", text)
    assert as_json(*explain, code=1)["place"] is None
    assert "open rules" in run(*explain, code=1).stdout


WARNED = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLenght": 1, "title": "Name"}},
    "title": "A person",
}
WARNING = "#/properties/name/minLenght: no dialect has this keyword, so it is not enforced"


@pytest.fixture
def warned(tmp_path):
    path = tmp_path / "warned.json"
    path.write_text(json.dumps(WARNED))
    return path


def commands(tmp_path):
    """Commands that read a schema, each with a function of its path."""
    text, vocabulary = tmp_path / "text.json", tmp_path / "tokenizer.json"
    text.write_text("{}")
    write_tokenizer(vocabulary, TEXTS)
    return (
        lambda schema: ("check", schema, text),
        lambda schema: ("lint", schema, "--quick", "--fail-on", "never"),
        lambda schema: ("explain", schema, "-t", vocabulary, "--text", text),
    )


def test_commands_print_warnings_and_information_where_it_is_asked_for(warned, tmp_path):
    for command in commands(tmp_path):
        args = command(warned)
        said = run(*args).stderr
        assert said.startswith(f"warning: {warned}: {WARNING}")
        assert said.count("\n") == 1
        lines = run(*args, "--notes", "all").stderr.splitlines()
        assert [line.split(":")[0] for line in lines] == ["warning", "info", "info"]
        assert run(*args, "--notes", "none").stderr == ""
        found = as_json(*args)["schema_notes"]
        assert [(note["level"], note["pointer"]) for note in found] == [
            ("warning", "#/properties/name/minLenght")
        ]
        assert len(as_json(*args, "--notes", "all")["schema_notes"]) == 3


def test_commands_refuse_a_schema_with_warnings_under_strict(warned, tmp_path):
    fine = tmp_path / "fine.json"
    fine.write_text('{"type": "object"}')
    for command in commands(tmp_path):
        said = fails(*command(warned), "--strict")
        assert "the schema has 1 warning, and --strict refuses it" in said
        assert WARNING in said
        assert run(*command(fine), "--strict").stderr == ""
    grammar = tmp_path / "a.gbnf"
    grammar.write_text('root ::= "{}"')
    for command in commands(tmp_path):
        assert "--strict is an option of JSON Schemas" in fails(*command(grammar), "--strict")


def test_commands_take_a_dialect(tmp_path):
    schema, null = tmp_path / "s.json", tmp_path / "null.json"
    schema.write_text('{"type": "string", "nullable": true}')
    null.write_text("null")
    assert "pass --dialect openapi-3.0" in run("check", schema, null, code=1).stderr
    assert run("check", schema, null, "--dialect", "openapi-3.0").stderr == ""
    for command in commands(tmp_path):
        assert "--dialect openapi: give one of draft-04, " in fails(
            *command(schema), "--dialect", "openapi"
        )


def test_lint_counts_warnings_of_a_schema(warned):
    run("lint", warned, "--quick", "--ignore", "optional-run", code=1)
    run("lint", warned, "--quick", "--fail-on", "error")


@pytest.mark.parametrize("option", ["--max-digits=0", "--max-depth=-1", "--indent=65"])
def test_numbers_that_an_option_cannot_have(schema, option):
    """The option is named, and not the file."""
    result = run("check", schema, "--schema", schema, option, code=2)
    assert f"Invalid value for '{option.partition('=')[0]}'" in result.stderr


OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("text", "options"),
    [('{"b": 1, "a": 1}', "--key-order any"), ('{"a": 1, "c": 2}', "--additional-properties")],
)
def test_advice_names_options_that_work(tmp_path, text, options):
    schema, document = tmp_path / "schema.json", tmp_path / "document.json"
    schema.write_text(json.dumps(OBJECT))
    document.write_text(text)
    refused = " ".join(run("check", document, "--schema", schema, code=1).stdout.split())
    assert f"and {options} takes" in refused or f"and {options} opens" in refused
    run("check", document, "--schema", schema, *options.split())


def test_a_wrong_option_is_named_as_it_is_written(tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text("{}")
    error = fails("check", "-", "--schema", schema, "--separators", "x", "y")
    assert error.startswith("error: --separators must be ")


def test_arguments_stay_where_a_command_has_no_such_option():
    from tokfold.cli.advice import in_options, name_options

    class Option:
        def __init__(self, name, spelled, is_flag=False):
            self.name, self.opts, self.is_flag = name, [spelled, "-x"], is_flag

    name_options(
        [
            Option("lossy", "--lossy"),
            Option("dialect", "--dialect"),
            Option("separators", "--separators"),
            Option("strict", "--strict", is_flag=True),
            Option("text", "text"),
            Option("formats", "--formats"),
        ]
    )
    said = {
        'pass lossy={"uniqueItems"} and': "pass --lossy uniqueItems and",
        'lossy={"b", "a"}': "--lossy a --lossy b",
        '"strict=True" is a name': '"strict=True" is a name',
        'strict=True.json: lossy={"a"}/b': 'strict=True.json: lossy={"a"}/b',
        'dialect="draft-07"': "--dialect draft-07",
        'dialect="python" of a pattern': 'dialect="python" of a pattern',
        'formats={"ti cket": pattern}': "--formats 'ti cket'=PATTERN",
        "formats={b}": "formats={b}",
        "strict=True, not strict=False": "--strict, not strict=False",
        'text="a" is an argument': 'text="a" is an argument',
        'key_order="any"': 'key_order="any"',
        "raise it, Limits(max_states=...)": "raise it, Limits(max_states=...) in Python",
        "separators must be two": "--separators must be two",
        "key_order must be one": "key_order must be one",
    }
    assert {text: in_options(text) for text in said} == said
    name_options([])
    assert in_options('lossy={"a"}') == 'lossy={"a"}'
