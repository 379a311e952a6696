"""The LALR(1) automaton of the productions: its states, its conflicts, and Lark's table beside it.

Texts are decoded by Lark's own table (:class:`tokfold.mask_store.grammar.ParseTable`). It has
already decided every conflict and does not say which, so the automaton is made once more here,
after DeRemer and Pennello (1982), and compared with the table state by state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tokfold._quoting import quoted
from tokfold.mask_store.errors import LarkGrammarError
from tokfold.mask_store.grammar import END, LarkGrammar, ParseTable, Production

__all__ = ["Conflict", "LalrAutomaton", "TableMismatchError", "find_conflicts", "lalr_automaton"]

_Item = tuple[int, int]


class TableMismatchError(LarkGrammarError):
    """Lark's table is not the LALR(1) table of its productions, so nothing is proved of it."""


@dataclass(frozen=True)
class Conflict:
    """A terminal on which a state could do two things, of which the table does one.

    Attributes:
        state: the state of Lark's table.
        terminal: the terminal that lies ahead.
        kept: what the table does: ``"shift"``, or the production it reduces.
        dropped: the productions that it does not reduce there.
        before: a shortest row of symbols (terminals and rules) that leads to the state.
    """

    state: int
    terminal: str
    kept: str
    dropped: tuple[str, ...]
    before: tuple[str, ...]

    def __str__(self) -> str:
        kind = "shift/reduce" if self.kept == "shift" else "reduce/reduce"
        lost = " and ".join(self.dropped)
        return (
            f"{kind} conflict after {' '.join(self.before) or 'the start'} before {self.terminal}: "
            f"the table does {self.kept}, not the reduction of {lost}"
        )


@dataclass(frozen=True)
class LalrAutomaton:
    """An LALR(1) automaton; state 0 is the start.

    Attributes:
        shifts: for each state the next state for each terminal.
        gotos: for each state the next state for each rule.
        lookaheads: for each state the productions that can be reduced (by index), each with the
            terminals (or :data:`~tokfold.mask_store.grammar.END`) before which it can be.
        before: for each state a shortest row of symbols from the start.
    """

    shifts: tuple[Mapping[str, int], ...]
    gotos: tuple[Mapping[str, int], ...]
    lookaheads: tuple[Mapping[int, frozenset[str]], ...]
    before: tuple[tuple[str, ...], ...]


def written(production: Production) -> str:
    """A production as text, for messages."""
    return f"{production.origin} -> {' '.join(production.expansion) or 'nothing'}"


def lalr_automaton(
    productions: Sequence[Production], start: str, *, max_states: int = 100_000
) -> LalrAutomaton:
    """The LALR(1) automaton of some productions, which it knows by their index."""
    by_origin: dict[str, list[int]] = {}
    for i, production in enumerate(productions):
        by_origin.setdefault(production.origin, []).append(i)
    if start not in by_origin:
        raise LarkGrammarError(f"there is no rule {quoted(start)} to start from")
    states = _Lr0(productions, by_origin, start, max_states)
    lookaheads = _Lookaheads(productions, by_origin, states, start).by_state()
    return LalrAutomaton(
        shifts=tuple(
            {s: t for s, t in moves.items() if s not in by_origin} for moves in states.moves
        ),
        gotos=tuple({s: t for s, t in moves.items() if s in by_origin} for moves in states.moves),
        lookaheads=tuple(lookaheads),
        before=tuple(states.before()),
    )


