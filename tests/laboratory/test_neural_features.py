"""Features are what the engine's state says: against stacks written out one by one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

pytest.importorskip("torch", minversion="2.4")

import tokfold
from hypothesis import given, note
from hypothesis import strategies as st
from strategies.engine import settings_of_matchers
from strategies.profiles import CASES, examples
from tokfold.laboratory.neural import (
    Configurations,
    GrammarFeatures,
    NoTokenAllowedError,
    RefusedTokenError,
    conditions_along,
    conditions_of,
)
from tokfold.laboratory.neural.configurations import BOTTOM

LISTS = tokfold.Grammar.from_ebnf("""
root  ::= value
value ::= "[" (value ("," value)*)? "]" | "{" value "}" | [0-9]+
""")
TOKENS = [b"[", b"]", b"{", b"}", b",", b"1", b"23", b"],", b"x", b"</s>"]


@pytest.fixture(scope="module")
def lists():
    vocabulary = tokfold.Vocabulary(TOKENS, stop_token_ids=[9])
    return tokfold.compile(LISTS, vocabulary, classes="now")


def all_stacks(live: Configurations, most: int = 2_000) -> list[tuple[int, ...]] | None:
    """The stacks of the last set, tops first, one by one; None where there are too many."""
    done: list[tuple[int, ...]] = []
    work: list[tuple[tuple[int, ...], int]] = [((), len(live.sets) - 1)]
    while work:
        stack, place = work.pop()
        for state, beneath in live.sets[place]:
            if state == BOTTOM:
                done.append(stack)
            else:
                work.append(((*stack, state), beneath))
        if len(done) + len(work) > most:
            return None
    return done


def shorter_completion(matcher: tokfold.Matcher, length: int, most: int = 300) -> bytes | None:
    """A completion of fewer bytes than ``length``, looked for among all of them."""
    seen, layer = {matcher.state}, [(matcher, b"")]
    for _ in range(length):
        after = []
        for here, text in layer:
            if here.is_accepting:
                return text
            for byte in here.expected_bytes:
                fork = here.fork()
                assert fork.accept_bytes(bytes([byte]))
                if fork.state not in seen:
                    seen.add(fork.state)
                    after.append((fork, text + bytes([byte])))
        layer = after[:most]
    return None


@examples(150)
@given(setting=settings_of_matchers(), seed=st.integers(0, 2**32))
def test_configurations_are_the_stacks_of_the_engine(setting, seed):
    note(str(setting))
    if not any(setting.tokens) or not setting.oracle.productive:
        return
    grammar, vocabulary = setting.our_grammar(), setting.our_vocabulary()
    compiled = tokfold.compile(
        grammar, vocabulary, classes="never", options=tokfold.CompileOptions(check_tokens=False)
    )
    matcher, random = tokfold.Matcher(compiled), Random(seed)
    for _ in range(6):
        live = Configurations.of(matcher)
        assert len(live.top) == matcher.counters()["items"]
        assert live.accepting is matcher.is_accepting
        stacks = all_stacks(live)
        if stacks is not None:
            CASES["neural: stacks written out"] += len(stacks)
            assert live.heights() == (min(map(len, stacks)), max(map(len, stacks)))
            assert live.states() == {stack[0] for stack in stacks if stack}
            assert live.states_beneath() == {stack[1] for stack in stacks if len(stack) > 1}
        shortest = live.heights()[0]
        assert (shortest == 0) is matcher.is_accepting
        assert shorter_completion(matcher, min(shortest, 6)) is None
        if not matcher.expected_bytes:
            break
        assert matcher.accept_bytes(bytes([random.choice(matcher.expected_bytes)]))


def named(features: GrammarFeatures, matcher: tokfold.Matcher) -> dict[str, float]:
    """The features of one place, by their names."""
    row = conditions_of(features, [matcher]).features[0].tolist()
    return dict(zip(features.names, row, strict=True))


def test_each_kind_says_what_its_names_say(lists):
    kinds = ("classes", "shape", "bytes", "tops", "ending", "beneath")
    features = GrammarFeatures(lists, kinds)
    matcher = tokfold.Matcher(lists)
    for text in ("", "[", "{", "1", "}", "]"):
        matcher.accept_string(text)
        row = named(features, matcher)
        assert len(row) == features.size == len(features.names)
        bytes_ = {name for name in row if name.startswith("byte 0x") and row[name]}
        assert bytes_ == {f"byte 0x{byte:02x} may come" for byte in matcher.expected_bytes}
        assert row["the text may end"] == matcher.is_accepting
        assert row["one byte is forced"] == bool(matcher.forced_bytes(1))
        live = Configurations.of(matcher)
        for where, states in (("on top", live.states()), ("beneath a top", live.states_beneath())):
            assert {name for name in row if name.endswith(where) and row[name]} == {
                f"state {state} {where}" for state in states
            }
        sizes = np.log1p([len(live.top), *live.heights()])
        shape = [row["tops"], row["shortest stack"], row["tallest stack"]]
        assert shape == pytest.approx(sizes)
        allowed = conditions_of(features, [matcher]).allowed[0]
        assert row["share of tokens allowed"] == pytest.approx(allowed.float().mean().item())
        of_class = [row[f"token class {i} may come"] for i in range(len(lists.classes))]
        class_of = lists.classes.class_of.tolist()
        expected = [bool(of_class[c]) if c >= 0 else False for c in class_of]
        assert expected == allowed.tolist()
    assert matcher.is_accepting


def test_what_stood_there_is_overwritten(lists):
    features = GrammarFeatures(lists)
    matcher, out = tokfold.Matcher(lists), np.full(features.size, 7, np.float32)
    features.write(matcher, 3, out)
    assert out.max() < 2
    assert out[features.names.index("share of tokens allowed")] == np.float32(0.3)


def test_what_is_open_beneath_tells_places_apart_that_expect_the_same_bytes(lists):
    """``[{1`` and ``[1``: a digit may follow both, but what may follow that is another matter."""
    features = GrammarFeatures(lists, ["tops", "beneath"])
    inside, outside = tokfold.Matcher(lists), tokfold.Matcher(lists)
    inside.accept_string("[{1")
    outside.accept_string("[1")
    assert named(features, inside) != named(features, outside)


def test_equal_states_have_equal_features_however_they_were_reached(lists):
    features = GrammarFeatures(lists)
    one, other = tokfold.Matcher(lists), tokfold.Matcher(lists)
    one.accept_string("[[1],2")
    other.accept_string("[{[2,3]},17")
    assert one.state == other.state
    both = conditions_of(features, [one, other])
    assert both.features[0].equal(both.features[1])
    assert both.bitmask[0].equal(both.bitmask[1])


@examples(100)
@given(setting=settings_of_matchers(), seed=st.integers(0, 2**32))
def test_along_a_text_is_step_by_step(setting, seed):
    note(str(setting))
    if not any(setting.tokens) or not setting.oracle.productive:
        return
    grammar, vocabulary = setting.our_grammar(), setting.our_vocabulary()
    compiled = tokfold.compile(
        grammar, vocabulary, classes="never", options=tokfold.CompileOptions(check_tokens=False)
    )
    features, random = GrammarFeatures(compiled), Random(seed)
    start = tokfold.Matcher(compiled, **setting.options)
    texts, rows = [], []
    for _ in range(3):
        matcher, text, row = start.fork(), [], []
        for _ in range(random.randint(0, 5)):
            if matcher.is_terminated:
                break
            try:
                conditions = conditions_of(features, [matcher])
            except NoTokenAllowedError:
                break
            allowed = conditions.allowed[0].nonzero()[:, 0].tolist()
            text.append(random.choice(allowed))
            row.append(conditions)
            assert matcher.accept_token(text[-1])
        texts.append(text)
        rows.append(row)
    along = conditions_along(features, texts, start)
    assert along.features.shape == (3, max(map(len, texts)), features.size)
    for n, row in enumerate(rows):
        for t, conditions in enumerate(row):
            assert along.features[n, t].equal(conditions.features[0])
            assert along.bitmask[n, t].equal(conditions.bitmask[0])
            CASES["neural: places along texts"] += 1
        assert not along.features[n, len(row) :].any()
        assert along.allowed[n, len(row) :].all()
        padding = along.bitmask[n, len(row) :].numpy().view(np.uint8)
        assert np.unpackbits(padding).sum() == len(padding) * len(setting.tokens)
    assert start.num_steps == 0


# ---------------------------------------------------------------- limits and misuse


def test_large_networks_fold_their_states(lists):
    features = GrammarFeatures(lists, ["tops", "beneath"], max_states=3)
    assert features.size == 2 * 4
    matcher = tokfold.Matcher(lists)
    matcher.accept_string("[[")
    live = Configurations.of(matcher)
    row = named(features, matcher)
    assert {i for i in range(3) if row[f"state {i} on top"]} == {s % 3 for s in live.states()}


def test_states_that_count_share_a_column():
    vocabulary = tokfold.Vocabulary([b"a", b"b", b"</s>"], stop_token_ids=[2])
    counted = tokfold.compile(tokfold.Grammar.from_ebnf('root ::= "a"{90,99} "b"'), vocabulary)
    features = GrammarFeatures(counted)
    matcher = tokfold.Matcher(counted)
    for _ in range(3):
        row = named(features, matcher)
        columns = [name for name in row if "counted" in name and row[name]]
        states = Configurations.of(matcher)
        beyond = {s for s in states.states() if s >= counted._core.network_states}
        assert ("state of a counted repetition on top" in columns) is bool(beyond)
        matcher.accept_string("aaaa")
    assert columns


def test_ten_thousand_levels(lists):
    matcher = tokfold.Matcher(lists)
    matcher.accept_string("[" * 10_000)
    shortest, tallest = Configurations.of(matcher).heights()
    assert 10_000 <= shortest <= tallest <= 10_001


def test_features_mean_the_same_in_another_compilation(lists):
    again = tokfold.compile(LISTS, lists.vocabulary, classes="now")
    assert GrammarFeatures(again).signature == GrammarFeatures(lists).signature
    assert GrammarFeatures(lists, ["tops"]).signature != GrammarFeatures(lists).signature
    assert GrammarFeatures(lists, max_states=3).signature != GrammarFeatures(lists).signature


@pytest.mark.parametrize("kinds", [(), ("tops", "tops"), ("colour",), ("tops", "")])
def test_kinds_that_are_none(lists, kinds):
    with pytest.raises(ValueError, match="kinds must be some of bytes"):
        GrammarFeatures(lists, kinds)


def test_other_misuse(lists):
    other = tokfold.compile(LISTS, lists.vocabulary, classes="never")
    features = GrammarFeatures(lists)
    with pytest.raises(ValueError, match="max_states must be 1 or more"):
        GrammarFeatures(lists, max_states=0)
    with pytest.raises(ValueError, match='compile with classes="now"'):
        GrammarFeatures(other, ["classes"])
    with pytest.raises(ValueError, match="another compiled grammar"):
        conditions_of(features, [tokfold.Matcher(other)])
    ended = tokfold.Matcher(lists)
    ended.accept_tokens([5, 9])
    with pytest.raises(tokfold.MatcherStateError):
        conditions_of(features, [ended])
    assert conditions_of(features, []).features.shape == (0, features.size)
    assert conditions_along(features, []).bitmask.shape == (0, 0, 1)


def test_texts_that_are_not_of_the_grammar_are_refused(lists):
    features = GrammarFeatures(lists)
    with pytest.raises(RefusedTokenError, match=r"text 1, token 2 \(id 3\).*0x7d, cannot be") as e:
        conditions_along(features, [[5, 9], [0, 5, 3]])
    assert (e.value.text, e.value.position) == (1, 2)
    with pytest.raises(RefusedTokenError, match="the text has ended before it"):
        conditions_along(features, [[5, 9, 9]])
    with pytest.raises(tokfold.VocabularyError):
        conditions_along(features, [[10]])


def test_no_token_at_all_is_an_error():
    vocabulary = tokfold.Vocabulary([b"ab", b"</s>"], stop_token_ids=[1])
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf('root ::= "aba"'), vocabulary)
    matcher = tokfold.Matcher(compiled)
    matcher.accept_token(0)
    with pytest.raises(NoTokenAllowedError, match=r"after 1 steps.*b'a'"):
        conditions_of(GrammarFeatures(compiled), [matcher])
