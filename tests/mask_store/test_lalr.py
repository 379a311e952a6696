"""The LALR(1) automaton against Lark's table, and its conflicts against those it logs."""

from __future__ import annotations

import dataclasses
import logging

import lark
import pytest
from hypothesis import assume, given
from mask_store.table_oracles import grammar_texts, table_of
from strategies.profiles import examples
from tokfold.mask_store.errors import LarkGrammarError
from tokfold.mask_store.grammar import Production
from tokfold.mask_store.lalr import TableMismatchError, find_conflicts, lalr_automaton
from tokfold.mask_store.lark_reader import python_grammar, read_lark


def is_free(text: str) -> bool:
    """Whether Lark finds no conflict; between shift and reduction it only writes them down."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    level = lark.logger.level
    lark.logger.setLevel(logging.WARNING)
    lark.logger.addHandler(handler)
    try:
        lark.Lark(text, parser="lalr", lexer="basic", debug=True)
    finally:
        lark.logger.removeHandler(handler)
        lark.logger.setLevel(level)
    return not any("Shift/Reduce conflict" in r.getMessage() for r in records)


@examples(150)
@given(grammar_texts())
def test_table_is_that_of_lark_and_conflicts_are_those_it_logs(text: str) -> None:
    grammar = table_of(text)
    assume(grammar is not None)
    assert (not find_conflicts(grammar)) == is_free(text)


def test_table_of_python_and_its_conflicts() -> None:
    grammar = python_grammar()
    conflicts = find_conflicts(grammar)
    assert len(lalr_automaton(grammar.productions, grammar.start).shifts) == len(
        grammar.table.shifts
    )
    after_match = {c.terminal for c in conflicts if c.before == ("MATCH",)}
    assert after_match == {"LPAR", "LSQB", "MINUS", "NOT", "PLUS"}
    assert len(conflicts) == 10


def test_conflict_is_named() -> None:
    grammar = read_lark('start: "if" start | "if" start "else" start | "x"')
    [conflict] = find_conflicts(grammar)
    assert (conflict.terminal, conflict.kept) == ("ELSE", "shift")
    assert conflict.before == ("IF", "start")
    assert str(conflict) == (
        "shift/reduce conflict after IF start before ELSE: the table does shift, not the reduction "
        "of start -> IF start"
    )


def test_conflict_between_reductions_is_decided_by_priority_and_named() -> None:
    grammar = read_lark('start: p | q\np.2: "x"\nq.1: "x"')
    [conflict] = find_conflicts(grammar)
    assert conflict.kept == "p -> X"
    assert conflict.dropped == ("q -> X",)
    assert "reduce/reduce" in str(conflict)


def test_table_that_is_not_of_the_productions_is_refused() -> None:
    grammar = read_lark('start: "x" start "y" | "z"')
    reductions = [dict(row) for row in grammar.table.reductions]
    state = next(i for i, row in enumerate(reductions) if row)
    reductions[state].pop(next(iter(reductions[state])))
    table = dataclasses.replace(grammar.table, reductions=tuple(reductions))
    with pytest.raises(TableMismatchError, match="reduces otherwise"):
        find_conflicts(dataclasses.replace(grammar, table=table))
    shorter = grammar.productions[:1]
    with pytest.raises(TableMismatchError, match="other symbols"):
        find_conflicts(dataclasses.replace(grammar, productions=shorter))


def test_no_start_and_too_many_states_are_named() -> None:
    productions = [Production("start", ("x",) * 50)]
    with pytest.raises(LarkGrammarError, match="no rule 'other'"):
        lalr_automaton(productions, "other")
    with pytest.raises(LarkGrammarError, match="more than 20 states"):
        lalr_automaton(productions, "start", max_states=20)
    assert len(lalr_automaton(productions, "start").shifts) == 52


def test_a_long_chain_of_rules_needs_no_recursion() -> None:
    productions = [Production(f"r{i}", (f"r{i + 1}",)) for i in range(5_000)]
    productions.append(Production("r5000", ("x",)))
    automaton = lalr_automaton(productions, "r0")
    assert automaton.shifts[0].keys() == {"x"}
