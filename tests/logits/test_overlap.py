"""Masks made beside the model: whole generations, equal to the plain loop token for token."""

from __future__ import annotations

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import tokfold  # noqa: E402
from hypothesis import event, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from oracles.logits import bits_of_words, masked_  # noqa: E402
from strategies.profiles import CASES, examples  # noqa: E402
from support.processes import DEADLINE_S  # noqa: E402
from tokfold.torch import Fold, NextMasks  # noqa: E402

TOKENS = [bytes([b]) for b in b"[]{}ab,:1 "] + [b"[[", b"]]", b"ab", b"a,", b"],", b"", b"</s>"]
STOP = len(TOKENS) - 1
SIZE = 40
WIDTH = SIZE + 3
TEXTS = [
    'root ::= "[" (item ("," item)*)? "]"\nitem ::= root | "a" "b"* | "1"',
    "root ::= [ab]{2,6}",
    'root ::= ("{" root "}" | "1" ":" [ab1])* ","?',
]


@pytest.fixture(scope="module")
def vocabulary() -> tokfold.Vocabulary:
    return tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP], size=SIZE)


@pytest.fixture(scope="module")
def grammars(vocabulary) -> list[tokfold.CompiledGrammar]:
    return [
        tokfold.compile(tokfold.Grammar.from_ebnf(text), vocabulary, classes="now")
        for text in TEXTS
    ]


@pytest.fixture(scope="module")
def fold(grammars) -> Fold:
    return Fold(grammars[0])


class Model:
    """Logits at random, the same for the same seed and step; some rows soon want to stop."""

    def __init__(self, seed: int, rows: int) -> None:
        self.seed, self.rows = seed, rows

    def __call__(self, step: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1_000 * self.seed + step)
        logits = torch.randn(self.rows, WIDTH, generator=generator)
        logits[:, STOP] += 0.3 * step * torch.arange(self.rows)
        return logits


def plain_loop(matchers, model: Model, steps: int) -> list[torch.Tensor]:
    """The logits of each step, masked one by one."""
    out = []
    row_of_bits = tokfold.allocate_bitmask(1, SIZE)
    for step in range(steps):
        rows = [row for row, matcher in enumerate(matchers) if not matcher.is_terminated]
        logits = model(step)
        for row in rows:
            matchers[row].fill_bitmask(row_of_bits)
            masked_(logits, [bits_of_words(row_of_bits[0], SIZE)], [row])
        out.append(logits)
        for row in rows:
            assert matchers[row].accept_token(int(logits[row].argmax()))
        if not rows:
            break
    return out


def overlapped(masks: NextMasks, model: Model, steps: int, as_list: bool) -> list[torch.Tensor]:
    """The same with masks made beside the model."""
    out = []
    masks.begin()
    for step in range(steps):
        logits = model(step)
        assert masks.apply_(logits) is logits
        open_rows = [i for i, matcher in enumerate(masks.matchers) if not matcher.is_terminated]
        assert masks.rows == open_rows
        out.append(logits.clone())
        tokens = logits.argmax(dim=-1)
        for row, matcher in enumerate(masks.matchers):
            if matcher.is_terminated:
                tokens[row] = -7  # of a text that has ended nobody may read a token
        if all(matcher.is_terminated for matcher in masks.matchers):
            break
        masks.begin(tokens.tolist() if as_list else tokens)
    else:
        masks.wait()
    return out


