"""Matchers on a device beside those on the CPU: nobody can tell the two apart."""

from __future__ import annotations

import copy
import functools
import pickle
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("triton")

import tokfold  # noqa: E402
from chart_gpu.cuda_samples import on_cpu  # noqa: E402
from chart_gpu.device_samples import DEVICE, INTERPRETED, needs_device, some_grammar, times  # noqa: E402
from chart_gpu.test_lexer import random_text, vocabulary_of  # noqa: E402
from strategies.engine import compiled_with  # noqa: E402
from strategies.profiles import CASES  # noqa: E402
from tokfold import Matcher  # noqa: E402
from tokfold._history import begin, stop_token_ids, vocab_size  # noqa: E402
from tokfold.chart_gpu import DeviceGrammar, DeviceMatcher, charts, text, transfers  # noqa: E402

pytestmark = needs_device
TOKENS = [b"a", b"b", b"c", b"ab", b"abc", b"x", b"", b"ca", b"bb", b"</s>", b"<s>", b"cab", b"a"]
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=[9], special_token_ids=[10])
STACKS = 'root ::= root root | "a" | "b" root "c"'


Either = Matcher | DeviceMatcher


def pair_of(grammar: tokfold.Grammar, classes="never", **options) -> tuple[DeviceMatcher, Matcher]:
    """A matcher on the device, and one on the CPU."""
    compiled = compiled_with(grammar, VOCABULARY, classes=classes, engine="chart")
    return DeviceMatcher(compiled, DeviceGrammar(grammar), **options), Matcher(compiled, **options)


def row_of(matcher: Either) -> tuple[list[int], bool]:
    row = np.full((2, 1), 0x5A5A5A5A, dtype=np.int32)
    needed = matcher.fill_bitmask(row, 1)
    assert row[0, 0] == 0x5A5A5A5A
    return row[1].tolist(), needed


def answers(matcher: Either) -> tuple:
    ended = matcher.is_terminated
    return (
        *(matcher.is_accepting, ended, matcher.num_steps, matcher.text, matcher.expected_bytes),
        matcher.stop_token_ids,
        None if ended else row_of(matcher),
    )


def outcome(call) -> object:
    """What a call gives, or what it raises."""
    try:
        return call()
    except (tokfold.TokfoldError, ValueError) as error:
        return type(error)


def any_options(random: Random) -> dict:
    return {
        "stop_token_ids": random.choice([None, [9], [3, 9], [0], []]),
        "terminate_without_stop_token": random.random() < 0.3,
    }


def test_anything_that_matchers_do():
    for seed in range(times(9)):
        random = Random(seed)
        options = any_options(random)
        pairs = [pair_of(some_grammar(random), random.choice(["never", "now"]), **options)]
        for _ in range(9):
            pair = random.choice(pairs)
            kind = random.random()
            allowed = [t for t in range(13) if pair[1].fork() and _takes(pair[1], t)]
            if kind < 0.5:
                token = random.choice(allowed or [9]) if random.random() < 0.9 else 5
                done = [outcome(lambda m=m, t=token: m.accept_token(t)) for m in pair]
            elif kind < 0.6:
                data = random.choice([b"", b"a", b"abca", bytes(random.choices(b"abc", k=4))])
                done = [outcome(lambda m=m, d=data: m.accept_bytes(d)) for m in pair]
            elif kind < 0.7:
                ids = random.choices(allowed or [0], k=3)
                done = [outcome(lambda m=m, i=ids: m.accept_tokens(i)) for m in pair]
            elif kind < 0.85:
                count = random.randint(0, pair[1].num_steps + (random.random() < 0.2))
                done = [outcome(lambda m=m, c=count: m.rollback(c)) for m in pair]
            elif kind < 0.9:
                done = [m.reset() for m in pair]
            else:
                pairs.append((pair[0].fork(), pair[1].fork()))
                done = [0, 0]
            assert done[0] == done[1]
            assert answers(pair[0]) == answers(pair[1])
            CASES["chart-gpu: states of matchers on a device"] += 1
        for pair in pairs:
            assert answers(pair[0]) == answers(pair[1])
            on_cpu = pair[0].on_cpu
            assert answers(on_cpu) == answers(pair[1])
            assert on_cpu.state == pair[1].state
            if not pair[1].is_terminated:
                assert on_cpu.forced_bytes() == pair[1].forced_bytes()
                assert on_cpu.explain(3) == pair[1].explain(3)


