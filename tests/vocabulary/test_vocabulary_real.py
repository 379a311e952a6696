"""Real tokenizers, every id. Set TOKFOLD_TOKENIZERS to a folder; all tokenizer.json in it count."""

from __future__ import annotations

import json
import sys

import pytest
from support.tokenizers import folders
from tokfold.vocabulary import Vocabulary
from vocabulary.vocabulary_samples import SENTENCES, decoded_in_context, gpt2_alphabet

FOLDERS = folders()

pytestmark = pytest.mark.skipif(
    not FOLDERS, reason="no tokenizers: TOKFOLD_TOKENIZERS names none, and no folder beside has any"
)


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def case(request):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(request.param / "tokenizer.json"))
    return request.param, tokenizer, Vocabulary.from_file(request.param)


def test_as_tokenizers_decodes(case):
    _, tokenizer, vocabulary = case
    plain = tokenizer.token_to_id("a")
    for token_id in range(tokenizer.get_vocab_size()):
        expected = decoded_in_context(tokenizer, token_id, plain, plain)
        assert vocabulary[token_id].decode(errors="replace") == expected, token_id


def test_bytes_of_a_byte_level_vocabulary(case):
    _, tokenizer, vocabulary = case
    if vocabulary.kind != "byte_level":
        pytest.skip("not byte-level")
    inverse = {character: byte for byte, character in gpt2_alphabet().items()}
    for text, token_id in tokenizer.get_vocab().items():
        known = all(character in inverse for character in text)
        expected = bytes(inverse[character] for character in text) if known else text.encode()
        assert vocabulary[token_id] == expected, text


def test_special_and_stop_tokens(case):
    folder, tokenizer, vocabulary = case
    added = tokenizer.get_added_tokens_decoder()
    special = {token_id for token_id, token in added.items() if token.special}
    assert special, "its library marks some"
    assert {*vocabulary.special_token_ids, *vocabulary.stop_token_ids} == special
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    eos = config["eos_token"]
    eos = eos if isinstance(eos, str) else eos["content"]
    assert tokenizer.token_to_id(eos) in vocabulary.stop_token_ids
    assert not set(vocabulary.special_token_ids) & set(vocabulary.stop_token_ids)
    for token_id, token in added.items():
        assert vocabulary[token_id] == token.content.encode()


def test_stop_tokens_are_those_of_transformers(case):
    transformers = pytest.importorskip("transformers")
    folder, _, vocabulary = case
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    loaded = Vocabulary.from_huggingface(tokenizer, size=len(vocabulary))
    assert loaded.stop_token_ids == vocabulary.stop_token_ids == (tokenizer.eos_token_id,)
    assert loaded.special_token_ids == vocabulary.special_token_ids


def test_encoded_text_comes_back(case):
    _, tokenizer, vocabulary = case
    for text in SENTENCES:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert vocabulary.decode(ids).decode().lstrip() == text


def test_as_xgrammar_decodes(case):
    xgrammar = pytest.importorskip("xgrammar")
    transformers = pytest.importorskip("transformers")
    folder, _, vocabulary = case
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(vocabulary))
    decoded = info.decoded_vocab
    if info.vocab_type == xgrammar.VocabType.RAW:
        decoded = [token.replace("▁".encode(), b" ") for token in decoded]
    assert list(vocabulary) == decoded
    assert set(info.stop_token_ids) <= set(vocabulary.stop_token_ids)
    assert Vocabulary.from_huggingface(tokenizer, size=len(vocabulary)).token_bytes == (
        vocabulary.token_bytes
    )


def test_loads_fast(case):
    """By a few calls of Python for each token, counted."""
    folder, _, _ = case
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        vocabulary = Vocabulary.from_file(folder)
    finally:
        sys.setprofile(before)
    assert calls < 20 * len(vocabulary)
