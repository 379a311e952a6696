"""Token edges: the oracle and our engine beside XGrammar's own matcher.

What is compared is what ``accept_token`` says on forks, not masks, which have known faults, at
places that can be completed. XGrammar does not prune, so its verdict is that of the recognizer that
does not; ours is that of the one that does.

XGrammar 0.2.9 has two readings more, which :class:`Theirs` has: it takes a stop token by its text
or its id where that completes the text, and at an ``ExcludeToken`` behind the first bytes of a
token it takes the token whole.

One fault of its matcher is left out: after a token of several bytes of which both readings lead
somewhere, its rules begin in wrong places, and it refuses what it should take
(``test_what_xgrammar_loses``). Past such a token only ours is compared.

Every grammar gets a fresh start rule: a recursive root loses tokens in XGrammar. It has no special
tokens, so there are none here.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from engine.token_edge_samples import NAMED, STOP, TOKENS
from hypothesis import event, given, note
from hypothesis import strategies as st
from oracles.earley import State
from oracles.model import (
    FIRST_EDGE,
    Choice,
    Expr,
    Grammar,
    Ref,
    Repeat,
    Seq,
    TokenDispatch,
    TokenEdge,
    to_ebnf,
)
from oracles.tokens import TokenOracle, Tokens
from strategies.engine import Setting
from strategies.printed import read_printed
from strategies.profiles import CASES, examples
from strategies.token_edges import build_edge_setting

xgr = pytest.importorskip("xgrammar")

import tokfold  # noqa: E402
from strategies.engine import compiled_with  # noqa: E402
from tokfold.xgrammar.forms import IS_028  # noqa: E402


def compiled_by_xgrammar(setting: Setting) -> Any:
    info = xgr.TokenizerInfo(
        list(setting.tokens), xgr.VocabType.RAW, stop_token_ids=list(setting.stops)
    )
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    text = to_ebnf(setting.grammar)
    return compiler.compile_grammar(
        xgr.Grammar.from_ebnf(text, root_rule_name=setting.grammar.root)
    )


def with_fresh_start(grammar: Grammar) -> Grammar:
    return Grammar({"start": Ref(grammar.root), **grammar.rules}, root="start")


class Theirs(TokenOracle):
    """What XGrammar 0.2.9 takes. To each token belongs one more letter, past those of all tokens,
    which ``ExcludeToken`` alone takes."""

    def __init__(self, setting: Setting) -> None:
        count = len(setting.tokens)
        shadows = Tokens((*setting.tokens, *setting.tokens))
        rules = {name: with_shadows(body, count) for name, body in setting.grammar.rules.items()}
        super().__init__(Grammar(rules, setting.grammar.root), shadows)
        self.textual = frozenset(token for token in self.textual if token < count)
        self.stops, self.count = setting.stops, count

    def takes(self, state: State, token: int) -> bool:
        """Whether a token may come next, without pruning."""
        whole = state.after(state.scanned(FIRST_EDGE + token))
        by_bytes = self.read(state, token, whole=False)
        within = state
        if not whole.viable and not by_bytes.viable:
            within = self.within(state, token) or state
        if token in self.stops:
            ends = any(after.accepting for after in (whole, by_bytes))
            return state.accepting or ends or (within is not state and within.accepting)
        return whole.viable or by_bytes.viable or within is not state

    def within(self, state: State, token: int) -> State | None:
        """The state behind a token that is taken whole at the last place within its bytes."""
        text = self.tokens.texts[token]
        for count in range(len(text) - 1, 0, -1):
            place = state.feed(text[:count])
            if place.viable and place.scanned(FIRST_EDGE + self.count + token):
                return place.after(place.scanned(FIRST_EDGE + token))
        return None


def with_shadows(expr: Expr, count: int) -> Expr:
    """The same with the second letters of tokens excluded as their first are."""

    def twice(ids: tuple[int, ...]) -> tuple[int, ...]:
        return (*ids, *(token + count for token in ids))

    match expr:
        case Seq(items) | Choice(items):
            return type(expr)(tuple(with_shadows(item, count) for item in items))
        case Repeat(body, low, high):
            return Repeat(with_shadows(body, count), low, high)
        case TokenEdge(ids, excluded) if excluded:
            return TokenEdge(twice(ids), excluded)
        case TokenDispatch(tags, excludes, loops):
            triggers = tuple(trigger + count for trigger, _ in tags)
            return TokenDispatch(tags, (*twice(excludes), *triggers), loops)
    return expr


class Beside:
    """XGrammar's matcher, the oracle with and without pruning, and ours where there is one."""

    def __init__(self, setting: Setting, ours: tokfold.CompiledGrammar | None = None) -> None:
        self.setting, self.oracle = setting, setting.oracle
        self.theirs = xgr.GrammarMatcher(compiled_by_xgrammar(setting))
        self.ours = None if ours is None else tokfold.Matcher(ours)
        self.states = {prune: self.oracle.initial(prune) for prune in (True, False)}
        self.said = Theirs(setting)
        self.place = self.said.initial(prune=False)
        self.path: list[int] = []
        self.is_lost = False
        """Whether XGrammar's matcher cannot be trusted any more."""

    def compare(self) -> list[int]:
        """Every token, on forks; the tokens that may come next, none of them a stop token."""
        stops = self.setting.stops
        self.check_end()
        for token, text in enumerate(self.setting.tokens):
            if not text:  # XGrammar warns
                continue
            truths = {p: self.oracle.allows(state, token) for p, state in self.states.items()}
            if not self.is_lost:
                taken = self.theirs.fork().accept_token(token)
                said = truths[False] if IS_028 else self.said.takes(self.place, token)
                assert taken == said, (self.path, token, "XGrammar's")
                CASES["token edges: taken by XGrammar alone"] += said > truths[False]
                CASES["token edges: tokens beside XGrammar's"] += 1
            if self.ours is not None:
                taken = self.ours.fork().accept_token(token)
                assert taken == truths[True], (self.path, token, "ours")
        mask = self.oracle.mask(self.states[True])
        return [token for token, bit in enumerate(mask) if bit and token not in stops]

    def check_end(self) -> None:
        """Whether the text may end."""
        accepting = self.states[True].accepting
        assert self.is_lost or self.theirs.is_completed() == accepting, self.path
        assert self.ours is None or self.ours.is_accepting is accepting, self.path

    def take(self, token: int) -> None:
        self.path.append(token)
        several = len(self.setting.tokens[token]) > 1
        self.is_lost |= several and self.oracle.is_ambiguous(self.states[False], token)
        self.states = {p: self.oracle.read(state, token) for p, state in self.states.items()}
        self.place = self.said.read(self.place, token)
        assert self.is_lost or self.theirs.accept_token(token), self.path
        assert self.ours is None or self.ours.accept_token(token), self.path


