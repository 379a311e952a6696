"""tokenizer.json and tokenizer objects, against what tokenizers, transformers, XGrammar decode."""

from __future__ import annotations

import json
import warnings

import pytest
from tokfold.errors import StopTokenWarning, VocabularyError
from tokfold.vocabulary import Vocabulary
from vocabulary.vocabulary_samples import (
    ADDED_SPECIAL,
    BUILDERS,
    SENTENCES,
    byte_fallback_bpe,
    byte_level_bpe,
    decoded_in_context,
    gpt2_alphabet,
    unigram,
    write_json,
)

tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture(params=BUILDERS)
def tokenizer(request):
    return BUILDERS[request.param]()


def from_file(tokenizer, tmp_path, **changes):
    content = json.loads(tokenizer.to_str()) | changes
    return Vocabulary.from_file(write_json(tmp_path / "tokenizer.json", content))


def wrapped(tokenizer, **arguments):
    transformers = pytest.importorskip("transformers")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **arguments)


class TestAgainstTheLibraries:
    def test_every_id_as_tokenizers_decodes_it(self, tokenizer, tmp_path):
        vocabulary = from_file(tokenizer, tmp_path)
        assert len(vocabulary) == tokenizer.get_vocab_size()
        plain = tokenizer.token_to_id("a")
        for token_id in range(len(vocabulary)):
            expected = decoded_in_context(tokenizer, token_id, plain, plain)
            assert vocabulary[token_id].decode(errors="replace") == expected, token_id

    def test_byte_level_bytes_are_exact(self, tmp_path):
        tokenizer = byte_level_bpe()
        vocabulary = from_file(tokenizer, tmp_path)
        inverse = {character: byte for byte, character in gpt2_alphabet().items()}
        partial = 0
        for text, token_id in tokenizer.get_vocab().items():
            if all(character in inverse for character in text):
                expected = bytes(inverse[character] for character in text)
            else:
                expected = text.encode()
            assert vocabulary[token_id] == expected, text
            partial += "\ufffd" in expected.decode(errors="replace")
        assert partial > 100  # halves of characters, where the library's text tells nothing

    @pytest.mark.parametrize("name", ["byte_level", "byte_fallback"])
    def test_encoded_text_comes_back(self, name, tmp_path):
        tokenizer = BUILDERS[name]()
        vocabulary = from_file(tokenizer, tmp_path)
        for sentence in SENTENCES:
            text = sentence.replace(" ", "▁") if name == "byte_fallback" else sentence
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            assert vocabulary.decode(ids).decode() == sentence

    def test_every_id_as_xgrammar_decodes_it(self, tokenizer):
        xgrammar = pytest.importorskip("xgrammar")
        fast = wrapped(tokenizer, eos_token="<|end|>")
        info = xgrammar.TokenizerInfo.from_huggingface(fast)
        vocabulary = Vocabulary.from_huggingface(fast)
        assert len(vocabulary) == info.vocab_size
        assert list(vocabulary.stop_token_ids) == info.stop_token_ids
        decoded = info.decoded_vocab
        if info.vocab_type == xgrammar.VocabType.RAW:
            # Without byte pieces XGrammar keeps the mark; the library decodes a space.
            decoded = [token.replace("▁".encode(), b" ") for token in decoded]
        assert list(vocabulary.token_bytes) == decoded

    def test_file_and_objects_agree(self, tokenizer, tmp_path):
        read = from_file(tokenizer, tmp_path)
        assert Vocabulary.from_huggingface(tokenizer) == read
        fast = wrapped(tokenizer, eos_token="<|eot_id|>")
        again = Vocabulary.from_huggingface(fast, stop_token_ids=read.stop_token_ids)
        assert again.fingerprint == read.fingerprint
        assert again.kind == read.kind

    def test_saved_by_transformers(self, tokenizer, tmp_path):
        fast = wrapped(tokenizer, eos_token="<|end|>", pad_token="<|begin|>")
        fast.save_pretrained(tmp_path)
        vocabulary = Vocabulary.from_file(tmp_path)
        assert vocabulary == Vocabulary.from_huggingface(fast)
        assert vocabulary.stop_token_ids == (tokenizer.token_to_id("<|end|>"),)


