"""Masks where a loop goes on beside something else: a name beside the keyword that it began like, a
name beside the next name, free text beside what ends it.

The oracle is `accept_bytes` of a fork, token by token: it knows nothing of masks.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies.engine import compiled_with
from strategies.profiles import CASES, examples
from tokfold import Grammar, Matcher, Vocabulary

LETTERS = "abe"
PIECES = [*LETTERS, "1", " ", "/", "*", "\n", '"', "é", "😀"]


def tokens() -> list[bytes]:
    """All short texts of a few letters, words with ends, and characters that are cut."""
    words = ["".join(word) for size in range(1, 5) for word in product(LETTERS, repeat=size)]
    ends = [word + end for word in words[:40] for end in PIECES]
    pairs = [left + right for left in PIECES for right in PIECES]
    longer = [pair + end for pair in pairs for end in ("a", "1", "*/", '"', "é")]
    bits = ["é".encode()[:1], "é".encode()[1:], "😀".encode()[:2], "😀".encode()[2:], b"\xff"]
    texts = [text.encode() for text in (*PIECES, *words, *ends, *pairs, *longer)]
    return sorted({*texts, *bits})


TOKENS = tokens()
VOCABULARY = Vocabulary([*TOKENS, b"</s>"], stop_token_ids=[len(TOKENS)])

WORDS = st.sampled_from(['"ab"', '"abe" | "be"', '"a" | "aa" | "eb"', '"é" | "éa"', '"1"', '"a1"'])
NAMES = st.sampled_from(
    [
        "[a-z]+",
        "[a-z0-9]+",
        "[a-z] [a-z0-9]*",
        "[a-zé]+",
        "[^1 ]+",
        "([a-z] blank)+",
        '("a" | [b-z])+',
    ]
)
BLANKS = st.sampled_from(
    ['" "*', '(" " | "\\n")*', '(" " | "/" [^\\n]* "\\n")*', '(" " | "/*" [^*]* "*/")*', '""']
)
STATEMENTS = st.sampled_from(
    [
        "word blank name blank",
        "name blank (word blank name blank)?",
        "(word | name) blank",
        'name blank "1" blank | word blank statement',
        '"\\"" [^"]* "\\"" blank | name blank',
        "name blank name blank",
        'name blank statement "1" | word blank',
        "[^a] | name blank",
    ]
)


@st.composite
def grammars(draw: st.DrawFn) -> str:
    statement = " | ".join(draw(st.lists(STATEMENTS, min_size=1, max_size=3)))
    return (
        f"root ::= blank statement+\nstatement ::= {statement} | word blank\n"
        f"word ::= {draw(WORDS)}\nname ::= {draw(NAMES)}\nblank ::= {draw(BLANKS)}"
    )


def bits(matcher: Matcher) -> list[bool]:
    row = np.zeros((1, (len(VOCABULARY) + 31) // 32), dtype=np.int32)
    matcher.fill_bitmask(row)
    return [bool(row[0, token >> 5] >> (token & 31) & 1) for token in range(len(TOKENS))]


@examples(120)
@given(grammars(), st.lists(st.integers(0, 2**16), min_size=2, max_size=8))
def test_masks_are_what_a_fork_accepts(text, choose):
    compiled = compiled_with(Grammar.from_ebnf(text), VOCABULARY, classes="never", pool=None)
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
        CASES["loops beside words: masks"] += 1
        allowed = [at for at, is_allowed in enumerate(expected) if is_allowed]
        if not allowed:
            break
        assert matcher.accept_token(allowed[choice % len(allowed)])


def test_a_loop_beside_others_is_taken_as_a_whole():
    """A name without an end, beside words that it begins like and names behind it."""
    letters = "abcdef"
    words = [
        "".join(word).encode() for size in range(1, 6) for word in product(letters, repeat=size)
    ]
    vocabulary = Vocabulary([*words, b"</s>"], stop_token_ids=[len(words)])
    keywords = " | ".join(f'"{letter}a{letter}"' for letter in letters)
    text = (
        'root ::= item+ "!"\nitem ::= "(" item* ")" | word blank item | name blank\n'
        f'name ::= [a-z]+ | "<" item ">"\nword ::= {keywords}\nblank ::= " "*'
    )
    compiled = compiled_with(
        Grammar.from_ebnf(text), vocabulary, classes="never", pool=None, engine="stack"
    )
    matcher = Matcher(compiled)
    assert matcher.accept_bytes(b"aab")
    row = np.zeros((1, (len(words) + 32) // 32), dtype=np.int32)
    matcher.fill_bitmask(row)
    allowed = sum(int(word).bit_count() for word in row.view(np.uint32)[0])
    assert allowed == len(words), "all but the end"
    nodes = compiled.counters()["trie_nodes"]
    assert nodes < len(words) / 4, f"{nodes} nodes of {len(words)}"
