"""Added tokens that the tokenizers library normalizes: their bytes are those of decoded text."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

tokenizers = pytest.importorskip("tokenizers")

import tokfold  # noqa: E402
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers  # noqa: E402
from tokfold._loaders.byte_decoding import BYTE_LEVEL_ALPHABET  # noqa: E402
from tokfold._loaders.normalizing import _normalized  # noqa: E402

TEXTS = [
    "<TOOL>",
    "Hello World",
    "ＡＢｃ",
    " lead",
    "tail\t ",
    "x▁y",
    "ﬁ",
    "éÀ",
    "e\u0301\u20dd",
    "ΣΑΣ",
    "İ",
    "\x1c\x85\u3000z\u200b",
    "\x01\x7f\u2028w",
    "  ",
    "A",
]
NORMALIZERS = {
    "none": None,
    "Lowercase": normalizers.Lowercase(),
    "NFC": normalizers.NFC(),
    "NFD": normalizers.NFD(),
    "NFKC": normalizers.NFKC(),
    "NFKD": normalizers.NFKD(),
    "Prepend": normalizers.Prepend("▁"),
    "Replace": normalizers.Replace(" ", "▁"),
    "Strip": normalizers.Strip(),
    "Strip of the left": normalizers.Strip(left=True, right=False),
    "StripAccents": normalizers.StripAccents(),
    "ByteLevel": normalizers.ByteLevel(),
    "Nmt": normalizers.Nmt(),
    "of Llama 2": normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    "a sequence of all": normalizers.Sequence(
        [
            normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD()]),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Strip(),
            normalizers.Prepend("<"),
        ]
    ),
}


def byte_level() -> Tokenizer:
    vocabulary = {letter: at for at, letter in enumerate(sorted(BYTE_LEVEL_ALPHABET))}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.decoder = decoders.ByteLevel()
    return made


def byte_fallback() -> Tokenizer:
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdeA"]
    vocabulary = {piece: at for at, piece in enumerate(pieces)}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True, unk_token="<unk>"))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)])
    return made


MODELS = {"byte level": byte_level, "byte fallback": byte_fallback}


def made(model: str, normalizer: object, *, special: bool, normalized: bool = True) -> Tokenizer:
    tokenizer = MODELS[model]()
    tokenizer.normalizer = normalizer
    tokenizer.add_tokens(
        [AddedToken(text, normalized=normalized, special=special) for text in TEXTS]
    )
    return tokenizer


def of_file(tokenizer: Tokenizer, folder: Path) -> tokfold.Vocabulary:
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokfold.Vocabulary.from_file(folder, stop_token_ids=[])


def check(tokenizer: Tokenizer, *vocabularies: tokfold.Vocabulary) -> None:
    anchor = tokenizer.token_to_id("a")
    for text in TEXTS:
        token_id = tokenizer.token_to_id(text)
        decoded = tokenizer.decode([anchor, token_id, anchor], skip_special_tokens=False)
        for vocabulary in vocabularies:
            assert (b"a" + vocabulary[token_id] + b"a").decode("utf-8", "replace") == decoded, text


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("normalizer", NORMALIZERS.values(), ids=NORMALIZERS)
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_bytes_are_those_of_decoded_text(model, normalizer, special, normalized, tmp_path) -> None:
    tokenizer = made(model, normalizer, special=special, normalized=normalized)
    read = tokfold.Vocabulary.from_huggingface(tokenizer, stop_token_ids=[])
    check(tokenizer, read, of_file(tokenizer, tmp_path))


def test_those_of_transformers(tmp_path) -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made("byte fallback", normalizers.Lowercase(), special=False),
        eos_token=AddedToken("</S>", normalized=True, special=True),
    )
    fast.save_pretrained(tmp_path)
    again = transformers.AutoTokenizer.from_pretrained(tmp_path)
    vocabularies = [
        tokfold.Vocabulary.from_huggingface(fast),
        tokfold.Vocabulary.from_huggingface(again),
        tokfold.Vocabulary.from_file(tmp_path),
    ]
    for text in ("<TOOL>", "ΣΑΣ"):
        token_id = fast.convert_tokens_to_ids(text)
        for vocabulary in vocabularies:
            assert (
                vocabulary[token_id].decode() == fast.decode([token_id]) == again.decode(token_id)
            )
    # The end of text is found by its name.
    end = fast.eos_token_id
    for vocabulary in vocabularies:
        assert vocabulary.stop_token_ids == (end,)
        assert vocabulary[end].decode() == fast.decode([end])


def test_names_of_such_tokens_are_those_of_the_file(tmp_path) -> None:
    """A known end of text, and ``special_tokens``, by what the file calls them."""
    tokenizer = byte_fallback()
    tokenizer.normalizer = normalizers.Prepend("▁")
    tokenizer.add_tokens([AddedToken("</s>", normalized=True, special=True)])
    end = tokenizer.token_to_id("</s>")
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.warns(tokfold.StopTokenWarning):
        assert tokfold.Vocabulary.from_file(tmp_path).stop_token_ids == (end,)
    named = tokfold.Vocabulary.from_file(tmp_path, stop_token_ids=[], special_tokens={"</s>": end})
    assert named[end] == b" </s>"
    assert named.special_token_ids == (end,)


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
        normalizers.Sequence([normalizers.NFC(), normalizers.BertNormalizer()]),
    ],
)
def test_a_normalizer_that_is_not_read(normalizer, tmp_path) -> None:
    """The bytes of a token that it may change are not known; those of special ones do not count."""
    tokenizer = made("byte fallback", normalizer, special=False)
    check(tokenizer, tokfold.Vocabulary.from_huggingface(tokenizer, stop_token_ids=[]))
    with pytest.raises(
        tokfold.VocabularyError,
        match=r"added token 'A' is normalized by '(Replace|BertNormalizer)', which .*\.from_hug",
    ):
        of_file(tokenizer, tmp_path)
    of_file(made("byte fallback", normalizer, special=True), tmp_path)
    plain = made("byte fallback", normalizer, special=False, normalized=False)
    check(plain, of_file(plain, tmp_path))


@pytest.mark.parametrize(
    "normalizer",
    [
        7,
        [],
        {"type": 7},
        {"type": "Sequence"},
        {"type": "Prepend"},
        {"type": "Replace", "pattern": {"String": 7}, "content": ""},
        {"type": "Strip"},
    ],
)
def test_a_damaged_normalizer(normalizer, tmp_path) -> None:
    tokenizer = made("byte fallback", None, special=False)
    content = json.loads(tokenizer.to_str())
    content["normalizer"] = normalizer
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with warnings.catch_warnings(), pytest.raises(tokfold.VocabularyError, match="normalize"):
        tokfold.Vocabulary.from_file(tmp_path, stop_token_ids=[])


def test_a_deep_normalizer(tmp_path) -> None:
    tokenizer = made("byte fallback", None, special=False)
    content = json.loads(tokenizer.to_str())
    content["normalizer"] = "DEEP"
    deep = '{"type": "Sequence", "normalizers": [' * 400 + '{"type": "NFC"}' + "]}" * 400
    text = json.dumps(content).replace('"DEEP"', deep)
    (tmp_path / "tokenizer.json").write_text(text)
    read = tokfold.Vocabulary.from_file(tmp_path, stop_token_ids=[])
    assert read.token_bytes[tokenizer.token_to_id("ﬁ")].decode() == "ﬁ"


@pytest.mark.parametrize("name", ["Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents"])
def test_characters_are_normalized_as_by_the_library_or_not_at_all(name) -> None:
    """Tables of Unicode differ by version; each of these characters is another in some of them."""
    normalize = NORMALIZERS[name].normalize_str
    followed = 0
    for code in (0x7FD, 0x1C89, 0x32FF, 0xA7CB, 0xA7F2, 0x11938, *range(0xA0, 0x30000, 7)):
        if not 0xD800 <= code < 0xE000:
            made = _normalized(f"x{chr(code)}Y", {"type": name})
            followed += made is not None
            assert made in (None, normalize(f"x{chr(code)}Y")), hex(code)
    assert followed > 10_000
    assert _normalized("\U0001f600", {"type": name}) == "\U0001f600"