class TestMarks:
    def test_kind(self, tmp_path):
        kinds = {name: from_file(build(), tmp_path).kind for name, build in BUILDERS.items()}
        assert kinds == {
            "byte_level": "byte_level",
            "byte_fallback": "byte_fallback",
            "unigram": "raw",
        }

    def test_special_and_stop(self, tokenizer, tmp_path):
        vocabulary = from_file(tokenizer, tmp_path)
        special = {tokenizer.id_to_token(i) for i in vocabulary.special_token_ids}
        stop = {tokenizer.id_to_token(i) for i in vocabulary.stop_token_ids}
        assert {"<|begin|>", "<|end|>"} <= special
        assert "<|eot_id|>" in stop
        assert special | stop == {*ADDED_SPECIAL, *(special | stop) & {"<unk>", "<s>", "</s>"}}
        assert all(vocabulary[i] for i in vocabulary.special_token_ids)

    def test_explicit_stop_tokens_win(self, tokenizer):
        fast = wrapped(tokenizer, eos_token="<|end|>")
        assert Vocabulary.from_huggingface(fast, stop_token_ids=[3]).stop_token_ids == (3,)
        assert Vocabulary.from_huggingface(fast, stop_token_ids=[]).stop_token_ids == ()

    def test_a_guess_is_said(self, tokenizer, tmp_path):
        path = tmp_path / "tokenizer.json"
        tokenizer.save(str(path))
        if Vocabulary.from_file(path, stop_token_ids=[]).kind == "raw":
            pytest.skip("nearly all of these end with </s>")
        for read in (
            lambda **options: Vocabulary.from_file(path, **options),
            lambda **options: Vocabulary.from_huggingface(tokenizer, **options),
        ):
            with pytest.warns(StopTokenWarning, match=r"well-known texts are taken: '") as caught:
                guessed = read().stop_token_ids
            assert guessed
            assert {one.filename for one in caught} == {__file__}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert read(stop_token_ids=guessed).stop_token_ids == guessed

    def test_known_stop_tokens_as_xgrammar(self, tokenizer):
        xgrammar = pytest.importorskip("xgrammar")
        with pytest.warns(UserWarning, match="stop_token_ids"):
            info = xgrammar.TokenizerInfo.from_huggingface(wrapped(tokenizer))
        vocabulary = Vocabulary.from_huggingface(tokenizer)
        assert list(vocabulary.stop_token_ids) == info.stop_token_ids

    def test_an_ordinary_token_gives_way_to_a_special_one(self):
        tokenizer = byte_level_bpe()
        tokenizer.add_tokens(["</s>"])
        vocabulary = Vocabulary.from_huggingface(tokenizer)
        assert vocabulary.stop_token_ids == (tokenizer.token_to_id("<|eot_id|>"),)

    def test_size(self, tokenizer):
        count = tokenizer.get_vocab_size()
        padded = Vocabulary.from_huggingface(tokenizer, size=count + 9)
        assert (len(padded), padded[count + 8]) == (count + 9, b"")
        cut = Vocabulary.from_huggingface(tokenizer, size=count - 2, stop_token_ids=[])
        assert len(cut) == count - 2
        with pytest.raises(VocabularyError, match="stop_token_ids"):
            Vocabulary.from_huggingface(wrapped(tokenizer, eos_token="<|end|>"), size=20)


