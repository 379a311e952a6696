"""A grammar made ready for matchers on a device."""

from __future__ import annotations

import threading

import torch

from tokfold.chart_gpu.binary import BinaryGrammar
from tokfold.chart_gpu.device import chosen_device
from tokfold.chart_gpu.tables import Tables
from tokfold.chart_gpu.tree import TokenTree
from tokfold.classes import TokenClasses
from tokfold.grammar import Grammar
from tokfold.limits import Limits
from tokfold.vocabulary import Vocabulary

__all__ = ["DeviceGrammar"]


class DeviceGrammar:
    """What all texts of a compiled grammar share on a device.

    Attributes:
        binary: the grammar in binary form, over bytes.
        tables: the same on the device.
        limits: the bounds in force.
    """

    def __init__(
        self,
        grammar: Grammar,
        limits: Limits | None = None,
        device: torch.device | str | int | None = None,
    ) -> None:
        """Put a grammar on a device.

        Args:
            grammar: the grammar.
            limits: bounds on its binary form, and on the memory of matchers.
            device: the device; by default the GPU, or the CPU in Triton's interpreter.

        Raises:
            DeviceError: there is no such device, or none at all.
            MissingExtraError: Triton is not installed.
            UnsupportedGrammarError, LimitExceededError: as :meth:`BinaryGrammar.of`.
        """
        chosen = chosen_device(device)
        self.limits = limits or Limits()
        self.binary = BinaryGrammar.of(grammar, "bytes", self.limits)
        self.tables = Tables(self.binary, chosen)
        self._lock = threading.Lock()
        self._trees: dict[tuple[int, int], tuple[Vocabulary, TokenClasses | None, TokenTree]] = {}

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.tables.device

    def tree(self, vocabulary: Vocabulary, classes: TokenClasses | None) -> TokenTree:
        """The token tree of the vocabulary, or of its classes; made once."""
        with self._lock:
            key = (id(vocabulary), id(classes))  # both are kept, so the numbers stay theirs
            known = self._trees.get(key)
            if known is None:
                made = TokenTree.of(self.binary, vocabulary, classes)
                known = self._trees[key] = (vocabulary, classes, made)
            return known[2]

    def __repr__(self) -> str:
        return f"<DeviceGrammar of {self.binary!r} on {self.device}>"
