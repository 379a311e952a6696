"""A grammar made ready for matchers on a device."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import torch

from tokfold._checks import is_one_of
from tokfold._quoting import quoted
from tokfold.chart_gpu.binary import BinaryGrammar
from tokfold.chart_gpu.device import chosen_device
from tokfold.chart_gpu.reading import ByteReading, Reading, ReadingName, TerminalReading
from tokfold.chart_gpu.tables import Tables
from tokfold.grammar import Grammar
from tokfold.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from tokfold.chart_gpu.transfers import TextMemory

__all__ = ["DeviceGrammar"]

MOST_IDLE = 4
"""Texts that are no more whose memory is kept for the next ones."""


class DeviceGrammar:
    """What all texts of a grammar share on a device.

    Attributes:
        grammar: the grammar.
        binary: the same in binary form.
        reading: how bytes become its letters.
        tables: the same on the device.
        limits: the bounds in force.
        idle: memory of texts that are no more.
    """

    def __init__(
        self,
        grammar: Grammar,
        limits: Limits | None = None,
        device: torch.device | str | int | None = None,
        alphabet: ReadingName = "bytes",
    ) -> None:
        """Put a grammar on a device.

        Args:
            grammar: the grammar.
            limits: bounds on its binary form, and on the memory of matchers.
            device: the device; by default the GPU, or the CPU in Triton's interpreter.
            alphabet: what a chart has a column for: a byte, or a terminal of the grammar, which is
                shorter and wants terminals none of which begins like another.

        Raises:
            ValueError: ``alphabet`` is neither.
            DeviceError: there is no such device, or none at all.
            MissingExtraError: Triton is not installed.
            UnsupportedGrammarError, LimitExceededError: as :meth:`BinaryGrammar.of`, and
                :class:`TerminalLexer` over terminals.
        """
        if not is_one_of(alphabet, ("bytes", "terminals")):
            raise ValueError(f'alphabet must be "bytes" or "terminals", not {quoted(alphabet)}')
        chosen = chosen_device(device)
        self.grammar = grammar
        self.limits = limits or DEFAULT_LIMITS
        self.binary = BinaryGrammar.of(grammar, alphabet, self.limits)
        reading = ByteReading if alphabet == "bytes" else TerminalReading
        self.reading: Reading = reading(self.binary)
        self.tables = Tables(self.binary, chosen)
        self.idle: deque[TextMemory] = deque(maxlen=MOST_IDLE)

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.tables.device

    def __repr__(self) -> str:
        return f"<DeviceGrammar of {self.binary!r} on {self.device}>"
