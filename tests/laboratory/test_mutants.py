"""Mutants of the real grammars, labelled by others: what differs is told apart, and nothing else.

A quick run takes every seventh mutant, a long one (``TOKFOLD_HYPOTHESIS=long``) all of them.
"""

from __future__ import annotations

from collections import Counter

import pytest
from laboratory.mutants import recorded
from laboratory.mutants.judge import Judge
from strategies.profiles import CASES, LONG
from tokfold import Limits
from tokfold.laboratory.equivalence import compare

HEADER, ALL = recorded.read()
DIFFERENT = [case for case in ALL if case.label == "different"]
EQUAL = [case for case in ALL if case.label == "equal"]
STEP = 1 if LONG else 7
MAX_PAIRS = 200_000 if LONG else 20_000
LIMITS = Limits() if LONG else Limits(max_total_work=2_000_000)
SHARE = 0.98


def test_the_file_is_of_these_grammars():
    again = "run tests/laboratory/record_mutants.py again"
    assert HEADER["grammars"] == {name: recorded.digest(name) for name in recorded.names()}, again


def test_there_are_enough_of_every_kind():
    kinds = Counter(case.kind for case in DIFFERENT)
    assert len(DIFFERENT) >= 200
    assert len(EQUAL) >= 150
    assert kinds["bound_64_or_63"] >= 2 * (len(recorded.names()) - 1)
    assert {case.grammar for case in DIFFERENT} == set(recorded.names())
    assert {case.grammar for case in EQUAL} == set(recorded.names())


@pytest.mark.parametrize("case", DIFFERENT[:: 1 if LONG else 3], ids=str)
def test_the_witness_is_one(case):
    """The label rests on it: the oracle once more."""
    left, right = (Judge(form).accepts(case.witness) for form in case.forms)
    assert (left, right) == (case.taken_by == "left", case.taken_by == "right")


def verdict_of(case):
    """A verdict, with the difference checked by the oracle."""
    forms = case.forms
    left, right = (form.grammar() for form in forms)
    verdict = compare(left, right, max_pairs=MAX_PAIRS, limits=LIMITS)
    if verdict.kind == "different":
        takes = [Judge(form).accepts(verdict.difference) for form in forms]
        assert takes == [verdict.accepted_by == "left", verdict.accepted_by == "right"], str(case)
        if case.witness is not None and verdict.is_shortest:
            assert len(verdict.difference) <= len(case.witness), str(case)
    elif verdict.kind == "bounded" and case.witness is not None:
        assert verdict.depth <= len(case.witness), str(case)
    CASES[f"mutants that are {case.label}: {verdict.kind}"] += 1
    return verdict


def test_what_differs_is_told_apart():
    asked = DIFFERENT[::STEP]
    kinds = {str(case): verdict_of(case).kind for case in asked}
    assert "proved" not in kinds.values(), [name for name in kinds if kinds[name] == "proved"]
    missed = [name for name in kinds if kinds[name] != "different"]
    assert len(missed) <= (1 - SHARE) * len(asked), missed


def test_what_is_equal_raises_no_alarm():
    asked = EQUAL[1::STEP]
    kinds = {str(case): verdict_of(case).kind for case in asked}
    assert "different" not in kinds.values(), [n for n in kinds if kinds[n] == "different"]
    proved = [name for name in kinds if kinds[name] == "proved"]
    assert len(proved) >= 0.85 * len(asked), sorted(set(kinds) - set(proved))
