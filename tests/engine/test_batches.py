"""Batches and drafts: the same bits as one by one, whatever the threads; refused calls undo."""

from __future__ import annotations

import copy
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tokfold

TOKENS = [bytes([b]) for b in b"[]{}ab,:1"] + [b"[[", b"]]", b"ab", b"a,", b"],", b"</s>"]
STOP = len(TOKENS) - 1
TEXT = 'root ::= "[" (item ("," item)*)? "]"\nitem ::= root | "a" "b"* | "1"'


@pytest.fixture(scope="module", params=["never", "now"])
def compiled(request: pytest.FixtureRequest) -> tokfold.CompiledGrammar:
    vocabulary = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP])
    return tokfold.compile(tokfold.Grammar.from_ebnf(TEXT), vocabulary, classes=request.param)


def allowed(row: np.ndarray) -> list[int]:
    return [i for i in range(len(TOKENS)) if row[i // 32] >> (i % 32) & 1]


def walked(compiled: tokfold.CompiledGrammar, seed: int, steps: int) -> tokfold.Matcher:
    """A matcher after some random steps, and never at the end."""
    draw, matcher = random.Random(seed), tokfold.Matcher(compiled)
    row = tokfold.allocate_bitmask(1, len(TOKENS))
    for _ in range(steps):
        matcher.fill_bitmask(row)
        choices = [token for token in allowed(row[0]) if token != STOP]
        if not choices:
            break
        matcher.accept_token(draw.choice(choices))
    return matcher


@pytest.mark.parametrize("threads", [0, 1, 2, 5, 300])
def test_batches_do_what_each_does(compiled, threads):
    draw = random.Random(threads)
    matchers = [walked(compiled, seed, seed % 7) for seed in range(70)]
    single = [matcher.fork() for matcher in matchers]
    for _ in range(3):
        rows = tokfold.allocate_bitmask(len(matchers), len(TOKENS))
        one = tokfold.allocate_bitmask(len(matchers), len(TOKENS))
        said = tokfold.fill_bitmask_batch(matchers, rows, threads=threads)
        assert said.tolist() == [m.fill_bitmask(one, i) for i, m in enumerate(single)]
        assert np.array_equal(rows, one)
        tokens = [draw.randrange(STOP) for _ in matchers]
        taken = tokfold.accept_token_batch(matchers, tokens, threads)
        assert taken.tolist() == [m.accept_token(t) for m, t in zip(single, tokens, strict=True)]
        assert any(taken)
        assert not all(taken)
        counts = [draw.randint(0, min(2, m.num_steps)) for m in matchers]
        tokfold.rollback_batch(matchers, counts, threads)
        for matcher, count in zip(single, counts, strict=True):
            matcher.rollback(count)
        assert [m.state for m in matchers] == [m.state for m in single]
        assert [m.text for m in matchers] == [m.text for m in single]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_rows_in_any_order_and_calls_that_are_refused(compiled, threads):
    """Helpers that were woken for a call that is refused do the next as if nothing were."""
    draw = random.Random(threads)
    matchers = [walked(compiled, seed, seed % 5) for seed in range(40)]
    one = tokfold.allocate_bitmask(50, len(TOKENS))
    said = [matcher.fill_bitmask(one, row) for row, matcher in enumerate(matchers)]
    for _ in range(20):
        places = draw.sample(range(50), 40)
        rows = np.full((50, 1), 0x5A5A5A5A, dtype=np.int32)
        assert tokfold.fill_bitmask_batch(matchers, rows, places, threads).tolist() == said
        assert np.array_equal(rows[places], one[:40])
        others = [place for place in range(50) if place not in places]
        assert (rows[others] == 0x5A5A5A5A).all()
        with pytest.raises(ValueError, match="39 rows, not one of index 39"):
            tokfold.fill_bitmask_batch(matchers, rows[:39], threads=threads)
        with pytest.raises(ValueError, match="asked for twice"):
            tokfold.fill_bitmask_batch(matchers, rows, [*places[1:], places[1]], threads)
        with pytest.raises(tokfold.MatcherStateError, match="in use"):
            tokfold.fill_bitmask_batch([*matchers[1:], matchers[1]], rows, threads=threads)
        assert tokfold.fill_bitmask_batch(matchers, rows, threads=threads).tolist() == said
        assert np.array_equal(rows[:40], one[:40])


def test_batches_of_many_threads_at_once(compiled):
    """All share the helpers; no call waits for another's rows, and each gets its own."""
    one = tokfold.allocate_bitmask(40, len(TOKENS))
    for row in range(40):
        walked(compiled, row, row % 5).fill_bitmask(one, row)

    def fill(_: int) -> bool:
        matchers = [walked(compiled, seed, seed % 5) for seed in range(40)]
        rows = tokfold.allocate_bitmask(40, len(TOKENS))
        for _ in range(100):
            rows[:] = 0
            tokfold.fill_bitmask_batch(matchers, rows, threads=3)
            if not np.array_equal(rows, one):
                return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(fill, range(6)))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_that_raises_moves_nobody(compiled, threads):
    matchers = [walked(compiled, seed, 3) for seed in range(40)]
    ended = tokfold.Matcher(compiled)
    assert ended.accept_tokens([0, 1, STOP]) == 3
    matchers.insert(17, ended)
    before = [(m.state, m.num_steps) for m in matchers]
    with pytest.raises(tokfold.MatcherStateError, match=r"^row 17: the text has ended"):
        tokfold.accept_token_batch(matchers, [0] * len(matchers), threads, ended="raise")
    assert [(m.state, m.num_steps) for m in matchers] == before
    with pytest.raises(tokfold.MatcherStateError, match=r"^row 40: 99 steps cannot be taken back"):
        tokfold.rollback_batch(matchers, [1] * 40 + [99], threads)
    assert [(m.state, m.num_steps) for m in matchers] == before
    with pytest.raises(tokfold.MatcherStateError, match="in use"):
        tokfold.accept_token_batch([matchers[0], matchers[0]], [0, 0], threads)
    for token in (len(TOKENS), -1, 1 << 40):
        with pytest.raises(tokfold.VocabularyError, match=r"^row 1: .*outside"):
            tokfold.accept_token_batch(matchers[:3], [0, token, 0], threads)
    for call in (
        lambda: tokfold.accept_token_batch(matchers, [0], threads),
        lambda: tokfold.rollback_batch(matchers, [0], threads),
        lambda: tokfold.rollback_batch(matchers[:1], [-1], threads),
        lambda: tokfold.rollback_batch(matchers[:1], [0], -1),
    ):
        with pytest.raises(ValueError, match=r"matchers, but|must be 0 or more"):
            call()
    assert [(m.state, m.num_steps) for m in matchers] == before


@pytest.mark.parametrize("seed", range(40))
def test_drafts_are_forks(compiled, seed):
    """Every node's row is that of a fork that went there."""
    draw, matcher = random.Random(seed), walked(compiled, seed, seed % 5)
    count = draw.randint(0, 25)
    tokens = [draw.randrange(len(TOKENS)) for _ in range(count)]
    parents = [draw.randint(-1, node - 1) for node in range(count)]
    rows = np.full((count + 3, 1), 0x5A5A5A5A, dtype=np.int32)
    before = (matcher.state, matcher.num_steps, matcher.text)
    said = matcher.fill_bitmask_draft(tokens, rows, parents)
    assert (matcher.state, matcher.num_steps, matcher.text) == before
    forks: list[tokfold.Matcher | None] = []
    one = tokfold.allocate_bitmask(1, len(TOKENS))
    matcher.fill_bitmask(one)
    assert np.array_equal(rows[0], one[0])
    for node, (parent, token) in enumerate(zip(parents, tokens, strict=True)):
        base = matcher if parent < 0 else forks[parent]
        fork = base.fork() if base is not None and not base.is_terminated else None
        taken = fork is not None and fork.accept_token(token)
        forks.append(fork if taken else None)
        assert said[node] == taken
        if taken and not fork.is_terminated:
            fork.fill_bitmask(one)
            assert np.array_equal(rows[node + 1], one[0])
        else:
            assert not rows[node + 1].any()
    assert (rows[count + 1 :] == 0x5A5A5A5A).all(), "rows past the draft were written"


def test_a_draft_is_a_chain_by_default(compiled):
    matcher = tokfold.Matcher(compiled)
    rows = tokfold.allocate_bitmask(4, len(TOKENS))
    assert matcher.fill_bitmask_draft([0, 4, 4], rows).tolist() == [True, True, False]
    assert matcher.accept_tokens([0, 4, 4, 1]) == 2
    assert matcher.text == b"[a"
    assert matcher.accept_tokens([]) == 0
    assert matcher.accept_tokens([1, STOP, 0]) == 2
    assert matcher.is_terminated


def test_bad_drafts_are_named(compiled):
    matcher = walked(compiled, 1, 3)
    before = (matcher.state, matcher.num_steps)
    rows = tokfold.allocate_bitmask(3, len(TOKENS))
    with pytest.raises(ValueError, match="needs 4"):
        matcher.fill_bitmask_draft([0, 0, 0], rows)
    with pytest.raises(ValueError, match="as many parents"):
        matcher.fill_bitmask_draft([0, 0], rows, [-1])
    with pytest.raises(tokfold.VocabularyError, match="outside"):
        matcher.fill_bitmask_draft([len(TOKENS)], rows)
    for parents in ([0, 0], [-1, 1], [-1, 10**30]):
        with pytest.raises(tokfold.MatcherStateError, match="does not stand before"):
            matcher.fill_bitmask_draft([0, 0], rows, parents)
    with pytest.raises(tokfold.MatcherStateError, match=r"node 1 .* node 5, .*: parents\[1\]"):
        matcher.fill_bitmask_draft([0, 0], rows, [-1, 5])
    with pytest.raises(ValueError, match=r"parents\[0\] is -2: pass an earlier node, or -1"):
        matcher.fill_bitmask_draft([0, 0], rows, [-2, 0])
    with pytest.raises(tokfold.VocabularyError, match="outside"):
        matcher.accept_tokens([0, 10**12])
    assert (matcher.state, matcher.num_steps) == before


def test_an_error_in_a_chain_takes_nothing(compiled):
    """What was accepted before the token that raises is taken back."""
    text = 'root ::= "[" "[" "[" many\nmany ::= "a" | many many | "b" many* "1"'
    grammar = tokfold.Grammar.from_ebnf(text)
    chain = [0, 0, 0] + [4, 4, 5, 4, 5, 4, 4, 8] * 3
    late = 0
    for work in range(1, 60):
        limits = tokfold.Limits(max_accept_work=work)
        tight = tokfold.compile(grammar, compiled.vocabulary, limits, classes="never")
        try:
            matcher, single = tokfold.Matcher(tight), tokfold.Matcher(tight)
            for token in chain:
                assert single.accept_token(token)
        except tokfold.LimitExceededError:
            late += single.num_steps > 0
            with pytest.raises(tokfold.LimitExceededError):
                matcher.accept_tokens(chain)
            assert matcher.num_steps == 0
            assert matcher.text == b""
        else:
            assert matcher.accept_tokens(chain) == len(chain)
    assert late, "no limit was reached in the middle"


def test_forks_of_one_text_never_wait_for_each_other(compiled):
    """Forks share tables under a lock, and missing answers are added under another."""
    first = walked(compiled, 3, 2)
    forks = [first]
    for seed in range(63):
        forks.append(forks[seed // 2].fork())
        draw = random.Random(seed)
        while not forks[-1].is_accepting and not forks[-1].accept_token(draw.randrange(STOP)):
            pass
    single = tokfold.allocate_bitmask(len(forks), len(TOKENS))
    rows = single.copy()
    for _ in range(200):
        compiled._core.forget()
        tokfold.fill_bitmask_batch(forks, rows, threads=4)
    for row, fork in enumerate(forks):
        fork.fill_bitmask(single, row)
    assert np.array_equal(single, rows)


def with_an_ended_one(compiled: tokfold.CompiledGrammar) -> list[tokfold.Matcher]:
    """64 matchers, the one in row 17 at its end."""
    matchers = [walked(compiled, seed, seed % 5) for seed in range(64)]
    matchers[17] = tokfold.Matcher(compiled)
    assert matchers[17].accept_tokens([0, 1, STOP]) == 3
    return matchers


@pytest.mark.parametrize("threads", [1, 3])
def test_one_of_64_texts_has_ended(compiled, threads):
    """``fill_bitmask_batch`` holds its row to the stop token, and the others are what they are."""
    matchers = with_an_ended_one(compiled)
    one = tokfold.allocate_bitmask(64, len(TOKENS))
    said = [row == 17 or m.fill_bitmask(one, row) for row, m in enumerate(matchers)]
    one[17] = 1 << STOP
    rows = np.full_like(one, 0x5A5A5A5A)
    assert tokfold.fill_bitmask_batch(matchers, rows, threads=threads).tolist() == said
    assert np.array_equal(rows, one)
    places = list(range(63, -1, -1))
    tokfold.fill_bitmask_batch(matchers, rows, places, threads)
    assert np.array_equal(rows[::-1], one)

    rows = np.full_like(one, 0x5A5A5A5A)
    said[17] = False
    found = tokfold.fill_bitmask_batch(matchers, rows, threads=threads, ended="leave")
    assert found.tolist() == said
    assert (rows[17] == 0x5A5A5A5A).all()
    with pytest.raises(tokfold.MatcherStateError, match=r"^row 17: the text has ended"):
        tokfold.fill_bitmask_batch(matchers, rows, threads=threads, ended="raise")
    with pytest.raises(tokfold.MatcherStateError, match=r"^row 46: the text has ended"):
        tokfold.fill_bitmask_batch(matchers, rows, places, threads, ended="raise")
    with pytest.raises(ValueError, match="ended must be 'stop', 'leave' or 'raise'"):
        tokfold.fill_bitmask_batch(matchers, rows, ended="skip")

    before = matchers[17].state
    tokens = [0] * 64
    tokens[17] = -100  # padding of any number
    single = [row != 17 and m.fork().accept_token(0) for row, m in enumerate(matchers)]
    assert tokfold.accept_token_batch(matchers, tokens, threads).tolist() == single
    assert matchers[17].state == before
    with pytest.raises(ValueError, match="ended must be 'leave' or 'raise'"):
        tokfold.accept_token_batch(matchers, tokens, ended="stop")


def test_rows_of_classes_of_an_ended_text(compiled):
    if not compiled.has_classes:
        pytest.skip("there are none")
    matchers = with_an_ended_one(compiled)
    classes = compiled.classes
    rows = tokfold.allocate_bitmask(64, len(classes))
    assert tokfold.fill_class_bitmask_batch(matchers, rows).all()
    allowed_classes = [i for i in range(len(classes)) if rows[17, i // 32] >> (i % 32) & 1]
    assert allowed_classes == [classes.class_of[STOP]]


def test_an_ended_text_that_no_stop_token_holds(compiled):
    vocabulary = tokfold.Vocabulary(TOKENS[:-1])
    other = tokfold.compile(compiled.grammar, vocabulary, classes="never")
    matcher = tokfold.Matcher(other, terminate_without_stop_token=True)
    matcher.accept_tokens([0, 1])
    rows = tokfold.allocate_bitmask(1, len(vocabulary))
    with pytest.raises(tokfold.VocabularyError, match=r"^row 0: the text has ended, and no stop"):
        tokfold.fill_bitmask_batch([matcher], rows)
    assert not tokfold.fill_bitmask_batch([matcher], rows, ended="leave").any()


def test_errors_of_a_batch_name_the_row(compiled):
    limits = tokfold.Limits(max_mask_work=1)
    small = tokfold.compile(compiled.grammar, compiled.vocabulary, limits, classes="never")
    matchers = [tokfold.Matcher(compiled) for _ in range(5)]
    matchers[3] = tokfold.Matcher(small)
    rows = tokfold.allocate_bitmask(9, len(TOKENS))
    with pytest.raises(tokfold.LimitExceededError, match=r"^row 3: ") as caught:
        tokfold.fill_bitmask_batch(matchers, rows)
    assert (caught.value.limit, caught.value.row) == ("max_mask_work", 3)
    for again in (copy.copy(caught.value), pickle.loads(pickle.dumps(caught.value))):
        assert (again.limit, again.row, str(again)) == ("max_mask_work", 3, str(caught.value))
    with pytest.raises(tokfold.LimitExceededError, match=r"^row 7: ") as caught:
        tokfold.fill_bitmask_batch(matchers, rows, [0, 1, 2, 7, 8])
    assert caught.value.row == 7
    matchers[3].cancel()
    with pytest.raises(tokfold.CancelledError, match=r"^row 3: ") as caught:
        tokfold.accept_token_batch(matchers, [0] * 5)
    assert caught.value.row == 3
    with pytest.raises(tokfold.MatcherStateError, match=r"^row 1: 2 steps") as caught:
        tokfold.rollback_batch(matchers, [0, 2, 0, 0, 0])
    assert caught.value.row == 1
    with pytest.raises(tokfold.MatcherStateError, match=r"^2 steps cannot") as caught:
        matchers[0].rollback(2)
    assert caught.value.row is None
    assert [matcher.num_steps for matcher in matchers] == [0] * 5
    with pytest.raises(ValueError, match=r"^row 2: count must be 0 or more"):
        tokfold.rollback_batch(matchers, [0, 0, -1, 0, 0])


def test_a_prompt_stands_in_a_batch_once(compiled) -> None:
    """As other matchers do: a second time is refused, and nothing has moved."""
    prompt = tokfold.Matcher(compiled).process_prompt([]).matcher
    other = tokfold.Matcher(compiled)
    bitmask = tokfold.allocate_bitmask(3, len(compiled.vocabulary))
    token = TOKENS.index(b"[")
    for twice in (
        lambda: tokfold.accept_token_batch([prompt, other, prompt], [token] * 3),
        lambda: tokfold.fill_bitmask_batch([prompt, other, prompt], bitmask),
        lambda: tokfold.rollback_batch([prompt, other, prompt], [0] * 3),
    ):
        with pytest.raises(tokfold.MatcherStateError, match="row 2: this matcher stands in row 0"):
            twice()
    assert (prompt.num_steps, other.num_steps) == (0, 0)


@pytest.mark.parametrize("kind", ["numpy", "numbers", "torch"])
def test_rows_are_numbers_of_any_kind(compiled, kind) -> None:
    if kind == "torch":
        rows = pytest.importorskip("torch").tensor([1])
    else:
        rows = np.array([1]) if kind == "numpy" else [np.int32(1)]
    matcher, size = tokfold.Matcher(compiled), len(compiled.vocabulary)
    expected = tokfold.allocate_bitmask(2, size)
    tokfold.fill_bitmask_batch([matcher], expected, rows=[1])
    found = tokfold.allocate_bitmask(2, size)
    tokfold.fill_bitmask_batch([matcher], found, rows=rows, threads=10**30)
    assert found.tobytes() == expected.tobytes()


def test_a_cancelled_matcher_says_what_ends_that(compiled) -> None:
    matcher = tokfold.Matcher(compiled)
    assert matcher.shortest().tokens is not None
    matcher.cancel()
    bitmask = tokfold.allocate_bitmask(1, len(compiled.vocabulary))
    for call in (
        matcher.shortest,
        matcher.closing_tokens,
        lambda: tokfold.fill_bitmask_batch([matcher], bitmask),
    ):
        with pytest.raises(tokfold.CancelledError, match=r"counts until its resume\(\)"):
            call()
    matcher.rollback(0)  # a text can be taken back
    matcher.reset()
    matcher.resume()
    assert matcher.shortest().tokens is not None
