"""What macros mean, for tokfold's own engine: the automata that take their places.

Each macro is read by itself, from its text: XGrammar builds a macro's automaton from its arguments
alone, and calls rules by name. So the rules of the grammar stay as the user wrote them, with their
names and places, and the core gets automata, not text.

The automata are taken as XGrammar builds them. Where its matcher then does not follow them (it
miscounts some large repetitions), they say what the macro means, and its matcher does not.

Cost: some hundred microseconds for each macro, once in a process for each text.
"""

from __future__ import annotations

from functools import lru_cache, partial

import xgrammar as xgr

from tokfold import _converters, _core
from tokfold._extras import xgrammar_reason
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.grammar import MACROS_OF_BYTES
from tokfold.xgrammar.automata import Automaton, Bytes, built_automata
from tokfold.xgrammar.forms import MACRO_KINDS, GrammarForm

__all__ = ["with_meanings"]

_MAX_REMEMBERED = 1_024
_PARSING = "Regex parsing error"

_Automaton = tuple[
    int,
    int,
    list[int],
    list[tuple[int, int, int, int]],
    list[tuple[int, bool, int, int, int | None, int]],
]
"""As ``_core.Grammar.with_meanings`` takes it: the number of states, the start, the ends, edges
that read a byte (from, first, last, to), edges that call (from, whether a rule, its number or that
of an automaton before this one, least, most or none, to)."""


def with_meanings(grammar: _core.Grammar) -> _core.Grammar:
    """The grammar with the automata of its macros in their places; others stay as they are.

    Raises:
        UnsupportedGrammarError: XGrammar cannot read a macro, or writes its automaton in a way
            that is not known; at the place of the macro.
        LimitExceededError: a macro, or all of them, would take XGrammar too long; likewise.
    """
    work = 0
    meanings: dict[int, list[_Automaton]] = {}
    for number, name, text, rules, line, column in grammar.macros():
        if name not in MACROS_OF_BYTES:
            continue
        try:
            counts = _converters.check_macro(name, text, already=work)
            work = counts.work
            meanings[number] = _converters.with_stack(
                counts.levels, partial(_meaning, text, tuple(sorted(set(rules))))
            )
        except LimitExceededError as error:
            raise LimitExceededError(
                f"line {line}, column {column}: {name}: {error}", error.limit, error.value
            ) from error
        except (UnsupportedGrammarError, RuntimeError) as error:
            reason = xgrammar_reason(error)
            if _PARSING in reason:  # the rest names a rule of ours
                reason = reason[reason.index(_PARSING) :]
            raise UnsupportedGrammarError(
                f"line {line}, column {column}: {name}: XGrammar does not take it: {reason}",
                name,
                line,
                column,
            ) from error
    return grammar.with_meanings(meanings)


@lru_cache(maxsize=_MAX_REMEMBERED)
def _meaning(text: str, rules: tuple[int, ...]) -> list[_Automaton]:
    """The automata of a macro; the last is its own."""
    # What the rules hold is no matter: the automaton has edges that call them.
    stubs = "".join(f'\nr{rule} ::= "a"' for rule in rules)
    form = GrammarForm(xgr.Grammar.from_ebnf(f"root ::= {text}{stubs}"))
    (holder,) = (rule for rule in range(len(form.rules)) if form.body(rule).kind in MACRO_KINDS)
    automata, _ = built_automata(form, holder)
    order = _callees_first(automata)
    numbers = {name: (False, number) for number, name in enumerate(order)}
    numbers |= {f"r{rule}": (True, rule) for rule in rules}
    return [_described(automata[name], numbers) for name in order]


def _callees_first(automata: dict[str, Automaton]) -> list[str]:
    """The names in an order in which each automaton calls only those before it, ``""`` last."""
    missing = {
        name: {
            letter.rule
            for edges in automaton.edges
            for letter, _ in edges
            if not isinstance(letter, Bytes) and letter.rule in automata
        }
        for name, automaton in automata.items()
    }
    order: list[str] = []
    while missing:
        free = [name for name, callees in missing.items() if callees.issubset(order)]
        if not free:
            raise UnsupportedGrammarError("repetitions that call each other", "Regex", 1, 1)
        order += free
        missing = {name: callees for name, callees in missing.items() if name not in free}
    # What others call stands before them, so the macro itself may as well be the last.
    return [*(name for name in order if name), ""]


def _described(automaton: Automaton, numbers: dict[str, tuple[bool, int]]) -> _Automaton:
    spans: list[tuple[int, int, int, int]] = []
    calls: list[tuple[int, bool, int, int, int | None, int]] = []
    for state, edges in enumerate(automaton.edges):
        for letter, target in edges:
            if isinstance(letter, Bytes):
                spans.append((state, letter.first, letter.last, target))
            else:
                is_rule, number = numbers[letter.rule]
                most = None if letter.most < 0 else letter.most
                calls.append((state, is_rule, number, letter.least, most, target))
    return len(automaton.edges), automaton.start, sorted(automaton.ends), spans, calls
