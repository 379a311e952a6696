"""Rank files, tekken.json and SentencePiece models, against the libraries that own them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.tokenizers import files
from tokfold.errors import VocabularyError
from tokfold.vocabulary import Vocabulary
from vocabulary.vocabulary_samples import (
    SENTENCES,
    tekken_content,
    tiktoken_ranks,
    write_json,
    write_tiktoken,
)


class TestTiktoken:
    SPECIAL = {"<|endoftext|>": 270, "<|x|>": 272}  # noqa: RUF012

    @pytest.fixture
    def encoding(self):
        tiktoken = pytest.importorskip("tiktoken")
        return tiktoken.Encoding(
            "small",
            pat_str=r"\w+|\W+",
            mergeable_ranks=tiktoken_ranks(),
            special_tokens=self.SPECIAL,
        )

    def expected(self, encoding):
        tokens = []
        for token_id in range(encoding.n_vocab):
            try:
                tokens.append(encoding.decode_single_token_bytes(token_id))
            except KeyError:
                tokens.append(b"")
        return tokens

    def test_object(self, encoding):
        vocabulary = Vocabulary.from_tiktoken(encoding)
        assert list(vocabulary) == self.expected(encoding)
        assert vocabulary.stop_token_ids == (270,)
        assert vocabulary.special_token_ids == (272,)
        assert (vocabulary.name, vocabulary.kind) == ("small", "raw")

    def test_file(self, encoding, tmp_path):
        path = write_tiktoken(tmp_path / "small.tiktoken", tiktoken_ranks())
        vocabulary = Vocabulary.from_file(path, special_tokens=self.SPECIAL)
        assert vocabulary == Vocabulary.from_tiktoken(encoding)
        assert vocabulary.name == "small"

    def test_file_as_tiktoken_reads_it(self, tmp_path):
        load = pytest.importorskip("tiktoken.load")
        path = write_tiktoken(tmp_path / "small.tiktoken", tiktoken_ranks())
        ranks = load.load_tiktoken_bpe(str(path))
        vocabulary = Vocabulary.from_file(path)
        assert {vocabulary[rank]: rank for rank in range(len(vocabulary))} == ranks
        assert vocabulary.stop_token_ids == vocabulary.special_token_ids == ()

    @pytest.mark.parametrize("path", files("*.tiktoken"), ids=lambda path: path.stem)
    def test_real_files(self, path):
        tiktoken, load = pytest.importorskip("tiktoken"), pytest.importorskip("tiktoken.load")
        ranks = load.load_tiktoken_bpe(str(path))
        vocabulary = Vocabulary.from_file(path)
        assert {vocabulary[rank]: rank for rank in range(len(vocabulary))} == ranks
        assert vocabulary.stop_token_ids == vocabulary.special_token_ids == ()
        encoding = tiktoken.Encoding(
            path.stem, pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={}
        )
        for text in SENTENCES:
            assert vocabulary.decode(encoding.encode_ordinary(text)) == text.encode()

    def test_a_token_of_no_bytes(self, tmp_path):
        """As the multilingual file of Whisper holds one."""
        load = pytest.importorskip("tiktoken.load")
        path = tmp_path / "whisper.tiktoken"
        path.write_text("YQ== 0\n= 1\nYg== 2\n")
        assert load.load_tiktoken_bpe(str(path)) == {b"a": 0, b"": 1, b"b": 2}
        assert list(Vocabulary.from_file(path)) == [b"a", b"", b"b"]

    def test_ordinary_text_ends_nothing(self, tmp_path):
        """Qwen's file of ranks holds ``</s>``, of HTML; its end is no rank."""
        path = write_tiktoken(tmp_path / "x.tiktoken", {b"a": 0, b"</s>": 1})
        assert Vocabulary.from_file(path).stop_token_ids == ()
        named = Vocabulary.from_file(path, special_tokens={"<|endoftext|>": 2})
        assert named.stop_token_ids == (2,)

    def test_under_another_name(self, tmp_path):
        path = write_tiktoken(tmp_path / "tokenizer.model", tiktoken_ranks())
        assert Vocabulary.from_file(path)[256] == b"in"
        assert Vocabulary.from_file(tmp_path)[256] == b"in"

    def test_gaps(self, tmp_path):
        path = write_tiktoken(tmp_path / "gap.tiktoken", {b"a": 0, b"b": 3})
        assert list(Vocabulary.from_file(path)) == [b"a", b"", b"", b"b"]

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("YQ== 0\nYg==\n", "line 2"),
            ("YQ== 0\nYg== 0\n", "second time"),
            ("YQ== 0\nY 1\n", "line 2"),
            ("YQ== -1\n", "line 1"),
            ("YQ== 1 2\n", "line 1"),
            ("YQ== 999999999\n", "at most"),
            ("YQ== ٣\n", "line 1"),
            ("YQ== 0\n\x00\x01\x02 3\n", "line 2"),
            ("\n\n", "empty"),
        ],
    )
    def test_damaged(self, text, named, tmp_path):
        path = tmp_path / "x.tiktoken"
        path.write_text(text)
        with pytest.raises(VocabularyError, match=named) as caught:
            Vocabulary.from_file(path)
        assert str(path) in str(caught.value)

    def test_truncated_anywhere(self, tmp_path):
        data = write_tiktoken(tmp_path / "x.tiktoken", tiktoken_ranks()).read_bytes()
        lines = data.count(b"\n")
        for cut in range(len(data) - 60, len(data) - 1):
            path = tmp_path / "cut.tiktoken"
            path.write_bytes(data[:cut])
            if data[cut - 1 : cut] == b"\n" or data[cut : cut + 1] == b"\n":
                assert len(Vocabulary.from_file(path)) < lines + 1  # a shorter, well-formed file
            else:
                with pytest.raises(VocabularyError):
                    Vocabulary.from_file(path)

    @pytest.mark.parametrize("special", [{"x": 0}, {"x": -1}, {"": 300}, {"x": True}, {7: 300}])
    def test_special_tokens_refused(self, special, tmp_path):
        path = write_tiktoken(tmp_path / "x.tiktoken", tiktoken_ranks())
        with pytest.raises(VocabularyError, match="special_tokens"):
            Vocabulary.from_file(path, special_tokens=special)

    @pytest.mark.parametrize("thing", [None, 3, object()])
    def test_no_encoding(self, thing):
        with pytest.raises(VocabularyError, match=r"tiktoken\.Encoding"):
            Vocabulary.from_tiktoken(thing)


