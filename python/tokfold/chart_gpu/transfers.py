"""What a text has on a device, and what the host sees of it: one copy there, one back.

Letters that need no answer wait on the host. With kernels in CUDA the graph of the next token mask
copies them to the device, reads them, writes the mask and copies it back: one launch, one wait.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tokfold.chart_gpu.charts import Charts, idle
from tokfold.chart_gpu.device import on_device
from tokfold.chart_gpu.masks import WORDS, TokenMasks
from tokfold.chart_gpu.reading import Words
from tokfold.chart_gpu.tree import TokenTree
from tokfold.classes import TokenClasses
from tokfold.vocabulary import Vocabulary

__all__ = ["AT_ONCE", "Report", "TextMemory", "idle_one"]

AT_ONCE = 256
"""Letters that wait on the host at most, and are read in one launch."""

MOST_MASKS = 64
"""Token trees that a text has on the device at once: over terminals each state of the lexer has
one. The one that was used last is the last to go."""

EAGER_ROWS = 1
"""Rows of a token tree that are launched kernel by kernel, before a graph of them is captured: the
first compiles the kernels, if nobody did."""

_HEAD = 3
"""Words of a report before the letters that may come."""


class Report(NamedTuple):
    """Where a text stands.

    Attributes:
        length: letters read.
        is_complete: whether it may end there.
        following: the letters that may come, as bits.
    """

    length: int
    is_complete: bool
    following: Words


@dataclass
class _Here:
    """Token masks of a state of the lexer.

    Attributes:
        masks: by the token tree of the state.
        rows: how many rows were written with them.
        graph: the launches of a row as one, those that read letters before it and copies included.
    """

    masks: TokenMasks
    rows: int = 0
    graph: torch.cuda.CUDAGraph | None = None


class TextMemory:
    """A chart of one row, and its token masks, of one text after another.

    Each answer is one copy into pinned memory, which is waited for. What gives none is queued only,
    and letters are launched with the next answer.

    Attributes:
        charts: the chart.
        masks: by states of the lexer, the one that was used last at the end.
        row: the token mask that was written last, on the device: int32, ``(1, ceil(V / 32))``.
    """

    def __init__(
        self,
        charts: Charts,
        vocabulary: Vocabulary,
        classes: TokenClasses | None,
        stops: frozenset[int],
    ) -> None:
        """Memory for texts of a vocabulary that end with the same tokens."""
        self.charts = charts
        self.masks: dict[int, _Here] = {}
        self._vocabulary, self._classes, self._stops = vocabulary, classes, stops
        device = self._device = charts.tables.device
        pinned = device.type == "cuda"
        self._words = -(-len(vocabulary) // 32)
        self._head = -(-(_HEAD + charts.tables.letter_words) // 16) * 16
        with on_device(device, "a row of tokens"):
            size = self._head + self._words
            self._told = torch.zeros(size, dtype=torch.int32, device=device)
            self._letters = torch.zeros((1, AT_ONCE), dtype=torch.int32, device=device)
            self._none = torch.zeros(1, dtype=torch.int32, device=device)
            self._keep = ~_bits({*stops, *vocabulary.stop_token_ids}, self._words, device)
            self._stop_bits = _bits(stops, self._words, device)
        self.row = self._told[self._head :].view(1, -1)
        self._heard = torch.zeros(size, dtype=torch.int32, pin_memory=pinned)
        self._seen: Words = self._heard.numpy()
        self._given = torch.zeros((1, AT_ONCE), dtype=torch.int32, pin_memory=pinned)
        self._given_letters: Words = self._given.numpy()[0]
        self._given_start = torch.zeros(1, dtype=torch.int32, pin_memory=pinned)
        self._start: Words = self._given_start.numpy()
        self._behind: Any = None  # the stream that has work which was not waited for
        self._is_leaving = False  # whether a copy may still read the pinned letters
        self._read = 0  # the length to which the device has read the text; more there is ignored
        self._waiting: list[int] = []  # the letters of the text behind that length

    def is_for(
        self, vocabulary: Vocabulary, classes: TokenClasses | None, stops: frozenset[int]
    ) -> bool:
        """Whether it serves such texts."""
        return self._vocabulary is vocabulary and self._classes is classes and self._stops == stops

    # ------------------------------------------------------------------------- streams

    def _enter(self) -> None:
        """Before work is queued: behind what was queued on another stream."""
        if self._device.type == "cuda":
            here = torch.cuda.current_stream(self._device)
            if self._behind is not None and self._behind != here:
                self._behind.synchronize()
            self._behind = here

    def _wait(self) -> None:
        if self._behind is not None:
            self._behind.synchronize()
            self._behind = None
        self._is_leaving = False

    # ------------------------------------------------------------------------- the chart

    def cut_(self, length: int) -> None:
        """Go back to so many letters; the next launch says so to the device."""
        del self._waiting[max(0, length - self._read) :]
        self._read = min(length, self._read)

    def read_(self, letters: list[int]) -> None:
        """Read letters, as far as they are taken; :data:`AT_ONCE` at most."""
        if len(self._waiting) + len(letters) > AT_ONCE:
            self._launch()
        self._waiting += letters

    def _launch(self) -> None:
        """Queue the copy of the waiting letters and the kernel that reads them."""
        self._give()
        self._send(len(self._waiting))
        self._has_read()

    def _give(self) -> None:
        """Write the waiting letters, an idle one behind them and their start to pinned memory."""
        if self._is_leaving:  # a copy of the letters before
            self._wait()
        self._enter()
        self._is_leaving = True
        count = len(self._waiting)
        self._start[0] = self._read
        self._given_letters[:count] = self._waiting
        self._given_letters[count : count + 1] = idle

    def _send(self, count: int) -> None:
        """Queue the copy of pinned letters, and the kernel that reads them up to an idle one."""
        self.charts.lengths.copy_(self._given_start, non_blocking=True)
        if count:
            there = self._letters[:, :count]
            there.copy_(self._given[:, :count], non_blocking=True)
            self.charts.read_(there)

    def _has_read(self) -> None:
        """Record that the device has the letters.

        A call that is interrupted before this point sends them again, from the same start.
        """
        self._read, self._waiting = self._read + len(self._waiting), []

    def grow(self, columns: int, ahead: int, nodes: int) -> None:
        """Make room."""
        self._enter()
        charts = self.charts.with_columns(columns, ahead=ahead, nodes=nodes)
        self._wait()  # before what is copied is forgotten
        self.charts = charts
        self.masks.clear()

    def fork(self, free: TextMemory | None) -> TextMemory:
        """The same text in memory of its own: in that which is idle, if it has room."""
        self._launch()
        own = self.charts
        if free is not None and _has_room(free.charts, own):
            free._enter()
            free.charts.take_(own)
            free._waiting = []
        else:
            columns = own.with_columns(own.columns)
            free = TextMemory(columns, self._vocabulary, self._classes, self._stops)
        free._read = self._read
        self._wait()  # the two may go on in different streams
        return free

    # ------------------------------------------------------------------------- answers

    def report(self) -> Report:
        """Where the text stands."""
        self._launch()
        self._settle(self._none, None)
        self._copy_back(self._head)
        return self._reported()

    def fill(
        self, state: int, tree: TokenTree | None, to: torch.Tensor | None
    ) -> tuple[Report, Words]:
        """Which tokens may come: written into :attr:`row`, and into ``to``.

        Args:
            state: of the lexer.
            tree: the token tree there, for which the charts have room; where the state has masks
                already it is not needed.
            to: as :attr:`row`.

        Returns:
            Where the text stands, and the mask, which is written over by the next one.

        Raises:
            LimitExceededError: more nodes of the token tree are alive than ``max_tree_nodes``.
        """
        self._enter()
        here = self.masks.pop(state, None)
        if here is None:
            assert tree is not None
            if len(self.masks) >= MOST_MASKS:
                self._wait()
                del self.masks[next(iter(self.masks))]
            here = _Here(TokenMasks(self.charts, tree))
        self.masks[state] = here
        if here.graph is None and here.rows >= EAGER_ROWS and self._has_graphs:
            here.graph = self._captured(here.masks, state)
        here.rows += 1
        if here.graph is None:
            self._launch()
            self._write(here.masks, state)
        elif self._reads_in_graphs:
            self._give()
            here.graph.replay()
            self._has_read()
        else:
            self._launch()
            here.graph.replay()
        if to is not None:
            to.copy_(self.row)
        report = self._reported()
        here.masks.refuse(int(self._seen[2]))
        return report, self._seen[self._head :]

    @property
    def _has_graphs(self) -> bool:
        return self._device.type == "cuda"

    @property
    def _reads_in_graphs(self) -> bool:
        """Whether graphs have the letters too: kernels in Triton are a launch for each letter."""
        return self.charts.kernel == "cuda"

    def _read_and_write(self, masks: TokenMasks, state: int) -> None:
        """Queue the launches of a graph: letters are copied and read, a row is copied back."""
        if self._reads_in_graphs:
            self._send(AT_ONCE)
        self._write(masks, state)

    def _write(self, masks: TokenMasks, state: int) -> None:
        """Launch what writes a row, and copies it back."""
        masks.fill_()
        masks.unfold_(self.row)
        self._settle(masks.missing, state)
        self._copy_back(len(self._heard))

    def _settle(self, missing: torch.Tensor, state: int | None) -> None:
        """Launch what writes a report, and has the stop tokens of this text in its row, if any."""
        from tokfold.chart_gpu import tree_kernels as kernels

        charts = self.charts
        words = 0 if state is None else self._words
        settle: Any = kernels.settle
        settle[(max(1, -(-words // WORDS)),)](
            charts.lengths,
            charts.complete,
            charts.following,
            missing,
            charts.tables.letter_words,
            self._keep,
            self._stop_bits,
            self._told,
            self._head,
            words,
            MAY_END=state == 0,
            BLOCK=WORDS,
        )

    def _copy_back(self, words: int) -> None:
        """Copy the first words of the device's report to the host."""
        self._heard[:words].copy_(self._told[:words], non_blocking=True)

    def _reported(self) -> Report:
        """What was copied to the host; waits for it."""
        self._wait()
        length, is_complete = self._seen[:2].tolist()
        letter_words = self.charts.tables.letter_words
        following = self._seen[_HEAD : _HEAD + letter_words].copy()
        return Report(length, is_complete != 0, following)

    def _captured(self, masks: TokenMasks, state: int) -> torch.cuda.CUDAGraph:
        """What writes a row as a graph: one launch, where Python takes longer than the device.

        Not by ``torch.cuda.graph``, which empties the caches of the whole process.
        """
        graph = torch.cuda.CUDAGraph()
        here = torch.cuda.current_stream(self._device)
        beside = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        beside.wait_stream(here)
        with torch.cuda.stream(beside):
            graph.capture_begin(capture_error_mode="thread_local")  # other threads go on
            try:
                self._read_and_write(masks, state)
            finally:
                graph.capture_end()
        here.wait_stream(beside)
        return graph


def idle_one(
    idle: deque[TextMemory],
    vocabulary: Vocabulary,
    classes: TokenClasses | None,
    stops: frozenset[int],
) -> TextMemory | None:
    """Memory of a text that is no more, for the next one; it is taken out of those that are idle.

    Safe between threads, and whenever texts are given up meanwhile.
    """
    for _ in range(len(idle)):
        try:
            memory = idle.popleft()
        except IndexError:
            return None
        if memory.is_for(vocabulary, classes, stops):
            return memory
        idle.append(memory)
    return None


def _has_room(charts: Charts, other: Charts) -> bool:
    return (
        charts.columns >= other.columns
        and charts.ahead >= other.ahead
        and charts.nodes >= other.nodes
    )


def _bits(ids: frozenset[int] | set[int], words: int, device: torch.device) -> torch.Tensor:
    flags: npt.NDArray[np.uint8] = np.zeros(words * 32, dtype=np.uint8)
    flags[list(ids)] = 1
    return torch.from_numpy(np.packbits(flags, bitorder="little").view(np.int32).copy()).to(device)
