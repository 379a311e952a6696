"""Lookahead ``(= ...)`` that the rules imply is no reason to refuse a grammar."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest
import tokfold
from oracles.model import to_ebnf
from strategies.binary import any_grammar
from strategies.engine import compiled_with
from strategies.profiles import CASES, LONG, LONG_FACTOR

MARK = b"\x01"
BYTES = tokfold.Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=[256])
LOOKAHEADS = (
    '"a"',
    '"b"',
    "[ab]",
    '"c"',
    '"ab"',
    '"a"* "b"',
    '"a"? "c"',
    '("a" | "bc")',
    '[abc] "a"',
)


def compiled(text: str, **options) -> tokfold.CompiledGrammar:
    grammar = tokfold.Grammar.from_ebnf(text, **options)
    return compiled_with(grammar, BYTES, classes="never", check_tokens=False)


def is_taken(text: str) -> bool:
    """Whether a grammar with lookahead compiles."""
    try:
        compiled(text)
    except tokfold.UnsupportedGrammarError as error:
        if error.construct != "lookahead":
            raise
        return False
    return True


def texts_of(text: str, longest: int, most: int = 4_000) -> tuple[set[bytes], bool]:
    """The strings of a grammar up to a length, and whether these are all of them that begin so."""
    found: set[bytes] = set()
    queue = [(tokfold.Matcher(compiled(text)), b"")]
    for matcher, read in queue:
        if matcher.is_accepting:
            found.add(read)
        if len(read) == longest:
            continue
        for byte in matcher.expected_bytes:
            fork = matcher.fork()
            assert fork.accept_bytes(bytes([byte]))
            queue.append((fork, read + bytes([byte])))
        if len(queue) > most:
            return found, False
    return found, True


def agree(rest: bytes, ahead: set[bytes]) -> bool:
    return any(rest.startswith(text) or text.startswith(rest) for text in ahead)


def test_it_is_what_follows_in_every_text() -> None:
    """Never where some text disagrees; and nearly always where none does."""
    taken = refused = missed = parts = 0
    for seed in range(400 * (LONG_FACTOR if LONG else 1)):
        random = Random(seed)
        lines = to_ebnf(any_grammar(random)).splitlines()
        at = random.randrange(len(lines))
        ahead = random.choice(LOOKAHEADS)
        name, _, body = lines[at].partition("::=")
        given = "\n".join(
            [*lines[:at], f"{name}::= ({body.strip()}) (= {ahead})", *lines[at + 1 :]]
        )
        marked = "\n".join([*lines[:at], f'{name}::= ({body.strip()}) "\\x01"', *lines[at + 1 :]])
        try:
            compiled("\n".join(lines))
            found, is_all = texts_of(marked, 9)
        except tokfold.TokfoldError:
            continue
        starts, _ = texts_of(f"root ::= {ahead}", 9)
        rests = {
            text[place + 1 :].replace(MARK, b"")
            for text in found
            for place in range(len(text))
            if text[place : place + 1] == MARK
        }
        agrees = all(agree(rest, starts) for rest in rests)
        if is_taken(given):
            assert agrees, given
            taken += 1
        else:
            refused += 1
            missed += agrees and is_all and bool(rests)
        if tokfold.Grammar.from_ebnf(given)._core.narrowing_lookahead() is None:
            # Whatever follows the text.
            assert all(any(rest.startswith(text) for text in starts) for rest in rests), given
            parts += 1
        CASES["lookahead: implied or not"] += 1
    assert taken > 30
    assert refused > 30
    assert missed <= refused // 4
    assert 10 < parts < taken


def test_masks_are_those_without_it() -> None:
    text = (
        'root ::= "[" ws item (ws "," ws item)* ws "]"\nitem ::= "\\"" rest\n'
        'rest ::= [a-z] rest | "\\"" (= [ \\n]* [,\\]])\nws ::= [ \\n]*'
    )
    vocabulary = tokfold.Vocabulary(
        [b"[", b"]", b'"', b"a", b'a"', b'", "b', b'"]', b'":', b" ,", b'"x', b"\n", b"</s>"],
        stop_token_ids=[11],
    )
    exact, without = (
        tokfold.compile(tokfold.Grammar.from_ebnf(given), vocabulary)
        for given in (text, text.replace(" (= [ \\n]* [,\\]])", ""))
    )
    matchers = [tokfold.Matcher(exact), tokfold.Matcher(without)]
    rows = [tokfold.allocate_bitmask(1, len(vocabulary)) for _ in matchers]
    for token in (0, 2, 3, 5, 3, 4, 8, 2, 6):
        for matcher, row in zip(matchers, rows, strict=True):
            matcher.fill_bitmask(row)
        assert np.array_equal(*rows)
        assert [matcher.accept_token(token) for matcher in matchers] == [True, True]


@pytest.mark.parametrize("ahead", ['"b"', '"x"* "b"'])
def test_what_narrows_is_refused(ahead: str) -> None:
    with pytest.raises(tokfold.UnsupportedGrammarError, match=r'rule "a": .*narrows masks'):
        compiled(f'root ::= a [bc]\na ::= "x" (= {ahead})')
    compiled(f'root ::= a [bc]\na ::= "x" (= {ahead})', lookahead="implied")


def test_what_xgrammar_prints_for_schemas() -> None:
    """Its converter puts one behind the strings of JSON; they are said by the rules as well."""
    xgr = pytest.importorskip("xgrammar")
    schemas = [
        {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
        {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        {"type": "string"},
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    ]
    for schema in schemas:
        for spaces in (True, False):
            printed = str(xgr.Grammar.from_json_schema(json.dumps(schema), any_whitespace=spaces))
            assert "(=" in printed
            compiled(printed)


def test_many_rules_with_lookahead() -> None:
    """A chain of thousands of rules, each with what follows it, takes no longer than reading it."""
    count = 3_000
    rules = [f'r{i} ::= "a" r{i + 1} "b" (= "b")' for i in range(1, count)]
    text = "\n".join(['root ::= "a" r1 "b"', *rules, f'r{count} ::= "c"'])
    compiled(text)


def test_what_xgrammar_prints_in_a_tag() -> None:
    """What follows the content of a tag is not known there, so the content has to say it all."""
    xgr = pytest.importorskip("xgrammar")

    def tag(schema: dict) -> dict:
        content = {
            "type": "grammar",
            "grammar": str(xgr.Grammar.from_json_schema(json.dumps(schema))),
        }
        return {
            "type": "structural_tag",
            "format": {"type": "tag", "begin": "<f>", "content": content, "end": "</f>"},
        }

    members = {"type": "object", "properties": {"name": {"type": "string"}}}
    made = tokfold.compile(tag(members), BYTES, classes="never")
    matcher = tokfold.Matcher(made)
    assert matcher.accept_string('<f>{"name": "a"}</f>')
    with pytest.raises(tokfold.UnsupportedGrammarError, match="'basic_string_sub'"):
        tokfold.compile(tag({"type": "string"}), BYTES, classes="never")


def test_hostile_lookahead_is_refused_at_once() -> None:
    """What doubles with each rule, and a sequence of which each place is looked at."""
    doubling = "\n".join(f"r{i} ::= r{i + 1} | r{i + 1}" for i in range(30))
    text = f'root ::= a "b"\na ::= "x" (= r0)\n{doubling}\nr30 ::= [b-z]'
    assert not is_taken(text)
    long = " ".join(["a"] * 20_000)
    with pytest.raises(tokfold.LimitExceededError, match="max_network_work"):
        compiled(f'root ::= {long}\na ::= "x" (= "x")')
