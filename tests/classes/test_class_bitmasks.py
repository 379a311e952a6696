"""Masks over classes: unfolded they are the masks over tokens, one by one and in batches."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import tokfold
from hypothesis import event, given, note
from hypothesis import strategies as st
from strategies.engine import (
    GARBAGE,
    Setting,
    allowed_tokens,
    build_setting,
    compiled_ways,
    compiled_with,
    mask_of,
    read_row,
    settings_of_matchers,
)
from strategies.profiles import CASES, examples
from strategies.walks import Accept, Reset, Rollback, Step, build_walk, walks

TOKENS = [bytes([b]) for b in b"[]{}ab,:1"] + [b"[[", b"]]", b"ab", b"a,", b"],", b"<x>", b"</s>"]
SPECIAL, STOP = len(TOKENS) - 2, len(TOKENS) - 1
TEXT = 'root ::= "[" (item ("," item)*)? "]"\nitem ::= root | "a" "b"* | "1"'


def a_vocabulary(**options) -> tokfold.Vocabulary:
    given = {"stop_token_ids": [STOP], "special_token_ids": [SPECIAL], **options}
    return tokfold.Vocabulary(TOKENS, **given)


@pytest.fixture(scope="module")
def compiled() -> tokfold.CompiledGrammar:
    return tokfold.compile(tokfold.Grammar.from_ebnf(TEXT), a_vocabulary(), classes="now")


def class_row(matcher: tokfold.Matcher) -> tuple[np.ndarray, bool]:
    """The class mask, written into the middle row of garbage, and what was returned."""
    words = -(-len(matcher.compiled.classes) // 32)
    rows = np.full((3, words), GARBAGE, dtype=np.int32)
    needs_apply = matcher.fill_class_bitmask(rows, 1)
    assert (rows[[0, 2]] == GARBAGE).all(), "another row was written"
    alone = np.full(words, GARBAGE, dtype=np.int32)
    assert matcher.fill_class_bitmask(alone) is needs_apply
    assert np.array_equal(alone, rows[1])
    return rows[1].copy(), needs_apply


def unfolded(row: np.ndarray, classes: tokfold.TokenClasses) -> list[bool]:
    """A token is allowed when its class is; bits past the last class must be 0."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little").astype(bool)
    assert not bits[len(classes) :].any(), "bits past the last class"
    return [bool(c >= 0 and bits[c]) for c in classes.class_of.tolist()]


def check(matcher: tokfold.Matcher) -> list[bool]:
    """Class mask and token mask say the same, and so does what they return."""
    bits, needs_apply = mask_of(matcher, len(matcher.compiled.vocabulary))
    row, class_needs_apply = class_row(matcher)
    assert unfolded(row, matcher.compiled.classes) == bits
    assert class_needs_apply is needs_apply
    return bits


def check_walk(setting: Setting, walk: list[Step]) -> int:
    """Looks at every step of a walk; how many masks were compared."""
    ways = compiled_ways(setting)
    count = 0
    for compiled in ways or ():
        if compiled.classes is None:
            continue
        if not len(compiled.classes):
            continue
        matcher = tokfold.Matcher(compiled, **setting.options)
        own = {*setting.stops_in_force} <= {*setting.stops}
        for step in [*walk, Reset()]:
            if not matcher.is_terminated:
                if not own:
                    with pytest.raises(tokfold.MatcherStateError, match="is no class of its own"):
                        matcher.fill_class_bitmask(
                            tokfold.allocate_bitmask(1, len(compiled.classes))
                        )
                    return 0
                bits = check(matcher)
                count += 1
                if isinstance(step, Accept) and any(bits):
                    allowed = allowed_tokens(bits)
                    assert matcher.accept_token(allowed[step.choice % len(allowed)])
            if isinstance(step, Rollback):
                matcher.rollback(min(step.steps, matcher.num_steps))
            if isinstance(step, Reset):
                matcher.reset()
    CASES["engine: class masks against token masks"] += count
    return count


