"""One text on a device: what was read of it, and what may come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from tokfold.chart_gpu.charts import Charts
from tokfold.chart_gpu.device import on_device
from tokfold.chart_gpu.grammar import DeviceGrammar
from tokfold.chart_gpu.masks import TokenMasks
from tokfold.chart_gpu.tree import TokenTree
from tokfold.classes import TokenClasses
from tokfold.vocabulary import Vocabulary

__all__ = ["DeviceText"]

FIRST_COLUMNS = 64
"""Letters that a text has room for at first; twice as many whenever they do not do."""

AT_ONCE = 256
"""Letters read before the device is asked whether they were taken."""

MOST_MASKS = 16
"""Token trees that are on the device at once: over terminals each state of the lexer has one."""

EAGER_ROWS = 3
"""Rows of a token tree that are launched kernel by kernel, before a graph of them is captured."""


@dataclass
class _Here:
    """Token masks of a state of the lexer.

    Attributes:
        masks: by the token tree of the state.
        rows: how many rows were written with them.
        graph: the launches of a row as one.
    """

    masks: TokenMasks
    rows: int = 0
    graph: torch.cuda.CUDAGraph | None = None


class DeviceText:
    """A chart of one row, the lexer's state beside it, and token masks.

    Each answer waits for the device. Not safe between threads.

    Attributes:
        length: letters read.
        state: where the text stands in a letter; 0 between two, and always over bytes.
    """

    def __init__(
        self,
        grammar: DeviceGrammar,
        vocabulary: Vocabulary,
        classes: TokenClasses | None,
        stops: frozenset[int],
    ) -> None:
        """An empty text.

        Args:
            grammar: the grammar.
            vocabulary: the vocabulary.
            classes: token classes of the two: the trees are small over them.
            stops: the tokens that end this text, whatever those of the vocabulary.

        Raises:
            LimitExceededError: ``max_matcher_bytes`` are too few for a chart.
            DeviceError: the memory of the device is used up.
        """
        self._grammar, self._vocabulary, self._classes = grammar, vocabulary, classes
        self._stops = stops
        self.length = self.state = 0
        ahead, nodes = self._size_of(self.tree)
        limits = grammar.limits
        charts = Charts(grammar.tables, 1, FIRST_COLUMNS, ahead=ahead, nodes=nodes, limits=limits)
        self._begin(charts)

    def _begin(self, charts: Charts) -> None:
        """What each text has of its own, forks too."""
        self.charts = charts
        self._masks: dict[int, _Here] = {}
        self._rows: torch.Tensor | None = None
        self._accepting: bool | None = None

    def fork(self) -> DeviceText:
        """A text at the same place that goes its own way from here; the chart is copied."""
        forked = object.__new__(type(self))
        forked._grammar, forked._vocabulary = self._grammar, self._vocabulary
        forked._classes, forked._stops = self._classes, self._stops
        forked.length, forked.state = self.length, self.state
        forked._begin(self.charts.with_columns(self.charts.columns))
        return forked

    # ------------------------------------------------------------------------- reading

    def read(self, data: bytes) -> bool:
        """Read bytes, all of them or none."""
        found = self._grammar.reading.read(self.state, data)
        if found is None:
            return False
        letters, state = found
        end = self.length + len(letters)
        if end > self.charts.columns:
            columns = self.charts.columns
            while columns < end:
                columns *= 2
            self._grow(columns, self.charts.ahead, self.charts.nodes - 1)
        if not self._take(letters) or not self._grammar.reading.may_stand(
            state, self._words(state)
        ):
            self.charts.lengths.fill_(self.length)
            return False
        self.length, self.state, self._accepting = end, state, None
        return True

    def _take(self, letters: list[int]) -> bool:
        on_device = torch.tensor([letters], dtype=torch.int32).to(self._grammar.device)
        for begin in range(0, len(letters), AT_ONCE):
            part = on_device[:, begin : begin + AT_ONCE].contiguous()
            self.charts.read_(part)
            if int(self.charts.lengths.item()) != self.length + begin + part.shape[1]:
                return False
        return True

    def cut(self, length: int, state: int) -> None:
        """Go back to where so many letters were read, and the state was this."""
        self.length, self.state, self._accepting = length, state, None
        self.charts.lengths.fill_(length)

    def _grow(self, columns: int, ahead: int, nodes: int) -> None:
        self.charts = self.charts.with_columns(columns, ahead=ahead, nodes=nodes)
        self._masks.clear()

    # ------------------------------------------------------------------------- answers

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        if self._accepting is None:
            self._accepting = self.state == 0 and bool(self.charts.accepting()[0].item())
        return self._accepting

    @property
    def expected_bytes(self) -> bytes:
        """The bytes that may come next, ascending."""
        words = self.charts.next_letters()[0].cpu().numpy()
        return self._grammar.reading.expected(self.state, words)

    def _words(self, state: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
        """The letters that may come; not asked for between two letters, where nothing is open."""
        if state == 0:
            return np.zeros(1, dtype=np.int32)
        found: np.ndarray[tuple[int, ...], np.dtype[np.int32]] = (
            self.charts.next_letters()[0].cpu().numpy()
        )
        return found

    @property
    def tree(self) -> TokenTree:
        """The token tree where the text stands."""
        return self._grammar.reading.tree(self.state, self._vocabulary, self._classes)

    def _size_of(self, tree: TokenTree) -> tuple[int, int]:
        """How far charts have to look ahead for a tree, and how many nodes they need."""
        nodes = min(int(tree.inner.sum()), self._grammar.limits.max_tree_nodes)
        return max(1, tree.depth), nodes

    def token_row(self) -> torch.Tensor:
        """Which tokens may come next: int32, shape ``(1, ceil(V / 32))``, written over each time.

        Raises:
            LimitExceededError: more nodes of the token tree are alive than ``max_tree_nodes``.
        """
        here, device = self._masks_here(), self._grammar.device
        if self._rows is None:
            words = -(-len(self._vocabulary) // 32)
            with on_device(device, "a row of tokens"):
                self._rows = torch.zeros((1, words), dtype=torch.int32, device=device)
                never = {*self._stops, *self._vocabulary.stop_token_ids}
                self._keep = ~_bits(never, words, device)
                self._stop_bits = _bits(self._stops, words, device)
        if here.graph is None and here.rows == EAGER_ROWS and device.type == "cuda":
            here.graph = self._captured(here.masks, self._rows)
        here.rows += 1
        if here.graph is None:
            self._write(here.masks, self._rows)
        else:
            here.graph.replay()
        here.masks.check()
        return self._rows

    def _write(self, masks: TokenMasks, rows: torch.Tensor) -> None:
        """Launch what writes a row."""
        masks.fill_()
        masks.unfold_(rows)
        # Stop tokens are those of this text, whatever the vocabulary's.
        rows.bitwise_and_(self._keep)
        if self.state == 0:
            may_end = self.charts.accepting().to(torch.int32).neg()
            rows.bitwise_or_(self._stop_bits & may_end)

    def _captured(self, masks: TokenMasks, rows: torch.Tensor) -> torch.cuda.CUDAGraph:
        """The same as a graph: one launch, where Python takes longer for each than the device.

        Not by ``torch.cuda.graph``, which empties the caches of the whole process.
        """
        device = self._grammar.device
        graph = torch.cuda.CUDAGraph()
        here, beside = torch.cuda.current_stream(device), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        beside.wait_stream(here)
        with torch.cuda.stream(beside):
            graph.capture_begin(capture_error_mode="thread_local")  # other threads go on
            try:
                self._write(masks, rows)
            finally:
                graph.capture_end()
        here.wait_stream(beside)
        return graph

    def _masks_here(self) -> _Here:
        found = self._masks.get(self.state)
        if found is None:
            tree = self.tree
            ahead, nodes = self._size_of(tree)
            if ahead > self.charts.ahead or nodes > self.charts.nodes - 1:
                ahead = max(ahead, self.charts.ahead)
                self._grow(self.charts.columns, ahead, max(nodes, self.charts.nodes - 1))
            if len(self._masks) == MOST_MASKS:
                self._masks.clear()
            found = self._masks[self.state] = _Here(TokenMasks(self.charts, tree))
        return found


def _bits(ids: frozenset[int] | set[int], words: int, device: torch.device) -> torch.Tensor:
    flags = np.zeros(words * 32, dtype=np.uint8)
    flags[list(ids)] = 1
    return torch.from_numpy(np.packbits(flags, bitorder="little").view(np.int32).copy()).to(device)
