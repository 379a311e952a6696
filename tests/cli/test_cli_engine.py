"""The commands that run our own engine: ``explain`` and ``walk``."""

from __future__ import annotations

import pytest
import tokfold

pytest.importorskip("typer")
pytest.importorskip("rich")

from cli.cli_runner import (
    JSON_LIKE,
    TEXTS,
    as_json,
    fails,
    run,
    write_tokenizer,
)
from strategies.profiles import LONG
from tokfold.cli.render import escaped, unescaped


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture
def tokenizer(tmp_path):
    """Words, and every byte of ASCII."""
    singles = [bytes([byte]) for byte in range(0x20, 0x7F)]
    words = [text for text in [*TEXTS, b'":', b": tr", b"ue", b"true"] if text not in singles]
    return write_tokenizer(tmp_path / "tokenizer.json", [*singles, *words])


@pytest.fixture
def grammar(tmp_path):
    path = tmp_path / "pairs.gbnf"
    path.write_text(JSON_LIKE, encoding="utf-8")
    return str(path)


@pytest.fixture
def arguments(grammar, tokenizer):
    return (grammar, "--tokenizer", tokenizer)


# ------------------------------------------------------------------------ explain


def test_explain_where_a_text_stops(arguments, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes('{"é": tr}'.encode())
    lines = run("explain", *arguments, "--text", bad, code=1).stdout.splitlines()
    assert lines[0] == f"{bad}:1:9: refused"
    assert lines[1].endswith('| {"é": tr}')
    assert lines[2].index("^") == lines[1].index("}")
    notes = {line[:13].strip(): line[13:].strip() for line in lines[3:]}
    assert notes["found"] == '"}"'
    assert notes["expected"] == '"ue"'
    assert notes["open rules"] == "root > pair"
    assert notes["going on"] == "pair"
    assert notes["token"] == '9 of the text, "}", number 93: not allowed, byte 1 of 1, 0x7d,'
    assert notes["nearest"] == '"u" "ue"'


def test_explain_where_a_text_stops_inside_a_token(arguments):
    """The quote begins a key, the colon after it cannot be in one."""
    found = as_json("explain", *arguments, "--text", "-", stdin=b'{":', code=1)
    assert (found["tokens_read"], found["bytes_read"], found["refused"]["column"]) == (1, 2, 3)
    assert (found["token"]["text"], found["token"]["read"]) == ('":', 1)
    assert found["token"]["open_rules"] == ["root", "pair", "string"]


def test_explain_where_a_text_stops_at_a_token(arguments):
    found = as_json("explain", *arguments, "--text", "-", stdin=b'{"a": "', code=1)
    assert found["refused"]["line"] == 1
    assert found["refused"]["column"] == 7
    assert found["refused"]["found"] == "'\"'"
    assert found["bytes_read"] == 6
    assert found["next"] is None
    token = found["token"]
    assert (token["text"], token["allowed"], token["read"]) == ('"', False, 0)
    expected = [*b" 0123456789ft"]
    assert token["expected_bytes"] == found["refused"]["expected_bytes"] == expected
    assert token["open_rules"] == ["root", "pair"]
    vocabulary = tokfold.Vocabulary.from_file(arguments[2])
    assert all(vocabulary[near["id"]] == bytes(near["bytes"]) for near in token["nearest"])
    assert token["nearest"]


def test_explain_agrees_with_check(arguments, grammar):
    """The place, and all that is said of it, on every prefix of a text and a wrong byte."""
    text = b'{ "a": 12, "bab":true,"": 0}'
    wrong_bytes = (b"}", b'"', b"\xc3\xa9", b"0", b"\n")
    for end in range(len(text)):
        for wrong in wrong_bytes if LONG else [wrong_bytes[end % len(wrong_bytes)]]:
            data = text[:end] + wrong + b"a"
            checked = as_json("check", grammar, "-", stdin=data, code=1)["files"][0]
            found = as_json("explain", *arguments, "--text", "-", stdin=data, code=None)
            if checked["read"] == len(data):
                assert found["refused"] is None
                assert bytes(found["next"]["expected_bytes"]) == bytes(checked["expected_bytes"])
            else:
                for key in ("read", "line", "column", "found", "expected", "may_end", "hint"):
                    assert found["refused"][key] == checked[key], (data, key)


def test_explain_what_may_come_next(arguments):
    text = run("explain", *arguments, "--text", "-", stdin=b'{"a": tr').stdout
    assert "all of it can be read (8 bytes in 7 tokens), and it must go on" in text
    assert "forced" in text
    found = as_json("explain", *arguments, "--text", "-", stdin=b'{"a": tr')
    assert found["refused"] is found["token"] is None
    assert found["next"]["forced"] == "ue"
    assert found["next"]["allowed_tokens"] == 2
    assert [token["text"] for token in found["next"]["sample"]] == ["u", "ue"]
    assert not found["may_end"]


def test_explain_at_the_end(arguments):
    """The stop token is counted, and no sample of text."""
    found = as_json("explain", *arguments, "--text", "-", stdin=b'{"a":1}')
    stop = found["vocabulary"]["stop_token_ids"]
    assert found["may_end"]
    assert found["next"]["allowed_stop_tokens"] == stop
    assert found["next"]["allowed_tokens"] == 1
    assert found["next"]["sample"] == []
    text = run("explain", *arguments, "--text", "-", stdin=b'{"a":1}').stdout
    assert "and it may end here" in text
    assert "no text goes on from here" in text
    allowed = run("explain", *arguments, "--text", "-", "--token-id", stop[0], stdin=b'{"a":1}')
    assert "allowed, the text is complete" in allowed.stdout
    refused = run("explain", *arguments, "--text", "-", "--token-id", stop[0], stdin=b"{", code=1)
    assert "not allowed, the text is not complete here" in refused.stdout
    assert "nearest" not in refused.stdout


def test_explain_a_token(arguments):
    half = b'{"a": '
    run("explain", *arguments, "--text", "-", "--token", "true", stdin=half)
    text = run("explain", *arguments, "--text", "-", "--token", ",", stdin=half, code=1).stdout
    assert 'token       ",", number 12: not allowed, byte 1 of 1, 0x2c, cannot be' in text
    found = as_json("explain", *arguments, "--text", "-", "--token", "\\n", stdin=half, code=1)
    assert found["token"]["bytes"] == [10]
    assert found["refused"] is None
    assert found["next"]["allowed_tokens"] > 0
    # where the text itself stops, that is the answer
    found = as_json("explain", *arguments, "--text", "-", "--token", "a", stdin=b"x", code=1)
    assert found["token"]["text"] == "x"


def test_explain_a_line_end(arguments):
    text = b'{"a":1}\r\n'
    assert "--chomp" in run("explain", *arguments, "--text", "-", stdin=b'{"a":1}\n', code=1).stdout
    run("explain", *arguments, "--text", "-", "--chomp", stdin=text)


def test_explain_a_deep_text(tokenizer, tmp_path):
    path = tmp_path / "deep.gbnf"
    path.write_text('root ::= "{" root "}" | "1"')
    half = b"{" * 3_000
    found = as_json("explain", path, "-t", tokenizer, "--text", "-", stdin=half + b"}", code=1)
    assert found["bytes_read"] == 3_000
    assert found["refused"]["expected_bytes"] == [*b"1{"]
    assert as_json("explain", path, "-t", tokenizer, "--text", "-", stdin=half)["next"]


def test_explain_many_open_rules(tokenizer, tmp_path):
    path = tmp_path / "deep.gbnf"
    path.write_text('root ::= "{" root "}" | "1"')
    text = run("explain", path, "-t", tokenizer, "--text", "-", stdin=b"{" * 99).stdout
    assert "root > root > root > root > (" in text
    assert max(map(len, text.splitlines()[1:])) <= 80


def test_explain_wrong_usage(arguments, tokenizer):
    def wrong(*more):
        return fails("explain", *arguments, "--text", __file__, *more)

    assert "contradict" in wrong("--token", "a", "--token-id", 1)
    assert "is no token of" in wrong("--token", "true}")
    assert '"true" "}"' in wrong("--token", "true}")
    assert "\\q is no escape" in wrong("--token", "\\q")
    said = wrong("--token", "\\xZZ")
    assert "\\xZZ is no byte: two hexadecimal digits must follow \\x" in said
    assert "--token is empty" in wrong("--token", "")
    assert "has tokens 0 to" in wrong("--token-id", 100_000)
    assert "has tokens 0 to" in wrong("--token-id", -1)
    assert "standard input" in fails("explain", "-", "-t", tokenizer, "--text", "-")
    assert "missing.txt: No such file" in fails("explain", *arguments, "--text", "missing.txt")


def test_explain_a_text_that_the_tokens_do_not_spell(arguments):
    data = "日".encode()
    result = run("explain", *arguments, "--text", "-", stdin=data, code=2)
    assert "no token of" in result.stderr
    assert "fits at byte 0" in result.stderr


def test_unescaped_reads_what_escaped_shows():
    for data in (b' the\n\t\\"\x00\xff\r', "é日\u200b\x7f".encode(), b"\xed\xa0\x80", b"", b"\\x"):
        assert unescaped(escaped(data)) == data
    assert unescaped("\\\"\\'") == b"\"'"
    for text in ("\\q", "\\", "\\x0", "\\u{110000}", "\\u{d800}", "\\u12"):
        with pytest.raises(ValueError, match=r"\\"):
            unescaped(text)


# --------------------------------------------------------------------------- walk


def test_walk(arguments, tmp_path):
    good = tmp_path / "good.txt"
    good.write_bytes(b'{"a": false}')
    text = run("walk", *arguments, good).stdout
    for part in ("Token by token", "forced", '"alse"', "end of text", "In all", "a mask", "memory"):
        assert part in text
    assert "The slowest masks" not in text
    assert text.splitlines()[-1] == f"{good}: accepted"
    assert max(map(len, text.splitlines()[1:-1])) <= 80


@pytest.mark.parametrize("mode", ["--classes", "--no-classes"])
def test_walk_json(arguments, mode):
    text = b'{"ab": 12, "a": true}'
    found = as_json("walk", *arguments, "-", mode, stdin=text)
    vocabulary = tokfold.Vocabulary.from_file(arguments[2])
    tokens = vocabulary.encode_greedy(text)
    steps = found["steps"]
    assert [step["token_id"] for step in steps] == [*tokens, None]
    assert [step["index"] for step in steps] == list(range(len(tokens) + 1))
    assert found["over_classes"] is (mode == "--classes")
    assert (found["accepted"], found["may_end"], found["tokens_read"]) == (True, True, len(tokens))
    compiled = tokfold.compile(tokfold.Grammar.from_file(arguments[0]), vocabulary, classes="never")
    matcher, mask = tokfold.Matcher(compiled), tokfold.allocate_bitmask(1, len(vocabulary))
    for step in steps:
        matcher.fill_bitmask(mask)
        assert step["allowed_tokens"] == sum(
            int(word).bit_count() for word in mask.view("uint32")[0]
        )
        assert step["forced"] == escaped(matcher.forced_bytes())
        assert step["mask_seconds"] > 0
        if step["token_id"] is not None:
            assert step["accept_seconds"] > 0
            matcher.accept_token(step["token_id"])
    assert steps[-1]["accept_seconds"] is None
    masks = sorted(step["mask_seconds"] for step in steps)
    spread = found["mask_seconds"]
    assert spread["max"] == masks[-1]
    assert spread["total"] == pytest.approx(sum(masks))
    assert spread["mean"] == pytest.approx(sum(masks) / len(masks))
    assert masks[0] <= spread["p50"] <= spread["p99"] <= spread["max"]
    for row in found["mask_histogram"]:
        below = row["below_seconds"]
        above = 0 if row is found["mask_histogram"][0] else below / 2
        assert row["masks"] == sum(above < mask <= below for mask in masks)
    assert sum(row["masks"] for row in found["mask_histogram"]) == len(steps)
    assert found["mask_counters"]["masks"] == len(steps)
    assert found["matcher_counters"]["steps"] == len(tokens)
    assert found["bytes_held"] > 0
    assert [row["mask_seconds"] for row in found["slowest"]] == masks[:-6:-1]


def test_walk_of_a_long_text(arguments):
    text = b'{"a": ' + b"1" * 400 + b"}"
    shown = run("walk", *arguments, "-", "--limit", 6, stdin=text).stdout
    for part in ("The slowest masks", "How long masks take", "..."):
        assert part in shown
    found = as_json("walk", *arguments, "-", "--limit", 6, stdin=text)
    count = found["text"]["tokens"]
    assert [s["index"] for s in found["steps"]] == [0, 1, 2, count - 2, count - 1, count]
    assert len(as_json("walk", *arguments, "-", stdin=text)["steps"]) == count + 1
    assert as_json("walk", *arguments, "-", "--limit", 0, stdin=text)["steps"] == []
    assert "Token by token" not in run("walk", *arguments, "-", "--limit", 0, stdin=text).stdout


def test_walk_of_a_text_that_stops(arguments):
    result = run("walk", *arguments, "-", stdin=b'{"a": a}', code=1)
    assert "refused at token 6; tokfold explain says why" in result.stdout
    found = as_json("walk", *arguments, "-", stdin=b'{"a": a}', code=1)
    assert (found["tokens_read"], len(found["steps"])) == (5, 6)
    assert found["steps"][-1]["token"] == "a"
    assert found["steps"][-1]["accept_seconds"] is None
    half = run("walk", *arguments, "-", stdin=b'{"a": 1', code=1)
    assert "all of it can be read, but it must go on" in half.stdout
    assert as_json("walk", *arguments, "-", stdin=b"", code=1)["accept_seconds"] is None


def test_walk_wrong_usage(arguments, tokenizer, tmp_path):
    assert "standard input" in fails("walk", "-", "-", "-t", tokenizer)
    path = tmp_path / "empty.gbnf"
    path.write_text("root ::= root")
    assert "empty.gbnf: line 1" in fails("walk", path, __file__, "-t", tokenizer)
    run("walk", *arguments, code=2)
