"""Masks that recur, kept on the device and known there by number."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tokfold._checks import check_number, wrong_type
from tokfold.torch.backends import Backend, chosen_backend, kernels_of
from tokfold.torch.checks import (
    Masks,
    are_distinct,
    check_logits,
    check_masks,
    listed_rows,
    no_rows,
    room_for,
)
from tokfold.torch.fold import Fold
from tokfold.torch.logits import apply_class_bitmask_

__all__ = ["MaskTable", "TableCounters"]

RING = 4
"""Buffers that may be on their way to the device at once."""

MOST_MASKS, DEFAULT_BYTES = 4_096, 32 << 20
"""Bounds of a table's masks where nobody sets one."""


class TableCounters(NamedTuple):
    """What a table did."""

    rows: int
    """Rows that were applied."""
    hits: int
    """Rows of which only the number was sent."""
    bytes_sent: int
    """Bytes that crossed to the device: masks, numbers, and which row each is for."""
    masks: int
    """Masks in the table."""
    evicted: int
    """Masks that went to make room."""


class MaskTable:
    """Masks on a device, each distinct one once.

    A text meets few distinct masks, and meets them again: after some hundred tokens nearly all
    masks of a step are there, and four bytes a row go to the device instead of a row of words.
    A class mask is unfolded when it comes, so that a step looks at no classes. What was not used
    for longest goes first. For one thread and one stream at a time.

    Attributes:
        fold: the classes.
        capacity: masks at most.
    """

    def __init__(self, fold: Fold, capacity: int | None = None, *, max_rows: int = 512) -> None:
        """Make an empty table.

        Args:
            fold: the classes, on the device.
            capacity: masks at most. Each takes a bit for each token: 16 KB of the device for
                128,256 tokens. By default as many as fit 32 MiB: ``max_rows`` at least, 4,096 at
                most.
            max_rows: rows of one call at most.

        Raises:
            ArgumentTypeError: ``fold`` is no fold, or a number is no whole number.
            ValueError: a number is below 1.
            DeviceError: the device has no memory for so many masks or rows.
        """
        if not isinstance(fold, Fold):
            raise wrong_type("fold", "a tokfold.torch.Fold", fold)
        token_words = -(-fold.num_tokens // 32)
        check_number("max_rows", max_rows, 1)
        if capacity is None:
            capacity = max(max_rows, min(MOST_MASKS, DEFAULT_BYTES // (4 * token_words)))
        check_number("capacity", capacity, 1, "; None is as many as fit 32 MiB")
        self.fold = fold
        self.capacity = capacity = operator.index(capacity)
        self._max_rows = max_rows = operator.index(max_rows)
        device, words = fold.device, fold.num_words
        self._is_cuda = device.type == "cuda"
        # A buffer holds numbers, rows, places of new masks, and new masks.
        size = max_rows * (3 + words)
        what = f"a table of {capacity} masks for calls of {max_rows} rows"
        all_words = capacity * token_words + RING * size
        with room_for(what, all_words, device, "pass a smaller capacity or max_rows"):
            self._table = torch.empty((capacity, token_words), dtype=torch.int32, device=device)
            self._host = [
                torch.zeros(size, dtype=torch.int32, pin_memory=self._is_cuda) for _ in range(RING)
            ]
            self._device = [
                torch.zeros(size, dtype=torch.int32, device=device) for _ in range(RING)
            ]
        self._sent: list[Any] = [None] * RING
        self._copies: Any = None
        self._applied: Any = None
        if self._is_cuda:
            self._copies = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            # Zeros are there before anything is written over them.
            self._applied = torch.cuda.current_stream(device).record_event()
        self._turn = 0
        self._places: OrderedDict[bytes, int] = OrderedDict()
        self._counts = {"rows": 0, "hits": 0, "bytes_sent": 0, "evicted": 0}

    def apply_(
        self,
        logits: torch.Tensor,
        class_bitmask: Masks,
        rows: Sequence[int] | None = None,
        *,
        backend: Backend = "auto",
    ) -> torch.Tensor:
        """As :func:`apply_class_bitmask_`, for masks that are on the CPU.

        Masks that are in the table go as numbers, the others as they are, and into the table; all
        as they are where the table cannot hold them all at once. Nothing waits for the device but
        for a buffer that is still on its way from four calls before.

        Args:
            logits: as there.
            class_bitmask: int32 on the CPU, shape ``(n, fold.num_words)``, contiguous.
            rows: the row of the logits that each mask is for; -1 for none.
            backend: as there.

        Returns:
            ``logits``.

        Raises:
            As :func:`apply_class_bitmask_`.
        """
        fold = self.fold
        if isinstance(class_bitmask, torch.Tensor) and class_bitmask.device.type != "cpu":
            raise ValueError(
                f"a MaskTable takes masks on the CPU, and these are on {class_bitmask.device}: "
                "move them by .cpu(), or pass them to apply_class_bitmask_"
            )
        chosen = chosen_backend(backend, fold.device)
        if chosen == "cpu":
            # Rows are remembered by the fold.
            apply_class_bitmask_(logits, class_bitmask, fold, rows, backend=backend)
            self._counts["rows"] += len(class_bitmask) if class_bitmask.ndim == 2 else 1
            return logits
        check_logits(logits, fold.num_tokens, fold.device)
        check_masks(class_bitmask, logits.ndim, fold.num_words, torch.device("cpu"))
        masks = np.atleast_2d(np.asarray(class_bitmask))
        if len(masks) > self._max_rows:
            raise ValueError(
                f"{len(masks)} masks, and the table was made for {self._max_rows} in one call: "
                "pass a larger max_rows"
            )
        kernels = kernels_of(chosen)
        wide = logits.detach()[None] if logits.ndim == 1 else logits.detach()
        if logits.ndim == 1:
            no_rows(rows)
        listed = listed_rows(rows, len(masks), len(wide))  # before anything moves
        numbers, new = self._numbers(masks)
        try:
            sent = self._send(masks, numbers, new, listed)
            if new:
                kernels.unfold(self._table, sent.places, sent.masks, fold)
        except BaseException:
            self.clear()  # what was to be there may not be
            raise
        distinct = are_distinct(listed)
        if sent.numbers is None:
            kernels.apply_classes(wide, sent.masks, fold, sent.rows, distinct)
        else:
            kernels.apply_tokens(
                wide, self._table, fold.num_tokens, sent.rows, distinct, sent.numbers
            )
        if self._is_cuda:
            self._applied = torch.cuda.current_stream(fold.device).record_event()
        self._counts["rows"] += len(masks)
        return logits

    @property
    def counters(self) -> TableCounters:
        """What it did so far."""
        return TableCounters(masks=len(self._places), **self._counts)

    def clear(self) -> None:
        """Forget all masks."""
        self._places.clear()

    # ------------------------------------------------------------------ numbers

    def _numbers(
        self, masks: npt.NDArray[np.int32]
    ) -> tuple[list[int] | None, list[tuple[int, int]]]:
        """The number of each mask, and of those that are new their rows and numbers.

        ``None`` where they are more than the table holds.
        """
        keys = [mask.tobytes() for mask in masks]
        distinct = dict.fromkeys(keys)
        if len(distinct) > self.capacity:
            return None, []
        for key in distinct:
            if key in self._places:
                self._places.move_to_end(key)  # nothing of this call goes to make room
        numbers, new = [], []
        for row, key in enumerate(keys):
            number = self._places.get(key)
            if number is None:
                number = self._room()
                self._places[key] = number
                new.append((row, number))
            numbers.append(number)
        self._counts["hits"] += len(keys) - len(new)
        return numbers, new

    def _room(self) -> int:
        if len(self._places) < self.capacity:
            return len(self._places)
        _, number = self._places.popitem(last=False)
        self._counts["evicted"] += 1
        return number

    # ------------------------------------------------------------------ the bus

    def _send(
        self,
        masks: npt.NDArray[np.int32],
        numbers: list[int] | None,
        new: list[tuple[int, int]],
        rows: Sequence[int] | None,
    ) -> _Sent:
        """One copy of all that the device does not know."""
        turn, self._turn = self._turn, (self._turn + 1) % RING
        if self._sent[turn] is not None:
            self._sent[turn].synchronize()
        host = self._host[turn].numpy()
        at = 0

        def put(values: Any) -> slice:  # noqa: ANN401 - numbers in any form
            nonlocal at
            flat = np.asarray(values, dtype=np.int32).reshape(-1)
            place = slice(at, at + len(flat))
            host[place] = flat
            at = place.stop
            return place

        own = put(numbers) if numbers is not None else None
        for_rows = put(rows) if rows is not None else None
        places = put([number for _, number in new]) if new else None
        if numbers is None:
            words = put(masks)
        else:
            words = put(masks[[row for row, _ in new]]) if new else slice(0, 0)
        device = self._device[turn]
        self._copy(turn, device[:at], self._host[turn][:at])
        self._counts["bytes_sent"] += 4 * at
        return _Sent(
            None if own is None else device[own],
            None if for_rows is None else device[for_rows],
            device[places] if places is not None else device[:0],
            device[words].view(-1, self.fold.num_words),
        )

    def _copy(self, turn: int, to: torch.Tensor, host: torch.Tensor) -> None:
        """Begin a copy to the device.

        While the stream is at work, with the model whose logits these masks are for, the copy goes
        by a stream beside it: it is there when the logits are.
        """
        if not self._is_cuda:
            to.copy_(host)
            return
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        stream = torch.cuda.current_stream(self.fold.device)
        if torch.cuda.is_current_stream_capturing() or stream.query():
            to.copy_(host, non_blocking=True)
            event.record(stream)
        else:
            self._copies.wait_event(self._applied)  # what was applied before reads the buffers
            with torch.cuda.stream(self._copies):
                to.copy_(host, non_blocking=True)
            event.record(self._copies)
            stream.wait_event(event)
        self._sent[turn] = event

    def __repr__(self) -> str:
        return f"<MaskTable of {len(self._places)} masks, {self.capacity} at most, {self.fold!r}>"


class _Sent(NamedTuple):
    """What was sent, where it is on the device."""

    numbers: torch.Tensor | None
    rows: torch.Tensor | None
    places: torch.Tensor
    masks: torch.Tensor
