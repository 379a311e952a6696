"""The store's masks against its own lexer and table token by token, and its texts against Lark."""

from __future__ import annotations

import random

import lark
import numpy as np
import pytest
from hypothesis import assume, given
from mask_store.store_samples import (
    JSON,
    PYTHON,
    json_store,
    mutant,
    parses,
    python_store,
    python_truth,
    vocabulary,
)
from mask_store.table_oracles import grammar_texts, table_of
from strategies.profiles import LONG, examples
from tokfold import Vocabulary
from tokfold.errors import MatcherStateError, VocabularyError
from tokfold.mask_store.errors import TableLoopError
from tokfold.mask_store.lark_reader import read_lark
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.store import MaskStore


def allowed(matcher: StoreMatcher) -> set[int]:
    row = np.zeros(matcher.store.words, np.int32)
    assert matcher.fill_bitmask(row)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    assert not bits[len(matcher.store.vocabulary) :].any()
    return set(np.flatnonzero(bits).tolist())


def accepted(matcher: StoreMatcher) -> set[int]:
    """The slow truth: each token tried on the lexer and on the parser's whole stack."""
    return {i for i in range(len(matcher.store.vocabulary)) if matcher.fork().accept_token(i)}


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
def test_masks_are_what_is_accepted_along_a_python_text(lexer: str) -> None:
    store = python_store(lexer)
    rng = random.Random(1)
    tokens = store.vocabulary.encode_greedy(PYTHON.encode())
    looked_at = set(rng.sample(range(len(tokens)), 200 if LONG else 25))
    matcher = StoreMatcher(store)
    for place, token in enumerate(tokens):
        mask = allowed(matcher)
        assert token in mask
        if place in looked_at:
            assert mask == accepted(matcher)
        assert matcher.accept_token(token)
    assert matcher.is_accepting
    assert store.vocabulary.stop_token_ids[0] in allowed(matcher)


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
def test_whole_texts_and_mutants_as_lark(lexer: str) -> None:
    store, truth, rng = python_store(lexer), python_truth(lexer), random.Random(2)
    lines = PYTHON.split("\n")
    taken = 0
    for _ in range(4_000 if LONG else 400):
        start = rng.randrange(len(lines))
        text = "\n".join(lines[start : start + rng.randint(1, 6)])
        text += rng.choice(["\n", "\n", "", "#x", " \\\n"])
        for _ in range(rng.randint(0, 2)):
            text = mutant(text, rng)
        matcher = StoreMatcher(store)
        mine = matcher.accept_string(text) and matcher.is_accepting
        assert mine == parses(truth, text), text
        taken += mine
    assert taken > 20
    assert StoreMatcher(store).is_accepting == parses(truth, "")


@examples(25)
@given(grammar_texts())
def test_random_grammars_against_lark(text: str) -> None:
    grammar = table_of(text)
    assume(grammar is not None and grammar.terminals)
    tokens = [b"a", b"b", b"c", b"d", b"ab", b"ba", b"aab", b"cd", b"dc", b"bb", b"abcd"]
    try:
        store = MaskStore(grammar, Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)]))
        truth = lark.Lark(text, parser="lalr", lexer="basic")
        waiting = [StoreMatcher(store)]
        for matcher in waiting[:60]:
            mask = allowed(matcher)
            assert mask == accepted(matcher)
            assert matcher.is_accepting == parses(truth, matcher.text.decode())
            for token in sorted(mask - {len(tokens)})[:4]:
                fork = matcher.fork()
                assert fork.accept_token(token)
                if len(fork.text) < 8 and len(waiting) < 60:
                    waiting.append(fork)
    except TableLoopError:
        assume(False)


def test_json_from_end_to_end() -> None:
    store = json_store()
    truth = lark.Lark(JSON, parser="lalr")
    rng = random.Random(4)
    for text in ('{"a": [1, {"b": null}], "c": -0.5e+3}', " [ true , false ] ", '"é\\n"'):
        matcher = StoreMatcher(store)
        for token in store.vocabulary.encode_greedy(text.encode()):
            mask = allowed(matcher)
            assert token in mask
            assert mask == accepted(matcher)
            assert matcher.accept_token(token)
        assert matcher.is_accepting
        for _ in range(100):
            changed = mutant(text, rng)
            matcher = StoreMatcher(store)
            mine = matcher.accept_string(changed) and matcher.is_accepting
            assert mine == parses(truth, changed), changed


