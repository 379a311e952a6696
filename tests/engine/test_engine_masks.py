"""Masks of our own engine against the naive recognizer, on random grammars and walks.

At every step of a random walk (accept, rollback, fork, reset, texts) bit ``t`` of the mask must be
what ``accept_token(t)`` says, and both what the oracle says: the text can be completed after it.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import tokfold
from hypothesis import event, given, note
from hypothesis import strategies as st
from oracles.model import (
    CharClass,
    Choice,
    Empty,
    Expr,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    grammar,
)
from strategies.engine import (
    Setting,
    allowed_tokens,
    build_counted_setting,
    build_setting,
    check,
    check_walk,
    compiled_ways,
    compiled_with,
    mask_of,
    plain_matcher,
    settings_of_matchers,
)
from strategies.profiles import LONG, examples
from strategies.walks import (
    build_walk,
    walks,
)


class TestWalks:
    @examples(70)
    @given(setting=settings_of_matchers(), walk=walks())
    def test_random_walks(self, setting, walk):
        note(str(setting))
        event(f"accepted: {min(check_walk(setting, walk), 4)}")

    @examples(8)
    @given(setting=settings_of_matchers(max_rules=3, max_size=8, long_runs=True), walk=walks(4))
    def test_long_tokens(self, setting, walk):
        note(str(setting))
        check_walk(setting, walk)

    @examples(600)
    @given(seed=st.integers(0, 1 << 40))
    def test_seeded_walks(self, seed):
        """These shrink badly, and go much further than those of Hypothesis."""
        random = Random(seed)
        setting = build_setting(random, rules=random.randint(1, 5), size=random.randint(6, 40))
        note(str(setting))
        event(f"accepted: {min(check_walk(setting, build_walk(random, 12)), 9)}")

    @pytest.mark.parametrize("seed", range(400 if LONG else 12))
    def test_more_rules(self, seed):
        random = Random(seed)
        setting = build_setting(random, rules=random.randint(6, 12), size=60)
        check_walk(setting, build_walk(random, 12))

    @examples(60)
    @given(seed=st.integers(0, 1 << 40))
    def test_counted_repetitions(self, seed):
        random = Random(seed)
        setting = build_counted_setting(random)
        note(str(setting))
        event(f"accepted: {min(check_walk(setting, build_walk(random, 10)), 9)}")

    def test_walks_lead_somewhere(self):
        """Without this the tests above could pass by standing still."""
        far = [
            check_walk(build_setting(Random(seed)), build_walk(Random(seed), 10))
            for seed in range(12)
        ]
        assert sum(steps >= 3 for steps in far) >= 4, far


A, B, C, X, ROOT = Literal(b"a"), Literal(b"b"), Literal(b"c"), Ref("x"), Ref("root")
NOTHING = CharClass(())

NAMED: dict[str, dict[str, Expr]] = {
    "empty": {"root": Empty()},
    "cyclic": {"root": Choice((A, X)), "x": Choice((ROOT, B))},
    "cyclic and empty": {"root": Choice((Empty(), Seq((ROOT, ROOT)), A))},
    "left": {"root": Choice((A, Seq((ROOT, B))))},
    "right": {"root": Choice((A, Seq((B, ROOT))))},
    "right, then perhaps": {"root": Choice((A, Seq((A, ROOT, Repeat(B, 0, 1)))))},
    "hidden left": {"root": Choice((A, Seq((X, ROOT, B)))), "x": Choice((Empty(), C))},
    "hidden right": {"root": Choice((A, Seq((B, ROOT, X)))), "x": Choice((Empty(), C))},
    "middle": {"root": Choice((C, Seq((A, ROOT, B))))},
    "middle, both ways": {"root": Choice((C, Seq((A, ROOT, B)), Seq((A, A, ROOT, B, B))))},
    "palindromes": {"root": Choice((Empty(), A, B, Seq((A, ROOT, A)), Seq((B, ROOT, B))))},
    "square": {"root": Choice((A, Seq((ROOT, ROOT))))},
    "counted": {"root": Seq((Repeat(A, 2, 5), Repeat(Seq((B, Repeat(A, 0, 2))), 1, 3), C))},
    "counted without end": {"root": Seq((Repeat(X, 2, None), C)), "x": Choice((A, Seq((A, B))))},
    "dead end": {"root": Choice((Seq((A, NOTHING)), Seq((A, B))))},
    "dead end, deep": {"root": Choice((Seq((A, ROOT, B)), Seq((A, A, NOTHING)), C))},
    "never ends": {"root": Choice((Seq((A, X)), B)), "x": Seq((B, X))},
    "code points": {
        "root": Repeat(CharClass(((0x61, 0x61), (0x7F0, 0x810), (0xFFF0, 0x1000F))), 0, None)
    },
    "all but": {"root": Repeat(CharClass(((0x22, 0x22),), negated=True), 1, None)},
    "surrogates": {"root": Repeat(CharClass(((0xD7FF, 0xE000),)), 0, 2)},
    "two ends": {"root": Seq((X, Repeat(X, 0, 1))), "x": Choice((A, Seq((A, A)), Empty()))},
}  # fmt: skip
TOKENS = (
    b"a", b"b", b"c", b"ab", b"ba", b"aa", b"bb", b"abc", b"aaa", b"aabb", b"cb", b"cbb", b"bbb",
    b"a" * 9, b"b" * 9, b"a" * 7 + b"b", b"", b"a", b"\xdf", b"\xbf", b"\xdf\xbf", b"\xe0",
    b"\xe0\xa0", b"\xe0\xa0\x90", b"\xa0\x80", b"\xef\xbf", b"\xf0\x90\x80", b"\xf0", b"\x8f",
    b"\xed\x9f\xbf", b"\xed\xa0\x80", b"\xed", b"\xee\x80\x80", b'"', b"x\xf4\x8f", b"</s>",
)  # fmt: skip


class TestNamedGrammars:
    @pytest.mark.parametrize("when_complete", [False, True])
    @pytest.mark.parametrize("name", NAMED)
    def test_walks(self, name, when_complete):
        setting = Setting(
            grammar(NAMED[name]), TOKENS, stops=(len(TOKENS) - 1,), when_complete=when_complete
        )
        for seed in range(40 if LONG else 1):
            check_walk(setting, build_walk(Random(f"{name} {seed}"), 9))

    def test_every_token_is_allowed(self):
        """The mask then need not be applied, with and without a part of a word left over."""
        g = Grammar({"root": Repeat(Choice((A, B)), 0, None)})
        for size in (1, 31, 32, 33, 64, 65):
            setting = Setting(g, (b"a",) * size, stops=(size - 1,) if size > 1 else ())
            for compiled in compiled_ways(setting) or ():
                matcher = tokfold.Matcher(compiled)
                assert mask_of(matcher, size) == ([True] * size, False)
        other = Setting(g, (b"a",) * 32 + (b"c",))
        for compiled in compiled_ways(other) or ():
            assert mask_of(tokfold.Matcher(compiled), 33) == ([True] * 32 + [False], True)


class Wrong:
    """A matcher with a fault."""

    def __init__(self, matcher, fault: str) -> None:
        self._matcher, self._fault = matcher, fault

    def __getattr__(self, name):
        return getattr(self._matcher, name)

    def fork(self):
        return Wrong(self._matcher.fork(), self._fault)

    def fill_bitmask(self, bitmask: np.ndarray, row: int = 0) -> bool:
        needs_apply = self._matcher.fill_bitmask(bitmask, row)
        match self._fault:
            case "a bit":
                bitmask[row, 0] ^= 2
            case "a bit past the end":
                bitmask[row, -1] |= np.int32(-(1 << 31))
            case "another row":
                bitmask[row - 1, 0] = 0
            case "need not be applied":
                return not needs_apply
        return needs_apply

    def accept_token(self, token: int) -> bool:
        taken = self._matcher.accept_token(token)
        if self._fault == "a refused token is read" and not taken:
            self._matcher.accept_bytes(b"")
        return not taken if self._fault == "the answer" else taken

    @property
    def is_accepting(self) -> bool:
        return self._matcher.is_accepting is not (self._fault == "accepting")

    def forced_bytes(self, limit: int) -> bytes:
        return self._matcher.forced_bytes(limit) + (b"a" if self._fault == "forced" else b"")


@pytest.mark.parametrize(
    "fault",
    [
        "a bit",
        "a bit past the end",
        "another row",
        "need not be applied",
        "the answer",
        "a refused token is read",
        "accepting",
        "forced",
    ],
)
def test_the_check_has_teeth(fault):
    setting = Setting(grammar(NAMED["middle"]), TOKENS, stops=(len(TOKENS) - 1,))
    compiled = compiled_with(
        setting.our_grammar(), setting.our_vocabulary(), classes="never", check_tokens=False
    )
    plain = plain_matcher(setting)
    check(tokfold.Matcher(compiled), plain)
    with pytest.raises(AssertionError):
        check(Wrong(tokfold.Matcher(compiled), fault), plain)


@examples(25)
@given(setting=settings_of_matchers(), choices=st.lists(st.integers(0, 1000), max_size=6))
def test_batches_are_single_masks(setting, choices):
    """Rows in any order, matchers of several places, over one to three threads."""
    ways = compiled_ways(setting)
    if ways is None:
        return
    size = len(setting.tokens)
    matchers, masks = [], []
    for number, compiled in enumerate(ways):
        matcher = tokfold.Matcher(compiled, **setting.options)
        for choice in choices:
            if matcher.is_terminated:
                break
            mask = mask_of(matcher, size)
            matchers.append(matcher.fork())
            masks.append(mask)
            if allowed := allowed_tokens(mask[0]):
                matcher.accept_token(allowed[(choice + number) % len(allowed)])
    rows = list(range(len(matchers) + 2))
    Random(len(choices)).shuffle(rows)
    rows = rows[: len(matchers)]
    for threads in (None, 1, 3):
        bitmask = np.full((len(matchers) + 2, (size + 31) // 32), 77, dtype=np.int32)
        needed = tokfold.fill_bitmask_batch(matchers, bitmask, rows, threads)
        assert needed.dtype == np.bool_
        assert needed.tolist() == [needs for _, needs in masks]
        for row, (bits, _) in zip(rows, masks, strict=True):
            words = np.packbits(bits + [False] * (-size % 32), bitorder="little").view(np.int32)
            assert bitmask[row].tolist() == words.tolist()
        untouched = set(range(len(matchers) + 2)) - set(rows)
        assert all((bitmask[row] == 77).all() for row in untouched)
