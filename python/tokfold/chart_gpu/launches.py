"""Which kernels read letters, and how they are launched: those in CUDA, or Triton's.

Both leave the same bits. A block in CUDA has what is new of a letter in its own shared memory and
takes few rounds to it (``chart.cu``); a program of Triton's goes from place to place (``kernels``).
"""

from __future__ import annotations

import ctypes
import warnings
from typing import Any, Literal, Protocol, TypeAlias, get_args

import torch

from tokfold._checks import is_one_of
from tokfold._quoting import quoted
from tokfold.chart_gpu import cuda
from tokfold.chart_gpu.tables import Tables
from tokfold.errors import DeviceError, FallbackWarning, LimitExceededError
from tokfold.limits import Limits

__all__ = ["BLOCK", "PROGRAMS", "CudaLaunches", "KernelName", "Launches", "launches_for"]

KernelName: TypeAlias = Literal["auto", "cuda", "triton"]

PROGRAMS = 1_056
"""Blocks or programs of a launch at most: eight for each of 132 multiprocessors."""

BLOCK = 1_024
"""Rules, or words of rules, that a program of Triton's looks at at once. Reckoned, not tuned:
threads wait for the cache, and several loads of one thread wait together."""

WARPS = 8

ROW_THREADS, NODE_THREADS = 1_024, 256
"""Threads of a block in CUDA: a row has a multiprocessor to itself, nodes share one. On an H200 a
step of a thousand letters took 257 us with 1,024 threads, 283 with 768 and 376 with 512, and 4,096
nodes 873 us with 256, 920 with 512 and 909 with 128."""

MOST_ITEMS = 1 << 16
"""Items of a queue in shared memory are numbers of 16 bits."""


class ChartMemory(Protocol):
    """What kernels read and write: the memory of some charts, as :class:`Charts` has it."""

    tables: Tables
    rows: int
    columns: int
    ahead: int
    nodes: int
    width: int
    tail: int
    ended: torch.Tensor
    predicted: torch.Tensor
    ending: torch.Tensor
    following: torch.Tensor
    complete: torch.Tensor
    lengths: torch.Tensor
    status: torch.Tensor
    paths: torch.Tensor
    node_rows: torch.Tensor
    node_letters: torch.Tensor
    node_parents: torch.Tensor
    counts: torch.Tensor
    scratch: torch.Tensor


class Launches(Protocol):
    """How the letters of some charts are read.

    Attributes:
        name: ``"cuda"`` or ``"triton"``.
        scratch: words of memory that the kernels have for themselves.
    """

    name: str
    scratch: int

    def read_rows(self, charts: ChartMemory, letters: torch.Tensor) -> None:
        """Read letters in each row, ``(rows, letters)``, as far as they are taken."""

    def read_level(self, charts: ChartMemory, level: int, live: int) -> None:
        """Read a letter in the live nodes of a level of the token tree, so many at most."""


def launches_for(
    tables: Tables,
    kernel: KernelName,
    *,
    rows: int,
    nodes: int,
    width: int,
    ahead: int,
    limits: Limits,
) -> Launches:
    """The launches of charts of that size.

    Warns:
        FallbackWarning: ``"auto"``, on a GPU for which the kernels in CUDA cannot be compiled.

    Raises:
        DeviceError: ``"cuda"``, and they cannot be compiled.
        LimitExceededError: ``"cuda"``, and places in the memory of a block pass 31 bits.
        ValueError: another name.
    """
    if not is_one_of(kernel, get_args(KernelName)):
        raise ValueError(f'kernel must be "auto", "cuda" or "triton", not {quoted(kernel)}')
    size = (tables, rows, nodes, width, ahead, limits)
    if kernel == "triton" or (kernel == "auto" and tables.device.type != "cuda"):
        return TritonLaunches(*size)
    try:
        module = cuda.module_of(tables.device)
    except DeviceError as error:
        if kernel == "cuda" or error.reason == "memory":
            raise
        _warn(str(error))
        return TritonLaunches(*size)
    return CudaLaunches(module, *size)


_warned: set[str] = set()


def _warn(why: str) -> None:
    """Once for each reason: charts are made often, and all for the same."""
    if why not in _warned:
        _warned.add(why)
        warnings.warn(
            f"charts on a device: {why}; their kernels are Triton's, which are slower for few "
            "texts, and the answers are the same",
            FallbackWarning,
            stacklevel=5,
        )


