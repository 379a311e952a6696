"""Prompts whose last tokens are taken back, beside a search over all texts and all tokens."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import tokfold
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles.prompts import allowed, fewest, taken_back
from strategies.profiles import examples

BYTES = [bytes([byte]) for byte in range(256)]
TOKENS = [*BYTES, b"</s>", b'{"', b"name", b'": "', b'"A', b"<s>", b'": "A', b"x", b": "]
STOP, SPECIAL = 256, 261
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP], special_token_ids=[SPECIAL])
LOOSE = tokfold.CompileOptions(check_tokens=False)
ENDS_ITSELF = tokfold.CompileOptions(check_tokens=False, terminate_without_stop_token=True)
NAME = tokfold.compile('root ::= [A-Z]+ "\\"}"', VOCABULARY, classes="never")


def mask(matcher) -> list[int]:
    row = tokfold.allocate_bitmask(1, len(matcher.vocabulary))
    if not matcher.fill_bitmask(row):
        return list(range(len(matcher.vocabulary)))
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def ids(*tokens: bytes) -> list[int]:
    return [TOKENS.index(token) for token in tokens]


def test_a_prompt_that_ends_with_a_quote() -> None:
    prompt = [SPECIAL, *ids(b'{"', b"name", b'": "')]
    healed = tokfold.Matcher(NAME).process_prompt(prompt)
    assert healed.token_ids == prompt[:-1]
    assert healed.matcher.left == b'": "'
    assert mask(healed.matcher) == sorted([*ids(b'"', b'": "', b'": "A')])
    assert not healed.matcher.accept_token(STOP)
    assert not healed.matcher.accept_token(ord("A"))
    assert healed.matcher.accept_token(ord('"'))
    assert mask(healed.matcher) == sorted(ids(b":", b": "))
    assert all(map(healed.matcher.accept_token, ids(b": ", b'"A', b"B")))
    assert healed.matcher.left == b""
    assert healed.matcher.text == b"AB"
    assert healed.matcher.matcher.accept_string('"}')
    assert healed.matcher.is_accepting
    assert healed.matcher.accept_token(STOP)
    assert healed.matcher.is_terminated


def test_nothing_is_taken_back_where_nothing_merges() -> None:
    for prompt in (
        ids(b"x", b"y"),
        [SPECIAL],
        [],
        ids(b'": "'),  # the first token stays
        [*ids(b'": "'), SPECIAL],
        [*ids(b"x", b'"'), STOP],
    ):
        healed = tokfold.Matcher(NAME).process_prompt(prompt)
        assert healed.token_ids == prompt
        assert healed.matcher.left == b""
        assert healed.matcher.matcher.num_steps == 0
    refusing = tokfold.compile('root ::= "b"', VOCABULARY, classes="never")
    assert tokfold.Matcher(refusing).process_prompt(ids(b"x", b'": "')).matcher.left == b""


def test_more_than_the_last_token_is_taken_back() -> None:
    healed = tokfold.Matcher(NAME).process_prompt(ids(b"x", b'"', b": ", b'"'))
    assert healed.token_ids == ids(b"x")
    assert healed.matcher.left == b'": "'


def test_a_token_of_which_only_the_end_merges() -> None:
    tokens = [b"ab", b"bc", b"a", b"c", b"x", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[5])
    compiled = tokfold.compile('root ::= "c"', vocabulary, classes="never", options=LOOSE)
    healed = tokfold.Matcher(compiled).process_prompt([4, 0])
    assert healed.token_ids == [4]
    assert healed.matcher.left == b"ab"
    assert mask(healed.matcher) == [0, 2]
    assert healed.matcher.accept_token(2)
    assert mask(healed.matcher) == [1]
    assert healed.matcher.accept_token(1)
    assert mask(healed.matcher) == [5]


def test_what_tokens_share_is_read_once() -> None:
    tokens = [b"x", b"xaa", b"xab", b"xabc", b"xb", b"xba", b"a", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[7])
    grammar = tokfold.Grammar.choices(["aac", "abd", "ba"])
    compiled = tokfold.compile(grammar, vocabulary, classes="never", options=LOOSE)
    healed = tokfold.Matcher(compiled).process_prompt([6, 0])
    assert mask(healed.matcher) == [0, 1, 2, 4, 5]


def test_a_prompt_in_the_middle_of_a_text() -> None:
    compiled = tokfold.compile(r'root ::= "{\"name\": \"" [A-Z]+ "\"}"', VOCABULARY)
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_string('{"name": "')
    healed = matcher.process_prompt(ids(b"x", b'{"', b"name", b'": "'))
    assert healed.matcher.left == b'": "'
    assert healed.matcher.num_steps == 0
    assert healed.matcher.accept_token(*ids(b'": "A'))
    assert healed.matcher.text == b'{"name": "A'
    healed.matcher.rollback()
    assert healed.matcher.text == matcher.text
    assert matcher.num_steps == 1


@pytest.mark.parametrize("most", [None, 1, 2, 3])
def test_a_token_in_which_the_text_ends_by_itself(most: int | None) -> None:
    """A text ends by itself behind a token, not within one."""
    tokens = [b"x", b'"', b'"a', b'"ab', b"a", b"b", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[6])
    compiled = tokfold.compile('root ::= "a" | "ab"', vocabulary, options=ENDS_ITSELF)
    healed = tokfold.Matcher(compiled, max_tokens=most).process_prompt([0, 1])
    assert (healed.token_ids, healed.matcher.left) == ([0], b'"')
    expected = [2, 3] if most == 1 else [1, 2, 3]
    assert mask(healed.matcher) == expected
    assert [i for i in range(7) if healed.matcher.fork().accept_token(i)] == expected
    assert healed.matcher.accept_token(3)
    assert (healed.matcher.is_terminated, healed.matcher.text) == (True, b"ab")
    healed.matcher.rollback()
    assert healed.matcher.accept_token(2)
    assert (healed.matcher.is_terminated, healed.matcher.text) == (True, b"a")


def test_only_a_token_past_the_end_of_a_shorter_text_merges() -> None:
    tokens = [b"x", b'"', b'"ab', b"a", b"b", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[5])
    for options in (ENDS_ITSELF, LOOSE):
        compiled = tokfold.compile('root ::= "a" | "ab"', vocabulary, options=options)
        healed = tokfold.Matcher(compiled).process_prompt([0, 1])
        assert (healed.token_ids, healed.matcher.left) == ([0], b'"')
        assert mask(healed.matcher) == [1, 2]
    told = tokfold.compile('root ::= "a" | "ab"', vocabulary, options=LOOSE)
    healed = tokfold.Matcher(told, terminate_without_stop_token=True).process_prompt([0, 1])
    assert healed.matcher.left == b'"'


def test_texts_that_may_end_behind_each_byte() -> None:
    """Tokens that share beginnings, all of which are whole texts, among them refused ones."""
    words = [b" a", b" aa", b" aab", b" aaba", b" aabc", b" abba", b" ac", b" b", b" bab", b" bca"]
    tokens = [b"x", b" ", *words, b"a", b"b", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[len(tokens) - 1])
    expected = [1, *(i for i, token in enumerate(tokens) if token in words and b"c" not in token)]
    for most in (None, 2, 5):
        compiled = tokfold.compile("root ::= [ab]+", vocabulary, options=ENDS_ITSELF)
        healed = tokfold.Matcher(compiled, max_tokens=most).process_prompt([0, 1]).matcher
        assert mask(healed) == expected
        assert [i for i in range(len(tokens)) if healed.fork().accept_token(i)] == expected


def test_what_cannot_be_healed() -> None:
    with pytest.raises(tokfold.VocabularyError, match=r"has the token 900, .* 265 tokens"):
        tokfold.Matcher(NAME).process_prompt([900])
    matcher = tokfold.Matcher(NAME)
    assert matcher.accept_tokens([ord("A"), ord('"'), ord("}"), STOP]) == 4
    with pytest.raises(tokfold.MatcherStateError, match="the text has ended"):
        matcher.process_prompt([1])
    healed = tokfold.Matcher(NAME).process_prompt(ids(b"x", b'"'))
    with pytest.raises(tokfold.MatcherStateError, match=r"b'\"' of the prompt is still to be"):
        _ = healed.matcher.matcher
    with pytest.raises(tokfold.VocabularyError, match="token 900 is outside"):
        healed.matcher.accept_token(900)
    with pytest.raises(tokfold.MatcherStateError, match="1 steps cannot be taken back"):
        healed.matcher.rollback()
    with pytest.raises(tokfold.ArgumentTypeError, match="int32"):
        healed.matcher.fill_bitmask(np.zeros((1, 9), np.int64))
    with pytest.raises(ValueError, match="rows of 3 words, not 9"):
        healed.matcher.fill_bitmask(np.zeros((1, 3), np.int32))


def test_batches_and_stop_tokens_of_the_matcher() -> None:
    healed = [tokfold.Matcher(NAME).process_prompt(ids(b"x", b'"')).matcher for _ in range(2)]
    rows = tokfold.allocate_bitmask(3, len(VOCABULARY))
    everyone = [*healed, tokfold.Matcher(NAME)]
    assert tokfold.fill_bitmask_batch(everyone, rows).tolist() == [True] * 3
    found = tokfold.accept_token_batch(everyone, [*ids(b'"A', b"A", b"A")])
    assert found.tolist() == [True, False, True]
    forked = healed[0].fork()
    tokfold.rollback_batch(healed, [1, 0])
    assert [one.left for one in (*healed, forked)] == [b'"', b'"', b""]
    other = tokfold.Matcher(NAME, stop_token_ids=[ord('"')])
    assert other.process_prompt(ids(b"x", b'"')).matcher.left == b""  # a stop token is no text


def test_a_processor_of_a_prompt() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokfold.transformers import GrammarLogitsProcessor

    healed = tokfold.Matcher(NAME).process_prompt([SPECIAL, *ids(b'"')])
    constrain = GrammarLogitsProcessor(healed.matcher)
    width = len(VOCABULARY)
    found = constrain(torch.tensor([healed.token_ids]), torch.zeros(1, width))
    assert found[0].isfinite().nonzero()[:, 0].tolist() == sorted(ids(b'"', b'"A'))
    told = torch.tensor([[*healed.token_ids, *ids(b'"A')]])
    found = constrain(told, torch.zeros(1, width))
    assert found[0].isfinite().nonzero()[:, 0].tolist() == mask(healed_by(b"A"))


def healed_by(text: bytes):
    matcher = tokfold.Matcher(NAME)
    assert matcher.accept_bytes(text)
    return matcher


class Tokenizer:
    """The longest tokens, as llguidance asks for them."""

    eos_token_id = STOP
    bos_token_id = None
    special_token_ids = (STOP, SPECIAL)
    tokens = TOKENS

    def __call__(self, text: str | bytes) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return VOCABULARY.encode_greedy(data)


@pytest.mark.parametrize(
    "prompt",
    [
        ids(b'{"', b"name", b'": "'),
        ids(b'{"', b"name", b'"'),
        ids(b"y", b'"'),
        ids(b"y", b"name"),
        ids(b"y", b'"', b": ", b'"'),
    ],
)
def test_llguidance_takes_back_the_same(prompt) -> None:
    llguidance = pytest.importorskip("llguidance")
    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
    lark = llguidance.LLMatcher.grammar_from_lark('start: /[A-Z]+/ "\\"}"')
    theirs = llguidance.LLInterpreter(tokenizer, lark, log_level=0)
    healed = tokfold.Matcher(NAME).process_prompt(prompt)
    assert healed.token_ids == theirs.process_prompt(prompt)
    allowed, _ = theirs.compute_mask()
    assert mask(healed.matcher) == [i for i, bit in enumerate(allowed[: len(TOKENS)]) if bit]


def test_tokens_of_the_prompt_count() -> None:
    healed = tokfold.Matcher(NAME, max_tokens=5).process_prompt(ids(b"x", b'"')).matcher
    assert healed.tokens_left == 5
    assert mask(healed) == sorted(ids(b'"', b'"A'))
    forked = healed.fork()
    assert forked.accept_token(*ids(b'"A'))
    assert (forked.tokens_left, mask(forked)) == (4, sorted([*range(65, 91), 34]))
    assert healed.accept_token(*ids(b'"'))
    assert (healed.left, healed.tokens_left) == (b"", 4)
    assert mask(healed) == list(range(65, 91))
    assert healed.accept_token(65)
    assert mask(healed) == ids(b'"')
    assert not healed.accept_token(65)
    healed.rollback(2)
    assert (healed.left, healed.tokens_left) == (b'"', 5)
    assert mask(healed) == sorted(ids(b'"', b'"A'))
    least = tokfold.Matcher(NAME, max_tokens=4).process_prompt(ids(b"x", b'"')).matcher
    assert mask(least) == ids(b'"A')
    assert not least.accept_token(*ids(b'"'))
    assert least.accept_bytes(b'"A')  # bytes are no tokens
    assert least.tokens_left == 4
    either = tokfold.compile('root ::= "AAA" | "b"', VOCABULARY, classes="never")
    with pytest.raises(tokfold.TokenBudgetError, match="behind it take 3") as caught:
        tokfold.Matcher(either, max_tokens=2).process_prompt(ids(b"x", b'"'))
    assert (caught.value.needed, caught.value.tokens_left) == (3, 2)
    short = tokfold.Matcher(either, max_tokens=3).process_prompt(ids(b"x", b'"')).matcher
    assert mask(short) == ids(b'"')  # not `"A`, behind which three tokens are needed
    assert not short.accept_token(*ids(b'"A'))
    untouched = tokfold.Matcher(NAME, max_tokens=5).process_prompt(ids(b"x", b"y")).matcher
    assert (untouched.left, untouched.tokens_left) == (b"", 5)


def test_a_call_that_ends_early_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    healed = tokfold.Matcher(NAME, max_tokens=5).process_prompt(ids(b"x", b'"')).matcher

    def ended(*_: object) -> list[int]:
        raise tokfold.CancelledError("the matcher was cancelled")

    with monkeypatch.context() as patched:
        patched.setattr("tokfold.prompt._TokenEnds.fewest", ended)
        with pytest.raises(tokfold.CancelledError):
            healed.accept_token(*ids(b'"A'))
    assert (healed.left, healed.text, healed.num_steps, healed.tokens_left) == (b'"', b"", 0, 5)
    assert mask(healed) == sorted(ids(b'"', b'"A'))


def test_an_end_far_away() -> None:
    """Prompts whose end has hundreds of bytes, and long tokens, ask no deep recursion."""
    long = b"a" * 3000
    tokens = [b"a", long + b"b", b"x", b"</s>", b"b"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[3])
    compiled = tokfold.compile('root ::= "b" "a"', vocabulary, classes="never", options=LOOSE)
    healed = tokfold.Matcher(compiled, max_tokens=3001).process_prompt([2, *[0] * 3000])
    assert healed.token_ids == [2]
    assert mask(healed.matcher) == [1]


PIECES = st.text("ab", min_size=1, max_size=4).map(str.encode)


@examples(300)
@given(
    pieces=st.lists(PIECES, min_size=1, max_size=8),
    texts=st.lists(st.text("ab", max_size=4), min_size=1, max_size=4),
    prompt=st.lists(st.integers(0, 11), max_size=5),
    most=st.none() | st.integers(1, 9),
    ends_itself=st.booleans(),
    data=st.data(),
)
def test_all_masks_are_those_of_the_definition(
    pieces: Sequence[bytes],
    texts: list[str],
    prompt: list[int],
    most: int | None,
    ends_itself: bool,
    data: st.DataObject,
) -> None:
    assume(not ends_itself or "" not in texts)  # it has ended before the prompt is healed
    tokens = [b"a", b"b", *pieces, b"</s>", b"<b>"]
    stop, special = len(tokens) - 2, len(tokens) - 1
    vocabulary = tokfold.Vocabulary(tokens, [stop], [special])
    prompt = [min(i, special) for i in prompt]
    compiled = tokfold.compile(
        tokfold.Grammar.choices(texts),
        vocabulary,
        classes="never",
        options=ENDS_ITSELF if ends_itself else None,
    )
    language = [text.encode() for text in texts]
    count = taken_back(tokens, {stop, special}, prompt, language)
    end = b"".join(tokens[i] for i in prompt[len(prompt) - count :])
    needed = fewest(tokens, {stop, special}, end, b"", language, ends_itself)
    if most is not None and needed > most:
        with pytest.raises(tokfold.TokenBudgetError) as caught:
            tokfold.Matcher(compiled, max_tokens=most).process_prompt(prompt)
        alone = fewest(tokens, {stop, special}, b"", b"", language, ends_itself)
        assert caught.value.needed in (needed, alone)
        return
    healed = tokfold.Matcher(compiled, max_tokens=most).process_prompt(prompt)
    assert healed.token_ids == prompt[: len(prompt) - count]
    assert healed.matcher.left == end
    written, left = b"", math.inf if most is None else most
    for _ in range(6):
        expected = allowed(tokens, stop, special, end, written, language, left, ends_itself)
        assert mask(healed.matcher) == expected
        for token_id in range(len(tokens)):
            one = healed.matcher.fork()
            assert one.accept_token(token_id) is (token_id in expected)
            if token_id in expected:
                one.rollback()
                assert mask(one) == expected
        choice = data.draw(st.sampled_from(expected))
        assert healed.matcher.accept_token(choice)
        if choice == stop:
            break
        written, left = written + tokens[choice], left - 1
        is_whole = ends_itself and written in [end + text for text in language]
        assert healed.matcher.is_terminated is is_whole
        if is_whole:
            break
    assert healed.matcher.text == written[len(end) :]


def test_the_oracle() -> None:
    tokens = [b"a", b"b", b"ab", b"</s>"]
    assert taken_back(tokens, {3}, [1, 0], [b"b"]) == 1
    assert taken_back(tokens, {3}, [0], [b"b"]) == 0
    assert taken_back(tokens, {3}, [1, 0], [b"a"]) == 0
    assert allowed(tokens, 3, 3, b"a", b"", [b"b"]) == [0, 2]
    assert allowed(tokens, 3, 3, b"a", b"ab", [b"b"]) == [3]
    assert list(itertools.chain(*[allowed(tokens, 3, 3, b"", b"", [])])) == []


def test_the_mask_of_a_prompt_has_the_limits_of_a_mask() -> None:
    """Hundreds of tokens begin with the space that the prompt ends with."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f" {a}{b}{c}".encode() for a in letters for b in letters for c in "aeiou"]
    vocabulary = tokfold.Vocabulary([b"x", b" ", *words, b"</s>"], [2 + len(words)])
    source = 'root ::= ([a-z] | "(" root ")")*'
    free = tokfold.compile(source, vocabulary, classes="never", options=LOOSE)
    healed = tokfold.Matcher(free).process_prompt([0, 1]).matcher
    assert mask(healed) == list(range(1, 2 + len(words)))
    narrow = tokfold.compile("root ::= [a-m]*", vocabulary, classes="never", options=LOOSE)
    healed = tokfold.Matcher(narrow).process_prompt([0, 1]).matcher
    inside = [2 + i for i, word in enumerate(words) if all(97 <= byte <= 109 for byte in word[1:])]
    assert mask(healed) == [1, *inside]
    limits = tokfold.Limits(max_mask_work=1)
    bounded = tokfold.compile(source, vocabulary, classes="never", options=LOOSE, limits=limits)
    healed = tokfold.Matcher(bounded).process_prompt([0, 1]).matcher
    bitmask = tokfold.allocate_bitmask(1, len(vocabulary))
    with pytest.raises(tokfold.LimitExceededError, match="max_mask_work"):
        healed.fill_bitmask(bitmask)