def packaged(pattern: str) -> list[Path]:
    """Tokenizer files that mistral-common brings."""
    mistral_common = pytest.importorskip("mistral_common")
    folder = Path(mistral_common.__file__).parent / "data"
    files = sorted(folder.glob(pattern))
    if not files:
        pytest.skip(f"mistral-common brings no {pattern}")
    return files


class TestTekken:
    def compare(self, path):
        tekken = pytest.importorskip("mistral_common.tokens.tokenizers.tekken")
        tokenizer = tekken.Tekkenizer.from_file(path)
        vocabulary = Vocabulary.from_file(path)
        keep = tekken.SpecialTokenPolicy.KEEP
        expected = [tokenizer.id_to_byte_piece(i, keep) for i in range(tokenizer.n_words)]
        assert list(vocabulary) == expected
        assert vocabulary.stop_token_ids == (tokenizer.eos_id,)
        assert set(vocabulary.special_token_ids) == tokenizer.special_ids - {tokenizer.eos_id}
        for text in SENTENCES:
            assert vocabulary.decode(tokenizer.encode(text, bos=False, eos=False)) == text.encode()
        return vocabulary

    @pytest.mark.parametrize("path", files("tekken*.json"), ids=lambda path: path.parent.name)
    def test_real_files(self, path):
        self.compare(path)

    def test_packaged_files(self):
        sizes = {len(self.compare(path)) for path in packaged("tekken*.json")}
        assert sizes == {131072}

    def test_small(self, tmp_path):
        vocabulary = self.compare(write_json(tmp_path / "tekken.json", tekken_content()))
        assert list(vocabulary)[:6] == [b"<unk>", b"<s>", b"</s>", *self.fillers(), b"\x00"]
        assert vocabulary[len(vocabulary) - 1] == b"token2"
        assert vocabulary.name == tmp_path.name

    @staticmethod
    def fillers():
        return [b"<SPECIAL_3>", b"<SPECIAL_4>"]

    def test_folder(self, tmp_path):
        path = write_json(tmp_path / "tekken.json", tekken_content())
        assert Vocabulary.from_file(tmp_path) == Vocabulary.from_file(path)

    @pytest.mark.parametrize("pattern", ["tekken_240911.json", "*.model.v3"])
    def test_tokenizer_of_transformers(self, pattern):
        transformers = pytest.importorskip("transformers", minversion="5")
        path = packaged(pattern)[0]
        tokenizer = transformers.MistralCommonBackend(tokenizer_path=str(path))
        vocabulary = Vocabulary.from_huggingface(tokenizer)
        assert vocabulary == Vocabulary.from_file(path)
        assert vocabulary.stop_token_ids == (tokenizer.eos_token_id,)

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"config": {}}, "default_vocab_size"),
            ({"config": None}, "'config'"),
            ({"config": {"default_vocab_size": 9, "default_num_special_tokens": 10}}, "9 and 10"),
            ({"config": {"default_vocab_size": 0, "default_num_special_tokens": 0}}, "empty"),
            (
                {"config": {"default_vocab_size": 1 << 40, "default_num_special_tokens": 5}},
                "at most",
            ),
            ({"config": {"default_vocab_size": 900, "default_num_special_tokens": 5}}, "holds 261"),
            ({"config": {"default_vocab_size": 20, "default_num_special_tokens": 2}}, "room for 2"),
            ({"special_tokens": 7}, "special_tokens"),
            ({"special_tokens": [{"rank": 1, "token_str": "a"}]}, "special token 0"),
            ({"vocab": [{"rank": 0, "token_bytes": "?"}] * 300}, "entry 0"),
            ({"vocab": [{"rank": 0, "token_bytes": "YQ=="}] * 300}, "entry 1"),
            ({"vocab": [None] * 300}, "entry 0"),
            ({"vocab": {}}, "tekken.json"),
        ],
    )
    def test_damaged(self, change, named, tmp_path):
        path = write_json(tmp_path / "tekken.json", tekken_content() | change)
        with pytest.raises(VocabularyError, match=named) as caught:
            Vocabulary.from_file(path)
        assert str(path) in str(caught.value)


