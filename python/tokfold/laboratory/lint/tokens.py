"""Checks of a grammar with a vocabulary: dead ends, forced tokens, runaway white space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tokfold.engine import CompiledGrammar
from tokfold.engine import compile as compile_grammar
from tokfold.errors import LimitExceededError, MissingExtraError, UnsupportedGrammarError
from tokfold.laboratory.lint.exploring import Exploration, explore, spoken_bytes
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding
from tokfold.laboratory.lint.straddling import straddling
from tokfold.laboratory.lint.texts import quoted_text
from tokfold.laboratory.lint.whitespace import runaway_whitespace
from tokfold.options import CompileOptions
from tokfold.vocabulary import Vocabulary

__all__ = ["TokenBudget", "tokens"]

SHOWN = 5
"""Examples of one kind that are shown."""


@dataclass(frozen=True)
class TokenBudget:
    """How far the states of a matcher are explored.

    Attributes:
        states: states visited.
        steps: tokens accepted on the way.
        tries: texts tried to find out which tokens straddle delimiters.
    """

    states: int = 500
    steps: int = 50_000
    tries: int = 50_000


def tokens(
    facts: Facts, vocabulary: Vocabulary, budget: TokenBudget | None = None
) -> tuple[list[Finding], list[str]]:
    """The findings that take a vocabulary, and how far was looked."""
    budget = budget or TokenBudget()
    notes: list[str] = []
    if facts.form.root not in facts.useful:
        return [], ["tokens: not looked into, as the grammar has no text"]
    found = list(runaway_whitespace(facts, vocabulary, notes))
    grammar = facts.form.source
    try:
        compiled = compile_grammar(
            grammar,
            vocabulary,
            grammar._limits,
            classes="now",
            options=CompileOptions(check_tokens=False),
        )
        exploration = explore(compiled, budget.states, budget.steps)
    except (UnsupportedGrammarError, LimitExceededError, MissingExtraError) as error:
        return found, [*notes, f"tokens: not looked into further: {error}"]
    explored = f"{len(exploration.states):,} states of the matcher"
    notes.append(
        f"tokens: {explored}, which are all there are"
        if exploration.closed
        else f"tokens: {explored} were explored, nearest to the start first; there are more"
    )
    found.extend(_dead_ends(facts, compiled, exploration, notes))
    found.extend(_endless(facts, exploration))
    found.extend(_forced(facts, exploration))
    found.extend(straddling(facts, vocabulary, budget.states, budget.tries, notes))
    return found, notes


def _dead_ends(
    facts: Facts, compiled: CompiledGrammar, exploration: Exploration, notes: list[str]
) -> Iterator[Finding]:
    spoken = spoken_bytes(facts.form)
    vocabulary = compiled.vocabulary
    apart = {*vocabulary.stop_token_ids, *vocabulary.special_token_ids}
    single = {t for i, t in enumerate(vocabulary) if len(t) == 1 and i not in apart}
    missing = None if spoken is None else [b for b in spoken if bytes([b]) not in single]
    if missing == []:
        notes.append("dead ends: there are none, as each byte of the grammar is a token of its own")
        return
    stuck = list(exploration.stuck())
    if not stuck:
        if exploration.closed:
            notes.append("dead ends: there are none, all states were explored")
        return
    first = stuck[0]
    traps = any(len(state.allowed) for state in stuck)
    after = f"after {quoted_text(first.text)}" if first.text else "at the start"
    what = (
        "no token is allowed, though the text is not complete"
        if not len(first.allowed)
        else "tokens go on, but none of their ways completes the text"
    )
    lacking = "" if missing is None else f"; no token of its own: {_bytes(missing)}"
    yield Finding(
        "dead-end",
        f"{after} {what} ({len(stuck)} such state{'s' * (len(stuck) > 1)} found){lacking}",
        None,
        "",
        "write the grammar with bytes that the vocabulary has, or take a vocabulary with a token "
        "for each byte",
        details={
            "text": first.text.decode("utf-8", "backslashreplace"),
            "tokens": list(first.tokens),
            "states": len(stuck),
            "traps": traps,
        },
    )


def _bytes(values: list[int]) -> str:
    shown = " ".join(f"0x{value:02x}" for value in values[:8])
    return shown + (f" and {len(values) - 8} more bytes" if len(values) > 8 else "")


def _endless(facts: Facts, exploration: Exploration) -> Iterator[Finding]:
    if exploration.compiled.vocabulary.stop_token_ids:
        return
    ends = [s for s in exploration.states if s.accepting and not len(s.allowed)]
    if ends:
        text = quoted_text(ends[0].text)
        yield Finding(
            "no-stop-token",
            f"after {text} the text is complete and nothing may follow, and the vocabulary has no "
            "stop token",
            None,
            "",
            "name the stop tokens of the model, or let the text end by itself "
            "(terminate_without_stop_token)",
            details={"text": ends[0].text.decode("utf-8", "backslashreplace")},
        )


def _forced(facts: Facts, exploration: Exploration) -> Iterator[Finding]:
    classes = exploration.compiled.classes
    assert classes is not None
    sizes = np.bincount(classes.class_of[classes.class_of >= 0], minlength=len(classes))
    forced = [
        state
        for state in exploration.states
        if not state.accepting and len(state.allowed) == 1 and sizes[state.allowed[0]] == 1
    ]
    if not forced:
        return
    vocabulary = exploration.compiled.vocabulary
    shown = ", ".join(
        f"{quoted_text(vocabulary[int(classes.representative_ids[state.allowed[0]])])} after "
        f"{quoted_text(state.text[-24:])}"
        for state in forced[:SHOWN]
    )
    yield Finding(
        "forced-token",
        f"one token is possible in {len(forced)} of {len(exploration.states)} states: {shown}",
        None,
        "",
        "let the engine write forced text (Matcher.forced_bytes), and cut it as the tokenizer does",
        details={"states": len(forced), "explored": len(exploration.states)},
    )
