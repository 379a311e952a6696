"""The class of each token, on a device."""

from __future__ import annotations

import copy
import itertools
import operator
import sys
import weakref
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tokfold import _core
from tokfold._checks import check_number, wrong_type
from tokfold._protocols import ClassBits
from tokfold._quoting import quoted
from tokfold.classes import TokenClasses
from tokfold.engine import CompiledGrammar
from tokfold.errors import ArgumentTypeError, DeviceError
from tokfold.torch.checks import checked_device, room_for

__all__ = ["Fold", "Foldable", "fold_of"]

Foldable: TypeAlias = TokenClasses | CompiledGrammar | ClassBits

_MAX_SMALL = 1 << 15
"""Classes up to which a class fits 16 bits."""

_numbers = itertools.count()
_folds: weakref.WeakValueDictionary[int, Fold] = weakref.WeakValueDictionary()


class Fold:
    """The class of each token, on a device: what unfolds class masks there.

    Made once for a compiled grammar and a device, and used for any number of rows. Immutable.

    Attributes:
        device: where the logits must be.
        num_tokens: size of the vocabulary. Columns of logits past it are padding of the model.
        num_classes: bits of a class mask.
        num_words: int32 words of a row of class masks.
        class_of: int16 or int32, shape ``(num_tokens,)``, on the device: the class of each token,
            -1 where it is never allowed.
    """

    def __init__(
        self,
        classes: Foldable,
        device: torch.device | str | int = "cpu",
        *,
        max_row_bytes: int = 32 << 20,
    ) -> None:
        """Put the classes on a device.

        Args:
            classes: classes, or what was compiled with them: by :func:`tokfold.compile`, or by
                :mod:`tokfold.xgrammar`; or a :class:`tokfold.chart_gpu.TokenTree`.
            device: where the logits will be: a name, the number of a GPU, or a ``torch.device``.
            max_row_bytes: on the CPU, bytes of token rows that are remembered.

        Raises:
            ValueError: the compiled grammar has no classes (yet), or takes no token at all.
            ArgumentTypeError: it is nothing that has classes, or ``device`` no device; it is a
                ``TypeError`` too.
            DeviceError: torch has no such device; it is a ``RuntimeError`` too.
        """
        check_number("max_row_bytes", max_row_bytes, 0)
        class_of, num_classes = _class_of(classes)
        if num_classes == 0:
            raise ValueError("the grammar takes no token of this vocabulary: there are no classes")
        self._host = class_of
        self._max_row_bytes = min(operator.index(max_row_bytes), sys.maxsize)
        self.num_tokens = len(class_of)
        self.num_classes = num_classes
        self.num_words = -(-num_classes // 32)
        small = class_of.astype(np.int16) if num_classes <= _MAX_SMALL else class_of
        self._put(torch.from_numpy(small.copy()), device)

    def _put(self, class_of: torch.Tensor, device: torch.device | str | int) -> None:
        self.class_of = _moved(class_of, device)
        self.device = self.class_of.device
        self._unfolder: _core.Unfolder | None = None
        if self.device.type == "cpu":
            self._unfolder = _core.Unfolder(self._host, self.num_classes, self._max_row_bytes)
        self._number = next(_numbers)
        _folds[self._number] = self

    def to(self, device: torch.device | str | int) -> Fold:
        """The same classes on another device.

        Raises:
            ArgumentTypeError: ``device`` is no device.
            DeviceError: torch has no such device; it is a ``RuntimeError`` too.
        """
        other = copy.copy(self)
        other._put(self.class_of, device)
        return other

    def is_of(self, compiled: CompiledGrammar) -> bool:
        """Whether the masks of a compiled grammar's classes are for this fold.

        Raises:
            ArgumentTypeError: it is no compiled grammar.
        """
        if not isinstance(compiled, CompiledGrammar):
            raise wrong_type("compiled", "a tokfold.CompiledGrammar", compiled)
        classes = compiled.classes
        return classes is not None and np.array_equal(classes.class_of, self._host)

    def allocate(self, rows: int) -> npt.NDArray[np.int32]:
        """Rows of class masks in which every class is allowed: int32, ``(rows, num_words)``.

        Where the fold is on a GPU they lie in memory that it reads without a copy in between.

        Raises:
            ArgumentTypeError: ``rows`` is no whole number.
            ValueError: it is below 0.
            DeviceError: there is no memory for so many rows.
        """
        check_number("rows", rows, 0)
        shape = operator.index(rows), self.num_words
        pinned = self.device.type == "cuda"
        what = f"{rows} rows of {4 * self.num_words} bytes"
        with room_for(what, shape[0] * shape[1], torch.device("cpu"), "allocate fewer"):
            masks = torch.full(shape, -1, dtype=torch.int32, pin_memory=pinned)
        array: npt.NDArray[np.int32] = masks.numpy()
        return array

    def __repr__(self) -> str:
        return (
            f"<Fold of {self.num_tokens} tokens into {self.num_classes} classes on {self.device}>"
        )


def _moved(tensor: torch.Tensor, device: torch.device | str | int) -> torch.Tensor:
    device = checked_device(device)
    try:
        return tensor.to(device)
    except torch.OutOfMemoryError as error:
        raise DeviceError(
            f"the memory of the device {device} is used up: {error}", "memory"
        ) from error
    except (RuntimeError, AssertionError) as error:  # the second where torch is built without CUDA
        said = str(error).partition("\n")[0]
        raise DeviceError(
            f"torch has no device {quoted(device)} here: {said}", "missing"
        ) from error


def fold_of(number: int) -> Fold:
    """The fold of a number, for graphs that hold numbers only."""
    return _folds[number]


def _class_of(classes: object) -> tuple[npt.NDArray[np.int32], int]:
    if isinstance(classes, CompiledGrammar):
        if classes.classes is None:
            raise ValueError(
                'the compiled grammar has no classes: compile it with classes="now", or call wait()'
            )
        classes = classes.classes
    if isinstance(classes, TokenClasses):
        return np.ascontiguousarray(classes.class_of), len(classes)
    if isinstance(classes, ClassBits):
        return np.ascontiguousarray(classes.class_of_token), classes.num_class_bits
    raise ArgumentTypeError(
        "a fold is made of TokenClasses or a compiled grammar, not "
        f"{type(classes).__module__}.{type(classes).__qualname__}"
    )
