"""Models with the shapes of Llama and random weights, for benchmarks: no weights are downloaded."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.nn import functional

__all__ = ["SHAPES", "Decoder", "Shape", "llama"]


class Shape(NamedTuple):
    """Sizes of a decoder, by Llama's names."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int


SHAPES = {
    "tiny": Shape(64, 2, 2, 1, 128),
    "1b": Shape(2_048, 16, 32, 8, 8_192),
    "8b": Shape(4_096, 32, 32, 8, 14_336),
}
"""``1b`` and ``8b``: the published sizes of Llama 3.2 1B and Llama 3.1 8B."""


def llama(shape: Shape, size: int, length: int, device: str, dtype: torch.dtype) -> Any:
    """A model of transformers of a shape, for ``size`` tokens and texts of ``length``."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=size,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=max(512, length),
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model: Any = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval()


class _Layer(NamedTuple):
    """The weights of a layer; queries, keys and values as one, and gate and up as one."""

    qkv: torch.Tensor
    out: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


class Decoder:
    """A decoder one token at a time, with a cache of a fixed length: what a CUDA graph can hold.

    The arithmetic of a step is Llama's: RMS norms, rotary positions, grouped queries, SwiGLU. On a
    GPU a step is one replay of a graph, which is captured for each batch when it first comes.
    """

    def __init__(
        self, shape: Shape, size: int, length: int, device: str, dtype: torch.dtype, seed: int = 1
    ) -> None:
        """Draw the weights.

        Args:
            shape: the sizes.
            size: tokens of the vocabulary.
            length: tokens of a text at most.
            device: where.
            dtype: of weights and logits.
            seed: of the weights.
        """
        self._shape, self._length, self._device = shape, length, torch.device(device)
        generator = torch.Generator(self._device).manual_seed(seed)

        def drawn(rows: int, columns: int) -> torch.Tensor:
            made = torch.empty(rows, columns, dtype=dtype, device=self._device)
            return made.normal_(0.0, 0.02, generator=generator)

        self._head = shape.hidden // shape.heads
        wide = (shape.heads + 2 * shape.kv_heads) * self._head
        self._embedding = drawn(size, shape.hidden)
        self._output = drawn(size, shape.hidden)
        self._layers = [
            _Layer(
                drawn(wide, shape.hidden),
                drawn(shape.hidden, shape.hidden),
                drawn(2 * shape.intermediate, shape.hidden),
                drawn(shape.hidden, shape.intermediate),
            )
            for _ in range(shape.layers)
        ]
        self._norm = torch.ones(shape.hidden, dtype=dtype, device=self._device)
        angles = torch.outer(
            torch.arange(length, device=self._device, dtype=torch.float32),
            500_000.0 ** -(torch.arange(0, self._head, 2, device=self._device) / self._head),
        )
        self._cosines = angles.cos().repeat(1, 2).to(dtype)
        self._sines = angles.sin().repeat(1, 2).to(dtype)
        self._places = torch.arange(length, device=self._device)
        self._batches: dict[int, _Batch] = {}
        self._now: _Batch | None = None

    def begin(self) -> None:
        """Begin all texts anew."""
        for batch in self._batches.values():
            batch.place.zero_()

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits, ``(batch, size)``, behind a token for each text; overwritten by the next call."""
        batch = self._batches.get(len(tokens))
        if batch is None:
            self._batches.clear()  # one cache at a time
            batch = self._batches[len(tokens)] = self._made(len(tokens))
        batch.tokens.copy_(tokens)
        if batch.graph is None:
            return self._step(batch)
        batch.graph.replay()
        assert batch.logits is not None
        return batch.logits

    def _made(self, rows: int) -> _Batch:
        batch = _Batch(self._shape, self._head, rows, self._length, self._embedding)
        if self._device.type != "cuda":
            return batch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._step(batch)
        torch.cuda.current_stream().wait_stream(side)
        batch.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(batch.graph):
            batch.logits = self._step(batch)
        batch.place.zero_()
        return batch

    def _step(self, batch: _Batch) -> torch.Tensor:
        shape, head = self._shape, self._head
        rows = len(batch.tokens)
        cosines, sines = self._cosines[batch.place], self._sines[batch.place]
        may_see = (self._places <= batch.place)[None, None, None]
        width = (shape.hidden,)
        x = functional.embedding(batch.tokens, self._embedding)
        for layer, keys, values in zip(self._layers, batch.keys, batch.values, strict=True):
            normed = functional.rms_norm(x, width, self._norm)
            parts = functional.linear(normed, layer.qkv).view(rows, -1, head)
            query, key, value = parts.split([shape.heads, shape.kv_heads, shape.kv_heads], 1)
            query, key = (_turned(part, cosines, sines) for part in (query, key))
            keys.index_copy_(2, batch.place, key[:, :, None])
            values.index_copy_(2, batch.place, value[:, :, None])
            grouped = query.reshape(rows, shape.kv_heads, -1, head)
            found = functional.scaled_dot_product_attention(
                grouped, keys, values, attn_mask=may_see
            )
            x = x + functional.linear(found.reshape(rows, shape.hidden), layer.out)
            normed = functional.rms_norm(x, width, self._norm)
            gate, up = functional.linear(normed, layer.gate_up).chunk(2, 1)
            x = x + functional.linear(functional.silu(gate) * up, layer.down)
        batch.place.add_(1)
        return functional.linear(functional.rms_norm(x, width, self._norm), self._output)


def _turned(part: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Rotary positions, ``(rows, heads, head)``."""
    left, right = part.chunk(2, -1)
    return part * cosines[:, None] + torch.cat((-right, left), -1) * sines[:, None]


class _Batch:
    """What belongs to a number of texts: tokens, place, cache, and the graph of a step."""

    def __init__(self, shape: Shape, head: int, rows: int, length: int, like: torch.Tensor) -> None:
        self.tokens = torch.zeros(rows, dtype=torch.long, device=like.device)
        self.place = torch.zeros(1, dtype=torch.long, device=like.device)
        size = (shape.layers, rows, shape.kv_heads, length, head)
        self.keys, self.values = (like.new_zeros(size) for _ in range(2))
        self.graph: Any = None
        self.logits: torch.Tensor | None = None
