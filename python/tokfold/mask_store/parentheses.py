"""Open parentheses as the stack has them: where a newline is dropped, as one state to decide it.

Where each production closes what it opens, the parentheses that are open in a text are those on its
stack. So whether an indenting post-lexer drops a newline is a question to the stack, and rows with
newlines can be compared exactly as other rows.
"""

from __future__ import annotations

from tokfold.mask_store.canonical import CanonicalAutomaton, solve
from tokfold.mask_store.grammar import LarkGrammar
from tokfold.mask_store.stack_graph import StackGraph

__all__ = ["ParenthesesChoice"]

_Key = tuple[int, int, int, int]


class ParenthesesChoice:
    """Chooses between states of the minimal automaton by the parentheses open on the stack."""

    def __init__(
        self, grammar: LarkGrammar, graph: StackGraph, automaton: CanonicalAutomaton
    ) -> None:
        """Choose for one grammar.

        Args:
            grammar: has an indentation, and each production closes what it opens.
            graph: its stacks.
            automaton: where the states are, and where new ones go.
        """
        self._graph, self._automaton = graph, automaton
        self._opens = [0] * graph.size
        if grammar.indentation is not None:
            for row in grammar.table.shifts:
                for name, target in row.items():
                    self._opens[target] = (name in grammar.indentation.open_parens) - (
                        name in grammar.indentation.close_parens
                    )
        self._numbers: dict[_Key, int] = {}
        self._keys: list[_Key] = []
        self._found: dict[int, int] = {}

    def choose(self, inside: int, outside: int, top: int, needed: int) -> int:
        """A state that accepts as ``inside`` if enough parentheses are open, else as ``outside``.

        Args:
            inside: state of the automaton, for what is below the top.
            outside: the same.
            top: the top of the stack; counts itself.
            needed: how many parentheses must be open, 1 or more.
        """
        result = self._begin(inside, outside, top, needed)
        if result < 0:
            return -1 - result
        if result not in self._found:
            solve(self._automaton, result, self._moves, lambda leaf: -1 - leaf, self._found)
        return self._found[result]

    def _begin(self, inside: int, outside: int, top: int, needed: int) -> int:
        """The computation that is left when ``top`` has been counted; below 0: a state."""
        # A production that closes has opened further down: what closes adds to what is needed.
        needed -= self._opens[top]
        if inside == outside or needed <= 0:
            return -1 - inside
        if top == self._graph.start:
            return -1 - outside
        key = (inside, outside, top, needed)
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number

    def _moves(self, number: int) -> list[tuple[int, int]]:
        inside, outside, top, needed = self._keys[number]
        run = self._automaton.run
        return [
            (state, self._begin(run(inside, (state,)), run(outside, (state,)), state, needed))
            for state in self._graph.below[top]
        ]