class TestWalks:
    @examples(40)
    @given(setting=settings_of_matchers(), walk=walks())
    def test_random_walks(self, setting, walk):
        note(str(setting))
        event(f"masks: {min(check_walk(setting, walk), 9)}")

    @examples(200)
    @given(seed=st.integers(0, 1 << 40))
    def test_seeded_walks(self, seed):
        """These shrink badly, and go much further than those of Hypothesis."""
        random = Random(seed)
        setting = build_setting(random, rules=random.randint(1, 5), size=random.randint(6, 70))
        note(str(setting))
        event(f"masks: {min(check_walk(setting, build_walk(random, 12)), 9)}")


def test_no_token_can_come() -> None:
    """There are no classes, and so no masks over them."""
    vocabulary = tokfold.Vocabulary([b"a", b"b"])
    grammar = tokfold.Grammar.from_ebnf('root ::= "z"')
    compiled = compiled_with(grammar, vocabulary, classes="now", check_tokens=False)
    assert len(compiled.classes) == 0
    matcher, none = tokfold.Matcher(compiled), np.zeros((2, 0), dtype=np.int32)
    with pytest.raises(tokfold.MatcherStateError, match="takes no token of this vocabulary"):
        matcher.fill_class_bitmask(none)
    with pytest.raises(tokfold.MatcherStateError, match="takes no token of this vocabulary"):
        tokfold.fill_class_bitmask_batch([matcher, matcher.fork()], none)


def test_every_token_may_come() -> None:
    vocabulary = tokfold.Vocabulary([b"a", b"b", b"c", b"</s>"], stop_token_ids=[3])
    grammar = tokfold.Grammar.from_ebnf("root ::= [a-z]*")
    matcher = tokfold.Matcher(tokfold.compile(grammar, vocabulary, classes="now"))
    assert class_row(matcher) == (np.array([3]), False)
    padded = tokfold.compile(grammar, vocabulary.replace(size=9), classes="now")
    assert class_row(tokfold.Matcher(padded)) == (np.array([3]), True)
    some = tokfold.Matcher(matcher.compiled, stop_token_ids=[])
    assert class_row(some) == (np.array([1]), True)


def test_stop_tokens_of_a_matcher(compiled) -> None:
    classes = compiled.classes
    for stops in ([], [STOP]):
        matcher = tokfold.Matcher(compiled, stop_token_ids=stops)
        for text in ("", "[", "[]"):
            matcher.reset()
            assert matcher.accept_string(text)
            assert check(matcher)[STOP] is (text == "[]" and stops == [STOP])
    rows = tokfold.allocate_bitmask(1, len(classes))
    for stops in ([0], [STOP, 4], [SPECIAL]):
        matcher = tokfold.Matcher(compiled, stop_token_ids=stops)
        reason = f"stop token {min(set(stops) - {STOP})} of this matcher is no class of its own"
        with pytest.raises(tokfold.MatcherStateError, match=f"{reason}: use masks of tokens"):
            matcher.fill_class_bitmask(rows)
        with pytest.raises(tokfold.MatcherStateError, match=reason):
            tokfold.fill_class_bitmask_batch([matcher], rows)
        assert mask_of(matcher, len(TOKENS))


def test_several_stop_tokens() -> None:
    """Each is a class: a matcher may leave some out."""
    vocabulary = a_vocabulary(stop_token_ids=[STOP, SPECIAL, 8], special_token_ids=[])
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf(TEXT), vocabulary, classes="now")
    for stops in (None, [], [8], [SPECIAL, STOP], [8, SPECIAL, STOP]):
        matcher = tokfold.Matcher(compiled, stop_token_ids=stops)
        assert matcher.accept_string("[a]")
        expected = [8, SPECIAL, STOP] if stops is None else stops
        assert allowed_tokens(check(matcher)) == expected


def test_classes_that_are_not_there(compiled) -> None:
    rows = tokfold.allocate_bitmask(1, len(compiled.classes))
    late = tokfold.compile(compiled.grammar, compiled.vocabulary, classes="never")
    matcher = tokfold.Matcher(late)
    for fill in (
        lambda: matcher.fill_class_bitmask(rows),
        lambda: tokfold.fill_class_bitmask_batch([matcher], rows),
    ):
        with pytest.raises(tokfold.MatcherStateError, match=r'no classes.*classes="now", or wait'):
            fill()
    late.take_classes(compiled.classes)  # they come, and the matcher has them
    check(matcher)


