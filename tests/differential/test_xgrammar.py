"""`tokfold.xgrammar` beside plain XGrammar: the same answers at every step of the same walk.

Masks are compared bit for bit. One difference is right: where plain XGrammar's mask contradicts
its own `accept_token` for a token, ours must agree with `accept_token`. Two of its defects lead
there: a "subtree" of tokens that it skips by substring search, and masks of a recursive root that
lose tokens which run past the end of an inner root.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from oracles.model import (
    CharClass,
    Choice,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    grammar,
    to_ebnf,
)
from strategies.grammars import build_grammar, grammars, random_grammar
from strategies.profiles import CASES, LONG, examples
from strategies.vocabularies import build_vocabulary, vocabularies
from strategies.walks import (
    Accept,
    Fork,
    Offer,
    OfferText,
    Reset,
    Rollback,
    Step,
    Switch,
    build_walk,
    walks,
)

xgr = pytest.importorskip("xgrammar")
tokfold = pytest.importorskip("tokfold")
txgr = pytest.importorskip("tokfold.xgrammar")

from tokfold.xgrammar.forms import IS_028  # noqa: E402

STOP = b"</s>"


@pytest.fixture(autouse=True, scope="module")
def short_jumps():
    """Forced bytes without an end are met at every step of some walks: give up early."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tokfold.xgrammar.matcher.MAX_TRIED", 64)
        yield


@dataclass(frozen=True)
class Setting:
    """All that a matcher depends on, besides the grammar."""

    vocabulary: tuple[bytes, ...]
    stop_token_ids: tuple[int, ...]
    padding: int = 0
    terminate_without_stop_token: bool = False

    @property
    def size(self) -> int:
        return len(self.vocabulary) + self.padding

    @property
    def special(self) -> set[int]:
        """Ids without bytes: XGrammar logs a line each time it is offered one."""
        empty = {i for i, token in enumerate(self.vocabulary) if not token}
        return (empty | set(range(len(self.vocabulary), self.size))) - set(self.stop_token_ids)

    def tokenizer_info(self):
        return xgr.TokenizerInfo(
            list(self.vocabulary),
            vocab_type=xgr.VocabType.RAW,
            vocab_size=self.size,
            stop_token_ids=list(self.stop_token_ids),
        )


@dataclass
class Pair:
    """Both matchers, in what should be the same state.

    `judge` says what a mask should say. Over XGrammar 0.2.8 it is a plain matcher that never
    terminates by itself: one that does so takes no stop token, though its masks have them.
    """

    plain: Any
    ours: Any
    judge: Any
    texts: list[bytes] = field(default_factory=list)  # of each step taken

    def fork(self) -> Pair:
        return Pair(self.plain.fork(), self.ours.fork(), self.judge.fork(), list(self.texts))

    def all(self) -> tuple[Any, Any, Any]:
        return self.plain, self.ours, self.judge


def mask(matcher, size: int) -> tuple[list[bool], bool]:
    """The tokens allowed, and whether the mask has to be applied."""
    bitmask = xgr.allocate_token_bitmask(1, size)
    bitmask.fill_(0x55555555)  # whatever stood there before must not show
    needs_apply = matcher.fill_next_token_bitmask(bitmask)
    bits = np.unpackbits(bitmask.numpy().view(np.uint8), bitorder="little")[:size]
    return bits.astype(bool).tolist(), needs_apply


def refuses_to_fill(matcher, size: int) -> bool:
    """Whether a mask cannot be had: the matcher has stopped by a stop token."""
    try:
        mask(matcher, size)
    except RuntimeError:
        return True
    return False


def takes(matcher, token: int) -> bool:
    """Whether `accept_token` takes the token here."""
    return matcher.fork().accept_token(token)


def jump_forward(matcher) -> str:
    """XGrammar's own text that must come next, of whole characters."""
    try:
        return matcher.find_jump_forward_string()
    except UnicodeDecodeError as error:
        return error.object[: error.start].decode()


