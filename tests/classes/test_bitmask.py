"""Bitmasks: fresh ones, and class masks unfolded into masks of tokens."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from classes.class_samples import words
from support.processes import DEADLINE_S
from tokfold import (
    ArgumentTypeError,
    Grammar,
    Unfolder,
    Vocabulary,
    allocate_bitmask,
    allowed_tokens,
    apply_token_bitmask_,
    compile_classes,
)


def bits(mask: np.ndarray, count: int) -> np.ndarray:
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[:count].astype(bool)


@pytest.mark.parametrize(("batch", "size", "width"), [(1, 1, 1), (3, 32, 1), (2, 33, 2), (0, 5, 1)])
def test_a_fresh_bitmask_allows_all(batch, size, width):
    mask = allocate_bitmask(batch, size)
    assert (mask.dtype, mask.shape) == (np.int32, (batch, width))
    assert (mask == -1).all()
    assert mask.flags.c_contiguous
    assert mask.flags.writeable


@pytest.mark.parametrize(("batch", "size"), [(-1, 5), (1, 0), (1, -5)])
def test_impossible_bitmasks(batch, size):
    with pytest.raises(ValueError, match="a bitmask needs"):
        allocate_bitmask(batch, size)


@pytest.mark.parametrize("max_bytes", [0, 100, 32 << 20])
@pytest.mark.parametrize("size", [31, 32, 33, 1_000])
def test_unfolding_is_a_gather(max_bytes, size):
    tokens = words(size, "ab(){}x")
    grammar = Grammar.from_ebnf('root ::= "{" root "}" | "(" root ")" | [ab]+')
    found = compile_classes(grammar, Vocabulary(tokens))
    unfolder = Unfolder(found, max_bytes)
    assert (unfolder.num_tokens, unfolder.num_classes) == (size, len(found))
    rng = np.random.default_rng(7)
    masks = rng.integers(-(2**31), 2**31, (6, (len(found) + 31) // 32)).astype(np.int32)
    for mask in (*masks, *masks, np.full_like(masks[0], -1), np.zeros_like(masks[0])):
        row = rng.integers(-(2**31), 2**31, (size + 31) // 32).astype(np.int32)
        before = mask.copy()
        unfolder.unfold(mask, row)
        padded = np.append(bits(mask, len(found)), False)
        assert (bits(row, size) == padded[found.class_of]).all()
        assert not bits(row, 32 * len(row))[size:].any(), "past the last token is nothing"
        assert (mask == before).all()


def test_rows_of_a_batch(classes):
    unfolder = Unfolder(classes)
    rows = allocate_bitmask(3, unfolder.num_tokens)
    class_mask = allocate_bitmask(1, unfolder.num_classes)[0]
    unfolder.unfold(class_mask, rows[1])
    assert (rows[[0, 2]] == -1).all()
    assert bits(rows[1], 14).tolist() == (classes.class_of >= 0).tolist()


def test_arrays_that_do_not_fit(classes):
    unfolder = Unfolder(classes)
    right = np.zeros(1, np.int32)
    for mask, row in (
        (np.zeros(2, np.int32), right),
        (right, np.zeros(2, np.int32)),
        (np.zeros(0, np.int32), right),
    ):
        with pytest.raises(ValueError, match="a class mask has 1 words and a row 1; got"):
            unfolder.unfold(mask, row)
    frozen = np.zeros(1, np.int32)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, TypeError), match=r"read-only|writeable|writable"):
        unfolder.unfold(right, frozen)
    for wrong in (np.zeros(1, np.int64), np.zeros((1, 1), np.int32), [0], None):
        with pytest.raises(TypeError):
            unfolder.unfold(wrong, right)
        with pytest.raises(TypeError):
            unfolder.unfold(right, wrong)
    with pytest.raises((ValueError, TypeError)):
        unfolder.unfold(right, right)


def test_arrays_with_gaps():
    tokens = words(100, "ab(){}x")
    found = compile_classes(Grammar.from_ebnf("root ::= [a-x(){}]*"), Vocabulary(tokens))
    gaps = np.zeros(8, np.int32)[::2]
    with pytest.raises(ValueError, match="contiguous"):
        Unfolder(found).unfold(np.full(1, -1, np.int32), gaps)
    assert not gaps.any()


def test_unfolding_in_threads():
    tokens = words(3_000, "ab(){}x")
    grammar = Grammar.from_ebnf('root ::= "{" root "}" | "(" root ")" | [ab]+')
    found = compile_classes(grammar, Vocabulary(tokens))
    unfolder = Unfolder(found, 4_000)
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed % 2)
        row = np.zeros((len(tokens) + 31) // 32, np.int32)
        for _ in range(300):
            mask = rng.integers(-(2**31), 2**31, (len(found) + 31) // 32).astype(np.int32)
            unfolder.unfold(mask, row)
            padded = np.append(bits(mask, len(found)), False)
            if not (bits(row, len(tokens)) == padded[found.class_of]).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert not wrong


# Ids and logits of a row


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1_000])
def test_the_ids_and_the_logits_of_rows(size):
    rng = np.random.default_rng(size)
    words_of = (size + 31) // 32
    bitmask = rng.integers(-(2**31), 2**31, (3, words_of)).astype(np.int32)
    expected = [
        [token for token in range(size) if row[token // 32] >> token % 32 & 1] for row in bitmask
    ]
    assert [allowed_tokens(row, size).tolist() for row in bitmask] == expected
    assert allowed_tokens(bitmask[0]).tolist()[: len(expected[0])] == expected[0]
    for dtype in (np.float16, np.float32, np.float64):
        logits = rng.normal(size=(3, size + 5)).astype(dtype)
        before = logits.copy()
        assert apply_token_bitmask_(logits, bitmask, size) is logits
        for row, ids in enumerate(expected):
            assert np.flatnonzero(logits[row] > -np.inf).tolist() == ids
            assert (logits[row, ids] == before[row, ids]).all()
        one = before[1].copy()
        apply_token_bitmask_(one, bitmask[1], size)
        assert (one == logits[1]).all()
        apart = np.asfortranarray(before)  # of any stride
        apply_token_bitmask_(apart[:, ::1], bitmask[:, :], size)
        assert (apart == logits).all()


def test_rows_and_logits_that_do_not_fit():
    bitmask, logits = allocate_bitmask(2, 40), np.zeros((2, 40), np.float32)
    for row in (bitmask.astype(np.int64)[0], [1, 2]):
        with pytest.raises(ArgumentTypeError, match="the bitmask must be a numpy array of dtype"):
            allowed_tokens(row)
    with pytest.raises(ValueError, match=r"row must have the shape \(words,\).*pass bitmask\[0\]"):
        allowed_tokens(bitmask)
    with pytest.raises(ValueError, match="64 bits in a row, fewer than the 65 tokens"):
        allowed_tokens(bitmask[0], 65)
    with pytest.raises(ArgumentTypeError, match="vocab_size"):
        allowed_tokens(bitmask[0], 1.5)
    for wrong in (logits.astype(np.int32), logits.tolist()):
        with pytest.raises(ArgumentTypeError, match="logits must be a numpy array of a floating"):
            apply_token_bitmask_(wrong, bitmask, 40)
    for few in (logits[:1], logits[0], logits[None]):
        with pytest.raises(ValueError, match="do not fit: pass a row of each for each text"):
            apply_token_bitmask_(few, bitmask, 40)
    with pytest.raises(ValueError, match="logits have 39 columns for 40 tokens"):
        apply_token_bitmask_(logits[:, :39], bitmask, 40)
    logits.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        apply_token_bitmask_(logits, bitmask, 40)
