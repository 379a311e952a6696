"""Vocabularies that have much to do with a grammar: tokens that fit, nearly fit, or straddle.

What goes wrong in real vocabularies goes in on purpose: shared prefixes, pieces of a code point,
duplicates, long runs, empty tokens, bytes that are no UTF-8.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from oracles.earley import Oracle
from oracles.model import CharClass, Grammar, Literal, encode, walk
from oracles.sentences import SentenceSampler, random_prefix

FOREIGN = [b"a", b"z", b" ", b"\n", b"\xff", b"\x80", b"\xc3", b"\xe6\x97", b"\xc0\x80"]
FOREIGN += [b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\0", b"\xf0\x9f\x98", b"</s>"]

RUNS = [2, 3, 4, 8, 16]
LONG_RUNS = [64, 96]


def alphabet(grammar: Grammar, random: Random) -> list[bytes]:
    """Short texts of the grammar: literals, members of classes, and what is just beside them."""
    out: dict[bytes, None] = {}
    for body in grammar.rules.values():
        for expr in walk(body):
            match expr:
                case Literal(data):
                    out[data] = None
                case CharClass():
                    for low, high in [*expr.code_points()[:3], *expr.ranges[:3]]:
                        near = {low, high, random.randint(low, high), max(0, low - 1)}
                        out |= dict.fromkeys(encode(c) for c in sorted(near))
    return [text for text in out if text] or [b"a"]


def build_vocabulary(
    random: Random, grammar: Grammar, *, size: int, long_runs: bool = False
) -> list[bytes]:
    """``size`` tokens for the grammar."""
    oracle = Oracle(grammar)
    letters = alphabet(grammar, random)
    sampler = SentenceSampler(oracle.cfg)
    texts = [t for t in (sampler.sample(random, 10) for _ in range(4)) if t]
    texts += [t for t in (random_prefix(oracle.unpruned.initial, random, 8) for _ in range(2)) if t]
    texts = texts or letters

    def letter() -> bytes:
        return random.choice(letters)

    def fragment() -> bytes:
        text = random.choice(texts)
        begin = random.randrange(len(text))
        return text[begin : begin + random.randint(1, 6)]

    def part_of_letter() -> bytes:
        text = letter()
        cut = random.randrange(len(text))
        return text[cut:] if random.random() < 0.5 else text[: cut + 1]

    tokens: list[bytes] = []

    def earlier() -> bytes:
        return random.choice(tokens) if tokens else letter()

    makers = [
        letter,
        fragment,
        fragment,
        part_of_letter,
        lambda: letter() + letter(),
        lambda: earlier() + letter(),
        lambda: earlier()[:-1] or letter(),
        earlier,
        lambda: random.choice(FOREIGN),
        lambda: letter() * random.choice(RUNS),
        lambda: fragment() + random.choice(FOREIGN),
        lambda: b"",
    ]
    while len(tokens) < size:
        tokens.append(random.choice(makers)()[:120])
    if long_runs:
        tokens[random.randrange(size)] = letter()[:2] * random.choice(LONG_RUNS)
    return tokens


@st.composite
def vocabularies(
    draw, grammar: Grammar, min_size: int = 4, max_size: int = 24, long_runs: bool = False
) -> list[bytes]:
    """Hypothesis strategy over :func:`build_vocabulary`."""
    size = draw(st.integers(min_size, max_size))
    random = draw(st.randoms(use_true_random=False, note_method_calls=False))
    return build_vocabulary(random, grammar, size=size, long_runs=long_runs)


@st.composite
def grammars_with_vocabulary(draw, grammars, **options) -> tuple[Grammar, list[bytes]]:
    """A grammar of the given strategy and a vocabulary for it."""
    grammar = draw(grammars)
    return grammar, draw(vocabularies(grammar, **options))
