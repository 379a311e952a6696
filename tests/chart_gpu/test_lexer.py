"""Texts cut into terminals: token masks over terminals are those over bytes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import tokfold
from oracles.binary_chart import BinaryChart
from strategies.profiles import CASES, LONG, LONG_FACTOR
from tokfold.chart_gpu import BinaryGrammar, TerminalLexer, TokenTree

FACTOR = LONG_FACTOR if LONG else 1
TERMINALS = ["DT ", "NN ", "NNS ", "VB ", "V-", "x", "é", "[ö-ü]"]


def random_text(random: Random) -> str:
    """An ambiguous grammar whose terminals begin with no other."""

    def part() -> str:
        if random.random() < 0.4:
            return random.choice(["a", "b", "c"])
        word = random.choice(TERMINALS)
        return word if word[0] == "[" else f'"{word}"'

    def alternative() -> str:
        return " ".join(part() for _ in range(random.randint(1, 3)))

    rules = "".join(
        f"{name} ::= {' | '.join(alternative() for _ in range(3))} | {literal}\n"
        for name, literal in (("a", '"x"'), ("b", '"NN "'), ("c", '"VB "'))
    )
    return f"root ::= a b? | c*\n{rules}"


def vocabulary_of(random: Random) -> tokfold.Vocabulary:
    joined = "DT NN NNS VB V-xéöüVB NNS xx".encode()
    tokens = {bytes([byte]) for byte in joined}
    while len(tokens) < 60:
        begin = random.randrange(len(joined))
        tokens.add(joined[begin : begin + random.randint(1, 9)])
    return tokfold.Vocabulary([*sorted(tokens), b"</s>", b""], stop_token_ids=[len(tokens)])


VOCABULARY = tokfold.Vocabulary([b"x"])


def masked(tree: TokenTree, chart: BinaryChart) -> list[int]:
    """The tokens that a tree lets come, by the slow chart."""
    charts: dict[int, BinaryChart | None] = {0: chart}
    for node in range(1, len(tree)):
        before, letter = charts[int(tree.parents[node])], int(tree.letters[node])
        may = before is not None and letter in before.next_letters()
        charts[node] = before.step(letter) if may else None

    def may_come(number: int) -> bool:
        ends = tree.ends[:, number].tolist()
        return any(charts[end] is not None for end in ends if end >= 0) or (
            -1 in ends and chart.accepting
        )

    classes = [may_come(number) for number in range(tree.num_classes)]
    return [token for token, number in enumerate(tree.class_of) if number >= 0 and classes[number]]


@pytest.mark.parametrize("with_classes", [False, True])
def test_masks_are_those_over_bytes(with_classes):
    done = 0
    for seed in range(with_classes, 40 * FACTOR, 2):
        random = Random(seed)
        grammar, vocabulary = tokfold.Grammar.from_ebnf(random_text(random)), vocabulary_of(random)
        matcher = tokfold.Matcher(tokfold.compile(grammar, vocabulary, classes="never"))
        classes = tokfold.compile_classes(grammar, vocabulary) if with_classes else None
        binary = BinaryGrammar.of(grammar, "terminals")
        lexer = TerminalLexer(binary)
        chart, state = BinaryChart(binary), 0
        for _ in range(8):
            bitmask = tokfold.allocate_bitmask(1, len(vocabulary))
            matcher.fill_bitmask(bitmask)
            flags = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[: len(vocabulary)]
            expected = np.flatnonzero(flags).tolist()
            assert masked(lexer.tree(state, vocabulary, classes), chart) == expected
            done += 1
            texts = [token for token in expected if token not in vocabulary.stop_token_ids]
            if not texts:
                break
            token = random.choice(texts)
            assert matcher.accept_token(token)
            letters, state = lexer.read(state, vocabulary[token])
            for letter in letters:
                chart = chart.step(letter)
    CASES["chart-gpu: token masks over terminals"] += done
    assert done > 80


def lexer_of(text: str) -> TerminalLexer:
    return TerminalLexer(BinaryGrammar.of(tokfold.Grammar.from_ebnf(text), "terminals"))


def test_reading():
    lexer = lexer_of('root ::= ("DT " | "NN ")+ [é-ü]')
    dt, nn, accent = range(3)
    assert lexer.grammar.alphabet.words == ["DT ", "NN ", ((0xE9, 0xFC),)]
    assert lexer.read(0, b"DT NN ") == ([dt, nn], 0)
    letters, state = lexer.read(0, b"NN D")
    assert letters == [nn]
    assert lexer.completing(state) == [dt]
    assert lexer.read(state, "T ü".encode()) == ([dt, accent], 0)
    assert lexer.read(state, b"N") is None
    assert lexer.completing(0) == [dt, nn, accent]
    assert "states for" in repr(lexer)


def test_all_tokens_at_once():
    """What :meth:`TerminalLexer.read` says of one, the trees are made of."""
    random = Random(5)
    lexer, texts = lexer_of(random_text(random)), list(vocabulary_of(random).token_bytes)
    for state in range(lexer.num_states):
        expected = []
        for owner, data in enumerate(texts):
            found = lexer.read(state, data) if data else None
            if found is not None:
                letters, after = found
                ends = [[]] if after == 0 else [[end] for end in lexer.completing(after)]
                expected += [(owner, letters + end) for end in ends]
        ways = lexer._ways(state, texts)
        ends = np.cumsum(ways.lengths).tolist()
        cut = [
            ways.letters[end - n : end].tolist() for n, end in zip(ways.lengths, ends, strict=True)
        ]
        assert list(zip(ways.owners.tolist(), cut, strict=True)) == expected
    empty = lexer_of('root ::= ""')
    assert empty.tree(0, vocabulary_of(random)).class_of.max() == 0  # the stop token


def test_classes_of_another_vocabulary():
    lexer = lexer_of('root ::= "x"')
    classes = tokfold.compile_classes(tokfold.Grammar.from_ebnf('root ::= "x"'), VOCABULARY)
    with pytest.raises(ValueError, match="made for another vocabulary"):
        lexer.tree(0, tokfold.Vocabulary([b"x", b"y"]), classes)


@pytest.mark.parametrize(
    ("text", "which"),
    [
        ('root ::= "NN" | "NNS"', "'NNS'"),
        ('root ::= "NNS" | "NN"', "'NN'"),
        ('root ::= [a-c] "a"', "'a'"),
        ('root ::= "é" | [ä-ê]', "a class with 'ä'"),
    ],
)
def test_terminals_that_begin_alike(text, which):
    with pytest.raises(tokfold.UnsupportedGrammarError, match=f"{which} begins like") as caught:
        lexer_of(text)
    assert caught.value.construct == "terminals"


def test_what_is_no_lexer():
    with pytest.raises(tokfold.UnsupportedGrammarError, match="too many strings"):
        lexer_of("root ::= [\\u4000-\\U0010ffff]")
    words = BinaryGrammar.of(tokfold.Grammar.from_ebnf('root ::= "a b"'), "words")
    with pytest.raises(ValueError, match="words have lost the blanks"):
        TerminalLexer(words)
    # Terminals out of reach, or without a string to be part of, do not matter.
    assert lexer_of('root ::= "NN" | nothing\nnothing ::= "NNS" nothing').num_states == 3
