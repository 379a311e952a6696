"""One request on its way: what fails ends it alone, once, with the reason."""

from __future__ import annotations

import logging

import numpy as np
import pytest

pytest.importorskip("tokfold._core")

import tokfold
from strategies.engine import compiled_with
from tokfold import _core
from tokfold._serving import Conversation, fill_rows

TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", b"</s>"]
STOP, RESORT, WORDS = len(TOKENS) - 1, 7, -(-len(TOKENS) // 32)
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP])
GRAMMAR = 'root ::= [a-z]* "1"'
AMBIGUOUS = 'root ::= "b" (x root x | "a")\nx ::= "a" | "a" x | x "a" x'
A = ord("a")


def conversation(text: str = GRAMMAR, **limits: int) -> Conversation:
    compiled = compiled_with(
        tokfold.Grammar.from_ebnf(text),
        VOCABULARY,
        limits=tokfold.Limits(**limits),
        classes="never",
        pool=None,
    )
    return Conversation(compiled, last_resort=(RESORT,))


def failing() -> Conversation:
    return conversation(max_mask_work=1)


def dear() -> Conversation:
    """One in which an ``a`` takes more than the limits allow."""
    each = conversation(AMBIGUOUS, max_accept_work=5)
    assert each.accept([ord("b")])
    return each


def allowed(row: np.ndarray) -> list[int]:
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()


def expected() -> list[int]:
    bitmask = np.zeros((1, WORDS), dtype=np.int32)
    conversation().fill(bitmask, 0)
    return allowed(bitmask[0])


@pytest.fixture
def calls(monkeypatch) -> list[object]:
    """The matchers whose masks are tried one by one."""
    tried: list[object] = []
    real = tokfold.Matcher.fill_bitmask

    def fill_bitmask(self, bitmask, row=0):
        tried.append(self)
        return real(self, bitmask, row)

    monkeypatch.setattr(tokfold.Matcher, "fill_bitmask", fill_bitmask)
    return tried


@pytest.fixture
def together(monkeypatch) -> list[int]:
    """A call of the core that has a result for each row, or an error; the sizes of its batches."""
    batches: list[int] = []

    def fill_batch_each(matchers, bitmask, rows, threads, classes):
        assert threads >= 1
        assert classes is False
        batches.append(len(matchers))
        results: list[bool | Exception] = []
        for matcher, row in zip(matchers, rows, strict=True):
            try:
                results.append(matcher.fill(bitmask, row))
            except tokfold.TokfoldError as error:
                results.append(error)
        return results

    monkeypatch.setattr(_core, "fill_batch_each", fill_batch_each)
    return batches


class TestRows:
    def check(self, words: int = WORDS) -> None:
        """Two good ones, one that fails, one that failed before, one at its end."""
        good, bad, worse, over = [conversation() for _ in range(2)], failing(), failing(), None
        over = conversation()
        assert over.accept([ord("1"), STOP])
        bitmask = np.full((7, words), -1, dtype=np.int32)
        worse.fill(bitmask, 0)
        bitmask[0] = -1
        fill_rows([good[0], bad, worse, over, good[1]], bitmask, [5, 1, 2, 3, 4])
        assert [allowed(bitmask[row]) for row in (5, 4)] == [expected()] * 2
        assert [allowed(bitmask[row]) for row in (1, 2, 3)] == [[RESORT], [RESORT], [STOP]]
        assert (bitmask[[0, 6]] == -1).all()
        assert "max_mask_work" in bad.failure
        assert [each.failure for each in (*good, over)] == [None] * 3
        assert not bad.accept([ord("a")])
        assert good[0].accept([ord("a")])

    def test_with_the_core(self, together, calls):
        expected()
        calls.clear()
        self.check()
        assert together == [3]
        assert len(calls) == 2, "one before, and the row that is expected; none again"

    def test_rows_of_another_width(self, together):
        self.check(WORDS + 2)
        assert together == []

    def test_one_row(self, together):
        bitmask = np.zeros((1, WORDS), dtype=np.int32)
        fill_rows([conversation()], bitmask, [0])
        assert allowed(bitmask[0]) == expected()
        assert together == []

    def test_none(self):
        fill_rows([], np.zeros((1, WORDS), dtype=np.int32), [])

    def test_as_many_rows_as_conversations(self):
        with pytest.raises(ValueError, match="zip"):
            fill_rows([conversation()], np.zeros((1, WORDS), dtype=np.int32), [])