class Comparison:
    """A walk with both, over one grammar and vocabulary."""

    def __init__(self, g: Grammar, setting: Setting) -> None:
        self.setting = setting
        text = to_ebnf(g)
        info = setting.tokenizer_info()
        plain = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        ours = txgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = ours.compile_grammar(text)
        assert compiled.is_compressed
        self.compiled = compiled
        options = {"terminate_without_stop_token": setting.terminate_without_stop_token}
        plain_compiled = plain.compile_grammar(text)
        self.pairs = [
            Pair(
                xgr.GrammarMatcher(plain_compiled, **options),
                txgr.GrammarMatcher(compiled, **options),
                xgr.GrammarMatcher(plain_compiled, **({} if IS_028 else options)),
            )
        ]
        self.current = 0
        self.corrected = 0  # bits where plain XGrammar contradicts itself and ours does not

    @property
    def pair(self) -> Pair:
        return self.pairs[self.current]

    def check(self) -> list[int]:
        """Compares all that can be seen; the tokens that may come next."""
        plain, ours, judge = self.pair.all()
        CASES["XGrammar: states compared"] += 1
        assert ours.is_terminated() == plain.is_terminated()
        assert ours.is_completed() == plain.is_completed()
        if refuses_to_fill(plain, self.setting.size):
            assert refuses_to_fill(ours, self.setting.size)
            return []
        try:
            jump = ours.find_jump_forward_string()
        except tokfold.MatcherStateError:
            # XGrammar would never return: `root ::= "a" root` jumps forward for ever
            CASES["XGrammar: forced bytes without an end"] += 1
        else:
            assert jump == jump_forward(plain)
            tokens = ours.find_jump_forward_tokens()
            assert IS_028 or tokens == plain.find_jump_forward_tokens()
        theirs, theirs_apply = mask(plain, self.setting.size)
        bits, needs_apply = mask(ours, self.setting.size)
        CASES["XGrammar: mask bits compared"] += len(bits)
        wrong = []
        for token, (bit, their_bit) in enumerate(zip(bits, theirs, strict=True)):
            special = token in self.setting.special
            truth = not special and takes(judge, token)
            if bit != their_bit:
                self.corrected += 1
                CASES["XGrammar: bits where it contradicts itself and we do not"] += 1
            if bit != truth:
                wrong.append((token, f"our mask {bit}, theirs {their_bit}, accepted {truth}"))
            if self.setting.terminate_without_stop_token and not special:
                truth = takes(plain, token)
            if not special and takes(ours, token) != truth:
                wrong.append((token, "accept_token"))
        assert wrong == [], (self.pair.texts, self.setting.vocabulary)
        if bits == theirs:
            assert needs_apply == theirs_apply
        else:
            assert needs_apply or all(bits)
        self.check_class_mask(bits)
        return [token for token, bit in enumerate(bits) if bit]

    def check_class_mask(self, bits: list[bool]) -> None:
        """The mask over classes unfolds to the same."""
        class_mask = txgr.allocate_class_bitmask(1, self.compiled)
        self.pair.ours.fill_next_class_bitmask(class_mask)
        allowed = np.unpackbits(class_mask.numpy().view(np.uint8), bitorder="little").astype(bool)
        assert allowed[self.pair.ours.class_of_token].tolist() == bits

    def step(self, step: Step, allowed: list[int]) -> None:
        """Does the same to both."""
        pair, size = self.pair, self.setting.size
        match step:
            case Accept(choice) if allowed:
                self.offer(allowed[choice % len(allowed)])
            case Accept(choice) | Offer(choice):
                self.offer(choice % (size + 3) - 1)  # also ids that do not exist
            case OfferText(choice):
                text = self.setting.vocabulary[choice % len(self.setting.vocabulary)]
                taken = pair.plain.accept_string(text)
                assert pair.ours.accept_string(text) == taken
                if taken:
                    pair.judge.accept_string(text)
                    pair.texts.append(text)
            case Rollback(steps):
                count = min(steps, len(pair.texts))
                for matcher in pair.all():
                    matcher.rollback(count)
                del pair.texts[len(pair.texts) - count :]
            case Reset():
                for matcher in pair.all():
                    matcher.reset()
                pair.texts.clear()
            case Fork():
                self.pairs.append(pair.fork())
                self.current = len(self.pairs) - 1
            case Switch(choice):
                self.current = choice % len(self.pairs)

    def offer(self, token: int) -> None:
        taken = self.pair.plain.accept_token(token)
        assert self.pair.ours.accept_token(token) == taken
        if taken:
            self.pair.judge.accept_token(token)
            stop = token in self.setting.stop_token_ids
            self.pair.texts.append(b"" if stop else self.setting.vocabulary[token])

    def walk(self, steps: list[Step]) -> None:
        allowed = self.check()
        for step in steps:
            self.step(step, allowed)
            allowed = self.check()


@st.composite
def settings_for(draw, g: Grammar, max_size: int = 20) -> Setting:
    """A vocabulary with one stop token, several, or none; some padding."""
    vocabulary = (*draw(vocabularies(g, max_size=max_size)), STOP)
    last = len(vocabulary) - 1
    stops = draw(st.sampled_from([(last,), (last, 0), (0,), ()]))
    return Setting(
        vocabulary,
        tuple(stops),
        padding=draw(st.sampled_from([0, 0, 1, 40])),
        terminate_without_stop_token=draw(st.sampled_from([False, False, True])),
    )


