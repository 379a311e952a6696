"""What a caller may get wrong: each is an exception of a stated type, and nothing has changed."""

from __future__ import annotations

import copy
import pickle
from random import Random

import numpy as np
import pytest
import tokfold
from hypothesis import given, note
from hypothesis import strategies as st
from oracles.model import to_ebnf
from strategies.engine import build_setting, compiled_ways, mask_of, plain_matcher
from strategies.profiles import examples
from strategies.walks import Accept, build_walk

TOKENS = [b"(", b")", b"x", b"((", b"</s>", b"<s>", b"", *(b"q%d" % i for i in range(90))]
STOP, SPECIAL, EMPTY = 4, 5, 6
WORDS = (len(TOKENS) + 31) // 32


@pytest.fixture(scope="module", params=["never", "now"])
def compiled(request) -> tokfold.CompiledGrammar:
    return tokfold.compile(
        tokfold.Grammar.from_ebnf('root ::= "(" root ")" | "x"'),
        tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP], special_token_ids=[SPECIAL]),
        classes=request.param,
    )


@pytest.fixture
def matcher(compiled) -> tokfold.Matcher:
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b"((")
    return matcher


def rows(count: int = 4) -> np.ndarray:
    return np.zeros((count, WORDS), dtype=np.int32)


class TestTokens:
    @pytest.mark.parametrize("token", [-1, -(2**40), len(TOKENS), 2**31, 2**32, 2**40, 2**70])
    def test_out_of_range(self, matcher, token):
        before = matcher.state
        for use in (matcher.accept_token, matcher.explain):
            with pytest.raises(tokfold.VocabularyError, match=str(token)):
                use(token)
        with pytest.raises(tokfold.VocabularyError):
            tokfold.Matcher(matcher.compiled, stop_token_ids=[token])
        assert matcher.state == before
        assert matcher.num_steps == 1

    @pytest.mark.parametrize("token", ["1", 1.0, None, b"x"])
    def test_no_number(self, matcher, token):
        for use in (matcher.accept_token, matcher.explain):
            with pytest.raises(TypeError):
                use(token)
        assert matcher.num_steps == 1

    def test_numbers_of_numpy(self, matcher):
        assert matcher.accept_token(np.int64(2))
        assert matcher.accept_token(np.uint32(1))

    @pytest.mark.parametrize("token", [SPECIAL, EMPTY])
    def test_what_is_no_text_is_refused(self, matcher, token):
        assert not mask_of(matcher, len(TOKENS))[0][token]
        assert matcher.accept_token(token) is False
        assert not matcher.explain(token).allowed

    def test_any_token_may_be_made_a_stop_token(self, compiled):
        for token in range(7):
            matcher = tokfold.Matcher(compiled, stop_token_ids=[token, token])
            assert matcher.stop_token_ids == (token,)
            read = tokfold.Matcher(compiled)
            completes = read.accept_token(token) and read.is_accepting and token != STOP
            assert matcher.accept_token(token) is completes
            matcher.rollback(int(completes))
            assert matcher.accept_bytes(b"(x)")
            assert mask_of(matcher, len(TOKENS))[0] == [i == token for i in range(len(TOKENS))]
            assert matcher.accept_token(token)
            assert matcher.is_terminated

    def test_no_stop_tokens(self, compiled):
        matcher = tokfold.Matcher(compiled, stop_token_ids=[])
        assert matcher.accept_bytes(b"x")
        assert matcher.is_accepting
        assert not any(mask_of(matcher, len(TOKENS))[0])
        assert matcher.accept_token(STOP) is False

    def test_texts_of_another_type(self, matcher):
        with pytest.raises(TypeError):
            matcher.accept_bytes("x")
        assert not matcher.accept_string("\ud800")  # it has no UTF-8, so no grammar takes it
        assert matcher.num_steps == 1

    def test_a_matcher_of_something_else(self):
        with pytest.raises(TypeError):
            tokfold.Matcher("grammar")
        with pytest.raises(TypeError):
            tokfold.compile(7, tokfold.Vocabulary([b"a"]))
        with pytest.raises(TypeError):
            tokfold.compile(tokfold.Grammar.from_ebnf('root ::= "a"'), [b"a"])
        with pytest.raises(ValueError, match="classes"):
            tokfold.compile(
                tokfold.Grammar.from_ebnf('root ::= "a"'),
                tokfold.Vocabulary([b"a"]),
                classes="later",
            )


