"""The command line: every command, good and bad input, JSON, exit codes.

Commands run in this process through Typer's runner; what needs a process of its own (signals, a
missing extra, encodings) gets one.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

import pytest
import tokfold

pytest.importorskip("typer")
pytest.importorskip("rich")

from cli.cli_runner import (
    JSON_LIKE,
    ROOT,
    TEXTS,
    as_json,
    fails,
    process,
    run,
    write_tokenizer,
)
from support import processes
from tokfold.cli.commands import COMMANDS, LABORATORY, help_text
from tokfold.cli.diagnosis import diagnose
from tokfold.cli.render import byte_ranges, escaped, quoted, seconds, size

DATA = ROOT / "python" / "tokfold" / "cli" / "data"


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture
def tokenizer(tmp_path):
    """A tokenizer.json of a few tokens, as byte-level BPE spells them."""
    return write_tokenizer(tmp_path / "tokenizer.json", TEXTS)


@pytest.fixture
def grammar(tmp_path):
    path = tmp_path / "pairs.gbnf"
    path.write_text(JSON_LIKE, encoding="utf-8")
    return str(path)


# --------------------------------------------------------------------------- help


def test_help_of_all():
    text = run("--help").stdout
    assert text == help_text()
    assert "tokfold demo" in text
    assert max(map(len, text.splitlines())) <= 80
    for folder, commands in (("cli", COMMANDS), ("laboratory.commands", LABORATORY)):
        for name, summary in commands.items():
            function = getattr(importlib.import_module(f"tokfold.{folder}.{name}"), name)
            assert function.__doc__.splitlines()[0] == summary
    for arguments in ([], ["-h"], ["--help"]):
        done = process(*arguments, code=WITHOUT + "from tokfold.cli import main; main()")
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode() == text


WITHOUT = "import sys; sys.modules.update(dict.fromkeys(['typer', 'rich', 'click']))\n"
"""A process in which the packages of the command line are missing."""


def test_a_command_imports_no_other():
    code = (
        "import sys; from tokfold.cli.app import app\n"
        "try: app(['check', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m.startswith('tokfold.')), file=sys.stderr)"
    )
    loaded = process(code=code).stderr.decode()
    assert "tokfold.cli.check" in loaded
    assert "tokfold.laboratory" not in loaded
    for name in {*COMMANDS} - {"check"}:
        assert f"'tokfold.cli.{name}'" not in loaded


def test_streams_that_the_caller_has_closed():
    closed = "import sys; sys.stdin = sys.stdout = None; from tokfold.cli import main; main()"
    assert process("--help", code=closed).returncode == 0
    done = process("check", "--regex", "[a-z]*", "-", code=closed)
    assert (done.returncode, done.stderr) == (0, b"")
    assert process("check", "--regex", "[a-z]+", "-", code=closed).returncode == 1


def test_a_command_of_the_laboratory_says_how_to_install_it():
    missing = "import sys; sys.modules['tokfold.laboratory'] = None\n"
    for name in LABORATORY:
        done = process(name, "--help", code=missing + "from tokfold.cli import main; main()")
        assert done.returncode == 2
        said = done.stderr.decode()
        assert f"tokfold {name} needs the package 'tokfold.laboratory'" in said
        assert "pip install ./laboratory in a checkout of tokfold" in " ".join(said.split())
        assert "Traceback" not in said


def test_help_teaches():
    for command in ("classes", "check", "explain", "walk", "replay", "inspect", "report", "demo"):
        text = run(command, "--help").stdout
        assert "Examples" in text
        assert f"tokfold {command}" in text
        assert max(map(len, text.splitlines())) <= 80


def test_pattern_in_help_keeps_its_brackets():
    assert "'[0-9]{4}-[0-9]{2}'" in run("classes", "--help").stdout


def test_version():
    assert run("--version").stdout.strip() == f"tokfold {tokfold.__version__}"


def test_wrong_usage_is_two():
    run("nonsense", code=2)
    run("classes", "x.gbnf", code=2)


# ------------------------------------------------------------------------ classes


def test_classes_report(grammar, tokenizer):
    text = run("classes", grammar, "--tokenizer", tokenizer).stdout
    for part in ("Time", "walk over the vocabulary", "The biggest classes", "Sizes of the classes"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_classes_json(grammar, tokenizer, tmp_path):
    output = tmp_path / "out.tokfold"
    found = as_json("classes", grammar, "-t", tokenizer, "-o", output)
    expected = tokfold.compile_classes(
        tokfold.Grammar.from_file(grammar), tokfold.Vocabulary.from_file(tokenizer)
    )
    assert found["classes"]["total"] == len(expected)
    assert found["classes"]["tokens"] == len(TEXTS) + 1
    assert found["classes"]["dead_tokens"] == 1  # the line end
    assert sum(row["classes"] for row in found["histogram"]) == len(expected)
    assert sum(row["tokens"] for row in found["histogram"]) == len(TEXTS)
    biggest = {frozenset(row["samples"]) for row in found["biggest"]}
    assert {frozenset(("b", "ab")), frozenset(("1", "12"))} <= biggest
    assert found["never_valid_samples"] == ["\\n"]
    assert found["artifact"] == {"file": str(output), "bytes": output.stat().st_size}
    assert tokfold.TokenClasses.load(output) == expected


def test_classes_prune_and_root(tokenizer, tmp_path):
    path = tmp_path / "g.gbnf"
    path.write_text('root ::= "a"\nother ::= "b" | "1" never\nnever ::= "1" never\n')
    pruned = as_json("classes", path, "-t", tokenizer, "--root", "other")
    kept = as_json("classes", path, "-t", tokenizer, "--root", "other", "--no-prune")
    assert pruned["grammar"]["root"] == "other"
    assert pruned["classes"]["dead_tokens"] > kept["classes"]["dead_tokens"]


def test_classes_from_cache(grammar, tokenizer, tmp_path):
    arguments = ("classes", grammar, "-t", tokenizer, "--cache-dir", tmp_path / "cache")
    first, second = as_json(*arguments), as_json(*arguments)
    assert "walk over the vocabulary" in first["seconds"]
    assert "loading from the cache" in second["seconds"]
    assert first["classes"] == second["classes"]


def test_classes_from_standard_input(tokenizer):
    found = as_json("classes", "-", "-t", tokenizer, stdin=b'root ::= "a"+')
    assert found["grammar"]["rules"] == 1


def test_classes_of_other_kinds(tokenizer, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    assert as_json("classes", schema, "-t", tokenizer)["grammar"]["kind"] == "JSON Schema"
    found = as_json("classes", "--regex", "[ab]+", "-t", tokenizer)
    assert found["grammar"]["kind"] == "regular expression"
    lark = tmp_path / "g.lark"
    lark.write_text('start: "a" "b"\n')
    assert as_json("classes", lark, "-t", tokenizer)["grammar"]["kind"] == "Lark grammar"


def test_classes_bad_grammars(tokenizer, tmp_path):
    def refused(content: bytes, name: str = "bad.gbnf") -> str:
        path = tmp_path / name
        path.write_bytes(content)
        return fails("classes", path, "-t", tokenizer)

    assert "missing.gbnf: No such file" in fails("classes", "missing.gbnf", "-t", tokenizer)
    assert "directory" in fails("classes", tmp_path, "-t", tokenizer)
    assert "bad.gbnf: line 1, column 10" in refused(b'root ::= "a')
    assert "nearest name" in refused(b'root ::= exp\nexpr ::= "a"')
    assert "0xff is not UTF-8" in refused(b'root ::= "a"\n\xff\xfe')
    assert "line 2: byte 0xff is not UTF-8" in refused(b'\xef\xbb\xbfroot ::= "a"\n\xff\xfe')
    assert "NUL" in refused(b"\x00\x01\x02")
    assert "no rules" in refused(b"")
    assert "empty" in refused(b"root ::= root")
    assert "bad.gbnf: line 1" in refused(b"root ::= Token(999)")


def test_classes_bad_documents(tokenizer, tmp_path):
    def refused(content: str, name: str) -> str:
        path = tmp_path / name
        path.write_text(content)
        return fails("classes", path, "-t", tokenizer)

    assert "not a JSON document" in refused('{"type":', "truncated.json")
    found = refused('{"items": {"type": "foo"}}', "odd.json")
    assert "odd.json: #/items: type: expected one of null, boolean, " in found
    assert 'found "foo"' in found
    assert "no value satisfies the schema" in refused('{"enum": []}', "none.json")
    found = fails("classes", "--regex", "a(", "-t", tokenizer)
    assert "line 1, column 2: `(`: the group is not closed" in found
    assert "line 1, column 8: `foo` is not defined" in refused("start: foo", "odd.lark")


def test_a_command_that_is_misspelled():
    assert "No such command 'chek'. Did you mean 'check'?" in run("chek", code=2).stderr
    assert "Did you mean" not in run("nothing", code=2).stderr


def test_classes_contradicting_options(grammar, tokenizer):
    assert "--schema and --lark" in fails("classes", grammar, "-t", tokenizer, "--schema", "--lark")
    assert "--root" in fails("classes", "--regex", "a", "-t", tokenizer, "--root", "x")


def test_classes_bad_tokenizers(grammar, tmp_path):
    assert "cannot be read" in fails("classes", grammar, "-t", tmp_path / "missing")
    empty = tmp_path / "tokenizer.json"
    empty.write_text('{"model": {"type": "BPE", "vocab": {}, "merges": []}}')
    fails("classes", grammar, "-t", empty)
    empty.write_bytes(b"")
    assert "empty" in fails("classes", grammar, "-t", empty)
    empty.write_bytes(b"{\x00\xff")
    fails("classes", grammar, "-t", empty)


def test_classes_cannot_be_saved(grammar, tokenizer, tmp_path):
    path = tmp_path / "missing" / "out.tokfold"
    assert "cannot be written" in fails("classes", grammar, "-t", tokenizer, "-o", path)


# -------------------------------------------------------------------------- check


def test_check_accepts(grammar, tmp_path):
    good = tmp_path / "good.txt"
    good.write_bytes(b'{"a": 1, "b": true}')
    assert "accepted (19 bytes)" in run("check", grammar, good).stdout
    assert as_json("check", grammar, good)["accepted"] == 1


def test_check_says_where_and_what(grammar, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b'{"a": tru}')
    lines = run("check", grammar, bad, code=1).stdout.splitlines()
    assert lines[0] == f"{bad}:1:10: refused"
    assert lines[1].endswith('| {"a": tru}')
    assert lines[2].index("^") == lines[1].index("}")
    assert lines[3].split() == ["found", '"}"']
    assert lines[4].split() == ["expected", '"e"']


def test_check_forces_words(grammar):
    found = as_json("check", grammar, "-", code=1, stdin=b'{"a": x}')["files"][0]
    assert found["expected"] == ["space", "0-9", '"f"', '"t"']
    assert bytes(found["expected_bytes"]) == b" 0123456789ft"
    assert (found["line"], found["column"], found["found"]) == (1, 7, '"x"')


def test_check_several_files(grammar, tmp_path):
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_bytes(b'{"a":1}')
    bad.write_bytes(b"")
    assert "1 of 2 accepted" in run("check", grammar, good, bad, code=1).stdout
    result = run("check", grammar, good, tmp_path / "missing.txt", bad, code=2)
    assert "missing.txt: No such file" in result.stderr
    assert "1 of 3 accepted" in result.stdout
    found = as_json("check", grammar, good, tmp_path / "missing.txt", code=2)
    assert [row["accepted"] for row in found["files"]] == [True, None]


def test_check_line_end(grammar):
    text = b'{"a":1}\r\n'
    assert "--chomp" in run("check", grammar, "-", code=1, stdin=text).stdout
    run("check", grammar, "-", "--chomp", stdin=text)


def test_check_a_byte_order_mark(grammar, tmp_path):
    for text, said in (
        (b'\xef\xbb\xbf{"a":1}', True),
        (b"\xef\xbb\xbf", True),
        (b'{"a":\xef\xbb\xbf1}', False),
        (b"\xef\xbb", False),
    ):
        found = as_json("check", grammar, "-", code=1, stdin=text)
        assert ("byte order mark" in (found["files"][0]["hint"] or "")) is said
    shown = run("check", grammar, "-", code=1, stdin=b'\xef\xbb\xbf{"a":1}').stdout
    assert "save it as UTF-8 without the mark" in " ".join(shown.split())
    free = tmp_path / "free.gbnf"
    free.write_text("root ::= [^a]*")
    run("check", free, "-", stdin=b"\xef\xbb\xbfb")  # here it is a character as others are
    assert as_json("check", free, "-", code=1, stdin=b"\xef\xbb\xbfa")["files"][0]["hint"] is None


def test_check_bad_grammar(tmp_path):
    path = tmp_path / "bad.gbnf"
    path.write_text("root ::=")
    fails("check", path, "-")
    path.write_text("root ::= root")
    assert "bad.gbnf: line 1" in fails("check", path, "-")


# The texts of a grammar, where it leaves it, and what stands there.
DIAGNOSES = [
    ('root ::= "a" "é"', b"a\xc3\xa8", (1, 2), '"è" (U+00E8, refused at byte 2 of 2)'),
    ('root ::= "a" "é"', b"a\xc3", (1, 2), "end of text, inside a character"),
    ('root ::= "a" "é"', b"a\xc3!", (1, 3), '"!"'),
    ('root ::= "a" "é"', b"a\xff", (1, 2), "byte 0xff, which is not UTF-8"),
    ('root ::= "a\\n" "b"', b"a\nc", (2, 1), '"c"'),
    ('root ::= "a\\n" "b"', b"a\n", (2, 1), "end of text"),
    ('root ::= "a" "b"', b"a\t", (1, 2), "tab"),
    ('root ::= "日本" "b"', "日本x".encode(), (1, 3), '"x"'),
    ('root ::= "a"', b"", (1, 1), "end of text"),
]


@pytest.mark.parametrize(("text", "data", "place", "found"), DIAGNOSES)
def test_diagnosis(text, data, place, found):
    diagnosis = diagnose(tokfold.Grammar.from_ebnf(text), data)
    assert ((diagnosis.line, diagnosis.column), diagnosis.found) == (place, found)


@pytest.mark.parametrize("width", [20, 40, 79])
@pytest.mark.parametrize("length", [0, 10, 39, 500])
@pytest.mark.parametrize("fill", ["x", "日", "\t", "\x01"])
def test_excerpt_points_at_the_spot(width, length, fill):
    grammar = tokfold.Grammar.from_ebnf("root ::= [x日\\t\\x01]*")
    text = (fill * length + "!" + fill * length).encode()
    line, caret = diagnose(grammar, text).excerpt(width, "...")
    from rich.cells import cell_len

    assert cell_len(line) <= width
    before = next(line[:i] for i in range(len(line) + 1) if cell_len(line[:i]) == caret)
    assert line[len(before)] == "!"


# ------------------------------------------------------------------------ inspect


@pytest.fixture
def artefact(grammar, tokenizer, tmp_path):
    path = tmp_path / "pairs.tokfold"
    run("classes", grammar, "-t", tokenizer, "-o", path)
    return path


def test_inspect(artefact, grammar, tokenizer):
    text = run("inspect", artefact).stdout
    assert "checksum good" in text
    assert max(map(len, text.splitlines()[1:])) <= 80  # the path is never broken
    found = as_json("inspect", artefact, "-t", tokenizer, "-g", grammar)
    assert (found["fits_tokenizer"], found["fits_grammar"]) == (True, True)
    assert found["vocabulary_fingerprint"] == tokfold.Vocabulary.from_file(tokenizer).fingerprint
    assert as_json("inspect", artefact)["fits_tokenizer"] is None


def test_inspect_for_another_tokenizer(artefact, tmp_path):
    other = write_tokenizer(tmp_path / "other.json", [*TEXTS, b"more"])
    assert "another one than this" in run("inspect", artefact, "-t", other, code=1).stdout
    assert as_json("inspect", artefact, "-t", other, code=1)["fits_tokenizer"] is False


def test_inspect_bad_files(artefact, tmp_path):
    assert "No such file" in fails("inspect", tmp_path / "missing")
    content = bytearray(artefact.read_bytes())
    content[-60] ^= 1
    artefact.write_bytes(content)
    assert "checksum" in fails("inspect", artefact)
    artefact.write_bytes(content[:100])
    fails("inspect", artefact)
    artefact.write_bytes(b"not at all")
    assert "not a tokfold artefact" in fails("inspect", artefact)
    assert "directory" in fails("inspect", tmp_path)


# --------------------------------------------------------------------------- demo


@pytest.mark.parametrize("name", ["cpp.gbnf", "cpp.txt"])
def test_packaged_copies_are_the_projects(name):
    folder = ROOT / "grammars" / "cpp"
    if not folder.is_dir():
        pytest.skip("not in a checkout")
    original = folder / "cpp.gbnf" if name == "cpp.gbnf" else folder / "valid" / "bench.txt"
    assert (DATA / name).read_bytes() == original.read_bytes()


def test_packaged_text_is_in_the_language():
    grammar = tokfold.Grammar.from_file(DATA / "cpp.gbnf")
    assert tokfold.recognize(grammar, (DATA / "cpp.txt").read_bytes()).accepted


@pytest.mark.parametrize("seed", range(8))
def test_demo(seed):
    found = as_json("demo", "--seed", seed)
    assert found["satisfies"]
    value = json.loads(found["with_masks"])
    assert list(value) == ["name", "born", "height", "languages"]
    assert 0.5 <= value["height"] <= 2.5
    with pytest.raises(json.JSONDecodeError):
        json.loads(found["without_masks"])
    assert all(1 <= allowed < found["vocabulary"]["tokens"] for allowed in found["allowed"])


def test_demo_shows_both_texts():
    found = as_json("demo")
    text = run("demo").stdout
    assert found["with_masks"] in text
    assert "It satisfies the schema." in text
    assert f"of {found['vocabulary']['tokens']}" in text


def test_real_demo(monkeypatch):
    pytest.importorskip("xgrammar")
    pytest.importorskip("mistral_common")
    from tokfold.cli import demo_run, real_demo

    made = []

    def run_once(*arguments):
        made.append(made[0] if made else demo_run.run(*arguments))
        return made[0]

    monkeypatch.setattr(real_demo, "run", run_once)
    found = as_json("demo", "--real", "--steps", "3")
    assert found["finished"]
    assert found["compared"]["masks"] == 3
    assert found["compared"]["wrong"] == []
    assert found["vocabulary"]["size"] == 131_072
    assert found["classes"] < 10_000
    assert found["own_engine"] == {"masks": 437, "equal_to_classes": 437}
    for times in found["mask_seconds"].values():
        # A loaded machine may turn their order round: benchmarks say which is faster.
        assert min(times["own"], times["classes"], times["plain"]) > 0
    seconds = found["seconds"]
    assert all(seconds[f"first_mask_{name}"] > 0 for name in ("own", "classes", "plain"))
    text = run("demo", "--real", "--steps", "3").stdout
    assert len(made) == 2
    assert "437 of 437 masks the same as XGrammar's over classes" in text
    for part in ("XGrammar   over classes", "own engine", "to the first mask", "a mask, p99"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    rows = [line.rstrip() for line in text.splitlines() if "% " in line]
    assert len(rows) == 6
    assert [row for row in rows if row not in page] == []
    assert f"\n{found['classes']:,} classes, found in " in page


def test_tekken_by_name(grammar):
    pytest.importorskip("mistral_common")
    assert as_json("classes", grammar, "-t", "tekken")["vocabulary"]["size"] == 131_072


# ------------------------------------------------------------------ as a process


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_the_extra(module):
    code = f"import sys; sys.modules[{module!r}] = None; from tokfold.cli import main; main()"
    result = process("check", "--help", code=code)
    assert result.returncode == 2
    assert result.stdout == b""
    assert result.stderr.count(b"\n") == 1
    assert b'pip install ".[cli]" in a checkout of tokfold' in result.stderr


def test_interrupt_is_130(grammar, tokenizer, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tokfold.cli.classes.compile_classes", interrupted)
    run("classes", grammar, "-t", tokenizer, code=130)


def test_terminal_without_the_characters(grammar, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes('{"é": 日}'.encode())
    result = process("check", grammar, str(bad), PYTHONIOENCODING="ascii")
    assert result.returncode == 1
    assert rb'{"\xe9": \u65e5}' in result.stdout
    assert result.stderr == b""


def test_reader_that_leaves(grammar, tokenizer):
    command = f'"{sys.executable}" -m tokfold.cli classes "{grammar}" -t "{tokenizer}" | head -1'
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    result = processes.run(["sh", "-c", command], env=environment, text=False)
    assert result.stdout.count(b"\n") == 1
    assert result.stderr == b""


@pytest.mark.skipif(os.name == "nt", reason="there are no such pipes")
@pytest.mark.parametrize("reader", ["true", "head -c 1"])
def test_a_reader_that_leaves_is_no_answer(grammar, tmp_path, reader):
    """1 would be the answer "no", which stands where a pipe has room for all that is said."""
    text = tmp_path / "text"
    text.write_text("[" * 400)
    command = f'set -o pipefail; "{sys.executable}" -m tokfold.cli check "{grammar}" '
    command += f"{' '.join([str(text)] * 1_000)} | {reader}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    result = processes.run(["bash", "-c", command], env=environment, text=False)
    assert result.stderr == b""
    assert result.returncode in (0, 2)


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_ctrl_c_while_a_library_is_imported(module):
    code = f"""
