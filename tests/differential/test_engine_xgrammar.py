"""Our own engine beside plain XGrammar, on real grammars and JSON schemas, along valid texts.

Where the masks differ one of XGrammar's known faults must be the reason, and a naive recognizer
decides: ours is what the recognizer says, always. The faults are

- *contradiction*: XGrammar's mask says one thing of a token and its own ``accept_token`` another;
- *dead end*: it takes what can never be completed, since it does not prune;
- *surrogate*: it takes surrogates, or what begins one, differently from the rules.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from oracles.earley import Oracle, State
from strategies.engine import mask_of
from strategies.printed import read_printed
from strategies.profiles import CASES, LONG

xgr = pytest.importorskip("xgrammar")

import tokfold  # noqa: E402
from oracles.xgrammar_doors import as_ours  # noqa: E402
from strategies.engine import compiled_with  # noqa: E402

FOLDER = Path(__file__).parents[2] / "grammars"
GRAMMARS = sorted(FOLDER.glob("*/*.gbnf"))
STOP = b""  # XGrammar takes one with bytes where these complete the text
POSITIONS = 200 if LONG else 14
"""Masks compared for each text."""
LONGEST = 1_500 if LONG else 260
"""Bytes of a text: the naive recognizer takes its time."""


@cache
def vocabulary() -> tuple[bytes, ...]:
    """All bytes, and the pieces that are most frequent in the sample texts."""
    counts: Counter[bytes] = Counter()
    for path in sorted(FOLDER.glob("*/valid/*")):
        text = path.read_bytes()[:2_000]
        for length in (2, 3, 4, 6, 9):
            counts.update({text[i : i + length] for i in range(len(text) - length + 1)})
    pieces = sorted(counts, key=lambda piece: (-counts[piece], piece))[:1_400]
    odd = [
        b"\xed\xa0\x80",
        b"\xed\xa0",
        b'"\xed',
        "😀é".encode(),
        b"\xf0\x9f\x98",
        b"\xff",
        b"  \n",
    ]
    tokens = [bytes([i]) for i in range(256)] + pieces + [o for o in odd if o not in counts]
    return (*dict.fromkeys(tokens), STOP)


class Judge:
    """What the recognizer says after prefixes of one text; made when first asked."""

    def __init__(self, grammar: tokfold.Grammar, text: bytes) -> None:
        self.oracle = Oracle(read_printed(str(grammar), grammar.root))
        self.text = text
        self.states: dict[bool, dict[int, State]] = {
            prune: {0: self.oracle.initial(prune)} for prune in (True, False)
        }

    def allowed(self, position: int, token: bytes, *, prune: bool) -> bool:
        states = self.states[prune]
        if position not in states:
            last = max(p for p in states if p <= position)
            states[position] = states[last].feed(self.text[last:position])
        return states[position].allowed(token)


def is_surrogate(token: bytes) -> bool:
    return b"\xed" in token


def plain_mask(matcher: Any, size: int) -> list[bool]:
    bitmask = xgr.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(bitmask)
    bits = np.unpackbits(bitmask.numpy().view(np.uint8), bitorder="little")[:size]
    return bits.astype(bool).tolist()


class Beside:
    """Both engines over one grammar."""

    def __init__(self, grammar: tokfold.Grammar, theirs: Any) -> None:
        tokens = vocabulary()
        self.stop = len(tokens) - 1
        self.grammar = grammar
        self.vocabulary = tokfold.Vocabulary(list(tokens), stop_token_ids=[self.stop])
        self.ours = compiled_with(grammar, self.vocabulary, classes="now", check_tokens=False)
        info = xgr.TokenizerInfo(
            list(tokens), vocab_type=xgr.VocabType.RAW, stop_token_ids=[self.stop]
        )
        compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.theirs = compiler.compile_grammar(theirs)
        self.faults: Counter[str] = Counter()

    def walk(self, text: bytes, random: Random, whole: bool) -> None:
        """Goes through a text, both ways to split it into tokens, and compares masks."""
        judge = Judge(self.grammar, text)
        tokens = self.split(text, random)
        wanted = set(random.sample(range(len(tokens) + 1), min(POSITIONS, len(tokens) + 1)))
        ours, theirs = tokfold.Matcher(self.ours), xgr.GrammarMatcher(self.theirs)
        position = 0
        for number, token in enumerate([*tokens, None]):
            if number in wanted:
                self.compare(ours, theirs, judge, position, random)
            if token is not None:
                assert ours.accept_token(token), (position, self.vocabulary[token])
                assert theirs.accept_token(token)
                position += len(self.vocabulary[token])
        assert ours.text == text
        if whole:
            assert ours.is_accepting
            assert ours.accept_token(self.stop)
            assert ours.is_terminated

    def split(self, text: bytes, random: Random) -> list[int]:
        ids = {token: i for i, token in enumerate(vocabulary()[:-1])}
        out, at = [], 0
        while at < len(text):
            choices = [n for n in range(1, 10) if text[at : at + n] in ids and at + n <= len(text)]
            length = random.choice(choices)
            out.append(ids[text[at : at + length]])
            at += length
        return out

    def compare(self, ours: Any, theirs: Any, judge: Judge, position: int, random: Random) -> None:
        tokens = vocabulary()
        bits, _ = mask_of(ours, len(tokens))
        their_bits = plain_mask(theirs, len(tokens))
        CASES["engine: masks beside XGrammar's"] += 1
        CASES["engine: bits beside XGrammar's"] += len(bits)
        assert bits[self.stop] is their_bits[self.stop] is ours.is_accepting
        differing = [t for t in range(self.stop) if bits[t] != their_bits[t]]
        sample = random.sample(range(self.stop), 12)
        sample += random.sample([t for t in range(self.stop) if bits[t]] or [0], 1)
        for token in {*differing, *sample}:
            data = tokens[token]
            truth = judge.allowed(position, data, prune=True)
            where = (judge.text[:position][-60:], data)
            assert bits[token] == truth, where
            assert ours.fork().accept_token(token) == truth, where
            if bits[token] != their_bits[token]:
                fault = self.fault(theirs, judge, position, token)
                assert fault, (where, "XGrammar differs for no known reason")
                self.faults[fault] += 1
                CASES[f"engine: XGrammar's fault, {fault}"] += 1

    def fault(self, theirs: Any, judge: Judge, position: int, token: int) -> str | None:
        """The known fault of XGrammar's that a differing bit is."""
        data = vocabulary()[token]
        taken = theirs.fork().accept_token(token)
        if taken == judge.allowed(position, data, prune=True):
            return "contradiction"
        if taken and judge.allowed(position, data, prune=False):
            return "dead end"
        return "surrogate" if is_surrogate(data) else None


