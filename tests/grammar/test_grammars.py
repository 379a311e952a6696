"""Real grammars: their texts, where bad texts stop, and that no rule is idle.

Every folder of `grammars/` holds `<name>.gbnf`, `valid/` and `invalid/` texts and
`invalid/EXPECT.json`, which maps the name of a bad text to the byte offset of the first byte
that cannot be; an offset equal to the length says that the end of the text cannot be.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tokfold

GRAMMARS = Path(__file__).parents[2] / "grammars"
NAMES = sorted(path.parent.name for path in GRAMMARS.glob("*/*.gbnf"))
STOP = 256

RULE_HEAD = re.compile(r"^([A-Za-z_][A-Za-z0-9_-]*)[ \t]*::=", re.MULTILINE)
TERMINAL = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|#[^\n]*', re.DOTALL)
REFERENCE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

# Rules that every text can do without, because the grammar is ambiguous there.
# (`CUBE (a)` is also a call, `UNBOUNDED PRECEDING` also a column.)
AMBIGUOUS_AWAY = {"sql": {"kw_cube", "kw_rollup", "kw_unbounded"}}


def grammar_text(name: str) -> str:
    return (GRAMMARS / name / f"{name}.gbnf").read_text(encoding="utf-8")


def rules_of(text: str) -> dict[str, str]:
    """Rule name to the text of its right-hand side, in order."""
    heads = list(RULE_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: text[head.end() : end].strip() for head, end in zip(heads, ends, strict=True)}


def references(body: str) -> set[str]:
    return set(REFERENCE.findall(TERMINAL.sub(" ", body)))


def valid_texts(name: str) -> list[Path]:
    return sorted((GRAMMARS / name / "valid").iterdir())


def expectations(name: str) -> dict[str, int]:
    return json.loads((GRAMMARS / name / "invalid" / "EXPECT.json").read_text())


class ByteMatcher:
    """XGrammar over a vocabulary of the 256 bytes and one stop token."""

    def __init__(self, text: str) -> None:
        xgr = pytest.importorskip("xgrammar")
        vocabulary = [bytes([byte]) for byte in range(256)] + [b""]
        info = xgr.TokenizerInfo(vocabulary, vocab_type=xgr.VocabType.RAW, stop_token_ids=[STOP])
        compiler = xgr.GrammarCompiler(info, cache_enabled=False)
        self._new_matcher = xgr.GrammarMatcher
        self._compiled = compiler.compile_grammar(xgr.Grammar.from_ebnf(text))

    def refused_at(self, data: bytes) -> int | None:
        """Return the offset of the first byte that cannot be; None if the text is accepted."""
        matcher = self._new_matcher(self._compiled)
        for offset, byte in enumerate(data):
            if not matcher.accept_token(byte):
                return offset
        return None if matcher.accept_token(STOP) else len(data)


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def matcher(name):
    return ByteMatcher(grammar_text(name))


def test_the_collection_is_found():
    assert len(NAMES) >= 11


def test_valid_texts_are_accepted(name, matcher):
    texts = valid_texts(name)
    assert len(texts) >= 4
    refused = {path.name: matcher.refused_at(path.read_bytes()) for path in texts}
    assert refused == dict.fromkeys(refused)


def test_invalid_texts_are_refused_where_stated(name, matcher):
    folder = GRAMMARS / name / "invalid"
    expected = expectations(name)
    assert len(expected) >= 4
    assert set(expected) == {path.name for path in folder.iterdir()} - {"EXPECT.json"}
    found = {file: matcher.refused_at((folder / file).read_bytes()) for file in expected}
    assert found == expected


def test_header_names_licence_and_source(name):
    header = grammar_text(name).split("\n\n", 1)[0]
    assert header.startswith("# SPDX-License-Identifier: Apache-2.0\n")
    assert "Left out" in header


def test_rules_are_defined_once_and_reachable(name):
    text = grammar_text(name)
    rules = rules_of(text)
    heads = [head[1] for head in RULE_HEAD.finditer(text)]
    assert len(heads) == len(rules)
    reachable, pending = {"root"}, ["root"]
    while pending:
        for used in references(rules[pending.pop()]) - reachable:
            assert used in rules
            reachable.add(used)
            pending.append(used)
    assert reachable == set(rules)


def test_root_is_not_recursive(name):
    assert all("root" not in references(body) for body in rules_of(grammar_text(name)).values())


def _is_read(compiled: tokfold.CompiledGrammar, text: bytes) -> bool:
    matcher = tokfold.Matcher(compiled)
    return matcher.accept_bytes(text) and matcher.is_accepting


def test_every_rule_is_needed_by_some_valid_text(name):
    """Covered, hence productive: with one rule made impossible, some text is refused."""
    texts = [path.read_bytes() for path in valid_texts(name)]
    rules = rules_of(grammar_text(name))
    vocabulary = tokfold.Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], [STOP])
    idle = set()
    for rule in rules:
        without = rules | {rule: '"\\u0002\\u0002"'}
        text = "\n".join(f"{head} ::= {body}" for head, body in without.items())
        compiled = tokfold.compile(text, vocabulary, classes="never")
        if all(_is_read(compiled, text) for text in texts):
            idle.add(rule)
    assert idle == AMBIGUOUS_AWAY.get(name, set())
