"""Bitmasks: rows of int32 words, bit ``j`` of word ``i`` is id ``32 * i + j``, 1 is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._checks import check_number, whole_number, wrong_type
from tokfold._quoting import quoted
from tokfold.classes import TokenClasses

__all__ = [
    "Unfolder",
    "allocate_bitmask",
    "allow_only",
    "allowed_tokens",
    "apply_token_bitmask_",
    "bits_of",
]


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
    numbers: list[int] = []
    for name, given in (("batch", batch), ("size", size)):
        number = whole_number(given)
        if number is None:
            raise wrong_type(name, "a whole number", given)
        numbers.append(number)
    if numbers[0] < 0 or numbers[1] < 1:
        raise ValueError(
            f"a bitmask needs batch >= 0 and size >= 1, not {quoted(batch)} and {quoted(size)}"
        )
    return np.full((numbers[0], (numbers[1] + 31) // 32), -1, dtype=np.int32)


def allowed_tokens(
    row: npt.NDArray[np.int32], vocab_size: int | None = None
) -> npt.NDArray[np.int64]:
    """The ids that a row of a bitmask allows, ascending: int64.

    Args:
        row: int32, shape ``(words,)``.
        vocab_size: ids from there on are left out: ``len(vocabulary)``. None: every bit counts;
            those past the vocabulary are 0 in rows that a matcher wrote.

    Raises:
        ArgumentTypeError: ``row`` is no array of int32, or ``vocab_size`` no whole number.
        ValueError: ``row`` has another shape, or fewer bits than ``vocab_size``.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> matcher = tokfold.Matcher(tokfold.compile('root ::= "a"+', vocabulary))
        >>> matcher.accept_token(0)
        True
        >>> bitmask = tokfold.allocate_bitmask(1, len(vocabulary))
        >>> matcher.fill_bitmask(bitmask)
        True
        >>> tokfold.allowed_tokens(bitmask[0], len(vocabulary))
        array([0, 3])
    """
    if getattr(row, "ndim", 1) != 1:
        raise ValueError(f"row must have the shape (words,), not {row.shape}: pass bitmask[0]")
    return np.flatnonzero(bits_of(row, vocab_size).view(np.bool_))


def apply_token_bitmask_(
    logits: npt.NDArray[np.floating[Any]], bitmask: npt.NDArray[np.int32], vocab_size: int
) -> npt.NDArray[np.floating[Any]]:
    """Write -inf over the logits of tokens that a bitmask does not allow, in place.

    :func:`tokfold.torch.apply_token_bitmask_` does so for tensors, on a GPU too.

    Args:
        logits: floating, ``(rows, width)`` or ``(width,)``, of ``vocab_size`` columns or more.
        bitmask: int32, with as many dimensions and rows, and a bit for each token.
        vocab_size: tokens of the vocabulary. Columns past it become -inf.

    Returns:
        ``logits``.

    Raises:
        ArgumentTypeError: an array has another type, or ``vocab_size`` is no whole number.
        ValueError: the shapes do not fit each other, or ``logits`` cannot be written.

    Example:
        >>> logits = np.zeros((1, 4), dtype=np.float32)
        >>> tokfold.apply_token_bitmask_(logits, np.array([[0b101]], dtype=np.int32), 3)
        array([[  0., -inf,   0., -inf]], dtype=float32)
    """
    if not isinstance(logits, np.ndarray) or not np.issubdtype(logits.dtype, np.floating):
        raise wrong_type("logits", "a numpy array of a floating dtype", logits)
    allowed = bits_of(bitmask, vocab_size)
    if logits.ndim not in (1, 2) or logits.shape[:-1] != allowed.shape[:-1]:
        raise ValueError(
            f"logits of shape {logits.shape} and a bitmask of shape {bitmask.shape} do not fit: "
            "pass a row of each for each text"
        )
    if logits.shape[-1] < vocab_size:
        raise ValueError(f"logits have {logits.shape[-1]} columns for {vocab_size} tokens")
    np.copyto(logits[..., :vocab_size], -np.inf, where=~allowed.view(np.bool_))
    logits[..., vocab_size:] = -np.inf
    return logits


def bits_of(bitmask: npt.NDArray[np.int32], size: int | None) -> npt.NDArray[np.uint8]:
    """For each token of each row 1 where it is allowed, else 0; of rows of so many tokens."""
    if not isinstance(bitmask, np.ndarray) or bitmask.dtype != np.int32:
        raise wrong_type("the bitmask", "a numpy array of dtype int32", bitmask)
    size = bitmask.shape[-1] * 32 if size is None else check_number("vocab_size", size, 1)
    if size > bitmask.shape[-1] * 32:
        raise ValueError(
            f"the bitmask has {bitmask.shape[-1] * 32} bits in a row, fewer than the {size} tokens"
        )
    words = np.ascontiguousarray(bitmask).view(np.uint8)
    return np.unpackbits(words, axis=-1, count=size, bitorder="little")


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
