r"""XGrammar's automata for ``Regex``, ``Substring`` and ``TagDispatch``, read back.

What a macro means is decided by XGrammar's own builder (anchors, ``.``, classes, what JSON strings
forbid, dispatch, exclusions), so it is not guessed at here: a grammar of the one rule is compiled
without a vocabulary, and the automaton is in the JSON form of the result. It has edges over
bytes, edges that call a rule, and edges that repeat one; large bounds in a pattern become rules
of their own, which come along.

XGrammar takes a byte exactly if some edge takes it, so what cannot be completed counts. Making
the automaton deterministic and minimal keeps both what it accepts and what it takes on the way: a
state that leads nowhere is not the same as no state.

Cost: the subset construction is exponential at worst. It stops at four states for each one of
XGrammar's and 1,000, and the automaton is taken as it is, which only gives more classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import xgrammar as xgr

from tokfold import _json
from tokfold.errors import UnsupportedGrammarError
from tokfold.xgrammar.forms import Expression, GrammarForm, Kind, Rule

__all__ = ["Automaton", "Bytes", "Call", "automata_of", "built_automata"]

_EPSILON, _CALL, _REPEAT = -1, -2, -4
_MAX_REMEMBERED = 1_024


class Bytes(NamedTuple):
    """An edge that takes one byte."""

    first: int
    last: int


class Call(NamedTuple):
    """An edge that takes what a rule takes, so many times; no upper bound if ``most`` is -1."""

    rule: str
    least: int = 1
    most: int = 1


Letter = Bytes | Call


@dataclass
class Automaton:
    """A finite automaton over bytes and calls.

    Attributes:
        start: the state to begin in.
        ends: states where it may stop.
        edges: for each state, what it takes and where that leads.
    """

    start: int
    ends: frozenset[int]
    edges: list[list[tuple[Letter, int]]] = field(default_factory=list)

    def simplified(self) -> Automaton:
        """Deterministic, minimal, and what the start reaches; itself where that grows too large."""
        determined = _determined(self)
        return self if determined is None else _minimal(determined)

    def passes(self, nullable: set[str]) -> bool:
        """Whether it leads to an end without a byte, given the rules that do."""
        seen, todo = {self.start}, [self.start]
        while todo:
            state = todo.pop()
            if state in self.ends:
                return True
            for letter, target in self.edges[state]:
                if (
                    target not in seen
                    and isinstance(letter, Call)
                    and (letter.least == 0 or letter.rule in nullable)
                ):
                    seen.add(target)
                    todo.append(target)
        return False

    def living(self) -> bool:
        """Whether every state can still reach an end, calls being taken for granted."""
        before: list[list[int]] = [[] for _ in self.edges]
        for state, edges in enumerate(self.edges):
            for _, target in edges:
                before[target].append(state)
        seen, todo = set(self.ends), list(self.ends)
        while todo:
            for state in before[todo.pop()]:
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
        return seen >= _reached(self)


_READ: WeakKeyDictionary[GrammarForm, dict[int, dict[str, Automaton]]] = WeakKeyDictionary()
"""What was read of each grammar, by rule, as long as its form lives."""


def automata_of(form: GrammarForm, rule: int) -> dict[str, Automaton]:
    """The automata of one rule whose body is a macro.

    Returns:
        By name: ``""`` is the rule's own. Other names that start with a space are those of rules
        which XGrammar added, all other names are rules of the grammar.
    """
    known = _READ.setdefault(form, {})
    found = known.get(rule)
    if found is None:
        body = form.body(rule)
        leaf = body.kind != Kind.TAG_DISPATCH
        found = _leaf_automata(body.kind, body.data) if leaf else _read(form, rule)
        known[rule] = found
    return found


@lru_cache(maxsize=_MAX_REMEMBERED)
def _leaf_automata(kind: int, data: tuple[int, ...]) -> dict[str, Automaton]:
    """Of a macro that calls no rules: many schemas repeat one pattern."""
    form = GrammarForm(xgr.Grammar.from_ebnf('root ::= "a"'))
    grammar = form.build([Expression(kind, data)], [Rule("root", 0)], 0)
    return _read(GrammarForm(grammar), 0)


def _read(form: GrammarForm, rule: int) -> dict[str, Automaton]:
    found, empty = built_automata(form, rule)
    if empty & found.keys() != _nullable(found):
        raise _unknown("a macro of which XGrammar cannot tell whether it may be empty")
    if not all(_counts_well(automaton, found, empty) for automaton in found.values()):
        raise _unknown("a large repetition that XGrammar may miscount")
    return {name: automaton.simplified() for name, automaton in found.items()}


def built_automata(form: GrammarForm, rule: int) -> tuple[dict[str, Automaton], set[str]]:
    """The automata of :func:`automata_of` as XGrammar's builder makes them.

    They are not simplified, and nothing is said of what XGrammar's matcher makes of them: it
    miscounts some repetitions, for example.

    Returns:
        The automata by name, and which rules XGrammar takes for possibly empty.
    """
    # each rule is named by its number, so that names which XGrammar adds stand out
    expressions = [*form.expressions, Expression(Kind.BYTE_STRING, (97,))]
    letter = len(expressions) - 1
    expressions.append(Expression(Kind.SEQUENCE, (letter,)))
    expressions.append(Expression(Kind.CHOICES, (letter + 1,)))
    rules = [
        Rule(f"r{index}", other.body if index == rule else letter + 2)
        for index, other in enumerate(form.rules)
    ]
    known = {f"r{index}": other.name for index, other in enumerate(form.rules)}
    known[f"r{rule}"] = ""
    compiler = xgr.GrammarCompiler(xgr.TokenizerInfo([]), max_threads=1, cache_enabled=False)
    compiled = compiler.compile_grammar(form.build(expressions, rules, rule)).grammar
    document: dict[str, Any] = _json.loads(compiled.serialize_json())
    names = [str(row[0]) for row in document["rules"]]
    names = [known.get(name, " " + name) for name in names]
    found: dict[str, Automaton] = {}
    for index, name in enumerate(names):
        if not name or name.startswith(" "):  # else a rule of the grammar: here it is a stub
            found[name] = _automaton(document, index, names)
    return found, {names[index] for index in document["allow_empty_rule_ids"]}


def _counts_well(automaton: Automaton, automata: dict[str, Automaton], empty: set[str]) -> bool:
    """Whether XGrammar repeats rules here as it should.

    Where a state has a repetition beside other edges, or what is repeated may be empty or repeats
    something itself, XGrammar lends the count of one to another, and then takes tokens that
    the pattern does not: ``Regex("(a|xb){2,300}c|[a-c]{150,}")`` takes ``aaaaabx``.
    """
    for edges in automaton.edges:
        for letter, _ in edges:
            if not isinstance(letter, Call) or not letter.rule.startswith(" "):
                continue
            if len(edges) > 1 or letter.rule in empty:
                return False
            repeated = automata[letter.rule].edges
            if any(isinstance(inner, Call) for row in repeated for inner, _ in row):
                return False
    return True


def _nullable(automata: dict[str, Automaton]) -> set[str]:
    """Which of these can pass over no byte at all."""
    found: set[str] = set()
    grown = True
    while grown:
        new = {name for name, automaton in automata.items() if automaton.passes(found)} - found
        found |= new
        grown = bool(new)
    return found


def _automaton(document: dict[str, Any], rule: int, names: Sequence[str]) -> Automaton:
    (fsm, start, ends, *_), *_ = document["per_rule_fsms"][rule]
    starts: list[int] = fsm["edges"]["indptr_"]
    rows: list[list[int]] = fsm["edges"]["data_"]
    extra: list[int] = fsm["edge_aux_data"]
    # the automata of all rules share their arrays: keep what this start reaches
    numbers = {start: 0}
    todo = [start]
    edges: list[list[tuple[Letter, int]]] = []
    skips: list[list[int]] = []
    for state in todo:  # grows
        edges.append([])
        skips.append([])
        for low, high, target in rows[starts[state] : starts[state + 1]]:
            if target not in numbers:
                numbers[target] = len(numbers)
                todo.append(target)
            if low == _EPSILON:
                skips[-1].append(numbers[target])
            elif low >= 0:
                edges[-1].append((Bytes(low, high), numbers[target]))
            elif low == _CALL:
                edges[-1].append((Call(names[high]), numbers[target]))
            elif low == _REPEAT:
                callee, least, most = extra[high : high + 3]
                edges[-1].append((Call(names[callee], least, most), numbers[target]))
            else:
                raise _unknown(f"an automaton with edges of kind {low}")
    final = frozenset(numbers[end] for end in ends if end in numbers)
    return _without_skips(edges, skips, final)


def _unknown(what: str) -> UnsupportedGrammarError:
    return UnsupportedGrammarError(what, what, 1, 1)


def _without_skips(
    edges: list[list[tuple[Letter, int]]], skips: list[list[int]], ends: frozenset[int]
) -> Automaton:
    """The automaton without its empty edges."""
    new_edges: list[list[tuple[Letter, int]]] = []
    new_ends: set[int] = set()
    for state in range(len(edges)):
        closure = [state]
        for other in closure:  # grows
            closure += (skip for skip in skips[other] if skip not in closure)
        new_edges.append([edge for other in closure for edge in edges[other]])
        if not ends.isdisjoint(closure):
            new_ends.add(state)
    return Automaton(0, frozenset(new_ends), new_edges)


def _cut(edges: Iterable[tuple[Letter, int]]) -> dict[Letter, frozenset[int]]:
    """The edges of a set of states, so that no two byte ranges overlap; in a fixed order."""
    calls: dict[Letter, set[int]] = {}
    spans: list[tuple[int, int, int]] = []
    for letter, target in edges:
        if isinstance(letter, Bytes):
            spans.append((letter.first, letter.last, target))
        else:
            calls.setdefault(letter, set()).add(target)
    cuts = sorted({first for first, _, _ in spans} | {last + 1 for _, last, _ in spans})
    found: dict[Letter, frozenset[int]] = {}
    for first, after in pairwise(cuts):
        targets = frozenset(
            target for low, high, target in spans if low <= first and after - 1 <= high
        )
        if targets:
            found[Bytes(first, after - 1)] = targets
    for letter in sorted(calls):
        found[letter] = frozenset(calls[letter])
    return found


def _determined(automaton: Automaton) -> Automaton | None:
    """By the subset construction; None where it grows too large."""
    limit = 4 * len(automaton.edges) + 1_000
    start = frozenset((automaton.start,))
    numbers = {start: 0}
    todo = [start]
    edges: list[list[tuple[Letter, int]]] = []
    for states in todo:  # grows
        row: list[tuple[Letter, int]] = []
        for letter, targets in _cut(
            edge for state in sorted(states) for edge in automaton.edges[state]
        ).items():
            if targets not in numbers:
                if len(numbers) >= limit:
                    return None
                numbers[targets] = len(numbers)
                todo.append(targets)
            row.append((letter, numbers[targets]))
        edges.append(row)
    ends = frozenset(
        number for states, number in numbers.items() if not automaton.ends.isdisjoint(states)
    )
    return Automaton(0, ends, edges)


def _minimal(automaton: Automaton) -> Automaton:
    """By refinement; adjacent byte ranges with one target become one range."""
    block = [int(state in automaton.ends) for state in range(len(automaton.edges))]
    count = len(set(block))
    while True:
        keys: dict[tuple[object, ...], int] = {}
        refined = []
        for row, old in zip(automaton.edges, block, strict=True):
            joined = _joined((letter, block[target]) for letter, target in row)
            refined.append(keys.setdefault((old, *joined), len(keys)))
        block = refined
        if len(keys) == count:
            break
        count = len(keys)
    edges: list[list[tuple[Letter, int]]] = [[] for _ in range(count)]
    for state, number in enumerate(block):
        edges[number] = _joined(
            (letter, block[target]) for letter, target in automaton.edges[state]
        )
    ends = frozenset(block[state] for state in automaton.ends)
    return Automaton(block[automaton.start], ends, edges)


def _joined(edges: Iterable[tuple[Letter, int]]) -> list[tuple[Letter, int]]:
    """Adjacent byte ranges with one target as one; the edges are in order and do not overlap."""
    joined: list[tuple[Letter, int]] = []
    for letter, target in edges:
        if joined and isinstance(letter, Bytes):
            before, same = joined[-1]
            if same == target and isinstance(before, Bytes) and before.last + 1 == letter.first:
                joined[-1] = (Bytes(before.first, letter.last), target)
                continue
        joined.append((letter, target))
    return joined


def _reached(automaton: Automaton) -> set[int]:
    seen, todo = {automaton.start}, [automaton.start]
    while todo:
        for _, target in automaton.edges[todo.pop()]:
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen
