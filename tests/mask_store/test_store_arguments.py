"""Wrong arguments of mask stores: errors of ours, those that ``Matcher`` has where it has them."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tokfold
from tokfold import ArgumentTypeError, Vocabulary
from tokfold.errors import MatcherStateError
from tokfold.mask_store.lark_reader import read_lark
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.store import MaskStore

TOKENS = [b"[", b"]", b",", b"1", b"</s>"]
VOCABULARY = Vocabulary(TOKENS, stop_token_ids=[4])
GRAMMAR = read_lark('start: "[" ("1" ("," "1")*)? "]"')
STORE = MaskStore(GRAMMAR, VOCABULARY)
COMPILED = tokfold.compile('root ::= "[" ("1" ("," "1")*)? "]"', VOCABULARY)

CALLS = {
    "a string with a lone surrogate": lambda m: m.accept_string("\ud800"),
    "bytes as a string": lambda m: m.accept_string(b"["),
    "a string as bytes": lambda m: m.accept_bytes("["),
    "a bytearray": lambda m: m.accept_bytes(bytearray(b"[")),
    "a text as a token": lambda m: m.accept_token("["),
    "a fraction as a token": lambda m: m.accept_token(0.0),
    "a token past the end": lambda m: m.accept_token(2**70),
    "a text as tokens": lambda m: m.accept_tokens("[]"),
    "too many steps": lambda m: m.rollback(7),
    "no count": lambda m: m.rollback(None),
    "a negative count": lambda m: m.rollback(-1),
    "no limit": lambda m: m.forced_bytes(None),
    "a fraction as a row": lambda m: m.fill_bitmask(np.zeros((1, 1), np.int32), 0.0),
    "a parent behind its node": lambda m: draft(m, [1, -1]),
    "a node that is its own parent": lambda m: draft(m, [-1, 1]),
    "a parent below -1": lambda m: draft(m, [-2, 0]),
    "a parent too few": lambda m: draft(m, [-1]),
    "a text as stop tokens": lambda m: type(m)(made_of(m), stop_token_ids="4"),
    "a fraction as stop tokens": lambda m: type(m)(made_of(m), stop_token_ids=4.0),
    "a fraction as a stop token": lambda m: type(m)(made_of(m), stop_token_ids=[4.0]),
    "a stop token past the end": lambda m: type(m)(made_of(m), stop_token_ids=[5]),
}


def made_of(matcher: object) -> object:
    return STORE if isinstance(matcher, StoreMatcher) else COMPILED


def draft(matcher: tokfold.Matcher, parents: list[int]) -> object:
    return matcher.fill_bitmask_draft([0, 3], np.zeros((3, 1), np.int32), parents)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_store_answers_as_a_matcher_does(call) -> None:
    answers = []
    for matcher in (tokfold.Matcher(COMPILED), StoreMatcher(STORE)):
        try:
            answers.append(call(matcher))
        except (tokfold.TokfoldError, ValueError) as error:
            answers.append((type(error), str(error)))
    assert answers[0] == answers[1]


def test_more_steps_than_the_core_counts() -> None:
    for matcher in (tokfold.Matcher(COMPILED), StoreMatcher(STORE)):
        with pytest.raises(MatcherStateError, match=r"steps? "):
            matcher.rollback(2**70)


def test_rows_that_cannot_be_written() -> None:
    row = np.zeros((1, 1), np.int32)
    row.flags.writeable = False
    for matcher in (tokfold.Matcher(COMPILED), StoreMatcher(STORE)):
        with pytest.raises(ValueError, match="the bitmask cannot be written"):
            matcher.fill_bitmask(row)
        with pytest.raises(ArgumentTypeError, match="the bitmask must be a numpy array"):
            matcher.fill_bitmask_draft([0], [[0], [0]])


def test_a_text_that_has_ended_may_end() -> None:
    for matcher in (tokfold.Matcher(COMPILED), StoreMatcher(STORE)):
        assert matcher.accept_tokens([0, 1]) == 2
        assert matcher.is_accepting
        assert matcher.accept_token(4)
        assert matcher.is_accepting
        with pytest.raises(MatcherStateError, match="the text has ended"):
            matcher.forced_bytes()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: MaskStore(None, VOCABULARY), "grammar must be a LarkGrammar, as tokfold"),
        (lambda: MaskStore("start: A", VOCABULARY), "grammar must be a LarkGrammar, as tokfold"),
        (lambda: MaskStore(GRAMMAR, None), "vocabulary must be a tokfold.Vocabulary, not NoneType"),
        (lambda: MaskStore(GRAMMAR, VOCABULARY, limits=5), "limits must be"),
        (lambda: MaskStore(GRAMMAR, VOCABULARY, progress=5), "progress must be a function"),
        (lambda: MaskStore(GRAMMAR, VOCABULARY, max_kept="x"), "max_kept must be a whole number"),
        (lambda: MaskStore(GRAMMAR, VOCABULARY, max_bytes=None), "max_bytes must be a whole"),
        (lambda: MaskStore.load("x.store", None), "vocabulary must be a tokfold.Vocabulary"),
        (lambda: STORE.save(None), "path must be a str or a path, not NoneType"),
        (lambda: StoreMatcher(None), "store must be a tokfold.mask_store.MaskStore, not NoneType"),
        (lambda: StoreMatcher(COMPILED), "store must be a tokfold.mask_store.MaskStore"),
        (lambda: read_lark(5), "text must be a str, not int"),
        (lambda: read_lark("start: A", start=5), "start must be a name of a rule, or a list"),
        (lambda: read_lark("start: A", start=[5]), "start must be a name of a rule, or a list"),
        (lambda: read_lark("start: A", import_paths=5), "import_paths must be a list of folders"),
        (lambda: read_lark("start: A", import_paths="a"), "import_paths must be a list of folders"),
        (lambda: read_lark("start: A", g_regex_flags="x"), "g_regex_flags must be flags of re"),
    ],
)
def test_arguments_of_another_type(call, said) -> None:
    with pytest.raises(ArgumentTypeError, match=f"^{re.escape(said)}"):
        call()


@pytest.mark.parametrize("name", ["max_kept", "max_bytes"])
def test_negative_bounds(name: str) -> None:
    for make in (
        lambda: MaskStore(GRAMMAR, VOCABULARY, **{name: -1}),
        lambda: MaskStore.load("x.store", VOCABULARY, **{name: -1}),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be 0 or more, not -1$"):
            make()
