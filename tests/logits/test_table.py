"""Tables of masks: the logits that the masks themselves make, and what crossed the bus for them."""

from __future__ import annotations

from collections import OrderedDict
from random import Random

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import tokfold  # noqa: E402
from hypothesis import event, given, note  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from oracles.logits import bits_of, masked_, unfolded  # noqa: E402
from strategies.logits import (  # noqa: E402
    BACKENDS,
    DEVICE_BACKENDS,
    DTYPES,
    any_floats,
    random_classes,
    random_masks,
)
from strategies.profiles import CASES, examples  # noqa: E402
from tokfold.torch import Fold, MaskTable, apply_class_bitmask_  # noqa: E402
from tokfold.torch.table import TableCounters  # noqa: E402

FOLDS = {words: Fold(random_classes(200, 32 * words - 5)) for words in (1, 2, 3)}
MASKS = {words: random_masks(8, words) for words in FOLDS}


class PlainTable:
    """Which masks a table holds, and the bytes that it has to send."""

    def __init__(self, words: int, capacity: int) -> None:
        self.words, self.capacity = words, capacity
        self.held: OrderedDict[int, None] = OrderedDict()
        self.rows = self.hits = self.bytes = self.evicted = 0

    def apply(self, masks: list[int], has_rows: bool) -> None:
        """A call with masks, each by its place in a list of distinct ones."""
        self.rows += len(masks)
        self.bytes += 4 * len(masks) * has_rows
        distinct = list(dict.fromkeys(masks))
        if len(distinct) > self.capacity:
            self.bytes += 4 * self.words * len(masks)
            return
        # Those that are there are used before room is made for the others.
        new = [mask for mask in distinct if mask not in self.held]
        for mask in distinct:
            if mask in self.held:
                self.held.move_to_end(mask)
        for mask in new:
            if len(self.held) == self.capacity:
                self.held.popitem(last=False)
                self.evicted += 1
            self.held[mask] = None
        self.hits += len(masks) - len(new)
        self.bytes += 4 * len(masks) + 4 * (1 + self.words) * len(new)

    @property
    def counters(self) -> TableCounters:
        return TableCounters(self.rows, self.hits, self.bytes, len(self.held), self.evicted)


@st.composite
def calls(draw):
    """Masks of each call, by number; and rows for them, or none."""
    ids = st.integers(0, draw(st.integers(0, 7)))
    out = []
    for masks in draw(st.lists(st.lists(ids, max_size=6), min_size=1, max_size=12)):
        rows = st.lists(st.integers(-1, 3), min_size=len(masks), max_size=len(masks))
        out.append((masks, draw(st.none() | rows)))
    return out


@pytest.mark.parametrize("backend", DEVICE_BACKENDS)
class TestAnyCalls:
    @examples(45)
    @given(
        words=st.sampled_from([2, 3, 1]),
        capacity=st.integers(1, 6),
        calls=calls(),
        dtype=st.sampled_from(DTYPES),
    )
    def test_random_calls(self, backend, words, capacity, calls, dtype):
        fold, masks = FOLDS[words], MASKS[words]
        table, plain = MaskTable(fold, capacity, max_rows=6), PlainTable(words, capacity)
        rng = np.random.default_rng(1)
        given = np.empty((6, words), dtype=np.int32)  # the caller's own, used again at each call
        for ids, rows in calls:
            note(f"{ids} for {rows}, {table.counters}")
            given[: len(ids)] = masks[ids]
            logits = any_floats((len(ids) if rows is None else 4, 203), dtype, rng)
            expected = logits.clone()
            tokens = [unfolded(masks[i], fold.class_of.numpy()) for i in ids]
            masked_(expected, tokens, rows)
            assert table.apply_(logits, given[: len(ids)], rows, backend=backend) is logits
            assert np.array_equal(bits_of(logits), bits_of(expected))
            plain.apply(ids, rows is not None)
            assert table.counters == plain.counters
        event(f"{words} words, {'evicted' if plain.evicted else 'kept'}")
        CASES[f"torch: calls of tables, {backend}"] += len(calls)


@pytest.mark.parametrize("backend", DEVICE_BACKENDS)
def test_a_mask_is_sent_once(backend) -> None:
    fold = FOLDS[3]
    table = MaskTable(fold, 8)
    word = 4
    for call in range(20):
        table.apply_(torch.zeros(8, 200), MASKS[3], backend=backend)
        assert table.counters == TableCounters(
            rows=8 * (call + 1),
            hits=8 * call,
            bytes_sent=8 * word * (call + 1) + 8 * (3 + 1) * word,
            masks=8,
            evicted=0,
        )
    table.clear()
    assert table.counters.masks == 0
    logits = torch.zeros(2, 200)
    table.apply_(logits, MASKS[3][[5, 2]], backend=backend)  # numbers mean something else by now
    expected = apply_class_bitmask_(torch.zeros(2, 200), MASKS[3][[5, 2]], fold)
    assert torch.equal(logits, expected)
    assert table.counters[3:] == (2, 0)
    assert repr(table) == f"<MaskTable of 2 masks, 8 at most, {fold!r}>"


