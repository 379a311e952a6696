"""Limits of our own engine: what reaches one says which, and nothing means something else."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import tokfold
from hypothesis import given, note
from hypothesis import strategies as st
from oracles.model import Choice, Grammar, Literal, Ref, Repeat, Seq
from strategies.engine import (
    GARBAGE,
    Setting,
    allowed_tokens,
    build_setting,
    compiled_ways,
    compiled_with,
    mask_of,
)
from strategies.profiles import CASES, examples

FIELDS = ("max_mask_work", "max_accept_work", "max_matcher_bytes")
OF_MASKS = ("max_mask_work",)

GRAMMARS = Path(__file__).parents[2] / "grammars"
AMBIGUOUS = Grammar(
    {
        "root": Choice(
            (
                Literal(b"a"),
                Seq((Ref("root"), Ref("root"))),
                Seq((Ref("root"), Literal(b"b"), Repeat(Ref("root"), 0, None), Literal(b"c"))),
            )
        )
    }
)
TOKENS = (b"a", b"b", b"c", b"ab", b"abac", b"aaaa", b"ba", b"d", b"</s>", b"")
SETTING = Setting(AMBIGUOUS, TOKENS, stops=(8,))


def limited(setting: Setting, classes: bool = False, **limits: int) -> tokfold.CompiledGrammar:
    """The setting under limits, with no mask made yet."""
    grammar, vocabulary = setting.our_grammar(), setting.our_vocabulary()
    limited = tokfold.Limits(**limits)
    compiled = tokfold.compile(
        grammar,
        vocabulary,
        limited,
        classes="never",
        options=tokfold.CompileOptions(check_tokens=False),
    )
    if classes:
        compiled.take_classes(tokfold.compile_classes(grammar, vocabulary))
    return compiled


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("field", FIELDS)
def test_the_least(field, classes):
    """A limit of 1: the call that reaches it names it, and the state is what it was."""
    compiled = limited(SETTING, classes, **{field: 1})
    matcher = tokfold.Matcher(compiled)
    before = matcher.state
    bitmask = np.full((2, 1), GARBAGE, dtype=np.int32)
    uses: list[Callable[[], object]] = [
        lambda: matcher.accept_token(0),
        lambda: matcher.accept_bytes(b"ab"),
    ]
    if field in OF_MASKS:
        uses = [
            lambda: matcher.fill_bitmask(bitmask),
            lambda: tokfold.fill_bitmask_batch([matcher], bitmask),
            lambda: matcher.explain(0),
        ]
    for use in uses * 2:
        with pytest.raises(tokfold.LimitExceededError) as caught:
            use()
        assert caught.value.limit == field
        assert caught.value.value == 1
        assert field in str(caught.value)
        assert matcher.state == before
        assert matcher.num_steps == 0
        assert matcher.text == b""
    assert bitmask[1, 0] == GARBAGE, "another row was written"
    if field in OF_MASKS:
        assert matcher.accept_token(0)
    else:
        assert matcher.fill_bitmask(bitmask)


def test_the_row_limit_is_never_an_error():
    compiled = limited(SETTING, True, max_row_bytes=1)
    matcher, free = tokfold.Matcher(compiled), tokfold.Matcher(limited(SETTING))
    for token in (0, 3, 2, 0, 1):
        assert mask_of(matcher, len(TOKENS)) == mask_of(free, len(TOKENS))
        assert matcher.accept_token(token) is free.accept_token(token)


@examples(150)
@given(seed=st.integers(0, 1 << 40), field=st.sampled_from(FIELDS), exponent=st.integers(0, 14))
def test_an_answer_or_the_error(seed, field, exponent):
    """On random walks under any one limit each answer is that of a matcher without limits."""
    random = Random(seed)
    setting = build_setting(random, rules=random.randint(1, 5), size=14)
    note(str(setting))
    ways = compiled_ways(setting)
    if ways is None:
        return
    limit = max(1, random.randint(1 << exponent, 2 << exponent))
    compiled = limited(setting, random.random() < 0.5, **{field: limit})
    bounded = tokfold.Matcher(compiled, **setting.options)
    free = tokfold.Matcher(ways[0], **setting.options)
    size = len(setting.tokens)
    for _ in range(8):
        if free.is_terminated:
            break
        expected = mask_of(free, size)
        outcome, got = attempt(lambda: mask_of(bounded, size), field)
        assert got in (None, expected)
        assert outcome == "right" or field in OF_MASKS
        for token in range(size):
            fork, free_fork = bounded.fork(), free.fork()
            taken = free_fork.accept_token(token)
            outcome, got = attempt(lambda f=fork, t=token: f.accept_token(t), field)
            assert got in (None, taken)
            assert outcome == "right" or field not in OF_MASKS
            assert fork.state == (free_fork if got else free).state
            assert fork.num_steps == free.num_steps + bool(got)
        assert bounded.state == free.state
        allowed = allowed_tokens(expected[0])
        if not allowed:
            break
        token = random.choice(allowed)
        outcome, got = attempt(lambda t=token: bounded.accept_token(t), field)
        if not got:
            break
        assert free.accept_token(token)


def attempt(use: Callable[[], Any], field: str) -> tuple[str, Any]:
    """What came of it, and what it said; an error must name the field."""
    try:
        result = use()
    except tokfold.LimitExceededError as error:
        assert error.limit == field  # noqa: PT017
        result, outcome = None, "limit"
    else:
        outcome = "right"
    CASES[f"engine: {field}, {outcome}"] += 1
    return outcome, result


@examples(150)
@given(seed=st.integers(0, 1 << 40), exponent=st.integers(0, 14))
def test_the_memo_limit_is_never_an_error(seed, exponent):
    """A mask whose answers find no room is walked with the whole stacks; it is the same mask."""
    random = Random(seed)
    setting = build_setting(random, rules=random.randint(1, 5), size=14)
    note(str(setting))
    ways = compiled_ways(setting)
    if ways is None:
        return
    bytes_allowed = random.randint(1 << exponent, 2 << exponent)
    compiled = limited(setting, random.random() < 0.5, max_memo_bytes=bytes_allowed)
    bounded = tokfold.Matcher(compiled, **setting.options)
    free = tokfold.Matcher(ways[0], **setting.options)
    for _ in range(8):
        if free.is_terminated:
            break
        expected = mask_of(free, len(setting.tokens))
        assert mask_of(bounded, len(setting.tokens)) == expected
        allowed = allowed_tokens(expected[0])
        if not allowed:
            break
        token = random.choice(allowed)
        assert bounded.accept_token(token)
        assert free.accept_token(token)
    CASES["engine: masks without room for answers"] += compiled.counters()["direct_masks"]


def test_masks_without_room_for_answers_are_walked():
    """Without this the test above could pass by never walking."""
    compiled = limited(SETTING, max_memo_bytes=1)
    matcher, free = tokfold.Matcher(compiled), tokfold.Matcher(limited(SETTING))
    for count, token in enumerate((0, 3, 2, 0, 1), 1):
        assert mask_of(matcher, len(TOKENS)) == mask_of(free, len(TOKENS))
        assert matcher.accept_token(token) is free.accept_token(token)
        assert compiled.counters()["direct_masks"] == count
        assert compiled.counters()["bytes_held"] < 1 << 16


@pytest.mark.parametrize("field", ["max_mask_work", "max_memo_bytes"])
def test_masks_made_ahead_are_no_reason_to_fail(field):
    """Compiling makes some masks that may never be asked for: those that cannot be made, or not
    all be remembered, are not its business."""
    for exponent in range(24):
        compiled = tokfold.compile(
            SETTING.our_grammar(),
            SETTING.our_vocabulary(),
            tokfold.Limits(**{field: 1 << exponent}),
            classes="now",
        )
        assert compiled.has_classes


def test_both_outcomes_are_met():
    """Without this the test above could pass by never reaching a limit, or always."""
    seen: Counter[tuple[str, str]] = Counter()
    for field in FIELDS:
        for exponent in range(0, 24, 2):
            matcher = tokfold.Matcher(limited(SETTING, **{field: 1 << exponent}))
            use: Callable[[], Any] = lambda m=matcher: m.accept_bytes(b"aab" + b"a" * 20)  # noqa: E731
            if field in OF_MASKS:
                use = lambda m=matcher: mask_of(m, len(TOKENS))  # noqa: E731
            seen[field, attempt(use, field)[0]] += 1
    assert len(seen) == 2 * len(FIELDS), seen


class TestMemory:
    def test_what_is_remembered_is_forgotten_and_made_again(self):
        """An error only where one mask alone takes more than ``max_memo_bytes``."""
        grammar = tokfold.Grammar.from_file(GRAMMARS / "json" / "json.gbnf")
        vocabulary = tokfold.Vocabulary(
            [bytes([i]) for i in range(256)] + [b'"a', b'":', b"},", b"</s>"], stop_token_ids=[259]
        )
        text = (GRAMMARS / "json" / "valid" / "numbers.json").read_bytes()
        row = tokfold.allocate_bitmask(1, len(vocabulary))

        def fresh(limit: int) -> tokfold.CompiledGrammar:
            limits = tokfold.Limits(max_memo_bytes=limit)
            return tokfold.compile(grammar, vocabulary, limits, classes="never")

        for limit in (1_500, 3_000, 6_000, 20_000):
            shared = tokfold.Matcher(fresh(limit))
            for token in vocabulary.encode_greedy(text):
                alone = tokfold.Matcher.from_state(fresh(limit), shared.state)
                try:
                    alone.fill_bitmask(row)
                except tokfold.LimitExceededError:
                    pass
                else:
                    expected = row.copy()
                    shared.fill_bitmask(row)
                    assert (row == expected).all()
                assert shared.accept_token(token)

    def test_what_others_do_meanwhile_is_no_reason_to_refuse(self):
        """A mask that fits alone is made, whatever other threads remember and forget."""
        grammar = tokfold.Grammar.from_file(GRAMMARS / "json" / "json.gbnf")
        pairs = [bytes([a, b]) for a in b'{}[]",:0ae ' for b in b'{}[]",:1ae ']
        vocabulary = tokfold.Vocabulary([*(bytes([i]) for i in range(256)), *pairs])
        limits = tokfold.Limits(max_memo_bytes=6_000)

        def fresh() -> tokfold.CompiledGrammar:
            return compiled_with(grammar, vocabulary, limits=limits, classes="never", pool=None)

        states, expected = [], []
        walked = tokfold.Matcher(tokfold.compile(grammar, vocabulary, classes="never"))
        for byte in (GRAMMARS / "json" / "valid" / "order.json").read_bytes()[:300]:
            alone = tokfold.Matcher.from_state(fresh(), walked.state)
            row = tokfold.allocate_bitmask(1, len(vocabulary))
            with contextlib.suppress(tokfold.LimitExceededError):
                alone.fill_bitmask(row)
                states.append(walked.state)
                expected.append(row)
            assert walked.accept_token(byte)
        assert len(states) > 100
        compiled = fresh()

        def work(seed: int) -> None:
            order = list(range(len(states)))
            Random(seed).shuffle(order)
            row = tokfold.allocate_bitmask(1, len(vocabulary))
            for place in order:
                tokfold.Matcher.from_state(compiled, states[place]).fill_bitmask(row)
                assert (row == expected[place]).all()

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(work, range(16)))

    def test_forgetting_keeps_the_bound(self):
        grammar = tokfold.Grammar.from_file(GRAMMARS / "json" / "json.gbnf")
        vocabulary = tokfold.Vocabulary([bytes([i]) for i in range(256)])
        limit = 60_000
        compiled = tokfold.compile(
            grammar, vocabulary, tokfold.Limits(max_memo_bytes=limit), classes="never"
        )
        matcher = tokfold.Matcher(compiled)
        row = tokfold.allocate_bitmask(1, 256)
        for byte in (GRAMMARS / "json" / "valid" / "order.json").read_bytes():
            matcher.fill_bitmask(row)
            assert matcher.accept_token(byte)
            assert compiled.counters()["bytes_held"] < 3 * limit

    def test_a_long_text_under_a_small_limit(self):
        """What rollbacks leave behind is thrown away before an error is made of it."""
        limits = tokfold.Limits(max_matcher_bytes=1 << 20)
        compiled = tokfold.compile(
            tokfold.Grammar.from_ebnf('root ::= "(" root ")" | "x"'),
            tokfold.Vocabulary([b"(", b")", b"x"]),
            limits,
            classes="never",
        )
        matcher = tokfold.Matcher(compiled)
        for _ in range(200):
            assert matcher.accept_bytes(b"(" * 1_000)
            matcher.rollback()
        assert matcher.counters()["bytes_held"] <= 1 << 20
        assert matcher.accept_bytes(b"(" * 1_000 + b"x" + b")" * 1_000)
        with pytest.raises(tokfold.LimitExceededError, match="max_matcher_bytes"):
            tokfold.Matcher(compiled).accept_bytes(b"(" * 1_000_000)

    @pytest.mark.parametrize("seed", range(4))
    def test_tables_that_are_made_anew(self, seed):
        """Whenever they are full, with what one matcher needs; nothing of it shows."""
        random = Random(seed)
        grammar = tokfold.Grammar.from_ebnf('root ::= "(" root ")" | "[" root "]" | root "x" | "x"')
        tokens = tokfold.Vocabulary([b"(", b"[", b")", b"]", b"x", b"([(", b"</s>"], [6])
        small, free = (
            tokfold.compile(grammar, tokens, limits, classes="never")
            for limits in (tokfold.Limits(max_matcher_bytes=120_000), None)
        )
        pairs = [(tokfold.Matcher(small), tokfold.Matcher(free))]
        anew, held = 0, 0
        for _ in range(3_000):
            matcher, twin = pairs[random.randrange(len(pairs))]
            if not twin.is_terminated and random.random() < 0.7:
                text = bytes(random.choices(b"([", k=random.randint(1, 40)))
                token = random.choice([None, *range(7)])
                if token is None:
                    taken = matcher.accept_bytes(text) is twin.accept_bytes(text)
                else:
                    taken = matcher.accept_token(token) is twin.accept_token(token)
                assert taken
            elif random.random() < 0.3:
                pairs.append((matcher.fork(), twin.fork()))
                pairs = pairs[-3:]
            else:
                count = random.randint(0, min(twin.num_steps, 30))
                matcher.rollback(count)
                twin.rollback(count)
            assert matcher.state == twin.state
            assert matcher.text == twin.text
            assert matcher.num_steps == twin.num_steps
            before, held = held, matcher.counters()["bytes_held"]
            anew += held < before - 20_000
            if len(twin.text) > 1_500:
                matcher.reset()
                twin.reset()
        assert anew >= 3

    def test_an_error_leaves_the_way_free(self):
        """After a text that was too long, and however often, shorter ones are read."""
        compiled = limited(
            Setting(Grammar({"root": Repeat(Seq((Literal(b"a"), Ref("x"))), 0, None),
                             "x": Choice((Seq((Literal(b"("), Ref("x"), Literal(b")"))),
                                          Literal(b"b")))}), (b"a", b"b", b"(", b")")),
            max_matcher_bytes=2 << 20,
        )  # fmt: skip
        matcher = tokfold.Matcher(compiled)
        for _ in range(5):
            before = matcher.state
            with pytest.raises(tokfold.LimitExceededError, match="max_matcher_bytes"):
                matcher.accept_bytes(b"a" + b"(" * 500_000)
            assert matcher.state == before
            assert matcher.accept_bytes(b"a" + b"(" * 50 + b"b" + b")" * 50)
        assert matcher.num_steps == 5
        with pytest.raises(tokfold.LimitExceededError, match="max_matcher_bytes"):
            matcher.accept_bytes(b"a" + b"(" * 500_000)
        # Longer than what is read between two looks at the limit.
        assert matcher.fork().accept_bytes(b"a" + b"(" * 2_000)
        assert matcher.accept_bytes(b"a" + b"(" * 2_000 + b"b" + b")" * 2_000)
        assert matcher.is_accepting


class TestTime:
    DEEP = 'root ::= "(" root ")" | "x"'

    def matcher(self, text: str, **limits: int) -> tokfold.Matcher:
        return tokfold.Matcher(
            tokfold.compile(
                tokfold.Grammar.from_ebnf(text),
                tokfold.Vocabulary([b"(", b")", b"x"]),
                tokfold.Limits(**limits),
                classes="never",
                options=tokfold.CompileOptions(check_tokens=False),
            )
        )

    def test_a_long_text(self):
        """A fraction of a second, where five milliseconds are allowed."""
        matcher = self.matcher(self.DEEP, max_accept_milliseconds=5)
        before = matcher.state
        for _ in range(2):
            with pytest.raises(tokfold.LimitExceededError) as caught:
                matcher.accept_bytes(b"(" * 400_000)
            assert caught.value.limit == "max_accept_milliseconds"
            assert type(caught.value) is tokfold.DeadlineExceededError
            assert caught.value.value == 5
            assert matcher.state == before
        assert matcher.accept_bytes(b"(x)")
        assert matcher.is_accepting

    @pytest.mark.parametrize("field", ["max_accept_milliseconds", "max_matcher_bytes"])
    def test_what_is_forced(self, field):
        """It may be as long as a text that is accepted, and is bounded like one."""
        limit = 5 if field == "max_accept_milliseconds" else 1 << 20
        matcher = self.matcher('root ::= "("{1000000000}', **{field: limit})
        before = matcher.state
        assert matcher.forced_bytes(20) == b"(" * 20
        with pytest.raises(tokfold.LimitExceededError) as caught:
            matcher.forced_bytes(400_000)
        assert caught.value.limit == field
        assert matcher.state == before


@pytest.mark.parametrize("value", [0, -1, 1 << 63, True, 1.0, "1"])
@pytest.mark.parametrize(
    "field", [*FIELDS, "max_memo_bytes", "max_row_bytes", "max_accept_milliseconds"]
)
def test_bounds_of_bounds(field, value):
    with pytest.raises((TypeError, ValueError), match=field):
        tokfold.Limits(**{field: value})


def test_classes_are_done_in_time_or_not_at_all():
    """A grammar whose classes take long: so ambiguous that tokens spend their budgets."""
    rules = [
        f'a{i} ::= a{(7 * i + 1) % 40} a{(3 * i + 2) % 40} | "{"ab"[i % 2]}"' for i in range(40)
    ]
    root = "root ::= " + " | ".join(f"a{i}" for i in range(40))
    grammar = tokfold.Grammar.from_ebnf("\n".join([root, *rules]))
    tokens = [b"ab" * n + b"a" * k for n in range(40) for k in range(8)][1:]
    limits = tokfold.Limits(max_compile_milliseconds=20)
    with pytest.raises(tokfold.DeadlineExceededError, match="= 20 ms passed") as caught:
        tokfold.compile_classes(grammar, tokfold.Vocabulary(tokens), limits)
    assert caught.value.limit == "max_compile_milliseconds"
    assert len(tokfold.compile_classes(grammar, tokfold.Vocabulary(tokens))) == 319