@pytest.mark.parametrize("path", GRAMMARS, ids=[path.stem for path in GRAMMARS])
def test_real_grammars(path):
    text = path.read_text(encoding="utf-8")
    beside = Beside(tokfold.Grammar.from_ebnf(text), text)
    random = Random(path.stem)
    samples = sorted((path.parent / "valid").iterdir(), key=lambda p: len(p.read_bytes()))
    for sample in samples if LONG else random.sample(samples, min(4, len(samples))):
        data = sample.read_bytes()
        beside.walk(data[:LONGEST], random, len(data) <= LONGEST)


STRING, NUMBER = {"type": "string"}, {"type": "number"}
SCHEMAS: dict[str, tuple[Any, list[str]]] = {
    "anything": (True, ['{"a": [1, "x", null]}', "-1.5e3", '"\\u00e9"']),
    "string": (STRING, ['"caf\u00e9 \\n"', '""']),
    "integer": ({"type": "integer"}, ["-120", "0"]),
    "number": (NUMBER, ["-1.5e+10", "0.25"]),
    "boolean": ({"type": "boolean"}, ["true", "false"]),
    "constant": ({"const": {"a": [1, "\u65e5"]}}, ['{"a":[1,"\u65e5"]}']),
    "enumeration": ({"enum": ["red", "green", "\u00fcber", 12, None]}, ['"green"', "12", "null"]),
    "maxLength": ({"type": "string", "maxLength": 60}, ['"' + "ab\u00e9" * 20 + '"', '"a"']),
    "minLength": ({"type": "string", "minLength": 20, "maxLength": 22}, ['"' + "a" * 21 + '"']),
    "array": ({"type": "array", "items": {"type": "integer"}}, ["[1, 2, 30]", "[]"]),
    "bounded array": (
        {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 20},
        ["[1, 2]", "[" + ", ".join(["1.5"] * 20) + "]"],
    ),
    "tuple": (
        {"type": "array", "prefixItems": [STRING, NUMBER], "items": False},
        ['["a", 1]'],
    ),
    "object": (
        {"type": "object", "properties": {"a": STRING, "b": NUMBER}, "required": ["a", "b"]},
        ['{"a": "x", "b": -1}'],
    ),
    "optional keys": (
        {"type": "object", "properties": {k: {"type": "boolean"} for k in "abcdefgh"}},
        ['{"a": true, "d": false, "h": true}', "{}"],
    ),
    "further keys": (
        {
            "type": "object",
            "properties": {"a": NUMBER},
            "additionalProperties": STRING,
            "required": ["a"],
        },
        ['{"a": 1, "zz": "y"}'],
    ),
    "nested": (
        {
            "type": "object",
            "properties": {
                "p": {"type": "object", "properties": {"q": NUMBER}, "required": ["q"]},
                "r": {"type": "array", "items": STRING},
            },
            "required": ["p", "r"],
        },
        ['{"p": {"q": 1}, "r": ["a", "b"]}'],
    ),
    "either": ({"anyOf": [{"type": "integer"}, STRING, {"type": "null"}]}, ["17", '"a"', "null"]),
    "recursive": (
        {
            "$defs": {
                "tree": {
                    "type": "object",
                    "properties": {
                        "v": {"type": "integer"},
                        "l": {"$ref": "#/$defs/tree"},
                        "r": {"$ref": "#/$defs/tree"},
                    },
                    "required": ["v"],
                }
            },
            "$ref": "#/$defs/tree",
        },
        ['{"v": 1, "l": {"v": 2, "r": {"v": 3}}}'],
    ),
    "types": ({"type": ["string", "null", "array"]}, ['["a"]', "null"]),
    "keys in need of escapes": (
        {"type": "object", "properties": {'q"\\\u00e9': NUMBER}, "required": ['q"\\\u00e9']},
        ['{"q\\"\\\\\u00e9": 3}'],
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name):
    import json

    schema, texts = SCHEMAS[name]
    theirs = xgr.Grammar.from_json_schema(json.dumps(schema))
    beside = Beside(as_ours(theirs), theirs)
    for text in texts:
        data = text.encode()
        beside.walk(data, Random(text), whole=True)
        beside.walk(data, Random(text[::-1]), whole=True)


def test_the_faults_are_known_ones():
    """Each kind is met in a grammar made for it, and a wrong bit of ours would be found out."""
    dead = 'root ::= "a" x "b" | "c"\nx ::= "d" x | "e" never | "f"\nnever ::= "g" never\n'
    beside = Beside(tokfold.Grammar.from_ebnf(dead), dead)
    beside.walk(b"addfb", Random(1), whole=True)
    assert beside.faults["dead end"]

    class Other(Judge):
        def allowed(self, position: int, token: bytes, *, prune: bool) -> bool:
            return not super().allowed(position, token, prune=prune)

    judge = Other(beside.grammar, b"")
    matchers = tokfold.Matcher(beside.ours), xgr.GrammarMatcher(beside.theirs)
    with pytest.raises(AssertionError):
        beside.compare(*matchers, judge, 0, Random(1))
