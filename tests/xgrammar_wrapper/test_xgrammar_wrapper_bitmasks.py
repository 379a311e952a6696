"""The wrapper's bitmasks: of any kind, draft trees, batches, rows filled from threads."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("xgrammar")
pytest.importorskip("torch")

import numpy as np
import torch
from tokfold import xgrammar as txgr
from xgrammar_wrapper.xgrammar_pairs import TOKENS, compiled_pair, make_info, makers

# ---------------------------------------------------------------------- bitmasks


@pytest.mark.parametrize("grammar", ["root ::= [ab]*", "root[max_chars=9] ::= [ab]*"])
@pytest.mark.filterwarnings("ignore::tokfold.FallbackWarning")
def test_bitmasks_of_any_kind(grammar: str) -> None:
    info = make_info(TOKENS + [b"x"] * 24 + [b"a", b"ba", b"x", b"b"])
    _, compiled = compiled_pair(grammar, info)
    matcher = txgr.GrammarMatcher(compiled)
    expected = torch.zeros(2, dtype=torch.int32)
    matcher.fill_next_token_bitmask(expected)
    assert expected[1] != 0

    for rows in (torch.zeros(3, 2, dtype=torch.int32), np.zeros((3, 2), dtype=np.int32)):
        matcher.fill_next_token_bitmask(rows, 1)
        assert np.asarray(rows).tolist() == [[0, 0], expected.tolist(), [0, 0]]

    wide = torch.zeros(3, 5, dtype=torch.int32)
    matcher.fill_next_token_bitmask(wide[:, 1:3], 2)  # XGrammar would write into another row
    assert wide[2].tolist() == [0, *expected.tolist(), 0, 0]
    assert wide[:2].eq(0).all()

    columns = torch.zeros(2, 3, dtype=torch.int32)
    matcher.fill_next_token_bitmask(columns.t(), 1)
    assert columns.t().tolist() == [[0, 0], expected.tolist(), [0, 0]]

    column = torch.zeros(2, 3, dtype=torch.int32)
    matcher.fill_next_token_bitmask(column[:, 2])
    assert column.t().tolist() == [[0, 0], [0, 0], expected.tolist()]


class OnlyDlpack:
    """An array that offers DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_bitmasks_with_dlpack_only() -> None:
    _, compiled = compiled_pair('root ::= "a"*')
    array = np.zeros((1, 2), dtype=np.int32)
    txgr.GrammarMatcher(compiled).fill_next_token_bitmask(OnlyDlpack(array))
    assert array[0, 0] != 0


@pytest.mark.parametrize(
    ("bitmask", "index", "error"),
    [
        (torch.zeros(2, 5, dtype=torch.int32), 0, RuntimeError),
        (torch.zeros(2, 2, dtype=torch.int64), 0, RuntimeError),
        (torch.zeros(1, 1, 2, dtype=torch.int32), 0, RuntimeError),
        (torch.zeros(3, dtype=torch.int32), 0, RuntimeError),
        (torch.zeros(2, dtype=torch.int32), 1, RuntimeError),
        (torch.zeros(2, 2, dtype=torch.int32), 2, RuntimeError),
        (torch.zeros(2, 2, dtype=torch.int32), -1, RuntimeError),
        (np.zeros((2, 2), dtype=np.uint32), 0, RuntimeError),
        ([1, 2], 0, TypeError),
        (torch.zeros(2, 2, dtype=torch.int32), "0", TypeError),
    ],
)
def test_bitmasks_that_do_not_fit(bitmask: object, index: int, error: type[Exception]) -> None:
    for compiled, make in zip(compiled_pair('root ::= "a"*'), makers(), strict=True):
        with pytest.raises(error):
            make(compiled).fill_next_token_bitmask(bitmask, index)


