"""Bounds, threads and odd calls of stores and their matchers."""

from __future__ import annotations

import copy
import pickle
import random
import threading

import numpy as np
import pytest
from mask_store.lexer_views import places
from mask_store.store_samples import JSON, PYTHON, json_store, python_store, vocabulary
from tokfold.errors import LimitExceededError, MatcherStateError, VocabularyError
from tokfold.mask_store.lark_reader import python_grammar, read_lark
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.stack_classes import StackClasses
from tokfold.mask_store.stack_graph import StackGraph
from tokfold.mask_store.store import MaskStore


def mask(matcher: StoreMatcher) -> bytes:
    row = np.zeros(matcher.store.words, np.int32)
    matcher.fill_bitmask(row)
    return row.tobytes()


def accepted(matcher: StoreMatcher) -> set[int]:
    return {i for i in range(len(matcher.store.vocabulary)) if matcher.fork().accept_token(i)}


def test_bytes_are_bounded_and_masks_stay_the_same() -> None:
    grammar, tokens = python_grammar(), vocabulary([PYTHON], 200)
    small = MaskStore(grammar, tokens, max_bytes=20_000)
    large = MaskStore(grammar, tokens)
    one, two = StoreMatcher(small), StoreMatcher(large)
    for token in tokens.encode_greedy(PYTHON.encode()):
        assert mask(one) == mask(two)
        assert one.accept_token(token)
        assert two.accept_token(token)
    counts = small.row_count()
    assert counts["forgotten"] > 3
    # What one mask adds may stand above the bound until the next is asked for.
    assert counts["union_bytes"] < 60_000
    assert large.row_count()["union_bytes"] > 60_000


def test_indentation_without_end() -> None:
    store = python_store()
    matcher = StoreMatcher(store)
    for depth in range(150):
        assert matcher.accept_string("if x:\n" + " " * (depth + 1))
    assert places(matcher)[0].column == 150
    assert matcher.accept_string("y\n")
    rng = random.Random(3)
    row = np.frombuffer(mask(matcher), np.uint8)
    bits = np.unpackbits(row, bitorder="little")
    for token in rng.sample(range(len(store.vocabulary)), 200):
        assert bool(bits[token]) == matcher.fork().accept_token(token)
    assert matcher.accept_string("    z\n")
    assert len(places(matcher)[0].columns) == 5
    assert matcher.is_accepting


def test_threads_share_a_store() -> None:
    store = MaskStore(python_grammar(), vocabulary([PYTHON], 300), max_kept=60)
    tokens = store.vocabulary.encode_greedy(PYTHON.encode())
    alone = StoreMatcher(store)
    expected = []
    for token in tokens:
        expected.append(mask(alone))
        assert alone.accept_token(token)
    wrong: list[int] = []
    shared = StoreMatcher(store)

    def read(seed: int) -> None:
        rng, matcher = random.Random(seed), shared.fork()
        for place, token in enumerate(tokens):
            if rng.random() < 0.5 and mask(matcher) != expected[place]:
                wrong.append(place)
            if rng.random() < 0.1:
                matcher = matcher.fork()
            if not matcher.accept_token(token):
                wrong.append(-1)
            if rng.random() < 0.05 and matcher.num_steps > 1:
                matcher.rollback()
                matcher.accept_token(token)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert store.row_count()["forgotten"] > 0


def test_drafts_are_what_forks_say() -> None:
    store = json_store()
    stop = store.vocabulary.stop_token_ids[0]
    matcher = StoreMatcher(store)
    assert matcher.accept_string("[1")
    before = matcher.state
    ids = [ord(","), ord("2"), ord("]"), ord("}"), stop, ord("1"), ord("]")]
    parents = [-1, 0, 1, 0, 2, 4, -1]
    rows = np.full((len(ids) + 1, store.words), -1, np.int32)
    allowed = matcher.fill_bitmask_draft(ids, rows, parents)
    assert allowed.tolist() == [True, True, True, False, True, False, True]
    assert rows[0].tobytes() == mask(matcher)
    for node in (0, 1, 2, 6):
        path, at = [], node
        while at >= 0:
            path.append(ids[at])
            at = parents[at]
        fork = matcher.fork()
        assert fork.accept_tokens(path[::-1]) == len(path)
        assert rows[node + 1].tobytes() == mask(fork)
    for node in (3, 4, 5):
        assert not rows[node + 1].any()
    assert matcher.state == before
    chain = np.zeros((3, store.words), np.int32)
    assert matcher.fill_bitmask_draft(ids[:2], chain).all()
    with pytest.raises(MatcherStateError, match="parents"):
        matcher.fill_bitmask_draft(ids, rows, [0] * len(ids))
    with pytest.raises(ValueError, match="8 rows"):
        matcher.fill_bitmask_draft(ids, rows[:3], parents)
    with pytest.raises(VocabularyError):
        matcher.fill_bitmask_draft([10**6], rows)


