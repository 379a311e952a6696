"""Large JSON is read and written as `json` does it, in steps between which other threads run."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from enum import Enum, IntEnum
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokfold import _core, _json

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


@given(VALUES)
def test_values_come_back(value: object) -> None:
    text = _json.dumps(value)
    assert text == json.dumps(value)
    assert _json.loads(text) == json.loads(text)


class Name(str, Enum):  # noqa: UP042 - older classes of names are written so
    A = "a"


class Number(IntEnum):
    ONE = 1


KEYS = st.text(max_size=4) | st.integers() | st.floats() | st.booleans() | st.none()
SCALARS = (
    st.text(st.characters(exclude_categories=()), max_size=6)  # lone surrogates among them
    | st.sampled_from([*map(chr, range(0x80)), "\ud800\udc00", "\U0001f600", Name.A, Number.ONE])
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.booleans()
    | st.none()
)


def containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    dicts = st.dictionaries(KEYS, inner, max_size=4)
    return (
        dicts
        | dicts.map(OrderedDict)
        | dicts.map(lambda found: defaultdict(int, found))  # type: ignore[arg-type]
        | st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
    )


def written(value: object, levels: int = 200, values: int = 1_000_000) -> object:
    return _core.json_text(value, levels, values)


@given(st.recursive(SCALARS, containers, max_leaves=30))
def test_the_core_writes_values_alike(value: object) -> None:
    assert written(value) == json.dumps(value)


def test_many_levels_and_many_values_are_written_alike() -> None:
    deep: object = 1
    for _ in range(5_000):
        deep = {"a": [deep]}
    assert str(written(deep, levels=10_000)).count("[") == 5_000
    many = [{"name": "a", "sizes": [1, 2.5, None]}] * 20_000
    assert written(many) == json.dumps(many)


def test_what_cannot_be_written_says_where() -> None:
    within: list[object] = []
    within.append(within)
    assert written(within, levels=3) == ("levels", [0, 0, 0], "list")
    assert written([1, [2, 3]], values=5) == "[1, [2, 3]]"
    assert written([1, [2, 3]], values=4) == ("values", [1, 1], "int")
    assert written({"a": [0, object()]}) == ("type", ["a", 1], "object")
    assert written({"a": {"b": 1, (1, 2): 3}}) == ("name", ["a"], "tuple")
    with pytest.raises(ValueError, match="digits"):
        written([10**5_000])


def test_what_is_too_large_is_not_read_to_its_end() -> None:
    class Endless(list[object]):
        def __iter__(self) -> Iterator[object]:
            return itertools.count()

    class EndlessNames(dict[str, object]):
        def items(self) -> Iterator[tuple[str, object]]:  # type: ignore[override]
            return (("a", n) for n in itertools.count())

    assert written(Endless(), values=9) == ("values", [8], "int")
    assert written([EndlessNames()], values=9) == ("values", [0, "a"], "int")


def test_other_threads_run_while_a_value_is_written() -> None:
    many: list[object] = [{"a": [1, 2, {}]}] * 100_000
    turns = 0
    seen: list[int] = []
    is_done = threading.Event()

    def write() -> None:
        seen.append(turns)
        written(many)
        seen.append(turns)
        is_done.set()

    thread = threading.Thread(target=write)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        thread.start()
        while not is_done.is_set():
            turns += 1
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert seen[1] - seen[0] > 20


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
    assert _json.dumps([object, {"a": int}], default=lambda _: {"x": 1}) == (
        '[{"x": 1}, {"a": {"x": 1}}]'
    )
    for odd, said in (({1: object()}, "value of type object"), ({(1,): 1}, "name of type tuple")):
        with pytest.raises(TypeError, match=said):
            _json.dumps(odd)


def test_a_value_that_holds_itself_ends() -> None:
    held: list[object] = []
    held.append(held)
    with pytest.raises(ValueError, match="holds itself"):
        _json.dumps(held)


@pytest.mark.parametrize("function", ["loads", "nesting"])
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
