"""States as values: equal where they should be, never where futures differ, saved and restored."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import struct
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tokfold
from hypothesis import given, note
from hypothesis import strategies as st
from oracles.earley import State
from oracles.model import CharClass, Choice, Expr, Literal, Ref, Repeat, Seq, grammar
from strategies.engine import (
    Setting,
    build_setting,
    check,
    compiled_ways,
    compiled_with,
    mask_of,
    plain_matcher,
)
from strategies.profiles import CASES, examples
from support import processes

MAGIC = b"tokfold state 2\n"
BOTTOM = (1 << 32) - 1
"""The end of a stack, among the numbers of a state."""
A, B, C, ROOT = Literal(b"a"), Literal(b"b"), Literal(b"c"), Ref("root")
NESTED = grammar({"root": Choice((C, Seq((A, ROOT, B)), Seq((A, ROOT, A))))})
TOKENS = (b"a", b"b", b"c", b"ab", b"cb", b"cab", b"bb", b"aaa", b"", b"</s>")
SETTING = Setting(NESTED, TOKENS, stops=(9,))


def compiled_of(setting: Setting = SETTING, **options) -> tokfold.CompiledGrammar:
    options.setdefault("classes", "never")
    return compiled_with(
        setting.our_grammar(), setting.our_vocabulary(), check_tokens=False, **options
    )


def at(compiled: tokfold.CompiledGrammar, text: bytes, **options) -> tokfold.Matcher:
    matcher = tokfold.Matcher(compiled, **options)
    assert matcher.accept_bytes(text)
    return matcher


def saved(numbers: Sequence[int], engine: int) -> bytes:
    """Bytes with the right checksum for any numbers."""
    body = struct.pack(f"<QI{len(numbers)}I", engine, 0, *numbers)
    return MAGIC + hashlib.sha256(body).digest()[:16] + body


def numbers_of(state: tokfold.MatcherState) -> tuple[list[int], int]:
    body = state.without_text().to_bytes()[len(MAGIC) + 16 :]
    engine, _, *numbers = struct.unpack(f"<QI{len(body) // 4 - 3}I", body)
    return numbers, engine


class TestEquality:
    def test_however_it_was_reached(self):
        """By tokens, bytes, forks, rollbacks; with and without classes; saved or not."""
        compiled = compiled_of()
        one = at(compiled, b"aacb")
        by_token = tokfold.Matcher(compiled)
        assert all(by_token.accept_token(token) for token in (0, 0, 4))
        back = at(compiled, b"aac")
        assert back.accept_bytes(b"a")
        back.rollback()
        assert back.accept_bytes(b"b")
        with_classes = at(compiled_of(classes="now"), b"aacb", terminate_without_stop_token=True)
        again = tokfold.Matcher.from_state(compiled, one.state)
        matchers = [one, by_token, back, with_classes, again, one.fork()]
        states = {matcher.state for matcher in matchers}
        assert len(states) == 1
        assert {matcher.state.to_bytes() for matcher in matchers} == {one.state.to_bytes()}
        assert at(compiled, b"aac").state not in states

    def test_not_equal_to_anything_else(self):
        state = at(compiled_of(), b"a").state
        assert state != state.to_bytes()
        assert state != None  # noqa: E711
        other = Setting(grammar({"root": Seq((A, Repeat(B, 0, 1)))}), TOKENS)
        assert state != at(compiled_of(other), b"a").state

    def test_a_value_does_not_change(self):
        matcher = at(compiled_of(), b"a")
        state = matcher.state
        copied = copy.deepcopy(state)
        assert matcher.accept_bytes(b"a")
        assert state == copied != matcher.state
        matcher.rollback()
        assert matcher.state == state

    @examples(60)
    @given(seed=st.integers(0, 1 << 40))
    def test_equal_states_have_equal_futures(self, seed):
        """All texts of up to three tokens: where two lead to one state, the oracle says that all
        that can follow, three tokens deep, is the same."""
        random = Random(seed)
        setting = build_setting(random, rules=random.randint(1, 4), size=8)
        note(str(setting))
        ways = compiled_ways(setting)
        if ways is None:
            return
        groups: defaultdict[tokfold.MatcherState, list[State]] = defaultdict(list)
        level = [(tokfold.Matcher(ways[0]), plain_matcher(setting).state)]
        for _ in range(3):
            after = []
            for matcher, oracle in level:
                for token in {t for t in setting.tokens if t}:
                    fork = matcher.fork()
                    if fork.accept_bytes(token):
                        after.append((fork, oracle.feed(token)))
                        groups[fork.state].append(after[-1][1])
            level = after[:30]
        tokens = sorted({token for token in setting.tokens if token})
        for state, members in groups.items():
            futures = {future(member, tokens, 2) for member in members[:6]}
            assert len(futures) == 1, state
            CASES["engine: states with several texts"] += len(members) > 1


def future(state: State, tokens: Sequence[bytes], depth: int) -> tuple[Any, ...]:
    """What can follow, so many tokens deep."""
    if not depth:
        return (state.accepting, tuple(state.next_bytes()))
    after = [future(state.feed(t), tokens, depth - 1) if state.allowed(t) else () for t in tokens]
    return (state.accepting, tuple(state.next_bytes()), *after)


# Grammars where different texts lead to one place: the set of stacks is what counts.
SAME_PLACE: dict[str, tuple[Expr, bytes, bytes]] = {
    "left recursion": (Choice((A, Seq((ROOT, B)))), b"abb", b"abbbb"),
    "right recursion": (Choice((A, Seq((B, ROOT)))), b"bb", b"bbbb"),
    "a class": (Repeat(CharClass(((0x61, 0x63),)), 0, None), b"ab", b"cb"),
    "alternatives": (Seq((Choice((A, B)), C)), b"a", b"b"),
}


@pytest.mark.parametrize("name", SAME_PLACE)
def test_different_texts_may_be_one_state(name):
    """Not promised, and what makes states worth remembering."""
    body, one, other = SAME_PLACE[name]
    compiled = compiled_of(Setting(grammar({"root": body}), TOKENS))
    assert at(compiled, one).state == at(compiled, other).state


class TestSaved:
    def test_round_trips(self):
        state = at(compiled_of(), b"aac").state
        for back in (
            tokfold.MatcherState.from_bytes(state.to_bytes()),
            pickle.loads(pickle.dumps(state)),
            copy.copy(state),
        ):
            assert back == state
            assert hash(back) == hash(state)
            assert back.to_bytes() == state.to_bytes()

    def test_a_restored_matcher_goes_on(self):
        for classes in ("never", "now"):
            compiled = compiled_of(classes=classes)
            matcher = tokfold.Matcher.from_state(compiled, at(compiled, b"aac").state)
            plain = plain_matcher(SETTING)
            assert plain.accept_bytes(b"aac")
            plain = plain.restored()
            check(matcher, plain)
            with pytest.raises(tokfold.MatcherStateError):
                matcher.rollback()
            assert matcher.accept_token(1)
            assert plain.accept_token(1)
            check(matcher, plain)
            matcher.reset()
            plain.steps.clear()
            check(matcher, plain)

    def test_a_restored_matcher_stays_at_its_end(self):
        """The end is a part of the state: nothing before it can be rolled back."""
        compiled = compiled_of()
        ended = at(compiled, b"acb")
        assert ended.accept_token(9)
        restored = tokfold.Matcher.from_state(compiled, ended.state)
        assert restored.is_terminated
        assert restored.state == ended.state
        restored.reset()  # back to where it was restored
        assert restored.state == ended.state
        assert restored.is_terminated

    def test_in_another_process(self):
        """The same masks there, from bytes, with other hash seeds and other classes."""
        compiled = compiled_of()
        size = len(TOKENS)
        texts = [b"", b"a", b"aac", b"aaacb", b"a" * 200 + b"c"]
        matchers = [at(compiled, text) for text in texts]
        expected = [[mask_of(m, size)[0], m.state.to_bytes().hex()] for m in matchers]
        root = Path(tokfold.__file__).parents[1]
        for seed, classes in (("1", "never"), ("2", "now")):
            result = processes.run(
                [sys.executable, "-c", ELSEWHERE, classes],
                input=json.dumps(
                    {
                        "grammar": str(compiled.grammar),
                        "tokens": [token.hex() for token in TOKENS],
                        "states": [state for _, state in expected],
                    }
                ),
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
                check=True,
            )
            assert json.loads(result.stdout) == expected


ELSEWHERE = """
import json, sys
import numpy as np
import tokfold

