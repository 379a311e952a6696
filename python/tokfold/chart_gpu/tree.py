"""The token tree: what all tokens of a vocabulary bring, letter by letter.

Tokens that bring the same letters are one class, and a class is a path from the root of a tree; so
is a class of :class:`tokfold.TokenClasses`, by its representative. A mask looks at one level after
the other: a node may come if the letter may come where its parent stands, and only those that may,
and have children, read their letter. All of a level do so in one launch.

Decided beforehand: a token that has a letter of no string, or two letters that stand side by side
in none, is in no mask, and the tree does not have it. A node without children reads nothing: that
it may come, its parent knows.

After the incremental Valiant recognizer, section 6.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tokfold.chart_gpu.binary import BinaryGrammar, bits_of
from tokfold.classes import TokenClasses
from tokfold.vocabulary import Vocabulary

__all__ = ["TokenTree"]

_Letters: TypeAlias = tuple[int, ...]
_Array: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TokenTree:
    """Tokens as paths of letters, in one tree. Immutable.

    Nodes are numbered level by level; node 0 is the root.

    Attributes:
        class_of: int32, shape ``(tokens,)``: the class of each token; -1 for tokens in no mask.
        num_classes: classes, the stop tokens' at the end included.
        num_stop_classes: classes at the end that are stop tokens, one each.
        levels: int32, shape ``(depth + 2,)``: where the nodes of each level begin.
        parents: int32: the parent of each node; 0 for the root.
        letters: int32: the letter that leads to each node; 0 for the root.
        inner: bool: whether a node has children.
        ends: int32, shape ``(ways, num_classes)``: the nodes where a class ends, any of which lets
            it come; -1 for a stop token, -2 for none.
    """

    class_of: _Array
    num_classes: int
    num_stop_classes: int
    levels: _Array
    parents: _Array
    letters: _Array
    inner: npt.NDArray[np.bool_]
    ends: _Array

    @classmethod
    def of(
        cls, grammar: BinaryGrammar, vocabulary: Vocabulary, classes: TokenClasses | None = None
    ) -> TokenTree:
        """The tree of a vocabulary, over a grammar whose letters are bytes.

        Args:
            grammar: the grammar.
            vocabulary: the vocabulary.
            classes: token classes of the grammar and the vocabulary: a class is a path then.
                Without them tokens with equal letters are a class.

        Raises:
            ValueError: the letters are not bytes, or the classes are of another vocabulary.
        """
        if grammar.alphabet.name != "bytes":
            raise ValueError(
                f"the letters are {grammar.alphabet.name}: say what each token brings, with "
                "TokenTree.of_letters"
            )
        if classes is not None:
            if classes.vocabulary_fingerprint != vocabulary.fingerprint:
                raise ValueError("the classes were made for another vocabulary")
            count = len(classes) - classes.num_stop_classes
            ids = classes.representative_ids[:count].tolist()
            ways = [[_letters(grammar, vocabulary[index])] for index in ids]
            class_of = np.ascontiguousarray(classes.class_of)
            return cls._built(grammar, class_of, ways, classes.num_stop_classes)
        stops = vocabulary.stop_token_ids
        untold = {*stops, *vocabulary.special_token_ids}
        texts = (
            [] if index in untold or not data else [_letters(grammar, data)]
            for index, data in enumerate(vocabulary.token_bytes)
        )
        return cls._folded(grammar, list(texts), stops)

    @classmethod
    def of_letters(
        cls,
        grammar: BinaryGrammar,
        tokens: Sequence[Sequence[Sequence[int]]],
        stop_token_ids: Sequence[int] = (),
    ) -> TokenTree:
        """The tree of tokens of which it is known what they bring.

        Args:
            grammar: the grammar.
            tokens: for each token the sequences of letters that it may be, none of them empty.
                Tokens of equal sequences are one class.
            stop_token_ids: tokens that end the text, whatever sequences they have.

        Raises:
            ValueError: a sequence is empty, or has what is no letter.
        """
        for index, ways in enumerate(tokens):
            for way in ways:
                if not way or not all(-1 <= letter < grammar.num_letters for letter in way):
                    raise ValueError(
                        f"token {index}: a sequence is 1 letter or more, each from 0 to "
                        f"{grammar.num_letters - 1} (-1 is in no string), not {list(way)}"
                    )
        texts = [[tuple(way) for way in ways] for ways in tokens]
        for stop in stop_token_ids:
            texts[stop] = []
        return cls._folded(grammar, texts, sorted(stop_token_ids))

    @classmethod
    def _folded(
        cls, grammar: BinaryGrammar, texts: list[list[_Letters]], stops: Sequence[int]
    ) -> TokenTree:
        may_follow = _neighbours(grammar)
        # Bytes that no rule tells apart are one letter by now: equal sequences, equal tokens.
        known: dict[frozenset[_Letters], int] = {}
        class_of = np.full(len(texts), -1, dtype=np.int32)
        for index, ways in enumerate(texts):
            possible = frozenset(way for way in ways if _may_be(way, may_follow))
            if possible:
                class_of[index] = known.setdefault(possible, len(known))
        for number, stop in enumerate(stops):
            class_of[stop] = len(known) + number
        return cls._built(grammar, class_of, [sorted(ways) for ways in known], len(stops))

    @classmethod
    def _built(
        cls,
        grammar: BinaryGrammar,
        class_of: _Array,
        ways: list[list[_Letters]],
        num_stops: int,
    ) -> TokenTree:
        may_follow = _neighbours(grammar)
        levels, parents, letters = [0, 1], [0], [0]
        ends = np.full((max(map(len, ways), default=1), len(ways) + num_stops), -2, dtype=np.int32)
        ends[0, len(ways) :] = -1
        # Where each way has come to, as long as it is under way.
        under_way = [
            (index, number, way, 0)
            for index, every in enumerate(ways)
            for number, way in enumerate(every)
            if way and _may_be(way, may_follow)
        ]
        depth = 0
        while under_way:
            nodes: dict[tuple[int, int], int] = {}
            further = []
            for index, number, way, parent in under_way:
                key = (parent, way[depth])
                node = nodes.get(key)
                if node is None:
                    node = nodes[key] = len(parents)
                    parents.append(parent)
                    letters.append(way[depth])
                if depth + 1 == len(way):
                    ends[number, index] = node
                else:
                    further.append((index, number, way, node))
            levels.append(len(parents))
            under_way = further
            depth += 1
        inner = np.zeros(len(parents), dtype=bool)
        inner[parents[1:]] = True
        return cls(
            class_of=class_of,
            num_classes=len(ways) + num_stops,
            num_stop_classes=num_stops,
            levels=np.array(levels, dtype=np.int32),
            parents=np.array(parents, dtype=np.int32),
            letters=np.array(letters, dtype=np.int32),
            inner=inner,
            ends=ends,
        )

    @property
    def depth(self) -> int:
        """Letters of the longest path."""
        return len(self.levels) - 2

    @property
    def num_words(self) -> int:
        """int32 words of a row of class masks."""
        return -(-max(1, self.num_classes) // 32)

    def __len__(self) -> int:
        """The number of nodes, the root included."""
        return len(self.parents)

    def __repr__(self) -> str:
        return (
            f"<TokenTree of {len(self.class_of)} tokens in {self.num_classes} classes, "
            f"{len(self)} nodes, {self.depth} levels>"
        )


def _letters(grammar: BinaryGrammar, data: bytes) -> _Letters:
    return tuple(grammar.letter_of[np.frombuffer(data, dtype=np.uint8)].tolist())


def _neighbours(grammar: BinaryGrammar) -> list[int]:
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


def _may_be(way: _Letters, may_follow: list[int]) -> bool:
    return way[0] >= 0 and all(
        second >= 0 and may_follow[first] >> second & 1 for first, second in pairwise(way)
    )
