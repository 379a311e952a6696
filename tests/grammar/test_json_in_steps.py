"""Large JSON is read and written as `json` does it, in steps between which other threads run."""

from __future__ import annotations

import json
import sys
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokfold import _json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.fixture(autouse=True)
def _all_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_json, "_LARGE_TEXT", 0)
    monkeypatch.setattr(_json, "_LARGE_VALUE", 0)


@given(VALUES, st.booleans())
def test_values_come_back(value: object, ensure_ascii: bool) -> None:
    text = _json.dumps(value, ensure_ascii=ensure_ascii)
    assert text == json.dumps(value, ensure_ascii=ensure_ascii)
    assert _json.loads(text) == json.loads(text)


KEYS = st.text(max_size=4) | st.integers() | st.booleans() | st.none()


@given(st.recursive(VALUES, lambda inner: st.dictionaries(KEYS, inner).map(lambda d: (d, [d]))))
def test_deep_values_are_written_alike(value: object) -> None:
    assert _json.dumps_deep(value) == json.dumps(value)


@given(VALUES, st.data())
def test_broken_text_is_refused_at_the_same_place(value: object, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text) - 1))
    broken = text[:at] + data.draw(st.sampled_from('{}[],:"\\x ')) + text[at + 1 :]

    def read(loads: object) -> object:
        try:
            return loads(broken)  # type: ignore[operator]
        except json.JSONDecodeError as error:
            return error.msg, error.pos

    assert read(_json.loads) == read(json.loads)


@given(st.text('"\\[]{}a', max_size=30))
def test_nesting_is_counted_alike(text: str) -> None:
    in_steps = _json.nesting(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_json, "_LARGE_TEXT", 1 << 30)
        assert _json.nesting(text) == in_steps


def test_pairs_and_defaults_are_passed_on() -> None:
    assert _json.loads('{"a": 1, "a": 2}', object_pairs_hook=list) == [("a", 1), ("a", 2)]
    assert _json.dumps([object], default=lambda _: "x") == '["x"]'


def test_a_value_that_holds_itself_ends() -> None:
    held: list[object] = []
    held.append(held)
    with pytest.raises(ValueError, match="Circular"):
        _json.dumps(held)


@pytest.mark.parametrize("function", ["loads", "dumps", "nesting"])
def test_the_work_is_many_calls(function: str) -> None:
    """Between two calls of Python functions another thread may run; in a call of C none does."""
    value = [{"a": n} for n in range(1_000)]
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    argument = value if function == "dumps" else json.dumps(value)
    sys.setprofile(count)
    try:
        getattr(_json, function)(argument)
    finally:
        sys.setprofile(None)
    assert calls >= 1_000