@pytest.mark.parametrize("backend", DEVICE_BACKENDS)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_one_row(backend, as_tensor) -> None:
    table, mask = MaskTable(FOLDS[2], 2), MASKS[2][3]
    expected = apply_class_bitmask_(torch.zeros(200), mask, FOLDS[2])
    for _ in range(3):
        logits = torch.zeros(200)
        given = torch.from_numpy(mask) if as_tensor else mask
        assert table.apply_(logits, given, backend=backend) is logits
        assert torch.equal(logits, expected)
    assert table.counters[:2] == (3, 2)


@pytest.mark.parametrize("backend", DEVICE_BACKENDS)
def test_more_masks_than_a_table_was_made_for(backend) -> None:
    table = MaskTable(FOLDS[2], 4, max_rows=3)
    logits = torch.zeros(4, 200)
    with pytest.raises(ValueError, match="4 masks, and the table was made for 3"):
        table.apply_(logits, MASKS[2][:4], backend=backend)
    assert logits.eq(0).all()
    assert table.counters == (0, 0, 0, 0, 0)
    # As many as it was made for, each sent in full and with a row: the most that a call can send.
    table.apply_(logits, MASKS[2][:3], [3, 0, 1], backend=backend)
    expected = apply_class_bitmask_(torch.zeros(4, 200), MASKS[2][:3], FOLDS[2], [3, 0, 1])
    assert torch.equal(logits, expected)
    assert table.counters.bytes_sent == 3 * (1 + 1 + 1 + 2) * 4


def test_masks_by_default() -> None:
    """As many as take 32 MiB, within bounds; those of one call fit in any case."""
    assert MaskTable(FOLDS[2]).capacity == 4_096
    assert MaskTable(FOLDS[2], max_rows=5_000).capacity == 5_000
    of_llama = Fold(random_classes(128_256, 40))
    assert MaskTable(of_llama).capacity == (32 << 20) // 16_032
    assert MaskTable(of_llama, max_rows=3_000).capacity == 3_000


@pytest.mark.parametrize("backend", ["auto", "cpu"])
def test_on_the_cpu_nothing_is_sent(backend) -> None:
    """The fold remembers rows; any number of masks will do."""
    table = MaskTable(FOLDS[2], 1, max_rows=1)
    for _ in range(2):
        logits = torch.zeros(8, 200)
        table.apply_(logits, MASKS[2], backend=backend)
        assert torch.equal(logits, apply_class_bitmask_(torch.zeros(8, 200), MASKS[2], FOLDS[2]))
    table.apply_(torch.zeros(200), MASKS[2][0], backend=backend)
    assert table.counters == TableCounters(17, 0, 0, 0, 0)


ROWS_OF_OTHER_KINDS = {
    "a set": lambda: {2, 0, 1},
    "keys": lambda: {2: "c", 0: "a", 1: "b"}.keys(),
    "an iterator": lambda: iter([2, 0, 1]),
    "a range": lambda: range(3),
}


@pytest.mark.parametrize("backend", DEVICE_BACKENDS)
@pytest.mark.parametrize("rows", ROWS_OF_OTHER_KINDS.values(), ids=ROWS_OF_OTHER_KINDS)
def test_rows_of_other_kinds(backend, rows) -> None:
    """Right or refused; and the table does not take for sent what was not."""
    table, masks = MaskTable(FOLDS[3], 8), MASKS[3][:3]
    logits = torch.zeros(3, 200)
    expected = apply_class_bitmask_(torch.zeros(3, 200), masks, FOLDS[3], list(rows()))
    try:
        table.apply_(logits, masks, rows(), backend=backend)
    except (TypeError, ValueError):
        expected = torch.zeros(3, 200)
    assert torch.equal(logits, expected)
    for _ in range(2):
        logits = torch.zeros(3, 200)
        table.apply_(logits, masks, backend=backend)
        assert torch.equal(logits, apply_class_bitmask_(torch.zeros(3, 200), masks, FOLDS[3]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_generation(backend) -> None:
    """Masks of texts recur: soon little more than numbers is sent."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    tokens = [letter.encode() for letter in letters + "(). "] + [b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[len(tokens) - 1])
    text = f'root ::= item* "."?\nitem ::= "{letters}" | [a-m] | "(" item+ ")" | [a-z] [0-4 ] "."'
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf(text), vocabulary, classes="now")
    fold, draw = Fold(compiled), Random(3)
    assert fold.num_words == 2
    table = MaskTable(fold, 6)
    matchers = [tokfold.Matcher(compiled) for _ in range(6)]
    masks = fold.allocate(6)
    for step in range(60):
        rows = [i for i, matcher in enumerate(matchers) if not matcher.is_terminated]
        tokfold.fill_class_bitmask_batch([matchers[row] for row in rows], masks)
        logits, expected = torch.zeros(6, len(tokens)), torch.zeros(6, len(tokens))
        apply_class_bitmask_(expected, masks[: len(rows)], fold, rows)
        table.apply_(logits, masks[: len(rows)], rows, backend=backend)
        assert torch.equal(logits, expected)
        for row in rows:
            allowed = (logits[row] == 0).nonzero()[:, 0].tolist()
            if step < 50 and len(allowed) > 1:
                allowed = [token for token in allowed if token < len(letters) + 2]
            assert matchers[row].accept_token(draw.choice(allowed))
    counters = table.counters
    assert counters.rows > 250
    if backend != "cpu":
        assert counters.hits > counters.rows // 2
        assert counters.evicted > 0
