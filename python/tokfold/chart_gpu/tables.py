"""A binary grammar as tensors of a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tokfold.chart_gpu.binary import BinaryGrammar, words_of

__all__ = ["Tables"]


class Tables:
    """A binary grammar on a device, for any number of charts. Immutable.

    Attributes:
        grammar: the grammar.
        device: where the tensors are.
        parents, lefts, rights: int16, shape ``(R,)``: the rules; ``lefts`` are numbers of left
            children, places in ``left_symbols``.
        pairs: int32: the rules as pairs (left child, right child) with their parents, one array
            after the other: where the pairs of each right child begin, where the parents of each
            pair begin, the pairs (``left | right << 16``), the parents; zeros up to a multiple of
            four.
        num_pairs: how many pairs.
        left_symbols: int16, shape ``(L,)``.
        leaf_starts: int32, shape ``(letters + 1,)``: where the symbols of each letter begin.
        leaf_symbols: int16.
        corners: int32, shape ``(rights, corner_words)``: for each right child the symbols that may
            stand first in it, in ``symbol_words`` words, then the letters.
        first_corners: int32, shape ``(corner_words,)``: the same for the start symbol.
    """

    def __init__(self, grammar: BinaryGrammar, device: torch.device | str | int = "cuda") -> None:
        """Put a grammar on a device.

        Raises:
            DeviceError: the device is not there, or its memory is used up.
        """
        from tokfold.chart_gpu.device import on_device

        self.grammar = grammar
        self.symbol_words = -(-grammar.num_symbols // 32)
        self.letter_words = max(1, -(-grammar.num_letters // 32))
        self.corner_words = self.symbol_words + self.letter_words
        rights = range(grammar.num_rights)
        start = [grammar.start] if grammar.start >= 0 else []
        left_numbers = np.searchsorted(grammar.lefts, grammar.rules[:, 1])
        pairs, self.num_pairs = _pairs_of(grammar, left_numbers)
        counts = np.bincount(grammar.leaves[:, 0], minlength=grammar.num_letters)

        def put(values: object, kind: type = np.int16) -> torch.Tensor:
            # One entry at least: what is empty is never read, but has a place.
            array: npt.NDArray[Any] = np.ascontiguousarray(values, dtype=kind)
            if not array.size:
                array = np.zeros(1, dtype=kind)
            return torch.from_numpy(array.copy()).to(device)

        with on_device(device, "the tables of the grammar"):
            self.parents = put(grammar.rules[:, 0])
            self.lefts = put(left_numbers)
            self.rights = put(grammar.rules[:, 2])
            self.pairs = put(pairs, np.int32)
            self.left_symbols = put(grammar.lefts)
            self.leaf_starts = put(np.concatenate([[0], np.cumsum(counts)]), np.int32)
            self.leaf_symbols = put(grammar.leaves[:, 1])
            self.corners = put(self._corner_rows(list(rights)), np.int32)
            first = self._corner_rows(start)
            self.first_corners = put(first[0] if start else np.zeros(self.corner_words), np.int32)
        self.device = self.parents.device

    def _corner_rows(self, symbols: list[int]) -> npt.NDArray[np.int32]:
        grammar = self.grammar
        corners = words_of([grammar.corners[i] for i in symbols], 32 * self.symbol_words)
        firsts = words_of([grammar.firsts[i] for i in symbols], 32 * self.letter_words)
        return np.concatenate([corners, firsts], axis=1)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        tensors = [value for value in vars(self).values() if isinstance(value, torch.Tensor)]
        return sum(tensor.nbytes for tensor in tensors)

    def __repr__(self) -> str:
        return f"<Tables of {self.grammar!r} on {self.device}>"


def _pairs_of(grammar: BinaryGrammar, lefts: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], int]:
    """The rules as pairs with their parents, and how many pairs. Rules are in that order."""
    parents, rights = grammar.rules[:, 0], grammar.rules[:, 2]
    both = lefts.astype(np.int32) | rights << 16
    is_first = np.ones(len(both), dtype=bool)
    is_first[1:] = both[1:] != both[:-1]
    heads = np.flatnonzero(is_first)
    counts = np.bincount(rights[heads], minlength=grammar.num_rights)
    found = np.concatenate(([0], np.cumsum(counts), heads, [len(both)], both[heads], parents))
    return np.pad(found, (0, -len(found) % 4)).astype(np.int32), len(heads)
