"""Model folders: stop tokens, added tokens and sizes from the files beside the tokenizer's."""

from __future__ import annotations

import json

import pytest
from support import processes
from tokfold.errors import VocabularyError, VocabularyWarning
from tokfold.vocabulary import Vocabulary
from vocabulary.vocabulary_samples import tiktoken_ranks, write_json, write_tiktoken


@pytest.fixture
def folder(tmp_path):
    """Six ordinary tokens, then <s> </s> (special) <tool> (not special)."""
    added = [("<s>", True), ("</s>", True), ("<tool>", False)]
    write_json(
        tmp_path / "tokenizer.json",
        {
            "model": {"type": "BPE", "vocab": {text: i for i, text in enumerate("abcdef")}},
            "decoder": {"type": "ByteLevel"},
            "added_tokens": [
                {"id": 6 + i, "content": text, "special": special}
                for i, (text, special) in enumerate(added)
            ],
        },
    )
    return tmp_path


class TestStopTokens:
    def test_by_text_when_nobody_says(self, folder):
        vocabulary = Vocabulary.from_file(folder)
        assert vocabulary.stop_token_ids == (7,)
        assert vocabulary.special_token_ids == (6,)

    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            ("generation_config.json", {"eos_token_id": [8, 5, 5]}, (5, 8)),
            ("generation_config.json", {"eos_token_id": 8}, (8,)),
            ("generation_config.json", {"eos_token_id": None}, (7,)),
            ("config.json", {"eos_token_id": 8}, (8,)),
            ("config.json", {"text_config": {"eos_token_id": [8]}}, (8,)),
            ("config.json", {"eos_token_id": 5, "text_config": {"eos_token_id": 8}}, (5,)),
            ("tokenizer_config.json", {"eos_token": "<tool>"}, (8,)),
            ("tokenizer_config.json", {"eos_token": {"content": "<tool>"}}, (8,)),
            ("tokenizer_config.json", {"eos_token": None}, (7,)),
            ("tokenizer_config.json", {"eos_token": "<not there>"}, (7,)),
            ("special_tokens_map.json", {"eos_token": {"content": "f"}}, (5,)),
        ],
    )
    @pytest.mark.parametrize("through", ["folder", "file"])
    def test_files(self, folder, name, content, expected, through):
        write_json(folder / name, content)
        path = folder if through == "folder" else folder / "tokenizer.json"
        assert Vocabulary.from_file(path).stop_token_ids == expected
        assert Vocabulary.from_file(path, stop_token_ids=[1]).stop_token_ids == (1,)
        assert Vocabulary.from_file(path, stop_token_ids=[]).stop_token_ids == ()

    def test_all_files_count(self, folder):
        write_json(folder / "generation_config.json", {"eos_token_id": 8})
        write_json(folder / "config.json", {"eos_token_id": 6})
        write_json(folder / "tokenizer_config.json", {"eos_token": "f"})
        vocabulary = Vocabulary.from_file(folder)
        assert vocabulary.stop_token_ids == (5, 6, 8)
        assert vocabulary.special_token_ids == (7,)

    @pytest.mark.parametrize("name", ["generation_config.json", "config.json"])
    def test_out_of_range(self, folder, name):
        path = write_json(folder / name, {"eos_token_id": 9})
        with pytest.raises(VocabularyError, match="stop token 9 is outside") as caught:
            Vocabulary.from_file(folder)
        assert str(path) in str(caught.value)
        assert "stop_token_ids=" in str(caught.value)
        assert Vocabulary.from_file(folder, stop_token_ids=[0]).stop_token_ids == (0,)
        assert Vocabulary.from_file(folder, size=10).stop_token_ids == (9,)

    @pytest.mark.parametrize("value", ["2", -1, True, 1.5, {"a": 1}, [[1]], [None]])
    def test_wrong(self, folder, value):
        write_json(folder / "generation_config.json", {"eos_token_id": value})
        with pytest.raises(VocabularyError, match=r"generation_config\.json.*eos_token_id"):
            Vocabulary.from_file(folder)
        assert Vocabulary.from_file(folder, stop_token_ids=[2]).stop_token_ids == (2,)

    @pytest.mark.parametrize(
        "name",
        [
            "generation_config.json",
            "config.json",
            "tokenizer_config.json",
            "special_tokens_map.json",
        ],
    )
    def test_damaged_file(self, folder, name):
        (folder / name).write_text('{"eos')
        with pytest.raises(VocabularyError, match=name):
            Vocabulary.from_file(folder)