def test_terminals_through_the_same_door():
    """What is read by terminals, and cut anywhere by tokens, answers as bytes do."""
    letters = read = 0
    for seed in range(times(5)):
        random = Random(seed)
        vocabulary = vocabulary_of(random)
        grammar = tokfold.Grammar.from_ebnf(random_text(random))
        classes = random.choice(["never", "now"])
        options = any_options(random)
        compiled = compiled_with(grammar, vocabulary, classes=classes, check_tokens=False)
        device = DeviceGrammar(grammar, alphabet="terminals")
        pair = (DeviceMatcher(compiled, device, **options), Matcher(compiled, **options))
        for _ in range(7):
            allowed = [t for t in range(len(vocabulary)) if _takes(pair[1], t)]
            kind = random.random()
            if kind < 0.6 and allowed:
                token = random.choice(allowed)
                done = [outcome(lambda m=m, t=token: m.accept_token(t)) for m in pair]
            elif kind < 0.7:
                data = random.choice(["DT ", "NN", "N", "VB V", "xé", "ö"]).encode()
                done = [outcome(lambda m=m, d=data: m.accept_bytes(d)) for m in pair]
            elif kind < 0.9:
                count = random.randint(0, pair[1].num_steps)
                done = [outcome(lambda m=m, c=count: m.rollback(c)) for m in pair]
            else:
                pair, done = (pair[0].fork(), pair[1].fork()), [0, 0]
            assert done[0] == done[1]
            found, expected = [], []
            for matcher, to in zip(pair, (found, expected), strict=True):
                to += [matcher.is_accepting, matcher.is_terminated, matcher.text]
                to.append(matcher.expected_bytes)
                if not matcher.is_terminated:
                    row = tokfold.allocate_bitmask(1, len(vocabulary))
                    to += [matcher.fill_bitmask(row), row.tolist()]
            assert found == expected
            CASES["chart-gpu: states of matchers over terminals"] += 1
        letters, read = letters + pair[0]._text.length, read + len(pair[0].text)
    assert 0 < 2 * letters < read


def test_more_lexer_states_than_trees_are_kept(monkeypatch):
    monkeypatch.setattr(transfers, "MOST_MASKS", 2)
    grammar = tokfold.Grammar.from_ebnf('root ::= "begin" ("," " "? "xyz")* "end"')
    vocabulary = tokfold.Vocabulary([b"b", b"beg", b"in", b",", b" x", b", xyz,", b"xyzend", b"nd"])
    compiled = tokfold.compile(grammar, vocabulary, classes="never")
    matcher = DeviceMatcher(compiled, DeviceGrammar(grammar, alphabet="terminals"))
    other = Matcher(compiled)
    for data in (b"b", b"eg", b"i", b"n", b", x", b"yz", b",", b"xyze", b"nd"):
        for one in (matcher, other):
            assert one.accept_bytes(data)
        rows = [tokfold.allocate_bitmask(1, len(vocabulary)) for _ in range(2)]
        matcher.fill_bitmask(rows[0])
        other.fill_bitmask(rows[1])
        assert (rows[0] == rows[1]).all()
        assert len(matcher._text._memory.masks) <= 2


def _takes(matcher: Matcher, token: int) -> bool:
    return not matcher.is_terminated and matcher.fork().accept_token(token)


def test_a_text_that_outgrows_its_chart(monkeypatch):
    monkeypatch.setattr(text, "FIRST_COLUMNS", 8)
    pair = pair_of(tokfold.Grammar.from_ebnf('root ::= "a" root | "b"'))
    for matcher in pair:
        assert matcher.accept_bytes(b"a" * 7)
        assert matcher.accept_bytes(b"a" * 12)
        assert not matcher.accept_bytes(b"a" * 20 + b"ba")
        assert matcher.num_steps == 2
    assert answers(pair[0]) == answers(pair[1])
    for matcher in pair:
        matcher.rollback(1)
        assert matcher.accept_bytes(b"b")
    assert answers(pair[0]) == answers(pair[1])


