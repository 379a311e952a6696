"""What a matcher of our own engine should be, as a plain value, and settings to try it in.

:class:`PlainMatcher` is a list of what was read and the oracle after each; every question is
answered from the oracle's naive recognizer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import tokfold
from hypothesis import strategies as st
from oracles.earley import State
from oracles.model import (
    FIRST_EDGE,
    CharClass,
    Choice,
    Empty,
    Expr,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    to_ebnf,
)
from oracles.tokens import TokenOracle, Tokens

from strategies.grammars import build_grammar
from strategies.profiles import CASES
from strategies.vocabularies import build_vocabulary
from strategies.walks import Accept, Fork, Offer, OfferText, Reset, Rollback, Step, Switch

GARBAGE = 0x5A5A5A5A
"""What stands in a bitmask before it is filled: none of it may show."""


@dataclass(frozen=True)
class Setting:
    """All that a matcher depends on."""

    grammar: Grammar
    tokens: tuple[bytes, ...]
    stops: tuple[int, ...] = ()
    specials: tuple[int, ...] = ()
    override: tuple[int, ...] | None = None
    when_complete: bool = False

    def __str__(self) -> str:
        return (
            f"{to_ebnf(self.grammar)}tokens={list(self.tokens)}, stops={self.stops}, "
            f"specials={self.specials}, override={self.override}, "
            f"when_complete={self.when_complete}"
        )

    @property
    def stops_in_force(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.stops if self.override is None else self.override)))

    @property
    def options(self) -> dict[str, Any]:
        """For the constructor of a matcher."""
        return {
            "stop_token_ids": self.override,
            "terminate_without_stop_token": self.when_complete,
        }

    def text_of(self, token: int) -> bytes | None:
        """The bytes of a token where it is text."""
        if token in {*self.stops_in_force, *self.stops, *self.specials}:
            return None
        return self.tokens[token] or None

    @cached_property
    def oracle(self) -> TokenOracle:
        """What is true. It knows nothing of an override: the grammar is compiled without one."""
        return TokenOracle(self.grammar, Tokens(self.tokens, self.stops, self.specials))

    def our_grammar(self) -> tokfold.Grammar:
        return tokfold.Grammar.from_ebnf(to_ebnf(self.grammar), root=self.grammar.root)

    def our_vocabulary(self) -> tokfold.Vocabulary:
        return tokfold.Vocabulary(
            list(self.tokens), stop_token_ids=self.stops, special_token_ids=self.specials
        )


@dataclass
class PlainMatcher:
    """The steps of one text, and where the oracle stood after each."""

    setting: Setting
    start: State
    steps: list[tuple[bytes, State, bool]] = field(default_factory=list)
    """What was read, where that led, and whether it was a stop token."""
    before: bytes = b""
    """What was read before the start."""

    def fork(self) -> PlainMatcher:
        return PlainMatcher(self.setting, self.start, list(self.steps), self.before)

    def restored(self) -> PlainMatcher:
        """What a saved state becomes: the text is known, and not in which steps it was read."""
        return PlainMatcher(self.setting, self.state, before=self.text)

    @property
    def state(self) -> State:
        return self.steps[-1][1] if self.steps else self.start

    @property
    def text(self) -> bytes:
        return self.before + b"".join(text for text, _, _ in self.steps)

    @property
    def stopped(self) -> bool:
        """Whether a stop token has ended the text, which may have completed it."""
        return bool(self.steps) and self.steps[-1][2]

    @property
    def accepting(self) -> bool:
        return self.state.accepting

    @property
    def ended(self) -> bool:
        return self.stopped or (self.setting.when_complete and self.accepting)

    def takes(self, token: int) -> bool:
        if token in self.setting.stops_in_force:
            return self.accepting or self.setting.oracle.read(self.state, token).accepting
        return self.setting.oracle.read(self.state, token).viable

    def mask(self) -> list[bool]:
        return [self.takes(token) for token in range(len(self.setting.tokens))]

    def accept_token(self, token: int) -> bool:
        if not self.takes(token):
            return False
        is_stop = token in self.setting.stops_in_force
        if is_stop and self.accepting:
            self.steps.append((b"", self.state, True))
            return True
        after = self.setting.oracle.read(self.state, token)
        self.steps.append((self.setting.tokens[token], after, is_stop))
        return True

    def accept_bytes(self, data: bytes) -> bool:
        after = self.state.feed(data)
        if not after.viable:
            return False
        self.steps.append((data, after, False))
        return True

    def rollback(self, count: int) -> None:
        del self.steps[len(self.steps) - count :]

    def forced(self, limit: int) -> bytes:
        """What must come next."""
        state, out = self.state, bytearray()
        while len(out) < limit and not state.accepting:
            allowed = state.next_bytes()
            if len(allowed) != 1 or allowed[0] >= FIRST_EDGE:
                break
            out += bytes(allowed)
            state = state.feed(bytes(allowed))
        return bytes(out)


def read_row(row: np.ndarray, size: int) -> list[bool]:
    """The bits of a row; those past the last token must be 0."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    assert not bits[size:].any(), "bits past the last token"
    return bits[:size].astype(bool).tolist()


