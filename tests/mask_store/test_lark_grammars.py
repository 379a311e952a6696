"""Whole grammars: JSON, SQL, Lua, and Lark's own Python with its indentation."""

from __future__ import annotations

import functools
import random
import textwrap
from pathlib import Path

import lark
import numpy as np
import pytest
from lark.indenter import PythonIndenter
from mask_store.lalr_oracle import Engine, accepts
from mask_store.lark_texts import parses
from mask_store.lexer_views import LexerView
from tokfold import Vocabulary
from tokfold.mask_store.lark_reader import open_lark, python_grammar
from tokfold.mask_store.transitions import build_transitions

GRAMMARS = Path(__file__).parents[2] / "grammars" / "lark"
NAMES = sorted(path.name for path in GRAMMARS.iterdir())
TEXTS = sorted(GRAMMARS.glob("*/*valid/*"))

# fmt: off
PIECES = [
    '):', '":', '"', '\\"', '===', '==', '**=', '*=', '//', '...', '..', "''", 'r"', "b'", 'f"',
    '0x', '1e', '1.', '.5', 'e+', '10', '0j', 'def', 'class', 'if', 'elif', 'else:', 'in', 'is',
    'not', 'and', 'or', 'import', 'from', 'as', 'return', 'None', 'self', 'True', 'print',
    'match', 'case', '--[[', ']]', '[[', '[=[', '--', '/*', '*/', 'SELECT', 'select', 'FROM',
    'null', 'true', 'the', 'ing', 'tion', 'ation', 'foo', 'bar', 'Ä', 'é', '日', '日本', "x'",
    '"""', "'''", '""',
]
# fmt: on


@functools.cache
def vocabulary():
    """All bytes, and pieces that lie across terminals."""
    pieces = {piece for piece in PIECES if piece} | {" " * n for n in range(1, 9)}
    pieces |= {"\n" + " " * n for n in range(9)} | {
        "\n\n\n",
        "\n\t",
        "\r\n",
        "\n\n",
        "):\n",
        "\n#",
        "# a",
        "\\\n",
        "():",
    }
    pieces |= {" " + piece for piece in pieces if piece[0].isalpha()}
    return Vocabulary([bytes([b]) for b in range(256)] + sorted(p.encode() for p in pieces))


@functools.cache
def transitions(name):
    if name == "python":
        return build_transitions(python_grammar(), vocabulary())
    return build_transitions(open_lark(GRAMMARS / name / f"{name}.lark"), vocabulary())


@functools.cache
def parser(name):
    if name == "python":
        return lark.Lark.open_from_package(
            "lark",
            "python.lark",
            ["grammars"],
            parser="lalr",
            start="file_input",
            postlex=PythonIndenter(),
        )
    return lark.Lark.open(str(GRAMMARS / name / f"{name}.lark"), parser="lalr")


@functools.cache
def token_ids():
    v = vocabulary()
    return {v[i]: i for i in reversed(range(len(v)))}


def split(data, rng):
    """Some way to spell a text in tokens."""
    known, longest, out, place = token_ids(), max(map(len, token_ids())), [], 0
    while place < len(data):
        size = rng.randint(1, longest)
        while data[place : place + size] not in known:
            size -= 1
        out.append(data[place : place + size])
        place += size
    return out


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: "/".join(p.parts[-3:]))
def test_texts_are_accepted_or_not(path):
    name, kind = path.parts[-3], path.parts[-2]
    text = path.read_text(encoding="utf-8")
    assert parses(parser(name), text) == (kind == "valid")
    for seed in range(2):
        tokens = split(text.encode(), random.Random(seed))
        assert accepts(transitions(name), tokens) == (kind == "valid")


MUTATIONS = ["", " ", "\n", '"', "'", "(", ")", "#", "\\", "if", "0", ".", "é", "\t", "=", "..."]
MUTATIONS += ["\r\n", "e5", "_", "--", "[[", "]]", "/*", "[", "in", ":", "\n  "]