A, B, C, D = (Literal(byte.encode()) for byte in "abcd")
ROOT = Ref("root")

# name: rules, vocabulary, tokens to accept, how many bits we set right that XGrammar gets wrong
TRAPS = {
    "subtree skipped by substring search": (
        {"root": Choice((Literal(b"xbxa"), Literal(b"xc")))},
        [b"xa", b"xbxa", b"c"],
        [],
    ),
    "recursive root loses tokens": (
        {"root": Choice((Seq((ROOT, D)), C))},
        [b"c", b"d", b"dd"],
        [0],
    ),
    "recursive root, nested": (
        {"root": Choice((Seq((A, ROOT, B)), C))},
        [b"a", b"c", b"b", b"bb"],
        [0, 0, 1],
    ),
}


class TestKnown:
    @pytest.mark.parametrize("name", TRAPS)
    def test_traps(self, name):
        """XGrammar's own contradictions, where ours goes with `accept_token`."""
        rules, vocabulary, path = TRAPS[name]
        comparison = Comparison(grammar(rules), Setting((*vocabulary, STOP), (len(vocabulary),)))
        for token in path:
            comparison.check()
            comparison.offer(token)
        before = comparison.corrected
        comparison.check()
        assert comparison.corrected == before + 1

    def test_endless_rules_go_on(self):
        g = grammar({"root": Seq((A, ROOT))})
        comparison = Comparison(g, Setting((b"a", b"aa", b"b", STOP), (3,)))
        for _ in range(3):
            assert comparison.check() == [0, 1]
            comparison.offer(1)

    def test_surrogates_and_no_overlong_forms(self):
        g = grammar({"root": Repeat(CharClass((), negated=True), 0, None)})
        tokens = (
            b"\xed\xa0\x80",
            b"\xc0\x80",
            b"\x80",
            b"\xf4\x90",
            b"\xf4\x8f",
            b"\0",
            b"\xe0\x80",
        )
        comparison = Comparison(g, Setting((*tokens, STOP), (7,)))
        assert comparison.check() == [0, 4, 5, 7]


class TestRandom:
    @examples(100)
    @given(g=grammars(), data=st.data(), steps=walks())
    def test_walks(self, g, data, steps):
        setting = data.draw(settings_for(g))
        if not any(setting.vocabulary[i] for i in range(len(setting.vocabulary) - 1)):
            return
        comparison = Comparison(g, setting)
        CASES["XGrammar: walks"] += 1
        comparison.walk(steps)
        event("corrected" if comparison.corrected else "equal")

    @examples(5)
    @given(g=grammars(max_rules=3), data=st.data(), steps=walks(4))
    def test_long_runs(self, g, data, steps):
        vocabulary = (*data.draw(vocabularies(g, max_size=6, long_runs=True)), STOP)
        CASES["XGrammar: walks"] += 1
        Comparison(g, Setting(vocabulary, (len(vocabulary) - 1,))).walk(steps)

    @pytest.mark.parametrize("seed", range(20_000 if LONG else 100))
    def test_seeded_walks(self, seed):
        """Longer walks than Hypothesis likes, over grammars that it would seldom draw."""
        random = Random(seed)
        g = build_grammar(random, rules=random.randint(1, 5))
        vocabulary = [*build_vocabulary(random, g, size=random.randint(4, 24)), STOP]
        last = len(vocabulary) - 1
        if not any(vocabulary[:last]):
            return
        setting = Setting(
            tuple(vocabulary),
            random.choice([(last,), (last, 0), (0,), ()]),
            padding=random.choice([0, 1, 40]),
            terminate_without_stop_token=random.random() < 0.2,
        )
        CASES["XGrammar: walks"] += 1
        Comparison(g, setting).walk(build_walk(random, 12))

    @pytest.mark.parametrize("seed", range(600 if LONG else 12))
    def test_large_grammars(self, seed):
        """Large ambiguous grammars; all steps are accepted tokens."""
        random = Random(seed)
        g = random_grammar(seed, random.randint(5, 40 if LONG else 15))
        vocabulary = (*build_vocabulary(random, g, size=30), STOP)
        comparison = Comparison(g, Setting(vocabulary, (30,)))
        CASES["XGrammar: walks"] += 1
        comparison.walk([Accept(random.randrange(1 << 16)) for _ in range(5)])
