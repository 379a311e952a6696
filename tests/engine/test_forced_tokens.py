"""Forced tokens: the mask allows them, with a budget too, and a tokenizer writes them so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tokfold
import tokfold.structural_tags
from hypothesis import given
from hypothesis import strategies as st
from strategies.profiles import examples

BYTES = [bytes([byte]) for byte in range(256)]
LOOSE = tokfold.CompileOptions(check_tokens=False)
CALL = r'root ::= "{\"name\":" [0-9]+ "}"'


def mask(matcher: tokfold.Matcher) -> list[int]:
    row = tokfold.allocate_bitmask(1, len(matcher.vocabulary))
    if not matcher.fill_bitmask(row):
        return list(range(len(matcher.vocabulary)))
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


# ------------------------------------------------------------------ tokens that are taken whole

FIRST, SECOND, AB, END = 256, 257, 258, 259
MARKED = tokfold.Vocabulary(
    [*BYTES, b"<|a|>", b"<|b|>", b"ab", b"</s>"],
    special_token_ids=[FIRST, SECOND],
    stop_token_ids=[END],
)


@pytest.mark.parametrize(
    ("text", "forced"),
    [
        ('root ::= Token(256) "ab" Token(257) [xy]', [FIRST, AB, SECOND]),
        ('root ::= "ab" Token(256)', [AB, FIRST]),
        ('root ::= Token(256) Token(257) "a" [bc]', [FIRST, SECOND]),  # "ab" may come
        ('root ::= Token(256) "a" Token(257)', [FIRST, 97, SECOND]),  # nothing merges before it
        ("root ::= Token(256, 257)", []),
        ('root ::= Token(256) | "x"', []),
        ('root ::= "ab" (Token(256) "x")?', [AB]),  # the text may end
        ('root ::= ExcludeToken(256) "x"', []),
        ('root ::= Token(97) "b"', [97, 98]),  # a token of text, taken whole
    ],
)
def test_tokens_that_are_taken_whole(text: str, forced: list[int]) -> None:
    compiled = tokfold.compile(text, MARKED, classes="never")
    matcher = tokfold.Matcher(compiled)
    assert matcher.forced_tokens() == forced
    assert matcher.num_steps == 0
    for token in forced:
        if token in (FIRST, SECOND):
            assert mask(matcher) == [token]
        assert matcher.accept_token(token)


def test_tokens_that_are_taken_whole_with_bounds() -> None:
    many = tokfold.compile('root ::= Token(256){300} "x"', MARKED, classes="never")
    assert tokfold.Matcher(many).forced_tokens(limit=5) == [FIRST] * 5
    assert tokfold.Matcher(many).forced_tokens(limit=0) == []
    assert tokfold.Matcher(many).forced_tokens() == [*[FIRST] * 300, ord("x")]
    assert tokfold.Matcher(many, max_tokens=302).forced_tokens() == [*[FIRST] * 300, ord("x")]
    alone = tokfold.compile("root ::= Token(256)", MARKED, classes="never")
    ended = tokfold.Matcher(alone, terminate_without_stop_token=True)
    assert ended.forced_tokens() == [FIRST]


def test_the_marker_of_a_required_call() -> None:
    tokens = [*BYTES, b"[TOOL_CALLS]", b"[ARGS]", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, special_token_ids=[256, 257], stop_token_ids=[258])
    tool = {"type": "function", "function": {"name": "go", "parameters": {"type": "object"}}}
    tag = tokfold.structural_tags.for_model("mistral", [tool], tool_choice="required")
    matcher = tokfold.Matcher(tokfold.compile(tag, vocabulary, classes="never"))
    assert matcher.forced_tokens() == [256]
    assert mask(matcher) == [256]


# ------------------------------------------------------------------ with a budget


def test_forced_tokens_that_the_budget_has_no_room_for() -> None:
    tokens = [b"ab", b"abc", b"cdef", b"d", b"e", b"f", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[6])
    compiled = tokfold.compile('root ::= "abcdef"', vocabulary)
    expected = {None: [1, 3, 4, 5], 5: [1, 3, 4, 5], 4: [], 3: []}
    for most, forced in expected.items():
        matcher = tokfold.Matcher(compiled, max_tokens=most)
        assert matcher.forced_tokens() == forced
        assert matcher.fork().accept_tokens(forced) == len(forced)
        assert (matcher.num_steps, matcher.tokens_left) == (0, most)
        assert matcher.forced_bytes() == b"abcdef"  # the grammar forces them in any case
        assert matcher.expected_bytes == b"a"
    matcher = tokfold.Matcher(compiled, max_tokens=3)
    assert mask(matcher) == [0]


def test_the_first_forced_tokens_fit() -> None:
    """Of ``x``, ``abc``, ``d``, ``e``, ``f`` only ``x`` leaves enough."""
    tokens = [b"ab", b"abc", b"cdef", b"d", b"e", b"f", b"x", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[7])
    compiled = tokfold.compile('root ::= "xabcdef"', vocabulary)
    matcher = tokfold.Matcher(compiled, max_tokens=4)
    assert matcher.forced_tokens() == [6]
    assert matcher.forced_tokens(lambda _: [6, 0, 2]) == [6, 0, 2]
    assert matcher.accept_tokens([6]) == 1
    assert matcher.forced_tokens() == []
    assert mask(matcher) == [0]
    assert tokfold.Matcher(compiled, max_tokens=6).forced_tokens() == [6, 1, 3, 4, 5]


def test_forced_tokens_with_prefer_end() -> None:
    tokens = [b"a", b"aa", b"aab", b"b", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[4])
    compiled = tokfold.compile('root ::= "aab" | "aac"', vocabulary, options=LOOSE)
    for prefer_end in (0, 3):
        matcher = tokfold.Matcher(compiled, max_tokens=3, prefer_end=prefer_end)
        forced = matcher.forced_tokens()
        assert set(forced[:1]) <= set(mask(matcher))
        assert matcher.accept_tokens(forced) == len(forced)


@examples(200)
@given(
    pieces=st.lists(st.text("ab", min_size=1, max_size=4), max_size=8),
    text=st.text("ab", min_size=1, max_size=8),
    ends=st.lists(st.text("ab", max_size=3), min_size=1, max_size=2),
    most=st.none() | st.integers(1, 9),
    data=st.data(),
)
def test_every_forced_token_is_allowed_in_its_turn(
    pieces: list[str], text: str, ends: list[str], most: int | None, data: st.DataObject
) -> None:
    tokens = [*(piece.encode() for piece in pieces), b"a", b"b", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[len(tokens) - 1])
    grammar = tokfold.Grammar.choices([text + end for end in ends])
    compiled = tokfold.compile(grammar, vocabulary, classes="never")

    def encode(said: str) -> list[int]:
        """Any split of a text."""
        left, ids = said.encode(), []
        while left:
            fit = [i for i, token in enumerate(tokens[:-1]) if left.startswith(token)]
            ids.append(data.draw(st.sampled_from(fit)))
            left = left[len(tokens[ids[-1]]) :]
        return ids

    try:
        matcher = tokfold.Matcher(compiled, max_tokens=most)
    except tokfold.TokenBudgetError:
        return
    free = tokfold.Matcher(compiled)
    assert matcher.forced_tokens() == free.forced_tokens()[: len(matcher.forced_tokens())]
    for forced in (matcher.forced_tokens(), matcher.forced_tokens(encode)):
        ahead = matcher.fork()
        for token_id in forced:
            assert token_id in mask(ahead)
            assert ahead.accept_token(token_id)
        assert matcher.num_steps == 0


# ------------------------------------------------------------------ of a tokenizer


def longest(vocabulary: tokfold.Vocabulary, before: str) -> Callable[[str], Sequence[int]]:
    """A tokenizer that puts a text before each, and takes the longest tokens."""
    return lambda text: vocabulary.encode_greedy((before + text).encode())


def test_a_space_before_each_text() -> None:
    tokens = [*BYTES, b"</s>", b' {"', b'{"', b"name", b'":', b"\n{"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[256])
    matcher = tokfold.Matcher(tokfold.compile(CALL, vocabulary, classes="never"))
    alone = matcher.forced_tokens(longest(vocabulary, ""))
    assert alone == [258, 259, 260]
    assert matcher.forced_tokens(longest(vocabulary, " ")) == alone  # "\n{" is a token: "a" then
    assert matcher.accept_tokens(alone) == 3
    calls: list[str] = []
    assert matcher.forced_tokens(lambda text: calls.append(text) or []) == []
    assert calls == []  # there is nothing to encode


def test_a_text_that_begins_with_a_space() -> None:
    """Tokenizers with Metaspace put none before it; those with Prepend put a second one."""
    tokens = [*BYTES, b"</s>", b"  ", b" {", b'"n']
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[256])
    compiled = tokfold.compile(r'root ::= " {\"name\"" [0-9]', vocabulary, classes="never")
    matcher = tokfold.Matcher(compiled)
    expected = [258, 259, *b"ame"]
    for before in ("", " "):
        assert matcher.forced_tokens(longest(vocabulary, before)) == expected


def test_tokenizers_that_write_another_text() -> None:
    tokens = [*BYTES, b"</s>", b"<s>", *(before + b"{" for before in (b"\n", b"a", b"0"))]
    tokens += [b".{", b"={"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[256], special_token_ids=[257])
    matcher = tokfold.Matcher(tokfold.compile(CALL, vocabulary, classes="never"))

    def refused(encode: Callable[[str], Sequence[int]]) -> str:
        with pytest.raises(tokfold.VocabularyError) as caught:
            matcher.forced_tokens(encode)
        return str(caught.value)

    spaced = longest(vocabulary, " ")
    for special in (257, 256):
        said = refused(lambda text: [special, *spaced(text)])  # noqa: B023
        assert "leave out special tokens" in said
        assert "space" not in said
    said = refused(spaced)
    assert said.startswith(
        "encode must write the text '{\"name\":' alone, and wrote b' {\"name\":'"
    )
    assert r"puts a space before each text, and what stands before it (one of '\n', 'a'," in said
    assert said.endswith("or call forced_tokens() without one")
    for nothing in (None, "ids", [0.5]):
        with pytest.raises(tokfold.ArgumentTypeError, match=r"^the result of encode"):
            matcher.forced_tokens(lambda text, nothing=nothing: nothing)
    said = refused(lambda text: list(text.upper().encode()))
    assert "the tokenizer changes this text" in said
    assert matcher.num_steps == 0


def llama_2() -> Any:
    """A tokenizer as Llama 2's: a space before each text is a part of its normalization."""
    tokenizers = pytest.importorskip("tokenizers")
    decoders, normalizers = tokenizers.decoders, tokenizers.normalizers
    pieces = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["▁", *'{"name:}', "na", "me", "name", "▁{"]
    vocab = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
    merges = [("n", "a"), ("m", "e"), ("na", "me"), ("▁", "{")]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            vocab=vocab, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.add_special_tokens(["<unk>", "</s>"])
    return tokenizer