import sys
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from tokfold.cli import main
main()
"""
    result = process("check", "grammar", "text", code=code)
    assert result.returncode == 130
    assert result.stderr == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk")
@pytest.mark.parametrize("command", ["--version", "--help"])
def test_a_full_disk(command):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    line = f'"{sys.executable}" -m tokfold.cli {command} > /dev/full'
    result = processes.run(["sh", "-c", line], env=environment, text=False)
    assert result.returncode == 2
    assert result.stderr.startswith(b"error: ")
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize("columns", ["0", "3", "10", "12"])
def test_a_narrow_terminal(grammar, tmp_path, columns):
    text = tmp_path / "text"
    text.write_text("[" + "1" * 50 + "x" * 50)
    for encoding in ("utf-8", "ascii"):
        result = process("check", grammar, str(text), COLUMNS=columns, PYTHONIOENCODING=encoding)
        assert result.returncode == 1
        assert result.stderr == b""


# --------------------------------------------------------------------- rendering


def test_escaped():
    assert escaped(b' the\n\t\\"\x00\xff') == ' the\\n\\t\\\\"\\0\\xff'
    assert escaped("é日\u200b\x7f".encode()) == "é日\\u{200b}\\x7f"
    assert escaped(b"\xed\xa0\x80") == "\\xed\\xa0\\x80"
    assert (quoted("a"), quoted('"a'), quoted("\"'")) == ('"a"', "'\"a'", '"\\"\'"')


def test_byte_ranges():
    letters = [*range(0x41, 0x5B), *range(0x61, 0x7B)]
    assert byte_ranges(sorted([*b" \t\n\r", *letters, 0x5F])) == [
        "white space",
        "A-Z",
        '"_"',
        "a-z",
    ]
    assert byte_ranges(b",01") == ['","', '"0"', '"1"']
    assert byte_ranges([b for b in range(0x20, 0x7F) if b not in b'"\\']) == [
        'any printable ASCII except \'"\' "\\"'
    ]
    assert byte_ranges([*range(0x80, 0xC0)]) == ["\\x80-\\xbf"]
    assert byte_ranges([*range(0xC2, 0xF5)]) == ["a non-ASCII character"]
    assert byte_ranges([]) == []


def test_numbers():
    assert [seconds(v) for v in (5e-7, 0.0123, 2.5, 123.4)] == [
        "0.50 µs",
        "12.3 ms",
        "2.50 s",
        "123 s",
    ]
    assert [size(v) for v in (36, 16384, 5 << 20)] == ["36 bytes", "16.0 KB", "5.00 MB"]


@pytest.mark.parametrize("module", ["tokfold", "tokfold.cli"])
def test_the_package_runs_as_a_module(module):
    done = processes.run([sys.executable, "-m", module, "--help"])
    assert done.returncode == 0
    assert "explain" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
def test_help_that_cannot_be_written_is_an_error():
    command = f'"{sys.executable}" -m tokfold --help > /dev/full'
    done = processes.run(["sh", "-c", command])
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