class TestDecoders:
    """Variants of the decoder section, each checked against the library on the same file."""

    VARIANTS = (
        {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        {
            "type": "Sequence",
            "decoders": [
                {"type": "ByteFallback"},
                {
                    "type": "Metaspace",
                    "replacement": "▁",
                    "prepend_scheme": "never",
                    "split": False,
                },
            ],
        },
        {
            "type": "Sequence",
            "decoders": [
                {"type": "Strip", "content": "▁", "start": 1, "stop": 0},
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Sequence", "decoders": [{"type": "Fuse"}]},
            ],
        },
        {
            "type": "Sequence",
            "decoders": [
                {"type": "Strip", "content": "▁", "start": 0, "stop": 1},
                {"type": "ByteFallback"},
            ],
        },
        {
            "type": "Sequence",
            "decoders": [
                {"type": "ByteFallback"},
                {"type": "Replace", "pattern": {"String": "b"}, "content": "BB"},
                {"type": "Fuse"},
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            ],
        },
    )

    @pytest.mark.parametrize("decoder", VARIANTS)
    def test_variants(self, decoder, tmp_path):
        content = json.loads(byte_fallback_bpe().to_str()) | {"decoder": decoder}
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
        vocabulary = Vocabulary.from_file(write_json(tmp_path / "tokenizer.json", content))
        plain = tokenizer.token_to_id("a")
        for token_id in range(len(vocabulary)):
            expected = decoded_in_context(tokenizer, token_id, plain, plain)
            assert vocabulary[token_id].decode(errors="replace") == expected, token_id

    @pytest.mark.parametrize(
        ("decoder", "named"),
        [
            ({"type": "WordPiece", "prefix": "##", "cleanup": True}, "WordPiece"),
            ({"type": "BPEDecoder", "suffix": "</w>"}, "BPEDecoder"),
            ({"type": "CTC"}, "CTC"),
            ({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}, "fixed string"),
            ({"type": "Replace", "pattern": {"String": ""}, "content": ""}, "fixed string"),
            (
                {
                    "type": "Sequence",
                    "decoders": [
                        {"type": "Fuse"},
                        {"type": "Replace", "pattern": {"String": "ab"}, "content": ""},
                    ],
                },
                "across tokens",
            ),
            (
                {"type": "Sequence", "decoders": [{"type": "ByteLevel"}, {"type": "ByteLevel"}]},
                "after",
            ),
            ({"type": "Sequence"}, "list of decoders"),
            ({"type": "Strip"}, "Strip"),
            ({"type": "Metaspace", "replacement": "__"}, "one character"),
            ({"kind": "?"}, "with a type"),
            (["ByteLevel"], "with a type"),
        ],
    )
    def test_refused_by_name(self, decoder, named, tmp_path):
        with pytest.raises(VocabularyError, match=named):
            from_file(unigram(), tmp_path, decoder=decoder)

    def test_word_piece_object(self):
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece({"a": 0, "##b": 1}))
        with pytest.raises(VocabularyError, match="WordPiece model without a decoder"):
            Vocabulary.from_huggingface(tokenizer)
        tokenizer.decoder = tokenizers.decoders.WordPiece()
        with pytest.raises(VocabularyError, match="'WordPiece'"):
            Vocabulary.from_huggingface(tokenizer)

    @pytest.mark.parametrize("name", BUILDERS)
    def test_no_decoder(self, name, tmp_path):
        tokenizer = BUILDERS[name]()
        assert from_file(tokenizer, tmp_path, decoder=None) == from_file(tokenizer, tmp_path)

    def test_vocabulary_outweighs_a_wrong_decoder(self, tmp_path):
        xgrammar = pytest.importorskip("xgrammar")
        for build, wrong in ((byte_level_bpe, "Fuse"), (byte_fallback_bpe, "ByteLevel")):
            tokenizer = build()
            right = from_file(tokenizer, tmp_path)
            tokenizer.decoder = getattr(tokenizers.decoders, wrong)()
            assert from_file(tokenizer, tmp_path) == right
            info = xgrammar.TokenizerInfo.from_huggingface(wrapped(tokenizer, eos_token="<|end|>"))
            assert list(right.token_bytes) == info.decoded_vocab

    def test_decoder_in_python(self):
        class Custom:
            def decode_chain(self, tokens):
                return tokens

        tokenizer = unigram()
        tokenizer.decoder = tokenizers.decoders.Decoder.custom(Custom())
        with pytest.raises(VocabularyError, match="cannot be serialized"):
            Vocabulary.from_huggingface(tokenizer)