def test_batches():
    pair = pair_of(tokfold.Grammar.from_ebnf(STACKS), "now")
    rows = np.zeros((2, 3, 1), dtype=np.int32)
    for at, matcher in enumerate(pair):
        both = [matcher, matcher.fork(), Matcher(matcher.compiled)]
        assert tokfold.accept_token_batch(both, [0, 1, 2]).tolist() == [True, True, False]
        tokfold.fill_bitmask_batch(both, rows[at])
        with pytest.raises(tokfold.VocabularyError, match="row 1: token 99"):
            tokfold.accept_token_batch(both, [0, 99, 0])
        tokfold.rollback_batch(both, [1, 0, 0])
        assert [m.num_steps for m in both] == [0, 1, 0]
    assert (rows[0] == rows[1]).all()
    with pytest.raises(tokfold.MatcherStateError, match="a DeviceMatcher has no token classes"):
        tokfold.fill_class_bitmask_batch([pair[0]], rows[0])
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(pair[0])
    assert copy.copy(pair[0]).text == pair[0].text


def test_logits_processors_fork_it():
    matcher = pair_of(tokfold.Grammar.from_ebnf(STACKS))[0]
    assert (vocab_size(matcher), stop_token_ids(matcher)) == (len(VOCABULARY), (9,))
    row = begin(matcher, prefix="a")
    assert isinstance(row, DeviceMatcher)
    assert (row.text, matcher.text) == (b"a", b"")
    with pytest.raises(tokfold.UnsupportedGrammarError, match="a DeviceMatcher does not count"):
        begin(matcher, max_tokens=3)


def test_a_text_without_an_end():
    vocabulary = tokfold.Vocabulary([b"a"])
    grammar = tokfold.Grammar.from_ebnf('root ::= "a"')
    compiled = compiled_with(grammar, vocabulary, classes="never", check_tokens=False)
    matcher = DeviceMatcher(compiled, DeviceGrammar(grammar))
    assert matcher.accept_token(0)
    with pytest.warns(tokfold.StopTokenWarning, match="the mask is empty"):
        row_of(matcher)


def test_a_batch_that_fails_moves_nobody(monkeypatch):
    matcher = pair_of(tokfold.Grammar.from_ebnf(STACKS))[0]
    pair = [matcher, matcher.fork()]
    pair[1].cancel()
    with pytest.raises(tokfold.TokfoldError, match="was cancelled"):
        tokfold.accept_token_batch(pair, [0, 0])
    assert [matcher.num_steps for matcher in pair] == [0, 0]
    pair[1].resume()
    assert tokfold.accept_token_batch(pair, [0, 0]).all()


def test_classes_of_the_background_are_waited_for():
    grammar = tokfold.Grammar.from_ebnf(STACKS)
    compiled = tokfold.compile(grammar, VOCABULARY)
    matcher = DeviceMatcher(compiled, DeviceGrammar(grammar))
    assert compiled.has_classes
    assert matcher._text.tree.num_classes == len(compiled.classes)


def test_masks_that_stay_on_the_device():
    matcher = pair_of(tokfold.Grammar.from_ebnf(STACKS), "now", stop_token_ids=[8])[0]
    for token in (0, 3, 0):
        row = matcher.device_bitmask()
        assert row.device == matcher.device.device
        assert row.cpu().numpy()[0].tolist() == row_of(matcher)[0]
        matcher.accept_token(token)
    assert matcher.num_bytes == matcher._text.charts.nbytes
    assert "after 3 steps" in repr(matcher)
    assert "on cpu" in repr(matcher.device) or DEVICE == "cuda"


def test_misuse():
    matcher = pair_of(tokfold.Grammar.from_ebnf(STACKS))[0]
    with pytest.raises(TypeError, match="numpy array of dtype int32"):
        matcher.fill_bitmask(np.zeros(1, dtype=np.int64))
    with pytest.raises(ValueError, match="rows of 2 words, not 1"):
        matcher.fill_bitmask(np.zeros((1, 2), dtype=np.int32))
    with pytest.raises(ValueError, match="1 rows, not one of index 1"):
        matcher.fill_bitmask(np.zeros((1, 1), dtype=np.int32), 1)
    with pytest.raises(ValueError, match="C-contiguous"):
        matcher.fill_bitmask(np.zeros((2, 2), dtype=np.int32)[:, :1])
    with pytest.raises(ValueError, match="count must be 0 or more"):
        matcher.rollback(-1)
    with pytest.raises(tokfold.VocabularyError):
        matcher.accept_token(99)
    other = DeviceGrammar(tokfold.Grammar.from_ebnf('root ::= "a"'))
    with pytest.raises(ValueError, match=r"make DeviceGrammar\(compiled.grammar\)"):
        DeviceMatcher(matcher.compiled, other)
    with matcher._alone(), pytest.raises(tokfold.MatcherStateError, match="another thread"):
        matcher.accept_token(0)


