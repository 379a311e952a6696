"""The shortest text of each rule, to know where forced bytes must end.

XGrammar's jump-forward follows bytes for as long as there is one choice only. Where every rule
can be completed, what is forced ends at the latest when the shortest completion does; where some
rule cannot, it may go on for ever: ``root ::= "a" root``.

Cost: linear in the grammar but for a heap (Knuth's generalization of Dijkstra's algorithm).
"""

from __future__ import annotations

import heapq

from tokfold.errors import UnsupportedGrammarError
from tokfold.xgrammar.automata import Call, automata_of
from tokfold.xgrammar.forms import (
    CLASS_KINDS,
    IS_028,
    MACRO_KINDS,
    NESTED_KINDS,
    REFERENCE_KINDS,
    TOKEN_KINDS,
    GrammarForm,
    Kind,
    class_ranges,
)

__all__ = ["alphabet", "forced_text_ends"]


def forced_text_ends(form: GrammarForm, bound: int) -> bool:
    """Whether forced bytes are known to end, in every state of the grammar, before long.

    True if whatever is begun can be completed within ``bound`` bytes for each rule; False also
    where that cannot be told.
    """
    try:
        return _Shortest(form).longest() <= bound
    except _Endless:
        return False


def alphabet(form: GrammarForm) -> bytes:
    """Bytes that the grammar can take, and perhaps others: all from 0x80 on where some are."""
    found: set[int] = set()
    for expression in form.expressions:
        if expression.kind == Kind.BYTE_STRING:
            found.update(byte & 0xFF for byte in expression.data)
        elif expression.kind in CLASS_KINDS:
            for first, last in class_ranges(expression.data):
                found.update(range(first, min(last, 0xFF) + 1), range(0x80, 0x100 * (last > 0x7F)))
        elif expression.kind in MACRO_KINDS:
            return bytes(range(256))
    return bytes(sorted(found))


class _Endless(Exception):  # noqa: N818 - a way out, not an error
    """Some state can be reached and never be completed, or it cannot be told."""


class _Shortest:
    """Lengths of the shortest texts, by a work list.

    A node is an expression, or a rule (numbered after the expressions). Shorter ones are settled
    first; a choice is settled by its first part, a sequence by its last.
    """

    def __init__(self, form: GrammarForm) -> None:
        self._form = form
        self._count = len(form.expressions)
        self._users: list[list[int]] = [[] for _ in range(self._count + len(form.rules))]
        self._waiting = [0] * len(self._users)
        self._sums = [0] * len(self._users)
        self._settled: list[int | None] = [None] * len(self._users)
        self._heap: list[tuple[int, int]] = []

    def longest(self) -> int:
        """The longest of the shortest texts of the expressions that the root can reach."""
        rules, used = self._reachable()
        for rule in rules:
            body = self._form.rules[rule].body
            if self._form.expressions[body].kind in MACRO_KINDS:
                self._push(body, _macro_length(self._form, rule))
            self._users[body].append(self._count + rule)
        for index in used:
            expression = self._form.expressions[index]
            self._begin(index, expression.kind, expression.data)
        while self._heap:
            length, node = heapq.heappop(self._heap)
            if self._settled[node] is None:
                self._settled[node] = length
                for user in self._users[node]:
                    self._tell(user, length)
        longest = 0
        for index in used:
            settled = self._settled[index]
            if settled is None:
                raise _Endless
            longest = max(longest, settled)
        return longest

    def _reachable(self) -> tuple[list[int], list[int]]:
        """Rules and expressions, in the order found."""
        rules = {self._form.root: None}
        used = {self._form.rules[self._form.root].body: None}
        todo = list(used)
        for index in todo:  # grows
            expression = self._form.expressions[index]
            found = list(expression.data if expression.kind in NESTED_KINDS else ())
            for rule in self._form.references(expression):
                if rule not in rules:
                    rules[rule] = None
                    found.append(self._form.rules[rule].body)
            for child in found:
                if child not in used:
                    used[child] = None
                    todo.append(child)
        return list(rules), list(used)

    def _begin(self, index: int, kind: int, data: tuple[int, ...]) -> None:
        if kind == Kind.BYTE_STRING:
            self._push(index, len(data))
        elif kind == Kind.CHARACTER_CLASS:
            if class_ranges(data):
                self._push(index, 1)
        elif kind in NESTED_KINDS:
            self._waiting[index] = len(data)
            for child in data:
                self._users[child].append(index)
            if kind == Kind.SEQUENCE and not data:
                self._push(index, 0)
        elif kind in REFERENCE_KINDS:
            self._users[self._count + data[0]].append(index)
            if kind == Kind.REPEAT and data[1] == 0:
                self._push(index, 0)
        elif kind not in MACRO_KINDS and not (IS_028 and kind in TOKEN_KINDS):
            # Empty, or repeated at will, or a token taken whole, where forced text ends. XGrammar
            # 0.2.8 passes the token by, so a rule that ends with one never ends for it.
            self._push(index, 0)

    def _push(self, node: int, length: int) -> None:
        heapq.heappush(self._heap, (length, node))

    def _tell(self, user: int, length: int) -> None:
        if user >= self._count:
            self._push(user, length)
            return
        expression = self._form.expressions[user]
        if expression.kind == Kind.SEQUENCE:
            self._sums[user] += length
            self._waiting[user] -= 1
            if self._waiting[user] == 0:
                self._push(user, self._sums[user])
        elif expression.kind == Kind.REPEAT:
            self._push(user, length * max(1, expression.data[1]))
        else:
            self._push(user, length)


def _macro_length(form: GrammarForm, rule: int) -> int:
    """A length that the shortest text of a macro does not exceed.

    No state has to be passed twice, and what is repeated repeats nothing itself.
    """
    if form.body(rule).kind == Kind.TAG_DISPATCH:
        return 0  # may stop where it starts
    try:
        automata = automata_of(form, rule)
    except UnsupportedGrammarError as error:
        raise _Endless from error
    if not all(automaton.living() for automaton in automata.values()):
        raise _Endless
    states = [len(automaton.edges) for automaton in automata.values()]
    times = [
        letter.least
        for automaton in automata.values()
        for edges in automaton.edges
        for letter, _ in edges
        if isinstance(letter, Call)
    ]
    return max(states) ** (2 if times else 1) * max([1, *times])