class TestSize:
    @pytest.mark.parametrize("content", [{"vocab_size": 16}, {"text_config": {"vocab_size": 16}}])
    def test_padding(self, folder, content):
        write_json(folder / "config.json", content)
        vocabulary = Vocabulary.from_file(folder)
        assert len(vocabulary) == 16
        assert list(vocabulary)[9:] == [b""] * 7
        assert len(Vocabulary.from_file(folder, size=12)) == 12

    def test_added_tokens_that_the_model_lacks(self, folder):
        write_json(folder / "config.json", {"vocab_size": 8})
        vocabulary = Vocabulary.from_file(folder)
        assert (len(vocabulary), vocabulary[7]) == (8, b"</s>")

    def test_ordinary_tokens_are_not_dropped_silently(self, folder):
        write_json(folder / "config.json", {"vocab_size": 4})
        with pytest.raises(VocabularyError, match="size=9 to keep them or size=4"):
            Vocabulary.from_file(folder)
        with pytest.warns(VocabularyWarning, match="size=4 leaves out the last of 6") as caught:
            assert len(Vocabulary.from_file(folder, size=4, stop_token_ids=[])) == 4
        assert caught[0].filename == __file__

    def test_what_leaves_out_added_tokens_alone_is_no_warning(self, folder, recwarn):
        assert len(Vocabulary.from_file(folder, size=8, stop_token_ids=[])) == 8
        assert not recwarn.list

    @pytest.mark.parametrize("value", ["8", -8, 8.0, True, 0, 1 << 50])
    def test_wrong(self, folder, value):
        path = write_json(folder / "config.json", {"vocab_size": value})
        with pytest.raises(VocabularyError) as caught:
            Vocabulary.from_file(folder)
        assert str(path) in str(caught.value)
        assert len(Vocabulary.from_file(folder, size=10)) == 10


class TestAddedTokens:
    def test_of_the_tokenizer_config(self, folder):
        decoder = {
            "5": {"content": "other", "special": True},
            "8": {"content": "<tool>", "special": True},
            "11": {"content": "<|new|>", "special": True},
            "12": {"content": "Ġplain", "special": False},
        }
        write_json(
            folder / "tokenizer_config.json",
            {"added_tokens_decoder": decoder, "eos_token": "<|new|>"},
        )
        vocabulary = Vocabulary.from_file(folder)
        assert list(vocabulary)[5:] == [
            *(b"f", b"<s>", b"</s>", b"<tool>", b"", b"", b"<|new|>", b" plain")
        ]
        assert vocabulary.stop_token_ids == (11,)
        assert vocabulary.special_token_ids == (6, 7, 8)

    @pytest.mark.parametrize("decoder", [{"x": {"content": "a"}}, {"9": {}}, {"9": 3}, {"-1": {}}])
    def test_wrong(self, folder, decoder):
        write_json(folder / "tokenizer_config.json", {"added_tokens_decoder": decoder})
        with pytest.raises(VocabularyError, match="added_tokens_decoder"):
            Vocabulary.from_file(folder)

    def test_absurd_id(self, folder):
        decoder = {"999999999": {"content": "a"}}
        write_json(folder / "tokenizer_config.json", {"added_tokens_decoder": decoder})
        with pytest.raises(VocabularyError, match="at most"):
            Vocabulary.from_file(folder)


class TestWhichFile:
    def test_order(self, folder):
        write_tiktoken(folder / "x.tiktoken", tiktoken_ranks())
        assert len(Vocabulary.from_file(folder)) == 9
        (folder / "tokenizer.json").unlink()
        assert len(Vocabulary.from_file(str(folder))) == len(tiktoken_ranks())

    def test_nothing_or_too_much(self, tmp_path):
        with pytest.raises(VocabularyError, match="none of them"):
            Vocabulary.from_file(tmp_path)
        for name in "ab":
            write_tiktoken(tmp_path / f"{name}.tiktoken", tiktoken_ranks())
        with pytest.raises(VocabularyError, match="name one"):
            Vocabulary.from_file(tmp_path)

    def test_only_numpy_is_needed(self, folder):
        import sys

        script = (
            "import sys; from tokfold.vocabulary import Vocabulary;"
            f"Vocabulary.from_file({str(folder)!r});"
            "foreign = {'tokenizers', 'transformers', 'tiktoken', 'torch', 'sentencepiece'};"
            "import json; print(json.dumps(sorted(foreign & set(sys.modules))))"
        )
        printed = processes.run(
            [sys.executable, "-c", script], check=True, env={"PYTHONPATH": ":".join(sys.path)}
        )
        assert json.loads(printed.stdout) == []