def test_bytes_that_come_next() -> None:
    store = json_store()
    matcher = StoreMatcher(store)
    assert matcher.accept_string("[t")
    assert matcher.expected_bytes == b"r"
    assert matcher.forced_bytes() == b"rue"
    assert matcher.forced_bytes(2) == b"ru"
    assert matcher.accept_string("rue")
    assert set(matcher.expected_bytes) == set(b",] \t\r\n")
    assert matcher.forced_bytes() == b""
    assert matcher.accept_string("]")
    assert matcher.accept_token(store.vocabulary.stop_token_ids[0])
    assert matcher.expected_bytes == b""
    with pytest.raises(ValueError, match="0 or more"):
        matcher.forced_bytes(-1)


def test_copies_and_pickles() -> None:
    matcher = StoreMatcher(json_store())
    assert matcher.accept_string("[")
    other = copy.deepcopy(matcher)
    assert other.accept_string("1")
    assert matcher.text == b"["
    assert other.text == b"[1"
    with pytest.raises(MatcherStateError, match="send its text"):
        pickle.dumps(matcher)


def test_too_many_states_of_stacks_are_an_error() -> None:
    graph = StackGraph(read_lark(JSON), max_states=4)
    classes = StackClasses(graph)
    with pytest.raises(LimitExceededError) as raised:
        classes.states(classes.reading([graph.terminals["RSQB"]] * 6), range(graph.size))
    assert raised.value.limit == "stack_states"
    # What had been found stays; the answer to the same question is the same error.
    with pytest.raises(LimitExceededError):
        classes.states(classes.reading([graph.terminals["RSQB"]] * 6), range(graph.size))


def test_an_interrupt_ends_the_build() -> None:
    calls = 0

    def progress(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            raise KeyboardInterrupt

    for stop_at in (1, 10**9):
        calls = 0
        if stop_at == 1:
            with pytest.raises(KeyboardInterrupt):
                MaskStore(read_lark(JSON), vocabulary([JSON], 5), progress=progress)
        else:
            MaskStore(read_lark(JSON), vocabulary([JSON], 5), progress=progress)
    last = calls
    stop_at, calls = last, 0
    with pytest.raises(KeyboardInterrupt):
        MaskStore(read_lark(JSON), vocabulary([JSON], 5), progress=progress)


def test_numbers_outside_are_refused() -> None:
    store = json_store()
    core = store.predicates.graph._core
    for call in (
        lambda: core.shift([10**6], 0),
        lambda: core.shift([0], 10**6),
        lambda: core.states(10**6, [0]),
        lambda: core.states(0, [10**6]),
        lambda: core.moves(10**6),
        lambda: core.choose(10**6, 0, 0, 1),
        lambda: core.chosen([], [0]),
        lambda: core.reading([(0, [10**6])]),
    ):
        with pytest.raises(ValueError, match=r"no|said"):
            call()


def test_shifts_leave_the_stack_alone_when_refused() -> None:
    graph = json_store().predicates.graph
    stack = [graph.start]
    assert not graph.shift(stack, graph.terminals["RSQB"])
    assert stack == [graph.start]
    assert graph.shift(stack, graph.terminals["LSQB"])
    assert not graph.shift(stack, graph.end)
    assert len(stack) == 2


def test_every_token_on_the_way_as_single_tokens() -> None:
    store = json_store()
    matcher = StoreMatcher(store)
    row = np.zeros(store.words, np.int32)
    for byte in b'{"a": [1, -2.5e3]} ':
        matcher.fill_bitmask(row)
        bits = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        assert set(bits.tolist()) == accepted(matcher)
        assert matcher.accept_token(byte)