def test_terminals_that_begin_alike():
    grammar = tokfold.Grammar.from_ebnf('root ::= "a" | "ab"')
    with pytest.raises(tokfold.UnsupportedGrammarError, match="begins like") as caught:
        DeviceGrammar(grammar, alphabet="terminals")
    assert caught.value.construct == "terminals"


def test_limits():
    grammar = tokfold.Grammar.from_ebnf(STACKS)
    limits = tokfold.Limits(max_matcher_bytes=40_000)
    compiled = tokfold.compile(grammar, VOCABULARY, classes="never")
    matcher = DeviceMatcher(compiled, DeviceGrammar(grammar, limits))
    with pytest.raises(tokfold.LimitExceededError, match="max_matcher_bytes = 40000") as caught:
        matcher.accept_bytes(b"a" * 1_000)
    assert caught.value.limit == "max_matcher_bytes"
    assert matcher.num_steps == 0
    assert matcher.accept_bytes(b"aa")
    few = DeviceGrammar(grammar, tokfold.Limits(max_tree_nodes=1))
    with pytest.raises(tokfold.LimitExceededError, match="max_tree_nodes = 1"):
        DeviceMatcher(compiled, few).fill_bitmask(np.zeros((1, 1), dtype=np.int32))


def test_masks_of_a_long_text():
    """More masks than are launched one by one, in a chart that makes room meanwhile."""
    first, second = pair_of(tokfold.Grammar.from_ebnf(STACKS), "now")
    rows = [np.zeros((1, 1), dtype=np.int32) for _ in range(2)]
    steps = 8 if INTERPRETED else 2 * text.FIRST_COLUMNS
    for step in range(steps):
        for matcher, row in zip((first, second), rows, strict=True):
            matcher.fill_bitmask(row)
        assert np.array_equal(*rows)
        token = [0, 1, 0, 2, 3][step % 5]
        if not rows[1][0, 0] >> token & 1:
            token = 0
        assert first.accept_token(token)
        assert second.accept_token(token)
        if step % 40 == 6:  # a graph goes on where the text does
            first, second = first.fork(), second.fork()
            for matcher in (first, second):
                matcher.rollback(3)


def test_memory_serves_one_text_after_another():
    """Charts, masks and graphs of a text that is no more are those of the next one."""
    first, second = pair_of(tokfold.Grammar.from_ebnf(STACKS), "now")
    device, compiled = first.device, first.compiled
    assert answers(first) == answers(second)
    for token in (0, 3, 0, 1):
        assert first.accept_token(token)
        row = first.device_bitmask()
    kept, before = first._text._memory, row.clone()
    del first
    assert list(device.idle) == [kept]
    other = DeviceMatcher(compiled, device, stop_token_ids=[8])  # another mask
    assert list(device.idle) == [kept]
    again = DeviceMatcher(compiled, device)
    assert (again._text._memory, list(device.idle)) == (kept, [])
    assert answers(again) == answers(second)
    for token in (1, 0, 2, 0):
        assert again.accept_token(token) == second.accept_token(token)
        again.device_bitmask()
        assert answers(again) == answers(second)
    assert torch.equal(row, before)  # a row belongs to the matcher that it was asked of
    held = again.fork()
    del again
    forked = held.fork()
    assert forked._text._memory is kept
    assert answers(forked) == answers(held) == answers(second)
    assert answers(other) == answers(Matcher(compiled, stop_token_ids=[8]))


def launched_again(own, masks, state) -> SimpleNamespace:
    """Stands for a graph where there are none."""
    return SimpleNamespace(replay=lambda: own._read_and_write(masks, state))


