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
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tokfold.chart_gpu.binary import BinaryGrammar
from tokfold.chart_gpu.sequences import Sequences, Trie, number_sets
from tokfold.classes import TokenClasses
from tokfold.vocabulary import Vocabulary

__all__ = ["TokenTree", "check_classes"]

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
            check_classes(classes, vocabulary)
            count = len(classes) - classes.num_stop_classes
            ids = classes.representative_ids[:count].tolist()
            ways = Sequences.of_bytes(grammar, [vocabulary[index] for index in ids])
            ways = ways.possible(grammar)
            class_of = np.ascontiguousarray(classes.class_of)
            trie = Trie.of(ways)
            return cls._put(class_of, trie, ways.owners, trie.ends, count, classes.num_stop_classes)
        stops = vocabulary.stop_token_ids
        texts = list(vocabulary.token_bytes)
        for index in (*stops, *vocabulary.special_token_ids):
            texts[index] = b""
        return cls.of_sequences(grammar, Sequences.of_bytes(grammar, texts), len(texts), stops)

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
        counts = [len(ways) for ways in tokens]
        owners = np.repeat(np.arange(len(tokens)), counts)
        every = Sequences.of((way for ways in tokens for way in ways), owners)
        of = np.repeat(np.arange(len(owners)), every.lengths)
        is_bad = every.lengths == 0
        is_bad[of[(every.letters < -1) | (every.letters >= grammar.num_letters)]] = True
        if is_bad.any():
            first = int(np.argmax(is_bad))
            way = every.letters[of == first].tolist()
            raise ValueError(
                f"token {owners[first]}: a sequence is 1 letter or more, each from 0 to "
                f"{grammar.num_letters - 1} (-1 is in no string), not {way}"
            )
        stops = sorted(stop_token_ids)
        texts = every.chosen(~np.isin(owners, stops))
        return cls.of_sequences(grammar, texts, len(tokens), stops)

    @classmethod
    def of_sequences(
        cls, grammar: BinaryGrammar, sequences: Sequences, count: int, stops: Sequence[int]
    ) -> TokenTree:
        """The tree of sequences that tokens own; tokens of equal sequences are one class.

        Args:
            grammar: the grammar.
            sequences: what each token may be; any number for each.
            count: how many tokens.
            stops: tokens that end the text; they own nothing.
        """
        ways = sequences.possible(grammar)
        trie = Trie.of(ways)
        # Bytes that no rule tells apart are one letter by now: equal sequences, equal tokens.
        pairs = np.unique(ways.owners * len(trie.parents) + trie.ends)
        owners, ends = np.divmod(pairs, len(trie.parents))
        class_of = number_sets(owners, ends, count)
        num_classes = int(class_of.max(initial=-1)) + 1
        # The first of each class stands for it.
        _, firsts = np.unique(class_of, return_index=True)
        keep = np.isin(owners, firsts)
        classes, ends = class_of[owners[keep]], ends[keep]
        order = np.argsort(classes, kind="stable")
        class_of[list(stops)] = num_classes + np.arange(len(stops))
        return cls._put(class_of, trie, classes[order], ends[order], num_classes, len(stops))

    @classmethod
    def _put(
        cls,
        class_of: npt.NDArray[Any],
        trie: Trie,
        classes: npt.NDArray[np.int64],
        nodes: npt.NDArray[np.int64],
        count: int,
        num_stops: int,
    ) -> TokenTree:
        """A tree of ``count`` classes, ascending with the nodes where they end, and of stops."""
        sizes = np.bincount(classes, minlength=count)
        rank = np.arange(len(classes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        ends = np.full((max(1, sizes.max(initial=1)), count + num_stops), -2, dtype=np.int32)
        ends[rank, classes] = nodes
        ends[0, count:] = -1
        inner = np.zeros(len(trie.parents), dtype=bool)
        inner[trie.parents[1:]] = True
        return cls(
            class_of=class_of.astype(np.int32),
            num_classes=count + num_stops,
            num_stop_classes=num_stops,
            levels=trie.levels.astype(np.int32),
            parents=trie.parents.astype(np.int32),
            letters=trie.letters.astype(np.int32),
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

    @property
    def class_of_token(self) -> _Array:
        """The same as :attr:`class_of`, for a :class:`tokfold.torch.Fold`."""
        return self.class_of

    @property
    def num_class_bits(self) -> int:
        """The same as :attr:`num_classes`."""
        return self.num_classes

    def __len__(self) -> int:
        """The number of nodes, the root included."""
        return len(self.parents)

    def __repr__(self) -> str:
        return (
            f"<TokenTree of {len(self.class_of)} tokens in {self.num_classes} classes, "
            f"{len(self)} nodes, {self.depth} levels>"
        )


def check_classes(classes: TokenClasses, vocabulary: Vocabulary) -> None:
    """Refuse classes of another vocabulary."""
    if classes.vocabulary_fingerprint != vocabulary.fingerprint:
        raise ValueError("the classes were made for another vocabulary")