@pytest.mark.parametrize("threads", [1, 2, None])
@pytest.mark.parametrize("way", ["classes", "tokens", "mixed grammars"])
class TestGenerations:
    @examples(12)
    @given(
        seed=st.integers(0, 1 << 30),
        count=st.integers(1, 7),
        as_list=st.booleans(),
        when_complete=st.booleans(),
    )
    def test_equal_to_the_plain_loop(
        self, grammars, fold, way, threads, seed, count, as_list, when_complete
    ):
        compiled = [grammars[row % 3 if way == "mixed grammars" else 0] for row in range(count)]
        options = {"terminate_without_stop_token": when_complete}
        ours, plain = ([tokfold.Matcher(c, **options) for c in compiled] for _ in range(2))
        model = Model(seed, count)
        expected = plain_loop(plain, model, 25)
        with NextMasks(ours, fold=fold if way == "classes" else None, threads=threads) as masks:
            found = overlapped(masks, model, 25, as_list)
        assert len(found) == len(expected)
        for step, (left, right) in enumerate(zip(found, expected, strict=True)):
            assert torch.equal(left, right), step
        assert [matcher.text for matcher in ours] == [matcher.text for matcher in plain]
        ended = [matcher.is_terminated for matcher in ours]
        assert ended == [matcher.is_terminated for matcher in plain]
        assert masks.visible_seconds >= 0
        assert masks.fill_seconds > 0
        event(f"ended: {sum(ended)} of {count}")
        CASES[f"torch: steps beside the model, {way}"] += len(found)


@pytest.fixture(params=["classes", "tokens"])
def two(request, grammars, fold):
    """Masks for two texts, by classes and by tokens."""
    matchers = [tokfold.Matcher(grammars[0]) for _ in range(2)]
    with NextMasks(matchers, fold=fold if request.param == "classes" else None) as masks:
        yield masks


def token(text: bytes) -> int:
    return TOKENS.index(text)


def test_out_of_turn(two) -> None:
    logits = torch.zeros(2, WIDTH)
    for use in (two.wait, lambda: two.apply_(logits)):
        with pytest.raises(tokfold.MatcherStateError, match=r"no masks: call begin\(\) first"):
            use()
    two.begin()
    with pytest.raises(tokfold.MatcherStateError, match=r"begin\(\) was called already"):
        two.begin([token(b"["), token(b"[")])
    assert two.wait() == [0, 1]
    with pytest.raises(tokfold.MatcherStateError, match="call begin"):
        two.wait()
    assert logits.eq(0).all()
    assert [matcher.num_steps for matcher in two.matchers] == [0, 0]


def test_errors_name_the_row_among_all(vocabulary) -> None:
    """Also where the texts of rows before it have ended."""
    grammar = tokfold.Grammar.from_ebnf(TEXTS[0])
    wide = tokfold.compile(grammar, vocabulary, classes="never")
    tight = tokfold.compile(grammar, vocabulary, tokfold.Limits(max_mask_work=1), classes="never")
    ended, failing = tokfold.Matcher(wide), tokfold.Matcher(tight)
    assert ended.accept_tokens([token(b"["), token(b"]"), STOP]) == 3
    with NextMasks([ended, tokfold.Matcher(wide), failing]) as masks:
        masks.begin()
        with pytest.raises(tokfold.LimitExceededError, match=r"^row 2: limit max_mask") as caught:
            masks.wait()
        assert caught.value.row == 2
        masks.begin([STOP, token(b"["), 1_000])
        with pytest.raises(tokfold.VocabularyError, match=r"^row 2: token 1000 is out") as caught:
            masks.wait()
        assert caught.value.row == 2


def test_a_token_that_had_been_masked(two) -> None:
    two.begin()
    two.apply_(torch.zeros(2, WIDTH))
    two.begin([token(b"["), token(b"a")])
    logits = torch.zeros(2, WIDTH)
    with pytest.raises(
        tokfold.MatcherStateError, match=r"row 1: token 4 had been masked"
    ) as caught:
        two.apply_(logits)
    assert caught.value.row == 1
    assert logits.eq(0).all()
    assert [matcher.num_steps for matcher in two.matchers] == [0, 0]  # the other row, too
    two.begin()  # one may go on from where the texts are
    assert two.wait() == [0, 1]


def test_a_token_that_is_none(two) -> None:
    two.begin([token(b"["), SIZE])
    with pytest.raises(tokfold.VocabularyError, match=f"token {SIZE} is outside"):
        two.wait()
    assert [matcher.num_steps for matcher in two.matchers] == [0, 0]
    for wrong in ([0], [0, 0, 0], torch.tensor([0])):
        with pytest.raises(ValueError, match="2 texts, but"):
            two.begin(wrong)
    two.begin([token(b"["), token(b"[")])
    assert two.wait() == [0, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        *("[[", b"[[", 1.5, True, {0: 0, 1: 0}, {0, 1}, np.array(1), [0, "a"], [0, 1.5]),
        *([0, None], torch.zeros(2), torch.tensor([True, True]), np.zeros(2)),
    ],
    ids=repr,
)
def test_tokens_that_are_no_numbers(two, wrong) -> None:
    with pytest.raises(
        tokfold.ArgumentTypeError, match=r"^(token_ids must|row \d: a token must) be"
    ):
        two.begin(wrong)
    two.begin([token(b"["), token(b"[")])
    assert two.wait() == [0, 1]


