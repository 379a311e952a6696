"""Values in messages: short, however large or deep they are, and always printable."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokfold
from tokfold._history import Sequence, checked_on_error
from tokfold._quoting import MOST, quoted
from tokfold._serving.settings import Settings

PACKAGE = Path(tokfold.__file__).parent
VOCABULARY = tokfold.Vocabulary([b"a", b"b", b"</s>"], [2])
COMPILED = tokfold.compile('root ::= "a"+', VOCABULARY)
LONGEST = 1_000
"""Characters of a message: what it quotes, and the words around it."""


class Raising:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Odd:
    """What it says of itself cannot be encoded."""

    def __repr__(self) -> str:
        return "\ud800" * 1_000


@dataclasses.dataclass
class Node:
    inner: object


def deep(make: Callable[[Any], Any]) -> object:
    found: Any = 1
    for _ in range(100_000):
        found = make(found)
    return found


HOSTILE = {
    "a long list": list(range(1_000_000)),
    "a deep list": deep(lambda inner: [inner]),
    "a deep tuple": deep(lambda inner: (inner, inner)),
    "a deep mapping": deep(lambda inner: {"a": inner}),
    "a deep record": deep(Node),
    "a long text": "\x07" * 1_000_000,
    "lone surrogates": "\ud800" * 300,
    "many digits": 10**10_000,
    "few": -(10**10_000),
    "bytes": b"\xff" * 1_000_000,
    "an array": np.arange(3),
    "an empty array": np.zeros(0),
    "one that raises": Raising(),
    "one inside that raises": [Raising()],
    "one that is odd": Odd(),
    "odd ones": {Odd(): [Odd()]},
}
DOORS: dict[str, Callable[[Any], object]] = {
    "classes": lambda value: tokfold.compile('root ::= "a"', VOCABULARY, classes=value),
    "options": lambda value: tokfold.compile('root ::= "a"', VOCABULARY, options=value),
    "compiler": lambda value: tokfold.GrammarCompiler(VOCABULARY, classes=value),
    "engine": lambda value: tokfold.CompileOptions(engine=value),
    "pool": lambda value: tokfold.CompileOptions(pool=value),
    "progress": lambda value: tokfold.CompileOptions(progress=value),
    "limits": lambda value: tokfold.Limits(max_states=value),
    "milliseconds": lambda value: tokfold.Interrupt(milliseconds=value),
    "lookahead": lambda value: tokfold.Grammar.from_ebnf('root ::= "a"', lookahead=value),
    "dialect": lambda value: tokfold.Grammar.from_regex("a", dialect=value),
    "flags": lambda value: tokfold.Grammar.from_regex("a", flags=value),
    "choices": lambda value: tokfold.Grammar.choices([value, 1]),
    "schema": lambda value: tokfold.Grammar.from_json_schema({"type": value}),
    "whitespace": lambda value: tokfold.Grammar.from_json_schema({}, whitespace=value),
    "most": lambda value: tokfold.Grammar.from_json_schema({}, max_whitespace=[value]),
    "separators": lambda value: tokfold.Grammar.from_json_schema({}, separators=[value, value]),
    "indent": lambda value: tokfold.Grammar.from_json_schema({}, indent=value),
    "formats": lambda value: tokfold.Grammar.from_json_schema({}, formats={"a": [value]}),
    "stops": lambda value: tokfold.Vocabulary(
        [b"a"], [value] if value is HOSTILE["an empty array"] else value
    ),
    "a stop": lambda value: tokfold.Vocabulary([b"a"], [value]),
    "size": lambda value: tokfold.Vocabulary([b"a"], [], size=value),
    "ended of tokens": lambda value: tokfold.accept_token_batch([], [], ended=value),
    "on_error": lambda value: checked_on_error(value, (2,)),
    "a prefix": lambda value: Sequence(COMPILED, prefix=[value]),
    "prefer_end alone": lambda value: tokfold.Matcher(COMPILED, prefer_end=[value]),
    "prefer_end of a sequence": lambda value: Sequence(COMPILED, prefer_end=[value]),
    "max_tokens of a sequence": lambda value: Sequence(COMPILED, max_tokens=[value]),
    "Lark": lambda value: tokfold.Grammar.from_lark('start: "a"', dialect=value),
    "ended": lambda value: tokfold.fill_bitmask_batch([], None, ended=value),
    "threads": lambda value: tokfold.fill_bitmask_batch(
        [], tokfold.allocate_bitmask(1, 3), threads=-1 if value is HOSTILE["many digits"] else value
    ),
    "rows": lambda value: tokfold.fill_bitmask_batch(
        [tokfold.Matcher(COMPILED)], tokfold.allocate_bitmask(1, 3), [value]
    ),
    "token": lambda value: tokfold.Matcher(COMPILED).accept_token(value),
    "tokens": lambda value: tokfold.Matcher(COMPILED).accept_tokens([value]),
    "row": lambda value: tokfold.Matcher(COMPILED).fill_bitmask(
        tokfold.allocate_bitmask(1, 3), value
    ),
    "rollback": lambda value: tokfold.Matcher(COMPILED).rollback(value),
    "max_tokens": lambda value: tokfold.Matcher(COMPILED, max_tokens=[value]),
    "batch": lambda value: tokfold.allocate_bitmask([value], 1),
    "fewest": lambda value: tokfold.allocate_bitmask(-1, value),
    "a setting": lambda value: Settings.from_environment({"TOKFOLD_CLASSES": [value]}),
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_value_is_short(value) -> None:
    text = quoted(value)
    assert 0 < len(text) <= MOST
    assert text.encode()
    assert len(quoted(value, 40)) <= 40


@pytest.mark.parametrize(
    "value",
    [None, True, -3, 1.5, "a'b\n", b"\0a", [1, (2,), ()], {"a": {1: []}}, {3}, int, Node(1), "é"],
)
def test_a_short_value_is_as_python_has_it(value) -> None:
    assert quoted(value) == repr(value)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", HOSTILE)
def test_messages_are_short(door, name) -> None:
    with pytest.raises((TypeError, ValueError, tokfold.TokfoldError)) as refusal:
        DOORS[door](HOSTILE[name])
    assert not isinstance(refusal.value, UnicodeError)
    said = str(refusal.value)
    assert len(said) <= LONGEST
    assert said.encode()
    assert "truth value of an" not in said
    assert door == "schema" or "limit (4300 digits)" not in said


def test_every_message_quotes_so() -> None:
    """None has ``!r``, but for what an object says of itself."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        spared = {
            id(part)
            for one in ast.walk(tree)
            if isinstance(one, ast.FunctionDef) and one.name == "__repr__"
            for part in ast.walk(one)
        }
        found += [
            f"{file.relative_to(PACKAGE)}:{one.lineno}"
            for one in ast.walk(tree)
            if isinstance(one, ast.FormattedValue)
            and one.conversion == ord("r")
            and id(one) not in spared
        ]
    assert found == []