class _Lr0:
    """The states: sets of items, an item being a production and how much of it has been read."""

    def __init__(
        self,
        productions: Sequence[Production],
        by_origin: Mapping[str, list[int]],
        start: str,
        max_states: int,
    ) -> None:
        # The production that says what a text is has the index after the last.
        self.expansions = [p.expansion for p in productions] + [(start,)]
        self._by_origin = by_origin
        root = frozenset([(len(productions), 0)])
        numbers = {root: 0}
        self.closures: list[list[_Item]] = []
        self.moves: list[dict[str, int]] = []
        self._reached: list[tuple[int, str]] = [(-1, "")]
        kernels = [root]
        for state, kernel in enumerate(kernels):  # grows while it is read
            closure = self._closure(kernel)
            following: dict[str, list[_Item]] = {}
            for production, dot in closure:
                expansion = self.expansions[production]
                if dot < len(expansion):
                    following.setdefault(expansion[dot], []).append((production, dot + 1))
            moves = {}
            for symbol, items in following.items():
                target = frozenset(items)
                if target not in numbers:
                    numbers[target] = len(kernels)
                    kernels.append(target)
                    self._reached.append((state, symbol))
                    if len(kernels) > max_states:
                        raise LarkGrammarError(
                            f"the LALR automaton has more than {max_states} states: the grammar "
                            "is too large for a mask store"
                        )
                moves[symbol] = numbers[target]
            self.closures.append(closure)
            self.moves.append(moves)

    def _closure(self, kernel: Iterable[_Item]) -> list[_Item]:
        items = sorted(kernel)
        added: set[str] = set()
        for production, dot in items:  # grows while it is read
            expansion = self.expansions[production]
            if dot == len(expansion):
                continue
            symbol = expansion[dot]
            if symbol in self._by_origin and symbol not in added:
                added.add(symbol)
                items += [(p, 0) for p in self._by_origin[symbol]]
        return items

    def before(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for state, symbol in self._reached:
            rows.append((*rows[state], symbol) if state >= 0 else ())
        return rows


class _Lookaheads:
    """Before which terminals a production can be reduced, by DeRemer and Pennello's relations."""

    def __init__(
        self,
        productions: Sequence[Production],
        by_origin: Mapping[str, list[int]],
        states: _Lr0,
        start: str,
    ) -> None:
        self._productions, self._by_origin, self._states = productions, by_origin, states
        self._nullable = _nullable(productions)
        self._bits: dict[str, int] = {}
        self._names: list[str] = []
        # A transition on a rule: the state before it, and the rule.
        self._index = {
            (state, symbol): None
            for state, moves in enumerate(states.moves)
            for symbol in moves
            if symbol in by_origin
        }
        number = {transition: i for i, transition in enumerate(self._index)}
        follow = [0] * len(number)
        reads: list[list[int]] = [[] for _ in number]
        includes: list[list[int]] = [[] for _ in number]
        self._lookback: list[list[tuple[int, int]]] = [[] for _ in number]
        for (state, rule), i in number.items():
            after = states.moves[state][rule]
            for symbol in states.moves[after]:
                if symbol not in by_origin:
                    follow[i] |= self._bit(symbol)
                elif symbol in self._nullable:
                    reads[number[after, symbol]].append(i)
            if state == 0 and rule == start:
                follow[i] |= self._bit(END)
            self._trace(state, rule, i, number, includes)
        _spread(follow, reads)
        _spread(follow, includes)
        self._follow = follow

    def _bit(self, terminal: str) -> int:
        if terminal not in self._bits:
            self._bits[terminal] = 1 << len(self._names)
            self._names.append(terminal)
        return self._bits[terminal]

    def _trace(
        self,
        state: int,
        rule: str,
        transition: int,
        number: Mapping[tuple[int, str], int],
        includes: list[list[int]],
    ) -> None:
        """Follow each production of the rule from the state to where it is complete."""
        for production in self._by_origin[rule]:
            expansion = self._productions[production].expansion
            place, places = state, []
            for symbol in expansion:
                places.append((place, symbol))
                place = self._states.moves[place][symbol]
            self._lookback[transition].append((place, production))
            for step in reversed(places):
                if step[1] in self._by_origin:
                    includes[transition].append(number[step])
                if step[1] not in self._nullable:
                    break

    def by_state(self) -> list[dict[int, frozenset[str]]]:
        found: list[dict[int, int]] = [{} for _ in self._states.moves]
        for transition, places in enumerate(self._lookback):
            for state, production in places:
                known = found[state].get(production, 0)
                found[state][production] = known | self._follow[transition]
        return [{p: self._set(bits) for p, bits in state.items()} for state in found]

    def _set(self, bits: int) -> frozenset[str]:
        return frozenset(name for i, name in enumerate(self._names) if bits >> i & 1)


def _nullable(productions: Sequence[Production]) -> set[str]:
    found: set[str] = set()
    while True:
        size = len(found)
        for production in productions:
            if all(symbol in found for symbol in production.expansion):
                found.add(production.origin)
        if len(found) == size:
            return found


def _spread(values: list[int], targets: Sequence[Sequence[int]]) -> None:
    """Add the value of each node to those of its targets until nothing changes."""
    waiting = deque(range(len(values)))
    is_waiting = [True] * len(values)
    while waiting:
        node = waiting.popleft()
        is_waiting[node] = False
        for target in targets[node]:
            if values[target] | values[node] != values[target]:
                values[target] |= values[node]
                if not is_waiting[target]:
                    is_waiting[target] = True
                    waiting.append(target)


def find_conflicts(grammar: LarkGrammar) -> tuple[Conflict, ...]:
    """The conflicts that Lark's table has decided; none for an LALR(1) grammar.

    Makes sure that the table is the LALR(1) table of the productions, decided as Lark does: for the
    shift, and between reductions for the priority.
    """
    automaton = lalr_automaton(grammar.productions, grammar.start)
    names = _matched(automaton, grammar.table, grammar.start)
    conflicts = []
    for state, reductions in enumerate(automaton.lookaheads):
        options: dict[str, list[int]] = {}
        for production, terminals in reductions.items():
            for terminal in terminals:
                options.setdefault(terminal, []).append(production)
        table_state = names[state]
        expected: dict[str, int] = {}
        for terminal, productions in sorted(options.items()):
            kept, is_shift = "shift", terminal in automaton.shifts[state]
            if not is_shift:
                best = max(productions, key=lambda p: grammar.productions[p].priority or 0)
                expected[terminal], kept = best, written(grammar.productions[best])
            if is_shift or len(productions) > 1:
                dropped = [p for p in productions if is_shift or p != expected[terminal]]
                texts = tuple(written(grammar.productions[p]) for p in dropped)
                conflicts.append(
                    Conflict(table_state, terminal, kept, texts, automaton.before[state])
                )
        if expected != dict(grammar.table.reductions[table_state]):
            raise _mismatch(table_state, "reduces otherwise")
    return tuple(conflicts)


def _matched(automaton: LalrAutomaton, table: ParseTable, start: str) -> list[int]:
    """The table's name for each state of the automaton."""
    names = {0: table.start_states[start]}
    waiting = [0]
    while waiting:
        state = waiting.pop()
        mine = {**automaton.shifts[state], **automaton.gotos[state]}
        theirs = {**table.shifts[names[state]], **table.gotos[names[state]]}
        theirs.pop(END, None)
        if mine.keys() != theirs.keys():
            raise _mismatch(names[state], "goes on with other symbols")
        for symbol, target in mine.items():
            if target not in names:
                names[target] = theirs[symbol]
                waiting.append(target)
            elif names[target] != theirs[symbol]:
                raise _mismatch(names[state], f"goes elsewhere on {symbol}")
    if len(set(names.values())) != len(names):
        raise _mismatch(names[0], "stands for two states")
    return [names[state] for state in range(len(names))]


def _mismatch(state: int, what: str) -> TableMismatchError:
    return TableMismatchError(
        f"state {state} of Lark's table {what} than the LALR(1) table of the productions, so that "
        "no mask store can be made: Lark 1.3 makes other tables of a few grammars whose rules are "
        "optional at their ends (write these rules otherwise), and other versions of others; "
        "tokfold.Grammar.from_lark reads every grammar"
    )
