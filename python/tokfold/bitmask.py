"""Bitmasks: rows of int32 words, bit ``j`` of word ``i`` is id ``32 * i + j``, 1 is allowed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._checks import check_number, whole_number, wrong_type
from tokfold.classes import TokenClasses

__all__ = ["Unfolder", "allocate_bitmask", "allow_only"]


def allocate_bitmask(batch: int, size: int) -> npt.NDArray[np.int32]:
    """Rows in which every id is allowed: int32, shape ``(batch, ceil(size / 32))``.

    Args:
        batch: number of rows.
        size: number of ids: ``len(vocabulary)`` for token masks, ``len(classes)`` for class masks.

    Raises:
        ArgumentTypeError: one is no whole number.
        ValueError: there are no such rows.

    Example:
        >>> tokfold.allocate_bitmask(2, 40)
        array([[-1, -1],
               [-1, -1]], dtype=int32)
    """
    for name, number in (("batch", batch), ("size", size)):
        if whole_number(number) is None:
            raise wrong_type(name, "a whole number", number)
    if batch < 0 or size < 1:
        raise ValueError(f"a bitmask needs batch >= 0 and size >= 1, not {batch} and {size}")
    return np.full((batch, (size + 31) // 32), -1, dtype=np.int32)


def allow_only(row: npt.NDArray[np.int32], ids: Iterable[int]) -> None:
    """Allow some ids alone in a row of a bitmask; those past its end are left out."""
    row[:] = 0
    words = row.view(np.uint32)
    for one in ids:
        if one >> 5 < len(words):
            words[one >> 5] |= np.uint32(1 << (one & 31))


class Unfolder:
    """Turns class masks into token masks: ``allowed[token] = mask[class_of[token]]``.

    Rows that were made are remembered under a bound of memory, since masks recur. Safe between
    threads.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> grammar = tokfold.Grammar.from_ebnf("root ::= [ab]+")
        >>> classes = tokfold.compile_classes(grammar, vocabulary)
        >>> unfolder = tokfold.Unfolder(classes)
        >>> row = tokfold.allocate_bitmask(1, len(vocabulary))[0]
        >>> unfolder.unfold(tokfold.allocate_bitmask(1, len(classes))[0], row)
        >>> f"{row[0]:04b}"
        '1111'
    """

    __slots__ = ("_core", "num_classes", "num_tokens")

    def __init__(self, classes: TokenClasses, max_bytes: int = 32 << 20) -> None:
        """Prepare the gather.

        Args:
            classes: the classes.
            max_bytes: bytes of remembered rows.

        Raises:
            ArgumentTypeError: ``classes`` are none, or ``max_bytes`` is no whole number.
        """
        if not isinstance(classes, TokenClasses):
            raise wrong_type("classes", "tokfold.TokenClasses", classes)
        check_number("max_bytes", max_bytes, 0)
        self.num_tokens = len(classes.class_of)
        self.num_classes = len(classes)
        class_of = np.ascontiguousarray(classes.class_of)
        self._core = _core.Unfolder(class_of, self.num_classes, max_bytes)

    def unfold(self, class_mask: npt.NDArray[np.int32], row: npt.NDArray[np.int32]) -> None:
        """Write the token mask of one class mask.

        Tokens of class -1 are not allowed; bits past the last token are 0.

        Args:
            class_mask: int32, contiguous, shape ``(ceil(num_classes / 32),)``.
            row: int32, contiguous, shape ``(ceil(num_tokens / 32),)``; overwritten.

        Raises:
            ValueError: a shape does not fit, or an array is not contiguous.
        """
        self._core.unfold(class_mask, row)
