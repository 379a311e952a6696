"""One minimal automaton that grows: equal languages of stacks are the same state of it.

A state reads a stack downwards, one state of the parser after the other, until it is decided. Which
states of the parser can follow is known, so moves are given for these alone and two states are only
compared over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tokfold.errors import LimitExceededError

__all__ = ["ACCEPT", "REJECT", "CanonicalAutomaton", "partition", "solve"]

REJECT = 0
ACCEPT = 1

_Row = tuple[tuple[int, int], ...]


class CanonicalAutomaton:
    """States by number, :data:`REJECT` and :data:`ACCEPT` the first two; never two that are equal.

    Equal means: the same stacks are accepted. A state from which all stacks are accepted is
    :data:`ACCEPT`, one from which none is :data:`REJECT`.
    """

    def __init__(self, *, max_states: int = 2_000_000) -> None:
        self._moves: list[Mapping[int, int]] = [{}, {}]
        self._known: dict[_Row, int] = {}
        self._known_cycles: dict[tuple[_Row, ...], int] = {}
        self._max_states = max_states
        # States from which a cycle can be reached; only such are equal to states of a new one.
        self._leading: set[int] = set()

    def __len__(self) -> int:
        return len(self._moves)

    def moves(self, state: int) -> Mapping[int, int]:
        """The next state for each state of the parser that can be read."""
        return self._moves[state]

    def run(self, state: int, stack: Sequence[int]) -> int:
        """The state after reading a part of a stack, its upper end first."""
        for read in stack:
            if state <= ACCEPT:
                break
            state = self._moves[state][read]
        return state

    def add(self, moves: Mapping[int, int]) -> int:
        """The state with these moves, all of them to states that are there already."""
        targets = set(moves.values())
        if len(targets) == 1 and (only := next(iter(targets))) <= ACCEPT:
            return only
        row = tuple(sorted(moves.items()))
        state = self._known.get(row)
        if state is None:
            state = self._known[row] = self._new(moves)
            if not self._leading.isdisjoint(targets):
                self._leading.add(state)
        return state

    def _new(self, moves: Mapping[int, int]) -> int:
        if len(self._moves) >= self._max_states:
            raise LimitExceededError(
                f"the languages of stacks need more than {self._max_states} states: the grammar "
                "is too large for a mask store",
                "stack_states",
                self._max_states,
            )
        self._moves.append(moves)
        return len(self._moves) - 1

    def add_cycle(self, moves: Sequence[Mapping[int, int]]) -> list[int]:
        """The states with these moves, which lead to one another.

        Args:
            moves: for each new state; a target below 0 is the new state ``-1 - target``. From each
                of them the others can be reached.
        """
        decided = _one_sided(moves)
        found = {i: state for i, state in decided.items()}
        left = [i for i in range(len(moves)) if i not in found]
        if left:
            rows = {-1 - i: {r: _resolved(t, decided) for r, t in moves[i].items()} for i in left}
            for name, state in self._merged(rows).items():
                found[-1 - name] = state
        return [found[i] for i in range(len(moves))]

    def _merged(self, rows: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
        """Each new state's equal among those that are there; new ones are added."""
        old = self._reachable(t for row in rows.values() for t in row.values() if t >= 0)
        every: dict[int, Mapping[int, int]] = {**rows, **{s: self._moves[s] for s in old}}
        blocks = partition(every)
        by_block = {blocks[state]: state for state in old}
        found = {name: by_block[blocks[name]] for name in rows if blocks[name] in by_block}
        # Equal to an old state, so are all that can be reached from it: all of the cycle or none.
        members: dict[int, int] = {}
        for name in rows:
            if name not in found:
                members.setdefault(blocks[name], name)
        numbers: dict[int, int] = {}
        for block in members:
            signature = self._signature(block, members, blocks, rows, found)
            known = self._known_cycles.get(signature)
            if known is None:
                known = self._known_cycles[signature] = self._new({})
                self._leading.add(known)
            numbers[block] = known
        for block, name in members.items():
            self._moves[numbers[block]] = {
                r: t if t >= 0 else found[t] if t in found else numbers[blocks[t]]
                for r, t in rows[name].items()
            }
        for name in rows:
            if name not in found:
                found[name] = numbers[blocks[name]]
        return found

    def _reachable(self, states: Iterable[int]) -> list[int]:
        """The states that can be reached and from which a cycle can."""
        seen: set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state not in seen and state in self._leading:
                seen.add(state)
                waiting += self._moves[state].values()
        return sorted(seen)

    @staticmethod
    def _signature(
        block: int,
        members: Mapping[int, int],
        blocks: Mapping[int, int],
        rows: Mapping[int, Mapping[int, int]],
        found: Mapping[int, int],
    ) -> tuple[_Row, ...]:
        """The cycle written down from one of its states: equal for equal states."""
        order = {block: 0}
        waiting, written = [block], []
        for current in waiting:  # grows while it is read
            row = []
            for read, target in sorted(rows[members[current]].items()):
                if target < 0 and target not in found:
                    inner = blocks[target]
                    if inner not in order:
                        order[inner] = len(order)
                        waiting.append(inner)
                    row.append((read, -1 - order[inner]))
                else:
                    row.append((read, found.get(target, target)))
            written.append(tuple(row))
        return tuple(written)


