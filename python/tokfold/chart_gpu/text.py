"""One text on a device: what was read of it, and what may come."""

from __future__ import annotations

import weakref

import torch

from tokfold.chart_gpu.charts import Charts
from tokfold.chart_gpu.device import on_device
from tokfold.chart_gpu.grammar import DeviceGrammar
from tokfold.chart_gpu.reading import Words
from tokfold.chart_gpu.transfers import AT_ONCE, Report, TextMemory, idle_one
from tokfold.chart_gpu.tree import TokenTree
from tokfold.classes import TokenClasses
from tokfold.errors import TokfoldError
from tokfold.vocabulary import Vocabulary

__all__ = ["DeviceText"]

FIRST_COLUMNS = 64
"""Letters that a text has room for at first; twice as many whenever they do not do."""

IDLE_COLUMNS = 4 * FIRST_COLUMNS
"""Letters up to which memory is kept for the next text: a wide chart is a slow one."""


class DeviceText:
    """A chart of one row, the lexer's state beside it, and token masks.

    Each answer waits for the device, once. What was answered is known until the text moves: a token
    that the last mask has is read without waiting, and one that it has not is refused without
    asking. Not safe between threads.

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
        """An empty text, which ends with ``stops``, whatever the stop tokens of the vocabulary.

        The trees are small over ``classes``, those of the two.
        """
        self._grammar, self._vocabulary, self._classes = grammar, vocabulary, classes
        self._stops = stops
        self.length = self.state = 0
        memory = idle_one(grammar.idle, vocabulary, classes, stops)
        if memory is not None:
            memory.cut_(0)
        else:
            ahead, nodes = self._size_of(self.tree)
            charts = Charts(
                grammar.tables, 1, FIRST_COLUMNS, ahead=ahead, nodes=nodes, limits=grammar.limits
            )
            memory = TextMemory(charts, vocabulary, classes, stops)
        self._begin(memory)

    def _begin(self, memory: TextMemory) -> None:
        """What each text has of its own, forks too."""
        self._memory = memory
        self._own: torch.Tensor | None = None  # the row on the device
        self._report: Report | None = None  # where it stands, if that is known
        self._row: Words | None = None  # which tokens may come there, if that is known
        weakref.finalize(self, _give_back, self._grammar, memory).atexit = False

    def fork(self) -> DeviceText:
        """A text at the same place that goes its own way from here; the chart is copied."""
        forked = object.__new__(type(self))
        forked._grammar, forked._vocabulary = self._grammar, self._vocabulary
        forked._classes, forked._stops = self._classes, self._stops
        forked.length, forked.state = self.length, self.state
        idle = idle_one(self._grammar.idle, self._vocabulary, self._classes, self._stops)
        forked._begin(self._memory.fork(idle))
        return forked

    @property
    def charts(self) -> Charts:
        """The chart."""
        return self._memory.charts

    # ------------------------------------------------------------------------- reading

    def read(self, data: bytes, token: int | None = None) -> bool:
        """Read bytes, all of them or none; those of a token, if it is one and ends no text."""
        is_sure = token is not None and self._row is not None
        if is_sure and not self._allows(token):
            return False
        found = self._grammar.reading.read(self.state, data)
        if found is None:
            return False
        letters, state = found
        end = self.length + len(letters)
        if end > self.charts.columns:
            columns = self.charts.columns
            while columns < end:
                columns *= 2
            self._memory.grow(columns, self.charts.ahead, self.charts.nodes - 1)
        is_read = False
        try:
            if is_sure and len(letters) <= AT_ONCE:
                report = None if letters else self._report
                if letters:
                    self._memory.read_(letters)  # the next report says what became of it
                is_read = True
            else:
                report = self._taken(letters) if letters else self._standing()
                is_read = report is not None and self._grammar.reading.may_stand(
                    state, report.following
                )
        finally:
            if not is_read:
                self._memory.cut_(self.length)
        if is_read:
            self.length, self.state, self._report, self._row = end, state, report, None
        return is_read

    def _allows(self, token: int | None) -> bool:
        """Whether the mask that was made here has a token."""
        assert self._row is not None
        assert token is not None
        return bool(int(self._row[token >> 5]) >> (token & 31) & 1)

    def _taken(self, letters: list[int]) -> Report | None:
        """Read letters; where the text stands behind them, None where one was refused."""
        report = None
        for begin in range(0, len(letters), AT_ONCE):
            part = letters[begin : begin + AT_ONCE]
            self._memory.read_(part)
            report = self._memory.report()
            if report.length != self.length + begin + len(part):
                return None
        return report

    def cut(self, length: int, state: int) -> None:
        """Go back to where so many letters were read, and the state was this."""
        self.length, self.state, self._report, self._row = length, state, None, None
        self._memory.cut_(length)

    # ------------------------------------------------------------------------- answers

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return self.state == 0 and self._standing().is_complete

    @property
    def expected_bytes(self) -> bytes:
        """The bytes that may come next, ascending."""
        return self._grammar.reading.expected(self.state, self._standing().following)

    def _standing(self) -> Report:
        """Where the text stands."""
        if self._report is None:
            self._report = self._checked(self._memory.report())
        return self._report

    def _checked(self, report: Report) -> Report:
        if report.length != self.length:
            raise TokfoldError("the chart refuses a token of its mask: please report it")
        return report

    @property
    def tree(self) -> TokenTree:
        """The token tree where the text stands."""
        return self._grammar.reading.tree(self.state, self._vocabulary, self._classes)

    def _size_of(self, tree: TokenTree) -> tuple[int, int]:
        """How far charts have to look ahead for a tree, and how many nodes they need."""
        nodes = min(int(tree.inner.sum()), self._grammar.limits.max_tree_nodes)
        return max(1, tree.depth), nodes

    def token_row(self) -> torch.Tensor:
        """Which tokens may come next, written over each time: int32, ``(1, ceil(V / 32))``."""
        if self._own is None:
            with on_device(self._grammar.device, "a row of tokens"):
                self._own = torch.zeros_like(self._memory.row)
        self._fill(self._own)
        return self._own

    def token_words(self) -> Words:
        """The same on the host, until the text moves."""
        return self._fill(None) if self._row is None else self._row

    def _fill(self, to: torch.Tensor | None) -> Words:
        self._row = None
        tree = None if self.state in self._memory.masks else self.tree
        if tree is not None:
            ahead, nodes = self._size_of(tree)
            if ahead > self.charts.ahead or nodes > self.charts.nodes - 1:
                ahead = max(ahead, self.charts.ahead)
                self._memory.grow(self.charts.columns, ahead, max(nodes, self.charts.nodes - 1))
        report, row = self._memory.fill(self.state, tree, to)
        self._report, self._row = self._checked(report), row
        return row


def _give_back(grammar: DeviceGrammar, memory: TextMemory) -> None:
    """Keep the memory of a text that is no more, with all graphs, for the next one."""
    if memory.charts.columns <= IDLE_COLUMNS:
        grammar.idle.append(memory)