@pytest.mark.skipif(not INTERPRETED, reason="a GPU has graphs of its own")
def test_letters_are_read_in_the_graph_of_a_mask(monkeypatch):
    """By kernels in CUDA: letters of any number, also none, in one launch with the mask."""
    module = on_cpu(monkeypatch)
    monkeypatch.setattr(text, "Charts", functools.partial(charts.Charts, kernel="cuda"))
    monkeypatch.setattr(transfers.TextMemory, "_has_graphs", True)
    monkeypatch.setattr(transfers.TextMemory, "_captured", launched_again)
    for module_of_it in (text, transfers):
        monkeypatch.setattr(module_of_it, "AT_ONCE", 4)
    first, second = pair_of(tokfold.Grammar.from_ebnf(STACKS), "now")
    random, alone = Random(5), 0
    for _ in range(24):
        kind = random.random()
        if kind < 0.6:
            allowed = [token for token in range(13) if _takes(second, token)]
            token = random.choice(allowed)
            assert first.accept_token(token) == second.accept_token(token) is True
        elif kind < 0.8:
            count = random.randint(0, second.num_steps)
            first.rollback(count)
            second.rollback(count)
        else:
            assert first.accept_bytes(b"abc" * 3) == second.accept_bytes(b"abc" * 3)
        before = len(module.launched)
        if not second.is_terminated and random.random() < 0.7:
            assert row_of(first) == row_of(second)
            launches = [name for name, _ in module.launched[before:]]
            alone += sum(name.startswith("read_rows") for name in launches) == 1
            assert first._text._memory._waiting == []
    assert alone > 5
    assert answers(first) == answers(second)


def test_memory_that_is_kept_is_bounded(monkeypatch):
    first = pair_of(tokfold.Grammar.from_ebnf('root ::= "a" root | "b"'))[0]
    device, compiled = first.device, first.compiled
    several = [DeviceMatcher(compiled, device) for _ in range(6)]
    del several
    assert len(device.idle) == device.idle.maxlen == 4
    device.idle.clear()
    monkeypatch.setattr(text, "IDLE_COLUMNS", text.FIRST_COLUMNS)
    assert first.accept_bytes(b"a" * (text.FIRST_COLUMNS + 1))
    del first
    assert not device.idle


def test_a_token_of_the_last_mask_is_read_without_a_look(monkeypatch):
    """One report for a token and its mask; none for a token that the mask has not."""
    first, second = pair_of(tokfold.Grammar.from_ebnf(STACKS), "now")
    looks = []
    original = transfers.TextMemory._reported
    monkeypatch.setattr(transfers.TextMemory, "_reported", lambda m: looks.append(m) or original(m))
    first.device_bitmask()
    for token in (1, 0, 2, 4, 5, 7, 6, 10, 3):
        looks.clear()
        taken = first.accept_token(token)
        assert taken == second.accept_token(token)
        assert not looks
        first.device_bitmask()
        assert len(looks) == 1
        assert answers(first) == answers(second)
    assert first.is_accepting == second.is_accepting
    # What the device says is held against what was taken for sure.
    first._text._row = np.full(1, -1, dtype=np.int32)
    assert first.accept_token(2)
    with pytest.raises(tokfold.TokfoldError, match="refuses a token of its mask"):
        first.device_bitmask()
    first.rollback(1)
    assert answers(first) == answers(second)


def test_a_call_that_is_interrupted_changes_nothing(monkeypatch):
    first, second = pair_of(tokfold.Grammar.from_ebnf(STACKS), "now")
    for matcher in (first, second):
        assert matcher.accept_bytes(b"b")
    with monkeypatch.context() as patch:

        def interrupted(_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(transfers.TextMemory, "_reported", interrupted)
        with pytest.raises(KeyboardInterrupt):
            first.accept_bytes(b"a")
    assert answers(first) == answers(second)
    for matcher in (first, second):
        assert matcher.accept_token(1)
    with monkeypatch.context() as patch:
        patch.setattr(transfers.TextMemory, "_has_read", interrupted)  # after the launches
        with pytest.raises(KeyboardInterrupt):
            first.device_bitmask()
    assert answers(first) == answers(second)


def test_what_is_no_text_is_said_as_on_the_cpu():
    for matcher in pair_of(tokfold.Grammar.from_ebnf(STACKS)):
        assert not matcher.accept_string("\ud800")  # it has no UTF-8
        with pytest.raises(tokfold.ArgumentTypeError, match="text must be a str, not bytes"):
            matcher.accept_string(b"a")
        assert matcher.accept_string("a")