def test_a_copy_is_a_matcher_of_its_own(matcher):
    """Or there is none; never two names for one state."""
    for make in (copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
        try:
            copied = make(matcher)
        except TypeError:
            continue
        assert copied.accept_bytes(b"(")
        assert matcher.num_steps == 1


def test_a_copy_of_a_compiled_grammar_is_itself(compiled):
    assert copy.copy(compiled) is compiled
    assert copy.deepcopy(compiled) is compiled
    assert copy.deepcopy({"grammars": [compiled]})["grammars"] == [compiled]
    with pytest.raises(TypeError, match="cannot be pickled: pickle its grammar, which can be"):
        pickle.dumps(compiled)
    assert pickle.loads(pickle.dumps(compiled.grammar)) == compiled.grammar


@pytest.mark.parametrize("ids", [[1.0], [2.7], ["1"], [None], "12", 1.0, True])
def test_stop_tokens_that_are_no_numbers(compiled, ids):
    with pytest.raises(TypeError):
        tokfold.Matcher(compiled, stop_token_ids=ids)


def test_classes_that_two_threads_bring_at_once() -> None:
    """The core keeps those that come first, and ``classes`` are these and no others."""
    grammar = tokfold.Grammar.from_ebnf('root ::= "a"+ "b"')
    vocabulary = tokfold.Vocabulary([b"a", b"b", b"aa", b"</s>"], stop_token_ids=3)
    compiled = tokfold.compile(grammar, vocabulary, classes="never")
    first, second = (tokfold.compile_classes(grammar, vocabulary) for _ in range(2))
    core = compiled._core

    class Meanwhile:
        """The core, in which another thread runs before the call of this one returns."""

        def take_classes(self, *arrays):
            answer = core.take_classes(*arrays)
            compiled._core = core
            assert not compiled.has_classes
            compiled.take_classes(second)
            return answer

    compiled._core = Meanwhile()
    compiled.take_classes(first)
    assert compiled.classes is first
    assert compiled.has_classes


class TestRollback:
    @pytest.mark.parametrize("count", [2, 3, 2**32, 2**32 + 1, 2**40, 2**70])
    def test_past_the_start(self, matcher, count):
        before = matcher.state
        with pytest.raises(tokfold.MatcherStateError):
            matcher.rollback(count)
        assert matcher.state == before
        assert matcher.num_steps == 1

    @pytest.mark.parametrize("count", [-1, -(2**70)])
    def test_forwards(self, matcher, count):
        with pytest.raises(ValueError, match="count"):
            matcher.rollback(count)
        assert matcher.num_steps == 1

    def test_nothing(self, matcher):
        matcher.rollback(0)
        assert matcher.num_steps == 1

    def test_a_negative_limit(self, matcher):
        with pytest.raises(ValueError, match="limit"):
            matcher.forced_bytes(-1)


class TestAfterTheEnd:
    @pytest.mark.parametrize("by_itself", [False, True])
    def test_everything_raises(self, compiled, by_itself):
        matcher = tokfold.Matcher(compiled, terminate_without_stop_token=by_itself)
        assert matcher.accept_bytes(b"(x)")
        if not by_itself:
            assert matcher.accept_token(STOP)
        assert matcher.is_terminated
        before, steps = matcher.state, matcher.num_steps
        for use in (
            lambda: matcher.fill_bitmask(rows()),
            lambda: tokfold.fill_bitmask_batch([matcher], rows(), ended="raise"),
            lambda: matcher.accept_token(0),
            lambda: matcher.accept_token(STOP),
            lambda: matcher.accept_token(SPECIAL),
            lambda: matcher.accept_token(EMPTY),
            lambda: matcher.accept_bytes(b"x"),
            lambda: matcher.accept_bytes(b""),
            lambda: matcher.accept_string("x"),
            lambda: matcher.forced_bytes(),
            lambda: matcher.explain(0),
            lambda: matcher.explain(STOP),
        ):
            with pytest.raises(tokfold.MatcherStateError):
                use()
        with pytest.raises(tokfold.VocabularyError):
            matcher.accept_token(len(TOKENS))
        assert matcher.state == before
        assert matcher.num_steps == steps
        assert matcher.text == b"(x)"
        fork = matcher.fork()
        assert fork.is_terminated
        fork.rollback()
        assert not fork.is_terminated
        assert matcher.is_terminated

    def test_a_text_that_is_complete_at_once(self):
        compiled = tokfold.compile(
            tokfold.Grammar.from_ebnf('root ::= "" | "a"'),
            tokfold.Vocabulary([b"a"]),
            classes="never",
            options=tokfold.CompileOptions(check_tokens=False),
        )
        matcher = tokfold.Matcher(compiled, terminate_without_stop_token=True)
        assert matcher.is_terminated
        matcher.reset()
        assert matcher.is_terminated


def overlapping() -> np.ndarray:
    """Two rows that share a word."""
    return np.lib.stride_tricks.as_strided(
        np.zeros(8, dtype=np.int32), (2, WORDS), (4 * (WORDS - 1), 4)
    )


def read_only() -> np.ndarray:
    out = rows()
    out.setflags(write=False)
    return out


def unaligned() -> np.ndarray:
    return np.zeros(4 * WORDS + 1, dtype=np.uint8)[1:].view(np.int32).reshape(1, WORDS)


BAD_BITMASKS = {
    "too few words": lambda: np.zeros((4, WORDS - 1), dtype=np.int32),
    "too many words": lambda: np.zeros((4, WORDS + 1), dtype=np.int32),
    "one dimension, too short": lambda: np.zeros(WORDS - 1, dtype=np.int32),
    "no words": lambda: np.zeros((4, 0), dtype=np.int32),
    "no rows": lambda: np.zeros((0, WORDS), dtype=np.int32),
    "no dimension": lambda: np.zeros((), dtype=np.int32),
    "three dimensions": lambda: np.zeros((1, 1, WORDS), dtype=np.int32),
    "uint32": lambda: np.zeros((4, WORDS), dtype=np.uint32),
    "int64": lambda: np.zeros((4, WORDS), dtype=np.int64),
    "bool": lambda: np.zeros((4, len(TOKENS)), dtype=np.bool_),
    "float32": lambda: np.zeros((4, WORDS), dtype=np.float32),
    "other byte order": lambda: np.zeros((4, WORDS), dtype=">i4"),
    "every other word": lambda: np.zeros((4, 2 * WORDS), dtype=np.int32)[:, ::2],
    "every other row": lambda: np.zeros((8, WORDS), dtype=np.int32)[::2],
    "backwards": lambda: np.zeros((4, WORDS), dtype=np.int32)[::-1],
    "columns first": lambda: np.zeros((4, WORDS), dtype=np.int32, order="F"),
    "columns first, as many as rows": lambda: np.zeros((WORDS, WORDS), np.int32, order="F"),
    "read-only": read_only,
    "overlapping": overlapping,
    "one row many times": lambda: np.broadcast_to(np.zeros(WORDS, np.int32), (4, WORDS)),
    "unaligned": unaligned,
    "a list": lambda: [[0] * WORDS],
    "bytes": lambda: bytes(4 * WORDS),
    "nothing": lambda: None,
}


class TestBitmasks:
    @pytest.mark.parametrize("name", BAD_BITMASKS)
    def test_refused(self, matcher, name):
        bitmask = BAD_BITMASKS[name]()
        for use in (
            lambda: matcher.fill_bitmask(bitmask),
            lambda: tokfold.fill_bitmask_batch([matcher], bitmask),
        ):
            with pytest.raises((TypeError, ValueError)):
                use()
        assert not np.asarray(bitmask).any() or isinstance(bitmask, bytes | type(None))
        assert matcher.fill_bitmask(rows())

    @pytest.mark.parametrize("row", [4, 5, 2**32, 2**40, 2**63, 2**70, -1, -(2**70)])
    def test_no_such_row(self, matcher, row):
        bitmask = rows()
        with pytest.raises(ValueError, match="row"):
            matcher.fill_bitmask(bitmask, row)
        with pytest.raises(ValueError, match="row"):
            tokfold.fill_bitmask_batch([matcher], bitmask, [row])
        assert not bitmask.any()

    def test_what_serves(self, matcher):
        """One dimension, a part of a larger array, the last row, a foreign buffer."""
        expected = mask_of(matcher, len(TOKENS))
        large = np.full((6, WORDS), 7, dtype=np.int32)
        buffer = bytearray(4 * WORDS)
        for row, number in (
            (np.zeros(WORDS, dtype=np.int32), 0),
            (large[2:4], 1),
            (np.frombuffer(buffer, dtype=np.int32), 0),
            (np.frombuffer(buffer, dtype=np.int32).reshape(1, -1), 0),
        ):
            assert matcher.fill_bitmask(row, number) is expected[1]
            written = row[number] if row.ndim == 2 else row
            bits = np.unpackbits(written.view(np.uint8), bitorder="little")[: len(TOKENS)]
            assert bits.astype(bool).tolist() == expected[0]
        assert (large[[0, 1, 2, 4, 5]] == 7).all()


class TestBatches:
    def test_twice(self, matcher):
        with pytest.raises((tokfold.MatcherStateError, ValueError)):
            tokfold.fill_bitmask_batch([matcher, matcher], rows())
        with pytest.raises(ValueError, match="twice"):
            tokfold.fill_bitmask_batch([matcher, matcher.fork()], rows(), [2, 2])
        assert matcher.fill_bitmask(rows())

    def test_counts(self, matcher):
        for places in ([], [0, 1]):
            with pytest.raises(ValueError, match="rows"):
                tokfold.fill_bitmask_batch([matcher], rows(), places)
        with pytest.raises(ValueError, match="row"):
            tokfold.fill_bitmask_batch([matcher.fork() for _ in range(5)], rows())
        with pytest.raises(ValueError, match="threads"):
            tokfold.fill_bitmask_batch([matcher], rows(), threads=-1)
        for wrong in ("x", 1.5, [1], True):
            with pytest.raises(tokfold.ArgumentTypeError, match="threads must be a whole number"):
                tokfold.fill_bitmask_batch([matcher], rows(), threads=wrong)
        assert tokfold.fill_bitmask_batch([], rows()).shape == (0,)
        assert tokfold.fill_bitmask_batch([matcher], rows(), threads=1_000).tolist() == [True]

    def test_one_that_has_ended(self, matcher):
        """The first that cannot be filled says why; the others can still be used."""
        ended = matcher.fork()
        assert ended.accept_bytes(b"x))")
        assert ended.accept_token(STOP)
        three = [matcher, ended, matcher.fork()]
        with pytest.raises(tokfold.MatcherStateError, match=r"^row 1: the text has ended"):
            tokfold.fill_bitmask_batch(three, rows(), threads=3, ended="raise")
        assert matcher.fill_bitmask(rows())

    def test_vocabularies_of_other_sizes(self, matcher):
        small = tokfold.compile(
            matcher.compiled.grammar, tokfold.Vocabulary([b"("]), classes="never"
        )
        with pytest.raises(ValueError, match="size"):
            tokfold.fill_bitmask_batch([matcher, tokfold.Matcher(small)], rows())

    def test_no_matcher(self, matcher):
        with pytest.raises((TypeError, AttributeError)):
            tokfold.fill_bitmask_batch([matcher, None], rows())


class TestClasses:
    def test_of_something_else(self, compiled):
        grammar, vocabulary = compiled.grammar, compiled.vocabulary
        other = tokfold.Grammar.from_ebnf('root ::= "x" root | "x"')
        for classes, what in (
            (tokfold.compile_classes(other, vocabulary), "grammar"),
            (tokfold.compile_classes(grammar, vocabulary.replace(size=200)), "vocabulary"),
            (tokfold.compile_classes(grammar, vocabulary, prune=False), "prune"),
        ):
            with pytest.raises(ValueError, match=what):
                tokfold.compile(grammar, vocabulary, classes=classes)
        fresh = tokfold.compile(grammar, vocabulary, classes="never")
        fresh.take_classes(tokfold.compile_classes(grammar, vocabulary))
        fresh.take_classes(tokfold.compile_classes(grammar, vocabulary))  # a second time
        assert fresh.has_classes


def test_explanations_are_the_masks_reasons():
    """On random walks: allowed is the bit, and what could be read is what the oracle reads."""

    @examples(40)
    @given(seed=st.integers(0, 1 << 40))
    def run(seed):
        random = Random(seed)
        setting = build_setting(random, rules=random.randint(1, 4), size=10)
        note(to_ebnf(setting.grammar))
        ways = compiled_ways(setting)
        if ways is None:
            return
        matcher, plain = tokfold.Matcher(ways[0], **setting.options), plain_matcher(setting)
        for step in build_walk(random, 4):
            if plain.ended:
                return
            bits = mask_of(matcher, 10)[0]
            for token in range(10):
                said = matcher.explain(token)
                assert said.allowed is bits[token]
                assert said.token == setting.tokens[token]
                text = setting.text_of(token) or b""
                assert said.may_end is plain.accepting
                assert said.read == max(
                    n for n in range(len(text) + 1) if plain.state.feed(text[:n]).viable
                )
                assert list(said.expected) == plain.state.feed(text[: said.read]).next_bytes()
                assert all(bits[i] and not bits[token] for i in said.nearest)
            if any(bits) and isinstance(step, Accept):
                token = random.choice([i for i in range(10) if bits[i]])
                assert matcher.accept_token(token) is plain.accept_token(token) is True

    run()


def test_a_matcher_that_moves_is_explained_where_it_stood(monkeypatch):
    """An explanation asks several questions: no other thread moves the matcher between two."""
    from tokfold import explanation

    vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
    compiled = tokfold.compile('root ::= ("a" "b")*', vocabulary, classes="never")
    matcher = tokfold.Matcher(compiled)
    told = matcher.explain(1)
    assert not told.allowed
    assert told.read == 0
    asked = explanation.allowed_bits

    def another_thread_is_faster(explained):
        bits = asked(explained)
        assert matcher.accept_token(0)
        return bits

    monkeypatch.setattr(explanation, "allowed_bits", another_thread_is_faster)
    assert matcher.explain(1) == told
    assert matcher.text == b"a"


def test_a_restored_matcher_explains_alike():
    """What was read before is not known any more; what stands against a token is."""
    vocabulary = tokfold.Vocabulary([b"(", b")", b"x"])
    grammar = tokfold.Grammar.from_ebnf('root ::= "(" inner ")"\ninner ::= "(" inner ")" | "x"')
    compiled = tokfold.compile(grammar, vocabulary, classes="never")
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b"((")
    restored = tokfold.Matcher.from_state(compiled, matcher.state)
    for token in (0, 2, 1):
        for offered in range(3):
            mine, theirs = matcher.explain(offered), restored.explain(offered)
            for name in ("allowed", "reason", "read", "expected", "may_end", "nearest"):
                assert getattr(theirs, name) == getattr(mine, name), name
            # The rules of another place would be worse than none.
            assert theirs.innermost_rules in ((), mine.innermost_rules)
            assert theirs.open_rules in ((), mine.open_rules), matcher.text
        assert matcher.accept_token(token)
        assert restored.accept_token(token)