def mask_of(matcher, size: int) -> tuple[list[bool], bool]:
    """The mask of a matcher, written into the middle row of garbage, and what was returned."""
    bitmask = np.full((3, (size + 31) // 32), GARBAGE, dtype=np.int32)
    needs_apply = matcher.fill_bitmask(bitmask, 1)
    assert (bitmask[[0, 2]] == GARBAGE).all(), "another row was written"
    return read_row(bitmask[1], size), needs_apply


def mask_beside_forks(matcher, tokens: Sequence[bytes]) -> list[bool]:
    """The mask of a matcher, each bit of which is what a fork says that reads the token."""
    bits, _ = mask_of(matcher, len(tokens))
    for token in range(len(tokens)):
        assert matcher.fork().accept_token(token) == bits[token], (matcher.text, tokens[token])
    return bits


def stand_of(matcher) -> object:
    """What says where a matcher stands: its state, where there is one."""
    if matcher.compiled.is_for_charts:
        return matcher.text, matcher.expected_bytes, matcher.is_accepting, matcher.is_terminated
    return matcher.state


def check(matcher, plain: PlainMatcher, *, every_token: bool = True) -> list[bool]:
    """All that can be asked of a matcher is what the plain one says; the mask, where there is."""
    setting = plain.setting
    size = len(setting.tokens)
    assert matcher.stop_token_ids == setting.stops_in_force
    assert matcher.is_accepting is plain.accepting
    assert matcher.is_terminated is plain.ended
    assert matcher.num_steps == len(plain.steps)
    assert matcher.text == plain.text
    if plain.ended:
        check_ended(matcher)
        return []
    bits, needs_apply = mask_of(matcher, size)
    assert bits == plain.mask(), [
        (setting.tokens[t], bits[t]) for t in range(size) if bits[t] != plain.takes(t)
    ]
    assert needs_apply is not all(bits)
    assert mask_of(matcher, size) == (bits, needs_apply), "the second mask is another"
    before = stand_of(matcher)
    for token in range(size) if every_token else ():
        fork = matcher.fork()
        assert fork.accept_token(token) is bits[token], setting.tokens[token]
        assert bits[token] or stand_of(fork) == before, "a refused token changed the state"
        assert fork.num_steps == len(plain.steps) + bits[token]
    assert stand_of(matcher) == before, "a fork changed the state"
    assert matcher.forced_bytes(8) == plain.forced(8)
    return bits


def check_ended(matcher) -> None:
    """After its end a text takes nothing more, and nothing that is tried changes it."""
    before, steps = stand_of(matcher), matcher.num_steps
    bitmask = np.full((1, 1 + len(matcher.compiled.vocabulary) // 32), 0, dtype=np.int32)
    bitmask = bitmask[:, : (len(matcher.compiled.vocabulary) + 31) // 32].copy()
    for use in (
        lambda: matcher.fill_bitmask(bitmask),
        lambda: matcher.accept_token(0),
        lambda: matcher.accept_bytes(b"a"),
        lambda: matcher.accept_bytes(b""),
        lambda: matcher.forced_bytes(),
        lambda: matcher.explain(0),
        lambda: tokfold.fill_bitmask_batch([matcher], bitmask, ended="raise"),
        *(lambda t=token: matcher.accept_token(t) for token in matcher.stop_token_ids),
    ):
        try:
            use()
        except tokfold.MatcherStateError:
            pass
        else:
            raise AssertionError("it was used after its end")
    assert stand_of(matcher) == before
    assert matcher.num_steps == steps


def build_setting(random: Random, *, rules: int = 3, size: int = 16, long_runs: bool = False):
    """A grammar, a vocabulary for it, and ways to end; the simplest choices come first."""
    g = build_grammar(random, rules=rules)
    tokens = build_vocabulary(random, g, size=size, long_runs=long_runs)
    ids = list(range(size))

    def some(most: int) -> tuple[int, ...]:
        return tuple(sorted(random.sample(ids, random.randint(0, most))))

    stops, specials = some(2), some(1)
    override = random.choice([None, None, some(2)])
    when_complete = random.choice([False, False, False, True])
    return Setting(g, tuple(tokens), stops, specials, override, when_complete)


@st.composite
def settings_of_matchers(draw, max_rules: int = 4, max_size: int = 20, **options) -> Setting:
    """Hypothesis strategy over :func:`build_setting`."""
    rules, size = draw(st.integers(1, max_rules)), draw(st.integers(4, max_size))
    random = draw(st.randoms(use_true_random=False, note_method_calls=False))
    return build_setting(random, rules=rules, size=size, **options)


def compiled_ways(setting: Setting) -> list[tokfold.CompiledGrammar] | None:
    """The setting compiled without classes, with them, and with coarse ones that were given; on
    stacks, and on a chart.

    ``None`` where there is nothing to match: no token has bytes, or the grammar has no string.
    """
    if not any(setting.tokens):
        return None
    grammar, vocabulary = setting.our_grammar(), setting.our_vocabulary()
    if not setting.oracle.productive:
        try:
            compiled_with(grammar, vocabulary, classes="never", check_tokens=False)
        except tokfold.UnsupportedGrammarError:
            return None
        raise AssertionError("a grammar without any string was compiled")
    finer = tokfold.compile_classes(grammar, vocabulary, tokfold.Limits(max_token_work=2))
    on_stacks = [
        compiled_with(grammar, vocabulary, classes="never", check_tokens=False),
        compiled_with(grammar, vocabulary, classes="now", check_tokens=False),
        compiled_with(grammar, vocabulary, classes=finer, check_tokens=False),
    ]
    if grammar._takes_tokens:
        return on_stacks  # a chart refuses tokens that are taken whole
    return [
        *on_stacks,
        compiled_with(grammar, vocabulary, classes="never", engine="chart", check_tokens=False),
        compiled_with(grammar, vocabulary, classes="now", engine="chart", check_tokens=False),
    ]


def without_loops(
    grammar: tokfold.Grammar,
    vocabulary: tokfold.Vocabulary,
    limits: tokfold.Limits | None = None,
    *,
    engine: str = "chart",
    classes: tokfold.TokenClasses | None = None,
    pool: tokfold.MaskPool | None = None,
) -> tokfold.CompiledGrammar:
    """As :func:`tokfold.compile` where loops pass the limits, for grammars whose loops do not.

    Without left recursion it is what it is anyway.
    """
    return compiled_with(
        grammar,
        vocabulary,
        limits=limits,
        classes="never" if classes is None else classes,
        pool=pool,
        engine=engine,
        check_tokens=False,
        _left_recursion_as_loops=False,
    )


def compiled_with(
    source: Any, vocabulary: tokfold.Vocabulary, **options: Any
) -> tokfold.CompiledGrammar:
    """:func:`tokfold.compile`, with the fields of its options as keywords too."""
    direct = {name: options.pop(name) for name in ("limits", "classes") if name in options}
    gathered = tokfold.CompileOptions(**options)
    return tokfold.compile(source, vocabulary, **direct, options=gathered)


def plain_matcher(setting: Setting) -> PlainMatcher:
    """At the start of the language."""
    return PlainMatcher(setting, setting.oracle.initial())


def allowed_tokens(mask: Sequence[bool]) -> list[int]:
    """The tokens that a mask allows."""
    return [token for token, bit in enumerate(mask) if bit]


Pair = tuple[Any, PlainMatcher]


def wander(
    pair: Pair, random: Random, length: int, look: Callable[[Any, PlainMatcher], list[int]]
) -> None:
    """Random tokens of those that `look` allows, with turns back; forks are checked in the end."""
    matcher, plain = pair
    kept = []
    for _ in range(length):
        allowed = look(matcher, plain)
        if not allowed or random.random() < 0.15:
            count = random.randint(0, len(plain.steps))
            matcher.rollback(count)
            plain.rollback(count)
            continue
        if random.random() < 0.2:
            kept.append((matcher.fork(), plain.fork()))
        token = random.choice(allowed)
        assert matcher.accept_token(token)
        assert plain.accept_token(token)
    for other, model in kept:
        check(other, model, every_token=False)


def take(step: Step, pair: Pair, others: list[Pair]) -> Pair:
    """One step with both; where it leads."""
    matcher, plain = pair
    tokens = plain.setting.tokens
    ended = plain.ended
    match step:
        case Accept(choice) if not ended and (allowed := allowed_tokens(plain.mask())):
            token = allowed[choice % len(allowed)]
            assert matcher.accept_token(token)
            assert plain.accept_token(token)
        case Offer(choice) if not ended:
            token = choice % len(tokens)
            assert matcher.accept_token(token) is plain.accept_token(token)
        case OfferText(choice) if not ended:
            text = tokens[choice % len(tokens)]
            assert matcher.accept_bytes(text) is plain.accept_bytes(text)
        case Rollback(count):
            count = min(count, len(plain.steps))
            matcher.rollback(count)
            plain.rollback(count)
        case Reset():
            matcher.reset()
            plain.steps.clear()
        case Fork():
            others.append((matcher.fork(), plain.fork()))
        case Switch(choice) if others:
            at = choice % len(others)
            others[at], pair = pair, others[at]
    return pair


def check_ways(pair: Pair, ways: Sequence[tokfold.CompiledGrammar]) -> None:
    """The matcher says what the plain one does, and goes on alike however it was compiled."""
    matcher, plain = pair
    bits = check(matcher, plain)
    CASES["engine: masks against the oracle"] += bool(bits)
    CASES["engine: bits against the oracle"] += len(bits)
    for compiled in ways if bits else ():
        other = tokfold.Matcher.from_state(compiled, matcher.state, **plain.setting.options)
        assert mask_of(other, len(bits)) == mask_of(matcher, len(bits)), compiled
        assert other.state == matcher.state


def check_walk(setting: Setting, walk: Sequence[Step]) -> int:
    """Walks, looking at everything at every step; how many steps were accepted at most."""
    ways = compiled_ways(setting)
    if ways is None:
        return 0
    first, *rest = ways
    pair = (tokfold.Matcher(first, **setting.options), plain_matcher(setting))
    others: list[Pair] = []
    farthest = 0
    check_ways(pair, rest)
    for step in walk:
        pair = take(step, pair, others)
        check_ways(pair, rest)
        farthest = max(farthest, len(pair[1].steps))
    for other in others:  # nothing of all this reached the forks
        check_ways(other, rest)
    return farthest


LARGE_BOUNDS = [(0, 17), (17, 17), (17, None), (3, 20), (18, 40), (30, None), (0, 33), (1, 64)]
"""Repetitions that are counted, not written out."""


def build_counted_setting(random: Random, *, size: int = 14) -> Setting:
    """Large repetitions of all kinds of bodies, in all kinds of places, and runs as tokens."""
    a, b, c = Literal(b"a"), Literal(b"b"), Literal(b"c")
    bodies: list[Expr] = [
        a,
        Choice((a, b)),
        Choice((a, Literal(b"aa"))),
        Seq((a, Repeat(b, 0, 1))),
        Repeat(a, 0, 1),
        Repeat(Choice((a, b)), 1, 3),
        Ref("x"),
        Seq((Ref("x"), b)),
        CharClass(((0x61, 0x62), (0xE9, 0xE9))),
    ]

    def counted() -> Expr:
        return Repeat(random.choice(bodies), *random.choice(LARGE_BOUNDS))

    xs: list[Expr] = [
        b,
        Empty(),
        Seq((b, Ref("x"))),
        Seq((a, Ref("x"), b)),
        Repeat(a, *random.choice(LARGE_BOUNDS)),
    ]
    roots: list[Expr] = [
        Seq((counted(), c)),
        counted(),
        Seq((counted(), counted())),
        Choice((Seq((counted(), c)), Seq((counted(), b)))),
        Seq((a, Repeat(counted(), 0, 1), Ref("root"))),
        Seq((Ref("root"), counted())),
        Repeat(Seq((counted(), c)), 0, random.choice([2, 18, None])),
    ]
    x = Choice((random.choice([a, b, Seq((a, b))]), *random.sample(xs, random.randint(0, 2))))
    root = Choice((*random.sample(roots, random.randint(1, 2)), c))
    pieces = [b"a", b"b", b"aa", b"ab", b"c", b"\xc3", b"\xa9", "é".encode()]
    tokens = [b"a", b"b", b"c"]
    while len(tokens) < size:
        piece = random.choice(pieces)
        tokens.append(piece * random.choice([1, 2, 5, 15, 16, 17, 18, 30]) + random.choice(pieces))
    return Setting(Grammar({"root": root, "x": x}), tuple(tokens), stops=(size - 1,))
