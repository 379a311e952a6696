"""Masks within repetitions: of those that count one walk is made for all counts, and of those that
are written out a walk takes what every letter leads along as a whole.

The oracle is `accept_bytes` of a fork, token by token: it steps through the states that count and
knows nothing of masks.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.engine import compiled_with
from strategies.profiles import CASES, examples
from tokfold import Grammar, Matcher, Vocabulary

PIECES = ["a", "b", '"', "\\", ",", "(", ")", "é", "€", "😀", " "]


def tokens() -> list[bytes]:
    """Short ones of all kinds, runs, and characters that are cut."""
    pairs = [left + right for left in PIECES for right in PIECES]
    texts = PIECES + pairs + [pair + end for pair in pairs for end in ("a", '"', "é", '",')]
    runs = [piece * count for piece in ("a", "ab", "é", "\\\\", "aé") for count in range(2, 30)]
    ends = ['"' + ',"'[: count % 3] + "a" * count for count in range(40)]
    runs += ["a7f0c3be91d2"[start:end] for start in range(6) for end in range(start + 2, 13)]
    cut = ["é".encode()[:1], "é".encode()[1:], "€".encode()[:2], "😀".encode()[1:], b"\xff"]
    mixed = ["aé".encode()[:2], b"a" * 9 + "€".encode()[:1], "é".encode()[1:] + b'a"', b"a\xff"]
    all_texts = [text.encode() for text in (*texts, *runs, *ends, 'aa"', 'aaa",', 'éa"')]
    return sorted({*all_texts, *cut, *mixed, *(bytes([byte]) for byte in range(0x80, 0xF8, 7))})


TOKENS = tokens()
VOCABULARY = Vocabulary([*TOKENS, b"</s>"], stop_token_ids=[len(TOKENS)])

BODIES = st.sampled_from(
    [
        "[ab]",
        '[^"\\\\]',
        '([^"\\\\] | "\\\\" ["\\\\n])',
        '([^"\\\\\\x00-\\x1f] | "\\\\" [nrt"\\\\] | "\\\\" "(" [a-f]{2})',
        "[aé€]",
        "[^a]",
        '("a" | "ab")',
        '("a" | "aa")',
        '("a" | "é" "a"?)',
        '([ab] ","?)',
        '([ab]{1,20} ",")',
        '([ab]{18,40} | "(")',
        "nested",
        '("(" [ab]* ")" | "a")',
        "[a-z€-🙀]",
        '("\\"" | "a")',
    ]
)
TAILS = st.sampled_from(['"\\""', '"\\"" ","', '"a"', '","? "\\""', '"\\"" root?', '[ab"]', ""])
FRAMES = st.sampled_from(
    [
        '"\\"" {inside}',
        "{inside}",
        '("\\"" {inside})+',
        '"\\"" text ("," "\\"" text)*\ntext ::= {inside}',
        '"\\"" text | "(" text ")"\ntext ::= {inside}',
        '("\\"" | "b") text "," | "\\"" text "a"\ntext ::= {inside}',
    ]
)


@st.composite
def grammars(draw: st.DrawFn) -> str:
    least = draw(st.integers(0, 40))
    most = draw(st.one_of(st.none(), st.integers(max(least, 17), least + 45)))
    least = least if most is not None else max(least, 17)
    bounds = f"{{{least},{'' if most is None else most}}}"
    inside = f"{draw(BODIES)}{bounds} {draw(TAILS)}"
    frame = draw(FRAMES).replace("{inside}", inside)
    return f'root ::= {frame}\nnested ::= "a" | "(" nested nested ")"'


def bits(matcher: Matcher) -> list[bool]:
    row = np.zeros((1, (len(VOCABULARY) + 31) // 32), dtype=np.int32)
    matcher.fill_bitmask(row)
    return [bool(row[0, token >> 5] >> (token & 31) & 1) for token in range(len(TOKENS))]


def check(text: str, choose: list[int]) -> None:
    grammar = Grammar.from_ebnf(text)
    compiled = compiled_with(grammar, VOCABULARY, classes="never", pool=None)
    matcher = Matcher(compiled)
    for choice in choose:
        found = bits(matcher)
        fork = matcher.fork()
        expected = []
        for token in TOKENS:
            expected.append(fork.accept_bytes(token))
            if expected[-1]:
                fork.rollback()
        wrong = [TOKENS[at] for at in range(len(TOKENS)) if found[at] != expected[at]]
        assert not wrong, (text, matcher.text, wrong[:5])
        CASES["counted passes: masks"] += 1
        allowed = [at for at, is_allowed in enumerate(expected) if is_allowed]
        if not allowed:
            break
        # Short ones more often: the bounds are to be passed slowly.
        allowed.sort(key=lambda at: len(TOKENS[at]))
        assert matcher.accept_token(allowed[choice * choice * len(allowed) // 10_000])


@examples(150)
@given(grammars(), st.lists(st.integers(0, 99), min_size=8, max_size=24))
def test_random_repetitions(text, choose):
    check(text, choose)


LETTERS = st.sampled_from(
    ["[a-f]", "[0-9a-f]", '[^"\\\\]', "[a-zA-Z0-9]", "[^a]", '("a" | [0-9b-f])', '("\\\\"? [a-f])']
)
"""Whole groups of bytes, mostly: see the trie."""


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Repetitions that are written out, one behind the other."""
    links = []
    for _ in range(draw(st.integers(1, 4))):
        least = draw(st.integers(0, 14))
        most = draw(st.integers(max(least, 1), 15))
        separator = draw(st.sampled_from(["", '","', '"-"', '"(" ', '["a]']))
        links.append(f"{draw(LETTERS)}{{{least},{most}}} {separator}")
    loop = draw(st.sampled_from(["", "+", "{1,3}"]))
    return f'root ::= "\\"" ({" ".join(links)} "\\""){loop}'


@examples(150)
@given(chains(), st.lists(st.integers(0, 99), min_size=8, max_size=24))
def test_random_chains(text, choose):
    check(text, choose)


@pytest.mark.parametrize(
    "inside",
    [
        '[^"\\\\]{0,20} "\\""',
        '[^"\\\\]{3,40} "\\""',
        '([^"\\\\] | "\\\\" ["\\\\n]){19,23} "\\""',
        '("a" | "ab"){0,20} "\\""',
        '[0-9a-f]{8} "-" [0-9a-f]{4} "-" [0-9a-f]{12} "\\""',
    ],
)
def test_every_count(inside):
    check(f'root ::= "\\"" {inside}', [0] * 45)


def test_one_walk_for_all_counts():
    """Trie nodes are entered for the first counts only."""
    grammar = Grammar.from_ebnf('root ::= "\\"" [^"\\\\]{2,40} "\\""')
    compiled = compiled_with(grammar, VOCABULARY, classes="never", pool=None)
    matcher = Matcher(compiled)
    entered = []
    for letter in ['"', *("aé" * 20)]:
        assert matcher.accept_string(letter)
        before = compiled.counters()["trie_nodes"]
        bits(matcher)
        entered.append(compiled.counters()["trie_nodes"] - before)
    assert entered[0] > 100
    assert not any(entered[3:])


def test_characters_of_several_bytes():
    """Cut anywhere, and after any of them."""
    check('root ::= "\\"" [ab\\x80-\\xff]{0,20} "\\""', [0, 50, 90, 99, 99, 60, 20, 0])