def walk(setting: Setting, random: Random, ours: tokfold.CompiledGrammar | None = None) -> int:
    """Along random tokens; how many."""
    beside = Beside(setting, ours)
    for step in range(7):
        allowed = beside.compare()
        if not allowed:
            return step
        beside.take(random.choice(allowed))
    return 7


def random_setting(seed: int) -> Setting | None:
    """One with at least one string, under a fresh start."""
    random = Random(seed)
    made = build_edge_setting(
        random, rules=random.randint(1, 4), size=random.randint(4, 14), plain=True
    )
    setting = Setting(with_fresh_start(made.grammar), made.tokens, made.stops)
    return setting if setting.oracle.productive else None


@examples(150)
@given(seed=st.integers(0, 1 << 40))
def test_the_oracle_beside_xgrammar(seed):
    setting = random_setting(seed)
    if setting is None:
        return
    note(str(setting))
    event(f"taken: {walk(setting, Random(seed))}")


@examples(100)
@given(seed=st.integers(0, 1 << 40))
def test_ours_beside_xgrammar(seed):
    setting = random_setting(seed)
    if setting is None:
        return
    note(str(setting))
    compiled = tokfold.compile(
        setting.our_grammar(),
        setting.our_vocabulary(),
        classes=Random(seed).choice(["never", "now"]),
        options=tokfold.CompileOptions(check_tokens=False),
    )
    event(f"taken: {walk(setting, Random(seed), compiled)}")


@pytest.mark.parametrize("name", NAMED)
def test_named(name):
    """What was written down by hand; with no special tokens, since XGrammar has none."""
    text, expected = NAMED[name]
    if "Token()" in text:
        return  # no grammar text to XGrammar
    grammar = with_fresh_start(read_printed(text))
    setting = Setting(grammar, TOKENS, (STOP,))
    compiled = compiled_with(
        setting.our_grammar(), setting.our_vocabulary(), classes="never", check_tokens=False
    )
    for ids in expected:
        beside = Beside(setting, compiled)
        for token in ids:
            if not beside.oracle.allows(beside.states[True], token):
                break
            beside.take(token)
        beside.compare()


def test_what_xgrammar_loses():
    """The fault that is left out above: a test to say when it is mended."""
    text = 'root ::= Token(0)* "ab"'
    setting = Setting(read_printed(text), (b"ab", b"c", b"</s>"), (2,))
    matcher = xgr.GrammarMatcher(compiled_by_xgrammar(setting))
    ours = tokfold.Matcher(
        compiled_with(
            setting.our_grammar(), setting.our_vocabulary(), classes="never", check_tokens=False
        )
    )
    said = []
    for count in range(1, 6):
        assert matcher.accept_token(0)
        assert ours.accept_token(0)
        assert setting.oracle.accepts([0] * count)  # all but the last taken whole
        assert ours.is_accepting
        said.append(matcher.is_completed())
    assert said == [True, True, False, False, False]


def test_what_xgrammar_refuses():
    """Ids past the vocabulary. Stop tokens and ids without bytes it compiles, and never takes."""
    tokens, stops = (b"a", b"b", b"", b"</s>"), (3,)
    for token in (2, 3, 4):
        text = f'root ::= Token({token}) "b" | "a"'
        setting = Setting(read_printed(text), tokens, stops)
        grammar, vocabulary = setting.our_grammar(), setting.our_vocabulary()
        if token in stops:  # nothing can follow it
            ours = compiled_with(grammar, vocabulary, classes="never", check_tokens=False)
            assert not tokfold.Matcher(ours).accept_token(token)
        else:
            with pytest.raises(tokfold.UnsupportedGrammarError):
                compiled_with(grammar, vocabulary, classes="never", check_tokens=False)
        if token == 4:
            with pytest.raises(RuntimeError, match="out of the vocabulary"):
                compiled_by_xgrammar(setting)
            continue
        matcher = xgr.GrammarMatcher(compiled_by_xgrammar(setting))
        assert not matcher.fork().accept_token(token)
        assert matcher.accept_token(0)
