"""Whole numbers of any kind are taken where an int is; truth values and floats are refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tokfold
from tokfold._history import Sequence

VOCABULARY = tokfold.Vocabulary([b"a", b"b", *[b""] * 4, b"ab", b"</s>"], [7])
GRAMMAR = tokfold.Grammar.from_ebnf("root ::= [ab]{0,20}")
COMPILED = tokfold.compile(GRAMMAR, VOCABULARY, classes="now")


def matcher(**options: Any) -> tokfold.Matcher:
    return tokfold.Matcher(COMPILED, **options)


def behind(count: int) -> tokfold.Matcher:
    begun = matcher()
    assert begun.accept_tokens([0] * count) == count
    return begun


def rows(count: int = 8) -> np.ndarray:
    return tokfold.allocate_bitmask(count, len(VOCABULARY))


def batch(call: Callable[[tokfold.Matcher], object]) -> bytes:
    one = behind(6)
    call(one)
    return one.text


def filled(call: Callable[[np.ndarray], object], words: int = 1) -> list[list[int]]:
    bitmask = np.full((8, words), 5, dtype=np.int32)
    call(bitmask)
    return bitmask.tolist()


DOORS: dict[str, Callable[[Any], object]] = {
    "Limits": lambda n: json.dumps(dataclasses.asdict(tokfold.Limits(max_rules=n))),
    "a deadline": lambda n: repr(tokfold.Limits(max_mask_milliseconds=n)),
    "CompileOptions": lambda n: repr(tokfold.CompileOptions(classes_milliseconds=n)),
    "Interrupt": lambda n: tokfold.Interrupt(milliseconds=n).is_cancelled,
    "MaskPool": lambda n: repr(tokfold.MaskPool(VOCABULARY, max_bytes=n).max_bytes),
    "compiler": lambda n: repr(
        tokfold.GrammarCompiler(
            VOCABULARY,
            max_grammars=n,
            max_bytes=n,
            max_compiles=n,
            max_pool_bytes=n,
            classes_milliseconds=n,
        )
    ),
    "allocate_bitmask": lambda n: tokfold.allocate_bitmask(n, 4).shape,
    "its size": lambda n: tokfold.allocate_bitmask(1, n).shape,
    "allowed_tokens": lambda n: tokfold.allowed_tokens(rows()[0], n).tolist(),
    "apply_token_bitmask_": lambda n: tokfold.apply_token_bitmask_(
        np.zeros((8, 8), np.float32), rows(), n
    ).tolist(),
    "Unfolder": lambda n: tokfold.Unfolder(COMPILED.classes, max_bytes=n).num_tokens,
    "a stop token": lambda n: tokfold.Vocabulary([b"a"] * 8, n).stop_token_ids,
    "stop tokens": lambda n: tokfold.Vocabulary([b"a"] * 8, [n]).stop_token_ids,
    "special tokens": lambda n: tokfold.Vocabulary([b"a"] * 8, [0], [n]).special_token_ids,
    "size": lambda n: len(tokfold.Vocabulary([b"a"] * 3, [0], size=n)),
    "a token of a vocabulary": lambda n: VOCABULARY[n],
    "replace": lambda n: VOCABULARY.replace(stop_token_ids=n).stop_token_ids,
    "a stop token of a matcher": lambda n: matcher(stop_token_ids=n).stop_token_ids,
    "stop tokens of a matcher": lambda n: matcher(stop_token_ids=[n]).stop_token_ids,
    "max_tokens": lambda n: matcher(max_tokens=n).tokens_left,
    "prefer_end": lambda n: matcher(max_tokens=9, prefer_end=n).prefer_end,
    "tokens_left": lambda n: matcher().fill_bitmask(rows(), tokens_left=n),
    "row": lambda n: filled(lambda bitmask: matcher().fill_bitmask(bitmask, n)),
    "row of classes": lambda n: filled(lambda bitmask: matcher().fill_class_bitmask(bitmask, n)),
    "accept_token": lambda n: matcher().accept_token(n),
    "accept_tokens": lambda n: matcher().accept_tokens([n]),
    "a draft": lambda n: matcher().fill_bitmask_draft([n], rows()).tolist(),
    "parents": lambda n: (
        matcher().fill_bitmask_draft([0] * 7, rows(), [-1, 0, 1, 2, 3, 4, n]).tolist()
    ),
    "rollback": lambda n: batch(lambda one: one.rollback(n)),
    "forced_bytes": lambda n: matcher().forced_bytes(n),
    "forced_tokens": lambda n: matcher().forced_tokens(limit=n),
    "explain": lambda n: matcher().explain(n).allowed,
    "moved_to": lambda n: matcher(max_tokens=9).moved_to(COMPILED, max_tokens=n).tokens_left,
    "process_prompt": lambda n: matcher().process_prompt([0, n]).token_ids,
    "rows of a batch": lambda n: filled(
        lambda bitmask: tokfold.fill_bitmask_batch([matcher()], bitmask, [n])
    ),
    "threads": lambda n: tokfold.fill_bitmask_batch([matcher()], rows(), threads=n).tolist(),
    "tokens of a batch": lambda n: tokfold.accept_token_batch([matcher()], [n]).tolist(),
    "steps of a batch": lambda n: batch(lambda one: tokfold.rollback_batch([one], [n])),
    "indent": lambda n: str(tokfold.Grammar.from_json_schema({"type": "object"}, indent=n)),
    "max_whitespace": lambda n: str(tokfold.Grammar.from_json_schema({}, max_whitespace=n)),
    "repeat": lambda n: str(GRAMMAR.repeat(n)),
    "repeat at most": lambda n: str(GRAMMAR.repeat(1, n)),
    "a sequence": lambda n: Sequence(COMPILED, max_tokens=n).is_open,
}
NUMBERS = {
    "int64": np.int64(5),
    "int32": np.int32(5),
    "uint8": np.uint8(5),
    "an array without dimensions": np.array(5),
}
NO_NUMBERS = {
    "True": True,
    "numpy's True": np.True_,
    "a float": 5.0,
    "numpy's float": np.float64(5),
    "text": "5",
    "an array of truth values": np.array([True]),
    "an array of floats": np.array([5.0]),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_numbers_are_taken_as_ints(door, number) -> None:
    assert door(number) == door(5)


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_is_no_number(door, value) -> None:
    with pytest.raises((TypeError, ValueError)) as refusal:
        door(value)
    said = str(refusal.value)
    for of_python in ("cannot be interpreted as an integer", "only integer scalar", "0-d array"):
        assert of_python not in said


def test_small_kinds_do_not_overflow() -> None:
    """Sums of numpy's numbers wrap."""
    assert tokfold.allocate_bitmask(np.uint8(2), np.uint8(250)).shape == (2, 8)
    assert tokfold.allocate_bitmask(1, np.int8(127)).shape == (1, 4)
    row = tokfold.allocate_bitmask(1, 250)[0]
    assert len(tokfold.allowed_tokens(row, np.uint8(250))) == 250


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_tensors(dtype) -> None:
    torch = pytest.importorskip("torch")
    one = torch.tensor(1, dtype=getattr(torch, dtype))
    calls = (
        lambda: matcher().accept_tokens([one]),
        lambda: tokfold.accept_token_batch([matcher()], [one]).tolist() == [True],
        lambda: matcher(max_tokens=one + 8 if dtype == "int64" else one).tokens_left == 9,
        lambda: tokfold.allocate_bitmask(one, 4).shape == (1, 1),
    )
    for call in calls:
        if dtype == "int64":
            assert call()
        else:
            with pytest.raises(TypeError):
                call()
