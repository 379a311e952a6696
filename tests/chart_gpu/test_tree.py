"""The token tree: classes of tokens by what they bring, and what is decided beforehand."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import tokfold
from oracles.binary_chart import BinaryChart
from oracles.model import to_ebnf
from strategies.binary import any_grammar
from tokfold.chart_gpu import BinaryGrammar, TokenTree
from tokfold.chart_gpu.sequences import neighbours


def path_of(tree: TokenTree, node: int) -> tuple[int, ...]:
    letters = []
    while node:
        letters.append(int(tree.letters[node]))
        node = int(tree.parents[node])
    return tuple(reversed(letters))


def shape_of(tree: TokenTree) -> None:
    assert tree.levels.tolist()[:2] == [0, 1]
    assert tree.levels[-1] == len(tree)
    for node in range(1, len(tree)):
        depth = len(path_of(tree, node))
        assert tree.levels[depth] <= node < tree.levels[depth + 1]
    paths = [path_of(tree, node) for node in range(len(tree))]
    assert len(set(paths)) == len(paths)
    assert tree.inner.tolist() == [node in tree.parents[1:] for node in range(len(tree))]


VOCABULARY = tokfold.Vocabulary(
    [b"a", b"b", b"ab", b"", b"ba", b"abc", b"x", b"ab", b"</s>", b"c", b"\xff", b"<sp>"],
    stop_token_ids=[8],
    special_token_ids=[11],
)


def test_tokens_of_equal_letters_are_a_class():
    binary = BinaryGrammar.of(tokfold.Grammar.from_ebnf('root ::= [ax] root | "b" "c"?'))
    tree = TokenTree.of(binary, VOCABULARY)
    shape_of(tree)
    # a and x are one letter; "ba" and "\xff" are in no text; "c" may come after "b" alone.
    assert tree.class_of.tolist() == [0, 1, 2, -1, -1, 3, 0, 2, 5, 4, -1, -1]
    assert (tree.num_classes, tree.num_stop_classes, tree.depth) == (6, 1, 3)
    letters = [binary.encode(text) for text in (b"a", b"b", b"ab", b"abc", b"c")]
    ends = [path_of(tree, node) for node in tree.ends[0, :5]]
    assert ends == [tuple(way) for way in letters]
    assert tree.ends[0, 5] == -1
    assert "6 classes, 6 nodes, 3 levels" in repr(tree)


def test_classes_of_the_engine_are_paths_of_their_representatives():
    grammar = tokfold.Grammar.from_ebnf('root ::= [ax] root | "b" "c"?')
    classes = tokfold.compile_classes(grammar, VOCABULARY)
    tree = TokenTree.of(BinaryGrammar.of(grammar), VOCABULARY, classes)
    shape_of(tree)
    assert tree.class_of.tolist() == classes.class_of.tolist()
    assert tree.num_classes == len(classes)
    other = tokfold.Vocabulary([b"a"])
    with pytest.raises(ValueError, match="classes were made for another vocabulary"):
        TokenTree.of(BinaryGrammar.of(grammar), other, classes)


def test_letters_side_by_side():
    """In some text exactly if the table says so."""
    for seed in range(60):
        random = Random(seed)
        grammar = tokfold.Grammar.from_ebnf(to_ebnf(any_grammar(random)))
        try:
            binary = BinaryGrammar.of(grammar)
        except tokfold.UnsupportedGrammarError:
            continue
        after = neighbours(binary)
        frontier = [(BinaryChart(binary), -1)]
        for _ in range(60):
            chart, last = frontier[random.randrange(len(frontier))]
            if chart.length < 6:
                for letter in chart.next_letters():
                    assert last < 0 or after[last] >> letter & 1
                    frontier.append((chart.step(letter), letter))


def test_tokens_that_say_what_they_bring():
    grammar = tokfold.Grammar.from_ebnf('root ::= "DT NN" | "DT JJ NN"')
    binary = BinaryGrammar.of(grammar, "words")
    dt, nn, jj = (binary.encode([word])[0] for word in ("DT", "NN", "JJ"))
    tokens = [[[dt]], [[nn], [jj]], [[jj], [nn]], [], [[dt, jj], [nn]], [[nn, dt]], [[dt]]]
    tree = TokenTree.of_letters(binary, tokens, stop_token_ids=[6])
    shape_of(tree)
    assert tree.class_of.tolist() == [0, 1, 1, -1, 2, -1, 3]
    ways = [{path_of(tree, n) for n in tree.ends[:, c] if n >= 0} for c in range(3)]
    assert ways == [{(dt,)}, {(nn,), (jj,)}, {(dt, jj), (nn,)}]
    with pytest.raises(ValueError, match="token 1: a sequence is 1 letter or more"):
        TokenTree.of_letters(binary, [[[dt]], [[]]])
    with pytest.raises(ValueError, match=r"token 0: .* not \[9\]"):
        TokenTree.of_letters(binary, [[[9]]])
    with pytest.raises(ValueError, match="say what each token brings"):
        TokenTree.of(binary, VOCABULARY)


def test_no_tokens_at_all():
    binary = BinaryGrammar.of(tokfold.Grammar.from_ebnf('root ::= "q"'))
    tree = TokenTree.of(binary, tokfold.Vocabulary([b"a", b"b"]))
    assert (tree.num_classes, tree.depth, len(tree), tree.num_words) == (0, 0, 1, 1)
    assert np.array_equal(tree.class_of, [-1, -1])
