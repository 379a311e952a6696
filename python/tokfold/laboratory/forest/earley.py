"""An Earley recognizer with counters, with and without Leo's items.

Counting convention, the same everywhere. An item is a production with a dot and the position where
it began. There is no added start production, and an Earley set holds every item of the closure:
scanned, completed and predicted ones, ``A -> .`` of an empty production too. Productions that no
whole string uses are left out first, so each item belongs to some string that begins with the text.
Positions count code points.

A set is kept in two parts. The *kernel* are the items that have read something. What they predict
depends on the nonterminals after their dots alone, empty completions included (Aycock and
Horspool: whoever predicts a nonterminal that may be empty steps over it at once), so that part, a
*block*, is made once for each set of nonterminals and shared between positions.

With Leo (1991): where just one item of a set waits for ``B``, and ``B`` is its last symbol,
completing ``B`` goes straight to the topmost item of the chain of such completions. The end of the
text waits for the start symbol as well, so that is never part of a chain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from tokfold.laboratory.forest.limits import CostLimitError, CostLimits
from tokfold.laboratory.forest.productions import Productions
from tokfold.laboratory.forest.slots import Block, Slots

__all__ = ["Counters", "Earley", "EarleySet"]


@dataclass(frozen=True, slots=True)
class Counters:
    """What one position of a text costs.

    Attributes:
        new_items: items of the Earley set, all of which are made at this step.
        predicted: those of them that have read nothing.
        completer_work: pairs of a completed nonterminal and an item that waits for it; with Leo
            one for each chain that is taken.
        leo_items: chains taken.
        new_nodes: new nodes of the packed forest: symbol nodes and intermediate nodes.
        new_packed_nodes: new packed nodes, the ways in which those nodes are derived. With Leo a
            chain is one.
        new_splits: those of them with a left and a right part (definition 13).
    """

    new_items: int
    predicted: int
    completer_work: int
    leo_items: int
    new_nodes: int
    new_packed_nodes: int
    new_splits: int

    @property
    def surplus(self) -> int:
        """Packed nodes beyond the first of each node: what is ambiguous here."""
        return self.new_packed_nodes - self.new_nodes

    def document(self) -> dict[str, int]:
        """As JSON values."""
        return {**asdict(self), "surplus": self.surplus}


class EarleySet:
    """The items at one position."""

    __slots__ = ("block", "completed", "kernel", "leaps", "onward", "sums", "tops", "waiting")

    def __init__(self) -> None:
        self.kernel: set[int] = set()
        self.waiting: dict[int, list[int]] = {}
        """Kernel items by the symbol after the dot."""
        self.completed: dict[int, list[int]] = {}
        """Origins before this position of completed nonterminals."""
        self.block: Block
        self.sums: dict[int, tuple[int, int, int]] = {}
        """By nonterminal: items that wait for it, and what advancing them adds to the forest."""
        self.tops: dict[int, int | None] = {}
        """By nonterminal: the topmost item of its chain."""
        self.leaps: list[tuple[int, int]] = []
        """Completed nonterminals, with their origins, that went straight to a topmost item."""
        self.onward: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = {}
        """What :mod:`tokfold.laboratory.forest.live` remembers."""


class Earley:
    """A text on its way, code point by code point.

    An item is the number ``origin * slots + slot``, a slot being a dotted production.
    """

    def __init__(
        self,
        grammar: Productions | Slots,
        *,
        leo: bool = False,
        limits: CostLimits | None = None,
    ) -> None:
        """Begin a text.

        Args:
            grammar: productions, which are pruned first, or their slots, which several texts share.
            leo: whether to take Leo's chains.
            limits: bounds; :class:`CostLimitError` where one is reached.
        """
        self.slots = grammar if isinstance(grammar, Slots) else Slots(grammar)
        self.leo = leo
        self.limits = limits or CostLimits()
        self.sets: list[EarleySet] = []
        self.counters: list[Counters] = []
        self.items = 0
        self.work = 0
        first = EarleySet()
        first.block = self.slots.block(frozenset((self.slots.grammar.start,)))
        self._close(first, 0, 0, 0, 0, 0)

    @property
    def position(self) -> int:
        """Code points read."""
        return len(self.sets) - 1

    @property
    def viable(self) -> bool:
        """Whether some string of the language begins with the text so far."""
        last = self.sets[-1]
        return bool(last.kernel or last.block.items)

    @property
    def accepting(self) -> bool:
        """Whether the text so far is in the language."""
        start = self.slots.grammar.start
        if len(self.sets) == 1:
            return start in self.slots.grammar.nullable
        return 0 in self.sets[-1].completed.get(start, ())

    def truncate(self, position: int) -> None:
        """Go back to a position."""
        if not 0 <= position < len(self.sets):
            raise ValueError(f"position {position} is not in 0 to {len(self.sets) - 1}")
        for dropped in self.counters[position + 1 :]:
            self.items -= dropped.new_items
            self.work -= dropped.completer_work
        del self.sets[position + 1 :], self.counters[position + 1 :]

    def read(self, points: Iterable[int]) -> bool:
        """Read code points while they can stand there; whether all of them could."""
        return all(self.step(point) for point in points)

    def step(self, point: int) -> bool:
        """Read one code point; where it cannot stand, stay and return False.

        Raises:
            CostLimitError: a bound is reached; the recognizer stays where it is.
        """
        slots, here = self.slots, len(self.sets)
        last = self.sets[-1]
        size = slots.count
        kernel: set[int] = set()
        matching = slots.matching(point)
        waiting = last.waiting
        if len(matching) < len(waiting):
            for terminal in matching:
                kernel.update(item + 1 for item in waiting.get(terminal, ()))
        else:
            for symbol, items in waiting.items():
                if symbol in matching:
                    kernel.update(item + 1 for item in items)
        origin = (here - 1) * size
        kernel.update(origin + slot for slot in last.block.scanned(point, matching))
        if not kernel:
            return False
        made = EarleySet()
        made.kernel = kernel
        packed = splits = 0
        for item in kernel:
            slot = item % size
            packed += slots.packed[slot]
            splits += slots.split[slot]
        self._complete(made, packed, splits)
        return True

    def _complete(self, made: EarleySet, packed: int, splits: int) -> None:
        """Everything that follows from the scanned items, up to what is predicted."""
        slots, sets = self.slots, self.sets
        size, after, lhs, nullable = slots.count, slots.after, slots.lhs, slots.grammar.nullable
        kernel, waiting, completed = made.kernel, made.waiting, made.completed
        room = self.limits.max_items - self.items
        agenda = list(kernel)
        seen: set[int] = set()
        nonterminals = len(slots.grammar.names)
        needed: set[int] = set()
        work = leo_items = nodes = 0
        for item in agenda:  # it grows meanwhile
            origin, slot = divmod(item, size)
            symbol = after[slot]
            if symbol is None:
                name = lhs[slot]
                key = origin * nonterminals + name
                if key in seen:
                    continue
                seen.add(key)
                nodes += 1
                completed.setdefault(name, []).append(origin)
                source = sets[origin]
                if self.leo:
                    top = source.tops.get(name, -1)
                    if top == -1:
                        top = self.top(origin, name)
                    if top is not None:
                        made.leaps.append((name, origin))
                        leo_items += 1
                        work += 1
                        packed += slots.packed[top % size]
                        splits += slots.split[top % size]
                        if top not in kernel:
                            kernel.add(top)
                            agenda.append(top)
                        continue
                sums = source.sums.get(name) or slots.sums(source, name)
                work += sums[0]
                packed += sums[1]
                splits += sums[2]
                for before in source.waiting.get(name, ()):
                    if before + 1 not in kernel:
                        kernel.add(before + 1)
                        agenda.append(before + 1)
                base = origin * size + 1
                for before in source.block.waiting.get(name, ()):
                    if base + before not in kernel:
                        kernel.add(base + before)
                        agenda.append(base + before)
                if len(agenda) > room or work > self.limits.max_work - self.work:
                    self._refuse(len(agenda) > room)
                continue
            nodes += slots.inner[slot]
            waiting.setdefault(symbol, []).append(item)
            if symbol >= 0:
                needed.add(symbol)
                if symbol in nullable:
                    work += 1
                    packed += slots.packed[slot + 1]
                    splits += slots.split[slot + 1]
                    if item + 1 not in kernel:
                        kernel.add(item + 1)
                        agenda.append(item + 1)
        made.block = slots.block(frozenset(needed))
        self._close(made, work, leo_items, nodes, packed, splits)

    def _close(
        self, made: EarleySet, work: int, leo_items: int, nodes: int, packed: int, splits: int
    ) -> None:
        block = made.block
        counters = Counters(
            new_items=len(made.kernel) + block.items,
            predicted=block.items,
            completer_work=work + block.work,
            leo_items=leo_items,
            new_nodes=nodes + block.nodes,
            new_packed_nodes=packed + block.packed,
            new_splits=splits + block.splits,
        )
        # A block is shared, but its items count: they are there at each position.
        if self.items + counters.new_items > self.limits.max_items:
            self._refuse(True)
        if self.work + counters.completer_work > self.limits.max_work:
            self._refuse(False)
        self.items += counters.new_items
        self.work += counters.completer_work
        self.sets.append(made)
        self.counters.append(counters)

    def _refuse(self, items: bool) -> None:
        limit = "max_items" if items else "max_work"
        value = getattr(self.limits, limit)
        what = "Earley items" if items else "pairs of the completer"
        raise CostLimitError(
            f"after {self.position:,} code points of the text there would be more than {value:,} "
            f"{what}; give a shorter text, or raise {limit}",
            limit,
            value,
        )

    def top(self, position: int, name: int) -> int | None:
        """The topmost item that completing ``name`` at a position leads to, None without a chain.

        Remembered for all of the chain.
        """
        known = self.sets[position].tops.get(name, -1)
        if known != -1:
            return known
        size, lhs = self.slots.count, self.slots.lhs
        chain: list[tuple[int, int, int]] = []
        top: int | None = None
        # No cycle is met: one within a position, of nonterminals with one item each that waits for
        # them, would have nobody who predicts it, and the end of the text predicts the start.
        while True:
            link = self.link(position, name)
            if link is None:
                self.sets[position].tops[name] = None
                break
            chain.append((position, name, link))
            position, name = link // size, lhs[link % size]
            known = self.sets[position].tops.get(name, -1)
            if known != -1:
                top = known
                break
        for where, which, link in reversed(chain):
            top = link if top is None else top
            self.sets[where].tops[which] = top
        return top

    def link(self, position: int, name: int) -> int | None:
        """The item, advanced, that alone waits for ``name`` and ends with it."""
        if position == 0 and name == self.slots.grammar.start:
            return None
        here = self.sets[position]
        kernel, block = here.waiting.get(name, []), here.block.waiting.get(name, [])
        if len(kernel) + len(block) != 1:
            return None
        item = kernel[0] if kernel else position * self.slots.count + block[0]
        return item + 1 if self.slots.after[item % self.slots.count + 1] is None else None