def test_read_only_bitmask() -> None:
    array = np.zeros((1, 2), dtype=np.int32)
    array.flags.writeable = False
    for compiled, make in zip(compiled_pair('root ::= "a"*'), makers(), strict=True):
        with pytest.raises(BufferError):
            make(compiled).fill_next_token_bitmask(array)


def test_need_apply_is_false_only_when_every_token_is_allowed() -> None:
    tokens = [b"a", b"b", b"ab", b"ba", b"</s>"]
    for size, expected in ((5, False), (6, True)):
        info = make_info(tokens, [4], size=size)
        for compiled, make in zip(compiled_pair("root ::= [ab]*", info), makers(), strict=True):
            matcher = make(compiled)
            assert matcher.fill_next_token_bitmask(np.zeros(1, dtype=np.int32)) is expected


# ------------------------------------------------------------------- draft trees


def draft_tree(tokens: list[int]) -> list[torch.Tensor]:
    """A root with two children, the first of which has two."""
    children = torch.tensor([1, 3, -1, -1, -1])
    siblings = torch.tensor([-1, 2, -1, 4, -1])
    return [children, siblings, torch.tensor(tokens)]


@pytest.mark.parametrize("grammar", ['root ::= "a" [ab]* "x"', 'root[lazy] ::= "a" [ab]* "x"'])
@pytest.mark.parametrize(
    "tokens", [[0, 0, 1, 2, 6], [0, 2, 6, 5, 0], [9, 39, 3, 0, 0], [0, -7, 10**12, 0, 0]]
)
@pytest.mark.filterwarnings("ignore::tokfold.FallbackWarning")
def test_draft_trees(grammar: str, tokens: list[int]) -> None:
    masks = []
    for compiled, make in zip(compiled_pair(grammar), makers(), strict=True):
        matcher = make(compiled)
        assert matcher.accept_token(0)
        bitmask = torch.full((5, 2), 7, dtype=torch.int32)
        temperatures = torch.zeros(5)
        assert matcher.traverse_draft_tree(*draft_tree(tokens), bitmask, -1.0, temperatures)
        assert temperatures.eq(-1).all()
        masks.append(bitmask)
        assert not matcher.is_terminated()
    bits = [np.unpackbits(m.numpy().view(np.uint8), axis=1, bitorder="little") for m in masks]
    assert (bits[0][:, : len(TOKENS)] == bits[1][:, : len(TOKENS)]).all()


def test_draft_nodes_that_are_not_reached_keep_their_rows() -> None:
    for compiled, make in zip(compiled_pair('root ::= "a" [ab]*'), makers(), strict=True):
        bitmask = torch.full((5, 2), 7, dtype=torch.int32)
        tree = draft_tree([0, 6, 0, 0, 0])  # node 1 is refused, so 3 and 4 are not reached
        assert make(compiled).traverse_draft_tree(*tree, bitmask)
        assert bitmask[3:].eq(7).all()
        assert bitmask[1].eq(0).all()


def test_a_draft_tree_after_termination() -> None:
    for compiled, make in zip(compiled_pair('root ::= "a"*'), makers(), strict=True):
        matcher = make(compiled)
        matcher.accept_token(5)
        bitmask = torch.full((5, 2), 7, dtype=torch.int32)
        assert matcher.traverse_draft_tree(*draft_tree([0] * 5), bitmask)
        assert bitmask[0].eq(0).all()
        assert bitmask[1:].eq(7).all()


def test_bad_draft_trees() -> None:
    good = draft_tree([0] * 5)
    bitmask = torch.zeros(5, 2, dtype=torch.int32)
    for compiled, make in zip(compiled_pair('root ::= "a"*'), makers(), strict=True):
        matcher = make(compiled)
        for bad in (
            (good[0], good[1], good[2].int(), bitmask),
            (good[0], good[1][:3], good[2], bitmask),
            (good[0], good[1], good[2], bitmask[:4]),
            (good[0], good[1], good[2], bitmask[0]),
            (torch.tensor([1, 1, -1, -1, -1]), good[1], good[2], bitmask),
        ):
            with pytest.raises(RuntimeError):
                matcher.traverse_draft_tree(*bad)