def test_texts_that_have_ended(compiled) -> None:
    rows = tokfold.allocate_bitmask(2, len(compiled.classes))
    matcher, other = tokfold.Matcher(compiled), tokfold.Matcher(compiled)
    assert matcher.accept_string("[]")
    assert matcher.accept_token(STOP)
    for fill in (
        lambda: matcher.fill_class_bitmask(rows),
        lambda: tokfold.fill_class_bitmask_batch([other, matcher], rows, ended="raise"),
    ):
        with pytest.raises(tokfold.MatcherStateError, match="ended"):
            fill()
    matcher.rollback()
    check(matcher)


def test_bitmasks_that_do_not_fit(compiled) -> None:
    matcher = tokfold.Matcher(compiled)
    words = -(-len(compiled.classes) // 32)
    good = np.full((4, words), GARBAGE, dtype=np.int32)
    bad = [
        (np.zeros((2, words + 1), dtype=np.int32), 0, ValueError),
        (np.zeros((2, 2 * words), dtype=np.int32)[:, ::2], 0, ValueError),
        (np.zeros((words, 2), dtype=np.int32).T[:, :0], 0, ValueError),
        (np.zeros((2, words), dtype=np.int64), 0, TypeError),
        (np.zeros((2, words), dtype=np.uint32), 0, TypeError),
        (np.zeros((2, 2, words), dtype=np.int32), 0, TypeError),
        ([[0] * words], 0, TypeError),
        (good, 4, ValueError),
        (good, -1, ValueError),
        (good, 1 << 70, ValueError),
        (good[::2], 0, ValueError),
    ]
    read_only = good.copy()
    read_only.flags.writeable = False
    for bitmask, row, error in [*bad, (read_only, 0, ValueError)]:
        with pytest.raises(error):
            matcher.fill_class_bitmask(bitmask, row)
        with pytest.raises((error, ValueError)):
            tokfold.fill_class_bitmask_batch([matcher], bitmask, [row])
    assert (good == GARBAGE).all()
    check(matcher)


def check_draft(compiled: tokfold.CompiledGrammar, draw: Random, options: dict) -> bool:
    """Class rows of a random tree, unfolded, are its token rows; or both are refused."""
    size, classes = len(compiled.vocabulary), compiled.classes
    matcher = tokfold.Matcher(compiled, **options)
    ids = [draw.randrange(size) for _ in range(draw.randint(0, 12))]
    for place in range(len(ids)):  # most nodes are to be allowed
        bits, _ = mask_of(matcher, size)
        if place < 4 and any(bits):
            ids[place] = draw.choice(allowed_tokens(bits))
    parents = [draw.randrange(-1, place) if place else -1 for place in range(len(ids))]
    tokens = np.full((len(ids) + 1, (size + 31) // 32), GARBAGE, dtype=np.int32)
    rows = np.full((len(ids) + 1, -(-len(classes) // 32)), GARBAGE, dtype=np.int32)
    said = matcher.fill_bitmask_draft(ids, tokens, parents)
    assert matcher.fill_bitmask_draft(ids, rows, parents, classes=True).tolist() == said.tolist()
    assert [unfolded(row, classes) for row in rows] == [read_row(row, size) for row in tokens]
    assert matcher.num_steps == 0
    return bool(said.any())


@examples(150)
@given(seed=st.integers(0, 1 << 40))
def test_drafts(seed):
    draw = Random(seed)
    setting = build_setting(draw, rules=draw.randint(1, 5), size=draw.randint(6, 40))
    note(str(setting))
    for compiled in compiled_ways(setting) or ():
        if compiled.classes is None:
            continue
        own = {*setting.stops_in_force} <= {*setting.stops}
        matcher = tokfold.Matcher(compiled, **setting.options)
        if len(compiled.classes) and own and not matcher.is_terminated:
            event(f"some allowed: {check_draft(compiled, draw, setting.options)}")


def test_drafts_that_do_not_fit(compiled) -> None:
    matcher = tokfold.Matcher(compiled)
    rows = tokfold.allocate_bitmask(3, len(compiled.classes))
    wide = tokfold.allocate_bitmask(3, 32 * rows.shape[1] + 1)
    with pytest.raises(ValueError, match="words"):
        matcher.fill_bitmask_draft([0, 4], wide, classes=True)
    with pytest.raises(ValueError, match="rows"):
        matcher.fill_bitmask_draft([0, 4, 4], rows, classes=True)
    with pytest.raises(tokfold.VocabularyError):
        matcher.fill_bitmask_draft([0, len(TOKENS)], rows, classes=True)
    late = tokfold.compile(compiled.grammar, compiled.vocabulary, classes="never")
    with pytest.raises(tokfold.MatcherStateError, match="no classes"):
        tokfold.Matcher(late).fill_bitmask_draft([0, 4], rows, classes=True)
    other = tokfold.Matcher(compiled, stop_token_ids=[0])
    with pytest.raises(tokfold.MatcherStateError, match="is no class of its own"):
        other.fill_bitmask_draft([1, 4], rows, classes=True)


@pytest.mark.parametrize("threads", [None, 0, 1, 2, 300])
def test_batches(compiled, threads) -> None:
    draw = Random(1)
    matchers = []
    for index in range(70):
        matcher = tokfold.Matcher(compiled)
        for _ in range(index % 6):
            choices = [token for token in allowed_tokens(check(matcher)) if token != STOP]
            assert not choices or matcher.accept_token(draw.choice(choices))
        matchers.append(matcher)
    expected = [class_row(matcher) for matcher in matchers]
    rows = np.full((90, expected[0][0].size), GARBAGE, dtype=np.int32)
    said = tokfold.fill_class_bitmask_batch(matchers, rows, threads=threads)
    assert said.tolist() == [needs_apply for _, needs_apply in expected]
    assert np.array_equal(rows[:70], [row for row, _ in expected])
    assert (rows[70:] == GARBAGE).all()

    places = draw.sample(range(90), 70)
    rows[:] = GARBAGE
    tokfold.fill_class_bitmask_batch(matchers, rows, places, threads)
    assert np.array_equal(rows[places], [row for row, _ in expected])
    others = [place for place in range(90) if place not in places]
    assert (rows[others] == GARBAGE).all()
    assert tokfold.fill_class_bitmask_batch([], rows, threads=threads).tolist() == []


def test_batches_that_do_not_fit(compiled) -> None:
    wide = tokfold.compile(
        tokfold.Grammar.from_ebnf(f'root ::= "{"".join(map(chr, range(0x30, 0x3A)))}" [a-z]*'),
        tokfold.Vocabulary([bytes([b]) for b in range(0x30, 0x7B)]),
        classes="now",
    )
    many = tokfold.compile(
        tokfold.Grammar.from_ebnf('root ::= "abcdefghijklmnopqrstuvwxyz0123456789"'),
        tokfold.Vocabulary([bytes([b]) for b in range(0x30, 0x7B)]),
        classes="now",
        options=tokfold.CompileOptions(check_tokens=False),
    )
    assert len(many.classes) > 32 >= len(wide.classes)
    one, two = tokfold.Matcher(compiled), tokfold.Matcher(compiled)
    rows = tokfold.allocate_bitmask(2, len(compiled.classes))
    fill = tokfold.fill_class_bitmask_batch
    with pytest.raises(ValueError, match="grammars with different classes"):
        fill([one, tokfold.Matcher(many)], rows)
    with pytest.raises(ValueError, match="2 matchers, but 1 rows"):
        fill([one, two], rows, [0])
    with pytest.raises(ValueError, match="row 1 is asked for twice"):
        fill([one, two], rows, [1, 1])
    with pytest.raises(ValueError, match="no row -1"):
        fill([one, two], rows, [0, -1])
    with pytest.raises(ValueError, match="2 rows, not one of index 2"):
        fill([one, two], rows, [0, 2])
    with pytest.raises(tokfold.MatcherStateError, match="twice in one batch"):
        fill([one, one], rows)
    with pytest.raises(ValueError, match="threads must be 0 or more"):
        fill([one], rows, threads=-1)
    check(one)