def test_random_walks_stay_in_the_language() -> None:
    store, rng = json_store(), random.Random(6)
    stop = store.vocabulary.stop_token_ids[0]
    truth = lark.Lark(JSON, parser="lalr")
    ended = 0
    for _ in range(30):
        matcher = StoreMatcher(store)
        for _ in range(60):
            mask = allowed(matcher)
            assert mask
            if stop in mask and rng.random() < 0.5:
                break
            assert matcher.accept_token(rng.choice(sorted(mask - {stop})))
        if matcher.is_accepting:
            ended += 1
            assert parses(truth, matcher.text.decode())
    assert ended > 5


def test_steps_forks_and_stop_tokens() -> None:
    store = json_store()
    stop = store.vocabulary.stop_token_ids[0]
    matcher = StoreMatcher(store)
    assert not matcher.accept_token(stop)
    assert not matcher.accept_string("}")
    assert matcher.num_steps == 0
    assert matcher.accept_string("[1")
    before = matcher.state
    assert matcher.accept_string(",2]")
    fork = matcher.fork()
    assert matcher.accept_token(stop)
    assert matcher.is_terminated
    assert matcher.is_accepting
    with pytest.raises(MatcherStateError, match="has ended"):
        matcher.accept_token(0)
    with pytest.raises(MatcherStateError, match="has ended"):
        matcher.fill_bitmask(np.zeros(store.words, np.int32))
    assert not fork.is_terminated
    matcher.rollback(2)
    assert matcher.state == before
    assert matcher.text == b"[1"
    with pytest.raises(MatcherStateError, match="cannot be taken back"):
        matcher.rollback(2)
    matcher.reset()
    assert matcher.text == b""
    assert matcher.accept_tokens([ord("["), ord("}"), ord("]")]) == 1


def test_stop_tokens_of_the_matcher_overrule_those_of_the_vocabulary() -> None:
    store = json_store()
    stop = store.vocabulary.stop_token_ids[0]
    for other in (ord("]"), 31, 63, 95):
        matcher = StoreMatcher(store, stop_token_ids=[other])
        assert matcher.accept_string("[1]")
        mask = allowed(matcher)
        assert other in mask
        assert stop not in mask
        assert mask == accepted(matcher)
        matcher.rollback()
        assert matcher.accept_string("[1")
        assert other not in allowed(matcher)
    with pytest.raises(VocabularyError, match="outside the vocabulary"):
        StoreMatcher(store, stop_token_ids=[10**6])


def test_bitmasks_of_another_shape_are_refused() -> None:
    matcher = StoreMatcher(json_store())
    words = matcher.store.words
    with pytest.raises(TypeError, match="int32"):
        matcher.fill_bitmask(np.zeros(words, np.int64))
    with pytest.raises(ValueError, match="words"):
        matcher.fill_bitmask(np.zeros(words + 1, np.int32))
    with pytest.raises(ValueError, match="2 rows, not one of index 2"):
        matcher.fill_bitmask(np.zeros((2, words), np.int32), 2)
    rows = np.zeros((2, words), np.int32)
    matcher.fill_bitmask(rows, 1)
    assert not rows[0].any()
    assert rows[1].any()


def test_deep_nesting_needs_no_recursion() -> None:
    matcher = StoreMatcher(json_store())
    for _ in range(2_000):
        assert matcher.accept_token(ord("["))
    assert ord("]") in allowed(matcher)
    for _ in range(2_000):
        assert matcher.accept_token(ord("]"))
    assert matcher.is_accepting


def test_masks_are_the_same_after_all_was_forgotten() -> None:
    texts = ['[[1], {"a": [22, true]}]']
    grammar = read_lark(JSON)
    store = MaskStore(grammar, vocabulary(texts, 10), max_kept=3)
    kept = MaskStore(grammar, vocabulary(texts, 10))
    matcher, other = StoreMatcher(store), StoreMatcher(kept)
    for token in store.vocabulary.encode_greedy(texts[0].encode()):
        assert allowed(matcher) == allowed(other)
        assert matcher.accept_token(token)
        assert other.accept_token(token)
    assert store.row_count()["starts"] <= 5
    assert store.row_count()["forgotten"] > 2
    assert kept.row_count()["starts"] > 5
    assert kept.row_count()["forgotten"] == 0