class TestNothing:
    """No token can go on with the text: its own request fails, and its row allows something."""

    LACKING = tokfold.Vocabulary([b"a", b"b", *[b""] * 40, b"</s>"], stop_token_ids=[42])

    def stuck(self, *, last_resort=(RESORT,), stops=None, vocabulary=None) -> Conversation:
        grammar = tokfold.Grammar.from_ebnf('root ::= "a" "b"? | "b" "c"')
        options = tokfold.CompileOptions(check_tokens=False)
        compiled = tokfold.compile(grammar, vocabulary or self.LACKING, options=options)
        return Conversation(compiled, stops, last_resort)

    @pytest.mark.parametrize("words", [1, 2, 3])
    @pytest.mark.parametrize("max_tokens", [None, 9])
    def test_a_row(self, words, max_tokens, caplog) -> None:
        each = self.stuck()
        each.max_tokens = max_tokens
        assert each.accept([1])
        bitmask = np.full((3, words), -1, dtype=np.int32)
        each.fill(bitmask, 1)
        assert allowed(bitmask[1]) == [RESORT]
        assert (bitmask[[0, 2]] == -1).all()
        assert "no token of the vocabulary spells what must come next, 'c'" in each.failure
        assert not each.accept([RESORT])
        errors = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == 1
        each.rollback(1)
        each.fill(bitmask, 1)
        assert (each.failure, allowed(bitmask[1])) == (None, [0, 1] if max_tokens is None else [0])

    def test_rows(self, together) -> None:
        good, bad = [self.stuck() for _ in range(2)], [self.stuck() for _ in range(2)]
        for each in bad:
            assert each.accept([1])
        bitmask = np.full((4, 2), -1, dtype=np.int32)
        fill_rows([good[0], bad[0], good[1], bad[1]], bitmask, [0, 1, 2, 3])
        assert list(map(allowed, bitmask)) == [[0, 1], [RESORT], [0, 1], [RESORT]]
        assert [each.failure for each in good] == [None] * 2
        assert all("'c'" in each.failure for each in bad)
        assert together == [4]

    def test_a_stop_token_without_a_bit(self) -> None:
        """The mask is narrower than the vocabulary, and what ends the text lies behind it."""
        bitmask = np.zeros((1, 1), dtype=np.int32)
        for last_resort in ((), (42,)):
            each = self.stuck(last_resort=last_resort)
            assert each.accept([0, 1])
            each.fill(bitmask, 0)
            assert allowed(bitmask[0]) == [0]
            assert "ends the text" in each.failure
            assert not each.accept([0])
        ended = self.stuck()
        assert ended.accept([0, 42])
        ended.fill(bitmask, 0)
        assert allowed(bitmask[0]) == [0], "read and ignored"

    @pytest.mark.filterwarnings("ignore::tokfold.StopTokenWarning")
    def test_no_stop_token_at_all(self) -> None:
        each = self.stuck(vocabulary=self.LACKING.replace(stop_token_ids=()), last_resort=())
        assert each.accept([0, 1])
        bitmask = np.zeros((1, 2), dtype=np.int32)
        each.fill(bitmask, 0)
        assert allowed(bitmask[0]) == [0]
        assert each.failure is not None


class TestFailure:
    def test_a_token_past_the_limits_gives_the_reason(self):
        each = dear()
        assert not each.accept([A])
        assert "max_accept_work" in each.failure
        assert each.matcher.text == b"b"

    def test_a_token_that_cannot_follow_is_no_failure(self):
        each = conversation()
        assert not each.accept([ord("A")])
        assert each.failure is None

    def test_it_may_fail_later(self):
        """The token counts as read: the row after it, and the token after that, fail."""
        each = dear()
        before, bitmask = each.copy(), np.zeros((1, WORDS), dtype=np.int32)
        before.fill(bitmask, 0)
        row = allowed(bitmask[0])
        assert each.accept([A, A], fail_later=True)
        assert "max_accept_work" in each.failure
        each.fill(bitmask, 0)
        assert allowed(bitmask[0]) == [RESORT]
        assert not each.accept([RESORT], fail_later=True)
        each.rollback(2)
        assert each.failure is None
        each.fill(bitmask, 0)
        assert allowed(bitmask[0]) == row
        assert not each.accept([ord("A")], fail_later=True)
        assert each.failure is None
        with pytest.raises(tokfold.MatcherStateError):
            each.rollback(2)

    def test_what_comes_in_place_of_others_fails_at_once(self):
        each = dear()
        assert not each.replace([], [A])
        assert each.matcher.text == b"b"

    def test_it_is_logged_once(self, caplog):
        """Each step of drafts takes the failure back and fails again."""
        caplog.set_level(logging.DEBUG, "tokfold")
        each, bitmask = failing(), np.zeros((1, WORDS), dtype=np.int32)
        assert each.accept([ord("a")])
        for _ in range(3):
            each.fill(bitmask, 0)
            each.fill(bitmask, 0)
            each.rollback(1)
            assert each.accept([ord("b")])
        levels = [record.levelno for record in caplog.records]
        assert levels == [logging.ERROR, logging.DEBUG, logging.DEBUG]
        assert "max_mask_work" in caplog.text

    def test_drafts_are_logged_once(self, caplog, monkeypatch):
        each = conversation()

        def accept_token(self, token_id):
            raise tokfold.LimitExceededError("too slow", "max_accept_work", 5)

        monkeypatch.setattr(tokfold.Matcher, "accept_token", accept_token)
        for _ in range(3):
            assert each.valid_prefix([A]) == 0
        assert [record.getMessage() for record in caplog.records] == ["a request fails: too slow"]
        assert each.failure is None

    def test_a_copy_is_another_request(self, caplog):
        caplog.set_level(logging.ERROR, "tokfold")
        each, bitmask = failing(), np.zeros((1, WORDS), dtype=np.int32)
        each.fill(bitmask, 0)
        each.copy().fill(bitmask, 0)
        assert len(caplog.records) == 2


