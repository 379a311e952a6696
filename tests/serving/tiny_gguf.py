"""A model file of llama.cpp with random weights, written without any other package."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

BYTE, NORMAL, CONTROL, UNKNOWN = 6, 1, 3, 2
U32, F32, TEXT, BOOL, ARRAY, I32 = 4, 6, 8, 7, 9, 5


def _text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def _value(kind: int, value: Any) -> bytes:
    if kind == TEXT:
        return _text(value)
    return struct.pack({U32: "<I", F32: "<f", BOOL: "<?", I32: "<i"}[kind], value)


def _entry(key: str, kind: int, value: Any) -> bytes:
    head = _text(key)
    if isinstance(value, list):
        items = b"".join(_value(kind, item) for item in value)
        return head + struct.pack("<IIQ", ARRAY, kind, len(value)) + items
    return head + struct.pack("<I", kind) + _value(kind, value)


def pieces(words: list[str]) -> list[tuple[str, int]]:
    """Control tokens, all bytes, and words, as SentencePiece spells them: text and type."""
    control = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    alphabet = [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    return [*control, *alphabet, *((word.replace(" ", "\u2581"), NORMAL) for word in words)]


def write(path: Path, words: list[str], seed: int = 0, context: int = 512) -> Path:
    """Write a Llama of one layer; token 2 ends a text."""
    vocabulary = pieces(words)
    width, wide, heads, size = 32, 64, 2, len(vocabulary)
    rng = np.random.default_rng(seed)
    layer = "blk.0."
    shapes = {
        "token_embd.weight": (size, width),
        "output.weight": (size, width),
        "output_norm.weight": (width,),
        f"{layer}attn_norm.weight": (width,),
        f"{layer}ffn_norm.weight": (width,),
        **{f"{layer}attn_{part}.weight": (width, width) for part in ("q", "k", "v", "output")},
        f"{layer}ffn_gate.weight": (wide, width),
        f"{layer}ffn_up.weight": (wide, width),
        f"{layer}ffn_down.weight": (width, wide),
    }
    entries = [
        _entry("general.architecture", TEXT, "llama"),
        _entry("llama.block_count", U32, 1),
        _entry("llama.context_length", U32, context),
        _entry("llama.embedding_length", U32, width),
        _entry("llama.feed_forward_length", U32, wide),
        _entry("llama.attention.head_count", U32, heads),
        _entry("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        _entry("llama.rope.dimension_count", U32, width // heads),
        _entry("tokenizer.ggml.model", TEXT, "llama"),
        _entry("tokenizer.ggml.tokens", TEXT, [text for text, _ in vocabulary]),
        _entry("tokenizer.ggml.scores", F32, [-float(i) for i in range(size)]),
        _entry("tokenizer.ggml.token_type", I32, [kind for _, kind in vocabulary]),
        _entry("tokenizer.ggml.bos_token_id", U32, 1),
        _entry("tokenizer.ggml.eos_token_id", U32, 2),
        _entry("tokenizer.ggml.unknown_token_id", U32, 0),
    ]
    directory, data = b"", b""
    for name, shape in shapes.items():
        weights = rng.normal(0, 0.4, shape) if len(shape) == 2 else np.ones(shape)
        dimensions = struct.pack(f"<{len(shape)}Q", *reversed(shape))
        directory += _text(name) + struct.pack("<I", len(shape)) + dimensions
        directory += struct.pack("<IQ", 0, len(data))
        data += weights.astype("<f4").tobytes()
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(entries)) + b"".join(entries)
    head += directory
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path