class TestSentencePiece:
    @pytest.fixture(params=["bpe", "unigram"])
    def model(self, request, tmp_path):
        sentencepiece = pytest.importorskip("sentencepiece")
        corpus = tmp_path / "corpus.txt"
        corpus.write_text("\n".join(line for text in SENTENCES for line in text.splitlines()))
        sentencepiece.SentencePieceTrainer.train(
            input=str(corpus),
            model_prefix=str(tmp_path / "tokenizer"),
            vocab_size=400,
            model_type=request.param,
            byte_fallback=request.param == "bpe",
            hard_vocab_limit=False,
            user_defined_symbols=["<tool>", "<a▁b>"],
            control_symbols=["<ctrl>"],
            minloglevel=2,
        )
        return tmp_path / "tokenizer.model"

    def compare(self, path):
        sentencepiece = pytest.importorskip("sentencepiece")
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        vocabulary = Vocabulary.from_file(path)
        assert len(vocabulary) == processor.vocab_size()
        special = set()
        for token_id in range(len(vocabulary)):
            piece = processor.id_to_piece(token_id)
            if processor.is_byte(token_id):
                assert vocabulary[token_id] == bytes([int(piece[3:5], 16)])
            elif processor.is_control(token_id) or processor.is_unknown(token_id):
                special.add(token_id)
                assert vocabulary[token_id] == piece.encode()
            else:  # "a" before it, so that the added prefix space is not stripped from it
                text = processor.decode_pieces(["a", piece])
                assert vocabulary[token_id] == text.encode()[1:], piece
        assert vocabulary.stop_token_ids == (processor.eos_id(),)
        assert set(vocabulary.special_token_ids) == special - {processor.eos_id()}
        return vocabulary, processor

    def test_trained(self, model):
        vocabulary, processor = self.compare(model)
        assert vocabulary.kind == ("byte_fallback" if processor.is_byte(12) else "raw")
        for text in SENTENCES:
            text = processor.normalize(text).replace("▁", " ")
            ids = processor.encode(text)
            if processor.unk_id() not in ids:
                assert vocabulary.decode(ids).decode().strip() == text.strip()

    @pytest.mark.parametrize("path", files("*.model*"), ids=lambda path: path.parent.name)
    def test_real_files(self, path):
        self.compare(path)

    def test_packaged_files(self):
        for path in packaged("*.model.*"):
            vocabulary, _ = self.compare(path)
            assert vocabulary.kind == "byte_fallback"

    def test_slow_tokenizer(self, model):
        transformers = pytest.importorskip("transformers")
        xgrammar = pytest.importorskip("xgrammar")
        slow = transformers.BertGenerationTokenizer(str(model))
        assert hasattr(slow, "sp_model")
        vocabulary = Vocabulary.from_huggingface(slow)
        assert vocabulary.stop_token_ids == (slow.eos_token_id,)
        decoded = xgrammar.TokenizerInfo.from_huggingface(slow).decoded_vocab
        if vocabulary.kind == "raw":  # where XGrammar leaves the mark and SentencePiece a space
            decoded = [token.replace("▁".encode(), b" ") for token in decoded]
        assert list(vocabulary) == decoded

    def test_truncated_anywhere(self, model, tmp_path):
        data = model.read_bytes()
        path = tmp_path / "cut.model"
        for cut in {*range(1, 40), *range(40, len(data) - 400, 499)}:
            path.write_bytes(data[:cut])
            with pytest.raises(VocabularyError, match=r"cut\.model"):
                Vocabulary.from_file(path)

    def test_no_end_of_sentence(self, model, tmp_path, recwarn):
        protobuf = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
        proto = protobuf.ModelProto.FromString(model.read_bytes())
        proto.trainer_spec.eos_id = -1
        path = tmp_path / "other.model"
        path.write_bytes(proto.SerializeToString())
        vocabulary = Vocabulary.from_file(path)
        assert {each.filename for each in recwarn} <= {__file__}
        assert vocabulary.stop_token_ids == (2,)  # found by its text, "</s>"


