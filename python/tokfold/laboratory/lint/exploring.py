"""The states that a matcher can come to, breadth first, by one token of each class.

Tokens of one class lead to states that allow the same texts, so one stands for all of them. States
are as many as there are nestings of the language: where they do not close within the budget, what
is found is true and what is not found may yet be there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tokfold.bitmask import allocate_bitmask
from tokfold.engine import CompiledGrammar
from tokfold.laboratory.form import Chars, Form, Literal, Macro, postorder
from tokfold.matcher import Matcher
from tokfold.state import MatcherState

__all__ = ["Exploration", "Explored", "explore", "spoken_bytes"]


@dataclass
class Explored:
    """A state, and the shortest way there that was found.

    Attributes:
        tokens: ids of the tokens that lead there from the start.
        text: their bytes.
        accepting: whether the text may end there.
        allowed: the classes that may come next but stop tokens: their numbers.
        after: for each of these, the number of the state that it leads to; -1 where that was past
            the budget.
    """

    tokens: tuple[int, ...]
    text: bytes
    accepting: bool
    allowed: npt.NDArray[np.int64]
    after: list[int] = field(default_factory=list)


@dataclass
class Exploration:
    """The states found, the start first.

    Attributes:
        compiled: what was explored.
        states: the states.
        closed: whether these are all the states there are.
    """

    compiled: CompiledGrammar
    states: list[Explored]
    closed: bool

    def stuck(self) -> Iterator[Explored]:
        """States that no tokens lead on from to the end of a text, nearest to the start first.

        Where the states are not all there are, only those without any token.
        """
        if not self.closed:
            yield from (s for s in self.states if not len(s.allowed) and not s.accepting)
            return
        before: list[list[int]] = [[] for _ in self.states]
        for number, state in enumerate(self.states):
            for after in state.after:
                before[after].append(number)
        good = {number for number, state in enumerate(self.states) if state.accepting}
        work = list(good)
        while work:
            for number in before[work.pop()]:
                if number not in good:
                    good.add(number)
                    work.append(number)
        yield from (s for number, s in enumerate(self.states) if number not in good)


def explore(compiled: CompiledGrammar, max_states: int, max_steps: int) -> Exploration:
    """Explore the states of a compiled grammar that has its classes.

    Args:
        compiled: made with ``classes="now"``.
        max_states: how many states.
        max_steps: how many tokens are accepted in all.
    """
    classes = compiled.classes
    assert classes is not None
    stops = set(compiled.vocabulary.stop_token_ids)
    is_text = np.array([int(i) not in stops for i in classes.representative_ids], dtype=bool)
    numbers: dict[MatcherState, int] = {}
    states: list[Explored] = []
    matchers: list[Matcher | None] = []
    row = allocate_bitmask(1, max(len(classes), 1))

    def visit(matcher: Matcher, tokens: tuple[int, ...]) -> int:
        state = matcher.state
        if state in numbers:
            return numbers[state]
        if len(states) >= max_states:
            return -1
        matcher.fill_class_bitmask(row)
        bits = np.unpackbits(row[0].view(np.uint8), bitorder="little")[: len(classes)]
        allowed = np.flatnonzero(bits.astype(bool) & is_text)
        numbers[state] = len(states)
        states.append(Explored(tokens, matcher.text, matcher.is_accepting, allowed))
        matchers.append(matcher)
        return numbers[state]

    visit(Matcher(compiled), ())
    steps, at, closed = 0, 0, True
    while at < len(states):
        here, matcher = states[at], matchers[at]
        matchers[at] = None  # its memory goes when nothing else forked from it
        assert matcher is not None
        for index in here.allowed:
            if steps >= max_steps:
                closed = False
                here.after.append(-1)
                continue
            steps += 1
            token = int(classes.representative_ids[index])
            forked = matcher.fork()
            forked.accept_token(token)
            after = visit(forked, (*here.tokens, token))
            closed = closed and after >= 0
            here.after.append(after)
        at += 1
    return Exploration(compiled, states, closed)


def spoken_bytes(form: Form) -> bytes | None:
    """The bytes that texts of the grammar can hold, ascending; ``None`` where macros hide them."""
    held = np.zeros(256, dtype=bool)
    for expr in postorder(rule.body for rule in form.rules.values()):
        if isinstance(expr, Macro):
            return None
        if isinstance(expr, Literal):
            held[list(expr.data)] = True
        elif isinstance(expr, Chars):
            for first, last in expr.ranges:
                _hold(held, first, last)
    return bytes(np.flatnonzero(held).tolist())


_LENGTHS = ((0, 0x7F, 1), (0x80, 0x7FF, 2), (0x800, 0xFFFF, 3), (0x10000, 0x10FFFF, 4))
"""First and last code points of each length of UTF-8."""


def _hold(held: npt.NDArray[np.bool_], first: int, last: int) -> None:
    """The bytes of the UTF-8 of a range of code points."""
    for low, high, length in _LENGTHS:
        begin, end = max(first, low), min(last, high)
        if begin > end:
            continue
        for place in range(length):
            shift = 6 * place
            a, b = begin >> shift, end >> shift
            if place == length - 1:
                lead = (0, 0xC0, 0xE0, 0xF0)[length - 1]
                held[lead + a : lead + b + 1] = True
            else:
                values = range(a, min(b, a + 63) + 1)
                held[[0x80 | (value & 0x3F) for value in values]] = True
