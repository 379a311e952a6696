"""Grammars made of grammars: unions, concatenations and repetitions of any.

An operation is a node above its operands, made at once whatever they are; grammars share nodes.
Only what needs the grammar itself looks below, at all nodes together and without recursion. A chain
of unions is one union, whichever way it was built.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

from tokfold._checks import wrong_type
from tokfold.errors import LimitExceededError

__all__ = ["MOST_TIMES", "Operation", "Plan", "Step", "bounds"]

Name = Literal["or", "then", "repeat"]

Step = tuple[str, str, str, bool] | list[str] | tuple[int, int | None] | str
"""A step of a regular language in postfix notation, as ``_core.regular_grammar`` takes it."""

MOST_TIMES = (1 << 32) - 1
"""The greatest bound of a repetition."""


class Operand(Protocol):
    """What operations need of a grammar."""

    _operation: Operation[Any] | None
    _plan_: Plan[Any] | None

    @classmethod
    def _of_operation(cls, operation: Operation[Any]) -> Self: ...


G = TypeVar("G", bound=Operand)


class Operation(NamedTuple, Generic[G]):
    """What a grammar is made of: some of ``operands``, all in a row, or one so many times."""

    name: Name
    operands: tuple[G, ...]
    min: int = 1
    max: int | None = 1


class _Node(NamedTuple):
    """An operation over numbers: of nodes before it from 0, of leaves as ``~number``."""

    name: Name
    items: tuple[int, ...]
    min: int
    max: int | None


class Plan(NamedTuple, Generic[G]):
    """All operations of a grammar, operands first.

    Attributes:
        nodes: the operations; the last is the whole.
        leaves: the grammars that are none, each once.
    """

    nodes: tuple[_Node, ...]
    leaves: tuple[G, ...]

    @classmethod
    def of(cls, root: G) -> Plan[G]:
        """The plan of a grammar that is made by an operation. Cost: n log n in nodes and leaves."""
        order, uses = _postorder(root)
        leaves: dict[int, tuple[int, G]] = {}
        nodes: list[_Node] = []
        numbers: dict[int, int] = {}
        open_items: dict[int, deque[int]] = {}
        for grammar in order:
            operation = grammar._operation
            if operation is None:
                number, _ = leaves.setdefault(id(grammar), (len(leaves), grammar))
                numbers[id(grammar)] = ~number
                continue
            items: deque[int] = deque()
            for operand in operation.operands:
                of = open_items.get(id(operand))
                below = operand._operation
                if of is not None and below is not None and below.name == operation.name:
                    # The larger takes up the smaller, so that chains cost no square.
                    if len(of) > len(items):
                        of.extendleft(reversed(items))
                        items = of
                    else:
                        items.extend(of)
                    continue
                if of is not None and below is not None:
                    numbers[id(operand)] = _close(nodes, below, of)
                    del open_items[id(operand)]
                items.append(numbers[id(operand)])
            # What stands once within the same operation becomes part of that.
            if uses[id(grammar)] == 1 and operation.name != "repeat":
                open_items[id(grammar)] = items
            else:
                numbers[id(grammar)] = _close(nodes, operation, items)
        if id(root) in open_items and root._operation is not None:
            _close(nodes, root._operation, open_items[id(root)])
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

    def built(self, leaves: Sequence[G]) -> G:
        """The grammar of this plan over other leaves."""
        made: list[G] = []
        for name, items, low, high in self.nodes:
            operands = tuple(leaves[~n] if n < 0 else made[n] for n in items)
            made.append(type(leaves[0])._of_operation(Operation(name, operands, low, high)))
        # As it is: what was shared by chains that became one is now within one.
        made[-1]._plan_ = self._replace(leaves=tuple(leaves))
        return made[-1]

    def steps(self, of_leaves: Sequence[list[Step]], most: int) -> list[Step]:
        """The language in postfix notation, where the leaves are regular.

        Raises:
            LimitExceededError: it takes more than so many steps, as shared nodes are written out.
        """
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


def _postorder(root: G) -> tuple[list[G], dict[int, int]]:
    """The grammars that one is made of, operands first, and how often each is an operand."""
    uses = {id(root): 1}
    order: list[G] = []
    done: set[int] = set()
    work = [(root, False)]
    while work:
        grammar, is_left = work.pop()
        if is_left:
            order.append(grammar)
            continue
        if id(grammar) in done:
            continue
        done.add(id(grammar))
        work.append((grammar, True))
        operands = () if grammar._operation is None else grammar._operation.operands
        for operand in reversed(operands):
            uses[id(operand)] = uses.get(id(operand), 0) + 1
            work.append((operand, False))
    return order, uses


def _close(nodes: list[_Node], operation: Operation[Any], items: deque[int]) -> int:
    """Adds a node and returns its number."""
    name, _, low, high = operation
    found = tuple(dict.fromkeys(items)) if name == "or" else tuple(items)
    nodes.append(_Node(name, found, low, high))
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
    """The bounds of a repetition.

    Raises:
        ArgumentTypeError: one is no int.
        ValueError: they are none.
    """
    for name, value in (("min", least), ("max", most)):
        if value is None and name == "max":
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type(f"repeat: {name}", "an int", value)
        if not 0 <= value <= MOST_TIMES:
            hint = "; leave max out for no upper bound" if value > MOST_TIMES else ""
            raise ValueError(f"repeat: {name} must be from 0 to {MOST_TIMES}, not {value}{hint}")
    assert isinstance(least, int)
    assert most is None or isinstance(most, int)
    if most is not None and most < least:
        raise ValueError(
            f"repeat: max ({most}) is less than min ({least}); write repeat({most}, {least})"
        )
    return least, most