class TestDamaged:
    """Whatever the file, the error is ours and names it."""

    @pytest.mark.parametrize(
        ("name", "data", "named"),
        [
            ("tokenizer.json", b"", "is empty"),
            ("tokenizer.json", b"{", "truncated"),
            ("tokenizer.json", b'{"model": {"vocab": {"a": 0', "truncated"),
            ("tokenizer.json", b"\x00\x01\x02", "expected a JSON object"),
            ("tokenizer.json", b"[1, 2]", "expected a JSON object"),
            ("tokenizer.json", b"null", "expected a JSON object"),
            ("tokenizer.json", b'{"a": "\xff"}', "damaged"),
            ("tokenizer.json", b'{"a":' * 100_000, "damaged"),
            ("tokenizer.json", b'{"a": ' + b"9" * 5000 + b"}", "damaged"),
            ("tokenizer.json", b'{"model": 3}', "'model'"),
            ("tokenizer.json", b'{"model": {}}', "'vocab'"),
            ("tokenizer.json", b'{"model": {"vocab": {}}}', "empty"),
            ("tokenizer.json", b'{"model": {"vocab": []}}', "empty"),
            ("tokenizer.json", b'{"model": {"vocab": {"a": -1}}}', "expected an id"),
            ("tokenizer.json", b'{"model": {"vocab": {"a": true}}}', "expected an id"),
            ("tokenizer.json", b'{"model": {"vocab": {"a": 1e9}}}', "expected an id"),
            ("tokenizer.json", b'{"model": {"vocab": {"a": 4000000000}}}', "at most"),
            ("tokenizer.json", b'{"model": {"vocab": [["a"], 3]}}', "token 1"),
            ("tokenizer.json", b'{"model": {"vocab": {"a": 0}}, "added_tokens": {}}', "list"),
            (
                "tokenizer.json",
                b'{"model": {"vocab": {"a": 0}}, "added_tokens": [{}]}',
                "'content'",
            ),
            ("tokenizer.json", b'{"model": {"vocab": {"a": 0}}}', "without a decoder"),
            (
                "tokenizer.json",
                b'{"model": {"vocab": {"\\ud800": 0}}, "decoder": {"type": "ByteLevel"}}',
                "surrogate",
            ),
            ("vocab.json", b'{"a": 0, "b": 1}', "expected a tokenizer.json"),
            ("tokenizer.model", b"\x7fELF\x02\x01\x01", "expected a tokenizer.json"),
            ("tokenizer.model", b"\n\xff\xff\xff", "SentencePiece"),
            ("tokenizer.model", b"hello, world\n", "expected a tokenizer.json"),
            (
                "model.safetensors",
                b"\x10\x00\x00\x00\x00\x00\x00\x00{}",
                "expected a tokenizer.json",
            ),
        ],
    )
    def test_files(self, name, data, named, tmp_path):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(VocabularyError, match=named) as caught:
            Vocabulary.from_file(path)
        if named != "surrogate":
            assert str(path) in str(caught.value)

    def test_huge(self, tmp_path):
        path = tmp_path / "tokenizer.json"
        with path.open("wb") as file:
            file.truncate(1 << 40)  # sparse
        with pytest.raises(VocabularyError, match="at most"):
            Vocabulary.from_file(path)

    @pytest.mark.parametrize("path", ["missing.json", "missing/", "a\0b", ""])
    def test_missing(self, path, tmp_path):
        with pytest.raises(VocabularyError):
            Vocabulary.from_file(tmp_path / path)

    def test_a_byte_order_mark_is_no_damage(self, tmp_path):
        content = {"model": {"vocab": {"a": 0}}, "decoder": {"type": "ByteLevel"}}
        (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8-sig")
        assert list(Vocabulary.from_file(tmp_path)) == [b"a"]