def _resolved(target: int, decided: Mapping[int, int]) -> int:
    return decided.get(-1 - target, target) if target < 0 else target


def _one_sided(moves: Sequence[Mapping[int, int]]) -> dict[int, int]:
    """The new states from which only acceptance, or only refusal, can be reached.

    A stack has a bottom: going round for ever is not possible.
    """
    decided: dict[int, int] = {}
    sources: list[list[int]] = [[] for _ in moves]
    for i, row in enumerate(moves):
        for target in row.values():
            if target < 0:
                sources[-1 - target].append(i)
    for side in (REJECT, ACCEPT):
        waiting = [
            i for i, row in enumerate(moves) if any(t >= 0 and t != side for t in row.values())
        ]
        other = set(waiting)
        while waiting:
            for source in sources[waiting.pop()]:
                if source not in other:
                    other.add(source)
                    waiting.append(source)
        decided.update({i: side for i in range(len(moves)) if i not in other})
    return decided


def partition(every: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    """Moore's minimization: the block of each state, the same for equal states.

    Targets that are not among the states are known to be different from one another and from all
    of them.
    """
    names: dict[object, int] = {}
    rows = {}
    blocks = {}
    for state, row in every.items():
        inner = sorted((read, target) for read, target in row.items() if target in every)
        outer = tuple(sorted((r, t) for r, t in row.items() if t not in every))
        rows[state] = [target for _, target in inner]
        kind = (outer, tuple(read for read, _ in inner))
        blocks[state] = names.setdefault(kind, len(names))
    count = len(names)
    while True:
        names = {}
        following = {
            state: names.setdefault((blocks[state], *[blocks[t] for t in row]), len(names))
            for state, row in rows.items()
        }
        if len(names) == count:
            return blocks
        blocks, count = following, len(names)


def solve(
    automaton: CanonicalAutomaton,
    start: int,
    moves: Callable[[int], Sequence[tuple[int, int]]],
    leaf: Callable[[int], int],
    found: dict[int, int],
) -> None:
    """Find the state for a computation and for all those that it leads to.

    Tarjan's strongly connected components, inner ones first, without recursion.

    Args:
        automaton: gets the states.
        start: the computation, a number from 0.
        moves: for each state of the parser that a computation can read the next one; a number
            below 0 is a leaf.
        leaf: the state for a leaf.
        found: the states found so far, for each computation; new ones are added.
    """
    order, low = {start: 0}, {start: 0}
    open_, is_open = [start], {start}

    def inner(computation: int) -> Iterator[int]:
        return (t for _, t in moves(computation) if t >= 0 and t not in found)

    path = [(start, inner(start))]
    while path:
        current, targets = path[-1]
        for target in targets:
            if target not in order:
                order[target] = low[target] = len(order)
                open_.append(target)
                is_open.add(target)
                path.append((target, inner(target)))
                break
            if target in is_open:
                low[current] = min(low[current], order[target])
        else:
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[current])
            if low[current] == order[current]:
                place = len(open_) - 1
                while open_[place] != current:
                    place -= 1
                component = open_[place:]
                del open_[place:]
                is_open.difference_update(component)
                _close(automaton, component, moves, leaf, found)


def _close(
    automaton: CanonicalAutomaton,
    component: Sequence[int],
    moves: Callable[[int], Sequence[tuple[int, int]]],
    leaf: Callable[[int], int],
    found: dict[int, int],
) -> None:
    local = {computation: -1 - i for i, computation in enumerate(component)}
    leaves: dict[int, int] = {}
    rows, is_cycle = [], len(component) > 1
    for computation in component:
        row = {}
        for read, target in moves(computation):
            if target < 0:
                if target not in leaves:
                    leaves[target] = leaf(target)
                row[read] = leaves[target]
            elif target in local:
                row[read], is_cycle = local[target], True
            else:
                row[read] = found[target]
        rows.append(row)
    if is_cycle:
        found.update(zip(component, automaton.add_cycle(rows), strict=True))
    else:
        found[component[0]] = automaton.add(rows[0])
