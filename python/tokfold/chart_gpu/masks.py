"""Token masks of many charts, made on their device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tokfold.chart_gpu.charts import Charts, idle
from tokfold.chart_gpu.device import on_device
from tokfold.chart_gpu.launches import BLOCK
from tokfold.chart_gpu.tree import TokenTree
from tokfold.errors import LimitExceededError

__all__ = ["TokenMasks"]

NODES = 256
"""Nodes of a level that one program looks at."""

WORDS = 16
"""Words of a mask that one program writes."""


class TokenMasks:
    """Masks of all rows of some charts, by one token tree.

    Launches are the same for any text, nothing waits for the device and nothing is allocated, so a
    mask can be captured in a graph, behind the step before it.

    Attributes:
        charts: the charts.
        tree: the token tree.
        class_masks: int32, shape ``(rows, tree.num_words)``, on the device: what :meth:`fill_`
            wrote last. What :func:`tokfold.torch.apply_class_bitmask_` takes, with a
            :class:`tokfold.torch.Fold` of ``tree``.
        missing: int32, shape ``(1,)``, on the device: live nodes that found no room.
    """

    def __init__(self, charts: Charts, tree: TokenTree) -> None:
        """Put a tree beside charts.

        Args:
            charts: charts with ``ahead`` of at least ``tree.depth``.
            tree: the tree, over the letters of the charts' grammar.

        Raises:
            ValueError: the charts look less far ahead than the tree is deep.
            DeviceError: the memory of the device is used up.
        """
        if charts.ahead < max(1, tree.depth):
            raise ValueError(
                f"the tree has {tree.depth} levels and the charts look {charts.ahead} letters "
                f"ahead: make them with ahead={max(1, tree.depth)}"
            )
        self.charts, self.tree = charts, tree
        device, rows, nodes = charts.tables.device, charts.rows, len(tree)

        def put(values: object, kind: type) -> torch.Tensor:
            return torch.from_numpy(np.array(values, dtype=kind)).to(device)

        with on_device(device, f"the token tree of {nodes} nodes for {rows} rows"):
            self._parents = put(tree.parents, np.int32)
            self._letters = put(tree.letters, np.int16)
            self._inner = put(tree.inner, np.int8)
            self._ends = put(tree.ends, np.int32)
            self._class_of = put(tree.class_of, np.int32)
            self._slots = torch.full((rows, nodes), -1, dtype=torch.int32, device=device)
            self._viable = torch.zeros((rows, nodes), dtype=torch.int8, device=device)
            self.class_masks = torch.zeros((rows, tree.num_words), dtype=torch.int32, device=device)
            self.missing = torch.zeros(1, dtype=torch.int32, device=device)
            self._paths = put(_paths_of(tree), np.int32) if len(tree.ends) == 1 else None
        inner = np.add.reduceat(tree.inner, tree.levels[:-1])
        self._inner_of_level = inner.tolist()

    def fill_(self) -> torch.Tensor:
        """Write the class masks of all rows, where they stand now.

        Returns:
            ``class_masks``. A row of which nodes found no room means nothing: see :meth:`check`.
        """
        from tokfold.chart_gpu import tree_kernels as kernels

        charts, tree = self.charts, self.tree
        tables, rows = charts.tables, charts.rows
        symbols = max(1, tables.grammar.num_symbols)
        charts.counts.zero_()
        self.missing.zero_()
        plant: Any = kernels.plant
        plant[(rows,)](
            charts.predicted,
            charts.following,
            charts.lengths,
            self._slots,
            charts.counts,
            rows,
            charts.columns,
            charts.width,
            symbols,
            tables.letter_words,
            len(tree),
            charts.tail,
            BLOCK=BLOCK,
        )
        spread: Any = kernels.spread
        for level in range(1, tree.depth + 1):
            begin, end = int(tree.levels[level]), int(tree.levels[level + 1])
            spread[(rows, -(-(end - begin) // NODES))](
                self._parents,
                self._letters,
                self._inner,
                len(tree),
                level,
                begin,
                end - begin,
                self._slots,
                self._viable,
                charts.counts,
                charts.nodes,
                self.missing,
                charts.node_rows,
                charts.node_letters,
                charts.node_parents,
                charts.following,
                tables.letter_words,
                rows,
                charts.columns,
                LEVELS=len(charts.counts),
                BLOCK=NODES,
            )
            live = min(rows * self._inner_of_level[level], charts.nodes)
            if live:
                charts._launches.read_level(charts, level, live)
        pack: Any = kernels.pack
        pack[(rows, -(-tree.num_words // WORDS))](
            self._viable,
            charts.complete,
            charts.lengths,
            self._ends,
            len(tree),
            charts.columns,
            tree.num_classes,
            self.class_masks,
            tree.num_words,
            tree.num_words,
            WAYS=len(tree.ends),
            BLOCK=WORDS,
        )
        return self.class_masks

    def unfold_(self, bitmask: torch.Tensor) -> torch.Tensor:
        """Token masks of the class masks: int32, ``(rows, ceil(tokens / 32))``, on the device.

        Bits past the last token are 0.

        Raises:
            ValueError: ``bitmask`` has another shape, dtype or device, or is not contiguous.
        """
        from tokfold.chart_gpu import tree_kernels as kernels

        count = len(self.tree.class_of)
        shape = (self.charts.rows, -(-count // 32))
        if (
            bitmask.shape != shape
            or bitmask.dtype != torch.int32
            or bitmask.device != self.class_masks.device
            or not bitmask.is_contiguous()
        ):
            raise ValueError(
                f"bitmask must be contiguous int32 of the shape {shape} on "
                f"{self.class_masks.device}, not {bitmask.dtype} of {tuple(bitmask.shape)} on "
                f"{bitmask.device}"
            )
        unfold: Any = kernels.unfold
        unfold[(shape[0], -(-shape[1] // WORDS))](
            self.class_masks,
            self.tree.num_words,
            self._class_of,
            count,
            bitmask,
            shape[1],
            shape[1],
            BLOCK=WORDS,
        )
        return bitmask

    def accept_(self, tokens: torch.Tensor) -> torch.Tensor:
        """Read a token in each row, letter by letter; a token that may not come changes nothing.

        Of tokens of one class one is as good as another, so the class's path is read. A stop token
        reads nothing: it may come where the text may end. Nothing waits for the device.

        Args:
            tokens: int32 or int64, shape ``(rows,)``, on the device: ids; -1 for rows that read
                nothing.

        Returns:
            bool, shape ``(rows,)``, on the device: whether the token was taken. ``charts.status``
            says more: 0 taken, 1 refused, 2 no room, 3 the row was idle.

        Raises:
            ValueError: another shape, dtype or device; or tokens of the tree may be several
                sequences, and it takes a lexer to say which one.
        """
        if self._paths is None:
            raise ValueError("tokens of this tree may be several sequences: read letters instead")
        charts, device = self.charts, self.class_masks.device
        whole = tokens.dtype in (torch.int32, torch.int64)
        if tokens.shape != (charts.rows,) or not whole or tokens.device != device:
            raise ValueError(
                f"tokens must be int32 or int64 of the shape ({charts.rows},) on {device}, not "
                f"{tokens.dtype} of {tuple(tokens.shape)} on {tokens.device}"
            )
        is_id = (tokens >= 0) & (tokens < len(self._class_of))
        number = self._class_of.index_select(0, torch.where(is_id, tokens, 0).to(torch.int64))
        # Behind the paths of classes: one that is no letter, and one that is none at all.
        number = torch.where(is_id & (number >= 0), number, self.tree.num_classes)
        number = torch.where(tokens == -1, self.tree.num_classes + 1, number).to(torch.int64)
        is_idle = number > self.tree.num_classes
        is_text = number < self.tree.num_classes - self.tree.num_stop_classes
        is_stop = (number < self.tree.num_classes) & ~is_text
        verdict = (is_stop & ~charts.accepting()).to(torch.int32)
        before = charts.lengths.clone()
        charts.read_(self._paths.index_select(0, number))
        became = torch.where(charts.status == 3, 0, charts.status)
        verdict = torch.where(verdict == 0, became, verdict)
        # Letters before one that was refused were taken.
        charts.lengths.copy_(torch.where(verdict == 0, charts.lengths, before))
        charts.status.copy_(torch.where(is_idle, 3, verdict))
        return (verdict == 0) & ~is_idle

    def check(self) -> None:
        """Look at the last mask: waits for the device.

        Raises:
            LimitExceededError: nodes found no room, and the masks mean nothing.
        """
        self.refuse(int(self.missing.item()))

    def refuse(self, missing: int) -> None:
        """Raise what :meth:`check` raises where so many nodes found no room, if any."""
        if missing:
            room = self.charts.nodes - self.charts.rows
            raise LimitExceededError(
                f"limit max_tree_nodes = {room} reached: {missing} nodes of the token tree or more "
                "found no room, and the masks mean nothing; make the charts with more nodes",
                "max_tree_nodes",
                room,
            )

    def __repr__(self) -> str:
        return f"<TokenMasks of {self.charts!r} by {self.tree!r}>"


def _paths_of(tree: TokenTree) -> npt.NDArray[np.int32]:
    """The letters of each class; idle past their end, and for stop tokens.

    Two more rows: a letter that may never come, and none at all.
    """
    paths = np.full((max(1, tree.depth), tree.num_classes + 2), idle, dtype=np.int32)
    nodes = tree.ends[0].copy()
    paths[0, : tree.num_classes][nodes == -2] = -1  # in no text
    paths[0, tree.num_classes] = -1
    for level in range(tree.depth, 0, -1):
        here = np.flatnonzero((nodes >= tree.levels[level]) & (nodes < tree.levels[level + 1]))
        paths[level - 1, here] = tree.letters[nodes[here]]
        nodes[here] = tree.parents[nodes[here]]
    return np.ascontiguousarray(paths.T)
