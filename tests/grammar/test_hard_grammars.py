"""Hard grammars: their texts, where bad texts stop, and masks beside what a fork takes.

Every folder of `grammars/hard/` holds `<name>.gbnf`, or a `make.py` with a `schema()`, and texts
as the folders of `grammars/` do (see `test_grammars.py`). A `make.py` beside a grammar prints it.
"""

from __future__ import annotations

import json
import os
import random
import re
import runpy
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tokfold
from grammar.test_grammars import RULE_HEAD, references, rules_of
from strategies.engine import compiled_with
from support import processes

HARD = Path(__file__).parents[2] / "grammars" / "hard"
NAMES = sorted(path.parent.name for path in HARD.glob("*/valid"))
TEXTS = sorted(path.parent.name for path in HARD.glob("*/*.gbnf"))
PRINTED = sorted(name for name in TEXTS if (HARD / name / "make.py").exists())
ENGINES = ("auto", "stack", "chart")
PLACES = 12
"""Masks of a text that are compared."""
SAMPLE = 2_000
"""Tokens of a real vocabulary that are tried at each of them."""

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "tokenizers"
ROOT = Path(os.environ.get("TOKFOLD_TOKENIZERS") or BESIDE)
FOLDERS = sorted(path.parent for path in ROOT.rglob("tokenizer.json"))
NONE = "no tokenizers: TOKFOLD_TOKENIZERS names no folder, nor is shared/tokenizers by the checkout"


def made_by(name: str) -> dict[str, object]:
    """What the `make.py` of a grammar defines."""
    return runpy.run_path(str(HARD / name / "make.py"))


def grammar_text(name: str) -> str:
    return (HARD / name / f"{name}.gbnf").read_text(encoding="utf-8")


@cache
def grammar(name: str) -> tokfold.Grammar:
    if name in TEXTS:
        return tokfold.Grammar.from_ebnf(grammar_text(name))
    return tokfold.Grammar.from_json_schema(made_by(name)["schema"](), additional_properties=True)


def valid_texts(name: str) -> list[Path]:
    return sorted((HARD / name / "valid").iterdir())


def longest_text(name: str) -> bytes:
    return max((path.read_bytes() for path in valid_texts(name)), key=len)


@cache
def real_vocabulary(folder: Path) -> tokfold.Vocabulary:
    return tokfold.Vocabulary.from_file(folder)


def vocabulary_of(tokens: list[bytes]) -> tokfold.Vocabulary:
    """The bytes, these tokens, and a stop token."""
    singles = [bytes([byte]) for byte in range(256)]
    stop = len(singles) + len(tokens)
    return tokfold.Vocabulary([*singles, *tokens, b"</s>"], stop_token_ids=[stop])


def tokens_of(name: str) -> list[bytes]:
    """Pieces of the texts, some hundred, across whatever borders there are."""
    whole = b"".join(path.read_bytes() for path in valid_texts(name))
    draw = random.Random(name)
    starts = [draw.randrange(len(whole) - 1) for _ in range(600)]
    return sorted({whole[at : at + draw.choice((2, 3, 3, 4, 5, 6, 8, 12))] for at in starts})


def refused_at(compiled: tokfold.CompiledGrammar, data: bytes) -> int | None:
    """The offset of the first byte that cannot be; its length, where it cannot end; None: taken."""
    matcher = tokfold.Matcher(compiled)
    for offset, byte in enumerate(data):
        if not matcher.accept_token(byte):
            return offset
    return None if matcher.accept_token(matcher.stop_token_ids[0]) else len(data)


