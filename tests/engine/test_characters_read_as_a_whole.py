"""Subtrees of the vocabulary's trie that are read as a whole, by groups of characters.

Past ASCII a character falls into the group of its first byte. A pattern that leaves out a few
characters, such as ``.`` and ``\\S``, reads all groups but theirs. The oracle is ``accept_token``.
"""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
import tokfold
from strategies.engine import allowed_tokens, compiled_with, mask_of
from strategies.profiles import CASES

# A character of each length and group, blanks and ends of lines among them.
CHARACTERS = (
    'aB0_ "\u0085\u00a0\u00e9\u07ff\u0800\u1680\u17ff\u2003\u2014\u2028\u2029\u3000\u3042\u4e00'
    "\ud7ff\ue000\ufeff\uff01\U00010000\U0001f600\U000fffff\U00100000"
)
PATTERNS = [
    "^.*$",
    "^\\S+$",
    "^(?:\\S+\\s+){0,3}\\S+$",
    "^[^\u2014]*$",
    "^[^\u00e9\ud7ff]*$",
    "^[\u0800-\uffff]*$",
    "^[^a]{0,40}b?$",
    "^\\w+$",
    "^(?!.*\u3042).*$",
    "^a[^\U00010000-\U0001ffff]*$",
]


def vocabulary_of(random: Random) -> tokfold.Vocabulary:
    texts = [first + second for first in ["", *CHARACTERS] for second in CHARACTERS]
    texts += ["".join(random.choices(CHARACTERS, k=random.randint(3, 6))) for _ in range(900)]
    tokens = {text.encode() for text in texts}
    # Beginnings and ends of characters, and bytes of none.
    for _ in range(300):
        text = "".join(random.choices(CHARACTERS, k=random.randint(1, 3))).encode()
        start = random.randrange(len(text))
        tokens.add(text[start : start + random.randint(1, len(text))])
    tokens |= {b"\xc1", b"\xc3\xc3", b"\xe2\x80", b"\x80", b"a\xf5", b"\xff"}
    ordered = sorted(tokens)
    return tokfold.Vocabulary([*ordered, b"</s>"], stop_token_ids=[len(ordered)])


def check(compiled: tokfold.CompiledGrammar, random: Random) -> None:
    size, stops = len(compiled.vocabulary), set(compiled.vocabulary.stop_token_ids)
    for _ in range(3):
        matcher = tokfold.Matcher(compiled)
        for _ in range(6):
            allowed = set(allowed_tokens(mask_of(matcher, size)[0])) - stops
            texts = set(range(size)) - stops
            taken = {token for token in texts if matcher.fork().accept_token(token)}
            assert allowed == taken, matcher.text
            CASES["characters as a whole: masks"] += 1
            if not allowed:
                break
            matcher.accept_token(random.choice(sorted(allowed)))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("classes", ["never", "now"])
def test_masks(pattern: str, classes: str):
    random = Random(pattern)
    vocabulary = vocabulary_of(random)
    grammars = [
        tokfold.Grammar.from_regex(pattern),
        tokfold.Grammar.from_json_schema({"type": "string", "pattern": pattern, "maxLength": 30}),
    ]
    for grammar in grammars:
        compiled = compiled_with(grammar, vocabulary, classes=classes, pool=None)
        check(compiled, random)


@pytest.mark.parametrize("excluded", ["\u2028", "\u00a0", "x\u3042", "\U0001f600"])
@pytest.mark.parametrize("classes", ["never", "now"])
def test_free_text_of_bytes(excluded: str, classes: str):
    """Free text takes bytes that are no characters, and a first byte may come twice."""
    random = Random(excluded)
    data = excluded.encode()
    lead = next(byte for byte in data if byte >= 0x80)
    place = data.index(lead)
    twice = data[:place] + bytes([lead]) + data[place:]
    pairs = [bytes(pair) for pair in product(b"abcdefghij", b"klmnopqrst")]
    tokens = {bytes([byte]) for byte in range(256)}
    tokens |= {pair + twice for pair in pairs[:60]}
    tokens |= {pair + part for pair in pairs[60:] for part in (data, twice, data[:-1], data[1:])}
    ordered = sorted(tokens)
    vocabulary = tokfold.Vocabulary([*ordered, b"</s>"], stop_token_ids=[len(ordered)])
    for format in (
        {"type": "any_text", "excludes": [excluded]},
        {
            "type": "triggered_tags",
            "triggers": [excluded],
            "tags": [{"begin": excluded, "content": {"type": "any_text"}, "end": "."}],
        },
    ):
        grammar = tokfold.Grammar.from_structural_tag({"format": format})
        check(compiled_with(grammar, vocabulary, classes=classes, pool=None), random)