def test_the_mask_of_a_prompt_has_no_item_twice() -> None:
    tokens = [b"x", b" ", b' "a"', b' "b"', b' "', *(bytes([i]) for i in range(33, 126)), b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, [len(tokens) - 1])
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    compiled = tokfold.compile(tokfold.Grammar.from_json_schema(schema), vocabulary)
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_string('["a",')
    healed = matcher.process_prompt([0, 1]).matcher
    assert healed.left == b" "
    assert [token for token in (2, 3, 4) if token in mask(healed)] == [3, 4]


def test_nothing_new_begins_in_the_end_of_a_prompt_either() -> None:
    """Of the last tokens none takes the text further from its end, as without a prompt."""
    tokens = [b"q", b"x", b"[", b"]", b"[[[", b"x[", b"x[[[", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[7])
    compiled = tokfold.compile('root ::= "[" root* "]"', vocabulary)

    def healed(prefer_end: int) -> tokfold.PromptMatcher:
        matcher = tokfold.Matcher(compiled, max_tokens=10, prefer_end=prefer_end)
        return matcher.process_prompt([0, 1]).matcher

    assert mask(healed(0)) == [1, 5, 6]
    assert mask(healed(9)) == [1, 5, 6]  # one token is left before the last nine
    near = healed(10)
    assert near.left == b"x"
    assert mask(near) == [1, 5]
    assert not near.accept_token(6)
    assert near.fork().accept_bytes(b"x[[[")  # which are no tokens of the budget
    assert near.fork().accept_token(1)
    assert near.accept_token(5)
    assert (near.tokens_left, near.matcher.prefer_end) == (9, 10)
    assert mask(near) == [3]