# ------------------------------------------------------------------------- batches


@pytest.mark.parametrize("threads", [1, 2, "auto"])
@pytest.mark.filterwarnings("ignore::tokfold.FallbackWarning")
def test_batches_of_different_grammars(threads: int | str) -> None:
    compiler = txgr.GrammarCompiler(make_info())
    grammars = [
        'root ::= "a"*',
        "root ::= [ab]* [^a]",
        "root[max_chars=9] ::= [ab]*",
        'root ::= "x"',
    ]
    matchers = [txgr.GrammarMatcher(compiler.compile_grammar(text)) for text in grammars]
    wide = torch.zeros(6, 4, dtype=torch.int32)
    batch = txgr.BatchGrammarMatcher(threads)
    batch.batch_fill_next_token_bitmask(matchers, wide[:, 1:3], [5, 0, 3, 1])
    for matcher, row in zip(matchers, (5, 0, 3, 1), strict=True):
        expected = torch.zeros(2, dtype=torch.int32)
        matcher.fill_next_token_bitmask(expected)
        assert wide[row].tolist() == [0, *expected.tolist(), 0]
    assert wide[2].eq(0).all()

    accepted = batch.batch_accept_token(matchers, [0, 0, 0, 0])
    assert accepted == [True, True, True, False]
    assert batch.batch_accept_string(matchers, ["a", b"b", "", "x"]) == [True] * 4
    batch.batch_rollback(matchers[:3], [2, 1, 0])
    batch.batch_rollback(matchers[3:])
    temperatures = torch.zeros(4)
    batch.batch_fill_temperature(matchers, temperatures)
    assert temperatures.eq(-1).all()


def test_errors_of_batches() -> None:
    _, compiled = compiled_pair('root ::= "a"*')
    matchers = [txgr.GrammarMatcher(compiled) for _ in range(2)]
    batch = txgr.BatchGrammarMatcher()
    bitmask = txgr.allocate_token_bitmask(2, 40)
    for call in (
        lambda: batch.batch_fill_next_token_bitmask(matchers, bitmask, [0]),
        lambda: batch.batch_fill_next_token_bitmask(matchers, bitmask, [0, 2]),
        lambda: batch.batch_fill_next_token_bitmask([*matchers, matchers[0]], bitmask),
        lambda: batch.batch_accept_token(matchers, [0]),
        lambda: batch.batch_accept_string(matchers, ["a"]),
        lambda: batch.batch_rollback(matchers, [0]),
        lambda: batch.batch_rollback(matchers, 1),
        lambda: txgr.BatchGrammarMatcher(0),
    ):
        with pytest.raises(RuntimeError):
            call()
    matchers[1].accept_token(5)
    with pytest.raises(RuntimeError, match="terminated"):
        batch.batch_fill_next_token_bitmask(matchers, bitmask)


def test_threads_fill_rows_of_one_bitmask() -> None:
    """As vLLM does: a row for each request, filled from threads."""
    _, compiled = compiled_pair("root ::= [ab]* [^a]")
    matchers = [txgr.GrammarMatcher(compiled) for _ in range(8)]
    for steps, matcher in enumerate(matchers):
        assert all(matcher.accept_token(0) for _ in range(steps))
        if steps % 2:
            assert matcher.accept_token(6)
    bitmask = txgr.allocate_token_bitmask(8, 40)
    errors: list[Exception] = []

    def work(row: int) -> None:
        try:
            for _ in range(300):
                matchers[row].fill_next_token_bitmask(bitmask, row)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    expected = txgr.allocate_token_bitmask(8, 40)
    for row, matcher in enumerate(matchers):
        matcher.fill_next_token_bitmask(expected, row)
    assert bitmask.tolist() == expected.tolist()