def some(bits: np.ndarray, count: int, draw: random.Random) -> list[int]:
    """So many tokens at most: half of them are allowed, as far as there are any."""
    allowed = np.flatnonzero(bits).tolist()
    return [
        *draw.sample(allowed, min(count // 2, len(allowed))),
        *draw.sample(range(len(bits)), count // 2),
    ]


def check_masks(
    compiled: tokfold.CompiledGrammar,
    vocabulary: tokfold.Vocabulary,
    text: bytes,
    seed: str,
    tried: int | None = None,
) -> None:
    """Along a text, at its end too, a mask has a token where a fork takes it."""
    tokens = vocabulary.encode_greedy(text)
    draw = random.Random(seed)
    places = {len(tokens), *draw.sample(range(len(tokens)), min(PLACES - 1, len(tokens)))}
    row = tokfold.allocate_bitmask(1, len(vocabulary))
    matcher = tokfold.Matcher(compiled)
    for place in range(len(tokens) + 1):
        if place in places:
            matcher.fill_bitmask(row)
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(vocabulary)]
            ids = range(len(vocabulary)) if tried is None else some(bits, tried, draw)
            wrong = [token for token in ids if matcher.fork().accept_token(token) != bits[token]]
            assert wrong == [], (place, vocabulary.decode(tokens[:place])[-80:])
            assert bits[vocabulary.stop_token_ids[0]] == matcher.is_accepting
        if place < len(tokens):
            assert matcher.accept_token(tokens[place]), place


@pytest.fixture(scope="module")
def byte_vocabulary():
    return vocabulary_of([])


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture
def compiled(name, byte_vocabulary, engine):
    return compiled_with(grammar(name), byte_vocabulary, classes="never", pool=None, engine=engine)


def test_the_collection_is_found():
    assert len(NAMES) >= 22
    assert set(NAMES) == {path.parent.name for path in HARD.glob("*/invalid")}
    rows = re.findall(r"^\| \[(\w+)\]\(", (HARD / "README.md").read_text(encoding="utf-8"), re.M)
    assert rows == NAMES


def test_valid_texts_are_accepted(name, compiled):
    texts = valid_texts(name)
    assert len(texts) >= 4
    refused = {path.name: refused_at(compiled, path.read_bytes()) for path in texts}
    assert refused == dict.fromkeys(refused)


def test_invalid_texts_are_refused_where_stated(name, compiled):
    folder = HARD / name / "invalid"
    expected = json.loads((folder / "EXPECT.json").read_text(encoding="utf-8"))
    assert len(expected) >= 4
    assert set(expected) == {path.name for path in folder.iterdir()} - {"EXPECT.json"}
    found = {file: refused_at(compiled, (folder / file).read_bytes()) for file in expected}
    assert found == expected


def test_masks_are_what_a_fork_takes(name, engine):
    vocabulary = vocabulary_of(tokens_of(name))
    compiled = compiled_with(grammar(name), vocabulary, classes="never", pool=None, engine=engine)
    check_masks(compiled, vocabulary, longest_text(name), name + engine)


def test_masks_with_classes_are_what_a_fork_takes(name):
    vocabulary = vocabulary_of(tokens_of(name))
    compiled = compiled_with(grammar(name), vocabulary, classes="now", pool=None)
    check_masks(compiled, vocabulary, longest_text(name), name)


@pytest.mark.skipif(not FOLDERS, reason=NONE)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_masks_of_a_real_vocabulary(name, folder):
    vocabulary = real_vocabulary(folder)
    compiled = compiled_with(grammar(name), vocabulary, classes="never", pool=None)
    check_masks(compiled, vocabulary, longest_text(name), name, SAMPLE)


@pytest.mark.parametrize("name", TEXTS)
def test_header_names_licence_and_what_is_left_out(name):
    header = grammar_text(name).split("\n\n", 1)[0]
    assert header.startswith("# SPDX-License-Identifier: Apache-2.0\n")
    assert "Left out" in header


@pytest.mark.parametrize("name", TEXTS)
def test_rules_are_defined_once_and_reachable(name):
    text = grammar_text(name)
    rules = rules_of(text)
    assert len(rules) == len(RULE_HEAD.findall(text))
    assert all("root" not in references(body) for body in rules.values())
    reachable, pending = {"root"}, ["root"]
    while pending:
        for used in references(rules[pending.pop()]) - reachable:
            assert used in rules
            reachable.add(used)
            pending.append(used)
    assert reachable == set(rules)


@pytest.mark.parametrize("name", PRINTED)
def test_a_printed_grammar_is_up_to_date(name):
    command = [sys.executable, str(HARD / name / "make.py")]
    printed = processes.run(command, check=True, text=False).stdout
    assert printed == (HARD / name / f"{name}.gbnf").read_bytes()


def test_what_a_schema_prints_as_has_its_instances(byte_vocabulary):
    printed = tokfold.Grammar.from_ebnf(str(grammar("big_schema")))
    assert printed.num_rules > 8_000
    compiled = compiled_with(printed, byte_vocabulary, classes="never", pool=None)
    for path in valid_texts("big_schema"):
        assert refused_at(compiled, path.read_bytes()) is None, path.name
