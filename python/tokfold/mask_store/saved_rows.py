"""The rows of a mask store in numbers, as files hold them and the core takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from tokfold import _core

__all__ = ["SavedRows"]

_U32 = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class SavedRows:
    """Rows of parts and configurations, flat.

    Attributes:
        letters: terminal, set of scanners, kind of column, column; flat.
        sequence_letters: the letters of all sequences.
        sequence_offsets: where each begins, and where the last one ends.
        parts: rows of the shared parts: source, terminal, scanners, sequence, tokens; flat.
        own: rows of the configurations, the same.
        ends: configuration, terminal, scanners, part: what ends at the first byte; flat.
        tokens: the tokens of all sets, sorted in each.
        token_offsets: int64: where each set begins, and where the last one ends.
    """

    letters: _U32
    sequence_letters: _U32
    sequence_offsets: _U32
    parts: _U32
    own: _U32
    ends: _U32
    tokens: _U32
    token_offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, core: _core.LexerStore) -> SavedRows:
        """The rows of a lexer whose transitions were walked."""
        letters, offsets = core.sequences()
        parts, own, tokens, token_offsets = core.rows()
        return cls(
            np.array(core.letters(), np.uint32).reshape(-1),
            letters,
            offsets,
            parts.reshape(-1),
            own.reshape(-1),
            core.at_once().reshape(-1),
            tokens,
            token_offsets,
        )

    @classmethod
    def from_mapping(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> SavedRows:
        """Rows by the names of the attributes.

        Raises:
            KeyError: one is missing.
        """
        return cls(*(arrays[field.name] for field in fields(cls)))

    def arrays(self) -> tuple[_U32, _U32, _U32, _U32, _U32, _U32, _U32, npt.NDArray[np.int64]]:
        """The attributes in order."""
        return (
            self.letters,
            self.sequence_letters,
            self.sequence_offsets,
            self.parts,
            self.own,
            self.ends,
            self.tokens,
            self.token_offsets,
        )
