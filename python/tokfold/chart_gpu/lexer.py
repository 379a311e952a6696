"""Texts as terminals, where their bytes leave no choice.

Over terminals a chart has a column for each terminal, not for each byte. The bytes of a text then
have to be cut into terminals, and a token may begin and end inside one. Where no string of a
terminal begins with a string of another, there is one way to cut, and this finds it: its state is a
place in the trie of all terminals' bytes. Other grammars have to be read by bytes: a longest match
would be another language.

What a token brings depends on the state before it alone: the terminals that it completes, and the
state after it, which stands for the terminals that may still be completed there. So for each state
there is a token tree (:meth:`TerminalLexer.tree`): a token is the sequence of its terminals, or,
where it ends inside one, any of the sequences with a terminal that goes on like that. After the
incremental Valiant recognizer, section 6.2, where a lexer's automata stand in the trie's place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tokfold.chart_gpu.binary import BinaryGrammar, bits_of
from tokfold.chart_gpu.letters import utf8_sequences
from tokfold.chart_gpu.tree import TokenTree
from tokfold.errors import UnsupportedGrammarError
from tokfold.vocabulary import Vocabulary

__all__ = ["TerminalLexer"]

BETWEEN = 0
"""The state between two terminals."""

_MOST_STATES = 1 << 16


@dataclass
class _Trie:
    """Sets of strings as a trie with ranges of bytes written out.

    Attributes:
        steps: of each state, the state after a byte.
        ended: of each state, the terminal whose string ends there; -1 for none.
        below: of each state, the terminals that may still end there or further down, as bits.
    """

    steps: list[dict[int, int]] = field(default_factory=lambda: [{}])
    ended: list[int] = field(default_factory=lambda: [-1])
    below: list[int] = field(default_factory=lambda: [0])

    def add(self, terminal: int, string: list[tuple[int, int]], name: str) -> None:
        """Add all strings of a sequence of ranges of bytes."""
        ends = [BETWEEN]
        self.below[BETWEEN] |= 1 << terminal
        for at, (first, last) in enumerate(string):
            is_last = at + 1 == len(string)
            after: list[int] = []
            for state in ends:
                for byte in range(first, last + 1):
                    after.append(self._step(state, byte, terminal, is_last, name))
            ends = sorted(set(after))

    def _step(self, state: int, byte: int, terminal: int, is_last: bool, name: str) -> int:
        known = self.steps[state].get(byte)
        if known is None:
            known = self.steps[state][byte] = len(self.steps)
            if known >= _MOST_STATES:
                raise _refused(f"{name} has too many strings")
            self.steps.append({})
            self.ended.append(terminal if is_last else -1)
            self.below.append(0)
        elif is_last or self.ended[known] >= 0:
            raise _refused(f"{name} begins like another terminal, or is one")
        self.below[known] |= 1 << terminal
        return known


class TerminalLexer:
    """The terminals of a grammar as bytes; for a grammar over ``"terminals"``. Immutable.

    Attributes:
        grammar: the grammar.
    """

    def __init__(self, grammar: BinaryGrammar) -> None:
        """Make the trie.

        Args:
            grammar: a binary form with ``alphabet="terminals"``.

        Raises:
            UnsupportedGrammarError: a string of a terminal begins with a string of another, or is
                empty, so that bytes can be cut in more than one way; or there are too many strings.
            ValueError: the letters are no terminals.
        """
        if grammar.alphabet.name != "terminals":
            raise ValueError(
                f'the letters are {grammar.alphabet.name}: use alphabet="terminals", since words '
                "have lost the blanks between them"
            )
        self.grammar = grammar
        self._trie = _Trie()
        used = {letter for letter, _ in grammar.leaves.tolist()}
        for letter, word in enumerate(grammar.alphabet.words):
            if letter not in used:
                continue
            if isinstance(word, str):
                data = word.encode("utf-8", "surrogatepass")
                self._trie.add(letter, [(byte, byte) for byte in data], repr(word))
                continue
            for first, last in word:
                for string in utf8_sequences(first, last):
                    self._trie.add(letter, string, f"a class with {chr(first)!r}")
        self._trees: dict[tuple[int, str], TokenTree] = {}

    @property
    def num_states(self) -> int:
        """States are numbers below this; 0 is that between two terminals."""
        return len(self._trie.steps)

    def read(self, state: int, data: bytes) -> tuple[list[int], int] | None:
        """The letters that bytes complete after a state, and the state after them.

        None where no terminal goes on like that.
        """
        letters = []
        trie = self._trie
        for byte in data:
            after = trie.steps[state].get(byte)
            if after is None:
                return None
            state = after
            if trie.ended[state] >= 0:
                letters.append(trie.ended[state])
                state = BETWEEN
        return letters, state

    def completing(self, state: int) -> list[int]:
        """The letters that may be completed after a state: all of them between two terminals."""
        return bits_of(self._trie.below[state])

    def tree(self, state: int, vocabulary: Vocabulary) -> TokenTree:
        """The token tree where the text stands in a state; made once for each.

        A token that ends inside a terminal may come if any terminal may that goes on like that.
        Stop tokens may come between two terminals alone.
        """
        key = (state, vocabulary.fingerprint)
        if key not in self._trees:
            stops = vocabulary.stop_token_ids
            untold = {*stops, *vocabulary.special_token_ids}
            tokens = [
                [] if index in untold or not data else self._ways(state, data)
                for index, data in enumerate(vocabulary.token_bytes)
            ]
            may_stop = stops if state == BETWEEN else ()
            self._trees[key] = TokenTree.of_letters(self.grammar, tokens, may_stop)
        return self._trees[key]

    def _ways(self, state: int, data: bytes) -> list[list[int]]:
        found = self.read(state, data)
        if found is None:
            return []
        letters, after = found
        if after == BETWEEN:
            return [letters]
        return [[*letters, letter] for letter in self.completing(after)]

    def __repr__(self) -> str:
        return f"<TerminalLexer of {self.num_states} states for {self.grammar!r}>"


def _refused(why: str) -> UnsupportedGrammarError:
    return UnsupportedGrammarError(
        f"line 1, column 1: the bytes of a text can be cut into terminals in more than one way, or "
        f'in too many: {why}; use alphabet="bytes"',
        "terminals",
        1,
        1,
    )
