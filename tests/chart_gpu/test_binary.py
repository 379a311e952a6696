"""The binary form and the oracle over it, against an Earley recognizer that shares no code."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import tokfold
from oracles.binary_chart import BinaryChart
from oracles.earley import Oracle, State
from oracles.model import Grammar, to_ebnf
from strategies.binary import any_grammar, tangled_grammar
from strategies.engine import compiled_with
from strategies.profiles import CASES, LONG, LONG_FACTOR
from tokfold.chart_gpu import BinaryGrammar
from tokfold.chart_gpu.binary import bits_of

CASES_OF_A_RUN = 1_000 * LONG_FACTOR if LONG else 1_000
"""40,000 in the long profile, unless it is told otherwise."""


def ours(grammar: Grammar) -> tokfold.Grammar:
    return tokfold.Grammar.from_ebnf(to_ebnf(grammar), root=grammar.root)


def same_answers(binary: BinaryGrammar, chart: BinaryChart, state: State) -> list[int]:
    """Compares what may come next; returns it in bytes."""
    allowed = set(chart.next_letters())
    bytes_next = [byte for byte in range(256) if int(binary.letter_of[byte]) in allowed]
    assert bytes_next == state.next_bytes()
    assert chart.accepting == state.accepting
    return bytes_next


def shape_of(binary: BinaryGrammar) -> None:
    """What the documentation of the form promises."""
    rules, count = binary.rules, binary.num_symbols
    assert set(rules[:, 2].tolist()) == set(range(binary.num_rights))
    assert set(rules[:, 1].tolist()) == set(binary.lefts.tolist())
    assert len({tuple(rule) for rule in rules.tolist()}) == len(rules)
    assert rules.tolist() == sorted(rules.tolist(), key=lambda rule: rule[::-1])
    bodies = [set() for _ in range(count)]
    for symbol, left, right in rules.tolist():
        bodies[symbol].add((left, right))
    for letter, symbol in binary.leaves.tolist():
        bodies[symbol].add(letter)
    assert len({frozenset(body) for body in bodies}) == count, "two symbols are one"
    if not count:
        assert binary.start == -1
        return
    reached, work = {binary.start}, [binary.start]
    while work:
        parts = {p for body in bodies[work.pop()] if isinstance(body, tuple) for p in body}
        work.extend(parts - reached)
        reached |= parts
    assert reached == set(range(count))
    good: set[int] = set()
    while True:
        more = {
            symbol
            for symbol, body in enumerate(bodies)
            if any(not isinstance(b, tuple) or good.issuperset(b) for b in body)
        }
        if more == good:
            break
        good = more
    assert good == set(range(count)), "a symbol has no string"


def walk(grammar: Grammar, random: Random, length: int) -> int:
    """Random texts of one grammar, every question at each letter; how many texts."""
    oracle = Oracle(grammar)
    if not oracle.productive:
        with pytest.raises(tokfold.UnsupportedGrammarError, match="no string at all"):
            BinaryGrammar.of(ours(grammar))
        return 0
    binary = BinaryGrammar.of(ours(grammar))
    shape_of(binary)
    assert binary.accepts_empty == oracle.accepts(b"")
    for _ in range(2):
        chart, state = BinaryChart(binary), oracle.initial(True)
        for _ in range(length):
            allowed = same_answers(binary, chart, state)
            CASES["chart-gpu: the binary form's oracle against Earley"] += 1
            if not allowed:
                break
            for byte in random.sample(range(256), 2):
                if byte not in allowed and binary.letter_of[byte] >= 0:
                    refused = chart.step(int(binary.letter_of[byte]))
                    assert refused.next_letters() == []
                    assert not refused.accepting
            byte = random.choice(allowed)
            chart, state = chart.step(int(binary.letter_of[byte])), state.step(byte)
        same_answers(binary, chart, state)
    return 1


@pytest.mark.parametrize("part", range(4))
def test_random_grammars_against_earley(part):
    done = 0
    for seed in range(part, CASES_OF_A_RUN, 4):
        random = Random(seed)
        done += walk(any_grammar(random), random, 7)
    CASES["chart-gpu: random grammars"] += done
    assert done > CASES_OF_A_RUN // 8


@pytest.mark.parametrize(
    ("text", "symbols", "rules", "lefts"),
    [
        ('root ::= "a"', 1, 0, 0),
        ('root ::= root root | "a"', 1, 1, 1),
        # The end "b" "c" is one symbol; so are x and y.
        ('root ::= "a" "b" "c" | "d" "b" "c" | x | y\nx ::= "e"\ny ::= "e"', 6, 3, 3),
        # Letters that the rules do not tell apart are one.
        ('root ::= [a-z]+ "." | [a-y] | [z]', 5, 3, 2),
        ('root ::= x x | "a"\nx ::= "b" | ""', 2, 1, 1),
        ('root ::= root | x\nx ::= root | "a" | nothing "b"\nnothing ::= "c" nothing', 1, 0, 0),
        ('root ::= ""', 0, 0, 0),
    ],
)
def test_the_form_of_small_grammars(text, symbols, rules, lefts):
    binary = BinaryGrammar.of(tokfold.Grammar.from_ebnf(text))
    found = (binary.num_symbols, len(binary.rules), len(binary.lefts))
    assert found == (symbols, rules, lefts)


def test_left_corners_and_first_letters():
    binary = BinaryGrammar.of(
        tokfold.Grammar.from_ebnf('root ::= x "c"\nx ::= x "a" | "b" y\ny ::= root | "a"')
    )
    assert binary.letter_of[ord("b")] in bits_of(binary.firsts[binary.start])
    assert binary.letter_of[ord("a")] not in bits_of(binary.firsts[binary.start])
    by_rules = np.zeros((binary.num_symbols, binary.num_symbols), dtype=bool)
    np.fill_diagonal(by_rules, True)
    by_rules[binary.rules[:, 0], binary.rules[:, 1]] = True
    for _ in range(binary.num_symbols):
        by_rules |= by_rules @ by_rules
    for symbol, corner in enumerate(binary.corners):
        assert bits_of(corner) == np.flatnonzero(by_rules[symbol]).tolist()


def test_characters_past_ascii():
    grammar = tokfold.Grammar.from_ebnf('root ::= [é-😀\\ud7f0-\\ue010] | "x" [^a]')
    binary = BinaryGrammar.of(grammar)
    vocabulary = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])
    compiled = compiled_with(
        grammar, vocabulary, classes="never", engine="stack", check_tokens=False
    )

    def compare(chart: BinaryChart, text: bytes) -> None:
        matcher = tokfold.Matcher(compiled)
        assert matcher.accept_bytes(text)
        allowed = set(chart.next_letters())
        found = bytes(b for b in range(256) if int(binary.letter_of[b]) in allowed)
        assert found == matcher.expected_bytes
        assert chart.accepting == matcher.is_accepting
        by_letter = {int(binary.letter_of[byte]): byte for byte in found}
        for letter, byte in by_letter.items():
            compare(chart.step(letter), text + bytes([byte]))

    compare(BinaryChart(binary), b"")


@pytest.mark.parametrize("alphabet", ["terminals", "words"])
def test_letters_that_are_terminals(alphabet):
    grammar = tokfold.Grammar.from_ebnf('root ::= np " VB" | np " VB " np\nnp ::= "DT NN" | [a-z]')
    binary = BinaryGrammar.of(grammar, alphabet)
    if alphabet == "words":
        assert binary.alphabet.words == ["VB", "DT", "NN", ((97, 122),)]
        text = ["DT", "NN", "VB", "DT", "NN"]
    else:
        assert binary.alphabet.words == [" VB", " VB ", "DT NN", ((97, 122),)]
        text = ["DT NN", " VB ", "DT NN"]
    chart = BinaryChart(binary)
    for letter in binary.encode(text):
        assert letter in chart.next_letters()
        chart = chart.step(letter)
    assert chart.accepting
    assert chart.next_letters() == []
    with pytest.raises(tokfold.AlphabetError, match="letter 1 of the text, 'XX'") as caught:
        binary.encode([text[0], "XX"])
    assert (caught.value.letter, caught.value.place) == ("XX", 1)
    with pytest.raises(TypeError, match="pass a list of str, not bytes"):
        binary.encode(b"DT NN")


def test_bytes_in_no_string():
    binary = BinaryGrammar.of(tokfold.Grammar.from_ebnf('root ::= "ab"'))
    assert binary.encode(b"xa")[0] == -1
    with pytest.raises(TypeError, match="pass bytes, not list"):
        binary.encode(["a"])


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ('root ::= "a" x\nx ::= TagDispatch(("<a>", y))\ny ::= "b"', "TagDispatch"),
        ('root ::= "a" x\nx ::= "b" (= "c")', "lookahead"),
        ('root ::= "a" Token(3)', "Token"),
    ],
)
def test_what_has_no_productions(text, construct):
    with pytest.raises(tokfold.UnsupportedGrammarError, match="cannot take") as caught:
        BinaryGrammar.of(tokfold.Grammar.from_ebnf(text))
    assert caught.value.construct == construct
    assert caught.value.line >= 1


def test_what_the_start_does_not_reach_is_not_looked_at():
    grammar = tokfold.Grammar.from_ebnf('root ::= "a"\nx ::= Token(3)')
    assert BinaryGrammar.of(grammar).num_symbols == 1


def test_bounds():
    long = tokfold.Grammar.from_ebnf('root ::= "' + "ab" * 200 + '"')
    with pytest.raises(tokfold.LimitExceededError, match="with 16 bits") as caught:
        BinaryGrammar.of(long, limits=tokfold.Limits(max_binary_symbols=300))
    assert (caught.value.limit, caught.value.value) == ("max_binary_symbols", 300)
    wide = tokfold.Grammar.from_ebnf('root ::= [ab]{40000} "c"')
    with pytest.raises(tokfold.LimitExceededError, match="max_binary_symbols = 32767"):
        BinaryGrammar.of(wide, limits=tokfold.Limits(max_binary_symbols=1 << 20))
    repeated = tokfold.Grammar.from_ebnf('root ::= "ab"{2,100000}')
    with pytest.raises(tokfold.LimitExceededError, match="repetitions written out") as caught:
        BinaryGrammar.of(repeated, limits=tokfold.Limits(max_binary_rules=5_000))
    assert caught.value.limit == "max_binary_rules"
    units = "".join(f'r{i} ::= r{i + 1} | r{i + 1} "{i % 10}"\n' for i in range(60))
    chain = tokfold.Grammar.from_ebnf(f'root ::= r0\n{units}r60 ::= "x"')
    with pytest.raises(tokfold.LimitExceededError, match="max_binary_rules = 900"):
        BinaryGrammar.of(chain, limits=tokfold.Limits(max_binary_rules=900))


def test_misuse():
    with pytest.raises(TypeError, match=r"must be a tokfold\.Grammar, not str"):
        BinaryGrammar.of("root ::= 1")
    with pytest.raises(ValueError, match='alphabet must be one of "bytes", "terminals", "words"'):
        BinaryGrammar.of(tokfold.Grammar.from_ebnf('root ::= "a"'), "letters")


def test_nesting_is_not_recursed_on():
    deep = "(" * 900 + '"a"' + ")*" * 900
    assert BinaryGrammar.of(tokfold.Grammar.from_ebnf(f"root ::= {deep}")).accepts_empty
    random = Random(1)
    assert all(tangled_grammar(random).rules for _ in range(5))