def mutants(text, rng, count):
    lines = text.split("\n")
    for _ in range(count):
        first = rng.randrange(len(lines))
        part = "\n".join(lines[first : first + rng.randint(1, 12)])
        made = textwrap.dedent(part) + rng.choice(["\n", "\n", ""])
        for _ in range(rng.choice([0, 1, 1, 2])):
            at = rng.randrange(len(made) + 1)
            made = made[:at] + rng.choice(MUTATIONS) + made[at + rng.randint(0, 2) :]
        yield made


def source_text(name):
    if name == "python":
        return Path(textwrap.__file__).read_text(encoding="utf-8")
    return "\n".join(p.read_text() for p in sorted((GRAMMARS / name / "valid").iterdir()))


@pytest.mark.parametrize("name", [*NAMES, "python"])
def test_mutants_are_accepted_as_lark_accepts_them(name):
    rng = random.Random(7)
    taken = 0
    for text in mutants(source_text(name), rng, 150):
        expected = parses(parser(name), text)
        assert accepts(transitions(name), split(text.encode(), rng)) == expected, text
        taken += expected
    assert taken > 5


def test_a_whole_module_of_the_standard_library():
    text = source_text("python")
    assert parses(parser("python"), text)
    assert accepts(transitions("python"), split(text.encode(), random.Random(1)))


INDENTED = [
    ("if x:\n    y\n", True),
    ("if x:\n    y", False),
    ("if x:\n    y\n  z\n", False),
    ("if x:\n\n    # note\n    y\nz\n", True),
    ("if x:\n\ty\n        z\n", True),
    ("f(\n  1,\n# in\n 2)\n", True),
    ("f(\nx,\n1\n)\n", True),
    ("x = 1 # note", False),
    ("x = (1, # note\n2)\n", True),
    ("if x:\n  if y:\n    z\nw\n", True),
    ("if x:\n  if y:\n    z\n w\n", False),
    ("\n\n", True),
    ("x = \\\n  1\n", True),
]


@pytest.mark.parametrize(("text", "expected"), INDENTED)
def test_indentation(text, expected):
    assert parses(parser("python"), text) == expected
    rng = random.Random(3)
    for _ in range(6):
        assert accepts(transitions("python"), split(text.encode(), rng)) == expected


SOFT = [
    "import foo asbar\n",
    "a notin b\n",
    "x = def\n",
    "from ... import a\n",
    "_ = 3\n",
    "x if 1else 2\n",
    "0or 1\n",
    'f""\n',
    '"""a"""\n',
    '""""""\n',
    "1if x else y\n",
    "01\n",
    "1_000.e5j\n",
    "r'\\''\n",
    "'\\\\'\n",
    "'a\n'\n",
    "日本 = 1\n",
    "1__0\n",
    "a.b.c...d\n",
]


@pytest.mark.parametrize("text", SOFT)
def test_the_context_of_the_parser_decides(text):
    expected = parses(parser("python"), text)
    rng = random.Random(5)
    for _ in range(6):
        assert accepts(transitions("python"), split(text.encode(), rng)) == expected


def test_partial_characters_go_on_in_the_next_token():
    e = Engine(transitions("python"))
    for byte in "日".encode():
        assert e.accept(bytes([byte]))
    assert e.accept(b"\n")
    assert e.complete()
    broken = Engine(transitions("python"))
    assert broken.accept(b"\xe6")
    assert not broken.accept(b"x")


def test_rows_are_what_tokens_do():
    t = LexerView(transitions("python"))
    state_of = {pair: state for state, pair in enumerate(t.states)}
    rng = random.Random(2)
    own = t.own_rows
    for row in rng.sample(range(len(own)), 60):
        configuration, terminal, scanners, sequence, tokens = own[row].tolist()
        letters = tuple(t.letters[i] for i in t.sequences[sequence])
        state = state_of[configuration, terminal]
        for token in rng.sample(t.token_sets[tokens].tolist(), 1):
            ways = t.advance(state, t.vocabulary[token])
            assert any(
                w.scanners == scanners
                and [x.terminal for x in w.letters] == [x.terminal for x in letters]
                for w in ways
            )


def test_the_joined_store_takes_all_that_the_exact_one_takes():
    t = transitions("python")
    joined = t.joined()
    assert joined.transitions.sum() >= joined.row_counts.sum() == len(joined.rows)
    assert len(np.unique(joined.rows[:, :2], axis=0)) == len(joined.rows)
