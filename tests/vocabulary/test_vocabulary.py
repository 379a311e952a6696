"""The class itself: what it takes, refuses, and tells."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import processes
from tokfold._loaders.byte_decoding import decode_byte_fallback, decode_byte_level
from tokfold.errors import ArgumentTypeError, VocabularyError
from tokfold.vocabulary import Vocabulary
from vocabulary.vocabulary_samples import gpt2_alphabet

TOKENS = [b"a", b"ab", b"", None, b"b", b"ab", b"<|im|>", b"</s>", b"\x00\xff"]


def make(**changes):
    arguments = {"stop_token_ids": [7], "special_token_ids": [6, 7], "size": 12} | changes
    return Vocabulary(TOKENS, **arguments)


class TestContent:
    def test_bytes_by_id(self):
        vocabulary = make()
        expected = [b"a", b"ab", b"", b"", b"b", b"ab", b"<|im|>", b"</s>", b"\x00\xff"]
        expected += [b""] * 3
        assert len(vocabulary) == 12
        assert [vocabulary[i] for i in range(12)] == expected
        assert list(vocabulary.token_bytes) == list(vocabulary) == expected
        assert vocabulary[np.int64(4)] == b"b"

    def test_storage_is_one_blob_with_offsets(self):
        vocabulary = make()
        assert vocabulary._blob == b"".join(vocabulary.token_bytes)
        assert vocabulary._offsets.dtype == np.int64
        assert vocabulary._offsets.shape == (13,)
        assert vocabulary._offsets[0] == 0
        assert vocabulary._offsets[-1] == len(vocabulary._blob)
        with pytest.raises(ValueError, match="read-only"):
            vocabulary._offsets[0] = 1

    @pytest.mark.parametrize("index", [-1, 12, 10**30])
    def test_ids_out_of_range(self, index):
        with pytest.raises(IndexError):
            make()[index]
        with pytest.raises(IndexError):
            make().decode([0, index])

    def test_stop_tokens_are_no_special_tokens(self):
        vocabulary = make(stop_token_ids=(7, 1), special_token_ids=[7, 6])
        assert vocabulary.stop_token_ids == (1, 7)
        assert vocabulary.special_token_ids == (6,)

    def test_padding_can_be_a_stop_token(self):
        assert make(stop_token_ids=[11]).stop_token_ids == (11,)

    def test_none_is_none(self):
        vocabulary = Vocabulary([b"</s>"], stop_token_ids=[])
        assert vocabulary.stop_token_ids == vocabulary.special_token_ids == ()

    def test_repr(self):
        assert repr(make(name="x")) == "<Vocabulary 'x': 12 tokens, 1 stop, 1 special, raw>"


class TestRefused:
    @pytest.mark.parametrize(
        "tokens",
        [
            [],
            [b""],
            [None, b""],
            b"abc",
            "abc",
            7,
            None,
            {0: b"a"},
            ["a"],
            [b"a", 5],
            [bytearray(b"a")],
        ],
    )
    def test_tokens(self, tokens):
        with pytest.raises(VocabularyError):
            Vocabulary(tokens)

    @pytest.mark.parametrize(
        "ids",
        [[-1], [12], [1, 1], [True], [1.0], ["1"], [None], "1", b"1", 12, True, 7.0, None, [2**70]],
    )
    @pytest.mark.parametrize("argument", ["stop_token_ids", "special_token_ids"])
    def test_ids(self, argument, ids):
        with pytest.raises(VocabularyError, match=argument):
            make(**{argument: ids})

    @pytest.mark.parametrize("size", [0, -3, 8, 1 << 40, True, 12.0, "12"])
    def test_size(self, size):
        with pytest.raises(VocabularyError, match=r"size|empty"):
            make(size=size)

    def test_numpy_ids_are_taken(self):
        assert make(stop_token_ids=np.array([7, 0])).stop_token_ids == (0, 7)


class TestIdentity:
    def test_fingerprint_is_stable(self):
        # A literal, so that a change of the digest, which would void saved artefacts, is seen.
        assert make().fingerprint == "a7a231727957b286c0fdc92321f960d2"
        script = (
            "from tokfold.vocabulary import Vocabulary;"
            f"print(Vocabulary({TOKENS!r}, [7], [6, 7], 12).fingerprint)"
        )
        printed = processes.run(
            [sys.executable, "-c", script],
            check=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"},
        )
        assert printed.stdout.strip() == make().fingerprint

    @pytest.mark.parametrize(
        "other",
        [
            make(size=13),
            make(stop_token_ids=[]),
            make(stop_token_ids=[6], special_token_ids=[7]),
            make(special_token_ids=[]),
            Vocabulary([b"aa", b"b", *TOKENS[2:]], [7], [6], 12),  # same blob, other cuts
            Vocabulary([b"b", *TOKENS[1:]], [7], [6], 12),
        ],
    )
    def test_differences_show(self, other):
        assert other != make()
        assert other.fingerprint != make().fingerprint

    def test_equal(self):
        assert make() == make(stop_token_ids=(7,), special_token_ids=[6], name="other")
        assert hash(make()) == hash(make(name="other"))
        assert make() != "vocabulary"

    @pytest.mark.parametrize(
        "through", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]
    )
    def test_copies(self, through):
        vocabulary = through(make(name="n", kind="byte_level"))
        assert vocabulary == make()
        assert (vocabulary.name, vocabulary.kind) == ("n", "byte_level")
        assert vocabulary.token_bytes == make().token_bytes
        assert not vocabulary._offsets.flags.writeable

    def test_replace(self):
        vocabulary = make(name="n")
        assert vocabulary.replace() == vocabulary
        assert vocabulary.replace(special_token_ids=()).special_token_ids == ()
        assert vocabulary.replace(special_token_ids=())._blob is vocabulary._blob  # no copy
        moved = vocabulary.replace(stop_token_ids=[0], size=20)
        assert (moved.stop_token_ids, moved.special_token_ids) == ((0,), (6, 7))
        assert (len(moved), moved.name) == (20, "n")
        with pytest.raises(VocabularyError):
            vocabulary.replace(size=11)


class TestGreedy:
    def test_longest_and_lowest(self):
        assert make().encode_greedy(b"aabb") == [0, 1, 4]
        assert make().encode_greedy(b"") == []

    def test_stop_and_special_are_not_used(self):
        with pytest.raises(VocabularyError, match="byte 1"):
            make().encode_greedy(b"a<|im|>")
        assert make().replace(special_token_ids=()).encode_greedy(b"a<|im|>") == [0, 6]
        with pytest.raises(VocabularyError):
            make().encode_greedy(b"</s>")

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda: make().encode_greedy("aab"), "data must be bytes, not str: pass text.encode"),
            (lambda: make().encode_greedy(bytearray(b"a")), "not bytearray: pass bytes(data)"),
            (lambda: make().decode(1), "ids must be a list of whole numbers, not int"),
            (lambda: make().decode("aa"), "ids must be a list of whole numbers, not str"),
            (lambda: make().decode([0, "a"]), "ids[1] must be a whole number, not str"),
        ],
    )
    def test_what_is_of_another_type(self, call, said):
        with pytest.raises(ArgumentTypeError) as caught:
            call()
        assert said in str(caught.value)

    @given(st.binary(max_size=40))
    def test_round_trip(self, data):
        tokens = [*(bytes([byte]) for byte in range(256)), b"\x00\x00", b"\x00\x00\x00\x01", b"ab"]
        vocabulary = Vocabulary(tokens)
        ids = vocabulary.encode_greedy(data)
        assert vocabulary.decode(ids) == data


class TestByteDecoding:
    ALPHABET = gpt2_alphabet()

    @given(st.binary(max_size=30))
    def test_byte_level_round_trip(self, data):
        assert decode_byte_level("".join(self.ALPHABET[byte] for byte in data)) == data

    @given(st.text(max_size=8), st.text(max_size=8))
    def test_one_unmapped_character_makes_it_literal(self, before, after):
        unmapped = "\u3042"
        text = before + unmapped + after
        assert decode_byte_level(text) == text.encode()

    @given(st.characters(exclude_categories=["Cs"]))
    def test_every_character(self, character):
        inverse = {character: byte for byte, character in self.ALPHABET.items()}
        byte = inverse.get(character)
        expected = character.encode() if byte is None else bytes([byte])
        assert decode_byte_level(character) == expected

    @pytest.mark.parametrize("character", [" ", "\n", "\x7f", "\xa0", "\xad", "\x00", "\u0144"])
    def test_unmapped_below_the_shifted_range(self, character):
        assert decode_byte_level("é" + character) == ("é" + character).encode()

    @pytest.mark.parametrize("byte", range(256))
    def test_byte_pieces(self, byte):
        assert decode_byte_fallback(f"<0x{byte:02X}>") == bytes([byte])

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("▁a▁", b" a "),
            ("▁<0x41>", b" <0x41>"),
            ("<0x41>>", b"<0x41>>"),
            ("<0x4>", b"<0x4>"),
            ("<0xGG>", b"<0xGG>"),
            ("<0x41", b"<0x41"),
            ("<0x４１>", "<0x４１>".encode()),
        ],
    )
    def test_not_byte_pieces(self, text, expected):
        assert decode_byte_fallback(text) == expected

    def test_half_a_surrogate_pair(self):
        with pytest.raises(VocabularyError, match="surrogate"):
            decode_byte_level("\ud800")
