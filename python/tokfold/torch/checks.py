"""What is checked before masks go onto logits: each mistake says what it is and what to do."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tokfold._checks import whole_number, wrong_type
from tokfold._quoting import quoted
from tokfold.errors import ArgumentTypeError, DeviceError

__all__ = [
    "Masks",
    "Rows",
    "are_distinct",
    "check_logits",
    "check_masks",
    "check_tensor",
    "checked_device",
    "listed_numbers",
    "listed_rows",
    "no_rows",
    "room_for",
    "rows_on_device",
]

Masks: TypeAlias = "torch.Tensor | npt.NDArray[np.int32]"
Rows: TypeAlias = "torch.Tensor | Sequence[int] | None"

DTYPES = (torch.float32, torch.float16, torch.bfloat16)

MOST_WORDS = (1 << 61) - 1
"""Words of int32 whose bytes can be counted."""

MOST_DEVICES = 1 << 7
"""Numbers of devices: torch takes them modulo 256 in silence."""


def checked_device(device: torch.device | str | int) -> torch.device | str | int:
    """Refuse what names no device, and what ``Tensor.to`` takes for something else."""
    if isinstance(device, torch.device | str):
        return device
    number = whole_number(device) if isinstance(device, int | np.integer) else None
    if number is None:
        error = wrong_type("device", "a torch.device, a str or an int", device)
        if isinstance(device, torch.Tensor):
            error.args = (f"{error}: pass its device, tensor.device",)
        raise error
    if number >= MOST_DEVICES:
        raise DeviceError(f"torch has no device {number} here", "missing")
    return number


@contextmanager
def room_for(what: str, words: int, device: torch.device, instead: str) -> Iterator[None]:
    """Memory for so many words is taken within; where there is none, the error says so."""
    said = f"the memory of the device {device} has no room for {what}: {instead}"
    if words > MOST_WORDS:
        raise DeviceError(said, "memory")
    try:
        yield
    except RuntimeError as error:
        # A GPU tells of other things, and later.
        if device.type != "cpu" and not isinstance(error, torch.OutOfMemoryError):
            raise
        raise DeviceError(f"{said} ({str(error).splitlines()[0]})", "memory") from error


def check_tensor(logits: torch.Tensor) -> None:
    """Refuse logits that are no tensor."""
    if not isinstance(logits, torch.Tensor):
        raise wrong_type("logits", "a torch.Tensor", logits)


def check_logits(logits: torch.Tensor, num_tokens: int, device: torch.device) -> None:
    """Refuse logits that no mask over so many tokens, on this device, can go onto."""
    check_tensor(logits)
    if logits.dtype not in DTYPES:
        raise ArgumentTypeError(f"logits must be float32, float16 or bfloat16, not {logits.dtype}")
    if logits.device != device:
        raise ValueError(
            f"the logits are on {logits.device} and the fold on {device}: fold.to(logits.device)"
        )
    if logits.ndim not in (1, 2):
        raise ValueError(f"logits must have one or two dimensions, not {logits.ndim}")
    if logits.shape[-1] < num_tokens:
        raise ValueError(
            f"the logits have {logits.shape[-1]} columns, and the vocabulary {num_tokens} tokens, "
            "so it is that of another model: pass the logits of all tokens"
        )
    if logits.stride(-1) != 1 and logits.shape[-1] > 1:
        raise ValueError("the entries of a row of logits must lie side by side: stride(-1) is 1")
    if logits.ndim == 2 and logits.shape[0] > 1 and logits.stride(0) < logits.shape[1]:
        raise ValueError("the rows of the logits share memory: clone() them first")


def check_masks(masks: Masks, ndim: int, words: int, device: torch.device) -> None:
    """Refuse what are no masks of so many words for logits of so many dimensions."""
    if isinstance(masks, torch.Tensor):
        fits = masks.dtype == torch.int32
        if masks.device != device:
            raise ValueError(
                f"the masks are on {masks.device} and the logits on {device}: move them there, or "
                "use a MaskTable"
            )
        contiguous = masks.is_contiguous()
    elif isinstance(masks, np.ndarray):
        fits = masks.dtype == np.int32
        if device.type != "cpu":
            raise ValueError(
                f"the masks are a numpy array and the logits on {device}: move them there, or use "
                "a MaskTable"
            )
        contiguous = masks.flags.c_contiguous
    else:
        raise wrong_type("masks", "a tensor or a numpy array", masks)
    if not fits:
        raise ArgumentTypeError(f"masks must be int32, not {masks.dtype}")
    if masks.ndim != ndim or masks.shape[-1] != words:
        rows = "(n, " if ndim == 2 else "("
        raise ValueError(
            f"masks must have the shape {rows}{words}), not {tuple(masks.shape)}: are they of "
            "another grammar?"
        )
    if not contiguous:
        raise ValueError("masks must be contiguous")


def no_rows(rows: Rows) -> None:
    """Refuse rows for a single row."""
    if rows is not None:
        raise ValueError("rows are for logits of two dimensions")


def _fit(masks: int, count: int) -> None:
    if masks != count:
        raise ValueError(
            f"{masks} masks for {count} rows of logits: say by rows=... which is for which"
        )


def listed_numbers(tensor: torch.Tensor, name: str) -> list[int]:
    """The numbers of a tensor of one dimension, in one wait for its device."""
    if tensor.dtype == torch.bool or tensor.is_floating_point() or tensor.is_complex():
        raise ArgumentTypeError(f"{name} must be whole numbers, not {tensor.dtype}")
    if tensor.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {tensor.ndim}")
    if tensor.is_meta or tensor.layout != torch.strided:
        where = "on meta" if tensor.is_meta else f"a tensor of the layout {tensor.layout}"
        raise ValueError(f"{name} must be a dense tensor with data, and this is {where}")
    listed: list[int] = tensor.tolist()
    return listed


def _whole_numbers(rows: torch.Tensor) -> None:
    if rows.dtype not in (torch.int32, torch.int64):
        raise ArgumentTypeError(f"rows must be int32 or int64, not {rows.dtype}")
    if rows.ndim != 1:
        raise ValueError(f"rows must have one dimension, not {rows.ndim}")


def listed_rows(rows: Rows, masks: int, count: int) -> list[int] | None:
    """Rows as the CPU wants them, checked."""
    if rows is None:
        _fit(masks, count)
        return None
    if isinstance(rows, torch.Tensor):
        _whole_numbers(rows)
        listed = listed_numbers(rows, "rows")
    elif isinstance(rows, Sequence | np.ndarray) and not isinstance(rows, str | bytes):
        try:
            listed = [operator.index(row) for row in rows]
        except TypeError:
            raise ArgumentTypeError(f"rows must be whole numbers, not {quoted(rows)}") from None
        if bool in set(map(type, rows)):
            raise ArgumentTypeError(f"rows must be whole numbers, not truth values: {quoted(rows)}")
    else:
        raise wrong_type("rows", "a sequence or a tensor", rows)
    if len(listed) != masks:
        raise ValueError(f"{masks} masks, but {len(listed)} rows")
    for row in listed:
        if not -1 <= row < count:
            raise IndexError(f"the logits have {count} rows, not one of index {row}")
    return listed


def are_distinct(rows: Rows) -> bool:
    """Whether no row of the logits has two masks, as far as the CPU can see."""
    if rows is None:
        return True
    if isinstance(rows, torch.Tensor):
        if rows.device.type != "cpu":
            return False
        rows = rows.tolist()
    used = [row for row in rows if row >= 0]
    return len(set(used)) == len(used)


def rows_on_device(rows: Rows, masks: int, count: int, device: torch.device) -> torch.Tensor | None:
    """Rows as a kernel wants them; checked where the CPU can see them."""
    if rows is None:
        _fit(masks, count)
        return None
    if isinstance(rows, torch.Tensor) and rows.device == device and device.type != "cpu":
        _whole_numbers(rows)
        if len(rows) != masks:
            raise ValueError(f"{masks} masks, but {len(rows)} rows")
        return rows.contiguous()
    listed = listed_rows(rows, masks, count)
    # From pinned memory nothing waits; what a graph would read there is gone when it is replayed.
    pinned = device.type == "cuda" and not torch.cuda.is_current_stream_capturing()
    numbers = torch.tensor(listed, dtype=torch.int64, pin_memory=pinned)
    return numbers.to(device, non_blocking=pinned)