def test_tensors_that_are_no_tokens(two) -> None:
    with pytest.raises(ValueError, match="token_ids must have one dimension, not 2"):
        two.begin(torch.zeros(2, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"token_ids must be a dense tensor .* on meta"):
        two.begin(torch.zeros(2, dtype=torch.int64, device="meta"))
    for tokens in (torch.zeros(2, dtype=torch.uint8), np.zeros(2, dtype=np.int32), iter([0, 0])):
        two.begin(tokens)
        assert two.wait() == [0, 1]


def test_a_row_without_a_matcher(two) -> None:
    two.begin()
    logits = torch.zeros(3, WIDTH)
    with pytest.raises(ValueError, match="logits have 3 rows, and there are 2 matchers"):
        two.apply_(logits)
    assert logits.eq(0).all()
    assert two.apply_(torch.zeros(2, WIDTH)).isinf().any()


def test_behind_the_end_of_the_thread(two) -> None:
    two.close()
    with pytest.raises(tokfold.MatcherStateError, match=r"begin\(\) after close\(\)"):
        two.begin()


def test_texts_that_have_ended(two) -> None:
    two.begin([token(b"["), token(b"[")])
    assert two.wait() == [0, 1]
    two.begin([token(b"]"), token(b"]")])
    assert two.wait() == [0, 1]
    two.begin([STOP, STOP])
    logits = torch.zeros(2, WIDTH)
    assert two.apply_(logits) is logits  # nobody is left
    assert logits.eq(0).all()
    two.begin([10**9, -1])
    assert two.wait() == []


def test_logits_that_do_not_fit(two) -> None:
    """The masks are still there for logits that do."""
    two.begin()
    for bad, says in (
        (torch.zeros(2, SIZE - 1), "39 columns, and the vocabulary 40 tokens"),
        (torch.zeros(2, WIDTH, dtype=torch.float64), "not torch.float64"),
        (torch.zeros(1, WIDTH), "1 rows, and there are 2 matchers"),
        (torch.zeros(WIDTH), r"shape \(rows, width\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            two.apply_(bad)
        assert bad.eq(0).all()
    for wrong in ([[0.0]], None, 5, np.zeros((2, WIDTH), dtype=np.float32)):
        with pytest.raises(tokfold.ArgumentTypeError, match=r"logits must be a torch\.Tensor, not"):
            two.apply_(wrong)
    assert two.rows == []  # nothing was waited for
    logits = torch.zeros(2, WIDTH)
    assert (two.apply_(logits)[0] == 0).nonzero()[:, 0].tolist() == [token(b"["), token(b"[[")]


def test_ctrl_c_while_masks_are_waited_for(grammars, monkeypatch) -> None:
    """The masks can be waited for again, and nothing is begun beside them."""
    entered, opened = threading.Event(), threading.Event()
    fill = tokfold.torch.overlap.fill_bitmask_batch

    def slow(*args, **options):
        entered.set()
        assert opened.wait(DEADLINE_S)
        return fill(*args, **options)

    monkeypatch.setattr(tokfold.torch.overlap, "fill_bitmask_batch", slow)
    with NextMasks([tokfold.Matcher(grammar) for grammar in grammars[:2]]) as masks:
        masks.begin()
        assert entered.wait(DEADLINE_S)
        pending = masks._pending
        with monkeypatch.context() as patched:

            def interrupted() -> None:
                raise KeyboardInterrupt

            patched.setattr(pending, "result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                masks.wait()
        with pytest.raises(tokfold.MatcherStateError, match="called already"):
            masks.begin()
        opened.set()
        assert masks.wait() == [0, 1]


def test_the_end(two) -> None:
    two.begin()
    two.close()
    assert two.wait() in ([0, 1],)  # what was begun is done
    two.close()
    with pytest.raises(RuntimeError):
        two.begin()
    assert all(thread.name[:11] != "tokfold-nex" for thread in threading.enumerate())


def test_an_error_in_the_block_ends_the_thread(grammars) -> None:

    def fails() -> None:
        with NextMasks([tokfold.Matcher(grammars[0])]) as masks:
            masks.begin()
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert all(thread.name[:11] != "tokfold-nex" for thread in threading.enumerate())


class Slow(tokfold.Matcher):
    """A matcher that may not begin to work."""

    __slots__ = ()
    gate = threading.Event()

    @property
    def is_terminated(self) -> bool:
        assert self.gate.wait(DEADLINE_S)
        return super().is_terminated


def test_tokens_are_read_at_once(grammars) -> None:
    """A caller may use its list for the next step as soon as ``begin()`` is back."""
    Slow.gate.clear()
    matcher = Slow(grammars[0])
    with NextMasks([matcher]) as masks:
        tokens = [token(b"[")]
        masks.begin(tokens)
        tokens[0] = token(b"a")
        Slow.gate.set()
        assert masks.wait() == [0]
    assert matcher.text == b"["


def masked_once(matchers, fold: Fold, logits: torch.Tensor) -> None:
    with NextMasks(matchers, fold=fold) as masks:
        masks.begin()
        masks.apply_(logits)


def test_what_does_not_go_together(grammars, fold, vocabulary) -> None:
    with pytest.raises(ValueError, match="at least one matcher"):
        NextMasks([])
    wide = tokfold.compile(grammars[0].grammar, vocabulary.replace(size=SIZE + 32))
    matchers = [tokfold.Matcher(grammars[0]), tokfold.Matcher(wide)]
    with pytest.raises(ValueError, match="vocabularies of different sizes"):
        NextMasks(matchers)
    for wrong in (5, "fold", grammars[0], False):
        with pytest.raises(tokfold.ArgumentTypeError, match=r"fold must be a .*Fold or None, not"):
            NextMasks(matchers[:1], fold=wrong)
    for wrong in ("x", 1.5, True, [1]):
        with pytest.raises(tokfold.ArgumentTypeError, match="threads must be a whole number, not"):
            NextMasks(matchers[:1], threads=wrong)
    with pytest.raises(ValueError, match="threads must be 0 or more, not -1"):
        NextMasks(matchers[:1], threads=-1)
    late = tokfold.compile(grammars[0].grammar, vocabulary, classes="never")
    logits = torch.zeros(1, WIDTH)
    with pytest.raises((ValueError, tokfold.MatcherStateError), match="classes"):
        masked_once([tokfold.Matcher(late)], fold, logits)
    assert logits.eq(0).all()


def test_a_fold_of_another_grammar(grammars) -> None:
    """Their masks have as many words: whoever does not look writes wrong rows."""
    one, other = grammars[0], grammars[2]
    assert Fold(one).num_words == Fold(other).num_words
    assert not np.array_equal(one.classes.class_of, other.classes.class_of)
    logits = torch.zeros(2, WIDTH)
    matchers = [tokfold.Matcher(one), tokfold.Matcher(other)]
    with pytest.raises(ValueError, match="grammar"):
        masked_once(matchers, Fold(one), logits)
    assert logits.eq(0).all()


def test_the_tables_rows(grammars, fold) -> None:
    """More texts than a table is made for by default, and rows that end all over."""
    matchers = [tokfold.Matcher(grammars[0]) for _ in range(600)]
    for row, matcher in enumerate(matchers):
        assert matcher.accept_tokens([token(b"["), token(b"]")]) == 2
        assert row % 3 or matcher.accept_token(STOP)
    with NextMasks(matchers, fold=fold, threads=2) as masks:
        masks.begin()
        logits = masks.apply_(torch.zeros(600, WIDTH))
    allowed = (logits == 0).sum(dim=1).tolist()
    assert allowed == [WIDTH if row % 3 == 0 else 1 for row in range(600)]
