"""Counters byte by byte, the column for a profile, and lemma 1."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokfold import Grammar
from tokfold.laboratory.forest import (
    COUNTERS,
    CostLimitError,
    CostLimits,
    Meter,
    TextRefusedError,
    earley_counters,
)
from tokfold.laboratory.forest.meter import _points
from tokfold.laboratory.form import Form

GRAMMARS = Path(__file__).parents[2] / "grammars"


def test_lemma_1_exactly():
    """Masked 0.4, conditioned 0.0625: the paper's model, this recognizer's admissible tokens.

    ``</s>`` is not the empty word here: it may come exactly after a text in the language.
    """
    model = {
        "": {"a": Fraction(6, 10), "b": Fraction(4, 10)},
        "a": {"</s>": Fraction(1, 10), "a": Fraction(9, 10)},
        "b": {"a": Fraction(1, 100), "b": Fraction(99, 100)},
        "ba": {"</s>": Fraction(1)},
    }

    def meter(text: str) -> Meter:
        made = Meter(Form.of('root ::= "a" | "ba"'))
        assert len(list(made.run(text.encode()))) == len(text)
        return made

    def admissible(text: str) -> list[str]:
        found = ["</s>"] if meter(text).accepting else []
        for token in "ab":
            try:
                meter(text).step(ord(token))
            except TextRefusedError:
                continue
            found.append(token)
        return found

    def survival(text: str) -> Fraction:
        """That the model goes on to a string of the language and stops."""
        total = Fraction(0)
        for token in admissible(text):
            after = Fraction(1) if token == "</s>" else survival(text + token)
            total += model[text].get(token, Fraction(0)) * after
        return total

    assert admissible("") == ["a", "b"]
    assert admissible("a") == ["</s>"]
    masked = model[""]["b"] / sum(model[""][token] for token in admissible(""))
    conditioned = model[""]["b"] * survival("b") / survival("")
    assert masked == Fraction(2, 5)
    assert conditioned == Fraction(1, 16) == Fraction("0.0625")
    assert survival("") == Fraction("0.064")


def test_bytes_inside_a_code_point_make_nothing():
    meter = Meter(Form.of('root ::= [à-ü]* "b"'))
    first, second, third = meter.run("éb".encode())
    assert {value for name, value in first.items() if name != "live_items"} == {0}
    assert first["live_items"] == meter.initial["live_items"]
    assert second["new_items"] == 3
    assert third["completer_work"] == 0
    assert tuple(first) == tuple(meter.initial) == COUNTERS
    assert meter.accepting


@given(st.integers(0, 0x10FFFF))
def test_each_code_point_is_read_in_bytes(point):
    data = chr(point).encode("utf-8", "surrogatepass")
    for size in range(1, len(data)):
        first, last, left = _points(data[:size])
        assert first <= point <= last
        assert left == len(data) - size
    assert _points(data) == (point, point, 0)


def test_what_is_no_code_point_is_refused():
    """All beginnings of one to three bytes, against Python's decoder."""
    beginnings = {b""}
    for low in range(0, 0x110000, 0x40):
        data = chr(low).encode("utf-8", "surrogatepass")
        beginnings.update(data[:size] for size in range(1, len(data)))
    for lead in range(0x80, 0x100):
        one = bytes((lead,))
        assert (_points(one) is not None) == (one in beginnings)
        for second in range(0x100):
            two = one + bytes((second,))
            if one in beginnings and lead >= 0xE0:
                assert (_points(two) is not None) == (two in beginnings)


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [
        (b"x", 0, 1, 1),
        ("é\na".encode(), 3, 2, 1),
        ("ééé".encode(), 4, 1, 3),
        (b"\xc3\xa9\xc3\xaa", 3, 1, 2),
        (b"\xff", 0, 1, 1),
        (b"\xc3a", 1, 1, 1),
    ],
)
def test_a_refused_byte_has_its_place(text, offset, line, column):
    meter = Meter(Form.of('root ::= "é" [é\\n] "b"'))
    with pytest.raises(TextRefusedError) as caught:
        list(meter.run(text))
    assert (caught.value.offset, caught.value.line, caught.value.column) == (offset, line, column)
    assert f"offset {offset}" in str(caught.value)
    with pytest.raises(TextRefusedError):  # it stays where it was
        meter.step(text[offset])


def test_a_meter_takes_bytes():
    with pytest.raises(ValueError, match="256 is no byte"):
        Meter(Form.of('root ::= "a"')).step(256)


def test_counters_of_tokens_add_up():
    grammar = Grammar.from_ebnf('root ::= S | ""\nS ::= S S | "a" | "é"')
    columns = earley_counters(grammar, [b"a", b"aa\xc3", b"", b"\xa9a"])
    assert set(columns) == {f"earley.{name}" for name in COUNTERS}
    assert columns["earley.new_items"] == [6, 8 + 10, 0, 12 + 14]
    assert columns["earley.new_splits"] == [0, 1 + 3, 0, 6 + 10]
    live = columns["earley.live_items"]
    assert live[1] == live[2]
    assert live == sorted(live)
    with pytest.raises(TextRefusedError):
        earley_counters(grammar, [b"ab"])
    with pytest.raises(CostLimitError):
        earley_counters(grammar, [b"a" * 100], limits=CostLimits(max_items=300))


@pytest.mark.parametrize("name", ["json", "sql", "cpp", "xml"])
def test_real_texts(name):
    form = Form.of((GRAMMARS / name / f"{name}.gbnf").read_text(encoding="utf-8"))
    path = max((GRAMMARS / name / "valid").iterdir(), key=lambda p: p.stat().st_size)
    plain, leo = Meter(form, leo=False), Meter(form)
    data = path.read_bytes()
    both = list(zip(plain.run(data), leo.run(data), strict=True))
    assert plain.accepting
    assert leo.accepting
    assert all(b["new_items"] <= a["new_items"] for a, b in both)
    trees = leo.forest().trees()
    assert trees == plain.forest().trees()
    assert trees == 1 if name in ("json", "xml") else trees > 1
