"""A matcher beside the plain model of one, driven by a state machine.

Several matchers of one compiled grammar are alive at once: forks, restored ones, ones over classes.
After every step each question has the model's answer, and the others have not noticed.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import tokfold
from hypothesis import Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from strategies.engine import (
    PlainMatcher,
    Setting,
    allowed_tokens,
    build_setting,
    check,
    compiled_ways,
    plain_matcher,
)
from strategies.profiles import CASES, some

CHOICES = st.integers(0, 1 << 16)
MOST = 6
"""Matchers alive at once."""


def usable_setting(seed: int) -> tuple[Setting, list[tokfold.CompiledGrammar]]:
    """A setting in which something can be matched, and the ways to compile it."""
    random = Random(seed)
    while True:
        setting = build_setting(random, rules=random.randint(1, 4), size=random.randint(6, 20))
        ways = compiled_ways(setting)
        if ways is not None:
            return setting, ways


class Machine(RuleBasedStateMachine):
    """Each matcher with its model."""

    pairs: list[tuple[Any, PlainMatcher]]
    at: int

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.setting, self.ways = usable_setting(seed)
        note(str(self.setting))
        self.pairs = [
            (tokfold.Matcher(compiled, **self.setting.options), plain_matcher(self.setting))
            for compiled in self.ways
        ]
        self.at = 0

    @property
    def matcher(self):
        return self.pairs[self.at][0]

    @property
    def plain(self) -> PlainMatcher:
        return self.pairs[self.at][1]

    def add(self, matcher, plain: PlainMatcher) -> None:
        """Goes on with it, in place of an old one where there are many."""
        if len(self.pairs) >= MOST:
            del self.pairs[0]  # its tables may go now, or not
        self.pairs.append((matcher, plain))
        self.at = len(self.pairs) - 1

    @precondition(lambda self: not self.plain.ended)
    @rule(choice=CHOICES)
    def accept(self, choice: int) -> None:
        if allowed := allowed_tokens(self.plain.mask()):
            token = allowed[choice % len(allowed)]
            assert self.matcher.accept_token(token)
            assert self.plain.accept_token(token)

    @precondition(lambda self: not self.plain.ended)
    @rule(choice=CHOICES)
    def offer(self, choice: int) -> None:
        token = choice % len(self.setting.tokens)
        assert self.matcher.accept_token(token) is self.plain.accept_token(token)

    @precondition(lambda self: not self.plain.ended)
    @rule(choices=st.lists(CHOICES, max_size=3))
    def accept_text(self, choices: list[int]) -> None:
        """Several tokens as one step, refused ones among them; or nothing at all."""
        text = b"".join(self.setting.tokens[c % len(self.setting.tokens)] for c in choices)
        assert self.matcher.accept_bytes(text) is self.plain.accept_bytes(text)

    @precondition(lambda self: not self.plain.ended)
    @rule(length=st.integers(1, 30))
    def accept_forced(self, length: int) -> None:
        text = self.matcher.forced_bytes(length)
        assert text == self.plain.forced(length)
        assert self.matcher.accept_bytes(text)
        assert self.plain.accept_bytes(text)

    @rule(count=st.integers(0, 5))
    def rollback(self, count: int) -> None:
        count = min(count, len(self.plain.steps))
        self.matcher.rollback(count)
        self.plain.rollback(count)

    @rule(more=st.integers(1, 1 << 40))
    def rollback_too_far(self, more: int) -> None:
        with pytest.raises(tokfold.MatcherStateError):
            self.matcher.rollback(len(self.plain.steps) + more)

    @rule()
    def reset(self) -> None:
        self.matcher.reset()
        self.plain.steps.clear()

    @rule()
    def fork(self) -> None:
        self.add(self.matcher.fork(), self.plain.fork())

    @rule(choice=CHOICES)
    def switch(self, choice: int) -> None:
        self.at = choice % len(self.pairs)

    @precondition(lambda self: not (self.plain.steps and self.plain.steps[-1][2]))
    @rule(choice=CHOICES)
    def restore(self, choice: int) -> None:
        """A saved state, read back over any of the ways to compile the grammar."""
        state = tokfold.MatcherState.from_bytes(self.matcher.state.to_bytes())
        compiled = self.ways[choice % len(self.ways)]
        restored = tokfold.Matcher.from_state(compiled, state, **self.setting.options)
        assert restored.state == self.matcher.state
        self.add(restored, self.plain.restored())

    @rule(choice=CHOICES)
    def drop(self, choice: int) -> None:
        if len(self.pairs) > 1:
            del self.pairs[choice % len(self.pairs)]
            self.at = 0

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "pairs"):
            return
        for number, (matcher, plain) in enumerate(self.pairs):
            check(matcher, plain, every_token=number == self.at)
            CASES["engine: states of the machine"] += 1


def test_a_matcher_is_what_the_model_says():
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=some(200), stateful_step_count=20, deadline=None),
    )


def test_the_machine_has_teeth():
    """A model that forgets one step when many are taken back is found out."""

    class Forgetful(Machine):
        @rule(count=st.integers(2, 4))
        def rollback(self, count: int) -> None:
            count = min(count, len(self.plain.steps))
            self.matcher.rollback(count)
            self.plain.rollback(max(count - 1, 0))

    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Forgetful, settings=settings(max_examples=300, deadline=None, phases=[Phase.generate])
        )