def _programs(rows: int, nodes: int, words: int, limits: Limits) -> int:
    """Programs that have memory of their own: an eighth of all of it at most."""
    room = max(1, limits.max_matcher_bytes // (32 * words))
    return min(PROGRAMS, max(rows, nodes), room)


class TritonLaunches:
    """Letters by the kernel of Triton."""

    name = "triton"

    def __init__(
        self, tables: Tables, rows: int, nodes: int, width: int, ahead: int, limits: Limits
    ) -> None:
        grammar = tables.grammar
        self._list_words = max(1, len(grammar.rules), grammar.num_rights)
        symbols = max(1, grammar.num_symbols)
        self._words = (
            (symbols + 1) * width + self._list_words + grammar.num_rights + tables.corner_words
        )
        self._programs = _programs(rows, nodes, self._words, limits)
        self.scratch = self._programs * self._words

    def read_rows(self, charts: ChartMemory, letters: torch.Tensor) -> None:
        """As :meth:`Launches.read_rows`: a launch for each letter."""
        programs = min(self._programs, charts.rows)
        if letters.shape[1] == 1:
            self._advance(charts, letters[:, 0], 0, programs)
            return
        # What is not taken ends its row: others might be taken after it, where they do not belong.
        verdict = torch.zeros_like(charts.status)
        goes_on = torch.ones_like(charts.status, dtype=torch.bool)
        for place in range(letters.shape[1]):
            now = torch.where(goes_on, letters[:, place], -2)
            self._advance(charts, now, 0, programs)
            became = torch.where((charts.status == 3) & (place > 0), 0, charts.status)
            verdict = torch.where(goes_on, became, verdict)
            goes_on &= charts.status == 0
        charts.status.copy_(verdict)

    def read_level(self, charts: ChartMemory, level: int, live: int) -> None:
        """As :meth:`Launches.read_level`."""
        self._advance(charts, charts.node_letters, level, min(self._programs, live))

    def _advance(
        self, charts: ChartMemory, letters: torch.Tensor, level: int, programs: int
    ) -> None:
        from tokfold.chart_gpu import kernels

        tables, grammar = charts.tables, charts.tables.grammar
        kernel: Any = kernels.advance
        kernel[(programs,)](
            tables.parents,
            tables.lefts,
            tables.rights,
            len(grammar.rules),
            tables.left_symbols,
            len(grammar.lefts),
            tables.leaf_starts,
            tables.leaf_symbols,
            tables.corners,
            tables.corner_words,
            tables.symbol_words,
            grammar.num_rights,
            grammar.num_symbols,
            max(0, grammar.start),
            grammar.num_letters,
            charts.ended,
            charts.predicted,
            charts.following,
            charts.complete,
            charts.lengths,
            charts.status,
            letters.contiguous(),
            charts.columns,
            charts.width,
            charts.rows,
            level,
            charts.counts,
            charts.nodes,
            charts.node_rows,
            charts.node_letters,
            charts.node_parents,
            charts.paths,
            max(1, charts.ahead),
            max(1, charts.tail),
            charts.scratch,
            self._words,
            self._list_words,
            TREE=level > 0,
            LEVELS=len(charts.counts),
            BLOCK=BLOCK,
            num_warps=WARPS,
        )


_OF_TABLES = ("pairs", "leaf_starts", "leaf_symbols", "left_symbols", "corners")
_OF_CHARTS = (
    *("ended", "predicted", "ending", "following", "complete", "lengths", "status", "counts"),
    *("node_rows", "node_letters", "node_parents", "paths", "scratch"),
)
_NUMBERS = (
    *("num_symbols", "num_rights", "num_lefts", "num_pairs", "num_parents", "num_letters"),
    *("start", "symbol_words", "corner_words"),
    *("rows", "columns", "width", "ahead", "tail", "nodes", "column_words"),
    *("pitch", "item_bits", "scratch_words"),
)


class _Chart(ctypes.Structure):
    """``struct Chart`` of ``chart.cu``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in (*_OF_TABLES, *_OF_CHARTS)),
        *((name, ctypes.c_int) for name in _NUMBERS),
    )


class CudaLaunches:
    """Letters by the kernels in CUDA.

    Attributes:
        is_near: whether the memory of a block is shared memory; else it is the device's.
        memory: ``"near"``, ``"half"`` (shared, without the grammar's pairs) or ``"far"``.
        shared: bytes of shared memory of a block.
    """

    name = "cuda"

    def __init__(
        self,
        module: cuda.Module,
        tables: Tables,
        rows: int,
        nodes: int,
        width: int,
        ahead: int,
        limits: Limits,
    ) -> None:
        grammar = tables.grammar
        symbols, rights = grammar.num_symbols, grammar.num_rights
        self._module = module
        self._pitch = width | 4  # an odd number of quads
        self._item_bits = (width - 1).bit_length()
        lefts = len(grammar.lefts)
        own = (2 * symbols + lefts + rights) * self._pitch + (rights + 31) // 32
        own += (lefts + 31) // 32 + tables.corner_words + ahead + 3
        own = -(-own // 4) * 4
        table, items = tables.pairs.numel(), 2 * rights * width
        if max(own + items, 32 * width) >= 1 << 31:
            raise LimitExceededError(
                f"limit columns = {32 * width} reached: {symbols} symbols of {width} words pass "
                "what kernels in CUDA number with 31 bits; make the charts with fewer columns",
                "columns",
                32 * width,
            )
        near = 4 * own + 2 * items
        self.is_near = near <= module.max_shared and rights << self._item_bits <= MOST_ITEMS
        has_pairs = self.is_near and near + 4 * table <= module.max_shared
        self.memory = "near" if has_pairs else "half" if self.is_near else "far"
        self.shared = near + 4 * table * has_pairs if self.is_near else 0
        self._words = 1 if self.is_near else (own + items + 3) // 4 * 4
        self._programs = _programs(rows, nodes, self._words, limits)
        if self.is_near:
            # More would only wait: two or so find room beside one another.
            beside = max(1, min(8, module.max_shared // max(1, self.shared)))
            self._programs = min(max(rows, nodes), module.multiprocessors * beside)
        self.scratch = 1 if self.is_near else self._programs * self._words
        self._chart: _Chart | None = None

    def _chart_of(self, charts: ChartMemory) -> _Chart:
        if self._chart is None:
            tables, grammar = charts.tables, charts.tables.grammar
            places = {name: getattr(tables, name) for name in _OF_TABLES}
            places |= {name: getattr(charts, name) for name in _OF_CHARTS}
            numbers = {
                "num_symbols": grammar.num_symbols,
                "num_rights": grammar.num_rights,
                "num_lefts": len(grammar.lefts),
                "num_pairs": tables.num_pairs,
                "num_parents": len(grammar.rules),
                "num_letters": grammar.num_letters,
                "start": max(0, grammar.start),
                "symbol_words": tables.symbol_words,
                "corner_words": tables.corner_words,
                "column_words": len(grammar.lefts) * charts.width,
                "pitch": self._pitch,
                "item_bits": self._item_bits,
                "scratch_words": self._words,
            }
            numbers |= {name: getattr(charts, name) for name in _NUMBERS if name not in numbers}
            pointers = {
                name: tensor.data_ptr() for name, tensor in places.items() if tensor is not None
            }
            self._chart = _Chart(**pointers, **numbers)
        return self._chart

    def read_rows(self, charts: ChartMemory, letters: torch.Tensor) -> None:
        """As :meth:`Launches.read_rows`: one launch."""
        arguments = [
            self._chart_of(charts),
            ctypes.c_void_p(letters.data_ptr()),
            ctypes.c_int(letters.stride(0)),
            ctypes.c_int(letters.shape[1]),
        ]
        self._launch("read_rows", min(self._programs, charts.rows), ROW_THREADS, arguments)

    def read_level(self, charts: ChartMemory, level: int, live: int) -> None:
        """As :meth:`Launches.read_level`."""
        arguments = [self._chart_of(charts), ctypes.c_int(level)]
        self._launch("read_level", min(self._programs, live), NODE_THREADS, arguments)

    def _launch(self, kernel: str, blocks: int, threads: int, arguments: list[Any]) -> None:
        name = f"{kernel}_{self.memory}"
        self._module.launch(name, blocks, threads, self.shared, arguments)