@pytest.mark.parametrize("wrong", [5, None, "ab", ["a"], [1.5], [None], [b"a"]])
def test_lists_that_hold_no_numbers(compiled, wrong):
    matchers = [tokfold.Matcher(compiled)]
    rows = tokfold.allocate_bitmask(1, len(compiled.vocabulary))
    calls = [
        lambda: tokfold.accept_token_batch(matchers, wrong),
        lambda: tokfold.rollback_batch(matchers, wrong),
        lambda: matchers[0].accept_tokens(wrong),
        lambda: matchers[0].fill_bitmask_draft(wrong, rows),
    ]
    if wrong is not None:
        calls.append(lambda: tokfold.fill_bitmask_batch(matchers, rows, rows=wrong))
    for call in calls:
        with pytest.raises(tokfold.ArgumentTypeError, match=r"must be .*, not (\w+)"):
            call()
    assert matchers[0].num_steps == 0


@pytest.mark.parametrize("wrong", ["x", 1.5, None, [2]])
def test_sizes_that_are_no_numbers(wrong):
    for arguments in ((wrong, 40), (1, wrong)):
        with pytest.raises(
            tokfold.ArgumentTypeError, match=r"^(batch|size) must be a whole number"
        ):
            tokfold.allocate_bitmask(*arguments)
    with pytest.raises(tokfold.ArgumentTypeError, match=r"^classes must be tokfold\.TokenClasses"):
        tokfold.Unfolder(wrong)
