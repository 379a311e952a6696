"""Sequences of letters by the hundred thousand, and their tree: arrays, no loop over tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tokfold.chart_gpu.binary import BinaryGrammar, bits_of, words_of

__all__ = ["Sequences", "Trie", "neighbours", "number_sets"]

_Array: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of letters, one behind the other. Immutable.

    Attributes:
        letters: int64: all letters.
        lengths: int64: of each sequence.
        owners: int64: whose each sequence is; ascending.
    """

    letters: _Array
    lengths: _Array
    owners: _Array

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]], owners: Sequence[int] | _Array) -> Sequences:
        """From sequences."""
        every = list(sequences)
        lengths = np.fromiter(map(len, every), np.int64, len(every))
        letters = np.fromiter(chain.from_iterable(every), np.int64, int(lengths.sum()))
        return cls(letters, lengths, np.asarray(owners, dtype=np.int64))

    @classmethod
    def of_bytes(cls, grammar: BinaryGrammar, texts: Sequence[bytes]) -> Sequences:
        """Texts over a grammar whose letters are bytes; each is its own owner."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        data = np.frombuffer(b"".join(texts), dtype=np.uint8)
        return cls(grammar.letter_of[data].astype(np.int64), lengths, np.arange(len(texts)))

    @property
    def starts(self) -> _Array:
        """Where each begins."""
        return np.cumsum(self.lengths) - self.lengths

    def chosen(self, keep: npt.NDArray[np.bool_]) -> Sequences:
        """Some of them."""
        letters = self.letters[np.repeat(keep, self.lengths)]
        return Sequences(letters, self.lengths[keep], self.owners[keep])

    def possible(self, grammar: BinaryGrammar) -> Sequences:
        """Those that are not empty, and of which no string lacks a letter, or two side by side."""
        of = np.repeat(np.arange(len(self.lengths)), self.lengths)
        is_bad = self.letters < 0
        first, second = np.flatnonzero(of[1:] == of[:-1]), None
        known = ~(is_bad[first] | is_bad[first + 1])
        first = first[known]
        second = self.letters[first + 1]
        after = words_of(neighbours(grammar), 32 * max(1, -(-grammar.num_letters // 32)))
        may = after[self.letters[first], second >> 5] >> (second & 31) & 1
        is_bad[first[may == 0]] = True
        keep = self.lengths > 0
        keep[of[is_bad]] = False
        return self.chosen(keep)


@dataclass(frozen=True, eq=False)
class Trie:
    """Sequences as paths from a root, numbered level by level; node 0 is the root.

    Attributes:
        levels: where the nodes of each level begin, and where the last ones end.
        parents: of each node; 0 for the root.
        letters: what leads to each node; 0 for the root.
        ends: for each sequence the node where it ends.
    """

    levels: _Array
    parents: _Array
    letters: _Array
    ends: _Array

    @classmethod
    def of(cls, sequences: Sequences) -> Trie:
        """The tree of sequences."""
        kinds = int(sequences.letters.max(initial=0)) + 1
        levels, parents, letters = [0, 1], [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
        ends = np.zeros(len(sequences.lengths), dtype=np.int64)
        under_way = np.flatnonzero(sequences.lengths)
        at, nodes = sequences.starts[under_way], np.zeros(len(under_way), dtype=np.int64)
        while len(under_way):
            keys, which = np.unique(nodes * kinds + sequences.letters[at], return_inverse=True)
            parents.append(keys // kinds)
            letters.append(keys % kinds)
            nodes = levels[-1] + which
            levels.append(levels[-1] + len(keys))
            depth = len(levels) - 2
            is_done = sequences.lengths[under_way] == depth
            ends[under_way[is_done]] = nodes[is_done]
            under_way, nodes, at = under_way[~is_done], nodes[~is_done], at[~is_done] + 1
        whole = np.array(levels, dtype=np.int64)
        return cls(whole, np.concatenate(parents), np.concatenate(letters), ends)


def number_sets(owners: _Array, members: _Array, count: int) -> _Array:
    """A number for each of ``count`` owners, the same for the same set of members; -1 for none.

    Numbers ascend as owners first have a set.

    Args:
        owners: ascending.
        members: of each owner, ascending, none of them twice.
        count: owners are below this.
    """
    sizes = np.bincount(owners, minlength=count)
    ends = Trie.of(Sequences(members, sizes, np.arange(count))).ends
    _, firsts, which = np.unique(ends, return_index=True, return_inverse=True)
    # The empty set ends at the root, and is no set here.
    is_set = sizes[firsts] > 0
    numbers = np.full(len(firsts), -1, dtype=np.int64)
    numbers[np.flatnonzero(is_set)[np.argsort(firsts[is_set])]] = np.arange(is_set.sum())
    return numbers[which]


def neighbours(grammar: BinaryGrammar) -> list[int]:
    """For each letter those that follow it in some string, as bits."""
    lasts = [0] * grammar.num_symbols
    for letter, symbol in grammar.leaves.tolist():
        lasts[symbol] |= 1 << letter
    users: list[list[int]] = [[] for _ in range(grammar.num_symbols)]
    for symbol, _, right in grammar.rules.tolist():
        users[right].append(symbol)
    work = list(range(grammar.num_symbols))
    while work:
        symbol = work.pop()
        for user in users[symbol]:
            if lasts[symbol] & ~lasts[user]:
                lasts[user] |= lasts[symbol]
                work.append(user)
    after = [0] * grammar.num_letters
    pairs = {(lasts[left], grammar.firsts[right]) for _, left, right in grammar.rules.tolist()}
    for last, first in pairs:
        for letter in bits_of(last):
            after[letter] |= first
    return after