told = json.load(sys.stdin)
vocabulary = tokfold.Vocabulary([bytes.fromhex(t) for t in told["tokens"]], stop_token_ids=[9])
grammar = tokfold.Grammar.from_ebnf(told["grammar"])
compiled = tokfold.compile(grammar, vocabulary, classes=sys.argv[1])
out = []
for state in told["states"]:
    state = tokfold.MatcherState.from_bytes(bytes.fromhex(state))
    matcher = tokfold.Matcher.from_state(compiled, state)
    row = np.zeros(1, dtype=np.int32)
    matcher.fill_bitmask(row)
    out.append([[bool(row[0] >> i & 1) for i in range(10)], matcher.state.to_bytes().hex()])
print(json.dumps(out))
"""


@cache
def nested() -> tokfold.CompiledGrammar:
    return compiled_of()


@cache
def counted() -> tokfold.CompiledGrammar:
    g = grammar({"root": Seq((Repeat(Repeat(Choice((A, B)), 1, 20), 2, 40), C))})
    return compiled_of(Setting(g, TOKENS, stops=(9,)))


class TestDamaged:
    def test_every_truncation_and_every_flipped_bit(self):
        data = at(compiled_of(), b"aac").state.to_bytes()
        damaged = [data[:end] for end in range(len(data))]
        damaged += [data + b"\0" * extra for extra in (1, 4, 8)]
        for position in range(len(data)):
            for bit in range(8):
                flipped = bytearray(data)
                flipped[position] ^= 1 << bit
                damaged.append(bytes(flipped))
        for data in damaged:
            with pytest.raises(tokfold.MatcherStateError):
                tokfold.MatcherState.from_bytes(data)

    @examples(100)
    @given(data=st.binary(max_size=80), behind_magic=st.booleans())
    def test_foreign_bytes(self, data, behind_magic):
        with pytest.raises(tokfold.MatcherStateError):
            tokfold.MatcherState.from_bytes(MAGIC + data if behind_magic else data)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (Seq((A, B)), Seq((A, C))),  # other bytes
            (Seq((A, B)), Seq((A, Repeat(B, 0, 1)))),  # another end
            (Repeat(A, 0, 40), Repeat(A, 0, 41)),  # another bound, counted
            (Repeat(A, 30, 40), Repeat(A, 31, 40)),
            (Repeat(Seq((A, B)), 0, 40), Repeat(Seq((A, C)), 0, 40)),  # of something else
            (Seq((A, B)), Choice((Seq((A, B)), Seq(())))),  # empty or not
        ],
    )
    def test_of_another_grammar(self, one, other):
        here, there = (compiled_of(Setting(grammar({"root": e}), TOKENS)) for e in (one, other))
        for compiled, foreign in ((here, there), (there, here)):
            state = at(foreign, b"a").state
            with pytest.raises(tokfold.MatcherStateError):
                tokfold.Matcher.from_state(compiled, state)

    @pytest.mark.parametrize(
        "numbers",
        [
            [],
            [0],
            [1],
            [0, 0],
            [0, 1],
            [0, 1, 0],
            [0, 1, 0, 0],  # beneath itself
            [0, 1, 0, 1],
            [0, 1, 10**9, 0],
            [0, 2**32 - 1, 0, 0],
            [0, 2**31, 0, 0],
            [BOTTOM, 1, BOTTOM, 0],
            [11, 1, BOTTOM, 0],  # a stop token that does not exist
            [0, 2, BOTTOM, 0, BOTTOM, 0],
            [0, 1, 2**31, 0],
        ],
    )
    def test_numbers_that_are_no_state(self, numbers):
        assert not use(nested(), numbers, numbers_of(tokfold.Matcher(nested()).state)[1])

    @examples(500)
    @given(seed=st.integers(0, 1 << 40))
    def test_hostile_numbers(self, seed):
        """With a right checksum: refused, or a state of the network that can be used."""
        random = Random(seed)
        compiled = random.choice([nested(), counted()])
        texts = [b"", b"aaacb", b"acb", b"aaaaaacbab"]
        text = random.choice(texts if compiled is nested() else [b"", b"a", b"ab" * 9, b"a" * 30])
        numbers, engine = numbers_of(at(compiled, text).state)
        for _ in range(random.randint(1, 3)):
            place = random.randrange(len(numbers))
            wild = random.choice([0, 1, 2, 3, random.randrange(20), random.getrandbits(32), BOTTOM])
            match random.randrange(4):
                case 0:
                    numbers[place] = wild
                case 1:
                    numbers.insert(place, wild)
                case 2 if len(numbers) > 1:
                    del numbers[place]
                case 3:
                    numbers += numbers[place:]
        note(numbers)
        CASES["engine: hostile states that were taken"] += use(compiled, numbers, engine)

    def test_hostile_numbers_of_many_stacks(self):
        """Each set has two tops over the one before: 2**200 stacks, 200 sets."""
        compiled = compiled_of()
        numbers, engine = numbers_of(at(compiled, b"aac").state)
        tops = sorted({n for n in numbers if n < 100})[:2]
        many = [0, 1, BOTTOM, 0]
        for place in range(200):
            many += [2, tops[0], place, tops[1], place]
        assert use(compiled, many, engine)


def use(compiled: tokfold.CompiledGrammar, numbers: list[int], engine: int) -> bool:
    """Restores numbers and uses what comes of it; whether they were taken."""
    try:
        state = tokfold.MatcherState.from_bytes(saved(numbers, engine))
        matcher = tokfold.Matcher.from_state(compiled, state)
    except tokfold.MatcherStateError:
        return False
    assert not matcher.has_whole_text
    try:
        bits, _ = mask_of(matcher, len(TOKENS))
        for token in range(len(TOKENS)):
            fork = matcher.fork()
            assert fork.accept_token(token) is bits[token]
            assert tokfold.Matcher.from_state(compiled, fork.state).state == fork.state
        matcher.forced_bytes(50)
    except tokfold.MatcherStateError:
        assert matcher.is_terminated
    assert tokfold.Matcher.from_state(compiled, matcher.state).state == matcher.state
    return True
