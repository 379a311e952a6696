"""Many charts on a device, a letter read by all of them in one launch."""

from __future__ import annotations

import torch

from tokfold.chart_gpu.device import on_device
from tokfold.chart_gpu.launches import KernelName, launches_for
from tokfold.chart_gpu.tables import Tables
from tokfold.errors import LimitExceededError
from tokfold.limits import DEFAULT_LIMITS, Limits

__all__ = ["Charts", "idle"]

idle = -2
"""In place of a letter: the row reads none."""


class Charts:
    """Charts of many texts under one grammar: *rows*, each with a text on its way.

    All memory is taken when it is made: nothing is allocated by a step, and nothing waits for the
    device, so that steps can be captured in a graph. For one stream at a time.

    A row is a chart of its own: :meth:`copy_` makes a branch by copying, and what one row reads
    never shows in another. Nodes of a token tree (:class:`TokenTree`) read the columns of their row
    and have one column each, which none but their children sees.

    Attributes:
        tables: the grammar.
        rows: how many texts.
        columns: letters of a text at most.
        ahead: letters of a token at most; 0 where there is no token tree.
        nodes: live nodes of a token tree at most, of all rows together, the roots included.
        lengths: int32, shape ``(rows,)``: letters read.
        status: int32, shape ``(rows,)``: what became of the last letter: 0 taken; 1 refused, and
            nothing changed; 2 there was no room, and nothing changed; 3 the row was idle.
    """

    def __init__(
        self,
        tables: Tables,
        rows: int,
        columns: int,
        *,
        ahead: int = 0,
        nodes: int = 0,
        kernel: KernelName = "auto",
        limits: Limits | None = None,
    ) -> None:
        """Charts of empty texts.

        Args:
            tables: the grammar, on the device.
            rows: how many texts.
            columns: letters of a text at most.
            ahead: letters of a token at most, for a token tree.
            nodes: live nodes of a token tree at most, beside a root for each row.
            kernel: what reads letters: kernels in CUDA, compiled at run time, or Triton's; the bits
                are the same. ``"auto"``: CUDA, where it can be compiled.
            limits: ``max_matcher_bytes`` bounds the memory.

        Warns:
            FallbackWarning: ``"auto"``, on a GPU for which CUDA cannot be compiled.

        Raises:
            LimitExceededError: they take more memory than the limit allows.
            DeviceError: they take more memory than the device has left; or ``"cuda"``, and there
                is no compiler for it (``reason`` ``"compiler"``).
        """
        if rows < 1 or columns < 1 or ahead < 0 or nodes < 0:
            raise ValueError(
                "rows and columns must be 1 or more, ahead and nodes 0 or more, not "
                f"{rows}, {columns}, {ahead}, {nodes}"
            )
        self.tables = tables
        self.rows, self.columns, self.ahead = rows, columns, ahead
        self.nodes = nodes + rows if ahead else 0
        grammar = tables.grammar
        symbols, lefts = max(1, grammar.num_symbols), max(1, len(grammar.lefts))
        self.width = ((columns + ahead) // 128 + 1) * 4  # kernels in CUDA load four words at once
        self.tail = ahead // 32 + 2 if ahead else 0
        slots = rows * (columns + 1) + self.nodes
        limits = limits or DEFAULT_LIMITS
        self._launches = launches_for(
            tables,
            kernel,
            rows=rows,
            nodes=self.nodes,
            width=self.width,
            ahead=ahead,
            limits=limits,
        )
        sizes = {
            "ended": slots * lefts * self.width,
            "predicted": symbols * (rows * self.width + self.nodes * self.tail),
            "ending": rows * lefts * self.width if self.kernel == "cuda" else 1,
            "following": slots * tables.letter_words,
            "scratch": self._launches.scratch,
            "paths": max(1, self.nodes * ahead),
            "lists": 3 * max(1, self.nodes),
        }
        self._bound(4 * sum(sizes.values()), limits)
        self._limits, self._kernel = limits, kernel

        def zeros(size: int, kind: torch.dtype = torch.int32) -> torch.Tensor:
            return torch.zeros(size, dtype=kind, device=tables.device)

        with on_device(tables.device, f"{rows} charts of {columns} letters, {nodes} nodes"):
            self.ended = zeros(sizes["ended"]).view(slots, lefts, self.width)
            self.predicted = zeros(sizes["predicted"])
            self.ending = zeros(sizes["ending"])
            self.following = zeros(sizes["following"]).view(slots, tables.letter_words)
            self.complete = zeros(rows * (columns + 1), torch.int8).view(rows, columns + 1)
            self.lengths = zeros(rows)
            self.status = zeros(rows)
            self.paths = zeros(sizes["paths"])
            self.node_rows, self.node_letters, self.node_parents = (
                zeros(max(1, self.nodes)) for _ in range(3)
            )
            self.counts = zeros(_power_of_two(ahead + 2))
            self.scratch = zeros(sizes["scratch"])
        self._row_numbers = torch.arange(rows, device=tables.device)
        self._begin()

    @property
    def kernel(self) -> str:
        """What reads letters: ``"cuda"`` or ``"triton"``."""
        return self._launches.name

    @property
    def nbytes(self) -> int:
        """Bytes on the device, beside the tables."""
        tensors = [value for value in vars(self).values() if isinstance(value, torch.Tensor)]
        return sum(tensor.nbytes for tensor in tensors)

    @property
    def row_predictions(self) -> torch.Tensor:
        """Where each symbol is predicted: int32, ``(rows, symbols, width)``.

        Bit ``c`` is place ``c``; places past the length mean nothing.
        """
        symbols = max(1, self.tables.grammar.num_symbols)
        return self.predicted[: self.rows * symbols * self.width].view(self.rows, symbols, -1)

    @property
    def row_columns(self) -> torch.Tensor:
        """The columns of the rows: int32, ``(rows, columns + 1, left children, width)``.

        The bits of a left child in a column are the places where a string of it begins that ends
        there; words past the place mean nothing.
        """
        own = self.ended[: self.rows * (self.columns + 1)]
        return own.view(self.rows, self.columns + 1, *own.shape[1:])

    @property
    def _row_endings(self) -> torch.Tensor:
        """Where any string of a left child ends, for kernels in CUDA: ``(rows, lefts, width)``."""
        rows = self.rows if self.kernel == "cuda" else 0
        return self.ending[: rows * self.ended.shape[1] * self.width].view(
            rows, self.ended.shape[1], self.width
        )

    @property
    def _row_following(self) -> torch.Tensor:
        own = self.following[: self.rows * (self.columns + 1)]
        return own.view(self.rows, self.columns + 1, -1)

    # ------------------------------------------------------------------------- answers

    def next_letters(self) -> torch.Tensor:
        """The letters that may come next in each row: int32 bitmasks, ``(rows, letter words)``."""
        own = self.following[: self.rows * (self.columns + 1)]
        place = self._row_numbers * (self.columns + 1) + self.lengths
        return own.index_select(0, place)

    def accepting(self) -> torch.Tensor:
        """Whether each text may end where it stands: bool, ``(rows,)``."""
        at = self.lengths.to(torch.int64)[:, None]
        return self.complete.gather(1, at)[:, 0] != 0

    def check(self) -> None:
        """Look at the last step: waits for the device.

        Raises:
            LimitExceededError: a row had no room for its letter.
        """
        if bool((self.status == 2).any()):
            full = (self.status == 2).nonzero()[:, 0].tolist()
            raise LimitExceededError(
                f"limit columns = {self.columns} reached: rows {full} have no room for another "
                "letter, and have not read it; make the charts with more columns",
                "columns",
                self.columns,
            )

    # ------------------------------------------------------------------------- steps

    def step_(self, letters: torch.Tensor) -> None:
        """Read a letter in each row.

        A letter that may not come, or for which there is no room, changes nothing in its row;
        ``status`` says so.

        Args:
            letters: int32, shape ``(rows,)``, contiguous, on the device: numbers of the grammar's
                letters; -1 for what is none, :data:`idle` for rows that read nothing.

        Raises:
            ValueError: another shape, dtype or device.
        """
        if letters.shape != (self.rows,) or letters.dtype != torch.int32:
            raise ValueError(
                f"letters must be int32 of the shape ({self.rows},), not {letters.dtype} of "
                f"{tuple(letters.shape)}"
            )
        self._on_device(letters)
        self._launches.read_rows(self, letters[:, None])

    def read_(self, letters: torch.Tensor) -> None:
        """Read letters in each row, one after the other, as far as they are taken.

        The first that is not taken ends its row, and ``status`` says why; so does the first
        :data:`idle` one, which is 3 only where it is the row's first. With kernels in CUDA all is
        one launch, however long the texts.

        Args:
            letters: int32, shape ``(rows, letters)``, contiguous, on the device; see :meth:`step_`.

        Raises:
            ValueError: another shape, dtype or device.
        """
        if letters.ndim != 2 or letters.shape[0] != self.rows or letters.dtype != torch.int32:
            raise ValueError(
                f"letters must be int32 of the shape ({self.rows}, letters), not {letters.dtype} "
                f"of {tuple(letters.shape)}"
            )
        self._on_device(letters)
        if letters.shape[1]:
            self._launches.read_rows(self, letters)

    def _on_device(self, letters: torch.Tensor) -> None:
        if letters.device != self.tables.device or not letters.is_contiguous():
            raise ValueError(
                f"letters must be contiguous and on {self.tables.device}, not on {letters.device}"
            )

    def rollback_(self, counts: torch.Tensor) -> None:
        """Take back the last letters of each row: costs the same for any number.

        Args:
            counts: int32, shape ``(rows,)``, on the device. More than were read takes back all.
        """
        self.lengths.sub_(counts).clamp_(min=0)

    def reset_(self) -> None:
        """Take back all letters of all rows."""
        self.lengths.zero_()
        self.status.zero_()

    def copy_(self, to: int, source: int) -> None:
        """Make a row a copy of another: a branch. The two share nothing.

        Raises:
            IndexError: there is no such row.
        """
        for row in (to, source):
            if not 0 <= row < self.rows:
                raise IndexError(f"there are {self.rows} rows, and none of index {row}")
        self.row_columns[to].copy_(self.row_columns[source])
        self.row_predictions[to].copy_(self.row_predictions[source])
        if self.kernel == "cuda":
            self._row_endings[to].copy_(self._row_endings[source])
        self._row_following[to].copy_(self._row_following[source])
        self.complete[to].copy_(self.complete[source])
        self.lengths[to].copy_(self.lengths[source])

    def with_columns(
        self, columns: int, *, ahead: int | None = None, nodes: int | None = None
    ) -> Charts:
        """The same texts in charts of their own, with room for another number of letters.

        Args:
            columns: letters of a text at most, and no fewer than any text has.
            ahead: letters of a token at most; as before if it is not given.
            nodes: live nodes of a token tree at most; as before if it is not given.

        Raises:
            LimitExceededError, DeviceError: as for a new one.
        """
        if nodes is None:
            nodes = self.nodes - self.rows if self.ahead else 0
        other = Charts(
            self.tables,
            self.rows,
            columns,
            ahead=self.ahead if ahead is None else ahead,
            nodes=nodes,
            kernel=self._kernel,
            limits=self._limits,
        )
        other.take_(self)
        return other

    def take_(self, other: Charts) -> None:
        """Have the texts of other charts, of the same grammar, kernel and number of rows.

        What the two have room for is copied; no text may be longer than that.
        """
        places, words = min(other.columns, self.columns) + 1, min(self.width, other.width)
        self.row_columns[:, :places, :, :words] = other.row_columns[:, :places, :, :words]
        self.row_predictions[:, :, :words] = other.row_predictions[:, :, :words]
        self._row_endings[:, :, :words] = other._row_endings[:, :, :words]
        self._row_following[:, :places] = other._row_following[:, :places]
        self.complete[:, :places] = other.complete[:, :places]
        self.lengths.copy_(other.lengths)

    # ------------------------------------------------------------------------- memory

    def _begin(self) -> None:
        """What is true of the empty text: of each row, once."""
        tables = self.tables
        symbols = tables.grammar.num_symbols
        first = tables.first_corners
        self._row_following[:, 0] = first[tables.symbol_words :]
        self.complete[:, 0] = int(tables.grammar.accepts_empty)
        if symbols:
            bits = torch.arange(32, device=tables.device, dtype=torch.int32)
            flags = (first[: tables.symbol_words, None] >> bits & 1).view(-1)[:symbols]
            self.row_predictions[:, :, 0] = flags

    def _bound(self, size: int, limits: Limits) -> None:
        if size > limits.max_matcher_bytes:
            raise LimitExceededError(
                f"limit max_matcher_bytes = {limits.max_matcher_bytes} reached: {self.rows} charts "
                f"of {self.columns} letters with {self.nodes} nodes take {size} bytes; make fewer "
                "or shorter ones, or raise the limit",
                "max_matcher_bytes",
                limits.max_matcher_bytes,
            )

    def __repr__(self) -> str:
        return f"<Charts of {self.rows} rows, {self.columns} letters, on {self.tables.device}>"


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
