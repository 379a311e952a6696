"""Small tokenizers that the vocabulary tests build, and what their libraries decode.

Nothing here imports tokfold: these are the oracles.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

SENTENCES = (
    "The quick brown fox jumps over the lazy dog, twice.",
    '{"name": "tokfold", "sizes": [1, 22, 333], "nested": {"ok": true}}',
    "def f(x):\n    return x ** 2  # naïve façade, résumé\n",
    "Ελληνικά, 日本語のテキスト, русский текст, 🙂 and 🧪!",
) * 3

ADDED_PLAIN = ("<tool_call>", "    ", "é ç", "<a▁b>")
ADDED_SPECIAL = ("<|begin|>", "<|end|>", "<|eot_id|>")


def gpt2_alphabet() -> dict[int, str]:
    """Byte to character, after the definition in GPT-2's encoder."""
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)]
    kept += range(ord("®"), ord("ÿ") + 1)
    alphabet = {byte: chr(byte) for byte in kept}
    for byte in range(256):
        if byte not in alphabet:
            alphabet[byte] = chr(256 + len(alphabet) - len(kept))
    return alphabet


def byte_level_bpe() -> Any:
    """A ``tokenizers.Tokenizer`` as Llama 3's."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return with_added(tokenizer)


def byte_fallback_bpe(strip: bool = True) -> Any:
    """A ``tokenizers.Tokenizer`` as Llama 2's: byte pieces, ``▁`` for spaces."""
    tokenizers = pytest.importorskip("tokenizers")
    decoders = tokenizers.decoders
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += [
        "▁",
        "a",
        "b",
        "é",
        "▁a",
        "ab",
        "▁ab",
        "▁▁",
        "▁▁▁▁",
        "日",
        "本",
        "日本",
        "<0x4",
        "\n",
    ]
    merges = [("▁", "a"), ("a", "b"), ("▁a", "b"), ("▁", "▁"), ("▁▁", "▁▁"), ("日", "本")]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            vocab={piece: i for i, piece in enumerate(pieces)},
            merges=merges,
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    steps += [decoders.Strip(" ", 1, 0)] if strip else []
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return with_added(tokenizer)


def unigram() -> Any:
    """A ``tokenizers.Tokenizer`` as T5's: Metaspace, no byte pieces."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=150, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return with_added(tokenizer)


def with_added(tokenizer: Any) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer.add_special_tokens(list(ADDED_SPECIAL))
    tokenizer.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in ADDED_PLAIN])
    return tokenizer


BUILDERS = {
    "byte_level": byte_level_bpe,
    "byte_fallback": byte_fallback_bpe,
    "unigram": unigram,
}


def decoded_in_context(tokenizer: Any, token_id: int, before: int, after: int) -> str:
    """What the library makes of a token between two others, as text (lossy for half characters)."""
    text = tokenizer.decode([before, token_id, after], skip_special_tokens=False)
    head = tokenizer.decode([before], skip_special_tokens=False)
    tail = tokenizer.decode([before, after], skip_special_tokens=False)[len(head) :]
    assert text.startswith(head)
    assert text.endswith(tail)
    return text[len(head) : len(text) - len(tail)]


def write_tiktoken(path: Path, ranks: dict[bytes, int]) -> Path:
    lines = (base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    path.write_bytes(b"".join(lines))
    return path


def tiktoken_ranks() -> dict[bytes, int]:
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [
        b"in",
        b"ing",
        b" t",
        b" th",
        b" the",
        b"\xc3\xa9",
        b"\xe6\x97",
        b"\xf0\x9f\x99",
        b"  ",
    ]
    return {token: rank for rank, token in enumerate(tokens)}


def tekken_content(extra: int = 3, cut: int = 2, special: int = 5) -> dict[str, Any]:
    """A tekken.json whose vocabulary holds ``cut`` tokens more than the model has."""
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [b"token%d" % i for i in range(extra + cut)]
    return {
        "config": {
            "pattern": r"\w+|\W+",
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": special + 256 + extra,
            "default_num_special_tokens": special,
            "version": "v11",
        },
        "vocab": [
            {"rank": i, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for i, token in enumerate(tokens)
        ],
        "special_tokens": [
            {"rank": i, "token_str": text, "is_control": True}
            for i, text in enumerate(["<unk>", "<s>", "</s>"])
        ],
    }


def write_json(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
