"""Recognition: how far a text is read, where it fails, and what could have come instead."""

from __future__ import annotations

import json

import pytest
from tokfold import Grammar, Limits, recognize


@pytest.mark.parametrize(
    ("text", "accepted", "read", "complete", "line", "column", "expected"),
    [
        ("", False, 0, False, 1, 1, b"ax"),
        ("a", False, 1, False, 1, 2, b"\nx"),
        ("a\nx", True, 3, True, 2, 2, b"y\xc3"),
        ("x", True, 1, True, 1, 2, b"y\xc3"),
        ("xé", True, 3, True, 1, 3, b"y\xc3"),
        ("xéy", True, 4, True, 1, 4, b"y\xc3"),
        ("xéq", False, 3, True, 1, 3, b"y\xc3"),
        ("xè", False, 2, False, 1, 2, b"\xa9"),
        (b"x\xc3", False, 2, False, 1, 2, b"\xa9"),
        ("a\nq", False, 2, False, 2, 1, b"x"),
        (b"\xff", False, 0, False, 1, 1, b"ax"),
        (bytearray(b"x"), True, 1, True, 1, 2, b"y\xc3"),
    ],
)
def test_recognition(text, accepted, read, complete, line, column, expected):
    grammar = Grammar.from_ebnf('root ::= ("a" "\\n"?)* "x" tail*\ntail ::= "y" | "é"')
    if text in ("a", "a\nq"):
        expected = bytes(sorted({*expected, *b"ax"}))
    found = recognize(grammar, text)
    assert (found.accepted, found.read, found.complete) == (accepted, read, complete)
    # Inside a code point the place is that of the code point.
    assert (found.line, found.column) == (line, column)
    assert found.expected == expected


def test_recognition_of_the_empty_string():
    for text, complete in (('root ::= ""', True), ('root ::= "a"?', True), ('root ::= "a"', False)):
        found = recognize(Grammar.from_ebnf(text), "")
        assert found.accepted is found.complete is complete


def test_surrogates_are_read_as_utf_8_would_encode_them():
    grammar = Grammar.from_ebnf("root ::= [^a]")
    assert recognize(grammar, "\ud800").accepted
    assert recognize(grammar, b"\xed\xa0\x80").accepted
    assert not recognize(grammar, b"\xc0\x80").accepted


def test_recognition_of_a_large_repetition():
    """Counts are kept exactly, where folding may shorten them."""
    grammar = Grammar.from_ebnf('root ::= "a"{3,20000} "b"')
    for count, accepted in ((2, False), (3, True), (20_000, True), (20_001, False)):
        assert recognize(grammar, "a" * count + "b").accepted is accepted


def test_recognition_counts_what_is_bounded():
    """Bounds of formats and of characters cost what they cost a matcher, whatever the text is."""
    url = {"type": "string", "format": "uri", "maxLength": 2083}
    note = {"type": "string", "maxLength": 5_000}
    grammar = Grammar.from_json_schema({"properties": {"url": url, "note": note}})
    limits = Limits(max_network_states=20_000)
    for host, note_length, accepted in (
        (10, 5_000, True),
        (10, 5_001, False),
        (2_083 - 12, 0, True),
        (2_084 - 12, 0, False),
    ):
        text = json.dumps({"url": "https://e.c/" + "a" * host, "note": "x" * note_length})
        assert recognize(grammar, text, limits=limits).accepted is accepted, (host, note_length)


def test_recognition_reads_tokens_that_are_counted_as_any_number():
    grammar = Grammar.from_ebnf('root[max_tokens=2] ::= "a"* "b"')
    assert recognize(grammar, "a" * 50 + "b").accepted


def test_recognitions_are_values():
    grammar = Grammar.from_ebnf('root ::= "a"')
    assert recognize(grammar, "a") == recognize(grammar, b"a")
    with pytest.raises(AttributeError):
        recognize(grammar, "a").read = 5