class TestNumbering:
    def test_gaps_and_duplicates(self, tmp_path):
        content = json.loads(byte_level_bpe().to_str())
        content["added_tokens"] = []
        content["model"] |= {"vocab": {"a": 1, "Ġ": 4, "é": 6}, "merges": []}
        vocabulary = Vocabulary.from_file(write_json(tmp_path / "tokenizer.json", content))
        assert list(vocabulary) == [b"", b"a", b"", b"", b" ", b"", b"\xe9"]

    def test_unigram_piece_twice(self, tmp_path):
        tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram([("a", 0), ("b", 0), ("a", 0)]))
        tokenizer.decoder = tokenizers.decoders.Metaspace()
        assert list(from_file(tokenizer, tmp_path)) == [b"a", b"b", b"a"]
        assert list(Vocabulary.from_huggingface(tokenizer)) == [b"a", b"b", b"a"]

    def test_added_token_of_the_model(self, tmp_path):
        content = json.loads(byte_level_bpe().to_str())
        first = content["added_tokens"][0]
        content["added_tokens"].append(
            first | {"id": content["model"]["vocab"]["a"], "content": "a"}
        )
        path = write_json(tmp_path / "tokenizer.json", content)
        vocabulary = Vocabulary.from_file(path)
        assert vocabulary == Vocabulary.from_huggingface(tokenizers.Tokenizer.from_file(str(path)))
        assert content["model"]["vocab"]["a"] in vocabulary.special_token_ids

    def test_numbers_that_the_library_would_not_give(self, tmp_path):
        content = json.loads(byte_level_bpe().to_str())
        content["added_tokens"][-1]["id"] += 5
        path = write_json(tmp_path / "tokenizer.json", content)
        said = content["added_tokens"][-1]
        given = tokenizers.Tokenizer.from_file(str(path)).token_to_id(said["content"])
        assert given != said["id"]
        with pytest.raises(VocabularyError, match=f"would number it {given}"):
            Vocabulary.from_file(path)

    def test_one_id_for_two(self, tmp_path):
        content = json.loads(byte_level_bpe().to_str())
        content["model"] |= {"vocab": {"a": 0, "b": 0}, "merges": []}
        with pytest.raises(VocabularyError, match="belongs to both 'a' and 'b'"):
            Vocabulary.from_file(write_json(tmp_path / "tokenizer.json", content))


class TestOtherObjects:
    @pytest.mark.parametrize("thing", [None, 7, "name", object(), Vocabulary])
    def test_no_tokenizer(self, thing):
        with pytest.raises(VocabularyError, match="get_vocab"):
            Vocabulary.from_huggingface(thing)

    def test_a_path_says_what_reads_it(self):
        with pytest.raises(VocabularyError, match=r"Vocabulary\.from_file"):
            Vocabulary.from_huggingface("folder/of/a/model")

    def test_slow_on_bytes(self):
        class Slow:
            eos_token_id = 2
            all_special_ids = (2,)
            added_tokens_decoder = {}  # noqa: RUF012

            def get_vocab(self):
                return {b"a": 0, b"\xff": 1, "<|endoftext|>": 2}

        vocabulary = Vocabulary.from_huggingface(Slow())
        assert list(vocabulary) == [b"a", b"\xff", b"<|endoftext|>"]
        assert (vocabulary.stop_token_ids, vocabulary.kind) == ((2,), "raw")

    def test_slow_on_the_byte_level_alphabet(self):
        class Slow:
            def get_vocab(self):
                return {character: byte for byte, character in gpt2_alphabet().items()}

        vocabulary = Vocabulary.from_huggingface(Slow())
        assert list(vocabulary) == [bytes([byte]) for byte in range(256)]
        assert vocabulary.kind == "byte_level"

    def test_slow_that_tells_nothing(self):
        class Slow:
            def get_vocab(self):
                return {"a": 0, "##b": 1}

        with pytest.raises(VocabularyError, match="nothing tells"):
            Vocabulary.from_huggingface(Slow())

    @pytest.mark.parametrize(
        "answer", [None, [], {"a": -1}, {"a": True}, {7: 0}, {}, {"a": 1 << 40}]
    )
    def test_slow_with_a_wrong_vocabulary(self, answer):
        class Slow:
            sp_model = None

            def get_vocab(self):
                return answer

        with pytest.raises(VocabularyError, match="Slow"):
            Vocabulary.from_huggingface(Slow())