def metaspace() -> Any:
    """The same tokenizer as tokenizer.json has it today: a step before the pieces."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = llama_2()
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
    return tokenizer


@pytest.mark.parametrize("build", [llama_2, metaspace])
def test_tokenizers_of_sentencepiece(build: Callable[[], Any]) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=build(), eos_token="</s>")
    vocabulary = tokfold.Vocabulary.from_huggingface(tokenizer)
    matcher = tokfold.Matcher(tokfold.compile(CALL, vocabulary, classes="never"))
    forced = matcher.forced_tokens(lambda text: tokenizer.encode(text, add_special_tokens=False))
    assert [vocabulary[i] for i in forced] == [b"{", b'"', b"name", b'"', b":"]
    assert matcher.accept_tokens(forced) == len(forced)


def test_byte_level_with_a_space_before_each_text() -> None:
    """As RoBERTa's: the space is a part of the first word."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: place for place, piece in enumerate([*alphabet, "na", "Ġna", '{"', "</s>"])}
    merges = [("n", "a"), ("Ġ", "na"), ("{", '"')]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["</s>"])
    vocabulary = tokfold.Vocabulary.from_huggingface(tokenizer)

    def forced(text: str) -> list[bytes]:
        compiled = tokfold.compile(f"root ::= {text} [0-9]", vocabulary, classes="never")
        found = tokfold.Matcher(compiled).forced_tokens(lambda said: tokenizer.encode(said).ids)
        return [vocabulary[i] for i in found]

    assert forced(r'"{\"nam\":"') == [b'{"', b"na", b"m", b'"', b":"]
    assert forced('"nam:"') == [b"na", b"m", b":"]
    assert forced('" nam:"') == [b" na", b"m", b":"]