LISTS = 'root ::= "[" (root ("," root)*)? "]" | "1"'
OPEN, CLOSE, ONE, COMMA = (ord(letter) for letter in "[]1,")


class TestBudget:
    """A text ends within max_tokens, whatever is drafted on the way."""

    def bounded(self, max_tokens: int, prefer_end: int = 0, text: str = LISTS) -> Conversation:
        each = conversation(text)
        each.max_tokens, each.prefer_end = max_tokens, prefer_end
        return each

    def row(self, each: Conversation) -> list[int]:
        bitmask = np.zeros((1, WORDS), dtype=np.int32)
        each.fill(bitmask, 0)
        return allowed(bitmask[0])

    def test_a_draft_that_does_not_fit_concerns_its_row_alone(self, caplog):
        each = self.bounded(6)
        assert each.accept([OPEN, OPEN])
        before = self.row(each)
        assert OPEN not in before
        for _ in range(3):
            assert each.accept([OPEN])
            assert each.tokens_left == 3
            assert self.row(each) == [ONE, OPEN, CLOSE]  # the grammar's alone
            assert each.tokens_left is None
            assert each.accept([OPEN])
            assert self.row(each) == [ONE, OPEN, CLOSE]
            each.rollback(2)
            assert each.tokens_left == 4
            assert self.row(each) == before
        assert caplog.records == []

    def test_what_is_valid_fits(self):
        """As many tokens as masks would allow one after the other."""
        drafts = [OPEN, OPEN, OPEN, ONE, CLOSE, CLOSE, CLOSE, STOP]
        for max_tokens, expected in ((8, 8), (7, 3), (6, 2), (5, 2), (4, 1), (3, 1), (2, 0)):
            each = self.bounded(max_tokens)
            assert each.valid_prefix(drafts) == expected
            assert each.matcher.num_steps == 0
            assert each.tokens_left == max_tokens
        each.max_tokens = None
        assert each.valid_prefix(drafts) == 8
        assert each.valid_prefix([OPEN] * 50) == 50
        assert self.bounded(20).valid_prefix([OPEN] * 50) == 9

    def test_what_is_valid_begins_nothing_new(self):
        each = self.bounded(20, prefer_end=16)
        assert each.valid_prefix([OPEN] * 9) == 4
        assert each.accept([OPEN] * 4)
        assert each.valid_prefix([ONE, COMMA, ONE]) == 1

    def test_what_is_taken_back_gives_no_budget_to_a_text_that_never_fits(self, caplog):
        each = self.bounded(2, text='root ::= "[[" "]]"')
        assert self.row(each) == [OPEN]
        assert "a text may be cut at max_tokens = 2" in caplog.text
        assert each.valid_prefix([OPEN, OPEN, CLOSE, CLOSE, STOP]) == 5
        for _ in range(2):
            assert each.accept([OPEN])
            assert self.row(each) == [OPEN]
            each.rollback(1)
            assert each.tokens_left is None
        assert len(caplog.records) == 1
        each.reset()
        assert each.tokens_left == 2

    def test_drafts_without_rows_before_them(self, caplog):
        """Where no row was masked before the drafts, the log warns once of a text that is cut."""
        each = self.bounded(6)
        for _ in range(2):
            assert each.accept([OPEN] * 4)
            self.row(each)
            each.rollback(4)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert OPEN in self.row(each)
        assert each.tokens_left == 6

    def test_a_request_that_has_taken_all_its_tokens(self, caplog):
        each = self.bounded(2)
        assert each.accept([OPEN, OPEN])
        assert each.tokens_left == 0
        assert each.valid_prefix([CLOSE, CLOSE]) == 2
        assert self.row(each) == [ONE, OPEN, CLOSE]
        assert "a text may be cut" in caplog.text

    def test_copies_have_places_of_their_own(self):
        each = self.bounded(6)
        assert each.accept([OPEN, OPEN, OPEN, OPEN])
        self.row(each)
        same = each.copy()
        assert same.tokens_left is None
        same.rollback(2)
        assert (same.tokens_left, each.tokens_left) == (4, None)
        assert OPEN not in self.row(same)

    def test_a_copy_of_a_beginning_is_another_request(self, caplog):
        each = self.bounded(1)
        self.row(each)
        assert each.tokens_left is None
        assert each.copy().tokens_left == 1
        self.row(each.copy())
        assert len(caplog.records) == 2

    def test_what_comes_in_place_of_drafts(self):
        each = self.bounded(6)
        assert each.accept([OPEN, OPEN, OPEN, OPEN])
        self.row(each)
        assert each.replace([OPEN] * 4, [OPEN, ONE])
        assert each.tokens_left == 4
        assert self.row(each) == [COMMA, CLOSE]

    def test_rows_of_a_batch(self, together):
        """Those with a budget are made one by one, also where another text has lost its own."""
        bounded, lost, free = self.bounded(3), self.bounded(1), conversation(LISTS)
        self.row(lost)
        bitmask = np.zeros((3, WORDS), dtype=np.int32)
        assert bounded.accept([OPEN])
        fill_rows([bounded, lost, free], bitmask, [0, 1, 2])
        assert [allowed(row) for row in bitmask] == [[CLOSE], [ONE, OPEN], [ONE, OPEN]]
        assert together == [2]

    def test_no_time_to_count_is_no_failure(self, monkeypatch, caplog):
        """Of a row: it is the grammar's. Of a draft: it is valid as far as it was counted."""
        caplog.set_level(logging.INFO, "tokfold")
        each, real = self.bounded(9), tokfold.Matcher.fill_bitmask

        def fill_bitmask(self, bitmask, row=0, *, tokens_left=None):
            if tokens_left is not None and self.num_steps == 1:
                raise tokfold.LimitExceededError("too slow", "max_mask_work", 5)
            return real(self, bitmask, row, tokens_left=tokens_left)

        with monkeypatch.context() as patch:
            patch.setattr(tokfold.Matcher, "fill_bitmask", fill_bitmask)
            assert each.accept([OPEN])
            assert self.row(each) == [ONE, OPEN, CLOSE]
        assert each.tokens_left is None
        assert "too slow" in caplog.text
        each.rollback(1)
        assert each.tokens_left == 9
        caplog.clear()
        accept = tokfold.Matcher.accept_token

        def accept_token(self, token_id):
            if self.tokens_left == 8:
                raise tokfold.LimitExceededError("too slow", "max_accept_work", 5)
            return accept(self, token_id)

        monkeypatch.setattr(tokfold.Matcher, "accept_token", accept_token)
        assert each.valid_prefix([OPEN, OPEN, OPEN]) == 1
        assert each.failure is None
        assert caplog.records == []

    def test_tokens_in_doubt_are_left_over(self):
        """As far as the text can do without them."""
        each = self.bounded(8)
        for doubt, expected in ((0, True), (3, True), (4, True), (5, True), (6, False), (9, False)):
            each.tokens_in_doubt = doubt
            assert (OPEN in self.row(each)) is expected, doubt
            assert each.tokens_left == 8
        each.tokens_in_doubt, each.max_tokens = 3, None
        assert OPEN in self.row(each)


@pytest.mark.parametrize("max_tokens", [2**32 - 1, 2**32, 2**40, 2**80])
@pytest.mark.parametrize("prefer_end", [0, 2**32, 2**63 - 1])
def test_a_budget_of_more_than_can_be_counted(max_tokens, prefer_end) -> None:
    """It is as good as none: nothing raises where a server could not go on."""
    each = conversation()
    each.max_tokens, each.prefer_end = max_tokens, prefer_end
    bitmask = np.zeros((1, WORDS), dtype=np.int32)
    for token in (A, A, ord("1")):
        assert each.valid_prefix([token]) == 1
        each.fill(bitmask, 0)
        assert token in allowed(bitmask[0])
        assert each.accept([token])
    each.fill(bitmask, 0)
    assert allowed(bitmask[0]) == [STOP]
    assert each.failure is None
