"""Grammars made of grammars: unions, concatenations and repetitions of any.

An operation is a node above its operands, made at once whatever they are; grammars share nodes.
Only what needs the grammar itself looks below, at all nodes together and without recursion. A chain
of unions is one union, whichever way it was built.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from tokfold import _core
from tokfold._checks import whole_number, wrong_type
from tokfold._lazy import lazy
from tokfold._quoting import quoted
from tokfold._sources.record import Converted, Operand, Source
from tokfold._sources.regular import Step
from tokfold.errors import LimitExceededError
from tokfold.limits import Limits

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary

Name = Literal["or", "then", "repeat"]

MOST_TIMES = (1 << 32) - 1
"""The greatest bound of a repetition."""


@dataclass(frozen=True, eq=False)
class Operation(Source):
    """What a grammar is made of: some of ``operands``, all in a row, or one so many times.

    An operand that is an operation itself stands for the grammar of it.
    """

    name: Name
    operands: tuple[Operand | Operation, ...]
    min: int = 1
    max: int | None = 1

    @lazy
    def plan(self) -> Plan:
        """All operations that it is made by."""
        return Plan.of(self)

    @property
    def key(self) -> Hashable:
        return self.plan.nodes, *(leaf._key for leaf in self.plan.leaves)

    @property
    def said(self) -> tuple[object, ...]:
        return "operation", self.plan.nodes, [leaf.fingerprint for leaf in self.plan.leaves]

    def convert(self, limits: Limits | None, interrupt: _core.Interrupt | None) -> Converted:
        return Converted()

    def join(self, frame: _core.Grammar | None, limits: Limits | None) -> _core.Grammar:
        leaves = enumerate(self.plan.leaves)
        parts = [(f"part_{number}", leaf._without_lookahead) for number, leaf in leaves]
        text = self.plan.text + "".join(f'{name} ::= "-"\n' for name, _ in parts)
        frame = _core.Grammar(text, "root", limits)
        _core.check_composed(frame, [(name, part) for name, part in parts], limits)
        return frame.composed(parts)

    def over(self, vocabulary: Vocabulary) -> Operation:
        leaves = [leaf._over(vocabulary) for leaf in self.plan.leaves]
        is_same = all(map(operator.is_, leaves, self.plan.leaves))
        return self if is_same else self.plan.over(leaves)


class _Node(NamedTuple):
    """An operation over numbers: of nodes before it from 0, of leaves as ``~number``."""

    name: Name
    items: tuple[int, ...]
    min: int
    max: int | None


class Plan(NamedTuple):
    """All operations of a grammar, operands first.

    Attributes:
        nodes: the operations; the last is the whole.
        leaves: the grammars that are none, each once.
    """

    nodes: tuple[_Node, ...]
    leaves: tuple[Operand, ...]

    @classmethod
    def of(cls, root: Operation) -> Plan:
        """The plan of an operation. Cost: n log n in nodes and leaves."""
        order, uses = _postorder(root)
        leaves: dict[int, tuple[int, Operand]] = {}
        nodes: list[_Node] = []
        numbers: dict[int, int] = {}
        open_items: dict[int, deque[int]] = {}
        for operation in order:
            if not isinstance(operation, Operation):
                number, _ = leaves.setdefault(id(operation), (len(leaves), operation))
                numbers[id(operation)] = ~number
                continue
            items: deque[int] = deque()
            for operand in map(_below, operation.operands):
                of = open_items.get(id(operand))
                if of is not None and isinstance(operand, Operation):
                    if operand.name == operation.name:
                        # The larger takes up the smaller, so that chains cost no square.
                        if len(of) > len(items):
                            of.extendleft(reversed(items))
                            items = of
                        else:
                            items.extend(of)
                        continue
                    numbers[id(operand)] = _close(nodes, operand, of)
                    del open_items[id(operand)]
                items.append(numbers[id(operand)])
            # What stands once within the same operation becomes part of that.
            if uses[id(operation)] == 1 and operation.name != "repeat":
                open_items[id(operation)] = items
            else:
                numbers[id(operation)] = _close(nodes, operation, items)
        if id(root) in open_items:
            _close(nodes, root, open_items[id(root)])
        return cls(tuple(nodes), tuple(leaf for _, leaf in leaves.values()))

    @property
    def text(self) -> str:
        """Grammar text in which ``part_0``, ``part_1`` ... are the leaves."""
        last = len(self.nodes) - 1

        def said(number: int) -> str:
            return f"part_{~number}" if number < 0 else f"made_{number}"

        lines = []
        for number, (name, items, low, high) in enumerate(self.nodes):
            if name == "repeat":
                body = f"{said(items[0])}{{{low},{'' if high is None else high}}}"
            else:
                body = (" | " if name == "or" else " ").join(map(said, items))
            lines.append(f"{'root' if number == last else said(number)} ::= {body}\n")
        return "".join(reversed(lines))

    def over(self, leaves: Sequence[Operand]) -> Operation:
        """The operation of this plan over other leaves."""
        made: list[Operation] = []
        for name, items, low, high in self.nodes:
            operands = tuple(leaves[~n] if n < 0 else made[n] for n in items)
            made.append(Operation(name, operands, low, high))
        # As it is: what was shared by chains that became one is now within one.
        made[-1].__dict__["plan"] = self._replace(leaves=tuple(leaves))
        return made[-1]

    def steps(self, of_leaves: Sequence[list[Step]], most: int) -> list[Step]:
        """The language in postfix notation, leaves being regular; shared nodes are written out."""
        sizes: list[int] = []
        for _, items, _, _ in self.nodes:
            of_items = [len(of_leaves[~n]) if n < 0 else sizes[n] for n in items]
            sizes.append(sum(of_items) + len(of_items))
            if sizes[-1] > most:
                raise LimitExceededError(
                    "the operations on regular languages are more steps than "
                    f"max_automaton_states; join fewer, or raise it, Limits(max_automaton_states="
                    f"...); {most} is the most",
                    "max_automaton_states",
                    most,
                )
        made: list[list[Step]] = []
        for name, items, low, high in self.nodes:
            steps: list[Step] = []
            for number, joined in _balanced(len(items)):
                if joined:
                    steps.append(name)
                else:
                    item = items[number]
                    steps += of_leaves[~item] if item < 0 else made[item]
            if name == "repeat":
                steps.append((low, high))
            made.append(steps)
        return made[-1]


def _below(operand: Operand | Operation) -> Operand | Operation:
    """An operand as a node: its operation, where it is made by one."""
    source = operand if isinstance(operand, Operation) else operand._source
    return source if isinstance(source, Operation) else operand


def _postorder(root: Operation) -> tuple[list[Operand | Operation], dict[int, int]]:
    """What an operation is made of, operands first, and how often each is an operand."""
    uses = {id(root): 1}
    order: list[Operand | Operation] = []
    done: set[int] = set()
    work: list[tuple[Operand | Operation, bool]] = [(root, False)]
    while work:
        node, is_left = work.pop()
        if is_left:
            order.append(node)
            continue
        if id(node) in done:
            continue
        done.add(id(node))
        work.append((node, True))
        operands = node.operands if isinstance(node, Operation) else ()
        for operand in reversed([*map(_below, operands)]):
            uses[id(operand)] = uses.get(id(operand), 0) + 1
            work.append((operand, False))
    return order, uses


def _close(nodes: list[_Node], operation: Operation, items: deque[int]) -> int:
    """Adds a node and returns its number."""
    name = operation.name
    found = tuple(dict.fromkeys(items)) if name == "or" else tuple(items)
    nodes.append(_Node(name, found, operation.min, operation.max))
    return len(nodes) - 1


def _balanced(count: int) -> Iterator[tuple[int, bool]]:
    """Postfix order of a balanced tree: the numbers of its leaves, and where two are joined."""
    work = [(0, count, False)]
    while work:
        first, end, joined = work.pop()
        if joined or end - first == 1:
            yield first, joined
            continue
        middle = (first + end) // 2
        work += [(first, end, True), (middle, end, False), (first, middle, False)]


def bounds(least: object, most: object) -> tuple[int, int | None]:
    """The bounds of a repetition."""
    numbers: list[int] = []
    for name, given in (("min", least), ("max", most)):
        if given is None and name == "max":
            continue
        value = whole_number(given)
        if value is None:
            raise wrong_type(f"repeat: {name}", "an int", given)
        numbers.append(value)
        if not 0 <= value <= MOST_TIMES:
            hint = "; leave max out for no upper bound" if value > MOST_TIMES else ""
            raise ValueError(
                f"repeat: {name} must be from 0 to {MOST_TIMES}, not {quoted(value)}{hint}"
            )
    fewest, largest = numbers[0], numbers[-1] if most is not None else None
    if largest is not None and largest < fewest:
        raise ValueError(
            f"repeat: max ({largest}) is less than min ({fewest}); write "
            f"repeat({largest}, {fewest})"
        )
    return fewest, largest
