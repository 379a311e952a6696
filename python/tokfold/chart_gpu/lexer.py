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

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tokfold._quoting import quoted
from tokfold._utf8 import utf8_sequences
from tokfold.chart_gpu.binary import BinaryGrammar, bits_of
from tokfold.chart_gpu.sequences import Sequences
from tokfold.chart_gpu.tree import TokenTree, check_classes
from tokfold.classes import TokenClasses
from tokfold.errors import UnsupportedGrammarError
from tokfold.vocabulary import Vocabulary

__all__ = ["TerminalLexer"]

BETWEEN = 0
"""The state between two terminals."""

_NOWHERE = -1
"""Where a text is that no terminal goes on like."""

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
                    self._trie.add(letter, string, f"a class with {quoted(chr(first))}")
        steps = self._trie.steps
        keys = [(s << 8 | byte, to) for s, after in enumerate(steps) for byte, to in after.items()]
        edges = np.array([(-1, -1), *sorted(keys)], dtype=np.int64)  # the first is no edge
        self._keys, self._targets = edges[:, 0].copy(), edges[:, 1].copy()
        self._ended = np.array(self._trie.ended, dtype=np.int64)
        self._trees: dict[tuple[int, str, int], tuple[TokenClasses | None, TokenTree]] = {}

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
        return bits_of(self.below(state))

    def below(self, state: int) -> int:
        """As :meth:`completing`, as bits."""
        return self._trie.below[state]

    def steps(self, state: int) -> dict[int, int]:
        """The bytes that may stand next in some terminal, and the inner states after them.

        Where a terminal ends, too: what :meth:`below` says of such a state is that terminal.
        """
        return self._trie.steps[state]

    def tree(
        self, state: int, vocabulary: Vocabulary, classes: TokenClasses | None = None
    ) -> TokenTree:
        """The token tree where the text stands in a state; made once for each.

        A token that ends inside a terminal may come if any terminal may that goes on like that.
        Stop tokens may come between two terminals alone.

        Args:
            state: the state.
            vocabulary: the vocabulary.
            classes: token classes of the grammar and the vocabulary: what the representative of a
                class brings, all its tokens do.

        Raises:
            ValueError: the classes are of another vocabulary.
        """
        key = (state, vocabulary.fingerprint, id(classes))  # kept, so the number stays theirs
        if key not in self._trees:
            made = self._tree(state, vocabulary, classes)
            self._trees[key] = (classes, made)
        return self._trees[key][1]

    def _tree(self, state: int, vocabulary: Vocabulary, classes: TokenClasses | None) -> TokenTree:
        stops = vocabulary.stop_token_ids
        if classes is None:
            texts = list(vocabulary.token_bytes)
            for index in (*stops, *vocabulary.special_token_ids):
                texts[index] = b""
        else:
            check_classes(classes, vocabulary)
            stops = tuple(range(len(classes) - classes.num_stop_classes, len(classes)))
            ids = classes.representative_ids[: len(classes) - len(stops)].tolist()
            texts = [vocabulary[index] for index in ids] + [b""] * len(stops)
        ways = self._ways(state, texts)
        may_stop = stops if state == BETWEEN else ()
        tree = TokenTree.of_sequences(self.grammar, ways, len(texts), may_stop)
        if classes is None:
            return tree
        of_class = np.append(tree.class_of, np.int32(-1))
        return replace(tree, class_of=of_class[classes.class_of])

    def _ways(self, state: int, texts: Sequence[bytes]) -> Sequences:
        """What each text may be after a state: :meth:`read`, for all of them together."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        data = np.frombuffer(b"".join(texts), dtype=np.uint8)
        starts = np.cumsum(lengths) - lengths
        states = np.where(lengths > 0, state, _NOWHERE)
        under_way = np.flatnonzero(lengths)
        who, letters = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for depth in range(int(lengths.max(initial=0))):
            under_way = under_way[lengths[under_way] > depth]
            keys = states[under_way] << 8 | data[starts[under_way] + depth]
            place = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
            goes_on = self._keys[place] == keys
            states[under_way[~goes_on]] = _NOWHERE
            under_way, after = under_way[goes_on], self._targets[place[goes_on]]
            ended = self._ended[after]
            states[under_way] = np.where(ended >= 0, BETWEEN, after)
            who.append(under_way[ended >= 0])
            letters.append(ended[ended >= 0])
        order = np.argsort(np.concatenate(who), kind="stable")
        counts = np.bincount(np.concatenate(who), minlength=len(texts))
        return self._completed(states, counts, np.concatenate(letters)[order])

    def _completed(
        self,
        states: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
        letters: npt.NDArray[np.int64],
    ) -> Sequences:
        """Letters by text, and behind them any that may be completed where the text ends."""
        known: dict[int, list[int]] = {_NOWHERE: [], BETWEEN: [-1]}
        which = np.unique(states)
        ends = [known[end] if end in known else self.completing(end) for end in which.tolist()]
        many = np.array([len(end) for end in ends], dtype=np.int64)
        flat = np.array([letter for end in ends for letter in end], dtype=np.int64)
        of = np.searchsorted(which, states)
        owners = np.repeat(np.arange(len(states)), many[of])
        rank = np.arange(len(owners)) - np.repeat(np.cumsum(many[of]) - many[of], many[of])
        final = flat[(np.cumsum(many) - many)[of[owners]] + rank]
        lengths = counts[owners] + (final >= 0)
        at = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        sequence = np.repeat(np.arange(len(owners)), lengths)
        is_final = at == counts[owners[sequence]]
        place = (np.cumsum(counts) - counts)[owners[sequence]] + at
        padded = np.append(letters, 0)  # where a final letter stands behind all others
        return Sequences(np.where(is_final, final[sequence], padded[place]), lengths, owners)

    def __repr__(self) -> str:
        return f"<TerminalLexer of {self.num_states} states for {self.grammar!r}>"


def _refused(why: str) -> UnsupportedGrammarError:
    return UnsupportedGrammarError(
        f"the bytes of a text can be cut into terminals in more than one way, or "
        f'in too many: {why}; use alphabet="bytes"',
        "terminals",
        1,
        1,
    )
